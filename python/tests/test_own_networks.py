"""Tests of custom modules in networks, for each type of states, and of the inputs that these modules get."""

import copy

import gfn_rs as gfn
import numpy as np
import pytest
import torch
from refusals import refused

GRID, WORDS, DAGS = gfn.HyperGrid(2, 6), gfn.TokenSequence(2, 3), gfn.BayesianStructure(3)
WIDTH = 32


def sum_of(states):
    return 0.4 * np.asarray(states, dtype=float).sum(axis=1)


def of_words(words):
    """Returns log R of words. The contribution of the last letter depends on the first letter."""
    return 1.5 * (words[:, 0] == words[:, 2]) + 0.3 * words[:, 1]


def of_dags(matrices):
    """Returns log R of graphs. Each edge has a different contribution, so a network must distinguish
    nodes."""
    return (matrices * np.subtract.outer(0.5 * np.arange(3), 0.4 * np.arange(3))).sum(axis=(1, 2))


class Dense(torch.nn.Module):
    """A module with two layers, like the hidden layers of `Mlp((WIDTH, WIDTH))`."""

    def __init__(self, inputs=12, width=WIDTH):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(inputs, width), torch.nn.ReLU(), torch.nn.Linear(width, width), torch.nn.ReLU()
        )

    def forward(self, states, conditions=None):
        return self.layers(states if conditions is None else torch.cat([states, conditions], 1))


class Looked(torch.nn.Module):
    """A module with an embedding table for each entry of a vector."""

    def __init__(self, entries=2, values=6, width=WIDTH):
        super().__init__()
        self.tables = torch.nn.ModuleList(torch.nn.Embedding(values, width) for _ in range(entries))
        self.layer = torch.nn.Linear(width, width)

    def forward(self, entries):
        return torch.relu(
            self.layer(torch.relu(sum(table(column) for table, column in zip(self.tables, entries.T))))
        )


class Reader(torch.nn.Module):
    """A recurrent module, whose input is the tokens written so far."""

    def __init__(self, values=3, width=WIDTH):
        super().__init__()
        self.token, self.cell = torch.nn.Embedding(values, width), torch.nn.GRU(
            width, width, batch_first=True
        )

    def forward(self, tokens, lengths, conditions=None):
        read, _ = self.cell(torch.cat([self.token(tokens[:, :1] * 0), self.token(tokens)], 1))
        read = read[torch.arange(len(tokens)), lengths]
        return read if conditions is None else read * conditions


class Matrix(torch.nn.Module):
    """A module for acyclic graphs: a perceptron on the adjacency matrix."""

    def __init__(self, n=3, width=WIDTH):
        super().__init__()
        self.hidden, self.nodes, self.graphs = (
            torch.nn.Linear(n * n, width),
            torch.nn.Linear(width, n * width),
            torch.nn.Linear(width, width),
        )

    def forward(self, adjacency, conditions=None):
        n, v, _ = adjacency.shape
        x = self.hidden(adjacency.flatten(1))
        x = torch.relu(x if conditions is None else x + conditions)
        return self.nodes(x).view(n, v, -1), self.graphs(x)


class Nodes(torch.nn.Module):
    """A graph module with one round of messages."""

    def __init__(self, width=WIDTH):
        super().__init__()
        self.node, self.layer = torch.nn.Embedding(2, width), torch.nn.Linear(width, width)

    def forward(self, batch):
        x = self.node(batch.node_classes)
        x = torch.relu(
            self.layer(x + torch.zeros_like(x).index_add(0, batch.edge_index[1], x[batch.edge_index[0]]))
        )
        return x, x.new_zeros(batch.n_graphs, x.shape[1]).index_add(0, batch.batch, x)


class Kind:
    """A case of the tests: the class of a policy's settings, a custom module for it, and an environment and a
    reward."""

    def __init__(self, made, module, env, reward):
        self.made, self.module, self.env, self.reward = made, module, env, reward

    def trainer(self, module=None, env=None, width=None, reward=None, policy={}, **changes):
        torch.manual_seed(0)
        module = self.module() if module is None else module
        policy = self.made(
            module,
            *(WIDTH if width is None else width,)
            * (2 if self.made in (gfn.GraphModule, gfn.DagModule) else 1),
            **policy,
        )
        return gfn.Trainer(
            env or self.env,
            reward or self.reward,
            policy,
            **{"batch": 64, "adam": gfn.Adam(lr=3e-3, log_z_lr=0.1), **changes},
        )


def entries(module, width, **settings):
    return gfn.VectorModule(module, width, **{"inputs": "entries", **settings})


KINDS = {
    "vectors": Kind(gfn.VectorModule, Dense, GRID, sum_of),
    "entries": Kind(entries, Looked, GRID, sum_of),
    "sequences": Kind(gfn.SequenceModule, Reader, WORDS, of_words),
    "dags": Kind(gfn.DagModule, Matrix, DAGS, of_dags),
    "graphs": Kind(gfn.GraphModule, Nodes, gfn.ColoredGraphs(3), gfn.ColoredGraphReward()),
}
ALL = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
NEW = pytest.mark.parametrize(
    "kind",
    [kind for name, kind in KINDS.items() if name != "graphs"],
    ids=[name for name in KINDS if name != "graphs"],
)


class Deaf(torch.nn.Module):
    """A module that calls another module with the first input set to 0. Other inputs, such as lengths, are
    unchanged."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, first, *rest):
        return self.inner(first * 0, *rest)


def tv(kind, module=None, steps=800, **changes):
    return (
        kind.trainer(module, adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, steps)), **changes)
        .fit(steps)
        .exact()
        .tv
    )


@NEW
def test_a_module_learns_what_it_is_shown(kind):
    most = 0.08 if kind.made is gfn.DagModule else 0.05
    learned = tv(kind)
    assert learned < most, learned


@pytest.mark.parametrize("name", ["vectors", "entries", "sequences", "dags"])
def test_a_module_that_is_shown_nothing_learns_less(name):
    kind = KINDS[name]
    torch.manual_seed(0)
    assert tv(kind, Deaf(kind.module())) > 2 * tv(kind)


def test_a_module_like_a_perceptron_learns_as_it_does():
    mlp = gfn.Trainer(
        GRID,
        sum_of,
        gfn.Mlp((WIDTH, WIDTH)),
        batch=64,
        adam=gfn.Adam(lr=3e-3, log_z_lr=0.1, schedule=gfn.Linear(1, 0, 800)),
    )
    own = KINDS["vectors"].trainer(
        policy=dict(backward="shared_torso"), adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 800))
    )
    assert own.n_parameters == mlp.n_parameters
    ours, theirs = own.fit(800).exact().tv, mlp.fit(800).exact().tv
    assert ours < 0.05 and theirs < 0.05, (ours, theirs)


def test_a_module_with_the_weights_of_a_perceptron_says_what_it_says():
    """Compares a `VectorModule` with `Mlp`. Both have the same parameters: the hidden layers, then the heads,
    which are the last layer of `Mlp`. So their results must be equal."""
    mlp = gfn.Trainer(GRID, sum_of, gfn.Mlp((WIDTH, WIDTH), initial_log_z=0.0), batch=64, double=True)
    own = KINDS["vectors"].trainer(Dense().double(), policy=dict(initial_log_z=0.0), double=True)
    theirs, ours = list(mlp.parameters()), list(own.parameters())
    with torch.no_grad():
        for target, source in zip(ours, theirs):
            target.copy_(source.T if target.shape != source.shape else source)
    assert np.allclose(own.exact().probs, mlp.exact().probs, atol=1e-12)


@ALL
def test_gradients_reach_the_module(kind):
    """Checks the gradient of one number in the module's first parameter and of one number in its last
    parameter. Each must equal the difference quotient of the loss. The batch is drawn by uniform actions."""

    def loss(which, at=0, change=0.0):
        torch.manual_seed(0)
        module = kind.module().double()
        parameter = list(module.parameters())[which]
        with torch.no_grad():
            parameter.view(-1)[at] += change
        loss = kind.trainer(
            module,
            double=True,
            exploration=gfn.Exploration(epsilon=1.0),
            batch=32,
            policy=dict(initial_log_z=0.0),
        ).loss()
        loss.backward()
        return loss.item(), parameter.grad.view(-1)

    for which in (0, -1):
        _, gradient = loss(which)
        at = gradient.abs().argmax().item()
        (up, _), (down, _) = loss(which, at, 1e-5), loss(which, at, -1e-5)
        assert abs(gradient[at]) > 1e-4 and (up - down) / 2e-5 == pytest.approx(gradient[at].item(), rel=1e-4)


@ALL
def test_all_parameters_are_trained(kind):
    torch.manual_seed(0)
    module = kind.module()
    start = {name: tensor.detach().clone() for name, tensor in module.named_parameters()}
    trainer = kind.trainer(module).fit(20)
    assert {f"torso.{name}" for name in start} < set(dict(trainer.named_parameters()))
    assert all(not torch.equal(start[name], tensor) for name, tensor in module.named_parameters())


@ALL
def test_a_checkpoint_goes_on_bit_for_bit(kind, tmp_path):
    whole, half = kind.trainer().fit(8), kind.trainer().fit(4)
    half.save(tmp_path / "half")
    torch.manual_seed(1)
    other = kind.trainer(copy.deepcopy(kind.module())).resume(tmp_path / "half").fit(4)
    assert other.history["loss"].tolist() == whole.history["loss"].tolist()
    for mine, theirs in zip(other.parameters(), whole.parameters()):
        assert torch.equal(mine, theirs)


class Seen(torch.nn.Module):
    """A module that calls another module and records the arguments of each call."""

    def __init__(self, inner):
        super().__init__()
        self.inner, self.calls = inner, []

    def forward(self, *given):
        self.calls.append(
            (
                torch.is_grad_enabled(),
                *(each.detach().clone() if isinstance(each, torch.Tensor) else each for each in given),
            )
        )
        self.answer = self.inner(*given)
        return self.answer


@ALL
def test_objects_are_drawn_without_gradients(kind):
    module = Seen(kind.module())
    trainer = kind.trainer(module)
    module.calls.clear()
    trainer.sample(16)
    assert module.calls and not any(grad for grad, *_ in module.calls)
    trainer.fit(1)
    assert any(grad for grad, *_ in module.calls)


def test_vectors_are_one_hot_or_entries():
    """Checks both values of `inputs` on the same states: each row of `one_hot` must be the one-hot encoding
    of the same row of `entries`."""
    shown = []
    for name in ("vectors", "entries"):
        module = Seen(KINDS[name].module())
        KINDS[name].trainer(module).exact()
        shown.append(torch.cat([states for _, states in module.calls]))
    one_hot, whole = shown
    assert (
        one_hot.dtype == torch.float32
        and one_hot.shape[1:] == (12,)
        and whole.dtype == torch.int64
        and whole.shape[1:] == (2,)
    )
    assert set(map(tuple, whole.tolist())) == {(a, b) for a in range(6) for b in range(6)}
    found = {tuple(row) for row in one_hot.long().tolist()}
    assert found == {tuple(row) for row in torch.nn.functional.one_hot(whole, 6).flatten(1).tolist()}


def test_sequences_are_tokens_and_lengths():
    module = Seen(Reader())
    KINDS["sequences"].trainer(module).exact()
    tokens, lengths = (
        torch.cat(each) for each in zip(*((tokens, lengths) for _, tokens, lengths in module.calls))
    )
    assert tokens.dtype == lengths.dtype == torch.int64 and set(lengths.tolist()) == {0, 1, 2, 3}
    for row, length in zip(tokens.tolist(), lengths.tolist()):
        assert all(row[:length]) and not any(row[length:]) and set(row) <= {0, 1, 2}


def test_a_dag_is_its_adjacency_matrix():
    """Sets up an environment in which the edge 0 -> 2 is required and the edges 2 -> 1 and 1 -> 2 are
    forbidden, and checks the adjacency matrices that the module gets."""
    module = Seen(Matrix())
    env = gfn.BayesianStructure(3, required=[(0, 2)], forbidden=[(1, 2), (2, 1)])
    KINDS["dags"].trainer(module, env).exact()
    matrices = torch.cat([adjacency for _, adjacency in module.calls])
    assert matrices.dtype == torch.float32 and matrices.shape[1:] == (3, 3)
    assert (
        (matrices[:, 0, 2] == 1).all()
        and not matrices[:, [1, 2], [2, 1]].any()
        and not matrices[:, 2, 0].any()
    )
    assert matrices[:, 0, 1].any() and matrices[:, 1, 0].any() and not matrices.diagonal(dim1=1, dim2=2).any()


@pytest.mark.parametrize("name", ["vectors", "sequences", "dags"])
def test_conditions_are_the_last_argument(name):
    kind = KINDS[name]
    module = Seen(Dense(13) if name == "vectors" else kind.module())
    trainer = kind.trainer(
        module,
        conditions=gfn.Conditions(lambda n, rng: rng.uniform(size=(n, 1)), 1),
        reward=lambda states, c: kind.reward(states) * np.asarray(c)[:, 0],
    )
    trainer.fit(2)
    assert all(
        given[-1].shape == (len(given[1]), 1) and given[-1].dtype == torch.float32 for given in module.calls
    )
    assert len(trainer.sample(3, np.full((3, 1), 0.5))) == 3


@NEW
@pytest.mark.parametrize(
    "objective",
    [
        gfn.DetailedBalance(),
        gfn.SubTrajectoryBalance(),
        gfn.LogPartitionVariance(),
        gfn.TrajectoryBalance(),
        gfn.PolicyGradient(),
    ],
)
def test_every_head_is_there(kind, objective):
    losses = kind.trainer(objective=objective).fit(30).history["loss"]
    assert np.isfinite(losses).all()


def test_heads_of_paths_and_of_several_policies():
    assert np.isfinite(
        KINDS["vectors"]
        .trainer(objective=gfn.TrajectoryBalance(backward="maximum_entropy"))
        .fit(5)
        .history["loss"]
    ).all()
    several = KINDS["vectors"].trainer(policy=dict(heads=3), sources=[gfn.Thompson(0.5)]).fit(5)
    assert several.n_parameters > KINDS["vectors"].trainer().n_parameters


@pytest.mark.parametrize(
    "env",
    [
        gfn.DiscreteEbm(3),
        gfn.SetAddition(4, 2),
        gfn.BitSequence(1, 3),
        gfn.NonAutoregressiveBitSequence(1, 3),
        gfn.PerfectBinaryTree(3),
        gfn.ToyDag(),
        gfn.PhyloTree(3),
        gfn.PrependAppendBitSequence(1, 3),
        gfn.VectorEnv(2, 3, [(axis, value, value + 1) for axis in range(2) for value in range(2)]),
    ],
)
def test_all_environments_of_vectors_take_them(env):
    class Any(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.LazyLinear(WIDTH)

        def forward(self, states):
            return self.layer(states)

    module = Any()
    probe = gfn.Trainer(env, sum_of, gfn.Mlp((WIDTH,)), batch=4)
    module(torch.zeros(1, dict(probe.named_parameters())["torso.first.table"].shape[0]))
    trainer = gfn.Trainer(env, sum_of, gfn.VectorModule(module, WIDTH), batch=16, adam=gfn.Adam(lr=1e-2))
    before = trainer.exact().tv
    assert trainer.fit(150).exact().tv < before


@NEW
def test_priors_and_teachers_have_modules_of_their_own(kind):
    """Checks that a prior is a frozen copy of its module, and that a teacher trains a separate module."""
    prior = kind.trainer().fit(5)
    before = [parameter.detach().clone() for parameter in prior.parameters()]
    relative = kind.trainer(
        objective=gfn.RelativeTrajectoryBalance(prior=prior),
        reward=lambda states: np.zeros(len(states)),
        adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 300)),
    ).fit(300)
    assert all(torch.equal(*both) for both in zip(before, prior.parameters()))
    # With a reward of 1 for all objects, a policy relative to a prior learns the prior's distribution.
    assert 0.5 * np.abs(np.asarray(relative.exact().probs) - np.asarray(prior.exact().probs)).sum() < 0.05
    teacher = kind.module()
    start = [parameter.detach().clone() for parameter in teacher.parameters()]
    kind.trainer(sources=[gfn.Teacher(kind.trainer(teacher).policy)]).fit(5)
    assert any(not torch.equal(*both) for both in zip(start, teacher.parameters()))


@pytest.mark.filterwarnings("error::gfn_rs.TrainingWarning")
@ALL
def test_a_module_that_learns_nothing_is_told_of(kind):
    class Detached(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = kind.module()

        def forward(self, *given):
            answer = self.inner(*given)
            return tuple(each.detach() for each in answer) if isinstance(answer, tuple) else answer.detach()

    with pytest.warns(gfn.TrainingWarning, match="only the heads are trained"):
        kind.trainer(Detached()).fit(1)
    # All parameters of this module are frozen on purpose, so no warning is expected.
    kind.trainer(kind.module().requires_grad_(False)).fit(1)


@ALL
def test_not_a_number_is_said_to_be_none(kind):
    class Broken(torch.nn.Module):
        bad = float("nan")

        def __init__(self):
            super().__init__()
            self.inner = kind.module()

        def forward(self, *given):
            answer = self.inner(*given)
            return (
                tuple(each * self.bad for each in answer) if isinstance(answer, tuple) else answer * self.bad
            )

    with pytest.raises(FloatingPointError, match="log-probability that the policy returns is NaN"):
        kind.trainer(Broken())
    later = Broken()
    later.bad = 1.0
    trainer = kind.trainer(later).fit(1)
    later.bad = float("nan")
    with pytest.raises(FloatingPointError):
        trainer.fit(1)
    later.bad = 1.0
    assert np.isfinite(trainer.fit(1).history["loss"][-1])


# Tests of modules for which a trainer raises an error.


class Changed(torch.nn.Module):
    """A module that calls another module and changes its result by a function."""

    def __init__(self, inner, change):
        super().__init__()
        self.inner, self.change = inner, change

    def forward(self, *given):
        return self.change(self.inner(*given))


def each(change):
    return lambda answer: tuple(map(change, answer)) if isinstance(answer, tuple) else change(answer)


def raising(error):
    def raised(answer):
        raise error

    return raised


ANSWERS = {
    "None": (each(lambda x: None), TypeError, "torch.Tensor, got NoneType"),
    "numpy": (each(lambda x: x.detach().numpy()), TypeError, "torch.Tensor, got ndarray"),
    "a list": (each(lambda x: x.tolist()), TypeError, "torch.Tensor, got list"),
    "a number": (each(lambda x: 3.0), TypeError, "torch.Tensor, got float"),
    "double": (each(lambda x: x.double()), TypeError, "Double"),
    "half": (each(lambda x: x.half()), TypeError, "Half"),
    "whole numbers": (each(lambda x: x.long()), TypeError, "Int64"),
    "meta": (each(lambda x: x.to("meta")), (TypeError, ValueError), "expected|device"),
    "narrow": (each(lambda x: x[..., :-1]), ValueError, "of shape .*: expected"),
    "wide": (each(lambda x: torch.cat([x, x], -1)), ValueError, "of shape .*: expected"),
    "a row less": (each(lambda x: x[1:]), ValueError, "of shape .*: expected"),
    "flat": (each(lambda x: x.flatten()), ValueError, "of shape .*: expected"),
    "one more dimension": (each(lambda x: x[None]), ValueError, "of shape .*: expected"),
    "a scalar": (each(lambda x: x.sum()), ValueError, "of shape .*: expected"),
    "chance": (each(lambda x: x + torch.randn_like(x)), ValueError, "nor on chance|equivariant"),
    "batch mates": (
        each(lambda x: x + x.mean(0, keepdim=True) * 9),
        ValueError,
        "probabilities that a policy gives a state",
    ),
    "KeyError": (raising(KeyError("mine")), KeyError, "mine"),
    "ZeroDivisionError": (raising(ZeroDivisionError("mine")), ZeroDivisionError, "mine"),
    "KeyboardInterrupt": (raising(KeyboardInterrupt("mine")), KeyboardInterrupt, "mine"),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
@NEW
def test_answers_that_are_none(kind, answer):
    change, error, message = answer
    with pytest.raises(error, match=message):
        kind.trainer(Changed(kind.module(), change)).fit(2)


@pytest.mark.parametrize(
    "answer, error, message",
    [
        (lambda pair: pair[0], TypeError, "gave a value that isn't a tuple"),
        (list, TypeError, "gave a value that isn't a tuple"),
        (lambda pair: (*pair, 0), ValueError, "3 values"),
        (lambda pair: (), ValueError, "0 values"),
        (lambda pair: pair[::-1], ValueError, "of shape .*: expected"),
    ],
)
def test_a_dag_s_answer_is_a_pair(answer, error, message):
    with pytest.raises(error, match=message):
        KINDS["dags"].trainer(Changed(Matrix(), answer))


def test_one_embedding_is_no_tuple():
    with pytest.raises(TypeError, match="torch.Tensor, got tuple"):
        KINDS["vectors"].trainer(Changed(Dense(), lambda x: (x, x)))


class Layered(torch.nn.Module):
    def __init__(self, inner, layer):
        super().__init__()
        self.inner, self.layer = inner, layer

    def forward(self, *given):
        answer = self.inner(*given)
        pair = isinstance(answer, tuple)
        last = self.layer(answer[-1] if pair else answer)
        return (answer[0], last) if pair else last


LAYERS = {
    "batch normalisation": lambda: torch.nn.BatchNorm1d(WIDTH),
    "dropout": lambda: torch.nn.Dropout(0.5),
}


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
@NEW
def test_layers_that_make_states_depend_on_others_or_chance(kind, layer):
    with pytest.raises(ValueError, match="probabilities that a policy gives a state"):
        kind.trainer(Layered(kind.module(), layer()))
    module = Layered(kind.module(), layer()).eval()
    trainer = kind.trainer(module).fit(1)
    module.train()
    with pytest.raises(ValueError, match="probabilities that a policy gives a state"):
        trainer.fit(1)
    module.eval()
    assert trainer.fit(1).steps_done == 2


VECTOR, SEQUENCE, DAG = KINDS["vectors"], KINDS["sequences"], KINDS["dags"]
WRONG = [
    *(
        (
            lambda made=made, widths=widths, given=given: made(given, *widths),
            TypeError,
            "expected a torch.nn.Module that takes",
        )
        for made, widths in [
            (gfn.VectorModule, (4,)),
            (gfn.SequenceModule, (4,)),
            (gfn.DagModule, (4, 4)),
            (gfn.GraphModule, (4, 4)),
        ]
        for given in (torch.nn.Linear, lambda states: states)
    ),
    (lambda: gfn.VectorModule(None, 4), TypeError, "module is None"),
    (lambda: gfn.SequenceModule(3, 4), TypeError, "module is 3"),
    (lambda: gfn.DagModule("Matrix", 4, 4), TypeError, "module is 'Matrix'"),
    (lambda: gfn.VectorModule(Dense()), TypeError, "width"),
    (lambda: gfn.VectorModule(Dense(), "wide"), TypeError, "width is 'wide'"),
    (lambda: gfn.VectorModule(Dense(), 3.5), TypeError, "width is 3.5"),
    (lambda: gfn.VectorModule(Dense(), -1), ValueError, "width is -1"),
    (lambda: gfn.VectorModule(Dense(), 4, inputs="scaled"), ValueError, "inputs is 'scaled'"),
    (lambda: gfn.VectorModule(Dense(), 4, inputs="OneHot"), ValueError, "inputs is 'OneHot'"),
    (lambda: gfn.VectorModule(Dense(), 4, backward="separate"), ValueError, "backward is 'separate'"),
    (lambda: gfn.VectorModule(Dense(), 4, initial_log_z=float("nan")), ValueError, "initial_log_z is nan"),
    (lambda: gfn.SequenceModule(Reader(), True), TypeError, "width is True"),
    (lambda: gfn.SequenceModule(Reader(), 4, backward="uniform"), TypeError, "backward"),
    (lambda: gfn.DagModule(Matrix(), 4), TypeError, "graph_width"),
    (lambda: gfn.DagModule(Matrix(), 4, -4), ValueError, "graph_width is -4"),
    (lambda: gfn.DagModule(Matrix(), 4, 4, backward="separate"), ValueError, "backward is 'separate'"),
    (lambda: gfn.DagModule(Matrix(), 4, 4, symmetry="exact"), TypeError, "symmetry"),
    (lambda: VECTOR.trainer(width=0), ValueError, "sizes of at least 1"),
    (lambda: VECTOR.trainer(policy=dict(heads=0)), ValueError, "heads is 0"),
    (lambda: SEQUENCE.trainer(width=0), ValueError, "sizes of at least 1"),
    (lambda: DAG.trainer(width=0), ValueError, "sizes of at least 1"),
    (lambda: VECTOR.trainer(policy=dict(logit_scale=(4,))), ValueError, "n_conditions is 0"),
    (lambda: SEQUENCE.trainer(policy=dict(logit_scale=(4,))), ValueError, "n_conditions is 0"),
    (lambda: DAG.trainer(policy=dict(logit_scale=(4,))), ValueError, "n_conditions is 0"),
    *(
        (lambda kind=kind: kind.trainer(width=WIDTH + 1), ValueError, "of shape .*: expected")
        for kind in KINDS.values()
    ),
    *(
        (lambda kind=kind: kind.trainer(double=True), ValueError, r"torso\..*\(Float")
        for kind in KINDS.values()
    ),
    *(
        (lambda kind=kind: kind.trainer(kind.module().double()), ValueError, r"torso\..*\(Double")
        for kind in KINDS.values()
    ),
    *((lambda kind=kind: kind.trainer(device="gpu"), ValueError, "gpu") for kind in KINDS.values()),
    (
        lambda: VECTOR.trainer(env=DAGS, reward=of_dags),
        TypeError,
        "VectorModule isn't a policy for acyclic graphs",
    ),
    (
        lambda: VECTOR.trainer(env=gfn.Ring(3), reward=gfn.RingReward()),
        TypeError,
        "VectorModule isn't a policy for graphs",
    ),
    (
        lambda: VECTOR.trainer(env=gfn.Box(), reward=gfn.BoxReward()),
        TypeError,
        "VectorModule isn't a policy for the unit box",
    ),
    (
        lambda: VECTOR.trainer(env=gfn.Line(3), reward=gfn.LineReward([(0.0, 1.0)])),
        TypeError,
        "VectorModule isn't a policy for the line",
    ),
    (
        lambda: SEQUENCE.trainer(env=GRID, reward=sum_of),
        ValueError,
        "SequenceModule, expected Mlp, VectorModule or Uniform",
    ),
    (lambda: SEQUENCE.trainer(env=gfn.PrependAppendBitSequence(1, 3)), ValueError, "from left to right"),
    (lambda: SEQUENCE.trainer(env=gfn.NonAutoregressiveBitSequence(1, 3)), ValueError, "from left to right"),
    (
        lambda: SEQUENCE.trainer(env=DAGS, reward=of_dags),
        TypeError,
        "SequenceModule isn't a policy for acyclic graphs",
    ),
    (lambda: DAG.trainer(env=GRID, reward=sum_of), TypeError, "DagModule isn't a policy for vectors"),
    (
        lambda: DAG.trainer(env=gfn.Ring(3), reward=gfn.RingReward()),
        TypeError,
        "DagModule isn't a policy for graphs",
    ),
    (
        lambda: KINDS["graphs"].trainer(env=DAGS, reward=of_dags),
        TypeError,
        "GraphModule isn't a policy for acyclic graphs",
    ),
    (lambda: VECTOR.trainer(Dense(11)), RuntimeError, "shapes cannot be multiplied"),
    (lambda: VECTOR.trainer(Looked()), (RuntimeError, TypeError), "long|Long"),
    (lambda: VECTOR.trainer(Reader()), TypeError, "lengths"),
    (lambda: SEQUENCE.trainer(Looked()), TypeError, "positional"),
    (lambda: SEQUENCE.trainer(Reader(values=2)), IndexError, "index"),
    (lambda: DAG.trainer(Matrix(n=4)), RuntimeError, "shapes cannot be multiplied"),
]


@pytest.mark.parametrize("call, error, message", WRONG)
def test_what_is_refused(call, error, message):
    refused(call, error, message)


@pytest.mark.parametrize("wrap", [lambda module: module, torch.nn.Sequential])
def test_a_module_shared_with_a_teacher_is_refused(wrap):
    module = Dense()
    with pytest.raises(ValueError, match="Teacher.policy has a module with the same tensors"):
        VECTOR.trainer(module, sources=[gfn.Teacher(gfn.VectorModule(wrap(module), WIDTH)), gfn.Replay(32)])


# Tests of graphs without nodes, in batches of empty graphs and beside other graphs.


class Gps(torch.nn.Module):
    """A network from PyTorch Geometric's documentation. The batch normalisation is left out, because a
    trainer raises an error for batch normalisation."""

    def __init__(self, width=WIDTH):
        from torch_geometric import nn

        super().__init__()
        self.node = torch.nn.Embedding(2, width)
        mlp = lambda: torch.nn.Sequential(
            torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, width)
        )  # noqa: E731
        self.layers = torch.nn.ModuleList(
            nn.GPSConv(width, nn.GINConv(mlp()), heads=4, norm=None) for _ in range(2)
        )

    def forward(self, batch):
        from torch_geometric import nn

        x = self.node(batch.node_classes)
        for layer in self.layers:
            x = layer(x, batch.edge_index, batch.batch)
        return x, nn.global_add_pool(x, batch.batch, size=batch.n_graphs)


def test_attention_between_all_nodes_learns_on_graphs_that_start_empty():
    env = gfn.GraphBuilding(3, node_classes=2)
    reward = lambda graphs: 0.8 * graphs.n_edges  # noqa: E731
    trainer = KINDS["graphs"].trainer(Gps(), env, reward=reward, adam=gfn.Adam(lr=1e-3))
    before = trainer.exact().tv
    trainer.fit(300)
    assert all(torch.isfinite(parameter).all() for parameter in trainer.parameters())
    assert trainer.exact().tv < before / 2


class Pools(Nodes):
    """A module whose embedding of a graph depends on the graph's number of nodes, which may be 0. The module
    checks that the batch has at least one node."""

    def forward(self, batch):
        assert (
            len(batch.node_classes) > 0
            and len(batch.batch) == len(batch.node_classes)
            and batch.batch.max() < batch.n_graphs
        )
        if batch.conditions is not None:
            assert len(batch.conditions) == batch.n_graphs
        nodes, graphs = super().forward(batch)
        sizes = torch.bincount(batch.batch, minlength=batch.n_graphs)
        return nodes, graphs + torch.cos(1.0 + sizes)[:, None] * self.layer.bias


class Kept(torch.nn.Module):
    """A module that calls another module and records the embeddings of graphs without nodes. To a batch of
    empty graphs the library adds a graph of one node; such batches are recorded separately."""

    def __init__(self, inner):
        super().__init__()
        self.inner, self.alone, self.together = inner, [], []

    def forward(self, batch):
        nodes, graphs = self.inner(batch)
        empty = torch.bincount(batch.batch, minlength=batch.n_graphs) == 0
        alone = len(batch.batch) == 1 and bool(empty[:-1].all())
        (self.alone if alone else self.together).extend(graphs[empty].detach())
        return nodes, graphs


@pytest.mark.parametrize("module", [Pools, Gps])
def test_an_empty_graph_gets_alone_what_it_gets_in_company(module):
    """Checks that an empty graph has the same embedding in a batch of empty graphs as beside other graphs.
    Trajectories begin in batches of empty graphs only, and `exact` passes all graphs in one batch."""
    torch.manual_seed(3)
    module = Kept(module().double())
    reward = lambda graphs: 2.0 * np.bincount(graphs.batch, graphs.node_classes, len(graphs))  # noqa: E731
    trainer = (
        KINDS["graphs"]
        .trainer(module, gfn.GraphBuilding(2, node_classes=2), reward=reward, double=True)
        .fit(50)
    )
    module.alone.clear(), module.together.clear()
    exact, drawn = trainer.exact(), trainer.sample(20_000)
    assert module.alone and module.together
    assert all(
        torch.allclose(each, module.together[0], atol=1e-12) for each in (*module.alone, *module.together)
    )
    # The policy's probabilities must not depend on the batch. So the exact shares of graphs, grouped by their
    # number of nodes and their number of nodes of class 1, must equal the shares in samples.
    kinds = lambda graphs: 3 * graphs.n_nodes + np.bincount(
        graphs.batch, graphs.node_classes, len(graphs)
    ).astype(
        int
    )  # noqa: E731
    said, found = np.bincount(kinds(exact.states), exact.probs, 9), np.bincount(
        kinds(drawn), minlength=9
    ) / len(drawn)
    assert np.abs(said - found).max() < 0.015


def test_conditions_of_empty_graphs_are_theirs():
    module = Seen(Pools())
    trainer = KINDS["graphs"].trainer(
        module,
        gfn.GraphBuilding(2, node_classes=2),
        reward=lambda graphs, c: np.zeros(len(graphs)),
        conditions=gfn.Conditions(lambda n, rng: rng.uniform(1, 2, (n, 1)), 1),
    )
    trainer.fit(2)
    alone = [batch for _, batch in module.calls if len(batch.batch) == 1 and batch.n_graphs > 1]
    assert alone and all(
        len(batch.conditions) == batch.n_graphs and (batch.conditions >= 1).all() for batch in alone
    )


# Environments of molecules. Their `encoding` has a name for each class and each attribute value of a graph.

ENVS = [
    gfn.Molecules(6),
    gfn.Molecules(6, ["N", "O", "C"]),
    gfn.Molecules(6, charges=False),
    gfn.Molecules(6, ["P", "S", "O", "N"], extra_valences=2),
    gfn.Molecules(5, max_bond_order=1),
]


def walked(env, n=300):
    """Returns the objects in which `n` uniform random trajectories of an environment end."""
    return gfn.Trainer(
        env, lambda graphs: np.zeros(len(graphs)), gfn.Uniform(), gfn.LogPartitionVariance(), batch=2
    ).sample(n)


@pytest.mark.parametrize("env", ENVS)
def test_the_encoding_of_molecules_is_what_rdkit_reads(env):
    from rdkit import Chem

    encoding, graphs, kinds = env.encoding, walked(env), set()
    orders = {"single": 1.0, "double": 2.0, "triple": 3.0}
    for graph, text in zip((graphs[k] for k in range(len(graphs))), graphs.smiles):
        molecule = Chem.MolFromSmiles(text, sanitize=False)
        if any(bond.GetIsAromatic() for bond in molecule.GetBonds()):
            Chem.Kekulize(molecule, clearAromaticFlags=True)
        charges = [
            int(encoding.node_attributes[0][values[0]]) if env.charges else 0
            for values in graph.node_attributes
        ]
        atoms = sorted(
            (encoding.node_classes[node], charge) for node, charge in zip(graph.node_classes, charges)
        )
        assert atoms == sorted(
            (atom.GetSymbol(), atom.GetFormalCharge()) for atom in molecule.GetAtoms()
        ), text
        bonds = sorted(
            orders[(encoding.edge_attributes or [["single"]])[0][values[0]]]
            for values in graph.edge_attributes
        )
        assert bonds == sorted(bond.GetBondTypeAsDouble() for bond in molecule.GetBonds()), text
        kinds |= set(atoms) | set(bonds)
    # Each name in the lists of `encoding` must occur in at least one object.
    assert {name for name, _ in (kind for kind in kinds if isinstance(kind, tuple))} == set(
        encoding.node_classes
    )
    assert not env.charges or {1, -1} & {kind[1] for kind in kinds if isinstance(kind, tuple)}


def test_the_encoding_of_extra_valences_is_the_last_attribute():
    assert (
        ENVS[3].encoding.node_attributes[-1] == ["0", "1", "2"] and len(ENVS[3].encoding.node_attributes) == 2
    )
    assert gfn.Molecules(3, charges=False, extra_valences=1).encoding.node_attributes == [["0", "1"]]
    assert (
        gfn.Molecules(3, charges=False).encoding.node_attributes == []
        and ENVS[4].encoding.edge_attributes == []
    )


def test_the_encoding_of_fragments_is_what_is_joined(tmp_path):
    (tmp_path / "library").write_text("C 0,0\nO 0,0\nF 0\n")
    env = gfn.Fragments(3, tmp_path / "library")
    encoding, graphs = env.encoding, walked(env)
    assert encoding.node_classes == ["C", "O", "F"] and encoding.edge_attributes == [["unset", "1"]] * 2
    for graph, text in zip((graphs[k] for k in range(len(graphs))), graphs.smiles):
        assert sorted(encoding.node_classes[node] for node in graph.node_classes) == sorted(
            text.replace("(", "").replace(")", "")
        )


@pytest.mark.parametrize("env", [*ENVS, gfn.Molecules(6, stereo=True), gfn.Fragments(2), gfn.Fragments(1)])
def test_a_network_is_as_large_as_the_encoding_says(env):
    """Checks that each class and each attribute value of a graph is a valid index into the list of its names
    in `encoding`. The number of attributes must equal the number of lists of names for attribute values."""
    encoding, graphs = env.encoding, walked(env)
    assert graphs.node_classes.max() < len(encoding.node_classes) and graphs.edge_classes.max(
        initial=0
    ) < len(encoding.edge_classes)
    for lists, values in (
        (encoding.node_attributes, graphs.node_attributes),
        (encoding.edge_attributes, graphs.edge_attributes),
    ):
        assert (
            all((column < len(names)).all() for names, column in zip(lists, values.T))
            and not values[:, len(lists) :].any()
        )


def test_other_environments_have_no_encoding():
    with pytest.raises(AttributeError):
        gfn.GraphBuilding(3).encoding
    with pytest.raises(TypeError, match="doesn't build molecules"):
        gfn.Ring(3)._env.encoding()
