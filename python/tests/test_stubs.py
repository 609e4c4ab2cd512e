"""Tests that the type stubs of the extension module agree with its functions and classes."""

import subprocess
import sys


def test_stubs_are_the_extension_s(tmp_path):
    # The stubs need not declare the list `__all__`, which pyo3 generates.
    (tmp_path / "allowed").write_text("gfn_rs._gfn.__all__\n")
    command = [sys.executable, "-m", "mypy.stubtest", "gfn_rs._gfn", "--concise", "--allowlist", "allowed"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert run.returncode == 0, run.stdout + run.stderr
