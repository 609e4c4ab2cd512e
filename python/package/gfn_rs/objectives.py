"""Objectives: losses that are smallest if the policy samples in proportion to the reward."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Literal, Sequence

import torch

from . import _gfn
from ._settings import Settings, kind_name, needs, plain, variant
from .schedules import Number, schedule_json

Backward = Literal["trajectory_likelihood", "maximum_entropy"]
Regression = Literal["squared", "half_squared", "shifted_cosh", "absolute"]
Advantage = Literal["total", "reward_to_go", "baseline", "gae"]


def _advantage(name: Advantage, lambda_: float) -> Any:
    return {"Gae": {"lambda": plain(lambda_, "gae_lambda")}} if name == "gae" else variant(name)


class Objective(Settings):
    """The base class of all objectives."""

    regression: Regression = "squared"

    def _loss(self) -> Any:
        """Returns the Python function of a custom objective; None for any other objective."""
        return None

    def _prior(self) -> Any:
        """Returns the prior of a relative objective, a trainer or a policy without parameters; None for any
        other objective."""
        return None

    def _parts(self) -> dict[str, Any]:
        """Returns the settings of the trainer's parts that the objective needs."""
        return {}

    def _intrinsic(self) -> tuple[dict[str, Any], Any] | None:
        """Returns the coefficients of intrinsic rewards, and the settings or the function of their novelty;
        None without intrinsic rewards."""
        return None


@dataclass(frozen=True)
class _Regression(Objective):
    """The base class of objectives with residuals.

    regression
        The loss of a residual. For policy gradients, it is the loss between log F and the returns.
    """

    regression: Regression = field(default="squared", kw_only=True)

    def _values(self) -> dict[str, Any]:
        values = super()._values()
        # The trainer reads this setting itself, so the objective's values don't contain it.
        del values["regression"]
        return values


@dataclass(frozen=True)
class TrajectoryBalance(_Regression):
    """Trajectory balance (Malkin et al. 2022).

    backward
        The objective by which P_B is trained: `trajectory_likelihood`, the likelihood of the paths that P_F
        takes (Gritsaev et al. 2025), or `maximum_entropy`, under which all paths to an object are equally
        likely (Mohammadpour et al. 2024). None trains P_B by trajectory balance, too.
    regression
        The loss of a residual.
    """

    backward: Backward | None = None


@dataclass(frozen=True)
class LogPartitionVariance(_Regression):
    """The variance of the quantity that trajectory balance makes constant (VarGrad; Zhang et al. 2023). No
    log Z is learned."""

    backward: Backward | None = None


class _Relative(_Regression):
    """The base class of objectives relative to a prior."""

    def __post_init__(self) -> None:
        super().__post_init__()
        from .policies import Uniform
        from .training import Trainer

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
    """Relative trajectory balance (Venkatraman et al. 2024): the posterior of a prior, x in proportion to
    prior(x) R(x)^`beta`.

    `prior` is a trainer of the same environment, or `Uniform()`. Its policy is copied when the new trainer is
    built, and the copy never changes. The new policy has random parameters; to start at the prior, copy them:

    >>> import copy
    >>> import gfn_rs as gfn
    >>> env, reward = gfn.HyperGrid(2, 4), lambda points: -points.sum(axis=1).astype(float)
    >>> prior = gfn.Trainer(env, gfn.HyperGridReward(), gfn.Mlp((16,)), batch=16).fit(10)
    >>> posterior = gfn.Trainer(env, reward, copy.deepcopy(prior.network), gfn.RelativeTrajectoryBalance(prior), batch=16)
    >>> posterior.fit(10).steps_done
    10
    """

    prior: Any
    beta: float = 1.0


@dataclass(frozen=True)
class RelativeLogPartitionVariance(_Relative):
    """The variance form of `RelativeTrajectoryBalance`: a mean over the batch replaces the learned log Z."""

    prior: Any
    beta: float = 1.0


@dataclass(frozen=True)
class TrustPcl(_Relative):
    """Path consistency of reinforcement learning within a trust region (Nachum et al. 2018), of temperature
    `alpha`, around the policy of `prior`: the target is that of `RelativeTrajectoryBalance` with beta = 1 /
    alpha.
    """

    prior: Any
    alpha: float = 1.0


@dataclass(frozen=True)
class DetailedBalance(_Regression):
    """Detailed balance (Bengio et al. 2023).

    forward_looking
        True if flows learn the rest of the reward after a state's partial reward (Pan et al. 2023).
    backward
        The objective of P_B, as in `TrajectoryBalance`.
    regression
        The loss of a residual.
    """

    forward_looking: bool = False
    backward: Backward | None = None


@dataclass(frozen=True)
class ModifiedDetailedBalance(_Regression):
    """Detailed balance without state flows, for environments whose states can all be finished (Deleu et al.
    2022).

    target_network
        The number of steps after which a copy of the network gets its current parameters; the loss reads the
        exit's probability after a step from the copy. None uses the network itself.
    regression
        The loss of a residual.
    """

    target_network: int | None = None

    def _parts(self) -> dict[str, Any]:
        return {"target_network": plain(self.target_network, "target_network")}


@dataclass(frozen=True)
class SubTrajectoryBalance(_Regression):
    """Sub-trajectory balance (Madan et al. 2023).

    weighting
        The weights of sub-trajectories; by default geometric ones of `lambda_` within each trajectory.
    lambda_
        The base of geometric weights, above 0 and at most 1.
    forward_looking, backward, regression
        The settings of `DetailedBalance`.
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
    """The novelty of a state: the error of a network that learns the output of a random network (Burda et al.
    2019). For vectors, acyclic graphs and points.

    hidden, outputs
        The hidden layers and the number of outputs of both networks.
    lr
        The learning rate.
    """

    hidden: Sequence[int] = (256, 256)
    outputs: int = 128
    lr: float = 1e-3

    @property
    def _config(self) -> dict[str, Any]:
        """Returns the settings of the networks by their names in the extension."""
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
        Factors on the novelty of the state that a transition leads to, and of the finished object. They
        change the target unless they are 0, so decrease them: `Linear(0.1, 0, 500)`. `exact` compares with
        the reward alone.
    novelty
        `RandomDistillation()`, or a function of states that returns a number of at least 0 for each.
    regression
        The loss of a residual.
    """

    edges: Number
    terminal: Number = 0.0
    novelty: Any = field(default_factory=RandomDistillation)


@dataclass(frozen=True)
class AugmentedDetailedBalance(_Augmented):
    """Detailed balance with intrinsic rewards. The settings are those of `AugmentedTrajectoryBalance`."""

    edges: Number
    terminal: Number = 0.0
    novelty: Any = field(default_factory=RandomDistillation)


@dataclass(frozen=True)
class MaximumLikelihood(Objective):
    """The likelihood of given trajectories: the policy learns the distribution of the objects of
    `Data(objects, share=1.0)`, and nothing about the reward.
    """


@dataclass(frozen=True)
class FlowMatching(_Regression):
    """Flow matching (Bengio et al. 2021): the flow into a state equals the flow out of it."""


@dataclass(frozen=True)
class PolicyGradient(_Regression):
    """The policy gradient of the soft return.

    advantage
        The advantage of an action: the `total` return, the `reward_to_go`, the reward to go less a
        `baseline`, or generalised advantage estimation, `gae`, with its parameter `gae_lambda` from 0 to 1.
    regression
        The loss between log F and the returns.
    """

    advantage: Advantage = "gae"
    gae_lambda: float = field(default=0.7, metadata=needs("advantage", "gae"))

    def _values(self) -> dict[str, Any]:
        return {"advantage": _advantage(self.advantage, self.gae_lambda)}


@dataclass(frozen=True)
class ProximalPolicy(_Regression):
    """Proximal policy optimisation of the soft return.

    advantage, gae_lambda, regression
        The settings of `PolicyGradient`.
    clip, kl
        The range of probability ratios, above 0; the weight of the divergence from the policy that sampled.
    value_weight
        The weight of the loss of log F.
    epochs
        The number of passes over each batch, at least 1.
    """

    advantage: Advantage = "gae"
    gae_lambda: float = field(default=0.7, metadata=needs("advantage", "gae"))
    clip: float = 0.2
    kl: float = 0.0
    value_weight: float = 0.5
    epochs: int = 4

    def _values(self) -> dict[str, Any]:
        numbers = {
            name: plain(getattr(self, name), name) for name in ("clip", "kl", "value_weight", "epochs")
        }
        return {"advantage": _advantage(self.advantage, self.gae_lambda), **numbers}


@dataclass(frozen=True)
class OwnObjective(Objective):
    """A custom objective.

    function
        A function of `Scores`, the log-probabilities of a batch, that returns the loss, a scalar tensor. The
        objective learns from any trajectory, including explored and replayed ones: its loss must be smallest
        on each of them if the policy is right.
    log_z, flow
        True if the function reads log Z or log F, besides log P_F, log P_B and log R.
    name
        The name in checkpoints.
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
