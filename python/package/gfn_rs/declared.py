"""Environments of your own: what moves there are, and what is forbidden."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import getattr_static
from typing import Any

import numpy as np

from . import _gfn
from ._settings import Settings, plain
from .envs import Environment
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

    `start` is where trajectories start: a number of nodes without edges (alike unless `labelled`), or `Graphs` of one graph, whose
    nodes and edges stay for good. `rules` is an object like `GraphRules`. Unless `labelled`, isomorphic graphs are one object, and the
    rules must not tell them apart.
    """

    actions: Sequence[ActionType]
    max_nodes: int
    directed: bool = False
    node_classes: int = 1
    edge_classes: int = 1
    node_attributes: Sequence[int] = ()
    edge_attributes: Sequence[int] = ()
    start: int | _gfn.Graphs = 0
    labelled: bool = False
    corrects_symmetry: bool = True
    rules: Any = None

    def _made(self) -> _gfn.Env:
        for action in self.actions:
            if not isinstance(action, ActionType):
                raise TypeError(f"actions has a {type(action).__name__}: expected objects like AddEdge()")
        _check_rules(self.rules, "restrict", "can_exit", "is_reachable")
        initial = self.start if isinstance(self.start, _gfn.Graphs) else None
        return _gfn.Env(self._text(), self.rules, initial)

    def _described(self) -> Any:
        start = self.start
        edges = [start.n_nodes.tolist(), start.edges.tolist(), start.node_classes.tolist()] if isinstance(start, _gfn.Graphs) else start
        return [self._values(), edges, type(self.rules).__name__]

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
    """An environment of vectors of your own, which start as zeros and end by an exit. States are int64 arrays `[n, width]`.

    `changes` is an array `[M, 3]`, the moves: an entry, the value that it must have, and the greater one that it gets. `values` is above any value.
    `rules` is an object like `VectorRules`.
    """

    width: int
    values: int
    changes: Any
    rules: Any = None

    def __post_init__(self) -> None:
        if isinstance(self.changes, np.ndarray):
            # Environments are compared, and an array has no one answer.
            object.__setattr__(self, "changes", tuple(tuple(move) for move in np.atleast_2d(self.changes).tolist()))
        super().__post_init__()

    def _described(self) -> Any:
        return [self._values(), type(self.rules).__name__]

    def _made(self) -> _gfn.Env:
        _check_rules(self.rules, "restrict", "can_end", "is_reachable")
        return _gfn.Env(self._text(), self.rules)

    def _values(self) -> dict[str, Any]:
        moves = np.asarray(self.changes)
        if moves.ndim != 2 or moves.shape[1] != 3 or not np.issubdtype(moves.dtype, np.integer):
            raise ValueError(f"changes has shape {moves.shape} and type {moves.dtype}: expected whole numbers [M, 3]")
        if moves.size and not 0 <= moves.min() <= moves.max() < 65_536:
            raise ValueError(f"changes has numbers from {moves.min()} to {moves.max()}: expected 0 to 65535")
        return {"width": plain(self.width, "width"), "values": plain(self.values, "values"), "moves": moves.tolist()}


# What rules of graphs or of vectors can be asked.
_ASKED = ("restrict", "can_exit", "can_end", "is_reachable")


def _check_rules(rules: Any, *methods: str) -> None:
    """Refuses what isn't rules, and methods that nobody would call: a misspelt one would forbid nothing without a word."""
    if rules is None:
        return
    if isinstance(rules, type) or not any(hasattr(rules, name) for name in methods):
        given = rules.__name__ if isinstance(rules, type) else type(rules).__name__
        raise TypeError(f"rules is {given}: expected an object with a method of {', '.join(methods)}")
    for name in dir(rules):
        if name.startswith("_") or name in methods or not callable(getattr_static(rules, name)):
            continue
        meant = get_close_matches(name.lower(), _ASKED, 1, 0.8)
        if meant:
            wanted = meant[0] if meant[0] in methods else "can_exit" if "can_exit" in methods else "can_end"
            raise TypeError(
                f"rules has a method `{name}`, which nothing asks: `{wanted}` is meant, or give it another name (`_{name}`) if it is your own"
            )
