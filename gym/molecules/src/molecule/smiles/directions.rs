//! Directions of single bonds, which say how the double bonds beside them are.

use crate::molecule::{Molecule, StereoElement};

/// For each bond, `true` where its second atom is above its first; `None` where nothing is to be written.
///
/// `rank` are places in an order of the atoms, in which the double bonds are gone through.
pub(super) fn directions(molecule: &Molecule, rank: &[usize]) -> Vec<Option<bool>> {
    let mut search =
        Search { molecule, up: vec![None; molecule.bonds().len()], written: vec![false; molecule.bonds().len()] };
    let mut marked: Vec<(usize, bool)> = molecule
        .marks()
        .iter()
        .filter_map(|mark| match mark.element {
            StereoElement::DoubleBond(k) => Some((k, mark.positive)),
            StereoElement::Centre(_) => None,
        })
        .collect();
    let ranks = |k: usize| {
        let ends = [molecule.bonds()[k].a, molecule.bonds()[k].b].map(|a| rank[a]);
        (ends[0].min(ends[1]), ends[0].max(ends[1]))
    };
    marked.sort_unstable_by_key(|&(k, _)| ranks(k));
    let mut done = vec![false; molecule.bonds().len()];
    for &(start, _) in &marked {
        // One double bond after the other, from those beside bonds that have a direction.
        let mut open = vec![start];
        while let Some(k) = open.pop() {
            let Some(positive) = molecule.double_bond_sign(k).filter(|_| !std::mem::replace(&mut done[k], true)) else {
                continue;
            };
            let bond = molecule.bonds()[k];
            let (near, far) = if rank[bond.a] < rank[bond.b] { (bond.a, bond.b) } else { (bond.b, bond.a) };
            let (near, far) = if search.known(near, k).is_none() && search.known(far, k).is_some() {
                (far, near)
            } else {
                (near, far)
            };
            let sign = search.known(near, k).unwrap_or(false);
            search.set(near, k, sign, rank);
            search.set(far, k, sign == positive, rank);
            let around = [near, far].into_iter().flat_map(|end| molecule.beside(end, k));
            open.extend(around.flat_map(|b| molecule.bonds_at(b).iter().copied()));
        }
    }
    let Search { up, written, .. } = search;
    up.into_iter().zip(written).map(|(up, written)| up.filter(|_| written)).collect()
}

struct Search<'a> {
    molecule: &'a Molecule,
    up: Vec<Option<bool>>,
    /// Bonds whose directions are needed.
    written: Vec<bool>,
}

impl Search<'_> {
    /// The bonds of an end of a double bond to its other neighbours, with the neighbours.
    fn beside(&self, end: usize, double: usize) -> Vec<(usize, usize)> {
        let bonds = self.molecule.bonds_at(end).iter().filter(|&&k| k != double);
        let mut out: Vec<_> = bonds.map(|&k| (self.molecule.bonds()[k].other(end), k)).collect();
        out.sort_unstable();
        out
    }

    /// `true` if the first neighbour is above an end, where that is known.
    fn known(&self, end: usize, double: usize) -> Option<bool> {
        let found = |(place, (_, k)): (usize, (usize, usize))| {
            Some(self.up[k]? ^ (self.molecule.bonds()[k].b == end) ^ (place > 0))
        };
        self.beside(end, double).into_iter().enumerate().find_map(found)
    }

    /// Says that the first neighbour is above an end or below, and so where the second is; one of both is written.
    fn set(&mut self, end: usize, double: usize, first_is_up: bool, rank: &[usize]) {
        let beside = self.beside(end, double);
        for (place, &(_, k)) in beside.iter().enumerate() {
            self.up[k] = Some(first_is_up ^ (self.molecule.bonds()[k].b == end) ^ (place > 0));
        }
        if !beside.iter().any(|&(_, k)| self.written[k])
            && let Some(&(_, k)) = beside.iter().min_by_key(|(b, _)| rank[*b])
        {
            self.written[k] = true;
        }
    }
}
