"""Custom environments, which are defined by their moves and by rules that forbid some of these moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from . import _gfn
from ._checks import OF_GRAPHS, check_rules
from ._settings import Settings, bounds, plain
from ._envs import Environment, describe_graphs
from ._steps import Moves, Whole

# The bounds of the setting `values`: the entries of a vector are whole numbers from 0 to `values` - 1.
_VALUES = bounds(2, 65_536)


class ActionType(Settings):
    """The base class of the action types of a `GraphEnv`, such as `AddNode`."""

    _part: ClassVar[str]
    """The part of a graph that the actions change, such as a node or an edge."""
    _reversed: ClassVar[bool] = False
    """True if the actions remove a part of a graph or clear its attribute; False if they add or set one."""

    def _json(self) -> Any:
        return {"name": type(self).__name__, "part": self._part, "reversed": self._reversed, **self._values()}


@dataclass(frozen=True)
class AddNode(ActionType):
    """Adds a node of any class. If `attached`, the new node is added together with an edge to an existing
    node, except the first node of a graph.

    >>> env = gfn.GraphEnv([gfn.AddNode(attached=True)], max_nodes=3)
    >>> env.move_types
    ('add_first_node', 'add_attached_node', 'exit')
    """

    _part = "node"

    attached: bool = False


@dataclass(frozen=True)
class AddEdge(ActionType):
    """Adds an edge of any class between two nodes that share no edge, up to `max_edges` edges in a graph.
    Rules can forbid pairs of nodes.

    >>> env = gfn.GraphEnv([gfn.AddEdge(max_edges=2)], max_nodes=3, start=3)
    >>> env.moves(env.initial()).describe()
    ['add_edge(0, 1, 0)', 'add_edge(0, 2, 0)', 'add_edge(1, 2, 0)', 'exit(0, 0, 0)']
    """

    _part = "edge"

    max_edges: int | None = None


@dataclass(frozen=True)
class SetNodeAttribute(ActionType):
    """Sets an unset attribute of a node.

    >>> actions = [gfn.SetNodeAttribute()]
    >>> env = gfn.GraphEnv(actions, max_nodes=2, start=2, node_attributes=[3], labelled=True)
    >>> len(env.moves(env.initial()))
    7
    """

    _part = "node_attribute"


@dataclass(frozen=True)
class SetEdgeAttribute(ActionType):
    """Sets an unset attribute of an edge.

    >>> actions = [gfn.AddEdge(), gfn.SetEdgeAttribute()]
    >>> gfn.GraphEnv(actions, max_nodes=2, start=2, edge_attributes=[2]).move_types
    ('add_edge', 'set_edge_attribute', 'exit')
    """

    _part = "edge_attribute"


@dataclass(frozen=True)
class RemoveNode(ActionType):
    """Removes a node without edges. If `attached`, it removes a node with a single edge, together with this
    edge. The node's attributes must be unset.

    >>> node = gfn.Graphs.from_arrays([1], np.zeros((0, 2), int), [0, 0], directed=False)
    >>> env = gfn.GraphEnv([gfn.RemoveNode()], max_nodes=1, start=node)
    >>> env.moves(env.initial()).describe()
    ['remove_node(0, 0, 0)', 'exit(0, 0, 0)']
    """

    _part = "node"
    _reversed = True

    attached: bool = False


@dataclass(frozen=True)
class RemoveEdge(ActionType):
    """Removes an edge whose attributes are unset.

    >>> triangle = gfn.Graphs.from_arrays([3], [(0, 1), (0, 2), (1, 2)], [0, 3], directed=False)
    >>> env = gfn.GraphEnv([gfn.RemoveEdge()], max_nodes=3, start=triangle)
    >>> env.moves(env.initial()).describe()
    ['remove_edge(0, 1, 0)', 'remove_edge(0, 2, 0)', 'remove_edge(1, 2, 0)', 'exit(0, 0, 0)']
    """

    _part = "edge"
    _reversed = True


@dataclass(frozen=True)
class ClearNodeAttribute(ActionType):
    """Unsets an attribute of a node.

    >>> none = np.zeros((0, 2), int)
    >>> start = gfn.Graphs.from_arrays([1], none, [0, 0], directed=False, node_attributes=[[2]])
    >>> env = gfn.GraphEnv([gfn.ClearNodeAttribute()], max_nodes=1, start=start, node_attributes=[2])
    >>> len(env.moves(env.initial()))
    2
    """

    _part = "node_attribute"
    _reversed = True


@dataclass(frozen=True)
class ClearEdgeAttribute(ActionType):
    """Unsets an attribute of an edge.

    >>> start = gfn.Graphs.from_arrays([2], [(0, 1)], [0, 1], directed=False, edge_attributes=[[2]])
    >>> env = gfn.GraphEnv([gfn.ClearEdgeAttribute()], max_nodes=2, start=start, edge_attributes=[2])
    >>> len(env.moves(env.initial()))
    2
    """

    _part = "edge_attribute"
    _reversed = True


class GraphRules:
    """Restrictions of a `GraphEnv`: override the methods that you need. Each method is called with a batch.
    The answer of a method may depend only on the graphs and moves in its arguments, because a trainer caches
    answers (up to 64 MiB). Backward moves are found by undoing moves. So methods are also called with the
    graphs that result from undoing a move, even if no sequence of moves builds them.

    An unfinished graph must have an allowed move or the exit. A graph with neither is a dead end, which is an
    error that names the graph: allow the exit there, or forbid the moves that lead there.

    Paths, in which a node has at most two neighbours:

    >>> class Paths(GraphRules):
    ...     def restrict(self, graphs, moves):
    ...         is_first = graphs.n_nodes[moves.graph] == 0
    ...         degrees = np.append(graphs.degree, 0)
    ...         return is_first | (degrees[graphs.node_ptr[moves.graph] + moves.a] < 2)
    >>> GraphEnv([AddNode(attached=True)], max_nodes=4, rules=Paths()).check()
    Coverage(visited=5, states=5)
    """

    def restrict(self, graphs: _gfn.Graphs, moves: Moves) -> Any:
        """Returns an array of bool, True for each allowed move. Move k is a move of graph `moves.graph[k]`.
        The node `moves.a[k]` is numbered from 0 in its graph, so its row in an array of all nodes is
        `graphs.node_ptr[moves.graph[k]] + moves.a[k]`. The first node of an empty graph has `a` = 0, although
        this row belongs to another graph. `apply(graphs, moves)` of another environment, one without the
        rules, returns the graphs after the moves."""
        return np.ones(len(moves), dtype=bool)

    def can_exit(self, graphs: _gfn.Graphs) -> Any:
        """Returns an array of bool, True for each graph in which a trajectory may end."""
        return np.ones(len(graphs), dtype=bool)

    def is_reachable(self, graphs: _gfn.Graphs) -> Any:
        """Returns an array of bool, False for graphs that no sequence of moves builds."""
        return np.ones(len(graphs), dtype=bool)


@dataclass(frozen=True)
class GraphEnv(Environment[_gfn.Graphs]):
    """A custom environment of graphs, given by its action types, the properties of its graphs, and rules.
    States are `Graphs`.

    actions
        Action types, such as `AddNode()`. An action type and its reverse (`AddEdge` and `RemoveEdge`) may
        both be listed only if the rules prevent cycles of states.
    max_nodes
        The largest number of nodes.
    directed
        True for directed edges.
    node_classes, edge_classes, node_attributes, edge_attributes
        The numbers of classes, and the largest value of each attribute.
    start
        The initial state: a number of nodes without edges, or `Graphs` of one graph, whose nodes and edges
        stay unless an action such as `RemoveEdge` removes them. Each graph of a larger batch is a separate
        instance, with its own trajectories, log Z and distribution. No graph may be reached from two
        instances.
    scaffold
        The distinction between the nodes of `start`. With "distinct", all nodes are different: growth on one
        atom of a benzene ring differs from growth on another atom. With "alike", two nodes are the same if a
        symmetry of `start` exchanges them. The default is "alike" if the nodes of `start` are equal and have
        no edges, otherwise "distinct".
    labelled
        True if isomorphic graphs are different objects; otherwise rules must not distinguish them.
    corrects_symmetry
        True if training corrects the reward for symmetry: an isomorphism class is sampled in proportion to R,
        regardless of the number of labelled graphs in the class.
    rules
        An object like `GraphRules`.

    >>> env = gfn.GraphEnv([gfn.AddNode(attached=True), gfn.AddEdge()], max_nodes=4)
    >>> env.check().states
    11
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
    """The forward moves of a batch of vectors, as arrays of equal length with an entry per move.

    >>> class Down(gfn.VectorRules):
    ...     def restrict(self, states, moves):
    ...         return moves.after < moves.before
    >>> env = gfn.VectorEnv(1, 3, [(0, 2, 1), (0, 1, 0), (0, 0, 2)], Down(), start=[2])
    >>> env.check().states
    3
    """

    def __init__(self, state: Whole, number: Whole, entry: Whole, before: Whole, after: Whole) -> None:
        self.state = state
        """The index of the vector that each move starts from, in the batch of vectors."""
        self.number = number
        """The number of each move: its row in the setting `changes` of the environment."""
        self.entry = entry
        """The index of the entry that each move changes."""
        self.before = before
        """The entry's value before each move."""
        self.after = after
        """The entry's value after each move."""

    def __len__(self) -> int:
        return len(self.state)

    def __repr__(self) -> str:
        return f"VectorMoves({len(self)})"


class VectorRules:
    """Restrictions of a `VectorEnv`: override the methods that you need. Each method is called with a batch,
    and its answer may depend only on the vectors and moves in its arguments. Backward moves are found by
    undoing moves. So methods are also called with the vectors that result from undoing a move. `is_reachable`
    must be False for vectors that no sequence of moves builds. A new environment is checked for backward
    moves that lead to unreachable states.

    >>> class AtMostTwo(gfn.VectorRules):
    ...     def restrict(self, states, moves):
    ...         return states[moves.state].sum(axis=1) < 2
    ...     def is_reachable(self, states):
    ...         return states.sum(axis=1) <= 2
    >>> env = gfn.VectorEnv(3, 2, [(0, 0, 1), (1, 0, 1), (2, 0, 1)], AtMostTwo())
    >>> env.check().states
    7
    """

    def restrict(self, states: Whole, moves: VectorMoves) -> Any:
        """Returns an array of bool, True for each allowed move. Move k is number `moves.number[k]` of vector
        `states[moves.state[k]]`."""
        return np.ones(len(moves), dtype=bool)

    def is_reachable(self, states: Whole) -> Any:
        """Returns an array of bool, False for vectors that no sequence of moves builds."""
        return np.ones(len(states), dtype=bool)

    def can_end(self, states: Whole) -> Any:
        """Returns an array of bool, True for each vector that can be the end of a trajectory."""
        return np.ones(len(states), dtype=bool)


@dataclass(frozen=True)
class VectorEnv(Environment[Whole]):
    """A custom environment of vectors, whose trajectories end by an exit. States are int64 arrays `[n,
    width]`.

    width
        The number of entries.
    values
        The number of values that an entry can have, which are 0 to `values` - 1.
    changes
        The moves, an array `[M, 3]`. Each row has the index of the entry that the move changes, the entry's
        value before the move, and its value after the move. Cycles of states are refused: random walks are
        checked when the environment is created.
    rules
        An object like `VectorRules`.
    start
        The initial vector, zeros by default. Each row of an array `[K, width]` is a separate instance, with
        its own trajectories, log Z and distribution. Any two rows must differ in an entry that no move
        changes.

    Sets of three items with the weights 1, 2 and 3, and a sum of at most 4:

    >>> weights = np.array([1, 2, 3])
    >>> class LightSets(VectorRules):
    ...     def restrict(self, states, moves):
    ...         return states[moves.state] @ weights + weights[moves.number] <= 4
    ...     def is_reachable(self, states):
    ...         return states @ weights <= 4
    >>> VectorEnv(width=3, values=2, changes=[[0, 0, 1], [1, 0, 1], [2, 0, 1]], rules=LightSets()).check()
    Coverage(visited=6, states=6)
    """

    width: int = field(metadata=bounds(1))
    values: int = field(metadata=_VALUES)
    changes: Any
    rules: Any = None
    start: Any = None

    def __post_init__(self) -> None:
        for name in ("changes", "start"):
            if isinstance(value := getattr(self, name), np.ndarray):
                # Arrays are converted to tuples, because environments are compared by `==`, which for arrays
                # returns an array instead of a bool.
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
    """Converts the value of a setting to an array. Raises an error if rows have different lengths."""
    try:
        return np.asarray(value)
    except ValueError as error:
        raise ValueError(
            f"{name} can't be converted to an array: {error}; expected rows of equal length"
        ) from None


def _table(value: Any, name: str, shape: str) -> npt.NDArray[Any]:
    """Converts the value of a setting to a two-dimensional array of whole numbers. Raises an error for any
    other array."""
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
    """The base class of the rules of an `Env`. Override all methods but `reverse` and `backward_reverse`,
    which are needed only if a backward move has another number than the move that it undoes. Each method is
    called with a batch of `n` states, an int64 array `[n, width]`, which it may change. Moves are an int64
    array `[n]` with the number of each move. A trainer and `check` raise the exceptions of these methods.

    >>> class Count(gfn.EnvRules):
    ...     def initial(self):
    ...         return np.array([0])
    ...     def masks(self, states):
    ...         return np.column_stack([states < 3, np.ones(len(states), dtype=bool)])
    ...     def step(self, states, moves):
    ...         return states + 1
    ...     def backward_masks(self, states):
    ...         return states > 0
    ...     def backward_step(self, states, moves):
    ...         return states - 1
    >>> gfn.Env(Count(), width=1, values=4, n_moves=1).check().states
    4
    """

    def initial(self) -> Any:
        """Returns the initial state, an array of whole numbers `[width]`."""
        raise NotImplementedError

    def masks(self, states: Whole) -> Any:
        """Returns a bool array `[n, n_moves]`, True for each legal move of each state. If the environment has
        an exit, a further last column is True for each state in which a trajectory may end."""
        raise NotImplementedError

    def step(self, states: Whole, moves: Whole) -> Any:
        """Returns the states after these legal moves, one per state: an array of whole numbers `[n, width]`.
        None of the moves is an exit."""
        raise NotImplementedError

    def backward_masks(self, states: Whole) -> Any:
        """Returns a bool array `[n, n_backward_moves]`, True for each legal backward move of each state. A
        state has one backward move for each pair of an earlier state and a move from there that leads to the
        state. The initial state has none.
        """
        raise NotImplementedError

    def backward_step(self, states: Whole, moves: Whole) -> Any:
        """Returns the states after these legal backward moves, one per state: an array of whole numbers `[n,
        width]`."""
        raise NotImplementedError

    def reverse(self, states: Whole, moves: Whole) -> Any:
        """Returns the number of the backward move that undoes each move, an array of whole numbers `[n]`. By
        default it is the number of the move itself."""
        return moves

    def backward_reverse(self, states: Whole, moves: Whole) -> Any:
        """Returns the number of the move that undoes each backward move, an array of whole numbers `[n]`. By
        default it is the number of the backward move itself."""
        return moves


# The names of the methods of `EnvRules`. Rules must define all methods but the last two.
STEPPED = ("initial", "masks", "step", "backward_masks", "backward_step", "reverse", "backward_reverse")


@dataclass(frozen=True)
class Env(Environment[Whole]):
    """A custom environment of vectors whose moves are functions, for environments that no other class can
    express. States are int64 arrays `[n, width]` of numbers below `values`; different arrays are different
    states.

    `rules` is an object like `EnvRules`, for `n_moves` moves, numbered from 0, and `n_backward_moves`
    backward moves, by default also `n_moves`. Without `has_exit`, a trajectory ends in a state without legal
    moves. When the environment is created, `check` runs on the states of random walks and on all backward
    moves from these states. A trainer checks some of these states again.

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

    _base: ClassVar[type] = EnvRules
    """The base class of rules."""
    _methods: ClassVar[tuple[str, ...]] = STEPPED
    """The names of the methods of rules, which must define the first five."""

    rules: Any
    width: int = field(metadata=bounds(1))
    values: int = field(metadata=_VALUES)
    n_moves: int = field(metadata=bounds(1))
    n_backward_moves: int | None = field(default=None, metadata=bounds(1))
    has_exit: bool = True

    def _described(self) -> Any:
        return [self._values(), type(self.rules).__name__]

    def _new_env(self) -> _gfn.Env:
        base = self._base.__name__
        if self.rules is None:
            raise TypeError(f"rules is None: expected an object like `{base}`")
        check_rules(self.rules, *self._methods)
        missing = [name for name in self._methods[:5] if not self._has(name)]
        if missing:
            raise TypeError(
                f"rules has no method {', '.join(missing)}: expected all methods of `{base}` except for "
                f"{' and '.join(self._methods[5:])}"
            )
        if self._has("reverse") != self._has("backward_reverse"):
            raise TypeError(
                "rules has only one of the methods `reverse` and `backward_reverse`: expected both methods, "
                "or neither"
            )
        return _gfn.Env(self._by_class(), self.rules)

    def _has(self, method: str) -> bool:
        """Returns True if the rules define this method, instead of inheriting it."""
        own = getattr(self.rules, method, None)
        return callable(own) and getattr(own, "__func__", own) is not getattr(self._base, method)

    def _values(self) -> dict[str, Any]:
        names = ("width", "values", "n_moves", "n_backward_moves", "has_exit")
        return {
            **{name: plain(getattr(self, name), name) for name in names},
            "reverses": self._has("reverse"),
        }
