"""Metrics of samples and of objectives that need no trainer."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from . import _gfn
from ._checks import check_seed, count
from ._settings import AT_ONCE
from .results import NoiseFloor

# The largest number of points per set: the table of their pairs takes 3 GB.
_MOST_PAIRED = 20_000


def _numbers(values: Any, name: str, ndim: int) -> npt.NDArray[np.float64]:
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu().numpy()
    shape = {1: "[n]", 2: "[n, width]"}[ndim]
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} is a {type(values).__name__}: expected numbers of shape {shape}") from error
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} is an array of {array.dtype}: expected numbers of shape {shape}")
    if array.ndim != ndim or 0 in array.shape:
        raise ValueError(f"{name} has shape {list(array.shape)}: expected {shape}, with at least one number")
    return np.ascontiguousarray(array, dtype=np.float64)


def wasserstein2(a: Any, b: Any) -> float:
    """Returns the 2-Wasserstein distance between two sets of an equal number of points, `[n, width]`: exact,
    by the best pairing, in about n^3 steps; a thousand points take about a second. The distance between two
    perfect samples of one distribution isn't 0."""
    a, b = _numbers(a, "a", 2), _numbers(b, "b", 2)
    if len(a) > _MOST_PAIRED:
        raise ValueError(
            f"a has {len(a)} points: expected at most {_MOST_PAIRED}, because the distances of all pairs are "
            "kept in memory"
        )
    return _gfn.wasserstein2(a, b)


def maximum_mean_discrepancy(a: Any, b: Any) -> float:
    """Returns the squared maximum mean discrepancy between two sets of points, `[n, width]` and `[m, width]`,
    under a Gaussian kernel as wide as the median distance within `b` (Gretton et al. 2012): 0 on average for
    samples of one distribution, so sometimes negative."""
    return _gfn.maximum_mean_discrepancy(_numbers(a, "a", 2), _numbers(b, "b", 2))


def noise_floor(target: Any, n: int, rounds: int = 20, seed: int = 0) -> NoiseFloor:
    """Returns the distances between `n` samples of a perfect sampler and a distribution, such as
    `exact().target`: means of `rounds` simulations."""
    target = _numbers(target, "target", 1)
    floor = _gfn.noise_floor(
        target, count(n, least=1, most=AT_ONCE), count(rounds, "rounds", least=1), check_seed(seed)
    )
    return NoiseFloor(**{field.name: value for field, value in zip(fields(NoiseFloor), floor)})


def pareto_front(objectives: Any) -> npt.NDArray[np.int64]:
    """Returns the indices of the rows of `objectives`, `[n, objectives]`, that no other row dominates: a row
    dominates if it is better in one objective and at least as good in all. The first of equal rows is
    returned."""
    return np.asarray(_gfn.pareto_front(_numbers(objectives, "objectives", 2)), dtype=np.int64)


def hypervolume(objectives: Any, reference: Any) -> float:
    """Returns the volume of points that `objectives`, `[n, objectives]`, dominate and that dominate
    `reference`."""
    return _gfn.hypervolume(_numbers(objectives, "objectives", 2), _numbers(reference, "reference", 1))
