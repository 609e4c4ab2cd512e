"""Environments by hand: states, moves and steps, without a policy or a trainer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _gfn
from ._checks import chosen, count
from ._settings import check

Whole = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class Moves:
    """The moves of a batch of states, as arrays of equal length with an entry per move. `moves[3]`,
    `moves[2:5]`, `moves[[0, 4]]` and `moves[mask]` are moves, too."""

    state: Whole
    """The index of each move's state in the batch."""
    slot: Whole | None
    """The number of each move among all moves of its state, legal or not: a network gives a logit for each.
    None in the moves that rules get, which need only the names."""
    kind: Whole
    """The index of the type in `types`; `AddNode(attached=True)` is two types, one for the first node and one
    for the others."""
    a: Whole
    """The node, or the first node of an edge, in environments of graphs."""
    b: Whole
    """The second node of an edge; 0 for moves without one."""
    column: Whole
    """The number of each move among the type's moves there. It is the class of an added node or edge; for an
    attached node, its class times the number of edge classes, plus the class of its edge; for an attribute,
    the value minus 1, plus the numbers of values of all attributes before it; for vectors, the slot."""
    types: tuple[str, ...]
    """The names of the types of moves; `kind` is an index into them."""
    backward: bool = False
    """True for backward moves."""

    @property
    def graph(self) -> Whole:
        """The index of each move's graph in the batch: the array `state` by another name."""
        return self.state

    @property
    def is_exit(self) -> Flags:
        """True for each move that is an exit. An exit ends a trajectory and doesn't change its state."""
        exits = [kind for kind, name in enumerate(self.types) if name == "exit"]
        return np.isin(self.kind, exits)

    def of(self, state: int) -> Moves:
        """Returns the moves of one state of the batch."""
        return self[self.state == count(state, "state")]

    def draw(self, rng: np.random.Generator) -> Moves:
        """Draws one move per state uniformly. States without moves get none."""
        order = np.lexsort((rng.random(len(self)), self.state))
        return self[order[np.unique(self.state[order], return_index=True)[1]]]

    def describe(self) -> list[str]:
        """Returns each move as text: its type, its nodes, and its number among the moves of the type
        there."""
        rows = zip(self.kind.tolist(), self.a.tolist(), self.b.tolist(), self.column.tolist())
        return [f"{self.types[kind]}({a}, {b}, {column})" for kind, a, b, column in rows]

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
    """The legal moves of a batch of states: `legal[ptr[k]:ptr[k + 1]]` are the flags of state k, indexed by
    slot."""

    ptr: Whole
    """The first slot of each state, `[n + 1]`."""
    legal: Flags
    """True for each slot that is legal, state by state."""
    has_exit: bool
    """True if the last slot of every state is the exit."""

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def of(self, state: int) -> Flags:
        """Returns the flags of the slots of one state."""
        row = int(chosen(count(state, "state"), len(self), "states")[0])
        return self.legal[self.ptr[row] : self.ptr[row + 1]]


@dataclass(frozen=True, eq=False)
class Step:
    """The result of a step, a row per state."""

    states: Any
    """The states after the step; an exit doesn't change a state."""
    reverse: Whole
    """The slot of the move that undoes each move, among the moves of the other direction of the state after
    it; -1 for exits, which no move undoes."""
    exit: Flags
    """True for each state in which the exit was taken."""
    done: Flags
    """True for each state from which no further step is possible in this direction."""


class Walkable:
    """The base class of environments whose moves can be listed, with their steps."""

    _env: _gfn.Env

    @property
    def move_types(self) -> tuple[str, ...]:
        """The names of the types of moves, in the order of their slots."""
        return tuple(self._env.types())

    @property
    def n_instances(self) -> int:
        """The number of initial states."""
        return self._env.n_instances()

    def initial(self, n: int = 1, instance: int | npt.ArrayLike = 0) -> Any:
        """Returns `n` initial states; `instance` is the instance of all, or one per state, if there are
        several."""
        n = count(n)
        instances = np.asarray(instance)
        if instances.dtype.kind not in "iu" or instances.shape not in ((), (n,)):
            raise TypeError(
                f"instance is {instance!r:.200}: expected a whole number, or one for each of {n} states"
            )
        if instances.size and instances.min() < 0:
            raise IndexError(f"instance is {instances.min()}: expected 0 to {self.n_instances - 1}")
        return self._env.initial(np.ascontiguousarray(np.broadcast_to(instances, n), dtype=np.int64))

    def moves(self, states: Any, backward: bool = False) -> Moves:
        """Returns all legal moves of states, or all backward moves from them, state by state in the order of
        slots."""
        return self._moves(self._env.moves(states, _flag(backward), None), backward)

    def masks(self, states: Any, backward: bool = False) -> Masks:
        """Returns, for each slot of each state, a flag that is True if its move is legal."""
        return Masks(*self._env.masks(states, _flag(backward)))

    def step(self, states: Any, moves: Moves | npt.ArrayLike) -> Step:
        """Takes one move per state. `moves` has a move per state, in order, or its slot. An illegal move is a
        `ValueError`."""
        return self._step(states, moves, False)

    def backward_step(self, states: Any, moves: Moves | npt.ArrayLike) -> Step:
        """Takes one backward move per state, as `step` does."""
        return self._step(states, moves, True)

    def is_initial(self, states: Any) -> Flags:
        """Returns True for each initial state."""
        return self._env.is_initial(states)

    def keys(self, states: Any) -> list[bytes]:
        """Returns a key per state: keys are equal for equal states, up to isomorphism if labels have no
        meaning."""
        return [bytes(key) for key in self._env.keys(states)]

    def log_automorphisms(self, states: Any) -> npt.NDArray[np.float64]:
        """Returns log |Aut| of each state, up to isomorphism: the log of the number of relabellings of the
        nodes after the start that change nothing. It is 0 if labels have a meaning.
        """
        return self._env.log_automorphisms(states)

    def _named(self, states: Any, state: Whole, slot: Whole, backward: bool) -> Moves:
        return self._moves(self._env.moves(states, backward, (state, slot)), backward)

    def _moves(self, columns: Sequence[Any], backward: bool) -> Moves:
        state, slot, kind, a, b, column = columns
        return Moves(state, slot, kind, a, b, column, self.move_types, backward)

    def _step(self, states: Any, moves: Any, backward: bool) -> Step:
        after, reverse, exit, done = self._env.step(states, _slots(moves, len(states), backward), backward)
        return Step(after, np.where(exit, -1, reverse), exit, done)


def _flag(backward: Any) -> bool:
    check(backward, "backward", bool)
    return bool(backward)


def _slots(moves: Any, n: int, backward: bool) -> Whole:
    """Returns the slot of each of `n` moves, one per state. Refuses moves of other states or of the other
    direction."""
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
