"""The sources of a trainer's batches besides the policy's own trajectories: a replay buffer, data, searches,
a teacher."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Callable, ClassVar, Literal

import numpy as np
import torch

from ._settings import COUNT, Settings, needs, plain, variant
from ._policies import Policy

Path = Literal["uniform_backward", "policy_backward", "stored"]

# The exponent p of each norm that `Replay.norm` names.
_EXPONENTS = {"l1": 1.0, "l2": 2.0, "max": math.inf}


class SourceSettings(Settings):
    """The base class of the entries of a trainer's `sources`."""

    _role: ClassVar[str]
    """The role of this source in a trainer, such as "teacher". A trainer has at most one source of each
    role."""

    def _described(self) -> dict[str, Any]:
        """Returns the settings without functions and objects, in the form that is stored in checkpoints."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]
        return {
            name: plain(value, name)
            for name, value in values.items()
            if not (callable(value) or isinstance(value, Settings))
        }


def sort_sources(sources: Any) -> dict[str, Any]:
    """Returns the sources of a trainer by their roles. Raises a `TypeError` for an entry that isn't a source,
    and a `ValueError` for two sources with the same role.
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
    """A replay buffer of sampled objects.

    capacity
        The largest number of objects, at least 1.
    share
        The share of each batch that is drawn from the buffer.
    after
        The number of training steps before the first draw from the buffer.
    distinct
        True if an object is in the buffer at most once.
    eviction
        The object that a full buffer drops for a new one: the oldest object (`fifo`), or the object of the
        lowest reward (`best_reward`).
    draw
        The probabilities with which objects are drawn. With `uniform`, they are equal. With
        `reward_prioritised` or `loss_prioritised`, they are in proportion to the reward or the loss to the
        power `exponent`. With `rank_prioritised`, they are in proportion to 1 / rank^`exponent`, where the
        rank is an object's position in the order of `rank_by`. With `weighted_ranks`, they are in proportion
        to 1 / (`k` n + rank) for n objects, which favours about the share `k` of the objects with the best
        ranks. Or `draw` is a function that returns the log of an object's weight. Its arguments are the
        object's log R and the loss when the object was last drawn (None before the first draw). The function
        is called often, and its result must depend on these two arguments only. A resumed run uses the
        function in the settings of the new trainer.
    path
        The trajectory to a drawn object: sampled again by uniform backward steps or by P_B, or the trajectory
        by which the object was found (`stored`).
    diverse, norm
        The smallest distance between objects. A full buffer accepts an object only if its distance from every
        other object in the buffer is larger. The distance is the `norm` of the difference of two states. Only
        for environments whose states are vectors, acyclic graphs or points.
    objects_alone
        True if the buffer stores objects without trajectories, which saves memory. In this case `path` can't
        be `stored`.

    Each object keeps the log R that it was stored with. After step 10 and after every 100 steps the reward is
    computed again for up to 8 replayed objects, and a `TrainingWarning` reports a change.

    >>> sources = [gfn.Replay(1000, draw="reward_prioritised", after=1)]
    >>> env, net = gfn.HyperGrid(2, 3), gfn.Mlp((8,))
    >>> trainer = gfn.Trainer(env, gfn.HyperGridReward(), net, batch=8, sources=sources).fit(3)
    >>> trainer.replay_len > 0
    True
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
            raise ValueError(
                "Replay.path is 'stored' with objects_alone: expected another path, because the buffer keeps "
                "objects without their trajectories"
            )
        if self.diverse is None and self.norm != "l2":
            raise ValueError(
                f"Replay.norm is {self.norm!r}, which has no effect if diverse is None: expected diverse to "
                "be a number, or norm to be 'l2'"
            )
        if isinstance(self.draw, type):
            raise TypeError(
                "Replay.draw is a class: expected the name of a rule, such as 'uniform', or a function of "
                "log R and the loss"
            )

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
        named = self.draw if isinstance(self.draw, str) else "custom"
        draw: Any = variant(named)
        return {
            "capacity": plain(self.capacity, "capacity"),
            "distinct": plain(self.distinct, "distinct"),
            "diverse": None if self.diverse is None else (float(self.diverse), _EXPONENTS[self.norm]),
            "objects_alone": plain(self.objects_alone, "objects_alone"),
            "eviction": variant(self.eviction),
            "draw": {draw: settings[named]} if named in settings else draw,
        }


@dataclass(frozen=True, eq=False)
class Data(SourceSettings):
    """User-defined objects, as a batch of states like the one that `Trainer.sample` returns (for molecules
    also SMILES).

    objects
        Finished objects of the environment. The reward is computed for them. If a molecule is several trees
        of `Fragments`, all of them are used, ten at most, and the molecule counts as often as any other.
    share
        The share of each batch that is drawn from these objects.
    path
        The trajectory to an object: sampled by uniform backward steps, or by P_B.
    conditions
        The condition of each object, `[n, width]`, in a trainer with conditions.

    >>> sources = [gfn.Data(np.array([[2, 2], [0, 1]]), share=0.25)]
    >>> env, net = gfn.HyperGrid(2, 3), gfn.Mlp((8,))
    >>> gfn.Trainer(env, gfn.HyperGridReward(), net, batch=8, sources=sources).fit(2).steps_done
    2
    """

    _role = "data set"

    objects: Any = field(repr=False)
    share: float = 0.5
    path: Literal["uniform_backward", "policy_backward"] = "uniform_backward"
    conditions: Any = field(default=None, repr=False)


@dataclass(frozen=True)
class Source(SourceSettings):
    """Objects that a function returns for each batch. Trajectories to these objects are sampled by P_B, their
    reward is computed, and they enter the replay buffer if there is one.

    function
        A function of a number n and a random generator of numpy, which returns n finished objects.
    share
        The share of each batch that the function supplies.

    >>> sources = [gfn.Source(lambda n, rng: rng.integers(0, 3, size=(n, 2)), share=0.5)]
    >>> env, net = gfn.HyperGrid(2, 3), gfn.Mlp((8,))
    >>> gfn.Trainer(env, gfn.HyperGridReward(), net, batch=8, sources=sources).fit(2).steps_done
    2
    """

    _role = "source of objects"

    function: Callable[[int, np.random.Generator], Any]
    share: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_function(self, "a number and a generator")


@dataclass(frozen=True)
class BatchRequest:
    """The request that a trainer passes to the function of a `FreshSource`, for a number of objects.

    >>> request = gfn.BatchRequest(min=0, max=8, allow_more=False)
    >>> request.max
    8
    """

    min: int
    """The smallest number of objects that may be returned; 0 if the replay buffer can fill the batch."""
    max: int
    """The largest number of objects that enter the batch."""
    allow_more: bool
    """True if more than `max` objects may be returned. In this case the last `max` objects enter the batch,
    and the objects before them enter the replay buffer only."""


@dataclass(frozen=True, eq=False)
class FreshObjects:
    """The answer of a `FreshSource`.

    objects
        Finished objects, or `Trajectories` with log R and conditions. With `Trajectories`, the trainer learns
        from their actions, and no trajectories to the objects are sampled.
    log_rewards
        log R of each object; None if the reward has to be computed.
    conditions
        The condition under which each object was found, `[n, width]`, in a trainer with conditions.

    >>> objects = np.array([[0, 1], [2, 2]])
    >>> gfn.FreshObjects(objects, log_rewards=-objects.sum(axis=1)).log_rewards.tolist()
    [-1, -4]
    """

    objects: Any
    log_rewards: Any = None
    conditions: Any = None


@dataclass(frozen=True)
class FreshSource(SourceSettings):
    """Objects that replace the policy's own trajectories. Such objects come, for example, from other
    processes that sample with a copy of the policy, or from an experiment. The objects count as new and enter
    the replay buffer. Trajectories to them are sampled by P_B, so the objective must be off-policy.

    function
        A function of a `BatchRequest` and a random generator of numpy. The function returns finished objects,
        or `FreshObjects(objects, log_rewards)`, or None if there are no objects yet.

    The function can't use the trainer while it runs. But the function can read the policy's parameters from
    tensors that `trainer.named_parameters()` returned before; these tensors have the current values.

    >>> sources = [gfn.FreshSource(lambda request, rng: rng.integers(0, 3, size=(request.max, 2)))]
    >>> env, net = gfn.HyperGrid(2, 3), gfn.Mlp((8,))
    >>> gfn.Trainer(env, gfn.HyperGridReward(), net, batch=8, sources=sources).fit(2).steps_done
    2
    """

    _role = "source of fresh trajectories"

    function: Callable[[BatchRequest, np.random.Generator], Any]

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_function(self, "a `BatchRequest` and a generator")


@dataclass(frozen=True)
class LocalSearch(SourceSettings):
    """A local search from each new object: backward steps by P_B, then forward steps by P_F (Kim et al.
    2024). The objects that the search finds are added to the batch.

    max_back
        The largest number of backward steps, at least 1.
    rounds
        The number of successive searches from the same object, at least 1.
    acceptance
        The rule by which the object that a search finds replaces the object that it started from: the rule of
        Metropolis and Hastings, or `greedy`. By `greedy`, only an object of a higher reward is accepted.

    >>> sources = [gfn.LocalSearch(max_back=2, acceptance="greedy")]
    >>> env, net = gfn.HyperGrid(2, 3), gfn.Mlp((8,))
    >>> gfn.Trainer(env, gfn.HyperGridReward(), net, batch=8, sources=sources).fit(2).steps_done
    2
    """

    _role = "local search"

    max_back: int
    rounds: int = 1
    acceptance: Literal["metropolis_hastings", "greedy"] = "metropolis_hastings"

    def _json(self) -> Any:
        return {"rounds": self.rounds, "max_back": self.max_back, "acceptance": variant(self.acceptance)}


@dataclass(frozen=True)
class Teacher(SourceSettings):
    """An adaptive teacher: a second policy that learns to sample where the trainer's own policy is wrong (Kim
    et al. 2025). The teacher's reward of an object is the squared imbalance (log Z + log P_F - log R - log
    P_B) of the trainer's policy on a trajectory to this object, times R^`alpha`. The square is multiplied by
    `1 + under_sampled` if the trainer's policy samples the object too rarely.

    policy
        The settings of the teacher's network.
    share
        The share of each batch that the teacher supplies, above 0.
    under_sampled, alpha, epsilon
        The additional weight of objects that are sampled too rarely; the exponent of R; and a number above 0
        that is added to the squared imbalance.
    lr, log_z_lr, max_norm
        The learning rate of the teacher's network, the learning rate of its log Z, and the norm that the
        teacher's gradients are clipped to.

    >>> sources = [gfn.Teacher(gfn.Mlp((8,)), share=0.25)]
    >>> env, net = gfn.HyperGrid(2, 3), gfn.Mlp((8,))
    >>> gfn.Trainer(env, gfn.HyperGridReward(), net, batch=8, sources=sources).fit(2).steps_done
    2
    """

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
            raise TypeError(
                "Teacher.policy is Policy, the base class: expected an object of a derived class, such as "
                "Mlp()"
            )

    @property
    def _config(self) -> dict[str, Any]:
        """Returns the teacher's settings, under the names that the extension uses."""
        values = self._described()
        rates = {name: values[name] for name in ("lr", "log_z_lr", "max_norm")}
        return {**{name: values[name] for name in ("under_sampled", "alpha", "epsilon")}, "adam": rates}


@dataclass(frozen=True)
class Thompson(SourceSettings):
    """Thompson sampling: a random head of the policy draws each trajectory (Rector-Brooks et al. 2023). The
    policy must have several heads, for example `Mlp(heads=8)`.

    share
        The share of a batch that each head learns from, above 0 and at most 1.

    >>> sources = [gfn.Thompson(share=0.5)]
    >>> env, net = gfn.HyperGrid(2, 3), gfn.Mlp((8,), heads=4)
    >>> gfn.Trainer(env, gfn.HyperGridReward(), net, batch=8, sources=sources).fit(2).steps_done
    2
    """

    _role = "source of fresh trajectories"

    share: float


@dataclass(frozen=True)
class Search(SourceSettings):
    """A search from objects of the replay buffer, by a function. The reward of the objects that it returns is
    computed, and these objects enter the buffer.

    function
        A function of objects and a random generator of numpy, which returns any number of other objects.
    every
        The number of steps between searches, at least 1.
    objects
        The number of objects that a search starts from, at least 1.

    >>> sources = [gfn.Replay(100), gfn.Search(lambda objects, rng: (objects + 1) % 3, every=2, objects=4)]
    >>> env, net = gfn.HyperGrid(2, 3), gfn.Mlp((8,))
    >>> gfn.Trainer(env, gfn.HyperGridReward(), net, batch=8, sources=sources).fit(4).steps_done
    4
    """

    _role = "search"

    function: Callable[[Any, np.random.Generator], Any]
    every: int = 100
    objects: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_function(self, "objects and a generator")


@dataclass(frozen=True)
class Mala(SourceSettings):
    """A search by the Metropolis-adjusted Langevin algorithm, for `Diffusion` with a reward of the library
    (Sendera et al. 2024).

    every
        The number of steps between searches.
    objects
        The number of Markov chains, each of which starts from an object of the replay buffer.
    steps, burn_in, thin
        The number of steps of a chain. Every `thin`-th point after the first `burn_in` steps is kept.
    step_size, acceptance
        The initial step size, and the share of accepted steps. The step size is adapted so that this share of
        steps is accepted.

    >>> sources = [gfn.Replay(100), gfn.Mala(every=2, objects=4, steps=20, burn_in=10, thin=5)]
    >>> env, net = gfn.Diffusion(2, steps=5), gfn.DiffusionNet()
    >>> gfn.Trainer(env, gfn.MixtureTarget(), net, batch=8, sources=sources).fit(4).steps_done
    4
    """

    _role = "search"

    every: int = 100
    objects: int = 300
    steps: int = field(default=200, metadata=COUNT)
    burn_in: int = 100
    thin: int = 10
    step_size: float = 0.01
    acceptance: float = 0.574

    @property
    def _chains(self) -> dict[str, Any]:
        """Returns the settings of the Markov chains, under the names that the extension uses."""
        return {name: value for name, value in self._values().items() if name not in ("every", "objects")}


@dataclass(frozen=True)
class ChainSource(SourceSettings):
    """Markov chains that search for objects of high reward, from which the policy learns:
    Metropolis-Hastings, or replica exchange with several `powers`. They propose objects by the moves of the
    environment, with the exact ratio of proposals. All objects whose reward is known are stored, and drawn
    in proportion to R to the power `exponent`. For discrete environments, without conditions.

    share
        The share of each batch, above 0, whose trajectories lead to stored objects.
    ladders, powers
        The number of ladders, and the powers of R that the chains of each ladder sample. A ladder has one
        chain for each power, and neighbours exchange their objects. A power of 0 samples all objects alike.
    rounds
        The number of proposals of each chain before each training step, at least 1. A step computes up to
        `ladders * len(powers) * rounds` rewards.
    proposals, max_back
        `one_move` proposes the result of one random move, forward or backward. `back_and_forth` proposes
        the result of up to `max_back` random moves backward, followed by moves forward to a finished
        object; `policy` draws these moves from P_B and P_F. `automatic` chooses `one_move` if such moves
        lead from object to object, and otherwise `back_and_forth` with enough moves to reach all objects.
    score_changes
        True if the chains ask a reward of the library for the change of log R by one move only.
    max_reward_calls
        The number of rewards, at least 1, after which the chains stop, and only stored objects are drawn;
        None for no limit.
    patience
        The number of rounds without a larger reward after which a ladder starts anew; None for chains that
        are never restarted.
    starts, candidates, rounds_between
        The objects at which chains start, drawn from some candidates in proportion to R to the largest
        power: the new samples of the policy, or nearly uniform objects (`uniform`, only with `patience`).
        Each start then has `candidates` candidates: the objects of as many chains of power 0, which make
        `rounds_between` rounds before each start. Each candidate costs a reward.
    capacity, exponent
        The largest number of stored objects, of which those of the lowest rewards are dropped first, and
        the exponent by which they are drawn.
    path
        The trajectory to a drawn object: sampled by uniform backward steps, or by P_B.

    >>> sources = [gfn.ChainSource(ladders=4, patience=5, starts="uniform", candidates=8)]
    >>> env, net = gfn.HyperGrid(2, 3), gfn.Mlp((8,))
    >>> gfn.Trainer(env, gfn.HyperGridReward(), net, batch=8, sources=sources).fit(2).steps_done
    2
    """

    _role = "chains"

    share: float = 0.5
    ladders: int = 16
    powers: Sequence[float] = (1.0,)
    rounds: int = 4
    proposals: Literal["automatic", "one_move", "back_and_forth", "policy"] = "automatic"
    max_back: int = field(default=4, metadata=needs("proposals", "back_and_forth", "policy"))
    score_changes: bool = False
    max_reward_calls: int | None = field(default=None, metadata=COUNT)
    patience: int | None = None
    starts: Literal["policy", "uniform"] = "policy"
    candidates: int = field(default=64, metadata=needs("starts", "uniform"))
    rounds_between: int = field(default=100, metadata=needs("starts", "uniform"))
    capacity: int = field(default=100_000, metadata=COUNT)
    exponent: float = 1.0
    path: Literal["uniform_backward", "policy_backward"] = "uniform_backward"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.patience is None and self.starts == "uniform":
            raise ValueError(
                "ChainSource.starts is 'uniform' with patience=None: expected patience to be a number of "
                "rounds, because chains that are never restarted start at samples of the policy"
            )

    @property
    def _config(self) -> dict[str, Any]:
        """Returns the settings of the source, under the names that the extension uses."""
        values = self._described()
        proposal: Any = variant(self.proposals)
        if self.proposals in ("back_and_forth", "policy"):
            proposal = {proposal: {"max_back": values["max_back"]}}
        starts: Any = "Policy"
        if self.starts == "uniform":
            starts = {"Uniform": {"candidates": values["candidates"], "rounds": values["rounds_between"]}}
        return {
            "chains": {
                "powers": values["powers"],
                "proposals": [] if self.proposals == "automatic" else [[1.0, proposal]],
                "score_changes": values["score_changes"],
            },
            **{name: values[name] for name in ("ladders", "rounds", "max_reward_calls")},
            **{name: values[name] for name in ("capacity", "exponent")},
            "restart": None if self.patience is None else {"patience": values["patience"], "starts": starts},
            "backward_by_policy": self.path == "policy_backward",
        }


@dataclass(frozen=True)
class Hindsight(SourceSettings):
    """New conditions for replayed objects, from a function. The reward of these objects is computed again.

    function
        A function of objects, of their conditions (a tensor `[n, width]`) and of a random generator of numpy,
        which returns new conditions.
    share
        The probability that an object gets a new condition.

    >>> def larger(objects, conditions, rng):
    ...     return conditions + 1
    >>> reward = lambda points, betas: -betas[:, 0].numpy() * points.sum(axis=1)
    >>> sources = [gfn.Replay(100, after=1), gfn.Hindsight(larger)]
    >>> conditions = gfn.Conditions(lambda n, rng: rng.uniform(1, 2, (n, 1)), width=1)
    >>> env, net = gfn.HyperGrid(2, 3), gfn.Mlp((8,))
    >>> gfn.Trainer(env, reward, net, batch=8, sources=sources, conditions=conditions).fit(3).steps_done
    3
    """

    _role = "relabelling of conditions"

    function: Callable[[Any, torch.Tensor, np.random.Generator], Any]
    share: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_function(self, "objects, conditions and a generator")


@dataclass(frozen=True)
class FocusInHindsight(SourceSettings):
    """New conditions for replayed objects, for a `Conditioning` with a focus (Roy et al. 2023). The direction
    of focus is replaced by the direction of the object's vector of rewards, so that the object lies inside of
    the cone around this direction.

    share
        The probability that an object gets a new condition.

    >>> rewards = [lambda points: np.log1p(points[:, 0]), lambda points: np.log1p(points[:, 1])]
    >>> conditions = gfn.Conditioning(2, focus=gfn.Focus(gfn.Dirichlet()))
    >>> sources = [gfn.Replay(100, after=1), gfn.FocusInHindsight(share=0.3)]
    >>> env, net = gfn.HyperGrid(2, 3), gfn.Mlp((8,))
    >>> gfn.Trainer(env, rewards, net, batch=8, sources=sources, conditions=conditions).fit(3).steps_done
    3
    """

    _role = "relabelling of conditions"

    share: float = 0.5


def _check_function(settings: Source | Search | Hindsight | FreshSource, of: str) -> None:
    function = settings.function
    if isinstance(function, type) or not callable(function):
        raise TypeError(
            f"{type(settings).__name__}.function is a {type(function).__name__}: expected a function of {of}"
        )
