"""Objectives: losses that are least where the policy samples in proportion to the reward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Literal

import torch

from . import _gfn
from ._settings import Settings, plain, variant

Advantage = Literal["total", "reward_to_go", "baseline", "gae"]


def _advantage(name: Advantage, lambda_: float) -> Any:
    return {"Gae": {"lambda": plain(lambda_, "gae_lambda")}} if name == "gae" else variant(name)


class Objective(Settings):
    """What the objectives share."""

    def _loss(self) -> Any:
        """An objective that is a function of Python."""
        return None


@dataclass(frozen=True)
class TrajectoryBalance(Objective):
    """Trajectory balance (Malkin et al. 2022). `backward` trains P_B, too, by an objective of its own."""

    backward: Literal["trajectory_likelihood", "maximum_entropy"] | None = None


@dataclass(frozen=True)
class LogPartitionVariance(Objective):
    """The variance of what trajectory balance makes equal (VarGrad; Zhang et al. 2023). No log Z is learned."""


@dataclass(frozen=True)
class DetailedBalance(Objective):
    """Detailed balance (Bengio et al. 2023). Forward-looking, flows learn what is left of partial rewards (Pan et al. 2023)."""

    forward_looking: bool = False


@dataclass(frozen=True)
class ModifiedDetailedBalance(Objective):
    """Detailed balance without state flows, where every state can be finished (Deleu et al. 2022)."""


@dataclass(frozen=True)
class SubTrajectoryBalance(Objective):
    """Sub-trajectory balance (Madan et al. 2023), with geometric weights of `lambda_` within each trajectory by default."""

    weighting: Literal["geometric_within", "geometric", "equal", "equal_within", "tb", "db", "modified_db"] = "geometric_within"
    lambda_: float = 0.9
    forward_looking: bool = False

    def _values(self) -> dict[str, Any]:
        name = variant(self.weighting)
        weighting: Any = {name: {"lambda": plain(self.lambda_, "lambda_")}} if self.weighting.startswith("geometric") else name
        return {"weighting": weighting, "forward_looking": self.forward_looking}


@dataclass(frozen=True)
class FlowMatching(Objective):
    """Flow matching (Bengio et al. 2021): what flows into a state flows out of it."""


@dataclass(frozen=True)
class PolicyGradient(Objective):
    """The policy gradient of the soft return."""

    advantage: Advantage = "gae"
    gae_lambda: float = 0.7

    def _values(self) -> dict[str, Any]:
        return {"advantage": _advantage(self.advantage, self.gae_lambda)}


@dataclass(frozen=True)
class ProximalPolicy(Objective):
    """Proximal policy optimisation of the soft return."""

    advantage: Advantage = "gae"
    gae_lambda: float = 0.7
    clip: float = 0.2
    kl: float = 0.0
    value_weight: float = 0.5
    epochs: int = 4

    def _values(self) -> dict[str, Any]:
        numbers = {name: plain(getattr(self, name), name) for name in ("clip", "kl", "value_weight", "epochs")}
        return {"advantage": _advantage(self.advantage, self.gae_lambda), **numbers}


@dataclass(frozen=True)
class OwnObjective(Objective):
    """An objective of your own: a function from `Scores`, the log-probabilities of a batch, to its loss, a scalar tensor.

    `log_z` and `flow` say what it reads besides log P_F, log P_B and log R. It learns from any trajectories, explored and replayed
    ones among them: its loss must be least on each of them where the policy is right. A checkpoint knows it by `name`.
    """

    function: Callable[[_gfn.Scores], torch.Tensor]
    log_z: bool = True
    flow: bool = False
    name: str = "own"

    def _loss(self) -> Any:
        if isinstance(self.function, type) or not callable(self.function):
            raise TypeError(f"function is a {type(self.function).__name__}: expected a function of Scores that gives a loss")
        return self.function

    def _values(self) -> dict[str, Any]:
        return {"name": plain(self.name, "name"), "log_z": plain(self.log_z, "log_z"), "flow": plain(self.flow, "flow")}
