"""Tests that a misspelt setting is an error whose message suggests the intended setting."""

import inspect

import gfn_rs as gfn
import numpy as np
import pytest
from refusals import trainer, zero

CALLS = [
    (
        lambda: trainer(explortion=gfn.Exploration()),
        "Trainer has no setting `explortion`: did you mean `exploration`?",
    ),
    (lambda: trainer(source=[]), "Trainer has no setting `source`: did you mean `sources`?"),
    (lambda: trainer(lr=1e-3), "Trainer has no setting `lr`: it is one of `adam`, adam=Adam(lr=...)"),
    (
        lambda: trainer(epsilon=0.1),
        "Trainer has no setting `epsilon`: it is one of `exploration`, exploration=Exploration(epsilon=...)",
    ),
    (
        lambda: gfn.Adam(learning_rate=1e-3, lrr=1e-3),
        "Adam has no setting `learning_rate`: expected one of lr, log_z_lr, schedule",
    ),
    (lambda: gfn.Adam(lrs=1e-3), "Adam has no setting `lrs`: did you mean `lr`?"),
    (
        lambda: gfn.Exploration(temprature=2.0),
        "Exploration has no setting `temprature`: did you mean `temperature`?",
    ),
    (lambda: gfn.Replay(capcity=3), "Replay has no setting `capcity`: did you mean `capacity`?"),
    (lambda: gfn.GraphNet(embeding=3), "GraphNet has no setting `embeding`: did you mean `embedding`?"),
    (
        lambda: gfn.TrajectoryBalance(regresion="squared"),
        "TrajectoryBalance has no setting `regresion`: did you mean `regression`?",
    ),
    (
        lambda: gfn.MaximumLikelihood(regression="squared"),
        "MaximumLikelihood has no setting `regression`: it has no settings",
    ),
    (lambda: gfn.Molecules(9, element=["C"]), "Molecules has no setting `element`: did you mean `elements`?"),
    (
        lambda: gfn.StructureReward(np.eye(3), standardize=True),
        "StructureReward has no setting `standardize`: did you mean `standardise`?",
    ),
    (
        lambda: gfn.ParallelReward(zero, None, retry=3),
        "ParallelReward has no setting `retry`: did you mean `retries`?",
    ),
    (lambda: gfn.Actors(zero, None, task=3), "Actors has no setting `task`: did you mean `tasks`?"),
    (lambda: gfn.Sampler(None, None, eps=0.1), "Sampler has no setting `eps`: did you mean `epsilon`?"),
    (
        lambda: gfn.solve(None, gfn.Clique, None, second=1.0),
        "solve has no setting `second`: did you mean `seconds`?",
    ),
    (lambda: gfn.load("file", polcy=None), "load has no setting `polcy`: did you mean `policy`?"),
    (
        lambda: gfn.Mlp().build(gfn.HyperGrid(2, 3), n_condition=1),
        "Policy.build has no setting `n_condition`: did you mean `n_conditions`?",
    ),
]


@pytest.mark.parametrize("call, message", CALLS)
def test_a_misspelt_setting_is_refused_with_a_suggestion(call, message):
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value).startswith(message)


def test_signatures_are_those_of_the_settings():
    assert list(inspect.signature(gfn.Linear).parameters) == ["from_", "to", "steps"]
    assert list(inspect.signature(gfn.Trainer).parameters)[:4] == ["env", "reward", "policy", "objective"]
    assert inspect.signature(gfn.solve).parameters["seconds"].default == 1.0


def test_a_subclass_has_settings_of_its_own():
    class Small(gfn.Trainer):
        def __init__(self, *, width=4, **settings):
            super().__init__(gfn.HyperGrid(2, 3), zero, gfn.Mlp((width,)), **settings)

    class Fast(gfn.Adam):
        def __init__(self, *, rate):
            super().__init__(lr=rate)

    assert Small(width=3, batch=2, adam=Fast(rate=0.5)).adam.lr == 0.5
    with pytest.raises(TypeError, match="did you mean `batch`"):
        Small(batches=2)
    with pytest.raises(TypeError, match="Fast has no setting `rates`: did you mean `rate`"):
        Fast(rates=0.5)
