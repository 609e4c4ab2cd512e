"""Tests that mypy accepts users' programs: annotated ones in strict mode, the examples, and the Python code
of the guide and of the READMEs."""

import re
import subprocess
import sys
from pathlib import Path

from test_guide import ROOT, blocks

HERE = Path(__file__).resolve().parent
# The code of the guide and of the examples has no annotations. Everything else is strict.
SETTINGS = """
[mypy]
strict = True
[mypy-unannotated.*]
disallow_untyped_defs = False
disallow_untyped_calls = False
disallow_incomplete_defs = False
disallow_untyped_decorators = False
check_untyped_defs = True
[mypy-pandas.*,networkx.*,torch_geometric.*,rdkit.*,matplotlib.*,distributed.*,mpi4py.*,ray.*]
ignore_missing_imports = True
"""
# Mistakes that mypy must find: each line but the first five and that of `def` has an error.
MISTAKES = """
import gfn_rs as gfn
import numpy as np
import numpy.typing as npt
graphs = gfn.Trainer(gfn.Ring(4), gfn.RingReward(), gfn.GraphNet())
points = gfn.Trainer(gfn.HyperGrid(2, 4), gfn.HyperGridReward(), gfn.Mlp())
graphs.sample(5).sum()
points.sample(5).networkx()
graphs.exact().states.mean()
gfn.Ring(4).initial(2).shape
gfn.GraphNet(hiden=3)
graphs.fitt(3)
gfn.Sampler(gfn.HyperGrid(2, 4), gfn.Mlp().build(gfn.HyperGrid(2, 4))).sample(3).terminal.n_edges
def reward(states: gfn.Graphs) -> npt.NDArray[np.int64]: return states.n_edges
gfn.Trainer(gfn.HyperGrid(2, 4), reward, gfn.Mlp())
"""


def test_users_programs_type_check(tmp_path):
    (tmp_path / "mypy.ini").write_text(SETTINGS)
    (tmp_path / "typed_use.py").write_text((HERE / "typed_use.py").read_text())
    (tmp_path / "mistakes.py").write_text(MISTAKES)
    folder = tmp_path / "unannotated"
    folder.mkdir()
    (folder / "__init__.py").touch()
    for page, line, source in (param.values for param in blocks()):
        (folder / f"{page.stem}_{line}.py").write_text(source)
    for path in sorted((ROOT / "python" / "examples").glob("*.py")):
        (folder / path.name).write_text(path.read_text())
    files = [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*.py"))]
    assert len(files) > 20
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", *files]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=280)
    errors = [line for line in run.stdout.splitlines() if ": error:" in line]
    assert [line for line in errors if not line.startswith("mistakes.py")] == [], run.stderr
    found = {int(re.match(r"mistakes\.py:(\d+):", line)[1]) for line in errors}
    expected = set(range(7, MISTAKES.count("\n") + 1)) - {14}
    assert found == expected
