"""Writes the part of RDKit's table of synthetic accessibility that is needed for
`tests/golden/molecules.json`.

    python -m venv venv && venv/bin/pip install rdkit==2026.9.1
    venv/bin/python scripts/molecules/golden_sa_table.py gym/molecules/tests/golden/sa_table.txt

Each line has a contribution to the score, and the hashes of the fragments with this contribution. The table
is `Contrib/SA_Score/fpscores.pkl.gz` in the package `rdkit` (Ertl and Schuffenhauer 2009; BSD licence).
"""

import gzip
import json
import pickle
import sys
from pathlib import Path

from rdkit import Chem
from rdkit.Chem import RDConfig, rdFingerprintGenerator

GOLDEN = Path(__file__).resolve().parents[2] / "gym/molecules/tests/golden/molecules.json"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2)
    molecules = [
        Chem.MolFromSmiles(case["smiles"])
        for case in json.loads(GOLDEN.read_text())["cases"]
        if case["valid"]
    ]
    used = {
        number
        for molecule in molecules
        for number in generator.GetSparseCountFingerprint(molecule).GetNonzeroElements()
    }
    with gzip.open(Path(RDConfig.RDContribDir) / "SA_Score" / "fpscores.pkl.gz") as file:
        rows = [[row[0], *(number for number in row[1:] if number in used)] for row in pickle.load(file)]
    lines = [" ".join([repr(float(row[0])), *map(str, row[1:])]) + "\n" for row in rows if len(row) > 1]
    Path(sys.argv[1]).write_text("".join(lines))
    print(f"{sum(len(row) - 1 for row in rows)} fragments in {sys.argv[1]}")


if __name__ == "__main__":
    main()
