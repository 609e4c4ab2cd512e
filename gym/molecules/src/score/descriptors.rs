//! What can be read off a molecule: polar surface, hydrogen bonds, heteroatoms, rings.

use crate::molecule::in_three_ring;
use crate::{Atom, BondOrder, Element, Molecule};

/// Bonds of an atom by kind.
#[derive(Default)]
struct Bonds {
    single: u8,
    double: u8,
    triple: u8,
    aromatic: u8,
}

impl Molecule {
    fn bonds_of(&self, a: usize) -> Bonds {
        let mut out = Bonds::default();
        for (_, bond) in self.neighbours(a) {
            match bond.order {
                _ if bond.aromatic => out.aromatic += 1,
                BondOrder::Single => out.single += 1,
                BondOrder::Double => out.double += 1,
                BondOrder::Triple => out.triple += 1,
            }
        }
        out
    }

    /// The topological polar surface area of nitrogen and oxygen, in square angstrom (Ertl, Rohde and Selzer, J. Med. Chem. 43, 2000).
    ///
    /// ```
    /// use gfn_molecules::Molecule;
    /// assert!((Molecule::from_smiles("CC(=O)O")?.polar_surface() - 37.3).abs() < 1e-9);
    /// # Ok::<(), gfn_molecules::MoleculeError>(())
    /// ```
    #[must_use]
    pub fn polar_surface(&self) -> f64 {
        // Adding 0 makes a zero of the empty sum's -0.
        (0..self.atoms().len()).map(|a| self.contribution(a)).sum::<f64>() + 0.0
    }

    fn contribution(&self, a: usize) -> f64 {
        let atom = self.atoms()[a];
        let beside = self.neighbours(a).len() as u8;
        let small = in_three_ring(self, a);
        let (known, base, per_neighbour) = match atom.element {
            Element::N => (nitrogen(atom, &self.bonds_of(a), small), 30.5, 8.2),
            Element::O => (oxygen(atom, &self.bonds_of(a), small), 28.5, 8.6),
            _ => return 0.0,
        };
        // Ertl's rule for what isn't in the table.
        let other = || f64::max(0.0, base - per_neighbour * f64::from(beside) + 1.5 * f64::from(atom.hydrogens));
        known.unwrap_or_else(other)
    }

    /// Hydrogen bond donors, as RDKit counts them: atoms N, O and S with hydrogens.
    #[must_use]
    pub fn n_donors(&self) -> usize {
        let donates = |(a, atom): (usize, &Atom)| {
            let valence = self.bond_orders(a) + atom.hydrogens;
            match (atom.element, atom.aromatic) {
                (Element::N, false) => {
                    atom.hydrogens > 0 && (valence == 3 && atom.charge == 0 || valence == 4 && atom.charge == 1)
                }
                (Element::N, true) | (Element::O | Element::S, false) => atom.hydrogens == 1 && atom.charge == 0,
                _ => false,
            }
        };
        self.atoms().iter().enumerate().filter(|pair| donates(*pair)).count()
    }

    /// Hydrogen bond acceptors, as RDKit counts them: N, O and S with a lone pair that is free.
    #[must_use]
    pub fn n_acceptors(&self) -> usize {
        (0..self.atoms().len()).filter(|&a| self.accepts(a)).count()
    }

    fn accepts(&self, a: usize) -> bool {
        let atom = self.atoms()[a];
        let valence = self.bond_orders(a) + atom.hydrogens;
        // Whether a neighbour by a single bond is doubly bound to such an element.
        let beside_double = |chain_only: bool| {
            self.neighbours(a)
                .any(|(b, bond)| is_plain(bond, BondOrder::Single) && self.has_polar_double(b, chain_only))
        };
        match (atom.element, atom.aromatic) {
            (Element::O | Element::S, false) if valence == 2 && atom.hydrogens == 0 => true,
            (Element::O | Element::S, false) if atom.charge == -1 => true,
            (Element::O | Element::S, false) => {
                // A hydroxyl that isn't one of an acid.
                valence == 2
                    && atom.hydrogens == 1
                    && self
                        .neighbours(a)
                        .any(|(b, bond)| is_plain(bond, BondOrder::Single) && !self.has_polar_double(b, false))
            }
            (Element::N, false) => valence == 3 && !beside_double(true),
            (Element::N, true) => atom.hydrogens == 0 && atom.charge == 0 && self.neighbours(a).len() == 2,
            (Element::O | Element::S, true) => atom.charge == 0,
            _ => false,
        }
    }

    /// `true` if atom `b` has a double bond, not an aromatic one, to N, O, P or S outside of aromatic rings.
    fn has_polar_double(&self, b: usize, chain_only: bool) -> bool {
        self.neighbours(b).any(|(c, bond)| {
            let other = self.atoms()[c];
            let polar = matches!(other.element, Element::N | Element::O | Element::P | Element::S) && !other.aromatic;
            is_plain(bond, BondOrder::Double) && polar && !(chain_only && bond.in_ring)
        })
    }

    /// The share of heavy atoms that aren't carbon.
    #[must_use]
    pub fn heteroatom_share(&self) -> f64 {
        let others = self.atoms().iter().filter(|atom| atom.element != Element::C).count();
        others as f64 / self.atoms().len() as f64
    }

    /// The number of atoms in aromatic rings.
    #[must_use]
    pub fn n_aromatic_atoms(&self) -> usize {
        self.atoms().iter().filter(|atom| atom.aromatic).count()
    }
}

fn is_plain(bond: &crate::Bond, order: BondOrder) -> bool {
    !bond.aromatic && bond.order == order
}

/// Ertl's table for nitrogen.
fn nitrogen(atom: Atom, bonds: &Bonds, small: bool) -> Option<f64> {
    let Bonds { single, double, triple, aromatic } = *bonds;
    Some(match (atom.hydrogens, atom.charge, single, double, triple, aromatic) {
        (0, 0, 0, 0, 1, 0) => 23.79,
        (1, 0, 0, 1, 0, 0) => 23.85,
        (2, 0, 1, 0, 0, 0) => 26.02,
        (2, 1, 0, 1, 0, 0) => 25.59,
        (3, 1, 1, 0, 0, 0) => 27.64,
        (0, 0, 1, 1, 0, 0) => 12.36,
        (0, 0, 0, 1, 1, 0) => 13.60,
        (1, 0, 2, 0, 0, 0) if small => 21.94,
        (1, 0, 2, 0, 0, 0) => 12.03,
        (0, 1, 1, 0, 1, 0) => 4.36,
        (1, 1, 1, 1, 0, 0) => 13.97,
        (2, 1, 2, 0, 0, 0) => 16.61,
        (0, 0, 0, 0, 0, 2) => 12.89,
        (1, 0, 0, 0, 0, 2) => 15.79,
        (1, 1, 0, 0, 0, 2) => 14.14,
        (0, 0, 3, 0, 0, 0) if small => 3.01,
        (0, 0, 3, 0, 0, 0) => 3.24,
        (0, 0, 1, 2, 0, 0) => 11.68,
        (0, 1, 2, 1, 0, 0) => 3.01,
        (1, 1, 3, 0, 0, 0) => 4.44,
        (0, 0, 0, 0, 0, 3) => 4.41,
        (0, 0, 1, 0, 0, 2) => 4.93,
        (0, 0, 0, 1, 0, 2) => 8.39,
        (0, 1, 0, 0, 0, 3) => 4.10,
        (0, 1, 1, 0, 0, 2) => 3.88,
        (0, 1, 4, 0, 0, 0) => 0.0,
        _ => return None,
    })
}

/// Ertl's table for oxygen.
fn oxygen(atom: Atom, bonds: &Bonds, small: bool) -> Option<f64> {
    let Bonds { single, double, aromatic, .. } = *bonds;
    Some(match (atom.hydrogens, atom.charge, single, double, aromatic) {
        (0, 0, 0, 1, 0) => 17.07,
        (1, 0, 1, 0, 0) => 20.23,
        (0, -1, 1, 0, 0) => 23.06,
        (0, 0, 2, 0, 0) if small => 12.53,
        (0, 0, 2, 0, 0) => 9.23,
        (0, 0, 0, 0, 2) => 13.14,
        _ => return None,
    })
}
