"""Tests that the torch state of a caller (autocast, modes, hooks, `no_grad`) doesn't affect the library."""

import contextlib

import gfn_rs as gfn
import numpy as np
import pytest
import torch
from test_modules import Half, Messages, module_trainer
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode


class Raising(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        raise KeyError("not of the library's business")


def raising(tensor):
    raise KeyError("not of the library's business")


INSIDE = {
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "FakeTensorMode": FakeTensorMode,
    "a mode that raises": Raising,
    "hooks that raise": lambda: torch.autograd.graph.saved_tensors_hooks(raising, lambda tensor: tensor),
}
MADE = {
    "grid": lambda: gfn.Trainer(gfn.HyperGrid(2, 4), gfn.HyperGridReward(), gfn.Mlp((8,)), batch=8),
    "graphs": lambda: gfn.Trainer(
        gfn.GraphBuilding(3), lambda graphs: graphs.n_edges / 2.0, gfn.GraphNet(embedding=8), batch=8
    ),
    "sequences": lambda: gfn.Trainer(
        gfn.BitSequence(1, 4), gfn.HammingReward(["0011"]), gfn.SequenceNet(width=8), batch=8
    ),
}


def figures(it):
    return [*it.fit(4).history["loss"], it.exact().tv, len(it.sample(5))]


@pytest.mark.parametrize("of", MADE)
@pytest.mark.parametrize("inside", INSIDE)
def test_all_is_as_outside(inside, of):
    expected = figures(MADE[of]())
    it = MADE[of]()
    with INSIDE[inside]():
        assert figures(it) == expected
        made_inside = MADE[of]()
        assert figures(made_inside) == expected
    # After torch's state is restored, both trainers must continue as if the state had never been changed.
    plain = MADE[of]().fit(6).history["loss"].tolist()
    assert it.fit(2).history["loss"].tolist() == made_inside.fit(2).history["loss"].tolist() == plain


def test_a_caller_is_inside_of_it_still():
    it = MADE["grid"]()
    with torch.no_grad():
        it.fit(1)
        assert not torch.is_grad_enabled()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        it.fit(1)
        assert (
            torch.is_autocast_enabled("cpu") and (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
        )
    with pytest.raises(KeyError), Raising():
        it.fit(1)
        torch.zeros(1)


def test_so_is_what_the_library_calls():
    seen = []

    def reward(states):
        seen.append((torch.is_autocast_enabled("cpu"), torch.is_inference_mode_enabled()))
        return np.zeros(len(states))

    it = gfn.Trainer(gfn.HyperGrid(2, 4), reward, gfn.Mlp((8,)), batch=8)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.inference_mode():
        it.fit(2)
    assert set(seen) == {(False, False)}


@pytest.mark.parametrize("outside", [contextlib.nullcontext, INSIDE["autocast"]])
def test_casts_of_a_module_are_of_its_weights_now(outside):
    """Trains a module that uses autocast, with and without an outer region of autocast. An outer region
    caches the cast weights until its end, so all steps would use the first step's weights if the library
    didn't reset torch's state."""
    torch.manual_seed(0)
    plain = module_trainer(Half(torch.bfloat16, 1.0)).fit(5).history["loss"].tolist()
    torch.manual_seed(0)
    it = module_trainer(Half(torch.bfloat16, 1.0))
    with outside():
        torch.nn.Linear(2, 2)(torch.ones(1, 2))
        assert it.fit(5).history["loss"].tolist() == plain


def test_a_profiler_sees_the_library():
    it = MADE["grid"]().fit(1)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        it.fit(1)
    assert {"aten::addmm", "aten::mm", "aten::linear"} & {event.key for event in profile.key_averages()}


def test_fake_tensors_are_refused():
    class Fake(Messages):
        def forward(self, batch):
            with FakeTensorMode():
                return torch.zeros(len(batch.batch), 64), torch.zeros(batch.n_graphs, 64)

    with pytest.raises((TypeError, ValueError), match="a fake tensor"):
        module_trainer(Fake())
