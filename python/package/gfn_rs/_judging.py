"""The comparison of samples of any sampler with an exact target."""

from __future__ import annotations

from typing import Any

from . import _results
from ._envs import Environment
from ._policies import Uniform
from ._rewards import Reward
from ._steps import States
from ._training import RewardFunction, Trainer


def judge(
    env: Environment[States],
    reward: Reward | RewardFunction[States],
    objects: Any,
    limit: int = 1_000_000,
    seed: int = 0,
    instance: int | None = None,
) -> _results.Judgement[States]:
    """Compares samples of any sampler with the exact target of a reward.

    The result has the total variation and the Jensen-Shannon divergence with intervals, and the same
    distances for an equal number of perfect samples. The result also has flow consistency (the mean total
    variation within subsets of objects), modes, and the most probable objects that weren't sampled.

    objects
        Objects, as a batch of states like the one that `Trainer.sample` returns (an array `[n, width]` or
        `Graphs`), or SMILES of molecules.
    limit
        The largest number of states. An environment with more states is an error.
    seed
        The seed of the random numbers from which floors, intervals and subsets of objects are computed.
    instance
        The index of the initial state from which all objects are built, in an environment with several
        initial states; each has its own target.

    >>> import gfn_rs as gfn
    >>> judged = gfn.judge(gfn.HyperGrid(2, 8), gfn.HyperGridReward(), [[0, 0]] * 100)
    >>> judged.like_perfect, judged.modes_found, round(judged.tv["estimate"], 2)
    (False, 0, 0.97)
    """
    return Trainer(env, reward, Uniform(), batch=2, seed=seed).judge(objects, limit, instance)
