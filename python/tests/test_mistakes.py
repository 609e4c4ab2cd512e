"""Tests of common mistakes of new users: each raises an error that names the argument and the cure, or is
harmless."""

import warnings

import gfn_rs as gfn
import numpy as np
import pytest
import torch
from refusals import refused

GRID = gfn.HyperGrid(2, 4)


def grid(reward=gfn.HyperGridReward(), policy=gfn.Mlp((16,)), **more):
    return gfn.Trainer(GRID, reward, policy, batch=8, **more)


class Detached(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 16)

    def forward(self, x):
        return self.layer(x).detach()


MISTAKES = {
    "env and reward swapped": (
        lambda: gfn.Trainer(gfn.HyperGridReward(), GRID, gfn.Mlp()),
        TypeError,
        "env is",
    ),
    "a class as reward": (lambda: grid(gfn.HyperGridReward), TypeError, r"RingReward\(\), or a function"),
    "a class as policy": (lambda: grid(policy=gfn.Mlp), TypeError, r"policy is Mlp: .*GraphNet\(\)"),
    "a module as policy": (
        lambda: grid(policy=torch.nn.Linear(8, 16)),
        TypeError,
        r"expected a policy around the module, VectorModule\(module, width\)",
    ),
    "a number as reward": (
        lambda: grid(3.0),
        TypeError,
        "reward is float: expected .* a function of a batch",
    ),
    "a reward of another environment": (
        lambda: grid(gfn.RingReward()),
        TypeError,
        "isn't a reward for vectors",
    ),
    "a network of another environment": (lambda: grid(policy=gfn.GraphNet()), TypeError, "expected Mlp"),
    "an objective as text": (
        lambda: grid(objective="TB"),
        TypeError,
        r"objective is .*TrajectoryBalance\(\)",
    ),
    "texts as log R": (lambda: grid(lambda x: ["a"] * len(x)).fit(1), TypeError, "list of real numbers"),
    "a reward without argument": (lambda: grid(lambda: 0.0).fit(1), TypeError, "argument"),
    "too few numbers": (lambda: grid(lambda x: np.zeros(3)).fit(1), ValueError, "3 numbers for"),
    "a module of another input width": (
        lambda: grid(policy=gfn.VectorModule(torch.nn.Linear(5, 16), 16)).fit(1),
        (ValueError, RuntimeError),
        r"shapes cannot be multiplied \(\d+x8 and 5x16\)",
    ),
    "a module of another output width": (
        lambda: grid(policy=gfn.VectorModule(torch.nn.Linear(8, 16), 32)).fit(1),
        (ValueError, RuntimeError),
        r"embeddings of states of shape \[\d+, 16\]: expected \[\d+, 32\]",
    ),
    "a float as steps": (lambda: grid().fit(1e3), TypeError, "steps is 1000.0: expected a whole number"),
    "steps below 0": (lambda: grid().fit(-1), ValueError, "steps is -1"),
    "an objective that needs exits": (
        lambda: gfn.Trainer(
            gfn.BitSequence(1, 4),
            gfn.HammingReward(["0011"]),
            gfn.SequenceNet(),
            gfn.ModifiedDetailedBalance(),
            batch=4,
        ).fit(1),
        ValueError,
        "modified detailed balance needs every state to be terminating, by an exit action",
    ),
    "an unknown property": (lambda: gfn.MoleculeReward("qedd"), (TypeError, ValueError), "qedd"),
    "objects outside": (lambda: grid().evaluate_on(np.array([[9, 9]])), ValueError, "is 9: expected 0 to 3"),
    "objects of floats": (lambda: grid().evaluate_on(np.array([[1.0, 2.0]])), TypeError, "array of int64"),
    "a single object": (lambda: grid().evaluate_on(np.array([1, 2])), ValueError, r"shape \[2\]"),
    "moves as texts": (lambda: GRID.step(GRID.initial(2), ["a", "b"]), TypeError, "flat array of slots"),
    "an illegal slot": (lambda: GRID.step(GRID.initial(2), [77, 0]), ValueError, "not legal"),
    "a buffer as number": (lambda: grid(sources=[1000]), TypeError, "sources"),
    "no objects": (lambda: grid(sources=[gfn.Data([])]), (TypeError, ValueError), "empty|shape"),
    "molecules as one text": (lambda: gfn.Molecules(5).states("CCO"), TypeError, "is a str"),
    "a scaffold whose ring is open": (
        lambda: gfn.Molecules(8, scaffold="c1ccc([*:1])c"),
        ValueError,
        "a ring isn't closed",
    ),
    "a callback that fails": (lambda: grid().fit(1, callback=lambda _, record: record["no"]), KeyError, "no"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_its_cure(mistake):
    refused(*MISTAKES[mistake])


def test_a_trainer_can_go_on_after_a_mistake():
    it = grid().fit(2)
    refused(lambda: it.fit(3, callback=lambda *_: 1 / 0, every=1), ZeroDivisionError, "division")
    refused(lambda: it.evaluate_on(np.array([[9, 9]])), ValueError, "9")
    assert it.steps_done == 3 and it.fit(2).steps_done == 5


def test_a_detached_module_is_warned_of():
    module = Detached()
    # A second trainer of the same module warns, too, but each trainer lists the warning once.
    for _ in range(2):
        with pytest.warns(gfn.TrainingWarning, match="only the heads are trained"):
            it = grid(policy=gfn.VectorModule(module, 16)).fit(1)
    assert sum("only the heads are trained" in warning for warning in it.warnings) == 1


def test_a_reward_that_writes_into_its_states_changes_nothing():
    def reward(states):
        states[:] = 0
        return np.zeros(len(states))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        losses = grid(reward).fit(5).history["loss"]
    assert losses.tolist() == grid(lambda states: np.zeros(len(states))).fit(5).history["loss"].tolist()
