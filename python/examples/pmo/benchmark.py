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

# The published areas, mean of five runs: REINVENT by Gao et al. 2022, Genetic GFN by Kim et al. 2024.
# Genetic GFN was run with PyTDC 0.4.0. The code of Gao et al. asks for PyTDC 0.3.6, in which four oracles
# (both isomers, sitagliptin and zaleplon) count atoms wrongly, so that REINVENT's numbers of these may not
# compare.
PUBLISHED = {
    "albuterol_similarity": (0.882, 0.949),
    "amlodipine_mpo": (0.635, 0.761),
    "celecoxib_rediscovery": (0.710, 0.802),
    "deco_hop": (0.666, 0.733),
    "fexofenadine_mpo": (0.784, 0.856),
    "isomers_c7h8n2o2": (0.852, 0.969),
    "isomers_c9h10n2o2pf2cl": (0.642, 0.897),
    "median1": (0.356, 0.379),
    "median2": (0.276, 0.294),
    "mestranol_similarity": (0.618, 0.708),
    "osimertinib_mpo": (0.837, 0.860),
    "perindopril_mpo": (0.537, 0.595),
    "qed": (0.941, 0.942),
    "ranolazine_mpo": (0.760, 0.819),
    "scaffold_hop": (0.560, 0.615),
    "sitagliptin_mpo": (0.021, 0.634),
    "thiothixene_rediscovery": (0.534, 0.583),
    "troglitazone_rediscovery": (0.441, 0.511),
    "valsartan_smarts": (0.178, 0.135),
    "zaleplon_mpo": (0.358, 0.552),
}


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
