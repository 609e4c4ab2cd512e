"""A judgement of the samples of any sampler."""

from __future__ import annotations

from typing import Any

from . import results
from .policies import Uniform
from .training import Trainer


def judge(env: Any, reward: Any, objects: Any, limit: int = 1_000_000, seed: int = 0) -> results.Judgement:
    """Compares samples of any sampler with the exact target of a reward.

    The result has the total variation and the Jensen-Shannon divergence with intervals, compared with those
    of an equal number of perfect samples, flow consistency, modes, and the heaviest objects that weren't
    sampled.

    objects
        Objects in the form that `Trainer.sample` returns: points `[n, width]`, `Graphs`, SMILES.
    limit
        The largest number of states; a larger environment is refused.

    >>> import gfn_rs as gfn
    >>> judged = gfn.judge(gfn.HyperGrid(2, 8), gfn.HyperGridReward(), [[0, 0]] * 100)
    >>> judged.like_perfect, judged.modes_found, round(judged.tv["estimate"], 2)
    (False, 0, 0.97)
    """
    return Trainer(env, reward, Uniform(), batch=2, seed=seed).judge(objects, limit)
