"""A judgement of samples, whoever drew them."""

from __future__ import annotations

from typing import Any

from . import results
from .policies import Uniform
from .training import Trainer


def judge(env: Any, reward: Any, objects: Any, limit: int = 1_000_000, seed: int = 0) -> results.Judgement:
    """What samples of any sampler say of it, where the target is known: total variation and Jensen-Shannon divergence with intervals and
    beside those of as many perfect samples, flow consistency, modes, and the heaviest objects that never came.

    Objects are as `Trainer.sample` shows those of the environment: points `[n, width]`, `Graphs`, SMILES. More than `limit` states are
    refused.

    >>> import gfn_rs as gfn
    >>> judged = gfn.judge(gfn.HyperGrid(2, 8), gfn.HyperGridReward(), [[0, 0]] * 100)
    >>> judged.like_perfect, judged.modes_found, round(judged.tv["estimate"], 2)
    (False, 0, 0.97)
    """
    return Trainer(env, reward, Uniform(), batch=2, seed=seed).judge(objects, limit)
