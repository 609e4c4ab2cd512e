#!/usr/bin/env python3
"""Builds and tests wheels of the Python package. There is a wheel for each version of torch and each Python
interpreter.

  build_wheels.py [--torch 2.13]... [--python python3.12]... [--out FOLDER] [--stubs]

For each wheel the script makes a virtual environment, installs torch, and builds and installs the wheel. Then
it trains ring-4 for ten steps and computes its exact distribution. A wheel that passes is written to `--out`.
Its version names the version of torch that it requires (0.1.0+torch213). The script ends with a table, and
with an error if a wheel failed. It needs Rust, a C++ compiler and Python's headers.

torch depends on the libraries of CUDA, which have several gigabytes, unless PIP_INDEX_URL names an index
without them. With `--stubs` torch is installed without these libraries, and stubs replace them (see
scripts/check_python.py). Run `make setup` before you use `--stubs`.
"""

import argparse
import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import check_python

ROOT = check_python.ROOT
PYTHONS = ["python3.%d" % minor for minor in range(10, 15)]
# The platform for which torch's own wheels are made, and the newest symbol versions that this platform
# provides. A wheel that needs newer symbols can't name this platform.
PLATFORM = "manylinux_2_28"
SYMBOLS = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24)}
SMOKE = """
import gfn_rs as gfn
network = gfn.GraphNet(embedding=16)
trainer = gfn.Trainer(gfn.Ring(4), gfn.RingReward(), network, batch=16, adam=gfn.Adam(schedule=None)).fit(10)
assert 0.0 <= trainer.exact().tv <= 1.0
"""


class StepFailed(Exception):
    """The message of a step that failed, in one line."""


def run(what, *command, **settings):
    """Runs a command and returns its output. If the command fails, prints the last lines of its output and
    raises `StepFailed`."""
    done = subprocess.run(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
        **settings
    )
    if done.returncode != 0:
        print("\n".join(done.stdout.splitlines()[-40:]), file=sys.stderr)
        raise StepFailed("%s failed (exit code %d)" % (what, done.returncode))
    return done.stdout


def minors():
    """Returns the minor versions of torch that are supported, as the build backend lists them."""
    found = re.search(
        r"^MINORS = \((.*)\)$", (ROOT / "python" / "build_backend.py").read_text(), re.MULTILINE
    )
    return re.findall(r"\d+\.\d+", found.group(1))


def interpreters(names):
    """Returns a dictionary from the names of interpreters to their paths. An interpreter that can't be run is
    left out: some commands of pyenv only print that a version is missing."""
    found = {}
    for name in names or PYTHONS:
        try:
            done = subprocess.run(
                [name, "-c", "import sys; print(sys.executable)"],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                universal_newlines=True,
            )
        except OSError:
            continue
        if done.returncode == 0:
            found[name] = done.stdout.strip()
    return found


def newest_symbols(wheel):
    """Returns the newest symbol version that the wheel's extension module needs from each system library."""
    with zipfile.ZipFile(str(wheel)) as archive, tempfile.TemporaryDirectory() as folder:
        name = next(name for name in archive.namelist() if re.fullmatch(r"gfn_rs/_gfn[^/]*\.so", name))
        listed = run("objdump", "objdump", "-T", archive.extract(name, folder))
    found = {
        kind: [tuple(map(int, version.split("."))) for version in re.findall(r"\b%s_([\d.]+)" % kind, listed)]
        for kind in SYMBOLS
    }
    return {kind: max(versions) for kind, versions in found.items() if versions}


def rename_wheel(wheel, minor, out):
    """Writes the wheel again, with a version that names the required torch, and with the platform on which
    the wheel runs."""
    needs = newest_symbols(wheel)
    name, version, python, abi, platform = wheel.stem.split("-")
    if all(newest <= SYMBOLS[kind] for kind, newest in needs.items()):
        platform = platform.replace("linux_", PLATFORM + "_", 1)
    local = "%s+torch%s" % (version, minor.replace(".", ""))
    new = wheel.with_name("-".join([name, local, python, abi, platform + ".whl"]))
    before, after = "%s-%s.dist-info/" % (name, version), "%s-%s.dist-info/" % (name, local)
    edits = {
        "METADATA": [
            (r"^Version: .*$", "Version: " + local),
            (r"^Requires-Dist: torch(?![\w-]).*$", "Requires-Dist: torch==%s.*" % minor),
        ],
        "WHEEL": [(r"^Tag: .*$", "Tag: " + "-".join([python, abi, platform]))],
    }
    record = []
    with zipfile.ZipFile(str(wheel)) as old, zipfile.ZipFile(str(new), "w", zipfile.ZIP_DEFLATED) as archive:
        for item in old.infolist():
            target, content = item.filename.replace(before, after), old.read(item)
            if target == after + "RECORD":
                continue
            for pattern, text in edits.get(target[len(after) :], []) if target.startswith(after) else []:
                edited, count = re.subn(pattern, text, content.decode(), flags=re.MULTILINE)
                if count != 1:
                    raise StepFailed(
                        "%s has %d lines that match %s, expected 1"
                    % (item.filename, count, pattern))
                content = edited.encode()
            archive.writestr(target, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append("%s,sha256=%s,%d" % (target, digest, len(content)))
        archive.writestr(after + "RECORD", "\n".join(record + [after + "RECORD,,", ""]))
    return Path(shutil.move(str(new), str(out / new.name))), needs


def build(minor, interpreter, folder, out, stubs):
    """Builds and tests a wheel. Returns its path, and the symbol versions that it needs from system
    libraries."""
    run("making an environment", interpreter, "-m", "venv", folder)
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    if stubs:
        run("installing torch %s" % minor, *pip, "install", "--no-deps", "torch==%s.*" % minor)
        run("installing what torch needs", *pip, "install", *check_python.NEEDED)
        check_python.stub_cuda(
            Path(
                run(
                    "looking for torch",
                    python,
                    "-c",
                    "import sysconfig; print(sysconfig.get_path('platlib'))",
                ).strip()
            )
        )
    else:
        run("installing torch %s" % minor, *pip, "install", "torch==%s.*" % minor, "numpy")
    torch = {"LIBTORCH", "LIBTORCH_USE_PYTORCH", "PYO3_PYTHON"}
    settings = {name: value for name, value in os.environ.items() if name not in torch}
    settings.update(PYO3_PYTHON=str(python))
    began = time.monotonic()
    run(
        "building",
        *pip,
        "wheel",
        "--no-deps",
        "-C",
        "build-args=--compatibility linux",
        "-w",
        folder,
        ROOT / "python",
        env=settings
    )
    (wheel,) = folder.glob("*.whl")
    wheel, needs = rename_wheel(wheel, minor, out)
    built = time.monotonic()
    try:
        run("installing the wheel", *pip, "install", "--no-deps", wheel)
        run("training with it", python, "-c", SMOKE, cwd=str(folder))
    except StepFailed:
        wheel.unlink()
        raise
    print(
        "build_wheels: built in %.0f s, installed and trained in %.0f s, %.1f MB"
        % (built - began, time.monotonic() - built, wheel.stat().st_size / 1e6),
        flush=True
    )
    return wheel, needs


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--torch",
        action="append",
        metavar="MINOR",
        help="a minor version of torch, one of %s; all by default" % ", ".join(minors()),
    )
    parser.add_argument(
        "--python",
        action="append",
        metavar="COMMAND",
        help="an interpreter; by default those of %s to %s that are installed" % (PYTHONS[0], PYTHONS[-1]),
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=ROOT / "out" / "wheels",
        help="the folder for the wheels; out/wheels by default",
    )
    parser.add_argument(
        "--stubs", action="store_true", help="install torch without the libraries of CUDA, with stubs instead"
    )
    options = parser.parse_args()
    for minor in options.torch or []:
        if minor not in minors():
            parser.error(
                "--torch is %s, expected one of %s; docs/setup.md has the table of versions"
                % (minor, ", ".join(minors()))
            )
    found = interpreters(options.python)
    missing = [name for name in options.python or [] if name not in found]
    if missing or not found:
        parser.error(
            "no Python interpreter with the name %s was found; install it, or give another name by --python"
            % (", ".join(missing) or " or ".join(PYTHONS))
        )
    tools = [
        tool
        for tool in ("cargo", "objdump", os.environ.get("CXX", "c++").split()[0])
        if shutil.which(tool) is None
    ]
    if tools:
        parser.error(
            "these programs weren't found: %s; install Rust from rustup.rs, the others are in the packages "
            "gcc and binutils" % ", ".join(tools)
        )
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    rows, failed = [], False
    for minor in options.torch or minors():
        for name, interpreter in found.items():
            print("build_wheels: torch %s, %s" % (minor, name), flush=True)
            with tempfile.TemporaryDirectory() as folder:
                try:
                    wheel, needs = build(minor, interpreter, Path(folder), out, options.stubs)
                    rows.append(
                        (
                            minor,
                            name,
                            wheel.name,
                            ", ".join(
                                "%s %s" % (kind, ".".join(map(str, newest))) for kind, newest in needs.items()
                            ),
                        )
                    )
                except StepFailed as why:
                    failed = True
                    rows.append((minor, name, str(why), ""))
    print("\n%-6s %-11s %-60s %s" % ("torch", "Python", "wheel in %s" % out, "needs"))
    for row in rows:
        print("%-6s %-11s %-60s %s" % row)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
