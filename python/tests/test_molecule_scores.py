"""Tests of scores of molecules, whose properties are compared with RDKit, and of rankings as tables, files
and pictures."""

import sys
import warnings

import gfn_rs as gfn
import numpy as np
import pytest
from refusals import refused

SMILES = [
    "CC(=O)Oc1ccccc1C(=O)O",
    "CN1C=NC2=C1C(=O)N(C)C(=O)N2C",
    "CCO",
    "c1ccc2ccccc2c1",
    "OCC1OC(O)C(O)C(O)C1O",
]


def test_properties_are_those_of_rdkit():
    from rdkit import Chem
    from rdkit.Chem import QED, Crippen, Descriptors, rdMolDescriptors

    theirs = {
        "qed": QED.qed,
        "log_p": Crippen.MolLogP,
        "weight": Descriptors.MolWt,
        "polar_surface": rdMolDescriptors.CalcTPSA,
    }
    score = gfn.MoleculeScore([gfn.Factor(name) for name in theirs])
    rows = [Chem.MolFromSmiles(text) for text in SMILES]
    found = score.properties(SMILES)
    assert list(found) == list(theirs)
    for name, function in theirs.items():
        assert np.allclose(found[name], [function(row) for row in rows], atol=1e-3), name
    # Properties are sums over atoms. RDKit sums in another order of the atoms, so the properties are equal
    # only up to rounding.
    assert all(np.allclose(found[name], values, atol=1e-9) for name, values in score.properties(rows).items())


def test_a_product_of_powers():
    alerts = gfn.Factor(
        {"substructures": {"smarts": ["[OX2H]", "[CX3]=O"]}}, {"limit": {"most": 1, "otherwise": 0.5}}
    )
    score = gfn.MoleculeScore([gfn.Factor("heavy_atoms", power=2.0), alerts])
    assert np.allclose(score.log_scores(["CCO", "OC=O"]), [2 * np.log(3), 2 * np.log(3) + np.log(0.5)])
    twice = gfn.MoleculeScore([alerts, alerts]).properties(["OC=O"])
    assert {name: values.tolist() for name, values in twice.items()} == {
        "substructures": [2.0],
        "substructures_2": [2.0],
    }


def test_a_trainer_is_rewarded_by_it():
    score = gfn.MoleculeScore([gfn.Factor("qed", power=2.0)])
    env = gfn.Molecules(3, elements=["C", "N", "O"], charges=False)
    trainer = gfn.Trainer(env, gfn.MoleculeReward(score, beta=4.0), gfn.GraphNet(embedding=8), batch=8).fit(2)
    molecules, log_rewards = trainer.sample_with_rewards(20)
    assert np.allclose(log_rewards, 4 * score.log_scores(molecules))
    named = gfn.Trainer(env, gfn.MoleculeReward("rings"), gfn.Uniform(), batch=8).sample_with_rewards(20)
    assert np.array_equal(
        named[1], gfn.MoleculeScore([gfn.Factor("rings", "exponential")]).log_scores(named[0])
    )


def test_what_makes_no_score_is_refused(tmp_path):
    make = lambda *values, **more: gfn.MoleculeScore([gfn.Factor(*values, **more)])
    refused(lambda: make("qde"), ValueError, "factors.*qde.*expected")
    refused(lambda: make("qed", {"windw": {}}), ValueError, "windw")
    refused(lambda: make("qed", {"linear": {"zero": 1.0, "one": 1.0}}), ValueError, "differ")
    refused(lambda: make({"substructures": {"smarts": ["C("]}}), ValueError, "C\\(")
    refused(lambda: make({"substructures": {"smarts": ["[" * 100]}}), ValueError, "at most")
    refused(lambda: make({"synthetic_accessibility": {"table": str(tmp_path / "none")}}), OSError, "none")
    refused(lambda: gfn.Factor(3), TypeError, "Factor.property")
    refused(lambda: gfn.MoleculeReward("qed"), ValueError, "constant")
    refused(lambda: make("log_p").log_scores(["O"]), (ValueError, FloatingPointError), "log_p.*shape")
    refused(lambda: make("qed").properties(["CCO", "C1CC"]), ValueError, "row 1 of molecules")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib is newer")
def test_a_score_is_read_from_a_file(tmp_path):
    path = tmp_path / "score.toml"
    path.write_text(
        '[[factors]]\nproperty = "qed"\npower = 2.0\n\n[[factors]]\nproperty = { similarity = { to = "CCO" } '
        '}\n'
    )
    assert gfn.MoleculeScore.read(path) == gfn.MoleculeScore(
        [gfn.Factor("qed", power=2.0), gfn.Factor({"similarity": {"to": "CCO"}})]
    )
    path.write_text("factor = 1")
    refused(lambda: gfn.MoleculeScore.read(path), ValueError, "factors")


def test_the_best_are_ranked_once_each_and_written(tmp_path):
    score = gfn.MoleculeScore([gfn.Factor("qed")])
    rows = [*SMILES, "OCC", "Cc1ccccc1C"]
    ranking = gfn.Ranking(rows, score.log_scores(rows), score)
    assert len(ranking) == 6 and ranking.log_scores.tolist() == sorted(ranking.log_scores, reverse=True)
    assert np.allclose(np.log(ranking.columns["qed"]), ranking.log_scores)
    text = repr(ranking)
    assert text.startswith("Ranking of 6 molecules") and text.endswith(ranking.csv().rstrip())
    many = gfn.Ranking(["C" * n for n in range(1, 15)], -np.arange(14.0))
    assert repr(many).splitlines()[1:12] == many.csv().splitlines()[:11] and "and 4 more" in repr(many)
    frame = ranking.frame()
    assert list(frame) == ["smiles", "log_score", "qed"] and frame["smiles"].tolist() == ranking.smiles
    assert ranking.best(2).smiles == ranking.smiles[:2] and len(ranking.diverse(9, 0.01)) < 6
    # Aspirin and xylene have the same scaffold, and ethanol has no scaffold.
    assert len(ranking.best_per_scaffold()) == 5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ranking.write(tmp_path / "out", "best", shown=3)
    table = (tmp_path / "out" / "molecules.csv").read_text()
    assert table == ranking.csv() and table.startswith("smiles,log_score,qed\n") and table.count("\n") == 7
    assert (tmp_path / "out" / "molecules.svg").read_text().startswith("<svg")
    from rdkit import Chem

    read = list(Chem.SDMolSupplier(str(tmp_path / "out" / "molecules.sdf")))
    assert [Chem.MolToSmiles(molecule) for molecule in read] == [
        Chem.CanonSmiles(text) for text in ranking.smiles
    ]
    assert [float(molecule.GetProp("qed")) for molecule in read] == ranking.columns["qed"].tolist()
    assert [float(molecule.GetProp("log_score")) for molecule in read] == ranking.log_scores.tolist()
    assert ranking.sdf() == (tmp_path / "out" / "molecules.sdf").read_text()
    html = ranking._repr_html_()
    assert html.count("<svg") == 6 and "<th>qed</th>" in html and ranking.svg().startswith("<svg")


def test_bad_rankings_are_refused():
    refused(lambda: gfn.Ranking(["CCO"], [1.0, 2.0]), ValueError, "log_scores")
    refused(lambda: gfn.Ranking(["CCO"], [1.0], {"more": [1.0, 2.0]}), ValueError, "more")
    refused(lambda: gfn.Ranking(["CCO"], [float("nan")]), (ValueError, FloatingPointError), "row 0")
    refused(lambda: gfn.Ranking(["CC("], [1.0]), ValueError, "row 0")
    refused(lambda: gfn.Ranking("CCO", [1.0]), TypeError, "list")
    refused(lambda: gfn.Ranking(["CCO"], [1.0]).diverse(1, 0.0), ValueError, "similarity")
