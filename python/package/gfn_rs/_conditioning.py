"""Conditions of a policy that learns a family of rewards: distributions of conditions, their effect on
rewards, and their encoding as vectors for a network.

A condition has an exponent beta of the reward (an inverse temperature), a preference for each of several
rewards, and a direction of focus: the direction that an object's vector of rewards should have. log R(x | c)
is beta times the log of a product: the weighted sum of the rewards, times the factor of the focus.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Sequence

import numpy as np
import torch

from . import _gfn
from ._settings import LARGEST_SIZE, Settings, bounds, plain


class Temperature(Settings):
    """The base class of distributions of beta. With `bins`, beta is encoded as a thermometer instead of a
    number: a vector of `bins` entries, of which a larger beta fills more.

    >>> gfn.Conditioning(temperature=gfn.UniformTemperature(1, 4, bins=3)).width
    3
    """

    def _json(self) -> Any:
        values = self._values()
        bins = values.pop("bins")
        return {"value": {type(self).__name__.removesuffix("Temperature"): values}, "bins": bins}


@dataclass(frozen=True)
class UniformTemperature(Temperature):
    """The uniform distribution of beta between two numbers, `least` and `most`. With `bins`, beta is encoded
    as a thermometer of `bins` entries; by default it is encoded as one number.

    >>> drawn = gfn.Conditioning(temperature=gfn.UniformTemperature(1, 4)).draw(100)
    >>> bool(((drawn >= 1) & (drawn <= 4)).all())
    True
    """

    least: float
    most: float
    bins: int | None = None


@dataclass(frozen=True)
class LogUniformTemperature(Temperature):
    """The distribution of beta between two numbers above 0, `least` and `most`, in which log beta is uniform.
    With `bins`, beta is encoded as a thermometer of `bins` entries; by default it is encoded as one number.

    >>> drawn = gfn.Conditioning(temperature=gfn.LogUniformTemperature(1, 64)).draw(1000)
    >>> bool((drawn < 8).double().mean() > 0.4)
    True
    """

    least: float
    most: float
    bins: int | None = None


@dataclass(frozen=True)
class GammaTemperature(Temperature):
    """A Gamma distribution of beta with the parameters `shape` and `scale`, in which draws above `most` are
    replaced by `most`. With `bins`, beta is encoded as a thermometer of `bins` entries; by default it is
    encoded as one number.

    >>> drawn = gfn.Conditioning(temperature=gfn.GammaTemperature(2.0, 1.0, most=3.0)).draw(100)
    >>> bool(drawn.max() <= 3)
    True
    """

    shape: float
    scale: float
    most: float
    bins: int | None = None


class Directions(Settings):
    """The base class of distributions of preferences and of directions of focus. With `bins`, each number is
    encoded as a thermometer: a vector of `bins` entries, of which a larger number fills more.

    >>> gfn.Conditioning(2, preferences=gfn.Dirichlet(bins=3)).width
    6
    """

    def _json(self) -> Any:
        values = self._values()
        bins = values.pop("bins")
        return {"value": {type(self).__name__: values.get("vectors", values)}, "bins": bins}


@dataclass(frozen=True)
class OneOf(Directions):
    """The uniform distribution over the list `vectors`. Each vector has a number for each reward. With
    `bins`, each number is encoded as a thermometer of `bins` entries; by default it is encoded as one number.

    >>> conditions = gfn.Conditioning(2, preferences=gfn.OneOf([[1, 0], [1, 1]]))
    >>> sorted({tuple(each.preferences) for each in conditions.decode(conditions.draw(50))})
    [(0.5, 0.5), (1.0, 0.0)]
    """

    vectors: Sequence[Sequence[float]]
    bins: int | None = None


@dataclass(frozen=True)
class Dirichlet(Directions):
    """The symmetric Dirichlet distribution over the simplex. With a `concentration` of 1, the default, it is
    uniform, below 1 it prefers the corners, and above 1 the centre. With `bins`, each number is encoded as a
    thermometer of `bins` entries; by default it is encoded as one number.

    >>> gfn.Conditioning(3, preferences=gfn.Dirichlet(0.5)).draw(4).sum(dim=1).round(decimals=6).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    concentration: float = 1.0
    bins: int | None = None


def _directions(given: Any) -> Any:
    return (
        given._json()
        if isinstance(given, Directions)
        else {"value": {"Constant": plain(given, "directions")}, "bins": None}
    )


@dataclass(frozen=True)
class Focus(Settings):
    """A cone around a direction of focus (Roy et al. 2023). Let c be the cosine of the angle between an
    object's vector of rewards and the direction. Inside of the cone, the reward is multiplied by a power of
    c.

    directions
        The direction of focus, or the distribution that it is drawn from.
    cosine, limit
        The cosine c at the cone's surface, and the factor on the reward at the surface. Both numbers together
        determine the power of c.
    outside
        log R of objects outside of the cone. This log R must be below log R of all objects inside of the
        cone. Otherwise the policy would prefer objects outside of the cone.

    If almost no sample is inside of the cone, use a wider cone with the same power of c, such as
    `cosine=0.98**20, limit=0.8**20`.

    >>> conditions = gfn.Conditioning(2, focus=gfn.Focus(gfn.Dirichlet()))
    >>> conditions.width
    2
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
    """Conditions that a function draws. The reward must be a function of states and of a tensor with the
    condition of each state.

    function
        A function of a number n and a random generator of numpy, which returns n conditions, an array `[n,
        width]`.
    width
        The number of entries of a condition, at least 1.

    >>> conditions = gfn.Conditions(lambda n, rng: rng.uniform(1, 4, (n, 1)), width=1)
    >>> reward = lambda points, betas: betas[:, 0].numpy() * -points.sum(axis=1)
    >>> trainer = gfn.Trainer(gfn.HyperGrid(2, 3), reward, gfn.Mlp((8,)), batch=8, conditions=conditions)
    >>> trainer.sample(2, conditions=[[1.0], [4.0]]).shape
    (2, 2)
    """

    function: Callable[[int, np.random.Generator], Any]
    width: int = field(metadata=bounds(1))


@dataclass(frozen=True)
class Condition(Settings):
    """The condition of one trajectory.

    beta
        The exponent of the reward.
    preferences
        A weight for each reward; the weights are divided by their sum. By default the weights are equal.
    focus
        The direction of focus, if there is one.

    >>> conditions = gfn.Conditioning(2, preferences=gfn.Dirichlet())
    >>> conditions.encode([gfn.Condition(preferences=[1, 3])]).tolist()
    [[0.25, 0.75]]
    """

    beta: float = 1.0
    preferences: Sequence[float] | None = None
    focus: Sequence[float] | None = None


class _Encoding(Settings):
    """The base class of `Conditioning`. This class holds the object of the extension that draws and encodes
    conditions."""

    _conditioner: _gfn.Conditioner


@dataclass(frozen=True)
class Conditioning(_Encoding):
    """The distribution of the condition of each trajectory, for the `conditions` of a `Trainer` with
    `n_rewards` rewards of states.

    temperature
        The exponent beta, or the distribution that beta is drawn from.
    preferences
        The weights of the rewards, or the distribution that the weights are drawn from. By default the
        weights are equal.
    focus
        A cone around a direction of focus.

    A network gets a condition as a vector of `width` numbers: beta, the preferences, and the direction of
    focus. Parts that are constant are left out.

    >>> import gfn_rs as gfn
    >>> temperature = gfn.LogUniformTemperature(1, 64, bins=8)
    >>> conditions = gfn.Conditioning(2, temperature=temperature, preferences=gfn.Dirichlet())
    >>> conditions.width, conditions.draw(3).shape
    (10, torch.Size([3, 10]))
    >>> conditions.decode(conditions.encode([gfn.Condition(beta=8, preferences=[1, 3])]))[0].preferences
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
                else {"value": {"Constant": float(beta)}, "bins": None}
            ),
            "preferences": None if self.preferences is None else _directions(self.preferences),
            "focus": None if self.focus is None else self.focus._json(),
        }

    @property
    def width(self) -> int:
        """The number of entries of a condition's vector."""
        return self._conditioner.width

    def draw(self, n: int, seed: int = 0) -> torch.Tensor:
        """Draws `n` conditions, and returns their vectors, `[n, width]`."""
        from ._checks import check_seed, count

        return self._conditioner.draw(count(n, most=LARGEST_SIZE), check_seed(seed))

    def encode(self, conditions: Sequence[Condition]) -> torch.Tensor:
        """Returns the vectors of these conditions, `[n, width]`, for example as an argument of
        `Trainer.sample`."""
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
        """Returns the conditions whose vectors are the rows of `vectors`, `[n, width]`. The preferences of a
        condition have the sum 1, and its direction of focus has the length 1. A row that isn't the vector of
        a condition is an error.
        """
        vectors = torch.as_tensor(np.asarray(vectors, dtype=np.float64))
        return [Condition(*each) for each in self._conditioner.decode(vectors)]

    def __reduce__(self) -> Any:
        return type(self), (self.n_rewards, self.temperature, self.preferences, self.focus)
