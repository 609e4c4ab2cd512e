"""Solving a problem on one input graph: finding the best solution by a policy and local search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import numpy as np

from . import _gfn
from ._checks import check_seed, count
from ._settings import Bounds, check
from ._suggestions import suggests_names
from ._envs import Cut, GraphProblem
from ._networks import Network, _restore_network
from ._results import _Result
from ._training import Trainer
from ._trajectories import Sampler


@dataclass(frozen=True, kw_only=True)
class Progress:
    """A solution that was better than all earlier solutions of the search.

    >>> gfn.Progress(seconds=0.5, size=12, origin="search").size
    12
    """

    seconds: float
    """The seconds since the start of the search."""
    size: int
    """The number of nodes of the solution; for a cut, the number of cut edges."""
    origin: str
    """The origin of the solution: "sample" for a sample of the policy, or "search" for local search."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution(_Result):
    """The best solution of a graph that the search found.

    >>> solution = gfn.solve(None, gfn.Clique, np.array([[0, 1, 2, 0], [1, 2, 0, 3]]), seconds=0.05)
    >>> sorted(solution.nodes), solution.size, solution.samples
    ([0, 1, 2], 3, 0)
    """

    nodes: list[Any]
    """The nodes of the solution: nodes of the networkx graph, or indices of nodes if the graph is an
    `edge_index`."""
    size: int
    """The number of nodes of the solution; for a cut, the number of cut edges."""
    history: list[Progress]
    """The solutions that were better than all earlier solutions, in order of time. The last solution is the
    best."""
    samples: int
    """The number of samples that were drawn from the policy."""

    def __repr__(self) -> str:
        return (f"Solution(size={self.size}, after {self.history[-1].seconds:.3f} s by "
            f"{self.history[-1].origin}, {self.samples} samples)")


def _edges(graph: Any, n_nodes: int | None) -> tuple[list[Any], Any]:
    """Returns the list of a graph's nodes, and the graph's edges `[E, 2]` as pairs of indices into this list.
    Each edge is listed once."""
    if hasattr(graph, "is_directed") and hasattr(graph, "nodes"):
        if graph.is_directed():
            raise ValueError(
                "the graph is directed: expected an undirected graph; convert it by graph.to_undirected()"
            )
        if n_nodes is not None:
            raise ValueError(
                "n_nodes is given with a graph of networkx, which already has its nodes: expected no "
                "n_nodes; it is for an edge_index only"
            )
        nodes = list(graph.nodes)
        place = {node: k for k, node in enumerate(nodes)}
        pairs = np.asarray([(place[a], place[b]) for a, b in graph.edges()], dtype=np.int64).reshape(-1, 2)
    else:
        index = np.asarray(graph.cpu() if hasattr(graph, "cpu") else graph)
        if (
            index.ndim != 2
            or len(index) != 2
            or index.dtype.kind not in "iu"
            or index.size
            and index.min() < 0
        ):
            raise ValueError(
                f"graph has shape {list(index.shape)} and dtype {index.dtype}: expected a graph of networkx, "
                "or an edge_index [2, E] of whole numbers of at least 0"
            )
        pairs = index.T.astype(np.int64)
        least = int(pairs.max()) + 1 if len(pairs) else 0
        nodes = list(range(least if n_nodes is None else count(n_nodes, "n_nodes", least=least)))
    loops = pairs[pairs[:, 0] == pairs[:, 1]]
    if len(loops):
        raise ValueError(
            f"node {nodes[loops[0][0]]!r} has an edge to itself: expected no such edges, because no problem "
            "here has them; remove them"
        )
    return nodes, np.unique(np.sort(pairs, axis=1), axis=0)


def _refuse_weights(graph: Any, n_edges: int) -> None:
    """Raises an error for a graph of networkx with an edge whose weight isn't 1, or with parallel edges."""
    remedy = (
        "expected single edges of weight 1, because a cut here counts edges; remove the weights by "
        "nx.Graph(graph.edges()), or use another solver"
    )
    for a, b, weight in graph.edges(data="weight", default=1):
        if weight is not None and weight != 1:
            raise ValueError(f"the edge from {a!r} to {b!r} has the weight {weight!r}: {remedy}")
    if graph.number_of_edges() > n_edges:
        raise ValueError(
            f"the graph has {graph.number_of_edges()} edges between {n_edges} pairs of nodes: {remedy}"
        )


def _draws(
    policy: Network | Trainer, problem: type[GraphProblem], graphs: _gfn.Graphs
) -> Callable[[int, int], _gfn.Graphs]:
    """Returns a function of a number n and a seed, which draws n finished states from the policy. The states
    are solutions of the input graphs `graphs`, which replace the input graphs of the policy's environment."""
    network = policy.network if isinstance(policy, Trainer) else policy
    if not isinstance(network, Network):
        raise TypeError(
            f"policy is a {type(policy).__name__}: expected a Trainer, a network such as `gfn.load` returns, "
            "or None"
        )
    if type(network.env) is not problem or network.n_conditions:
        raise ValueError(
            f"the policy was made for {network.env!r:.200} with n_conditions={network.n_conditions}: "
            f"expected a policy for {problem.__name__} without conditions"
        )
    if getattr(network.settings, "identity", False):
        raise ValueError(
            "the policy has identity=True, so it depends on the numbers of nodes, which have no meaning on "
            "another graph: train a policy with identity=False"
        )
    env = problem(graphs, network.env.for_size)
    values = {name: value.detach().clone() for name, value in network.state_dict().items()}
    sampler = Sampler(
        env, _restore_network(env, network.settings, network._build_settings, values, [], False)
    )
    return lambda n, seed: sampler.sample(n, seed=seed).terminal


@suggests_names
def solve(
    policy: Network | Trainer | None,
    problem: type[GraphProblem],
    graph: Any,
    *,
    n_nodes: int | None = None,
    seconds: float = 1.0,
    rounds: int = 10_000,
    seed: int = 0,
) -> Solution:
    """Finds the best solution of a problem on one graph within `seconds`.

    policy
        A policy for this problem: a `Trainer`, or the result of `gfn.load`. The policy may be trained on any
        graphs, with `identity=False`. Local search improves each sample of the policy. None uses local search
        alone, as a baseline for a policy.
    problem
        `gfn.IndependentSet`, `Clique`, `DominatingSet` or `Cut`. The size of a cut is its number of edges.
        Therefore, with `gfn.Cut`, a graph of networkx with parallel edges or a `weight` other than 1 is a
        `ValueError`; a `weight` of None counts as 1.
    graph
        A graph of networkx, or an `edge_index` `[2, E]` of numpy or torch, in which an edge may occur in both
        directions.
    n_nodes
        The number of nodes of an `edge_index`. This number is needed only if the last nodes have no edges.
    rounds
        The number of rounds of local search per sample, at least 1.

    Ctrl-C ends the search between two batches of samples. Local search without a policy can't be interrupted,
    and continues for `seconds`.

    >>> path = np.array([[0, 1, 2, 3], [1, 2, 3, 4]])
    >>> sorted(gfn.solve(None, gfn.IndependentSet, path, seconds=0.05).nodes)
    [0, 2, 4]
    """
    if not (isinstance(problem, type) and issubclass(problem, GraphProblem) and problem is not GraphProblem):
        raise TypeError(
            f"problem is {problem!r:.200}: expected gfn.IndependentSet, gfn.Clique, gfn.DominatingSet or "
            f"gfn.Cut"
        )
    check(seconds, "seconds", float, Bounds(above=0.0))
    nodes, edges = _edges(graph, n_nodes)
    if issubclass(problem, Cut) and hasattr(graph, "number_of_edges"):
        _refuse_weights(graph, len(edges))
    graphs = _gfn.Graphs.from_arrays(
        np.asarray([len(nodes)]), edges, np.asarray([0, len(edges)]), directed=False
    )
    draw = None if policy is None else _draws(policy, problem, graphs)
    found, history, samples = _gfn.solve(
        problem.__name__, graphs, draw, float(seconds), count(rounds, "rounds", least=1), check_seed(seed)
    )
    steps = [Progress(seconds=at, size=size, origin=origin) for at, size, origin in history]
    return Solution(nodes=[nodes[a] for a in found], size=steps[-1].size, history=steps, samples=samples)
