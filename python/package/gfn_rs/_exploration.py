"""Settings of exploration in the sampling of training trajectories."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from ._settings import COUNT, NOT_NEGATIVE, POSITIVE, SHARE, Settings, plain
from ._schedules import Linear, Number, schedule_json

EPSILON = Linear(0.1, 0.01, 2_000)
"""The default of `Exploration.epsilon`, which is the probability of a uniform action."""


@dataclass(frozen=True)
class Exploration(Settings):
    """The settings of exploration. Each setting but `max_steps` is a number, or a schedule of a number.

    epsilon
        The probability that an action is drawn uniformly from all legal actions, from 0 to 1. If the
        objective is on-policy, or if the environment has no uniform actions, the default `EPSILON` is
        replaced by 0, and any other value above 0 is an error. `None` is equal to 0.
    temperature
        The number that logits are divided by, above 0.
    exit_bias
        A number added to the exit's logit.
    noise
        The standard deviation of noise that is added to Gaussian steps, at least 0. Environments without
        Gaussian steps accept 0 only.
    reward_exponent
        The exponent of R in training, a schedule that ends at 1. For example, `Linear(0.1, 1, steps)` begins
        with an almost flat reward. The loss and log Z of a step are for R to the power of the step's
        exponent. Replay buffers and exact evaluations use R itself.
    max_steps
        The largest number of steps of a trajectory.

    >>> gfn.Exploration(epsilon=gfn.Linear(0.5, 0.0, 500), temperature=1.5).temperature
    1.5
    """

    epsilon: Number | None = field(default=EPSILON, metadata=SHARE)
    temperature: Number = field(default=1.0, metadata=POSITIVE)
    exit_bias: Number = 0.0
    noise: Number = field(default=0.0, metadata=NOT_NEGATIVE)
    reward_exponent: Number = field(default=1.0, metadata=POSITIVE)
    max_steps: int = field(default=100_000, metadata=COUNT)

    def __reduce__(self) -> Any:
        # A copy of these settings must have the same object `EPSILON`, because the default is recognised by
        # identity.
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        if self.epsilon is EPSILON:
            del values["epsilon"]
        return _restore, (values,)

    def _training(self) -> dict[str, Any]:
        """Returns the settings that the extension reads as part of the trainer's configuration."""
        schedules = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "max_steps"}
        if self.epsilon is EPSILON:
            # If the settings don't contain `epsilon`, the library uses its own default. This default is 0 if
            # the environment has no uniform actions, or if the objective is on-policy.
            del schedules["epsilon"]
        values = {name: schedule_json(0.0 if value is None else value) for name, value in schedules.items()}
        return {**values, "max_steps": plain(self.max_steps, "max_steps")}


def _restore(values: dict[str, Any]) -> Exploration:
    return Exploration(**values)
