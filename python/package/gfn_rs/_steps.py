"""Environments that are used step by step, with their states and moves, without a policy or a trainer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Generic, Protocol

import numpy as np
import numpy.typing as npt
from typing_extensions import TypeVar

from . import _gfn
from ._checks import chosen, count
from ._settings import check

Whole = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Batch(Protocol):
    """The methods of every batch of states: `Graphs` and arrays of numpy have them."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: Any, /) -> Any: ...


# The type of a batch of states of an environment: `Graphs`, or an array of numpy.
States = TypeVar("States", bound=Batch, default=Any)


@dataclass(frozen=True, eq=False, repr=False)
class Moves:
    """The moves of a batch of states, as arrays of equal length with an entry per move. `moves[3]`,
    `moves[2:5]`, `moves[[0, 4]]` and `moves[mask]` are batches of moves, too.

    >>> env = gfn.HyperGrid(2, 3)
    >>> moves = env.moves(env.initial())
    >>> moves.describe(), moves[moves.is_exit].slot.tolist()
    (['move(0, 0, 0)', 'move(0, 0, 1)', 'exit(0, 0, 2)'], [2])
    """

    state: Whole
    """The index in the batch of the state that each move starts from."""
    slot: Whole | None
    """The slot of each move: its index among all moves of its state, legal or not. A network has a logit for
    each slot. None in the moves that are passed to custom rules, which don't need slots."""
    kind: Whole
    """The type of each move, an index into `types`. `AddNode(attached=True)` has two types, one for the first
    node of a graph and one for all later nodes."""
    a: Whole
    """The node that each move changes, or the first node of the edge that it changes, in environments of
    graphs."""
    b: Whole
    """The second node of the edge that each move changes; 0 for moves that don't change an edge."""
    column: Whole
    """The index of each move among the moves of its type at the same nodes. For an added node or edge, it is
    the class. For a node that is added with an edge, it is the node's class times the number of edge classes,
    plus the class of the edge. For an attribute, it is the value minus 1, plus the number of values of all
    attributes before this attribute. In environments of vectors, it is the slot."""
    types: tuple[str, ...]
    """The names of the types of moves, such as `add_edge`. They are the `move_types` of the environment."""
    backward: bool = False
    """True if these moves are backward moves."""

    @property
    def graph(self) -> Whole:
        """The index in the batch of the graph that each move starts from, which is equal to `state`."""
        return self.state

    @property
    def is_exit(self) -> Flags:
        """True for each move that is an exit. An exit ends a trajectory and doesn't change its state."""
        exits = [kind for kind, name in enumerate(self.types) if name == "exit"]
        return np.isin(self.kind, exits)

    def at(self, state: int) -> Moves:
        """Returns the moves of the state with the index `state` in the batch."""
        return self[self.state == count(state, "state")]

    def draw(self, rng: np.random.Generator) -> Moves:
        """Draws one move per state uniformly. A state without moves is left out."""
        order = np.lexsort((rng.random(len(self)), self.state))
        return self[order[np.unique(self.state[order], return_index=True)[1]]]

    def describe(self) -> list[str]:
        """Returns a text for each move, with its type, its nodes, and its index among the moves of this type
        at these nodes."""
        return [f"{self.types[kind]}({a}, {b}, {column})" for _, kind, a, b, column in self._rows()]

    def _rows(self) -> list[tuple[int, ...]]:
        """Returns five numbers per move that identify it: the index of its state, its type, its nodes, and
        its column."""
        columns = (self.state, self.kind, self.a, self.b, self.column)
        return list(zip(*(column.tolist() for column in columns)))

    def __len__(self) -> int:
        return len(self.state)

    def __getitem__(self, index: Any) -> Moves:
        rows = chosen(index, len(self), "moves")
        some = {name: getattr(self, name)[rows] for name in ("state", "kind", "a", "b", "column")}
        return replace(self, **some, slot=None if self.slot is None else self.slot[rows])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Moves):
            return NotImplemented
        return all(
            np.array_equal(getattr(self, field.name), getattr(other, field.name)) for field in fields(self)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        way = "backward " if self.backward else ""
        return (
            f"Moves({len(self)} {way}moves of {len(np.unique(self.state))} states: {', '.join(self.types)})"
        )


@dataclass(frozen=True, eq=False)
class Masks:
    """The legal moves of a batch of states. `legal[ptr[k]:ptr[k + 1]]` has a flag for each slot of state
    k.

    >>> env = gfn.HyperGrid(2, 3)
    >>> env.masks(np.array([[0, 2]])).at(0).tolist()
    [True, False, True]
    """

    ptr: Whole
    """The offset of each state's flags in `legal`, and at the end the number of all flags, `[n + 1]`."""
    legal: Flags
    """A flag for each slot of each state, state by state: True if the slot's move is legal."""
    has_exit: bool
    """True if the last slot of every state is the exit."""

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def at(self, state: int) -> Flags:
        """Returns a flag for each slot of one state of the batch: True if the slot's move is legal."""
        row = int(chosen(count(state, "state"), len(self), "states")[0])
        return self.legal[self.ptr[row] : self.ptr[row + 1]]


@dataclass(frozen=True, eq=False)
class Step(Generic[States]):
    """The result of one step from each state of a batch, with an entry per state.

    >>> env = gfn.HyperGrid(2, 3)
    >>> step = env.step(env.initial(2), [1, 2])
    >>> step.states.tolist(), step.exit.tolist(), step.reverse.tolist()
    ([[0, 1], [0, 0]], [False, True], [1, -1])
    """

    states: States
    """The states after the step. An exit doesn't change the state."""
    reverse: Whole
    """The slot of the move that undoes each move, among the moves in the other direction from the state after
    the step; -1 for exits, which can't be undone."""
    exit: Flags
    """True for each state whose move was the exit."""
    done: Flags
    """True for each state from which no further step is possible in this direction."""


class Walkable(Generic[States]):
    """The base class of environments, with the methods that list moves and take steps."""

    _env: _gfn.Env

    @property
    def move_types(self) -> tuple[str, ...]:
        """The names of the types of moves, in the order of their slots."""
        return tuple(self._env.types())

    @property
    def n_instances(self) -> int:
        """The number of initial states."""
        return self._env.n_instances()

    def initial(self, n: int = 1, instance: int | npt.ArrayLike = 0) -> States:
        """Returns `n` initial states. If the environment has several initial states, `instance` is the index
        of one of them for all `n` states, or an array with an index per state."""
        n = count(n)
        instances = np.asarray(instance)
        if instances.dtype.kind not in "iu" or instances.shape not in ((), (n,)):
            raise TypeError(
                f"instance is {instance!r:.200}: expected a whole number, or one for each of {n} states"
            )
        if instances.size and instances.min() < 0:
            raise IndexError(f"instance is {instances.min()}: expected 0 to {self.n_instances - 1}")
        states: States = self._env.initial(
            np.ascontiguousarray(np.broadcast_to(instances, n), dtype=np.int64)
        )
        return states

    def moves(self, states: Any, backward: bool = False) -> Moves:
        """Returns all legal moves of these states, state by state in the order of slots. With `backward`,
        returns their legal backward moves."""
        return self._moves(self._env.moves(states, _flag(backward), None), backward)

    def masks(self, states: Any, backward: bool = False) -> Masks:
        """Returns a flag for each slot of each state: True if the slot's move is legal."""
        return Masks(*self._env.masks(states, _flag(backward)))

    def step(self, states: Any, moves: Moves | npt.ArrayLike) -> Step[States]:
        """Takes one move per state. `moves` has a move per state, in the order of states, or is an array of
        the moves' slots. An illegal move is a `ValueError`."""
        return self._step(states, moves, False)

    def apply(self, states: Any, moves: Moves) -> States:
        """Returns the state after each move. Unlike for `step`, a state may have any number of moves: move k
        starts from `states[moves.state[k]]`. Moves that custom rules get are accepted, too, so that a rule
        can judge moves by their results. The environment must be another one than that of the rules, because
        an environment can't be called by its own rules.

        >>> import gfn_rs as gfn
        >>> env = gfn.Molecules(9, ["C", "N"], charges=False)
        >>> states = env.states(["CC"])
        >>> env.apply(states, env.moves(states)[:2]).smiles
        ['CCC', 'CCN']
        """
        if moves.types != self.move_types:
            raise ValueError(
                f"moves has the types {', '.join(moves.types)}: expected moves of this environment, with the "
                f"types {', '.join(self.move_types)}"
            )
        slots = moves.slot
        if slots is not None:
            here = self._named(states, moves.state, slots, moves.backward)
            if here._rows() != moves._rows():
                raise ValueError(
                    "moves has slots that belong to other moves in this environment: expected moves of these "
                    "states in an environment with the same settings"
                )
        else:
            known = self.moves(states, moves.backward)
            by_row = dict(zip(known._rows(), [] if known.slot is None else known.slot))
            missing = [row for row in moves._rows() if row not in by_row]
            if missing:
                raise ValueError(
                    f"moves has {moves.types[missing[0][1]]} of nodes {missing[0][2]} and {missing[0][3]} in "
                    f"state {missing[0][0]}, which isn't legal here: expected moves of an environment with "
                    "the same settings"
                )
            slots = np.asarray([by_row[row] for row in moves._rows()], dtype=np.int64)
        return self._step(states[moves.state], slots, moves.backward).states

    def backward_step(self, states: Any, moves: Moves | npt.ArrayLike) -> Step[States]:
        """Takes one backward move per state. `moves` has a backward move per state, in the order of states,
        or is an array of the moves' slots. An illegal move is a `ValueError`."""
        return self._step(states, moves, True)

    def is_initial(self, states: Any) -> Flags:
        """Returns an array of bool, True for each state that is an initial state."""
        return self._env.is_initial(states)

    def keys(self, states: Any) -> list[bytes]:
        """Returns a key per state. Equal states have equal keys. If states are graphs up to isomorphism,
        isomorphic graphs have equal keys, too."""
        return [bytes(key) for key in self._env.keys(states)]

    def log_automorphisms(self, states: Any) -> npt.NDArray[np.float64]:
        """Returns log |Aut| of each state: the log of the number of automorphisms of the graph that keep the
        nodes of the initial state. The result is 0 unless states are graphs up to isomorphism.
        """
        return self._env.log_automorphisms(states)

    def _named(self, states: Any, state: Whole, slot: Whole, backward: bool) -> Moves:
        return self._moves(self._env.moves(states, backward, (state, slot)), backward)

    def _moves(self, columns: Sequence[Any], backward: bool) -> Moves:
        state, slot, kind, a, b, column = columns
        return Moves(state, slot, kind, a, b, column, self.move_types, backward)

    def _step(self, states: Any, moves: Any, backward: bool) -> Step[States]:
        after, reverse, exit, done = self._env.step(states, _slots(moves, len(states), backward), backward)
        return Step(after, np.where(exit, -1, reverse), exit, done)


def _flag(backward: Any) -> bool:
    check(backward, "backward", bool)
    return bool(backward)


def _slots(moves: Any, n: int, backward: bool) -> Whole:
    """Returns the slot of each of `n` moves, one per state. Raises an error for moves of other states or in
    the other direction."""
    if isinstance(moves, Moves):
        if moves.backward != backward:
            way, other = ("backward", "forward") if backward else ("forward", "backward")
            raise ValueError(
                f"moves has {other} moves for a {way} step: expected moves of `env.moves(states, "
                f"backward={backward})`"
            )
        if moves.slot is None:
            raise ValueError(
                "moves has no slots, because the moves come from a call of a method of rules: expected moves "
                "of `env.moves(states)`"
            )
        if not np.array_equal(moves.state, np.arange(n)):
            raise ValueError(
                f"moves has {len(moves)} moves, for the states {moves.state.tolist()!s:.100}: expected one "
                f"move for each of {n} states, in order"
            )
        return moves.slot
    slots = np.asarray(moves)
    if slots.dtype.kind not in "iu" and slots.size:
        raise TypeError(f"moves is {moves!r:.200}: expected Moves, or a flat array of slots")
    if slots.shape != (n,):
        raise ValueError(f"moves has shape {list(slots.shape)}: expected one move for each of {n} states")
    if slots.size and slots.min() < 0:
        raise ValueError(
            f"moves has {slots.min()}: expected slots of at least 0 (-1 in the `reverse` of a step marks an "
            "exit, which no backward move undoes)"
        )
    return np.ascontiguousarray(slots, dtype=np.int64)
