"""Tests that tensors whose memory was resized to 0 cause an exception, and don't end the process."""

import subprocess
import sys

import gfn_rs as gfn
import numpy as np
import pytest
import torch
from refusals import refused, trainer, zero
from test_modules import Messages, module_trainer


def graphs():
    return gfn.Trainer(
        gfn.Ring(3),
        gfn.RingReward(),
        gfn.GraphNet(embedding=8),
        batch=4,
        adam=gfn.Adam(average=gfn.Average()),
        sources=[gfn.Replay(10)],
    ).fit(1)


def take(tensor, n=0):
    tensor.untyped_storage().resize_(n)


USES = {
    "fit": lambda it, path: it.fit(1),
    "step": lambda it, path: it.step(),
    "sample": lambda it, path: it.sample(1),
    "sample_with_rewards": lambda it, path: it.sample_with_rewards(1),
    "exact": lambda it, path: it.exact(),
    "evaluate": lambda it, path: it.evaluate(10),
    "evaluate_on": lambda it, path: it.evaluate_on(
        gfn.Graphs.from_arrays(
            np.array([3]), np.zeros((0, 2), dtype=np.int64), np.array([0, 0]), directed=True
        )
    ),
    "loss": lambda it, path: it.loss(),
    "prefill": lambda it, path: it.prefill(1),
    "save": lambda it, path: it.save(path / "one"),
    "resume": lambda it, path: it.resume(path / "whole"),
    "restore": lambda it, path: it.restore(path / "whole"),
    "take_average": lambda it, path: it.take_average(),
}


@pytest.mark.parametrize("use", USES)
def test_a_parameter_without_memory_is_named(use, tmp_path):
    it = graphs()
    it.save(tmp_path / "whole")
    # As a control, the parameter must be usable before its memory is removed.
    USES[use](it, tmp_path)
    name, tensor = list(it.named_parameters())[-1]
    before = tensor.detach().clone()
    take(tensor)
    refused(
        lambda: USES[use](it, tmp_path), ValueError, f"storage of `{name}`, of shape .* is shorter than"
    )
    # After the memory is restored, the trainer must work again.
    take(tensor, before.nbytes)
    with torch.no_grad():
        tensor.copy_(before)
    assert len(it.sample(2)) == 2


def test_one_that_is_only_shorter_is_named_too():
    it = graphs()
    tensor = max(it.parameters(), key=torch.numel)
    take(tensor, tensor.nbytes - 1)
    refused(lambda: it.fit(1), ValueError, "is shorter than")
    take(tensor, tensor.nbytes + 100)
    assert it.fit(1).steps_done == 2


def test_memory_that_goes_in_the_middle_of_a_run_ends_it():
    it = trainer(reward=zero)
    refused(
        lambda: it.fit(6, every=2, callback=lambda it, record: take(next(it.parameters()))),
        ValueError,
        "is shorter than",
    )
    assert it.steps_done == 2 and len(it.history["loss"]) == 2


@pytest.mark.parametrize("whose", ["own", "teacher"])
def test_modules_are_looked_at_as_well(whose):
    module = Messages()
    settings = {} if whose == "own" else dict(sources=[gfn.Teacher(gfn.GraphModule(module, 64, 64))])
    it = module_trainer(module if whose == "own" else Messages(), **settings).fit(1)
    take(module.layers[0][0].weight)
    refused(lambda: it.fit(1), ValueError, "is shorter than")


def test_tensors_that_are_given_are_looked_at():
    empty = torch.zeros(4, dtype=torch.float64)
    take(empty)

    def loss(scores):
        broken = (scores.log_z.mean() + scores.log_pf.sum()).square()
        take(broken)
        return broken

    refused(
        lambda: trainer(objective=gfn.OwnObjective(loss)).fit(1),
        (TypeError, ValueError),
        "has no memory|expected the loss",
    )

    class Broken(Messages):
        def forward(self, batch):
            nodes, graphs = super().forward(batch)
            graphs = graphs.detach()
            take(graphs)
            return nodes, graphs

    refused(lambda: module_trainer(Broken()).fit(1), (TypeError, ValueError), "has no memory")


def test_the_process_lives():
    """Runs the test in a separate process, because a failure would end this process."""
    code = (
        "import gfn_rs as gfn\n"
        "it = gfn.Trainer(gfn.Ring(3), gfn.RingReward(), gfn.GraphNet(embedding=8), batch=4).fit(1)\n"
        "[tensor.untyped_storage().resize_(0) for tensor in it.parameters()]\n"
        "try:\n    it.fit(1)\nexcept ValueError:\n    print('lives')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout) == (0, "lives\n"), done.stderr
