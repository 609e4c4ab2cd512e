"""Custom environments and rewards that are functions of torch tensors, on any device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from ._declared import STEPPED, Env
from ._settings import bounds, kind_name, plain
from ._steps import Whole
from ._suggestions import suggests_names


class TensorRules:
    """The base class of the rules of a `TensorEnv`: the methods of `EnvRules` as functions of torch tensors.
    Override all methods but `can_end`, `reverse` and `backward_reverse`. Each method is called with a batch:
    `states` is an int64 tensor `[n, width]`, and `moves` is an int64 tensor `[n]` with the number of each
    move.

    Tensors are on the CPU or on the trainer's device, and a method returns a tensor on the device of its
    arguments. Move constants there by `.to(states.device)`: when the environment is created, methods are
    checked on the CPU only, so a constant on the CPU doesn't fail until the first step on a GPU.

    A method computes each row from the same row of its arguments, which it must not change in place. Methods
    run without gradients. A trainer and `check` raise the exceptions of methods.

    In rows of finished trajectories the move is 0, even if it isn't legal. The results in such rows are
    ignored, but the method must not fail.

    >>> class Count(gfn.TensorRules):
    ...     def initial(self):
    ...         return torch.tensor([0])
    ...     def masks(self, states):
    ...         return states < 3
    ...     def step(self, states, moves):
    ...         return (states + 1).clamp(max=3)
    ...     def backward_masks(self, states):
    ...         return states > 0
    ...     def backward_step(self, states, moves):
    ...         return (states - 1).clamp(min=0)
    >>> gfn.TensorEnv(Count(), width=1, values=4, n_moves=1).check().states
    4
    """

    def initial(self) -> torch.Tensor:
        """Returns the initial state, an int64 tensor `[width]` on the CPU."""
        raise NotImplementedError

    def masks(self, states: torch.Tensor) -> torch.Tensor:
        """Returns a bool tensor `[n, n_moves]`, True for each legal move of each state. It has no column for
        the exit, unlike the mask of `EnvRules`; `can_end` decides about the exit."""
        raise NotImplementedError

    def can_end(self, states: torch.Tensor) -> torch.Tensor:
        """Returns a bool tensor `[n]`, True for each state in which a trajectory may end by the exit. By
        default these are all states."""
        return torch.ones(len(states), dtype=torch.bool, device=states.device)

    def step(self, states: torch.Tensor, moves: torch.Tensor) -> torch.Tensor:
        """Returns the states after these moves, one per state: an int64 tensor `[n, width]`."""
        raise NotImplementedError

    def backward_masks(self, states: torch.Tensor) -> torch.Tensor:
        """Returns a bool tensor `[n, n_backward_moves]`, True for each legal backward move of each state. The
        initial state has none."""
        raise NotImplementedError

    def backward_step(self, states: torch.Tensor, moves: torch.Tensor) -> torch.Tensor:
        """Returns the states after these backward moves, one per state: an int64 tensor `[n, width]`."""
        raise NotImplementedError

    def reverse(self, states: torch.Tensor, moves: torch.Tensor) -> torch.Tensor:
        """Returns the number of the backward move that undoes each move, an int64 tensor `[n]`. By default it
        is the number of the move itself."""
        return moves

    def backward_reverse(self, states: torch.Tensor, moves: torch.Tensor) -> torch.Tensor:
        """Returns the number of the move that undoes each backward move, an int64 tensor `[n]`. By default it
        is the number of the backward move itself."""
        return moves


@dataclass(frozen=True)
class TensorEnv(Env):
    """A custom environment of vectors whose moves are functions of torch tensors, so that states can stay on
    a GPU. All other functions of the library give and take states as int64 arrays `[n, width]`, as for an
    `Env`. On a CPU an `Env` or, if each move sets one entry, a `VectorEnv` takes less time.

    rules
        An object like `TensorRules`.
    width, values
        The number of entries of a state, and the number of values of an entry, which are 0 to `values` - 1.
    n_moves, n_backward_moves
        The number of moves and of backward moves; by default both are equal.
    has_exit
        False if a trajectory ends in a state without legal moves. By default it ends by the exit.
    n_steps
        The number of moves of every trajectory, including the exit, if all have the same number. A roll-out
        on a GPU then doesn't wait between steps.

    When the environment is created, `check` runs on the states of random walks and on all backward moves from
    these states. A trainer checks some of these states again.

    >>> class Subsets(gfn.TensorRules):
    ...     def initial(self):
    ...         return torch.zeros(3, dtype=torch.int64)
    ...     def masks(self, states):
    ...         return states == 0
    ...     def step(self, states, moves):
    ...         return states.scatter(1, moves[:, None], 1)
    ...     def backward_masks(self, states):
    ...         return states == 1
    ...     def backward_step(self, states, moves):
    ...         return states.scatter(1, moves[:, None], 0)
    >>> gfn.TensorEnv(Subsets(), width=3, values=2, n_moves=3).check()
    Coverage(visited=8, states=8)
    """

    _base: ClassVar[type] = TensorRules
    _methods: ClassVar[tuple[str, ...]] = (*STEPPED, "can_end")

    n_steps: int | None = field(default=None, metadata=bounds(1))

    def __post_init__(self) -> None:
        if self.has_exit is False and self._has("can_end"):
            raise TypeError(
                "rules has a method `can_end`, but `has_exit` is False: expected only one of them, because "
                "without an exit a trajectory ends in a state without legal moves"
            )
        super().__post_init__()

    def _values(self) -> dict[str, Any]:
        return {
            "env": super()._values(),
            "has_can_end": self._has("can_end"),
            "n_steps": plain(self.n_steps, "n_steps"),
        }


class TensorReward:
    """A reward as a function of torch tensors, for environments of vectors. If states are on a GPU, log R is
    computed there; otherwise the function gets tensors on the CPU. A trainer whose reward is a
    `TensorReward` can't have `conditions`, except for a `Conditioning` of several rewards.

    function
        A function of an int64 tensor `[n, width]` of finished states. It returns log R of each state, a
        tensor `[n]` of real numbers on the same device. Move constants there by `.to(states.device)`.

    >>> reward = gfn.TensorReward(lambda states: -0.5 * states.sum(1))
    >>> reward(np.array([[1, 2], [0, 0]]))
    tensor([-1.5000, -0.0000])
    >>> gfn.Trainer(gfn.HyperGrid(2, 3), reward, gfn.Mlp((8,)), batch=8).fit(2).steps_done
    2
    """

    @suggests_names
    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        if isinstance(function, type) or not callable(function):
            raise TypeError(
                f"function is {kind_name(function)}: expected a function of a tensor of states that returns "
                "log R of each state"
            )
        self.function = function

    def __call__(self, states: Whole) -> torch.Tensor:
        """Returns log R of states that are an array `[n, width]`."""
        return self.on_tensors(torch.from_numpy(states))

    def on_tensors(self, states: torch.Tensor) -> torch.Tensor:
        """Returns log R of states that are a tensor `[n, width]`."""
        return call_on_tensors(self.function, (states,), "the reward", "real", [len(states)])


def call_on_tensors(
    function: Callable[..., Any],
    arguments: Sequence[torch.Tensor],
    who: str,
    dtype: str,
    shape: Sequence[int],
) -> torch.Tensor:
    """Calls a custom function of tensors. Returns its answer, a tensor of this shape and dtype ("bool",
    "int64", or "real" for real numbers of any dtype) on the device of the arguments. Error messages name the
    function by `who`."""
    versions = [argument._version for argument in arguments]
    answer = function(*arguments)
    where = arguments[0].device if arguments else torch.device("cpu")
    what = "real numbers" if dtype == "real" else dtype
    expected = f"expected a torch.Tensor of {what}, of shape {list(shape)} and on the device {where}"
    if not isinstance(answer, torch.Tensor):
        raise TypeError(f"{who} gave a {type(answer).__name__}: {expected}")
    form = f"{answer.dtype}, of shape {list(answer.shape)} and on the device {answer.device}"
    got = f"{who} returned a tensor of {form}"
    fits = not answer.is_complex() if dtype == "real" else answer.dtype == getattr(torch, dtype)
    if not fits:
        raise TypeError(f"{got}: {expected}")
    if list(answer.shape) != list(shape) or answer.device != where:
        raise ValueError(f"{got}: {expected}")
    if versions != [argument._version for argument in arguments]:
        raise ValueError(
            f"{who} changed its argument in place: expected that it returns a new tensor; use operations "
            "without a final underscore, or change a clone"
        )
    return answer
