"""Tests of environments of vectors that are declared in Python."""

import math

import gfn_rs as gfn
import numpy as np
import pytest
from refusals import refused

GRID = [(axis, value, value + 1) for axis in range(2) for value in range(2)]


class OffDiagonal(gfn.VectorRules):
    """Rules that forbid moves to points on the diagonal, and finished vectors whose entries have the sum
    1."""

    def restrict(self, states, moves):
        after = states[moves.state].copy()
        after[np.arange(len(moves)), moves.number // 2] += 1
        return after[:, 0] != after[:, 1]

    def is_reachable(self, states):
        return (states[:, 0] != states[:, 1]) | (states[:, 0] == 0)

    def can_end(self, states):
        return states.sum(axis=1) != 1


def first(states):
    return states[:, 0].astype(float)


def test_a_declared_grid_is_the_library_s():
    own = gfn.VectorEnv(2, 3, GRID)
    exact = (
        gfn.Trainer(
            own, first, gfn.Mlp((64, 64)), batch=32, adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 400))
        )
        .fit(400)
        .exact()
    )
    theirs = gfn.Trainer(gfn.HyperGrid(2, 3), first, gfn.Mlp((8,))).exact()
    assert (exact.n_states, exact.log_z) == (9, pytest.approx(theirs.log_z)) and exact.tv < 0.03


def test_rules_restrict_states_and_ends():
    trainer = gfn.Trainer(
        gfn.VectorEnv(2, 3, GRID, OffDiagonal()), first, gfn.Mlp((32, 32)), batch=32, adam=gfn.Adam(lr=3e-3)
    )
    exact = trainer.exact()
    states = {tuple(row) for row in exact.states.tolist()}
    assert states == {(0, 0), (1, 0), (2, 0), (2, 1), (0, 1), (0, 2), (1, 2)}
    ends = np.isfinite(exact.log_rewards)
    assert {tuple(row) for row in exact.states[ends].tolist()} == {(0, 0), (2, 0), (0, 2), (2, 1), (1, 2)}
    assert exact.log_z == pytest.approx(math.log(1 + math.exp(2) + 1 + math.exp(2) + math.exp(1)))
    before = exact.tv
    assert trainer.fit(300).exact().tv < 0.03 < before


@pytest.mark.parametrize(
    "settings, kind",
    [
        (dict(changes=[]), ValueError),
        (dict(changes=[(0, 1)]), ValueError),
        (dict(changes=[(0, 0, 1), (0, 1, 0)]), ValueError),
        (dict(changes=[[0, 0, 1], [0, 1]]), ValueError),
        (dict(changes=[(0, 2, 3)]), ValueError),
        (dict(changes=[(0, 0, 0)]), ValueError),
        (dict(changes=[(2, 0, 1)]), ValueError),
        (dict(changes=[(0, 0, 3)]), ValueError),
        (dict(changes=[(0, -1, 1)]), ValueError),
        (dict(changes=[(0, 0.0, 1.0)]), ValueError),
        (dict(changes="moves"), ValueError),
        (dict(width=0), ValueError),
        (dict(values=1), ValueError),
        (dict(width="two"), (TypeError, ValueError)),
        (dict(rules=OffDiagonal), TypeError),
        (dict(rules=3), TypeError),
        (dict(start=[]), ValueError),
        (dict(start=[[]]), ValueError),
        (dict(start=0), ValueError),
        (dict(start="here"), ValueError),
        (dict(start=[0.0, 1.0]), ValueError),
        (dict(start=[0, 3]), ValueError),
        (dict(start=[0, -1]), ValueError),
        (dict(start=[0, 0, 0]), ValueError),
        (dict(start=[[0, 0], [0]]), ValueError),
        (dict(start=[[[0, 0]]]), ValueError),
        (dict(start=np.zeros((0, 2), dtype=int)), ValueError),
        (dict(start=[[0, 0], [0, 1]]), ValueError),
    ],
)
def test_what_is_declared_wrongly_is_refused(settings, kind):
    with pytest.raises(kind):
        gfn.VectorEnv(**{**dict(width=2, values=3, changes=GRID), **settings})


@pytest.mark.parametrize("method", ["restrict", "can_end"])
def test_mistakes_in_rules_are_raised(method):
    broken = {"now": False}

    class Broken(gfn.VectorRules):
        pass

    def asked(self, states, moves=None):
        if broken["now"]:
            raise LookupError("mine")
        return np.ones(len(states if moves is None else moves), dtype=bool)

    setattr(Broken, method, asked)
    trainer = gfn.Trainer(gfn.VectorEnv(2, 3, GRID, Broken()), first, gfn.Mlp((8,)), batch=4).fit(1)
    broken["now"] = True
    with pytest.raises(LookupError, match="mine"):
        trainer.fit(1)
    broken["now"] = False
    assert np.isfinite(trainer.fit(1).history["loss"][-1])


class Never(gfn.VectorRules):
    """Rules that forbid moves to the value 1."""

    def restrict(self, states, moves):
        return moves.number != 2


def test_moves_back_that_lead_nowhere_are_found():
    """Declares an environment whose rules forbid moves to the value 1, but have no method `is_reachable`.
    Backward moves lead to this unreachable value, which the check must find."""
    moves = [(0, 0, 2), (0, 1, 2), (0, 0, 1)]
    with pytest.raises(ValueError, match="back"):
        gfn.VectorEnv(1, 3, moves, Never())
    # Without the move to the value 1, no rules are needed, because no backward move leads to this value.
    assert gfn.VectorEnv(1, 3, moves[:2]).check() == (2, 2)
    assert gfn.VectorEnv(
        2, 4, [(0, k, k + 1) for k in range(3)] + [(1, k + 1, k) for k in range(3)], start=[1, 2]
    ).check() == (9, 9)

    class Told(Never):
        def is_reachable(self, states):
            return states[:, 0] != 1

    def flat(states):
        return np.zeros(len(states))

    trainer = gfn.Trainer(
        gfn.VectorEnv(1, 3, moves, Told()),
        flat,
        gfn.Mlp((16,)),
        batch=32,
        adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 300)),
    )
    assert trainer.fit(300).exact().tv < 0.02


def test_environments_of_arrays_can_be_compared():
    assert (
        gfn.VectorEnv(2, 3, np.array(GRID))
        == gfn.VectorEnv(2, 3, np.array(GRID))
        != gfn.VectorEnv(2, 3, np.array(GRID[:3]))
    )


def test_moves_lead_up_and_down():
    """Declares moves in both directions: the first entry increases from 0 by one or by two, and the second
    entry decreases from 2."""
    moves = [(0, 0, 1), (0, 1, 2), (0, 0, 2), (1, 2, 1), (1, 1, 0)]
    env = gfn.VectorEnv(2, 3, moves, start=[0, 2])
    assert env.check() == (9, 9)
    trainer = gfn.Trainer(
        env, first, gfn.Mlp((64, 64)), batch=32, adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 400))
    )
    exact = trainer.exact()
    assert exact.states[0].tolist() == [0, 2]
    assert (exact.n_states, exact.log_z) == (
        9,
        pytest.approx(math.log(3 * sum(math.exp(k) for k in range(3)))),
    )
    assert trainer.fit(400).exact().tv < 0.03 < exact.tv


# The moves have a cycle between the values 14 and 15, which only one of 16,384 random walks reaches. From 15
# and from all values below 14, another move leads to the last value 16.
RARE = (
    [(0, value, value + 1) for value in range(16)] + [(0, value, 16) for value in range(14)] + [(0, 15, 14)]
)


@pytest.mark.parametrize(
    "moves, values",
    [
        ([(0, 0, 1), (0, 1, 0)], 2),
        ([(0, 0, 1), (0, 1, 2), (0, 2, 0)], 3),
        ([(0, 0, 1), (0, 1, 2), (0, 2, 1)], 3),
        ([(0, 0, 1), (0, 1, 2), (0, 2, 3), (0, 3, 1), (0, 2, 4)], 5),
        (RARE, 17),
    ],
)
def test_walks_that_come_round_are_refused(moves, values):
    with pytest.raises(
        ValueError, match=r"no sequence of forward moves leads back.*(returns to \[|part of a cycle)"
    ):
        gfn.VectorEnv(1, values, moves)


def test_several_starts_are_told_apart_by_what_no_move_changes():
    env = gfn.VectorEnv(2, 4, [(0, value, value + 1) for value in range(3)], start=np.array([[0, 0], [2, 1]]))
    assert env.check() == (6, 6)
    policy = gfn.Mlp((32, 32))
    trainer = gfn.Trainer(
        env,
        first,
        policy,
        gfn.DetailedBalance(),
        batch=64,
        adam=gfn.Adam(lr=1e-2, schedule=gfn.Linear(1, 0, 400)),
    ).fit(400)
    objects = trainer.sample(20_000)
    for start, least in ((0, 0), (1, 2)):
        counts = np.bincount(objects[objects[:, 1] == start, 0], minlength=4)
        weights = np.exp(np.arange(4)) * (np.arange(4) >= least)
        assert np.abs(counts / counts.sum() - weights / weights.sum()).sum() < 0.06
    refused(trainer.exact, ValueError, "`instance=k`")
    refused(
        lambda: gfn.Trainer(env, first, policy).fit(1), (ValueError, RuntimeError), "log Z of each instance"
    )
    refused(
        lambda: gfn.VectorEnv(2, 4, [(0, 0, 1)], start=[[0, 1], [2, 1]]),
        ValueError,
        "start is rows 0 and 1, which are equal",
    )


def test_environments_are_equal_where_their_starts_are():
    made = [
        gfn.VectorEnv(2, 3, GRID[:2], start=start)
        for start in (np.array([0, 0]), np.array([[0, 0]]), np.array([0, 1]))
    ]
    assert made[0] == made[1] != made[2]
