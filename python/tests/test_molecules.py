"""Tests of molecules in Python: lists of SMILES, input that is refused or loses information, and pictures."""

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
    assert all(exact.states.smiles[1:]) and all(
        molecule.GetNumAtoms() for molecule in exact.states.rdkit()[1:]
    )
    assert exact.states._repr_svg_().startswith("<svg")
    start = trainer(gfn.Fragments(1)).exact().states
    assert start.smiles[0] == "" and start.rdkit()[0] is None


def test_a_bad_row_is_named_with_its_text_and_why():
    it = trainer()
    rows = ["CCO"] * 500 + ["OB(O)C", "C[Cl+]C", "C1CC", "C.C", "C" * 10]
    refused(
        lambda: it.evaluate_on(rows),
        ValueError,
        r"5 of 505 rows of objects .*row 500, .OB\(O\)C.: .*atom B of charge 0, but .* are C, N, O",
    )
    refused(
        lambda: it.evaluate_on(rows),
        ValueError,
        r"row 501, .*atom Cl of charge 1, but .* that charge.*; row 502, .*; and 2 more rows",
    )
    refused(lambda: it.evaluate_on(rows[-1:]), ValueError, "10 heavy atoms, but .* at most 9")
    small = gfn.Molecules(9, max_rings=0, max_bond_order=2)
    assert "it has 1 rings, but the environment builds at most 0" in small.refusals(["C1CC1"])[0]
    assert "order 3, but the highest order of the environment is 2" in small.refusals(["C#N"])[0]
    assert "a ring of more than 4 atoms" in gfn.Molecules(9, max_ring_size=4).refusals(["C1CCCC1"])[0]
    assert "and valence 5, but the environment has the valences [3, 5]" in ENV.refusals(["C[PH2]=O"])[0]


def test_rows_can_be_looked_at_before():
    rows = ["CCO", "OB(O)C", "CCN ethylamine", "", "c1ccccc1"]
    mask, reasons = ENV.accepts(rows), ENV.refusals(rows)
    assert mask.dtype == bool and mask.tolist() == [True, False, True, False, True]
    assert sorted(reasons) == [1, 3] and "B" in reasons[1]
    assert trainer().evaluate_on([row for row, fits in zip(rows, mask) if fits], paths=1).log_probs.shape == (
        3,
    )
    refused(lambda: gfn.HyperGrid(2, 3)._env.refusals(["C"]), TypeError, "doesn't build molecules")
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
    with pytest.warns(
        UserWarning,
        match=r"row 1 of objects, .C\[C@H\]\(N\)O.: it and 1 others lost marks of stereochemistry",
    ):
        it.evaluate_on(["CCO", "C[C@H](N)O", "C/C=C/C"], paths=1)
    with pytest.warns(UserWarning, match="stereochemistry"):
        trainer(sources=[gfn.Data(["C[C@H](N)O"])])
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
    refused(
        lambda: gfn.Fragments(2, tmp_path / "library"),
        ValueError,
        "line 3: .*; line 5: Cl has no atom .*; line 6: .* first in line 4; expected a SMILES",
    )


def test_pictures_show_molecules():
    states = trainer(gfn.Molecules(1, elements=["N"], charges=False)).exact().states
    picture = states.svg()
    # Ammonia must be drawn as a formula. No node must be drawn as a circle, as in pictures of graphs.
    assert ">NH₃<" in picture and "<circle" not in picture
    assert "mine" in states.svg(captions=["start", "mine"])
    benzene = (
        gfn.Trainer(gfn.Fragments(1), gfn.MoleculeReward("constant"), gfn.Uniform(), batch=4).exact().states
    )
    assert ">c1ccccc1<" in benzene.svg() and benzene._repr_svg_().startswith("<svg")


def test_growth_from_a_scaffold_by_marks_or_by_numbers():
    settings = dict(elements=["C", "O"], charges=False)
    marked = gfn.Molecules(8, scaffold="c1cc([*:1])ccc1[*:2]", **settings)
    numbered = gfn.Molecules(8, scaffold="c1ccccc1", attachments=[0, 3], **settings)
    apart = gfn.Molecules(8, scaffold="c1ccccc1", attachments=[0, 3], told_apart=True, **settings)
    # Growth adds no atom, one atom, or two atoms to the scaffold. Two atoms are added at the same scaffold
    # atom or at two scaffold atoms. Bonds may be single or double, but not triple.
    exact = [trainer(env).exact() for env in (marked, numbered, apart)]
    smiles = [sorted(it.states.smiles) for it in exact]
    assert smiles[0] == smiles[1] and len(smiles[2]) > len(smiles[0]) == len(set(smiles[0]))
    assert all(molecule.HasSubstructMatch(exact[0].states.rdkit()[0]) for molecule in exact[0].states.rdkit())
    assert smiles[0][0] and "c1ccccc1" in smiles[0]
    refused(lambda: gfn.Molecules(8, scaffold="c1ccccc1"), ValueError, r"no attachment point.*\[\*:1\]")
    refused(lambda: gfn.Molecules(6, scaffold="c1ccccc1*"), ValueError, "6 atoms, although `max_atoms` is 6")
    refused(lambda: gfn.Molecules(8, attachments=[0]), ValueError, "None if there is no scaffold")
    refused(
        lambda: marked._env.refusals(["C"])[0] and trainer(marked).evaluate_on(["C"]),
        ValueError,
        "without a scaffold",
    )


# The following tests are about stereoisomers.

SMALL = dict(max_atoms=4, elements=["C", "O", "F"], charges=False, max_rings=0)


def canonical(smiles):
    from rdkit import Chem

    return Chem.CanonSmiles(smiles)


def test_with_stereo_each_object_is_one_stereoisomer_and_all_of_rdkit_s_are_there():
    from rdkit import Chem
    from rdkit.Chem.EnumerateStereoisomers import EnumerateStereoisomers

    def finished(env):
        exact = trainer(env).exact()
        rows = np.flatnonzero(np.isfinite(exact.log_rewards))
        return [canonical(smiles) for smiles in exact.states[rows].smiles], exact.target[rows]

    (flat, _), (marked, target) = finished(gfn.Molecules(**SMALL)), finished(
        gfn.Molecules(**SMALL, stereo=True)
    )
    isomers = [
        Chem.MolToSmiles(isomer)
        for smiles in flat
        for isomer in EnumerateStereoisomers(Chem.MolFromSmiles(smiles))
    ]
    assert sorted(marked) == sorted(set(isomers)) and len(marked) > len(flat)
    assert {canonical(f"F/C=C{bond}F") for bond in "/\\"} | {
        canonical(f"C[C{sign}H](O)F") for sign in ("@", "@@")
    } <= set(marked)
    assert target == pytest.approx(np.full(len(marked), 1 / len(marked)))
    assert not any(mark in smiles for smiles in flat for mark in "@/\\")


def test_smiles_keep_their_marks_where_states_have_some():
    env = gfn.Molecules(9, stereo=True)
    rows = [
        "C[C@H](N)O",
        "C[C@@H](N)O alanine's alcohol",
        "N[C@@H](C)O",
        "C/C=C/C",
        "CC(N)O",
        "C[C@H](C)O",
        "FC=CF",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert env.accepts(rows).tolist() == [True] * 4 + [False, True, False]
        one, other, same = env.keys(rows[:3])
        tested = trainer(env).evaluate_on(rows[:4], paths=3)
    assert one == same != other and np.isfinite(tested.log_probs).all()
    refused(
        lambda: trainer(env).evaluate_on(rows),
        ValueError,
        "row 4, .CC.N.O.: a molecule is .*, which is 2 stereoisomers, expected a single stereoisomer",
    )
    # Molecules that are written as SMILES and read again must be unchanged.
    graphs = trainer(env, seed=3).sample(200)
    assert sum("@" in smiles for smiles in graphs.smiles) > 50
    assert env.keys(graphs.smiles) == env.keys(graphs) and [canonical(smiles) for smiles in graphs.smiles]
    assert not any("@" in smiles for smiles in trainer(gfn.Molecules(9), seed=3).sample(200).smiles)


def test_stereo_is_kept_by_pickles_and_checkpoints_and_left_out_where_it_is_off(tmp_path):
    import pickle

    env = gfn.Molecules(**SMALL, stereo=True)
    make = lambda env: gfn.Trainer(env, gfn.MoleculeReward(), gfn.GraphNet(embedding=8), batch=8)
    it = make(env).fit(2)
    it.save(tmp_path / "run")
    graphs = it.exact().states
    again, read = pickle.loads(pickle.dumps((env, graphs)))
    assert (
        again == env != gfn.Molecules(**SMALL)
        and read == graphs
        and read.smiles == graphs.smiles
        and any("@" in smiles for smiles in read.smiles)
    )
    assert gfn.load(tmp_path / "run").env == env
    assert (
        make(env).resume(tmp_path / "run").sample(20).smiles
        == make(again).resume(tmp_path / "run").sample(20).smiles
    )
    refused(lambda: make(gfn.Molecules(**SMALL)).resume(tmp_path / "run"), ValueError, "description|run")
    # Without `stereo` and `scaffold`, the environment's description in a checkpoint must not contain these
    # settings, so that older checkpoints can be resumed.
    assert env._values()["stereo"] and not {"stereo", "scaffold"} & set(gfn.Molecules(3)._values())


# The following tests are about data sets of molecules.


def test_fragments_of_data_are_a_library(tmp_path):
    import pickle

    smiles = ["Cc1ccccc1", "Cc1ccc(CN)cc1", "OC1CC1", "CCO"]
    env = gfn.Fragments.from_data(smiles, 3)
    assert env.library[:2] == ("C 0", "c1ccccc1 0,1,2,3,4,5") and len(env.library) == 5
    assert gfn.Fragments.from_data(smiles, 3, n=2) == gfn.Fragments(3, ["C 0", "c1ccccc1 0,1,2,3,4,5"]) != env
    (tmp_path / "library").write_text("\n".join(env.library))
    assert gfn.Fragments(3, tmp_path / "library") == env == pickle.loads(pickle.dumps(env))
    # The settings in a checkpoint must contain the unchanged text of the file of fragments.
    (tmp_path / "ended").write_text("# pieces\nC 0\n")
    assert gfn.Fragments(3, tmp_path / "ended")._values()["library"] == "# pieces\nC 0\n"
    make = lambda: gfn.Trainer(env, gfn.MoleculeReward("constant"), gfn.GraphNet(embedding=8), batch=8)
    make().fit(2).save(tmp_path / "run")
    assert gfn.load(tmp_path / "run").env == env and make().resume(tmp_path / "run").steps_done == 2
    reasons = gfn.Fragments(2, env.library).refusals([*smiles, "C1"])
    assert sorted(reasons) == [1, 3, 4] and env.accepts(smiles).tolist() == [True, True, True, False]
    assert "of which no tree of at most 2 fragments was found" in reasons[1]
    assert "CCO, which isn't a tree of fragments of the library" in reasons[3]
    with pytest.warns(
        UserWarning, match="row 1 of molecules, .C.C@H..O.c1ccccc1.: it lost marks of stereochemistry"
    ):
        gfn.Fragments.from_data(["Cc1ccccc1", "C[C@H](O)c1ccccc1"], 3)
    refused(lambda: gfn.Fragments.from_data(["CCO"], 3), ValueError, "a library of fragments is 0")
    refused(
        lambda: gfn.Fragments.from_data(["CCO", "C1"], 3),
        ValueError,
        "1 of 2 rows of molecules .*read_molecules.*: row 1, .C1.",
    )
    refused(lambda: gfn.Fragments.from_data("CCO", 3), TypeError, "a list of SMILES")
    refused(lambda: gfn.Fragments.from_data(smiles, 3, n=0), ValueError, "n is 0")
    refused(lambda: gfn.Fragments(3, ["C 0", 1]), TypeError, "library")
    refused(lambda: gfn.Fragments(3, ["C 0", "C 1"]), ValueError, "line 2")


PIECES = ["c1ccccc1 0,1,2,3,4,5", "N 0,0", "C 0,0", "CC 0,1", "O 0,0"]


def test_a_molecule_is_all_its_trees():
    env = gfn.Fragments(3, PIECES)
    smiles = ["CCCN", "Cc1ccccc1", "CCN"]
    graphs, molecule = env.trees(smiles)
    # A tree has at most three fragments here, so propylamine can't be a tree of C, C, C and N. Propylamine
    # has two trees of N, C and CC: the fragment CC is joined to N, or it is the end of the chain and C is
    # joined to N.
    assert molecule.tolist() == [0, 0, 1, 2, 2] and len(set(env.keys(graphs))) == 5
    assert [canonical(text) for text in graphs.smiles] == [canonical(smiles[row]) for row in molecule]
    assert env.trees(smiles, most=1).molecule.tolist() == [0, 1, 2]
    # The list of trees of fragments must be complete: the environment must have no other state that is
    # propylamine.
    states = trainer(env).exact().states
    assert sum(canonical(text) == canonical("CCCN") for text in states.smiles if text) == 2
    assert len(trainer(env).evaluate_on(graphs, paths=2)) == 5
    refused(
        lambda: env.trees(["CCF"]),
        ValueError,
        "row 0, .CCF.: a molecule is .*, which isn't a tree of fragments of the library",
    )
    refused(
        lambda: trainer(env).evaluate_on(smiles),
        ValueError,
        "expected Graphs of fragments, because a molecule may have several trees",
    )


def test_fragments_learn_from_molecules_and_are_tuned_to_a_reward():
    """Trains a prior on a data set of molecules: all molecules must be equally probable, regardless of their
    number of trees of fragments. Then fine-tunes the prior: the target must be the prior times the reward."""
    import copy

    env, smiles = gfn.Fragments(3, PIECES), [
        "CCCN",
        "CCCN",
        "Cc1ccc(C)cc1",
        "NCN",
        "CCO",
        "c1ccccc1-c1ccccc1",
        "OCc1ccccc1",
        "NC",
    ]
    polar = gfn.MoleculeScore([gfn.Factor("heteroatom_share", "exponential", 3.0)])
    settings = dict(batch=64, adam=gfn.Adam(lr=5e-3, schedule=gfn.Linear(1, 0, 200)))
    net = gfn.GraphNet(layers=2, embedding=32, backward="uniform")
    cloned = gfn.Trainer(
        env,
        gfn.MoleculeReward(polar),
        net,
        gfn.MaximumLikelihood(),
        sources=[gfn.Data(smiles, share=1.0)],
        **settings,
    )
    before = shares(cloned, smiles)
    after = shares(cloned.fit(200), smiles)
    assert after == pytest.approx([2 / 8] + [1 / 8] * 6, abs=0.04) and sum(before) < 0.1
    # As a control, the data set has trees of fragments instead of molecules. Here propylamine must count
    # twice, because it has two trees.
    trees = gfn.Trainer(
        env,
        gfn.MoleculeReward(polar),
        net,
        gfn.MaximumLikelihood(),
        sources=[gfn.Data(env.trees(smiles).graphs, share=1.0)],
        **settings,
    )
    assert shares(trees.fit(200), smiles)[0] > 0.3
    objective = gfn.RelativeTrajectoryBalance(cloned)
    tuned = gfn.Trainer(env, gfn.MoleculeReward(polar), copy.deepcopy(cloned.network), objective, **settings)
    untuned = tuned.exact().tv
    assert tuned.fit(200).exact().tv < 0.05 < 0.15 < untuned


def shares(it, smiles):
    """Returns the exact probability of each distinct molecule, summed over the trees of fragments that are
    this molecule."""
    exact = it.exact()
    texts = np.array([canonical(text) if text else "" for text in exact.states.smiles])
    return [exact.probs[texts == canonical(text)].sum() for text in dict.fromkeys(smiles)]


def test_conditions_of_molecules_that_are_several_trees_go_with_them():
    env = gfn.Fragments(3, PIECES)
    reward = lambda graphs, conditions: conditions[:, 0].double().numpy() * np.array(
        ["N" in smiles for smiles in graphs.smiles]
    )
    conditions = lambda n, rng: rng.uniform(size=(n, 1))
    of_rows = np.array([[0.25], [0.75]])
    it = gfn.Trainer(
        env,
        reward,
        gfn.GraphNet(embedding=8),
        batch=8,
        conditions=gfn.Conditions(conditions, 1),
        sources=[gfn.Data(["CCCN", "CCO"], 1.0, conditions=of_rows)],
    )
    assert set(it.batch().log_rewards.tolist()) == {0.25, 0.0}


def test_files_and_lists_of_molecules_are_read_with_a_report(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(
        "smiles,name\nCCO,ethanol\n[Na+].CC(=O)[O-],a salt\n\nC[C@H](N)O,x\nC1CC,open\n[Pt],metal\n"
    )
    smiles, report, rows = gfn.read_molecules(path)
    assert [canonical(text) for text in smiles] == [
        canonical(text) for text in ("CCO", "CC(=O)O", "C[C@H](N)O")
    ]
    assert report.startswith(
        "3 molecules read (1 without smaller parts, 1 neutralised); 2 lines skipped; 1 with an element"
    )
    assert 'line 1, "smiles"' not in report and 'line 6, "C1CC"' in report
    assert gfn.read_molecules(str(path)) == (smiles, report, rows)
    assert gfn.read_molecules(path, cleanup=False).smiles == [smiles[0], smiles[2]]
    assert gfn.read_molecules(np.array(["CCO ethanol", "[2H]O"])).smiles == ["CCO", "O"]
    ranking = gfn.Ranking(smiles, np.arange(3.0))
    (tmp_path / "data.sdf").write_text(ranking.sdf())
    # The stereochemistry of SD files isn't read. The report must mention this.
    of_sd = gfn.read_molecules(tmp_path / "data.sdf")
    assert (
        sorted(of_sd.smiles) == ["CC(=O)O", "CC(N)O", "CCO"]
        and "(1 without some of their stereochemistry)" in of_sd.report
    )
    refused(lambda: gfn.read_molecules(tmp_path / "nowhere.csv"), FileNotFoundError, "nowhere|No such file")
    refused(
        lambda: gfn.read_molecules(path, cleanup="no"), TypeError, "cleanup is 'no': expected True or False"
    )
    refused(lambda: gfn.read_molecules([1.0]), TypeError, "a float in row 0")


ZINC = 'smiles,logP\n"CC(C)(C)c1ccccc1\n",5.05\n"CCO\n",3.11\n'
CHEMBL = '"Molecule ChEMBL ID";"Name";"Smiles"\n"CHEMBL1";"";"CC(C)(C)c1ccccc1"\n"CHEMBL2";"a;b";"CCO"\n'
TABLES = [
    ZINC,
    CHEMBL,
    ",smiles,y\n0,CC(C)(C)c1ccccc1,1\n1,CCO,2\n",
    "id\tcanonical_smiles\n1\tCC(C)(C)c1ccccc1\n2\tCCO\n",
]


@pytest.mark.parametrize("text", TABLES)
@pytest.mark.parametrize("packed", [False, True])
def test_tables_are_read_by_their_column(tmp_path, text, packed):
    import gzip

    path = tmp_path / ("table.csv.gz" if packed else "table.csv")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode("utf-8-sig"))
    smiles, report, rows = gfn.read_molecules(path)
    assert [canonical(text) for text in smiles] == [canonical(text) for text in ("CC(C)(C)c1ccccc1", "CCO")]
    assert report == "2 molecules read; 0 lines skipped"


def test_a_column_is_chosen_by_name_and_nothing_read_is_an_error(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("id;structure;product\n1;CCO;CCN\n")
    assert gfn.read_molecules(path, column="product").smiles == gfn.read_molecules(["CCN"]).smiles
    refused(
        lambda: gfn.read_molecules(path),
        ValueError,
        "table.csv: none of its 2 lines or records is read as a molecule; line 1, .id.: .*`column` names",
    )
    refused(
        lambda: gfn.read_molecules(path, column="smiles"),
        ValueError,
        "the file has no column .smiles.: line 1 is .id;structure;product",
    )
    refused(lambda: gfn.read_molecules(path, column=1), TypeError, "column is 1")
    for nothing in ([], ["[Pt]"], ["smiles"]):
        refused(lambda: gfn.read_molecules(nothing), ValueError, "molecule")
    (tmp_path / "book.xlsx").write_bytes(b"PK\x03\x04CCO")
    refused(
        lambda: gfn.read_molecules(tmp_path / "book.xlsx"),
        ValueError,
        "is a zip archive, such as a workbook .*unpack the file",
    )


def test_spellings_of_other_programs_are_read_and_compared():
    ours = lambda text, cleanup=False: gfn.read_molecules([text], cleanup).smiles[0]
    for text, same in [
        ("[H]C([H])([H])N(=O)=O", "C[N+](=O)[O-]"),
        ("CN=N#N", "CN=[N+]=[N-]"),
        ("[H][C@](F)(Cl)Br", "F[C@@H](Cl)Br"),
        ("c1ccccc#1", "C1=CC#CC=C1"),
    ]:
        assert ours(text) == ours(same)
    assert ours("[2H]C([2H])([2H])Oc1ccccc1", True) == ours("COc1ccccc1")
    assert ours("[O-][N+](=O)[O-].[Na+]", True) == ours("O[N+](=O)[O-]")
    brics = gfn.Molecules(8, elements=["C"], charges=False, scaffold="[14*]c1nnc(N)o1")
    marked = gfn.Molecules(8, elements=["C"], charges=False, scaffold="[*:1]c1nnc(N)o1")
    assert brics.keys(brics.initial(1)) == marked.keys(marked.initial(1))
