"""Tests of `Environment.check`."""

import gfn_rs as gfn
import numpy as np
import pytest


@pytest.mark.parametrize(
    "env, states",
    [
        (gfn.Ring(3), 64),
        (gfn.Ring(3, directed=False), 8),
        (gfn.HyperGrid(2, 3), 9),
        (gfn.BayesianStructure(3), 25),
        (gfn.Molecules(3, elements=["C", "N"], charges=False), None),
        (gfn.VectorEnv(2, 3, [(axis, value, value + 1) for axis in range(2) for value in range(2)]), 9),
        (gfn.GraphEnv([gfn.AddEdge()], 3, start=3, labelled=True), 8),
        # The three initial nodes are interchangeable, so the four states differ only in their number of
        # edges.
        (gfn.GraphEnv([gfn.AddEdge()], 3, start=3), 4),
    ],
    ids=lambda part: type(part).__name__,
)
def test_sound_environments_pass(env, states):
    seen = env.check(walks=200)
    assert seen.visited > 3
    if states is not None:
        # In these small environments, backward moves from the visited states reach all states, so the check
        # must count all states.
        assert seen.states == states


class SecondNeedsFirst(gfn.GraphRules):
    """Rules that allow the edge between nodes 1 and 2 only after the edge between nodes 0 and 1."""

    def restrict(self, graphs, moves):
        first = np.array(
            [[0, 1] in graph.edges.tolist() for graph in (graphs[k] for k in range(len(graphs)))]
        )
        is_second = (moves.a == 1) & (moves.b == 2) & (moves.kind == moves.types.index("add_edge"))
        return ~is_second | first[moves.graph]


class Told(SecondNeedsFirst):
    """The rules `SecondNeedsFirst` with the method `is_reachable`, which returns False for unreachable
    graphs."""

    def is_reachable(self, graphs):
        edges = (graphs[k].edges.tolist() for k in range(len(graphs)))
        return np.array([[0, 1] in each or [1, 2] not in each for each in edges])


def test_moves_back_that_lead_nowhere_are_found():
    make = lambda rules: gfn.GraphEnv([gfn.AddEdge()], 3, start=3, labelled=True, rules=rules)  # noqa: E731
    with pytest.raises(ValueError, match="(?i)back|reach|initial"):
        make(SecondNeedsFirst()).check()
    # As a control, rules with `is_reachable` must pass the check.
    assert make(Told()).check().states == 6


def test_rules_that_raise_are_heard():
    class Broken(gfn.GraphRules):
        def can_exit(self, graphs):
            raise KeyError("no such thing")

    env = gfn.GraphEnv([gfn.AddEdge()], 3, start=3, labelled=True, rules=Broken())
    with pytest.raises(KeyError, match="no such thing"):
        env.check()


def test_what_cannot_be_checked_is_said():
    for env in (gfn.Box(), gfn.Line(), gfn.Diffusion(2)):
        with pytest.raises(ValueError, match="points"):
            env.check()
    for walks, error in (
        (0, ValueError),
        (-1, ValueError),
        (1.5, TypeError),
        (True, TypeError),
        (2**70, ValueError),
    ):
        with pytest.raises(error, match="walks is"):
            gfn.Ring(3).check(walks)
    for seed, error in (("a", TypeError), (1.0, TypeError), (-1, ValueError), (2**64, ValueError)):
        with pytest.raises(error, match="seed is"):
            gfn.Ring(3).check(seed=seed)
    # The check must accept any seed that the library accepts.
    assert gfn.Ring(3).check(seed=2**64 - 1).states == 64 == gfn.Ring(3).check(seed=np.uint64(2**63)).states
