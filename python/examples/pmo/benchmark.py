"""The protocol of the benchmark PMO: a budget of oracle calls, and the area under the curve of the best."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from oracles import Oracle
from rdkit import Chem

CALLS = 10_000
# The curve has a point after each of these numbers of calls.
EVERY = 100
# A run ends early if the 100 best molecules were the same for this number of rounds, after the first 1,000
# calls, or if there was no new molecule for this number of rounds.
PATIENCE = 5
PATIENCE_FOR_NEW = 10


class Record:
    """The distinct molecules that an oracle scored, in the order of the calls.

    oracle
        A score of a molecule of RDKit.
    calls
        The largest number of calls. Each distinct molecule is one call.

    >>> record = Record(lambda molecule: molecule.GetNumAtoms() / 10, calls=3)
    >>> record.add(["CC", "CC", "CCO", "CCCCC", "C"]), record.is_full
    (3, True)
    >>> record.scores
    {'CC': 0.2, 'CCO': 0.3, 'CCCCC': 0.5}
    """

    def __init__(self, oracle: Oracle, calls: int = CALLS) -> None:
        self.oracle = oracle
        self.calls = calls
        self.scores: dict[str, float] = {}
        self._best_before: list[str] = []
        self._calls_before = 0
        self._same_rounds = 0
        self._rounds_without_new = 0

    def add(self, smiles: Iterable[str]) -> int:
        """Scores those of the canonical SMILES that aren't in the record, until the budget is spent. Returns
        the number of calls."""
        before = len(self.scores)
        for text in smiles:
            if self.is_full:
                break
            if text not in self.scores:
                self.scores[text] = float(self.oracle(Chem.MolFromSmiles(text)))
        return len(self.scores) - before

    @property
    def is_full(self) -> bool:
        """True if the budget of calls is spent."""
        return len(self.scores) >= self.calls

    def best(self, n: int) -> list[str]:
        """Returns the `n` molecules with the highest scores, the best first."""
        return sorted(self.scores, key=lambda text: -self.scores[text])[:n]

    def has_stopped_improving(self) -> bool:
        """Ends a round. Returns True if the last rounds improved nothing, or scored nothing new."""
        best, calls = self.best(100), len(self.scores)
        is_same = calls > 1_000 and best == self._best_before
        self._same_rounds = self._same_rounds + 1 if is_same else 0
        self._rounds_without_new = self._rounds_without_new + 1 if calls == self._calls_before else 0
        self._best_before, self._calls_before = best, calls
        return self._same_rounds >= PATIENCE or self._rounds_without_new >= PATIENCE_FOR_NEW

    def area(self, n: int = 10) -> float:
        """Returns the area under the curve of the mean score of the `n` best, divided by the budget. The
        curve starts at 0, is linear between its points, and constant after the last call."""
        values = np.array(list(self.scores.values()))
        if len(values) == 0:
            return 0.0
        points = [*range(EVERY, len(values), EVERY), len(values)]
        heights = [float(np.sort(values[:k])[-n:].mean()) for k in points]
        curve = np.trapezoid([0.0, *heights], [0, *points])
        return float(curve + (self.calls - len(values)) * heights[-1]) / self.calls
