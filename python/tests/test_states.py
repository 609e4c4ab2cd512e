"""Tests of batches of graphs, and of their conversion to and from the graphs of other libraries."""

import copy
import json
import pickle
import subprocess
import sys

import gfn_rs as gfn
import networkx
import numpy as np
import pytest
import torch


def samples(env=gfn.GraphBuilding(6, node_classes=3, edge_classes=2), n=40):
    return gfn.Trainer(env, lambda graphs: np.zeros(len(graphs)), gfn.Uniform()).sample(n)


def test_arrays_agree_with_each_other():
    graphs = samples()
    assert graphs.node_ptr[-1] == graphs.n_nodes.sum() == len(graphs.node_classes)
    assert graphs.edge_ptr[-1] == graphs.n_edges.sum() == len(graphs.edges) == len(graphs.edge_classes)
    assert graphs.edges.dtype == graphs.edge_index.dtype == np.int64
    first = np.repeat(graphs.node_ptr[:-1], graphs.n_edges)
    assert (graphs.edges.T + first == graphs.edge_index).all()
    # The graphs must have many edges and several classes. Otherwise this test would show little.
    assert graphs.n_edges.sum() > 20 and graphs.node_classes.max() == 2 and graphs.edge_classes.max() == 1


def test_parts_are_batches():
    graphs = samples()
    assert len(graphs[3]) == 1 and graphs[3].n_nodes[0] == graphs.n_nodes[3]
    assert graphs[-1].n_nodes[0] == graphs.n_nodes[-1]
    assert (graphs[5:20:3].n_edges == graphs.n_edges[5:20:3]).all()
    assert len(graphs[7:3]) == 0 and graphs[7:3].edges.shape == (0, 2)
    with pytest.raises(IndexError, match="40"):
        graphs[40]
    with pytest.raises(TypeError):
        graphs["first"]


SAME = ("n_nodes", "edge_ptr", "edges", "node_classes", "edge_classes", "node_attributes", "edge_attributes")


def same(some, others):
    assert some.directed == others.directed and len(some) == len(others)
    for name in SAME:
        assert np.array_equal(getattr(some, name), getattr(others, name)), name


def attributed(directed=False):
    env = gfn.GraphBuilding(
        5, directed=directed, node_classes=2, edge_classes=2, node_attributes=(2, 3), edge_attributes=(4,)
    )
    graphs = samples(env)
    # The graphs must have attributes, so that a conversion that loses attributes is noticed.
    assert graphs.node_attributes.any() and graphs.edge_attributes.any() and not graphs.node_attributes.all()
    return graphs


def test_parts_are_chosen_by_numbers_and_masks():
    graphs = samples()
    for places in (
        [3, 0, 3, -1],
        (2, 1),
        np.array([5, 4], dtype=np.int32),
        np.array([7], dtype=np.uint8),
        torch.tensor([1, 2]),
        [],
    ):
        same(
            graphs[places],
            (
                gfn.Graphs.from_networkx([graphs.networkx()[int(k)] for k in places])
                if len(places)
                else graphs[:0]
            ),
        )
    mask = graphs.n_edges > 2
    assert 0 < mask.sum() < len(graphs)
    same(graphs[mask], graphs[np.flatnonzero(mask)])
    same(graphs[mask.tolist()], graphs[mask])
    # These indices, and a mask that is too short, must be errors. As a signed number, 2**64 - 1 would be the
    # valid index -1.
    for places in ([0, 40], [-41], np.array([2**40]), mask[:-1], np.array([2**64 - 1], dtype=np.uint64)):
        with pytest.raises(IndexError):
            graphs[places]
    for wrong in (True, 1.0, np.array([1.0]), [[0], [1]], ["a"], None, {1: 2}):
        with pytest.raises(TypeError):
            graphs[wrong]


def test_graphs_are_pickled():
    for graphs in (attributed(), attributed(directed=True), samples(gfn.GraphBuilding(6)), samples()[:0]):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            same(pickle.loads(pickle.dumps(graphs, protocol)), graphs)
        same(copy.deepcopy(graphs), graphs)
    molecules = samples(gfn.Molecules(4, elements=("C", "O"), charges=False), 20)
    same(pickle.loads(pickle.dumps(molecules)), molecules)
    assert pickle.loads(pickle.dumps(molecules)).smiles == molecules.smiles


def test_a_pickle_is_read_in_another_process(tmp_path):
    molecules = samples(gfn.Molecules(4), 20)
    path = tmp_path / "molecules"
    path.write_bytes(pickle.dumps(molecules))
    program = f"import pickle; print(*pickle.load(open({str(path)!r}, 'rb')).smiles)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == molecules.smiles


def test_attributes_pass_every_border():
    for directed in (False, True):
        graphs = attributed(directed)
        same(gfn.Graphs.from_networkx(graphs.networkx()), graphs)
        parts = {name: getattr(graphs, name) for name in SAME}
        same(gfn.Graphs.from_arrays(directed=directed, **parts), graphs)
        for data, k in zip(graphs.pyg(), range(len(graphs))):
            assert np.array_equal(data.node_attributes, graphs[k].node_attributes)
            once = data.edge_attributes if directed else data.edge_attributes[::2]
            assert (
                np.array_equal(once, graphs[k].edge_attributes)
                and len(data.edge_attributes) == data.num_edges
            )


def test_attributes_that_are_none_are_refused():
    for wrong in ("ab", 3, (256,), (-1,), (1.5,), (True,), (0,) * 8):
        graph = networkx.Graph()
        graph.add_node(0, attributes=wrong)
        with pytest.raises(ValueError, match="the attributes of node 0"):
            gfn.Graphs.from_networkx([graph])
    ints = lambda *values: np.asarray(values, dtype=np.int64)  # noqa: E731
    for wrong in (np.zeros((1, 1), int), np.zeros((2, 8), int), np.full((2, 1), 256), np.full((2, 1), -1)):
        with pytest.raises(ValueError, match="node_attributes"):
            gfn.Graphs.from_arrays(
                ints(2), ints().reshape(0, 2), ints(0, 0), directed=False, node_attributes=wrong
            )


def test_networkx_there_and_back():
    for directed in (False, True):
        graphs = samples(gfn.GraphBuilding(5, directed=directed, node_classes=2, edge_classes=2))
        theirs = graphs.networkx()
        assert all(g.is_directed() == directed for g in theirs)
        back = gfn.Graphs.from_networkx(theirs)
        for name in ("n_nodes", "edge_ptr", "edges", "node_classes", "edge_classes"):
            assert (getattr(back, name) == getattr(graphs, name)).all(), name


def test_graph6_is_networkx_s():
    graphs = samples(gfn.GraphBuilding(6))
    for line, theirs in zip(graphs.graph6(), graphs.networkx()):
        assert line == networkx.to_graph6_bytes(theirs, header=False).decode().strip()
    back = gfn.Graphs.from_graph6(graphs.graph6())
    assert (back.edges == graphs.edges).all()
    with pytest.raises(ValueError):
        samples().graph6()
    with pytest.raises(ValueError):
        gfn.Graphs.from_graph6(["\x01"])


def test_json_there_and_back():
    for directed in (False, True):
        graphs = samples(gfn.GraphBuilding(5, directed=directed, node_classes=2, edge_classes=2))
        text = graphs.json()
        assert gfn.Graphs.from_json(text) == graphs
        first = json.loads(text)[0]
        assert first["nodes"] == graphs.n_nodes[0] and first["directed"] == directed
        assert first["edges"] == graphs[0].edges.tolist()
    for text, message in (
        ('[{"directed":false,"nodes":2,"edges":[[0,2]]}]', "a graph of 2 nodes"),
        ('[{"directed":false,"nodes":2}]', "edges"),
        ("{", "line 1: .*`Graphs.json` returns this format"),
        (
            '[{"directed":false,"nodes":1,"edges":[]},{"directed":true,"nodes":1,"edges":[]}]',
            "only directed or only undirected",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            gfn.Graphs.from_json(text)


def test_graphs_are_made_of_arrays():
    ints = lambda *values: np.asarray(values, dtype=np.int64)  # noqa: E731
    graphs = gfn.Graphs.from_arrays(
        ints(2, 3),
        ints(0, 1, 0, 2, 2, 1).reshape(3, 2),
        ints(0, 1, 3),
        directed=True,
        node_classes=ints(1, 0, 2, 0, 1),
    )
    assert graphs.n_edges.tolist() == [1, 2] and graphs.node_classes.tolist() == [1, 0, 2, 0, 1]
    assert graphs.edge_index.tolist() == [[0, 2, 4], [1, 4, 3]]
    for broken in (
        dict(edge_ptr=ints(0, 1)),
        dict(edge_ptr=ints(0, 2, 1)),
        dict(edges=ints(0, 1, 0, 3, 2, 1).reshape(3, 2)),
        dict(edges=ints(0, 1, 0, -1, 2, 1).reshape(3, 2)),
        dict(node_classes=ints(1)),
        dict(node_classes=ints(1, 0, 2, 0, 70_000)),
        dict(n_nodes=ints(2, -3)),
        dict(edges=ints(0, 0, 0, 2, 2, 1).reshape(3, 2)),
    ):
        parts = dict(n_nodes=ints(2, 3), edges=ints(0, 1, 0, 2, 2, 1).reshape(3, 2), edge_ptr=ints(0, 1, 3))
        with pytest.raises(ValueError):
            gfn.Graphs.from_arrays(**{**parts, **broken}, directed=True)
    with pytest.raises(TypeError):
        gfn.Graphs.from_arrays(np.ones(2), ints(0, 1).reshape(1, 2), ints(0, 1), directed=True)


def test_molecules_have_smiles():
    molecules = samples(gfn.Molecules(4), 20)
    assert len(molecules.smiles) == 20 and all(isinstance(text, str) for text in molecules.smiles)
    assert molecules[2].smiles == [molecules.smiles[2]]
    with pytest.raises(TypeError, match="molecules"):
        samples().smiles


def test_pictures_are_svg():
    graphs = samples(n=30)
    assert graphs._repr_svg_().startswith("<svg") and "first 24 of 30" in graphs._repr_svg_()
    assert "hello" in graphs[:1].svg(captions=["hello"])
    with pytest.raises(ValueError, match="captions has 2 texts for 1"):
        graphs[:1].svg(captions=["a", "b"])


def test_tensors_are_those_of_torch():
    trainer = gfn.Trainer(gfn.Ring(3), gfn.RingReward(), gfn.GraphNet(embedding=8), batch=4)
    first = dict(trainer.named_parameters())
    again = dict(trainer.named_parameters())
    for name, tensor in first.items():
        assert tensor.data_ptr() == again[name].data_ptr() and tensor.is_leaf
    before = {name: tensor.clone() for name, tensor in first.items()}
    trainer.fit(1)
    assert any(not torch.equal(before[name], tensor) for name, tensor in first.items())


def test_there_is_one_libtorch():
    with open("/proc/self/maps") as maps:
        loaded = {line.split()[-1] for line in maps if "libtorch_cpu" in line}
    assert len(loaded) == 1 and "torch/lib" in loaded.pop()


def test_graphs_are_equal_if_each_is():
    graphs = attributed()
    again = pickle.loads(pickle.dumps(graphs))
    assert graphs == again and hash(graphs) == hash(again) and not graphs != again
    assert graphs[:3] != graphs[:4] and graphs[::-1] != graphs and graphs != "graphs"
    one, other = gfn.Graphs.from_arrays([3], [[0, 1]], [0, 1], directed=False), gfn.Graphs.from_arrays(
        [3], [[1, 2]], [0, 1], directed=False
    )
    # Two isomorphic graphs with different numbering of nodes must not be equal. The same holds for graphs
    # with a different class, attribute or direction of edges.
    assert one != other and one == gfn.Graphs.from_arrays([3], [[1, 0]], [0, 1], directed=False)
    for more in (
        {"directed": True},
        {"node_classes": [0, 0, 1]},
        {"edge_classes": [1]},
        {"edge_attributes": [[1]]},
    ):
        assert one != gfn.Graphs.from_arrays([3], [[0, 1]], [0, 1], **{"directed": False, **more})


def test_batches_are_joined():
    graphs = attributed()
    both = graphs[:5] + graphs[5:]
    assert both == graphs and len(graphs + graphs) == 2 * len(graphs) and graphs[:0] + graphs == graphs
    with pytest.raises(ValueError, match="directed"):
        graphs + attributed(directed=True)
    with pytest.raises(TypeError):
        graphs + [1]
    molecules = [samples(gfn.Molecules(n), 3) for n in (3, 4)]
    assert (molecules[0] + molecules[0]).smiles == 2 * molecules[0].smiles
    for other in (molecules[1], graphs):
        assert molecules[0] != other
        with pytest.raises(ValueError, match="molecules"):
            molecules[0] + other


@pytest.mark.parametrize("directed", [False, True])
def test_graphs_of_pytorch_geometric(directed):
    graphs = attributed(directed)
    assert gfn.Graphs.from_pyg(graphs.pyg(), directed=directed) == graphs
    empty = gfn.Graphs.from_arrays([0, 2, 0], [], [0, 0, 0, 0], directed=directed)
    assert gfn.Graphs.from_pyg(empty.pyg(), directed=directed) == empty and len(gfn.Graphs.from_pyg([])) == 0


def test_graphs_of_pytorch_geometric_that_are_refused():
    from torch_geometric.data import Data

    index = lambda *ends: torch.tensor(ends, dtype=torch.long).T
    path = Data(edge_index=index((0, 1), (1, 0), (2, 1), (1, 2)), num_nodes=3)
    assert gfn.Graphs.from_pyg([path]).edges.tolist() == [[0, 1], [1, 2]]
    for wrong, kind, message in (
        (Data(edge_index=index((0, 1), (1, 2)), num_nodes=3), ValueError, "both directions"),
        (
            Data(edge_index=index((0, 0), (0, 1), (1, 0)), num_nodes=3),
            ValueError,
            "node 0 of .* has an edge to itself",
        ),
        (
            Data(edge_index=index((0, 1), (1, 0)), edge_attr=torch.tensor([1, 2]), num_nodes=2),
            ValueError,
            "both directions",
        ),
        (
            Data(x=torch.ones(2, 1), edge_index=index((0, 1), (1, 0))),
            TypeError,
            "x is .*float32.* classes .*data.x = None",
        ),
        (
            Data(x=torch.ones(2, 5, dtype=torch.long), edge_index=index((0, 1), (1, 0))),
            ValueError,
            "x has shape",
        ),
        ("C", TypeError, "Data"),
    ):
        with pytest.raises(kind, match=message):
            gfn.Graphs.from_pyg([wrong])
    with pytest.raises(ValueError, match="node 2 of .* has an edge to itself"):
        gfn.Graphs.from_pyg([Data(edge_index=index((0, 1), (2, 2)), num_nodes=3)], directed=True)
    with pytest.raises(TypeError, match="list"):
        gfn.Graphs.from_pyg(path)


def test_degrees_and_numbers_by_graph():
    for graphs in (
        attributed(),
        attributed(directed=True),
        gfn.Graphs.from_arrays([0, 3, 0, 2, 0], [[0, 1], [1, 2]], [0, 0, 2, 2, 2, 2], directed=False),
    ):
        assert graphs.degree.tolist() == [d for graph in graphs.networkx() for _, d in graph.degree]
        assert graphs.degree.dtype == graphs.batch.dtype == np.int64
        assert graphs.batch.tolist() == [k for k, n in enumerate(graphs.n_nodes) for _ in range(n)]
        # The guide and the README sum per graph in this way, because `np.add.reduceat` is wrong for empty
        # graphs.
        twos = np.bincount(graphs.batch, graphs.degree == 2, len(graphs))
        assert twos.tolist() == [sum(d == 2 for _, d in graph.degree) for graph in graphs.networkx()]


def test_whole_numbers_of_any_kind_make_graphs():
    expected = gfn.Graphs.from_arrays(
        np.array([3]),
        np.array([[0, 1], [1, 2]]),
        np.array([0, 2]),
        directed=False,
        node_classes=np.array([0, 1, 0]),
    )
    parts = ([3], [[0, 1], [1, 2]], [0, 2])
    kinds = [lambda part, kind=kind: np.array(part, kind) for kind in (np.int32, np.uint8, np.uint64)]
    for made in (*kinds, list, torch.tensor):
        assert gfn.Graphs.from_arrays(*map(made, parts), directed=False, node_classes=[0, 1, 0]) == expected
    strided = gfn.Graphs.from_arrays(
        np.array([3, 9])[::2],
        np.array([[0, 1], [1, 2]]).T.copy().T,
        [0, 2],
        directed=False,
        node_classes=[0, 1, 0],
    )
    assert strided == expected
    for given, kind, message in (
        (([3.0], [[0, 1]], [0, 1]), TypeError, "n_nodes is an array of float64"),
        (([True], [[0, 1]], [0, 1]), TypeError, "n_nodes is an array of bool"),
        (([3], [0, 1], [0, 1]), ValueError, "edges has shape"),
        (
            ([3], [[0, 1]], np.array([0, 2**63], dtype=np.uint64)),
            ValueError,
            "edge_ptr has 9223372036854775808",
        ),
        (([[1], [1, 2]], [[0, 1]], [0, 1]), (TypeError, ValueError), "n_nodes"),
    ):
        with pytest.raises(kind, match=message):
            gfn.Graphs.from_arrays(*given, directed=False)


def test_what_nodes_and_edges_of_molecules_are():
    """Checks that the classes and attributes of nodes and edges are as the docstrings of `Molecules` and
    `Fragments` describe."""
    from rdkit import Chem

    symbols = ["O", "C", "N"]
    env = gfn.Molecules(6, elements=symbols)
    graphs = samples(env, 200)
    charges, orders = set(), set()
    for graph, smiles in zip((graphs[k] for k in range(len(graphs))), graphs.smiles):
        atoms = [symbols[k] for k in graph.node_classes]
        molecule = Chem.MolFromSmiles(smiles)
        Chem.Kekulize(molecule)
        assert sorted(atoms) == sorted(atom.GetSymbol() for atom in molecule.GetAtoms())
        bond = lambda a, b, order: (*sorted((a, b)), order)
        theirs = sorted(
            bond(
                each.GetBeginAtom().GetSymbol(),
                each.GetEndAtom().GetSymbol(),
                int(each.GetBondTypeAsDouble()),
            )
            for each in molecule.GetBonds()
        )
        ours = sorted(
            bond(atoms[a], atoms[b], 1 + order)
            for (a, b), order in zip(graph.edges, graph.edge_attributes[:, 0])
        )
        # Both conversions must give the same bonds. Only in aromatic molecules may bonds differ, because
        # Kekule forms differ in the positions of double bonds.
        assert theirs == ours or any(
            each.GetIsAromatic() for each in Chem.MolFromSmiles(smiles).GetBonds()
        ), smiles
        assert sorted((0, 1, -1)[k] for k in graph.node_attributes[:, 0]) == sorted(
            atom.GetFormalCharge() for atom in molecule.GetAtoms()
        )
        assert not graph.edge_classes.any()
        charges |= set(graph.node_attributes[:, 0].tolist())
        orders |= set(graph.edge_attributes[:, 0].tolist())
    assert charges == {0, 1, 2} and orders >= {0, 1}
