"""Exports RDKit's table of fragments, which synthetic accessibility is read from, as text for `AccessibilityTable::read`.

    python -m venv venv && venv/bin/pip install rdkit==2026.9.1
    venv/bin/python scripts/molecules/export_sa_table.py sa_table.txt

Each line is a contribution and the numbers of the fragments that have it: those of `Contrib/SA_Score/fpscores.pkl.gz`, which the package
`rdkit` brings (Ertl and Schuffenhauer 2009; BSD licence). With `--golden`, no other fragments than the molecules of
`tests/golden/molecules.json` have:

    venv/bin/python scripts/molecules/export_sa_table.py gym/molecules/tests/golden/sa_table.txt --golden
"""

import gzip
import json
import pickle
import sys
from pathlib import Path

from rdkit import Chem
from rdkit.Chem import RDConfig, rdFingerprintGenerator

GOLDEN = Path(__file__).resolve().parents[2] / "gym/molecules/tests/golden/molecules.json"


def fragments_of_golden():
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2)
    molecules = [Chem.MolFromSmiles(case["smiles"]) for case in json.loads(GOLDEN.read_text())["cases"] if case["valid"]]
    return {number for molecule in molecules for number in generator.GetSparseCountFingerprint(molecule).GetNonzeroElements()}


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--golden"]):
        sys.exit(__doc__)
    with gzip.open(Path(RDConfig.RDContribDir) / "SA_Score" / "fpscores.pkl.gz") as file:
        rows = pickle.load(file)
    if sys.argv[2:]:
        wanted = fragments_of_golden()
        rows = [[row[0], *(number for number in row[1:] if number in wanted)] for row in rows]
    lines = [" ".join([repr(float(row[0])), *map(str, row[1:])]) + "\n" for row in rows if len(row) > 1]
    Path(sys.argv[1]).write_text("".join(lines))
    print(f"{sum(len(row) - 1 for row in rows)} fragments in {sys.argv[1]}")


if __name__ == "__main__":
    main()
