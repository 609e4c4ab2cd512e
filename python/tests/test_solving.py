"""Tests of the search for the best solution of a problem on one graph."""

import gfn_rs as gfn
import networkx as nx
import numpy as np
import pytest
import torch


def size(problem, graph, nodes):
    """Returns the size of a solution, computed by networkx. Fails if the solution isn't valid."""
    inside = graph.subgraph(nodes)
    assert len(set(nodes)) == len(nodes) == len(inside)
    if problem is gfn.IndependentSet:
        assert inside.number_of_edges() == 0
    elif problem is gfn.Clique:
        assert nx.density(inside) == 1 or len(nodes) < 2
    elif problem is gfn.DominatingSet:
        assert nx.is_dominating_set(graph, nodes)
    else:
        return nx.cut_size(graph, nodes)
    return len(nodes)


# The problems, and the size of the best solutions of each problem on Petersen's graph.
PROBLEMS = {gfn.IndependentSet: 4, gfn.Clique: 2, gfn.DominatingSet: 3, gfn.Cut: 12}


def assert_is_possible(problem, found):
    best = PROBLEMS[problem]
    assert found >= best if problem is gfn.DominatingSet else found <= best


@pytest.mark.parametrize("problem", PROBLEMS)
def test_petersens_graph_gets_a_valid_solution(problem):
    """Solves problems on Petersen's graph, with named and with numbered nodes. Solutions must be valid, and
    not better than the known best ones. They may be worse: a slow machine may not find the best ones."""
    graph = nx.relabel_nodes(nx.petersen_graph(), {k: f"node {k}" for k in range(10)})
    alone = gfn.solve(None, problem, graph, seconds=0.2)
    assert alone.size == size(problem, graph, alone.nodes)
    assert_is_possible(problem, alone.size)
    assert (alone.samples, alone.history[-1].size) == (0, alone.size)
    assert "Solution(size=" in repr(alone)
    both = np.asarray(nx.petersen_graph().edges).T
    for index in (both, torch.as_tensor(np.concatenate([both, both[::-1]], axis=1))):
        found = gfn.solve(None, problem, index, seconds=0.1)
        assert found.size == size(problem, nx.petersen_graph(), found.nodes)
        assert_is_possible(problem, found.size)


def test_a_policy_holds_for_other_graphs():
    graphs = gfn.Graphs.from_networkx([nx.path_graph(5), nx.cycle_graph(6)])
    net = gfn.GraphNet(identity=False, embedding=16, layers=2)
    trainer = gfn.Trainer(
        gfn.IndependentSet(graphs), gfn.SizeReward(1.0), net, gfn.DetailedBalance(), batch=8
    )
    trainer.step()
    graph = nx.random_regular_graph(3, 40, seed=1)
    for policy in (trainer, trainer.network):
        found = gfn.solve(policy, gfn.IndependentSet, graph, seconds=0.5, seed=2)
        assert found.size == size(gfn.IndependentSet, graph, found.nodes) and found.samples > 0
    with pytest.raises(ValueError, match="expected a policy for Cut"):
        gfn.solve(trainer, gfn.Cut, graph)
    # With `n_nodes`, nodes without edges are part of the graph.
    found = gfn.solve(None, gfn.IndependentSet, [[0], [1]], n_nodes=4, seconds=0.05)
    graph = nx.empty_graph(4)
    graph.add_edge(0, 1)
    assert found.size == size(gfn.IndependentSet, graph, found.nodes)


def test_what_cant_be_solved_is_refused():
    graph = nx.path_graph(3)
    told = gfn.GraphNet(identity=True).build(gfn.Cut(gfn.Graphs.from_networkx([graph])))
    for error, words, given in [
        (TypeError, "expected gfn.IndependentSet", dict(problem="cut")),
        (ValueError, "seconds is 0", dict(seconds=0)),
        (ValueError, "directed", dict(graph=nx.path_graph(3, create_using=nx.DiGraph))),
        (ValueError, "edge to itself", dict(graph=nx.Graph([("a", "a")]))),
        (ValueError, "edge to itself", dict(graph=np.asarray([[0, 1], [0, 2]]))),
        (ValueError, "edge_index", dict(graph=np.zeros((3, 2), dtype=int))),
        (ValueError, "edge_index", dict(graph=np.zeros((2, 2)))),
        (TypeError, "expected a Trainer", dict(policy="net")),
        (ValueError, "identity=False", dict(policy=told)),
        (ValueError, "n_nodes", dict(n_nodes=5)),
    ]:
        with pytest.raises(error, match=words):
            gfn.solve(**{"policy": None, "problem": gfn.Cut, "graph": graph, **given})


def test_cuts_of_weighted_graphs_are_refused():
    """Solves `Cut` on a graph with weights, which must be an error, because the size of a cut is its number
    of edges. With these weights, the largest cut would have the weight -2, and an empty cut the weight 0."""
    square = nx.Graph()
    square.add_weighted_edges_from([(0, 1, 1), (1, 2, -1), (2, 3, -1), (3, 0, -1)])
    with pytest.raises(ValueError, match="the edge from . to . has the weight -1"):
        gfn.solve(None, gfn.Cut, square)
    with pytest.raises(ValueError, match="3 edges between 2 pairs of nodes"):
        gfn.solve(None, gfn.Cut, nx.MultiGraph([(0, 1), (0, 1), (1, 2)]))
    # Problems whose solutions are sets of nodes accept edge weights. `Cut` accepts edge weights of 1.
    found = gfn.solve(None, gfn.IndependentSet, square, seconds=0.05)
    assert found.size == size(gfn.IndependentSet, square, found.nodes)
    for weight in (1.0, None):
        nx.set_edge_attributes(square, weight, "weight")
        found = gfn.solve(None, gfn.Cut, square, seconds=0.05)
        assert found.size == sum((a in found.nodes) != (b in found.nodes) for a, b in square.edges)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_policy_for_sizes_sees_what_matters(problem):
    graphs = gfn.Graphs.from_graph6(["Dhc"])
    network = gfn.GraphNet(layers=3, embedding=32, identity=False)
    objective = gfn.SubTrajectoryBalance()
    trainer = gfn.Trainer(
        problem(graphs, for_size=True),
        gfn.SizeReward(),
        network,
        objective,
        batch=32,
        adam=gfn.Adam(schedule=gfn.Linear(3, 0, 300)),
    ).fit(300)
    assert trainer.exact().tv < 0.1
    found = gfn.solve(trainer, problem, nx.cycle_graph(6), seconds=0.2)
    assert found.samples > 0 and size(problem, nx.cycle_graph(6), found.nodes) == found.size
    with pytest.raises(ValueError, match="for_size"):
        gfn.Trainer(problem(graphs, for_size=True), lambda graphs: np.zeros(len(graphs)), network, objective)
