"""Checks the SMILES and molfiles of sampled molecules with RDKit, which must read all of them and distinguish
all distinct ones.

    python -m venv venv && venv/bin/pip install rdkit==2026.9.1
    cargo run --release --example reproduce -- molecule --max-atoms 20 --all-elements --lr 0 --steps 1 \
        --random --samples 100000 --out samples
    venv/bin/python scripts/molecules/check_molecules.py samples/samples.csv
    venv/bin/python scripts/molecules/check_molecules.py samples/molecules.sdf

The golden molecules can be checked, too:

    venv/bin/python scripts/molecules/check_molecules.py gym/molecules/tests/golden/molecules.json >
    golden.smi venv/bin/python -c 'import gfn_rs as gfn; s = open("golden.smi").read().split(); gfn.Ranking(s,
    [0.0] * len(s)).write("golden")' venv/bin/python scripts/molecules/check_molecules.py golden/molecules.sdf

The same goes for stereoisomers:

    cargo run --release --example reproduce -- molecule --max-atoms 10 --stereo --lr 0 --steps 1 \
        --random --samples 100000 --out samples
    venv/bin/python scripts/molecules/check_molecules.py samples/samples.csv

and for molecules built from fragments:

    cargo run --release --example reproduce -- fragments --all-fragments --max-fragments 6 --lr 0 --steps 1 \
        --random --samples 100000 --out samples

For a CSV file, the script reads the column `smiles`, which holds the library's canonical SMILES. It fails and
lists the molecules if RDKit can't read a SMILES, or finds radicals in it. It also fails if two different
SMILES are one molecule according to both perceptions of stereochemistry that RDKit has, an older and a newer
one. It can't check that a SMILES is that of the molecule that was sampled.

For an SD file, the script reads every record. It fails if RDKit reads another molecule from the molfile than
from the data item `smiles`, stereochemistry included. It also counts four faults of drawings: two atoms that
are nearer than 0.4 bond lengths, a bond that is shorter than 0.6 or longer than 1.5, bonds that cross, and a
bond whose length isn't 1.

For the golden file (JSON), the script prints the SMILES of the valid molecules.
"""

import csv
import json
import math
import sys
from collections import defaultdict
from itertools import combinations

from rdkit import Chem, RDLogger


BOND = 1.5
"""The length of a bond in a drawing, in the units of the library's molfiles."""


def drawing_faults(molecule):
    """Returns a flag for each of four faults, True if the drawing has the fault: two atoms nearer than 0.4
    bond lengths, a bond shorter than 0.6 or longer than 1.5, bonds that cross, a bond of a length other
    than 1."""
    places = molecule.GetConformer().GetPositions()[:, :2] / BOND
    bonds = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()]
    lengths = [math.dist(places[a], places[b]) for a, b in bonds]

    def side(a, b, c):
        (x, y), (u, v) = places[b] - places[a], places[c] - places[a]
        return x * v - y * u

    def cross(one, other):
        (a, b), (c, d) = one, other
        apart = len({a, b, c, d}) == 4
        return apart and side(a, b, c) * side(a, b, d) < -1e-9 and side(c, d, a) * side(c, d, b) < -1e-9

    return (
        any(math.dist(p, q) < 0.4 for p, q in combinations(places, 2)),
        any(not 0.6 <= length <= 1.5 for length in lengths),
        any(cross(one, other) for one, other in combinations(bonds, 2)),
        any(abs(length - 1) > 2e-3 for length in lengths),
    )


def check_sdf(path):
    """Checks that RDKit reads the same molecule from the molfile and from the SMILES of each record."""
    wrong, n, faults = [], 0, [0, 0, 0, 0]
    for n, molecule in enumerate(Chem.SDMolSupplier(path), start=1):
        if molecule is None:
            wrong.append(f"record {n} is refused")
            continue
        text, read = molecule.GetProp("smiles"), Chem.MolToSmiles(molecule)
        if read != Chem.MolToSmiles(Chem.MolFromSmiles(text)):
            wrong.append(f"record {n}: {text} is read as {read}")
        faults = [count + fault for count, fault in zip(faults, drawing_faults(molecule))]
    print(f"{n} records: {len(wrong)} wrong")
    print(
        ("drawings: {} with atoms too near, {} with bonds too short or long, {} with crossings, {} not "
            "regular").format(
            *faults
        )
    )
    for problem in wrong[:20]:
        print(problem)
    sys.exit(bool(wrong or n == 0))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    RDLogger.DisableLog("rdApp.*")
    if sys.argv[1].endswith(".sdf"):
        check_sdf(sys.argv[1])
    if sys.argv[1].endswith(".json"):
        with open(sys.argv[1]) as file:
            cases = [case for case in json.load(file)["cases"] if case["valid"]]
        print("\n".join(case["smiles"] for case in cases))
        return
    with open(sys.argv[1], newline="") as file:
        texts = [row["smiles"] for row in csv.DictReader(file)]
    refused, same = [], [defaultdict(set), defaultdict(set)]
    for text in set(texts):
        molecule = Chem.MolFromSmiles(text)
        if molecule is None or any(atom.GetNumRadicalElectrons() for atom in molecule.GetAtoms()):
            refused.append(text)
            continue
        for groups, legacy in zip(same, (True, False)):
            Chem.SetUseLegacyStereoPerception(legacy)
            groups[Chem.MolToSmiles(Chem.MolFromSmiles(text))].add(text)
    pairs = [
        {pair for group in groups.values() for pair in combinations(sorted(group), 2)} for groups in same
    ]
    split = sorted(pairs[0] & pairs[1])
    stereo = len(pairs[0] ^ pairs[1])
    print(
        f"{len(texts)} molecules, {len(set(texts))} distinct: {len(refused)} refused, {len(split)} pairs "
        f"that are one"
    )
    print(f"{stereo} pairs that are one for one of RDKit's two perceptions of stereochemistry only")
    for problem in (refused + split)[:20]:
        print(problem)
    sys.exit(bool(refused or split))


if __name__ == "__main__":
    main()
