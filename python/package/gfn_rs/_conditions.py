"""Calls of functions that draw conditions, and checks of their results."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import torch


def drawn(function: Callable[[int, np.random.Generator], Any], n: int, width: int, seed: int) -> torch.Tensor:
    """Calls a function that draws `n` conditions, checks its result, and returns the conditions."""
    return checked(function(n, np.random.default_rng(seed)), n, width, "conditions(n, rng) gave")


def relabelled(
    function: Callable[..., Any], objects: Any, conditions: torch.Tensor, seed: int
) -> torch.Tensor:
    """Calls a function that returns new conditions for objects, checks its result, and returns these
    conditions."""
    n, width = conditions.shape
    return checked(function(objects, conditions, np.random.default_rng(seed)), n, width, "the hindsight gave")


def checked(values: Any, n: int, width: int, who: str) -> torch.Tensor:
    """Converts conditions to a tensor `[n, width]` in double precision. Raises an error for any other
    shape."""
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu().numpy()
    try:
        values = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{who} a {type(values).__name__}: expected numbers of shape [{n}, {width}]"
        ) from error
    if values.shape != (n, width):
        raise ValueError(f"{who} an array of shape {list(values.shape)}: expected [{n}, {width}]")
    if not np.isfinite(values).all():
        raise ValueError(f"{who} a number that isn't finite: expected finite numbers")
    return torch.from_numpy(values.copy())


def check_presence(conditions: Any, width: int, message: str) -> None:
    """Raises an error if conditions are given but not needed, or if they are needed but missing. `width` is
    the number of entries of a condition of the trainer or policy, 0 if it has no conditions."""
    if (conditions is None) != (width == 0):
        what = "no conditions" if conditions is None else "conditions"
        raise ValueError(
            f"{message.format(what)} with {width} numbers in a condition: expected conditions if and only if "
            "that number is above 0"
        )
