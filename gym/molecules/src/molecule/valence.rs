use std::collections::BTreeMap;

use super::{Element, MoleculeError};

/// A table of the valences that an atom can have, by element and charge. The valence of an atom is the sum
/// of its bond orders, including bonds to hydrogens.
///
/// The default table is RDKit's: B 3, C 4, N 3, O 2, halogens 1 (I 1, 3, 5), Si 4, P 3 and 5, S and Se 2, 4
/// and 6. Charges from -2 to +2 are allowed. A charged atom has the valences of the element with the same
/// number of outer electrons: N+ has those of C, O- those of F, and O+ those of N; S+ has 3 and 5. Atoms
/// get hydrogens up to the smallest valence that is large enough for their bonds.
///
/// ```
/// use gfn_molecules::{Element, Molecule, ValenceTable};
/// assert_eq!(ValenceTable::default().valences(Element::N, 1), [4]);
/// // By default, nitrogen with five bonds is an error or gets charges (`C[N+](=O)[O-]`).
/// assert!(Molecule::from_smiles("FN(F)(F)(F)F").is_err());
/// let table = ValenceTable::default().with(Element::N, 0, &[3, 5]);
/// assert_eq!(Molecule::read(&table, "FN(F)(F)(F)F")?.formula(), "F5N");
/// assert_eq!(Molecule::read(&table, "CN(=O)=O")?.atoms()[1].charge, 0);
/// # Ok::<(), gfn_molecules::MoleculeError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ValenceTable(
    /// The entries that were set explicitly. Atoms without an entry have the usual valences.
    BTreeMap<(Element, i8), Vec<u8>>,
);

/// The charges for which the default table has valences. An atom with another charge is allowed only if an
/// entry was set for it.
const CHARGES: std::ops::RangeInclusive<i8> = -2..=2;

/// Returns the usual valences of an element with a charge. They are the valences of a neutral atom that has
/// the same number of outer electrons and is in the same row of the periodic table.
pub(super) fn usual(element: Element, charge: i8) -> &'static [u8] {
    let electrons = element.outer_electrons() - charge;
    // Elements after the second row of the periodic table can exceed an octet. Neutral chlorine and bromine
    // are exceptions, because they form only one bond.
    let extends = element.number() > 10;
    let halogen = matches!(element, Element::Cl | Element::Br) && charge == 0;
    match (electrons, extends && !halogen) {
        (1, _) => &[1],
        (2, _) => &[2],
        (3, _) => &[3],
        (4, _) => &[4],
        (5, false) => &[3],
        (5, true) => &[3, 5],
        (6, false) => &[2],
        (6, true) => &[2, 4, 6],
        (7, false) => &[1],
        (7, true) => &[1, 3, 5],
        (8, _) => &[0],
        _ => &[],
    }
}

impl ValenceTable {
    /// Returns a copy of the table in which an element with a given charge has these valences. An empty
    /// list forbids the atom.
    #[must_use]
    pub fn with(mut self, element: Element, charge: i8, valences: &[u8]) -> Self {
        let mut valences = valences.to_vec();
        valences.sort_unstable();
        valences.dedup();
        self.0.insert((element, charge), valences);
        self
    }

    /// Returns the valences of an element with a given charge, in ascending order. The list is empty if the
    /// atom isn't allowed.
    #[must_use]
    pub fn valences(&self, element: Element, charge: i8) -> &[u8] {
        match self.0.get(&(element, charge)) {
            Some(valences) => valences,
            None if CHARGES.contains(&charge) => usual(element, charge),
            None => &[],
        }
    }

    /// Returns the valence that an atom has after hydrogens are added. `valence` is the sum of the atom's
    /// bond orders and the hydrogens that it already has. If `exact` is `true`, no hydrogen may be added.
    /// Returns an error if the table has no suitable valence.
    pub(super) fn fill(
        &self,
        atom: usize,
        element: Element,
        charge: i8,
        valence: u8,
        exact: bool,
    ) -> Result<u8, MoleculeError> {
        let full = self.filled(element, charge, valence).filter(|full| !exact || *full == valence);
        let allowed = || self.valences(element, charge).to_vec();
        full.ok_or_else(|| MoleculeError::Valence { atom, element, charge, valence, allowed: allowed() })
    }

    /// Returns the smallest valence of an element with a given charge that is at least `bonds`; `None` if
    /// there is no such valence.
    pub(crate) fn filled(&self, element: Element, charge: i8, bonds: u8) -> Option<u8> {
        self.valences(element, charge).iter().copied().find(|&valence| valence >= bonds)
    }
}
