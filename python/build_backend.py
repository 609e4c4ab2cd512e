"""maturin, told where the libtorch of this environment's torch is: `pip install ./python` needs nothing else.

pip builds in an environment of its own, where torch can't be imported, so it is looked up by its path.
"""

import os
import re
import shlex
import sysconfig
from pathlib import Path

import maturin
from maturin import (  # noqa: F401 - the hooks that pip asks for
    build_sdist,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_wheel,
)

# Those that torch-sys compiles against and that pass the tests: docs/setup.md. What is built is linked to one
# of them.
MINORS = ("2.13", "2.14")
HERE = Path(__file__).resolve().parent
# What torch-sys 0.26 lacks for torch 2.14 and newer.
NEWER = (
    HERE / "python" / "shim" / "torch_sys.h" if (HERE / "python").is_dir() else HERE / "shim" / "torch_sys.h"
)


def _version(torch):
    """The version of the torch in a folder, or an empty text."""
    for name, pattern in (
        ("version.py", r"(?m)^__version__ *= *['\"]([^'\"]+)"),
        ("build-version", r"(\S+)"),
    ):
        found = re.search(pattern, (torch / name).read_text()) if (torch / name).is_file() else None
        if found:
            return found.group(1)
    return ""


def _minor(version):
    """The minor version if it is one that fits and a release, or an empty text."""
    release = re.fullmatch(r"(\d+\.\d+)\.\d+(\.post\d+)?(\+.*)?", version)
    return release.group(1) if release and release.group(1) in MINORS else ""


def _libtorch():
    """The folder that holds lib/ and include/ of a libtorch that fits."""
    wanted = f"gfn-rs needs a release of torch {' or '.join(MINORS)}"
    if os.environ.get("LIBTORCH"):
        named = Path(os.environ["LIBTORCH"])
        version = _version(named)
        # One that doesn't say what it is is left to torch-sys.
        if version and not _minor(version):
            raise RuntimeError(
                f"{wanted}, but LIBTORCH names torch {version} in {named}: unset LIBTORCH, or set it to the "
                "folder of such a release"
            )
        return named
    installed = Path(sysconfig.get_path("platlib")) / "torch"
    version = _version(installed)
    if _minor(version):
        return installed
    fetched = HERE.parent / ".libtorch" / "torch"
    if not version and _minor(_version(fetched)):
        return fetched
    there = f"torch {version} is installed" if version else "no torch is installed"
    raise RuntimeError(
        f"{wanted}, but {there} in {installed.parent}: run pip install 'torch=={MINORS[-1]}.*' first, or set "
        "LIBTORCH to the folder of a libtorch"
    )


def _told():
    """Tells torch-sys and the build script of the extension by the environment."""
    libtorch = _libtorch()
    minor = _minor(_version(libtorch))
    os.environ["LIBTORCH"] = str(libtorch)
    if minor:
        # torch-sys knows one version only; those that are known to fit are above.
        os.environ["LIBTORCH_BYPASS_VERSION_CHECK"] = "1"
    if minor == "2.14":
        os.environ["CC_SHELL_ESCAPED_FLAGS"] = "1"
        flags = f"-std=c++20 -include {shlex.quote(str(NEWER))}"
        os.environ["CXXFLAGS"] = f"{os.environ.get('CXXFLAGS', '')} {flags}".strip()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    _told()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    _told()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


get_requires_for_build_editable = get_requires_for_build_wheel
prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel
