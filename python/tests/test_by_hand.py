"""Tests of steps in environments without a policy or a trainer: states, moves and reverse moves."""

import itertools
import math

import gfn_rs as gfn
import networkx as nx
import numpy as np
import pytest
from refusals import refused

ENVS = [
    gfn.Ring(4),
    gfn.Triangle(3),
    gfn.ColoredGraphs(4),
    gfn.GraphBuilding(5, attached=True, node_classes=2, edge_classes=2),
    gfn.GraphEnv([gfn.AddEdge()], 4, start=4),
    gfn.Molecules(4),
    gfn.Fragments(2),
    gfn.BayesianStructure(4),
    gfn.HyperGrid(3, 4),
    gfn.TokenSequence(3, 4, 2),
    gfn.SetAddition(5, 3, fixed_length=True),
    gfn.PhyloTree(4),
    gfn.ToyDag(),
    gfn.VectorEnv(2, 3, [(0, 0, 1), (0, 1, 2), (1, 0, 2)]),
]
SMALL = [
    gfn.Ring(3),
    gfn.GraphBuilding(4, attached=True),
    gfn.GraphEnv([gfn.AddEdge()], 4, start=4),
    gfn.BayesianStructure(3),
    gfn.HyperGrid(2, 4),
    gfn.ToyDag(),
]


def named(env):
    return type(env).__name__


def flat(reward):
    return lambda states: np.zeros(len(states))


@pytest.mark.parametrize("env", ENVS, ids=named)
def test_walks_end_and_lead_back_step_by_step(env):
    rng = np.random.default_rng(0)
    states, done = env.initial(6), np.zeros(6, dtype=bool)
    assert env.is_initial(states).all() and len(states) == 6
    assert len(env.moves(states, backward=True)) == 0
    for _ in range(200):
        live = np.flatnonzero(~done)
        if not len(live):
            break
        before = states[live]
        moves = env.moves(before)
        masks = env.masks(before)
        assert len(masks) == len(live)
        # The moves of each state must be its legal slots.
        assert all(np.array_equal(moves.at(k).slot, np.flatnonzero(masks.at(k))) for k in range(len(live)))
        taken = moves.draw(rng)
        step = env.step(before, taken)
        assert np.array_equal(step.exit, taken.is_exit)
        inner = np.flatnonzero(~step.exit)
        if len(inner):
            back = env.backward_step(step.states[inner], step.reverse[inner])
            assert env.keys(back.states) == env.keys(before[inner])
            assert np.array_equal(back.done, env.is_initial(before[inner]))
            # The reverse of each step must be a legal backward move.
            legal = env.masks(step.states[inner], backward=True)
            assert all(legal.at(k)[slot] for k, slot in enumerate(step.reverse[inner]))
        assert (step.reverse[step.exit] == -1).all()
        done[live] = step.done
        states = replaced(states, live, step.states)
    assert done.all()


def replaced(states, rows, others):
    """Returns the batch `states`, with the states at the indices `rows` replaced by the states `others`."""
    if isinstance(states, np.ndarray):
        states = states.copy()
        states[rows] = others
        return states
    order = np.arange(len(states))
    order[rows] = len(states) + np.arange(len(rows))
    return (states + others)[order]


def listed(env):
    """Lists all states of an environment by breadth-first search from the initial state."""
    states = env.initial(1)
    known, frontier = {env.keys(states)[0]}, states
    while len(frontier):
        moves = env.moves(frontier)
        moves = moves[~moves.is_exit]
        if not len(moves):
            break
        children = env.step(frontier[moves.state], moves.slot).states
        new = [k for k, key in enumerate(env.keys(children)) if key not in known and not known.add(key)]
        frontier = children[new]
        states = frontier if states is None else replaced_joined(states, frontier)
    return states


def replaced_joined(states, others):
    return np.concatenate([states, others]) if isinstance(states, np.ndarray) else states + others


@pytest.mark.parametrize("env", SMALL, ids=named)
def test_the_states_that_walking_finds_are_all(env):
    exact = gfn.Trainer(
        env, lambda states: np.zeros(len(states)), gfn.Uniform(), gfn.LogPartitionVariance(), batch=2
    ).exact()
    found = listed(env)
    assert sorted(env.keys(found)) == sorted(env.keys(exact.states))


def test_automorphisms_are_counted():
    env = gfn.GraphBuilding(5)
    graphs = gfn.Graphs.from_networkx([graph for graph in nx.graph_atlas_g() if 1 <= len(graph) <= 5])
    counted = [
        sum(
            nx.is_isomorphic(g, g) and all(g.has_edge(p[a], p[b]) for a, b in g.edges)
            for p in itertools.permutations(range(len(g)))
        )
        for g in graphs.networkx()
    ]
    assert np.allclose(env.log_automorphisms(graphs), np.log(counted))
    # For labelled graphs, log |Aut| must be 0.
    assert (gfn.Ring(4, directed=False).log_automorphisms(gfn.Ring(4, directed=False).initial(2)) == 0).all()


def test_keys_are_equal_where_graphs_are_isomorphic():
    path = gfn.Graphs.from_arrays(
        [4, 4], [[0, 1], [1, 2], [2, 3], [2, 1], [1, 0], [0, 3]], [0, 3, 6], directed=False
    )
    star = gfn.Graphs.from_networkx([nx.star_graph(3)])
    free, told = gfn.GraphBuilding(4), gfn.GraphEnv([gfn.AddEdge()], 4, start=4, labelled=True)
    assert path[0] != path[1] and free.keys(path[0]) == free.keys(path[1]) != free.keys(star)
    assert told.keys(path[0]) != told.keys(path[1])


def test_moves_have_names():
    env = gfn.GraphEnv([gfn.AddNode(attached=True), gfn.AddEdge()], 4, node_classes=3, edge_classes=2)
    first, attached, edge, exit_ = env.move_types
    moves = env.moves(env.initial(1))
    # The first node is added without an edge, and may have any class.
    assert [name for name in moves.describe() if name.startswith(first)] == [
        f"{first}(0, 0, {k})" for k in range(3)
    ] and exit_ == "exit"
    grown = env.step(env.initial(1), [moves[0].slot[0]]).states
    after = env.moves(grown)
    more = after[after.kind == env.move_types.index(attached)]
    # `column` is the index of a move's variant. A move that attaches a node has a variant for each class of
    # the node and each of the two classes of its edge: 2 * (class of the node) + (class of the edge).
    assert more.column.tolist() == list(range(6)) and (more.a == 0).all()
    pair = env.step(grown, more[5:]).states
    assert pair.node_classes.tolist() == [0, 2] and pair.edge_classes.tolist() == [1]
    assert env.moves(pair, backward=True).describe() == [f"{attached}({k}, 0, 0)" for k in range(2)]


def test_moves_are_chosen_from_as_arrays_are():
    env = gfn.HyperGrid(2, 4)
    moves = env.moves(env.initial(3))
    assert (
        len(moves) == 9
        and moves[2] == moves[[2]]
        and moves[-1] == moves[8:]
        and moves[moves.is_exit].slot.tolist() == [2, 2, 2]
    )
    assert (
        moves.at(1).state.tolist() == [1, 1, 1]
        and moves != moves[:3]
        and "9 moves of 3 states" in repr(moves)
    )
    drawn = np.array([moves.draw(np.random.default_rng(seed)).slot for seed in range(600)])
    # Each of the three moves must have the frequency 1/3, within five standard deviations.
    for slot in range(3):
        assert abs((drawn == slot).mean() - 1 / 3) < 5 * math.sqrt(2 / 9 / drawn.size)


def test_rules_of_ones_own_are_heeded_and_what_they_raise_is_raised():
    class Thin(gfn.GraphRules):
        def restrict(self, graphs, moves):
            assert moves.slot is None and len(moves.graph) == len(moves)
            return moves.a != 0

    env = gfn.GraphEnv([gfn.AddEdge()], 4, start=4, labelled=True, rules=Thin())
    moves = env.moves(env.initial(1))
    assert (moves[~moves.is_exit].a != 0).all() and len(moves) == 4

    class Broken(gfn.GraphRules):
        def restrict(self, graphs, moves):
            raise KeyError("mine")

    env = gfn.GraphEnv([gfn.AddEdge()], 4, start=4, labelled=True, rules=Broken())
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            env.moves(env.initial(1))


ring, grid = gfn.Ring(4), gfn.HyperGrid(2, 4)
REFUSED = [
    (lambda: ring.initial(-1), ValueError, "expected a whole number"),
    (lambda: ring.initial(1.5), TypeError, "expected a whole number"),
    (lambda: ring.initial(True), TypeError, "expected a whole number"),
    (lambda: ring.initial(2**41), ValueError, "expected a whole number"),
    (lambda: ring.initial(2, 1), IndexError, "1"),
    (lambda: ring.initial(2, -1), IndexError, "expected 0 to 0"),
    (lambda: ring.initial(2, [0, 0, 0]), TypeError, "one for each of 2"),
    (lambda: ring.initial(2, 0.5), TypeError, "instance"),
    (lambda: ring.initial(2, "a"), TypeError, "instance"),
    (lambda: ring.initial(2, None), TypeError, "instance"),
    (lambda: ring.moves(3), TypeError, "expected Graphs"),
    (lambda: ring.moves(None), TypeError, "expected Graphs"),
    (lambda: ring.moves(grid.initial(2)), TypeError, "expected Graphs"),
    (lambda: ring.moves(gfn.Graphs.from_graph6(["A_"])), ValueError, "schema"),
    (
        lambda: gfn.GraphBuilding(3).moves(gfn.GraphBuilding(5).initial(1) + gfn.Graphs.from_graph6(["D??"])),
        ValueError,
        "at most 3",
    ),
    (lambda: ring.moves(ring.initial(1), backward=1), TypeError, "True or False"),
    (lambda: ring.moves(ring.initial(1), backward=None), TypeError, "True or False"),
    (lambda: ring.masks(ring.initial(1), backward="no"), TypeError, "True or False"),
    (lambda: ring.masks([1, 2]), TypeError, "expected Graphs"),
    (lambda: ring.keys("D??"), TypeError, "expected Graphs"),
    (lambda: ring.log_automorphisms(1), TypeError, "expected Graphs"),
    (lambda: ring.is_initial({}), TypeError, "expected Graphs"),
    (lambda: grid.moves([[0, 9]]), ValueError, "expected 0 to 3"),
    (lambda: grid.moves([[0, -1]]), ValueError, "expected 0 to 3"),
    (lambda: grid.moves([[0, 1, 2]]), ValueError, "shape"),
    (lambda: grid.moves([[0.5, 1.0]]), TypeError, "int64"),
    (lambda: grid.moves("ab"), TypeError, "int64"),
    (lambda: grid.keys(ring.initial(1)), TypeError, "int64"),
    (lambda: ring.step(ring.initial(2), [0]), ValueError, "one move for each of 2"),
    (lambda: ring.step(ring.initial(2), [1, 99]), ValueError, "action 99 is not legal"),
    (lambda: ring.step(ring.initial(2), [1, -1]), ValueError, "slots of at least 0"),
    (lambda: ring.step(ring.initial(2), [1, 2**40]), ValueError, "is not legal"),
    (lambda: ring.step(ring.initial(2), [0.0, 1.0]), TypeError, "slots"),
    (lambda: ring.step(ring.initial(2), "ab"), TypeError, "slots"),
    (lambda: ring.step(ring.initial(2), None), TypeError, "slots"),
    (lambda: ring.step(ring.initial(2), [[0], [1]]), ValueError, "one move for each"),
    (lambda: ring.step(ring.initial(2), ring.moves(ring.initial(2))), ValueError, "in order"),
    (lambda: ring.step(ring.initial(2), ring.moves(ring.initial(2))[[14, 1]]), ValueError, "in order"),
    (
        lambda: ring.backward_step(ring.initial(1), ring.moves(ring.initial(1))[:1]),
        ValueError,
        "backward=True",
    ),
    (lambda: ring.backward_step(ring.initial(1), [0]), ValueError, "is not legal"),
    (
        lambda: ring.step(ring.initial(1), ring.moves(ring.initial(1), backward=True)),
        ValueError,
        "backward=False",
    ),
    (lambda: grid.step([[3, 0]], [0]), ValueError, "is not legal"),
    (lambda: grid.backward_step([[0, 1]], [0]), ValueError, "is not legal"),
    (lambda: ring.moves(ring.initial(1))[99], IndexError, "out of bounds"),
    (lambda: ring.moves(ring.initial(1))[True], TypeError, "can't be chosen"),
    (lambda: ring.moves(ring.initial(1))["a"], TypeError, "can't be chosen"),
    (lambda: ring.moves(ring.initial(1))[[True, False]], IndexError, "oolean"),
    (lambda: ring.moves(ring.initial(1))[[0.5]], TypeError, "can't be chosen"),
    (lambda: ring.moves(ring.initial(1))[[[0]]], TypeError, "can't be chosen"),
    (lambda: ring.moves(ring.initial(1)).at(-1), ValueError, "whole number"),
    (lambda: ring.masks(ring.initial(1)).at(1), IndexError, "out of bounds"),
    (lambda: ring.masks(ring.initial(1)).at("a"), TypeError, "whole number"),
    (lambda: gfn.Box().initial(1), ValueError, "Sampler"),
    (lambda: gfn.Line().moves(np.zeros((1, 2))), ValueError, "Sampler"),
    (lambda: gfn.Diffusion(2).step(np.zeros((1, 2)), [0]), ValueError, "Sampler"),
    (
        lambda: gfn.BayesianStructure(3).moves(np.ones((1, 3, 3), dtype=bool)),
        ValueError,
        "row 0 of states has a directed cycle",
    ),
    (lambda: gfn.BayesianStructure(3).moves(np.zeros((1, 2, 2), dtype=bool)), ValueError, "shape"),
    (lambda: gfn.Molecules(3).moves(["not a molecule"]), ValueError, "not a molecule"),
    (lambda: gfn.Molecules(3).moves(["CCCCCC"]), ValueError, "at most 3"),
]


@pytest.mark.parametrize("call, kind, says", REFUSED, ids=range(len(REFUSED)))
def test_what_makes_no_sense_is_refused(call, kind, says):
    with pytest.raises(kind, match=says):
        call()


def test_what_rules_raise_is_raised_by_whoever_asked():
    import threading

    class Picky(gfn.GraphRules):
        def restrict(self, graphs, moves):
            if (graphs.n_edges == 1).any():
                raise KeyError("one edge")
            return np.ones(len(moves), dtype=bool)

    env = gfn.GraphEnv([gfn.AddEdge()], 4, start=4, labelled=True, rules=Picky())
    empty, one = env.initial(1), gfn.Graphs.from_arrays([4], [[0, 1]], [0, 1], directed=False)
    wrong = []

    def ask(states, fails):
        for _ in range(30):
            try:
                if len(env.moves(states)) == 0 or fails:
                    wrong.append("no error, or no moves")
            except KeyError:
                if not fails:
                    wrong.append("another's error")

    threads = [
        threading.Thread(target=ask, args=pair) for pair in [(empty, False), (one, True), (empty, False)]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_rules_that_walk_their_own_environment_get_an_error():
    class Inward(gfn.GraphRules):
        def restrict(self, graphs, moves):
            self.env.moves(self.env.initial(1))
            return np.ones(len(moves), dtype=bool)

    rules = Inward()
    rules.env = env = gfn.GraphEnv([gfn.AddEdge()], 3, start=3, labelled=True, rules=rules)
    with pytest.raises(RuntimeError, match="called by one of its own rules"):
        env.moves(env.initial(1))


def test_a_cycle_through_an_environment_that_was_walked_is_collected():
    import gc
    import weakref

    class Held(gfn.GraphRules):
        def restrict(self, graphs, moves):
            return np.ones(len(moves), dtype=bool)

    rules = Held()
    rules.env = gfn.GraphEnv([gfn.AddEdge()], 3, start=3, labelled=True, rules=rules)
    rules.env.moves(rules.env.initial(1))
    seen = weakref.ref(rules)
    del rules
    gc.collect()
    assert seen() is None


def test_moves_of_another_environment_are_not_applied():
    plane, space = gfn.HyperGrid(2, 3), gfn.HyperGrid(3, 3)
    moves = plane.moves(plane.initial())
    assert plane.apply(plane.initial(), moves).tolist() == [[1, 0], [0, 1], [0, 0]]
    message = "moves has slots that belong to other moves in this environment"
    refused(lambda: space.apply(space.initial(), moves[moves.is_exit]), ValueError, message)
    ring = gfn.Ring(3)
    message = "moves has the types .*: expected moves of this environment, with the types move, exit"
    refused(lambda: plane.apply(plane.initial(), ring.moves(ring.initial())), ValueError, message)
