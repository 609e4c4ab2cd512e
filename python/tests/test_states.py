"""Batches of graphs, and the libraries that they go to and come from."""

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
    # Something is there to compare.
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


def test_graphs_are_made_of_arrays():
    ints = lambda *values: np.asarray(values, dtype=np.int64)  # noqa: E731
    graphs = gfn.Graphs.of(ints(2, 3), ints(0, 1, 0, 2, 2, 1).reshape(3, 2), ints(0, 1, 3), directed=True, node_classes=ints(1, 0, 2, 0, 1))
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
            gfn.Graphs.of(**{**parts, **broken}, directed=True)
    with pytest.raises(TypeError):
        gfn.Graphs.of(np.ones(2), ints(0, 1).reshape(1, 2), ints(0, 1), directed=True)


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
    with pytest.raises(ValueError, match="2 captions for 1"):
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
