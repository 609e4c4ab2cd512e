"""Offspring of molecules: parts of two molecules are joined, and the result may be changed in one place."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from rdkit import Chem
from smiles import canonical

_ELEMENTS = (6, 7, 8, 9, 16, 17)
_ELEMENT_SHARES = (0.4, 0.2, 0.2, 0.08, 0.06, 0.06)
_ORDERS = (Chem.BondType.SINGLE, Chem.BondType.DOUBLE, Chem.BondType.TRIPLE)
_ORDER_SHARES = (0.7, 0.25, 0.05)
_MAX_ATOMS = 50
_MAX_RING = 7

Generator = np.random.Generator


def offspring(ranked: Sequence[str], n: int, mutation: float, rng: Generator) -> list[str]:
    """Returns up to `n` new SMILES from parents that are drawn by their ranks. The parent of rank r (the best
    has rank 0) is drawn in proportion to 1 / (0.01 N + r), for N molecules.

    mutation
        The probability that an offspring is changed in one place.
    """
    weights = 1.0 / (0.01 * len(ranked) + np.arange(len(ranked)))
    found: list[str] = []
    for _ in range(4 * n):
        first, second = rng.choice(len(ranked), size=2, p=weights / weights.sum())
        child = _cross(_kekulized(ranked[first]), _kekulized(ranked[second]), rng)
        if child is not None and rng.random() < mutation:
            _CHANGES[rng.integers(len(_CHANGES))](child, rng)
        text = None if child is None else _checked(child)
        if text is not None and text not in found:
            found.append(text)
        if len(found) == n:
            break
    return found


def _kekulized(smiles: str) -> Chem.RWMol:
    """Returns a molecule without aromatic bonds, so that each of its bonds can be cut."""
    molecule = Chem.RWMol(Chem.MolFromSmiles(smiles))
    Chem.Kekulize(molecule, clearAromaticFlags=True)
    return molecule


def _checked(molecule: Chem.RWMol) -> str | None:
    """Returns the SMILES of an edited molecule, or None if it isn't one molecule of the usual valences, or if
    it or one of its rings is too large."""
    for atom in molecule.GetAtoms():
        atom.SetNoImplicit(False)
        atom.SetNumExplicitHs(0)
    if molecule.GetNumAtoms() > _MAX_ATOMS or Chem.SanitizeMol(molecule, catchErrors=True):
        return None
    if any(len(ring) > _MAX_RING for ring in molecule.GetRingInfo().AtomRings()):
        return None
    return canonical(Chem.MolToSmiles(molecule))


def _cut(molecule: Chem.RWMol, in_ring: bool, rng: Generator) -> tuple[set[int], list[int]] | None:
    """Cuts a bond outside of rings, or two bonds of one ring. Returns the atoms of one of the two parts, and
    the ends of the cut bonds in this part. Returns None if there aren't two parts."""
    rings = molecule.GetRingInfo()
    if in_ring:
        if rings.NumRings() == 0:
            return None
        ring = rings.BondRings()[rng.integers(rings.NumRings())]
        chosen = rng.choice(ring, size=2, replace=False).tolist()
    else:
        free = [bond.GetIdx() for bond in molecule.GetBonds() if not rings.NumBondRings(bond.GetIdx())]
        if not free:
            return None
        chosen = [free[rng.integers(len(free))]]
    bonds = [molecule.GetBondWithIdx(k) for k in chosen]
    ends = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in bonds]
    for first, second in ends:
        molecule.RemoveBond(first, second)
    parts = Chem.GetMolFrags(molecule)
    if len(parts) != 2:
        return None
    part = set(parts[rng.integers(2)])
    return part, [first if first in part else second for first, second in ends]


def _cross(first: Chem.RWMol, second: Chem.RWMol, rng: Generator) -> Chem.RWMol | None:
    """Joins a part of one molecule to a part of another by single bonds."""
    in_ring = rng.random() < 0.5
    cuts = _cut(first, in_ring, rng), _cut(second, in_ring, rng)
    if cuts[0] is None or cuts[1] is None:
        return None
    shift = first.GetNumAtoms()
    joined = Chem.RWMol(Chem.CombineMols(first, second))
    others = [end + shift for end in cuts[1][1]]
    for end, other in zip(cuts[0][1], rng.permutation(others).tolist()):
        if joined.GetBondBetweenAtoms(end, other) is not None:
            return None
        joined.AddBond(end, other, Chem.BondType.SINGLE)
    kept = cuts[0][0] | {atom + shift for atom in cuts[1][0]}
    for atom in reversed(range(joined.GetNumAtoms())):
        if atom not in kept:
            joined.RemoveAtom(atom)
    return joined


def _any_atom(molecule: Chem.RWMol, rng: Generator) -> int:
    return int(rng.integers(molecule.GetNumAtoms()))


def _new_atom(rng: Generator) -> Chem.Atom:
    return Chem.Atom(int(rng.choice(_ELEMENTS, p=_ELEMENT_SHARES)))


def _any_order(rng: Generator) -> Chem.BondType:
    return _ORDERS[rng.choice(3, p=_ORDER_SHARES)]


def _replace_atom(molecule: Chem.RWMol, rng: Generator) -> None:
    molecule.ReplaceAtom(_any_atom(molecule, rng), _new_atom(rng))


def _append_atom(molecule: Chem.RWMol, rng: Generator) -> None:
    place = _any_atom(molecule, rng)
    molecule.AddBond(place, molecule.AddAtom(_new_atom(rng)), _any_order(rng))


def _insert_atom(molecule: Chem.RWMol, rng: Generator) -> None:
    if molecule.GetNumBonds() == 0:
        return
    bond = molecule.GetBondWithIdx(int(rng.integers(molecule.GetNumBonds())))
    ends = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
    molecule.RemoveBond(*ends)
    new = molecule.AddAtom(_new_atom(rng))
    for end in ends:
        molecule.AddBond(end, new, Chem.BondType.SINGLE)


def _remove_atom(molecule: Chem.RWMol, rng: Generator) -> None:
    """Removes an atom of one or two neighbours. Two neighbours are joined."""
    atom = molecule.GetAtomWithIdx(_any_atom(molecule, rng))
    ends = [neighbour.GetIdx() for neighbour in atom.GetNeighbors()]
    if not 1 <= len(ends) <= 2:
        return
    if len(ends) == 2 and molecule.GetBondBetweenAtoms(*ends) is None:
        molecule.AddBond(*ends, Chem.BondType.SINGLE)
    molecule.RemoveAtom(atom.GetIdx())


def _change_order(molecule: Chem.RWMol, rng: Generator) -> None:
    if molecule.GetNumBonds() > 0:
        bond = molecule.GetBondWithIdx(int(rng.integers(molecule.GetNumBonds())))
        bond.SetBondType(_any_order(rng))


def _close_ring(molecule: Chem.RWMol, rng: Generator) -> None:
    """Adds a bond between two atoms, so that a ring of five or six atoms is closed."""
    distances = Chem.GetDistanceMatrix(molecule, force=True)
    pairs = np.argwhere(np.isin(np.triu(distances), (4, 5)))
    if len(pairs) > 0:
        first, second = pairs[rng.integers(len(pairs))].tolist()
        molecule.AddBond(first, second, Chem.BondType.SINGLE)


def _open_ring(molecule: Chem.RWMol, rng: Generator) -> None:
    rings = Chem.GetSymmSSSR(molecule)
    if len(rings) > 0:
        ring = list(rings[int(rng.integers(len(rings)))])
        k = int(rng.integers(len(ring)))
        molecule.RemoveBond(ring[k - 1], ring[k])


_CHANGES: list[Callable[[Chem.RWMol, Generator], None]] = [
    _replace_atom,
    _append_atom,
    _insert_atom,
    _remove_atom,
    _change_order,
    _close_ring,
    _open_ring,
]
