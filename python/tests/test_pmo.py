"""Tests of the example `pmo`: oracles at known molecules, an area under a curve by hand, offspring, runs."""

import doctest
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rdkit")

FOLDER = Path(__file__).resolve().parent.parent / "examples" / "pmo"
sys.path.insert(0, str(FOLDER))

import benchmark  # noqa: E402
import genetic  # noqa: E402
import oracles  # noqa: E402
import published  # noqa: E402
import smiles  # noqa: E402
from rdkit import Chem  # noqa: E402
from rdkit.Chem import Descriptors  # noqa: E402

# Scores by the functions of PyTDC 1.1.15 (`tdc/chem_utils/oracle/oracle.py`) with RDKit 2026.9, in the order
# of `ORACLES`. Each score was computed in a fresh namespace, because `deco_hop` and `scaffold_hop` of PyTDC
# overwrite a variable of each other.
SCORES_OF_TDC = {
    "CN(C(=O)CCC(F)F)Cc1ccc(-c2ccccc2)cc1C(N)=O": [
        *(
            0.283688,
            0.167218,
            0.217391,
            0.52521,
            0.189763,
            1.42148e-20,
            2.08169e-08,
            0.0256495,
            0.10874,
            0.149086,
        ),
        *(
            0.0655588,
            0.306186,
            0.83442,
            0.0975517,
            0.371429,
            0.000136543,
            0.212598,
            0.123188,
            2.89118e-05,
            0.231955,
        ),
    ],
    "CCCOc1cc2ncnc(NCCN(C)C)c2cc1C(=O)Nc1ccc(F)cc1": [
        *(
            0.242424,
            0.427179,
            0.164179,
            0.85026,
            0.491228,
            7.9917e-40,
            2.70042e-18,
            0.0352104,
            0.125955,
            0.150463,
        ),
        *(0.182722, 0.11092, 0.55786, 0.186558, 0.151504, 4.125e-07, 0.188811, 0.155405, 0.0, 0.000255913),
    ],
    "COc1ccc(C2CC(=O)c3c(O)cc(OCC(O)CN4CCOCC4)cc3O2)cc1Cl": [
        *(
            0.3003,
            0.146516,
            0.117241,
            0.537413,
            0.669325,
            1.47132e-43,
            2.33632e-20,
            0.0708712,
            0.153069,
            0.250152,
        ),
        *(
            0.499634,
            0.307562,
            0.646583,
            0.0823466,
            0.389869,
            1.68412e-05,
            0.173333,
            0.187919,
            0.0,
            1.7329e-05,
        ),
    ],
}


def score(name, text):
    return oracles.ORACLES[name](Chem.MolFromSmiles(text))


@pytest.mark.parametrize("text", SCORES_OF_TDC)
def test_scores_are_those_of_the_benchmark(text):
    scores = [score(name, text) for name in oracles.ORACLES]
    assert len(scores) == 20 and set(oracles.ORACLES) == set(published.PUBLISHED)
    np.testing.assert_allclose(scores, SCORES_OF_TDC[text], rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("albuterol_similarity", oracles.ALBUTEROL),
        ("celecoxib_rediscovery", oracles.CELECOXIB),
        ("mestranol_similarity", oracles.MESTRANOL),
        ("thiothixene_rediscovery", oracles.THIOTHIXENE),
        ("troglitazone_rediscovery", oracles.TROGLITAZONE),
        ("isomers_c7h8n2o2", "NNC(=O)c1ccc(O)cc1"),
        ("isomers_c9h10n2o2pf2cl", "CC(N)C(=O)Nc1ccc(OP(F)F)cc1Cl"),
    ],
)
def test_a_target_has_the_score_1_and_methane_has_less(name, target):
    assert score(name, target) == pytest.approx(1.0)
    assert score(name, "C") < 0.1


def test_scores_of_the_drugs_themselves_by_hand():
    # Perindopril has no aromatic ring instead of two, amlodipine two rings instead of three.
    assert score("perindopril_mpo", oracles.PERINDOPRIL) == pytest.approx(math.exp(-4))
    assert score("amlodipine_mpo", oracles.AMLODIPINE) == pytest.approx(math.exp(-1))
    # Sitagliptin is as similar to itself as can be, ten widths from 0.
    assert score("sitagliptin_mpo", oracles.SITAGLIPTIN) == pytest.approx(math.exp(-50 / 4))
    # Zaleplon is C17H15N5O, not C19H17N3O2, and has 38 atoms instead of 41.
    off = (2 + 2 + 2 + 0.5 + 0.5 * 1.5**2) / 5
    assert score("zaleplon_mpo", oracles.ZALEPLON) == pytest.approx(math.exp(-off / 2))
    # The start of both hops has the core and the decoration.
    assert score("deco_hop", oracles.HOP_START) == pytest.approx(2 / 4)
    assert score("scaffold_hop", oracles.HOP_START) == pytest.approx(2 / 3)
    drug = Chem.MolFromSmiles(oracles.FEXOFENADINE)
    surface = math.exp(-0.5 * ((90 - Descriptors.TPSA(drug)) / 10) ** 2)
    lipophilicity = math.exp(-0.5 * (Descriptors.MolLogP(drug) - 4) ** 2)
    assert Descriptors.TPSA(drug) < 90 and Descriptors.MolLogP(drug) > 4
    assert score("fexofenadine_mpo", oracles.FEXOFENADINE) == pytest.approx(
        (surface * lipophilicity) ** (1 / 3)
    )
    assert score("valsartan_smarts", oracles.SITAGLIPTIN) == 0.0


def test_the_area_by_hand():
    # Call k scores k / 400: chains of 1 to 250 carbons.
    record = benchmark.Record(lambda molecule: molecule.GetNumAtoms() / 400, calls=400)
    assert record.area() == 0.0
    chains = ["C" * k for k in range(1, 251)]
    assert record.add(chains[:200]) == 200 and record.add(chains) == 50 and not record.is_full
    # Trapezia up to 0.25 after 100 calls, 0.5 after 200, 0.625 after 250; 0.625 for the other 150 calls.
    best = (100 * 0.125 + 100 * 0.375 + 50 * 0.5625 + 150 * 0.625) / 400
    assert record.area(1) == pytest.approx(best)
    # The mean of the ten best is 4.5 / 400 lower at each point, and 0 at the start.
    assert record.area() == pytest.approx(best - 4.5 / 400 * (1 - 50 / 400))
    assert record.best(2) == ["C" * 250, "C" * 249]
    # The budget is a limit, and molecules that are already known don't count.
    assert record.add(["C" * k for k in range(200, 500)]) == 150 and record.is_full
    assert record.area(1) == pytest.approx(0.5)


def test_a_run_without_progress_ends():
    record = benchmark.Record(lambda molecule: 0.0)
    for n in range(11, 17):
        record.add("C" * k for k in range(1, 100 * n))
        has_stopped = record.has_stopped_improving()
        assert has_stopped == (n == 16), n


def test_offspring_are_other_molecules():
    parents = ["c1ccccc1CCN", "O=C(O)C1CCCCC1", "Cn1ccc2ccccc21", "CC(=O)OC[N+](C)(C)C"]
    rng = np.random.default_rng(0)
    children = genetic.offspring(parents, 100, 0.3, rng)
    assert len(set(children)) == len(children) == 100
    assert all(smiles.canonical(child) == child for child in children)
    molecules = [Chem.MolFromSmiles(child) for child in children]
    sizes = [len(ring) for molecule in molecules for ring in molecule.GetRingInfo().AtomRings()]
    assert 3 <= max(sizes) <= 7
    # Without changes, parts of alkanes make alkanes only.
    alkanes = genetic.offspring(["CCCC", "CCC(C)(C)CC"], 10, 0.0, rng)
    assert len(alkanes) >= 5 and all(set(child) <= set("C()") for child in alkanes)
    assert len(genetic.offspring(["C", "O"], 5, 1.0, rng)) == 0, "methane and water have no bond to cut"


@pytest.mark.parametrize("change", genetic._CHANGES)
def test_each_change_makes_valid_molecules(change):
    rng = np.random.default_rng(1)
    results = []
    for _ in range(50):
        molecule = genetic._kekulized("O=C(NCCCC)c1ccc2[nH]ccc2c1")
        change(molecule, rng)
        results.append(genetic._checked(molecule))
    others = {text for text in results if text is not None and text != "CCCCNC(=O)c1ccc2[nH]ccc2c1"}
    assert len(others) >= 3


def test_documented_examples():
    for module in (benchmark, smiles):
        results = doctest.testmod(module)
        assert results.failed == 0 and results.attempted > 0


def pmo(folder, *more):
    settings = [
        "--steps",
        "100",
        "--width",
        "32",
        "--calls",
        "200",
        "--updates",
        "2",
        "--prior",
        folder / "prior",
    ]
    return subprocess.run(
        [
            sys.executable,
            FOLDER / "pmo.py",
            *settings,
            "--oracles",
            "qed",
            "--out",
            folder / "runs.jsonl",
            *more,
        ],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_run_finishes_and_repeats_itself(tmp_path):
    first = pmo(tmp_path)
    assert first.returncode == 0, first.stderr
    # The published areas are of runs with more calls.
    assert "Genetic GFN" not in first.stdout
    # The second run reads the first policy from its folder.
    second = pmo(tmp_path, "--json")
    assert second.returncode == 0, second.stderr
    summary = json.loads(second.stdout.splitlines()[-1])
    assert summary["qed_auc_top10"] == summary["sum_auc_top10"] and summary["calls"] == 200
    lines = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    for line in lines:
        del line["seconds"]
    assert lines[0] == lines[1]
    line = lines[0]
    assert (line["oracle"], line["seed"], line["calls"]) == ("qed", 0, 200)
    assert 0 < line["auc_top10"] < line["top10"] <= line["best"] <= 1
    assert line["auc_top10"] == pytest.approx(summary["qed_auc_top10"], abs=1e-4)
    assert score("qed", line["molecule"]) == pytest.approx(line["best"], abs=1e-4)
    # The first policy isn't used with other settings than those that it was made with.
    other = tmp_path / "other.smi"
    other.write_text("CCO\n")
    refused = pmo(tmp_path, "--width", "16", "--molecules", other)
    assert refused.returncode == 1 and "width is 32 there and 16 here, molecules is" in refused.stderr


def test_molecules_whose_smiles_cannot_be_read_are_left_out(monkeypatch):
    """RDKit writes such SMILES for a few edited molecules. A false one stands in for them."""
    assert smiles.canonical("OCC") == "CCO"
    monkeypatch.setattr(smiles.Chem, "MolToSmiles", lambda *_, **__: "c1cccc1")
    assert smiles.canonical("OCC") is None


def test_too_few_calls_are_refused(tmp_path):
    done = pmo(tmp_path, "--calls", "9")
    assert done.returncode == 2 and "--calls is 9: expected at least 10" in done.stderr
