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
from ._results import NoiseFloor

# The largest number of points per set. The table of distances between all pairs takes 3 GB at this number.
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
    """Returns the 2-Wasserstein distance between two sets of n points each, `[n, width]`. The distance is
    exact: it is computed from the best pairing of points, in about n^3 operations (a second for a thousand
    points). Two sets of samples from the same distribution have a distance above 0.

    >>> gfn.wasserstein2([[0.0], [1.0]], [[2.0], [1.0]])
    1.0
    """
    a, b = _numbers(a, "a", 2), _numbers(b, "b", 2)
    if len(a) > _MOST_PAIRED:
        raise ValueError(
            f"a has {len(a)} points: expected at most {_MOST_PAIRED}, because the distances of all pairs are "
            "kept in memory"
        )
    return _gfn.wasserstein2(a, b)


def maximum_mean_discrepancy(a: Any, b: Any) -> float:
    """Returns the squared maximum mean discrepancy between two sets of points, `[n, width]` and `[m, width]`,
    under a Gaussian kernel whose width is the median distance between points of `b` (Gretton et al. 2012).
    The estimate is unbiased: if both sets are from the same distribution, it is 0 on average, and can be
    negative.

    >>> rng = np.random.default_rng(0)
    >>> near, far = rng.normal(size=(200, 2)), rng.normal(3, 1, (200, 2))
    >>> same = gfn.maximum_mean_discrepancy(near, rng.normal(size=(200, 2)))
    >>> same < 0.02 < gfn.maximum_mean_discrepancy(near, far)
    True
    """
    return _gfn.maximum_mean_discrepancy(_numbers(a, "a", 2), _numbers(b, "b", 2))


def noise_floor(target: Any, n: int, rounds: int = 20, seed: int = 0) -> NoiseFloor:
    """Returns the mean distances between `n` perfect samples of a distribution, such as `exact().target`, and
    the distribution itself. The means are over `rounds` simulations.

    >>> floor = gfn.noise_floor([0.5, 0.5], n=10_000)
    >>> floor.tv < 0.01
    True
    """
    target = _numbers(target, "target", 1)
    floor = _gfn.noise_floor(
        target, count(n, least=1, most=AT_ONCE), count(rounds, "rounds", least=1), check_seed(seed)
    )
    return NoiseFloor(**{field.name: value for field, value in zip(fields(NoiseFloor), floor)})


def pareto_front(objectives: Any) -> npt.NDArray[np.int64]:
    """Returns the indices of the rows of `objectives`, `[n, objectives]`, that no other row dominates. A row
    dominates another row if it is better in at least one objective and at least as good in all objectives. Of
    several equal rows, only the first index is returned.

    >>> gfn.pareto_front([[1, 2], [2, 1], [0, 0]]).tolist()
    [0, 1]
    """
    return np.asarray(_gfn.pareto_front(_numbers(objectives, "objectives", 2)), dtype=np.int64)


def hypervolume(objectives: Any, reference: Any) -> float:
    """Returns the hypervolume: the volume of all points that are dominated by a row of `objectives`, `[n,
    objectives]`, and that dominate the point `reference`.

    >>> gfn.hypervolume([[1, 2], [2, 1]], [0, 0])
    3.0
    """
    return _gfn.hypervolume(_numbers(objectives, "objectives", 2), _numbers(reference, "reference", 1))
