"""Tests that the Python examples of the READMEs run unchanged."""

import re
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.parametrize("name", ["README.md", "python/README.md"])
def test_the_python_of_the_readme_runs(name, capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.S)
    assert blocks
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for block in blocks:
            exec(compile(block, name, "exec"), {})
    tv = float(re.search(r"tv=([0-9.]+)", capsys.readouterr().out).group(1))
    assert tv < 0.05
