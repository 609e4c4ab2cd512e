"""Writes the golden file of random conjugated rings with hetero atoms. The rings have 5 to 14 atoms, and are
single or fused. The file lists their aromatic atoms according to RDKit.

    python -m venv venv && venv/bin/pip install rdkit==2026.9.1
    venv/bin/python scripts/molecules/hetero_rings.py > gym/molecules/tests/golden/hetero_rings.json
"""

import json
import random

import rdkit
from rdkit import Chem, RDLogger

RING = ["C"] * 6 + ["N", "N", "O", "S"]
FUSED = ["C"] * 6 + ["N", "O", "S"]


def draw_rings(rng):
    """Returns a molecule of one to three random rings with single bonds. The second and the third ring are
    fused to a bond of an earlier ring."""
    molecule, n = Chem.RWMol(), rng.choice([5, 6, 7, 8, 9, 9, 10, 10, 11, 12, 13, 14])
    for _ in range(n):
        molecule.AddAtom(Chem.Atom(rng.choice(RING)))
    for a in range(n):
        molecule.AddBond(a, (a + 1) % n, Chem.BondType.SINGLE)
    for _ in range(rng.choice([0, 0, 1, 2])):
        bond = rng.choice(list(molecule.GetBonds()))
        last, end = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        ends = [molecule.GetAtomWithIdx(a) for a in (last, end)]
        if any(atom.GetSymbol() in "OS" or atom.GetDegree() > 2 for atom in ends):
            continue
        for _ in range(rng.choice([3, 4, 4, 5, 6, 7])):
            new = molecule.AddAtom(Chem.Atom(rng.choice(FUSED)))
            molecule.AddBond(last, new, Chem.BondType.SINGLE)
            last = new
        molecule.AddBond(last, end, Chem.BondType.SINGLE)
    return molecule


def add_double_bonds(molecule, rng):
    """Turns most of the single bonds that can be double bonds into double bonds, in random order."""
    used, bonds = set(), [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()]
    rng.shuffle(bonds)
    for a, b in bonds:
        atoms = [molecule.GetAtomWithIdx(x) for x in (a, b)]
        full = any(
            atom.GetSymbol() in "OS" or (atom.GetSymbol() == "N" and atom.GetDegree() > 2) for atom in atoms
        )
        if not full and not used & {a, b} and rng.random() < 0.97:
            molecule.GetBondBetweenAtoms(a, b).SetBondType(Chem.BondType.DOUBLE)
            used |= {a, b}
    return molecule


def main():
    RDLogger.DisableLog("rdApp.*")
    rng = random.Random(5)
    cases = {}
    while len(cases) < 600:
        read = Chem.MolFromSmiles(Chem.MolToSmiles(add_double_bonds(draw_rings(rng), rng), kekuleSmiles=True))
        if read is None:
            continue
        Chem.Kekulize(read, clearAromaticFlags=True)
        text = Chem.MolToSmiles(read, kekuleSmiles=True)
        cases[text] = "".join(
            "1" if atom.GetIsAromatic() else "0" for atom in Chem.MolFromSmiles(text).GetAtoms()
        )
    source = f"scripts/molecules/hetero_rings.py, rdkit {rdkit.__version__}"
    description = "Kekule SMILES, and for each of its atoms, in order, whether it is aromatic (1)."
    rows = ",\n  ".join(json.dumps({"smiles": text, "aromatic": flags}) for text, flags in cases.items())
    print(f'{{\n "source": "{source}",\n "description": "{description}",\n "cases": [\n  {rows}\n ]\n}}')


if __name__ == "__main__":
    main()
