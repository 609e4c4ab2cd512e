"""Calls of the function of a `FreshSource`, and checks of its results."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from . import _gfn
from ._conditions import check_presence
from ._sources import FreshObjects, BatchRequest
from ._trajectories import Trajectories


def asked(
    function: Callable[[BatchRequest, np.random.Generator], Any],
    request: tuple[int, int, bool],
    n_conditions: int,
    seed: int,
) -> _gfn.Paths | tuple[Any, Any, Any] | None:
    """Calls the function of a `FreshSource`, and checks its result. Returns trajectories, or a tuple of
    objects, their log R and their conditions. Returns None if the function has no objects yet."""
    answer = function(BatchRequest(*request), np.random.default_rng(seed))
    if answer is None:
        return None
    drawn = answer if isinstance(answer, FreshObjects) else FreshObjects(answer)
    if isinstance(drawn.objects, Trajectories):
        if drawn.log_rewards is not None or drawn.conditions is not None:
            raise ValueError(
                "the fresh source gave Trajectories, and log R or conditions separately: expected both to be "
                "part of the trajectories; add log R by `trajectories.with_log_rewards(values)`"
            )
        check_presence(
            drawn.objects.conditions, n_conditions, "the fresh source gave trajectories with {} to a trainer"
        )
        return drawn.objects._paths
    check_presence(drawn.conditions, n_conditions, "the fresh source gave {} to a trainer")
    return drawn.objects, drawn.log_rewards, drawn.conditions
