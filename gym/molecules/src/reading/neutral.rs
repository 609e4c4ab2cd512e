//! Neutralisation of charges by adding and removing protons.

use crate::molecule::ranks;
use crate::{Atom, AtomSpec, BondOrder, Element, Molecule, MoleculeError, ValenceTable};

impl Molecule {
    /// Removes the charges that protons can neutralise, as RDKit's `Uncharger` does. Returns the number of
    /// atoms that were changed.
    pub(super) fn neutralise(&mut self) -> Result<usize, MoleculeError> {
        let atoms = self.atoms();
        let beside = |a: usize, charges: std::ops::RangeInclusive<i8>| {
            self.neighbours(a).any(|(b, _)| charges.contains(&atoms[b].charge))
        };
        let cation = |a: &usize| atoms[*a].charge > 0 && !beside(*a, -1..=-1);
        let (with, without): (Vec<usize>, Vec<usize>) =
            (0..atoms.len()).filter(cation).partition(|&a| atoms[a].hydrogens > 0);
        let table = ValenceTable::default();
        // An atom can gain a proton only if the table has its valence plus 1 for the neutral element. An
        // anion of boron with four neighbours therefore can't.
        let takes_proton = |a: usize| table.valences(atoms[a].element, 0).contains(&(self.valence(a) + 1));
        let anion = |&a: &usize| atoms[a].charge == -1 && !beside(a, 1..=4) && takes_proton(a);
        let mut anions: Vec<usize> = (0..atoms.len()).filter(anion).collect();
        if anions.is_empty() {
            anions.extend(self.oxoacid());
        }
        if with.is_empty() && anions.is_empty() {
            return Ok(0);
        }
        // Cations that have no proton to lose are balanced by the same number of anions, preferably anions of
        // acids, which stay charged. If there are fewer anions than such cations, no anion stays charged, as
        // in RDKit.
        if (1..=anions.len()).contains(&without.len()) {
            let rank = ranks(&self.canonical().order);
            anions.sort_by_cached_key(|&a| (self.is_acid(a), rank[a]));
            anions.truncate(anions.len() - without.len());
        }
        let mut specs: Vec<AtomSpec> = atoms.iter().map(AtomSpec::from).collect();
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

    /// Returns the atom that gains a proton in an anion such as nitrate or chlorate. Such an anion has the
    /// total charge -1, and its central atom has a positive charge. Returns `None` for other molecules.
    fn oxoacid(&self) -> Option<usize> {
        let atoms = self.atoms();
        let is_centre = |atom: &Atom| {
            atom.charge > 0 && matches!(atom.element, Element::N | Element::Cl | Element::Br | Element::I)
        };
        let is_oxo = |atom: &Atom| matches!(atom.element, Element::O | Element::S);
        let centres = atoms.iter().filter(|atom| is_centre(atom)).count();
        let oxo: Vec<usize> =
            (0..atoms.len()).filter(|&a| is_oxo(&atoms[a]) && self.neighbours(a).len() == 1).collect();
        if self.charge() != -1 || centres != 1 || oxo.len() + 1 != atoms.len() {
            return None;
        }
        oxo.into_iter().filter(|&a| atoms[a].charge == -1).min_by_key(|&a| atoms[a].element)
    }

    /// Returns `true` if the charged atom `a` belongs to the anion of an acid. The acid is an oxygen acid
    /// of C, P or S, in which sulphur may replace oxygen, or a tetrazole.
    fn is_acid(&self, a: usize) -> bool {
        let element = |b: usize| self.atoms()[b].element;
        let is_oxo = |b: usize| matches!(element(b), Element::O | Element::S);
        if is_oxo(a) {
            let has_double =
                |b: usize| self.neighbours(b).any(|(c, bond)| is_oxo(c) && bond.order == BondOrder::Double);
            return self
                .neighbours(a)
                .any(|(b, _)| matches!(element(b), Element::C | Element::P | Element::S) && has_double(b));
        }
        // A tetrazole is an aromatic ring of five atoms, four of which are nitrogen.
        let is_tetrazole = |ring: &Vec<usize>| {
            let nitrogens = ring.iter().filter(|&&b| element(b) == Element::N).count();
            let bonds = (0..ring.len()).map(|k| (ring[k], ring[(k + 1) % ring.len()]));
            let mut are_aromatic =
                bonds.map(|(b, c)| self.neighbours(b).any(|(d, bond)| d == c && bond.aromatic));
            ring.len() == 5
                && nitrogens == 4
                && ring.contains(&a)
                && are_aromatic.all(|is_aromatic| is_aromatic)
        };
        element(a) == Element::N && self.rings().iter().any(is_tetrazole)
    }
}
