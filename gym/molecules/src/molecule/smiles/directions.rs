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
            let sign = search.known(near, k).unwrap_or_else(|| search.first_sign(near, k, rank));
            search.set(near, k, sign);
            search.set(far, k, sign == positive);
            let around = [near, far].into_iter().flat_map(|end| molecule.beside(end, k));
            open.extend(around.flat_map(|b| molecule.bonds_at(b).iter().copied()));
        }
    }
    for (k, _) in marked {
        let mut ends = [molecule.bonds()[k].a, molecule.bonds()[k].b];
        ends.sort_unstable_by_key(|a| rank[*a]);
        ends.into_iter().for_each(|end| search.write(end, k, rank));
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

    /// The sign that makes the bond to the neighbour of lowest rank go up from the lower rank to the higher one.
    fn first_sign(&self, end: usize, double: usize, rank: &[usize]) -> bool {
        let beside = self.beside(end, double);
        let lowest = beside.iter().enumerate().min_by_key(|(_, (b, _))| rank[*b]);
        lowest.is_some_and(|(place, (b, _))| (rank[end] < rank[*b]) ^ (place > 0))
    }

    /// Says that the first neighbour is above an end or below, and so where the second is.
    fn set(&mut self, end: usize, double: usize, first_is_up: bool) {
        let beside = self.beside(end, double);
        for (place, &(_, k)) in beside.iter().enumerate() {
            self.up[k] = Some(first_is_up ^ (self.molecule.bonds()[k].b == end) ^ (place > 0));
        }
    }

    /// Has one of the bonds beside an end written.
    fn write(&mut self, end: usize, double: usize, rank: &[usize]) {
        let beside = self.beside(end, double);
        if !beside.iter().any(|&(_, k)| self.written[k])
            && let Some(&(_, k)) = beside.iter().min_by_key(|(b, _)| rank[*b])
        {
            self.written[k] = true;
        }
    }
}
