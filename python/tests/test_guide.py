"""Runs the Python code blocks of the guide and of the package's README, except blocks that are marked as code
of another library."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
GUIDE = ROOT / "docs" / "guide" / "src"
PAGES = [*sorted(GUIDE.glob("python*.md")), GUIDE / "torchgfn.md", ROOT / "python" / "README.md"]
BLOCK = re.compile(r"^```python([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(ours):
    """Yields the page, the line and the code of each Python block. If `ours` is true, these are the blocks
    without the mark of another library, otherwise the blocks with this mark."""
    for page in PAGES:
        text = page.read_text()
        for found in BLOCK.finditer(text):
            if (found[1] == "") == ours:
                line = text.count("\n", 0, found.start()) + 2
                yield pytest.param(page, line, found[2], id=f"{page.name}:{line}")


@pytest.mark.parametrize("page, line, source", list(blocks(True)))
def test_blocks_run(page, line, source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Empty lines are added before the block, so that the line numbers in a traceback are those of the page.
    exec(compile("\n" * (line - 1) + source, str(page), "exec"), {"__name__": "guide"})


def test_what_is_not_run_is_marked_as_torchgfn_s():
    others = [param.values for param in blocks(False)]
    assert len(others) == 7 and all("gfn_rs" not in source for _, _, source in others)
    for page, line, source in others:
        compile(source, f"{page}:{line}", "exec")
    assert len(list(blocks(True))) > 12


def test_torchgfn_s_scripts_run():
    pytest.importorskip(
        "gfn.gflownet",
        reason="torchgfn isn't installed: pip install torchgfn==2.4.1 for its side of the guide",
    )
    # All blocks run in the same namespace, because later blocks use the imports and the loop of the second
    # block.
    shared = {"__name__": "guide"}
    n_shortened = 0
    for path, line, source in (param.values for param in blocks(False)):
        # The only change of each block is a smaller number of training steps.
        source, changed = re.subn(r"(train\(env, gflownet, |in range\()\d{3,}", r"\g<1>2", source)
        exec(compile("\n" * (line - 1) + source, str(path), "exec"), shared)
        n_shortened += changed
    assert n_shortened == 6
