"""What the package needs of torch."""

import subprocess
import sys

import gfn_rs as gfn
import pytest
import torch


@pytest.mark.parametrize("version", ["2.12.1", "2.14.0+cpu", "3.0"])
def test_another_torch_is_an_import_error_that_names_what_is_needed(version, tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(f"__version__ = {version!r}\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import gfn_rs"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    wanted = ".".join(torch.__version__.split(".")[:2])
    assert done.returncode == 1 and "ImportError" in done.stderr.splitlines()[-1], done.stderr
    assert version in done.stderr and f"pip install 'torch=={wanted}.*'" in done.stderr


def test_what_is_exported_is_the_package_s_own():
    assert {"Trainer", "Graphs", "Linear", "GraphEnv", "set_threads"} <= set(gfn.__all__)
    assert not {"training", "envs", "version", "PackageNotFoundError"} & set(gfn.__all__)
