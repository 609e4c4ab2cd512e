"""The blocks of Python in the guide and in the package's README run: all but those that are marked as another library's."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
GUIDE = ROOT / "docs" / "guide" / "src"
PAGES = [GUIDE / "python.md", GUIDE / "torchgfn.md", ROOT / "python" / "README.md"]
BLOCK = re.compile(r"^```python([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(ours):
    """Each block with its page and line; `ours` are those without a mark."""
    for page in PAGES:
        text = page.read_text()
        for found in BLOCK.finditer(text):
            if (found[1] == "") == ours:
                line = text.count("\n", 0, found.start()) + 2
                yield pytest.param(page, line, found[2], id=f"{page.name}:{line}")


@pytest.mark.parametrize("page, line, source", list(blocks(True)))
def test_blocks_run(page, line, source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Lines are those of the page, so that a traceback leads there.
    exec(compile("\n" * (line - 1) + source, str(page), "exec"), {"__name__": "guide"})


def test_what_is_not_run_is_marked_as_torchgfn_s():
    others = [param.values for param in blocks(False)]
    assert len(others) == 7 and all("gfn_rs" not in source for _, _, source in others)
    for page, line, source in others:
        compile(source, f"{page}:{line}", "exec")
    assert len(list(blocks(True))) > 12


@pytest.mark.parametrize("page, scripts", [("python.md", 5), ("torchgfn.md", 1)])
def test_torchgfn_s_scripts_run(page, scripts):
    pytest.importorskip("gfn.gflownet", reason="torchgfn isn't installed: pip install torchgfn==2.4.1 for its side of the guide")
    theirs = [param.values for param in blocks(False) if param.values[0].name == page]
    # Those of a page are read in order: the first of several has what all use.
    shared = {"__name__": "guide"}
    for path, line, source in theirs:
        # As they stand but for the number of steps.
        source, changed = re.subn(r"(train\(env, gflownet, |in range\()\d{3,}", r"\g<1>2", source)
        exec(compile("\n" * (line - 1) + source, str(path), "exec"), shared)
        scripts -= changed
    assert scripts == 0
