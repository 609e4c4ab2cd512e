"""Checks of the arguments of public functions."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from difflib import get_close_matches
from inspect import getattr_static
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ._settings import LARGEST_SEED, MOST, Bounds, Settings, check, kind_name
from ._conditioning import Conditioning, Conditions
from ._rewards import CachedReward, ConditionalGridReward, Reward


def check_kind(name: str, value: Any, base: type, example: str) -> None:
    """Raises a `TypeError` for a value that isn't an object of a subclass of `base`."""
    if isinstance(value, base) and type(value) is not base:
        return
    raise TypeError(
        f"{name} is {kind_name(value)}: expected an object of a class of the library, such as {example}"
    )


def describe(*parts: Any) -> list[Any]:
    """Returns the description of a trainer's parts that is stored in checkpoints. A run can be resumed only
    if its description equals the description in the checkpoint. Each function is described by the words "a
    function"."""
    return [
        [type(part).__name__, part._described()] if isinstance(part, Settings) else "a function"
        for part in parts
    ]


def existing_path(path: str | os.PathLike[str]) -> str:
    """Returns the path of a checkpoint as text. Raises an error for a path that doesn't exist."""
    path = os.fsdecode(path)
    if not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, "the path of the checkpoint doesn't exist", path)
    return path


def check_seed(value: int) -> int:
    """Returns a seed unchanged. Raises an error for a number that can't be a seed of the library."""
    return count(value, "seed", most=LARGEST_SEED)


def reward_arguments(reward: Any) -> list[tuple[dict[str, Any] | None, Any, int | None]]:
    """Returns three values for each reward of a trainer: the settings of a reward of the library, the
    function of a custom reward, and the capacity of the reward's cache. The values that a reward doesn't have
    are None."""
    if isinstance(reward, (list, tuple)):
        return [one for each in reward for one in reward_arguments(each)]
    if (
        isinstance(reward, type)
        or type(reward) is Reward
        or not (isinstance(reward, Reward) or callable(reward))
    ):
        raise TypeError(
            f"reward is {kind_name(reward)}: expected an object like RingReward(), or a function of a batch "
            f"of states"
        )
    if isinstance(reward, CachedReward):
        return [
            (settings, function, reward.capacity) for settings, function, _ in reward_arguments(reward.reward)
        ]
    return [(reward._by_class(), None, None)] if isinstance(reward, Reward) else [(None, reward, None)]


def condition_source(drawn_from: Any, reward: Any) -> tuple[Any, int]:
    """Returns the source of a trainer's conditions, in the form that the extension reads, and the width of a
    condition."""
    if isinstance(drawn_from, Conditioning):
        if drawn_from.width == 0:
            raise ValueError(
                f"conditions is {drawn_from!r}, in which every part is fixed: expected at least one part "
                "that is drawn, or None"
            )
        return drawn_from._conditioner, drawn_from.width
    if isinstance(drawn_from, Conditions):
        return drawn_from.function, drawn_from.width
    if drawn_from is not None:
        expected = "expected Conditions(function, width), a Conditioning, or None"
        raise TypeError(f"conditions is {kind_name(drawn_from)}: {expected}")
    # The library's own conditional reward has a condition of width 1, which by default is drawn uniformly
    # from 0 to 1.
    return None, 1 if isinstance(reward, ConditionalGridReward) else 0


def count(n: int, name: str = "n", least: int = 0, most: int = MOST) -> int:
    """Returns `n` as an int. Raises an error for anything but a whole number from `least` to `most`."""
    check(n, name, int, Bounds(least, most))
    return int(n)


def chosen(index: Any, n: int, what: str) -> npt.NDArray[np.int64]:
    """Returns the indices that `index` selects from the indices 0 to n - 1. `index` is a number, a slice, a
    one-dimensional list or array of whole numbers, or a mask. `what` is a noun for error messages."""
    if not isinstance(index, slice):
        try:
            array = np.asarray(index)
        except (TypeError, ValueError):
            array = np.asarray(None)
        if array.shape == (0,):
            array = array.astype(np.int64)
        # Single bools aren't indices, although Python treats them as numbers. Unsigned numbers of 2**63 or
        # more aren't indices, because numpy would convert them to negative numbers.
        if array.ndim > 1 or array.dtype.kind not in "iub" or array.shape == () and array.dtype == bool:
            expected = "a number, a slice, a flat array of whole numbers, or a mask of bool"
            raise TypeError(f"{what} can't be chosen by a {type(index).__name__}: expected {expected}")
        index = np.minimum(array, np.uint64(2**63 - 1)) if array.dtype.kind == "u" else array
    return np.atleast_1d(np.arange(n, dtype=np.int64)[index])


# The names of the methods of rules for graphs.
OF_GRAPHS = ("restrict", "can_exit", "is_reachable")
# The names of the methods of rules for graphs and of rules for vectors.
_ASKED = (*OF_GRAPHS, "can_end")


def check_rules(rules: Any, *methods: str) -> None:
    """Raises an error if custom rules define none of the methods with the names `methods`. Also raises an
    error if the name of a method is misspelt, because the method would never be called."""
    if rules is None:
        return
    if isinstance(rules, type) or not any(hasattr(rules, name) for name in methods):
        raise TypeError(
            f"rules is {kind_name(rules)}: expected an object with at least one of the methods "
            f"{', '.join(methods)}"
        )
    for name in dir(rules):
        if name.startswith("_") or name in methods or not callable(getattr_static(rules, name)):
            continue
        meant = get_close_matches(name.lower(), _ASKED if "restrict" in methods else methods, 1, 0.8)
        if meant:
            wanted = meant[0] if meant[0] in methods else "can_exit" if "can_exit" in methods else "can_end"
            raise TypeError(
                f"rules has a method `{name}`, which the library never calls: rename it to `{wanted}` if "
                f"that is meant, or to `_{name}` if only your own code calls it"
            )


def numbers(answer: Any, n: int, who: str, what: str) -> npt.NDArray[np.float64]:
    """Converts an array of numbers to a float64 array with an entry for each of `n` states. In error
    messages, `who` is the function that returned the array, and `what` the meaning of its numbers."""
    expected = f"expected {what} of each state, as a flat array or list of real numbers"
    refused = f"{who} gave a {type(answer).__name__}: {expected}"
    if isinstance(answer, torch.Tensor):
        # numpy can't read a tensor that has gradients, is on another device, or has a dtype that numpy lacks
        # (bfloat16).
        answer = answer.detach().cpu()
        answer = answer.double() if answer.is_floating_point() else answer
    try:
        array = np.asarray(answer)
    except Exception as error:
        raise TypeError(refused) from error
    # Only bools, whole numbers and real numbers are accepted. numpy would convert a complex number to its
    # real part, and a text to the number that it spells.
    if array.dtype.kind not in "biuf" or isinstance(answer, np.ma.MaskedArray):
        raise TypeError(
            f"{who} gave a {type(answer).__name__} whose elements have the type {array.dtype}: {expected}"
        )
    if array.ndim != 1:
        raise ValueError(f"{who} gave an array of shape {array.shape}: {expected}")
    if len(array) != n:
        raise ValueError(f"{who} gave {len(array)} numbers for {n} states: expected {what} of each state")
    return np.require(array, dtype=np.float64, requirements=["ALIGNED"])


def answers(answer: Any, method: str, kind: str, shape: Sequence[int], below: int) -> npt.NDArray[Any]:
    """Checks the answer of a method of custom rules, an array of the shape `shape`, and returns it. The
    elements of the array must be bools, or whole numbers from 0 to `below` - 1, which are returned as
    int64."""
    what = "bool" if kind == "bool" else "whole numbers"
    expected = f"expected a numpy array of {what} and shape {list(shape)}"
    if not isinstance(answer, np.ndarray):
        raise TypeError(f"`{method}` gave a {type(answer).__name__}: {expected}")
    got = f"`{method}` gave an array of {answer.dtype} and shape {answer.shape}"
    # If one bool per state is expected, a two-dimensional array is a `TypeError`, like an array of the wrong
    # dtype. The method probably returned the answer of another method, such as a bool per move.
    has_columns = kind == "bool" and len(shape) == 1 and answer.ndim != 1
    if has_columns or answer.dtype.kind not in ("b" if kind == "bool" else "iu"):
        raise TypeError(f"{got}: {expected}")
    if list(answer.shape) != list(shape):
        raise ValueError(f"{got}: {expected}")
    if kind != "bool" and answer.size:
        wrong = answer[(answer < 0) | (answer >= below)]
        if wrong.size:
            raise ValueError(f"`{method}` gave {wrong[0]}: expected 0 to {below - 1}")
    return answer.astype(kind)
