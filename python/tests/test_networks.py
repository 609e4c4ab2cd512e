"""Tests of networks built from settings, of trajectories sampled from them, and of custom training loops."""

import copy
import pickle
import warnings

import gfn_rs as gfn
import networkx as nx
import numpy as np
import pytest
import torch
from gfn_rs import _loading
from test_by_hand import listed, replaced_joined

POLICIES = [
    (gfn.Ring(3), gfn.GraphNet(embedding=16)),
    (gfn.Ring(3), gfn.EdgeMlp((16,), backward="shared_torso")),
    (gfn.GraphBuilding(4, attached=True), gfn.GraphNet(embedding=16, backward="shared_torso")),
    (gfn.GraphEnv([gfn.AddEdge()], 4, start=4), gfn.GraphNet(embedding=16)),
    (gfn.BayesianStructure(3), gfn.Mlp((16,))),
    (gfn.BayesianStructure(3), gfn.EdgeTransformer(16, 2)),
    (gfn.HyperGrid(2, 4), gfn.Mlp((16,), backward="separate")),
    (gfn.TokenSequence(2, 3), gfn.SequenceNet(width=16, layers=1)),
    (gfn.ToyDag(), gfn.Uniform()),
]
POINTS = [
    (gfn.Box(), gfn.BoxNet((16,))),
    (gfn.Line(), gfn.LineNet((16,))),
    (gfn.Diffusion(2, 5), gfn.DiffusionNet()),
]


def of_classes(pair):
    return "-".join(type(part).__name__ for part in pair)


def zero(states):
    return np.zeros(len(states))


@pytest.fixture(params=POLICIES, ids=of_classes)
def built(request):
    env, settings = request.param
    return env, settings.build(env, seed=1)


@pytest.fixture(params=POLICIES + POINTS, ids=of_classes)
def drawn(request):
    env, settings = request.param
    network = settings.build(env, seed=1)
    return env, network, gfn.Sampler(env, network).sample(24, seed=0)


def test_what_a_network_says_is_the_exact_distribution(built):
    """Propagates the network's probabilities along moves in Python, state by state. The resulting
    distribution must equal the distribution of the exact evaluation."""
    env, network = built
    states = listed(env)
    keys = env.keys(states)
    place = {key: k for k, key in enumerate(keys)}
    with torch.no_grad():
        out = network(states)
    moves, probs = out.moves, out.log_pf.exp().double().numpy()
    assert np.allclose(
        np.bincount(moves.state, probs, len(keys)),
        (np.bincount(moves.state, minlength=len(keys)) > 0).astype(float),
        atol=1e-5,
    )
    inner = np.flatnonzero(~moves.is_exit)
    children = env.step(states[moves.state[inner]], moves.slot[inner]).states
    to = np.array([place[key] for key in env.keys(children)])
    ends = np.zeros(len(keys))
    reach = np.zeros(len(keys))
    reach[place[env.keys(env.initial(1))[0]]] = 1.0
    ended = moves.is_exit
    has_move = np.zeros(len(keys), dtype=bool)
    has_move[moves.state] = True
    for _ in range(40):
        ends += np.bincount(moves.state[ended], (reach[moves.state] * probs)[ended], len(keys)) + np.where(
            has_move, 0.0, reach
        )
        reach = np.bincount(to, reach[moves.state[inner]] * probs[inner], len(keys))
    exact = gfn.Trainer(env, zero, copy.deepcopy(network), gfn.LogPartitionVariance(), batch=2).exact()
    said = dict(zip(env.keys(exact.states), exact.probs))
    assert np.allclose([said[key] for key in keys], ends, atol=1e-6)
    assert abs(ends.sum() - 1) < 1e-5


def test_moves_back_have_probabilities(built):
    env, network = built
    states = listed(env)
    out = network(states)
    back = out.backward_moves
    sums = np.bincount(back.state, out.log_pb.detach().exp().numpy(), len(states))
    assert np.allclose(sums, ~env.is_initial(states), atol=1e-5)
    assert back == env.moves(states, backward=True) and out.moves == env.moves(states)


def test_gradients_are_those_of_differences():
    env = gfn.GraphBuilding(4, attached=True)
    network = gfn.GraphNet(embedding=8, backward="shared_torso").build(env, flow=True, double=True)
    states = listed(env)

    def total():
        out = network(states)
        return (
            (out.log_pf.exp() * torch.arange(len(out.log_pf))).sum()
            + out.log_pb.sum()
            + out.log_flow.sum()
            + out.log_z.sum()
        )

    total().backward()
    checked = 0
    for parameter in network.parameters():
        place = int(parameter.grad.abs().argmax())
        with torch.no_grad():
            flat, ends = parameter.view(-1), []
            for shift in (1e-6, -2e-6):
                flat[place] += shift
                ends.append(float(total()))
            flat[place] += 1e-6
        slope, grad = (ends[0] - ends[1]) / 2e-6, float(parameter.grad.view(-1)[place])
        assert abs(slope - grad) < 1e-4 * max(1.0, abs(grad)), (slope, grad)
        checked += 1
    assert checked > 10


def test_a_network_is_a_module_of_torch(tmp_path):
    env = gfn.Ring(3)
    network = gfn.GraphNet(embedding=16).build(env, seed=3)
    assert isinstance(network, torch.nn.Module) and all(
        isinstance(p, torch.nn.Parameter) for p in network.parameters()
    )
    states = env.initial(2)
    seen = []
    handle = network.register_forward_hook(lambda module, given, out: seen.append(len(out.log_pf)))
    said = network(states).log_pf
    assert seen == [len(said)]
    handle.remove()
    torch.save(network.state_dict(), tmp_path / "values.pt")
    other = gfn.GraphNet(embedding=16).build(env, seed=4)
    assert not torch.equal(other(states).log_pf, said)
    other.load_state_dict(torch.load(tmp_path / "values.pt", weights_only=True))
    assert torch.equal(other(states).log_pf, said)
    for again in (copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
        assert torch.equal(again(states).log_pf, said)
        with torch.no_grad():
            next(again.parameters()).zero_()
        assert torch.equal(network(states).log_pf, said)
    double = copy.deepcopy(network).double()
    assert double(states).log_pf.dtype == torch.float64 and torch.allclose(
        double(states).log_pf.float(), said, atol=1e-6
    )
    assert network.to("cpu") is network and network.float() is network
    walks = gfn.Sampler(env, network).sample(2).with_log_rewards([0.0, 0.0])
    assert network.score(walks).log_z.requires_grad
    with torch.no_grad():
        assert not network(states).log_pf.requires_grad
        assert not any(
            tensor.requires_grad for tensor in (network.score(walks).log_pf, network.score(walks).log_z)
        )
    frozen = copy.deepcopy(network).requires_grad_(False)
    assert not frozen(states).log_pf.requires_grad
    assert len(repr(network)) > 100


CONVS = ["gin", "gin_virtual", "gine", "directed", "transformer", "gat", "gps"]


@pytest.mark.parametrize("conv", CONVS)
def test_networks_of_all_layers_are_copied_with_their_parameters(conv):
    env = gfn.GraphBuilding(3, directed=conv == "directed")
    network = gfn.GraphNet(embedding=8, conv=conv).build(env)
    other = gfn.GraphNet(embedding=8, conv=conv).build(env, seed=1)
    states = env.initial(2)
    assert not torch.equal(other(states).log_pf, network(states).log_pf)
    for copied in (copy.deepcopy(network), other):
        copied.load_state_dict(network.state_dict())
        assert torch.equal(copied(states).log_pf, network(states).log_pf)


def test_the_same_seed_gives_the_same_network():
    env = gfn.HyperGrid(2, 4)
    one, same, other = (gfn.Mlp((16,)).build(env, seed) for seed in (0, 0, 1))
    pairs = lambda a, b: all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters()))  # noqa: E731
    assert pairs(one, same) and not pairs(one, other)


def test_conditions_are_told(tmp_path):
    env = gfn.HyperGrid(2, 4)
    network = gfn.Mlp((16,)).build(env, n_conditions=2)
    a, b = network(env.initial(2), np.zeros((2, 2))), network(env.initial(2), np.ones((2, 2)))
    assert not torch.equal(a.log_pf, b.log_pf) and a.log_z.shape == (2,)
    drawn = gfn.Sampler(env, network).sample(5, conditions=np.full((5, 2), 0.5), seed=0)
    assert drawn.conditions.tolist() == [[0.5, 0.5]] * 5 and pickle.loads(
        pickle.dumps(drawn)
    ).conditions.shape == (5, 2)


def test_a_module_of_ones_own_is_the_network_s():
    class Count(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(1, 8)

        def forward(self, batch):
            x = self.layer(batch.node_classes.unsqueeze(-1).float())
            return x, x.new_zeros(batch.n_graphs, 8).index_add(0, batch.batch, x)

    env, module = gfn.ColoredGraphs(3), Count()
    network = gfn.GraphModule(module, 8, 8).build(env)
    assert network.module is module and module.layer.weight in set(network.parameters())
    names = [name for name, _ in network.named_parameters()]
    assert "module.layer.weight" in names and len(names) == len(set(names)) == len(
        {id(p) for p in network.parameters()}
    )
    network(env.initial(2)).log_pf.sum().backward()
    again = copy.deepcopy(network)
    assert again.module is not module and torch.equal(
        again(env.initial(1)).log_pf, network(env.initial(1)).log_pf
    )


def test_trajectories_are_what_they_say(drawn):
    env, network, all_of_them = drawn
    n, transitions = len(all_of_them), len(all_of_them.trajectory)
    assert n == 24 and all_of_them.lengths.sum() == transitions == len(all_of_them.states) == len(
        all_of_them.log_pf
    ) == len(all_of_them.actions)
    assert len(all_of_them.terminal) == n and all_of_them.log_rewards is None and all_of_them.n_fresh == 0
    last = all_of_them.to_transitions()
    assert (
        last.is_last.sum() == n and (last.is_exit <= last.is_last).all() and np.isnan(last.log_rewards).all()
    )
    rewarded = all_of_them.with_log_rewards(np.arange(n)).to_transitions()
    assert rewarded.log_rewards[rewarded.is_last].tolist() == list(range(n))
    some = last[np.flatnonzero(last.trajectory == 3)]
    assert len(some) == all_of_them.lengths[3] and len(some.states) == len(some.next_states) == len(
        some.actions
    ) == len(some)
    assert (
        len(all_of_them[[3, 3]]) == 2
        and len(all_of_them[2:5] + all_of_them[0]) == 4
        and len(all_of_them + all_of_them) == 48
    )
    assert torch.equal(
        all_of_them[3].log_pf, all_of_them.log_pf[all_of_them.offsets[3] : all_of_them.offsets[4]]
    )
    again = pickle.loads(pickle.dumps(all_of_them.with_log_rewards(np.ones(n))))
    assert (
        torch.equal(again.log_pf, all_of_them.log_pf)
        and torch.equal(again.actions, all_of_them.actions)
        and (again.log_rewards == 1).all()
    )
    same = gfn.Sampler(env, network).sample(24, seed=0)
    assert torch.equal(same.actions, all_of_them.actions) and "24 of" in repr(same)
    scores = network.score(all_of_them.with_log_rewards(np.zeros(n)))
    assert torch.allclose(scores.log_pf.detach(), all_of_them.log_pf, atol=1e-5) and torch.allclose(
        scores.log_pb.detach(), all_of_them.log_pb, atol=1e-5
    )


@pytest.mark.parametrize("env, settings", POLICIES, ids=[of_classes(pair) for pair in POLICIES])
def test_log_pf_of_trajectories_is_that_of_their_moves(env, settings):
    network = settings.build(env, seed=2)
    drawn = gfn.Sampler(env, network, epsilon=0.5).sample(16)
    out = network(drawn.states)
    place = {
        (int(state), int(slot)): k for k, (state, slot) in enumerate(zip(out.moves.state, out.moves.slot))
    }
    rows = [place[(k, int(slot))] for k, slot in enumerate(drawn.actions)]
    assert torch.allclose(out.log_pf[rows].detach(), drawn.log_pf, atol=1e-5)
    # A step from each state with its drawn move must lead to the next state of the trajectory.
    step = env.step(drawn.states, drawn.moves)
    assert env.keys(step.states) == env.keys(drawn.next_states) and np.array_equal(step.exit, drawn.is_exit)
    inner = np.flatnonzero(~drawn.is_exit)
    back = network(drawn.next_states[inner])
    place = {
        (int(state), int(slot)): k
        for k, (state, slot) in enumerate(zip(back.backward_moves.state, back.backward_moves.slot))
    }
    rows = [place[(k, int(slot))] for k, slot in enumerate(drawn.reverse[inner])]
    assert torch.allclose(back.log_pb[rows].detach(), drawn.log_pb[torch.from_numpy(inner)], atol=1e-5)
    assert (drawn.log_pb[torch.from_numpy(np.flatnonzero(drawn.is_exit))] == 0).all()


def test_trajectories_back_lead_to_their_objects(drawn):
    env, network, forwards = drawn
    back = gfn.Sampler(env, network).backward(forwards.terminal, seed=1)
    assert len(back) == len(forwards)
    if type(env) in (gfn.Box, gfn.Line, gfn.Diffusion):
        assert np.allclose(back.terminal, forwards.terminal)
    else:
        assert env.keys(back.terminal) == env.keys(forwards.terminal)
        again = pickle.loads(pickle.dumps(back))
        assert env.keys(again.terminal) == env.keys(back.terminal) and torch.allclose(
            again.log_pf, back.log_pf
        )


def test_moves_from_anywhere_are_checked():
    env = gfn.HyperGrid(2, 3)
    walk = gfn.Trajectories.from_actions(env, [0, 1, 2, 2], [0, 3, 4], log_rewards=[1.0, 2.0])
    assert (
        walk.terminal.tolist() == [[1, 1], [0, 0]]
        and walk.lengths.tolist() == [3, 1]
        and walk.log_rewards.tolist() == [1.0, 2.0]
    )
    with pytest.raises(ValueError, match="no policy has scored"):
        walk.log_pf
    with pytest.raises(ValueError, match="is not legal"):
        gfn.Trajectories.from_actions(env, [0, 0, 0, 2], [0, 4])
    with pytest.raises(ValueError, match="stop at its terminal state: .* trajectory 0 after 2 steps"):
        gfn.Trajectories.from_actions(env, [0, 2, 2], [0, 3])
    with pytest.raises(ValueError, match="go on until a terminal state: .* trajectory 0 after 1 steps"):
        gfn.Trajectories.from_actions(env, [0], [0, 1])


def test_exploration_and_greed():
    env = gfn.HyperGrid(2, 5)
    network = gfn.Mlp((16,)).build(env, seed=0)
    greedy = gfn.Sampler(env, network).sample(4, greedy=True)
    # With `greedy`, each action must be the most probable move of its state.
    for states, action in zip(greedy.states, greedy.actions):
        out = network(states[None])
        assert int(action) == out.moves.slot[int(out.log_pf.argmax())]
    uniform = gfn.Sampler(env, network, epsilon=1.0).sample(6000, seed=0)
    first = uniform.actions[torch.from_numpy(uniform.offsets[:-1])].numpy()
    assert all(abs((first == slot).mean() - 1 / 3) < 5 * np.sqrt(2 / 9 / 6000) for slot in range(3))
    long = gfn.Sampler(env, network, exit_bias=-50.0).sample(10)
    assert (long.lengths == 9).all()
    hot, cold = (
        np.mean(gfn.Sampler(env, network, temperature=t).sample(200, seed=0).log_pf.numpy())
        for t in (5.0, 0.2)
    )
    assert hot < cold


def test_a_trainer_goes_on_with_a_network():
    env = gfn.HyperGrid(2, 4)
    network = gfn.Mlp((32,)).build(env, flow=True)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    before = [p.detach().clone() for p in network.parameters()]
    trainer = gfn.Trainer(
        env,
        gfn.HyperGridReward(),
        network,
        gfn.DetailedBalance(),
        batch=32,
        adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 800)),
    )
    assert trainer.network is network and {id(p) for p in trainer.parameters()} == {
        id(p) for p in network.parameters()
    }
    assert optimizer.param_groups[0]["params"][0] is next(iter(network.parameters()))
    assert trainer.fit(800).exact().tv < 0.05
    assert sum(torch.equal(a, b) for a, b in zip(before, network.parameters())) <= 1
    with pytest.raises(ValueError, match="another trainer's"):
        gfn.Trainer(env, gfn.HyperGridReward(), network, gfn.DetailedBalance())
    assert trainer.fit(1).steps_done == 801
    with pytest.raises(RuntimeError, match="can't be moved or converted"):
        network.double()


def test_settings_that_are_refused_leave_the_network_as_it_was():
    env = gfn.HyperGrid(2, 4)
    network = gfn.Mlp((16,)).build(env)
    said = network(env.initial(1)).log_pf
    for call, says in (
        (lambda: gfn.Trainer(gfn.HyperGrid(2, 5), zero, network), "built for"),
        (lambda: gfn.Trainer(env, zero, network, gfn.DetailedBalance()), "flow=True"),
        (lambda: gfn.Trainer(env, zero, network, double=True), "double"),
        (lambda: gfn.Trainer(env, zero, network, adam=gfn.Adam(lr=-1.0)), "lr"),
        (
            lambda: gfn.Trainer(
                env,
                lambda s, c: zero(s),
                network,
                conditions=gfn.Conditions(lambda n, rng: np.zeros((n, 1)), 1),
            ),
            "n_conditions",
        ),
    ):
        with pytest.raises(ValueError, match=says):
            call()
        assert torch.equal(network(env.initial(1)).log_pf, said)
    assert gfn.Trainer(env, zero, network).fit(1).steps_done == 1


def own_loop(trainer, steps):
    groups = [
        {"params": [p for name, p in trainer.named_parameters() if name != "log_z"]},
        {"params": [p for name, p in trainer.named_parameters() if name == "log_z"], "lr": 0.1},
    ]
    optimizer = torch.optim.Adam(groups, lr=1e-3)
    rates = [group["lr"] for group in groups]
    for _ in range(steps):
        batch = trainer.batch()
        scores = trainer.score(batch)
        optimizer.zero_grad()
        trainer.loss(scores).backward()
        for group, rate in zip(optimizer.param_groups, rates):
            group["lr"] = rate * trainer.lr_factor
        optimizer.step()
        trainer.advance(batch, scores)
    return trainer


@pytest.mark.parametrize(
    "settings",
    [
        dict(),
        dict(
            sources=[gfn.Replay(200, draw="loss_prioritised", after=2)],
            exploration=gfn.Exploration(epsilon=gfn.Linear(0.5, 0.0, 20)),
        ),
        dict(sources=[gfn.Replay(200, after=2), gfn.LocalSearch(2)]),
        dict(sources=[gfn.Teacher(gfn.Mlp((8,)))]),
        dict(adam=gfn.Adam(average=gfn.Average(decay=0.9))),
        dict(
            sources=[gfn.Data([[0, 0], [3, 3]], share=0.25)],
            exploration=gfn.Exploration(exit_bias=gfn.Linear(-2.0, 0.0, 20)),
        ),
        dict(sources=[gfn.Source(lambda n, rng: rng.integers(0, 4, (n, 2)))]),
        dict(objective=gfn.ModifiedDetailedBalance(target_network=5)),
        dict(objective=gfn.AugmentedTrajectoryBalance(0.1)),
        dict(
            objective=gfn.TrajectoryBalance(backward="maximum_entropy"),
            exploration=gfn.Exploration(epsilon=None),
        ),
        dict(objective=gfn.MaximumLikelihood(), sources=[gfn.Data([[0, 0], [3, 3]], share=1.0)]),
        dict(policy=gfn.Mlp((16,), weight_noise=0.5)),
        dict(policy=gfn.Mlp((16,), heads=3), sources=[gfn.Thompson(0.5)]),
    ],
    ids=lambda settings: "-".join(settings) or "plain",
)
def test_an_own_loop_is_fit_step_by_step(settings):
    """Trains by a custom loop with the same optimizer and sources as `fit`. The losses must equal the losses
    of `fit`."""
    policy = settings.pop("policy", gfn.Mlp((16,)))
    make = lambda: gfn.Trainer(
        gfn.HyperGrid(2, 4), gfn.HyperGridReward(), policy, double=True, batch=16, seed=5, **settings
    )  # noqa: E731
    fitted, own = make().fit(12), own_loop(make(), 12)
    assert (
        own.steps_done == 12
        and own.reward_calls == fitted.reward_calls
        and own.replay_len == fitted.replay_len
    )
    for name in ("loss", "log_z", "mean_len", "grad_norm"):
        assert np.allclose(own.history[name], fitted.history[name], rtol=1e-6, atol=1e-9), name
    assert (own.history["seconds"] > 0).all()
    theirs = dict(fitted.named_parameters())
    assert all(torch.allclose(p, theirs[name], atol=1e-9) for name, p in own.named_parameters())


def test_several_updates_on_a_batch_compare_with_the_first():
    make = lambda: gfn.Trainer(
        gfn.HyperGrid(2, 4),
        gfn.HyperGridReward(),
        gfn.Mlp((16,)),
        gfn.ProximalPolicy(epochs=3),
        batch=16,
        double=True,
    )  # noqa: E731
    fitted, own = make().fit(3), make()
    optimizer = torch.optim.Adam(
        [{"params": [p for name, p in own.named_parameters() if name != "log_z"]}], lr=1e-3
    )
    for _ in range(3):
        batch = own.batch()
        for epoch in range(3):
            scores = own.score(batch)
            optimizer.zero_grad()
            loss = own.loss(scores)
            loss.backward()
            optimizer.param_groups[0]["lr"] = 1e-3 * own.lr_factor
            optimizer.step()
            first = (scores, float(loss.detach())) if epoch == 0 else first
        own.advance(batch, *first)
    assert np.allclose(own.history["loss"], fitted.history["loss"], rtol=1e-6)


def test_an_own_loop_is_saved(tmp_path):
    make = lambda: gfn.Trainer(
        gfn.HyperGrid(2, 4),
        gfn.HyperGridReward(),
        gfn.Mlp((16,)),
        batch=8,
        sources=[gfn.Replay(100, after=2)],
        double=True,
    )  # noqa: E731
    trainer = own_loop(make(), 4)
    trainer.save(tmp_path / "half")
    assert own_loop(make().resume(tmp_path / "half"), 1).steps_done == 5


def test_a_loss_of_ones_own():
    trainer = gfn.Trainer(
        gfn.HyperGrid(2, 4),
        gfn.HyperGridReward(),
        gfn.Mlp((64,)),
        batch=64,
        exploration=gfn.Exploration(epsilon=0.1),
    )
    optimizer = torch.optim.Adam(trainer.parameters(), lr=5e-3)
    for _ in range(400):
        batch = trainer.batch()
        scores = trainer.score(batch)
        sums = torch.zeros(len(batch)).index_add(0, scores.trajectory, scores.log_pf - scores.log_pb)
        # The loss of this custom loop is computed by the definition of the log-partition variance.
        loss = (sums - scores.log_reward.float()).var()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        trainer.advance(batch, scores, loss)
    assert trainer.exact().tv < 0.05 and trainer.history["loss"][-1] == pytest.approx(float(loss))


def test_a_network_learns_without_a_trainer():
    env = gfn.GraphBuilding(4, attached=True)
    network = gfn.GraphNet(embedding=32).build(env, seed=0)
    weights = [p for name, p in network.named_parameters() if name != "log_z"]
    optimizer = torch.optim.Adam(
        [{"params": weights}, {"params": [network.get_parameter("log_z")], "lr": 0.1}], lr=3e-3
    )
    sampler = gfn.Sampler(env, network, epsilon=0.1)
    reward = lambda graphs: graphs.n_edges.astype(float)  # noqa: E731
    for _ in range(300):
        drawn = sampler.sample(32)
        scores = network.score(drawn.with_log_rewards(reward(drawn.terminal)))
        sums = torch.zeros(len(drawn)).index_add(0, scores.trajectory, scores.log_pf - scores.log_pb)
        loss = (scores.log_z + sums - scores.log_reward).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for group in optimizer.param_groups:
            group["lr"] *= 0.99
    exact = gfn.Trainer(env, reward, network).exact()
    assert exact.tv < 0.05, exact


def test_batches_that_nobody_advances_are_told_of():
    trainer = gfn.Trainer(gfn.HyperGrid(2, 4), gfn.HyperGridReward(), gfn.Mlp((8,)), batch=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trainer.loss(), trainer.loss()
    with pytest.warns(gfn.TrainingWarning, match="no step is counted"):
        trainer.loss()


def test_a_buffer_can_be_looked_into_and_filled():
    env = gfn.HyperGrid(2, 4)
    trainer = gfn.Trainer(env, gfn.HyperGridReward(), gfn.Mlp((8,)), batch=8, sources=[gfn.Replay(50)])
    assert len(trainer.buffer.objects) == 0 and trainer.buffer.conditions is None
    walks = gfn.Trajectories.from_actions(env, [0, 1, 2, 2], [0, 3, 4])
    assert trainer.remember(walks) == 2 and trainer.reward_calls == 2
    held = trainer.buffer
    assert (
        held.objects.tolist() == [[1, 1], [0, 0]]
        and held.log_rewards.tolist() == trainer.rewarded(walks).log_rewards.tolist()
    )
    assert (
        trainer.remember(walks.with_log_rewards([5.0, 6.0])) == 2
        and trainer.buffer.log_rewards[-1] == 6.0
        and trainer.reward_calls == 2
    )
    trainer.fit(2)
    assert trainer.replay_len == len(trainer.buffer.objects) > 4
    assert gfn.Trainer(env, zero, gfn.Mlp((8,))).buffer is None
    with pytest.raises(ValueError, match="replay"):
        gfn.Trainer(env, zero, gfn.Mlp((8,))).remember(walks)


def test_a_checkpoint_is_loaded_without_the_program_that_trained(tmp_path):
    cases = [(env, settings) for env, settings in POLICIES + POINTS if not isinstance(settings, gfn.Uniform)]
    start = gfn.Graphs.from_networkx([nx.cycle_graph(3)])
    cases += [
        (gfn.GraphEnv([gfn.AddNode(attached=True)], 5, start=start), gfn.GraphNet(embedding=8)),
        (gfn.Fragments(2), gfn.GraphNet(embedding=8)),
    ]
    for k, (env, settings) in enumerate(cases):
        trainer = gfn.Trainer(env, zero, settings, batch=4).fit(2)
        trainer.save(tmp_path / f"{k}")
        loaded = gfn.load(tmp_path / f"{k}")
        theirs = dict(trainer.named_parameters())
        assert all(torch.equal(p, theirs[name]) for name, p in loaded.named_parameters())
        a, b = (gfn.Sampler(env, policy).sample(8, seed=1) for policy in (loaded, trainer))
        assert torch.equal(a.actions, b.actions) and torch.equal(a.log_pf, b.log_pf)
        torch.save(loaded.state_dict(), tmp_path / f"{k}.pt")
        again = gfn.load(tmp_path / f"{k}.pt", env=env, policy=settings)
        assert all(torch.equal(p, theirs[name]) for name, p in again.named_parameters())


def test_a_policy_is_loaded_for_other_input_graphs(tmp_path):
    sets = [gfn.IndependentSet(gfn.Graphs.from_networkx([nx.cycle_graph(n)])) for n in (4, 5)]
    net = gfn.GraphNet(embedding=8, identity=False)
    gfn.Trainer(sets[0], gfn.SizeReward(), net, gfn.DetailedBalance(), batch=4).fit(1).save(tmp_path / "sets")
    network = gfn.load(tmp_path / "sets", env=sets[1])
    assert gfn.Sampler(sets[1], network).sample(2).terminal.n_nodes.tolist() == [5, 5]
    with pytest.raises(ValueError, match="for_size is True, in the checkpoint False"):
        gfn.load(tmp_path / "sets", env=gfn.IndependentSet(sets[1].graphs, for_size=True))
    env = gfn.Molecules(4, ["C", "N"])
    gfn.Trainer(env, zero, gfn.GraphNet(embedding=8), batch=4).fit(1).save(tmp_path / "m")
    gfn.load(tmp_path / "m", env=gfn.Molecules(4, ("C", "N")))
    with pytest.raises(ValueError, match=r"elements\[1\] is 'O', in the checkpoint 'N'"):
        gfn.load(tmp_path / "m", env=gfn.Molecules(4, ["C", "O"]))


def test_what_a_checkpoint_can_not_hold_is_asked_for(tmp_path):
    class Even(gfn.GraphRules):
        def can_exit(self, graphs):
            return graphs.n_edges != 1

    env = gfn.GraphEnv([gfn.AddEdge()], 3, start=3, rules=Even())
    gfn.Trainer(env, zero, gfn.GraphNet(embedding=8), batch=4).fit(1).save(tmp_path / "rules")
    with pytest.raises(ValueError, match="env has a custom Even.*env="):
        gfn.load(tmp_path / "rules")
    assert len(gfn.Sampler(env, gfn.load(tmp_path / "rules", env=env)).sample(3)) == 3
    for other, pattern in (
        (gfn.GraphEnv([gfn.AddEdge()], 4, start=4, rules=Even()), "max_nodes is 4, .* 3; start is 4"),
        (gfn.GraphEnv([gfn.AddEdge()], 3, start=3), "rules is None, in the checkpoint Even"),
        (gfn.GraphEnv([gfn.AddEdge(2)], 3, start=3, rules=Even()), r"actions\[0\].max_edges is 2"),
        (gfn.Ring(3), "the class is Ring, in the checkpoint GraphEnv"),
    ):
        with pytest.raises(ValueError, match=pattern):
            gfn.load(tmp_path / "rules", env=other)
    with pytest.raises(FileNotFoundError):
        gfn.load(tmp_path / "nothing")
    network = gfn.Mlp((8,)).build(gfn.HyperGrid(2, 3))
    torch.save(network.state_dict(), tmp_path / "values.pt")
    with pytest.raises(ValueError, match="expected the arguments env and policy"):
        gfn.load(tmp_path / "values.pt")
    torch.save([1], tmp_path / "list.pt")
    with pytest.raises(ValueError, match="state_dict"):
        gfn.load(tmp_path / "list.pt", env=gfn.HyperGrid(2, 3), policy=gfn.Mlp((8,)))
    with pytest.raises(ValueError):
        gfn.load(tmp_path / "rules", env=env, policy=gfn.GraphNet(embedding=16))


env, ring = gfn.HyperGrid(2, 4), gfn.Ring(3)
network = gfn.Mlp((8,)).build(env)
conditional = gfn.Mlp((8,)).build(env, n_conditions=2)
graphs = gfn.GraphNet(embedding=8).build(ring)
sampler = gfn.Sampler(env, network)
walks = gfn.Trajectories.from_actions(env, [0, 1, 2, 2], [0, 3, 4])


def trainer(**settings):
    return gfn.Trainer(env, zero, gfn.Mlp((8,)), **{"batch": 4, **settings})


def advanced(change):
    it = trainer()
    batch = it.batch()
    scores = it.score(batch)
    it.loss(scores)
    return change(it, batch, scores)


REFUSED = [
    (lambda: gfn.Mlp((8,)).build(ring), TypeError, "isn't a policy for graphs"),
    (lambda: gfn.GraphNet().build(env), TypeError, "isn't a policy for vectors"),
    (lambda: gfn.GraphNet().build("ring"), TypeError, "env is str"),
    (lambda: gfn.GraphNet().build(gfn.Ring), TypeError, "env is Ring"),
    (lambda: gfn.GraphNet().build(None), TypeError, "env is NoneType"),
    (lambda: gfn.GraphNet().build(ring, seed=-1), ValueError, "seed"),
    (lambda: gfn.GraphNet().build(ring, seed=0.5), TypeError, "seed"),
    (lambda: gfn.GraphNet().build(ring, seed=True), TypeError, "seed"),
    (lambda: gfn.GraphNet().build(ring, flow=1), TypeError, "flow"),
    (lambda: gfn.GraphNet().build(ring, double="yes"), TypeError, "double"),
    (lambda: gfn.GraphNet().build(ring, device=0), TypeError, "device"),
    (lambda: gfn.GraphNet().build(ring, device="tpu"), ValueError, ""),
    (lambda: gfn.GraphNet().build(ring, device="cuda:77"), (ValueError, RuntimeError), ""),
    (lambda: gfn.GraphNet().build(ring, n_conditions=-1), ValueError, "n_conditions"),
    (lambda: gfn.GraphNet().build(ring, n_conditions=1.0), TypeError, "n_conditions"),
    (lambda: gfn.GraphNet().build(ring, n_conditions=2**30), ValueError, "n_conditions"),
    (lambda: network([[0, 9]]), ValueError, "expected 0 to 3"),
    (lambda: network([[0, 1, 2]]), ValueError, "shape"),
    (lambda: network(ring.initial(1)), TypeError, "int64"),
    (lambda: network(3), TypeError, ""),
    (lambda: network([[0, 0]], np.zeros((1, 2))), ValueError, "conditions for a policy with 0"),
    (lambda: conditional([[0, 0]]), ValueError, "no conditions"),
    (lambda: conditional([[0, 0]], np.zeros((2, 2))), ValueError, "expected \\[1, 2\\]"),
    (lambda: conditional([[0, 0]], np.zeros((1, 3))), ValueError, "expected \\[1, 2\\]"),
    (lambda: conditional([[0, 0]], "a"), (TypeError, ValueError), "conditions"),
    (lambda: conditional([[0, 0]], [[np.nan, 0]]), ValueError, "finite"),
    (lambda: graphs([[0, 0]]), TypeError, "expected Graphs"),
    (lambda: graphs(gfn.Graphs.from_graph6(["C~"])), ValueError, "schema"),
    (lambda: graphs(gfn.Ring(9).initial(1)), ValueError, "schema|initial|nodes"),
    (lambda: gfn.BoxNet((8,)).build(gfn.Box())(np.zeros((1, 2))), ValueError, "Sampler"),
    (lambda: network.score(3), TypeError, "expected Trajectories"),
    (lambda: network.score(walks), ValueError, "with_log_rewards"),
    (
        lambda: network.score(
            gfn.Trajectories.from_actions(gfn.HyperGrid(2, 5), [2], [0, 1], log_rewards=[0.0])
        ),
        ValueError,
        "another environment",
    ),
    (
        lambda: network.score(gfn.Sampler(ring, graphs).sample(2).with_log_rewards([0.0, 0.0])),
        ValueError,
        "another environment",
    ),
    (lambda: network.half(), TypeError, "expected torch.float32 or torch.float64"),
    (lambda: copy.deepcopy(network).bfloat16(), TypeError, "bfloat16"),
    (lambda: copy.deepcopy(network).load_state_dict({}), RuntimeError, "Missing key"),
    (lambda: gfn.Sampler(env, graphs), ValueError, "the environment of the policy"),
    (lambda: gfn.Sampler(gfn.HyperGrid(2, 5), network), ValueError, "the environment of the policy"),
    (lambda: gfn.Sampler(env, gfn.Mlp()), TypeError, "build"),
    (lambda: gfn.Sampler(env, gfn.Mlp), TypeError, "policy is Mlp"),
    (lambda: gfn.Sampler(env, None), TypeError, "build"),
    (lambda: gfn.Sampler("env", network), ValueError, "the environment of the policy"),
    (lambda: gfn.Sampler(env, network, epsilon="a"), TypeError, "epsilon"),
    (lambda: gfn.Sampler(env, network, epsilon=True), TypeError, "epsilon"),
    (lambda: gfn.Sampler(env, network, epsilon=gfn.Linear(1, 0, 5)), TypeError, "epsilon"),
    (lambda: gfn.Sampler(env, network, epsilon=1.5).sample(1), ValueError, "epsilon"),
    (lambda: gfn.Sampler(env, network, epsilon=-0.5).sample(1), ValueError, "epsilon"),
    (lambda: gfn.Sampler(env, network, epsilon=float("nan")).sample(1), ValueError, "epsilon"),
    (lambda: gfn.Sampler(env, network, temperature=0.0).sample(1), ValueError, "temperature"),
    (lambda: gfn.Sampler(env, network, temperature=float("inf")).sample(1), ValueError, "temperature"),
    (lambda: gfn.Sampler(env, network, exit_bias=float("nan")).sample(1), ValueError, "exit_bias"),
    (lambda: gfn.Sampler(env, network, noise=1.0).sample(1), ValueError, "noise"),
    (lambda: gfn.Sampler(env, network, noise=-1.0).sample(1), ValueError, "noise"),
    (lambda: sampler.sample(0), ValueError, "from 1"),
    (lambda: sampler.sample(-3), ValueError, "from 1"),
    (lambda: sampler.sample(2.0), TypeError, "whole number"),
    (lambda: sampler.sample(2**40), ValueError, "whole number"),
    (lambda: sampler.sample(2, greedy=1), TypeError, "greedy"),
    (lambda: gfn.Sampler(env, network, epsilon=0.1).sample(2, greedy=True), ValueError, "explores"),
    (lambda: sampler.sample(2, seed=-1), ValueError, "seed"),
    (lambda: sampler.sample(2, seed="a"), TypeError, "seed"),
    (lambda: sampler.sample(2, conditions=np.zeros((2, 1))), ValueError, "conditions"),
    (lambda: sampler.sample(2, instances=[0]), ValueError, "one for each"),
    (lambda: sampler.sample(2, instances=[0, 1]), ValueError, "instances is 1"),
    (lambda: sampler.sample(2, instances=[0, -1]), ValueError, "instances"),
    (lambda: gfn.Sampler(env, conditional).sample(2), ValueError, "no conditions"),
    (
        lambda: gfn.Sampler(env, conditional).sample(2, conditions=np.zeros((3, 2))),
        ValueError,
        "expected \\[2, 2\\]",
    ),
    (lambda: sampler.backward([[0, 9]]), ValueError, "expected 0 to 3"),
    (lambda: sampler.backward("ab"), TypeError, ""),
    (lambda: sampler.backward(3), TypeError, ""),
    (
        lambda: gfn.Sampler(
            gfn.SetAddition(4, 2, fixed_length=True),
            gfn.Uniform().build(gfn.SetAddition(4, 2, fixed_length=True)),
        ).backward([[1, 0, 0, 0]]),
        ValueError,
        "",
    ),
    (lambda: gfn.Trajectories.from_actions(env, [0], []), ValueError, "offsets"),
    (lambda: gfn.Trajectories.from_actions(env, [0], [0.5, 1]), ValueError, "offsets"),
    (lambda: gfn.Trajectories.from_actions(env, [0], [-1, 1]), ValueError, "offsets"),
    (lambda: gfn.Trajectories.from_actions(env, [2], [0, 5]), ValueError, "offsets"),
    (lambda: gfn.Trajectories.from_actions(env, [2, 2], [0, 1]), ValueError, "offsets"),
    (lambda: gfn.Trajectories.from_actions(env, ["a"], [0, 1]), TypeError, "slots"),
    (lambda: gfn.Trajectories.from_actions(env, [0.5], [0, 1]), ValueError, "actions"),
    (lambda: gfn.Trajectories.from_actions(env, [-1], [0, 1]), ValueError, "not legal|no such slot"),
    (lambda: gfn.Trajectories.from_actions(env, [2], [0, 1], instance=1), IndexError, ""),
    (
        lambda: gfn.Trajectories.from_actions(env, [2], [0, 1], log_rewards=[1.0, 2.0]),
        ValueError,
        "log_rewards",
    ),
    (
        lambda: gfn.Trajectories.from_actions(env, [2], [0, 1], log_rewards=[np.nan]),
        (ValueError, FloatingPointError),
        "",
    ),
    (lambda: gfn.Trajectories.from_actions(env, [2], [0, 1], log_rewards="a"), (TypeError, ValueError), ""),
    (
        lambda: gfn.Trajectories.from_actions(env, [2], [0, 1], conditions=[[1.0], [2.0]]),
        ValueError,
        "expected \\[1, 1\\]",
    ),
    (lambda: gfn.Trajectories.from_actions(gfn.Box(), [0, 1], [0, 2]), (ValueError, TypeError), ""),
    (lambda: walks[5], IndexError, "out of bounds"),
    (lambda: walks["a"], TypeError, "trajectories"),
    (lambda: walks[True], TypeError, "trajectories"),
    (lambda: walks[[True]], IndexError, "oolean"),
    (lambda: walks + 3, TypeError, ""),
    (lambda: walks + gfn.Sampler(ring, graphs).sample(1), ValueError, "another environment"),
    (
        lambda: walks + gfn.Trajectories.from_actions(gfn.HyperGrid(2, 6), [2], [0, 1]),
        ValueError,
        "another environment",
    ),
    (lambda: walks.log_pf, ValueError, "scored"),
    (lambda: walks.log_pb, ValueError, "scored"),
    (lambda: walks.with_log_rewards([1.0]), ValueError, "one number for each"),
    (lambda: walks.with_log_rewards([[1.0], [2.0]]), ValueError, "one number for each"),
    (lambda: walks.with_log_rewards(["a", "b"]), ValueError, ""),
    (lambda: walks.with_log_rewards([np.inf, 0.0]), (ValueError, FloatingPointError), ""),
    (lambda: walks.to_transitions()[9], IndexError, "out of bounds"),
    (lambda: trainer().score(3), TypeError, "expected Trajectories"),
    (lambda: trainer().score(gfn.Sampler(ring, graphs).sample(1)), ValueError, "another environment"),
    (lambda: trainer().loss(3), TypeError, "score"),
    (lambda: trainer().remember(3), TypeError, "expected Trajectories"),
    (
        lambda: trainer(sources=[gfn.Replay(10)]).remember(
            gfn.Trajectories.from_actions(gfn.HyperGrid(2, 6), [2], [0, 1])
        ),
        ValueError,
        "another environment",
    ),
    (lambda: trainer().rewarded([1]), TypeError, "expected Trajectories"),
    (lambda: trainer(adam=gfn.Adam(chunk=10)).batch(), ValueError, "chunk"),
    (lambda: trainer(adam=gfn.Adam(chunk=10)).score(walks), ValueError, "chunk"),
    (lambda: advanced(lambda it, batch, scores: it.advance(batch, 3)), TypeError, "score"),
    (lambda: advanced(lambda it, batch, scores: it.advance(3, scores)), TypeError, "expected Trajectories"),
    (lambda: advanced(lambda it, batch, scores: it.advance(walks, scores)), ValueError, "own scores"),
    (lambda: advanced(lambda it, batch, scores: it.advance(batch[:2], scores)), ValueError, "own scores"),
    (
        lambda: advanced(lambda it, batch, scores: it.advance(batch, it.score(batch))),
        ValueError,
        "wasn't called for these scores",
    ),
    (lambda: advanced(lambda it, batch, scores: it.advance(batch, scores, "a")), ValueError, ""),
    (lambda: gfn.Trainer(env, zero, network.state_dict()), TypeError, "policy"),
    (lambda: setattr(trainer(), "network", 3), AttributeError, ""),
    (lambda: setattr(trainer(), "batch", 3), AttributeError, ""),
    (lambda: setattr(trainer(), "batch_size", 3), AttributeError, "can't be set after"),
]


@pytest.mark.parametrize("call, kind, says", REFUSED, ids=range(len(REFUSED)))
def test_what_makes_no_sense_is_refused(call, kind, says):
    with pytest.raises(kind, match=says or None) as caught:
        call()
    text = str(caught.value)
    assert (
        isinstance(caught.value, Exception)
        and "::" not in text
        and "`with_" not in text
        and "internal error" not in text
    ), text
    # After the error, the sampler and the network must still work.
    assert len(sampler.sample(2)) == 2 and len(network(env.initial(1)).log_pf) == 3


def test_a_reward_that_reads_the_batch_it_is_asked_about_gets_an_error():
    seen = []

    def reward(states):
        if seen:
            seen[0].lengths
        return zero(states)

    it = gfn.Trainer(env, reward, gfn.Mlp((8,)), batch=4)
    walks = gfn.Sampler(env, it).sample(4)
    seen.append(gfn.Trajectories(env, walks._paths))
    with pytest.raises(ValueError, match="in use"):
        it.score(walks)
    seen.clear()
    assert it.score(walks).log_pf.requires_grad and (walks.lengths > 0).all()


def test_scores_without_gradients_outlive_an_update():
    it = trainer()
    batch = it.batch()
    with torch.no_grad():
        scores, out = it.score(batch), it.network(env.initial(1))
        before = float(it.loss(scores))
    with torch.no_grad():
        for parameter in it.parameters():
            parameter.add_(1.0)
    assert (
        not scores.log_z.requires_grad
        and not it.loss(scores).requires_grad
        and float(it.loss(scores)) == before
    )
    assert not out.log_z.requires_grad and float(out.log_z) != float(it.network(env.initial(1)).log_z)
    assert it.fit(1).steps_done == 1


def test_losses_are_those_of_the_draw_that_was_advanced():
    """Draws two batches, and advances the trainer with one or both of them. Only the losses of the batch that
    was drawn last may change replay priorities. All other objects must keep the priority of new objects."""
    losses = lambda order: _drawn_after(order)  # noqa: E731
    assert (
        losses(["first"])
        == losses([])
        != losses(["second"])
        == losses(["first", "second"])
        == losses(["second", "second"])
    )


def _drawn_after(order):
    it = gfn.Trainer(
        env,
        gfn.HyperGridReward(),
        gfn.Mlp((8,)),
        batch=64,
        sources=[gfn.Replay(50, draw="loss_prioritised", after=0)],
        double=True,
        seed=1,
    )
    it.prefill(50)
    batches = {name: it.batch() for name in ("first", "second")}
    scores = {name: it.score(batch) for name, batch in batches.items()}
    for name in order:
        it.advance(batches[name], scores[name], 0.0)
    return it.batch().terminal[32:].tolist()


def test_a_network_stays_where_no_trainer_is_made_of_it():
    broken = gfn.Mlp((8,)).build(env)
    with torch.no_grad():
        for parameter in broken.parameters():
            parameter.fill_(float("nan"))
    with pytest.raises((ValueError, FloatingPointError)):
        gfn.Trainer(env, zero, broken)
    with torch.no_grad():
        for parameter in broken.parameters():
            parameter.zero_()
    assert (
        broken(env.initial(1)).log_pf.isfinite().all()
        and gfn.Trainer(env, zero, broken).fit(1).steps_done == 1
    )


def test_conditions_and_environments_of_what_is_remembered_are_looked_at():
    settings = dict(
        conditions=gfn.Conditions(lambda n, rng: np.zeros((n, 2)), 2), sources=[gfn.Replay(10)], batch=4
    )
    told = gfn.Trainer(env, lambda s, c: zero(s), gfn.Mlp((8,)), **settings)
    with pytest.raises(ValueError, match="conditions"):
        told.remember(walks)
    drawn = gfn.Sampler(env, conditional).sample(3, conditions=np.zeros((3, 2)))
    assert told.remember(drawn) == 3 and told.fit(3).steps_done == 3
    with pytest.raises(ValueError, match="conditions"):
        trainer(sources=[gfn.Replay(10)]).remember(drawn)
    one, other = (
        gfn.VectorEnv(2, 3, changes) for changes in ([[0, 0, 1], [1, 0, 1]], [[0, 0, 1], [1, 0, 2]])
    )
    with pytest.raises(ValueError, match="another environment"):
        gfn.Trainer(one, zero, gfn.Mlp((8,)), sources=[gfn.Replay(10)]).remember(
            gfn.Sampler(other, gfn.Mlp((8,)).build(other)).sample(2)
        )


def test_a_part_of_a_batch_has_no_first_update_to_compare_with():
    it = trainer(objective=gfn.ProximalPolicy())
    batch = it.batch()
    it.score(batch)
    with pytest.raises(ValueError, match="compare later updates"):
        it.score(batch[:2])


@pytest.mark.parametrize(
    "name",
    ["_end", "_find_spec", "set_threads", "load", "Trainer", "Network", "Moves", "Environment", "nothing"],
)
def test_a_checkpoint_can_not_have_anything_called(name):
    """Calls `_restore_settings` with malicious class names, which it must not use. The test calls the
    function directly, because a changed checkpoint would be refused by its checksum."""
    with pytest.raises(ValueError, match="expected a class of this version"):
        _loading._restore_settings({"class": name, "values": {}})
    assert (
        _loading._restore_settings({"class": "HyperGrid", "values": {"ndim": 2, "height": 4}}) == env
        and len(sampler.sample(1)) == 1
    )


def test_what_is_frozen_stays_frozen():
    frozen = gfn.Mlp((8,)).build(env)
    names = sorted((name for name, _ in frozen.named_parameters()), reverse=True)
    frozen.get_parameter(names[0]).requires_grad_(False)
    for other in (
        copy.deepcopy(frozen),
        pickle.loads(pickle.dumps(frozen)),
        copy.copy(frozen),
        copy.deepcopy(frozen).double(),
    ):
        assert all(p.requires_grad == (name != names[0]) for name, p in other.named_parameters())
    held = frozen.get_parameter(names[0]).clone()
    it = gfn.Trainer(env, gfn.HyperGridReward(), frozen, batch=8).fit(2)
    assert (
        torch.equal(frozen.get_parameter(names[0]), held)
        and sorted((name for name, _ in frozen.named_parameters()), reverse=True) == names
    )
    frozen.requires_grad_(True)
    assert all(p.requires_grad for p in it.network.parameters())


def test_tensors_in_the_place_of_the_library_s_are_refused():
    changed = gfn.Mlp((8,)).build(env)
    changed.load_state_dict(
        {name: value.clone() for name, value in changed.state_dict().items()}, assign=True
    )
    with pytest.raises(ValueError, match="replaced by another tensor"):
        changed(env.initial(1))
    with pytest.raises(ValueError, match="replaced by another tensor"):
        torch.func.functional_call(network, {"log_z": torch.zeros(1)}, (env.initial(1),))
    assert len(network(env.initial(1)).log_pf) == 3
    with pytest.raises(TypeError, match="can't be shared between processes"):
        network.share_memory()


def test_a_refused_advance_keeps_the_loss():
    it = trainer()
    batch = it.batch()
    scores = it.score(batch)
    it.loss(scores).backward()
    with pytest.raises(ValueError, match="own scores"):
        it.advance(walks, scores)
    assert it.advance(batch, scores)["step"] == 1 and it.history["grad_norm"][0] > 0


def test_points_have_no_moves_by_name():
    box = gfn.Box()
    it = gfn.Sampler(box, gfn.BoxNet((8,)).build(box))
    drawn = it.sample(3)
    for call in (lambda: drawn.moves, lambda: drawn.reverse, lambda: it.sample(2, greedy=True)):
        with pytest.raises(ValueError):
            call()


def test_values_alone_are_loaded_with_what_the_network_was_built_with(tmp_path):
    told = gfn.Mlp((8,)).build(env, flow=True, n_conditions=2)
    torch.save(told.state_dict(), tmp_path / "values.pt")
    again = gfn.load(tmp_path / "values.pt", env=env, policy=gfn.Mlp((8,)), flow=True, n_conditions=2)
    at = (env.initial(1), np.ones((1, 2)))
    assert torch.equal(again(*at).log_pf, told(*at).log_pf) and torch.equal(
        again(*at).log_flow, told(*at).log_flow
    )
    with pytest.raises(RuntimeError, match="size mismatch|Missing|Unexpected"):
        gfn.load(tmp_path / "values.pt", env=env, policy=gfn.Mlp((8,)))
    with pytest.raises(ValueError, match="no state flows"):
        gfn.Uniform().build(env, flow=True)
