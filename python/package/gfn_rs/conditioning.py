"""Conditions of a policy that learns a family of rewards: their distributions, their effect on rewards, and
their encoding for a network.

A condition has an exponent beta of the reward (an inverse temperature), a preference for each of several
rewards, and a direction of focus. log R(x | c) is beta times the log of the weighted sum of the rewards
times the factor of the focus.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Sequence

import numpy as np
import torch

from . import _gfn
from ._settings import LARGEST_SIZE, Settings, bounds, plain


class Temperature(Settings):
    """The base class of distributions of beta. With `bins`, beta is encoded as a thermometer with this number
    of marks, instead of a number."""

    def _json(self) -> Any:
        values = self._values()
        bins = values.pop("bins")
        return {"of": {type(self).__name__.removesuffix("Temperature"): values}, "bins": bins}


@dataclass(frozen=True)
class UniformTemperature(Temperature):
    """The uniform distribution between two numbers."""

    least: float
    most: float
    bins: int | None = None


@dataclass(frozen=True)
class LogUniformTemperature(Temperature):
    """The distribution between two numbers above 0 whose logarithm is uniform."""

    least: float
    most: float
    bins: int | None = None


@dataclass(frozen=True)
class GammaTemperature(Temperature):
    """A Gamma distribution; draws above `most` become `most`."""

    shape: float
    scale: float
    most: float
    bins: int | None = None


class Directions(Settings):
    """The base class of distributions of preferences and of directions of focus. With `bins`, each number is
    encoded as a thermometer with this number of marks.
    """

    def _json(self) -> Any:
        values = self._values()
        bins = values.pop("bins")
        return {"of": {type(self).__name__: values.get("vectors", values)}, "bins": bins}


@dataclass(frozen=True)
class OneOf(Directions):
    """The uniform distribution over these vectors, which have a number for each reward."""

    vectors: Sequence[Sequence[float]]
    bins: int | None = None


@dataclass(frozen=True)
class Dirichlet(Directions):
    """The symmetric Dirichlet distribution: uniform on the simplex at 1, near its corners below 1, near its
    centre above 1."""

    concentration: float = 1.0
    bins: int | None = None


def _directions(given: Any) -> Any:
    return (
        given._json()
        if isinstance(given, Directions)
        else {"of": {"Constant": plain(given, "directions")}, "bins": None}
    )


@dataclass(frozen=True)
class Focus(Settings):
    """A cone of wanted objectives (Roy et al. 2023). With c the cosine between an object's rewards
    and the direction of focus, the reward is multiplied by a power of c.

    directions
        The direction, or the distribution that it is drawn from.
    cosine, limit
        The cosine at the cone's surface, and the factor there, which determines the power of c.
    outside
        log R outside of the cone. beta times the log of `limit` and of the rewards must be above it;
        otherwise objects outside are worth more than objects inside.

    If hardly any sample is inside, use a wider cone with the same power of c, such as `cosine=0.98**20,
    limit=0.8**20`.
    """

    directions: Sequence[float] | Directions
    cosine: float = 0.98
    limit: float = 0.1
    outside: float = -75.0

    def _json(self) -> Any:
        numbers = {name: plain(getattr(self, name), name) for name in ("cosine", "limit", "outside")}
        return {"directions": _directions(self.directions), **numbers}


@dataclass(frozen=True)
class Conditions(Settings):
    """Conditions that a function draws. The reward is then a function of states and of their conditions, a
    tensor.

    function
        A function of a number n and a generator of numpy that returns an array `[n, width]`.
    width
        The width of a condition, at least 1.
    """

    function: Callable[[int, np.random.Generator], Any]
    width: int = field(metadata=bounds(1))


@dataclass(frozen=True)
class Condition(Settings):
    """A condition of a trajectory.

    beta
        The exponent of the reward.
    preferences
        A weight for each reward; equal ones by default.
    focus
        The direction of focus, if there is one.
    """

    beta: float = 1.0
    preferences: Sequence[float] | None = None
    focus: Sequence[float] | None = None


class _Encoding(Settings):
    """The base class of `Conditioning`, which holds the extension's object."""

    _conditioner: _gfn.Conditioner


@dataclass(frozen=True)
class Conditioning(_Encoding):
    """The distribution of the condition of each trajectory, for the `conditions` of a `Trainer` with
    `n_rewards` rewards of states.

    temperature
        beta, or the distribution that it is drawn from.
    preferences
        The weights of the rewards, or the distribution that they are drawn from; equal ones by default.
    focus
        A cone of wanted objects.

    The network reads a condition as a vector of `width` numbers: beta, preferences, direction, without
    constant parts.

    >>> import gfn_rs as gfn
    >>> of = gfn.Conditioning(2, temperature=gfn.LogUniformTemperature(1, 64, bins=8), preferences=gfn.Dirichlet())
    >>> of.width, of.draw(3).shape
    (10, torch.Size([3, 10]))
    >>> of.decode(of.encode([gfn.Condition(beta=8, preferences=[1, 3])]))[0].preferences
    [0.25, 0.75]
    """

    n_rewards: int = 1
    temperature: float | Temperature = 1.0
    preferences: Sequence[float] | Directions | None = None
    focus: Focus | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "_conditioner", _gfn.Conditioner(self._values()))

    def _values(self) -> dict[str, Any]:
        beta = self.temperature
        return {
            "n_rewards": plain(self.n_rewards, "n_rewards"),
            "temperature": (
                beta._json()
                if isinstance(beta, Temperature)
                else {"of": {"Constant": float(beta)}, "bins": None}
            ),
            "preferences": None if self.preferences is None else _directions(self.preferences),
            "focus": None if self.focus is None else self.focus._json(),
        }

    @property
    def width(self) -> int:
        """The number of entries of a condition's vector."""
        return self._conditioner.width

    def draw(self, n: int, seed: int = 0) -> torch.Tensor:
        """Draws the vectors of `n` conditions, `[n, width]`."""
        from ._checks import check_seed, count

        return self._conditioner.draw(count(n, most=LARGEST_SIZE), check_seed(seed))

    def encode(self, conditions: Sequence[Condition]) -> torch.Tensor:
        """Returns the vectors of conditions, `[n, width]`, for `sample` and `exact`."""
        wrong = next((each for each in conditions if not isinstance(each, Condition)), None)
        if wrong is not None:
            raise TypeError(f"one of the conditions is {wrong!r:.200}: expected Condition(...)")

        def numbers(values: Sequence[float] | None) -> list[float] | None:
            return None if values is None else [float(value) for value in values]

        equal = [1.0] * self.n_rewards
        return self._conditioner.encode(
            [(float(c.beta), numbers(c.preferences) or equal, numbers(c.focus)) for c in conditions]
        )

    def decode(self, vectors: Any) -> list[Condition]:
        """Returns the conditions of vectors `[n, width]`. Preferences have the sum 1, and directions the
        length 1. A vector that isn't the vector of a condition is refused.
        """
        vectors = torch.as_tensor(np.asarray(vectors, dtype=np.float64))
        return [Condition(*each) for each in self._conditioner.decode(vectors)]

    def __reduce__(self) -> Any:
        return type(self), (self.n_rewards, self.temperature, self.preferences, self.focus)
