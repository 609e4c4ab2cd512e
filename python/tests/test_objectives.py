"""Tests of objectives with additional parts: a prior, a data set, intrinsic rewards, a target network."""

import math

import gfn_rs as gfn
import numpy as np
import pytest
import torch
from refusals import NAN, graph_trainer, refused, trainer, zero

GRID = gfn.HyperGrid(2, 4)


def slope(points):
    """Returns log R of points, which decreases with the first coordinate and increases with the second."""
    return 0.8 * points[:, 1] - 0.5 * points[:, 0]


def learner(reward, objective=None, **changes):
    settings = {"batch": 64, "adam": gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 500)), **changes}
    return gfn.Trainer(
        settings.pop("env", GRID), reward, settings.pop("policy", gfn.Mlp((64, 64))), objective, **settings
    )


@pytest.fixture(scope="module")
def prior():
    return learner(gfn.HyperGridReward()).fit(500)


@pytest.mark.parametrize(
    "make, beta",
    [
        (lambda prior: gfn.RelativeTrajectoryBalance(prior), 1.0),
        (lambda prior: gfn.RelativeTrajectoryBalance(prior, beta=2.0), 2.0),
        (lambda prior: gfn.RelativeLogPartitionVariance(prior), 1.0),
        (lambda prior: gfn.TrustPcl(prior, alpha=0.5), 2.0),
    ],
    ids=["balance", "beta 2", "variance", "trust region"],
)
def test_a_posterior_is_learned_from_a_prior_and_a_reward(prior, make, beta):
    before = prior.exact()
    posterior = learner(slope, make(prior))
    start = posterior.exact()
    exact = posterior.fit(500).exact()
    expected = before.probs * np.exp(beta * slope(exact.states))
    assert exact.log_z == pytest.approx(math.log(expected.sum()), abs=1e-9)
    assert exact.target == pytest.approx(expected / expected.sum(), abs=1e-12)
    assert exact.tv == pytest.approx(np.abs(exact.probs - expected / expected.sum()).sum() / 2, abs=1e-9)
    assert exact.tv < 0.05 < 4 * 0.05 < start.tv
    # As a negative control, the learned distribution must be neither the prior nor the distribution of the
    # reward alone.
    alone = np.exp(beta * slope(exact.states))
    assert (
        np.abs(exact.probs - alone / alone.sum()).sum() / 2 > 0.1
        and np.abs(exact.probs - before.probs).sum() / 2 > 0.1
    )
    assert (prior.exact().probs == before.probs).all()
    estimate = posterior.evaluate(4000)
    assert (
        estimate.interval[0] - 0.02 < exact.log_z < estimate.interval[1] + 0.02
        and estimate.elbo.mean < exact.log_z + 0.02
    )


def test_a_prior_is_the_policy_as_it_was():
    first = learner(gfn.HyperGridReward(), batch=8).fit(20)
    posterior = learner(slope, gfn.RelativeTrajectoryBalance(first), batch=8)
    target = posterior.exact().target
    first.fit(50)
    assert (posterior.exact().target == target).all()
    # The policy has been trained further since `target` was computed, so a new prior that is made from this
    # policy must give another target.
    assert (learner(slope, gfn.RelativeTrajectoryBalance(first), batch=8).exact().target != target).any()


def test_a_uniform_policy_is_a_prior():
    exact = learner(slope, gfn.RelativeTrajectoryBalance(gfn.Uniform())).fit(500).exact()
    uniform = gfn.Trainer(GRID, slope, gfn.Uniform(), gfn.LogPartitionVariance(), batch=8).exact().probs
    expected = uniform * np.exp(slope(exact.states))
    assert exact.target == pytest.approx(expected / expected.sum(), abs=1e-12) and exact.tv < 0.05


def test_a_policy_that_starts_at_its_prior_has_its_distribution():
    first = learner(gfn.HyperGridReward(), batch=8).fit(20)
    posterior = learner(zero, gfn.RelativeTrajectoryBalance(first), batch=8)
    assert posterior.exact().tv > 0.05
    with torch.no_grad():
        for ours, theirs in zip(posterior.parameters(), first.parameters()):
            ours.copy_(theirs)
    assert posterior.exact().tv < 1e-6


def test_modules_of_priors_are_not_trained():
    from test_modules import Messages, module_trainer

    first = module_trainer(Messages()).fit(5)
    kept = [tensor.clone() for tensor in first.parameters()]
    posterior = gfn.Trainer(
        first.env, first.reward, first.policy, gfn.RelativeTrajectoryBalance(first), batch=16
    )
    target = posterior.exact().target
    posterior.fit(5)
    # Training of the posterior must change the original module. The frozen prior has a copy of the module, so
    # the target must not change.
    assert any((a != b).any() for a, b in zip(kept, first.parameters()))
    assert (posterior.exact().target == target).all()


def test_priors_go_with_continuous_environments():
    """Learns a posterior with a normal prior of mean 1 and standard deviation 0.5, and the reward e^(2 x).
    The posterior must be normal with mean 1.5."""
    settings = dict(batch=128, adam=gfn.Adam(lr=2e-3, schedule=gfn.Linear(1, 0, 400)))
    first = gfn.Trainer(gfn.Line(3), gfn.LineReward([(1.0, 0.5)]), gfn.LineNet(), **settings).fit(400)
    tilted = lambda states: 2.0 * states[:, 0]
    posterior = gfn.Trainer(
        gfn.Line(3), tilted, gfn.LineNet(), gfn.RelativeTrajectoryBalance(first), **settings
    ).fit(400)
    assert first.sample(4000)[:, 0].mean() == pytest.approx(1.0, abs=0.1)
    positions = posterior.sample(4000)[:, 0]
    assert positions.mean() == pytest.approx(1.5, abs=0.1) and positions.std() == pytest.approx(0.5, abs=0.1)
    # The estimate of log Z must be the log of the mean of e^(2 x) under the learned prior.
    mean = np.exp(tilted(first.sample(20_000))).mean()
    assert posterior.evaluate(4000).log_z == pytest.approx(np.log(mean), abs=0.1)


def test_a_checkpoint_goes_on_beside_the_prior_that_it_had(prior, tmp_path):
    make = lambda other: learner(slope, gfn.RelativeTrajectoryBalance(other), batch=8)
    whole = make(prior).fit(8)
    make(prior).fit(4).save(tmp_path / "half")
    assert (
        make(prior).resume(tmp_path / "half").fit(4).history["loss"].tolist()
        == whole.history["loss"].tolist()
    )
    other = learner(gfn.HyperGridReward(), seed=1).fit(1)
    with pytest.raises(ValueError):
        make(other).resume(tmp_path / "half")


def given(n=20_000):
    """Returns `n` random points of the grid. Points further from the origin are more frequent."""
    weights = 1.0 + np.arange(16)
    rows = np.random.default_rng(0).choice(16, size=n, p=weights / weights.sum())
    return np.stack([rows // 4, rows % 4], axis=1)


@pytest.mark.parametrize("path", ["uniform_backward", "policy_backward"])
def test_likelihood_learns_the_distribution_of_given_objects(path):
    points = given()
    policy = gfn.Mlp((64, 64), backward="uniform")
    it = learner(
        zero, gfn.MaximumLikelihood(), policy=policy, sources=[gfn.Data(points, share=1.0, path=path)]
    )
    exact = it.fit(500).exact()
    shares = np.zeros(16)
    np.add.at(shares, points @ [4, 1], 1 / len(points))
    learned = exact.probs[np.argsort(exact.states @ [4, 1])]
    assert np.abs(learned - shares).sum() / 2 < 0.06
    # The reward is equal for all points. The policy must learn the distribution of the data, which is far
    # from this uniform target.
    assert exact.tv > 0.15


def test_given_objects_are_learned_from_beside_fresh_ones():
    corner = np.asarray([[3, 3]])
    it = learner(gfn.HyperGridReward(), sources=[gfn.Data(corner, share=0.25), gfn.Replay(500, share=0.25)])
    assert it.fit(500).exact().tv < 0.06


@pytest.mark.parametrize("augmented", [gfn.AugmentedTrajectoryBalance, gfn.AugmentedDetailedBalance])
@pytest.mark.parametrize(
    "novelty",
    [gfn.RandomDistillation((32,), 16), lambda points: np.ones(len(points))],
    ids=["learned", "given"],
)
def test_intrinsic_rewards_fade(augmented, novelty):
    coefficient = gfn.Linear(0.5, 0.0, 200)
    it = learner(gfn.HyperGridReward(), augmented(coefficient, coefficient, novelty))
    assert it.fit(500).exact().tv < 0.06


def test_intrinsic_rewards_change_the_target_while_they_are_there():
    """Adds an intrinsic reward r(x) to the reward of finished objects, 10 at one corner of the grid and 0
    elsewhere. The target must be proportional to R(x) + r(x), because r is added with a factor of 1."""
    corner = lambda points: 10.0 * (points == 3).all(axis=1)
    it = learner(zero, gfn.AugmentedTrajectoryBalance(0.0, 1.0, corner))
    exact = it.fit(500).exact()
    expected = (1.0 + corner(exact.states)) / 26
    assert np.abs(exact.probs - expected).sum() / 2 < 0.05 < exact.tv


def test_a_target_network_leads_to_the_same_distribution():
    plain, target = (
        learner(gfn.HyperGridReward(), gfn.ModifiedDetailedBalance(every)).fit(500) for every in (None, 20)
    )
    assert target.exact().tv < 0.06
    assert plain.history["loss"].tolist() != target.history["loss"].tolist()


@pytest.mark.parametrize("backward", ["trajectory_likelihood", "maximum_entropy"])
@pytest.mark.parametrize(
    "objective",
    [gfn.TrajectoryBalance, gfn.LogPartitionVariance, gfn.DetailedBalance, gfn.SubTrajectoryBalance],
)
def test_backward_policies_have_objectives_of_their_own(objective, backward):
    it = learner(
        gfn.HyperGridReward(), objective(backward=backward), policy=gfn.Mlp((64, 64), backward="separate")
    )
    assert it.fit(500).exact().tv < 0.08


WRONG = [
    (lambda prior: gfn.RelativeTrajectoryBalance(), TypeError, "prior"),
    (lambda prior: gfn.RelativeTrajectoryBalance(None), TypeError, "prior is NoneType: expected a trainer"),
    (
        lambda prior: gfn.RelativeTrajectoryBalance(gfn.Trainer),
        TypeError,
        "prior is Trainer: expected a trainer",
    ),
    (lambda prior: gfn.RelativeTrajectoryBalance(gfn.Mlp()), TypeError, "prior is Mlp"),
    (lambda prior: gfn.RelativeTrajectoryBalance(prior, beta="1"), TypeError, "beta is '1'"),
    (
        lambda prior: trainer(GRID, objective=gfn.RelativeTrajectoryBalance(prior, beta=0.0)),
        ValueError,
        "beta is 0",
    ),
    (
        lambda prior: trainer(GRID, objective=gfn.RelativeTrajectoryBalance(prior, beta=NAN)),
        ValueError,
        "beta is nan",
    ),
    (lambda prior: trainer(GRID, objective=gfn.TrustPcl(prior, alpha=-1.0)), ValueError, "alpha is -1"),
    (
        lambda prior: trainer(GRID, objective=gfn.RelativeLogPartitionVariance(prior), batch=1),
        ValueError,
        "batch",
    ),
    (
        lambda prior: trainer(objective=gfn.RelativeTrajectoryBalance(prior)),
        ValueError,
        "prior is a trainer of HyperGrid",
    ),
    (
        lambda prior: graph_trainer(objective=gfn.RelativeTrajectoryBalance(prior)),
        ValueError,
        "prior is a trainer of HyperGrid",
    ),
    (
        lambda prior: trainer(
            GRID,
            lambda points, conditions: np.zeros(len(points)),
            objective=gfn.RelativeTrajectoryBalance(prior),
            conditions=gfn.Conditions(lambda n, rng: np.zeros((n, 1)), 1),
        ),
        ValueError,
        "prior has 0 numbers in a condition: expected 1",
    ),
    (
        lambda prior: trainer(
            gfn.Line(), policy=gfn.LineNet((8,)), objective=gfn.RelativeTrajectoryBalance(gfn.Uniform())
        ),
        TypeError,
        "Uniform isn't a policy for the line",
    ),
    (
        lambda prior: trainer(
            GRID, objective=gfn.RelativeTrajectoryBalance(prior), sources=[gfn.Teacher(gfn.Mlp((8,)))]
        ).fit(1),
        ValueError,
        "adaptive teacher",
    ),
    (
        lambda prior: trainer(objective=gfn.MaximumLikelihood()).fit(1),
        ValueError,
        "with_data|policy did not sample",
    ),
    (
        lambda prior: trainer(
            objective=gfn.MaximumLikelihood(), sources=[gfn.Data(np.zeros((1, 2), int))]
        ).fit(1),
        ValueError,
        "policy did not sample",
    ),
    (lambda prior: gfn.AugmentedTrajectoryBalance(), TypeError, "edges"),
    (lambda prior: gfn.AugmentedTrajectoryBalance("1"), TypeError, "edges is '1'"),
    (
        lambda prior: gfn.AugmentedTrajectoryBalance(1.0, novelty=3),
        TypeError,
        "novelty is int: expected RandomDistillation",
    ),
    (
        lambda prior: gfn.AugmentedTrajectoryBalance(1.0, novelty=gfn.RandomDistillation),
        TypeError,
        "novelty is RandomDistillation",
    ),
    (
        lambda prior: trainer(objective=gfn.AugmentedTrajectoryBalance(-1.0)),
        ValueError,
        "coefficient of intrinsic rewards is -1",
    ),
    (
        lambda prior: trainer(
            objective=gfn.AugmentedTrajectoryBalance(1.0, novelty=gfn.RandomDistillation((0,)))
        ),
        ValueError,
        "at least 1",
    ),
    (
        lambda prior: graph_trainer(objective=gfn.AugmentedTrajectoryBalance(1.0)),
        ValueError,
        "function of states",
    ),
    (
        lambda prior: trainer(
            objective=gfn.AugmentedTrajectoryBalance(1.0, novelty=lambda s: -np.ones(len(s)))
        ).fit(1),
        FloatingPointError,
        "novelty",
    ),
    (
        lambda prior: trainer(objective=gfn.AugmentedTrajectoryBalance(1.0, novelty=lambda s: [1.0])).fit(1),
        ValueError,
        "novelty gave 1",
    ),
    (
        lambda prior: trainer(objective=gfn.AugmentedTrajectoryBalance(1.0, novelty=lambda s: "new")).fit(1),
        TypeError,
        "novelty gave a str",
    ),
    (
        lambda prior: trainer(objective=gfn.AugmentedTrajectoryBalance(1.0, novelty=lambda s: 1 / 0)).fit(1),
        ZeroDivisionError,
        "division",
    ),
    (lambda prior: trainer(objective=gfn.ModifiedDetailedBalance(0)), ValueError, "between copies is 0"),
    (lambda prior: gfn.ModifiedDetailedBalance("20"), TypeError, "target_network is '20'"),
    (lambda prior: gfn.LogPartitionVariance("tlm"), ValueError, "backward is 'tlm'"),
]


@pytest.mark.parametrize("call, kind, message", WRONG)
def test_what_objectives_cannot_be(prior, call, kind, message):
    refused(lambda: call(prior), kind, message)


def test_environments_of_priors_are_compared():
    class Even(gfn.VectorRules):
        pass

    rules = Even()
    make = lambda rules: gfn.VectorEnv(2, 3, [(k, v, v + 1) for k in range(2) for v in range(2)], rules=rules)
    first = trainer(make(rules))
    assert trainer(make(rules), objective=gfn.RelativeTrajectoryBalance(first)).fit(1).steps_done == 1
    refused(
        lambda: trainer(make(Even()), objective=gfn.RelativeTrajectoryBalance(first)),
        ValueError,
        "same environment",
    )


def test_a_loss_is_of_the_batch_that_a_step_would_have():
    assert (
        trainer(objective=gfn.MaximumLikelihood(), sources=[gfn.Data(np.zeros((1, 2), int), share=1.0)])
        .loss()
        .requires_grad
    )
    assert trainer(objective=gfn.AugmentedTrajectoryBalance(1.0)).loss().requires_grad
    assert trainer(objective=gfn.RelativeTrajectoryBalance(gfn.Uniform())).loss().requires_grad


def test_priors_that_follow_a_target_are_refused():
    env, target = gfn.Diffusion(2, 8), gfn.GaussianTarget([0.0, 0.0])
    led = gfn.Trainer(env, target, gfn.DiffusionNet(langevin_clip=9.0), batch=4)
    refused(
        lambda: gfn.Trainer(env, target, gfn.DiffusionNet(), gfn.RelativeTrajectoryBalance(led)),
        ValueError,
        "uses the gradient",
    )
