"""Results of evaluations, which can be compared, copied and pickled."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Callable

import numpy as np
import numpy.typing as npt

from ._checks import count

_Integers = npt.NDArray[np.int64]
_Numbers = npt.NDArray[np.float64]


def _same(one: Any, other: Any) -> bool:
    arrays = isinstance(one, np.ndarray) or isinstance(other, np.ndarray)
    return np.array_equal(one, other) if arrays else bool(one == other)


class _Result:
    """The base class of results. Two results are equal if they have the same class and equal values."""

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]
        return all(_same(getattr(self, name), getattr(other, name)) for name in names)


@dataclass(frozen=True, kw_only=True, eq=False)
class Distances(_Result):
    """Distances between the policy's distribution and the target."""

    l1: float
    """The sum over objects of the absolute difference of the two probabilities."""
    tv: float
    """The total variation, which is half of `l1`."""
    jsd: float
    """The Jensen-Shannon divergence (natural logarithm)."""
    kl_target_policy: float
    """KL(target || policy), the Kullback-Leibler divergence; infinite if the policy misses an object."""
    kl_policy_target: float
    """KL(policy || target), the divergence in the other direction."""

    def __repr__(self) -> str:
        return f"Distances(tv={self.tv:.6f}, jsd={self.jsd:.6f}, l1={self.l1:.6f})"


@dataclass(frozen=True, kw_only=True, eq=False)
class Exact(Distances):
    """The exact distribution of a policy, and the target, not an estimate: every state is evaluated. Its own
    distances are those between distributions over states.
    """

    states: Any
    """All states of the environment."""
    n_states: int
    """The number of states of the environment."""
    probs: _Numbers
    """The probability that the policy ends in each state, `[states]`."""
    target: _Numbers
    """The target probability of each state, R(x) / Z; states of one object have equal shares of it. For an
    objective relative to a prior, it is in proportion to prior(x) R(x)^beta."""
    log_rewards: _Numbers
    """log R of each state, as the reward returns it for the object; minus infinity if no trajectory can end
    there."""
    log_z: float
    """The true log Z of the target."""
    mean_len: float
    """The mean number of actions of a trajectory."""
    n_objects: int
    """The number of objects: fewer than states if several states are one object, such as the Kekule forms of
    a molecule."""
    groups: _Integers
    """The groups of states that are one object: for each state the index of the first state of its group."""
    of_objects: Distances
    """The distances between the distributions over objects, with the states of each summed."""

    def __repr__(self) -> str:
        return (f"Exact({self.n_states} states, tv={self.tv:.6f}, jsd={self.jsd:.6f}, l1={self.l1:.6f}, "
            f"log_z={self.log_z:.4f})")


@dataclass(frozen=True, kw_only=True, eq=False)
class Certificate(_Result):
    """Findings about a policy from samples. Values named `at_least` and `at_most` are bounds, with a known
    risk of being false. All others are estimates, whose intervals hold for 95 % of policies whose samples
    miss no part of the target. Printed, it is a table.
    """

    text: str
    """The table that is printed."""
    findings: list[str]
    """Reasons not to trust the policy, in words. An empty list means that no reason was found, not that the
    policy is right."""
    limits: list[str]
    """Reasons why some numbers of the certificate are missing, in words. They aren't findings against the
    policy."""
    log_z: dict[str, Any]
    """Bounds on log Z, each false with a probability of at most 1 %: `at_least`, and `at_most`, which is
    None, because it needs objects drawn from the target. `from_found_objects`, the log of the sum of the
    rewards of all objects found, is a bound without a risk. `elbo` and `estimate` (by importance sampling,
    None if it is listed among the limits) are estimates with `low` and `high`."""
    tv: dict[str, Any]
    """Bounds on the total variation to the target, each false with a probability of at most 5 %: `at_least`
    and `at_most`, which is 1 without objects drawn from the target. `at_most_by_importance` is an upper bound
    only if log Z is at most `if_log_z_at_most`, the upper end of its estimate; both are None without one."""
    consistency: dict[str, Any] | None
    """An estimate of flow consistency on subsets (`fcs`, with `low` and `high`), and the `floor`, its value
    from noise alone. None if P_F builds objects in other orders than P_B takes them apart, or if most
    probabilities are uncertain."""
    samples: int
    """The number of the policy's trajectories."""
    effective_samples: float
    """The number of equally weighted trajectories with the same amount of information, an estimate."""
    probes: list[dict[str, Any]]
    """The objects whose probability was estimated: log-probability with its interval (no bound), log-reward,
    source."""

    @property
    def is_clean(self) -> bool:
        """True if there is no finding against the policy."""
        return not self.findings

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return (f"Certificate(tv {self.tv['at_least']:.4f} to {self.tv['at_most']:.4f}, {len(self.findings)} "
            f"findings)")


@dataclass(frozen=True, kw_only=True, eq=False)
class Judgement(_Result):
    """Findings about a sampler from its samples and the exact target. `tv`, `jsd` and the floors have an
    `estimate`, `low` and `high`. For the samples' own distance the interval is that of the sampler; for a
    floor it is the range of 95 % of perfect samples.
    """

    samples: int
    """The number of samples that were judged."""
    distinct: int
    """The number of distinct objects among the samples."""
    objects: int
    """The number of objects of the environment."""
    tv: dict[str, float]
    """The total variation between the samples and the target."""
    tv_floor: dict[str, float]
    """The total variation of an equal number of perfect samples."""
    jsd: dict[str, float]
    """The Jensen-Shannon divergence between the samples and the target."""
    jsd_floor: dict[str, float]
    """The Jensen-Shannon divergence of an equal number of perfect samples."""
    consistency: dict[str, Any]
    """Flow consistency of the samples on subsets of objects (`fcs`), and the `floor` that perfect samples
    reach."""
    modes_found: int
    """The number of modes, objects of the largest probability, that are sampled with at least a tenth of
    their target probability."""
    modes: int
    """The number of modes of the target."""
    missing_mass: float
    """The target probability of all objects that were never sampled."""
    missing: list[dict[str, float]]
    """The heaviest missing objects: `probability`, and the probability that a perfect sampler misses the
    object, too (`by_chance`)."""
    missing_states: Any
    """The states of the objects in `missing`, in the same order."""
    like_perfect: bool
    """True if nothing distinguishes the samples from those of a perfect sampler."""
    log_z: float
    """The true log Z of the target."""

    def __repr__(self) -> str:
        return (f"Judgement(tv={self.tv['estimate']:.4f}, perfect ones have {self.tv_floor['estimate']:.4f}, "
            f"{self.samples} samples)")


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimate(_Result):
    """A mean and its standard error."""

    mean: float
    """The mean of the values."""
    standard_error: float
    """The standard error of the mean."""

    def __repr__(self) -> str:
        return f"Estimate({self.mean:.4f} +- {self.standard_error:.4f})"


@dataclass(frozen=True, kw_only=True, eq=False)
class TopK(_Result):
    """The objects of the largest rewards among samples."""

    rows: _Integers
    """Indices of the objects among the samples, best first."""
    states: Any
    """The objects themselves, best first."""
    mean_reward: float
    """The mean reward of the objects; infinite if it exceeds 1e308."""
    mean_log_reward: float
    """The mean log R of the objects."""
    diversity: float | None
    """The mean distance between two of the objects; None without a distance."""

    def __repr__(self) -> str:
        diversity = "" if self.diversity is None else f", diversity={self.diversity:.4f}"
        return f"TopK({len(self.rows)} objects, mean_log_reward={self.mean_log_reward:.4f}{diversity})"


@dataclass(frozen=True, kw_only=True, eq=False)
class SampleEvaluation(_Result):
    """Objects that a policy samples, and estimates of log Z from them. `exact` evaluates all states, if they
    can be listed.

    With w the reward of a trajectory's object times P_B over P_F, the mean of log w is a lower bound on log Z
    (`elbo`), and the log of the mean of w estimates it (`log_z`). Relative to a prior, w is R to the power
    beta times the prior over P_F, and Z is its mean under the prior.
    """

    states: Any
    """The objects that the policy sampled."""
    log_rewards: _Numbers
    """log R of each object."""
    log_weights: _Numbers
    """log w of each trajectory, as defined above."""
    lengths: _Integers
    """The number of actions of each trajectory, including its exit."""
    groups: _Integers
    """The groups of equal objects: for each object the index of the first object that is equal to it, up to
    isomorphism if the environment is; Kekule forms of a molecule are equal."""
    elbo: Estimate
    """The mean of log w: an estimate of a lower bound on log Z, which an exact policy reaches if P_B fits its
    P_F."""
    log_z: float
    """The log of the mean of w: an estimate of log Z."""
    interval: tuple[float, float]
    """The 95 % confidence interval of `log_z`; it is reliable only if `effective_samples` is large."""
    effective_samples: float
    """(sum w)^2 / sum w^2: the number of equally weighted samples with the same information."""

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
        """Returns the index of the first object in each group of equal objects."""
        return np.flatnonzero(self.groups == np.arange(len(self)))

    def top_k(self, k: int, distance: Callable[[Any], Any] | None = None) -> TopK:
        """Returns the `k` objects of the largest reward; an object that was sampled twice counts twice.

        `distance` is a function of k objects that returns the distances between them, `[k, k]`, for their
        diversity.
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

    def modes(self, is_mode: Callable[[Any], Any]) -> int:
        """Returns the number of different objects that are modes: `is_mode` is a function of objects that
        returns an array of bool."""
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
    """Returns the mean distance between two of k objects; 0 for a single object. Refuses anything but a table
    of distances."""
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
    """The correlation over objects between two numbers of each object. It is 1 if log p(x) is log R(x) minus
    a constant."""

    pearson: float | None
    """Pearson's r; None if one of the numbers is equal for all objects."""
    spearman: float | None
    """Spearman's rho, the correlation of ranks."""

    def __repr__(self) -> str:
        pearson, spearman = (
            "None" if value is None else f"{value:.4f}" for value in (self.pearson, self.spearman)
        )
        return f"Correlation(pearson={pearson}, spearman={spearman})"


@dataclass(frozen=True, kw_only=True, eq=False)
class ObjectEvaluation(_Result):
    """The log-probabilities of given objects, such as a test set."""

    log_probs: _Numbers
    """log p(x), the log-probability that the policy ends in each object (in any of its states, such as the
    Kekule forms of a molecule), estimated from backward paths to the start: never too large on average, and
    exact if P_F and P_B balance."""
    log_rewards: _Numbers
    """log R of each object."""
    correlation: Correlation | None
    """The correlation of `log_probs` and `log_rewards`; None for a single object, and relative to a prior."""
    upper_bound: Estimate | None
    """The mean of log w over the paths (EUBO): an estimate of an upper bound on log Z, if the objects are
    many and drawn in proportion to their rewards. None relative to a prior."""

    def __len__(self) -> int:
        return len(self.log_probs)

    def __repr__(self) -> str:
        pearson = None if self.correlation is None else self.correlation.pearson
        return f"ObjectEvaluation({len(self)} objects{'' if pearson is None else f', pearson={pearson:.4f}'})"


@dataclass(frozen=True, kw_only=True, eq=False)
class NoiseFloor(_Result):
    """Distances between samples of a perfect sampler and the target, to compare with distances that are
    estimated from samples."""

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


# The classes of results inside other results, by the name of the value. The extension returns their values by
# name.
_NESTED: dict[str, type[Distances] | type[Estimate] | type[Correlation]] = {
    "of_objects": Distances,
    "elbo": Estimate,
    "upper_bound": Estimate,
    "correlation": Correlation,
}


def from_values(values: dict[str, Any]) -> dict[str, Any]:
    """Converts the values that the extension returns to the values of a result, by name."""
    return {
        name: _NESTED[name](**value) if isinstance(value, dict) else value for name, value in values.items()
    }
