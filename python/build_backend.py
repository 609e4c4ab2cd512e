"""The build backend of `pip install ./python`: maturin, with the path of the libtorch in the installed torch.

pip builds in a separate environment, in which torch can't be imported. So torch is searched for in the
folders of the surrounding environment.
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

# The supported minor versions of torch: torch-sys compiles with them, and the tests pass (docs/setup.md). A
# built extension is linked to one of these versions.
MINORS = ("2.13", "2.14")
HERE = Path(__file__).resolve().parent
# A header with the declarations that torch-sys 0.26 needs to compile with torch 2.14 and newer.
NEWER = (
    HERE / "python" / "shim" / "torch_sys.h" if (HERE / "python").is_dir() else HERE / "shim" / "torch_sys.h"
)


def _version(torch):
    """Returns the version of the torch package in a folder, or an empty text if there is none."""
    for name, pattern in (
        ("version.py", r"(?m)^__version__ *= *['\"]([^'\"]+)"),
        ("build-version", r"(\S+)"),
    ):
        found = re.search(pattern, (torch / name).read_text()) if (torch / name).is_file() else None
        if found:
            return found.group(1)
    return ""


def _minor(version):
    """Returns the minor version (such as "2.13") of a release that the extension supports, or an empty text
    for any other version."""
    release = re.fullmatch(r"(\d+\.\d+)\.\d+(\.post\d+)?(\+.*)?", version)
    return release.group(1) if release and release.group(1) in MINORS else ""


def _libtorch():
    """Returns the folder of a supported libtorch, which contains `lib` and `include`."""
    wanted = f"gfn-rs needs a release of torch {' or '.join(MINORS)}"
    if os.environ.get("LIBTORCH"):
        named = Path(os.environ["LIBTORCH"])
        version = _version(named)
        # A libtorch whose version can't be read is accepted here, because torch-sys checks it later.
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
    """Sets the environment variables by which torch-sys and the extension's build script find libtorch."""
    libtorch = _libtorch()
    minor = _minor(_version(libtorch))
    os.environ["LIBTORCH"] = str(libtorch)
    if minor:
        # torch-sys accepts only one version of torch. The check of torch-sys is turned off, because `MINORS`
        # lists the supported versions.
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
