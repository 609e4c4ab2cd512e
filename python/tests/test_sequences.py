"""Tests that networks of sequences don't reuse stored results after their parameters have changed."""

import gfn_rs as gfn
import numpy as np
import pytest
import torch


def trainer():
    return gfn.Trainer(
        gfn.BitSequence(1, 4), gfn.HammingReward(["0011"]), gfn.SequenceNet(width=16), batch=16, seed=1
    )


def fused(parameters, values):
    optimizer = torch.optim.Adam(parameters, lr=0.5, fused=True)
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()


def by_numpy(parameters, values):
    for parameter, value in zip(parameters, values):
        parameter.detach().numpy()[...] = value.numpy()


def by_data(parameters, values):
    for parameter, value in zip(parameters, values):
        parameter.data.copy_(value)


def other_data(parameters, values):
    for parameter, value in zip(parameters, values):
        parameter.data = value


def as_a_vector(parameters, values):
    torch.nn.utils.vector_to_parameters(torch.cat([value.flatten() for value in values]), parameters)


@pytest.mark.parametrize("change", [fused, by_numpy, by_data, other_data, as_a_vector])
def test_a_change_of_parameters_is_seen_however_it_was_made(change):
    it, other = trainer().fit(2), trainer().fit(2)
    # In these evaluations, both networks compute and store the results of all sequences with their current
    # parameters.
    before = it.exact()
    assert len(it.sample(500)) == len(other.sample(500))
    parameters, generator = list(it.parameters()), torch.Generator().manual_seed(0)
    change(parameters, [0.5 * torch.randn(parameter.shape, generator=generator) for parameter in parameters])
    with torch.no_grad():
        for mine, its in zip(other.parameters(), parameters):
            mine.copy_(its)
    after = it.exact()
    assert after.probs.tolist() == other.exact().probs.tolist()
    assert np.abs(after.probs - before.probs).sum() > 0.05
    assert it.sample(500).tolist() == other.sample(500).tolist()
    assert it.fit(2).history["loss"].tolist()[:-1] == other.fit(2).history["loss"].tolist()[:-1]
