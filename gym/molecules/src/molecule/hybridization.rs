//! Hybridisation of atoms, by RDKit's rules.

use super::valence::usual;
use super::{BondOrder, Element, Molecule};

/// The hybridisation of an atom. Only the types that occur for carbon are distinguished.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Hybridization {
    /// Linear: bonded atoms and lone pairs are two in all.
    Sp,
    /// Planar: bonded atoms and lone pairs are three in all, or four if the atom has a conjugated bond.
    Sp2,
    /// Tetrahedral: bonded atoms and lone pairs are four in all.
    Sp3,
    /// Any other number of bonded atoms and lone pairs.
    Other,
}

impl Molecule {
    /// Returns the hybridisation of each atom by RDKit's rules: it depends on the number of the atom's
    /// neighbours, hydrogens and lone pairs. An atom with four of these is sp2 instead of sp3 if it has a
    /// conjugated bond and at most three neighbours and hydrogens, such as the nitrogen of an amide.
    ///
    /// ```
    /// use gfn_molecules::{Hybridization, Molecule};
    /// let acetonitrile = Molecule::from_smiles("CC#N")?;
    /// assert_eq!(acetonitrile.hybridizations(), [Hybridization::Sp3, Hybridization::Sp, Hybridization::Sp]);
    /// # Ok::<(), gfn_molecules::MoleculeError>(())
    /// ```
    #[must_use]
    pub fn hybridizations(&self) -> Vec<Hybridization> {
        let conjugated = self.conjugated_atoms();
        let hybridization = |a: usize| {
            let atom = self.atoms()[a];
            let free = (atom.element.outer_electrons() - self.valence(a) as i8 - atom.charge).max(0) / 2;
            match self.degree(a) as i8 + free {
                2 => Hybridization::Sp,
                3 => Hybridization::Sp2,
                4 if conjugated[a] && self.degree(a) <= 3 => Hybridization::Sp2,
                4 => Hybridization::Sp3,
                _ => Hybridization::Other,
            }
        };
        (0..self.atoms().len()).map(hybridization).collect()
    }

    /// Returns for each atom `true` if it has a conjugated bond: an aromatic bond, a multiple bond next to a
    /// conjugating atom, or the bond to such an atom.
    fn conjugated_atoms(&self) -> Vec<bool> {
        let n = self.atoms().len();
        let can: Vec<bool> = (0..n).map(|a| self.can_conjugate(a)).collect();
        let mut out: Vec<bool> = self.atoms().iter().map(|atom| atom.aromatic).collect();
        for a in (0..n).filter(|&a| can[a] && (2..=3).contains(&self.degree(a))) {
            for (b, multiple) in self.neighbours(a) {
                if !can[b] || !multiple.aromatic && multiple.order == BondOrder::Single {
                    continue;
                }
                for (c, _) in self.neighbours(a).filter(|&(c, _)| c != b && can[c] && self.degree(c) <= 3) {
                    (out[a], out[b], out[c]) = (true, true, true);
                }
            }
        }
        out
    }

    /// Returns `true` if an atom can be part of a conjugated system.
    fn can_conjugate(&self, a: usize) -> bool {
        let atom = self.atoms()[a];
        let (least, outer) = (usual(atom.element, 0)[0], atom.element.outer_electrons());
        let stretched = atom.charge == 0 && self.valence(a) > least;
        // Phosphorus, sulphur and heavier elements below them aren't part of conjugated systems, except for a
        // sulphur with one neighbour as in C=S.
        let row = atom.element.number() > Element::F.number() + 1;
        let heavy = row && (outer == 5 || outer == 6 && self.degree(a) > 1);
        if stretched || heavy || least <= 1 || self.degree(a) > 3 {
            return false;
        }
        let lone = (outer - least as i8 - atom.charge).max(0);
        least as i8 - self.degree(a) as i8 + lone > 0
    }
}
