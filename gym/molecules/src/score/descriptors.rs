//! Descriptors that are computed from the graph of a molecule: polar surface, hydrogen bonds, heteroatoms
//! and aromatic atoms.

use crate::molecule::in_three_ring;
use crate::{Atom, BondOrder, Element, Molecule};

impl Molecule {
    /// Computes the topological polar surface area of nitrogen and oxygen, in square angstrom (Ertl, Rohde
    /// and Selzer, J. Med. Chem. 43, 2000).
    ///
    /// ```
    /// use gfn_molecules::Molecule;
    /// assert!((Molecule::from_smiles("CC(=O)O")?.polar_surface() - 37.3).abs() < 1e-9);
    /// # Ok::<(), gfn_molecules::MoleculeError>(())
    /// ```
    #[must_use]
    pub fn polar_surface(&self) -> f64 {
        // Adding 0 changes -0, which is the sum of an empty list, to 0.
        (0..self.atoms().len()).map(|a| self.contribution(a)).sum::<f64>() + 0.0
    }

    fn contribution(&self, a: usize) -> f64 {
        let atom = self.atoms()[a];
        let (base, per_neighbour) = match atom.element {
            Element::N => (30.5, 8.2),
            Element::O => (28.5, 8.6),
            _ => return 0.0,
        };
        // The atom's row in `POLAR_SURFACES` is found by the element and these six numbers: hydrogens,
        // charge, single bonds, double bonds, triple bonds and aromatic bonds.
        let mut look = [atom.hydrogens as i8, atom.charge, 0, 0, 0, 0];
        for (_, bond) in self.neighbours(a) {
            look[if bond.aromatic { 5 } else { 1 + usize::from(bond.order.value()) }] += 1;
        }
        let fits = |row: &&(Element, bool, [i8; 6], f64)| {
            row.0 == atom.element && row.2 == look && (!row.1 || in_three_ring(self, a))
        };
        // An atom without a row in `POLAR_SURFACES` gets the contribution of Ertl's formula.
        let other = base - per_neighbour * self.neighbours(a).len() as f64 + 1.5 * f64::from(atom.hydrogens);
        POLAR_SURFACES.iter().find(fits).map_or(other.max(0.0), |row| row.3)
    }

    /// Returns the number of hydrogen bond donors: N, O and S atoms with hydrogens. The detailed rules are
    /// RDKit's.
    #[must_use]
    pub fn n_donors(&self) -> usize {
        let donates = |(a, atom): (usize, &Atom)| {
            let valence = self.valence(a);
            match (atom.element, atom.aromatic) {
                (Element::N, false) => {
                    atom.hydrogens > 0
                        && (valence == 3 && atom.charge == 0 || valence == 4 && atom.charge == 1)
                }
                (Element::N, true) | (Element::O | Element::S, false) => {
                    atom.hydrogens == 1 && atom.charge == 0
                }
                _ => false,
            }
        };
        self.atoms().iter().enumerate().filter(|pair| donates(*pair)).count()
    }

    /// Returns the number of hydrogen bond acceptors: N, O and S atoms with an available lone pair. The
    /// detailed rules are RDKit's.
    #[must_use]
    pub fn n_acceptors(&self) -> usize {
        (0..self.atoms().len()).filter(|&a| self.accepts(a)).count()
    }

    fn accepts(&self, a: usize) -> bool {
        let atom = self.atoms()[a];
        let valence = self.valence(a);
        let mut single = self
            .neighbours(a)
            .filter(|(_, bond)| !bond.aromatic && bond.order == BondOrder::Single)
            .map(|(b, _)| b);
        match (atom.element, atom.aromatic) {
            (Element::O | Element::S, false) if valence == 2 && atom.hydrogens == 0 || atom.charge == -1 => {
                true
            }
            // A hydroxyl group is an acceptor if it isn't part of an acid.
            (Element::O | Element::S, false) => {
                valence == 2 && atom.hydrogens == 1 && single.any(|b| !self.has_polar_double(b, false))
            }
            (Element::N, false) => valence == 3 && !single.any(|b| self.has_polar_double(b, true)),
            (Element::N, true) => atom.hydrogens == 0 && atom.charge == 0 && self.neighbours(a).len() == 2,
            (Element::O | Element::S, true) => atom.charge == 0,
            _ => false,
        }
    }

    /// Returns `true` if atom `b` has a non-aromatic double bond to a non-aromatic N, O, P or S atom. With
    /// `chain_only`, only bonds outside of rings count.
    fn has_polar_double(&self, b: usize, chain_only: bool) -> bool {
        self.neighbours(b).any(|(c, bond)| {
            let other = self.atoms()[c];
            let polar =
                matches!(other.element, Element::N | Element::O | Element::P | Element::S) && !other.aromatic;
            !bond.aromatic && bond.order == BondOrder::Double && polar && !(chain_only && bond.in_ring)
        })
    }

    /// Returns the number of heavy atoms other than carbon, divided by the number of heavy atoms.
    #[must_use]
    pub fn heteroatom_share(&self) -> f64 {
        let others = self.atoms().iter().filter(|atom| atom.element != Element::C).count();
        others as f64 / self.atoms().len() as f64
    }

    /// Returns the number of atoms in aromatic rings.
    #[must_use]
    pub fn n_aromatic_atoms(&self) -> usize {
        self.atoms().iter().filter(|atom| atom.aromatic).count()
    }
}

/// Ertl's table of polar surface contributions. Each row has an element and a flag, which is `true` if the
/// row applies only to atoms in rings of three. Six numbers follow: the number of hydrogens, the charge,
/// and the numbers of single, double, triple and aromatic bonds. The last entry is the contribution in
/// square angstrom.
const POLAR_SURFACES: [(Element, bool, [i8; 6], f64); 32] = [
    (Element::N, false, [0, 0, 0, 0, 1, 0], 23.79),
    (Element::N, false, [1, 0, 0, 1, 0, 0], 23.85),
    (Element::N, false, [2, 0, 1, 0, 0, 0], 26.02),
    (Element::N, false, [2, 1, 0, 1, 0, 0], 25.59),
    (Element::N, false, [3, 1, 1, 0, 0, 0], 27.64),
    (Element::N, false, [0, 0, 1, 1, 0, 0], 12.36),
    (Element::N, false, [0, 0, 0, 1, 1, 0], 13.60),
    (Element::N, true, [1, 0, 2, 0, 0, 0], 21.94),
    (Element::N, false, [1, 0, 2, 0, 0, 0], 12.03),
    (Element::N, false, [0, 1, 1, 0, 1, 0], 4.36),
    (Element::N, false, [1, 1, 1, 1, 0, 0], 13.97),
    (Element::N, false, [2, 1, 2, 0, 0, 0], 16.61),
    (Element::N, false, [0, 0, 0, 0, 0, 2], 12.89),
    (Element::N, false, [1, 0, 0, 0, 0, 2], 15.79),
    (Element::N, false, [1, 1, 0, 0, 0, 2], 14.14),
    (Element::N, true, [0, 0, 3, 0, 0, 0], 3.01),
    (Element::N, false, [0, 0, 3, 0, 0, 0], 3.24),
    (Element::N, false, [0, 0, 1, 2, 0, 0], 11.68),
    (Element::N, false, [0, 1, 2, 1, 0, 0], 3.01),
    (Element::N, false, [1, 1, 3, 0, 0, 0], 4.44),
    (Element::N, false, [0, 0, 0, 0, 0, 3], 4.41),
    (Element::N, false, [0, 0, 1, 0, 0, 2], 4.93),
    (Element::N, false, [0, 0, 0, 1, 0, 2], 8.39),
    (Element::N, false, [0, 1, 0, 0, 0, 3], 4.10),
    (Element::N, false, [0, 1, 1, 0, 0, 2], 3.88),
    (Element::N, false, [0, 1, 4, 0, 0, 0], 0.0),
    (Element::O, false, [0, 0, 0, 1, 0, 0], 17.07),
    (Element::O, false, [1, 0, 1, 0, 0, 0], 20.23),
    (Element::O, false, [0, -1, 1, 0, 0, 0], 23.06),
    (Element::O, true, [0, 0, 2, 0, 0, 0], 12.53),
    (Element::O, false, [0, 0, 2, 0, 0, 0], 9.23),
    (Element::O, false, [0, 0, 0, 0, 0, 2], 13.14),
];
