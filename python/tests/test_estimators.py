"""Tests of separate modules for P_B, log F and log Z, beside the module of P_F."""

import copy
import pickle
import sys

import gfn_rs as gfn
import numpy as np
import pytest
import torch
from refusals import refused
from test_own_networks import ALL, DAGS, GRID, KINDS, WIDTH, Dense, Looked, Reader, sum_of

LR = 3e-3
CONDITIONS = gfn.Conditions(lambda n, rng: rng.uniform(0.5, 2.0, (n, 1)), 1)


class Scalar(torch.nn.Module):
    """A module that maps the last result of another module, `[n, WIDTH]`, to a number per row, `[n, 1]`."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.last = torch.nn.Sequential(
            torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, 1)
        )

    def forward(self, *given):
        answer = self.inner(*given)
        return self.last(answer[-1] if isinstance(answer, tuple) else answer)


class LogZ(torch.nn.Module):
    """A perceptron from conditions `[n, 1]` to log Z, `[n]`."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(1, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))

    def forward(self, conditions):
        return self.layers(conditions).view(-1)


def modules(kind, *names):
    """Returns new modules for a kind of state, by the names of their settings."""
    made = {"backward": kind.module, "flow": lambda: Scalar(kind.module()), "log_z": LogZ}
    names = [name for name in names if name != "backward" or kind.made is not gfn.SequenceModule]
    return {name: made[name]() for name in names}


def by_steps(steps, **rates):
    return gfn.Adam(lr=LR, schedule=gfn.Linear(1, 0, steps), **rates)


# Results of training, compared with exact distributions, flows and values of log Z.


@ALL
@pytest.mark.parametrize("objective", [gfn.DetailedBalance(), gfn.TrajectoryBalance()], ids=["db", "tb"])
def test_separate_networks_learn(kind, objective):
    torch.manual_seed(0)
    names = ["backward"] + ["flow"] * isinstance(objective, gfn.DetailedBalance)
    policy = modules(kind, *names)
    before = [copy.deepcopy(module.state_dict()) for module in policy.values()]
    steps = 800 if kind.made is gfn.GraphModule else 500
    trainer = kind.trainer(objective=objective, policy=policy, adam=by_steps(steps))
    untrained = trainer.exact().tv
    learned = trainer.fit(steps).exact().tv
    assert learned < 0.1 and learned < untrained / 3, (untrained, learned)
    for start, module in zip(before, policy.values()):
        for name, tensor in module.named_parameters():
            # P_B of acyclic graphs doesn't depend on embeddings of graphs, nor log F on embeddings of nodes.
            if kind.made is not gfn.DagModule or "hidden" in name:
                assert not torch.equal(start[name], tensor), name


class Table(torch.nn.Module):
    """A table with a number for each point of a grid of two dimensions."""

    def __init__(self, height):
        super().__init__()
        self.height, self.numbers = height, torch.nn.Parameter(torch.zeros(height, height))

    def forward(self, entries):
        return self.numbers[entries[:, 0], entries[:, 1]]


def test_log_flow_is_the_flow_of_the_states():
    """Compares a table of log F, learned by detailed balance, with the flows that a uniform P_B has. The flow
    of a state is its reward, plus the flows of its children times P_B."""
    height = 4
    reward = lambda points: 0.4 * points[:, 0] - 0.3 * points[:, 1]  # noqa: E731
    expected = np.zeros((height, height))
    for x, y in sorted(np.ndindex(height, height), key=sum, reverse=True):
        expected[x, y] = np.exp(reward(np.array([[x, y]]))[0])
        for child in ((x + 1, y), (x, y + 1)):
            if max(child) < height:
                expected[x, y] += expected[child] / np.count_nonzero(child)
    torch.manual_seed(0)
    flow, steps = Table(height), 1500
    main = Looked(2, height)
    policy = gfn.VectorModule(main, WIDTH, "entries", "uniform", flow=flow)
    trainer = gfn.Trainer(
        gfn.HyperGrid(2, height),
        reward,
        policy,
        gfn.DetailedBalance(),
        batch=64,
        adam=gfn.Adam(lr=0.03, schedule=gfn.Linear(1, 0, steps)),
    ).fit(steps)
    assert np.abs(flow.numbers.detach().numpy() - np.log(expected)).max() < 0.1
    assert trainer.exact().log_z == pytest.approx(np.log(expected[0, 0]), abs=1e-9)
    states = trainer.exact().states
    learned = trainer.network(states).log_flow.detach()
    assert torch.equal(learned, flow(torch.as_tensor(np.asarray(states, dtype=np.int64))).detach())


def beta_reward(states, conditions):
    return np.asarray(conditions)[:, 0] * (states[:, 0] == states[:, -1])


def check_family(trainer, steps, log_z=None):
    """Trains the rewards of `beta_reward`, and compares policy and log Z with the exact ones. Of the 8
    words, 4 have equal first and last letters."""
    trainer.fit(steps)
    for beta in (0.5, 1.0, 2.0):
        condition = torch.tensor([beta])
        exact = trainer.exact(condition=condition)
        total = np.log(4 + 4 * np.exp(beta))
        assert exact.tv < 0.08 and exact.log_z == pytest.approx(total, abs=1e-5), (beta, exact)
        if log_z is not None:
            assert log_z(condition[None]).item() == pytest.approx(total, abs=0.15)


@pytest.mark.parametrize(
    "policy",
    [
        lambda log_z: gfn.Mlp((64, 64), log_z=log_z),
        lambda log_z: gfn.SequenceNet("gru", 32, 1, log_z=log_z),
        lambda log_z: gfn.SequenceNet("transformer", 32, 1, log_z=log_z, logit_scale=(16,)),
        lambda log_z: gfn.SequenceModule(Reader(), WIDTH, log_z=log_z),
    ],
    ids=["Mlp", "gru", "transformer", "SequenceModule"],
)
def test_a_family_of_rewards_is_learned_with_a_module_of_log_z(policy):
    torch.manual_seed(0)
    log_z, steps = LogZ(), 400
    trainer = gfn.Trainer(
        gfn.TokenSequence(2, 3),
        beta_reward,
        policy(log_z),
        batch=64,
        adam=by_steps(steps, log_z_lr=0.03),
        conditions=CONDITIONS,
    )
    assert not any(
        name.startswith("log_z") and "layers" not in name for name, _ in trainer.named_parameters()
    )
    check_family(trainer, steps, log_z)
    # Policies of different conditions are different, so the small distances above aren't those of one policy.
    one, other = (trainer.exact(condition=torch.tensor([beta])).probs for beta in (0.5, 2.0))
    assert 0.5 * np.abs(np.asarray(one) - np.asarray(other)).sum() > 0.1


def test_sequence_networks_have_a_log_z_of_conditions_of_their_own():
    trainer = gfn.Trainer(
        gfn.BitSequence(1, 3),
        beta_reward,
        gfn.SequenceNet("lstm", 32, 1),
        batch=64,
        adam=by_steps(400),
        conditions=CONDITIONS,
    )
    check_family(trainer, 400)


# Exact properties of scores and gradients.


@pytest.mark.parametrize("name", ["vectors", "entries", "dags", "graphs"])
def test_a_module_of_p_b_whose_heads_are_0_is_the_uniform_p_b(name):
    kind = KINDS[name]
    torch.manual_seed(0)
    main = kind.module()
    widths = (WIDTH,) * (2 if kind.made in (gfn.GraphModule, gfn.DagModule) else 1)
    separate = kind.made(copy.deepcopy(main), *widths, backward=kind.module()).build(kind.env, seed=1)
    uniform = kind.made(copy.deepcopy(main), *widths, backward="uniform").build(kind.env, seed=1)
    drawn = gfn.Sampler(kind.env, uniform).sample(64)
    drawn = drawn.with_log_rewards(np.zeros(64))
    mine, theirs = separate.score(drawn), uniform.score(drawn)
    assert not torch.allclose(mine.log_pb, theirs.log_pb, atol=1e-3)
    with torch.no_grad():
        values = dict(uniform.named_parameters())
        for key, parameter in separate.named_parameters():
            if key in values:
                parameter.copy_(values[key])
            elif not key.startswith("backward."):
                parameter.zero_()
    mine = separate.score(drawn)
    assert torch.allclose(mine.log_pb, theirs.log_pb, atol=1e-6) and torch.equal(mine.log_pf, theirs.log_pf)


@ALL
@pytest.mark.parametrize("setting", ["backward", "flow", "log_z"])
def test_gradients_reach_each_module(kind, setting):
    """Compares the gradient of one number in the first and in the last parameter of a module with the
    difference quotient of the loss. The batch is drawn by uniform actions."""
    if setting == "backward" and kind.made is gfn.SequenceModule:
        pytest.skip("a sequence has one backward move")
    conditional = setting == "log_z"
    if conditional and kind.made is not gfn.SequenceModule:
        pytest.skip("log Z doesn't depend on the kind of state")

    def loss(which, at=0, change=0.0):
        torch.manual_seed(0)
        module, added = kind.module().double(), modules(kind, setting)[setting].double()
        parameter = list(added.parameters())[which]
        with torch.no_grad():
            parameter.view(-1)[at] += change
        loss = kind.trainer(
            module,
            double=True,
            exploration=gfn.Exploration(epsilon=1.0),
            batch=32,
            policy={setting: added} if conditional else {setting: added, "initial_log_z": 0.0},
            objective=gfn.DetailedBalance() if setting == "flow" else gfn.TrajectoryBalance(),
            conditions=CONDITIONS if conditional else None,
            reward=beta_reward if conditional else None,
        ).loss()
        loss.backward()
        return loss.item(), parameter.grad.view(-1)

    # P_B of acyclic graphs has one type of moves, so it doesn't depend on the last two parameters.
    for which in (0, 3 if kind.made is gfn.DagModule and setting == "backward" else -1):
        _, gradient = loss(which)
        at = gradient.abs().argmax().item()
        (up, _), (down, _) = loss(which, at, 1e-5), loss(which, at, -1e-5)
        assert abs(gradient[at]) > 1e-5 and (up - down) / 2e-5 == pytest.approx(gradient[at].item(), rel=1e-4)


class Constant(torch.nn.Module):
    """A log Z that is the same for all conditions."""

    def __init__(self):
        super().__init__()
        self.value = torch.nn.Parameter(torch.tensor(0.7))

    def forward(self, conditions):
        return self.value.expand(len(conditions), 1)


def test_log_z_has_the_learning_rate_of_log_z():
    """Checks the gradient of a constant log Z, twice the mean residual of trajectory balance, and the first
    step of Adam, which has the size of the learning rate."""
    log_z = Constant()
    trainer = gfn.Trainer(
        GRID,
        lambda points, conditions: np.asarray(conditions)[:, 0] * sum_of(points),
        gfn.Mlp((8,), log_z=log_z),
        batch=16,
        adam=gfn.Adam(lr=1e-4, log_z_lr=0.25),
        conditions=CONDITIONS,
    )
    batch = trainer.batch()
    scores = trainer.score(batch)
    trainer.loss(scores).backward()
    balance = torch.zeros(16).index_add(0, scores.trajectory, scores.log_pf - scores.log_pb)
    residuals = scores.log_z + balance - scores.log_reward
    assert torch.allclose(scores.log_z, torch.full((16,), 0.7))
    assert log_z.value.grad.item() == pytest.approx(2 * residuals.mean().item(), rel=1e-5)
    trainer.fit(1)
    assert abs(log_z.value.item() - 0.7) == pytest.approx(0.25, rel=1e-4)


def test_gradients_in_chunks_are_those_of_the_whole_batch():
    def parameters(chunk):
        trainer = full("vectors", 0, chunk).fit(2)
        return torch.cat([parameter.detach().flatten() for parameter in trainer.parameters()])

    whole = parameters(None)
    assert torch.allclose(parameters(7), whole, atol=1e-4)
    assert not torch.allclose(torch.zeros_like(whole), whole, atol=1e-4)


# Checkpoints and copies.


def full(name, seed, chunk=None):
    """Returns a trainer with all modules that its states can have, under conditions."""
    kind = KINDS[name]
    torch.manual_seed(seed)
    inputs = {"vectors": lambda: Dense(13), "sequences": Reader}[name]
    added = {"flow": Scalar(inputs()), "log_z": LogZ()}
    if name == "vectors":
        added["backward"] = inputs()
    return kind.trainer(
        inputs(),
        objective=gfn.OwnObjective(own_loss, flow=True),
        conditions=CONDITIONS,
        reward=lambda states, conditions: np.asarray(conditions)[:, 0] * kind.reward(states),
        policy=added,
        batch=16,
        adam=gfn.Adam(lr=LR, log_z_lr=LR, chunk=chunk),
    )


def own_loss(scores):
    """The sum of the losses of trajectory balance, and of a penalty on log F."""
    balance = torch.zeros_like(scores.log_reward).index_add(
        0, scores.trajectory, scores.log_pf - scores.log_pb
    )
    return (scores.log_z + balance - scores.log_reward).square().mean() + scores.log_flow.square().mean()


@pytest.mark.parametrize("name", ["vectors", "sequences"])
def test_checkpoints_and_copies_have_all_modules(name, tmp_path):
    whole, half = full(name, 0).fit(6), full(name, 0).fit(3)
    half.save(tmp_path / "half")
    other = full(name, 1)
    resumed = other.resume(tmp_path / "half").fit(3)
    assert resumed.history["loss"].tolist() == whole.history["loss"].tolist()
    assert all(torch.equal(*both) for both in zip(resumed.parameters(), whole.parameters()))
    states = np.asarray(whole.sample(5, np.full((5, 1), 0.5)))
    conditions = torch.full((5, 1), 0.5)
    said = whole.network(states, conditions)
    whole.save(tmp_path / "whole")
    loaded = gfn.load(tmp_path / "whole", env=whole.env, policy=full(name, 2).policy)
    for network in (
        copy.deepcopy(whole.network),
        pickle.loads(pickle.dumps(whole.network)),
        loaded,
    ):
        again = network(states, conditions)
        for figure in ("log_pf", "log_pb", "log_flow", "log_z"):
            assert torch.equal(getattr(said, figure), getattr(again, figure)), figure
        assert network.flow is not whole.network.flow and isinstance(network.log_z, LogZ)
    with torch.no_grad():
        loaded.log_z.layers[2].bias += 1
    assert torch.allclose(loaded(states, conditions).log_z, said.log_z + 1)
    assert torch.equal(whole.network(states, conditions).log_z, said.log_z)


def test_modules_may_share_layers():
    """Checks that a layer that two modules share is trained once per step."""
    torch.manual_seed(0)
    trunk = Dense()
    flow = Scalar(trunk)
    trainer = KINDS["vectors"].trainer(trunk, objective=gfn.DetailedBalance(), policy={"flow": flow})
    names = [name for name, _ in trainer.named_parameters()]
    assert [name for name in names if name.startswith("flow")] == [
        f"flow.last.{layer}.{part}" for layer in (0, 2) for part in ("weight", "bias")
    ]
    before = trunk.layers[0].weight.detach().clone()
    trainer.fit(1)
    assert 0 < (trunk.layers[0].weight - before).abs().max() <= 1.01 * LR


def test_a_prior_with_modules_is_copied():
    kind = KINDS["vectors"]
    torch.manual_seed(0)
    prior = kind.trainer(objective=gfn.DetailedBalance(), policy=modules(kind, "backward", "flow")).fit(5)
    before = copy.deepcopy(prior.network.state_dict())
    kind.trainer(objective=gfn.RelativeTrajectoryBalance(prior)).fit(2)
    assert all(torch.equal(value, before[name]) for name, value in prior.network.state_dict().items())


def test_separate_modules_work_in_custom_loops_and_objectives():
    """Trains an environment with custom rules, the distribution of items to bins, by a Huber loss in a custom
    loop, with separate modules of P_F and P_B."""
    changes = np.array([(item, 0, bin) for item in range(4) for bin in (1, 2)])
    env = gfn.VectorEnv(width=4, values=3, changes=changes, rules=AllItems())
    torch.manual_seed(0)
    policy = gfn.VectorModule(Dense(), WIDTH, backward=Dense())

    def huber(scores):
        sums = torch.zeros_like(scores.log_reward)
        sums = sums.index_add(0, scores.trajectory, scores.log_pf - scores.log_pb)
        return torch.nn.functional.huber_loss(scores.log_z + sums, scores.log_reward)

    reward = lambda bins: 0.5 * (bins == 1).sum(axis=1)  # noqa: E731
    trainer = gfn.Trainer(env, reward, policy, gfn.OwnObjective(huber), batch=64)
    log_z = [parameter for name, parameter in trainer.named_parameters() if name == "log_z"]
    rest = [parameter for name, parameter in trainer.named_parameters() if name != "log_z"]
    optimizer = torch.optim.Adam([{"params": rest, "lr": 2e-3}, {"params": log_z, "lr": 0.1}])
    for _ in range(200):
        batch = trainer.batch()
        scores = trainer.score(batch)
        optimizer.zero_grad()
        trainer.loss(scores).backward()
        optimizer.step()
        trainer.advance(batch, scores)
    exact = trainer.exact()
    assert exact.log_z == pytest.approx(4 * np.log(1 + np.exp(0.5))) and exact.tv < 0.1, exact


class AllItems(gfn.VectorRules):
    """The rule that an object has a bin for each item."""

    def can_end(self, states):
        return (states > 0).all(1)


# Errors and warnings.


class Changed(torch.nn.Module):
    """A module that changes the result of another module by a function."""

    def __init__(self, inner, change):
        super().__init__()
        self.inner, self.change = inner, change

    def forward(self, *given):
        return self.change(self.inner(*given))


def each(change):
    return lambda answer: tuple(map(change, answer)) if isinstance(answer, tuple) else change(answer)


def with_changed(kind, setting, change):
    """Returns a trainer with a module whose results are changed, as the setting `setting`."""
    torch.manual_seed(0)
    inner = kind.module() if setting == "module" else modules(kind, setting)[setting]
    changed = Changed(inner, each(change))
    conditional = setting == "log_z"
    main = changed if setting == "module" else Dense(13) if conditional else kind.module()
    return kind.trainer(
        main,
        objective=gfn.DetailedBalance() if setting == "flow" else gfn.TrajectoryBalance(),
        policy={} if setting == "module" else {setting: changed},
        conditions=CONDITIONS if conditional else None,
        reward=(lambda states, conditions: np.zeros(len(states))) if conditional else None,
    )


CASES = [
    (KINDS[name], setting)
    for name in ("vectors", "sequences", "dags", "graphs")
    for setting in ("module", "backward", "flow", "log_z")
    if (setting != "log_z" or name == "vectors") and (setting, name) != ("backward", "sequences")
]
SETTINGS = pytest.mark.parametrize(
    "kind, setting", CASES, ids=[f"{kind.made.__name__}-{name}" for kind, name in CASES]
)


@SETTINGS
@pytest.mark.parametrize(
    "change, error, message",
    [
        (lambda x: torch.stack([x, x]), ValueError, r"of shape \[2, .*\]: expected \["),
        (lambda x: x[1:], ValueError, r"of shape \[.*\]: expected \["),
        (lambda x: x.double(), TypeError, "of dtype Double on Cpu: expected Float"),
        (lambda x: x.tolist(), TypeError, "expected a torch.Tensor, got list"),
    ],
    ids=["stacked", "a row less", "double", "a list"],
)
def test_a_wrong_result_is_an_error_that_names_the_module(kind, setting, change, error, message):
    name = kind.trainer().policy.__class__.__name__
    with pytest.raises(error, match=message) as caught:
        with_changed(kind, setting, change).fit(1)
    assert f"{name}.{setting} (the module Changed) gave " in str(caught.value)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions have no notes")
@SETTINGS
def test_an_exception_has_a_note_of_the_module(kind, setting):
    def fail(answer):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as caught:
        with_changed(kind, setting, fail).fit(1)
    (note,) = caught.value.__notes__
    shown = "GraphBatch(" if kind.made is gfn.GraphModule else "a tensor of shape ["
    assert f".{setting} (the module Changed), called with " in note and shown in note


@pytest.mark.parametrize(
    "layer", [torch.nn.BatchNorm1d(WIDTH), torch.nn.Dropout(0.5)], ids=["norm", "dropout"]
)
@pytest.mark.parametrize("setting", ["backward", "flow"])
def test_states_that_depend_on_others_or_on_chance_are_refused(layer, setting):
    kind = KINDS["vectors"]
    torch.manual_seed(0)
    inner = torch.nn.Sequential(Dense(), copy.deepcopy(layer))
    module = inner if setting == "backward" else Scalar(inner)
    objective = gfn.DetailedBalance() if setting == "flow" else gfn.TrajectoryBalance()
    with pytest.raises(ValueError, match="neither on the other states of the batch nor on chance"):
        kind.trainer(objective=objective, policy={setting: module})
    module.eval()
    assert kind.trainer(objective=objective, policy={setting: module}).fit(1).steps_done == 1


@SETTINGS
def test_a_module_without_gradients_is_told_of(kind, setting):
    with pytest.warns(gfn.TrainingWarning, match=rf"\.{setting} \(the module Changed\) have no gradients"):
        trainer = with_changed(kind, setting, lambda x: x.detach())
        trainer.fit(1)
    assert sum(f".{setting} (the module Changed)" in text for text in trainer.warnings) == 1
    assert not any("no gradients" in text for text in kind.trainer().fit(1).warnings)


VECTORS = KINDS["vectors"]
REFUSED = [
    (lambda: gfn.VectorModule(Dense(), WIDTH, backward="separate"), ValueError, "or a torch.nn.Module"),
    (lambda: gfn.VectorModule(Dense(), WIDTH, backward=Dense), TypeError, "backward is <class"),
    (
        lambda: gfn.VectorModule(Dense(), WIDTH, flow=lambda x: x),
        TypeError,
        "expected a torch.nn.Module or None",
    ),
    (lambda: gfn.Mlp(log_z=3.0), TypeError, "log_z is 3.0: expected a torch.nn.Module or None"),
    (lambda: gfn.SequenceModule(Reader(), WIDTH, backward=Reader()), TypeError, "backward"),
    (
        lambda: VECTORS.trainer(policy=modules(VECTORS, "flow")),
        ValueError,
        "VectorModule.flow is a module, but TrajectoryBalance doesn't use log F of states",
    ),
    (
        lambda: VECTORS.trainer(policy=modules(VECTORS, "log_z")),
        ValueError,
        "VectorModule.log_z is a module, .* the policy has no conditions",
    ),
    (
        lambda: gfn.Trainer(
            GRID,
            lambda states, conditions: np.zeros(len(states)),
            gfn.Mlp(log_z=LogZ()),
            gfn.DetailedBalance(),
            conditions=CONDITIONS,
        ),
        ValueError,
        "Mlp.log_z is a module, but DetailedBalance doesn't use log Z",
    ),
    (
        lambda: gfn.VectorModule(Dense(), WIDTH, flow=Scalar(Dense())).build(GRID),
        ValueError,
        "flow is False, but VectorModule.flow is a module",
    ),
    (
        lambda: VECTORS.trainer(
            sources=[gfn.Teacher(gfn.VectorModule(Dense(), WIDTH, flow=Scalar(Dense()))), gfn.Replay(8)]
        ),
        ValueError,
        "a teacher's trajectory balance doesn't use log F",
    ),
    (
        lambda: gfn.Trainer(GRID, sum_of, torch.nn.Linear(12, 3)),
        TypeError,
        r"VectorModule\(module, width\), to",
    ),
    (
        lambda: gfn.Trainer(gfn.TokenSequence(2, 3), sum_of, torch.nn.Linear(12, 3)),
        TypeError,
        r"VectorModule\(module, width\) or SequenceModule\(module, width\)",
    ),
    (lambda: gfn.Trainer(DAGS, sum_of, torch.nn.Linear(12, 3)), TypeError, r"DagModule\(module"),
    (lambda: gfn.Trainer(gfn.Ring(3), sum_of, torch.nn.Linear(12, 3)), TypeError, r"GraphModule\(module"),
    (lambda: gfn.Trainer(gfn.Box(), sum_of, torch.nn.Linear(12, 3)), TypeError, r"BoxNet\(\)"),
]


@pytest.mark.parametrize("call, error, message", REFUSED)
def test_what_is_refused(call, error, message):
    refused(call, error, message)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions have no notes")
def test_a_mixture_of_transitions_and_trajectories_is_explained():
    trainer = VECTORS.trainer(objective=gfn.OwnObjective(lambda scores: scores.log_pf - scores.log_reward))
    scores = trainer.score(trainer.batch())
    with pytest.raises(RuntimeError, match="must match") as caught:
        trainer.loss(scores)
    (note,) = caught.value.__notes__
    transitions = len(scores.log_pf)
    assert f"64 trajectories with {transitions} transitions" in note and transitions > 64
    per_row = VECTORS.trainer(objective=gfn.OwnObjective(lambda scores: scores.log_reward + scores.log_z))
    with pytest.raises(ValueError, match=r"for 64 trajectories with \d+ transitions .*\[64\]"):
        per_row.fit(1)
