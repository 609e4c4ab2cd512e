"""The reward of structures of Bayesian networks, priors of structures, and probabilities of edges."""

from __future__ import annotations

import copy
import html
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterable, Literal, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from . import _gfn
from ._envs import BayesianStructure
from ._metrics import _numbers as check_numbers
from ._objects import rows
from ._results import EdgeComparison, HeldOut, OrderSamples, StructureMarginals
from ._rewards import Reward, _numbers
from ._settings import POSITIVE, Bounds, Settings, bounds, check, needs, plain
from ._tables import (
    check_complete,
    check_numeric,
    encode_levels,
    find_levels,
    named_columns,
    number_edges,
    split_interventions,
)


@dataclass(frozen=True)
class EdgePenalty(Settings):
    """A prior of structures in which each edge multiplies the probability by `beta`. Graphs have fewer edges
    if `beta` is below 1.

    >>> data = np.random.default_rng(0).normal(size=(20, 2))
    >>> edge = [[[False, True], [False, False]]]
    >>> with_prior = gfn.StructureReward(data, prior=gfn.EdgePenalty(0.5))(edge)
    >>> round(float(np.exp(with_prior - gfn.StructureReward(data)(edge))[0]), 6)
    0.5
    """

    beta: float = field(metadata=POSITIVE)


@dataclass(frozen=True)
class ErdosRenyiPrior(Settings):
    """A prior of structures with independent edges, about `edges_per_node` edges per variable. With v
    variables, an edge has the probability 2 `edges_per_node` / (v - 1), which must be below 1. The average
    number of edges of acyclic graphs differs from this, because graphs with cycles are left out.

    >>> data = np.random.default_rng(0).normal(size=(20, 3))
    >>> graph = np.zeros((1, 3, 3), dtype=bool)
    >>> graph[0, 0, 1] = True
    >>> with_prior = gfn.StructureReward(data, prior=gfn.ErdosRenyiPrior(0.2))(graph)
    >>> round(float(np.exp(with_prior - gfn.StructureReward(data)(graph))[0]), 6)  # 0.2 / (1 - 0.2)
    0.25
    """

    edges_per_node: float = field(default=1.0, metadata=POSITIVE)


@dataclass(frozen=True)
class FairPrior(Settings):
    """A prior of structures in which every number of parents of a variable is about equally probable: the
    term of a variable with l parents is -log C(v, l) for v variables.

    >>> data = np.random.default_rng(0).normal(size=(20, 3))
    >>> graph = np.zeros((1, 3, 3), dtype=bool)
    >>> graph[0, 0, 1] = True
    >>> with_prior = gfn.StructureReward(data, prior=gfn.FairPrior())(graph)
    >>> round(float(np.exp(gfn.StructureReward(data)(graph) - with_prior)[0]), 6)
    3.0
    """


# The settings of each score that the extension reads as they are.
_SCORE_SETTINGS: dict[str, tuple[str, ...]] = {
    "bge": ("alpha_mu", "alpha_w", "nu", "allow_few_observations"),
    "bic": (),
    "bde": ("equivalent_sample_size", "allow_few_observations"),
}


# `eq=False`, because the equality that a dataclass generates compares data by `==`, which returns an array
# for arrays.
@dataclass(frozen=True, eq=False)
class StructureReward(Reward):
    """The posterior of a Bayesian network's structure: log R of a graph is its score plus its log prior,
    minus the same sum of the graph without edges. `data` is an array `[observations, variables]` or a pandas
    data frame.

    A call `reward(graphs)` returns log R of adjacency matrices `[n, from, to]` of bool, the numbers that a
    trainer uses. A custom prior can therefore be added:
    `lambda graphs: reward(graphs) + log_prior(graphs)`. Every structure can be finished, so objectives that
    need log R of unfinished graphs call this function, too.

    `score` is "bge" (linear Gaussian, parameters integrated out), "bic" (linear Gaussian, by the Bayesian
    information criterion), or "bde" (discrete, parameters integrated out). A column with the same value in
    every row is an error: for "bde" when the reward is created, for "bge" and "bic" when it is first used.
    Two columns with the same name are an error when the reward is created.

    For "bge" and "bic", each column is standardised to mean 0 and variance 1. BGe's prior has the same mean
    and scale for all variables. Therefore the scores depend on the units and the origin of the data if
    `standardise=False`.

    For "bde", data are discrete: each different value in a column is a level. Values are booleans, whole
    numbers, texts or pandas categories, at most 20 different values in a column. Categories that don't occur
    are not counted. Columns of other numbers are an error unless `bins` is given, from 2 to 1,000. Then each
    of these columns is cut into `bins` intervals with about equal numbers of observations. Categories are
    never cut into intervals. `levels` shows the levels of each column.

    bins
        The number of intervals that a column of numbers is cut into, for "bde".
    standardise
        True to standardise each column, for "bge" and "bic".
    alpha_mu, alpha_w
        The parameters of the prior of "bge". `alpha_mu`, above 0, is the number of observations that the
        prior mean is worth. `alpha_w` is the number of degrees of freedom, above the number of variables plus
        1; `None` is the number of variables plus 2.
    nu
        The prior mean of each variable, for "bge" with `standardise=False`, in the units of the data. `None`
        is 0.
    equivalent_sample_size
        The number of observations that the prior of "bde" is worth, above 0.
    level_probs
        The distribution of the prior observations of "bde": a dictionary from each column to the
        probabilities of its `levels` in a network without edges. `None` gives each cell of a table the same
        number of prior observations (BDeu).
    allow_few_observations
        True to allow fewer observations than variables, for "bge" and "bde".
    interventions
        The variables that an experiment fixed in each row: the name of a column of `data`, whose cells have
        names of variables with `;` between them or nothing, or an array of bool `[observations, variables]`.
        Such a row doesn't count for the score of a variable that was fixed.
    prior
        The prior of structures: `EdgePenalty`, `ErdosRenyiPrior` or `FairPrior`. `None` is uniform.

    >>> rows = [["low", 1.5], ["high", 2.5], ["low", 3.5], ["high", 9.5]]
    >>> import pandas
    >>> reward = StructureReward(pandas.DataFrame(rows, columns=["dose", "weight"]), "bde", bins=2)
    >>> reward.levels
    {'dose': ['high', 'low'], 'weight': [(-inf, 3.5), (3.5, inf)]}
    >>> graphs = np.zeros((2, 2, 2), dtype=bool)
    >>> graphs[1, 0, 1] = True
    >>> reward(graphs).round(3).tolist()
    [0.0, -1.216]
    """

    data: Any = field(repr=False)
    score: Literal["bge", "bic", "bde"] = "bge"
    bins: int | None = field(default=None, metadata=bounds(2, 1000) | needs("score", "bde"))
    standardise: bool = field(default=True, metadata=needs("score", "bge", "bic"))
    alpha_mu: float = field(default=1.0, metadata=needs("score", "bge"))
    alpha_w: float | None = field(default=None, metadata=needs("score", "bge"))
    nu: Sequence[float] | None = field(default=None, metadata=needs("score", "bge"))
    equivalent_sample_size: float = field(default=1.0, metadata=POSITIVE | needs("score", "bde"))
    level_probs: dict[str, Any] | None = field(default=None, metadata=needs("score", "bde"))
    allow_few_observations: bool = field(default=False, metadata=needs("score", "bge", "bde"))
    interventions: Any = field(default=None, repr=False)
    prior: EdgePenalty | ErdosRenyiPrior | FairPrior | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        # The data are used later, too, so changes of the caller's arrays must have no effect.
        for name in ("data", "interventions"):
            object.__setattr__(self, name, copy.deepcopy(getattr(self, name)))
        if self.nu is not None and self.standardise:
            raise ValueError(
                "StructureReward.nu is given, and standardise is True: expected standardise=False, or no nu, "
                "because standardised data have the mean 0"
            )
        variables, _ = self._split()
        check_complete(variables)
        if self.score == "bde":
            self._find_levels(variables)
        else:
            check_numeric(variables)
            _numbers(variables, "data")

    def __reduce__(self) -> Any:
        return type(self), tuple(getattr(self, name) for name in self.__dataclass_fields__)

    def __call__(self, graphs: Any) -> npt.NDArray[np.float64]:
        """Returns log R of adjacency matrices, `[n, from, to]` of bool."""
        return self._scores().log_rewards(graphs)

    @property
    def names(self) -> list[str]:
        """The names of the variables: the columns of the data, or x0, x1, ... if they have no names."""
        return [name for name, _ in named_columns(self._split()[0])]

    @property
    def levels(self) -> dict[str, list[Any]] | None:
        """The levels of each column for "bde": the column's values, or the intervals that the column was cut
        into, as pairs of bounds. An interval includes its lower bound. `None` for the other scores."""
        if self.score != "bde":
            return None
        return {name: found for name, found, _ in self._find_levels(self._split()[0])}

    def held_out(self, graphs: Any, data: Any, weights: Any = None, interventions: Any = None) -> HeldOut:
        """Returns log p(held-out data | this reward's data, graph) for each graph, and the log-likelihood
        under their average. The scores must be "bge" or "bde", because others aren't probabilities.

        The held-out data are standardised, or cut into levels, as this reward's data are. For "bge" the
        result is a density in the units of the data.

        data
            Observations of the same columns.
        weights
            The weight of each graph, such as `exact().target`. None for samples.
        interventions
            As for the reward; by default the column of that name, if the reward has one.
        """
        if self.score == "bic":
            raise ValueError("StructureReward.score is 'bic': expected 'bge' or 'bde' for held-out data")
        scores = self._scores()
        variables, targets = self._split()
        if interventions is None and isinstance(self.interventions, str):
            interventions = self.interventions
        more, more_targets = split_interventions(data, interventions)
        columns = named_columns(more)
        if [name for name, _ in columns] != self.names:
            raise ValueError(
                f"the held-out data have the columns {[name for name, _ in columns]}: expected the columns "
                f"of the reward's data, {self.names}"
            )
        fixed = np.zeros((len(columns[0][1]), len(columns)), dtype=bool)
        for row, nodes in enumerate(more_targets or ()):
            fixed[row, nodes] = True
        cells, offset = self._cells(variables), 0.0
        if self.score == "bde":
            found = self._find_levels(variables)
            new = [
                encode_levels(name, levels, column) for (name, levels, _), (_, column) in zip(found, columns)
            ]
            new_cells = np.stack(new, axis=1)
        else:
            new_cells = _numbers(more, "the held-out data")
            if self.standardise:
                mean, deviation = cells.mean(axis=0), cells.std(axis=0, ddof=1)
                cells, new_cells = (cells - mean) / deviation, (new_cells - mean) / deviation
                # The density in the units of the data. A variable that was fixed has no density.
                offset = -float(((~fixed).sum(axis=0) * np.log(deviation)).sum())
        both = None
        if targets is not None or more_targets is not None:
            both = [*(targets or [[]] * len(cells)), *(more_targets or [[]] * len(new_cells))]
        everything = self._spec(np.concatenate([cells, new_cells]), both, standardise=False)
        more_scores = _gfn.StructureScores(everything)
        values, average = scores.held_out(more_scores, graphs, _weights(weights), offset)
        return HeldOut(log_likelihoods=values, model_average=average)

    def _scores(self) -> _gfn.StructureScores:
        """Returns the scores of this reward, which are computed at the first call."""
        if not hasattr(self, "_built"):
            object.__setattr__(self, "_built", _gfn.StructureScores(self._values()))
        built: _gfn.StructureScores = self._built  # type: ignore[attr-defined]
        return built

    def _split(self) -> tuple[Any, list[list[int]] | None]:
        """Returns the columns of the variables, and the variables that an experiment fixed in each row."""
        return split_interventions(self.data, self.interventions)

    def _find_levels(self, variables: Any) -> list[tuple[str, list[Any], npt.NDArray[Any]]]:
        """Returns the name of each column, the column's levels, and the index of the level of each
        observation."""
        return [(name, *find_levels(name, column, self.bins)) for name, column in named_columns(variables)]

    def _cells(self, variables: Any) -> npt.NDArray[Any]:
        """Returns the numbers of all observations, or the indices of their levels."""
        if self.score != "bde":
            return _numbers(variables, "data")
        return np.stack([places for _, _, places in self._find_levels(variables)], axis=1)

    def _values(self) -> dict[str, Any]:
        variables, targets = self._split()
        return self._spec(self._cells(variables), targets, bool(self.standardise))

    def _spec(
        self, cells: npt.NDArray[Any], targets: list[list[int]] | None, standardise: bool
    ) -> dict[str, Any]:
        """Returns the settings that the extension reads, for the given observations."""
        names, levels = self.names, self.levels
        settings: dict[str, Any] = {
            name: plain(getattr(self, name), f"StructureReward.{name}")
            for name in _SCORE_SETTINGS[self.score]
        }
        if levels is None:
            settings |= {"values": cells.ravel().tolist(), "standardise": standardise}
        else:
            settings["labels"] = [[str(level) for level in levels[name]] for name in names]
            settings["cells"] = cells.ravel().tolist()
            settings["level_probs"] = self._order_level_probs(names)
        prior: Any = "Uniform"
        if self.prior is not None:
            kind = type(self.prior).__name__.removesuffix("Prior")
            prior = {kind: self.prior._values() or None}
        return {"names": names, "score": {self.score: settings}, "interventions": targets, "prior": prior}

    def _order_level_probs(self, names: list[str]) -> list[list[float]] | None:
        """Returns the values of `level_probs` in the order of the columns."""
        if self.level_probs is None:
            return None
        given: Mapping[str, Any] = {str(name): probs for name, probs in self.level_probs.items()}
        if set(given) != set(names):
            raise ValueError(
                f"StructureReward.level_probs has the columns {sorted(given)}: expected {sorted(names)}, the "
                "columns of the data"
            )
        return [_numbers(given[name], f"level_probs[{name!r}]").ravel().tolist() for name in names]


def _matrices(graphs: Any) -> npt.NDArray[np.bool_]:
    return rows(graphs, "graphs", "bool", [None, None])


def _names(names: Iterable[Any] | None, n: int) -> list[str]:
    """Returns the names of `n` variables as texts, and x0, x1, ... if there are none."""
    if isinstance(names, str):
        raise TypeError(f"names is {names!r}, a text: expected a list of {n} names, one for each variable")
    texts = [f"x{k}" for k in range(n)] if names is None else [str(name) for name in names]
    if len(texts) != n or len(set(texts)) < n:
        raise ValueError(f"names is {texts}: expected {n} different names, one for each variable")
    return texts


def _weights(weights: Any) -> list[float] | None:
    """Converts the weights of graphs to a list of numbers. Returns None if there are no weights."""
    return None if weights is None else check_numbers(weights, "weights", 1).tolist()


def edge_marginals(env: BayesianStructure, reward: StructureReward) -> StructureMarginals:
    """Returns the exact probability of each edge and log Z, for up to 20 variables, without listing all
    structures. The sum is over the structures of the environment, so its required and forbidden edges and
    `max_parents` are respected. Time grows as 3^n: about two seconds for 15 variables, so that 20
    variables take some two hundred times as long.

    >>> import gfn_rs as gfn
    >>> data = np.random.default_rng(0).normal(size=(50, 3))
    >>> data[:, 1] += data[:, 0]
    >>> found = gfn.edge_marginals(gfn.BayesianStructure(3, forbidden=[(1, 0)]), gfn.StructureReward(data))
    >>> found.frame().round(2).loc["x0", "x1"].item(), found.edge[1, 0].item()
    (1.0, 0.0)
    """
    check(env, "env", BayesianStructure)
    check(reward, "reward", StructureReward)
    edge, log_z = reward._scores().edge_marginals(env._env)
    return StructureMarginals(
        names=reward.names,
        edge=edge,
        path=None,
        markov_blanket=None,
        expected_edges=float(edge.sum()),
        log_z=log_z,
        n_samples=None,
    )


def structure_marginals(
    graphs: Any, *, weights: Any = None, names: Iterable[Any] | None = None
) -> StructureMarginals:
    """Returns the probabilities of edges, paths and Markov blankets of graphs, `[n, from, to]` of bool.

    weights
        The weight of each graph, such as `exact().target` for `exact().states`. None for samples.
    names
        The names of the variables, such as the columns of a data frame.

    >>> chain = np.zeros((1, 3, 3), dtype=bool)
    >>> chain[0, 0, 1] = chain[0, 1, 2] = True
    >>> structure_marginals(chain, names=["a", "b", "c"]).frame("path").loc["a", "c"].item()
    1.0
    """
    matrices = _matrices(graphs)
    n = matrices.shape[1]
    edge, path, blanket, expected_edges = _gfn.structure_marginals(n, matrices, _weights(weights))
    return StructureMarginals(
        names=_names(names, n),
        edge=edge,
        path=path,
        markov_blanket=blanket,
        expected_edges=expected_edges,
        log_z=None,
        n_samples=len(matrices) if weights is None else None,
    )


def compare_structures(
    graphs: Any,
    truth: Iterable[tuple[int | str, int | str]],
    *,
    weights: Any = None,
    names: Iterable[Any] | None = None,
    classes: bool = False,
) -> EdgeComparison:
    """Compares structures with the edges of a known graph. `truth` are pairs `(from, to)` of `names` or
    indices; `graphs`, `weights` and `names` are those of `structure_marginals`.

    classes
        True to compare Markov equivalence classes. Each graph and the known one, which must be acyclic, are
        then replaced by their CPDAGs: an edge whose direction observations can't tell becomes two edges, one
        in each direction. Pairs of variables count once in `expected_shd` in both cases.

    >>> graphs = [[[False, False], [True, False]], [[False, True], [False, False]]]
    >>> compare_structures(graphs, [("a", "b")], names=["a", "b"]).expected_shd
    0.5
    """
    matrices = _matrices(graphs)
    n = matrices.shape[1]
    known = number_edges(truth, n, _names(names, n), "truth")
    found = _gfn.compare_structures(n, matrices, _weights(weights), known, bool(classes))
    shd, f1, brier, auroc, auprc = found
    return EdgeComparison(expected_shd=shd, expected_f1=f1, brier=brier, auroc=auroc, auprc=auprc)


def order_mcmc(
    env: BayesianStructure,
    reward: StructureReward,
    *,
    chains: int = 4,
    samples: int = 500,
    thin: int = 20,
    seed: int = 0,
) -> OrderSamples:
    """Samples structures by Markov chains over orders of the variables (Friedman and Koller 2003), without
    training. This is the baseline for a policy, and its samples can train one.

    The score of each variable is computed first for all sets of parents that the environment permits: give it
    `max_parents` for more than 20 variables. A graph is drawn after every `thin` steps of a chain; a quarter
    of as many steps comes first. The number of orders that a graph fits is corrected if it can be counted
    (`is_corrected`), which is so for most graphs of up to 20 variables.

    >>> import gfn_rs as gfn
    >>> data = np.random.default_rng(0).normal(size=(50, 3))
    >>> data[:, 1] += data[:, 0]
    >>> env, reward = gfn.BayesianStructure(3), gfn.StructureReward(data)
    >>> found = order_mcmc(env, reward).graphs.mean(axis=0)
    >>> bool(abs(found - gfn.edge_marginals(env, reward).edge).max() < 0.05)
    True
    """
    check(env, "env", BayesianStructure)
    check(reward, "reward", StructureReward)
    for name, value in {"chains": chains, "samples": samples, "thin": thin}.items():
        check(value, name, int, Bounds(1, None))
    check(seed, "seed", int)
    found = reward._scores().order_samples(env._env, chains, samples, thin, seed)
    graphs, is_corrected, effective_samples = found
    return OrderSamples(
        names=reward.names,
        chains=graphs.reshape(chains, samples, *graphs.shape[1:]),
        is_corrected=is_corrected,
        effective_samples=effective_samples,
    )


def structure_report(
    path: str | os.PathLike[str],
    found: OrderSamples | StructureMarginals,
    graphs: Any = None,
    *,
    exact: StructureMarginals | None = None,
    belief: Mapping[tuple[str, str], float] | None = None,
    title: str = "Structures",
    shown: int = 8,
) -> None:
    """Writes a report as one HTML file: the probabilities of edges with 95 % intervals, the consensus graph,
    and the most frequent structures.

    found
        The result of `order_mcmc`, whose intervals are those between chains, or of `structure_marginals`,
        whose intervals cover the noise of sampling only.
    graphs
        The samples that `structure_marginals` was computed from. `order_mcmc` has its own.
    exact
        The result of `edge_marginals`, to be listed beside.
    belief
        The edge probabilities that you expected before you saw the data, by pairs `(from, to)` of names; 0
        for edges that aren't listed. They are listed beside the others and have no influence on them.
    shown
        The number of structures in the picture.

    >>> import tempfile, pathlib
    >>> import gfn_rs as gfn
    >>> data = np.random.default_rng(0).normal(size=(50, 3))
    >>> found = gfn.order_mcmc(gfn.BayesianStructure(3), gfn.StructureReward(data), samples=100)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "report.html"
    ...     structure_report(path, found, belief={("x0", "x1"): 0.9})
    ...     "belief" in path.read_text()
    True
    """
    import pandas

    check(found, "found", OrderSamples | StructureMarginals)
    if graphs is None and isinstance(found, StructureMarginals):
        raise ValueError(
            "graphs is None, and found has no graphs: expected the samples that `structure_marginals` was "
            "computed from, as the third argument"
        )
    samples = _matrices(found.graphs if isinstance(found, OrderSamples) else graphs)
    names = found.names
    if exact is not None and exact.names != names:
        raise ValueError(
            f"exact has the variables {exact.names}: expected {names}, the variables of the graphs; pass the "
            "result of `edge_marginals` for the same data"
        )
    for pair, p in (belief or {}).items():
        if not 0 <= p <= 1:
            raise ValueError(f"belief of {pair} is {p!r}: expected a probability from 0 to 1")
    edge = samples.mean(axis=0) if isinstance(found, OrderSamples) else found.edge
    columns: dict[str, npt.NDArray[Any]] = {"probability": edge}
    columns["low"], columns["high"] = found.intervals()
    if exact is not None:
        columns["exact"] = exact.edge
    if belief is not None:
        columns["belief"] = np.zeros_like(edge)
        for (a, b), p in zip(number_edges(list(belief), len(names), names, "belief"), belief.values()):
            columns["belief"][a, b] = p
    listed = np.max([columns[name] for name in columns if name not in ("low", "high")], axis=0) >= 0.05
    ends = sorted(zip(*np.nonzero(listed)), key=lambda pair: -edge[pair])
    table = pandas.DataFrame(
        {"from": [names[a] for a, _ in ends], "to": [names[b] for _, b in ends]}
        | {name: [f"{values[pair]:.3f}" for pair in ends] for name, values in columns.items()}
    )
    either = edge + edge.T
    consensus = (either >= 0.5) & (edge > either / 3)
    distinct, counts = np.unique(samples, axis=0, return_counts=True)
    top = np.argsort(-counts, kind="stable")[:shown]
    captions = [f"{counts[k]} of {len(samples)} samples" for k in top]
    page = [
        f"<!DOCTYPE html><html><head><meta charset='utf-8'><title>{html.escape(title)}</title></head>",
        f"<body style='font-family: sans-serif'><h1>{html.escape(title)}</h1><h2>Edge probabilities</h2>",
        "<p>Edges of which one of the probabilities is at least 0.05. The interval (95 %) "
        f"{_interval(found)}</p>",
        f"<p>{_correction(found)}</p>" if isinstance(found, OrderSamples) else "",
        table.to_html(index=False),
        "<h2>Consensus graph</h2>",
        "<p>An edge is drawn if two variables have an edge, in either direction, with a probability of at "
        "least 0.5. It has an arrow at both ends if neither direction has two thirds of it.</p>",
        _picture(draw_structures(consensus[None], names=names)),
        "<h2>Most frequent structures</h2>",
        _picture(draw_structures(distinct[top], names=names, captions=captions)),
        "</body></html>",
    ]
    Path(path).write_text("\n".join(page), encoding="utf-8")


def _interval(found: OrderSamples | StructureMarginals) -> str:
    if isinstance(found, OrderSamples):
        return f"is that of the mean of {len(found.chains)} independent Markov chains."
    return "covers the noise of sampling only, not what a policy has left to learn."


def _correction(found: OrderSamples) -> str:
    """Returns a remark on the weights of graphs that chains over orders sampled."""
    if not found.is_corrected:
        return (
            "The samples are not corrected: some graphs fit too many orders to count them, so a graph counts "
            "once for each order that it fits. Graphs with few edges are therefore too frequent."
        )
    numbers = ", ".join(f"{number:.0f}" for number in found.effective_samples)
    return (
        "Effective samples of each chain, after the correction for the number of orders that a graph fits: "
        f"{numbers}."
    )


def _picture(svg: str) -> str:
    """Returns an SVG without its XML declaration, which an HTML file can't contain."""
    return svg[max(svg.find("<svg"), 0) :]


def draw_structures(
    graphs: Any,
    *,
    names: Iterable[Any] | None = None,
    captions: Sequence[str] | None = None,
    title: str = "",
) -> str:
    """Returns an SVG with a picture of each graph, `[n, from, to]` of bool. Nodes are labelled by `names`, or
    by their numbers. In a notebook, `IPython.display.SVG` shows the text.

    >>> svg = draw_structures([[[False, True], [False, False]]], names=["smoke", "cancer"])
    >>> svg.count("smoke"), svg.count("cancer")
    (1, 1)
    """
    matrices = _matrices(graphs)
    row, source, target = np.nonzero(matrices)
    ends = np.searchsorted(row, np.arange(len(matrices) + 1))
    edges, sizes = np.column_stack([source, target]), [matrices.shape[1]] * len(matrices)
    drawn = _gfn.Graphs.from_arrays(sizes, edges, ends, directed=True)
    texts = None if captions is None else list(captions)
    labels = None if names is None else _names(names, matrices.shape[1])
    return drawn.svg(captions=texts, title=title, names=labels)
