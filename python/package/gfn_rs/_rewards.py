"""Rewards of the library. A custom reward is any function of a batch of states that returns log R of each
state.

A custom reward may have a method `partial_log_reward`, which returns log R of unfinished states.
Forward-looking objectives need it, except for `BayesianStructure`, whose graphs can all be finished.
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
    """The base class of the library's rewards. A custom reward needs no base class: it is any function of a
    batch of states that returns log R of each state.

    >>> isinstance(gfn.RingReward(), gfn.Reward)
    True
    """


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
    """R is `ring` for a graph that is one cycle through all nodes, and `floor` for any other graph.

    >>> reward, net = gfn.RingReward(ring=2.0, floor=1.0), gfn.GraphNet(embedding=8)
    >>> exact = gfn.Trainer(gfn.Ring(3), reward, net).exact()
    >>> sorted(np.unique(np.exp(exact.log_rewards).round(6)).tolist())
    [1.0, 2.0]
    """

    ring: float = 100.0
    floor: float = 1e-6


@dataclass(frozen=True)
class TriangleReward(Reward):
    """R is `triangle` for a triangle, and `floor` for any other graph.

    >>> net = gfn.GraphNet(embedding=8)
    >>> gfn.Trainer(gfn.Triangle(1), gfn.TriangleReward(), net, batch=8).fit(2).steps_done
    2
    """

    triangle: float = 100.0
    floor: float = 1e-3


@dataclass(frozen=True)
class ColoredGraphReward(Reward):
    """A reward of the basic graph task of recursionpharma/gflownet: one of three rewards of `ColoredGraphs`.

    kind
        With `count`, the default, log R = -10/4 |a + b/2 - 3| for a and b nodes of the two colours. With
        `even`, log R grows with the number of nodes that have an even number of neighbours of the other
        colour. With `clique`, log R depends on the maximal cliques of 4 nodes.

    >>> net = gfn.GraphNet(embedding=8)
    >>> exact = gfn.Trainer(gfn.ColoredGraphs(2), gfn.ColoredGraphReward("count"), net).exact()
    >>> float(exact.log_rewards[1:].max())
    -2.5
    """

    kind: Literal["count", "even", "clique"] = "count"


@dataclass(frozen=True)
class SizeReward(Reward):
    """log R is `beta` times the number of nodes of an `IndependentSet` or `Clique`, or `beta` times the
    number of cut edges of a `Cut`. For a `DominatingSet` it is -`beta` times the number of nodes, because
    small dominating sets are sought.

    >>> path = gfn.Graphs.from_arrays([3], [(0, 1), (1, 2)], [0, 2], directed=False)
    >>> net = gfn.GraphNet(embedding=8, identity=False)
    >>> env, reward = gfn.IndependentSet(path), gfn.SizeReward(beta=2.0)
    >>> float(gfn.Trainer(env, reward, net, gfn.DetailedBalance(), batch=8).exact().log_rewards.max())
    4.0
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
    r"""A score of molecules by a program, to the power `beta`.

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

    >>> import sys
    >>> program = "import sys\nfor line in sys.stdin: print(len(line), flush=True)"
    >>> reward = gfn.ExternalReward([sys.executable, "-c", program])
    >>> env = gfn.Molecules(3, ["C"], charges=False)
    >>> gfn.Trainer(env, reward, gfn.GraphNet(embedding=8), batch=8).fit(1).steps_done
    1
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

    >>> reward = gfn.CachedReward(lambda points: -points.sum(axis=1), capacity=1000)
    >>> gfn.Trainer(gfn.HyperGrid(2, 3), reward, gfn.Mlp((8,)), batch=8).fit(2).steps_done
    2
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
    """A reward of the states of `HyperGrid`.

    kind
        The name of the reward. `original`, the default, is the sum of a constant, a plateau near each
        corner and a higher plateau inside of it (Bengio et al. 2021).
    preset
        The difficulty of the reward, which sets its parameters; by default the parameters are the
        library's.

    >>> trainer = gfn.Trainer(gfn.HyperGrid(2, 8), gfn.HyperGridReward("cosine"), gfn.Mlp((8,)), batch=8)
    >>> trainer.exact().n_states
    64
    """

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

    >>> trainer = gfn.Trainer(gfn.HyperGrid(2, 3), gfn.ConditionalGridReward(), gfn.Mlp((8,)), batch=8)
    >>> bool(np.ptp(trainer.exact(condition=[0.0]).log_rewards) < 1e-12)
    True
    """


@dataclass(frozen=True)
class HammingReward(Reward):
    """log R = -d / `temperature`, where d is the Hamming distance in bits from the nearest mode. The reward
    is for `BitSequence` and the other environments of bit strings.

    modes
        Texts of the characters 0 and 1, each as long as a bit string.
    temperature
        A number above 0, 1 by default.

    >>> reward = gfn.HammingReward(["0000", "1111"], temperature=0.5)
    >>> exact = gfn.Trainer(gfn.BitSequence(1, 4), reward, gfn.Mlp((8,)), batch=8).exact()
    >>> sorted(set((-exact.log_rewards[np.isfinite(exact.log_rewards)]).tolist()))
    [0.0, 2.0, 4.0]
    """

    modes: Sequence[str]
    temperature: float = 1.0


# `eq=False`, because the equality that a dataclass generates compares fields by `==`, which returns an array
# for arrays.
@dataclass(frozen=True, eq=False)
class IsingReward(Reward):
    """log R is -`alpha` times the energy of the spins of `DiscreteEbm`. The energy is -s^T J s for spins of
    -1 and +1.

    couplings
        The matrix J, an array `[n, n]` of finite numbers, which doesn't have to be symmetric.
    alpha
        A factor on the energy, 1 by default.

    >>> reward = gfn.IsingReward([[0.0, 1.0], [1.0, 0.0]])
    >>> exact = gfn.Trainer(gfn.DiscreteEbm(2), reward, gfn.Mlp((8,)), batch=8).exact()
    >>> sorted(set(exact.log_rewards[np.isfinite(exact.log_rewards)].tolist()))
    [-2.0, 2.0]
    """

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
    """R is `base` plus the sum of the weights of the items in a set of `SetAddition`. `base` is above 0, and
    `weights` has a number of at least 0 for each item.

    >>> reward = gfn.WeightReward(0.5, [1.0, 2.0])
    >>> exact = gfn.Trainer(gfn.SetAddition(2, 2), reward, gfn.Mlp((8,)), batch=8).exact()
    >>> sorted(np.exp(exact.log_rewards).round(6).tolist())
    [0.5, 1.5, 2.5, 3.5]
    """

    base: float
    weights: Sequence[float]


@dataclass(frozen=True)
class ParsimonyReward(Reward):
    """log R = (`offset` - parsimony) / `temperature` of a tree of `PhyloTree`. The parsimony is the smallest
    number of mutations by which the tree explains the sequences of its species (Fitch 1971).

    sequences
        A text of DNA or RNA for each species, all of equal length.
    offset, temperature
        A number that is added to -parsimony, and a number above 0, 1 by default.

    >>> reward = gfn.ParsimonyReward(["AC", "AC", "GC", "GT"], offset=0.0)
    >>> float(gfn.Trainer(gfn.PhyloTree(4), reward, gfn.Mlp((8,)), batch=8).exact().log_rewards.max())
    -2.0
    """

    sequences: Sequence[str]
    offset: float
    temperature: float = 1.0


@dataclass(frozen=True)
class TableReward(Reward):
    r"""A reward of `TokenSequence` from a table: R of a sequence is its number in a file, to the power
    `exponent`.

    alphabet
        A character for each token, in the order of the tokens.
    path
        A file with the first line `sequence,reward`, and a sequence and a number above 0 on each further
        line.
    floor
        R of sequences that the file doesn't list. With None, the file must list all sequences.
    exponent
        The exponent of R, 1 by default.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "table.csv"
    ...     _ = path.write_text("sequence,reward\nAC,2\nCC,3\n")
    ...     reward = gfn.TableReward("AC", path, floor=0.5)
    ...     exact = gfn.Trainer(gfn.TokenSequence(2, 2), reward, gfn.SequenceNet(width=8), batch=8).exact()
    >>> round(float(np.exp(exact.log_z)), 6)
    6.0
    """

    alphabet: str
    path: str | PathLike[str]
    floor: float | None = None
    exponent: float = 1.0


@dataclass(frozen=True)
class ToyReward(Reward):
    """A reward that is a table: `rewards` has R of each of the six states of `ToyDag` in which trajectories
    can end, in the order of the states' numbers.

    >>> trainer = gfn.Trainer(gfn.ToyDag(), gfn.ToyReward([1, 1, 1, 1, 1, 2]), gfn.Mlp((8,)), batch=8)
    >>> round(float(np.exp(trainer.exact().log_z)), 6)
    7.0
    """

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
    """R = `r0` + `r1` near the corners + `r2` in a band inside of these regions, on the points of `Box`: the
    reward `original` of `HyperGridReward`, on a continuous box.

    >>> trainer = gfn.Trainer(gfn.Box(), gfn.BoxReward(r0=0.01), gfn.BoxNet((16,), components=2), batch=8)
    >>> points, log_rewards = trainer.sample_with_rewards(4)
    >>> log_rewards.shape
    (4,)
    """

    r0: float = 0.1
    r1: float = 0.5
    r2: float = 2.0


@dataclass(frozen=True)
class LineReward(Reward):
    """A sum of Gaussian densities on the line, for `Line`. `modes` has a mean and a standard deviation above
    0 for each density. Z is the number of densities.

    >>> reward = gfn.LineReward([(-2.0, 0.5), (2.0, 0.5)])
    >>> gfn.Trainer(gfn.Line(2), reward, gfn.LineNet((16,)), batch=8).fit(2).steps_done
    2
    """

    modes: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class GaussianTarget(Reward):
    """A Gaussian density with independent coordinates, for `Diffusion`. `mean` has a number per coordinate,
    and `sd`, above 0, is the standard deviation of each coordinate, 1 by default.

    >>> env, net = gfn.Diffusion(2, steps=5), gfn.DiffusionNet()
    >>> gfn.Trainer(env, gfn.GaussianTarget([1.0, -1.0], sd=0.5), net, batch=8).fit(2).steps_done
    2
    """

    mean: Sequence[float]
    sd: float = 1.0


@dataclass(frozen=True)
class MixtureTarget(Reward):
    """A mixture of Gaussians in the plane, chosen by `name`. The means of `forty_modes` are random numbers
    from `seed`.

    >>> net = gfn.DiffusionNet()
    >>> gfn.Trainer(gfn.Diffusion(2, steps=5), gfn.MixtureTarget("two_modes"), net, batch=8).fit(2).steps_done
    2
    """

    name: Literal["two_modes", "nine_modes", "twenty_five_modes", "forty_modes"] = "nine_modes"
    seed: int = field(default=0, metadata=bounds(0, LARGEST_SEED) | needs("name", "forty_modes"))


@dataclass(frozen=True)
class FunnelTarget(Reward):
    """Neal's funnel, a density whose first coordinate sets the scale of all others, for `Diffusion`. `dim` is
    the number of dimensions, and `sd` the standard deviation of the first coordinate.

    >>> net = gfn.DiffusionNet()
    >>> gfn.Trainer(gfn.Diffusion(3, steps=5), gfn.FunnelTarget(3), net, batch=8).fit(2).steps_done
    2
    """

    dim: int = 10
    sd: float = 3.0


@dataclass(frozen=True)
class PosteriorTarget(Reward):
    """The density of `MixtureTarget("nine_modes")` divided by the density of
    `MixtureTarget("twenty_five_modes")`. With this reward, relative trajectory balance fine-tunes a prior
    with 25 modes to nine weighted modes. The reward has no finite integral, so log Z exists only relative to
    a prior.

    >>> env, net = gfn.Diffusion(2, steps=5), gfn.DiffusionNet()
    >>> prior = gfn.Trainer(env, gfn.MixtureTarget("twenty_five_modes"), net, batch=8).fit(1)
    >>> objective = gfn.RelativeTrajectoryBalance(prior)
    >>> gfn.Trainer(env, gfn.PosteriorTarget(), net, objective, batch=8).fit(1).steps_done
    1
    """


@dataclass(frozen=True)
class CoxTarget(Reward):
    """A log-Gaussian Cox process (Moller et al. 1998): the posterior of the log-intensities in `side` times
    `side` cells of the unit square, given random points from `seed`. The density has `side**2` dimensions.

    >>> net = gfn.DiffusionNet()
    >>> gfn.Trainer(gfn.Diffusion(4, steps=5), gfn.CoxTarget(side=2), net, batch=8).fit(1).steps_done
    1
    """

    side: int = 8
    seed: int = field(default=0, metadata=bounds(0, LARGEST_SEED))


@dataclass(frozen=True)
class ManyWellTarget(Reward):
    """A density with a double well in every second coordinate. The other coordinates are Gaussian.
    `dim`, an even number, is the number of coordinates.

    >>> net = gfn.DiffusionNet()
    >>> gfn.Trainer(gfn.Diffusion(4, steps=5), gfn.ManyWellTarget(4), net, batch=8).fit(1).steps_done
    1
    """

    dim: int = 32
