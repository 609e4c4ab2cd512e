"""Tests in separate processes that Ctrl-C ends any long call, that the trainer can continue afterwards, and
that other exceptions aren't affected."""

import signal
import subprocess
import sys
import time

import pytest

SET_UP = """
import signal, sys
import gfn_rs as gfn
import numpy as np

signal.signal(signal.SIGINT, signal.default_int_handler)
settings = dict(batch=8, sources=[gfn.Replay(100)])
zeros = lambda states: np.zeros(len(states))
grid = gfn.Trainer(gfn.HyperGrid(4, 32), gfn.HyperGridReward(), gfn.Mlp((256, 256)), **settings)
network = gfn.GraphNet(embedding=32)
graphs = gfn.Trainer(gfn.GraphBuilding(9), zeros, network, **settings)
sets = gfn.SetAddition(1000, 500, fixed_length=True)
tensors = gfn.Trainer(sets, zeros, gfn.Mlp((256,)), batch=1, rollouts="device")
points = np.random.default_rng(0).normal(size=(2500, 2))
"""
ENDED = """
print("begun", flush=True)
try:
    {what}
except KeyboardInterrupt:
    print("interrupted", grid.fit(1).steps_done, graphs.fit(1).steps_done)
else:
    print("finished")
"""


def interrupted(what, ignored=False):
    """Starts a process that gets SIGINT after half a second. Returns the process's output, and the time until
    its end."""
    code = (
        SET_UP + ("signal.signal(signal.SIGINT, signal.SIG_IGN)" if ignored else "") + ENDED.format(what=what)
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.5)
        sent = time.perf_counter()
        process.send_signal(signal.SIGINT)
        out = process.communicate(timeout=120)[0]
        return out.strip(), time.perf_counter() - sent


@pytest.mark.parametrize(
    "what",
    [
        "grid.prefill(2**27)",
        "graphs.prefill(2**27)",
        "grid.sample(2**27)",
        "graphs.sample(2**27)",
        # This is a single roll-out, whose many steps take longer than the test allows.
        "tensors.sample(2**12)",
        "grid.sample_with_rewards(2**27)",
        "grid.exact(2**21)",
        "graphs.exact(2**30)",
        "grid.evaluate(2**27)",
        "graphs.evaluate_on(graphs.sample(10), paths=2**24)",
        "grid.fit(2**30)",
        "gfn.wasserstein2(points, points[::-1] + 1)",
        "gfn.Molecules(12).check(walks=3000)",
    ],
)
def test_a_signal_ends_it(what):
    said, took = interrupted(what)
    assert said == "interrupted 1 1" if "fit" not in what else said.startswith("interrupted")
    assert took < 15


def test_a_signal_that_is_ignored_changes_nothing():
    """Runs a negative control, in which the process ignores SIGINT. The calls must run to their end. They are
    much shorter than those of the other tests, so that the control takes little time."""
    assert interrupted("grid.sample(2**16)", ignored=True)[0] == "finished"
    assert interrupted("grid.prefill(2**17)", ignored=True)[0] == "finished"
