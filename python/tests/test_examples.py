"""Runs the examples to their end: scripts with few training steps, notebooks unchanged."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbclient
import nbformat
import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("*.py"))
# A text in the last output of each example, which shows that the example reached its end.
ENDS = {
    "continuous.py": "standard deviation",
    "executors.py": "total variation after 5 steps",
    "geometric_network.py": "total variation after 5 steps",
    "molecules_qed.py": "drawn in",
    "own_optimizer.py": "total variation after 5 steps",
    "own_reward.py": "total variation after 5 steps",
    "structures.py": "off the exact ones by",
    # There are 1,234 such states on a 4 x 4 lattice (sequence A006506 of the OEIS).
    "tensor_environment.py": "over 1234 states",
}


def test_each_script_is_run():
    assert SCRIPTS == sorted(ENDS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_run(name, tmp_path):
    # The example runs in a separate folder, where it writes its pictures. The example uses one thread,
    # because other tests run at the same time.
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
        [
            sys.executable,
            EXAMPLES / "molecules_qed.py",
            "--steps",
            "5",
            "--samples",
            "20",
            "--picture",
            picture,
        ],
        check=True,
        timeout=120,
    )
    assert "<svg" in picture.read_text()


NOTEBOOKS = sorted(path.stem for path in (EXAMPLES / "notebooks").glob("*.ipynb"))


def executed(name, folder, monkeypatch, **changes):
    """Runs the code cells of a notebook in a folder. `changes` replaces values of variables in the
    notebook."""
    notebook = nbformat.read(EXAMPLES / "notebooks" / f"{name}.ipynb", as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(
        not cell.outputs and cell.execution_count is None for cell in code
    ), "outputs are stored: clear them"
    for number, value in changes.items():
        assert any(f"{number} = " in cell.source for cell in code)
        for cell in code:
            cell.source = re.sub(rf"^{number} = \S+", f"{number} = {value}", cell.source, flags=re.MULTILINE)
    for data in (EXAMPLES / "notebooks").glob("*.csv"):
        shutil.copy(data, folder)
    # The notebook uses one thread, because other tests run at the same time.
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    nbclient.NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(folder)}}).execute()
    return code


def test_there_are_six_notebooks_and_their_links_lead_somewhere():
    assert NOTEBOOKS == [
        "first_graphs",
        "many_machines",
        "molecules",
        "molecules_from_csv",
        "own_environment_and_network",
        "structures",
    ]
    for name in NOTEBOOKS:
        path = EXAMPLES / "notebooks" / f"{name}.ipynb"
        links = re.findall(
            r"\]\(([^)]+)\)",
            "".join(
                cell.source
                for cell in nbformat.read(path, as_version=4).cells
                if cell.cell_type == "markdown"
            ),
        )
        assert links and all((path.parent / link).exists() for link in links), f"{name}: {links}"


# Only one notebook runs by default. The other notebooks are marked as slow, because all notebooks together
# take minutes.
@pytest.mark.parametrize(
    "name",
    [name if name == "first_graphs" else pytest.param(name, marks=pytest.mark.slow) for name in NOTEBOOKS],
)
def test_notebooks_run_and_their_claims_hold(name, tmp_path, monkeypatch):
    code = executed(name, tmp_path, monkeypatch)
    kinds = {kind for cell in code for output in cell.outputs for kind in output.get("data", {})}
    assert {"image/svg+xml", "image/png"} <= kinds
    assert "assert " in code[-1].source and ".tv < " in code[-1].source


@pytest.mark.parametrize("name", ["first_graphs", pytest.param("molecules_from_csv", marks=pytest.mark.slow)])
def test_claims_of_a_notebook_fail_without_training(name, tmp_path, monkeypatch):
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="AssertionError"):
        executed(name, tmp_path, monkeypatch, STEPS=5)
