"""Tables of observations: columns of numbers, and columns of levels."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
import numpy.typing as npt

# The most distinct values of a column whose values are taken as its levels.
MAX_LEVELS = 20


def named_columns(data: Any) -> list[tuple[str, npt.NDArray[Any]]]:
    """The name and the values of each column of a frame, or of an array `[observations, variables]`."""
    names = getattr(data, "columns", None)
    if names is not None and hasattr(data, "iloc"):
        # Column by column: each has a type of its own.
        return [(str(name), np.asarray(data.iloc[:, k])) for k, name in enumerate(names)]
    array = np.asarray(data)
    if array.ndim != 2:
        raise ValueError(f"data has shape {array.shape}: expected [observations, variables]")
    return [(f"x{k}" if names is None else str(names[k]), array[:, k]) for k in range(array.shape[1])]


def check_no_categories(data: Any) -> None:
    """Refuses a frame with a column of pandas categories, which aren't numbers even if they are written as such."""
    for name, kind in zip(getattr(data, "columns", ()), getattr(data, "dtypes", ())):
        if str(kind) == "category":
            raise TypeError(f"column {str(name)!r} of data has categories: expected numbers for this score; score='bde' is for categories")


def levels(name: str, column: npt.NDArray[Any], bins: int | None) -> tuple[list[Any], npt.NDArray[Any]]:
    """The levels of a column, and the index of each observation's level.

    Texts, booleans and whole numbers are levels as they are, if there are at most `MAX_LEVELS` of them. Other numbers are cut into `bins`
    intervals of about as many observations each; equal values stay together, and an interval is given by its bounds.
    """
    found, places = _distinct(name, column)
    if len(found) == 1:
        raise ValueError(f"column {name!r} of data is {found[0]!r} in every row: expected variables that vary; leave the column out")
    is_text = any(isinstance(value, str) for value in found)
    is_whole = not is_text and all(value == int(value) for value in found)
    if len(found) <= MAX_LEVELS and (is_text or is_whole):
        return found, places
    if is_text:
        expected = f"expected at most {MAX_LEVELS} levels; merge rare ones, or leave the column out"
        raise ValueError(f"column {name!r} of data has {len(found)} different values: {expected}")
    if bins is None:
        what = f"{len(found)} different whole numbers" if is_whole else "numbers that aren't whole"
        expected = f"expected at most {MAX_LEVELS} levels; bins=3 cuts such columns into three intervals"
        raise ValueError(f"column {name!r} of data has {what}: {expected}")
    if bins > len(column):
        raise ValueError(f"StructureReward.bins is {bins}: expected at most the number of observations, {len(column)}")
    if len(found) <= bins:
        return found, places
    values = column.astype(float)
    interval = np.searchsorted(np.sort(values), values) * bins // len(values)
    kept, places = np.unique(interval, return_inverse=True)
    if len(kept) == 1:
        expected = "expected more intervals; or leave the column out"
        raise ValueError(f"column {name!r} of data falls into one of {bins} intervals, as one value fills it: {expected}")
    bounds = [float(values[interval == k].min()) for k in kept[1:]]
    return list(zip([-np.inf, *bounds], [*bounds, np.inf])), places


def _distinct(name: str, column: npt.NDArray[Any]) -> tuple[list[Any], npt.NDArray[Any]]:
    """The distinct values of a column in their order, and the index of each observation's value."""
    if column.dtype.kind in "biufU":
        if column.dtype.kind == "f" and not np.isfinite(column).all():
            raise ValueError(f"column {name!r} of data has a number that isn't finite: fill it in or leave it out")
        found, places = np.unique(column, return_inverse=True)
        return found.tolist(), places
    values = column.tolist()
    for value in values if column.dtype.kind == "O" else values[:1]:
        is_number = isinstance(value, numbers.Real) and math.isfinite(value)
        if column.dtype.kind != "O" or not (is_number or isinstance(value, str)):
            kind = type(value).__name__
            raise TypeError(f"column {name!r} of data has {value!r:.50}, a {kind}: expected texts, booleans or finite numbers, and none missing")
    known = sorted(set(values), key=lambda value: (isinstance(value, str), value))
    place = {value: k for k, value in enumerate(known)}
    return known, np.array([place[value] for value in values])
