"""Tests of what chemists do: molecules of RDKit as scaffolds and states, columns with empty cells, rules
given by SMARTS, and comparisons with known molecules."""

from dataclasses import replace
from pathlib import Path

import gfn_rs as gfn
import numpy as np
import pytest
from refusals import refused

Chem = pytest.importorskip("rdkit.Chem")
pandas = pytest.importorskip("pandas")

CSV = Path(__file__).resolve().parent.parent / "examples" / "notebooks" / "molecules.csv"
SMALL = dict(elements=["C", "O"], charges=False)


def canonical(smiles):
    return [Chem.CanonSmiles(text) for text in smiles]


def exact(env):
    return gfn.Trainer(env, gfn.MoleculeReward("constant"), gfn.Uniform(), batch=8).exact()


@pytest.mark.parametrize("marks", ["[*:1]c1ccc([*:2])cc1", "*c1ccc(*)cc1", "[14*]c1ccc([3*])cc1"])
def test_a_molecule_of_rdkit_is_a_scaffold(marks):
    text = gfn.Molecules(8, scaffold=marks, **SMALL)
    molecule = gfn.Molecules(8, scaffold=Chem.MolFromSmiles(marks), **SMALL)
    assert sorted(exact(molecule).states.smiles) == sorted(exact(text).states.smiles)
    assert type(molecule.scaffold) is str and replace(molecule) == molecule


def test_attachments_are_the_atoms_of_the_molecule():
    # RDKit writes this molecule from another atom on, so the numbers of atoms in its SMILES are other ones.
    toluene = Chem.MolFromSmiles("c1ccccc1C")
    settings = dict(max_atoms=8, **SMALL)
    grown = exact(gfn.Molecules(scaffold=toluene, attachments=[6], **settings)).states.smiles
    ring = exact(gfn.Molecules(scaffold=toluene, attachments=[2], **settings)).states.smiles
    assert set(canonical(grown)) == {"Cc1ccccc1", "CCc1ccccc1", "OCc1ccccc1"}
    assert set(canonical(ring)) == {"Cc1ccccc1", "Cc1ccc(C)cc1", "Cc1ccc(O)cc1"}
    with_hydrogens = gfn.Molecules(scaffold=Chem.AddHs(toluene), attachments=[6], **settings)
    assert sorted(exact(with_hydrogens).states.smiles) == sorted(grown)
    refused(
        lambda: gfn.Molecules(scaffold=toluene, attachments=[9], **settings),
        ValueError,
        "attachments has 9: expected indices of heavy atoms",
    )
    refused(
        lambda: gfn.Molecules(scaffold=toluene, **settings),
        ValueError,
        r"scaffold is Cc1ccccc1, which has no attachment point, expected \[\*:1\] at each atom",
    )
    refused(
        lambda: gfn.Molecules(8, scaffold=3), TypeError, "scaffold is a int: expected a SMILES, a molecule"
    )


def test_decorations_of_a_scaffold_are_those_of_a_list():
    """Compares the molecules that grow on meta places of benzene with a list, which is written by hand: two
    places for at most two atoms in total."""
    groups = {0: ["[H]"], 1: ["C", "N", "O"]}
    groups[2] = "CC C=C C#C CN C=N C#N CO C=O NC NN N=N NO N=O OC ON OO N=C".split()
    listed = {
        Chem.CanonSmiles(f"c1cc({one})cc({other})c1")
        for n in range(3)
        for m in range(3 - n)
        for one in groups[n]
        for other in groups[m]
    }
    scaffold = Chem.MolFromSmiles("*c1cccc(*)c1")
    env = gfn.Molecules(8, elements=["C", "N", "O"], charges=False, scaffold=scaffold)
    grown = exact(env)
    assert set(canonical(grown.states.smiles)) == listed and len(listed) == 27
    assert grown.log_z == pytest.approx(np.log(27))


@pytest.mark.parametrize("given", [list, lambda smiles: [Chem.MolFromSmiles(text) for text in smiles]])
def test_molecules_are_states_and_states_are_the_molecules(given):
    smiles = ["CCO", "c1ccncc1", "CC(=O)Nc1ccccc1", "C[N+](=O)[O-]", "OCC#N"]
    env = gfn.Molecules(12)
    states = env.states(given(smiles))
    assert canonical(states.smiles) == canonical(smiles)
    moves = env.moves(states)
    assert set(moves.state.tolist()) == set(range(5))
    after = env.apply(states, moves)
    assert env.keys(after) == env.keys(
        env.step(states[moves.state], replace(moves, state=np.arange(len(moves)))).states
    )
    # Each result is a molecule that RDKit reads, too, and has one part more than its state or is its end.
    assert all(canonical(after.smiles)) and len(set(after.smiles)) > 20
    pieces = gfn.Fragments.from_data(["Cc1ccccc1", "Oc1ccccc1"], 3)
    assert canonical(pieces.states(given(["Cc1ccccc1O"])).smiles) == ["Cc1ccccc1O"]
    refused(lambda: env.states(["CCO", "[Pt]"]), ValueError, "1 of 2 rows of molecules.*`accepts`.*row 1")


def test_empty_cells_of_a_column_are_no_molecules():
    frame = pandas.DataFrame({"smiles": ["CCO", None, np.nan, pandas.NA, "", "CCN"]})
    env = gfn.Molecules(5)
    for column in (frame["smiles"], frame["smiles"].tolist(), tuple(frame["smiles"]), frame["smiles"].array):
        assert env.accepts(column).tolist() == [True, False, False, False, False, True]
        assert set(env.refusals(column)) == {1, 2, 3, 4}
        smiles, report, rows = gfn.read_molecules(column)
        assert canonical(smiles) == ["CCO", "CCN"] and report.endswith("4 entries are empty")
        assert rows == [0, 5]
    assert "the entry is empty" in env.refusals(frame["smiles"])[1]
    assert gfn.read_molecules(np.array(["CCO"])).report == "1 molecule read; 0 lines skipped"
    refused(lambda: env.accepts([1.5]), TypeError, "has a float in row 0")
    empty = "has a NoneType in row 1, an empty cell: drop it, or use `read_molecules`"
    for call in (env.states, gfn.canonical_smiles, lambda it: gfn.Fragments.from_data(it, 3)):
        refused(lambda: call(["CCO", None]), TypeError, empty)
    refused(lambda: gfn.Ranking(["CCO", None], [0.0, 1.0]), TypeError, empty)
    refused(lambda: gfn.read_molecules(frame), TypeError, r"a data frame: .*frame\[\"smiles\"\]")
    env = gfn.Molecules(8, scaffold="c1ccc([*:1])cc1")
    for call in (env.accepts, env.refusals):
        refused(lambda: call(["Cc1ccccc1"]), ValueError, "an environment with a scaffold can't convert")


def test_molecules_that_are_read_are_joined_with_their_rows(tmp_path):
    names = [f"name {k}" for k in range(7)]
    texts = ["CCO", "[Pt]", "CCN", "C1CC", "CC[O-]\nC", "C", "N"]
    read = gfn.read_molecules(texts)
    assert read.rows == [0, 2, 4, 5, 6] and read.smiles[2] == "CCO"
    assert 'row 1, "[Pt]"' in read.report and 'row 3, "C1CC"' in read.report
    refused(
        lambda: gfn.read_molecules(["", "[Pt]"]), ValueError, "a list of 2 items, of which none .*row 1, .*Pt"
    )
    refused(lambda: gfn.read_molecules(texts, column="x"), ValueError, "column is 'x' for a list")
    # Quoted fields go over several lines, and empty lines are no rows, as in pandas.
    table = pandas.DataFrame({"name": names, "smiles": ["CCO\n", *texts[1:4], "CC", *texts[5:]]})
    path = tmp_path / "table.csv"
    path.write_text(table.to_csv(index=False).replace("name 2", "\nname 2"))
    rows = gfn.read_molecules(path).rows
    assert rows == [0, 2, 4, 5, 6] and pandas.read_csv(path)["name"].iloc[rows[1]] == "name 2"
    ranking = gfn.Ranking(["CCO", "CC", "C"], [0.0, 2.0, 1.0])
    (tmp_path / "some.sdf").write_text(ranking.sdf())
    assert gfn.read_molecules(tmp_path / "some.sdf").rows == [0, 1, 2]


def test_equal_molecules_have_equal_canonical_smiles():
    """Compares the library's canonical SMILES with those of RDKit, for a table of molecules that are written
    in several ways: two texts are equal in one program if and only if they are equal in the other."""
    smiles = pandas.read_csv(CSV)["smiles"].dropna()
    smiles = gfn.read_molecules(smiles).smiles
    written = [text for text in smiles for _ in range(2)]
    molecules = [Chem.MolFromSmiles(text) for text in written]
    texts = [Chem.MolToSmiles(molecule, doRandom=row % 2 == 1) for row, molecule in enumerate(molecules)]
    ours, theirs = gfn.canonical_smiles(texts), [Chem.MolToSmiles(molecule) for molecule in molecules]
    n = len(set(theirs))
    assert len(set(texts)) > n > 30 and len(set(ours)) == n == len(set(zip(ours, theirs)))
    assert gfn.canonical_smiles(molecules) == ours == gfn.canonical_smiles(ours)
    # RDKit's texts themselves differ, so they can't be compared with the library's texts.
    assert set(ours) != set(theirs)
    ranking = gfn.Ranking(smiles, np.zeros(len(smiles)))
    assert set(ranking.smiles) == set(ours)
    isomers = ["C[C@H](N)O", "C[C@@H](N)O", "CC(N)O"]
    assert len(set(gfn.canonical_smiles(isomers))) == 3
    assert len(set(gfn.canonical_smiles(isomers, stereo=False))) == 1
    env = gfn.Molecules(4, **SMALL)
    assert gfn.canonical_smiles(env.states(["OCC"])) == ["CCO"]
    refused(lambda: gfn.canonical_smiles(["CCO", "C1"]), ValueError, "row 1 of molecules")
    refused(lambda: gfn.canonical_smiles("CCO"), TypeError, "molecules is a str")


class Forbidden(gfn.GraphRules):
    """Rules that forbid all molecules with a substructure."""

    def __init__(self, env, smarts):
        self.env, self.pattern = env, Chem.MolFromSmarts(smarts)

    def _allowed(self, graphs):
        return np.array([m is None or not m.HasSubstructMatch(self.pattern) for m in graphs.rdkit()])

    def restrict(self, graphs, moves):
        return self._allowed(self.env.apply(graphs, moves))

    def is_reachable(self, graphs):
        return self._allowed(graphs)


@pytest.mark.parametrize("smarts", ["[#8]~[#8]", "[r3]", "C#C"])
def test_a_forbidden_substructure_has_probability_zero(smarts):
    free = gfn.Molecules(4, **SMALL)
    env = replace(free, rules=Forbidden(free, smarts))
    env.check(walks=20)
    pattern = Chem.MolFromSmarts(smarts)
    every, ruled = exact(free), exact(env)
    matches = lambda states: [m is not None and m.HasSubstructMatch(pattern) for m in states.rdkit()]
    # Without the rule a part of the probability is on forbidden molecules.
    assert every.target[matches(every.states)].sum() > 0.01
    assert not any(matches(ruled.states))
    allowed = {
        text
        for text, target, wrong in zip(every.states.smiles, every.target, matches(every.states))
        if target > 0 and not wrong
    }
    finished = ruled.target > 0
    assert {text for text, end in zip(ruled.states.smiles, finished) if end} == allowed
    assert ruled.log_z == pytest.approx(np.log(len(allowed)))
    assert ruled.of_objects.tv > 0.01


def test_a_dead_end_is_named_by_its_molecule():
    class NoPeroxides(gfn.GraphRules):
        pattern = Chem.MolFromSmarts("OO")

        def can_exit(self, graphs):
            return np.array([m is None or not m.HasSubstructMatch(self.pattern) for m in graphs.rdkit()])

    env = gfn.Molecules(3, **SMALL, rules=NoPeroxides())
    refused(
        lambda: exact(env),
        ValueError,
        r"allow one of them, or forbid the moves that lead to the state.*the rules leave \S*O\S* \(3 nodes.*"
        "without any move and without the exit",
    )
    free = gfn.Molecules(3, max_rings=0, **SMALL)
    rules = Forbidden(free, "OO")
    other = gfn.Molecules(3, elements=["C"], charges=False, max_rings=0)
    refused(
        lambda: exact(replace(free, rules=Forbidden(other, "OO"))),
        ValueError,
        "moves has add_first_node of nodes 0 and 0 in state 0, which isn't legal here: expected moves of an "
        "environment with the same settings",
    )
    # O=O has no single bond between oxygens, but it is built by way of OO, which is forbidden.
    built, every = exact(replace(free, rules=rules)).states.smiles, exact(free).states
    allowed = {
        text
        for text, m in zip(every.smiles, every.rdkit())
        if m is None or not m.HasSubstructMatch(rules.pattern)
    }
    assert allowed - set(built) == {"O=O"} and set(built) < allowed


def test_types_of_moves_have_the_names_of_their_classes():
    env = gfn.Molecules(5)
    assert env.move_types == (
        "add_first_node",
        "add_attached_node",
        "add_edge",
        "set_node_attribute",
        "set_edge_attribute",
        "exit",
    )
    texts = env.moves(env.states(["CC"])).describe()
    assert "set_edge_attribute(0, 1, 0)" in texts and "exit(0, 0, 0)" in texts
    path = gfn.Graphs.from_arrays([2], [[0, 1]], [0, 1], directed=False)
    actions = [
        gfn.RemoveNode(attached=True),
        gfn.RemoveEdge(),
        gfn.ClearNodeAttribute(),
        gfn.ClearEdgeAttribute(),
    ]
    names = [
        gfn.GraphEnv([action], 2, start=path, node_attributes=[1], edge_attributes=[1]).move_types
        for action in actions
    ]
    assert [one[-2] for one in names] == [
        "remove_attached_node",
        "remove_edge",
        "clear_node_attribute",
        "clear_edge_attribute",
    ]
