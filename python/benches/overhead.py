"""What it costs that a reward or rules are in Python: in milliseconds a batch of 128, and as a share of the
training of ring-4.

  overhead.py [REPRODUCE]     with the program `reproduce`, its steps per second, too, in turns with those
  from here

Medians, one thread.
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

# That nothing explores is meant.
warnings.simplefilter("ignore", gfn.TrainingWarning)

ROUNDS = 200
# Of six training steps each.
WINDOWS = 250
# Of a run beside the program.
STEPS = 1_000


def constant(graphs):
    return np.zeros(len(graphs))


def ring(graphs, n=4, hit=math.log(100.0), floor=math.log(1e-6)):
    """The ring's reward, for all graphs at once: one edge out of each node, and back at the first node after
    n steps, not before."""
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
    """Allows all, so that what is measured is the way there and back."""

    asked = 0

    def restrict(self, graphs, moves):
        Free.asked += 1
        return np.ones(len(moves), dtype=bool)


def timed(job):
    started = time.perf_counter()
    job()
    return time.perf_counter() - started


def of_reward(reward):
    """A reward's share of sampling with it, in turns with sampling without."""
    trainer = gfn.Trainer(gfn.Ring(4), reward, gfn.Uniform(), gfn.LogPartitionVariance())
    pairs = [
        (timed(lambda: trainer.sample_with_rewards(128)), timed(lambda: trainer.sample(128)))
        for _ in range(ROUNDS)
    ]
    return 1e3 * (statistics.median(a for a, _ in pairs) - statistics.median(b for _, b in pairs))


def of_rules():
    """What rules add to the masks of a batch that starts without edges: 45 moves for each of 128 graphs of 10
    nodes."""

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
    """The same run of ring-4 by the library's reward, by one in Python, and by that with its answers kept:
    the same draws, so the same work."""
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
    """What a step takes, over a step with the library's reward: medians over windows of steps, in turns, of
    whole runs."""
    runs, found = trainers(), {"native": [], "python": [], "cached": []}
    for _ in range(WINDOWS):
        for name, trainer in runs.items():
            found[name].append(timed(lambda: trainer.fit(6)))
    assert len({trainer.exact().tv for trainer in runs.values()}) == 1, "not the same runs"
    return {name: statistics.median(a / b for a, b in zip(found[name], found["native"])) for name in found}


def rates(reproduce):
    """Steps per second of that run, beside the program in Rust, in turns."""
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
