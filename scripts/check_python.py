#!/usr/bin/env python3
"""The Python package as a user gets it: an environment of its own, `pip install ./python`, then mypy and pytest in it.

  check_python.py [--all] [FOLDER]     the environment is made in FOLDER and kept; without one, in a folder that goes
                                       `--all` runs slow tests, too: all notebooks, long trainings

The wheel is built in the profile `ci`, on the libtorch of this checkout. torch from PyPI looks for the libraries of CUDA
(several gigabytes) when it is imported, which it never calls where there is no GPU: see `stub_cuda`. `make setup` comes first.
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
# What torch itself imports, what the package needs, and what the tests use.
NEEDED = "numpy filelock fsspec jinja2 networkx sympy typing_extensions pandas psutil pytest pytest-xdist mypy".split()
# A network of theirs is trained, without what else they bring.
LAYERS = "torch_geometric tqdm aiohttp requests pyparsing xxhash".split()
# What the examples, the notebooks and the guide's page use.
EXAMPLES = "rdkit matplotlib nbclient nbformat ipykernel".split()
# Of the system's C library and its kin, which are there.
SYSTEM = re.compile(r"lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|util|gomp)\.so|ld-linux")


def run(*command, **settings):
    print("--", *command, flush=True)
    subprocess.run([str(part) for part in command], check=True, **settings)


def said(*command):
    return subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout


def stub_cuda(site):
    """Lets torch be imported without the libraries of CUDA: the two that it calls even so are those of this checkout's libtorch,
    the others are made here, with functions that abort."""
    theirs, ours = site / "torch" / "lib", site / "nvidia" / "cu13" / "lib"
    ours.mkdir(parents=True, exist_ok=True)
    for real in (LIBTORCH.parent / "nvidia" / "cu13" / "lib").glob("*.so*"):
        target = ours / real.name
        if not target.exists():
            target.symlink_to(real.resolve())
    libraries = sorted(theirs.glob("*.so"))
    needed = {name for library in libraries for name in re.findall(r"NEEDED.*\[(.*?)\]", said("readelf", "-d", library))}
    there = {library.name for library in libraries} | {library.name for library in ours.iterdir()}
    missing = sorted(name for name in needed - there if not SYSTEM.match(name))
    if not missing:
        return
    asked = set()
    for library in libraries:
        names = (line.split()[-1].partition("@")[0] for line in said("nm", "-D", "--undefined-only", library).splitlines())
        asked |= {name for name in names if re.match(r"(cu|nv|nccl|__cuda)", name)}
    defined = set()
    for library in libraries + [path for path in ours.iterdir() if ".so" in path.name]:
        defined |= {line.split()[-1].partition("@")[0] for line in said("nm", "-D", "--defined-only", library).splitlines()}
    source = ours / "stub.c"
    functions = "\n".join("void %s(void) { abort(); }" % name for name in sorted(asked - defined))
    source.write_text("#include <stdlib.h>\n" + functions + "\n")
    for number, name in enumerate(missing):
        # All functions are in the first one; the others only have to be there.
        what = [source] if number == 0 else ["-x", "c", "/dev/null"]
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-w", "-Wl,-soname," + name, "-o", ours / name, *what], check=True)
    print("-- stubs for", *missing)


def check(folder, slow):
    venv.create(folder, with_pip=True, clear=True)
    python = folder / "bin" / "python"
    torch = next(line.split()[0] for line in PINS.read_text().splitlines() if line.startswith("torch=="))
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*pip, "--no-deps", torch)
    run(*pip, *NEEDED, *LAYERS, *EXAMPLES)
    stub_cuda(Path(said(python, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))").strip()))
    # The same libtorch as for everything else, so that torch-sys isn't compiled again.
    settings = dict(os.environ, LIBTORCH=os.environ.get("LIBTORCH", str(LIBTORCH)), PYO3_PYTHON=str(python))
    run("cargo", "clippy", "--profile", "ci", "-p", "gfn-python", "--", "-D", "warnings", cwd=ROOT, env=settings)
    run(*pip, "--no-deps", "-C", "build-args=--profile ci", ROOT / "python", env=settings)
    run(python, "-m", "mypy", "--config-file", ROOT / "python" / "pyproject.toml", "-p", "gfn_rs", cwd=folder)
    chosen = [] if slow else ["-m", "not slow"]
    run(python, "-m", "pytest", "-q", "-n", "auto", "--durations", "15", *chosen, ROOT / "python" / "tests", cwd=folder)


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
