"""Custom environments: moves, and rules that forbid some of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from . import _gfn
from ._checks import OF_GRAPHS, check_rules
from ._settings import Settings, bounds, plain
from .envs import Environment, describe_graphs
from .steps import Moves

# The bounds of the setting `values`: the entries of a vector are whole numbers from 0 to `values` - 1.
_VALUES = bounds(2, 65_536)


class ActionType(Settings):
    """The base class of the types of actions of a `GraphEnv`."""

    _part: ClassVar[str]
    """The part of a graph that actions add or set."""
    _reversed: ClassVar[bool] = False
    """True if the actions remove the part, or clear it."""

    def _json(self) -> Any:
        return {"name": type(self).__name__, "part": self._part, "reversed": self._reversed, **self._values()}


@dataclass(frozen=True)
class AddNode(ActionType):
    """Adds a node of any class; if `attached`, with an edge to an existing node (the first node comes
    alone)."""

    _part = "node"

    attached: bool = False


@dataclass(frozen=True)
class AddEdge(ActionType):
    """Adds an edge of any class between two nodes without one, up to `max_edges` edges. Rules can forbid
    pairs of nodes."""

    _part = "edge"

    max_edges: int | None = None


@dataclass(frozen=True)
class SetNodeAttribute(ActionType):
    """Sets an unset attribute of a node."""

    _part = "node_attribute"


@dataclass(frozen=True)
class SetEdgeAttribute(ActionType):
    """Sets an unset attribute of an edge."""

    _part = "edge_attribute"


@dataclass(frozen=True)
class RemoveNode(ActionType):
    """Removes a node without edges; if `attached`, one with a single edge, together with that edge.
    Attributes of the node must be unset."""

    _part = "node"
    _reversed = True

    attached: bool = False


@dataclass(frozen=True)
class RemoveEdge(ActionType):
    """Removes an edge whose attributes are unset."""

    _part = "edge"
    _reversed = True


@dataclass(frozen=True)
class ClearNodeAttribute(ActionType):
    """Unsets an attribute of a node."""

    _part = "node_attribute"
    _reversed = True


@dataclass(frozen=True)
class ClearEdgeAttribute(ActionType):
    """Unsets an attribute of an edge."""

    _part = "edge_attribute"
    _reversed = True


class GraphRules:
    """Restrictions of a `GraphEnv`: override the methods that you need. Each is called with a batch, and its
    answer may depend only on the graphs and moves in the arguments, because a trainer caches answers (64 MiB
    of them). Backward moves are found by undoing moves, so methods are called with the resulting graphs,
    too.
    """

    def restrict(self, graphs: _gfn.Graphs, moves: Moves) -> Any:
        """Returns an array of bool, True for each allowed move."""
        return np.ones(len(moves), dtype=bool)

    def can_exit(self, graphs: _gfn.Graphs) -> Any:
        """Returns an array of bool, True for each graph that may be a finished object."""
        return np.ones(len(graphs), dtype=bool)

    def is_reachable(self, graphs: _gfn.Graphs) -> Any:
        """Returns an array of bool, False for graphs that no sequence of moves builds."""
        return np.ones(len(graphs), dtype=bool)


@dataclass(frozen=True)
class GraphEnv(Environment):
    """A custom environment of graphs: types of actions, the kind of graphs, and rules. States are `Graphs`.

    actions
        Types of actions, such as `AddNode()`. An action and its reverse (`AddEdge` and `RemoveEdge`) go
        together only if rules prevent cycles of states.
    max_nodes
        The largest number of nodes.
    directed
        True for directed edges.
    node_classes, edge_classes, node_attributes, edge_attributes
        The numbers of classes, and the largest value of each attribute.
    start
        The initial state: a number of nodes without edges, or `Graphs` of one graph, whose nodes and edges
        stay unless an action such as `RemoveEdge` removes them. Several `Graphs` are several instances: each
        has its own trajectories, log Z and distribution, and no two may lead to the same graph.
    scaffold
        The identity of the nodes of `start`: each is distinct ("distinct": growth on one atom of a benzene
        ring differs from growth on another), or nodes are equal if a symmetry of `start` exchanges them
        ("alike"). By default nodes are alike if they are equal and have no edges.
    labelled
        True if isomorphic graphs are different objects; otherwise rules must not distinguish them.
    corrects_symmetry
        True if rewards are those of isomorphism classes, for any number of their labelled graphs.
    rules
        An object like `GraphRules`.
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

    def _new_env(self) -> _gfn.Env:
        for action in self.actions:
            if not isinstance(action, ActionType):
                raise TypeError(f"actions has a {type(action).__name__}: expected objects like AddEdge()")
        check_rules(self.rules, *OF_GRAPHS)
        initial = self.start if isinstance(self.start, _gfn.Graphs) else None
        return _gfn.Env(self._by_class(), self.rules, initial)

    def _described(self) -> Any:
        start = describe_graphs(self.start) if isinstance(self.start, _gfn.Graphs) else self.start
        return [self._values(), start, type(self.rules).__name__]

    def _values(self) -> dict[str, Any]:
        names = [name for name in self.__dataclass_fields__ if name not in {"rules", "start"}]
        values = {name: plain(getattr(self, name), f"GraphEnv.{name}") for name in names}
        values["initial"] = 0 if isinstance(self.start, _gfn.Graphs) else plain(self.start, "GraphEnv.start")
        return values


class VectorMoves:
    """The forward moves of a batch of vectors, as arrays of equal length with an entry per move."""

    def __init__(self, state: npt.NDArray[np.int64], number: npt.NDArray[np.int64]) -> None:
        self.state = state
        """The index of each move's vector in the batch."""
        self.number = number
        """The number of each move in the list of the environment's moves."""

    def __len__(self) -> int:
        return len(self.state)

    def __repr__(self) -> str:
        return f"VectorMoves({len(self)})"


class VectorRules:
    """Restrictions of a `VectorEnv`: override the methods that you need. Each is called with a batch, and its
    answer may depend only on the vectors and moves in the arguments. Backward moves are found by undoing
    moves, so methods are called with the resulting vectors, too; `is_reachable` must be False for vectors
    that no sequence of moves builds. A new environment is checked for backward moves that lead to unreachable
    states.
    """

    def restrict(self, states: Any, moves: VectorMoves) -> Any:
        """Returns an array of bool, True for each allowed move. Move k is number `moves.number[k]` of vector
        `states[moves.state[k]]`."""
        return np.ones(len(moves), dtype=bool)

    def is_reachable(self, states: Any) -> Any:
        """Returns an array of bool, False for vectors that no sequence of moves builds."""
        return np.ones(len(states), dtype=bool)

    def can_end(self, states: Any) -> Any:
        """Returns an array of bool, True for each vector that can be the end of a trajectory."""
        return np.ones(len(states), dtype=bool)


@dataclass(frozen=True)
class VectorEnv(Environment):
    """A custom environment of vectors, which end by an exit. States are int64 arrays `[n, width]`.

    width
        The number of entries.
    values
        A number above all values of entries.
    changes
        The moves, an array `[M, 3]`: an entry, the value that it must have, and its new value. Cycles of
        states are refused: random walks are checked when the environment is created.
    rules
        An object like `VectorRules`.
    start
        The initial vector, zeros by default. Several vectors, `[K, width]`, are several instances: each has
        its own trajectories, log Z and distribution. They must differ in an entry that no move changes.
    """

    width: int = field(metadata=bounds(1))
    values: int = field(metadata=_VALUES)
    changes: Any
    rules: Any = None
    start: Any = None

    def __post_init__(self) -> None:
        for name in ("changes", "start"):
            if isinstance(value := getattr(self, name), np.ndarray):
                # Arrays become tuples, because environments are compared by `==`, which arrays answer entry
                # by entry.
                object.__setattr__(self, name, tuple(tuple(row) for row in np.atleast_2d(value).tolist()))
        super().__post_init__()

    def _described(self) -> Any:
        return [self._values(), type(self.rules).__name__]

    def _new_env(self) -> _gfn.Env:
        check_rules(self.rules, "restrict", "can_end", "is_reachable")
        return _gfn.Env(self._by_class(), self.rules)

    def _values(self) -> dict[str, Any]:
        moves = _table(self.changes, "changes", "[M, 3]")
        if moves.shape[1] != 3:
            raise ValueError(f"changes has shape {moves.shape}: expected [M, 3], with one row for each move")
        starts = (
            []
            if self.start is None
            else _table(
                np.atleast_2d(_array(self.start, "start")), "start", "[width] or [K, width]"
            ).tolist()
        )
        if self.start is not None and not starts:
            raise ValueError("start is empty: expected one vector, or several vectors")
        sizes = {"width": plain(self.width, "width"), "values": plain(self.values, "values")}
        return {**sizes, "moves": moves.tolist(), "initial": starts}


def _array(value: Any, name: str) -> npt.NDArray[Any]:
    """Converts a setting to an array. Refuses rows of different lengths."""
    try:
        return np.asarray(value)
    except ValueError as error:
        raise ValueError(
            f"{name} can't be converted to an array: {error}; expected rows of equal length"
        ) from None


def _table(value: Any, name: str, shape: str) -> npt.NDArray[Any]:
    """Converts a setting to an array of rows of whole numbers. Refuses other arrays."""
    rows = _array(value, name)
    if rows.ndim != 2 or not np.issubdtype(rows.dtype, np.integer):
        raise ValueError(
            f"{name} has shape {rows.shape} and type {rows.dtype}: expected whole numbers of shape {shape}"
        )
    if rows.size and not 0 <= rows.min() <= rows.max() < 65_536:
        raise ValueError(
            f"{name} has numbers from {rows.min()} to {rows.max()}: expected numbers from 0 to 65535"
        )
    return rows


class EnvRules:
    """The rules of an `Env`: override all methods but the last two, which are needed only if a backward move
    has another number than the move that it undoes. Each method is called with a batch of `n` states, int64
    arrays `[n, width]`, which it may change; moves are int64 arrays `[n]` of their numbers. Exceptions reach
    the caller, a trainer or `check`.
    """

    def initial(self) -> Any:
        """Returns the initial state: whole numbers `[width]`."""
        raise NotImplementedError

    def masks(self, states: Any) -> Any:
        """Returns legal moves: bool `[n, n_moves]`; with an exit `[n, n_moves + 1]`, whose last column is
        True if a trajectory may end."""
        raise NotImplementedError

    def step(self, states: Any, moves: Any) -> Any:
        """Returns the states after legal moves: whole numbers `[n, width]`. The exit isn't among the
        moves."""
        raise NotImplementedError

    def backward_masks(self, states: Any) -> Any:
        """Returns legal backward moves: bool `[n, n_backward_moves]`; none in the initial state. There is one
        for each pair of a state and a move that lead to a state.
        """
        raise NotImplementedError

    def backward_step(self, states: Any, moves: Any) -> Any:
        """Returns the states after legal backward moves: whole numbers `[n, width]`."""
        raise NotImplementedError

    def reverse(self, states: Any, moves: Any) -> Any:
        """Returns the number of the backward move that undoes each move: whole numbers `[n]`; the same
        numbers by default."""
        return moves

    def backward_reverse(self, states: Any, moves: Any) -> Any:
        """Returns the number of the move that undoes each backward move: whole numbers `[n]`; the same
        numbers by default."""
        return moves


@dataclass(frozen=True)
class Env(Environment):
    """A custom environment of any kind, if no other class fits. States are int64 arrays `[n, width]` of
    numbers below `values`; different arrays are different states.

    `rules` is an object like `EnvRules`, with `n_moves` numbered moves and `n_backward_moves` backward moves,
    by default an equal number. Without an exit, a trajectory ends in a state without legal moves. A new
    environment checks the states of random walks and all backward moves from them (`check`); a trainer checks
    some of them again.

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
    width: int = field(metadata=bounds(1))
    values: int = field(metadata=_VALUES)
    n_moves: int = field(metadata=bounds(1))
    n_backward_moves: int | None = field(default=None, metadata=bounds(1))
    has_exit: bool = True

    def _described(self) -> Any:
        return [self._values(), type(self.rules).__name__]

    def _new_env(self) -> _gfn.Env:
        if self.rules is None:
            raise TypeError("rules is None: expected an object like `EnvRules`")
        check_rules(self.rules, *_STEPPED)
        missing = [name for name in _STEPPED[:5] if not self._has(name)]
        if missing:
            raise TypeError(
                f"rules has no method {', '.join(missing)}: expected all methods of `EnvRules` except for "
                "reverse and backward_reverse"
            )
        if self._has("reverse") != self._has("backward_reverse"):
            raise TypeError(
                "rules has only one of the methods `reverse` and `backward_reverse`: expected both methods, "
                "or neither"
            )
        return _gfn.Env(self._by_class(), self.rules)

    def _has(self, method: str) -> bool:
        """Returns True if the rules define this method, instead of inheriting it from `EnvRules`."""
        own = getattr(self.rules, method, None)
        return callable(own) and getattr(own, "__func__", own) is not getattr(EnvRules, method)

    def _values(self) -> dict[str, Any]:
        names = ("width", "values", "n_moves", "n_backward_moves", "has_exit")
        return {
            **{name: plain(getattr(self, name), name) for name in names},
            "reverses": self._has("reverse"),
        }


# The methods of `EnvRules`. Rules must define all of them but the last two.
_STEPPED = ("initial", "masks", "step", "backward_masks", "backward_step", "reverse", "backward_reverse")
