"""Lists all molecules of up to four heavy atoms of C, N and O, by brute force with RDKit.

    python -m venv venv && venv/bin/pip install rdkit==2026.9.1
    venv/bin/python scripts/molecules/enumerate_molecules.py > gym/molecules/tests/golden/molecules_cno_4.smi

The script tries all labelled graphs of one to four atoms with single, double and triple bonds. A graph is
kept, as canonical SMILES, if it is connected, and if RDKit sanitises it without charges or radicals. The
script shares no code with the environment that is tested with its output.
"""

import itertools

from rdkit import Chem, RDLogger

MAX_ATOMS = 4
ELEMENTS = "CNO"
ORDERS = [None, Chem.BondType.SINGLE, Chem.BondType.DOUBLE, Chem.BondType.TRIPLE]


def is_connected(n, pairs, orders):
    reached, open_ = {0}, [0]
    while open_:
        a = open_.pop()
        for (b, c), order in zip(pairs, orders):
            if order is None or a not in (b, c):
                continue
            other = b + c - a
            if other not in reached:
                reached.add(other)
                open_.append(other)
    return len(reached) == n


def smiles(elements, pairs, orders):
    molecule = Chem.RWMol()
    for element in elements:
        molecule.AddAtom(Chem.Atom(element))
    for (a, b), order in zip(pairs, orders):
        if order is not None:
            molecule.AddBond(a, b, order)
    try:
        Chem.SanitizeMol(molecule)
    except (Chem.AtomValenceException, Chem.KekulizeException):
        return None
    # RDKit turns a nitrogen atom with five bonds into a pair of charged atoms, which is rejected here.
    if any(atom.GetFormalCharge() or atom.GetNumRadicalElectrons() for atom in molecule.GetAtoms()):
        return None
    return Chem.MolToSmiles(molecule)


def main():
    RDLogger.DisableLog("rdApp.*")
    found = set()
    for n in range(1, MAX_ATOMS + 1):
        pairs = list(itertools.combinations(range(n), 2))
        bonds = [
            orders
            for orders in itertools.product(ORDERS, repeat=len(pairs))
            if is_connected(n, pairs, orders)
        ]
        for elements in itertools.combinations_with_replacement(ELEMENTS, n):
            # The order of the elements doesn't matter, because all sets of bonds are tried for each
            # combination of elements.
            found.update(smiles(elements, pairs, orders) for orders in bonds)
    found.discard(None)
    for line in sorted(found):
        print(line)


if __name__ == "__main__":
    main()
