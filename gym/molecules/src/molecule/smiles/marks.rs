//! Stereochemistry in the notation of SMILES: `@` and `@@` relative to the order of the text, and
//! directions of bonds (`/`, `\`).

use std::collections::BTreeMap;

use super::directions::side_bonds;
use crate::molecule::{Bond, BondOrder, Molecule, MoleculeError, StereoElement, StereoMark, is_odd};

/// A placeholder in lists of neighbours. It represents the atom at the other end of a ring that isn't
/// closed yet.
const OPEN: usize = usize::MAX;
/// A placeholder in lists of neighbours. It represents a hydrogen that is written as an atom.
const HYDROGEN: usize = usize::MAX - 1;

/// The neighbours of an atom in the order of the text, and the atom's mark of stereochemistry.
#[derive(Default)]
pub(super) struct RawCentre {
    /// `true` for `@`, `false` for `@@`, `None` for an atom without a mark.
    pub(super) counterclockwise: Option<bool>,
    /// The atom's neighbours in the order of the text.
    pub(super) around: Vec<usize>,
    /// `true` if one of the neighbours is written before the atom.
    pub(super) has_before: bool,
    /// The number of neighbours whose bonds to the atom are written as ring numbers.
    pub(super) closures: usize,
    /// `true` if the hydrogen of the atom, written as an atom itself, is above the atom. `None` if there is
    /// no such hydrogen, or if the bond to it has no direction.
    pub(super) up_hydrogen: Option<bool>,
}

impl RawCentre {
    /// Returns `true` if the order of the neighbours in the text is an odd permutation of their ascending
    /// order. Hydrogens and lone pairs, which aren't atoms of the molecule, are included.
    pub(super) fn is_odd(&self, molecule: &Molecule, atom: usize) -> bool {
        let written = self.around.iter().filter(|b| **b == HYDROGEN).count();
        let is_single = |(_, bond): (usize, &Bond)| bond.order == BondOrder::Single;
        // A hydrogen that isn't written as an atom comes right after the neighbour that is written before the
        // centre. It comes first if no neighbour is written before the centre. A lone pair comes second, as
        // in RDKit. If the atom has only single bonds and exactly one of them closes a ring, the lone pair
        // comes third.
        let place = match usize::from(molecule.atoms()[atom].hydrogens).saturating_sub(written) {
            0 if self.closures == 1 && molecule.neighbours(atom).all(is_single) => 2,
            0 => 1,
            _ => usize::from(self.has_before),
        };
        // Hydrogens and lone pairs come first in the ascending order.
        let number = |&b: &usize| if b == HYDROGEN { 0 } else { b + 4 };
        let mut order: Vec<usize> = self.around.iter().map(number).collect();
        order.splice(place..place, written..written + 4 - self.around.len());
        is_odd(&order)
    }
}

/// The stereochemistry of a SMILES, as it is written in the text.
#[derive(Default)]
pub(super) struct RawMarks {
    atoms: Vec<RawCentre>,
    /// The direction of each bond that has one, by the bond's index: `true` if the bond's second atom is
    /// above its first atom.
    up: BTreeMap<usize, bool>,
}

impl RawMarks {
    /// Adds the next atom of the text. `has_before` is `true` if one of the atom's neighbours is written
    /// before it.
    pub(super) fn add(&mut self, counterclockwise: Option<bool>, has_before: bool) {
        self.atoms.push(RawCentre { counterclockwise, has_before, ..RawCentre::default() });
    }

    /// Appends `b` to the neighbours of `a`. Neighbours are added in the order of the text.
    pub(super) fn meet(&mut self, a: usize, b: usize) {
        self.atoms[a].around.push(b);
    }

    /// Appends a hydrogen that is written as an atom to the neighbours of `atom`. `up` is `Some(true)` if
    /// the hydrogen is above the atom, and `None` if the bond has no direction.
    pub(super) fn meet_hydrogen(&mut self, atom: usize, up: Option<bool>) {
        self.meet(atom, HYDROGEN);
        self.atoms[atom].up_hydrogen = up.or(self.atoms[atom].up_hydrogen);
    }

    /// Reserves a position among the neighbours of an atom for the atom at the other end of a ring bond.
    /// Returns this position.
    pub(super) fn reserve(&mut self, atom: usize) -> usize {
        self.meet_by_number(atom, OPEN);
        self.atoms[atom].around.len() - 1
    }

    /// Appends `b` to the neighbours of `a`. The bond between them closes a ring.
    pub(super) fn meet_by_number(&mut self, a: usize, b: usize) {
        self.meet(a, b);
        self.atoms[a].closures += 1;
    }

    /// Stores `other`, the atom at the other end of a ring bond, in the position that was reserved for it.
    pub(super) fn close(&mut self, atom: usize, place: usize, other: usize) {
        self.atoms[atom].around[place] = other;
    }

    /// Stores the direction of a bond, if the text gives a direction.
    pub(super) fn direct(&mut self, bond: usize, up: Option<bool>) {
        self.up.extend(up.map(|up| (bond, up)));
    }

    /// Returns how many marks of the text the three functions in `counts` accept. The first is called with
    /// atoms that have `@` or `@@`, the second with bonds that have a direction, and the third with atoms
    /// whose bond to a hydrogen has a direction.
    fn count(&self, counts: [&dyn Fn(usize) -> bool; 3]) -> usize {
        let [turns, bonds, hydrogens] = counts;
        let atoms = || self.atoms.iter().enumerate();
        let n_turns = atoms().filter(|(a, atom)| atom.counterclockwise.is_some() && turns(*a)).count();
        let n_hydrogens = atoms().filter(|(a, atom)| atom.up_hydrogen.is_some() && hydrogens(*a)).count();
        n_turns + n_hydrogens + self.up.keys().filter(|k| bonds(**k)).count()
    }

    /// Returns the molecule with the stereo marks of the text, and the number of marks that were dropped
    /// because they belong to no stereo element or are incomplete.
    pub(super) fn set(&self, molecule: Molecule) -> Result<(Molecule, usize), MoleculeError> {
        let written = self.count([&|_| true; 3]);
        if written == 0 {
            return Ok((molecule, 0));
        }
        let mut marks: Vec<StereoMark> = Vec::new();
        for (atom, centre) in self.atoms.iter().enumerate() {
            if let Some(counterclockwise) = centre.counterclockwise
                && (2..=4).contains(&centre.around.len())
            {
                let positive = counterclockwise ^ centre.is_odd(&molecule, atom);
                marks.push(StereoMark { element: StereoElement::Centre(atom), positive });
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
        let marked = molecule.with_stereo_marks(marks).normal();
        let is_centre = |a: usize| marked.sign(StereoElement::Centre(a)).is_some();
        let is_end = |a: usize| marked.bonds_at(a).iter().any(|&k| marked.double_bond_sign(k).is_some());
        let directed = |k: usize| is_end(marked.bonds()[k].a) || is_end(marked.bonds()[k].b);
        let left_out = written - self.count([&is_centre, &directed, &is_end]);
        Ok((marked, left_out))
    }

    /// Compares a double bond's end with its neighbour that has the smallest index (the double bond's other
    /// end doesn't count). Returns `true` if this neighbour is above the end, and `None` if the text gives no
    /// direction.
    fn first_is_up(
        &self,
        molecule: &Molecule,
        end: usize,
        bond: usize,
    ) -> Result<Option<bool>, MoleculeError> {
        if molecule.bonds()[bond].order != BondOrder::Double {
            return Ok(None);
        }
        // The hydrogen of an end is on one side of the double bond, so the other neighbour of this end is
        // on the opposite side.
        let mut found = self.atoms[end].up_hydrogen.map(|up| !up);
        for side in side_bonds(molecule, end, bond) {
            let Some(up) = self.up.get(&side.bond).map(|up| up ^ side.turns) else { continue };
            if found.replace(up).is_some_and(|before| before != up) {
                let problem = format!(
                    "two bonds on one side of atom {end} that are both `/` or both `\\` as seen from that \
                     atom"
                );
                return Err(MoleculeError::Stereo { problem });
            }
        }
        Ok(found)
    }
}
