"""Results of evaluations, which can be compared, copied and pickled."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Callable, Generic, Iterable, Literal

import numpy as np
import numpy.typing as npt

from . import _gfn
from ._checks import count
from ._settings import check
from ._steps import States
from ._tables import number_edges

_Integers = npt.NDArray[np.int64]
_Numbers = npt.NDArray[np.float64]


def _same(one: Any, other: Any) -> bool:
    arrays = isinstance(one, np.ndarray) or isinstance(other, np.ndarray)
    return np.array_equal(one, other) if arrays else bool(one == other)


class _Result:
    """The base class of the results of evaluations. Two results are equal if they have the same class and
    equal values."""

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]
        return all(_same(getattr(self, name), getattr(other, name)) for name in names)


@dataclass(frozen=True, kw_only=True, eq=False)
class Distances(_Result):
    """Distances between the distribution of objects that the policy samples and the target distribution.

    >>> trainer = gfn.Trainer(gfn.HyperGrid(2, 3), gfn.HyperGridReward(), gfn.Mlp((8,)), batch=8)
    >>> distances = trainer.exact().of_objects
    >>> distances.l1 == 2 * distances.tv
    True
    """

    l1: float
    """The sum over objects of the absolute difference between the policy's and the target's probability."""
    tv: float
    """The total variation between the two distributions, which is half of `l1`."""
    jsd: float
    """The Jensen-Shannon divergence between the two distributions, with the natural logarithm."""
    kl_target_policy: float
    """KL(target || policy), the Kullback-Leibler divergence. The divergence is infinite if the policy has
    probability 0 for an object."""
    kl_policy_target: float
    """KL(policy || target), the Kullback-Leibler divergence in the other direction."""

    def __repr__(self) -> str:
        return f"Distances(tv={self.tv:.6f}, jsd={self.jsd:.6f}, l1={self.l1:.6f})"


@dataclass(frozen=True, kw_only=True, eq=False)
class Exact(Distances, Generic[States]):
    """The exact distribution of a policy, and the target distribution. The policy is evaluated in every
    state, so nothing is estimated. The inherited distances are between distributions over states.

    >>> exact = gfn.Trainer(gfn.HyperGrid(2, 3), gfn.HyperGridReward(), gfn.Mlp((8,)), batch=8).exact()
    >>> exact.n_states, exact.probs.shape, round(float(exact.target.sum()), 6)
    (9, (9,), 1.0)
    """

    states: States
    """The states of the environment, all in one batch."""
    n_states: int
    """The number of states of the environment."""
    probs: _Numbers
    """The probability that the policy ends in each state, `[states]`."""
    target: _Numbers
    """The target probability of each state, R(x) / Z; all states of the same object have equal shares of
    R(x). For an objective relative to a prior, the target is in proportion to prior(x) R(x)^beta."""
    log_rewards: _Numbers
    """log R of each state, as the reward returns it for the state's object; minus infinity if no trajectory
    can end in the state."""
    log_z: float
    """The true log Z of the target."""
    mean_len: float
    """The mean number of actions of a trajectory."""
    n_objects: int
    """The number of objects. This number is smaller than `n_states` if several states are the same object,
    such as the Kekule forms of a molecule."""
    groups: _Integers
    """The object of each state, as the index of the first state that represents the same object,
    `[states]`."""
    of_objects: Distances
    """The distances between distributions over objects: the probabilities of all states of an object are
    summed."""

    def __repr__(self) -> str:
        return (f"Exact({self.n_states} states, tv={self.tv:.6f}, jsd={self.jsd:.6f}, l1={self.l1:.6f}, "
            f"log_z={self.log_z:.4f})")


@dataclass(frozen=True, kw_only=True, eq=False)
class Certificate(_Result):
    """Findings about a policy, from its samples. Values named `at_least` and `at_most` are bounds, each with
    a known risk of being false. All other values are estimates. Their 95 % intervals are valid only if the
    policy's samples miss no part of the target. `print` shows a certificate as a table.
    """

    text: str
    """The table that `print` shows."""
    findings: list[str]
    """Reasons not to trust the policy, in words. An empty list means that no reason was found, not that the
    policy is right."""
    limits: list[str]
    """Reasons why some numbers of the certificate are missing, in words. These reasons aren't findings
    against the policy."""
    log_z: dict[str, Any]
    """Bounds on log Z, and estimates of it. `at_least` is a lower bound, false with a probability of at most
    1 %. `at_most` is None, because an upper bound needs objects drawn from the target. `from_found_objects`,
    the log of the sum of the rewards of all objects found, is a lower bound that is always true. `elbo` and
    `estimate` are estimates, with the ends `low` and `high` of their intervals. `estimate` is computed by
    importance sampling. If this isn't possible, `estimate` is None, and `limits` contains the reason."""
    tv: dict[str, Any]
    """Bounds on the total variation between the policy and the target. `at_least` is a lower bound, false
    with a probability of at most 5 %. `at_most` is 1, because an upper bound needs objects drawn from the
    target. `at_most_by_importance` is an upper bound only if log Z is at most `if_log_z_at_most`, the upper
    end of the interval of log Z's estimate. `at_most_by_importance` and `if_log_z_at_most` are None if log Z
    has no estimate."""
    consistency: dict[str, Any] | None
    """An estimate of flow consistency (`fcs`, with the ends `low` and `high` of its interval). Flow
    consistency is the mean over subsets of objects of the total variation between the policy and the target,
    both normalised within the subset. `floor` is the value that noise alone would cause for an exact policy.
    None if P_F builds objects along other paths than P_B draws, or if most estimated probabilities are
    uncertain."""
    samples: int
    """The number of trajectories that were drawn from the policy."""
    effective_samples: float
    """The effective sample size of the trajectories with their importance weights: an estimate of the number
    of equally weighted trajectories with the same amount of information."""
    probes: list[dict[str, Any]]
    """A dictionary for each object whose probability was estimated: its log-probability with an interval, its
    log-reward, and the source that the object comes from."""

    @property
    def is_clean(self) -> bool:
        """True if the certificate has no finding against the policy."""
        return not self.findings

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return (f"Certificate(tv {self.tv['at_least']:.4f} to {self.tv['at_most']:.4f}, {len(self.findings)} "
            f"findings)")


@dataclass(frozen=True, kw_only=True, eq=False)
class Judgement(_Result, Generic[States]):
    """Findings about a sampler from its samples and the exact target. `tv`, `jsd` and their floors have an
    `estimate` and an interval from `low` to `high`. The intervals of `tv` and `jsd` are confidence intervals
    of the sampler's distance from the target. The interval of a floor contains the distances of 95 % of
    perfect sets of samples. """

    samples: int
    """The number of samples that were judged."""
    distinct: int
    """The number of distinct objects among the samples."""
    objects: int
    """The number of objects with a target probability above 0."""
    tv: dict[str, float]
    """The total variation between the samples and the target."""
    tv_floor: dict[str, float]
    """The total variation between perfect samples (drawn from the target itself) and the target. There are as
    many perfect samples as judged samples."""
    jsd: dict[str, float]
    """The Jensen-Shannon divergence between the samples and the target."""
    jsd_floor: dict[str, float]
    """The Jensen-Shannon divergence between perfect samples (drawn from the target itself) and the target.
    There are as many perfect samples as judged samples."""
    consistency: dict[str, Any]
    """Flow consistency (`fcs`): the mean over subsets of objects of the total variation between the samples
    and the target, both normalised within the subset. `floor` is its value for perfect samples."""
    modes_found: int
    """The number of modes (the objects of the largest target probability) that are sampled with at least a
    tenth of their target probability."""
    modes: int
    """The number of modes of the target."""
    missing_mass: float
    """The target probability of all objects that were never sampled."""
    missing: list[dict[str, float]]
    """A dictionary for each of the most probable objects that were never sampled, at most 20 objects: its
    target probability (`probability`), and the probability that a perfect sampler misses this object, too
    (`by_chance`)."""
    missing_states: States
    """The states of the objects in `missing`, in the same order."""
    like_perfect: bool
    """True if no test distinguishes these samples from the samples of a perfect sampler."""
    log_z: float
    """The true log Z of the target."""

    def __repr__(self) -> str:
        return (f"Judgement(tv={self.tv['estimate']:.4f}, perfect ones have {self.tv_floor['estimate']:.4f}, "
            f"{self.samples} samples)")


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimate(_Result):
    """A mean of several values, and its standard error.

    >>> trainer = gfn.Trainer(gfn.HyperGrid(2, 3), gfn.HyperGridReward(), gfn.Mlp((8,)), batch=8)
    >>> trainer.evaluate(100).elbo.standard_error > 0
    True
    """

    mean: float
    """The mean of the values."""
    standard_error: float
    """The standard error of the mean."""

    def __repr__(self) -> str:
        return f"Estimate({self.mean:.4f} +- {self.standard_error:.4f})"


@dataclass(frozen=True, kw_only=True, eq=False)
class TopK(_Result, Generic[States]):
    """The samples with the largest rewards.

    >>> trainer = gfn.Trainer(gfn.HyperGrid(2, 3), gfn.HyperGridReward(), gfn.Mlp((8,)), batch=8)
    >>> best = trainer.evaluate(100).top_k(5)
    >>> best.states.shape, best.diversity is None
    ((5, 2), True)
    """

    rows: _Integers
    """The indices of the best objects among the samples, best first."""
    states: States
    """The best objects, in the order of `rows`."""
    mean_reward: float
    """The mean reward R of the best objects; infinite if this mean exceeds 1e308."""
    mean_log_reward: float
    """The mean log R of the best objects."""
    diversity: float | None
    """The mean distance between two of the best objects. None if `top_k` was called without `distance`."""

    def __repr__(self) -> str:
        diversity = "" if self.diversity is None else f", diversity={self.diversity:.4f}"
        return f"TopK({len(self.rows)} objects, mean_log_reward={self.mean_log_reward:.4f}{diversity})"


@dataclass(frozen=True, kw_only=True, eq=False)
class SampleEvaluation(_Result, Generic[States]):
    """Objects that a policy samples, and estimates of log Z from them. `exact` evaluates all states, if they
    can be listed.

    Let w = R(x) P_B / P_F for a trajectory to the object x. The mean of log w estimates a lower bound on log
    Z (`elbo`), and the log of the mean of w estimates log Z (`log_z`). For an objective relative to a prior,
    w = R(x)^beta prior / P_F, where `prior` is the trajectory's probability under the prior, and Z is the
    mean of R(x)^beta under the prior.

    >>> trainer = gfn.Trainer(gfn.HyperGrid(2, 3), gfn.HyperGridReward(), gfn.Mlp((8,)), batch=8)
    >>> evaluation = trainer.evaluate(200)
    >>> len(evaluation), evaluation.n_distinct <= 9
    (200, True)
    """

    states: States
    """The objects that the policy sampled."""
    log_rewards: _Numbers
    """log R of each object."""
    log_weights: _Numbers
    """log w of each trajectory; the description of this class defines w."""
    lengths: _Integers
    """The number of actions of each trajectory, including its exit."""
    groups: _Integers
    """An entry for each object: the index of the first sampled object that is equal to this object.
    Isomorphic graphs are equal if the environment's states are graphs up to isomorphism. Kekule forms of a
    molecule are equal, too."""
    elbo: Estimate
    """The mean of `log_weights`, an estimate of a lower bound on log Z. The bound equals log Z if P_F and P_B
    balance on every trajectory."""
    log_z: float
    """The log of the mean of exp(`log_weights`), which is an estimate of log Z."""
    interval: tuple[float, float]
    """The 95 % confidence interval of `log_z`. The interval is reliable only if `effective_samples` is
    large."""
    effective_samples: float
    """The number of equally weighted samples with as much information as the drawn trajectories, (sum w)^2 /
    sum w^2; the description of this class defines w."""

    def __post_init__(self) -> None:
        n = len(self)
        if not len(self.states) == len(self.log_weights) == len(self.lengths) == len(
            self.groups
        ) == n or np.any(np.greater_equal(self.groups, n)):
            raise ValueError(
                f"`log_rewards` has {n} objects, but `states`, `log_weights`, `lengths` or `groups` have "
                f"another number of objects, or `groups` has an index of {n} or more: expected the same "
                "number of objects in all of them"
            )

    def __len__(self) -> int:
        return len(self.log_rewards)

    def __repr__(self) -> str:
        what = (f"{len(self)} objects, {self.n_distinct} distinct, log_z={self.log_z:.4f}, "
            f"elbo={self.elbo.mean:.4f}")
        return f"SampleEvaluation({what}, effective_samples={self.effective_samples:.1f})"

    @property
    def n_distinct(self) -> int:
        """The number of different objects."""
        return len(self._first())

    @property
    def mean_len(self) -> float:
        """The mean number of actions of a trajectory."""
        return float(np.mean(self.lengths))

    def _first(self) -> _Integers:
        """Returns the index of each object to which no earlier object is equal."""
        return np.flatnonzero(self.groups == np.arange(len(self)))

    def top_k(self, k: int, distance: Callable[[States], Any] | None = None) -> TopK[States]:
        """Returns the `k` objects of the largest reward; an object that was sampled twice counts twice.

        `distance` is a function of k objects that returns the distances between them, `[k, k]`; the result's
        `diversity` is computed from these distances.
        """
        if not 1 <= (k := count(k, "k")) <= len(self):
            raise ValueError(
                f"k is {k}: expected a number from 1 to {len(self)}, the number of samples"
            )
        rows = np.argsort(-self.log_rewards, kind="stable")[:k]
        states, best = self.states[rows], self.log_rewards[rows]
        with np.errstate(over="ignore"):
            mean_reward = float(np.exp(best).mean())
        diversity = None if distance is None else _mean_distance(distance(states), k)
        return TopK(
            rows=rows,
            states=states,
            mean_reward=mean_reward,
            mean_log_reward=float(best.mean()),
            diversity=diversity,
        )

    def modes(self, is_mode: Callable[[States], Any]) -> int:
        """Returns the number of different objects that are modes. `is_mode` is a function of objects that
        returns an array of bool, True for each mode."""
        first = self._first()
        answers = np.asarray(is_mode(self.states[first]))
        if answers.dtype != bool or answers.ndim != 1:
            got = f"an array of {answers.dtype} and shape {answers.shape}"
            raise TypeError(f"`is_mode` gave {got}: expected an array of bool of shape [{len(first)}]")
        if len(answers) != len(first):
            raise ValueError(
                f"`is_mode` gave {len(answers)} values: expected {len(first)}, one for each object"
            )
        return int(answers.sum())


def _mean_distance(answer: Any, k: int) -> float:
    """Returns the mean distance between two of k objects, 0 for a single object. `answer` must be a table
    `[k, k]` of distances; otherwise an error is raised."""
    try:
        table = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"`distance` gave something that isn't an array of numbers ({error}): expected an array of shape "
            f"[{k}, {k}]"
        ) from error
    if table.shape != (k, k):
        raise ValueError(f"`distance` gave an array of shape {list(table.shape)}: expected [{k}, {k}]")
    total = float(table[np.triu_indices(k, 1)].sum())
    if not np.isfinite(total):
        raise ValueError("`distance` gave a number that isn't finite: expected finite numbers")
    return total / max(k * (k - 1) // 2, 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Correlation(_Result):
    """The correlation over objects between log p(x) and log R(x). The correlation is 1 if log p(x) is log
    R(x) minus a constant.

    >>> trainer = gfn.Trainer(gfn.HyperGrid(2, 3), gfn.HyperGridReward(), gfn.Mlp((8,)), batch=8)
    >>> correlation = trainer.evaluate_on(trainer.exact().states).correlation
    >>> -1 <= correlation.spearman <= 1
    True
    """

    pearson: float | None
    """Pearson's r. None if log p(x) or log R(x) is the same number for all objects."""
    spearman: float | None
    """Spearman's rho, the correlation of ranks. None under the same condition as `pearson`."""

    def __repr__(self) -> str:
        pearson, spearman = (
            "None" if value is None else f"{value:.4f}" for value in (self.pearson, self.spearman)
        )
        return f"Correlation(pearson={pearson}, spearman={spearman})"


@dataclass(frozen=True, kw_only=True, eq=False)
class ObjectEvaluation(_Result):
    """The log-probabilities of given objects, such as a test set.

    >>> trainer = gfn.Trainer(gfn.HyperGrid(2, 3), gfn.HyperGridReward(), gfn.Mlp((8,)), batch=8)
    >>> trainer.evaluate_on(np.array([[0, 0], [2, 2]])).log_probs.shape
    (2,)
    """

    log_probs: _Numbers
    """An estimate of log p(x), the log-probability that a trajectory of the policy ends in the object (in any
    of its states, such as the Kekule forms of a molecule). The estimate is computed from backward
    trajectories. The estimate isn't too large on average, and is exact if P_F and P_B balance."""
    log_rewards: _Numbers
    """log R of each object."""
    correlation: Correlation | None
    """The correlation of `log_probs` and `log_rewards`. None for a single object, or if the objective is
    relative to a prior."""
    upper_bound: Estimate | None
    """The mean over the backward trajectories of log w, with w = R(x) P_B / P_F (EUBO). This mean estimates
    an upper bound on log Z if there are many objects, drawn in proportion to their rewards. None if the
    objective is relative to a prior."""

    def __len__(self) -> int:
        return len(self.log_probs)

    def __repr__(self) -> str:
        pearson = None if self.correlation is None else self.correlation.pearson
        return f"ObjectEvaluation({len(self)} objects{'' if pearson is None else f', pearson={pearson:.4f}'})"


@dataclass(frozen=True, kw_only=True, eq=False)
class NoiseFloor(_Result):
    """Distances between samples of a perfect sampler and the target. A distance that is estimated from a
    policy's samples can't be expected to be smaller.

    >>> gfn.noise_floor([0.25, 0.75], n=100).tv < 0.1
    True
    """

    tv: float
    """The mean total variation between the samples and the target."""
    tv_sd: float
    """The standard deviation of the total variation."""
    jsd: float
    """The mean Jensen-Shannon divergence between the samples and the target (natural logarithm)."""
    jsd_sd: float
    """The standard deviation of the Jensen-Shannon divergence."""

    def __repr__(self) -> str:
        return f"NoiseFloor(tv={self.tv:.6f} +- {self.tv_sd:.6f}, jsd={self.jsd:.6f} +- {self.jsd_sd:.6f})"


@dataclass(frozen=True, kw_only=True, eq=False)
class Detection(_Result):
    """Measures of how well edge probabilities separate the edges of a known graph from other pairs of
    variables.

    >>> chain = np.zeros((1, 3, 3), dtype=bool)
    >>> chain[0, 0, 1] = chain[0, 1, 2] = True
    >>> gfn.structure_marginals(chain).detection([(0, 1), (1, 2)]).auroc
    1.0
    """

    auroc: float
    """The area under the ROC curve: the probability that an edge of the known graph has a larger probability
    than another pair of variables. Equal probabilities count half."""
    auprc: float
    """The area under the precision-recall curve (average precision)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class HeldOut(_Result):
    """Log-likelihoods of held-out data given the data of a `StructureReward`.

    >>> reward = gfn.StructureReward(np.random.default_rng(0).normal(size=(50, 2)))
    >>> held_out = reward.held_out(np.zeros((1, 2, 2), dtype=bool), [[0.1, -0.2], [0.5, 0.3]])
    >>> bool(np.isclose(held_out.log_likelihoods[0], held_out.model_average))
    True
    """

    log_likelihoods: _Numbers
    """log p(held-out data | data, graph) of each graph."""
    model_average: float
    """The log-likelihood under the average of all graphs: the log of the weighted mean of the graphs'
    likelihoods."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StructureMarginals(_Result):
    """Probabilities of edges, paths and Markov blankets of Bayesian networks. Matrices have the shape
    `[from, to]`.

    >>> graphs = np.zeros((4, 2, 2), dtype=bool)
    >>> graphs[1:, 0, 1] = True
    >>> found = gfn.structure_marginals(graphs, names=["smoke", "cancer"])
    >>> found.frame().loc["smoke", "cancer"].item(), found.expected_edges
    (0.75, 0.75)
    """

    names: list[str]
    """The names of the variables."""
    edge: _Numbers
    """The probability of an edge from one variable to another."""
    path: _Numbers | None
    """The probability of a directed path from one variable to another. None after `edge_marginals`."""
    markov_blanket: _Numbers | None
    """The probability that each of two variables is in the Markov blanket of the other. None after
    `edge_marginals`."""
    expected_edges: float
    """The expected number of edges of a graph."""
    log_z: float | None
    """The true log Z after `edge_marginals`, otherwise None."""
    n_samples: int | None
    """The number of samples. None if the probabilities are exact, or if graphs have weights."""

    def frame(self, what: Literal["edge", "path", "markov_blanket"] = "edge") -> Any:
        """Returns one of the matrices as a pandas data frame, from the row to the column."""
        import pandas

        check(what, "what", Literal["edge", "path", "markov_blanket"])
        values = getattr(self, what)
        if values is None:
            raise ValueError(
                f"these marginals have no {what}: expected marginals of graphs; use `structure_marginals`"
            )
        return pandas.DataFrame(values, index=self.names, columns=self.names)

    def intervals(self) -> tuple[_Numbers, _Numbers]:
        """Returns the lower and the upper ends of 95 % confidence intervals of `edge` (Wilson's method).

        The intervals cover the noise of sampling only. If the policy differs from the posterior, the
        posterior's probability can be far outside.
        """
        if self.n_samples is None:
            raise ValueError(
                "these marginals are exact or weighted, so they have no intervals: expected marginals of "
                "samples; use `structure_marginals` without weights"
            )
        return _gfn.edge_intervals(self.edge, self.n_samples)

    def dot(self, threshold: float = 0.5) -> str:
        """Returns the edges whose probability is at least `threshold` as a graph in the DOT language of
        Graphviz. The label of an edge is its probability, and more probable edges have thicker lines."""
        return _gfn.edges_to_dot(self.edge, self.names, float(threshold))

    def detection(self, truth: Iterable[tuple[int | str, int | str]]) -> Detection:
        """Returns how well the edge probabilities find the edges of a known graph: pairs `(from, to)` of
        names or indices of variables."""
        auroc, auprc = _gfn.detect_edges(self.edge, number_edges(truth, len(self.names), self.names, "truth"))
        return Detection(auroc=auroc, auprc=auprc)

    def __repr__(self) -> str:
        source = "exact or weighted" if self.n_samples is None else f"{self.n_samples} samples"
        return f"StructureMarginals({len(self.names)} variables, {self.expected_edges:.2f} edges, {source})"


@dataclass(frozen=True, kw_only=True, eq=False)
class EdgeComparison(_Result):
    """Distances of a distribution over structures from the edges of a known graph.

    >>> chain = np.zeros((1, 3, 3), dtype=bool)
    >>> chain[0, 0, 1] = chain[0, 1, 2] = True
    >>> reverse = gfn.compare_structures(chain, [(2, 1), (1, 0)])
    >>> reverse.expected_shd, gfn.compare_structures(chain, [(2, 1), (1, 0)], classes=True).expected_shd
    (2.0, 0.0)
    """

    expected_shd: float
    """The expected structural Hamming distance: the number of pairs of variables whose edge is missing,
    superfluous or in another direction."""
    expected_f1: float
    """The expected F1 score of a structure's edges, from 0 to 1. It is 1 if neither has an edge."""
    brier: float
    """The mean over ordered pairs of variables of the squared difference between the probability of an edge,
    and 1 for known edges or 0 for other pairs."""
    auroc: float | None
    """The area under the ROC curve of the edge probabilities. None if no pair or every pair is an edge."""
    auprc: float | None
    """The area under the precision-recall curve (average precision). None as for `auroc`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OrderSamples(_Result):
    """Structures from independent Markov chains over orders of the variables (`order_mcmc`).

    >>> data = np.random.default_rng(0).normal(size=(50, 3))
    >>> found = gfn.order_mcmc(gfn.BayesianStructure(3), gfn.StructureReward(data), chains=2, samples=100)
    >>> found.chains.shape, found.graphs.shape, found.is_corrected
    ((2, 100, 3, 3), (200, 3, 3), True)
    """

    names: list[str]
    """The names of the variables."""
    chains: npt.NDArray[np.bool_]
    """Adjacency matrices, `[chain, sample, from, to]`."""
    is_corrected: bool
    """True if the graphs are samples of the posterior. False if a graph counts once for each order of the
    variables that it fits, because these orders are too many to count."""
    effective_samples: list[float]
    """The effective number of each chain's candidates, ten per sample, after the correction: (sum w)^2 / sum
    w^2 of their weights w. If it is far below the number of samples of a chain, the samples are copies of a
    few graphs, and more of them are needed."""

    @property
    def graphs(self) -> npt.NDArray[np.bool_]:
        """The adjacency matrices of all chains, `[sample, from, to]`."""
        return self.chains.reshape(-1, *self.chains.shape[2:])

    def intervals(self) -> tuple[_Numbers, _Numbers]:
        """Returns the lower and the upper ends of 95 % confidence intervals of the edge probabilities: the
        mean of the chains plus and minus the t quantile times its standard error, and at least the interval
        of as many independent samples as `effective_samples`, at most the number of samples. They need at
        least two chains, and don't cover an error that all chains share."""
        shares = [chain.mean(axis=0) for chain in self.chains]
        effective = np.minimum(self.effective_samples, self.chains.shape[1]).mean()
        return _gfn.edge_intervals_between(shares, max(1, int(effective)))

    def __repr__(self) -> str:
        n_chains, n_samples, n, _ = self.chains.shape
        return f"OrderSamples({n} variables, {n_chains} chains of {n_samples} samples)"


# The classes of values that are results themselves, by the value's name. The extension returns such a value
# as a dictionary.
_NESTED: dict[str, type[Distances] | type[Estimate] | type[Correlation]] = {
    "of_objects": Distances,
    "elbo": Estimate,
    "upper_bound": Estimate,
    "correlation": Correlation,
}


def from_values(values: dict[str, Any]) -> dict[str, Any]:
    """Converts a dictionary that the extension returns to the values of a result, by name."""
    return {
        name: _NESTED[name](**value) if isinstance(value, dict) else value for name, value in values.items()
    }
