"""Conversions of objects to arrays and texts."""

from __future__ import annotations

from collections.abc import Sequence
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


def is_rdkit(value: Any) -> bool:
    """Returns True for a molecule of RDKit."""
    return type(value).__module__.startswith("rdkit") and "Mol" in type(value).__name__


def is_missing(value: Any) -> bool:
    """Returns True for the entry of an empty cell of a table: None, NaN, or the NA of pandas."""
    is_nan = isinstance(value, float) and value != value
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")


def scaffold_smiles(scaffold: Any, attachments: Sequence[int] | None) -> tuple[str, list[int] | None]:
    """Converts a molecule of RDKit, and numbers of its atoms, to a SMILES and the numbers that these atoms
    have in the SMILES."""
    if not is_rdkit(scaffold):
        raise TypeError(
            f"scaffold is a {type(scaffold).__name__}: expected a SMILES, a molecule of RDKit, or None"
        )
    from rdkit import Chem

    smiles = Chem.MolToSmiles(scaffold)
    if attachments is None:
        return smiles, None
    order = scaffold.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"]
    numbers = [atom for atom in order if scaffold.GetAtomWithIdx(atom).GetAtomicNum() != 1]
    if wrong := set(attachments) - set(numbers):
        raise ValueError(
            f"attachments has {min(wrong)}: expected indices of heavy atoms of the scaffold, as RDKit's "
            f"`GetIdx` returns them: {sorted(numbers)}"
        )
    return smiles, [numbers.index(atom) for atom in attachments]


def lines(molecules: Any, who: str, missing: str | None = None) -> list[str]:
    """Converts SMILES (each may have a name after a blank) or molecules of RDKit to a list of texts. The text
    `missing` replaces missing entries, which are an error by default."""

    def refusal(what: str) -> TypeError:
        return TypeError(f"{who} {what}: expected Graphs, or a list of SMILES or of molecules of RDKit")

    if isinstance(molecules, str):
        raise refusal("is a str")
    if hasattr(molecules, "iloc") and hasattr(molecules, "columns"):
        raise TypeError(f"{who} is a data frame: expected one of its columns, such as frame[\"smiles\"]")
    try:
        iter(molecules)
    except TypeError:
        raise refusal(f"is a {type(molecules).__name__}") from None
    out = []
    for row, each in enumerate(molecules):
        if missing is not None and is_missing(each):
            each = missing
        if not isinstance(each, str):
            if is_missing(each):
                raise TypeError(
                    f"{who} has a {type(each).__name__} in row {row}, an empty cell: drop it, or use "
                    "`read_molecules`, which leaves empty cells out"
                )
            if not is_rdkit(each):
                raise refusal(f"has a {type(each).__name__} in row {row}")
            from rdkit import Chem

            each = Chem.MolToSmiles(each)
        out.append(each)
    return out
