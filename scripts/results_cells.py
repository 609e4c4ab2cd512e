"""Cells of the tables of docs/results.md: from the JSON of a row's runs, one for each seed, to a few characters of text."""

import math
import re
import statistics

# Characters that fit a table's cell.
WIDEST = 60


class Wrong(Exception):
    """Something that the user can mend."""


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
    # A NaN is printed as null by `reproduce`.
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise Wrong(f"`{run['command']}`, seed {run['seed']}: `{key}` is {value!r}, expected a number")
    return value


def spread_of(values):
    values, middle = sorted(values), statistics.median(values)
    if all(isinstance(value, int) for value in values) and middle == int(middle):
        # Of an even number of counts the median is a float.
        middle = int(middle)
    low, middle, high = number(values[0]), number(middle), number(values[-1])
    return middle if low == high else f"{middle} ({low} to {high})"


def spread(runs, key):
    return spread_of([figure(run, key) for run in runs])


def percent(runs, key):
    return spread_of([100 * figure(run, key) for run in runs])


def processor(runs):
    return f"{statistics.median(run['cpu_s'] for run in runs):,.0f}"


def same(runs, *keys):
    found = {tuple(figure(run, key) for key in keys) for run in runs}
    if len(found) > 1:
        raise Wrong(f"`{runs[0]['command']}`: {' and '.join(keys)} differ between seeds: {sorted(found)}")
    return " x ".join(f"{value:,}" for value in found.pop())


def of(runs, found, total):
    return f"{spread(runs, found)} of {same(runs, total)}"


def difference(runs, ours, true):
    return spread_of([figure(run, ours) - figure(run, true) for run in runs])


def load(runs):
    return f"{max(max(run['load']) for run in runs):.1f}"


KINDS = {
    "spread": spread,
    "percent": percent,
    "processor": processor,
    "same": same,
    "by": same,
    "of": of,
    "difference": difference,
    "load": load,
}


def cell(runs, kind, *keys):
    text = KINDS[kind](runs, *keys)
    if len(text) > WIDEST:
        raise Wrong(f"`{runs[0]['command']}`: a cell of {len(text)} characters, at most {WIDEST}: {text}")
    return text
