"""Rewards of the library. A custom reward is any function of a batch of states that returns log R of each
state.

A custom reward may have a method `partial_log_reward`, which returns log R of unfinished states;
forward-looking objectives need it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Literal, Sequence

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from ._settings import COUNT, LARGEST_SEED, Settings, bounds, needs, plain
from ._molecules import MoleculeScore


class Reward(Settings):
    """The base class of the library's rewards."""


def _numbers(values: Any, name: str) -> npt.NDArray[np.float64]:
    """Converts the value of a setting to an array of finite numbers. Raises an error for any other value."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{name} has something that isn't a number ({error}): expected an array of numbers"
        ) from error
    if not np.isfinite(array).all():
        raise ValueError(
            f"{name} has a number that isn't finite: expected finite numbers; replace it, or leave out its "
            "row"
        )
    return array


@dataclass(frozen=True)
class RingReward(Reward):
    """R is `ring` for a graph that is one cycle through all nodes, and `floor` for any other graph."""

    ring: float = 100.0
    floor: float = 1e-6


@dataclass(frozen=True)
class TriangleReward(Reward):
    """R is `triangle` for a triangle, and `floor` for any other graph."""

    triangle: float = 100.0
    floor: float = 1e-3


@dataclass(frozen=True)
class ColoredGraphReward(Reward):
    """A reward of the basic graph task of recursionpharma/gflownet: one of three rewards, chosen by name."""

    kind: Literal["count", "even", "clique"] = "count"


@dataclass(frozen=True)
class SizeReward(Reward):
    """log R is `beta` times the number of nodes of an `IndependentSet` or `Clique`, or `beta` times the
    number of cut edges of a `Cut`. For a `DominatingSet` it is -`beta` times the number of nodes, because
    small dominating sets are sought.
    """

    beta: float = 1.0


@dataclass(frozen=True)
class MoleculeReward(Reward):
    """A score of molecules to the power `beta`. The library computes it in Rust, without calls of Python.

    score
        The name of a score, or a `MoleculeScore`.
    beta
        The exponent.
    floor
        The smallest value of the score.

    >>> from gfn_rs import Factor
    >>> log_p = Factor("log_p", {"window": {"least": 1, "most": 4, "width": 1}})
    >>> reward = MoleculeReward(MoleculeScore([Factor("qed"), log_p]), beta=8.0)
    """

    score: Literal["constant", "heteroatoms", "rings", "hydrogen_bonds", "drug_like"] | MoleculeScore = (
        "heteroatoms"
    )
    beta: float = 1.0
    floor: float = float(np.exp(-20.0))


@dataclass(frozen=True)
class ExternalReward(Reward):
    """A score of molecules by a program, to the power `beta`.

    command
        The program and its arguments. The program reads one SMILES per line, and writes and flushes one
        number of at least 0 per line, in the same order. The program is started at the first call of the
        reward, and keeps running. Each molecule is passed to the program only once.
    timeout
        The number of seconds without a line of output after which an error is raised. An error is also raised
        if the program ends, or if its output isn't one number per molecule.
    beta
        The exponent.
    floor
        The smallest value of the score.
    """

    command: Sequence[str]
    timeout: float = 60.0
    beta: float = 1.0
    floor: float = float(np.exp(-20.0))

    def _values(self) -> dict[str, Any]:
        program = {name: plain(getattr(self, name), name) for name in ("command", "timeout")}
        return {"program": program, "beta": plain(self.beta, "beta"), "floor": plain(self.floor, "floor")}


@dataclass(frozen=True)
class CachedReward(Reward):
    """A cache around a reward, which is computed only once per object. A cache is for slow rewards that
    always return the same log R for equal objects.

    reward
        A function of a batch of states, or one of the library's rewards. The reward is called only with
        objects that aren't in the cache. As a check, the reward is called twice for 16 objects, and an error
        is raised if the two values of log R differ.
    capacity
        The largest number of stored values, at least 2. If the cache is full, old values are dropped, but at
        least the newest half of the values stays.
    """

    reward: Reward | Callable[..., Any]
    capacity: int = field(default=1_000_000, metadata=COUNT)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.reward, (type, CachedReward)) or type(self.reward) is Reward:
            raise TypeError(
                f"CachedReward.reward is {self.reward!r:.200}: expected an object like RingReward(), or a "
                f"function of a batch of states"
            )
        if self.capacity < 2:
            raise ValueError(
                f"CachedReward.capacity is {self.capacity}: expected at least 2 values"
            )

    def _values(self) -> dict[str, Any]:
        own = self.reward
        return {
            "reward": [type(own).__name__, own._values()] if isinstance(own, Reward) else "a function",
            "capacity": plain(self.capacity, "capacity"),
        }


@dataclass(frozen=True)
class HyperGridReward(Reward):
    """A reward of the states of `HyperGrid`, chosen by name and by a preset of its parameters."""

    kind: Literal[
        "original",
        "cosine",
        "sparse",
        "deceptive",
        "bitwise_xor",
        "multiplicative_coprime",
        "conditional_multiscale",
        "uniform_random",
        "corrupted",
    ] = "original"
    preset: (
        Literal[
            "easy",
            "medium",
            "hard",
            "challenging",
            "impossible",
            "k1",
            "k16",
            "k64",
            "k1_matched",
            "k16_matched",
            "k64_matched",
        ]
        | None
    ) = None


@dataclass(frozen=True)
class ConditionalGridReward(Reward):
    """A family of rewards of the states of `HyperGrid`, with a condition c from 0 to 1. R(x | c) is linear in
    c. At c = 1 it is the reward `original` of `HyperGridReward`. At c = 0 it has the same value for all x,
    the value of `original` in a mode. Conditions are drawn uniformly unless the trainer has `conditions`.
    """


@dataclass(frozen=True)
class HammingReward(Reward):
    """log R decreases with the Hamming distance from the nearest mode, divided by `temperature`. Modes are
    texts of the characters 0 and 1."""

    modes: Sequence[str]
    temperature: float = 1.0


# `eq=False`, because the equality that a dataclass generates compares fields by `==`, which returns an array
# for arrays.
@dataclass(frozen=True, eq=False)
class IsingReward(Reward):
    """log R is -`alpha` times the energy of spins. `couplings` is the array `[n, n]` of the couplings between
    spins."""

    couplings: ArrayLike = field(repr=False)
    alpha: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        shape = np.shape(_numbers(self.couplings, "couplings"))
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ValueError(f"couplings has shape {shape}: expected [n, n]")

    def _values(self) -> dict[str, Any]:
        return {
            "couplings": _numbers(self.couplings, "couplings").ravel().tolist(),
            "alpha": plain(self.alpha, "alpha"),
        }


@dataclass(frozen=True)
class WeightReward(Reward):
    """R is `base` plus the sum of the weights of the items in a set."""

    base: float
    weights: Sequence[float]


@dataclass(frozen=True)
class ParsimonyReward(Reward):
    """log R = (`offset` - parsimony score of the tree) / `temperature`. The setting `sequences` has a
    sequence for each species."""

    sequences: Sequence[str]
    offset: float
    temperature: float = 1.0


@dataclass(frozen=True)
class TableReward(Reward):
    """A reward from a table: R of a sequence is its number in a file, to the power `exponent`. Each line of
    the file has a sequence and a number."""

    alphabet: str
    path: str | PathLike[str]
    floor: float | None = None
    exponent: float = 1.0


@dataclass(frozen=True)
class ToyReward(Reward):
    """A reward that is a table: R of each of the six states of `ToyDag` in which trajectories can end."""

    rewards: Sequence[float]

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.rewards) != 6:
            raise ValueError(
                f"rewards has {len(self.rewards)} numbers: expected 6, one for each state in which "
                "trajectories can end"
            )


@dataclass(frozen=True)
class BoxReward(Reward):
    """The reward `original` of `HyperGridReward`, computed on the points of the unit box."""

    r0: float = 0.1
    r1: float = 0.5
    r2: float = 2.0


@dataclass(frozen=True)
class LineReward(Reward):
    """A sum of Gaussian densities on the line, each given by a mean and a standard deviation."""

    modes: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class GaussianTarget(Reward):
    """A Gaussian density with independent coordinates."""

    mean: Sequence[float]
    sd: float = 1.0


@dataclass(frozen=True)
class MixtureTarget(Reward):
    """A mixture of Gaussians in the plane, chosen by name. The means of `forty_modes` are random numbers from
    `seed`."""

    name: Literal["two_modes", "nine_modes", "twenty_five_modes", "forty_modes"] = "nine_modes"
    seed: int = field(default=0, metadata=bounds(0, LARGEST_SEED) | needs("name", "forty_modes"))


@dataclass(frozen=True)
class FunnelTarget(Reward):
    """Neal's funnel, a density whose first coordinate sets the scale of all others."""

    dim: int = 10
    sd: float = 3.0


@dataclass(frozen=True)
class PosteriorTarget(Reward):
    """The density of `MixtureTarget("nine_modes")` divided by the density of
    `MixtureTarget("twenty_five_modes")`. With this reward, relative trajectory balance fine-tunes a prior
    with 25 modes to nine weighted modes. The reward has no finite integral, so log Z exists only relative to
    a prior.
    """


@dataclass(frozen=True)
class CoxTarget(Reward):
    """A log-Gaussian Cox process (Moller et al. 1998): the posterior of the log-intensities in `side` times
    `side` cells of the unit square, given random points from `seed`. The density has `side**2` dimensions.
    """

    side: int = 8
    seed: int = field(default=0, metadata=bounds(0, LARGEST_SEED))


@dataclass(frozen=True)
class ManyWellTarget(Reward):
    """A density with a double well in every second coordinate. The other coordinates are Gaussian."""

    dim: int = 32
