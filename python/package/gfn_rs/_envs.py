"""Environments: objects that are built move by move, with their states and the library's rewards for them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from os import PathLike
from pathlib import Path
from typing import Any, Iterable, Literal, NamedTuple, Sequence

import numpy as np
import numpy.typing as npt

from . import _gfn
from ._checks import OF_GRAPHS, check_rules, check_seed, count
from ._gfn import Graphs
from ._objects import lines, scaffold_smiles
from ._settings import COUNT, Settings, check, needs, plain
from ._steps import Flags, States, Walkable, Whole
from ._tables import number_edges

Points = npt.NDArray[np.float64]


class Coverage(NamedTuple):
    """The result of `check`: how many states of an environment were checked.

    >>> gfn.HyperGrid(2, 3).check()
    Coverage(visited=9, states=9)
    """

    visited: int
    """The number of distinct states that random walks visited."""
    states: int | None
    """The number of all checked states: the visited states, and all states to which backward moves lead from
    them. None if these states are too many to list. In this case only random samples of backward moves were
    checked."""


class Environment(Walkable[States], Settings):
    """The base class of environments. An environment is described by its settings, the fields of its class.
    In annotations, `Environment[Graphs]` is an environment whose states are `Graphs`.

    >>> env: gfn.Environment = gfn.HyperGrid(2, 3)
    >>> env.n_instances, env == gfn.HyperGrid(2, 3)
    (1, True)
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "_env", self._new_env())

    def _new_env(self) -> _gfn.Env:
        return _gfn.Env(self._by_class())

    _env: _gfn.Env

    def check(self, walks: int = 100, seed: int = 0) -> Coverage:
        """Checks the environment at the states of `walks` random walks, and at all backward moves from these
        states.

        Each move must have a reverse, backward moves must lead to the initial state in the end, and equal
        states must have equal moves. A violation is a `ValueError` that names the state and the move. Call
        `check` for every custom environment before training: with a wrong mask, training learns a wrong
        distribution without an error.
        """
        return Coverage(*self._env.check(count(walks, "walks", 1), check_seed(seed)))

    def __reduce__(self) -> Any:
        values = [getattr(self, each.name) for each in fields(self)]  # type: ignore[arg-type]
        return type(self), tuple(values)


def describe_graphs(graphs: _gfn.Graphs) -> Any:
    """Returns a description of an environment's initial graphs, which is stored in checkpoints."""
    return [graphs.n_nodes.tolist(), graphs.edges.tolist(), graphs.node_classes.tolist()]


@dataclass(frozen=True)
class Ring(Environment[Graphs]):
    """Graphs on `n_nodes` labelled nodes, built edge by edge. States are `Graphs`. The library's reward for
    this environment is `RingReward`.

    n_nodes
        The number of nodes.
    directed
        True, the default, for directed edges.

    >>> env = gfn.Ring(3)
    >>> len(env.moves(env.initial())), env.initial().n_nodes
    (7, array([3]))
    """

    n_nodes: int
    directed: bool = True


@dataclass(frozen=True)
class Triangle(Environment[Graphs]):
    """Graphs of at most three coloured nodes, up to isomorphism. States are `Graphs`; the library's reward is
    `TriangleReward`.

    colors
        The number of colours, which are the classes of nodes, 5 by default.
    directed
        True for directed edges; False by default.

    >>> trainer = gfn.Trainer(gfn.Triangle(2), gfn.TriangleReward(), gfn.GraphNet(embedding=8), batch=8)
    >>> trainer.exact().n_states
    29
    """

    colors: int = 5
    directed: bool = False


@dataclass(frozen=True)
class ColoredGraphs(Environment[Graphs]):
    """Connected graphs of at most `max_nodes` nodes of two colours, up to isomorphism, for `max_nodes` from 1
    to 64. With `max_nodes=7` there are 72,297 states. States are `Graphs`; the library's reward is
    `ColoredGraphReward`.

    >>> net = gfn.GraphNet(embedding=8)
    >>> gfn.Trainer(gfn.ColoredGraphs(3), gfn.ColoredGraphReward(), net).exact().n_states
    16
    """

    max_nodes: int


@dataclass(frozen=True)
class GraphBuilding(Environment[Graphs]):
    """Graphs up to a given size, built node by node and edge by edge, for custom rewards. States are
    `Graphs`.

    max_nodes, min_nodes, max_edges
        Limits of the size of a finished graph.
    directed
        True for directed edges.
    node_classes, edge_classes
        The number of classes of nodes and of edges.
    node_attributes, edge_attributes
        The largest value of each attribute. The value 0 means that the attribute is unset.
    attached
        True if each new node comes with an edge, so that graphs are connected.
    labelled
        True if isomorphic graphs are different objects.
    corrects_symmetry
        True if training corrects the reward for symmetry: an isomorphism class is sampled in proportion to R,
        regardless of the number of labelled graphs in the class.

    >>> env = gfn.GraphBuilding(max_nodes=3, node_classes=2, attached=True)
    >>> env.moves(env.initial()).describe()
    ['add_first_node(0, 0, 0)', 'add_first_node(0, 0, 1)', 'exit(0, 0, 0)']
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
    """The names of the classes and of the values of attributes in an environment's graphs. Each class or
    value is an index into one of these lists.

    >>> encoding = gfn.Molecules(9, ["C", "N"], charges=False).encoding
    >>> encoding.node_classes, encoding.edge_classes
    (['C', 'N'], ['bond'])
    """

    node_classes: list[str]
    node_attributes: list[list[str]]
    """A list for each node attribute: the names of its values, from the value 0 on."""
    edge_classes: list[str]
    edge_attributes: list[list[str]]


class _OfMolecules(Environment[Graphs]):
    """The base class of environments of molecules. Environments of molecules accept custom rules, and have
    names for the classes of their graphs."""

    rules: Any

    @property
    def encoding(self) -> Encoding:
        """The names of the classes and attributes of this environment's graphs, for custom rewards and
        networks.

        >>> encoding = Molecules(9, ["C", "N"]).encoding
        >>> encoding.node_classes, encoding.node_attributes, encoding.edge_attributes
        (['C', 'N'], [['0', '+1']], [['single', 'double', 'triple']])
        """
        return Encoding(*self._env.encoding())

    def _new_env(self) -> _gfn.Env:
        check_rules(self.rules, *OF_GRAPHS)
        return _gfn.Env(self._by_class(), self.rules)

    def _values(self) -> dict[str, Any]:
        names: list[str] = list(self.__dataclass_fields__)  # type: ignore[attr-defined]
        return {name: plain(getattr(self, name), name) for name in names if name != "rules"}

    def _described(self) -> Any:
        return self._values() if self.rules is None else [self._values(), type(self.rules).__name__]

    def accepts(self, molecules: Iterable[Any]) -> npt.NDArray[np.bool_]:
        """Returns a mask of the molecules that the environment can build: SMILES (a name after a blank is
        ignored), or molecules of RDKit. A missing entry (None, NaN, the NA of pandas) is False. The
        environment's `rules` are ignored. An environment with a `scaffold` can't convert molecules.

        >>> smiles = ["CCO", "OB(O)C", "CCN ethylamine", None]
        >>> Molecules(9).accepts(smiles).tolist()
        [True, False, True, False]
        """
        return np.asarray([reason is None for reason in self._reasons(molecules)], dtype=bool)

    def refusals(self, molecules: Iterable[Any]) -> dict[int, str]:
        """Returns the reasons for which `accepts` is False: a text for each refused molecule, by the
        molecule's index."""
        return {row: reason for row, reason in enumerate(self._reasons(molecules)) if reason is not None}

    def _reasons(self, molecules: Iterable[Any]) -> list[str | None]:
        """Returns the reason for which the environment can't build a molecule, or None if it can, for each
        molecule."""
        if getattr(self, "scaffold", None) is not None:
            raise ValueError(
                "an environment with a scaffold can't convert molecules to states: expected an environment "
                "without `scaffold`; compare its samples with molecules by `canonical_smiles`"
            )
        texts = lines(molecules, "molecules", missing="")
        reasons = self._env.refusals(texts)
        return [
            reason if text.strip() else "the entry is empty: expected a SMILES or a molecule of RDKit"
            for text, reason in zip(texts, reasons)
        ]

    def states(self, molecules: Iterable[Any]) -> _gfn.Graphs:
        """Returns a state for each molecule (SMILES, or molecules of RDKit), for `moves`, `step` and
        networks. A molecule that the environment can't build is a `ValueError`; `accepts` finds these
        molecules. If a molecule is several states (Kekule forms, or trees of fragments), the result has one
        of them. The environment's `rules` are ignored. An environment with a `scaffold` can't convert
        molecules.

        >>> env = Molecules(9)
        >>> states = env.states(["OCC", "CC#N"])
        >>> states.smiles
        ['CCO', 'CC#N']
        >>> env.apply(states, env.moves(states)[:1]).smiles
        ['CCOC']
        """
        return self._env.trees(molecules, 1)[0]


@dataclass(frozen=True)
class Molecules(_OfMolecules):
    """Molecules, built atom by atom and bond by bond, up to isomorphism, each with legal valences. States are
    `Graphs` with `smiles`.

    `elements` are symbols (C, N, O, F, P, S, Cl and Br by default). With `charges`, atoms may also be N+ and
    O-. `max_bond_order` is the largest order of a bond, from 1 to 3. `max_rings` and `max_ring_size` limit
    the number of rings and the number of atoms of a ring; by default they aren't limited. With
    `corrects_symmetry`, a molecule is sampled in proportion to R, regardless of the number of numberings of
    its atoms.

    A molecule with several Kekule forms (o-xylene has two) has several states, one for each form. A reward
    returns R of the molecule for each of these states. The environment divides R among the states, in
    training and in targets, so that molecules are sampled in proportion to R. `exact().groups` shows which
    states are the same molecule, and `exact().of_objects` has the distances between distributions over
    molecules.

    A node is an atom. Its class is the index of its element in `elements`. Its first attribute is the charge:
    0 for none, otherwise the index of the charge among the possible charges, counted from 1. With the default
    elements, N+ is 1 and O- is 2. If `extra_valences` is above 0, a second attribute is the number of steps
    by which the atom's valence is above its smallest valence, in the list of the element's valences. An edge
    is a bond, always of class 0, and its first attribute is the bond order less 1: 0 for a single, 1 for a
    double, 2 for a triple bond. Hydrogens fill the part of an atom's valence that its bonds leave free.

    `scaffold` is a molecule that growth starts from. The setting is a SMILES with `[*:1]` at each attachment
    point, or a molecule of RDKit with dummy atoms there, which is stored as a SMILES. If the scaffold has no
    such marks, `attachments` lists the numbers of the atoms that other atoms may be attached to, and repeats
    a number for each further attachment. For a molecule of RDKit these are the indices of its atoms.
    `max_atoms` counts the scaffold's atoms, too. The scaffold's atoms and bonds stay, and no new ring passes
    through them. Two atoms that a symmetry of the scaffold exchanges count as the same atom, unless
    `told_apart` is True. The scaffold's atoms are the first nodes. Their classes come after the elements, and
    `encoding` has the names of these classes, in which `room for` is followed by the largest total order of
    bonds to new atoms. The attribute of the scaffold's aromatic bonds is 3.

        >>> env = Molecules(8, ["C", "O"], charges=False, scaffold="c1ccc([*:1])cc1")
        >>> env.encoding.node_classes[2:]
        ['scaffold CH1, aromatic, room for 0', 'scaffold CH1, aromatic, room for 1']

    With `stereo` each object is one stereoisomer: the last moves set the configurations of tetrahedral
    centres and of double bonds, and a molecule is finished only if all configurations are set. `smiles`
    contain stereo marks, and stereo marks of SMILES that are read are kept. Without `stereo`, a molecule
    represents all of its stereoisomers. Each configuration is stored as a few additional nodes, of two
    classes after the elements, with edges of classes 1 to 4. `stereo` and `scaffold` exclude each other.

        >>> env = Molecules(9, stereo=True)
        >>> env.accepts(["C[C@H](N)O", "C[C@@H](N)O", "CC(N)O", "C/C=C/C"]).tolist()
        [True, True, False, True]

    `rules` is an object like `GraphRules`, whose graphs have `smiles`: it forbids moves in addition to those
    that the environment forbids. Its answers must be equal for all Kekule forms of a molecule; their SMILES
    are equal, too. With `rules`, backward moves are found by undoing each move, which takes longer.
    """

    max_atoms: int
    elements: Sequence[str] | None = None
    charges: bool = True
    extra_valences: int = 0
    max_bond_order: int = 3
    max_rings: int | None = None
    max_ring_size: int | None = None
    corrects_symmetry: bool = True
    scaffold: Any = None
    attachments: Sequence[int] | None = None
    told_apart: bool = False
    stereo: bool = False
    rules: Any = None

    def __post_init__(self) -> None:
        if self.scaffold is not None and not isinstance(self.scaffold, str):
            check(self.attachments, "Molecules.attachments", Sequence[int] | None)
            smiles, attachments = scaffold_smiles(self.scaffold, self.attachments)
            object.__setattr__(self, "scaffold", smiles)
            object.__setattr__(self, "attachments", attachments)
        super().__post_init__()

    def _values(self) -> dict[str, Any]:
        values = super()._values()
        # Older checkpoints lack the settings for scaffolds and stereochemistry. These settings are left out
        # if they aren't used, so that the description equals the description in an older checkpoint.
        unknown: tuple[str, ...] = () if self.stereo else ("stereo",)
        if self.scaffold is None and self.attachments is None and not self.told_apart:
            unknown += "scaffold", "attachments", "told_apart"
        return {name: value for name, value in values.items() if name not in unknown}


class Trees(NamedTuple):
    """The trees of fragments from which molecules can be assembled, and the molecule of each tree.

    >>> gfn.Fragments(3, ["C 0", "CC 0"]).trees(["CCC"]).molecule.tolist()
    [0]
    """

    graphs: _gfn.Graphs
    molecule: npt.NDArray[np.int64]
    """The index of each tree's molecule in the list of molecules."""


class _OfFile(_OfMolecules):
    """The base class of `Fragments`, which stores the text of the file of fragments."""

    _fragments: str | None


@dataclass(frozen=True, eq=False)
class Fragments(_OfFile):
    """Molecules made of fragments that are joined at their stems. `library` is a file of fragments that
    replace the 32 standard fragments, or a list of the lines of such a file. In the source of the package,
    `gym/molecules/src/fragments/bengio2021.txt` is such a file, with the 72 fragments of Bengio et al.
    (2021). States are `Graphs` of fragments, with the `smiles` of the molecules; the reward is
    `MoleculeReward`.

    Each line of the file is a SMILES, a blank, and the fragment's stems with commas between them, such as
    `c1ccccc1 0,3` or `N 0,0`. Stems are the atoms that other fragments may be attached to, counted from 0 in
    the order of the SMILES, and repeated for each possible attachment. An attachment replaces a hydrogen, so
    an atom is listed at most once for each of its hydrogens. Empty lines and lines that begin with `#` are
    skipped. The objects are trees of fragments: a molecule that can be assembled in several ways (butane,
    with C and CC in the library) is several objects.

    A node is a fragment, and its class is the fragment's index in the library. A bond is two opposite edges
    of class 0. The first two attributes of an edge are stems, counted from 1: the stem of the fragment at the
    edge's source, and the stem of the fragment at its target.

    `rules` is an object like `GraphRules`, whose graphs have `smiles`: it forbids moves in addition to those
    that the environment forbids.

    The file is read once: a pickle of the environment or of its graphs contains its text, and a run resumes
    with the same fragments only. `from_data` takes the fragments of your molecules instead of a file. A
    molecule is accepted if it can be assembled as a tree of at most `max_fragments` fragments; `trees` lists
    all trees of a molecule.

    >>> env = gfn.Fragments(2, ["C 0", "N 0,0", "c1ccccc1 0,3"])
    >>> env.accepts(["Cc1ccccc1", "CNC"]).tolist()
    [True, False]
    """

    max_fragments: int
    library: Any = None
    rules: Any = None

    @classmethod
    def from_data(
        cls, molecules: Iterable[Any], max_fragments: int, n: int = 100, rules: Any = None
    ) -> Fragments:
        """Builds an environment whose fragments are the `n` most frequent pieces of these molecules, which
        are SMILES or molecules of RDKit. The pieces are rings, linkers and side chains: each molecule is cut
        at the bonds between its rings and its other atoms, with a stem at each cut. A molecule without a ring
        has no such pieces. `read_molecules` reads a file of molecules.

        >>> env = Fragments.from_data(["Cc1ccccc1", "Cc1ccc(CN)cc1", "OC1CC1"], 3, n=3)
        >>> env.library
        ('C 0', 'c1ccccc1 0,1,2,3,4,5', 'O 0')
        >>> env.accepts(["Cc1ccc(C)cc1", "OC1CC1"]).tolist()
        [True, False]
        """
        return cls(max_fragments, tuple(_gfn.fragments_of(molecules, count(n, "n", 1)).splitlines()), rules)

    def trees(self, molecules: Iterable[Any], most: int = 10) -> Trees:
        """Returns all trees of fragments of these molecules (SMILES, or molecules of RDKit), at most `most`
        trees per molecule. Each tree is a separate object.

        >>> env = Fragments.from_data(["Cc1ccccc1", "CCc1ccccc1", "CCCC1CC1"], 3)
        >>> env.trees(["CCc1ccccc1", "Cc1ccccc1"]).graphs.smiles
        ['CCc1ccccc1', 'Cc1ccccc1']
        """
        graphs, rows = self._env.trees(molecules, count(most, "most", 1))
        return Trees(graphs, np.asarray(rows, dtype=np.int64))

    def _shared(self, molecules: Iterable[Any]) -> Trees:
        """Returns an equal number of trees for each molecule, so that all molecules count equally in a data
        set. The trees of a molecule with fewer trees are repeated."""
        graphs, molecule = self.trees(molecules)
        n = np.bincount(molecule)
        rows = (np.cumsum(n) - n)[:, None] + np.arange(n.max(initial=0)) % n[:, None]
        return Trees(graphs[rows.ravel()], molecule[rows.ravel()])

    def _new_env(self) -> _gfn.Env:
        if not hasattr(self, "_fragments"):
            check(self.library, "Fragments.library", str | PathLike[str] | Sequence[str] | None)
            if isinstance(self.library, (str, PathLike)):
                text: str | None = Path(self.library).read_text(encoding="utf-8")
            else:
                text = None if self.library is None else "\n".join(self.library)
            object.__setattr__(self, "_fragments", text)
        return super()._new_env()

    def _values(self) -> dict[str, Any]:
        return {"max_fragments": plain(self.max_fragments, "max_fragments"), "library": self._fragments}

    @classmethod
    def _restore(
        cls, max_fragments: int, library: Any, fragments: str | None, rules: Any = None
    ) -> Fragments:
        """Builds a pickled environment again, from the stored text of its file of fragments."""
        made = object.__new__(cls)
        for name, value in (
            ("_fragments", fragments),
            ("max_fragments", max_fragments),
            ("library", library),
            ("rules", rules),
        ):
            object.__setattr__(made, name, value)
        made.__post_init__()
        return made

    def __reduce__(self) -> Any:
        return Fragments._restore, (self.max_fragments, self.library, self._fragments, self.rules)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fragments) and (self._values(), self.rules) == (other._values(), other.rules)

    def __hash__(self) -> int:
        return hash((self.max_fragments, self._fragments))


class GraphProblem(Environment[Graphs]):
    """The base class of problems on input graphs. Each graph is an instance, with its own trajectories, log Z
    and distribution; a policy learns all of them. The objective must be one that learns state flows
    (`DetailedBalance`, `SubTrajectoryBalance`). Evaluations are per input graph: `exact(instance=k)`
    evaluates graph k. States are `Graphs`: copies of the input graphs, in which node attribute 0 marks the
    solution. The attribute is 1 for nodes of the solution, 2 for nodes outside of the solution, and 0 for
    undecided nodes. For `DominatingSet`, all nodes with 0 or 1 are in the solution. For `Cut`, 1 is one side
    and 0 the other side. Use networks with `identity=False`, which can't distinguish nodes by their numbers,
    so that a policy generalises to other graphs. The reward is `SizeReward`, or a function.

    With `for_size`, networks see only the part of a state on which the size of the final solution depends
    (the undecided nodes, the edges between them, the number of chosen nodes), which takes less computation.
    With `for_size`, the reward must be `SizeReward`.

    >>> path = gfn.Graphs.from_arrays([3], [(0, 1), (1, 2)], [0, 2], directed=False)
    >>> issubclass(gfn.Cut, gfn.GraphProblem), gfn.Cut(path).n_instances
    (True, 1)
    """

    graphs: _gfn.Graphs
    for_size: bool

    def __post_init__(self) -> None:
        if not isinstance(self.graphs, Graphs):
            raise TypeError(
                f"{type(self).__name__}.graphs is a {type(self.graphs).__name__}: expected Graphs; convert "
                "graphs of networkx by `Graphs.from_networkx(graphs)`"
            )
        super().__post_init__()

    def _new_env(self) -> _gfn.Env:
        return _gfn.Env(self._by_class(), None, self.graphs)

    def _by_class(self) -> dict[str, Any]:
        return {
            "GraphProblem": {"problem": type(self).__name__, "for_size": plain(self.for_size, "for_size")}
        }

    def _described(self) -> Any:
        graphs = describe_graphs(self.graphs)
        return {"graphs": graphs, "for_size": True} if self.for_size else graphs


@dataclass(frozen=True)
class IndependentSet(GraphProblem):
    """Maximal independent sets of undirected input graphs, built node by node. No two nodes of such a set
    share an edge, and no node can be added. `GraphProblem` describes the states.

    graphs
        The input graphs, at least one.
    for_size
        True if networks see only the part of a state on which the size of the final solution depends. The
        reward must then be `SizeReward`.

    >>> path = gfn.Graphs.from_arrays([3], [(0, 1), (1, 2)], [0, 2], directed=False)
    >>> net = gfn.GraphNet(embedding=8, identity=False)
    >>> trainer = gfn.Trainer(gfn.IndependentSet(path), gfn.SizeReward(), net, gfn.DetailedBalance(), batch=8)
    >>> sets = trainer.exact()
    >>> np.exp(sets.log_rewards[np.isfinite(sets.log_rewards)]).round(3).tolist()
    [2.718, 7.389]
    """

    graphs: _gfn.Graphs
    for_size: bool = False


@dataclass(frozen=True)
class Clique(GraphProblem):
    """Maximal cliques of undirected input graphs, built node by node. Any two nodes of a clique share an
    edge, and no node can be added. `GraphProblem` describes the states.

    graphs
        The input graphs, at least one.
    for_size
        True if networks see only the part of a state on which the size of the final solution depends. The
        reward must then be `SizeReward`.

    >>> triangle = gfn.Graphs.from_arrays([3], [(0, 1), (1, 2), (0, 2)], [0, 3], directed=False)
    >>> env = gfn.Clique(triangle)
    >>> env.moves(env.initial()).describe()
    ['mark_node(0, 0, 0)', 'mark_node(1, 0, 0)', 'mark_node(2, 0, 0)']
    """

    graphs: _gfn.Graphs
    for_size: bool = False


@dataclass(frozen=True)
class DominatingSet(GraphProblem):
    """Minimal dominating sets of undirected input graphs, built by removing nodes one by one from the set of
    all nodes. Each node outside of the set has an edge to a node of the set, and no further node can be
    removed. `GraphProblem` describes the states.

    graphs
        The input graphs, at least one.
    for_size
        True if networks see only the part of a state on which the size of the final solution depends. The
        reward must then be `SizeReward`.

    >>> path = gfn.Graphs.from_arrays([3], [(0, 1), (1, 2)], [0, 2], directed=False)
    >>> gfn.DominatingSet(path).initial().node_attributes[:, 0].tolist()
    [0, 0, 0]
    """

    graphs: _gfn.Graphs
    for_size: bool = False


@dataclass(frozen=True)
class Cut(GraphProblem):
    """Divisions of the nodes of undirected input graphs into two sides. Nodes move from one side to the
    other, one by one; edges between the sides are cut. `GraphProblem` describes the states.

    graphs
        The input graphs, at least one.
    for_size
        True if networks see only the part of a state on which the size of the final solution depends. The
        reward must then be `SizeReward`.

    >>> path = gfn.Graphs.from_arrays([3], [(0, 1), (1, 2)], [0, 2], directed=False)
    >>> env = gfn.Cut(path)
    >>> len(env.moves(env.initial()))
    4
    """

    graphs: _gfn.Graphs
    for_size: bool = False


@dataclass(frozen=True)
class HyperGrid(Environment[Whole]):
    """Points of a grid, reached from the origin one step along an axis at a time. A trajectory can end at
    each point. States are int64 arrays `[n, ndim]`; the library's reward is `HyperGridReward`.

    ndim, height
        The number of dimensions, at least 1, and the number of points along each dimension, from 2 to
        65,536.

    >>> env = gfn.HyperGrid(2, 8)
    >>> env.step(env.initial(), [1]).states.tolist()
    [[0, 1]]
    """

    ndim: int
    height: int


@dataclass(frozen=True)
class BitSequence(Environment[Whole]):
    """Bit strings, built by appending words of several bits from left to right. States are int64 arrays with
    an entry per word: 0 for a word that isn't set, otherwise the word plus 1. The library's reward is
    `HammingReward`.

    word_size, seq_size
        The number of bits of a word, and of a whole string, which must be a multiple of `word_size`.

    >>> env = gfn.BitSequence(2, 6)
    >>> env.step(env.initial(), [3]).states.tolist()
    [[4, 0, 0]]
    """

    word_size: int
    seq_size: int


@dataclass(frozen=True)
class PrependAppendBitSequence(Environment[Whole]):
    """Bit strings, built by adding words of several bits at either end. States are int64 arrays with an entry
    per word, each the word plus 1; the entries after the last word are 0. The library's reward is
    `HammingReward`.

    word_size, seq_size
        The number of bits of a word, and of a whole string, which must be a multiple of `word_size`.

    >>> env = gfn.PrependAppendBitSequence(1, 3)
    >>> env.step(np.array([[1, 0, 0]]), [3]).states.tolist()
    [[2, 1, 0]]
    """

    word_size: int
    seq_size: int


@dataclass(frozen=True)
class NonAutoregressiveBitSequence(Environment[Whole]):
    """Bit strings, built by setting words of several bits in any order. States are int64 arrays with an entry
    per word: 0 for a word that isn't set, otherwise the word plus 1. The library's reward is `HammingReward`.

    word_size, seq_size
        The number of bits of a word, and of a whole string, which must be a multiple of `word_size`.

    >>> env = gfn.NonAutoregressiveBitSequence(1, 3)
    >>> len(env.moves(env.initial()))
    6
    """

    word_size: int
    seq_size: int


@dataclass(frozen=True)
class TokenSequence(Environment[Whole]):
    """Sequences of tokens, appended from left to right. States are int64 arrays `[n, length]`: 0 for an empty
    position, otherwise the token plus 1. The library's reward is `TableReward`.

    n_tokens, length
        The number of different tokens, and the largest length of a sequence.
    min_length
        The smallest length of a sequence. By default all sequences have exactly `length` tokens.

    >>> lengths = lambda tokens: (tokens > 0).sum(axis=1)
    >>> gfn.Trainer(gfn.TokenSequence(4, 2, min_length=1), lengths, gfn.SequenceNet(width=8)).exact().n_states
    21
    """

    n_tokens: int
    length: int
    min_length: int | None = None


@dataclass(frozen=True)
class DiscreteEbm(Environment[Whole]):
    """Configurations of `n` spins, which are set in any order. States are int64 arrays `[batch, n]`: 0 for an
    unset spin, 1 for spin -1 and 2 for spin +1. The library's reward is `IsingReward`.

    >>> env = gfn.DiscreteEbm(3)
    >>> env.step(env.initial(), [4]).states.tolist()
    [[0, 2, 0]]
    """

    n: int


@dataclass(frozen=True)
class SetAddition(Environment[Whole]):
    """Sets that grow item by item. States are int64 arrays `[n, n_items]`: 1 for each item in the set,
    otherwise 0. The library's reward is `WeightReward`.

    n_items, max_items
        The number of items, and the largest number of items in a set, from 1 to `n_items`.
    fixed_length
        True if every set has exactly `max_items` items; False, the default, allows smaller sets, too.

    >>> reward = gfn.WeightReward(1.0, [1.0, 2.0, 3.0])
    >>> gfn.Trainer(gfn.SetAddition(3, 2), reward, gfn.Mlp((8,))).exact().n_states
    7
    """

    n_items: int
    max_items: int
    fixed_length: bool = False


@dataclass(frozen=True)
class PerfectBinaryTree(Environment[Whole]):
    """Paths from the root of a binary tree to a leaf. States are int64 arrays `[n, depth]` with an entry per
    level: 0 if the path hasn't reached the level yet, 1 for left, 2 for right. `depth`, from 1 to 62, is the
    number of edges from the root to a leaf.

    >>> env = gfn.PerfectBinaryTree(3)
    >>> env.step(env.initial(), [1]).states.tolist()
    [[2, 0, 0]]
    """

    depth: int


@dataclass(frozen=True)
class PhyloTree(Environment[Whole]):
    """Rooted trees over `n` species, from 2 to 1,000, joined from the leaves: each move joins two trees under
    a new root. States are int64 arrays `[batch, 2 n - 1]`, which name the parent of each species and inner
    node. The library's reward is `ParsimonyReward`.

    >>> env = gfn.PhyloTree(4)
    >>> env.initial().shape, len(env.moves(env.initial()))
    ((1, 7), 6)
    """

    n: int


@dataclass(frozen=True)
class ToyDag(Environment[Whole]):
    """The 11 states of the paper *GFlowNet Foundations* (Bengio et al. 2023). States are int64 arrays `[n,
    1]`; the library's reward is `ToyReward`.

    >>> trainer = gfn.Trainer(gfn.ToyDag(), gfn.ToyReward([1, 2, 3, 4, 5, 6]), gfn.Mlp((8,)))
    >>> round(float(np.exp(trainer.exact().log_z)), 6)
    21.0
    """


@dataclass(frozen=True)
class BayesianStructure(Environment[Flags]):
    """Directed acyclic graphs whose nodes are variables, built edge by edge. States are bool arrays `[n,
    from, to]`, the adjacency matrices; the library's reward is `StructureReward`.

    nodes
        The number of variables, or their names, such as the columns of a data frame. If there are names, the
        data of the reward must have columns with the same names, in the same order.
    max_parents
        The largest number of edges into a variable; None for no limit.
    forbidden, required
        Edges that no graph has, and edges that every graph has. An edge is a pair `(from, to)` of names or
        indices of variables.

    >>> env = BayesianStructure(["smoke", "tar", "cancer"], required=[("smoke", "tar")])
    >>> env.initial().astype(int).tolist()
    [[[0, 1, 0], [0, 0, 0], [0, 0, 0]]]
    """

    nodes: int | Iterable[str]
    max_parents: int | None = None
    forbidden: Sequence[tuple[int | str, int | str]] = ()
    required: Sequence[tuple[int | str, int | str]] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.nodes, str) and isinstance(self.nodes, Iterable):
            # The columns of a data frame may be numbers. `StructureReward` names them by their texts, too.
            object.__setattr__(self, "nodes", tuple(str(name) for name in self.nodes))
        super().__post_init__()

    @property
    def names(self) -> list[str] | None:
        """The names of the variables; None if `nodes` is a number."""
        return list(self.nodes) if isinstance(self.nodes, tuple) else None

    def _values(self) -> dict[str, Any]:
        names = self.names
        if names is not None and len(set(names)) < len(names):
            raise ValueError(f"BayesianStructure.nodes is {names}: expected names that differ")
        structures: dict[str, Any] = {
            "nodes": plain(self.nodes, "nodes") if names is None else len(names),
            "max_parents": plain(self.max_parents, "max_parents"),
        }
        for kind in ("forbidden", "required"):
            edges = getattr(self, kind)
            structures[kind] = number_edges(edges, structures["nodes"], names, f"BayesianStructure.{kind}")
        return {"structures": structures, "names": names}


@dataclass(frozen=True)
class Box(Environment[Points]):
    """Points of the unit box, reached in steps of at least `delta`. States are float64 arrays `[n, ndim]`;
    the library's reward is `BoxReward`.

    ndim
        The number of dimensions, 2 by default.
    delta
        The smallest length of a step, 0.25 by default.
    polar
        True for steps of an angle and a length, in two dimensions. By default a step has an independent
        length along each axis.

    >>> trainer = gfn.Trainer(gfn.Box(), gfn.BoxReward(), gfn.BoxNet((16,), components=2), batch=8)
    >>> trainer.sample(3).shape
    (3, 2)
    """

    ndim: int = 2
    delta: float = 0.25
    polar: bool = False


@dataclass(frozen=True)
class Line(Environment[Points]):
    """Positions on the real line after `n_steps` steps of any length, 5 by default. States are float64 arrays
    `[n, 2]`: a position and the number of steps so far. The library's reward is `LineReward`.

    >>> net = gfn.LineNet((16,))
    >>> trainer = gfn.Trainer(gfn.Line(3), gfn.LineReward([(-1.0, 0.5), (1.0, 0.5)]), net, batch=8)
    >>> trainer.sample(3)[:, 1].tolist()
    [3.0, 3.0, 3.0]
    """

    n_steps: int = 5


@dataclass(frozen=True)
class Diffusion(Environment[Points]):
    """Points of `dim` dimensions, reached in `steps` Gaussian steps from the origin. States are float64
    arrays `[n, dim]`; the library's rewards are `GaussianTarget`, `MixtureTarget`, `FunnelTarget`,
    `ManyWellTarget`, `PosteriorTarget`, `CoxTarget`.

    The setting `process` is one of three. `pinned_brownian` is a Brownian motion, whose variance at the end
    is `sigma**2`. `ornstein_uhlenbeck` is pulled back to the origin, at `rate` per unit of time.
    `variance_preserving` has the variance `sigma**2` after each step. Each of its steps after the first
    replaces a share beta of the variance, which decreases from `beta_max` at the second step to `beta_min` at
    the last.

    >>> target = gfn.GaussianTarget([0.0, 1.0])
    >>> trainer = gfn.Trainer(gfn.Diffusion(2, steps=10), target, gfn.DiffusionNet(), batch=8)
    >>> trainer.sample(3).shape
    (3, 2)
    """

    dim: int
    steps: int = field(default=100, metadata=COUNT)
    sigma: float = 1.0
    process: Literal["pinned_brownian", "ornstein_uhlenbeck", "variance_preserving"] = "pinned_brownian"
    rate: float = field(default=1.0, metadata=needs("process", "ornstein_uhlenbeck"))
    beta_min: float = field(default=0.01, metadata=needs("process", "variance_preserving"))
    beta_max: float = field(default=0.3, metadata=needs("process", "variance_preserving"))

    def _values(self) -> dict[str, Any]:
        of_process: dict[str, tuple[str, ...]] = {
            "ornstein_uhlenbeck": ("rate",),
            "variance_preserving": ("beta_min", "beta_max"),
        }
        numbers = {name: plain(getattr(self, name), name) for name in of_process.get(self.process, ())}
        sizes = {name: plain(getattr(self, name), name) for name in ("dim", "steps", "sigma")}
        return {**sizes, "process": {self.process: numbers} if numbers else self.process}
