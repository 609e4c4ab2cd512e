//! Charges that are a matter of protons.

use crate::{Atom, AtomSpec, BondOrder, Element, Molecule, MoleculeError, ValenceTable};

impl Molecule {
    /// Takes away the charges that protons can, as RDKit's `Uncharger` does; gives the number of atoms that were changed.
    pub(super) fn neutralise(&mut self) -> Result<usize, MoleculeError> {
        let atoms = self.atoms();
        let beside = |a: usize, charges: std::ops::RangeInclusive<i8>| {
            self.neighbours(a).any(|(b, _)| charges.contains(&atoms[b].charge))
        };
        let cation = |a: &usize| atoms[*a].charge > 0 && !beside(*a, -1..=-1);
        let (with, without): (Vec<usize>, Vec<usize>) =
            (0..atoms.len()).filter(cation).partition(|&a| atoms[a].hydrogens > 0);
        let table = ValenceTable::default();
        // Boron with four neighbours has no room for one.
        let takes_proton = |a: usize| {
            let valence = self.bond_orders(a) + atoms[a].hydrogens + 1;
            table.valences(atoms[a].element, 0).contains(&valence)
        };
        let anion = |&a: &usize| atoms[a].charge == -1 && !beside(a, 1..=4) && takes_proton(a);
        let mut anions: Vec<usize> = (0..atoms.len()).filter(anion).collect();
        if with.is_empty() && anions.is_empty() {
            return Ok(0);
        }
        // As many as there are cations without protons stay, those of acids rather than others; with fewer anions none stays, as in RDKit.
        if (1..=anions.len()).contains(&without.len()) {
            let order = self.canonical().order;
            let rank = |a: usize| order.iter().position(|&other| other as usize == a);
            anions.sort_by_cached_key(|&a| (self.is_acid(a), rank(a)));
            anions.truncate(anions.len() - without.len());
        }
        let mut specs: Vec<AtomSpec> = atoms
            .iter()
            .map(|&Atom { element, charge, hydrogens, .. }| AtomSpec { element, charge, hydrogens: Some(hydrogens) })
            .collect();
        for &a in &anions {
            (specs[a].charge, specs[a].hydrogens) = (0, Some(atoms[a].hydrogens + 1));
        }
        for &a in &with {
            let protons = (atoms[a].charge as u8).min(atoms[a].hydrogens);
            specs[a].charge -= protons as i8;
            specs[a].hydrogens = Some(atoms[a].hydrogens - protons);
        }
        let bonds: Vec<_> = self.bonds().iter().map(|bond| (bond.a, bond.b, bond.order)).collect();
        *self = Self::new(&table, &specs, &bonds)?;
        Ok(anions.len() + with.len())
    }

    /// `true` for the anion of an oxygen acid of C, P or S, and of a tetrazole.
    fn is_acid(&self, a: usize) -> bool {
        let element = |b: usize| self.atoms()[b].element;
        if element(a) == Element::O {
            let double_o = |b: usize| {
                self.neighbours(b).any(|(c, bond)| element(c) == Element::O && bond.order == BondOrder::Double)
            };
            return self
                .neighbours(a)
                .any(|(b, _)| matches!(element(b), Element::C | Element::P | Element::S) && double_o(b));
        }
        // A ring of five with four nitrogens: the ends of a path of aromatic atoms from here meet.
        let next = |b: usize, from: usize| {
            self.neighbours(b).filter(move |(c, bond)| *c != from && bond.aromatic).map(|(c, _)| c).collect::<Vec<_>>()
        };
        let nitrogens = |path: &[usize]| path.iter().filter(|&&b| element(b) == Element::N).count();
        element(a) == Element::N
            && next(a, a).into_iter().any(|b| {
                next(b, a).into_iter().any(|c| {
                    next(c, b).into_iter().any(|d| {
                        next(d, c).into_iter().any(|e| next(e, d).contains(&a) && nitrogens(&[a, b, c, d, e]) == 4)
                    })
                })
            })
    }
}
