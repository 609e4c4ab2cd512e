"""Objects that are given as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch


def rows(objects: Any, who: str, kind: str, widths: list[int]) -> npt.NDArray[Any]:
    """Objects as an array `[n, *widths]` of a kind; whole numbers and booleans aren't rounded from others."""
    shape = "[n, " + ", ".join(map(str, widths)) + "]"
    if isinstance(objects, torch.Tensor):
        objects = objects.detach().cpu().numpy()
    try:
        array = np.asarray(objects)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{who} is a {type(objects).__name__}: expected an array of shape {shape}") from error
    if array.ndim == 1 and array.size == 0:
        # An empty list has neither kind nor widths.
        array = np.empty((0, *widths), dtype=kind)
    if array.dtype.kind not in {"int64": "iu", "float64": "iuf", "bool": "b"}[kind]:
        raise TypeError(f"{who} is an array of {array.dtype}: expected one of {kind} and shape {shape}")
    if array.shape[1:] != tuple(widths):
        raise ValueError(f"{who} has shape {list(array.shape)}: expected {shape}")
    if kind == "float64" and not np.isfinite(array).all():
        raise ValueError(f"{who} has a number that isn't finite: leave it out")
    if array.dtype == np.uint64 and array.size and array.max() > 2**62:
        raise ValueError(f"an entry of {who} is {array.max()}: expected small numbers")
    return np.require(array, dtype=kind, requirements=["C_CONTIGUOUS", "ALIGNED"])
