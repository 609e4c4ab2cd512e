"""Tests that a panic or another failure of the library doesn't end the process, and raises an exception that
`except Exception` catches."""

import gfn_rs as gfn
import numpy as np
import pytest
import torch
from refusals import refused
from test_modules import Messages, module_trainer


@pytest.mark.parametrize(
    "change, message",
    [
        (torch.Tensor.double, "Float on Cpu, and has shape .*Double"),
        (lambda tensor: torch.zeros([2 * size for size in tensor.shape] or [1]), "had shape .* has shape"),
        (lambda tensor: tensor.flatten()[:1].clone(), "had shape .* has shape"),
    ],
)
def test_parameters_of_another_form_are_named(change, message):
    it = gfn.Trainer(gfn.Ring(3), gfn.RingReward(), gfn.GraphNet(embedding=8), batch=4).fit(1)
    for parameter in it.parameters():
        # torch allows any code to replace the data of a parameter. The trainer must notice this.
        parameter.data = change(parameter.data)
    for use in (lambda: it.fit(2), lambda: it.sample(1), it.exact, it.loss):
        refused(use, ValueError, message)
    assert (
        gfn.Trainer(gfn.Ring(3), gfn.RingReward(), gfn.GraphNet(embedding=8), batch=4).fit(1).steps_done == 1
    )


@pytest.mark.parametrize(
    "change", [torch.Tensor.double, torch.Tensor.half, torch.Tensor.long, torch.Tensor.bool]
)
def test_a_module_of_another_kind_is_named(change):
    class Other(Messages):
        def forward(self, batch):
            nodes, graphs = super().forward(batch)
            return change(nodes), graphs

    with pytest.raises(TypeError, match="embeddings of nodes of dtype .* expected Float"):
        module_trainer(Other()).fit(1)


def test_data_of_another_number_of_variables_is_refused():
    for columns in (3, 5):
        with pytest.raises(ValueError, match="one column for each node"):
            gfn.Trainer(
                gfn.BayesianStructure(4),
                gfn.StructureReward(np.random.default_rng(0).normal(size=(10, columns))),
                gfn.Mlp((8,)),
            )


@pytest.mark.parametrize(
    "make",
    [
        lambda: gfn.Trainer(gfn.Ring(3), gfn.RingReward(), gfn.GraphNet(embedding=2**20)),
        lambda: gfn.Trainer(gfn.HyperGrid(2, 3), gfn.HyperGridReward(), gfn.Mlp((2**20, 2**20))),
        lambda: gfn.Trainer(gfn.HyperGrid(2, 3), gfn.HyperGridReward(), gfn.Mlp((8,)), batch=2**62),
        lambda: gfn.Trainer(gfn.HyperGrid(2, 3), gfn.HyperGridReward(), gfn.Mlp((8,))).sample(2**62),
    ],
)
def test_sizes_that_there_is_no_memory_for_are_refused(make):
    with pytest.raises(ValueError, match="memory|whole number"):
        make()
