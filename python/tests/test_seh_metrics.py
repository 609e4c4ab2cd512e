"""Tests of scripts/molecules/seh_metrics.py, the metrics of scored molecules by RDKit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

Chem = pytest.importorskip("rdkit.Chem")
SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "molecules" / "seh_metrics.py"
# Toluene has two spellings, and a row can't be read.
ROWS = [
    ("Cc1ccccc1", 0.9),
    ("CCc1ccccc1", 0.95),
    ("c1ccccc1C", 0.9),
    ("CCCc1ccccc1", 1.0),
    ("not a molecule", 2.0),
    ("CCCCc1ccccc1", 0.9),
    ("CC(=O)O", 0.88),
    ("CCC(=O)O", 0.89),
    ("C1CCNCC1", 0.2),
    ("C1CCOCC1", 0.99),
    ("CC#N", 0.875),
]


def bits(smiles):
    """Returns the bits of a fingerprint by RDKit's older function, which the script doesn't use."""
    from rdkit.Chem import AllChem

    return set(AllChem.GetMorganFingerprintAsBitVect(Chem.MolFromSmiles(smiles), 2, 2048).GetOnBits())


def similarity(a, b):
    return len(bits(a) & bits(b)) / len(bits(a) | bits(b))


def greedy(molecules, is_far):
    chosen = []
    for molecule in molecules:
        if all(is_far(similarity(molecule, other)) for other in chosen):
            chosen.append(molecule)
    return chosen


def test_metrics_agree_with_pairwise_comparisons(tmp_path):
    table = tmp_path / "scored.csv"
    table.write_text("step,smiles,reward\n" + "".join(f"1,{smiles},{reward}\n" for smiles, reward in ROWS))
    command = [sys.executable, str(SCRIPT), str(table), "--calls", "2"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    first, last = map(json.loads, lines)
    assert (first["calls"], first["distinct"], first["mean_last_1000"]) == (2, 1.0, pytest.approx(0.925))
    readable = [row for row in ROWS if Chem.MolFromSmiles(row[0])]
    rewards = {Chem.CanonSmiles(smiles): reward for smiles, reward in readable}
    assert (last["calls"], last["unreadable"], len(rewards)) == (11, 1, 9)
    assert last["mean_last_1000"] == pytest.approx(sum(reward for _, reward in readable) / 10)
    assert last["best_100"] == pytest.approx(sum(rewards.values()) / 9)
    assert last["distinct"] == pytest.approx(0.9)
    good = [smiles for smiles, reward in rewards.items() if reward > 7 / 8]
    rules = [lambda s: s < 0.7, lambda s: s <= 0.5, lambda s: 1 - s > 0.7]
    expected = [len(greedy(good, rule)) for rule in rules]
    assert [last["modes"], last["modes_raw_7"], last["circles"]] == expected
    assert len(set(expected)) == 3 and len(good) == 7


def test_circles_are_found_in_the_order_of_scoring(tmp_path):
    """The middle molecule is similar to the two others, which differ. If it is scored first, the greedy set
    has one molecule; the largest has two."""
    middle, others = "CCCCc1ccccc1", ["CCCCCCC", "Cc1ccccc1"]
    assert similarity(*others) < 0.3 <= min(similarity(middle, other) for other in others)
    for order, circles in [([middle, *others], 1), ([*others, middle], 2)]:
        table = tmp_path / "scored.csv"
        table.write_text("step,smiles,reward\n" + "".join(f"1,{smiles},0.9\n" for smiles in order))
        command = [sys.executable, str(SCRIPT), str(table)]
        last = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
        assert json.loads(last)["circles"] == circles


def test_a_run_has_the_metrics_of_its_table(tmp_path):
    """A program that writes the rows above stands in for `reproduce`."""
    program = tmp_path / "reproduce"
    rows = "step,smiles,reward\n" + "".join(f"1,{smiles},{reward}\n" for smiles, reward in ROWS)
    program.write_text(
        f"#!{sys.executable}\nimport json, pathlib, sys\n"
        f"(pathlib.Path(sys.argv[sys.argv.index('--out') + 1]) / 'scored.csv').write_text({rows!r})\n"
        "print('text before the result')\n"
        "print(json.dumps({'arguments': sys.argv[1:-2], 'modes': 'theirs'}))\n"
    )
    program.chmod(0o755)
    flags = ["seh-frag", "--seed", "3", "--json"]
    command = [sys.executable, str(SCRIPT), "--calls", "2", "--run", *flags]
    run = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "REPRODUCE": str(program)}
    )
    result = json.loads(run.stdout)
    assert result["arguments"] == flags
    assert (result["calls"], result["mean_last_1000_at_2"]) == (11, pytest.approx(0.925))
    table = tmp_path / "scored.csv"
    table.write_text(rows)
    last = subprocess.run(
        [sys.executable, str(SCRIPT), str(table)], capture_output=True, text=True, check=True
    )
    assert json.loads(last.stdout)["modes"] == result["modes"]
