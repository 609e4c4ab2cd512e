"""Settings of the updates of parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ._settings import NOT_NEGATIVE, POSITIVE, SHARE, Settings, bounds, plain
from .schedules import InverseRoot, Number, schedule_json

LR_SCALE = InverseRoot(1.0, 1_000)
"""The default of `Adam.schedule`, a factor on learning rates."""


@dataclass(frozen=True)
class Average(Settings):
    """A moving average of the parameters, which `trainer.take_average()` copies to the policy.

    decay
        The share of the average that remains after each step, at least 0 and below 1.
    sampling
        True if fresh trajectories are drawn with the averaged parameters.
    """

    decay: float = field(default=0.999, metadata=SHARE)
    sampling: bool = False


@dataclass(frozen=True)
class TransitionBatches(Settings):
    """Updates on single transitions of a batch's trajectories, for the objectives of detailed balance,
    including modified and forward-looking ones.

    size
        The number of transitions per update, at least 1.
    updates
        The number of updates per step, at least 1.
    """

    size: int = field(metadata=bounds(1))
    updates: int = field(default=1, metadata=bounds(1))

    def _json(self) -> Any:
        return {"size": self.size, "updates_per_draw": self.updates}


@dataclass(frozen=True)
class Adam(Settings):
    """The updates of parameters by the optimizer Adam.

    lr, log_z_lr
        Learning rates of the network and of log Z, at least 0.
    schedule
        A factor on both rates. By default it falls with the square root of the step; if the number of steps
        is known, `Linear(1, 0, steps)` ends closer to the target. `None` keeps the rates as they are.
    weight_decay
        The decoupled decay of weights, at least 0.
    max_norm
        The norm that gradients are clipped to, above 0. `None` doesn't clip.
    average
        A moving average of the parameters, `Average()`.
    chunk
        The number of transitions that are scored at once, if a whole batch takes too much memory. The
        gradient is the same.
    transitions
        Updates on single transitions instead of one update on whole trajectories, `TransitionBatches(64,
        updates=8)`.
    """

    lr: float = field(default=1e-3, metadata=NOT_NEGATIVE)
    log_z_lr: float = field(default=1e-1, metadata=NOT_NEGATIVE)
    schedule: Number | None = field(default=LR_SCALE, metadata=NOT_NEGATIVE)
    weight_decay: float = field(default=0.0, metadata=NOT_NEGATIVE)
    max_norm: float | None = field(default=None, metadata=POSITIVE)
    average: Average | None = None
    chunk: int | None = field(default=None, metadata=bounds(1))
    transitions: TransitionBatches | None = None

    def _rates(self) -> dict[str, Any]:
        """Returns the settings that the optimizer's configuration in the extension has."""
        return {
            name: plain(getattr(self, name), name) for name in ("lr", "log_z_lr", "weight_decay", "max_norm")
        }

    def _training(self) -> dict[str, Any]:
        """Returns the settings that the trainer's configuration in the extension has."""
        return {
            "lr_scale": schedule_json(1.0 if self.schedule is None else self.schedule),
            "chunk": plain(self.chunk, "chunk"),
            "transitions": None if self.transitions is None else self.transitions._json(),
        }
