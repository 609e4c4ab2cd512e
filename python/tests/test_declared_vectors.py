"""Environments of vectors that are declared in Python."""

import math

import gfn_rs as gfn
import numpy as np
import pytest

GRID = [(axis, value, value + 1) for axis in range(2) for value in range(2)]


class OffDiagonal(gfn.VectorRules):
    """Never onto the diagonal beyond the origin; sums of 1 are no ends."""

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
    exact = gfn.Trainer(own, first, gfn.Mlp((64, 64)), batch=32, lr=3e-3, lr_scale=gfn.Linear(1, 0, 400)).fit(400).exact()
    theirs = gfn.Trainer(gfn.HyperGrid(2, 3), first, gfn.Mlp((8,))).exact()
    assert (exact.n_states, exact.log_z) == (9, pytest.approx(theirs.log_z)) and exact.tv < 0.03


def test_rules_restrict_states_and_ends():
    trainer = gfn.Trainer(gfn.VectorEnv(2, 3, GRID, OffDiagonal()), first, gfn.Mlp((32, 32)), batch=32, lr=3e-3)
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
        (dict(changes=[(0, 1, 0)]), ValueError),
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


def test_moves_back_that_lead_nowhere_are_found():
    """1 can't be reached, so a move back to it would take half of P_B for nothing."""
    moves = [(0, 0, 2), (0, 1, 2)]
    with pytest.raises(ValueError, match="back"):
        gfn.VectorEnv(1, 3, moves)

    class Told(gfn.VectorRules):
        def is_reachable(self, states):
            return states[:, 0] != 1

    def flat(states):
        return np.zeros(len(states))

    trainer = gfn.Trainer(gfn.VectorEnv(1, 3, moves, Told()), flat, gfn.Mlp((16,)), batch=32, lr=3e-3, lr_scale=gfn.Linear(1, 0, 300))
    assert trainer.fit(300).exact().tv < 0.02


def test_environments_of_arrays_can_be_compared():
    assert gfn.VectorEnv(2, 3, np.array(GRID)) == gfn.VectorEnv(2, 3, np.array(GRID)) != gfn.VectorEnv(2, 3, np.array(GRID[:3]))
