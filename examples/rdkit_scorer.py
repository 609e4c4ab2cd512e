"""Scores molecules with RDKit: one SMILES per line in, one number per line out.

    pip install rdkit
    echo CCO | python3 examples/rdkit_scorer.py qed

Scores are 0 or more, so that they can be rewards: `qed` (0 to 1), `sa` (synthetic accessibility as (10 - SA)
/ 9, 1 being the easiest) and `logp` (exp(logP), so that the reward exponent weighs logP itself). A molecule
that RDKit refuses scores 0.
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
