"""Batches of graphs as other libraries have them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from . import _gfn


def _parts(graphs: _gfn.Graphs) -> Any:
    """Each graph: its node classes, its edges and their classes."""
    node_ptr, edge_ptr = graphs.node_ptr, graphs.edge_ptr
    node_classes, edges, edge_classes = graphs.node_classes, graphs.edges, graphs.edge_classes
    for k in range(len(graphs)):
        ends = slice(edge_ptr[k], edge_ptr[k + 1])
        yield node_classes[node_ptr[k] : node_ptr[k + 1]], edges[ends], edge_classes[ends]


def to_networkx(graphs: _gfn.Graphs) -> list[Any]:
    import networkx

    out = []
    for node_classes, edges, edge_classes in _parts(graphs):
        graph = networkx.DiGraph() if graphs.directed else networkx.Graph()
        graph.add_nodes_from((k, {"class": int(c)}) for k, c in enumerate(node_classes))
        graph.add_edges_from((int(a), int(b), {"class": int(c)}) for (a, b), c in zip(edges, edge_classes))
        out.append(graph)
    return out


def _class(data: Any, of: str) -> int:
    """The class of a node or an edge in networkx."""
    value = data.get("class", 0)
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value < 2**16:
        raise ValueError(f"the class of {of} is {value!r:.200}: expected a whole number from 0 to 65535")
    return int(value)


def of_networkx(graphs: Any) -> _gfn.Graphs:
    """Graphs of networkx, all directed or none; nodes are numbered in their order."""
    import networkx

    if isinstance(graphs, networkx.Graph) or not isinstance(graphs, Iterable):
        raise TypeError(f"graphs is a {type(graphs).__name__}: expected a list of graphs of networkx")
    graphs = list(graphs)
    for graph in graphs:
        if not isinstance(graph, networkx.Graph):
            raise TypeError(f"one of the graphs is a {type(graph).__name__}: expected a Graph or a DiGraph of networkx")
    kinds = {bool(graph.is_directed()) for graph in graphs}
    if len(kinds) > 1:
        raise ValueError("some graphs are directed and some are not: expected all of one kind")
    if any(graph.is_multigraph() for graph in graphs):
        raise ValueError("a graph has several edges between two nodes: expected at most one")
    n_nodes, edges, ends, node_classes, edge_classes = [], [], [0], [], []
    for graph in graphs:
        number = {node: k for k, node in enumerate(graph.nodes)}
        n_nodes.append(len(number))
        node_classes += [_class(data, f"node {node!r}") for node, data in graph.nodes(data=True)]
        for a, b, data in graph.edges(data=True):
            edges.append((number[a], number[b]))
            edge_classes.append(_class(data, f"edge ({a!r}, {b!r})"))
        ends.append(len(edges))
    return _gfn.Graphs.of(
        np.asarray(n_nodes, dtype=np.int64),
        np.asarray(edges, dtype=np.int64).reshape(-1, 2),
        np.asarray(ends, dtype=np.int64),
        directed=kinds.pop() if kinds else False,
        node_classes=np.asarray(node_classes, dtype=np.int64),
        edge_classes=np.asarray(edge_classes, dtype=np.int64),
    )


def to_pyg(graphs: _gfn.Graphs) -> list[Any]:
    import torch
    from torch_geometric.data import Data

    out = []
    for node_classes, edges, edge_classes in _parts(graphs):
        index, classes = torch.from_numpy(edges.T.copy()), torch.from_numpy(edge_classes.copy())
        if not graphs.directed:
            index = torch.stack([index, index.flip(0)], dim=-1).reshape(2, -1)
            classes = classes.repeat_interleave(2)
        out.append(Data(x=torch.from_numpy(node_classes.copy()), edge_index=index, edge_attr=classes))
    return out


def to_rdkit(graphs: _gfn.Graphs) -> list[Any]:
    from rdkit import Chem

    return [Chem.MolFromSmiles(smiles) for smiles in graphs.smiles]
