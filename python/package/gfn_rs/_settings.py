"""Settings are dataclasses; the extension reads them as JSON: the class, then the values by name."""

from __future__ import annotations

import json
import math
import numbers
import os
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cache
from typing import Any, Literal, Union

import numpy as np
from numpy.typing import ArrayLike

# The most of anything that is asked for at once: steps, objects, entries of a buffer.
MOST = 2**40
# The most objects that are drawn at once; more are drawn in parts.
AT_ONCE = 2**28
# The largest size of a network, a state or a batch: more takes more memory than there is, and a failed allocation ends the process.
LARGEST_SIZE = 2**20
# Whole numbers that aren't sizes.
_COUNTS = {"steps", "capacity", "after", "max_steps"}


def variant(name: str) -> str:
    """A name as the library's enums have it: `shared_torso` is `SharedTorso`."""
    return "".join(part.capitalize() for part in name.split("_"))


def plain(value: Any, name: str) -> Any:
    """A value that JSON can hold, whatever kind of number, path or array it is."""
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
    raise TypeError(f"{name} is a {type(value).__name__}: expected a number, a text or a list of them")


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, (numbers.Real, np.number)) and not isinstance(value, bool)


def _words(hint: Any) -> str:
    """What a type asks for, in words."""
    words = {int: "a whole number", float: "a number", bool: "True or False", str: "a text", type(None): "None"}
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return "one of " + ", ".join(repr(part) for part in parts)
    if origin in (Union, types.UnionType):
        return " or ".join(_words(part) for part in parts)
    if origin is tuple:
        return "a tuple of " + ", ".join(_words(part) for part in parts)
    if origin is not None and issubclass(origin, Sequence):
        return f"a list, each of it {_words(parts[0])}"
    if origin is not None and issubclass(origin, os.PathLike):
        return "a path"
    if origin is Callable:
        return "a function"
    return words.get(hint) or str(getattr(hint, "__name__", hint))


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a type as the classes of settings write them."""
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
    if origin is not None and issubclass(origin, Sequence):
        # A text is a sequence of texts, which nobody means.
        return isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str) and all(_fits(v, parts[0]) for v in value)
    if origin is dict:
        return isinstance(value, dict)
    if origin is not None and issubclass(origin, os.PathLike):
        return isinstance(value, os.PathLike)
    return isinstance(value, hint) if isinstance(hint, type) else callable(value)


def _counts(hint: Any) -> bool:
    """Whether its whole numbers count something: all that the settings have do."""
    return hint is int or any(_counts(part) for part in typing.get_args(hint))


def _within(value: Any, name: str, least: int) -> None:
    """Refuses numbers that the extension has no place for, in lists, too."""
    last = name.split(".")[-1]
    most = 2**64 - 1 if last == "seed" else MOST if last in _COUNTS else LARGEST_SIZE
    if isinstance(value, (list, tuple)):
        for item in value:
            _within(item, name, least)
    elif _is_whole(value) and not least <= value <= most:
        raise ValueError(f"{name} is {value}: expected a whole number from {least} to {most}")
    elif isinstance(value, (float, np.floating)) and not math.isfinite(value):
        raise ValueError(f"{name} is {value}: expected a finite number")


def checked(value: Any, name: str, hint: Any) -> None:
    """Refuses a value that isn't of this type: what it is, and what was expected."""
    if not _fits(value, hint):
        kind = ValueError if _is_choice(hint) and isinstance(value, str) else TypeError
        raise kind(f"{name} is {value!r:.200}: expected {_words(hint)}")
    _within(value, name, 0 if _counts(hint) else -LARGEST_SIZE)


def _is_choice(hint: Any) -> bool:
    return typing.get_origin(hint) is Literal or any(typing.get_origin(part) is Literal for part in typing.get_args(hint))


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """The types of a class's values; reading them takes a millisecond."""
    return typing.get_type_hints(kind)


# Settings that mean something beside some values of another one alone.
_BESIDE = {
    "GraphNet.heads": ("conv", ("transformer", "gat", "gps")),
    "SequenceNet.heads": ("kind", ("transformer",)),
    "SubTrajectoryBalance.lambda_": ("weighting", ("geometric_within", "geometric")),
    "PolicyGradient.gae_lambda": ("advantage", ("gae",)),
    "ProximalPolicy.gae_lambda": ("advantage", ("gae",)),
    "Replay.exponent": ("draw", ("reward_prioritised", "loss_prioritised", "rank_prioritised")),
    "Replay.rank_by": ("draw", ("rank_prioritised", "weighted_ranks")),
    "Replay.k": ("draw", ("weighted_ranks",)),
    "Diffusion.rate": ("process", ("ornstein_uhlenbeck",)),
    "Diffusion.beta_min": ("process", ("variance_preserving",)),
    "Diffusion.beta_max": ("process", ("variance_preserving",)),
    "MixtureTarget.seed": ("name", ("forty_modes",)),
    "StructureReward.bins": ("score", ("bde",)),
    "StructureReward.standardise": ("score", ("bge", "bic")),
    "StructureReward.alpha_mu": ("score", ("bge",)),
    "StructureReward.alpha_w": ("score", ("bge",)),
    "StructureReward.nu": ("score", ("bge",)),
}


class Settings:
    """What the classes of settings share: their values are checked when they are made."""

    def __post_init__(self) -> None:
        kind: Any = type(self)
        hints = _hints(kind)
        for field in fields(self):  # type: ignore[arg-type]
            name, value = f"{type(self).__name__}.{field.name}", getattr(self, field.name)
            checked(value, name, hints[field.name])
            if name in _BESIDE and np.any(value != field.default):
                other, values = _BESIDE[name]
                if getattr(self, other) not in values:
                    beside = " or ".join(map(repr, values))
                    raise ValueError(f"{name} is {value!r}, which changes nothing where {other} is {getattr(self, other)!r}: expected {beside} there")

    def _values(self) -> dict[str, Any]:
        """The values by the names that the extension has for them."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {name: plain(value, f"{type(self).__name__}.{name}") for name, value in named.items()}

    def _described(self) -> Any:
        """What checkpoints say of it."""
        return self._values()

    def _text(self) -> str:
        return json.dumps({type(self).__name__: self._values()}, allow_nan=False)
