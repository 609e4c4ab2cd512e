"""Numbers that change with the step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Union

from ._settings import COUNT, Settings, plain


class Schedule(Settings):
    """A number that changes with the step. A plain number stays as it is."""

    def _json(self) -> Any:
        values = {name.rstrip("_"): value for name, value in self._values().items()}
        return {type(self).__name__: values}


@dataclass(frozen=True)
class Constant(Schedule):
    """The same number at every step."""

    value: float

    def _json(self) -> Any:
        return {"Constant": plain(float(self.value), "value")}


@dataclass(frozen=True)
class _Between(Schedule):
    """What goes from one number to another."""

    from_: float
    to: float
    steps: int = field(metadata=COUNT)


@dataclass(frozen=True)
class Linear(_Between):
    """In a straight line over `steps` steps, then constant."""


@dataclass(frozen=True)
class Cosine(_Between):
    """Along half a wave of the cosine, then constant."""


@dataclass(frozen=True)
class Exponential(_Between):
    """By the same factor at every step, then constant."""


@dataclass(frozen=True)
class InverseRoot(Schedule):
    """With the square root of the step, from `from_` until step `steps`."""

    from_: float
    steps: int = field(metadata=COUNT)


Number = Union[float, Schedule]


def schedule_json(value: Number) -> Any:
    """Returns a schedule, or a number as a constant one, as the extension reads it."""
    return value._json() if isinstance(value, Schedule) else Constant(value)._json()
