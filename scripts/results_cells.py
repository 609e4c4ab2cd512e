"""Formats the cells of the tables in docs/results.md. A cell is a short text about the runs of a row, which
has one run per seed."""

import math
import re
import statistics

# The largest number of characters that a cell may have.
MAX_WIDTH = 60


class ResultsError(Exception):
    """An error that the user of scripts/results.py can correct."""


def number(value):
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    if value == 0:
        return "0"
    if abs(value) >= 1e-3:
        digits = max(0, 2 - math.floor(math.log10(abs(value))))
        return f"{value:.{digits}f}"
    return re.sub(r"e-0*", "e-", f"{value:.1e}")


def figure(run, key):
    value = run["result"].get(key)
    # `reproduce` writes NaN as null in its JSON, so a value that isn't a number is an error.
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ResultsError(f"`{run['command']}`, seed {run['seed']}: `{key}` is {value!r}, expected a number")
    return value


def format_spread(values):
    values, middle = sorted(values), statistics.median(values)
    if all(isinstance(value, int) for value in values) and middle == int(middle):
        # The median of an even number of integers is a float. A whole median is shown without decimals.
        middle = int(middle)
    low, middle, high = number(values[0]), number(middle), number(values[-1])
    return middle if low == high else f"{middle} ({low} to {high})"


def spread(runs, key):
    return format_spread([figure(run, key) for run in runs])


def mean(runs, key):
    """Formats the mean and the range. Published figures on several data sets are means."""
    values = sorted(figure(run, key) for run in runs)
    middle = number(statistics.fmean(values))
    low, high = number(values[0]), number(values[-1])
    return middle if low == high else f"{middle} ({low} to {high})"


def percent(runs, key):
    return format_spread([100 * figure(run, key) for run in runs])


def processor(runs):
    return f"{statistics.median(run['cpu_s'] for run in runs):,.0f}"


def equal_in_all(runs, *keys):
    found = {tuple(figure(run, key) for key in keys) for run in runs}
    if len(found) > 1:
        raise ResultsError(
            f"`{runs[0]['command']}`: {' and '.join(keys)} differ between seeds: {sorted(found)}"
        )
    return " x ".join(f"{value:,}" for value in found.pop())


def found_of_total(runs, found, total):
    return f"{spread(runs, found)} of {equal_in_all(runs, total)}"


def difference(runs, ours, true):
    return format_spread([figure(run, ours) - figure(run, true) for run in runs])


def share(runs, part, whole):
    """Formats one figure in percent of another."""
    return format_spread([100 * figure(run, part) / figure(run, whole) for run in runs])


def load(runs):
    return f"{max(max(run['load']) for run in runs):.1f}"


KINDS = {
    "spread": spread,
    "mean": mean,
    "percent": percent,
    "processor": processor,
    "same": equal_in_all,
    "by": equal_in_all,
    "of": found_of_total,
    "difference": difference,
    "share": share,
    "load": load,
}


def cell(runs, kind, *keys):
    text = KINDS[kind](runs, *keys)
    if len(text) > MAX_WIDTH:
        raise ResultsError(
            f"`{runs[0]['command']}`: a cell has {len(text)} characters, expected at most {MAX_WIDTH}: {text}"
        )
    return text
