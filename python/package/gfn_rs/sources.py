"""What a trainer's batches are made of besides the policy's own trajectories: a buffer, data, searches, a teacher."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Callable, ClassVar, Literal

import numpy as np
import torch

from ._settings import COUNT, Settings, needs, plain, variant
from .policies import Policy

Path = Literal["uniform_backward", "policy_backward", "stored"]


class SourceSettings(Settings):
    """What the entries of a trainer's `sources` share."""

    _role: ClassVar[str]
    """A noun for the source's role in a trainer, which has at most one source of each role."""


def sort_sources(sources: Any) -> dict[str, Any]:
    """Returns the sources of a trainer by their role.

    Raises a `TypeError` for anything that isn't a source, and a `ValueError` for two sources of one role.
    """
    examples = "expected a list of objects like Replay(), Data(objects) or LocalSearch(3)"
    if not isinstance(sources, Sequence) or isinstance(sources, str):
        raise TypeError(f"sources is {sources!r:.200}: {examples}")
    by_role: dict[str, Any] = {}
    for source in sources:
        if not isinstance(source, SourceSettings):
            raise TypeError(f"sources has {source!r:.200}: {examples}")
        if source._role in by_role:
            names = f"{type(by_role[source._role]).__name__} and {type(source).__name__}"
            expected = f"expected at most one {source._role}, remove one of the two"
            raise ValueError(f"sources has {names}: {expected}")
        by_role[source._role] = source
    return by_role


@dataclass(frozen=True)
class Replay(SourceSettings):
    """A buffer of objects that were drawn, `share` of each batch from it once `after` steps are made.

    With `distinct` no object is in it twice; with `diverse`, a full buffer takes only what is further than that from all that it holds,
    by the `norm` of the difference of vectors (where states are vectors, acyclic graphs or points).

    `draw` is uniform; by reward or loss to the power `exponent`; or by rank in the order of `rank_by`: in proportion to
    1 / rank^exponent, or to 1 / (`k` n + rank) of n objects, which favours about a share k of them. A function draws by a rule of your own:
    it is given an object's log R and its loss when it was last drawn, None if it never was, and gives the log of its weight. It is asked
    again and again, and must depend on nothing else; a run goes on with the function that it is given.

    Objects keep the log R that they were stored with. After step 10 and after every 100 steps the reward is asked about up to 8 replayed
    objects again, and a `TrainingWarning` says if it has changed.

    The path to an object is drawn anew by uniform steps back, by P_B, or is the one on which it was found (`stored`). Without it,
    `objects_alone` keeps no paths, which saves memory.
    """

    _role = "replay buffer"

    capacity: int = field(default=10_000, metadata=COUNT)
    share: float = 0.5
    after: int = field(default=10, metadata=COUNT)
    distinct: bool = False
    eviction: Literal["fifo", "best_reward"] = "fifo"
    draw: (
        Literal["uniform", "reward_prioritised", "loss_prioritised", "rank_prioritised", "weighted_ranks"]
        | Callable[[float, float | None], float]
    ) = "uniform"
    exponent: float = field(
        default=1.0, metadata=needs("draw", "reward_prioritised", "loss_prioritised", "rank_prioritised")
    )
    path: Path = "uniform_backward"
    rank_by: Literal["reward", "loss"] = field(
        default="reward", metadata=needs("draw", "rank_prioritised", "weighted_ranks")
    )
    k: float = field(default=0.01, metadata=needs("draw", "weighted_ranks"))
    diverse: float | None = None
    norm: Literal["l1", "l2", "max"] = "l2"
    objects_alone: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.objects_alone and self.path == "stored":
            raise ValueError("Replay.path is 'stored' with objects_alone: expected another path, as none are kept")
        if self.diverse is None and self.norm != "l2":
            raise ValueError(f"Replay.norm is {self.norm!r}, which changes nothing without diverse: expected a number there")
        if isinstance(self.draw, type):
            raise TypeError("Replay.draw is a type: expected the name of a draw, or a function of log R and a loss")

    def _priority(self) -> Callable[[float, float | None], float] | None:
        return None if isinstance(self.draw, str) else self.draw

    def _values(self) -> dict[str, Any]:
        exponent, by = plain(self.exponent, "exponent"), variant(self.rank_by)
        settings: dict[str, Any] = {
            "reward_prioritised": {"exponent": exponent},
            "loss_prioritised": {"exponent": exponent},
            "rank_prioritised": {"by": by, "exponent": exponent},
            "weighted_ranks": {"by": by, "k": plain(self.k, "k")},
        }
        named = self.draw if isinstance(self.draw, str) else "own"
        draw: Any = variant(named)
        return {
            "capacity": plain(self.capacity, "capacity"),
            "distinct": plain(self.distinct, "distinct"),
            "diverse": None if self.diverse is None else {"cutoff": plain(self.diverse, "diverse"), "norm": variant(self.norm)},
            "objects_alone": plain(self.objects_alone, "objects_alone"),
            "eviction": variant(self.eviction),
            "draw": {draw: settings[named]} if named in settings else draw,
        }


@dataclass(frozen=True, eq=False)
class Data(SourceSettings):
    """Given objects, as `sample` shows them (of molecules SMILES, too): `share` of each batch is paths to them, drawn back by uniform
    steps or by P_B. A molecule that is several trees of `Fragments` is all of them, ten at most, and counts as often as any other. They must be finished objects of the environment. The reward is asked for theirs; under conditions, those of each
    object are given, `[n, n_conditions]`."""

    _role = "data set"

    objects: Any = field(repr=False)
    share: float = 0.5
    path: Literal["uniform_backward", "policy_backward"] = "uniform_backward"
    conditions: Any = field(default=None, repr=False)


@dataclass(frozen=True)
class Source(SourceSettings):
    """Objects of your own, anew for each batch: `function(n, rng)` is given their number, `share` of the batch, and a generator of numpy,
    and gives so many finished objects. Paths to them are drawn back by P_B; the reward is asked for them, and a replay buffer takes them."""

    _role = "source of objects"

    function: Callable[[int, np.random.Generator], Any]
    share: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_function(self, "a number and a generator")


@dataclass(frozen=True)
class Wanted:
    """How many objects a trainer wants of a `FreshSource`."""

    least: int
    """It can't do with fewer. 0 once the replay buffer can fill the batch in place of what isn't there yet."""
    most: int
    """So many go into the batch."""
    more: bool
    """Whether there may be more: those in front go into the replay buffer alone."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """What a `FreshSource` gives: objects, log R of each where it is known (else the reward is asked), and in a trainer with conditions
    those that they were found under, `[n, n_conditions]`. In place of objects there may be `Trajectories`, which know both: the way that was
    taken is learned from then, and none drawn."""

    objects: Any
    log_rewards: Any = None
    conditions: Any = None


@dataclass(frozen=True)
class FreshSource(SourceSettings):
    """Fresh objects from elsewhere, in place of the policy's own: of other processes that sample with a copy of it, of an experiment.
    `function(wanted, rng)` is given a `Wanted` and a generator of numpy, and gives finished objects, or `Drawn(objects, log_rewards)`, or
    None for none yet. They count as new objects and go into the replay buffer. Paths to them are drawn back by P_B, so the objective must
    learn from any trajectory.

    The trainer is at work while the function runs; the tensors of `trainer.named_parameters()`, taken before, are as they are then.
    """

    _role = "source of fresh trajectories"

    function: Callable[[Wanted, np.random.Generator], Any]

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_function(self, "a `Wanted` and a generator")


@dataclass(frozen=True)
class LocalSearch(SourceSettings):
    """Local search (Kim et al. 2024): from each fresh object up to `max_back` steps back by P_B and forwards again by P_F, `rounds` times
    one after another. What is found joins the batch; a proposal is taken by the rule of Metropolis and Hastings, or if it is better."""

    _role = "local search"

    max_back: int
    rounds: int = 1
    acceptance: Literal["metropolis_hastings", "greedy"] = "metropolis_hastings"

    def _json(self) -> Any:
        return {"rounds": self.rounds, "max_back": self.max_back, "acceptance": variant(self.acceptance)}


@dataclass(frozen=True)
class Teacher(SourceSettings):
    """An adaptive teacher (Kim et al. 2025): a second policy that supplies `share` of each batch, and learns to sample where the
    trainer's own is wrong: in proportion to the squared imbalance, `1 + under_sampled` times as much where that samples too rarely, times
    R^`alpha`. `epsilon` is added to the square."""

    _role = "teacher"

    policy: Policy
    share: float = 0.5
    under_sampled: float = 19.0
    alpha: float = 0.5
    epsilon: float = 1e-3
    lr: float = 1e-3
    log_z_lr: float = 1e-1
    max_norm: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.policy) is Policy:
            raise TypeError("Teacher.policy is Policy: expected an object of a class like Mlp()")

    def _values(self) -> dict[str, Any]:
        numbers = {name: plain(getattr(self, name), name) for name in ("share", "under_sampled", "alpha", "epsilon")}
        return {**numbers, "adam": {name: plain(getattr(self, name), name) for name in ("lr", "log_z_lr", "max_norm")}}


@dataclass(frozen=True)
class Thompson(SourceSettings):
    """Thompson sampling by the heads of one policy, `Mlp(heads=8)` (Rector-Brooks et al. 2023).

    share
        The share of a batch that each head learns from, above 0 and at most 1.
    """

    _role = "source of fresh trajectories"

    share: float


@dataclass(frozen=True)
class Search(SourceSettings):
    """A search of your own: every `every` steps `function(objects, rng)` is given `objects` objects of the replay buffer and a generator
    of numpy, and gives other objects, which the reward is asked for and which go into the buffer."""

    _role = "search"

    function: Callable[[Any, np.random.Generator], Any]
    every: int = 100
    objects: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_function(self, "objects and a generator")

    def _search(self) -> dict[str, Any]:
        return {"every": self.every, "objects": self.objects, "mala": None}


@dataclass(frozen=True)
class Mala(SourceSettings):
    """The Metropolis-adjusted Langevin algorithm as a search (Sendera et al. 2024), for diffusions with a target of the library's: every
    `every` steps a chain from each of `objects` objects of the replay buffer, of which every `thin`-th point behind `burn_in` is kept."""

    _role = "search"

    every: int = 100
    objects: int = 300
    steps: int = field(default=200, metadata=COUNT)
    burn_in: int = 100
    thin: int = 10
    step_size: float = 0.01
    acceptance: float = 0.574

    def _search(self) -> dict[str, Any]:
        names = ("steps", "burn_in", "thin", "step_size", "acceptance")
        mala = {name: plain(getattr(self, name), name) for name in names}
        return {"every": self.every, "objects": self.objects, "mala": mala}


@dataclass(frozen=True)
class Hindsight(SourceSettings):
    """Other conditions for what is replayed: each object gets them with probability `share`, from
    `function(objects, conditions, rng)`, and the reward is asked again. The conditions are a tensor `[n, n_conditions]`."""

    _role = "relabelling of conditions"

    function: Callable[[Any, torch.Tensor, np.random.Generator], Any]
    share: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_function(self, "objects, conditions and a generator")


@dataclass(frozen=True)
class FocusInHindsight(SourceSettings):
    """The same where conditions are a `Conditioning` with a focus: with probability `share` the direction of what is replayed becomes that of
    the object's own rewards, so that it is one that was wanted (Roy et al. 2023)."""

    _role = "relabelling of conditions"

    share: float = 0.5


def _check_function(settings: Source | Search | Hindsight | FreshSource, of: str) -> None:
    function = settings.function
    if isinstance(function, type) or not callable(function):
        raise TypeError(f"{type(settings).__name__}.function is a {type(function).__name__}: expected a function of {of}")
