//! Marks of stereochemistry as a SMILES writes them: turns in the order of the text, and directions of bonds.

use std::collections::BTreeMap;

use crate::molecule::{BondOrder, Molecule, MoleculeError, StereoElement, StereoMark, is_odd};

/// A neighbour of a centre that comes with the end of a ring.
const OPEN: usize = usize::MAX;
/// A hydrogen among the neighbours of a centre that is written as an atom.
const HYDROGEN: usize = usize::MAX - 1;

/// The place of counted hydrogens and lone pairs among the neighbours of a centre: behind the atom before it,
/// if there is one. A lone pair by itself comes second as RDKit has it, and third if the atom has single
/// bonds only and one of them closes a ring.
pub(super) fn implicit_place(molecule: &Molecule, atom: usize, hydrogens: u8, before: usize, closures: usize) -> usize {
    let single = || molecule.neighbours(atom).all(|(_, bond)| bond.order == BondOrder::Single);
    match hydrogens {
        0 if closures == 1 && single() => 2,
        0 => 1,
        _ => before,
    }
}

/// A centre as it is written.
struct RawCentre {
    /// `true` for `@`.
    counterclockwise: bool,
    /// Its neighbours in the order of the text.
    around: Vec<usize>,
    /// The number of them that come before it.
    before: usize,
    /// The number of them that come by ring numbers.
    closures: usize,
}

/// Stereochemistry, as a text says it.
#[derive(Default)]
pub(super) struct RawMarks {
    /// By atom.
    centres: BTreeMap<usize, RawCentre>,
    /// By bond, `true` where its second atom is above its first.
    up: BTreeMap<usize, bool>,
    /// By atom, `true` if its hydrogen, written as an atom, is above it.
    up_hydrogens: BTreeMap<usize, bool>,
}

impl RawMarks {
    /// A centre that comes next, behind another atom or not.
    pub(super) fn centre(&mut self, atom: usize, has_before: bool, counterclockwise: bool) {
        // The atom before it is met when the bond is made.
        let before = usize::from(has_before);
        self.centres.insert(atom, RawCentre { counterclockwise, around: Vec::new(), before, closures: 0 });
    }

    /// A bond from `a` to `b`, at its place among the neighbours of both.
    pub(super) fn meet(&mut self, a: usize, b: usize) {
        if let Some(centre) = self.centres.get_mut(&a) {
            centre.around.push(b);
        }
    }

    /// A hydrogen that is written as an atom, at its place among the neighbours; `up` is `true` if it is
    /// above the atom.
    pub(super) fn meet_hydrogen(&mut self, atom: usize, up: Option<bool>) {
        self.meet(atom, HYDROGEN);
        self.up_hydrogens.extend(up.map(|up| (atom, up)));
    }

    /// Leaves a place for the end of a ring; which one.
    pub(super) fn reserve(&mut self, atom: usize) -> usize {
        self.meet_by_number(atom, OPEN);
        self.centres.get(&atom).map_or(0, |centre| centre.around.len() - 1)
    }

    /// The same, of a bond that closes a ring.
    pub(super) fn meet_by_number(&mut self, a: usize, b: usize) {
        self.meet(a, b);
        if let Some(centre) = self.centres.get_mut(&a) {
            centre.closures += 1;
        }
    }

    /// Puts the end of a ring in its place.
    pub(super) fn close(&mut self, atom: usize, place: usize, other: usize) {
        if let Some(centre) = self.centres.get_mut(&atom) {
            centre.around[place] = other;
        }
    }

    /// The direction of a bond.
    pub(super) fn direct(&mut self, bond: usize, up: Option<bool>) {
        self.up.extend(up.map(|up| (bond, up)));
    }

    /// The number of marks that were written.
    pub(super) fn count(&self) -> usize {
        self.centres.len() + self.up.len() + self.up_hydrogens.len()
    }

    /// The molecule with these marks.
    pub(super) fn set(&self, molecule: Molecule) -> Result<(Molecule, usize), MoleculeError> {
        if self.count() == 0 {
            return Ok((molecule, 0));
        }
        let mut marks: Vec<StereoMark> = Vec::new();
        for (&atom, RawCentre { counterclockwise, around, before, closures }) in &self.centres {
            let implicit = 4usize.saturating_sub(around.len());
            if (2..=4).contains(&around.len()) {
                let written = around.iter().filter(|b| **b == HYDROGEN).count();
                let counted = usize::from(molecule.atoms()[atom].hydrogens).saturating_sub(written) as u8;
                // Hydrogens and lone pairs have the first numbers.
                let number = |&b: &usize| if b == HYDROGEN { 0 } else { b + 4 };
                let mut order: Vec<usize> = around.iter().map(number).collect();
                let place = implicit_place(&molecule, atom, counted, *before, *closures);
                order.splice(place..place, written..written + implicit);
                marks.push(StereoMark {
                    element: StereoElement::Centre(atom),
                    positive: counterclockwise ^ is_odd(&order),
                });
            }
        }
        for k in 0..molecule.bonds().len() {
            let bond = molecule.bonds()[k];
            let (Some(one), Some(other)) =
                (self.first_is_up(&molecule, bond.a, k)?, self.first_is_up(&molecule, bond.b, k)?)
            else {
                continue;
            };
            marks.push(StereoMark { element: StereoElement::DoubleBond(k), positive: one == other });
        }
        let marked = molecule.marked(marks).normal();
        let is_end = |a: usize| marked.bonds_at(a).iter().any(|&k| marked.double_bond_sign(k).is_some());
        let directed = |k: usize| is_end(marked.bonds()[k].a) || is_end(marked.bonds()[k].b);
        let centres = self.centres.keys().filter(|&&a| marked.sign(StereoElement::Centre(a)).is_some()).count();
        let directions = self.up.keys().filter(|&&k| directed(k)).count();
        let of_hydrogens = self.up_hydrogens.keys().filter(|&&a| is_end(a)).count();
        Ok((marked, centres + directions + of_hydrogens))
    }

    /// `true` if the first other neighbour of an end of a double bond is above it; `None` where nothing says so.
    fn first_is_up(&self, molecule: &Molecule, end: usize, bond: usize) -> Result<Option<bool>, MoleculeError> {
        if molecule.bonds()[bond].order != BondOrder::Double {
            return Ok(None);
        }
        let beside = molecule.beside(end, bond);
        // A hydrogen is on the other side than the neighbour beside it.
        let mut found = self.up_hydrogens.get(&end).map(|up| !up);
        for &k in molecule.bonds_at(end) {
            let Some(&up) = self.up.get(&k) else { continue };
            let other = molecule.bonds()[k].other(end);
            // The bond goes the other way where this end was written last; the second neighbour is on the other side.
            let up = up ^ (molecule.bonds()[k].b == end) ^ (beside.first() != Some(&other));
            if found.replace(up).is_some_and(|before| before != up) {
                let problem = format!("bonds on one side of atom {end}, both of them `/` or `\\` as seen from there");
                return Err(MoleculeError::Stereo { problem });
            }
        }
        Ok(found)
    }
}
