"""Schedules: numbers that change with the training step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Union

from ._settings import COUNT, Settings, plain


class Schedule(Settings):
    """The base class of schedules, which are numbers that change with the training step.

    >>> isinstance(gfn.Linear(1, 0, 500), gfn.Schedule)
    True
    """

    def _json(self) -> Any:
        values = {name.rstrip("_"): value for name, value in self._values().items()}
        return {type(self).__name__: values}


@dataclass(frozen=True)
class Constant(Schedule):
    """A schedule with the same number, `value`, at every step. A setting that accepts a schedule also
    accepts a plain number with this meaning.

    >>> gfn.Exploration(epsilon=gfn.Constant(0.1)).epsilon.value
    0.1
    """

    value: float

    def _json(self) -> Any:
        return {"Constant": plain(float(self.value), "value")}


@dataclass(frozen=True)
class _Between(Schedule):
    """The base class of schedules from one number to another."""

    from_: float
    to: float
    steps: int = field(metadata=COUNT)


@dataclass(frozen=True)
class Linear(_Between):
    """A schedule that changes linearly from `from_` to `to` over `steps` steps, and is constant afterwards.

    >>> net, adam = gfn.Mlp((8,)), gfn.Adam(schedule=gfn.Linear(1, 0, 10))
    >>> trainer = gfn.Trainer(gfn.HyperGrid(2, 3), gfn.HyperGridReward(), net, batch=8, adam=adam)
    >>> trainer.fit(5).lr_factor
    0.5
    """


@dataclass(frozen=True)
class Cosine(_Between):
    """A schedule that changes from `from_` to `to` along half a period of a cosine over `steps` steps, and is
    constant afterwards.

    >>> net, adam = gfn.Mlp((8,)), gfn.Adam(schedule=gfn.Cosine(1, 0, 10))
    >>> trainer = gfn.Trainer(gfn.HyperGrid(2, 3), gfn.HyperGridReward(), net, batch=8, adam=adam)
    >>> round(trainer.fit(5).lr_factor, 6)
    0.5
    """


@dataclass(frozen=True)
class Exponential(_Between):
    """A schedule that changes from `from_` to `to` by the same factor at each of `steps` steps, and is
    constant afterwards. The numbers must have the same sign, and neither may be 0.

    >>> net, adam = gfn.Mlp((8,)), gfn.Adam(schedule=gfn.Exponential(1, 0.01, 10))
    >>> trainer = gfn.Trainer(gfn.HyperGrid(2, 3), gfn.HyperGridReward(), net, batch=8, adam=adam)
    >>> round(trainer.fit(5).lr_factor, 6)
    0.1
    """


@dataclass(frozen=True)
class InverseRoot(Schedule):
    """A schedule that is `from_` / sqrt(1 + step / `steps`), for runs of unknown length. At step `steps` it
    is `from_` divided by the square root of 2.

    >>> net, adam = gfn.Mlp((8,)), gfn.Adam(schedule=gfn.InverseRoot(1, 4))
    >>> trainer = gfn.Trainer(gfn.HyperGrid(2, 3), gfn.HyperGridReward(), net, batch=8, adam=adam)
    >>> round(trainer.fit(16).lr_factor, 2)
    0.45
    """

    from_: float
    steps: int = field(metadata=COUNT)


Number = Union[float, Schedule]


def schedule_json(value: Number) -> Any:
    """Returns a schedule in the form that the extension reads. A number is converted to a constant
    schedule."""
    return value._json() if isinstance(value, Schedule) else Constant(value)._json()
