#!/usr/bin/env python3
"""Installs the Python package as users do, in a virtual environment with `pip install ./python`, and then
runs mypy and pytest.

  check_python.py [--all] [FOLDER]

The environment is made in FOLDER, which is kept. By default it is made in a temporary folder. `--all` also
runs slow tests, which are all notebooks and long trainings.

The wheel is built in cargo's profile `ci`, with the libtorch of this checkout; run `make setup` first. The
torch on PyPI loads the libraries of CUDA on import, which have several gigabytes, but doesn't call them on a
machine without a GPU. `stub_cuda` therefore replaces them.
"""

import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIBTORCH = ROOT / ".libtorch" / "torch"
PINS = ROOT / "scripts" / "libtorch.txt"
# The packages that torch imports, and the packages that the Python package and its tests need.
NEEDED = ("numpy filelock fsspec jinja2 networkx sympy typing_extensions pandas psutil pytest pytest-xdist "
    "mypy").split()
# torch_geometric, one of whose networks a test trains, and the packages that it imports.
GEOMETRIC = "torch_geometric tqdm aiohttp requests pyparsing xxhash".split()
# The packages that the examples, the notebooks and the Python code of the guide need.
EXAMPLES = "rdkit matplotlib nbclient nbformat ipykernel".split()
# The libraries that every Linux system has, and that need no stub.
SYSTEM = re.compile(r"lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|util|gomp)\.so|ld-linux")


def run(*command, **settings):
    print("--", *command, flush=True)
    subprocess.run([str(part) for part in command], check=True, **settings)


def output_of(*command):
    return subprocess.run(
        [str(part) for part in command], check=True, stdout=subprocess.PIPE, universal_newlines=True
    ).stdout


def stub_cuda(site):
    """Makes torch importable without the libraries of CUDA. torch calls two of these libraries on import.
    They are replaced by links to the same libraries in this checkout's libtorch. All other libraries are
    replaced by stubs, whose functions abort."""
    torch_libraries, cuda_libraries = site / "torch" / "lib", site / "nvidia" / "cu13" / "lib"
    cuda_libraries.mkdir(parents=True, exist_ok=True)
    for real in (LIBTORCH.parent / "nvidia" / "cu13" / "lib").glob("*.so*"):
        target = cuda_libraries / real.name
        if not target.exists():
            target.symlink_to(real.resolve())
    libraries = sorted(torch_libraries.glob("*.so"))
    needed = {
        name
        for library in libraries
        for name in re.findall(r"NEEDED.*\[(.*?)\]", output_of("readelf", "-d", library))
    }
    present = {library.name for library in libraries} | {library.name for library in cuda_libraries.iterdir()}
    missing = sorted(name for name in needed - present if not SYSTEM.match(name))
    if not missing:
        return
    called = set()
    for library in libraries:
        names = (
            line.split()[-1].partition("@")[0]
            for line in output_of("nm", "-D", "--undefined-only", library).splitlines()
        )
        called |= {name for name in names if re.match(r"(cu|nv|nccl|__cuda)", name)}
    defined = set()
    for library in libraries + [path for path in cuda_libraries.iterdir() if ".so" in path.name]:
        defined |= {
            line.split()[-1].partition("@")[0]
            for line in output_of("nm", "-D", "--defined-only", library).splitlines()
        }
    source = cuda_libraries / "stub.c"
    functions = "\n".join("void %s(void) { abort(); }" % name for name in sorted(called - defined))
    source.write_text("#include <stdlib.h>\n" + functions + "\n")
    for number, name in enumerate(missing):
        # The first stub defines all missing functions. The other stubs are empty, because they only have to
        # exist.
        sources = [source] if number == 0 else ["-x", "c", "/dev/null"]
        subprocess.run(
            [
                "gcc",
                "-shared",
                "-fPIC",
                "-O1",
                "-w",
                "-Wl,-soname," + name,
                "-o",
                cuda_libraries / name,
                *sources,
            ],
            check=True,
        )
    print("-- stubs for", *missing)


def check(folder, slow):
    venv.create(folder, with_pip=True, clear=True)
    python = folder / "bin" / "python"
    torch = next(line.split()[0] for line in PINS.read_text().splitlines() if line.startswith("torch=="))
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*pip, "--no-deps", torch)
    run(*pip, *NEEDED, *GEOMETRIC, *EXAMPLES)
    stub_cuda(Path(output_of(python, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))").strip()))
    # The build uses the same libtorch as all other builds. Otherwise torch-sys would be compiled again.
    settings = dict(os.environ, LIBTORCH=os.environ.get("LIBTORCH", str(LIBTORCH)), PYO3_PYTHON=str(python))
    run(
        "cargo",
        "clippy",
        "--profile",
        "ci",
        "-p",
        "gfn-python",
        "--",
        "-D",
        "warnings",
        cwd=ROOT,
        env=settings,
    )
    run(*pip, "--no-deps", "-C", "build-args=--profile ci", ROOT / "python", env=settings)
    run(python, "-m", "mypy", "--config-file", ROOT / "python" / "pyproject.toml", "-p", "gfn_rs", cwd=folder)
    chosen = [] if slow else ["-m", "not slow"]
    run(
        python,
        "-m",
        "pytest",
        "-q",
        "-n",
        "auto",
        "--durations",
        "15",
        *chosen,
        ROOT / "python" / "tests",
        cwd=folder
    )


def main():
    slow = "--all" in sys.argv[1:]
    folders = [argument for argument in sys.argv[1:] if argument != "--all"]
    if len(folders) > 1:
        sys.exit(__doc__)
    if folders:
        return check(Path(folders[0]).resolve(), slow)
    with tempfile.TemporaryDirectory() as folder:
        check(Path(folder) / "venv", slow)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit("check_python: `%s` failed" % " ".join(str(part) for part in error.cmd))
