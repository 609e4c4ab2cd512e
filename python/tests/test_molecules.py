"""Molecules at the border: lists of SMILES, what is refused and what is lost, and pictures."""

import warnings

import gfn_rs as gfn
import numpy as np
import pytest
from refusals import refused

ENV = gfn.Molecules(9)


def trainer(env=ENV, **more):
    return gfn.Trainer(env, gfn.MoleculeReward("constant"), gfn.Uniform(), batch=4, **more)


def test_all_states_have_smiles_the_start_an_empty_one():
    exact = trainer(gfn.Molecules(2, elements=["C", "O"], charges=False)).exact()
    assert exact.states.smiles[0] == "" and exact.states.rdkit()[0] is None
    assert all(exact.states.smiles[1:]) and all(molecule.GetNumAtoms() for molecule in exact.states.rdkit()[1:])
    assert exact.states._repr_svg_().startswith("<svg")
    start = trainer(gfn.Fragments(1)).exact().states
    assert start.smiles[0] == "" and start.rdkit()[0] is None


def test_a_bad_row_is_named_with_its_text_and_why():
    it = trainer()
    rows = ["CCO"] * 500 + ["OB(O)C", "C[Cl+]C", "C1CC", "C.C", "C" * 10]
    refused(lambda: it.evaluate_on(rows), ValueError, r"5 of 505 rows of objects .*row 500, .OB\(O\)C.: .*atom B of charge 0: the elements are C, N, O")
    refused(lambda: it.evaluate_on(rows), ValueError, r"row 501, .*atom Cl of charge 1: that charge .*; row 502, .*; and 2 rows more")
    refused(lambda: it.evaluate_on(rows[-1:]), ValueError, "of 10 heavy atoms: at most 9")
    small = gfn.Molecules(9, max_rings=0, max_bond_order=2)
    assert "of 1 rings: at most 0 are built" in small.refusals(["C1CC1"])[0]
    assert "with a bond of order 3: the highest is 2" in small.refusals(["C#N"])[0]
    assert "with a ring of more than 4 atoms" in gfn.Molecules(9, max_ring_size=4).refusals(["C1CCCC1"])[0]
    assert "of charge 0 and valence 5: it has [3, 5]" in ENV.refusals(["C[PH2]=O"])[0]


def test_rows_can_be_looked_at_before():
    rows = ["CCO", "OB(O)C", "CCN ethylamine", "", "c1ccccc1"]
    mask, reasons = ENV.accepts(rows), ENV.refusals(rows)
    assert mask.dtype == bool and mask.tolist() == [True, False, True, False, True]
    assert sorted(reasons) == [1, 3] and "B" in reasons[1]
    assert trainer().evaluate_on([row for row, fits in zip(rows, mask) if fits], paths=1).log_probs.shape == (3,)
    refused(lambda: gfn.HyperGrid(2, 3)._env.refusals(["C"]), TypeError, "no molecules")
    for wrong in ("CCO", 3, [3], [b"C"]):
        refused(lambda: ENV.accepts(wrong), TypeError, "expected Graphs, or a list of SMILES")
    assert trainer().evaluate_on(np.asarray(["CCO"]), paths=1).log_probs.shape == (1,)


def test_molecules_of_rdkit_are_read():
    from rdkit import Chem

    rows = [Chem.MolFromSmiles(text) for text in ("OCC", "c1ccncc1")]
    assert ENV.accepts(rows).all()
    assert np.allclose(trainer().evaluate_on(rows, paths=1).log_rewards, 0.0)


def test_lost_stereochemistry_is_said(tmp_path):
    it = trainer()
    with pytest.warns(UserWarning, match=r"row 1 of objects, .C\[C@H\]\(N\)O.: it and 1 others lost marks of stereochemistry"):
        it.evaluate_on(["CCO", "C[C@H](N)O", "C/C=C/C"], paths=1)
    with pytest.warns(UserWarning, match="stereochemistry"):
        trainer(data=gfn.Data(["C[C@H](N)O"]))
    (tmp_path / "flat").write_text("C 0\nO 0,0\n")
    (tmp_path / "marked").write_text("C 0\nC[C@H](N)O 0\n")
    with pytest.warns(UserWarning, match="fragment"):
        gfn.Fragments(2, tmp_path / "marked")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        it.evaluate_on(["CCO", "CC=CC"], paths=1)
        gfn.Fragments(2, tmp_path / "flat")


def test_all_lines_of_a_library_that_are_wrong_are_named(tmp_path):
    (tmp_path / "library").write_text("C 0\n\nC1 0\nCC 0,1\nCl 1\nCC 1,0\n")
    refused(lambda: gfn.Fragments(2, tmp_path / "library"), ValueError, "line 3: .*; line 5: Cl has 1 atoms.*; line 6: .* is that of line 4; expected SMILES")


def test_pictures_show_molecules():
    states = trainer(gfn.Molecules(1, elements=["N"], charges=False)).exact().states
    picture = states.svg()
    # Ammonia by its letters; no node in a circle.
    assert all(f">{letter}<" in picture for letter in ("N", "H", "3")) and "<circle" not in picture
    assert "mine" in states.svg(captions=["start", "mine"])
    benzene = gfn.Trainer(gfn.Fragments(1), gfn.MoleculeReward("constant"), gfn.Uniform(), batch=4).exact().states
    assert ">c1ccccc1<" in benzene.svg() and benzene._repr_svg_().startswith("<svg")


def test_growth_from_a_scaffold_by_marks_or_by_numbers():
    settings = dict(elements=["C", "O"], charges=False)
    marked = gfn.Molecules(8, scaffold="c1cc([*:1])ccc1[*:2]", **settings)
    numbered = gfn.Molecules(8, scaffold="c1ccccc1", attachments=[0, 3], **settings)
    apart = gfn.Molecules(8, scaffold="c1ccccc1", attachments=[0, 3], told_apart=True, **settings)
    # Nothing, one atom, or two that may be on one place (with a single or a double bond, and never three on one) or on two.
    exact = [trainer(env).exact() for env in (marked, numbered, apart)]
    smiles = [sorted(it.states.smiles) for it in exact]
    assert smiles[0] == smiles[1] and len(smiles[2]) > len(smiles[0]) == len(set(smiles[0]))
    assert all(molecule.HasSubstructMatch(exact[0].states.rdkit()[0]) for molecule in exact[0].states.rdkit())
    assert smiles[0][0] and "c1ccccc1" in smiles[0]
    refused(lambda: gfn.Molecules(8, scaffold="c1ccccc1"), ValueError, "has no stem")
    refused(lambda: gfn.Molecules(6, scaffold="c1ccccc1*"), ValueError, "of 6 atoms, where 6 may be")
    refused(lambda: gfn.Molecules(8, attachments=[0]), ValueError, "none without a scaffold")
    refused(lambda: marked._env.refusals(["C"])[0] and trainer(marked).evaluate_on(["C"]), ValueError, "without a scaffold")
