"""Functions that several tests of bad input use."""

import gfn_rs as gfn
import numpy as np
import pytest

NAN, INF = float("nan"), float("inf")


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
    # The exception must be a subclass of `Exception`, so that `except Exception` catches it. A
    # `PanicException` of pyo3 isn't such a subclass.
    assert isinstance(caught.value, Exception) and type(caught.value).__name__ != "PanicException"
    # The message must not contain Rust names, which Python users don't know.
    text = str(caught.value)
    assert "::" not in text and "`with_" not in text, text
