"""Objectives, whose losses are smallest if the policy samples in proportion to the reward."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Callable, Literal, Sequence

import torch

from . import _gfn
from ._settings import Settings, kind_name, needs, plain, variant
from ._schedules import Number, schedule_json

Backward = Literal["trajectory_likelihood", "maximum_entropy"]
Loss = Literal[
    "squared",
    "half_squared",
    "shifted_cosh",
    "absolute",
    "reverse_kl",
    "forward_kl",
    "jensen_shannon",
    "hellinger",
    "chi_squared",
]
DIVERGENCES = ("reverse_kl", "forward_kl", "jensen_shannon", "hellinger", "chi_squared")
Advantage = Literal["total", "reward_to_go", "baseline", "gae"]
Critic = Literal["returns", "lambda_returns", "evaluation_balance"]
KlEstimator = Literal["sampled", "exact"]


@dataclass(frozen=True)
class AlphaDivergence(Settings):
    """The regression loss of an alpha divergence (Fawkes and Hartford 2026). On trajectories of the policy
    itself, trajectory balance with this loss has the gradient of the divergence.

    alpha
        The forward KL divergence is at 0, and the reverse KL divergence, the usual loss, at 1. The smaller
        `alpha` is, the more a policy that can't represent the target covers all of its modes.

    >>> objective = gfn.TrajectoryBalance(regression=gfn.AlphaDivergence(0.5))
    >>> env, net = gfn.HyperGrid(2, 3), gfn.Mlp((8,))
    >>> gfn.Trainer(env, gfn.HyperGridReward(), net, objective, batch=8).fit(2).steps_done
    2
    """

    alpha: float


Regression = Loss | AlphaDivergence | Callable[[torch.Tensor], torch.Tensor]


def _advantage(name: Advantage, lambda_: float) -> Any:
    return {"Gae": {"lambda": plain(lambda_, "gae_lambda")}} if name == "gae" else variant(name)


class Objective(Settings):
    """The base class of all objectives. `OwnObjective` is the class for custom objectives.

    >>> isinstance(gfn.TrajectoryBalance(), gfn.Objective)
    True
    """

    regression: Regression = "squared"

    def _regression_json(self) -> Any:
        """Returns the settings of the regression loss; those of the default for a function."""
        if isinstance(self.regression, AlphaDivergence):
            return {"FDivergence": {"Alpha": self.regression._values()}}
        if not isinstance(self.regression, str):
            return variant("squared")
        name = variant(self.regression)
        return {"FDivergence": name} if self.regression in DIVERGENCES else name

    def _own_regression(self) -> Any:
        """Returns the Python function that computes the regression loss; None for a loss of the library."""
        return None if isinstance(self.regression, (str, AlphaDivergence)) else self.regression

    def _loss(self) -> Any:
        """Returns the Python function that computes the loss of a custom objective; None for any other
        objective."""
        return None

    def _prior(self) -> Any:
        """Returns the prior of a relative objective, a trainer or a policy without parameters; None for any
        other objective."""
        return None

    def _parts(self) -> dict[str, Any]:
        """Returns the settings of the parts that this objective adds to a trainer, such as an objective of
        P_B or a target network."""
        return {}

    def _intrinsic(self) -> tuple[dict[str, Any], Any] | None:
        """Returns the factors on intrinsic rewards, and the settings or the function that compute the
        novelty; None without intrinsic rewards."""
        return None


@dataclass(frozen=True)
class _Regression(Objective):
    """The base class of objectives with residuals.

    regression
        The loss of a residual: a name, an `AlphaDivergence`, or a function. A function takes a tensor of
        residuals and returns their losses, a tensor of the same shape, through which torch differentiates.
        Its loss must be 0 at 0 and positive elsewhere. A checkpoint stores only the name of a function, so a
        resumed run doesn't notice other code under the same name. In policy gradients, the residual is the
        difference between log F and a return.
    """

    regression: Regression = field(default="squared", kw_only=True)

    def _values(self) -> dict[str, Any]:
        # The trainer reads `regression` from the attribute, so the values of the objective don't contain it.
        names = [setting.name for setting in fields(self) if setting.name != "regression"]
        return {name: plain(getattr(self, name), f"{type(self).__name__}.{name}") for name in names}


@dataclass(frozen=True)
class TrajectoryBalance(_Regression):
    """Trajectory balance (Malkin et al. 2022).

    backward
        The objective by which P_B is trained. `trajectory_likelihood` maximises the likelihood under P_B of
        the trajectories that P_F samples (Gritsaev et al. 2025). `maximum_entropy` trains P_B towards equal
        probabilities of all trajectories to an object (Mohammadpour et al. 2024). None trains P_B by
        trajectory balance, too.
    regression
        The loss of a residual: `squared` (the default), `half_squared`, `shifted_cosh` or `absolute`; the
        loss of an f-divergence (`reverse_kl`, `forward_kl`, `jensen_shannon`, `hellinger`, `chi_squared` or
        an `AlphaDivergence`), which makes this objective f-trajectory balance (Fawkes and Hartford 2026); or
        a function that maps a tensor of residuals to their losses.

    >>> gfn.TrajectoryBalance(backward="maximum_entropy", regression="shifted_cosh").backward
    'maximum_entropy'
    >>> objective = gfn.TrajectoryBalance(regression=lambda residuals: residuals.square().log1p())
    >>> env, net = gfn.HyperGrid(2, 3), gfn.Mlp((8,))
    >>> gfn.Trainer(env, gfn.HyperGridReward(), net, objective, batch=8).fit(2).steps_done
    2
    """

    backward: Backward | None = None


@dataclass(frozen=True)
class LogPartitionVariance(_Regression):
    """The log-partition variance (VarGrad; Zhang et al. 2023). The loss is the variance over a batch of the
    estimates of log Z, with one estimate from each trajectory. No log Z is learned.

    backward
        The objective by which P_B is trained: `trajectory_likelihood`, `maximum_entropy`, or None, the
        default, for the loss itself.
    regression
        The function that maps a residual to its loss, `squared` by default.

    >>> net = gfn.Mlp((8,))
    >>> objective = gfn.LogPartitionVariance()
    >>> gfn.Trainer(gfn.HyperGrid(2, 3), gfn.HyperGridReward(), net, objective, batch=8).fit(2).steps_done
    2
    """

    backward: Backward | None = None


@dataclass(frozen=True)
class LogPartitionDeviation(_Regression):
    """Trajectory balance in which log Z is the number that minimizes the loss of the batch (Fawkes and
    Hartford 2026). With the squared loss this is `LogPartitionVariance`. No log Z is learned.

    regression
        The loss of a residual, for example `forward_kl`; `squared` by default.

    >>> objective = gfn.LogPartitionDeviation(regression="forward_kl")
    >>> env, net = gfn.HyperGrid(2, 3), gfn.Mlp((8,))
    >>> gfn.Trainer(env, gfn.HyperGridReward(), net, objective, batch=8).fit(2).steps_done
    2
    """


class _Relative(_Regression):
    """The base class of objectives relative to a prior."""

    def __post_init__(self) -> None:
        super().__post_init__()
        from ._policies import Uniform
        from ._training import Trainer

        prior = self._prior()
        if not isinstance(prior, (Trainer, Uniform)):
            raise TypeError(
                f"prior is {kind_name(prior)}: expected a trainer of the same environment, or Uniform()"
            )

    def _prior(self) -> Any:
        return getattr(self, "prior")

    def _values(self) -> dict[str, Any]:
        return {name: plain(getattr(self, name), name) for name in ("beta", "alpha") if hasattr(self, name)}


@dataclass(frozen=True)
class RelativeTrajectoryBalance(_Relative):
    """Relative trajectory balance (Venkatraman et al. 2024). The policy learns the posterior of a prior: its
    target is in proportion to prior(x) R(x)^`beta`.

    `prior` is a trainer of the same environment, or `Uniform()`. The prior's policy is copied when the new
    trainer is built, and the copy never changes. The new policy has random parameters. To start training at
    the prior, copy the prior's network. `regression` is the function that maps a residual to its loss,
    `squared` by default.

    >>> import copy
    >>> import gfn_rs as gfn
    >>> env, reward = gfn.HyperGrid(2, 4), lambda points: -points.sum(axis=1).astype(float)
    >>> prior = gfn.Trainer(env, gfn.HyperGridReward(), gfn.Mlp((16,)), batch=16).fit(10)
    >>> objective = gfn.RelativeTrajectoryBalance(prior)
    >>> posterior = gfn.Trainer(env, reward, copy.deepcopy(prior.network), objective, batch=16)
    >>> posterior.fit(10).steps_done
    10
    """

    prior: Any
    beta: float = 1.0


@dataclass(frozen=True)
class RelativeLogPartitionVariance(_Relative):
    """The log-partition variance relative to a prior. The target is in proportion to prior(x) R(x)^`beta`, as
    for `RelativeTrajectoryBalance`. The loss is the variance over a batch of the estimates of log Z, so no
    log Z is learned.

    prior
        A trainer of the same environment, or `Uniform()`. Its policy is copied when the new trainer is
        built.
    beta
        The exponent of the reward, 1 by default.
    regression
        The function that maps a residual to its loss, `squared` by default.

    >>> objective = gfn.RelativeLogPartitionVariance(gfn.Uniform(), beta=2.0)
    >>> env, net = gfn.HyperGrid(2, 3), gfn.Mlp((8,))
    >>> gfn.Trainer(env, gfn.HyperGridReward(), net, objective, batch=8).fit(2).steps_done
    2
    """

    prior: Any
    beta: float = 1.0


@dataclass(frozen=True)
class TrustPcl(_Relative):
    """Trust-PCL, a path consistency objective of reinforcement learning (Nachum et al. 2018). The policy is
    kept near the policy of `prior`, the more strongly the larger `alpha` is. The target is in proportion to
    prior(x) R(x)^(1 / `alpha`).

    prior
        A trainer of the same environment, or `Uniform()`. Its policy is copied when the new trainer is
        built.
    alpha
        The weight of the divergence from the prior, above 0, 1 by default.
    regression
        The function that maps a residual to its loss, `squared` by default.

    >>> objective = gfn.TrustPcl(gfn.Uniform(), alpha=0.5)
    >>> env, net = gfn.HyperGrid(2, 3), gfn.Mlp((8,))
    >>> gfn.Trainer(env, gfn.HyperGridReward(), net, objective, batch=8).fit(2).steps_done
    2
    """

    prior: Any
    alpha: float = 1.0


@dataclass(frozen=True)
class DetailedBalance(_Regression):
    """Detailed balance (Bengio et al. 2023).

    forward_looking
        True for forward-looking flows (Pan et al. 2023): log F of a state is learned relative to the
        partial log R of the state. A custom reward then needs a method `partial_log_reward`, except for
        `BayesianStructure`, whose graphs can all be finished.
    backward
        The objective by which P_B is trained: `trajectory_likelihood` (maximum likelihood of the sampled
        trajectories), `maximum_entropy` (equal probabilities of all trajectories to an object), or None,
        the default, for detailed balance itself.
    regression
        The function that maps a residual to its loss, `squared` by default.

    >>> net = gfn.Mlp((8,))
    >>> trainer = gfn.Trainer(gfn.HyperGrid(2, 3), gfn.HyperGridReward(), net, gfn.DetailedBalance(), batch=8)
    >>> trainer.fit(2).steps_done
    2
    """

    forward_looking: bool = False
    backward: Backward | None = None


@dataclass(frozen=True)
class ModifiedDetailedBalance(_Regression):
    """Detailed balance without state flows, for environments in which a trajectory may end in any state
    (Deleu et al. 2022).

    target_network
        The number of training steps between two updates of the target network, a copy of the network with
        older parameters. The loss takes the exit's probability in the next state from the target network.
        None uses the network itself.
    regression
        The function that maps a residual to its loss, `squared` by default.

    >>> objective = gfn.ModifiedDetailedBalance(target_network=100)
    >>> env, net = gfn.HyperGrid(2, 3), gfn.Mlp((8,))
    >>> gfn.Trainer(env, gfn.HyperGridReward(), net, objective, batch=8).fit(2).steps_done
    2
    """

    target_network: int | None = None

    def _parts(self) -> dict[str, Any]:
        return {"target_network": plain(self.target_network, "target_network")}


@dataclass(frozen=True)
class SubTrajectoryBalance(_Regression):
    """Sub-trajectory balance (Madan et al. 2023).

    weighting
        The weights of sub-trajectories. By default the weight of a sub-trajectory of length k is in
        proportion to `lambda_`^k, and the weights of each trajectory have the same sum.
    lambda_
        The base of geometric weights, above 0 and at most 1, 0.9 by default.
    forward_looking
        True for forward-looking flows (Pan et al. 2023): log F of a state is learned relative to the
        partial log R of the state.
    backward
        The objective by which P_B is trained: `trajectory_likelihood`, `maximum_entropy`, or None, the
        default, for the loss itself.
    regression
        The function that maps a residual to its loss, `squared` by default.

    >>> objective = gfn.SubTrajectoryBalance(lambda_=0.8)
    >>> env, net = gfn.HyperGrid(2, 3), gfn.Mlp((8,))
    >>> gfn.Trainer(env, gfn.HyperGridReward(), net, objective, batch=8).fit(2).steps_done
    2
    """

    weighting: Literal[
        "geometric_within", "geometric", "equal", "equal_within", "tb", "db", "modified_db"
    ] = "geometric_within"
    lambda_: float = field(default=0.9, metadata=needs("weighting", "geometric_within", "geometric"))
    forward_looking: bool = False
    backward: Backward | None = None

    def _values(self) -> dict[str, Any]:
        name = variant(self.weighting)
        weighting: Any = (
            {name: {"lambda": plain(self.lambda_, "lambda_")}}
            if self.weighting.startswith("geometric")
            else name
        )
        return {"weighting": weighting, "forward_looking": self.forward_looking, "backward": self.backward}


@dataclass(frozen=True)
class RandomDistillation(Settings):
    """The novelty of a state by random network distillation: the error of a network that learns the output of
    a fixed random network (Burda et al. 2019). For environments of vectors, acyclic graphs and points.

    hidden, outputs
        The widths of the hidden layers of both networks, and the number of their outputs.
    lr
        The learning rate.

    >>> novelty = gfn.RandomDistillation(hidden=(32,), outputs=8)
    >>> gfn.AugmentedTrajectoryBalance(gfn.Linear(0.1, 0, 500), novelty=novelty).novelty.outputs
    8
    """

    hidden: Sequence[int] = (256, 256)
    outputs: int = 128
    lr: float = 1e-3

    @property
    def _config(self) -> dict[str, Any]:
        """Returns the settings of random distillation, under the names that the extension uses."""
        values = self._values()
        return {
            "mlp": {"hidden": values["hidden"]},
            "outputs": values["outputs"],
            "adam": {"lr": values["lr"]},
        }


class _Augmented(_Regression):
    """The base class of objectives with intrinsic rewards."""

    def __post_init__(self) -> None:
        super().__post_init__()
        novelty = getattr(self, "novelty")
        if isinstance(novelty, type) or not (isinstance(novelty, RandomDistillation) or callable(novelty)):
            raise TypeError(
                f"novelty is {kind_name(novelty)}: expected RandomDistillation(), or a function of states"
            )

    def _intrinsic(self) -> tuple[dict[str, Any], Any]:
        return {name: schedule_json(getattr(self, name)) for name in ("edges", "terminal")}, getattr(
            self, "novelty"
        )

    def _values(self) -> dict[str, Any]:
        return {}

    def _parts(self) -> dict[str, Any]:
        coefficients, novelty = self._intrinsic()
        distillation = novelty._values() if isinstance(novelty, RandomDistillation) else None
        return {"intrinsic": {**coefficients, "distillation": distillation}}


@dataclass(frozen=True)
class AugmentedTrajectoryBalance(_Augmented):
    """Trajectory balance with intrinsic rewards (Pan et al. 2023).

    edges, terminal
        A factor on the novelty of the state after each transition, and a factor on the novelty of the
        finished object. Factors above 0 change the target, so decrease them during training, for example by
        `Linear(0.1, 0, 500)`. `exact` always compares the policy with the reward alone.
    novelty
        `RandomDistillation()`, or a function of states that returns a number of at least 0 for each state.
    regression
        The function that maps a residual to its loss, `squared` by default.

    >>> objective = gfn.AugmentedTrajectoryBalance(0.1, novelty=lambda states: np.ones(len(states)))
    >>> env, net = gfn.HyperGrid(2, 3), gfn.Mlp((8,))
    >>> gfn.Trainer(env, gfn.HyperGridReward(), net, objective, batch=8).fit(2).steps_done
    2
    """

    edges: Number
    terminal: Number = 0.0
    novelty: Any = field(default_factory=RandomDistillation)


@dataclass(frozen=True)
class AugmentedDetailedBalance(_Augmented):
    """Detailed balance with intrinsic rewards (Pan et al. 2023).

    edges, terminal
        A factor on the novelty of the state after each transition, and a factor on the novelty of the
        finished object. Factors above 0 change the target, so decrease them during training, for example
        by `Linear(0.1, 0, 500)`. `exact` always compares the policy with the reward alone.
    novelty
        `RandomDistillation()`, or a function of states that returns a number of at least 0 for each
        state.
    regression
        The function that maps a residual to its loss, `squared` by default.

    >>> objective = gfn.AugmentedDetailedBalance(0.1, novelty=lambda states: np.ones(len(states)))
    >>> env, net = gfn.HyperGrid(2, 3), gfn.Mlp((8,))
    >>> gfn.Trainer(env, gfn.HyperGridReward(), net, objective, batch=8).fit(2).steps_done
    2
    """

    edges: Number
    terminal: Number = 0.0
    novelty: Any = field(default_factory=RandomDistillation)


@dataclass(frozen=True)
class MaximumLikelihood(Objective):
    """Maximum likelihood of given trajectories. The policy learns the distribution of the objects of
    `Data(objects, share=1.0)`, and the reward isn't used.

    >>> data = gfn.Data(np.array([[0, 0], [2, 2]]), share=1.0)
    >>> env, net = gfn.HyperGrid(2, 3), gfn.Mlp((8,))
    >>> reward, objective = gfn.HyperGridReward(), gfn.MaximumLikelihood()
    >>> gfn.Trainer(env, reward, net, objective, batch=8, sources=[data]).fit(2).steps_done
    2
    """


@dataclass(frozen=True)
class FlowMatching(_Regression):
    """Flow matching (Bengio et al. 2021). The residual is 0 if the flow into a state equals the flow out of
    the state.

    regression
        The function that maps a residual to its loss, `squared` by default.

    >>> net = gfn.Mlp((8,))
    >>> trainer = gfn.Trainer(gfn.HyperGrid(2, 3), gfn.HyperGridReward(), net, gfn.FlowMatching(), batch=8)
    >>> trainer.fit(2).steps_done
    2
    """


@dataclass(frozen=True)
class _PolicyGradient(_Regression):
    """The base class of policy gradients, whose return is the sum of log R and of the entropy terms log P_B -
    log P_F of the transitions."""

    advantage: Advantage = "gae"
    gae_lambda: float = field(default=0.7, metadata=needs("advantage", "gae"))
    critic: Critic = "returns"
    critic_lambda: float = field(default=0.9, metadata=needs("critic", "evaluation_balance"))

    def _values(self) -> dict[str, Any]:
        critic: Any = variant(self.critic)
        if self.critic == "evaluation_balance":
            critic = {critic: {"GeometricWithin": {"lambda": plain(self.critic_lambda, "critic_lambda")}}}
        return {"advantage": _advantage(self.advantage, self.gae_lambda), "critic": critic}


@dataclass(frozen=True)
class PolicyGradient(_PolicyGradient):
    """A policy gradient, whose return is the sum of log R and of the entropy terms log P_B - log P_F of the
    transitions.

    advantage
        The advantage of an action. `total` is the return of the whole trajectory minus the mean of these
        returns over the batch. `reward_to_go` is the return from the action on minus the same mean.
        `baseline` is the return from the action on minus log F of the state. `gae` is generalised advantage
        estimation with the parameter `gae_lambda` from 0 to 1.
    critic
        The loss of log F, for `baseline` and `gae`. `returns` compares log F with the return, and
        `lambda_returns` with the advantage plus the old log F. `evaluation_balance` (Sub-EB, Niu et al. 2026)
        is the loss of sub-trajectory balance with constant policies, with weights in proportion to
        `critic_lambda`^k for sub-trajectories of length k.
    regression
        The loss between log F and the returns.

    >>> objective = gfn.PolicyGradient(critic="evaluation_balance")
    >>> env, net = gfn.HyperGrid(2, 3), gfn.Mlp((8,))
    >>> gfn.Trainer(env, gfn.HyperGridReward(), net, objective, batch=8).fit(2).steps_done
    2
    """


@dataclass(frozen=True)
class ProximalPolicy(_PolicyGradient):
    """Proximal policy optimisation. The return is the sum of log R and of the entropy terms log P_B - log P_F
    of the transitions. `ProximalPolicy.entropic()` has the settings of Ent-PPO.

    advantage, gae_lambda, critic, critic_lambda
        The advantage of an action and the loss of log F. `PolicyGradient` describes them.
    regression
        The loss between log F and the returns.
    clip, kl, divergence
        `clip` is the largest deviation from 1 of the ratio between an action's new and old probability,
        above 0. `kl` is the weight of the divergence of the policy from the policy that sampled the batch:
        an estimate from the batch's actions (`sampled`), or the exact divergence in each state (`exact`, for
        discrete actions).
    value_weight
        The weight of the loss of log F.
    epochs, n_minibatches
        The number of passes over each batch, and the number of minibatches into which the batch is split at
        random. Each pass makes an update on each minibatch. Both are at least 1.

    >>> objective = gfn.ProximalPolicy(clip=0.1, epochs=2)
    >>> env, net = gfn.HyperGrid(2, 3), gfn.Mlp((8,))
    >>> gfn.Trainer(env, gfn.HyperGridReward(), net, objective, batch=8).fit(2).steps_done
    2
    """

    clip: float = 0.2
    kl: float = 0.0
    divergence: KlEstimator = "sampled"
    value_weight: float = 0.5
    epochs: int = 4
    n_minibatches: int = 1

    @classmethod
    def entropic(cls, **settings: Any) -> ProximalPolicy:
        """Returns entropic proximal policy optimisation, Ent-PPO (Zykova-Myzina et al. 2026): the exact
        divergence with the weight 1, the critic of lambda-returns, and otherwise the defaults. `settings` are
        further settings of `ProximalPolicy`.

        >>> gfn.ProximalPolicy.entropic(n_minibatches=2).divergence
        'exact'
        """
        return cls(**{"kl": 1.0, "divergence": "exact", "critic": "lambda_returns", **settings})

    def _values(self) -> dict[str, Any]:
        names = ("clip", "kl", "value_weight", "epochs", "n_minibatches")
        numbers = {name: plain(getattr(self, name), name) for name in names}
        return {**super()._values(), "divergence": variant(self.divergence), **numbers}


@dataclass(frozen=True)
class OwnObjective(Objective):
    """A custom objective.

    function
        A function of the `Scores` of a batch (log-probabilities and rewards), which returns the loss, a
        scalar tensor. The objective must be off-policy: on any trajectory, also a random or replayed one, the
        loss must be smallest if the policy samples in proportion to the reward.
    log_z, flow
        True if the function reads log Z (`log_z`) or log F (`flow`), besides log P_F, log P_B and log R.
    name
        The name of the objective in checkpoints.

    >>> def trajectory_balance(scores):
    ...     ratios = scores.log_pf - scores.log_pb
    ...     sums = torch.zeros(len(scores.log_reward)).index_add(0, scores.trajectory, ratios)
    ...     return (scores.log_z + sums - scores.log_reward).square().mean()
    >>> objective = gfn.OwnObjective(trajectory_balance)
    >>> env, net = gfn.HyperGrid(2, 3), gfn.Mlp((8,))
    >>> gfn.Trainer(env, gfn.HyperGridReward(), net, objective, batch=8).fit(2).steps_done
    2
    """

    function: Callable[[_gfn.Scores], torch.Tensor]
    log_z: bool = True
    flow: bool = False
    name: str = "own"

    def _loss(self) -> Any:
        if isinstance(self.function, type) or not callable(self.function):
            raise TypeError(
                f"function is a {type(self.function).__name__}: expected a function that takes Scores and "
                "returns a loss"
            )
        return self.function

    def _values(self) -> dict[str, Any]:
        return {
            "name": plain(self.name, "name"),
            "log_z": plain(self.log_z, "log_z"),
            "flow": plain(self.flow, "flow"),
        }
