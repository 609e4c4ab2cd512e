"""Tests of regression losses: divergences by name, functions of torch tensors, and the critics of policy
gradients. Losses are compared with formulas in torch, and distances from the target are exact."""

import math

import gfn_rs as gfn
import pytest
import torch


def trainer(objective, steps=300, **settings):
    adam = gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, steps))
    return gfn.Trainer(
        gfn.HyperGrid(2, 4),
        gfn.HyperGridReward(),
        gfn.Mlp((32, 32)),
        objective,
        batch=16,
        adam=adam,
        double=True,
        **settings,
    )


def jensen_shannon(residuals):
    """Returns the Jensen-Shannon loss by Simpson's rule."""
    grid = torch.linspace(0, 1, 2001, dtype=torch.double)
    weights = torch.full_like(grid, 2.0)
    weights[1::2], weights[0], weights[-1] = 4.0, 1.0, 1.0
    slopes = 0.5 * (math.log(2) + torch.nn.functional.logsigmoid(residuals[:, None] * grid))
    return residuals * (slopes * weights).sum(1) / 6000


FORMULAS = {
    "reverse_kl": lambda t: t.square() / 2,
    "forward_kl": lambda t: (-t).exp() + t - 1,
    "jensen_shannon": jensen_shannon,
    "hellinger": lambda t: t + 2 * (-t / 2).exp() - 2,
    "chi_squared": lambda t: 2 * (t.exp() - t - 1),
    "absolute": lambda t: t.abs(),
}


def residuals(scores):
    ratios = scores.log_pf - scores.log_pb
    sums = torch.zeros_like(scores.log_reward).index_add(0, scores.trajectory, ratios)
    return sums - scores.log_reward


@pytest.mark.parametrize("name", FORMULAS)
def test_named_losses_have_their_formulas(name):
    it = trainer(gfn.TrajectoryBalance(regression=name))
    scores = it.score(it.batch())
    expected = FORMULAS[name](scores.log_z + residuals(scores)).mean()
    torch.testing.assert_close(it.loss(scores), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("alpha", [-0.5, 0.0, 1.0, 2.0])
def test_alpha_divergences_have_their_formulas(alpha):
    it = trainer(gfn.TrajectoryBalance(regression=gfn.AlphaDivergence(alpha)))
    scores = it.score(it.batch())
    t, a = scores.log_z + residuals(scores), alpha - 1
    expected = t.square() / 2 if a == 0 else ((a * t).exp() - a * t - 1) / a**2
    torch.testing.assert_close(it.loss(scores), expected.mean(), rtol=1e-9, atol=1e-12)


def test_the_batch_gives_the_log_of_the_mean_weight():
    it = trainer(gfn.LogPartitionDeviation(regression="forward_kl"))
    scores = it.score(it.batch())
    t = residuals(scores)
    center = torch.logsumexp(-t, 0) - math.log(len(t))
    expected = FORMULAS["forward_kl"](t + center).mean()
    torch.testing.assert_close(it.loss(scores), expected, rtol=1e-9, atol=1e-12)


def test_a_function_gives_the_run_of_the_loss_that_it_computes():
    runs = [trainer(gfn.TrajectoryBalance(regression=loss)).fit(20) for loss in ("squared", torch.square)]
    assert list(runs[0].history["loss"]) == list(runs[1].history["loss"])
    assert runs[0].exact().tv == runs[1].exact().tv
    other = trainer(gfn.TrajectoryBalance(regression=lambda t: t.abs() + t.square())).fit(20)
    assert list(other.history["loss"]) != list(runs[0].history["loss"])


@pytest.mark.parametrize(
    "objective",
    [gfn.SubTrajectoryBalance, gfn.LogPartitionDeviation, gfn.FlowMatching, gfn.DetailedBalance],
)
def test_a_function_trains_with_other_objectives(objective):
    # Some of these objectives differentiate the function for single residuals, without tensors of a batch.
    named, function = (
        trainer(objective(regression=loss)).fit(3) for loss in ("forward_kl", FORMULAS["forward_kl"])
    )
    assert function.history["loss"] == pytest.approx(named.history["loss"], rel=1e-9)


def test_a_wrong_function_is_refused():
    with pytest.raises(ValueError, match="positive.*cube"):

        def cube(residuals):
            return residuals**3

        trainer(gfn.TrajectoryBalance(regression=cube))
    with pytest.raises(ValueError, match="has a gradient"):
        trainer(gfn.TrajectoryBalance(regression=lambda t: t.detach() ** 2))
    with pytest.raises(TypeError, match="expected a torch.Tensor"):
        trainer(gfn.TrajectoryBalance(regression=lambda t: None))
    with pytest.raises(ZeroDivisionError):
        trainer(gfn.TrajectoryBalance(regression=lambda t: t / 0 if 1 // 0 else t))


def test_an_exception_of_a_later_call_is_raised():
    calls: list[int] = []
    counted = []
    # The number of calls by which a new trainer checks the function.
    trainer(gfn.TrajectoryBalance(regression=lambda t: counted.append(len(t)) or t.square()))
    n = len(counted)

    def later(residuals):
        if len(calls) == n > 0:
            raise KeyError("enough")
        calls.append(len(residuals))
        return residuals.square()

    with pytest.raises(KeyError, match="enough"):
        trainer(gfn.TrajectoryBalance(regression=later)).fit(1)


@pytest.mark.parametrize(
    "objective",
    [
        gfn.TrajectoryBalance(regression="jensen_shannon"),
        gfn.LogPartitionDeviation(regression="forward_kl"),
        gfn.TrajectoryBalance(regression=lambda t: t.cosh().log()),
        gfn.PolicyGradient(critic="evaluation_balance"),
        gfn.ProximalPolicy.entropic(),
        gfn.ProximalPolicy.entropic(n_minibatches=2, divergence="sampled", critic="evaluation_balance"),
    ],
    ids=["jensen_shannon", "batch", "function", "sub_eb", "ent_ppo", "sampled"],
)
def test_new_objectives_learn_a_grid(objective):
    it = trainer(objective, steps=500)
    before, after = it.exact().tv, it.fit(500).exact().tv
    assert after < 0.03 and after < before / 10, (before, after)


def test_exact_divergences_need_discrete_actions():
    with pytest.raises(ValueError, match="P_F of all actions"):
        gfn.Trainer(
            gfn.Box(), gfn.BoxReward(), gfn.BoxNet((8,)), gfn.ProximalPolicy.entropic(), batch=8
        ).fit(1)
