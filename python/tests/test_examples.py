"""The examples run: scripts with few steps, notebooks as they are but for the number of steps."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("*.py"))
# What each prints at its end: that it got there.
ENDS = {
    "continuous.py": "standard deviation",
    "executors.py": "total variation after 5 steps",
    "geometric_network.py": "total variation after 5 steps",
    "molecules_qed.py": "drawn in",
    "own_optimizer.py": "total variation after 5 steps",
    "own_reward.py": "total variation after 5 steps",
    "structures.py": "off the exact ones by",
}


def test_each_script_is_run():
    assert SCRIPTS == sorted(ENDS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_run(name, tmp_path):
    # In a folder of its own, as pictures are written; one thread, as other tests run at the same time.
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, "--steps", "5"],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert ENDS[name] in done.stdout


def test_pictures_of_molecules_are_drawn(tmp_path):
    picture = tmp_path / "best.svg"
    subprocess.run(
        [sys.executable, EXAMPLES / "molecules_qed.py", "--steps", "5", "--samples", "20", "--picture", picture], check=True, timeout=120
    )
    assert "<svg" in picture.read_text()


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.ipynb")))
def test_notebooks_run(name, tmp_path):
    import nbclient
    import nbformat

    notebook = nbformat.read(EXAMPLES / name, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code), "outputs are stored: clear them"
    # As a reader would set it for a quick look.
    assert sum(cell.source.count("STEPS = ") for cell in code) == 1
    for cell in code:
        cell.source = cell.source.replace("STEPS = 500", "STEPS = 5")
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    kinds = {kind for cell in code for output in cell.outputs for kind in output.get("data", {})}
    assert {"image/svg+xml", "image/png"} <= kinds
