"""Tests of the package's requirements on the version of torch, and of the time of its import."""

import statistics
import subprocess
import sys

import gfn_rs as gfn
import pytest
import torch

MAJOR, MINOR = (int(part) for part in torch.__version__.split(".")[:2])
LINKED = f"{MAJOR}.{MINOR}"


def imported_beside(version, folder):
    """Imports the package with a fake torch that has this version. Returns the error output."""
    (folder / "torch").mkdir()
    (folder / "torch" / "__init__.py").write_text(f"__version__ = {version!r}\n")
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); import gfn_rs"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    return done.stderr


@pytest.mark.parametrize(
    "version",
    [f"{MAJOR}.{MINOR - 1}.1", f"{MAJOR}.{MINOR + 1}.0+cpu", f"{MAJOR}.{10 * MINOR}.0", f"{MAJOR + 1}.0.0"],
)
def test_another_torch_is_an_import_error_that_names_what_is_needed(version, tmp_path):
    said = imported_beside(version, tmp_path)
    assert "ImportError" in said.splitlines()[-1], said
    assert version in said and f"pip install 'torch=={LINKED}.*'" in said and "not a release" not in said


@pytest.mark.parametrize(
    "version", [f"{LINKED}.0a0+git1c9a5b5", f"{LINKED}.0.dev20260101+cpu", f"{LINKED}.0rc1"]
)
def test_what_comes_before_a_release_of_torch_is_refused(version, tmp_path):
    said = imported_beside(version, tmp_path)
    assert "ImportError" in said.splitlines()[-1], said
    assert version in said and "not a release" in said and f"pip install 'torch=={LINKED}.*'" in said


@pytest.mark.parametrize("version", [f"{LINKED}.0", f"{LINKED}.9+cu130", f"{LINKED}.1.post2"])
def test_other_releases_of_the_same_minor_version_are_taken(version, tmp_path):
    # The version must be accepted. The import fails later, because the fake torch lacks other parts.
    assert "was built with torch" not in imported_beside(version, tmp_path)


def test_the_extension_says_what_it_is_linked_to():
    assert gfn._linked() == LINKED
    assert gfn._gfn.__torch__ == f"gfn-rs is linked to torch {LINKED};"


def test_the_import_takes_less_than_a_third_of_a_second_beyond_torch_s():
    # Processor time is measured, because it depends little on other programs. torch, numpy and the modules
    # that torch imports are loaded before the measurement.
    code = ("import time, torch, numpy; began = time.process_time(); import gfn_rs; "
            "print(time.process_time() "
        "- began)")
    taken = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    ]
    assert statistics.median(taken) < 0.3, taken


def test_what_is_exported_is_the_package_s_own():
    public = {name for name, value in vars(gfn).items() if not name.startswith("_")}
    assert public == set(gfn.__all__), public ^ set(gfn.__all__)
    assert {"Trainer", "Graphs", "Linear", "GraphEnv", "set_threads", "EPSILON"} <= public
