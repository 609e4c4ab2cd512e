//! Enumeration of the placements of double bonds in aromatic rings.

use super::Molecule;
use super::aromaticity::has_ring_double;

/// The largest number of placements of double bonds that are returned.
const MAX_PLACEMENTS: usize = 1 << 16;
/// The largest number of entries in the list of double-bond partners, which has an entry per atom for each
/// placement.
const MAX_PARTNERS: usize = 1 << 24;
/// The search gives up after it has examined this number of atoms. An atom is counted each time that it is
/// examined. Examining this many atoms takes about half a second.
const BUDGET: usize = 1 << 27;
/// An entry that stands for no partner (the atom at the other end of a double bond). Atoms that have no
/// double bond in an aromatic ring have this entry.
const NONE: u32 = u32::MAX;

/// Returns all placements of the double bonds in aromatic rings, concatenated in one list. A placement has
/// one entry per atom: the partner that the atom has a double bond to. Returns `None` if there are too many
/// placements or the search takes too long.
pub(super) fn placements(molecule: &Molecule) -> Option<Vec<u32>> {
    let has_double: Vec<bool> = (0..molecule.atoms().len()).map(|a| has_ring_double(molecule, a)).collect();
    let beside = |a: usize| -> Vec<u32> {
        let aromatic = molecule.neighbours(a).filter(|(_, bond)| bond.aromatic);
        aromatic.map(|(b, _)| b).filter(|&b| has_double[a] && has_double[b]).map(|b| b as u32).collect()
    };
    let search = MatchingSearch {
        beside: (0..has_double.len()).map(beside).collect(),
        mate: vec![NONE; has_double.len()],
        open: (0u32..).zip(&has_double).filter(|(_, has_double)| **has_double).map(|(a, _)| a).collect(),
        work: 0,
    };
    search.all()
}

/// A search for all perfect matchings of the atoms that have a double bond in aromatic rings.
struct MatchingSearch {
    beside: Vec<Vec<u32>>,
    mate: Vec<u32>,
    /// The atoms that need a partner, because they have a double bond in aromatic rings.
    open: Vec<u32>,
    work: usize,
}

impl MatchingSearch {
    /// Returns the partners of all atoms for each matching, concatenated in one list. The function isn't
    /// recursive, because the depth would be the number of double bonds.
    fn all(mut self) -> Option<Vec<u32>> {
        let n = self.mate.len();
        let mut out = Vec::new();
        // One atom of each matched pair, in the order in which the pairs were chosen. Each comes with the
        // index of its next neighbour to try as a partner.
        let mut stack: Vec<(u32, usize)> = Vec::new();
        let mut next = self.fewest_choices()?;
        if next.is_none() {
            return Some(self.mate);
        }
        loop {
            let (a, tried) = match next.take() {
                Some(a) => (a, 0),
                None => {
                    let Some((a, tried)) = stack.pop() else { return Some(out) };
                    let b = std::mem::replace(&mut self.mate[a as usize], NONE);
                    self.mate[b as usize] = NONE;
                    (a, tried)
                }
            };
            let beside = &self.beside[a as usize];
            let Some(k) = (tried..beside.len()).find(|&k| self.mate[beside[k] as usize] == NONE) else {
                continue;
            };
            let b = beside[k];
            (self.mate[a as usize], self.mate[b as usize]) = (b, a);
            stack.push((a, k + 1));
            if 2 * stack.len() < self.open.len() {
                next = self.fewest_choices()?;
                continue;
            }
            out.extend(&self.mate);
            if out.len() > MAX_PARTNERS.min(MAX_PLACEMENTS * n) {
                return None;
            }
        }
    }

    /// Returns the unmatched atom with the fewest unmatched neighbours, so that dead ends are found early.
    /// The inner option is `None` if all atoms are matched. The outer option is `None` if the search has
    /// taken too long.
    fn fewest_choices(&mut self) -> Option<Option<u32>> {
        self.work += self.open.len();
        let free = |&&a: &&u32| self.mate[a as usize] == NONE;
        let choices = |&&a: &&u32| self.beside[a as usize].iter().filter(free).count();
        (self.work <= BUDGET).then(|| self.open.iter().filter(free).min_by_key(choices).copied())
    }
}
