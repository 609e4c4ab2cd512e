"""Settings of the sampling of trajectories."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from ._settings import COUNT, NOT_NEGATIVE, POSITIVE, SHARE, Settings, plain
from .schedules import Linear, Number, schedule_json

EPSILON = Linear(0.1, 0.01, 2_000)
"""The default of `Exploration.epsilon`, the share of uniform actions."""


@dataclass(frozen=True)
class Exploration(Settings):
    """The sampling of trajectories. Each setting but `max_steps` is a number, or a schedule of one.

    epsilon
        The share of uniform actions, from 0 to 1. The default, `EPSILON`, is 0 if the objective learns from
        on-policy trajectories only, or if actions can't be mixed with uniform ones; any other share is
        refused then. `None` is 0: no exploration.
    temperature
        A divisor of logits, above 0.
    exit_bias
        A number added to the exit's logit.
    noise
        A standard deviation added to Gaussian steps, at least 0; discrete environments refuse it.
    reward_exponent
        The exponent of R in training, a schedule that ends at 1: `Linear(0.1, 1, steps)` begins with a flat
        reward. Buffers and exact distances use R itself; loss and log Z of a step use its own target.
    max_steps
        The largest number of steps of a trajectory.
    """

    epsilon: Number | None = field(default=EPSILON, metadata=SHARE)
    temperature: Number = field(default=1.0, metadata=POSITIVE)
    exit_bias: Number = 0.0
    noise: Number = field(default=0.0, metadata=NOT_NEGATIVE)
    reward_exponent: Number = field(default=1.0, metadata=POSITIVE)
    max_steps: int = field(default=100_000, metadata=COUNT)

    def __reduce__(self) -> Any:
        # The default object itself must be kept by a copy, because it is recognised by identity.
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        if self.epsilon is EPSILON:
            del values["epsilon"]
        return _restore, (values,)

    def _training(self) -> dict[str, Any]:
        """Returns the settings that the trainer's configuration in the extension has."""
        schedules = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "max_steps"}
        if self.epsilon is EPSILON:
            # The library then chooses the default, which is 0 if exploration isn't possible.
            del schedules["epsilon"]
        values = {name: schedule_json(0.0 if value is None else value) for name, value in schedules.items()}
        return {**values, "max_steps": plain(self.max_steps, "max_steps")}


def _restore(values: dict[str, Any]) -> Exploration:
    return Exploration(**values)
