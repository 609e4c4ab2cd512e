"""maturin, told where the libtorch of this environment's torch is: `pip install ./python` needs nothing else.

pip builds in an environment of its own, where torch can't be imported, so it is looked up by its path.
"""

import os
import sysconfig
from pathlib import Path

import maturin
from maturin import (  # noqa: F401 - the hooks that pip asks for
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_wheel,
)

WANTED = "2.13."
CHECKOUT = Path(__file__).resolve().parent.parent


def _version(torch):
    """The version of the torch in a folder, or an empty text."""
    named = torch / "version.py"
    lines = named.read_text().splitlines() if named.is_file() else []
    found = [line.split("=")[1].strip(" '\"") for line in lines if line.startswith("__version__")]
    return found[0] if found else ""


def _libtorch():
    """The folder that holds lib/ and include/ of a libtorch that fits."""
    if os.environ.get("LIBTORCH"):
        return os.environ["LIBTORCH"]
    installed = Path(sysconfig.get_path("platlib")) / "torch"
    version = _version(installed)
    if version.startswith(WANTED):
        return str(installed)
    fetched = CHECKOUT / ".libtorch" / "torch"
    if fetched.is_dir():
        return str(fetched)
    there = f"torch {version} is installed" if version else "no torch is installed"
    raise RuntimeError(
        f"gfn-rs is linked to torch {WANTED}x, and {there} in {installed.parent}: "
        f"pip install 'torch=={WANTED}*' first, or export LIBTORCH"
    )


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    os.environ["LIBTORCH"] = _libtorch()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    os.environ["LIBTORCH"] = _libtorch()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory, config_settings=None):
    return maturin.build_sdist(sdist_directory, config_settings)


get_requires_for_build_editable = get_requires_for_build_wheel
prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel
