#!/usr/bin/env python3
"""Puts a suitable libtorch into the folder `.libtorch/` of this checkout, for `make setup`. It needs Python
3.6 or newer, with pip.

If LIBTORCH or LIBTORCH_USE_PYTORCH is exported, or /usr/lib/libtorch.so exists, the folder links to that
libtorch. Otherwise pip downloads three wheels, whose hashes are in scripts/libtorch.txt, and their libraries
and headers are unpacked.

All work happens in `.libtorch.part/`, which is renamed when it is complete. An interrupted run therefore does
no harm. The next run reuses wheels that were downloaded completely, and removes everything else.
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
OWN_LIBTORCH = (
    "export LIBTORCH=/absolute/path/to/libtorch (the folder that holds lib/ and include/) or, with PyTorch "
    + (EXACT + " in the active Python, export LIBTORCH_USE_PYTORCH=1")
)


class Problem(Exception):
    """An error message for the user, with a remedy."""

    def __init__(self, what, remedy):
        super().__init__(what)
        self.remedy = remedy


def say(text):
    print("setup: " + text, flush=True)


def megabytes(n):
    return "{:,.0f} MB".format(n / 1e6)


# --- Existing libtorch.


def library(folder):
    """Returns the path of libtorch's main library in a folder of libraries. Returns None if it isn't
    there."""
    for name in ("libtorch_cpu.so", "libtorch_cpu.dylib"):
        if (folder / name).is_file():
            return folder / name
    return None


def version_of(folder):
    """Returns the version of the libtorch in `folder`, which holds lib/ and include/. Returns None if no file
    states the version."""
    if (folder / "build-version").is_file():
        return (folder / "build-version").read_text().strip()
    if (folder / "version.py").is_file():
        found = re.search(r"__version__\s*=\s*['\"]([^'\"]+)", (folder / "version.py").read_text())
        if found:
            return found.group(1)
    for header in ("torch/headeronly/version.h", "torch/csrc/api/include/torch/version.h"):
        path = folder / "include" / header
        if path.is_file():
            parts = [
                re.search(r"#define TORCH_VERSION_" + p + r"\s+(\d+)", path.read_text())
                for p in ("MAJOR", "MINOR", "PATCH")
            ]
            if all(parts):
                return ".".join(p.group(1) for p in parts)
    return None


def check_libtorch(name, lib, include, folder):
    """Returns the version of an existing libtorch. Raises `Problem` if cargo can't build with it."""
    undo = "correct {0}, or run `unset {0}` and then `make setup`, which downloads a libtorch".format(name)
    if library(lib) is None:
        raise Problem("{}: there is no libtorch_cpu library in {}".format(name, lib), undo)
    if not (include / "torch").is_dir():
        raise Problem("{}: there are no libtorch headers in {}".format(name, include), undo)
    version = version_of(folder)
    if version is None:
        raise Problem(
            "{}: no file in {} states the version (build-version, version.py, version.h)".format(
                name, folder
            ),
            undo,
        )
    if not version.startswith(WANTED):
        raise Problem(
            "{}: {} has libtorch {}, but tch 0.26 needs {}x".format(name, folder, version, WANTED), undo
        )
    if version.split("+")[0] != EXACT:
        say(
            "note: {} has version {}; if torch-sys needs {}, export LIBTORCH_BYPASS_VERSION_CHECK=1".format(
                name, version, EXACT
            )
        )
    return version


def libtorch_from_environment():
    """Returns the libtorch that LIBTORCH_USE_PYTORCH or LIBTORCH names, as (name, lib, include, version).
    Returns None if neither variable is set. This libtorch takes precedence over `.libtorch`."""
    if "LIBTORCH_USE_PYTORCH" in os.environ:
        python = "python" if "VIRTUAL_ENV" in os.environ else "python3"  # torch-sys chooses the same one.
        code = "import torch, os; print(os.path.dirname(torch.__file__))"
        try:
            done = subprocess.run(
                [python, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True
            )
        except OSError as error:
            raise Problem(
                "LIBTORCH_USE_PYTORCH: {} can't be run: {}".format(python, error),
                "put this Python on PATH, or run `unset LIBTORCH_USE_PYTORCH`",
            )
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise Problem(
                "LIBTORCH_USE_PYTORCH is exported, but `{} -c 'import torch'` fails: {}".format(python, last),
                "run `{} -m pip install torch=={}`, or run `unset LIBTORCH_USE_PYTORCH` and `make setup` "
                "again".format(
                    python, EXACT
                ),
            )
        folder = Path(done.stdout.strip().splitlines()[-1])
        version = check_libtorch("LIBTORCH_USE_PYTORCH", folder / "lib", folder / "include", folder)
        return "LIBTORCH_USE_PYTORCH", folder / "lib", folder / "include", version
    if "LIBTORCH" not in os.environ:
        return None
    folder = Path(os.environ["LIBTORCH"])
    if not folder.is_absolute():
        raise Problem(
            "LIBTORCH is '{}', a relative path, which torch-sys would resolve from another folder".format(
                os.environ["LIBTORCH"]
            ),
            "export an absolute path, or run `unset LIBTORCH` and then `make setup`, which downloads a "
            "libtorch",
        )
    if folder.resolve() == (HOME / "torch").resolve():
        return None  # `installed_stamp` checks our own copy more strictly.
    lib = Path(os.environ.get("LIBTORCH_LIB", str(folder))) / "lib"
    include = Path(os.environ.get("LIBTORCH_INCLUDE", str(folder))) / "include"
    return "LIBTORCH", lib, include, check_libtorch("LIBTORCH", lib, include, folder)


def system_libtorch():
    """Returns the libtorch of the system's package manager, as (name, lib, include, version). Returns None if
    it isn't installed or can't be used."""
    usr = Path("/usr")
    if not (usr / "lib" / "libtorch.so").exists():
        return None
    try:
        return (
            "/usr/lib/libtorch.so",
            usr / "lib",
            usr / "include",
            check_libtorch("/usr/lib/libtorch.so", usr / "lib", usr / "include", usr),
        )
    except Problem as problem:  # Cargo uses LIBTORCH, so this libtorch does no harm.
        say("note: {}; it is not used".format(problem))
        return None


def installed_stamp(pins):
    """Returns the stamp of `.libtorch`, which records its origin. Returns None if `.libtorch` is missing or
    incomplete."""
    try:
        stamp = json.loads((HOME / "stamp.json").read_text())
        if stamp["kind"] == "link":
            return stamp if library(Path(stamp["lib"])) and library(HOME / "torch" / "lib") else None
        complete = all((HOME / name).stat().st_size == size for name, size in stamp["libraries"].items())
        return stamp if complete and stamp["sha256"] == {pin["name"]: pin["sha256"] for pin in pins} else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


# --- Installation.


def read_pins():
    pattern = re.compile(
        r"(?P<name>[\w-]+)==(?P<version>\S+) --hash=sha256:(?P<sha256>[0-9a-f]{64}) # (?P<tag>\S+) "
        r"(?P<packed>\d+) (?P<unpacked>\d+)"
    )
    pins = [match.groupdict() for match in map(pattern.fullmatch, PINS.read_text().splitlines()) if match]
    if len(pins) != 3:
        raise Problem(
            "{} has {} lines with a pinned version, expected 3".format(PINS, len(pins)),
            "restore the file by `git checkout scripts/libtorch.txt`",
        )
    return pins


def remove(path):
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(str(path))


def put_in_place(new, stamp):
    """Writes the stamp to the folder `new`, and renames the folder to `.libtorch`. The stamp is written
    first, because a folder without a stamp counts as incomplete."""
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
    put_in_place(
        new, {"kind": "link", "from": name, "lib": str(lib), "include": str(include), "version": version}
    )
    say("libtorch {} of {}: linked from {}".format(version, name, HOME / "torch"))


def check_platform():
    machine = (sys.platform, platform.machine())
    if machine != ("linux", "x86_64"):
        raise Problem(
            "the platform is {} {}, but libtorch can be downloaded only for Linux on x86-64".format(*machine),
            "install PyTorch {}, then {}".format(EXACT, OWN_LIBTORCH),
        )
    libc, version = platform.libc_ver()
    if libc != "glibc" or tuple(int(part) for part in version.split(".")[:2]) < (2, 28):
        raise Problem(
            "the C library is {} {}, but the wheels of PyTorch need glibc 2.28 or newer".format(
                libc or "another C library", version
            ),
            OWN_LIBTORCH,
        )
    if sys.maxsize < 2**32:
        raise Problem("this Python is a 32-bit program", "use a 64-bit Python 3")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--version"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    if done.returncode != 0:
        raise Problem(
            "{} has no pip, which downloads libtorch".format(sys.executable),
            (
                "run `{} -m ensurepip --user`, or install pip from your system's package (Debian, Ubuntu: "
                "apt install python3-pip), or {}"
            ).format(
                sys.executable, OWN_LIBTORCH
            ),
        )


def digest(path):
    sha = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            sha.update(block)
    return sha.hexdigest()


def complete_wheels(pins):
    """Returns the wheels that an earlier run has downloaded completely, as a dictionary from names to paths.
    Removes all other files of earlier runs."""
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
    """Downloads a wheel with pip, which checks its hash. pip inherits the file `lock`, which only one run can
    hold. If this script is killed but pip goes on, the next run therefore waits until pip has ended."""
    requirement = PART / "requirement.txt"
    requirement.write_text("{name}=={version} --hash=sha256:{sha256}\n".format(**pin))
    scratch = PART / "scratch"
    remove(scratch)
    scratch.mkdir()
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--require-hashes",
        "--only-binary=:all:",
        "--no-cache-dir",
    ]
    command += [
        "--disable-pip-version-check",
        "--python-version",
        "3.11",
        "--implementation",
        "cp",
        "--platform",
        pin["tag"],
    ]
    command += ["--dest", str(PART / "wheels"), "--requirement", str(requirement)]
    # The download needs a temporary folder with room for half a gigabyte, which the default one often doesn't
    # have.
    done = subprocess.run(command, env=dict(os.environ, TMPDIR=str(scratch)), pass_fds=[lock.fileno()])
    if done.returncode != 0:
        raise Problem(
            "pip could not download {name}=={version} (its message is above)".format(**pin),
            "check the network, the proxy and the index that pip uses, and run `make setup` again (complete "
            "wheels are kept); if pip is old, run `{} -m pip install --upgrade pip`; or {}".format(
                sys.executable, OWN_LIBTORCH
            ),
        )


def is_needed(name):
    if ".." in name.split("/") or name.endswith("/"):
        return False
    return (
        name.startswith(("torch/lib/", "torch/include/"))
        or name == "torch/version.py"
        or (name.startswith("nvidia/") and "/lib/" in name)
    )


def unpack(wheels, new):
    """Unpacks the libraries and headers of the wheels. Returns the size of each library, with which later
    runs check that it is complete."""
    libraries = {}
    for path in wheels:
        say("unpacking " + path.name)
        with zipfile.ZipFile(str(path)) as archive:
            for item in filter(lambda item: is_needed(item.filename), archive.infolist()):
                archive.extract(item, str(new))
                if "/lib/" in item.filename:
                    libraries[item.filename] = item.file_size
    return libraries


def fetch(pins, lock):
    check_platform()
    PART.mkdir(exist_ok=True)
    found = complete_wheels(pins)
    missing = [pin for pin in pins if pin["name"] not in found]
    packed = sum(int(pin["packed"]) for pin in missing)
    unpacked = sum(int(pin["unpacked"]) for pin in pins)
    say(
        "no libtorch here yet. What is taken, with pip, without its dependencies (it runs on the CPU without "
        "them):"
    )
    for pin in pins:
        say(
            "  {:20} {:8} {:>7}{}".format(
                pin["name"],
                pin["version"],
                megabytes(int(pin["packed"])),
                "  (here already)" if pin["name"] in found else "",
            )
        )
    say(
        "to download: {}; unpacked into {}: {}. Nothing else is written.".format(
            megabytes(packed), HOME, megabytes(unpacked)
        )
    )
    # The disk needs room for the wheels and, beside them, for pip's temporary copies or the unpacked files.
    # The copies are removed before anything is unpacked.
    need, free = int(1.1 * (packed + max(packed, unpacked))), shutil.disk_usage(str(ROOT)).free
    if free < need:
        raise Problem(
            "the installation needs {} on the disk of {}, but {} are free".format(
                megabytes(need), ROOT, megabytes(free)
            ),
            "free some space, or " + OWN_LIBTORCH,
        )
    (PART / "wheels").mkdir(exist_ok=True)
    for pin in missing:
        download(pin, lock)
    found = complete_wheels(pins)
    for pin in pins:
        if pin["name"] not in found:
            raise Problem(
                "the hash of {name}=={version} differs from that in scripts/libtorch.txt".format(**pin),
                "don't use this download; try another index of pip, or " + OWN_LIBTORCH,
            )
    new = PART / "new"
    new.mkdir()
    libraries = unpack([found[pin["name"]] for pin in pins], new)
    version = version_of(new / "torch")
    put_in_place(
        new,
        {
            "kind": "fetched",
            "version": version,
            "sha256": {pin["name"]: pin["sha256"] for pin in pins},
            "libraries": libraries,
        },
    )
    say("libtorch {} is in {}".format(version, HOME / "torch"))


def setup(lock):
    compiler = os.environ.get("CXX", "c++").split()[0]
    if shutil.which(compiler) is None:
        raise Problem(
            "the C++ compiler {} wasn't found, which tch needs".format(compiler),
            "install a compiler (Debian, Ubuntu: apt install g++), or export CXX with its name",
        )
    pins = read_pins()
    chosen = libtorch_from_environment()
    stamp = installed_stamp(pins)
    if chosen is None:
        if stamp:
            remove(PART)
            say("libtorch {} ({}) is in place in {}".format(stamp["version"], stamp["kind"], HOME / "torch"))
            return
        chosen = system_libtorch()
    if chosen is None:
        fetch(pins, lock)
    elif stamp and stamp["kind"] == "fetched":
        say(
            "{} is exported and cargo uses it (libtorch {}); unset it to use the one in {}".format(
                chosen[0], chosen[3], HOME / "torch"
            )
        )
    elif stamp and (stamp["lib"], stamp["include"], stamp["version"]) == (
        str(chosen[1]),
        str(chosen[2]),
        chosen[3],
    ):
        say("libtorch {} of {} is linked from {}".format(chosen[3], chosen[0], HOME / "torch"))
    else:
        link(*chosen)


def main():
    if len(sys.argv) > 1:
        print(__doc__.strip())
        return 0 if sys.argv[1] in ("-h", "--help") else 2
    try:
        with (ROOT / ".libtorch.lock").open("w") as lock:
            try:
                import fcntl
            except ImportError:
                raise Problem("this platform is not supported by `make setup`", OWN_LIBTORCH)
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
        print("\nsetup: interrupted; `make setup` continues with the complete downloads", file=sys.stderr)
    except (OSError, zipfile.BadZipFile) as error:
        print(
            (
                "setup: error: {}\nsetup: what to do: check the permissions and the free space of {}, and "
                "run `make setup` again"
            ).format(
                error, ROOT
            ),
            file=sys.stderr,
        )
    return 1


if __name__ == "__main__":
    sys.exit(main())
