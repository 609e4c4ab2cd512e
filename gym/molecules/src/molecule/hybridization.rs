//! Hybridization of atoms, by RDKit's rules.

use super::valence::usual;
use super::{BondOrder, Element, Molecule};

/// The hybridization of an atom. Only the types that occur for carbon are distinguished.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Hybridization {
    /// Linear: the atom's bonded atoms and lone pairs are two in total.
    Sp,
    /// Planar: the atom's bonded atoms and lone pairs are three in total, or four if it has a conjugated
    /// bond.
    Sp2,
    /// Tetrahedral: the atom's bonded atoms and lone pairs are four in total.
    Sp3,
    /// The atom has another number of bonded atoms and lone pairs.
    Other,
}

impl Molecule {
    /// Returns the hybridization of each atom by RDKit's rules. The hybridization depends on the total number
    /// of the atom's neighbours, hydrogens and lone pairs. An atom for which this number is 4 is sp3. If such
    /// an atom has a conjugated bond and a lone pair, such as the nitrogen of an amide, it is sp2 instead.
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

    /// Returns one flag per atom: `true` if the atom has a conjugated bond. All aromatic bonds are
    /// conjugated. In a chain of three atoms that can all be part of a conjugated system, both bonds are
    /// conjugated if one of them is a multiple bond.
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
        let least = usual(atom.element, 0)[0];
        let outer = atom.element.outer_electrons();
        let stretched = atom.charge == 0 && self.valence(a) > least;
        // Phosphorus, sulphur and selenium aren't part of conjugated systems. Sulphur and selenium with a
        // single neighbour, as in C=S, are exceptions.
        let row = atom.element.number() > Element::F.number() + 1;
        let heavy = row && (outer == 5 || outer == 6 && self.degree(a) > 1);
        if stretched || heavy || least <= 1 || self.degree(a) > 3 {
            return false;
        }
        let lone = (outer - least as i8 - atom.charge).max(0);
        least as i8 - self.degree(a) as i8 + lone > 0
    }
}
