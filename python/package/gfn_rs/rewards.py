"""Rewards of the library. A custom reward is any function of a batch of states that returns log R of each.

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
from ._tables import check_no_categories, find_levels, named_columns
from .molecules import MoleculeScore


class Reward(Settings):
    """The base class of the library's rewards."""


def _numbers(values: Any, name: str) -> npt.NDArray[np.float64]:
    """Converts a setting to an array of finite numbers. Refuses other values."""
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
    """A reward, by its name among the three rewards of the basic graph task of recursionpharma/gflownet, by
    its name."""

    kind: Literal["count", "even", "clique"] = "count"


@dataclass(frozen=True)
class SizeReward(Reward):
    """log R is `beta` times the size of a solution of `IndependentSet`, `Clique` or `Cut` (the number of cut
    edges), and -`beta` times the size of a `DominatingSet`, because small ones are sought.
    """

    beta: float = 1.0


@dataclass(frozen=True)
class MoleculeReward(Reward):
    """A score of molecules to the power `beta`. Rust computes it: training calls no Python.

    score
        The name of a score, or a `MoleculeScore`.
    beta
        The exponent.
    floor
        The smallest value of the score.

    >>> from gfn_rs import Factor
    >>> reward = MoleculeReward(MoleculeScore([Factor("qed"), Factor("log_p", {"window": {"least": 1, "most": 4, "width": 1}})]), beta=8.0)
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
        The program and its arguments. It reads one SMILES per line, and writes and flushes one number of at
        least 0 per line, in the same order. It is started at the first call, and keeps running; each molecule
        is passed once.
    timeout
        The number of seconds without a line after which an error is raised. Other output than one number per
        molecule is an error, too, and so is the end of the program.
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
    """A reward that is computed once per object, for a slow reward that is always equal for equal
    objects.

    reward
        A function of a batch of states, or one of the library's rewards. It is called with new objects only,
        each once, and not at all if there are none. 16 values are computed again, and a different value is an
        error.
    capacity
        The number of values that are stored, at least 2; at least the newest half of them remains.
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
    """A reward of points of a grid, chosen by name, with the settings of a preset."""

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
    """A family of rewards of points of a grid by a condition c from 0 to 1: R(x | c) is linear in c, from a
    flat reward at 0, as large as that of a mode, to the original one at 1. Conditions are drawn uniformly
    unless the trainer has `conditions`.
    """


@dataclass(frozen=True)
class HammingReward(Reward):
    """log R falls with the Hamming distance from the nearest mode, divided by `temperature`; modes are texts
    of 0 and 1."""

    modes: Sequence[str]
    temperature: float = 1.0


# Equality isn't defined by `==` of the fields in classes that hold an array, because arrays have no single
# answer to it.
@dataclass(frozen=True, eq=False)
class IsingReward(Reward):
    """log R = -`alpha` times the energy of spins under `couplings`, an array `[n, n]`."""

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
    """log R = (`offset` - parsimony of the tree) / `temperature`, for a sequence of each species."""

    sequences: Sequence[str]
    offset: float
    temperature: float = 1.0


@dataclass(frozen=True)
class TableReward(Reward):
    """R of a sequence from a file with a sequence and a number in each line, to the power `exponent`."""

    alphabet: str
    path: str | PathLike[str]
    floor: float | None = None
    exponent: float = 1.0


@dataclass(frozen=True)
class ToyReward(Reward):
    """R of each of the six states in which trajectories can end."""

    rewards: Sequence[float]

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.rewards) != 6:
            raise ValueError(
                f"rewards has {len(self.rewards)} numbers: expected 6, one for each state in which "
                "trajectories can end"
            )


@dataclass(frozen=True, eq=False)
class StructureReward(Reward):
    """The posterior of a structure, up to a factor, given `data`, an array `[observations, variables]` or a
    pandas frame, under a uniform prior.

    `score` is "bge" (linear Gaussian, parameters integrated out), "bic" (linear Gaussian, by the Bayesian
    information criterion), or "bde" (discrete, parameters integrated out). A column with one value in every
    row is refused: for "bde" at once, for "bge" and "bic" when a trainer is made. Columns with the same name
    are refused at once.

    Numbers, for "bge" and "bic", are standardised first: each column to mean 0 and variance 1. The prior of
    BGe has the same mean and scale for all variables, so without it, by `standardise=False`, its scores
    depend on the data's units and origin.

    Discrete data, for "bde", have a level per value: booleans, whole numbers, texts and pandas categories, at
    most 20 different ones in a column; only values that occur count. Categories are never cut into intervals.
    Columns of other numbers are refused, unless `bins` is given (from 2 to 1,000): each of them is cut into
    that number of intervals with about equal numbers of observations. `levels` shows the levels of each
    column.

    bins
        The number of intervals, for "bde".
    standardise
        True if numbers are standardised, for "bge" and "bic".
    alpha_mu, alpha_w
        The prior of "bge": the number of observations that its mean counts for, above 0; and its degrees of
        freedom, above the number of variables plus 1. `None` is the number of variables plus 2.
    nu
        The prior mean of each variable, for "bge" with `standardise=False`, in the units of the data. `None`
        is 0.

    >>> rows = [["low", 1.5], ["high", 2.5], ["low", 3.5], ["high", 9.5]]
    >>> import pandas
    >>> StructureReward(pandas.DataFrame(rows, columns=["dose", "weight"]), "bde", bins=2).levels
    {'dose': ['high', 'low'], 'weight': [(-inf, 3.5), (3.5, inf)]}
    """

    data: Any = field(repr=False)
    score: Literal["bge", "bic", "bde"] = "bge"
    bins: int | None = field(default=None, metadata=bounds(2, 1000) | needs("score", "bde"))
    standardise: bool = field(default=True, metadata=needs("score", "bge", "bic"))
    alpha_mu: float = field(default=1.0, metadata=needs("score", "bge"))
    alpha_w: float | None = field(default=None, metadata=needs("score", "bge"))
    nu: Sequence[float] | None = field(default=None, metadata=needs("score", "bge"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nu is not None and self.standardise:
            raise ValueError(
                "StructureReward.nu is given, and standardise is True: expected standardise=False, or no nu, "
                "because standardised data have the mean 0"
            )
        if self.score == "bde":
            self._encode_columns()
        elif len(shape := _numbers(self.data, "data").shape) != 2:
            raise ValueError(f"data has shape {shape}: expected [observations, variables]")
        else:
            check_no_categories(self.data)
            named_columns(self.data)

    @property
    def levels(self) -> dict[str, list[Any]] | None:
        """The levels of each column for "bde": its values, or the bounds of the intervals that it was cut
        into; each includes its lower bound. `None` for the other scores."""
        return None if self.score != "bde" else {name: found for name, found, _ in self._encode_columns()}

    def _encode_columns(self) -> list[tuple[str, list[Any], npt.NDArray[Any]]]:
        """Returns, for each column, its name, its levels and the index of each observation's level."""
        return [(name, *find_levels(name, column, self.bins)) for name, column in named_columns(self.data)]

    def _values(self) -> dict[str, Any]:
        names = [name for name, _ in named_columns(self.data)]
        settings: dict[str, Any] = {}
        if self.score == "bde":
            coded = self._encode_columns()
            settings["labels"] = [[str(level) for level in found] for _, found, _ in coded]
            settings["cells"] = np.stack([places for _, _, places in coded], axis=1).ravel().tolist()
        else:
            settings["values"] = _numbers(self.data, "data").ravel().tolist()
            settings["standardise"] = bool(self.standardise)
        if self.score == "bge":
            settings |= {
                name: plain(getattr(self, name), f"StructureReward.{name}")
                for name in ("alpha_mu", "alpha_w", "nu")
            }
        return {"names": names, "score": {self.score: settings}}


@dataclass(frozen=True)
class BoxReward(Reward):
    """The original reward of the grid, on the points of the unit box."""

    r0: float = 0.1
    r1: float = 0.5
    r2: float = 2.0


@dataclass(frozen=True)
class LineReward(Reward):
    """A sum of Gaussians on the line, each given by a mean and a standard deviation."""

    modes: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class GaussianTarget(Reward):
    """A Gaussian whose coordinates are independent."""

    mean: Sequence[float]
    sd: float = 1.0


@dataclass(frozen=True)
class MixtureTarget(Reward):
    """A mixture of Gaussians in the plane; `seed` draws the means of `forty_modes`."""

    name: Literal["two_modes", "nine_modes", "twenty_five_modes", "forty_modes"] = "nine_modes"
    seed: int = field(default=0, metadata=bounds(0, LARGEST_SEED) | needs("name", "forty_modes"))


@dataclass(frozen=True)
class FunnelTarget(Reward):
    """Neal's funnel, a density whose first coordinate sets the scale of all others."""

    dim: int = 10
    sd: float = 3.0


@dataclass(frozen=True)
class PosteriorTarget(Reward):
    """The density of nine weighted modes divided by that of all 25 (`MixtureTarget("nine_modes")`,
    `"twenty_five_modes"`): the reward by which relative trajectory balance fine-tunes a prior of the 25 to
    the nine. Its integral doesn't exist, so it has a log Z only relative to a prior.
    """


@dataclass(frozen=True)
class CoxTarget(Reward):
    """A log-Gaussian Cox process (Moller et al. 1998): the posterior of log-intensities on a grid of `side`
    times `side` cells, given points that `seed` draws. It has `side**2` dimensions.
    """

    side: int = 8
    seed: int = field(default=0, metadata=bounds(0, LARGEST_SEED))


@dataclass(frozen=True)
class ManyWellTarget(Reward):
    """Double wells in every second coordinate; the others are Gaussian."""

    dim: int = 32
