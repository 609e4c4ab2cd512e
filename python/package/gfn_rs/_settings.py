"""The base classes of settings, and the checks of their values. A class of settings is a dataclass. The
extension reads its attributes, or a dictionary of them."""

from __future__ import annotations

import math
import numbers
import os
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from inspect import signature
from typing import Any, Literal, TypeVar, Union

import numpy as np
import torch
from numpy.typing import ArrayLike

from ._suggestions import ConstructorSignature, refuse_unknown

Own = TypeVar("Own", bound="Settings")

# The largest number of steps, of objects or of entries of a buffer that one call accepts.
MOST = 2**40
# The largest number of objects that one call draws.
AT_ONCE = 2**28
# The largest size of a network, a state or a batch. A size is limited, because a failed allocation would end
# the process.
LARGEST_SIZE = 2**20
# The largest seed of random numbers.
LARGEST_SEED = 2**64 - 1


@dataclass(frozen=True)
class Bounds:
    """The bounds of a number, or of each number in a list. A number must be at least `least`, at most `most`
    and larger than `above`; None means no bound. `what` is a noun for error messages."""

    least: float | None = None
    most: float | None = None
    above: float | None = None
    what: str = "a number"

    def excludes(self, value: Any) -> bool:
        """Returns True if a number is outside of these bounds."""
        return bool(
            (self.least is not None and value < self.least)
            or (self.most is not None and value > self.most)
            or (self.above is not None and value <= self.above)
        )

    def __str__(self) -> str:
        if self.above is not None:
            return f"{self.what} above {self.above:g}"
        if self.most is None:
            return f"{self.what} of at least {self.least:g}"
        return f"{self.what} from {self.least:g} to {self.most:g}"


def bounds(
    least: float | None = None, most: float | None = None, above: float | None = None
) -> dict[str, Any]:
    """Returns the metadata of a dataclass field whose numbers have bounds.

    In a field without this metadata, a whole number must be from 0 to `LARGEST_SIZE`, and any other number
    must be finite.
    """
    return {"bounds": Bounds(least, most, above)}


def needs(other: str, *values: str) -> dict[str, Any]:
    """Returns the metadata of a dataclass field that has a meaning only if the field `other` has one of the
    values `values`."""
    return {"needs": (other, values)}


# The bounds of a number of steps or objects, which may be larger than `LARGEST_SIZE`.
COUNT = bounds(0, MOST)
# The bounds, 0 and 1, of a share or a probability.
SHARE = bounds(0.0, 1.0)
# The bounds of a number that must be at least 0.
NOT_NEGATIVE = bounds(0.0)
# The bounds of a number that must be above 0.
POSITIVE = bounds(above=0.0)


def variant(name: str) -> str:
    """Converts a name to the spelling of enum variants in Rust: `shared_torso` becomes `SharedTorso`."""
    return "".join(part.capitalize() for part in name.split("_"))


def plain(value: Any, name: str) -> Any:
    """Converts a number, path, array or settings object to a value that JSON can represent."""
    if hasattr(value, "_json"):
        return value._json()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        return [plain(item, name) for item in value.tolist()]
    if isinstance(value, (list, tuple)):
        return [plain(item, name) for item in value]
    if hasattr(value, "__fspath__"):
        return str(value)
    if isinstance(value, dict):
        return {str(key): plain(item, f"{name}[{key!r}]") for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name} is {value}: expected a finite number")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(
        f"{name} is a {type(value).__name__}: expected a number, a text, or a list of numbers or texts"
    )


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, (numbers.Real, np.number)) and not isinstance(value, bool)


def _words(hint: Any) -> str:
    """Returns the words by which an error message describes a type."""
    words = {
        int: "a whole number",
        float: "a number",
        bool: "True or False",
        str: "a text",
        type(None): "None",
        torch.nn.Module: "a torch.nn.Module",
    }
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return "one of " + ", ".join(repr(part) for part in parts)
    if origin in (Union, types.UnionType):
        return " or ".join(_words(part) for part in parts)
    if origin is tuple:
        return "a tuple of " + ", ".join(_words(part) for part in parts)
    if origin is Iterable or origin is not None and issubclass(origin, Sequence):
        return f"a list, in which each element is {_words(parts[0])}"
    if origin is not None and issubclass(origin, os.PathLike):
        return "a path"
    if origin is Callable:
        return "a function"
    if isinstance(hint, type) and issubclass(hint, Settings):
        return f"{hint.__name__}(...)"
    return words.get(hint) or str(getattr(hint, "__name__", hint))


def _fits(value: Any, hint: Any) -> bool:
    """Returns True if a value has the type `hint`, which is any type that the classes of settings use."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any or hint is ArrayLike:
        return True
    if hint is int:
        return _is_whole(value)
    if hint is float:
        return _is_number(value)
    if hint is bool:
        return isinstance(value, (bool, np.bool_))
    if origin is Literal:
        return isinstance(value, str) and value in parts
    if origin in (Union, types.UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is tuple:
        return isinstance(value, (tuple, list)) and len(value) == len(parts) and all(map(_fits, value, parts))
    if origin is Iterable or origin is not None and issubclass(origin, Sequence):
        # In Python a text is a sequence of texts, but a text is never meant as a list here.
        return (
            isinstance(value, (Sequence, np.ndarray))
            and not isinstance(value, str)
            and all(_fits(v, parts[0]) for v in value)
        )
    if origin is dict:
        return isinstance(value, dict)
    if origin is not None and issubclass(origin, os.PathLike):
        return isinstance(value, os.PathLike)
    return isinstance(value, hint) if isinstance(hint, type) else callable(value)


def _counts(hint: Any) -> bool:
    """Returns True if a type is or contains `int`. All whole numbers in settings are counts, so they must be
    at least 0."""
    return hint is int or any(_counts(part) for part in typing.get_args(hint))


def _check_bounds(value: Any, name: str, whole: Bounds, real: Bounds | None) -> None:
    """Raises an error if a number, or a number in a list, is outside of its bounds. If `real` is given, any
    number must be within `real`. A whole number must also be within `whole`."""
    if isinstance(value, (list, tuple)):
        for item in value:
            _check_bounds(item, name, whole, real)
        return
    if not _is_number(value):
        return
    if isinstance(value, (float, np.floating)) and not math.isfinite(value):
        raise ValueError(f"{name} is {value}: expected a finite number")
    if real is not None and real.excludes(value):
        raise ValueError(f"{name} is {value}: expected {real}")
    if _is_whole(value) and whole.excludes(value):
        raise ValueError(f"{name} is {value}: expected a whole number from {whole.least} to {whole.most}")


def check(value: Any, name: str, hint: Any, limits: Bounds | None = None) -> None:
    """Raises an error for a value that isn't of the type `hint`, or a number outside of its bounds."""
    if not _fits(value, hint):
        kind = ValueError if _is_choice(hint) and isinstance(value, str) else TypeError
        raise kind(f"{name} is {value!r:.200}: expected {_words(hint)}")
    least, most = (0, LARGEST_SIZE) if _counts(hint) else (-MOST, MOST)
    if limits is not None and _counts(hint):
        least = least if limits.least is None else int(limits.least)
        most = most if limits.most is None else int(limits.most)
        limits = None
    _check_bounds(value, name, Bounds(least, most), limits)


def _is_choice(hint: Any) -> bool:
    return typing.get_origin(hint) is Literal or any(
        typing.get_origin(part) is Literal for part in typing.get_args(hint)
    )


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """Returns the types of a class's fields by name. The result is cached, because its computation takes a
    millisecond."""
    return typing.get_type_hints(kind)


def kind_name(value: Any) -> str:
    """Returns the name of `value` if it is a class, otherwise the name of its class."""
    return value.__name__ if isinstance(value, type) else type(value).__name__


class Settings:
    """The base class of settings. The names and values of settings are checked when an object is created."""

    __signature__ = ConstructorSignature()

    def __new__(cls: type[Own], *args: Any, **settings: Any) -> Own:
        if settings:
            refuse_unknown(cls.__name__, signature(cls.__init__).parameters, settings)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        kind: Any = type(self)
        hints = _hints(kind)
        for field in fields(self):  # type: ignore[arg-type]
            name, value = f"{type(self).__name__}.{field.name}", getattr(self, field.name)
            check(value, name, hints[field.name], field.metadata.get("bounds"))
            if "needs" in field.metadata and np.any(value != field.default):
                other, values = field.metadata["needs"]
                if getattr(self, other) not in values:
                    expected = " or ".join(map(repr, values))
                    is_now = f"{other} is {getattr(self, other)!r}"
                    reason = (
                        f"which has no effect if {is_now}: expected {other} to be {expected}, or the default "
                        f"of {field.name}"
                    )
                    raise ValueError(f"{name} is {value!r}, {reason}")

    def _values(self) -> dict[str, Any]:
        """Returns the values of all settings, under the names that the extension uses."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {name: plain(value, f"{type(self).__name__}.{name}") for name, value in named.items()}

    def _described(self) -> Any:
        """Returns the description of these settings that is stored in checkpoints."""
        return self._values()

    def _by_class(self) -> dict[str, Any]:
        """Returns `{class name: values}`, which is what the extension reads."""
        return {type(self).__name__: self._values()}
