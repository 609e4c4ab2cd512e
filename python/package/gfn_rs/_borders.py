"""Conversions between `Graphs` and the graphs of other libraries."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from . import _gfn
from ._objects import rows

# The number of attributes that each node and each edge has.
ATTRIBUTES = 7
# The largest number of nodes in all graphs of a batch together.
_MOST_NODES = 2**24
# The largest number of pairs of nodes, summed over the graphs of a batch. Each pair takes one bit, so the
# limit is 4 GiB.
_MOST_PAIRS = 2**35


def arrays(graphs: _gfn.Graphs) -> dict[str, Any]:
    """Returns the arrays from which `Graphs.from_arrays` rebuilds these graphs."""
    names = (
        "n_nodes",
        "edges",
        "edge_ptr",
        "node_classes",
        "edge_classes",
        "node_attributes",
        "edge_attributes",
        "directed",
    )
    return {name: getattr(graphs, name) for name in names}


def again(
    parts: dict[str, Any], settings: dict[str, Any] | None, instances: Sequence[int] = ()
) -> _gfn.Graphs:
    """Builds pickled graphs again, from their arrays, the settings of their environment and the index of each
    graph's initial state."""
    graphs = _gfn.Graphs.from_arrays(**parts)
    return graphs._restored(settings, list(instances or [0] * len(graphs)))


def _parts(graphs: _gfn.Graphs) -> Any:
    """Yields two tuples for each graph. The first has the classes and the attributes of nodes, the second the
    edges, the classes of edges and the attributes of edges."""
    node_ptr, edge_ptr, edges = graphs.node_ptr, graphs.edge_ptr, graphs.edges
    node_classes, node_attributes = graphs.node_classes, graphs.node_attributes
    edge_classes, edge_attributes = graphs.edge_classes, graphs.edge_attributes
    for k in range(len(graphs)):
        nodes, ends = slice(node_ptr[k], node_ptr[k + 1]), slice(edge_ptr[k], edge_ptr[k + 1])
        yield (node_classes[nodes], node_attributes[nodes]), (
            edges[ends],
            edge_classes[ends],
            edge_attributes[ends],
        )


def _named(kind: Any, attributes: Any) -> dict[str, Any]:
    """Returns the data of a node or an edge for networkx. Attributes are included only if at least one is
    set."""
    data: dict[str, Any] = {"class": int(kind)}
    if attributes.any():
        data["attributes"] = tuple(attributes.tolist())
    return data


def to_networkx(graphs: _gfn.Graphs) -> list[Any]:
    import networkx

    out = []
    for nodes, edges in _parts(graphs):
        graph = networkx.DiGraph() if graphs.directed else networkx.Graph()
        graph.add_nodes_from((k, _named(*each)) for k, each in enumerate(zip(*nodes)))
        graph.add_edges_from((int(a), int(b), _named(*each)) for (a, b), *each in zip(*edges))
        out.append(graph)
    return out


def _class(data: Any, of: str) -> int:
    """Returns the class of a node or an edge of networkx, from its data."""
    value = data.get("class", 0)
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value < 2**16:
        raise ValueError(f"the class of {of} is {value!r:.200}: expected a whole number from 0 to 65535")
    return int(value)


def _attributes(data: Any, of: str) -> list[int]:
    """Returns the attributes of a node or an edge of networkx, from its data. Missing attributes are 0."""
    values = data.get("attributes", ())
    small = isinstance(values, (tuple, list)) and all(
        isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 0 <= value < 256
        for value in values
    )
    if not small or len(values) > ATTRIBUTES:
        raise ValueError(
            f"the attributes of {of} are {values!r:.200}: expected at most {ATTRIBUTES} whole numbers from 0 "
            f"to 255"
        )
    return [*map(int, values), *[0] * (ATTRIBUTES - len(values))]


def of_networkx(graphs: Any) -> _gfn.Graphs:
    """Converts graphs of networkx, which must be all directed or all undirected. Nodes are numbered in the
    order in which networkx lists them."""
    import networkx

    if isinstance(graphs, networkx.Graph) or not isinstance(graphs, Iterable):
        raise TypeError(f"graphs is a {type(graphs).__name__}: expected a list of graphs of networkx")
    graphs = list(graphs)
    for graph in graphs:
        if not isinstance(graph, networkx.Graph):
            raise TypeError(
                f"one of the graphs is a {type(graph).__name__}: expected a Graph or a DiGraph of networkx"
            )
    kinds = {bool(graph.is_directed()) for graph in graphs}
    if len(kinds) > 1:
        raise ValueError(
            "some graphs are directed and others are undirected: expected only directed or only undirected "
            "graphs; convert them by to_directed() or to_undirected()"
        )
    if any(graph.is_multigraph() for graph in graphs):
        raise ValueError(
            "one of the graphs is a multigraph, which may have several edges between two nodes: expected at "
            "most one edge; convert it by networkx.Graph(graph) or networkx.DiGraph(graph)"
        )
    weighted = ((a, b, weight) for graph in graphs for a, b, weight in graph.edges(data="weight", default=1))
    for a, b, weight in weighted:
        if weight is not None and not np.array_equal(weight, 1):
            warnings.warn(
                f"the edge from {a!r} to {b!r} has the weight {weight!r}, which is ignored: the library has "
                "no weights of edges. Store whole numbers as `class` or `attributes` of the edges, or "
                "delete the `weight` of each edge.",
                stacklevel=2,
            )
            break
    n_nodes, edges, ends = [], [], [0]
    classes: dict[str, list[int]] = {"node": [], "edge": []}
    attributes: dict[str, list[list[int]]] = {"node": [], "edge": []}
    for graph in graphs:
        number = {node: k for k, node in enumerate(graph.nodes)}
        n_nodes.append(len(number))
        named = [("node", f"node {node!r}", data) for node, data in graph.nodes(data=True)]
        for a, b, data in graph.edges(data=True):
            edges.append((number[a], number[b]))
            named.append(("edge", f"edge ({a!r}, {b!r})", data))
        for kind, name, data in named:
            classes[kind].append(_class(data, name))
            attributes[kind].append(_attributes(data, name))
        ends.append(len(edges))
    return _gfn.Graphs.from_arrays(
        np.asarray(n_nodes, dtype=np.int64),
        np.asarray(edges, dtype=np.int64).reshape(-1, 2),
        np.asarray(ends, dtype=np.int64),
        directed=kinds.pop() if kinds else False,
        node_classes=np.asarray(classes["node"], dtype=np.int64),
        edge_classes=np.asarray(classes["edge"], dtype=np.int64),
        node_attributes=np.asarray(attributes["node"], dtype=np.int64).reshape(-1, ATTRIBUTES),
        edge_attributes=np.asarray(attributes["edge"], dtype=np.int64).reshape(-1, ATTRIBUTES),
    )


def to_pyg(graphs: _gfn.Graphs) -> list[Any]:
    from torch_geometric.data import Data

    out = []
    for (node_classes, node_attributes), (edges, edge_classes, edge_attributes) in _parts(graphs):
        of_nodes, of_edges = (torch.from_numpy(part.copy()) for part in (node_classes, edge_classes))
        index, more = torch.from_numpy(edges.T.copy()), torch.from_numpy(edge_attributes.copy())
        if not graphs.directed:
            index = torch.stack([index, index.flip(0)], dim=-1).reshape(2, -1)
            of_edges, more = of_edges.repeat_interleave(2), more.repeat_interleave(2, dim=0)
        own = {"node_attributes": torch.from_numpy(node_attributes.copy()), "edge_attributes": more}
        out.append(Data(x=of_nodes, edge_index=index, edge_attr=of_edges, **own))
    return out


def _of_data(data: Any, name: str, n: int, dims: int) -> npt.NDArray[np.int64]:
    """Returns the tensor `name` of `data`, a `Data` of PyTorch Geometric, as an array, which must have a row
    for each of `n` nodes or edges. Returns zeros if there is no such tensor."""
    given = getattr(data, name, None)
    if given is None:
        return np.zeros((n, ATTRIBUTES)[:dims], dtype=np.int64)
    if dims == 1 and isinstance(given, torch.Tensor):
        if given.is_floating_point():
            raise TypeError(
                f"{name} is an array of {given.dtype} and shape {list(given.shape)}: expected an array of "
                f"int64 and shape [n], because {name} is read as classes of nodes or edges; set "
                f"data.{name} = None if classes aren't wanted"
            )
        if given.dim() == 2 and given.shape[1] == 1:
            given = given[:, 0]
    values = rows(given, name, "int64", [None] * (dims - 1))
    if len(values) != n:
        raise ValueError(f"{name} has {len(values)} rows: expected {n}, one for each node or edge")
    return values


def _once(data: Any, index: npt.NDArray[np.int64], of_edges: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Returns a mask that selects one column of `index`, an `edge_index`, for each undirected edge. Such an
    edge has two columns, one per direction. Raises an error for an edge whose other direction is missing."""
    forth: npt.NDArray[np.bool_] = index[0] < index[1]
    back: npt.NDArray[np.bool_] = index[0] > index[1]
    one = np.column_stack([index.T, of_edges])[forth]
    other = np.column_stack([index[::-1].T, of_edges])[back]
    if not np.array_equal(one[np.lexsort(one.T)], other[np.lexsort(other.T)]):
        raise ValueError(
            f"an edge of {data!r:.200} occurs in one direction only, or its directions have different data: "
            "expected each edge in both directions with equal data, or directed=True"
        )
    return forth


def of_pyg(graphs: Any, directed: bool) -> _gfn.Graphs:
    """Converts graphs of PyTorch Geometric. An undirected edge must occur in both directions."""
    from torch_geometric.data import Data

    if isinstance(graphs, Data) or not isinstance(graphs, Iterable):
        raise TypeError(f"graphs is a {type(graphs).__name__}: expected a list of Data of PyTorch Geometric")
    n_nodes, edges = [0], [np.zeros((0, 2 + 1 + ATTRIBUTES), dtype=np.int64)]
    nodes = [np.zeros((0, 1 + ATTRIBUTES), dtype=np.int64)]
    for data in graphs:
        if not isinstance(data, Data):
            raise TypeError(
                f"one of the graphs is a {type(data).__name__}: expected a Data of PyTorch Geometric"
            )
        index = (
            np.zeros((2, 0), dtype=np.int64)
            if data.edge_index is None
            else rows(data.edge_index, "edge_index", "int64", [None])
        )
        if index.shape[0] != 2:
            raise ValueError(
                f"edge_index has shape {list(index.shape)}: expected [2, E], a column for each edge"
            )
        if (loops := index[0][index[0] == index[1]]).size:
            raise ValueError(
                f"node {loops[0]} of {data!r:.200} has an edge to itself: expected no such edges; remove "
                "them, for example by T.RemoveSelfLoops()"
            )
        n, m = int(data.num_nodes or 0), index.shape[1]
        more = _of_data(data, "node_attributes", n, 2), _of_data(data, "edge_attributes", m, 2)
        of_nodes, of_edges = (
            np.pad(each, ((0, 0), (0, max(ATTRIBUTES - each.shape[1], 0)))) for each in more
        )
        of_edges = np.column_stack([_of_data(data, "edge_attr", m, 1), of_edges])
        kept = np.ones(m, dtype=bool) if directed else _once(data, index, of_edges)
        n_nodes.append(n)
        nodes.append(np.column_stack([_of_data(data, "x", n, 1), of_nodes]))
        edges.append(np.column_stack([index.T, of_edges])[kept])
    of_nodes, of_edges = np.concatenate(nodes), np.concatenate(edges)
    return _gfn.Graphs.from_arrays(
        n_nodes[1:],
        of_edges[:, :2],
        np.cumsum([len(each) for each in edges]),
        directed=directed,
        node_classes=of_nodes[:, 0],
        edge_classes=of_edges[:, 2],
        node_attributes=of_nodes[:, 1:],
        edge_attributes=of_edges[:, 3:],
    )


def to_rdkit(graphs: _gfn.Graphs) -> list[Any]:
    from rdkit import Chem

    # The initial state has no atoms and an empty SMILES, so it is converted to None.
    return [Chem.MolFromSmiles(smiles) if smiles else None for smiles in graphs.smiles]


def of_arrays(
    n_nodes: Any,
    edges: Any,
    edge_ptr: Any,
    directed: bool,
    of_nodes: tuple[Any, Any],
    of_edges: tuple[Any, Any],
) -> _gfn.Graphs:
    """Builds graphs from the arguments of `Graphs.from_arrays`. `of_nodes` has the classes and the attributes
    of nodes, and `of_edges` those of edges."""
    sizes, ptr = rows(n_nodes, "n_nodes", "int64", []), rows(edge_ptr, "edge_ptr", "int64", [])
    ends = rows(edges, "edges", "int64", [None])
    if (
        ends.shape[1] != 2
        or len(ptr) != len(sizes) + 1
        or (np.diff(ptr) < 0).any()
        or (ptr[0], ptr[-1]) != (0, len(ends))
    ):
        raise ValueError(
            f"edges has shape {list(ends.shape)} and edge_ptr is {ptr.tolist()}, for {len(sizes)} graphs: "
            "expected edges of shape [E, 2], and one more number in edge_ptr than there are graphs, "
            "increasing from 0 to E"
        )
    if ((sizes < 0) | (sizes > 65_535)).any():
        raise ValueError(f"n_nodes is {sizes.tolist()}: expected 0 to 65535 for each graph")
    # Each pair of nodes takes one bit of memory. Too many pairs are refused here, because a failed allocation
    # would end the process.
    total, pairs = int(sizes.sum()), int((sizes**2).sum())
    if total > _MOST_NODES or pairs > _MOST_PAIRS:
        what = f"{len(sizes)} graphs have {total} nodes and {pairs} pairs of nodes"
        raise ValueError(
            f"{what}: expected at most {_MOST_NODES} nodes and {_MOST_PAIRS} pairs, because all of them are "
            "kept in memory; convert fewer graphs at once"
        )
    limits = np.repeat(sizes, np.diff(ptr))
    outside = np.flatnonzero(((ends < 0) | (ends >= limits[:, None])).any(axis=1))
    for row in outside[:1].tolist():
        a, b = ends[row].tolist()
        raise ValueError(
            f"edge {row} is ({a}, {b}), in a graph of {limits[row]} nodes: expected numbers of nodes below "
            f"{limits[row]}"
        )
    nodes, weights = _labels("node", total, *of_nodes), _labels("edge", len(ends), *of_edges)
    return _gfn.Graphs._of_checked(
        sizes.tolist(), ends.astype(np.uint32), ptr.tolist(), directed, nodes, weights
    )


def _labels(of: str, n: int, classes: Any, attributes: Any) -> npt.NDArray[np.uint16]:
    """Returns an array with a row for each of `n` nodes or edges. A row has the class, then the
    attributes."""
    out = np.zeros((n, 1 + ATTRIBUTES), dtype=np.uint16)
    if classes is not None:
        classes = rows(classes, f"{of}_classes", "int64", [])
        if len(classes) != n:
            raise ValueError(f"{of}_classes has {len(classes)} numbers: expected {n}, one for each {of}")
        out[:, 0] = _within(classes, f"{of}_classes", 65_535)
    if attributes is not None:
        attributes = rows(attributes, f"{of}_attributes", "int64", [None])
        if len(attributes) != n or attributes.shape[1] > ATTRIBUTES:
            expected = f"[{n}, K] with K at most {ATTRIBUTES}"
            raise ValueError(f"{of}_attributes has shape {list(attributes.shape)}: expected {expected}")
        out[:, 1 : 1 + attributes.shape[1]] = _within(attributes, f"{of}_attributes", 255)
    return out


def _within(values: npt.NDArray[np.int64], name: str, most: int) -> npt.NDArray[np.int64]:
    """Returns `values` unchanged. Raises an error if one of them isn't a number from 0 to `most`."""
    wrong = values[(values < 0) | (values > most)]
    if wrong.size:
        raise ValueError(f"{name} has {wrong[0]}: expected 0 to {most}")
    return values
