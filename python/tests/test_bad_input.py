"""Tests that bad input raises an exception of a fitting type that names the mistake. The library must never
panic, abort, hang or ignore bad input."""

import copy
import pickle
import threading
import time

import gfn_rs as gfn
import networkx
import numpy as np
import pytest
import torch
from refusals import NAN, graph_trainer, ints, refused, trainer, zero

USES = [
    (lambda: trainer().sample(-1), ValueError, "n is -1"),
    (lambda: trainer().sample(0), ValueError, "n is 0"),
    (lambda: trainer().sample(2**70), ValueError, "n is 1180591620717411303424"),
    (lambda: trainer().sample("3"), TypeError, "n is '3'"),
    (lambda: trainer().sample(3.0), TypeError, "n is 3.0"),
    (lambda: trainer().sample(True), TypeError, "n is True"),
    (lambda: trainer().sample(None), TypeError, "n is None"),
    (lambda: trainer().sample_with_rewards(-1), ValueError, "n is -1"),
    (lambda: trainer().sample_with_rewards([3]), TypeError, r"n is \[3\]"),
    (lambda: trainer().exact(-1), ValueError, "limit is -1"),
    (lambda: trainer().exact("all"), TypeError, "limit is 'all'"),
    (lambda: trainer().exact(2**70), ValueError, "limit is"),
    (lambda: trainer().exact(3), RuntimeError, "more than 3 states"),
    (lambda: trainer(gfn.Box(), policy=gfn.BoxNet((8,))).exact(), ValueError, "continuous"),
    (lambda: trainer().prefill(3), ValueError, "replay buffer"),
    (lambda: trainer(sources=[gfn.Replay(10)]).prefill(-1), ValueError, "n is -1"),
    (lambda: trainer(sources=[gfn.Replay(10)]).prefill("x"), TypeError, "n is 'x'"),
    (lambda: trainer().fit(), TypeError, "steps"),
    (lambda: trainer().fit(-1), ValueError, "steps is -1"),
    (lambda: trainer().fit("3"), TypeError, "steps is '3'"),
    (lambda: trainer().fit(3.0), TypeError, "steps is 3.0"),
    (lambda: trainer().fit(None), TypeError, "steps is None"),
    (lambda: trainer().fit(2**70), ValueError, "steps is"),
    (lambda: trainer().fit(1, every=0), ValueError, "every is 0"),
    (lambda: trainer().fit(1, every=2.5), TypeError, "every is 2.5"),
    (lambda: trainer().fit(1, callback=3), TypeError, "callback is a int"),
    (lambda: trainer().fit(1, callback=lambda t: 0), TypeError, "positional"),
    (lambda: trainer().fit(3, callback=lambda t, r: 1 / 0), ZeroDivisionError, "division"),
    (lambda: trainer().fit(1, progress="yes"), TypeError, "progress is 'yes'"),
    (lambda: trainer().fit(1, nope=3), TypeError, "nope"),
    (lambda: trainer().save(None), TypeError, "NoneType"),
    (lambda: trainer().save(3), TypeError, "int"),
    (lambda: trainer().save(""), ValueError, "name"),
    (lambda: trainer().save("a\0b"), ValueError, "NUL|null"),
    (lambda: trainer().save(__file__), ValueError, "not a folder"),
    (lambda: trainer().resume(None), TypeError, "NoneType"),
    (lambda: trainer().resume(object()), TypeError, "object"),
    (lambda: trainer(adam=gfn.Adam(lr=1e308)).fit(10), FloatingPointError, "learning rate"),
    (
        lambda: graph_trainer(policy=gfn.GraphNet(initial_log_z=1e308)).fit(1),
        FloatingPointError,
        "loss is inf",
    ),
    (
        lambda: trainer(gfn.Diffusion(2, sigma=1e308), policy=gfn.DiffusionNet()).fit(1),
        FloatingPointError,
        "mean is NaN|deviation is inf",
    ),
    (lambda: pickle.dumps(trainer()), TypeError, "`save"),
    (lambda: copy.deepcopy(trainer()), TypeError, "`save"),
    (lambda: gfn.Graphs(), TypeError, "cannot create"),
    (lambda: gfn.Exact(), TypeError, "missing 15 required"),
    (lambda: gfn.GraphBatch(), TypeError, "cannot create"),
    (lambda: spoilt(lambda t: [p.data.fill_(NAN) for p in t.parameters()]), FloatingPointError, "NaN"),
    (lambda: twice_backward(), RuntimeError, "second time"),
]


def spoilt(harm):
    it = graph_trainer().fit(1)
    harm(it)
    it.fit(2)


def twice_backward():
    loss = trainer().loss()
    loss.backward()
    loss.backward()


def of(**changes):
    parts = {
        "n_nodes": ints(2, 3),
        "edges": ints(0, 1, 0, 2, 2, 1).reshape(3, 2),
        "edge_ptr": ints(0, 1, 3),
        "directed": True,
        **changes,
    }
    return gfn.Graphs.from_arrays(parts.pop("n_nodes"), parts.pop("edges"), parts.pop("edge_ptr"), **parts)


def one_node(value):
    graph = networkx.Graph()
    graph.add_node(0, **{"class": value})
    return [graph]


def edges(*values):
    return ints(*values).reshape(-1, 2)


GRAPHS = [
    (lambda: of(n_nodes=ints(2, 10**12)), ValueError, "n_nodes .*expected 0 to 65535"),
    (lambda: of(n_nodes=ints(2, -3)), ValueError, "n_nodes .*expected 0 to 65535"),
    (lambda: of(n_nodes=ints(2, 0)), ValueError, "in a graph of 0 nodes"),
    (lambda: of(n_nodes=ints(2)), ValueError, "for 1 graphs"),
    (lambda: of(n_nodes=ints(2, 3, 4)), ValueError, "for 3 graphs"),
    (lambda: of(n_nodes=ints()), ValueError, "for 0 graphs"),
    (lambda: of(n_nodes=None), TypeError, "n_nodes is a NoneType"),
    (lambda: of(n_nodes=[2.0, 3.0]), TypeError, "n_nodes is an array of float64"),
    (lambda: of(edges=ints(0, 1, 0, 2, 2, 1).reshape(2, 3)), ValueError, r"edges has shape \[2, 3\]"),
    (lambda: of(edges=edges(0, 1, 0, 2, 2, 2**62)), ValueError, "edge 2 is"),
    (lambda: of(edges=edges(0, 1, 0, 2, 2, 3)), ValueError, r"edge 2 is \(2, 3\), in a graph of 3"),
    (lambda: of(edges=edges(0, 1, 0, -2, 2, 1)), ValueError, r"edge 1 is \(0, -2\)"),
    (lambda: of(edges=edges(0, 1, 0, 2, 0, 2)), ValueError, r"edge \(0, 2\)"),
    (lambda: of(edges=edges(0, 1, 0, 2, 2, 0), directed=False), ValueError, r"edge \(2, 0\)"),
    (lambda: of(edges=edges(0, 0, 0, 2, 2, 1)), ValueError, r"edge \(0, 0\)"),
    (lambda: of(edge_ptr=ints(0, 1)), ValueError, "edge_ptr"),
    (lambda: of(edge_ptr=ints(1, 1, 3)), ValueError, "edge_ptr"),
    (lambda: of(edge_ptr=ints(0, 4, 3)), ValueError, "edge_ptr"),
    (lambda: of(edge_ptr=ints(0, 1, 4)), ValueError, "edge_ptr"),
    (lambda: of(edge_ptr=ints(0, -1, 3)), ValueError, "edge_ptr"),
    (lambda: of(edge_ptr=ints(0, 2**62, 3)), ValueError, "edge_ptr"),
    (lambda: of(edge_ptr=ints()), ValueError, "edge_ptr"),
    (lambda: of(directed="yes"), TypeError, "bool"),
    (lambda: of(directed=None), TypeError, "bool"),
    (lambda: of(node_classes=ints(1)), ValueError, "node_classes has 1 numbers: expected 5"),
    (lambda: of(node_classes=ints(1, 0, 2, 0, -1)), ValueError, "node_classes has -1"),
    (lambda: of(node_classes=ints(1, 0, 2, 0, 70_000)), ValueError, "node_classes has 70000"),
    (lambda: of(edge_classes=ints(1)), ValueError, "edge_classes has 1 numbers: expected 3"),
    (lambda: of(edge_classes=ints(1, 0, -2)), ValueError, "edge_classes has -2"),
    (lambda: of(extra=1), TypeError, "extra"),
    (lambda: of()["a"], TypeError, "can't be chosen"),
    (lambda: of()[2], IndexError, "index 2 .* size 2"),
    (lambda: of()[None], TypeError, "can't be chosen"),
    (lambda: of()[1.0], TypeError, "can't be chosen"),
    (lambda: of()[[[0, 1]]], TypeError, "can't be chosen"),
    (lambda: of()[0:1:0], ValueError, "zero"),
    (lambda: of().svg(captions=["a"]), ValueError, "captions has 1 texts for 2 graphs"),
    (lambda: of().svg(captions=3), TypeError, "Sequence"),
    (lambda: of().svg(captions=[1, 2]), TypeError, "str"),
    (lambda: of().svg(title=3), TypeError, "str"),
    (lambda: of().smiles, TypeError, "aren't molecules"),
    (lambda: of(node_classes=ints(1, 0, 2, 0, 1)).graph6(), ValueError, "has no classes"),
    (lambda: setattr(of(), "n_nodes", 3), AttributeError, "not writable"),
    (lambda: gfn.Graphs.from_graph6("C~"), TypeError, "str"),
    (lambda: gfn.Graphs.from_graph6([3]), TypeError, "str"),
    (lambda: gfn.Graphs.from_graph6(None), TypeError, "Sequence"),
    (lambda: gfn.Graphs.from_graph6(["C"]), ValueError, "line 1: .*expected graph6"),
    (lambda: gfn.Graphs.from_graph6(["C~~~~"]), ValueError, "line 1: the line has 4 bytes of edges"),
    (lambda: gfn.Graphs.from_graph6(["C~", "&C~~~"]), ValueError, "line 2"),
    (lambda: gfn.Graphs.from_graph6(["~~~~~~~~~~~~"]), ValueError, "more than 258047"),
    (lambda: gfn.Graphs.from_graph6(["é"]), ValueError, "line 1: the byte in column 1 is 195"),
    (lambda: gfn.Graphs.from_networkx(None), TypeError, "graphs is a NoneType: expected a list"),
    (
        lambda: gfn.Graphs.from_networkx(networkx.path_graph(3)),
        TypeError,
        "graphs is a Graph: expected a list",
    ),
    (lambda: gfn.Graphs.from_networkx([3]), TypeError, "one of the graphs is a int"),
    (
        lambda: gfn.Graphs.from_networkx([networkx.Graph(), networkx.DiGraph()]),
        ValueError,
        "some graphs are directed",
    ),
    (lambda: gfn.Graphs.from_networkx([networkx.MultiGraph()]), ValueError, "several edges"),
    (lambda: gfn.Graphs.from_networkx([networkx.Graph([(0, 0)])]), ValueError, r"edge \(0, 0\)"),
    (lambda: gfn.Graphs.from_networkx(one_node("red")), ValueError, "class of node 0 is 'red'"),
    (lambda: gfn.Graphs.from_networkx(one_node(-1)), ValueError, "class of node 0 is -1"),
    (lambda: gfn.Graphs.from_networkx(one_node(70_000)), ValueError, "class of node 0 is 70000"),
    (lambda: gfn.Graphs.from_networkx(one_node(None)), ValueError, "class of node 0 is None"),
    (lambda: gfn.Graphs.from_networkx(one_node(1.5)), ValueError, "class of node 0 is 1.5"),
]


@pytest.mark.parametrize("call, kind, message", USES)
def test_uses_that_are_refused(call, kind, message):
    refused(call, kind, message)


@pytest.mark.parametrize("call, kind, message", GRAPHS)
def test_graphs_that_are_none(call, kind, message):
    refused(call, kind, message)


class Network(torch.nn.Module):
    """A graph module whose embedding of a graph is the sum of the embeddings of its nodes. `change` is a
    function that changes the module's result."""

    def __init__(self, change=lambda batch, x, g: (x, g)):
        super().__init__()
        self.color, self.change = torch.nn.Embedding(2, 8), change

    def forward(self, batch):
        x = self.color(batch.node_classes)
        return self.change(batch, x, x.new_zeros(batch.n_graphs, 8).index_add(0, batch.batch, x))


def module_trainer(module, width=8, env=gfn.ColoredGraphs(3), **settings):
    return gfn.Trainer(env, zero, gfn.GraphModule(module, width, width), batch=4, **settings)


class Numbers:
    named_parameters = 3

    def __call__(self, batch):
        return batch


MODULES = [
    (lambda: gfn.GraphModule(None, 4, 4), TypeError, "module is None"),
    (lambda: gfn.GraphModule(torch.nn.Linear, 4, 4), TypeError, "expected a torch.nn.Module"),
    (lambda: gfn.GraphModule(lambda batch: batch, 4, 4), TypeError, "expected a torch.nn.Module"),
    (lambda: gfn.GraphModule(Network(), 4, 4, backward="separate"), ValueError, "backward is 'separate'"),
    (lambda: gfn.GraphModule(Network(), -4, 4), ValueError, "node_width is -4"),
    (lambda: module_trainer(Network(), width=0), ValueError, "sizes of at least 1"),
    (
        lambda: module_trainer(Network(), env=gfn.HyperGrid(2, 3)),
        TypeError,
        "GraphModule isn't a policy for vectors",
    ),
    (
        lambda: module_trainer(Network(), env=gfn.BayesianStructure(3)),
        TypeError,
        "GraphModule isn't a policy for acyclic graphs",
    ),
    (lambda: module_trainer(Network().double()), ValueError, r"torso.color.weight` \(Double"),
    (lambda: module_trainer(Network(), double=True), ValueError, "Double"),
    (lambda: module_trainer(Numbers()), TypeError, "not callable"),
    (lambda: module_trainer(Network(), width=9).fit(1), ValueError, "shape .*8"),
    (
        lambda: module_trainer(torch.nn.Linear(2, 2)).fit(1),
        TypeError,
        "must be Tensor, not gfn_rs.GraphBatch",
    ),
    (lambda: module_trainer(Network(lambda b, x, g: None)).fit(1), TypeError, "expected a pair"),
    (lambda: module_trainer(Network(lambda b, x, g: (x,))).fit(1), ValueError, "gave 1 values"),
    (lambda: module_trainer(Network(lambda b, x, g: (x, g, g))).fit(1), ValueError, "gave 3 values"),
    (
        lambda: module_trainer(Network(lambda b, x, g: (x.detach().numpy(), g))).fit(1),
        TypeError,
        "torch.Tensor, got ndarray",
    ),
    (
        lambda: module_trainer(Network(lambda b, x, g: (None, g))).fit(1),
        TypeError,
        "torch.Tensor, got NoneType",
    ),
    (
        lambda: module_trainer(Network(lambda b, x, g: (x[None], g))).fit(1),
        ValueError,
        "of shape .*: expected",
    ),
    (lambda: module_trainer(Network(lambda b, x, g: (g, x))).fit(1), ValueError, "of shape .*: expected"),
    (
        lambda: module_trainer(Network(lambda b, x, g: (x, g.sum()))).fit(1),
        ValueError,
        "of shape .*: expected",
    ),
    (
        lambda: module_trainer(Network(lambda b, x, g: (x, g + torch.randn_like(g)))).fit(1),
        ValueError,
        "nor on chance",
    ),
    (
        lambda: module_trainer(Network(lambda b, x, g: (x + b.node_labels[:, None], g))).fit(1),
        ValueError,
        "neither the numbers nor the order of nodes",
    ),
    (lambda: module_trainer(Network(lambda b, x, g: b.nope)).fit(1), AttributeError, "nope"),
    (
        lambda: module_trainer(Network(lambda b, x, g: setattr(b, "batch", 3))).fit(1),
        AttributeError,
        "readonly",
    ),
    (lambda: module_trainer(Network(lambda b, x, g: endless(b))).fit(1), RecursionError, "recursion"),
]


def endless(batch):
    return endless(batch)


@pytest.mark.parametrize("call, kind, message", MODULES)
def test_modules_that_are_no_networks(call, kind, message):
    refused(call, kind, message)


class Partly:
    def __init__(self, partial):
        self.partial_log_reward = partial

    __call__ = staticmethod(zero)


REWARDS = [
    (lambda: trainer(reward=lambda: 0).fit(1), TypeError, "0 positional arguments"),
    (lambda: trainer(reward=lambda a, b: 0).fit(1), TypeError, "missing 1 required"),
    (lambda: trainer(reward=lambda s: len(s)).fit(1), ValueError, "reward gave an array of shape"),
    (lambda: trainer(reward=lambda s: s).fit(1), ValueError, r"array of shape \(4, 2\)"),
    (lambda: trainer(reward=lambda s: [10**400] * len(s)).fit(1), TypeError, "reward gave a list"),
    (
        lambda: trainer(reward=lambda s: np.array(["a"] * len(s), dtype=object)).fit(1),
        TypeError,
        "reward gave a ndarray",
    ),
    (lambda: trainer(reward=lambda s: iter([0.0] * len(s))).fit(1), TypeError, "reward gave a list_iterator"),
    (lambda: trainer(reward=lambda s: {0.0, 1.0}).fit(1), TypeError, "reward gave a set"),
    (
        lambda: trainer(reward=lambda s: torch.zeros(len(s)).to_sparse()).fit(1),
        TypeError,
        "reward gave a Tensor",
    ),
    (lambda: trainer(reward=lambda s: [None] * len(s)).fit(1), TypeError, "reward gave a list"),
    (lambda: trainer(reward=lambda s: np.full(len(s), 1e308)).fit(1), FloatingPointError, "loss is inf"),
    (lambda: trainer(reward=lambda s: np.full(len(s), -1e308)).fit(1), FloatingPointError, "loss is inf"),
    (lambda: trainer(reward=lambda s: endless(s)).fit(1), RecursionError, "recursion"),
    (lambda: trainer(reward=lambda s: [0.0]).sample_with_rewards(3), ValueError, "1 numbers for 3"),
    (lambda: trainer(reward=lambda s: [0.0]).exact(), ValueError, "1 numbers for 9"),
    (lambda: trainer(reward=lambda s: [NAN] * len(s)).exact(), FloatingPointError, "NaN"),
    (
        lambda: trainer(reward=lambda s: 1 / 0, sources=[gfn.Replay(10)]).prefill(3),
        ZeroDivisionError,
        "division",
    ),
    (lambda: trainer(reward=lambda s: 1 / 0).loss(), ZeroDivisionError, "division"),
    (
        lambda: trainer(reward=Partly(3), objective=gfn.DetailedBalance(True)).fit(1),
        TypeError,
        "not callable",
    ),
    (
        lambda: trainer(reward=Partly(lambda s: 1 / 0), objective=gfn.DetailedBalance(True)).fit(1),
        ZeroDivisionError,
        "division",
    ),
    (
        lambda: trainer(reward=Partly(lambda s: [0.0]), objective=gfn.DetailedBalance(True)).fit(1),
        ValueError,
        "1 numbers for",
    ),
    (
        lambda: trainer(reward=Partly(lambda s: [NAN] * len(s)), objective=gfn.DetailedBalance(True)).fit(1),
        FloatingPointError,
        "NaN",
    ),
    (lambda: graph_trainer(reward=lambda g: g.smiles).fit(1), TypeError, "aren't molecules"),
    (lambda: graph_trainer(reward=lambda g: [g[len(g)]] * len(g)).fit(1), IndexError, "out of bounds"),
]


@pytest.mark.parametrize("call, kind, message", REWARDS)
def test_rewards_that_give_something_else(call, kind, message):
    refused(call, kind, message)


OTHERS = {
    "policy": lambda: trainer(policy=gfn.Mlp((9,))),
    "height": lambda: trainer(gfn.HyperGrid(2, 4)),
    "axes": lambda: trainer(gfn.HyperGrid(3, 3)),
    "objective": lambda: trainer(objective=gfn.DetailedBalance()),
    "no log Z": lambda: trainer(objective=gfn.LogPartitionVariance()),
    "replay": lambda: trainer(sources=[gfn.Replay(10)]),
    "double": lambda: trainer(double=True),
    "graphs": lambda: graph_trainer(),
    "points": lambda: trainer(gfn.Box(), policy=gfn.BoxNet((8,))),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_checkpoints_of_other_trainers(other, tmp_path):
    trainer().fit(1).save(tmp_path / "run")
    it = other()
    before = [tensor.clone() for tensor in it.parameters()]
    refused(lambda: it.resume(tmp_path / "run"), ValueError, "model|resume with the settings")
    assert it.steps_done == 0 and all(torch.equal(a, b) for a, b in zip(before, it.parameters()))


@pytest.mark.parametrize("name", ["manifest.json", "model.safetensors"])
@pytest.mark.parametrize(
    "harm, message",
    [("cut", "damaged|manifest says"), ("noise", "damaged|checksum"), ("gone", "can't be read")],
)
def test_checkpoints_that_are_damaged(name, harm, message, tmp_path):
    trainer().fit(1).save(tmp_path / "run")
    file = tmp_path / "run" / name
    data = file.read_bytes()
    {
        "cut": lambda: file.write_bytes(data[: len(data) // 2]),
        "noise": lambda: file.write_bytes(bytes(len(data))),
        "gone": file.unlink,
    }[harm]()
    refused(lambda: trainer().resume(tmp_path / "run"), (ValueError, OSError), message)


@pytest.mark.parametrize(
    "use",
    [
        lambda t: t.fit(50),
        lambda t: t.exact(),
        lambda t: t.sample(50),
        lambda t: t.loss(),
        lambda t: t.steps_done,
    ],
)
def test_a_trainer_in_many_threads_is_refused_or_served(use):
    """Uses a trainer in many threads. Each thread must get its result, or the error that the trainer is in
    use."""
    it, answers = trainer(reward=lambda states: (time.sleep(0.001), zero(states))[1]), []

    def ask():
        try:
            answers.append(use(it))
        except Exception as error:
            answers.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    errors = [answer for answer in answers if isinstance(answer, Exception)]
    assert len(answers) == 8 and len(errors) < 8
    assert all(isinstance(error, RuntimeError) and "trainer is in use" in str(error) for error in errors)
    assert it.fit(1).steps_done >= 1


def test_trainers_of_their_own_in_many_threads_do_not_meet():
    losses = {}

    def run(seed):
        losses[seed] = graph_trainer(seed=seed % 2).fit(10).history["loss"].tolist()

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert losses[0] == losses[2] == losses[4] != losses[1] == losses[3] == losses[5]
