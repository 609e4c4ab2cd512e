"""Tables of observations with a column for each variable. A column has numbers or levels. The levels of a
column are its distinct values, or the intervals that its numbers were cut into."""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ._objects import is_missing
from ._rewards import _numbers
from ._suggestions import suggest

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
    if len(set(labels)) < len(labels):
        repeated = {label for label in labels if labels.count(label) > 1}
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


def find_variable(name: Any, names: Sequence[str], what: str) -> int:
    """Returns the index of a variable among `names`. Raises an error for an unknown name. In the message,
    `what` is the place in which the name occurs."""
    if str(name) not in names:
        raise ValueError(f"{what} has {name!r}, which isn't a variable: {suggest(str(name), names)}")
    return names.index(str(name))


def number_edges(edges: Any, n: int, names: Sequence[str] | None, what: str) -> list[tuple[int, int]]:
    """Returns edges between `n` variables as pairs of indices of variables. The ends of an edge are names or
    indices. In error messages, `what` is the name of the edges."""

    def end(variable: Any) -> int:
        if not isinstance(variable, str):
            try:
                index = operator.index(variable)
            except TypeError:
                raise TypeError(
                    f"{what} has {variable!r:.200}: expected names or indices of variables"
                ) from None
            if not 0 <= index < n:
                raise ValueError(f"{what} has the variable {index}: expected indices from 0 to {n - 1}")
            return index
        if names is None:
            raise ValueError(
                f"{what} has the name {variable!r}, but the variables have no names: expected indices of "
                "variables, or a list of names"
            )
        return find_variable(variable, names, what)

    pairs = list(edges) if isinstance(edges, Iterable) else [edges]
    for edge in pairs:
        if isinstance(edge, str) or not hasattr(edge, "__len__") or len(edge) != 2:
            raise TypeError(f"{what} has {edge!r:.200}: expected pairs (from, to) of variables")
    return [(end(source), end(target)) for source, target in pairs]


def split_interventions(data: Any, interventions: Any) -> tuple[Any, list[list[int]] | None]:
    """Returns the columns of the variables, and the indices of the variables that an experiment fixed in each
    row. `interventions` is the name of a column that lists these variables in each row, an array of bool, or
    None."""
    if interventions is None:
        return data, None
    if not isinstance(interventions, str):
        mask = np.asarray(interventions)
        if mask.dtype != bool or mask.shape != np.shape(data):
            raise ValueError(
                f"interventions is an array of {mask.dtype} and shape {mask.shape}: expected bool and the "
                f"shape of the data, {np.shape(data)}, or the name of a column"
            )
        return data, [np.flatnonzero(row).tolist() for row in mask]
    columns = list(getattr(data, "columns", ()))
    if interventions not in columns:
        expected = "expected data with names of columns, such as a pandas data frame, or an array of bool"
        if columns:
            expected = suggest(interventions, [str(column) for column in columns])
        raise ValueError(f"interventions is {interventions!r}, which isn't a column of the data: {expected}")
    rest = data[[column for column in columns if column != interventions]]
    names = [name for name, _ in named_columns(rest)]
    cells = np.asarray(data[interventions], dtype=object).tolist()
    return rest, [_targets(cell, names, f"row {row} of {interventions!r}") for row, cell in enumerate(cells)]


def _targets(cell: Any, names: Sequence[str], what: str) -> list[int]:
    """Returns the indices of the variables that a cell lists: a text with `;` between names, a list of names,
    or nothing."""
    if isinstance(cell, str):
        cell = [name.strip() for name in cell.split(";") if name.strip()]
    elif is_missing(cell):
        cell = []
    if not isinstance(cell, (list, tuple, set)):
        raise TypeError(f"{what} is {cell!r}: expected names of variables with `;` between them, or nothing")
    return [find_variable(name, names, what) for name in cell]


def encode_levels(name: str, levels: Sequence[Any], column: Any) -> npt.NDArray[Any]:
    """Returns the index of the level of each value of a column of new data. Raises an error for a value that
    isn't one of the levels."""
    values = column.tolist()
    if isinstance(levels[0], tuple):
        found = _numbers(values, f"column {name!r} of the held-out data")
        return np.searchsorted([low for low, _ in levels], found, side="right") - 1
    place = {level: k for k, level in enumerate(levels)}
    for value in values:
        if value not in place:
            raise ValueError(
                f"column {name!r} of the held-out data has {value!r}, which isn't a level of the reward's "
                f"data: expected {', '.join(map(repr, levels))}; leave the row out"
            )
    return np.array([place[value] for value in values])


def check_complete(data: Any) -> None:
    """Raises an error for data with a missing entry: None, NaN, or the NA of pandas."""
    for name, column in named_columns(data):
        count = sum(is_missing(value) for value in column.tolist())
        if count:
            raise ValueError(
                f"column {name!r} of data has {count} missing values of {len(column)}: expected a value in "
                "each row; leave the rows out if few are missing, or fill in several complete tables and "
                "pool the results (multiple imputation, in the chapter on structures in Python)"
            )


def check_numeric(data: Any) -> None:
    """Raises an error for data with a column of pandas categories or of texts. Categories aren't numbers even
    if their names are."""
    for name, column in named_columns(data):
        kind = "categories" if str(column.dtype) == "category" else "texts"
        is_text = column.dtype.kind in "OUT" and any(isinstance(value, str) for value in column.tolist())
        if kind == "categories" or is_text:
            raise TypeError(
                f"column {name!r} of data has {kind}: expected numbers for this score; convert the column to "
                "numbers, or use score='bde', with bins for the columns of numbers"
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
            "column out"
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
    kept, places = np.unique(np.asarray(column.cat.codes), return_inverse=True)
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
            "column to one type"
        )
    known = sorted(set(values), key=lambda value: (isinstance(value, str), value))
    place = {value: k for k, value in enumerate(known)}
    return known, np.array([place[value] for value in values])
