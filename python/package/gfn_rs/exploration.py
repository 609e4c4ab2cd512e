"""Settings of the sampling of trajectories."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from ._settings import COUNT, NOT_NEGATIVE, POSITIVE, SHARE, Settings, plain
from .schedules import Linear, Number, schedule_json

EPSILON = Linear(0.1, 0.01, 2_000)
"""The default share of uniform actions."""


@dataclass(frozen=True)
class Exploration(Settings):
    """The sampling of trajectories. Each setting but `max_steps` is a number, or a schedule of one.

    epsilon
        The share of uniform actions, from 0 to 1. The default, `EPSILON`, is 0 if the objective learns from
        the policy's own trajectories alone, and if actions can't be mixed with uniform ones; any other share
        is refused then. `None` is 0: nothing explores.
    temperature
        A divisor of logits, above 0.
    exit_bias
        A number added to the exit's logit.
    noise
        A standard deviation added to Gaussian steps, at least 0; discrete environments refuse it.
    reward_exponent
        The exponent of R in training, a schedule that ends at 1: `Linear(0.1, 1, steps)` begins with a flat
        reward. Buffers and exact distances are of R itself; loss and log Z of a step are of its own target.
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
        # A copy that keeps the default must have the very object, by which it is recognised.
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        if self.epsilon is EPSILON:
            del values["epsilon"]
        return _restore, (values,)

    def _training(self) -> dict[str, Any]:
        """Returns the settings as the trainer's configuration has them."""
        schedules = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "max_steps"}
        if self.epsilon is EPSILON:
            # The library chooses: 0 if nothing can explore.
            del schedules["epsilon"]
        values = {name: schedule_json(0.0 if value is None else value) for name, value in schedules.items()}
        return {**values, "max_steps": plain(self.max_steps, "max_steps")}


def _restore(values: dict[str, Any]) -> Exploration:
    return Exploration(**values)
