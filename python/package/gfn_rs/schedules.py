"""Numbers that change with the step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Union

from ._settings import COUNT, Settings, plain


class Schedule(Settings):
    """A number that changes with the step."""

    def _json(self) -> Any:
        values = {name.rstrip("_"): value for name, value in self._values().items()}
        return {type(self).__name__: values}


@dataclass(frozen=True)
class Constant(Schedule):
    """A number that is the same at every step. A plain number has the same meaning."""

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
    """A straight line over `steps` steps, constant afterwards."""


@dataclass(frozen=True)
class Cosine(_Between):
    """Half a wave of the cosine over `steps` steps, constant afterwards."""


@dataclass(frozen=True)
class Exponential(_Between):
    """The same factor at each of `steps` steps, constant afterwards."""


@dataclass(frozen=True)
class InverseRoot(Schedule):
    """A number that is `from_` until step `steps`, and then falls with the square root of the step."""

    from_: float
    steps: int = field(metadata=COUNT)


Number = Union[float, Schedule]


def schedule_json(value: Number) -> Any:
    """Returns a schedule in the form that the extension reads; a number becomes a constant schedule."""
    return value._json() if isinstance(value, Schedule) else Constant(value)._json()
