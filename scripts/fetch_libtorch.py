#!/usr/bin/env python3
"""Puts a libtorch that fits into `.libtorch/` of this checkout: `make setup` calls it. Python 3.6 or newer, with pip.

An exported LIBTORCH or LIBTORCH_USE_PYTORCH, or a /usr/lib/libtorch.so, is linked to. Otherwise three wheels are
downloaded with pip (hashes in scripts/libtorch.txt) and the libraries and headers in them are unpacked. Everything
happens in `.libtorch.part/` and is renamed when it is complete, so that an interrupted run does no harm: whole wheels
are used again, the rest starts clean.
"""

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".libtorch"
PART = ROOT / ".libtorch.part"
PINS = ROOT / "scripts" / "libtorch.txt"
WANTED = "2.13."
EXACT = "2.13.0"
OWN = "export LIBTORCH=/absolute/path/to/libtorch (the folder that holds lib/ and include/) or, with PyTorch " + (
    EXACT + " in the active Python, export LIBTORCH_USE_PYTORCH=1"
)


class Problem(Exception):
    """What went wrong, and what to do about it."""

    def __init__(self, what, remedy):
        super().__init__(what)
        self.remedy = remedy


def say(text):
    print("setup: " + text, flush=True)


def megabytes(n):
    return "{:,.0f} MB".format(n / 1e6)


# --- what is there already ---------------------------------------------------------------------------------------


def library(folder):
    """The main library of a folder of libraries, or None."""
    for name in ("libtorch_cpu.so", "libtorch_cpu.dylib"):
        if (folder / name).is_file():
            return folder / name
    return None


def version_of(folder):
    """The version of the libtorch in `folder` (which holds lib/ and include/), from whichever file states it, or None."""
    if (folder / "build-version").is_file():
        return (folder / "build-version").read_text().strip()
    if (folder / "version.py").is_file():
        found = re.search(r"__version__\s*=\s*['\"]([^'\"]+)", (folder / "version.py").read_text())
        if found:
            return found.group(1)
    for header in ("torch/headeronly/version.h", "torch/csrc/api/include/torch/version.h"):
        path = folder / "include" / header
        if path.is_file():
            parts = [re.search(r"#define TORCH_VERSION_" + p + r"\s+(\d+)", path.read_text()) for p in ("MAJOR", "MINOR", "PATCH")]
            if all(parts):
                return ".".join(p.group(1) for p in parts)
    return None


def examine(name, lib, include, folder):
    """The version of somebody's own libtorch; a `Problem` where cargo could not build with it."""
    undo = "correct {0}, or run `unset {0}` and `make setup` again to have one fetched".format(name)
    if library(lib) is None:
        raise Problem("{}: there is no libtorch_cpu library in {}".format(name, lib), undo)
    if not (include / "torch").is_dir():
        raise Problem("{}: there are no libtorch headers in {}".format(name, include), undo)
    version = version_of(folder)
    if version is None:
        raise Problem("{}: no file in {} states the version (build-version, version.py, version.h)".format(name, folder), undo)
    if not version.startswith(WANTED):
        raise Problem("{}: {} is libtorch {}, and tch 0.26 needs {}x".format(name, folder, version, WANTED), undo)
    if version.split("+")[0] != EXACT:
        say("note: {} is {}; where torch-sys insists on {}, export LIBTORCH_BYPASS_VERSION_CHECK=1".format(name, version, EXACT))
    return version


def exported():
    """The libtorch that the environment names, as (name, lib, include, version), or None. It wins over `.libtorch`."""
    if "LIBTORCH_USE_PYTORCH" in os.environ:
        python = "python" if "VIRTUAL_ENV" in os.environ else "python3"  # as torch-sys chooses
        code = "import torch, os; print(os.path.dirname(torch.__file__))"
        try:
            done = subprocess.run([python, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        except OSError as error:
            raise Problem("LIBTORCH_USE_PYTORCH: {} can't be run: {}".format(python, error), "put it on PATH or unset the variable")
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise Problem(
                "LIBTORCH_USE_PYTORCH is exported, but `{} -c 'import torch'` fails: {}".format(python, last),
                "{} -m pip install torch=={}, or `unset LIBTORCH_USE_PYTORCH` and `make setup` again".format(python, EXACT),
            )
        folder = Path(done.stdout.strip().splitlines()[-1])
        version = examine("LIBTORCH_USE_PYTORCH", folder / "lib", folder / "include", folder)
        return "LIBTORCH_USE_PYTORCH", folder / "lib", folder / "include", version
    if "LIBTORCH" not in os.environ:
        return None
    folder = Path(os.environ["LIBTORCH"])
    if not folder.is_absolute():
        raise Problem(
            "LIBTORCH is '{}': torch-sys reads it from a folder of its own".format(os.environ["LIBTORCH"]),
            "export an absolute path, or run `unset LIBTORCH` and `make setup` again to have one fetched",
        )
    if folder.resolve() == (HOME / "torch").resolve():
        return None  # our own: the checks of `installed` are the stricter ones
    lib = Path(os.environ.get("LIBTORCH_LIB", str(folder))) / "lib"
    include = Path(os.environ.get("LIBTORCH_INCLUDE", str(folder))) / "include"
    return "LIBTORCH", lib, include, examine("LIBTORCH", lib, include, folder)


def of_the_system():
    """The libtorch of the system's packages, in the form of `exported`, or None."""
    usr = Path("/usr")
    if not (usr / "lib" / "libtorch.so").exists():
        return None
    try:
        return "/usr/lib/libtorch.so", usr / "lib", usr / "include", examine("/usr/lib/libtorch.so", usr / "lib", usr / "include", usr)
    except Problem as problem:  # cargo's LIBTORCH wins over it, so it does no harm
        say("note: {}; it is not used".format(problem))
        return None


def installed(pins):
    """What `.libtorch` is, if it is complete: its stamp, or None."""
    try:
        stamp = json.loads((HOME / "stamp.json").read_text())
        if stamp["kind"] == "link":
            return stamp if library(Path(stamp["lib"])) and library(HOME / "torch" / "lib") else None
        whole = all((HOME / name).stat().st_size == size for name, size in stamp["libraries"].items())
        return stamp if whole and stamp["sha256"] == {pin["name"]: pin["sha256"] for pin in pins} else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


# --- putting one there -------------------------------------------------------------------------------------------


def read_pins():
    pattern = re.compile(r"(?P<name>[\w-]+)==(?P<version>\S+) --hash=sha256:(?P<sha256>[0-9a-f]{64}) # (?P<tag>\S+) (?P<packed>\d+) (?P<unpacked>\d+)")
    pins = [match.groupdict() for match in map(pattern.fullmatch, PINS.read_text().splitlines()) if match]
    if len(pins) != 3:
        raise Problem("{} has {} of 3 pins".format(PINS, len(pins)), "git checkout scripts/libtorch.txt")
    return pins


def remove(path):
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(str(path))


def put_in_place(new, stamp):
    """Makes `new` the checkout's `.libtorch`. The stamp goes in first: a folder without one is never taken for whole."""
    (new / "stamp.json").write_text(json.dumps(stamp, indent=1) + "\n")
    os.sync()
    old = PART / "old"
    remove(old)
    if HOME.exists() or HOME.is_symlink():
        HOME.rename(old)
    new.rename(HOME)
    remove(PART)


def link(name, lib, include, version):
    new = PART / "new"
    remove(new)
    (new / "torch").mkdir(parents=True)
    (new / "torch" / "lib").symlink_to(lib)
    (new / "torch" / "include").symlink_to(include)
    put_in_place(new, {"kind": "link", "from": name, "lib": str(lib), "include": str(include), "version": version})
    say("libtorch {} of {}: linked from {}".format(version, name, HOME / "torch"))


def check_platform():
    machine = (sys.platform, platform.machine())
    if machine != ("linux", "x86_64"):
        raise Problem("no libtorch is fetched on {} {}: only for Linux on x86-64".format(*machine), "install PyTorch {}, then {}".format(EXACT, OWN))
    libc, version = platform.libc_ver()
    if libc != "glibc" or tuple(int(part) for part in version.split(".")[:2]) < (2, 28):
        raise Problem("the wheels of PyTorch need glibc 2.28 or newer, this is {} {}".format(libc or "another C library", version), OWN)
    if sys.maxsize < 2**32:
        raise Problem("this Python is a 32-bit one", "use a 64-bit Python 3")
    done = subprocess.run([sys.executable, "-m", "pip", "--version"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise Problem(
            "{} has no pip, which downloads libtorch".format(sys.executable),
            "`{} -m ensurepip --user`, or your system's package (Debian, Ubuntu: apt install python3-pip), or {}".format(sys.executable, OWN),
        )


def digest(path):
    sha = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            sha.update(block)
    return sha.hexdigest()


def whole_wheels(pins):
    """The wheels in the part folder whose hash is right, by name; all else in that folder is removed."""
    by_hash = {pin["sha256"]: pin["name"] for pin in pins}
    found = {}
    for path in sorted(PART.glob("*")):
        if path.name != "wheels":
            remove(path)
    for path in sorted((PART / "wheels").glob("*")):
        name = by_hash.get(digest(path)) if path.is_file() else None
        if name:
            found[name] = path
        else:
            remove(path)
    return found


def download(pin, lock):
    """One wheel through pip, which checks the hash. `lock` is inherited: if only we are killed, the next run waits for pip."""
    requirement = PART / "requirement.txt"
    requirement.write_text("{name}=={version} --hash=sha256:{sha256}\n".format(**pin))
    scratch = PART / "scratch"
    remove(scratch)
    scratch.mkdir()
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes", "--only-binary=:all:", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--python-version", "3.11", "--implementation", "cp", "--platform", pin["tag"]]
    command += ["--dest", str(PART / "wheels"), "--requirement", str(requirement)]
    # pip writes a download to its temporary folder first: the default one is often too small for half a gigabyte.
    done = subprocess.run(command, env=dict(os.environ, TMPDIR=str(scratch)), pass_fds=[lock.fileno()])
    if done.returncode != 0:
        raise Problem(
            "pip could not download {name}=={version} (its message stands above)".format(**pin),
            "check the network, the proxy and the index that pip uses, and run `make setup` again (whole wheels are kept); "
            "if pip is old, `{} -m pip install --upgrade pip`; or {}".format(sys.executable, OWN),
        )


def wanted(name):
    if ".." in name.split("/") or name.endswith("/"):
        return False
    return name.startswith(("torch/lib/", "torch/include/")) or name == "torch/version.py" or (name.startswith("nvidia/") and "/lib/" in name)


def unpack(wheels, new):
    """The libraries and headers of the wheels; returns the size of each library, for later checks."""
    libraries = {}
    for path in wheels:
        say("unpacking " + path.name)
        with zipfile.ZipFile(str(path)) as archive:
            for item in filter(lambda item: wanted(item.filename), archive.infolist()):
                archive.extract(item, str(new))
                if "/lib/" in item.filename:
                    libraries[item.filename] = item.file_size
    return libraries


def fetch(pins, lock):
    check_platform()
    PART.mkdir(exist_ok=True)
    found = whole_wheels(pins)
    missing = [pin for pin in pins if pin["name"] not in found]
    packed = sum(int(pin["packed"]) for pin in missing)
    unpacked = sum(int(pin["unpacked"]) for pin in pins)
    say("no libtorch here yet. What is taken, with pip, without its dependencies (it runs on the CPU without them):")
    for pin in pins:
        say("  {:20} {:8} {:>7}{}".format(pin["name"], pin["version"], megabytes(int(pin["packed"])), "  (here already)" if pin["name"] in found else ""))
    say("to download: {}; unpacked into {}: {}. Nothing else is written.".format(megabytes(packed), HOME, megabytes(unpacked)))
    # pip's temporary copy and its final one exist side by side for a moment, but before anything is unpacked.
    need, free = int(1.1 * (packed + max(packed, unpacked))), shutil.disk_usage(str(ROOT)).free
    if free < need:
        raise Problem("{} are needed on the disk of {}, {} are free".format(megabytes(need), ROOT, megabytes(free)), "make room, or " + OWN)
    (PART / "wheels").mkdir(exist_ok=True)
    for pin in missing:
        download(pin, lock)
    found = whole_wheels(pins)
    for pin in pins:
        if pin["name"] not in found:
            raise Problem("{name}=={version} came with another hash than scripts/libtorch.txt has".format(**pin), "do not use it; try another index, or " + OWN)
    new = PART / "new"
    new.mkdir()
    libraries = unpack([found[pin["name"]] for pin in pins], new)
    version = version_of(new / "torch")
    put_in_place(new, {"kind": "fetched", "version": version, "sha256": {pin["name"]: pin["sha256"] for pin in pins}, "libraries": libraries})
    say("libtorch {} is in {}".format(version, HOME / "torch"))


def setup(lock):
    compiler = os.environ.get("CXX", "c++").split()[0]
    if shutil.which(compiler) is None:
        raise Problem("there is no C++ compiler ({}), which tch needs".format(compiler), "install one (Debian, Ubuntu: apt install g++) or export CXX")
    pins = read_pins()
    mine = exported()
    stamp = installed(pins)
    if mine is None:
        if stamp:
            remove(PART)
            say("libtorch {} ({}) is in place in {}".format(stamp["version"], stamp["kind"], HOME / "torch"))
            return
        mine = of_the_system()
    if mine is None:
        fetch(pins, lock)
    elif stamp and stamp["kind"] == "fetched":
        say("{} is exported and cargo uses it (libtorch {}); unset it to use the one in {}".format(mine[0], mine[3], HOME / "torch"))
    elif stamp and (stamp["lib"], stamp["include"], stamp["version"]) == (str(mine[1]), str(mine[2]), mine[3]):
        say("libtorch {} of {} is linked from {}".format(mine[3], mine[0], HOME / "torch"))
    else:
        link(*mine)


def main():
    if len(sys.argv) > 1:
        print(__doc__.strip())
        return 0 if sys.argv[1] in ("-h", "--help") else 2
    try:
        with (ROOT / ".libtorch.lock").open("w") as lock:
            try:
                import fcntl
            except ImportError:
                raise Problem("this platform is not supported by `make setup`", OWN)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                say("waiting for another run to end")
                fcntl.flock(lock, fcntl.LOCK_EX)
            setup(lock)
        return 0
    except Problem as problem:
        print("setup: error: {}\nsetup: what to do: {}".format(problem, problem.remedy), file=sys.stderr)
    except KeyboardInterrupt:
        print("\nsetup: interrupted; `make setup` goes on with what is whole", file=sys.stderr)
    except (OSError, zipfile.BadZipFile) as error:
        print("setup: error: {}\nsetup: what to do: check rights and room in {}, and run `make setup` again".format(error, ROOT), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
