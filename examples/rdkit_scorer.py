"""Scores molecules with RDKit. It reads one SMILES per line, and writes one number per line.

    pip install rdkit
    echo CCO | python3 examples/rdkit_scorer.py qed

Scores are 0 or more, so that they can be rewards. `qed` is from 0 to 1. `sa` is synthetic accessibility as
(10 - SA) / 9, which is 1 for the easiest molecules. `logp` is exp(logP), so that the exponent of the reward
is a factor of logP. The score of a molecule that RDKit can't read is 0.
"""

import math
import os
import sys

from rdkit import Chem, RDConfig, RDLogger
from rdkit.Chem import QED, Crippen


def sa(molecule):
    sys.path.append(os.path.join(RDConfig.RDContribDir, "SA_Score"))
    import sascorer

    return (10.0 - sascorer.calculateScore(molecule)) / 9.0


SCORES = {"qed": QED.qed, "sa": sa, "logp": lambda molecule: math.exp(Crippen.MolLogP(molecule))}


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in SCORES:
        sys.exit(
            f"the arguments are {sys.argv[1:]}, expected the name of one score: rdkit_scorer.py "
            f"{'|'.join(SCORES)}"
        )
    score = SCORES[sys.argv[1]]
    RDLogger.DisableLog("rdApp.*")
    for line in sys.stdin:
        molecule = Chem.MolFromSmiles(line.strip())
        print(score(molecule) if molecule is not None and molecule.GetNumAtoms() else 0.0, flush=True)


if __name__ == "__main__":
    main()
