"""Tests that repeated calls leak no memory: after a warm-up, the use of memory must be constant."""

import ctypes
import gc
import pickle

import gfn_rs as gfn
import numpy as np
import psutil
import pytest
import torch

LIMIT = 20 * 2**20


class Heap(ctypes.Structure):
    """The C structure `struct mallinfo2` of glibc."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    ]


LIBC = ctypes.CDLL("libc.so.6")
LIBC.mallinfo2.restype = Heap


def grown(work, times, warm_up):
    """Returns the number of bytes by which memory grew during `times` calls, after a warm-up. Growth is the
    larger of the growth of the heap and the growth of the process."""
    for _ in range(warm_up):
        work()
    before = held()
    for _ in range(times):
        work()
    return max(after - first for after, first in zip(held(), before))


def held():
    """Returns the number of bytes in use on the heap, and the number of bytes of the process.

    The process alone isn't enough, because a leak may fill free parts of the heap that earlier tests left.
    The heap alone isn't enough, because some memory isn't on the heap. Before the measurement, free memory of
    the heap is returned to the system.
    """
    gc.collect()
    LIBC.malloc_trim(0)
    heap = LIBC.mallinfo2()
    return heap.uordblks + heap.hblkhd, psutil.Process().memory_info().rss


def zero(states):
    return np.zeros(len(states))


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.color = torch.nn.Embedding(2, 8)

    def forward(self, batch):
        x = self.color(batch.node_classes)
        return x, x.new_zeros(batch.n_graphs, 8).index_add(0, batch.batch, x)


def small(**changes):
    parts = {"env": gfn.HyperGrid(1, 2), "reward": zero, "policy": gfn.Mlp((4,)), "batch": 2, **changes}
    return gfn.Trainer(parts.pop("env"), parts.pop("reward"), parts.pop("policy"), **parts)


def network():
    return small(env=gfn.ColoredGraphs(2), policy=gfn.GraphModule(Network(), 8, 8))


@pytest.mark.parametrize(
    "trainer, steps",
    [
        (lambda: small(reward=gfn.HyperGridReward()), 2_000),
        (lambda: small(), 10_000),
        (lambda: small(sources=[gfn.Replay(100, draw="reward_prioritised")]), 2_000),
        (lambda: small(env=gfn.GraphBuilding(2), policy=gfn.GraphNet(layers=1, embedding=4)), 1_000),
        (network, 1_000),
        (lambda: small(env=gfn.Box(), policy=gfn.BoxNet((4,), components=1)), 1_000),
    ],
    ids=["the library's reward", "a reward of Python", "replay", "graphs", "a module of torch", "box"],
)
def test_steps_leave_nothing_behind(trainer, steps):
    # `fit` stores seven numbers per step in its history, which would count as growth. So the steps are made
    # by the extension's trainer (`_session`), which has no history.
    session = trainer()._session
    assert grown(lambda: session.advance(10), steps // 10, 30) < LIMIT


def test_history_is_all_that_a_run_keeps():
    it = small()
    assert grown(lambda: it.fit(10), 100, 20) < LIMIT
    assert len(it.history["loss"]) == 1_200


def looks(it):
    graphs = it.sample(3)
    return (
        graphs.edges,
        graphs.edge_index,
        graphs.node_classes,
        graphs.node_attributes,
        graphs.node_ptr,
        graphs[1:],
        graphs[0].n_edges,
    )


def fails(it, error):
    with pytest.raises(error):
        it.fit(1)


def broken(states):
    raise KeyError("a reward that fails" * 100)


def beside_all(prior=None):
    """Returns a trainer with all parts that can be Python functions."""
    parts = dict(
        sources=[
            gfn.Data([[1]], share=0.25),
            gfn.Source(lambda n, rng: np.ones((n, 1), int), share=0.25),
            gfn.Search(lambda states, rng: states, every=1),
            gfn.Replay(10, after=0),
            *([gfn.Teacher(gfn.Mlp((4,)))] if prior is None else []),
        ],
        adam=gfn.Adam(average=gfn.Average()),
    )
    objective = (
        gfn.AugmentedTrajectoryBalance(0.1, novelty=zero)
        if prior is None
        else gfn.RelativeTrajectoryBalance(prior)
    )
    return gfn.Trainer(gfn.HyperGrid(1, 2), zero, gfn.Mlp((4,)), objective, batch=8, **parts)


MADE = {
    "environments": (lambda: gfn.GraphBuilding(4, node_classes=2), 10_000),
    "molecules": (lambda: gfn.Molecules(4), 1_000),
    "refused settings": (lambda: pytest.raises(ValueError, gfn.Ring, 0), 10_000),
    "trainers": (lambda: small(), 2_000),
    "trainers of a module": (network, 500),
    "trainers with steps": (lambda: small().fit(1), 500),
    "trainers with sources": (lambda: beside_all().fit(1), 300),
    "trainers with a prior": (lambda: beside_all(small()), 300),
    "networks": (lambda: gfn.Mlp((4,)).build(gfn.HyperGrid(1, 2)), 1_000),
    "trainers of networks": (lambda: small(policy=gfn.Mlp((4,)).build(gfn.HyperGrid(1, 2))).fit(1), 300),
    "refused trainers": (lambda: pytest.raises(ValueError, small, batch=0), 2_000),
    "graphs": (
        lambda: gfn.Graphs.from_arrays(
            np.array([2, 2]), np.array([[0, 1]]), np.array([0, 1, 1]), directed=False
        ).edge_index,
        10_000,
    ),
    "graphs of graph6": (lambda: gfn.Graphs.from_graph6(["C~", "Bw"]).graph6(), 10_000),
}


@pytest.mark.parametrize("make, times", MADE.values(), ids=MADE)
def test_what_is_made_is_given_back(make, times):
    assert grown(make, times, 200) < LIMIT


def own_step(it):
    """Makes a step of a custom training loop, and reads the batch, the scores and the loss."""
    batch = it.batch()
    scores = it.score(batch)
    it.loss(scores).backward()
    it.advance(batch, scores)
    return (
        batch.states,
        batch.moves,
        batch.terminal,
        batch[:2] + batch[2:],
        batch.to_transitions()[0].states,
        it.buffer,
    )


def walked(env):
    """Takes steps in an environment without a trainer."""
    states = env.initial(4)
    moves = env.moves(states)
    step = env.step(states, moves.draw(np.random.default_rng(0)))
    return env.keys(step.states), env.masks(states), env.log_automorphisms(states)


def drawn(network):
    """Samples trajectories from a network, scores and pickles them."""
    walks = gfn.Sampler(network.env, network, epsilon=0.1).sample(8)
    network.score(walks.with_log_rewards(np.zeros(8))).log_pf.sum().backward()
    network(walks.terminal).log_pf.sum().backward()
    return pickle.loads(pickle.dumps(walks)).moves, gfn.Sampler(network.env, network).backward(walks.terminal)


USED = {
    "own steps": (lambda: small(sources=[gfn.Replay(10, after=0)]), own_step, 1_000),
    "walks by hand": (lambda: gfn.GraphBuilding(3), walked, 1_000),
    "trajectories": (lambda: gfn.GraphNet(embedding=4).build(gfn.GraphBuilding(3), flow=True), drawn, 300),
    "batches that are refused": (small, lambda it: pytest.raises(TypeError, it.score, 3), 1_000),
    "arrays of graphs": (
        lambda: small(env=gfn.GraphBuilding(3), policy=gfn.GraphNet(embedding=4)),
        looks,
        1_000,
    ),
    "networkx": (
        lambda: small(env=gfn.GraphBuilding(3), policy=gfn.GraphNet(embedding=4)),
        lambda it: it.sample(3).networkx(),
        500,
    ),
    "pictures": (
        lambda: small(env=gfn.GraphBuilding(3), policy=gfn.GraphNet(embedding=4)),
        lambda it: it.sample(3)._repr_svg_(),
        300,
    ),
    "exact": (small, lambda it: it.exact().states, 1_000),
    "exact of graphs": (
        lambda: small(env=gfn.GraphBuilding(3), policy=gfn.GraphNet(embedding=4)),
        lambda it: it.exact().states,
        200,
    ),
    "losses": (small, lambda it: it.loss().backward(), 1_000),
    "estimates": (small, lambda it: it.evaluate(20).top_k(3).states, 1_000),
    "given objects": (small, lambda it: it.evaluate_on([[0], [1]]).correlation, 1_000),
    "sources": (beside_all, lambda it: it._session.advance(1), 1_000),
    "parameters": (small, lambda it: list(it.named_parameters()), 2_000),
    "exceptions of rewards": (lambda: small(reward=broken), lambda it: fails(it, KeyError), 2_000),
    "rewards of the wrong length": (
        lambda: small(reward=lambda states: [0.0]),
        lambda it: fails(it, ValueError),
        1_000,
    ),
    "rewards that are tensors": (
        lambda: small(reward=lambda states: torch.zeros(len(states))),
        lambda it: it.sample_with_rewards(3),
        1_000,
    ),
}


@pytest.mark.parametrize("make, use, times", USED.values(), ids=USED)
def test_what_is_asked_for_is_given_back(make, use, times):
    it = make()
    assert grown(lambda: use(it), times, 100) < LIMIT


def test_a_leak_is_seen():
    """Runs a negative control: each call keeps 3 kB in free parts of the heap. The growth must be
    detected."""
    # Every second array is freed. The process keeps the memory of the freed arrays, because the arrays
    # between them are on the same pages of memory.
    holes = [bytearray(b"x" * 3_000) for _ in range(30_000)]
    del holes[::2]
    kept = []
    assert grown(lambda: kept.append(bytearray(b"x" * 3_000)), 10_000, 500) > LIMIT


def test_checkpoints_leave_nothing_behind(tmp_path):
    it = small().fit(1)
    assert grown(lambda: (it.save(tmp_path / "run"), it.resume(tmp_path / "run")), 100, 20) < LIMIT
