"""Tests that a trainer's settings can be read, and that assigning a setting is an error, because it would
have no effect."""

import copy
import pickle
import warnings

import gfn_rs as gfn
import numpy as np
import pytest


def zero(states):
    return np.zeros(len(states))


def trainer(kind=gfn.Trainer, objective=None, **settings):
    return kind(gfn.HyperGrid(2, 4), zero, gfn.Mlp((8,)), objective, **{"batch": 8, **settings})


def test_settings_can_be_read():
    it = trainer(
        adam=gfn.Adam(lr=2e-3),
        sources=[gfn.Replay(10)],
        exploration=gfn.Exploration(epsilon=gfn.Linear(0.5, 0, 10)),
        seed=5,
    )
    assert (it.batch_size, it.adam.lr, it.seed, it.reward) == (8, 2e-3, 5, zero)
    assert (
        it.sources == (gfn.Replay(10),)
        and it.exploration.epsilon == gfn.Linear(0.5, 0, 10)
        and it.double is False
    )
    for told in ("HyperGrid(", "batch=8", "lr=0.002", "epsilon=Linear("):
        assert told in repr(it)
    assert trainer().exploration.epsilon == gfn.EPSILON
    # With an on-policy objective, the library doesn't explore. The attribute `exploration` must show this.
    on_policy = trainer(objective=gfn.PolicyGradient())
    assert on_policy.exploration.epsilon == 0.0 and "epsilon=0.0" in repr(on_policy)


@pytest.mark.parametrize(
    "name, value",
    [
        ("reward", zero),
        ("adam", gfn.Adam(lr=0.0)),
        ("exploration", None),
        ("sources", ()),
        ("lr", 0.0),
        ("epsilon", 0.0),
        ("batch", 4),
        ("env", None),
        ("seed", 3),
        ("eps", 0.0),
        ("fit", None),
    ],
)
def test_settings_can_not_be_set(name, value):
    it = trainer()
    before = getattr(it, name, None)
    with pytest.raises(AttributeError, match=name):
        setattr(it, name, value)
    assert getattr(it, name, None) == before


def test_subclasses_have_attributes_of_their_own():
    class Mine(gfn.Trainer):
        counted = 0

        def __init__(self, *parts, **settings):
            self.before = 1
            super().__init__(*parts, **settings)
            self.after = 2

    it = trainer(Mine)
    it.after += 1
    it.counted += 1
    assert (it.before, it.after, it.counted) == (1, 3, 1) and repr(it).startswith("Mine(")
    with pytest.raises(AttributeError, match="adam"):
        it.adam = gfn.Adam()


def test_copies_of_the_default_exploration_are_the_default():
    for copied in (
        copy.deepcopy(gfn.Exploration(exit_bias=1.0)),
        pickle.loads(pickle.dumps(gfn.Exploration(exit_bias=1.0))),
    ):
        assert copied == gfn.Exploration(exit_bias=1.0) and copied.epsilon is gfn.EPSILON
        # With an on-policy objective, an explicit `epsilon` above 0 is an error, but the default must be
        # accepted, also in a copy of the settings.
        gfn.Trainer(
            gfn.Ring(4), gfn.RingReward(), gfn.GraphNet(embedding=8), gfn.PolicyGradient(), exploration=copied
        )
    explicit = copy.deepcopy(gfn.Exploration(epsilon=gfn.Linear(0.2, 0.1, 10)))
    assert explicit.epsilon == gfn.Linear(0.2, 0.1, 10)
