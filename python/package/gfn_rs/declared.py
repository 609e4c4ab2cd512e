"""Environments of your own: what moves there are, and what is forbidden."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import _gfn
from ._checks import OF_GRAPHS, check_rules
from ._settings import Settings, plain
from .envs import Environment, described
from .steps import Moves


class ActionType(Settings):
    """What the types of actions of a declared environment share."""

    def _json(self) -> Any:
        return {type(self).__name__: self._values()}


@dataclass(frozen=True)
class AddNode(ActionType):
    """Adds a node of any class; `attached`, one that comes with an edge to a node that is there (the first one comes alone)."""

    attached: bool = False


@dataclass(frozen=True)
class AddEdge(ActionType):
    """Adds an edge of any class between two nodes without one; at most `max_edges` in all. Rules say which pairs of nodes it may not join."""

    max_edges: int | None = None


@dataclass(frozen=True)
class SetNodeAttribute(ActionType):
    """Sets an attribute of a node that is unset."""


@dataclass(frozen=True)
class SetEdgeAttribute(ActionType):
    """Sets an attribute of an edge that is unset."""


@dataclass(frozen=True)
class RemoveNode(ActionType):
    """Removes a node without edges; `attached`, one that a single edge joins to the others, with that edge. Attributes of it must be unset."""

    attached: bool = False


@dataclass(frozen=True)
class RemoveEdge(ActionType):
    """Removes an edge whose attributes are unset."""


@dataclass(frozen=True)
class ClearNodeAttribute(ActionType):
    """Unsets an attribute of a node."""


@dataclass(frozen=True)
class ClearEdgeAttribute(ActionType):
    """Unsets an attribute of an edge."""


class GraphRules:
    """What the author of an environment forbids: override what you need. Each method is asked about a whole batch, and what an answer
    depends on must be in the graphs and moves that it is given: a trainer keeps answers (64 MiB of them) and asks about a graph once.
    Moves back are found by undoing: the graphs that they lead to are asked about, too."""

    def restrict(self, graphs: _gfn.Graphs, moves: Moves) -> Any:
        """Which of these moves are allowed: an array of bool, one for each move."""
        return np.ones(len(moves), dtype=bool)

    def can_exit(self, graphs: _gfn.Graphs) -> Any:
        """Which of these graphs may be finished objects: an array of bool."""
        return np.ones(len(graphs), dtype=bool)

    def is_reachable(self, graphs: _gfn.Graphs) -> Any:
        """False for graphs that no sequence of moves builds: an array of bool."""
        return np.ones(len(graphs), dtype=bool)


@dataclass(frozen=True)
class GraphEnv(Environment):
    """An environment of graphs of your own: types of actions, what graphs are made of, and what is forbidden. States are `Graphs`.

    `start` is where trajectories start: a number of nodes without edges, or `Graphs` of one graph, whose nodes and edges stay for good,
    but for what an action like `RemoveEdge` takes away. `Graphs` of several are as many instances: each has trajectories, a log Z and a
    distribution of its own, and no two may lead to the same graph. `rules` is an object like `GraphRules`. Unless `labelled`, isomorphic
    graphs are one object, and the rules must not tell them apart.

    `scaffold` says of the nodes of `start` whether each is one of its own ("distinct": what grows on one atom of a benzene ring isn't
    what grows on another), or those are one that a symmetry of `start` takes to each other ("alike"). By default they are alike where
    they are equal and unjoined.

    An action and what undoes it (`AddEdge` and `RemoveEdge`) go together only if rules keep walks from coming round.
    """

    actions: Sequence[ActionType]
    max_nodes: int
    directed: bool = False
    node_classes: int = 1
    edge_classes: int = 1
    node_attributes: Sequence[int] = ()
    edge_attributes: Sequence[int] = ()
    start: int | _gfn.Graphs = 0
    scaffold: Literal["distinct", "alike"] | None = None
    labelled: bool = False
    corrects_symmetry: bool = True
    rules: Any = None

    def _made(self) -> _gfn.Env:
        for action in self.actions:
            if not isinstance(action, ActionType):
                raise TypeError(f"actions has a {type(action).__name__}: expected objects like AddEdge()")
        check_rules(self.rules, *OF_GRAPHS)
        initial = self.start if isinstance(self.start, _gfn.Graphs) else None
        return _gfn.Env(self._named(), self.rules, initial)

    def _described(self) -> Any:
        start = described(self.start) if isinstance(self.start, _gfn.Graphs) else self.start
        return [self._values(), start, type(self.rules).__name__]

    def _values(self) -> dict[str, Any]:
        names = [name for name in self.__dataclass_fields__ if name not in {"rules", "start"}]
        values = {name: plain(getattr(self, name), f"GraphEnv.{name}") for name in names}
        values["initial"] = 0 if isinstance(self.start, _gfn.Graphs) else plain(self.start, "GraphEnv.start")
        return values


class VectorRules:
    """What the author of an environment of vectors forbids: override what you need. Each method is asked about a whole batch, and what
    an answer depends on must be in the vectors and moves that it is given. Moves back are found by undoing: the vectors that they lead to
    are asked about, too, and those that no sequence of moves builds must be told by `is_reachable`. A declared environment is looked at
    for moves back that lead nowhere."""

    def restrict(self, states: Any, moves: _gfn.VectorMoves) -> Any:
        """Which of these moves are allowed: an array of bool. Move k is number `moves.number[k]` of vector `states[moves.state[k]]`."""
        return np.ones(len(moves), dtype=bool)

    def is_reachable(self, states: Any) -> Any:
        """False for vectors that no sequence of moves builds: an array of bool."""
        return np.ones(len(states), dtype=bool)

    def can_end(self, states: Any) -> Any:
        """Which of these vectors can be the end: an array of bool."""
        return np.ones(len(states), dtype=bool)


@dataclass(frozen=True)
class VectorEnv(Environment):
    """An environment of vectors of your own, which end by an exit. States are int64 arrays `[n, width]`.

    `changes` is an array, the moves, `[M, 3]`: an entry, the value that it must have, and the one that it gets, above or below. Walks mustn't come
    round: when the environment is made, random walks are looked at. `values` is above any value. `rules` is an object like `VectorRules`.

    Trajectories start at zeros, or at the vector `start`. Several, `[K, width]`, are as many instances: each has trajectories, a log Z and a
    distribution of its own. They must differ in an entry that no move changes, as only the vector tells where it came from.
    """

    width: int
    values: int
    changes: Any
    rules: Any = None
    start: Any = None

    def __post_init__(self) -> None:
        for name in ("changes", "start"):
            if isinstance(value := getattr(self, name), np.ndarray):
                # Environments are compared, and an array has no one answer.
                object.__setattr__(self, name, tuple(tuple(row) for row in np.atleast_2d(value).tolist()))
        super().__post_init__()

    def _described(self) -> Any:
        return [self._values(), type(self.rules).__name__]

    def _made(self) -> _gfn.Env:
        check_rules(self.rules, "restrict", "can_end", "is_reachable")
        return _gfn.Env(self._named(), self.rules)

    def _values(self) -> dict[str, Any]:
        moves = _table(self.changes, "changes", "[M, 3]")
        if moves.shape[1] != 3:
            raise ValueError(f"changes has shape {moves.shape}: expected [M, 3]")
        starts = [] if self.start is None else _table(np.atleast_2d(_array(self.start, "start")), "initial", "[width] or [K, width]").tolist()
        if self.start is not None and not starts:
            raise ValueError("start has no row: expected a vector to start from, or several")
        sizes = {"width": plain(self.width, "width"), "values": plain(self.values, "values")}
        return {**sizes, "moves": moves.tolist(), "initial": starts}


def _array(value: Any, name: str) -> npt.NDArray[Any]:
    """An array, of rows of one length."""
    try:
        return np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} isn't an array: {error}") from None


def _table(value: Any, name: str, shape: str) -> npt.NDArray[Any]:
    """Rows of small whole numbers."""
    rows = _array(value, name)
    if rows.ndim != 2 or not np.issubdtype(rows.dtype, np.integer):
        raise ValueError(f"{name} has shape {rows.shape} and type {rows.dtype}: expected whole numbers {shape}")
    if rows.size and not 0 <= rows.min() <= rows.max() < 65_536:
        raise ValueError(f"{name} has numbers from {rows.min()} to {rows.max()}: expected 0 to 65535")
    return rows


class EnvRules:
    """An environment of any kind, as its author steps it: override all but the last two, which an environment needs where a move back has
    another number than the move that it undoes. Each method is called once for a batch of `n` states, int64 arrays `[n, width]`, which it may
    change; moves are int64 arrays `[n]` of their numbers. What it raises is raised by whoever asked: a trainer, or `check`."""

    def initial(self) -> Any:
        """Where trajectories start: whole numbers `[width]`."""
        raise NotImplementedError

    def masks(self, states: Any) -> Any:
        """Which moves are legal: bool `[n, n_moves]`; with an exit `[n, n_moves + 1]`, the last of which says where a trajectory may end."""
        raise NotImplementedError

    def step(self, states: Any, moves: Any) -> Any:
        """The states that legal moves lead to: whole numbers `[n, width]`. The exit isn't among the moves."""
        raise NotImplementedError

    def backward_masks(self, states: Any) -> Any:
        """Which moves back are legal: bool `[n, n_backward_moves]`; none of the initial state. There is one for each state and move that
        lead to a state, and no other."""
        raise NotImplementedError

    def backward_step(self, states: Any, moves: Any) -> Any:
        """The states that legal moves back lead to: whole numbers `[n, width]`."""
        raise NotImplementedError

    def reverse(self, states: Any, moves: Any) -> Any:
        """The move back that undoes each of these, by its number: whole numbers `[n]`; the same numbers, by default."""
        return moves

    def backward_reverse(self, states: Any, moves: Any) -> Any:
        """The move that leads back to each of these states from where a move back led: whole numbers `[n]`."""
        return moves


@dataclass(frozen=True)
class Env(Environment):
    """An environment of any kind, for what nothing else fits. States are int64 arrays `[n, width]` of numbers below `values`, and two
    that differ are two states.

    `rules` is an object like `EnvRules`, whose moves are numbered: `n_moves` of them forward, and as many back where `n_backward_moves`
    says no other. Without an exit, trajectories end where no move is legal. When the environment is made, it looks at the states of random
    walks and at all ways back from them (`check`); a trainer looks at some again.

    >>> import numpy as np
    >>> class Subsets(EnvRules):
    ...     def initial(self):
    ...         return np.zeros(3, dtype=int)
    ...     def masks(self, states):
    ...         return np.column_stack([states == 0, np.ones(len(states), dtype=bool)])
    ...     def step(self, states, moves):
    ...         states[np.arange(len(states)), moves] = 1
    ...         return states
    ...     def backward_masks(self, states):
    ...         return states == 1
    ...     def backward_step(self, states, moves):
    ...         states[np.arange(len(states)), moves] = 0
    ...         return states
    >>> Env(Subsets(), width=3, values=2, n_moves=3).check()
    Coverage(visited=8, states=8)
    """

    rules: Any
    width: int
    values: int
    n_moves: int
    n_backward_moves: int | None = None
    has_exit: bool = True

    def _described(self) -> Any:
        return [self._values(), type(self.rules).__name__]

    def _made(self) -> _gfn.Env:
        if self.rules is None:
            raise TypeError("rules is None: expected an object like `EnvRules`")
        check_rules(self.rules, *_STEPPED)
        missing = [name for name in _STEPPED[:5] if not self._has(name)]
        if missing:
            raise TypeError(f"rules has no {', '.join(missing)}: expected methods as `EnvRules` has them")
        if self._has("reverse") != self._has("backward_reverse"):
            raise TypeError("rules has one of `reverse` and `backward_reverse`: expected both, or neither")
        return _gfn.Env(self._named(), self.rules)

    def _has(self, method: str) -> bool:
        """Whether the rules have a method of their own."""
        own = getattr(self.rules, method, None)
        return callable(own) and getattr(own, "__func__", own) is not getattr(EnvRules, method)

    def _values(self) -> dict[str, Any]:
        names = ("width", "values", "n_moves", "n_backward_moves", "has_exit")
        return {**{name: plain(getattr(self, name), name) for name in names}, "reverses": self._has("reverse")}


# What rules that step are asked; all but the last two are needed.
_STEPPED = ("initial", "masks", "step", "backward_masks", "backward_step", "reverse", "backward_reverse")
