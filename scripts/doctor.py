#!/usr/bin/env python3
"""Checks in a second whether this machine can build gfn: `make doctor`. It needs Python 3.6 or newer.

The script looks for Rust, a C++ compiler, libtorch and CUDA. It also checks the version of libtorch, and
whether libtorch can be loaded. If something is wrong, it prints what to do and ends with exit code 1. It
doesn't test a GPU, which needs a build: `cargo run --release --example reproduce -- devices`.
"""

import ctypes
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from fetch_libtorch import HOME, WANTED, library, version_of

SETUP = "run `make setup`"


def output(*command):
    """Returns the first line that a command prints. Returns None if the command fails or can't be run."""
    if shutil.which(command[0]) is None:
        return None
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    lines = done.stdout.strip().splitlines()
    return lines[0] if done.returncode == 0 and lines else None


def rust():
    required = re.search(
        r'rust-version = "(\d+)\.(\d+)"', (Path(__file__).resolve().parent.parent / "Cargo.toml").read_text()
    )
    found = output("rustc", "--version")
    if found is None:
        return False, "rustc wasn't found; install Rust from https://rustup.rs"
    version = re.search(r"(\d+)\.(\d+)", found)
    new_enough = version and tuple(map(int, version.groups())) >= tuple(map(int, required.groups()))
    return bool(new_enough), (
        found
        if new_enough
        else "{} was found, expected {}.{} or newer; run `rustup update`".format(found, *required.groups())
    )


def compiler():
    if os.environ.get("CXX"):
        found = output(*shlex.split(os.environ["CXX"]), "--version")
        return found is not None, found or "CXX is {!r}, which can't be run; correct or unset it".format(
            os.environ["CXX"]
        )
    found = next(filter(None, (output(name, "--version") for name in ("c++", "g++", "clang++"))), None)
    return found is not None, found or (
        "no C++ compiler was found, which torch-sys needs; install g++ or clang++"
    )


def folder():
    """Returns the folder of the libtorch that a build would use."""
    if os.environ.get("LIBTORCH_USE_PYTORCH"):
        return Path(
            output("python3", "-c", "import os, torch; print(os.path.dirname(torch.__file__))")
            or "the PyTorch of python3"
        )
    return Path(os.environ["LIBTORCH"]) if "LIBTORCH" in os.environ else HOME / "torch"


def libtorch():
    path = library(folder() / "lib")
    if path is None:
        return False, "libtorch wasn't found in {}; {}".format(folder(), SETUP)
    version = version_of(folder()) or "of an unknown version"
    if not version.startswith(WANTED):
        return False, "the libtorch in {} has version {}, expected {}x; unset LIBTORCH and {}".format(
            folder(), version, WANTED, SETUP
        )
    try:
        ctypes.CDLL(str(path))
    except OSError as error:
        return False, "{} can't be loaded: {}; remove .libtorch and {}".format(path, error, SETUP)
    return True, "{} in {}".format(version, folder())


def cuda():
    """Describes GPU and CUDA. A missing GPU is never a failure, because CUDA is optional."""
    gpu = output("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    built = (folder() / "lib" / "libtorch_cuda.so").is_file()
    if gpu is None:
        return True, "nvidia-smi finds no GPU; the CPU is used"
    if not built:
        return (
            True,
            "{}, but this libtorch has no CUDA; to use the GPU, export LIBTORCH with the folder of a "
            "libtorch with CUDA, and {}".format(
                gpu, SETUP
            ),
        )
    return (
        True,
        "{}, and libtorch has CUDA; `cargo run --release --example reproduce -- devices` tries it".format(
            gpu
        ),
    )


def main():
    well = True
    for name, check in [("rust", rust), ("c++", compiler), ("libtorch", libtorch), ("cuda", cuda)]:
        ok, text = check()
        well &= ok
        print("{}  {:<9} {}".format("ok " if ok else "BAD", name, text))
    print("ok   {:<9} {}".format("cores", os.cpu_count()))
    print("All is well: `make demo`." if well else "Some checks failed: see the lines marked BAD.")
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
