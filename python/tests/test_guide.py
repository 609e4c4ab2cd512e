"""Runs the Python code blocks of the guide and of the package's README, except blocks that are marked as code
of another library."""

import builtins
import re
from pathlib import Path

import gfn_rs as gfn
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
GUIDE = ROOT / "docs" / "guide" / "src"
PEERS = [GUIDE / "torchgfn.md", GUIDE / "recursionpharma.md"]
PAGES = [*sorted(GUIDE.glob("python*.md")), GUIDE / "saving.md", *PEERS, ROOT / "python" / "README.md"]
BLOCK = re.compile(r"^```python([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(mark=""):
    """Yields the page, the line and the code of each Python block whose info string is `python` followed by
    `mark`."""
    for page in PAGES:
        text = page.read_text()
        for found in BLOCK.finditer(text):
            if found[1] == mark:
                line = text.count("\n", 0, found.start()) + 2
                yield pytest.param(page, line, found[2], id=f"{page.name}:{line}")


@pytest.mark.parametrize("page, line, source", list(blocks()))
def test_blocks_run(page, line, source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Empty lines are added before the block, so that the line numbers in a traceback are those of the page.
    exec(compile("\n" * (line - 1) + source, str(page), "exec"), {"__name__": "guide"})


@pytest.mark.parametrize("page", PEERS, ids=lambda page: page.stem)
def test_what_is_not_run_is_marked_as_the_other_library_s(page):
    marks = {found[1] for found in BLOCK.finditer(page.read_text())}
    assert marks == {"", f",{page.stem}"}
    others = [param.values for param in blocks(f",{page.stem}")]
    assert len(others) > 5 and all(path == page and "gfn_rs" not in source for path, _, source in others)
    for path, line, source in others:
        compile(source, f"{path}:{line}", "exec")


@pytest.mark.parametrize("page", PEERS, ids=lambda page: page.stem)
def test_names_in_tables_are_public(page):
    table = page.read_text().partition("## In Rust")[0]
    cells = [row.split(" | ")[1] for row in re.findall(r"^\| .* \|$", table, re.MULTILINE)]
    code = " ".join(re.sub(r'"[^"]*"', "", code) for cell in cells for code in re.findall(r"`([^`]+)`", cell))
    names = set(re.findall(r"\b[A-Z][A-Za-z]+\b", code))
    assert len(names) > 40 and names <= {*gfn.__all__, *dir(builtins)}
    methods = re.findall(r"\b(trainer|env|graphs)\.(\w+)", code)
    kinds = {"trainer": gfn.Trainer, "env": gfn.Environment, "graphs": gfn.Graphs}
    assert len(methods) > 10 and all(hasattr(kinds[name], method) for name, method in methods)


def test_torchgfn_s_scripts_run(tmp_path, monkeypatch):
    pytest.importorskip(
        "gfn.gflownet",
        reason="torchgfn isn't installed: pip install torchgfn==2.4.1 for its side of the guide",
    )
    monkeypatch.chdir(tmp_path)
    # All blocks run in the same namespace, because later blocks use the imports and the objects of earlier
    # blocks.
    shared = {"__name__": "guide"}
    n_shortened = 0
    for path, line, source in (param.values for param in blocks(",torchgfn")):
        # The only change of each block is a smaller number of training steps.
        source, changed = re.subn(r"(train\(env, gflownet, |in range\()\d{3,}", r"\g<1>2", source)
        exec(compile("\n" * (line - 1) + source, str(path), "exec"), shared)
        n_shortened += changed
    assert n_shortened == 7
