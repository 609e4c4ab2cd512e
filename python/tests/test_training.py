"""Tests of training: comparisons with exact distributions, and with equal runs in Rust."""

import math
import warnings

import gfn_rs as gfn
import numpy as np
import pytest


def count_edges(graphs):
    """Returns log R of graphs, which is the number of edges."""
    return graphs.n_edges.astype(float)


def ring_trainer(**changes):
    """Returns a trainer with the same settings as the Rust program `reproduce ring --nodes 4`."""
    net = gfn.GraphNet(
        layers=1, embedding=128, conv="directed", global_=False, initial_exit_bias=math.log(16)
    )
    replay = gfn.Replay(10_000, distinct=True, eviction="best_reward", draw="reward_prioritised")
    settings = dict(
        batch=128,
        adam=gfn.Adam(lr=1e-3, schedule=gfn.Constant(1.0)),
        exploration=gfn.Exploration(epsilon=gfn.Linear(0.2, 0, 20)),
        sources=[replay],
    )
    settings.update(changes)
    return gfn.Trainer(gfn.Ring(4), settings.pop("reward", gfn.RingReward()), net, **settings)


def test_an_own_reward_is_learned_exactly():
    env = gfn.GraphBuilding(3, directed=False, min_nodes=3)
    trainer = gfn.Trainer(
        env,
        count_edges,
        gfn.GraphNet(embedding=32),
        batch=64,
        adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 400)),
        seed=1,
    )
    before = trainer.exact().tv
    exact = trainer.fit(400).exact()
    # The objects are the four graphs of three nodes up to isomorphism. log R of each graph is its number of
    # edges.
    ends = np.isfinite(exact.log_rewards)
    assert ends.sum() == 4 and exact.n_states > 4
    assert exact.log_z == pytest.approx(math.log(sum(math.exp(k) for k in range(4))), abs=1e-12)
    assert exact.tv < 0.02 < before
    assert exact.l1 == pytest.approx(2 * exact.tv) and exact.probs.sum() == pytest.approx(1)
    assert exact.tv == pytest.approx(np.abs(exact.probs - exact.target).sum() / 2)


def test_a_reward_in_python_trains_as_its_twin_in_rust():
    import networkx

    def reward(graphs):
        rings = [g.number_of_edges() == 4 and networkx.is_strongly_connected(g) for g in graphs.networkx()]
        return np.where(rings, math.log(100.0), math.log(1e-6))

    native, own = ring_trainer().fit(20), ring_trainer(reward=reward).fit(20)
    assert native.history["loss"].tolist() == own.history["loss"].tolist()
    # As a negative control, a run with another seed must have other losses.
    assert native.history["loss"].tolist() != ring_trainer(seed=1).fit(20).history["loss"].tolist()


def test_ring_is_the_run_of_rust(reproduce):
    rust = reproduce("ring", "--nodes", 4, "--steps", 40, "--seed", 3)
    trainer = ring_trainer(
        seed=3,
        adam=gfn.Adam(schedule=gfn.Linear(1.0, 0.1, 40)),
        exploration=gfn.Exploration(epsilon=gfn.Linear(0.1, 0.0, 20)),
    )
    trainer.prefill(60_000)
    trainer.fit(40)
    assert trainer.n_parameters == rust["params"]
    assert trainer.exact().jsd == rust["jsd"]
    assert trainer.history["log_z"][-1] == rust["log_z"]


def test_hypergrid_is_the_run_of_rust(reproduce):
    rust = reproduce("hypergrid", "--steps", 50, "--seed", 2)
    trainer = gfn.Trainer(
        gfn.HyperGrid(2, 8),
        gfn.HyperGridReward(),
        gfn.Mlp(),
        batch=16,
        exploration=gfn.Exploration(epsilon=0.0),
        adam=gfn.Adam(lr=1e-3, schedule=gfn.Linear(1, 0, 50)),
        seed=2,
    ).fit(50)
    assert (trainer.n_parameters, trainer.exact().jsd) == (rust["params"], rust["jsd"])
    assert trainer.history["log_z"][-1] == rust["log_z"]


def test_molecules_are_the_run_of_rust(reproduce):
    rust = reproduce("molecule", "--max-atoms", 3, "--steps", 20, "--samples", 10, "--seed", 5)
    trainer = gfn.Trainer(
        gfn.Molecules(3, elements=["C", "N", "O"], charges=False),
        gfn.MoleculeReward(),
        gfn.GraphNet(layers=3, embedding=64, identity=False, pair_walks=3, backward="shared_torso"),
        batch=128,
        adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 20)),
        exploration=gfn.Exploration(epsilon=gfn.Linear(0.1, 0, 10)),
        seed=5,
    ).fit(20)
    assert trainer.n_parameters == rust["params"]
    assert (trainer.exact().jsd, trainer.history["log_z"][-1]) == (rust["jsd"], rust["log_z"])


def test_structures_are_the_run_of_rust(reproduce, tmp_path):
    data = np.random.default_rng(0).normal(size=(50, 4))
    data[:, 2] += data[:, 0]
    rows = ["x0,x1,x2,x3"] + [",".join(map(repr, row)) for row in data.tolist()]
    (tmp_path / "data.csv").write_text("\n".join(rows) + "\n")
    rust = reproduce("bayesian-structure", "--data", tmp_path / "data.csv", "--steps", 30, "--seed", 4)
    trainer = gfn.Trainer(
        gfn.BayesianStructure(4),
        gfn.StructureReward(data),
        gfn.Mlp(backward="uniform"),
        gfn.ModifiedDetailedBalance(),
        batch=128,
        adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 30)),
        exploration=gfn.Exploration(epsilon=gfn.Linear(0.5, 0, 15)),
        sources=[gfn.Replay(10_000)],
        seed=4,
    ).fit(30)
    assert (trainer.n_parameters, trainer.exact().jsd) == (rust["params"], rust["jsd"])


@pytest.mark.parametrize(
    "objective",
    [
        gfn.TrajectoryBalance(),
        gfn.LogPartitionVariance(),
        gfn.DetailedBalance(),
        gfn.SubTrajectoryBalance(),
        gfn.FlowMatching(),
        gfn.PolicyGradient(),
        gfn.ProximalPolicy(),
        gfn.ModifiedDetailedBalance(),
    ],
    ids=lambda objective: type(objective).__name__,
)
def test_each_objective_learns_a_grid(objective):
    grid = gfn.HyperGrid(2, 4)
    trainer = gfn.Trainer(
        grid,
        gfn.HyperGridReward(),
        gfn.Mlp(hidden=(64, 64)),
        objective,
        batch=64,
        adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 500)),
    )
    before = trainer.exact().tv
    after = trainer.fit(500).exact().tv
    assert after < 0.06 and after < before / 4, (before, after)


def test_partial_rewards_of_python_are_asked():
    def whole(points):
        return np.zeros(len(points))

    with pytest.raises(ValueError, match="states that aren't finished|partial"):
        gfn.Trainer(gfn.HyperGrid(2, 3), whole, gfn.Mlp((8,)), gfn.ModifiedDetailedBalance()).fit(1)

    class Even:
        """A reward that is equal for all points of the grid."""

        def __call__(self, points):
            return np.zeros(len(points))

        partial_log_reward = __call__

    trainer = gfn.Trainer(
        gfn.HyperGrid(2, 3),
        Even(),
        gfn.Mlp(hidden=(64, 64)),
        gfn.ModifiedDetailedBalance(),
        batch=32,
        adam=gfn.Adam(lr=3e-3),
    )
    assert trainer.fit(300).exact().tv < 0.03


@pytest.mark.parametrize(
    "env, reward, policy",
    [
        (gfn.Triangle(3), gfn.TriangleReward(), gfn.GraphNet(embedding=16)),
        (gfn.ColoredGraphs(3), gfn.ColoredGraphReward("even"), gfn.GraphNet(embedding=16)),
        (gfn.Ring(3), gfn.RingReward(), gfn.EdgeMlp((32,))),
        (gfn.Molecules(2, elements=["C", "N"]), gfn.MoleculeReward("rings"), gfn.GraphNet(embedding=16)),
        (gfn.Fragments(1), lambda graphs: np.zeros(len(graphs)), gfn.GraphNet(embedding=16)),
        (gfn.BitSequence(2, 4), gfn.HammingReward(["0110"]), gfn.SequenceNet("gru", width=16)),
        (gfn.PrependAppendBitSequence(2, 4), gfn.HammingReward(["0110"]), gfn.Mlp((16,))),
        (gfn.NonAutoregressiveBitSequence(2, 4), gfn.HammingReward(["0110"]), gfn.Mlp((16,))),
        (gfn.TokenSequence(3, 2), lambda states: states.sum(axis=1), gfn.SequenceNet(width=16)),
        (gfn.DiscreteEbm(3), gfn.IsingReward(np.ones((3, 3)) - np.eye(3)), gfn.Mlp((16,))),
        (gfn.SetAddition(4, 2), gfn.WeightReward(1.0, [1, 2, 3, 4]), gfn.Mlp((16,))),
        (gfn.PerfectBinaryTree(3), lambda states: states[:, 0].astype(float), gfn.Mlp((16,))),
        (gfn.PhyloTree(4), gfn.ParsimonyReward(["AC", "AG", "TC", "TG"], 4.0), gfn.Mlp((16,))),
        (gfn.ToyDag(), gfn.ToyReward([1, 2, 3, 4, 5, 6]), gfn.Mlp((16,))),
        (
            gfn.BayesianStructure(3),
            gfn.StructureReward(np.random.default_rng(0).normal(size=(30, 3))),
            gfn.Mlp((16,)),
        ),
        (
            gfn.BayesianStructure(3),
            lambda adjacency: adjacency.sum(axis=(1, 2)),
            gfn.GraphNet(layers=1, embedding=16, conv="directed"),
        ),
        (gfn.BayesianStructure(3), lambda adjacency: adjacency.sum(axis=(1, 2)), gfn.EdgeTransformer(16)),
        (gfn.HyperGrid(2, 3), gfn.HyperGridReward("cosine"), gfn.Uniform()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_environment_is_sampled_trained_and_evaluated(env, reward, policy):
    # A uniform policy has no parameters, and this objective learns no log Z, so nothing is trained.
    objective = gfn.LogPartitionVariance() if isinstance(policy, gfn.Uniform) else None
    trainer = gfn.Trainer(env, reward, policy, objective, batch=16)
    assert len(trainer.fit(3).sample(5)) == 5
    exact = trainer.exact()
    assert len(exact.states) == len(exact.probs) == exact.n_states
    assert exact.probs.sum() == pytest.approx(1) and np.exp(
        exact.log_rewards - exact.log_z
    ).sum() == pytest.approx(1)
    states, log_rewards = trainer.sample_with_rewards(4)
    assert len(states) == len(log_rewards) == 4 and np.isfinite(log_rewards).all()


@pytest.mark.parametrize(
    "env, reward, policy, width",
    [
        (gfn.Box(2), gfn.BoxReward(), gfn.BoxNet((32,), components=2), 2),
        (gfn.Box(2, polar=True), lambda points: np.zeros(len(points)), gfn.BoxNet((32,), components=2), 2),
        (gfn.Line(3), gfn.LineReward([(1.0, 0.5), (-1.0, 0.5)]), gfn.LineNet((32,)), 2),
        (gfn.Diffusion(2, 8), gfn.GaussianTarget([1.0, -1.0], 0.5), gfn.DiffusionNet(langevin_clip=100.0), 2),
        (gfn.Diffusion(2, 8, sigma=2.0), gfn.MixtureTarget("nine_modes"), gfn.DiffusionNet(), 2),
        (gfn.Diffusion(3, 8), lambda points: -(points**2).sum(axis=1), gfn.DiffusionNet(), 3),
    ],
    ids=lambda value: type(value).__name__,
)
def test_continuous_environments_are_sampled_and_trained(env, reward, policy, width):
    trainer = gfn.Trainer(env, reward, policy, batch=16)
    points = trainer.fit(3).sample(6)
    assert points.shape == (6, width) and points.dtype == np.float64 and np.isfinite(points).all()
    with pytest.raises(ValueError, match="continuous"):
        trainer.exact()


def test_a_line_is_learned():
    """Trains on a reward with a single mode, and checks the mean of the samples. An untrained policy has
    another mean."""
    trainer = gfn.Trainer(
        gfn.Line(3),
        gfn.LineReward([(1.5, 0.5)]),
        gfn.LineNet(),
        batch=128,
        adam=gfn.Adam(lr=2e-3, schedule=gfn.Linear(1, 0, 400)),
    )
    assert abs(trainer.sample(2000)[:, 0].mean() - 1.5) > 0.5
    trainer.fit(400)
    positions = trainer.sample(4000)[:, 0]
    assert positions.mean() == pytest.approx(1.5, abs=0.1) and positions.std() == pytest.approx(0.5, abs=0.1)


def test_structures_are_learned_from_data():
    rng = np.random.default_rng(1)
    a = rng.normal(size=40)
    data = np.stack([a, a + rng.normal(size=40), rng.normal(size=40)], axis=1)
    trainer = gfn.Trainer(
        gfn.BayesianStructure(3),
        gfn.StructureReward(data),
        gfn.Mlp((64, 64), backward="uniform"),
        gfn.ModifiedDetailedBalance(),
        batch=64,
        adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 600)),
        exploration=gfn.Exploration(epsilon=gfn.Linear(0.5, 0, 300)),
    )
    exact = trainer.fit(600).exact()
    assert exact.n_states == 25 and exact.tv < 0.05
    # In these data, variables 0 and 1 are dependent, so almost all of the probability must be on graphs with
    # an edge between them, in either direction.
    joined = exact.states[:, 0, 1] | exact.states[:, 1, 0]
    assert exact.target[joined].sum() > 0.99 and exact.probs[joined].sum() > 0.95


def test_rewards_of_arrays_are_told_apart_and_shown_in_short():
    reward = gfn.StructureReward(np.ones((100, 3)))
    assert reward == reward and reward != gfn.StructureReward(np.ones((100, 3)))
    shown = repr(reward)
    assert shown.startswith("StructureReward(score='bge', bins=None, ") and len(shown) < 300, shown
    assert repr(gfn.IsingReward(np.eye(2))) == "IsingReward(alpha=1.0)"


def test_checkpoints_go_on_bit_for_bit(tmp_path):
    whole = ring_trainer().fit(12)
    half = ring_trainer().fit(6)
    half.save(tmp_path / "half")
    resumed = ring_trainer().resume(tmp_path / "half")
    assert resumed.steps_done == 6
    assert resumed.sample(50).graph6() != ring_trainer().sample(50).graph6()
    resumed.fit(6)
    assert resumed.history["loss"].tolist() == whole.history["loss"].tolist()
    with pytest.raises((ValueError, RuntimeError)):
        gfn.Trainer(gfn.Ring(3), gfn.RingReward(), gfn.GraphNet()).resume(tmp_path / "half")


def test_callbacks_use_the_trainer():
    seen = []

    def look(trainer, record):
        seen.append((record["step"], trainer.exact().tv, len(trainer.sample(2))))
        # The callback returns a numpy bool, which must be accepted as a bool.
        return np.bool_(len(seen) == 3)

    trainer = gfn.Trainer(gfn.Ring(3), gfn.RingReward(), gfn.GraphNet(embedding=16), batch=8)
    trainer.fit(100, callback=look, every=4)
    assert [step for step, _, _ in seen] == [4, 8, 12] and trainer.steps_done == 12


def test_the_replay_buffer_fills():
    trainer = ring_trainer(sources=[gfn.Replay(500, distinct=True, draw="reward_prioritised", exponent=0.5)])
    stayed = trainer.prefill(300)
    assert 0 < stayed <= 300 and trainer.replay_len == stayed
    trainer.fit(15)
    assert trainer.replay_len > stayed and trainer.reward_calls > 300
    assert ring_trainer(sources=[]).replay_len is None


def test_losses_are_driven_by_an_optimizer_of_torch():
    import torch

    trainer = gfn.Trainer(
        gfn.Ring(3),
        gfn.RingReward(),
        gfn.GraphNet(embedding=32),
        batch=64,
        exploration=gfn.Exploration(epsilon=0.1),
    )
    optimizer = torch.optim.Adam(
        [
            {
                "params": [
                    p for name, p in trainer.named_parameters() if p.requires_grad and "log_z" not in name
                ]
            },
            {
                "params": [
                    p for name, p in trainer.named_parameters() if p.requires_grad and "log_z" in name
                ],
                "lr": 0.1,
            },
        ],
        lr=2e-3,
    )
    before = trainer.exact().tv
    for _ in range(400):
        optimizer.zero_grad()
        batch = trainer.batch()
        scores = trainer.score(batch)
        trainer.loss(scores).backward()
        optimizer.step()
        trainer.advance(batch, scores)
    assert trainer.steps_done == len(trainer.history["loss"]) == 400
    assert trainer.exact().tv < 0.1 < before
    assert sum(p.numel() for p in trainer.parameters()) == trainer.n_parameters


def test_what_the_signature_says_is_what_is_taken():
    import inspect

    shown = {name: parameter.default for name, parameter in inspect.signature(gfn.Trainer).parameters.items()}
    assert shown["adam"].schedule == gfn.InverseRoot(1.0, 1000) and shown[
        "exploration"
    ].epsilon == gfn.Linear(0.1, 0.01, 2000)
    losses = (
        lambda **changes: ring_trainer(**{"adam": gfn.Adam(), "exploration": gfn.Exploration(), **changes})
        .fit(5)
        .history["loss"]
        .tolist()
    )  # noqa: E731
    default = losses()
    assert default == losses(
        adam=gfn.Adam(schedule=gfn.InverseRoot(1.0, 1000)),
        exploration=gfn.Exploration(epsilon=gfn.Linear(0.1, 0.01, 2000)),
    )
    assert default != losses(exploration=gfn.Exploration(epsilon=0.0)) and default != losses(
        adam=gfn.Adam(schedule=1.0), exploration=gfn.Exploration(epsilon=gfn.Linear(0.2, 0.01, 2000))
    )
    # With `epsilon=None`, exploration is turned off, so the losses must equal those with `epsilon=0.0`.
    assert (
        losses(exploration=gfn.Exploration(epsilon=None)) == losses(exploration=gfn.Exploration(epsilon=0.0))
        and losses(adam=gfn.Adam(schedule=None)) == losses(adam=gfn.Adam(schedule=1.0)) != default
    )
    # If the objective is on-policy, exploration must be off by default, and any other `epsilon` must be an
    # error.
    own = lambda **changes: gfn.Trainer(
        gfn.HyperGrid(2, 3), gfn.HyperGridReward(), gfn.Mlp((8,)), gfn.PolicyGradient(), batch=8, **changes
    )  # noqa: E731
    assert (
        own().fit(3).history["loss"].tolist()
        == own(exploration=gfn.Exploration(epsilon=0.0)).fit(3).history["loss"].tolist()
    )
    with pytest.raises(ValueError, match="own|on-policy|off-policy"):
        own(exploration=gfn.Exploration(epsilon=gfn.Linear(0.1, 0.01, 2000))).fit(1)


def test_training_beyond_the_end_of_a_schedule_is_told_of():
    trainer = gfn.Trainer(
        gfn.HyperGrid(2, 4),
        gfn.HyperGridReward(),
        gfn.Mlp((8,)),
        batch=8,
        adam=gfn.Adam(schedule=gfn.Linear(1, 0, 3)),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trainer.fit(3)
    with pytest.warns(gfn.TrainingWarning, match="the schedule `Adam.schedule` has ended.*`InverseRoot`"):
        trainer.fit(5)
    assert len(trainer.warnings) == 1 and trainer.steps_done == 8
    with pytest.raises(ValueError, match="at least one step"):
        gfn.Trainer(
            gfn.HyperGrid(2, 4),
            gfn.HyperGridReward(),
            gfn.Mlp((8,)),
            adam=gfn.Adam(schedule=gfn.Linear(1, 0, 0)),
        )


def test_a_gradient_that_is_left_does_not_come_into_a_step():
    norms = []
    for look in (False, True):
        trainer = ring_trainer().fit(1)
        if look:
            others = gfn.Sampler(trainer.env, trainer).sample(8)
            trainer.loss(trainer.score(others)).backward()
            trainer.loss(trainer.score(others)).backward()
        norms.append(trainer.step()["grad_norm"])
    assert norms[0] == norms[1]


def test_a_large_log_z_starts_at_what_the_first_batch_says():
    settings = {"batch": 32, "exploration": gfn.Exploration(epsilon=None)}
    high = lambda states: [300.0] * len(states)  # noqa: E731
    first = lambda policy: gfn.Trainer(gfn.HyperGrid(2, 4), high, policy, **settings).step()[
        "log_z"
    ]  # noqa: E731
    assert 300 < first(gfn.Mlp((8,))) < 304
    assert first(gfn.Mlp((8,), initial_log_z=0.0)) == 0 and first(gfn.Mlp((8,), initial_log_z=5)) == 5


def test_history_is_a_frame():
    trainer = ring_trainer().fit(5)
    frame = trainer.frame()
    assert list(frame.index) == [1, 2, 3, 4, 5] and {"loss", "log_z", "reward_calls"} <= set(frame.columns)
    assert trainer.step()["step"] == 6 and len(trainer.frame()) == 6


def test_parameters_of_a_checkpoint_of_rust_are_taken_over(reproduce, tmp_path):
    rust = reproduce("ring", "--nodes", 4, "--steps", 30, "--seed", 9, "--save", tmp_path / "rust")
    trainer = ring_trainer(seed=1)
    assert trainer.exact().jsd != rust["jsd"]
    assert trainer.restore(tmp_path / "rust").exact().jsd == rust["jsd"]
    with pytest.raises(ValueError):
        trainer.resume(tmp_path / "rust")
    with pytest.raises(ValueError):
        gfn.Trainer(gfn.Ring(3), gfn.RingReward(), gfn.GraphNet()).restore(tmp_path / "rust")


def test_gin_with_a_virtual_node_is_trained_in_each_round():
    policy = gfn.GraphNet(conv="gin_virtual", embedding=16, layers=3)
    trainer = gfn.Trainer(gfn.ColoredGraphs(3), gfn.ColoredGraphReward(), policy, batch=16)
    whole = {
        name: tensor
        for name, tensor in trainer.named_parameters()
        if ".whole." in name and name.endswith("weight")
    }
    assert len(whole) == 3, list(whole)
    before = {name: tensor.detach().clone() for name, tensor in whole.items()}
    trainer.fit(3)
    assert all((whole[name] != before[name]).any() for name in whole)
