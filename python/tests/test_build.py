"""Tests of the libtorch that a wheel is built with, and of the wheel's name from
`scripts/build_wheels.py`."""

import base64
import hashlib
import importlib.util
import re
import sys
import types
import zipfile
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parent.parent.parent


def loaded(path, monkeypatch):
    monkeypatch.syspath_prepend(str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def backend(monkeypatch):
    """Returns the build backend with a fake maturin."""
    fake = types.ModuleType("maturin")
    for (
        name
    ) in ("build_sdist get_requires_for_build_sdist get_requires_for_build_wheel "
        "prepare_metadata_for_build_wheel").split():
        setattr(fake, name, None)
    monkeypatch.setitem(sys.modules, "maturin", fake)
    for name in ("LIBTORCH", "LIBTORCH_BYPASS_VERSION_CHECK", "CXXFLAGS", "CC_SHELL_ESCAPED_FLAGS"):
        # The environment variable is set before it is deleted. So monkeypatch restores its former state after
        # the test, even if it didn't exist before.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return loaded(ROOT / "python" / "build_backend.py", monkeypatch)


def installed(backend, version, folder, monkeypatch):
    """Makes a folder with a torch of this version, or without torch, in which the backend searches for
    torch."""
    monkeypatch.setattr(backend, "HERE", folder / "python")
    monkeypatch.setattr(backend.sysconfig, "get_path", lambda name: str(folder))
    if version:
        (folder / "torch").mkdir()
        (folder / "torch" / "version.py").write_text(
            f"__all__ = ['__version__']\n__version__ = '{version}'\n"
        )


@pytest.mark.parametrize("version", ["2.13.0", "2.13.1+cu130", "2.14.0", "2.14.1+cpu"])
def test_a_torch_that_fits_is_found_and_torch_sys_told_of_it(version, backend, tmp_path, monkeypatch):
    installed(backend, version, tmp_path, monkeypatch)
    backend._told()
    assert backend.os.environ["LIBTORCH"] == str(tmp_path / "torch")
    assert backend.os.environ["LIBTORCH_BYPASS_VERSION_CHECK"] == "1"
    flags = backend.os.environ.get("CXXFLAGS", "")
    assert ("-std=c++20 -include" in flags) == (version >= "2.14"), flags
    assert backend.NEWER.is_file()


@pytest.mark.parametrize(
    "version", ["", "2.11.0", "2.12.1", "2.15.0+cpu", "2.13.0a0+git12", "2.14.0.dev20260101", "12.13.0"]
)
def test_a_torch_that_does_not_fit_is_an_error_that_says_which_do(version, backend, tmp_path, monkeypatch):
    installed(backend, version, tmp_path, monkeypatch)
    with pytest.raises(RuntimeError, match=re.escape(version or "no torch") + ".*pip install") as error:
        backend._libtorch()
    assert all(minor in str(error.value) for minor in backend.MINORS)


def test_a_libtorch_that_is_named_is_looked_at(backend, tmp_path, monkeypatch):
    installed(backend, "2.13.0", tmp_path, monkeypatch)
    named = tmp_path / "own"
    named.mkdir()
    monkeypatch.setenv("LIBTORCH", str(named))
    (named / "build-version").write_text("2.11.0+cpu\n")
    with pytest.raises(RuntimeError, match="LIBTORCH names torch 2.11.0"):
        backend._libtorch()
    (named / "build-version").write_text("2.14.0+cpu\n")
    assert backend._libtorch() == named


def test_the_torch_of_these_tests_is_one_of_those_that_fit_and_the_package_asks_for_them(backend):
    assert backend._minor(torch.__version__)
    project = (ROOT / "python" / "pyproject.toml").read_text()
    last = int(backend.MINORS[-1].split(".")[1])
    assert f'"torch>={backend.MINORS[0]},<2.{last + 1}"' in project


@pytest.mark.parametrize(
    ("symbols", "platform"),
    [
        ({"GLIBC": (2, 28)}, "manylinux_2_28_x86_64"),
        ({"GLIBC": (2, 34), "GLIBCXX": (3, 4, 22)}, "linux_x86_64"),
    ],
)
def test_a_wheel_is_named_after_its_torch_and_asks_for_it(symbols, platform, tmp_path, monkeypatch):
    wheels = loaded(ROOT / "scripts" / "build_wheels.py", monkeypatch)
    monkeypatch.setattr(wheels, "newest_symbols", lambda wheel: symbols)
    old = tmp_path / "gfn_rs-0.1.0-cp311-cp311-linux_x86_64.whl"
    metadata = ("Name: gfn-rs\nVersion: 0.1.0\nRequires-Dist: torch>=2.13,<2.15\nRequires-Dist: "
        "numpy>=1.26\nRequires-Dist: torch-geometric>=2.5 ; extra == 'networks'\n")
    files = {
        "gfn_rs/__init__.py": "1",
        "gfn_rs-0.1.0.dist-info/METADATA": metadata,
        "gfn_rs-0.1.0.dist-info/WHEEL": "Tag: cp311-cp311-linux_x86_64\n",
        "gfn_rs-0.1.0.dist-info/RECORD": "old",
    }
    with zipfile.ZipFile(old, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    (tmp_path / "out").mkdir()
    new, _ = wheels.rename_wheel(old, "2.14", tmp_path / "out")
    assert new.name == f"gfn_rs-0.1.0+torch214-cp311-cp311-{platform}.whl"
    with zipfile.ZipFile(new) as archive:
        info = "gfn_rs-0.1.0+torch214.dist-info/"
        said = archive.read(info + "METADATA").decode()
        assert said == metadata.replace("Version: 0.1.0", "Version: 0.1.0+torch214").replace(
            "torch>=2.13,<2.15", "torch==2.14.*"
        )
        assert archive.read(info + "WHEEL").decode() == f"Tag: cp311-cp311-{platform}\n"
        record = dict(line.split(",", 1) for line in archive.read(info + "RECORD").decode().splitlines())
        assert set(record) == set(archive.namelist())
        for name in set(record) - {info + "RECORD"}:
            content = archive.read(name)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            assert record[name] == f"sha256={digest},{len(content)}"


def test_wheels_are_built_for_what_the_backend_takes(backend, monkeypatch):
    assert tuple(loaded(ROOT / "scripts" / "build_wheels.py", monkeypatch).minors()) == backend.MINORS
