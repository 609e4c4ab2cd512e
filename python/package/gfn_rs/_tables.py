"""Tables of observations with a column for each variable. A column has numbers or levels. The levels of a
column are its distinct values, or the intervals that its numbers were cut into."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
import numpy.typing as npt

# The largest number of distinct values that a column may have if each of its values is a level.
MAX_LEVELS = 20


def named_columns(data: Any) -> list[tuple[str, Any]]:
    """Returns the name and the values of each column of a pandas data frame, or of an array `[observations,
    variables]`.

    The values are an array, or a pandas column if the column has categories.
    """
    names = getattr(data, "columns", None)
    if names is not None and hasattr(data, "iloc"):
        # Each column is read separately, because columns may have different types.
        columns = [data.iloc[:, k] for k in range(len(names))]
        columns = [column if str(column.dtype) == "category" else np.asarray(column) for column in columns]
    else:
        # With dtype=object, numpy doesn't convert numbers to texts in rows that have both.
        array = (
            np.asarray(data)
            if names is not None or hasattr(data, "__array__")
            else np.array(data, dtype=object)
        )
        if array.ndim != 2:
            raise ValueError(
                f"data has shape {array.shape}: expected [observations, variables]"
            )
        columns = [array[:, k] for k in range(array.shape[1])]
    labels = [f"x{k}" for k in range(len(columns))] if names is None else [str(name) for name in names]
    repeated = (
        {label for label in labels if labels.count(label) > 1} if len(set(labels)) < len(labels) else None
    )
    if repeated:
        raise ValueError(
            f"data has several columns with the name {min(repeated)!r}: expected names that differ as texts; "
            "rename the columns"
        )
    return [(label, _convert_numbers(column)) for label, column in zip(labels, columns)]


def _convert_numbers(column: Any) -> Any:
    """Converts a column to an array of numbers if it consists of Python objects that are all numbers. Returns
    any other column unchanged."""
    if column.dtype != object:
        return column
    values = column.tolist()
    if all(isinstance(value, (int, np.integer)) and not isinstance(value, bool) for value in values):
        kind: type[int] | type[float] = int
    elif all(
        isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
        for value in values
    ):
        kind = float
    else:
        return column
    try:
        return np.array(values, dtype=kind)
    except OverflowError:
        return column


def check_no_categories(data: Any) -> None:
    """Raises an error for a data frame with a column of pandas categories, which aren't numbers even if their
    names are."""
    for name, kind in zip(getattr(data, "columns", ()), getattr(data, "dtypes", ())):
        if str(kind) == "category":
            raise TypeError(
                f"column {str(name)!r} of data has categories: expected numbers for this score; convert the "
                "column to numbers, or use score='bde'"
            )


def find_levels(name: str, column: Any, bins: int | None) -> tuple[list[Any], npt.NDArray[Any]]:
    """Returns the levels of a column, and the index of each observation's level.

    If a column has at most `MAX_LEVELS` different texts, bools or whole numbers, these values are its levels.
    A column of other numbers is cut into `bins` intervals with about equal numbers of observations. Equal
    values are in the same interval, and a level is the pair of an interval's bounds. For pandas categories,
    the levels are the categories that occur, of any type.
    """
    has_categories = hasattr(column, "cat")
    found, places = _find_categories(name, column) if has_categories else _distinct(name, column)
    if len(found) == 1:
        raise ValueError(
            f"column {name!r} of data is {found[0]!r} in every row: expected variables that vary; leave the "
            f"column out"
        )
    if len({str(value) for value in found}) < len(found):
        expected = "expected levels that differ as texts; convert the column to one type"
        raise ValueError(
            f"column {name!r} of data has different values that are the same as texts, like 1 and '1': "
            f"{expected}"
        )
    is_text = has_categories or any(isinstance(value, str) for value in found)
    is_whole = not is_text and all(value == int(value) for value in found)
    if len(found) <= MAX_LEVELS and (is_text or is_whole):
        return found, places
    if is_text:
        expected = f"expected at most {MAX_LEVELS} levels; merge rare ones, or leave the column out"
        raise ValueError(f"column {name!r} of data has {len(found)} different values: {expected}")
    if bins is None:
        what = f"{len(found)} different whole numbers" if is_whole else "numbers that aren't whole"
        expected = f"expected at most {MAX_LEVELS} levels; set bins, for example bins=3 for three intervals"
        raise ValueError(f"column {name!r} of data has {what}: {expected}")
    if bins > len(column):
        raise ValueError(
            f"StructureReward.bins is {bins}: expected at most the number of observations, {len(column)}"
        )
    if len(found) <= bins:
        return found, places
    values = column.astype(float)
    interval = np.searchsorted(np.sort(values), values) * bins // len(values)
    kept, places = np.unique(interval, return_inverse=True)
    if len(kept) == 1:
        expected = (
            "expected a larger value of bins, which makes more intervals; otherwise leave the column out"
        )
        raise ValueError(
            f"column {name!r} of data has only one interval for bins={bins}, because most observations have "
            f"the same value: {expected}"
        )
    bounds = [float(values[interval == k].min()) for k in kept[1:]]
    return list(zip([-np.inf, *bounds], [*bounds, np.inf])), places


def _find_categories(name: str, column: Any) -> tuple[list[Any], npt.NDArray[Any]]:
    """Returns the categories that occur in a column of a pandas data frame, and the index of each
    observation's category."""
    codes = np.asarray(column.cat.codes)
    if (codes < 0).any():
        raise ValueError(
            f"column {name!r} of data has a missing category: expected a category in each row; fill it in, "
            "or leave the row out"
        )
    kept, places = np.unique(codes, return_inverse=True)
    categories = column.cat.categories.tolist()
    return [categories[k] for k in kept], places


def _distinct(name: str, column: npt.NDArray[Any]) -> tuple[list[Any], npt.NDArray[Any]]:
    """Returns the sorted distinct values of a column, and the index of each observation's value."""
    if column.dtype.kind in "biufU":
        if column.dtype.kind == "f" and not np.isfinite(column).all():
            raise ValueError(
                f"column {name!r} of data has a number that isn't finite: expected finite numbers; replace "
                "it, or leave the row out"
            )
        found, places = np.unique(column, return_inverse=True)
        return found.tolist(), places
    has_objects = column.dtype.kind in "OT"
    values = [value.item() if isinstance(value, np.generic) else value for value in column.tolist()]
    for value in values if has_objects else values[:1]:
        is_number = isinstance(value, numbers.Real) and math.isfinite(value)
        if not has_objects or not (is_number or isinstance(value, str)):
            kind = type(value).__name__
            raise TypeError(
                f"column {name!r} of data has {value!r:.50}, a {kind}: expected texts, booleans or finite "
                "numbers, without missing values"
            )
    has_booleans = any(isinstance(value, bool) for value in values)
    # A column with both bools and numbers is an error, because True equals 1 and they would be the same
    # level.
    if has_booleans and any(
        isinstance(value, numbers.Real) and not isinstance(value, bool) for value in values
    ):
        raise TypeError(
            f"column {name!r} of data has both booleans and numbers: expected one of the two; convert the "
            f"column to one type"
        )
    known = sorted(set(values), key=lambda value: (isinstance(value, str), value))
    place = {value: k for k, value in enumerate(known)}
    return known, np.array([place[value] for value in values])
