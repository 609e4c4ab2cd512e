"""SMILES as sequences of tokens, for `TokenSequence`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from rdkit import Chem, RDLogger

RDLogger.DisableLog("rdApp.*")

_TOKEN = re.compile(r"\[[^\]]+\]|Br|Cl|%\d\d|.")


def canonical(smiles: str) -> str | None:
    """Returns RDKit's canonical SMILES without stereochemistry. Returns None for a text that isn't one
    molecule, and for the rare molecules whose SMILES RDKit itself can't read."""
    molecule = Chem.MolFromSmiles(smiles) if smiles else None
    if molecule is None:
        return None
    text = Chem.MolToSmiles(molecule, isomericSmiles=False)
    return None if "." in text or Chem.MolFromSmiles(text) is None else text


class Vocabulary:
    """The tokens of SMILES (atoms, bonds, brackets and digits of rings), in a fixed order.

    tokens
        The tokens. Token k is entry k + 1 of a state of `TokenSequence`, in which 0 is an empty position.
    length
        The largest number of tokens of a SMILES.

    >>> vocabulary = Vocabulary(["C", "Cl", "O"], length=4)
    >>> rows, fits = vocabulary.encode(["CCl", "CCN"])
    >>> rows.tolist(), fits.tolist(), vocabulary.decode(rows)
    ([[1, 2, 0, 0]], [True, False], ['CCl'])
    """

    def __init__(self, tokens: Iterable[str], length: int) -> None:
        self.tokens = list(tokens)
        self.length = length
        self._numbers = {token: k + 1 for k, token in enumerate(self.tokens)}

    @classmethod
    def from_smiles(cls, smiles: Iterable[str], length: int, least: int) -> Vocabulary:
        """Collects the tokens that occur in at least `least` of the SMILES."""
        counts = Counter(token for text in smiles for token in set(_TOKEN.findall(text)))
        return cls(sorted(token for token, n in counts.items() if n >= least), length)

    def encode(self, smiles: Iterable[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Returns the states of the SMILES that can be written with these tokens, and a mask of them."""
        texts = [_TOKEN.findall(text) for text in smiles]
        fits = [len(text) <= self.length and all(token in self._numbers for token in text) for text in texts]
        rows = np.zeros((sum(fits), self.length), dtype=np.int64)
        for row, text in zip(rows, (text for text, fit in zip(texts, fits) if fit)):
            row[: len(text)] = [self._numbers[token] for token in text]
        return rows, np.array(fits, dtype=bool)

    def decode(self, states: npt.NDArray[np.int64]) -> list[str]:
        """Returns the text of each state, which may be no valid SMILES."""
        return ["".join(self.tokens[number - 1] for number in row if number > 0) for row in states]
