"""Conversions of objects to arrays and texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ._settings import MOST


def rows(objects: Any, who: str, kind: str, widths: list[int | None]) -> npt.NDArray[Any]:
    """Converts objects to an aligned, contiguous array `[n, *widths]` of the dtype `kind`. A width of None
    means any width.

    An int64 array is made only of whole numbers, and a bool array only of bools. Other numbers are an error,
    because the conversion could change them.
    """
    shape = "[" + ", ".join(["n", *("k" if width is None else str(width) for width in widths)]) + "]"
    if isinstance(objects, torch.Tensor):
        objects = objects.detach().cpu().numpy()
    try:
        array = np.asarray(objects)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{who} is a {type(objects).__name__}: expected an array of {kind} and shape {shape}"
        ) from error
    if array.ndim == 0:
        raise TypeError(f"{who} is a {type(objects).__name__}: expected an array of {kind} and shape {shape}")
    if array.ndim == 1 and array.size == 0:
        # An empty list has neither a dtype nor a width, so it is converted to an empty array of the expected
        # dtype and width.
        array = np.empty((0, *(2 if width is None else width for width in widths)), dtype=kind)
    if array.dtype.kind not in {"int64": "iu", "float64": "iuf", "bool": "b"}[kind]:
        raise TypeError(f"{who} is an array of {array.dtype}: expected an array of {kind} and shape {shape}")
    if array.ndim != 1 + len(widths) or any(
        width not in (None, got) for width, got in zip(widths, array.shape[1:])
    ):
        raise ValueError(f"{who} has shape {list(array.shape)}: expected {shape}")
    if kind == "float64" and not np.isfinite(array).all():
        raise ValueError(f"{who} has a number that isn't finite: expected finite numbers; leave its row out")
    if array.dtype == np.uint64 and array.size and array.max() > MOST:
        raise ValueError(f"{who} has {array.max()}: expected numbers of at most {MOST}")
    return np.require(array, dtype=kind, requirements=["C_CONTIGUOUS", "ALIGNED"])


def lines(molecules: Any, who: str) -> list[str]:
    """Converts SMILES (each may have a name after a blank) or molecules of RDKit to a list of texts."""

    def refusal(what: str) -> TypeError:
        return TypeError(f"{who} {what}: expected Graphs, or a list of SMILES or of molecules of RDKit")

    if isinstance(molecules, str):
        raise refusal("is a str")
    try:
        iter(molecules)
    except TypeError:
        raise refusal(f"is a {type(molecules).__name__}") from None
    out = []
    for row, each in enumerate(molecules):
        if not isinstance(each, str):
            kind = type(each)
            if not kind.__module__.startswith("rdkit") or "Mol" not in kind.__name__:
                raise refusal(f"has a {kind.__name__} in row {row}")
            from rdkit import Chem

            each = Chem.MolToSmiles(each)
        out.append(each)
    return out
