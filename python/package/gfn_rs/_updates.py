"""Settings of the optimizer, which updates parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ._settings import NOT_NEGATIVE, POSITIVE, SHARE, Settings, bounds, plain
from ._schedules import InverseRoot, Number, schedule_json

LR_SCALE = InverseRoot(1.0, 1_000)
"""The default of `Adam.schedule`, which is a factor on both learning rates."""


@dataclass(frozen=True)
class Average(Settings):
    """A moving average of the parameters, which `trainer.take_average()` copies to the policy.

    decay
        The weight of the old average at each step, at least 0 and below 1. The new parameters have the weight
        1 - `decay`.
    sampling
        True if fresh trajectories are drawn with the averaged parameters.

    >>> net, adam = gfn.Mlp((8,)), gfn.Adam(average=gfn.Average(decay=0.9))
    >>> trainer = gfn.Trainer(gfn.HyperGrid(2, 3), gfn.HyperGridReward(), net, batch=8, adam=adam)
    >>> trainer.fit(2).take_average().steps_done
    2
    """

    decay: float = field(default=0.999, metadata=SHARE)
    sampling: bool = False


@dataclass(frozen=True)
class TransitionBatches(Settings):
    """Updates on random transitions of a batch instead of whole trajectories. The objective must be a
    detailed balance objective, which may be modified or forward-looking.

    size
        The number of transitions per update, at least 1.
    updates
        The number of updates per step, at least 1.

    >>> net, adam = gfn.Mlp((8,)), gfn.Adam(transitions=gfn.TransitionBatches(4, updates=2))
    >>> objective = gfn.DetailedBalance()
    >>> trainer = gfn.Trainer(gfn.HyperGrid(2, 3), gfn.HyperGridReward(), net, objective, batch=8, adam=adam)
    >>> trainer.fit(2).steps_done
    2
    """

    size: int = field(metadata=bounds(1))
    updates: int = field(default=1, metadata=bounds(1))

    def _json(self) -> Any:
        return {"size": self.size, "updates_per_draw": self.updates}


@dataclass(frozen=True)
class Adam(Settings):
    """The updates of parameters by the optimizer Adam.

    lr, log_z_lr
        The learning rates of the network and of log Z, at least 0.
    schedule
        A factor on both learning rates, which changes with the step. By default it is 1 over the square root
        of 1 + step / 1,000. If the number of steps is known, the policy ends closer to the target with
        `Linear(1, 0, steps)`. With `None`, the rates are constant.
    weight_decay
        The decoupled decay of weights, at least 0.
    max_norm
        The norm that gradients are clipped to, above 0. With `None`, gradients aren't clipped.
    average
        The settings of a moving average of the parameters, `Average()`. `None` for no average.
    chunk
        The largest number of transitions that are scored at once, if a whole batch takes too much memory. The
        gradient is the same as without chunks.
    transitions
        The settings of updates on single transitions, such as `TransitionBatches(64, updates=8)`. With
        `None`, each step makes one update on whole trajectories.

    >>> adam = gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 500), max_norm=10.0)
    >>> net = gfn.Mlp((8,))
    >>> gfn.Trainer(gfn.HyperGrid(2, 3), gfn.HyperGridReward(), net, batch=8, adam=adam).fit(2).steps_done
    2
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
        """Returns the settings that the extension reads as the optimizer's configuration."""
        return {
            name: plain(getattr(self, name), name) for name in ("lr", "log_z_lr", "weight_decay", "max_norm")
        }

    def _training(self) -> dict[str, Any]:
        """Returns the settings that the extension reads as part of the trainer's configuration."""
        return {
            "lr_scale": schedule_json(1.0 if self.schedule is None else self.schedule),
            "chunk": plain(self.chunk, "chunk"),
            "transitions": None if self.transitions is None else self.transitions._json(),
        }
