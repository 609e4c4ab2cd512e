"""Environments: objects that are built move by move, with their states and the library's rewards for them."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple, Sequence

import numpy as np
import numpy.typing as npt

from . import _gfn
from ._checks import OF_GRAPHS, check_rules, check_seed, count
from ._settings import COUNT, Settings, needs, plain
from .steps import Walkable


class Coverage(NamedTuple):
    """The part of an environment that was checked."""

    visited: int
    """The number of distinct states that random walks visited."""
    states: int | None
    """The number of these and of all states that backward moves lead to; None if they are too many, so that
    backward walks were sampled."""


class Environment(Walkable, Settings):
    """The base class of environments."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "_env", self._new_env())

    def _new_env(self) -> _gfn.Env:
        return _gfn.Env(self._by_class())

    _env: _gfn.Env

    def check(self, walks: int = 100, seed: int = 0) -> Coverage:
        """Checks the environment at the states of `walks` random walks, and at all backward moves from them.

        Each move must have a reverse, each backward walk must end in the initial state, and equal states must
        have equal moves. What is wrong is a `ValueError` that names the state and the move. Call it for every
        custom environment before training: a wrong mask trains a wrong distribution without an error.
        """
        return Coverage(*self._env.check(count(walks, "walks", 1), check_seed(seed)))

    def __reduce__(self) -> Any:
        values = [getattr(self, name) for name in self.__dataclass_fields__]  # type: ignore[attr-defined]
        return type(self), tuple(values)


def describe_graphs(graphs: _gfn.Graphs) -> Any:
    """Returns what a checkpoint stores about graphs that an environment starts from."""
    return [graphs.n_nodes.tolist(), graphs.edges.tolist(), graphs.node_classes.tolist()]


@dataclass(frozen=True)
class Ring(Environment):
    """All graphs on `n_nodes` labelled nodes, built edge by edge. States are `Graphs`; the library's reward
    is `RingReward`."""

    n_nodes: int
    directed: bool = True


@dataclass(frozen=True)
class Triangle(Environment):
    """Graphs of at most three coloured nodes, up to isomorphism. States are `Graphs`; the library's reward is
    `TriangleReward`."""

    colors: int = 5
    directed: bool = False


@dataclass(frozen=True)
class ColoredGraphs(Environment):
    """Connected graphs of at most `max_nodes` nodes of two colours, up to isomorphism; 72,297 states at 7.
    States are `Graphs`; the library's reward is `ColoredGraphReward`.
    """

    max_nodes: int


@dataclass(frozen=True)
class GraphBuilding(Environment):
    """Graphs within limits, grown node by node and edge by edge, for custom rewards. States are `Graphs`.

    max_nodes, min_nodes, max_edges
        Limits of the size of a finished graph.
    directed
        True for directed edges.
    node_classes, edge_classes
        The number of classes of nodes and of edges.
    node_attributes, edge_attributes
        The largest value of each attribute; 0 is unset.
    attached
        True if each new node comes with an edge, so that graphs are connected.
    labelled
        True if isomorphic graphs are different objects.
    corrects_symmetry
        True if rewards are those of isomorphism classes, whatever the number of their labelled graphs.
    """

    max_nodes: int
    directed: bool = False
    max_edges: int | None = None
    min_nodes: int = 0
    node_classes: int = 1
    edge_classes: int = 1
    node_attributes: Sequence[int] = ()
    edge_attributes: Sequence[int] = ()
    attached: bool = False
    labelled: bool = False
    corrects_symmetry: bool = True


class Encoding(NamedTuple):
    """The meaning of classes and of values of attributes in an environment's graphs: each is an index into
    one of these lists."""

    node_classes: list[str]
    node_attributes: list[list[str]]
    """The meaning of the values of each node attribute, from 0 on."""
    edge_classes: list[str]
    edge_attributes: list[list[str]]


class _OfMolecules(Environment):
    """The base class of environments of molecules, with custom rules and the meaning of classes."""

    rules: Any

    @property
    def encoding(self) -> Encoding:
        """What stands for what in the graphs, which rewards and networks of your own read.

        >>> encoding = Molecules(9, ["C", "N"]).encoding
        >>> encoding.node_classes, encoding.node_attributes, encoding.edge_attributes
        (['C', 'N'], [['0', '+1']], [['single', 'double', 'triple']])
        """
        return Encoding(*self._env.encoding())

    def _new_env(self) -> _gfn.Env:
        check_rules(self.rules, *OF_GRAPHS)
        return _gfn.Env(self._by_class(), self.rules)

    def _values(self) -> dict[str, Any]:
        return {name: plain(getattr(self, name), name) for name in self.__dataclass_fields__ if name != "rules"}  # type: ignore[attr-defined]

    def _described(self) -> Any:
        return self._values() if self.rules is None else [self._values(), type(self.rules).__name__]

    def accepts(self, molecules: Sequence[Any]) -> npt.NDArray[np.bool_]:
        """Returns a mask of the molecules that the environment can build: SMILES (a name after a blank is
        ignored), or molecules of RDKit. `rules` aren't used.

        >>> smiles = ["CCO", "OB(O)C", "CCN ethylamine"]
        >>> Molecules(9).accepts(smiles).tolist()
        [True, False, True]
        """
        return np.asarray([reason is None for reason in self._env.refusals(molecules)], dtype=bool)

    def refusals(self, molecules: Sequence[Any]) -> dict[int, str]:
        """Returns the reason for each row for which `accepts` is False."""
        return {row: reason for row, reason in enumerate(self._env.refusals(molecules)) if reason is not None}


@dataclass(frozen=True)
class Molecules(_OfMolecules):
    """Molecules, atom by atom and bond by bond, up to isomorphism, each of them of legal valences. States are
    `Graphs` with `smiles`.

    `elements` are symbols (C, N, O, F, P, S, Cl and Br by default); with `charges` there are N+ and O-.

    A molecule with several Kekule forms (o-xylene has two) is several states. A reward, yours or the
    library's, says R of the molecule, whichever form it is shown; the environment divides it among them, in
    training and in targets, so that molecules are sampled in proportion to R. `exact().groups` says which
    states are one molecule, `exact().of_objects` has the distances between molecules.

    A node is an atom: its class is the place of its element in `elements`, and its first attribute the
    charge, 0 for none, else its place among the charges that there are (N+ is 1 and O- is 2, unless one of
    the elements is left out). Where `extra_valences` is above 0, another attribute is the number of valences
    above the smallest that the atom is set to. An edge is a bond, all of class 0, and its first attribute the
    order less 1: 0 for single, 1 for double, 2 for triple. Hydrogens are what is left of an atom's valence.

    `scaffold` is a molecule that growth starts from: a SMILES with `[*:1]` wherever something may be attached
    (once for each), or without and with `attachments`, the numbers of its atoms, each as often as there is
    room for. `max_atoms` counts its atoms, which stay, as do its bonds; no ring is closed over them. Those
    that a symmetry of it takes to each other are alike, unless they are `told_apart`. Its atoms come first,
    in classes behind those of the elements (`encoding`), and its aromatic bonds are 3.

        >>> env = Molecules(8, ["C", "O"], charges=False, scaffold="c1ccc([*:1])cc1")
        >>> env.encoding.node_classes[2:]
        ['scaffold CH1, aromatic, room for 0', 'scaffold CH1, aromatic, room for 1']

    With `stereo` each object is one stereoisomer: the last moves set the signs of tetrahedral centres and of
    double bonds, without which a molecule isn't finished. `smiles` have marks, and SMILES that are read keep
    theirs; without, a molecule is all of its stereoisomers. A sign is a few nodes more, of two classes behind
    the elements, with edges of classes 1 to 4. There is no scaffold then.

        >>> env = Molecules(9, stereo=True)
        >>> env.accepts(["C[C@H](N)O", "C[C@@H](N)O", "CC(N)O", "C/C=C/C"]).tolist()
        [True, True, False, True]

    `rules` is an object like `GraphRules`, whose graphs have `smiles`: it forbids on top of what the
    environment forbids. It must say the same of all Kekule forms of a molecule, as their SMILES are. Moves
    back are then found by undoing each, which takes longer.
    """

    max_atoms: int
    elements: Sequence[str] | None = None
    charges: bool = True
    extra_valences: int = 0
    max_bond_order: int = 3
    max_rings: int | None = None
    max_ring_size: int | None = None
    corrects_symmetry: bool = True
    scaffold: str | None = None
    attachments: Sequence[int] | None = None
    told_apart: bool = False
    stereo: bool = False
    rules: Any = None

    def _values(self) -> dict[str, Any]:
        values = super()._values()
        # Descriptions of runs without scaffolds or stereochemistry do not contain these settings.
        unknown: tuple[str, ...] = () if self.stereo else ("stereo",)
        if self.scaffold is None and self.attachments is None and not self.told_apart:
            unknown += "scaffold", "attachments", "told_apart"
        return {name: value for name, value in values.items() if name not in unknown}


class Trees(NamedTuple):
    """The trees of fragments that molecules can be built as."""

    graphs: _gfn.Graphs
    molecule: npt.NDArray[np.int64]
    """The row of the molecule of each tree."""


class _OfFile(_OfMolecules):
    """The base class of `Fragments`, with the text of its file."""

    _fragments: str | None


@dataclass(frozen=True, eq=False)
class Fragments(_OfFile):
    """Molecules of fragments that are joined at their stems; `library` is a file of fragments in place of the
    standard ones, or a list of its lines. States are `Graphs` of fragments, with the `smiles` of the
    molecules; the reward is `MoleculeReward`.

    Each line of the file is a SMILES, a blank, and the fragment's stems with commas between them, such as
    `c1ccccc1 0,3` or `N 0,0`: the atoms that others may be attached to, counted from 0 as the SMILES has
    them, each as often as there may be an attachment. An attachment takes the place of a hydrogen, so an atom
    is listed at most once for each that it has. Empty lines and those that begin with `#` are read over. The
    objects are trees of fragments: what can be put together in several ways (butane, with C and CC in the
    library) is several objects.

    A node is a fragment, and its class the fragment's place in the library. A bond is two opposite edges of
    class 0, whose first two attributes are the stems, counted from 1, of the fragment that it goes from and
    of the one that it goes to.

    `rules` is an object like `GraphRules`, whose graphs have `smiles`: it forbids on top of what the
    environment forbids.

    The file is read once: a pickle holds what was in it, as those of its graphs do, and a run goes on with
    the same fragments alone. `from_data` has the fragments of molecules of yours in place of a file. A
    molecule is accepted if it is a tree of at most `max_fragments`; `trees` are all of them.
    """

    max_fragments: int
    library: str | PathLike[str] | Sequence[str] | None = None
    rules: Any = None

    @classmethod
    def from_data(cls, molecules: Sequence[Any], max_fragments: int, n: int = 100, rules: Any = None) -> Fragments:
        """The environment of the `n` most frequent pieces that molecules (SMILES, or of RDKit) fall into when
        rings are cut from what is between them: rings, linkers and side chains, with stems wherever one of
        them was cut. `read_molecules` reads a file of them; those without a ring have no such pieces.

        >>> env = Fragments.from_data(["Cc1ccccc1", "Cc1ccc(CN)cc1", "OC1CC1"], 3, n=3)
        >>> env.library
        ('C 0', 'c1ccccc1 0,1,2,3,4,5', 'O 0')
        >>> env.accepts(["Cc1ccc(C)cc1", "OC1CC1"]).tolist()
        [True, False]
        """
        return cls(max_fragments, tuple(_gfn.fragments_of(molecules, count(n, "n", 1)).splitlines()), rules)

    def trees(self, molecules: Sequence[Any], most: int = 10) -> Trees:
        """Returns all trees of these molecules (SMILES, or of RDKit), at most `most` of each. Each tree is an
        object.

        >>> env = Fragments.from_data(["Cc1ccccc1", "CCc1ccccc1", "CCCC1CC1"], 3)
        >>> env.trees(["CCc1ccccc1", "Cc1ccccc1"]).graphs.smiles
        ['CCc1ccccc1', 'Cc1ccccc1']
        """
        graphs, rows = self._env.trees(molecules, count(most, "most", 1))
        return Trees(graphs, np.asarray(rows, dtype=np.int64))

    def _shared(self, molecules: Sequence[Any]) -> Trees:
        """Returns the same number of trees for each molecule, repeated if it has fewer: a data set in which
        molecules count equally."""
        graphs, molecule = self.trees(molecules)
        n = np.bincount(molecule)
        rows = (np.cumsum(n) - n)[:, None] + np.arange(n.max(initial=0)) % n[:, None]
        return Trees(graphs[rows.ravel()], molecule[rows.ravel()])

    def _new_env(self) -> _gfn.Env:
        if not hasattr(self, "_fragments"):
            if isinstance(self.library, (str, PathLike)):
                text: str | None = Path(self.library).read_text(encoding="utf-8")
            else:
                text = None if self.library is None else "\n".join(self.library)
            object.__setattr__(self, "_fragments", text)
        return super()._new_env()

    def _values(self) -> dict[str, Any]:
        return {"max_fragments": plain(self.max_fragments, "max_fragments"), "library": self._fragments}

    @classmethod
    def _restore(cls, max_fragments: int, library: Any, fragments: str | None, rules: Any = None) -> Fragments:
        """Returns an environment that was pickled, from the text of its file."""
        made = object.__new__(cls)
        for name, value in (("_fragments", fragments), ("max_fragments", max_fragments), ("library", library), ("rules", rules)):
            object.__setattr__(made, name, value)
        made.__post_init__()
        return made

    def __reduce__(self) -> Any:
        return Fragments._restore, (self.max_fragments, self.library, self._fragments, self.rules)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fragments) and (self._values(), self.rules) == (other._values(), other.rules)

    def __hash__(self) -> int:
        return hash((self.max_fragments, self._fragments))


class GraphProblem(Environment):
    """What problems on input graphs share. Each graph is an instance, with trajectories, a log Z and a
    distribution of its own; a policy learns all of them. So the objective is one of state flows
    (`DetailedBalance`, `SubTrajectoryBalance`), and `exact` is for one graph.

    States are `Graphs`: the input graphs, in whose node attribute 0 is 1 for nodes of the solution, 2 for
    others, 0 for those that can still be chosen (of `DominatingSet`, all but 2 are of the solution; of `Cut`,
    1 is one side and 0 the other). Networks are best given no identity (`identity=False`), so that what they
    learn of some graphs holds for others. The reward is `SizeReward`, or a function.

    `for_size`: networks see the part of a state that a solution's size depends on from there on (the nodes
    that are open, the edges between them, the number of the chosen), which is less to compute. The reward is
    `SizeReward` then, and no other.
    """

    graphs: _gfn.Graphs
    for_size: bool

    def _new_env(self) -> _gfn.Env:
        return _gfn.Env(self._by_class(), None, self.graphs)

    def _by_class(self) -> dict[str, Any]:
        return {"GraphProblem": {"problem": type(self).__name__, "for_size": plain(self.for_size, "for_size")}}

    def _described(self) -> Any:
        graphs = describe_graphs(self.graphs)
        return {"graphs": graphs, "for_size": True} if self.for_size else graphs


@dataclass(frozen=True)
class IndependentSet(GraphProblem):
    """Sets of nodes of which no two have an edge and that can't grow, node by node, on each of these
    undirected graphs."""

    graphs: _gfn.Graphs
    for_size: bool = False


@dataclass(frozen=True)
class Clique(GraphProblem):
    """Sets of nodes of which any two have an edge and that can't grow, node by node, on each of these
    undirected graphs."""

    graphs: _gfn.Graphs
    for_size: bool = False


@dataclass(frozen=True)
class DominatingSet(GraphProblem):
    """Sets of nodes such that each other node has an edge to one of them, and that can spare none: nodes are
    taken out one by one, on each of these undirected graphs."""

    graphs: _gfn.Graphs
    for_size: bool = False


@dataclass(frozen=True)
class Cut(GraphProblem):
    """Two sides, between which nodes are moved one by one, on each of these undirected graphs; edges between
    the sides are cut."""

    graphs: _gfn.Graphs
    for_size: bool = False


@dataclass(frozen=True)
class HyperGrid(Environment):
    """Points of a grid, built one step along an axis at a time. States are int64 arrays `[n, ndim]`; the
    library's reward is `HyperGridReward`."""

    ndim: int
    height: int


@dataclass(frozen=True)
class BitSequence(Environment):
    """Words of bits, appended from left to right. States are int64 arrays, a word each, 0 for none yet; the
    library's reward is `HammingReward`.
    """

    word_size: int
    seq_size: int


@dataclass(frozen=True)
class PrependAppendBitSequence(Environment):
    """Words of bits, as in `BitSequence`, added at either end."""

    word_size: int
    seq_size: int


@dataclass(frozen=True)
class NonAutoregressiveBitSequence(Environment):
    """Words of bits, as in `BitSequence`, set in any order."""

    word_size: int
    seq_size: int


@dataclass(frozen=True)
class TokenSequence(Environment):
    """Tokens appended from left to right: exactly `length` of them, or from `min_length` to `length`. States
    are int64 arrays `[n, length]`, 0 for none yet, else one more than the token; the reward is `TableReward`.
    """

    n_tokens: int
    length: int
    min_length: int | None = None


@dataclass(frozen=True)
class DiscreteEbm(Environment):
    """Spins that are set in any order. States are int64 arrays `[n, spins]`: 0 for unset, 1 and 2; the reward
    is `IsingReward`."""

    n: int


@dataclass(frozen=True)
class SetAddition(Environment):
    """Sets that items are added to. States are int64 arrays `[n, n_items]` of 0 and 1; the library's reward
    is `WeightReward`."""

    n_items: int
    max_items: int
    fixed_length: bool = False


@dataclass(frozen=True)
class PerfectBinaryTree(Environment):
    """A walk from the root of a binary tree to a leaf. States are int64 arrays `[n, depth]`: 0 below the
    node, 1 left, 2 right."""

    depth: int


@dataclass(frozen=True)
class PhyloTree(Environment):
    """Rooted trees over `n` species, joined from the leaves. The library's reward is `ParsimonyReward`."""

    n: int


@dataclass(frozen=True)
class ToyDag(Environment):
    """The 11 states of the paper *GFlowNet Foundations*. States are int64 arrays `[n, 1]`; the reward is
    `ToyReward`."""


@dataclass(frozen=True)
class BayesianStructure(Environment):
    """Acyclic graphs over `nodes` variables, edge by edge. States are bool arrays `[n, from, to]`; the reward
    is `StructureReward`."""

    nodes: int
    max_parents: int | None = None
    forbidden: Sequence[tuple[int, int]] = ()
    required: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True)
class Box(Environment):
    """Points of the unit box, in steps of at least `delta`. States are float64 arrays `[n, ndim]`; the reward
    is `BoxReward`."""

    ndim: int = 2
    delta: float = 0.25
    polar: bool = False


@dataclass(frozen=True)
class Line(Environment):
    """A position on the line after `n_steps` steps. States are float64 arrays; the reward is `LineReward`."""

    n_steps: int = 5


@dataclass(frozen=True)
class Diffusion(Environment):
    """Points of `dim` dimensions that take `steps` Gaussian steps from the origin. States are float64 arrays
    `[n, dim]`; targets are `GaussianTarget`, `MixtureTarget`, `FunnelTarget`, `ManyWellTarget`,
    `PosteriorTarget`, `CoxTarget`.

    The process is a Brownian motion, whose variance at the end is `sigma**2`; one that forgets where it was,
    by `rate` in a unit of time (Ornstein-Uhlenbeck); or one of the same variance at all times but the start,
    of which each step replaces a share from `beta_max` at first to `beta_min` at the end.
    """

    dim: int
    steps: int = field(default=100, metadata=COUNT)
    sigma: float = 1.0
    process: Literal["pinned_brownian", "ornstein_uhlenbeck", "variance_preserving"] = "pinned_brownian"
    rate: float = field(default=1.0, metadata=needs("process", "ornstein_uhlenbeck"))
    beta_min: float = field(default=0.01, metadata=needs("process", "variance_preserving"))
    beta_max: float = field(default=0.3, metadata=needs("process", "variance_preserving"))

    def _values(self) -> dict[str, Any]:
        of_process: dict[str, tuple[str, ...]] = {"ornstein_uhlenbeck": ("rate",), "variance_preserving": ("beta_min", "beta_max")}
        numbers = {name: plain(getattr(self, name), name) for name in of_process.get(self.process, ())}
        sizes = {name: plain(getattr(self, name), name) for name in ("dim", "steps", "sigma")}
        return {**sizes, "process": {self.process: numbers} if numbers else self.process}
