"""Fresh objects from a function."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from .sources import Drawn, Wanted
from .trajectories import Trajectories


def asked(
    function: Callable[[Wanted, np.random.Generator], Any], wanted: tuple[int, int, bool], n_conditions: int, seed: int
) -> tuple[Any, Any, Any] | None:
    """Returns objects, their log R and their conditions; None if there are none yet."""
    answer = function(Wanted(*wanted), np.random.default_rng(seed))
    if answer is None:
        return None
    drawn = answer if isinstance(answer, Drawn) else Drawn(answer)
    if isinstance(drawn.objects, Trajectories):
        if drawn.log_rewards is not None or drawn.conditions is not None:
            raise ValueError("the fresh source gave log R or conditions beside trajectories: expected them in these (`with_log_rewards`)")
        if (drawn.objects.conditions is None) != (n_conditions == 0):
            there = "no conditions" if drawn.objects.conditions is None else "conditions"
            raise ValueError(f"the fresh source gave trajectories with {there} to a trainer with {n_conditions} numbers of them")
        return drawn.objects._paths, None, None
    if (drawn.conditions is None) != (n_conditions == 0):
        there = "no conditions" if drawn.conditions is None else "conditions"
        raise ValueError(f"the fresh source gave {there} to a trainer with {n_conditions} numbers of them: expected them where it has some")
    return drawn.objects, drawn.log_rewards, drawn.conditions
