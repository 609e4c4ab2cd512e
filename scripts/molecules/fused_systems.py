"""Writes the golden file of fused aromatic systems. Their SMILES don't mark the single bonds between aromatic
rings.

    python -m venv venv && venv/bin/pip install rdkit==2026.9.1
    venv/bin/python scripts/molecules/fused_systems.py > gym/molecules/tests/golden/fused_systems.json

Pieces such as benzene, pyridine, thiophene, pyrrole and naphthalene are joined by two bonds. This forms rings
of four or five atoms or, as in perylene, of six. In the file, `smiles` is RDKit's text without the marks `-`
of single bonds, `canonical` is the text with these marks, and `kekulized` has double bonds instead of
aromatic atoms. A case is used only if RDKit itself reads `smiles` as the same molecule as `canonical`.
"""

import json
import random

import rdkit
from rdkit import Chem, RDLogger

PIECES = [
    "c1ccccc1",
    "c1ccncc1",
    "c1ccsc1",
    "c1cc[nH]c1",
    "c1ccoc1",
    "c1ccc2ccccc2c1",
    "c1cnccn1",
    "c1ccc2occc2c1",
    "c1cc2ccc3cccc4ccc(c1)c2c34",
]
BRIDGES = [None, "C", "O", "S", "N"]


def is_free(molecule, a):
    atom = molecule.GetAtomWithIdx(a)
    return atom.GetSymbol() == "C" and atom.GetTotalNumHs() == 1 and atom.GetIsAromatic()


def near_pairs(molecule):
    """Returns the pairs of atoms that can be bonded to another molecule to form a ring. Both are aromatic
    carbon atoms with a hydrogen. They are neighbours, or have one atom between them (peri)."""
    distance = Chem.GetDistanceMatrix(molecule)
    n = molecule.GetNumAtoms()
    return [
        (a, b)
        for a in range(n)
        for b in range(n)
        if a != b and distance[a][b] <= 2 and is_free(molecule, a) and is_free(molecule, b)
    ]


def join(one, other, rng):
    """Joins two molecules by two bonds, one of which may run through an additional atom. Returns None if the
    result isn't a valid molecule."""
    pairs = near_pairs(one), near_pairs(other)
    if not all(pairs):
        return None
    (a, b), (c, d) = rng.choice(pairs[0]), rng.choice(pairs[1])
    both = Chem.RWMol(Chem.CombineMols(one, other))
    shift = one.GetNumAtoms()
    both.AddBond(a, c + shift, Chem.BondType.SINGLE)
    bridge = rng.choice(BRIDGES)
    if bridge is None:
        both.AddBond(b, d + shift, Chem.BondType.SINGLE)
    else:
        middle = both.AddAtom(Chem.Atom(bridge))
        both.AddBond(b, middle, Chem.BondType.SINGLE)
        both.AddBond(middle, d + shift, Chem.BondType.SINGLE)
    for atom in both.GetAtoms():
        if atom.GetSymbol() == "C":
            atom.SetNoImplicit(False)
            atom.SetNumExplicitHs(0)
    molecule = both.GetMol()
    if Chem.SanitizeMol(molecule, catchErrors=True) != Chem.SanitizeFlags.SANITIZE_NONE:
        return None
    return Chem.MolFromSmiles(Chem.MolToSmiles(molecule))


def main():
    RDLogger.DisableLog("rdApp.*")
    rng = random.Random(0)
    cases = {}
    while len(cases) < 150:
        molecule = Chem.MolFromSmiles(rng.choice(PIECES))
        for _ in range(rng.randint(1, 2)):
            molecule = molecule and join(molecule, Chem.MolFromSmiles(rng.choice(PIECES)), rng)
        if molecule is None:
            continue
        canonical = Chem.MolToSmiles(molecule)
        text = canonical.replace("-", "")
        again = Chem.MolFromSmiles(text)
        if text == canonical or again is None or Chem.MolToSmiles(again) != canonical:
            continue
        Chem.Kekulize(molecule, clearAromaticFlags=True)
        cases[text] = {
            "smiles": text,
            "canonical": canonical,
            "kekulized": Chem.MolToSmiles(molecule, kekuleSmiles=True),
        }
    source = f"scripts/molecules/fused_systems.py, rdkit {rdkit.__version__}"
    description = ("Aromatic SMILES without marks between aromatic rings, RDKit's text of the same molecule "
        "with them, and a Kekule form.")
    rows = ",\n  ".join(json.dumps(case) for case in cases.values())
    print(f'{{\n "source": "{source}",\n "description": "{description}",\n "cases": [\n  {rows}\n ]\n}}')


if __name__ == "__main__":
    main()
