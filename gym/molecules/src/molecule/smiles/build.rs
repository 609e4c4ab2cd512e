use petgraph::algo::maximum_matching;
use petgraph::graph::UnGraph;

use crate::molecule::aromaticity::ring_bonds;
use crate::molecule::{AtomSpec, BondOrder, Element, Molecule, MoleculeError, ValenceTable};

type Result<T> = std::result::Result<T, MoleculeError>;

/// The symbol of a bond in a SMILES: the symbol of a single, double or triple bond, or `:` for an aromatic
/// bond.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mark {
    Order(BondOrder),
    Aromatic,
}

/// An atom as it is written in a SMILES.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawAtom {
    pub(super) element: Element,
    /// `true` if the symbol of the atom is in lower case.
    pub(super) aromatic: bool,
    pub(super) charge: i8,
    /// The number of hydrogens given in the atom's brackets; `None` for an atom without brackets.
    pub(super) hydrogens: Option<u8>,
    /// The number of the atom's hydrogens that are written as separate atoms.
    pub(super) hydrogen_atoms: u8,
}

impl RawAtom {
    /// Returns the number of hydrogens that the SMILES gives for the atom, in its brackets and as separate
    /// atoms.
    fn written_hydrogens(&self) -> u8 {
        self.hydrogens.unwrap_or(0).saturating_add(self.hydrogen_atoms)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RawBond {
    pub(super) a: usize,
    pub(super) b: usize,
    pub(super) mark: Option<Mark>,
}

impl RawBond {
    /// Returns the order of the bond in the text. Bonds without a symbol and aromatic bonds count as
    /// single.
    fn order(&self) -> BondOrder {
        match self.mark {
            Some(Mark::Order(order)) => order,
            _ => BondOrder::Single,
        }
    }
}

/// Changes neutral nitrogen with five bonds, as in nitro groups, N-oxides and azides of old files, into
/// charged nitrogen, as RDKit does. A double bond to oxygen becomes single, or a triple bond to nitrogen
/// becomes double. The nitrogen with five bonds gets the charge +1 and the other atom -1. Nothing changes if
/// the table of valences has neutral nitrogen of valence 5.
pub(super) fn separate_charges(table: &ValenceTable, atoms: &mut [RawAtom], bonds: &mut [RawBond]) {
    if table.filled(Element::N, 0, 5).is_some() {
        return;
    }
    // `halves` holds twice the sum of each atom's bond orders, so that an aromatic bond, whose order is 1.5,
    // adds a whole number.
    let mut halves: Vec<usize> = atoms.iter().map(|atom| 2 * usize::from(atom.written_hydrogens())).collect();
    for bond in bonds.iter() {
        let value = match bond.mark {
            Some(Mark::Order(order)) => 2 * usize::from(order.value()),
            None if !(atoms[bond.a].aromatic && atoms[bond.b].aromatic) => 2,
            _ => 3,
        };
        halves[bond.a] += value;
        halves[bond.b] += value;
    }
    for bond in bonds {
        for (a, b) in [(bond.a, bond.b), (bond.b, bond.a)] {
            let is_neutral = |c: usize, element: Element| atoms[c].element == element && atoms[c].charge == 0;
            let lower = match bond.mark {
                _ if halves[a] != 10 || !is_neutral(a, Element::N) => continue,
                Some(Mark::Order(BondOrder::Double)) if is_neutral(b, Element::O) => BondOrder::Single,
                Some(Mark::Order(BondOrder::Triple)) if is_neutral(b, Element::N) => BondOrder::Double,
                _ => continue,
            };
            bond.mark = Some(Mark::Order(lower));
            (atoms[a].charge, atoms[b].charge) = (1, -1);
        }
    }
}

/// Assigns orders to aromatic bonds and builds the molecule.
pub(super) fn build(table: &ValenceTable, atoms: &[RawAtom], raw: &[RawBond]) -> Result<Molecule> {
    let aromatic = aromatic_bonds(atoms, raw)?;
    let (needs, specs): (Vec<bool>, Vec<AtomSpec>) =
        needs_double(table, atoms, raw, &aromatic)?.into_iter().unzip();
    let candidates: Vec<usize> =
        (0..raw.len()).filter(|&k| aromatic[k] && needs[raw[k].a] && needs[raw[k].b]).collect();
    let mates = partners(atoms.len(), raw, candidates.iter().copied());
    let left: Vec<usize> = (0..atoms.len()).filter(|&a| needs[a] && mates[a].is_none()).collect();
    if !left.is_empty() {
        return Err(MoleculeError::Kekulise { atoms: left });
    }
    let bonds: Vec<_> = raw.iter().map(|bond| (bond.a, bond.b, order(bond, &mates))).collect();
    let mut molecule = Molecule::new(table, &specs, &bonds)?;
    let is_aromatic = |k: usize| molecule.bonds()[k].aromatic;
    if candidates.iter().any(|&k| mates[raw[k].a] == Some(raw[k].b) && !is_aromatic(k)) {
        // The first placement of double bonds has one that isn't in an aromatic ring. Double bonds are
        // therefore placed again: first in aromatic rings, then between the remaining atoms. The aromatic
        // rings are already known, because they don't depend on the placement.
        let mut mates = partners(atoms.len(), raw, candidates.iter().copied().filter(|&k| is_aromatic(k)));
        let free = |&k: &usize| mates[raw[k].a].is_none() && mates[raw[k].b].is_none();
        let others =
            partners(atoms.len(), raw, candidates.iter().copied().filter(|k| !is_aromatic(*k) && free(k)));
        for (mate, other) in mates.iter_mut().zip(others) {
            *mate = mate.or(other);
        }
        if (0..atoms.len()).all(|a| !needs[a] || mates[a].is_some()) {
            for (bond, raw) in molecule.bonds_mut().iter_mut().zip(raw) {
                bond.order = order(raw, &mates);
            }
        }
    }
    Ok(molecule)
}

/// Returns the partner of each atom in a maximum matching of the atoms by the given bonds. The matched
/// bonds will be double bonds.
fn partners(n: usize, raw: &[RawBond], bonds: impl Iterator<Item = usize>) -> Vec<Option<usize>> {
    let mut graph = UnGraph::<(), (), u32>::default();
    for _ in 0..n {
        _ = graph.add_node(());
    }
    graph.extend_with_edges(bonds.map(|k| (raw[k].a as u32, raw[k].b as u32)));
    let matching = maximum_matching(&graph);
    graph.node_indices().map(|a| matching.mate(a).map(|b| b.index())).collect()
}

fn order(bond: &RawBond, mates: &[Option<usize>]) -> BondOrder {
    if mates[bond.a] == Some(bond.b) { BondOrder::Double } else { bond.order() }
}

/// Returns one flag per bond: `true` if the bond is aromatic. Aromatic bonds are written as `:`, or without
/// a symbol between two lower-case atoms of a ring.
fn aromatic_bonds(atoms: &[RawAtom], raw: &[RawBond]) -> Result<Vec<bool>> {
    let in_ring = ring_bonds(atoms.len(), raw.iter().map(|bond| (bond.a, bond.b)));
    let mut ringed = vec![false; atoms.len()];
    for (bond, _) in raw.iter().zip(&in_ring).filter(|(_, in_ring)| **in_ring) {
        (ringed[bond.a], ringed[bond.b]) = (true, true);
    }
    if let Some(atom) = (0..atoms.len()).find(|&a| atoms[a].aromatic && !ringed[a]) {
        return Err(MoleculeError::NotInRing { atom });
    }
    let one = |(bond, in_ring): (&RawBond, bool)| match bond.mark {
        Some(Mark::Aromatic) if !in_ring => Err(MoleculeError::AromaticBond { a: bond.a, b: bond.b }),
        Some(mark) => Ok(mark == Mark::Aromatic),
        None => Ok(in_ring && atoms[bond.a].aromatic && atoms[bond.b].aromatic),
    };
    raw.iter().zip(in_ring).map(one).collect()
}

/// Returns a flag and a specification for each atom. The flag is `true` if one of the atom's aromatic bonds
/// must be a double bond.
fn needs_double(
    table: &ValenceTable,
    atoms: &[RawAtom],
    raw: &[RawBond],
    aromatic: &[bool],
) -> Result<Vec<(bool, AtomSpec)>> {
    let mut sigma = vec![0u8; atoms.len()];
    // An upper-case atom may get a double bond, too, if it has an aromatic bond (`:`).
    let mut conjugated: Vec<bool> = atoms.iter().map(|atom| atom.aromatic).collect();
    for (bond, &aromatic) in raw.iter().zip(aromatic) {
        for a in [bond.a, bond.b] {
            sigma[a] = sigma[a].saturating_add(bond.order().value());
            conjugated[a] |= aromatic;
        }
    }
    let one = |(i, atom): (usize, &RawAtom)| {
        let RawAtom { element, charge, .. } = *atom;
        let valence = sigma[i].saturating_add(atom.written_hydrogens());
        let full = table.fill(i, element, charge, valence, false)?;
        let needs = conjugated[i] && full > valence;
        // Atoms in brackets have the hydrogens that the text gives them. All other atoms get hydrogens until
        // their bonds add up to a valence of the table.
        let filled = full - sigma[i] - u8::from(needs);
        let hydrogens = Some(atom.hydrogens.map_or(filled, |_| atom.written_hydrogens()));
        Ok((needs, AtomSpec { element, charge, hydrogens }))
    };
    atoms.iter().enumerate().map(one).collect()
}
