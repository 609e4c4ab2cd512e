"""Measures the overhead of rewards and rules in Python, in milliseconds per batch of 128 trajectories, and
relative to the time of training on ring-4 (graphs of four nodes, with `RingReward`).

  overhead.py [REPRODUCE]

REPRODUCE is the path of the Rust program `reproduce`. If it is given, the training steps per second of this
program are measured, too, alternating with those of Python.

All times are medians, with one thread.
"""

import json
import math
import statistics
import subprocess
import sys
import time
import warnings

import gfn_rs as gfn
import numpy as np
import torch

# The trainers intentionally don't explore, so the warning about missing exploration is ignored.
warnings.simplefilter("ignore", gfn.TrainingWarning)

ROUNDS = 200
# The number of windows over which medians are computed. A window has six training steps of each trainer.
WINDOWS = 250
# The number of training steps of a run that is compared with `reproduce`.
STEPS = 1_000


def constant(graphs):
    return np.zeros(len(graphs))


def ring(graphs, n=4, hit=math.log(100.0), floor=math.log(1e-6)):
    """Returns log R of `RingReward` for a batch of graphs. A graph is a ring if each node has one outgoing
    edge and a walk along these edges returns to the first node after n steps, but not before."""
    b, edges = len(graphs), graphs.edges
    graph = np.repeat(np.arange(b), graphs.n_edges)
    out = np.bincount(graph * n + edges[:, 0], minlength=b * n).reshape(b, n)
    following = np.zeros((b, n), dtype=np.int64)
    following[graph, edges[:, 0]] = edges[:, 1]
    at, back = np.zeros(b, dtype=np.int64), np.zeros(b, dtype=np.int64)
    for step in range(1, n + 1):
        at = following[np.arange(b), at]
        back = np.where((at == 0) & (back == 0), step, back)
    return np.where((out == 1).all(axis=1) & (back == n), hit, floor)


class Free:
    """Rules that allow all moves, so that only the overhead of the calls of Python is measured."""

    asked = 0

    def restrict(self, graphs, moves):
        Free.asked += 1
        return np.ones(len(moves), dtype=bool)


def timed(job):
    started = time.perf_counter()
    job()
    return time.perf_counter() - started


def of_reward(reward):
    """Measures the time of a Python reward, as the difference between sampling with and without the reward.
    The two kinds of samples alternate."""
    trainer = gfn.Trainer(gfn.Ring(4), reward, gfn.Uniform(), gfn.LogPartitionVariance())
    pairs = [
        (timed(lambda: trainer.sample_with_rewards(128)), timed(lambda: trainer.sample(128)))
        for _ in range(ROUNDS)
    ]
    return 1e3 * (statistics.median(a for a, _ in pairs) - statistics.median(b for _, b in pairs))


def of_rules():
    """Measures the time that rules in Python add to the masks of a batch of 128 graphs. The graphs have 10
    nodes and no edges, so each graph has 45 moves."""

    def trainer(rules):
        env = gfn.GraphEnv([gfn.AddEdge(max_edges=1)], 10, initial=10, labelled=True, rules=rules)
        return gfn.Trainer(env, constant, gfn.Uniform(), gfn.LogPartitionVariance())

    with_rules, without = trainer(Free()), trainer(None)
    with_rules.sample(128)
    before = Free.asked
    pairs = [
        (timed(lambda: with_rules.sample(128)), timed(lambda: without.sample(128))) for _ in range(ROUNDS)
    ]
    batches = (Free.asked - before) / ROUNDS
    return 1e3 * (statistics.median(a for a, _ in pairs) - statistics.median(b for _, b in pairs)) / batches


def trainers():
    """Builds three trainers of ring-4 (graphs of four nodes): with the library's reward, with the same reward
    in Python, and with the Python reward in a cache. All three trainers draw the same trajectories, so their
    steps differ only in the time of the reward."""
    net = gfn.GraphNet(
        layers=1, embedding=128, conv="directed", global_=False, initial_exit_bias=math.log(16)
    )
    settings = dict(
        batch=128, adam=gfn.Adam(schedule=gfn.Constant(1.0)), exploration=gfn.Exploration(epsilon=0.0), seed=1
    )
    rewards = {"native": gfn.RingReward(), "python": ring, "cached": gfn.CachedReward(ring)}
    return {
        name: gfn.Trainer(gfn.Ring(4), reward, net, **settings).fit(10) for name, reward in rewards.items()
    }


def of_training():
    """Measures the time of a training step, relative to a step with the library's reward. A window has six
    steps of each trainer in turn, and the result is the median over many windows."""
    runs, found = trainers(), {"native": [], "python": [], "cached": []}
    for _ in range(WINDOWS):
        for name, trainer in runs.items():
            found[name].append(timed(lambda: trainer.fit(6)))
    assert len({trainer.exact().tv for trainer in runs.values()}) == 1, "not the same runs"
    return {name: statistics.median(a / b for a, b in zip(found[name], found["native"])) for name in found}


def rates(reproduce):
    """Measures the training steps per second of ring-4 (graphs of four nodes) in Python and in the Rust
    program `reproduce`. The two runs alternate."""
    found = {"native": [], "python": [], "cached": [], "rust": []}
    for _ in range(5):
        for name, trainer in trainers().items():
            found[name].append(STEPS / timed(lambda: trainer.fit(STEPS)))
        flags = f"ring --nodes 4 --replay 0 --epsilon 0 --steps {STEPS} --seed 1 --threads 1 --json".split()
        done = subprocess.run([reproduce, *flags], capture_output=True, text=True, check=True)
        found["rust"].append(STEPS / json.loads(done.stdout.splitlines()[-1])["train_s"])
    return {name: statistics.median(values) for name, values in found.items()}


torch.set_num_threads(1)
figures = {
    "constant_reward_ms": of_reward(constant),
    "ring_reward_ms": of_reward(ring),
    "rules_ms": of_rules(),
    "step_over_native": of_training(),
    "its_per_s": rates(sys.argv[1]) if len(sys.argv) > 1 else None,
}
print(json.dumps(figures))
