"""Bad input: an exception of a fitting type that says what was wrong, never a panic, an abort, a hang or silence."""

import dataclasses
import os
import threading

import gfn_rs as gfn
import numpy as np
import pytest
import torch

NAN, INF = float("nan"), float("inf")
WRONG = (TypeError, ValueError)


def zero(states):
    return np.zeros(len(states))


def trainer(env=gfn.HyperGrid(2, 3), reward=zero, policy=gfn.Mlp((8,)), objective=None, **settings):
    return gfn.Trainer(env, reward, policy, objective, **{"batch": 4, **settings})


def graph_trainer(env=gfn.GraphBuilding(3), reward=zero, policy=gfn.GraphNet(embedding=8), **settings):
    return trainer(env, reward, policy, **settings)


def ints(*values):
    return np.asarray(values, dtype=np.int64)


def refused(call, kind, message):
    with pytest.raises(kind, match=message) as caught:
        call()
    # pyo3's panics are no Exceptions, so that `except Exception` would miss them.
    assert isinstance(caught.value, Exception) and type(caught.value).__name__ != "PanicException"


# One good set of values for each class of settings, and the names of the whole numbers, numbers, choices and lists in it.
GOOD = {
    gfn.Ring: {"n_nodes": 3},
    gfn.Triangle: {},
    gfn.ColoredGraphs: {"max_nodes": 3},
    gfn.GraphBuilding: {"max_nodes": 3},
    gfn.Molecules: {"max_atoms": 3},
    gfn.Fragments: {"max_fragments": 2},
    gfn.HyperGrid: {"ndim": 2, "height": 3},
    gfn.BitSequence: {"word_size": 1, "seq_size": 4},
    gfn.PrependAppendBitSequence: {"word_size": 1, "seq_size": 4},
    gfn.NonAutoregressiveBitSequence: {"word_size": 1, "seq_size": 4},
    gfn.TokenSequence: {"n_tokens": 3, "length": 3},
    gfn.DiscreteEbm: {"n": 3},
    gfn.SetAddition: {"n_items": 4, "max_items": 2},
    gfn.PerfectBinaryTree: {"depth": 3},
    gfn.PhyloTree: {"n": 4},
    gfn.BayesianStructure: {"nodes": 3},
    gfn.Box: {},
    gfn.Line: {},
    gfn.Diffusion: {"dim": 2},
    gfn.GraphNet: {},
    gfn.EdgeMlp: {},
    gfn.Mlp: {},
    gfn.SequenceNet: {},
    gfn.NodeAttention: {},
    gfn.EdgeTransformer: {},
    gfn.BoxNet: {},
    gfn.LineNet: {},
    gfn.DiffusionNet: {},
    gfn.RingReward: {},
    gfn.TriangleReward: {},
    gfn.ColoredGraphReward: {},
    gfn.MoleculeReward: {},
    gfn.HyperGridReward: {},
    gfn.HammingReward: {"modes": ["01"]},
    gfn.WeightReward: {"base": 1.0, "weights": [1.0]},
    gfn.ParsimonyReward: {"sequences": ["A", "C"], "offset": 1.0},
    gfn.TableReward: {"alphabet": "AC", "path": "table"},
    gfn.ToyReward: {"rewards": [1.0] * 6},
    gfn.BoxReward: {},
    gfn.LineReward: {"modes": [(0.0, 1.0)]},
    gfn.GaussianTarget: {"mean": [0.0]},
    gfn.MixtureTarget: {},
    gfn.FunnelTarget: {},
    gfn.ManyWellTarget: {},
    gfn.DetailedBalance: {},
    gfn.SubTrajectoryBalance: {},
    gfn.PolicyGradient: {},
    gfn.ProximalPolicy: {},
    gfn.TrajectoryBalance: {},
    gfn.Replay: {},
    gfn.Linear: {"from_": 1.0, "to": 0.0, "steps": 10},
    gfn.Constant: {"value": 1.0},
}
BAD = {
    "int": [-1, 2**70, -(2**70), True, 3.5, NAN, "3", [3], None, np.float64(3), object()],
    "float": ["1", NAN, INF, -INF, [1.0], None, True, 1j, torch.zeros(2)],
    "bool": ["yes", 2, None, 0.0, []],
    "Literal": ["nobody", 3, None, ["uniform"], b"gin", ""],
    "Sequence[int]": [3, "12", [1.5], [True], [[1]], None, [2**70], np.zeros((2, 2))],
    "Sequence[float]": [3.0, "12", ["1"], [NAN], [[1.0]], None, [INF]],
    "Sequence[str]": ["01", [1], 3, None, [None]],
    "str": [3, b"AC", None, ["A"]],
}


def settings_cases():
    for kind, good in GOOD.items():
        for field in dataclasses.fields(kind):
            for hint, values in BAD.items():
                fits = field.type.startswith(hint) or (hint == "Literal" and field.type in ("Backward", "Activation", "Advantage"))
                for value in values if fits else []:
                    if value is None and "None" in field.type:
                        continue
                    yield pytest.param(kind, {**good, field.name: value}, field.name, id=f"{kind.__name__}-{field.name}-{value!r:.20}")


@pytest.mark.parametrize("kind, values, name", list(settings_cases()))
def test_settings_name_the_value_that_is_wrong(kind, values, name):
    refused(lambda: kind(**values), WRONG, rf"(?s){kind.__name__}\.{name} is .*: expected")
