//! Directions of single bonds (`/` and `\`), which determine the signs of the double bonds next to them.

use crate::molecule::{Molecule, StereoElement};

/// A single bond between one end of a double bond and a neighbour of this end.
pub(super) struct SideBond {
    pub(super) bond: usize,
    /// The neighbour: the atom of this bond that isn't an end of the double bond.
    pub(super) atom: usize,
    /// `true` if an upward direction of this bond, from its first to its second atom, means that the end's
    /// neighbour with the smallest index is below the end.
    pub(super) turns: bool,
}

/// Returns the bonds from one end of a double bond to the neighbours of this end, in ascending order of the
/// neighbours. The double bond itself isn't included.
pub(super) fn side_bonds(molecule: &Molecule, end: usize, double: usize) -> Vec<SideBond> {
    let first = molecule.beside(end, double).first().copied();
    let side = |&bond: &usize| {
        let atom = molecule.bonds()[bond].other_end(end);
        SideBond { bond, atom, turns: (molecule.bonds()[bond].b == end) ^ (first != Some(atom)) }
    };
    let mut out: Vec<SideBond> = molecule.bonds_at(end).iter().filter(|&&k| k != double).map(side).collect();
    out.sort_unstable_by_key(|side| side.atom);
    out
}

/// Returns the direction of each bond: `true` if its second atom is above its first atom, and `None` if no
/// direction is written.
///
/// `rank` holds the position of each atom in the order in which double bonds are visited.
pub(super) fn directions(molecule: &Molecule, rank: &[usize]) -> Vec<Option<bool>> {
    let n_bonds = molecule.bonds().len();
    // The marked double bonds, each with its two ends. The end with the lower rank comes first.
    let mut marked: Vec<(usize, [usize; 2])> = Vec::new();
    for mark in molecule.marks() {
        if let StereoElement::DoubleBond(k) = mark.element {
            let mut ends = [molecule.bonds()[k].a, molecule.bonds()[k].b];
            ends.sort_unstable_by_key(|a| rank[*a]);
            marked.push((k, ends));
        }
    }
    marked.sort_unstable_by_key(|(_, ends)| ends.map(|a| rank[a]));
    let mut up: Vec<Option<bool>> = vec![None; n_bonds];
    let mut done = vec![false; n_bonds];
    for &(start, _) in &marked {
        // The search goes from a double bond to the next one along a shared single bond. The direction of the
        // shared bond is then already known when the next double bond is visited.
        let mut open = vec![start];
        while let Some(k) = open.pop() {
            let Some(&(_, [mut near, mut far])) = marked.iter().find(|(other, _)| *other == k) else {
                continue;
            };
            if std::mem::replace(&mut done[k], true) {
                continue;
            }
            if first_is_up(molecule, &up, near, k).is_none() && first_is_up(molecule, &up, far, k).is_some() {
                (near, far) = (far, near);
            }
            let known = first_is_up(molecule, &up, near, k);
            let sign = known.unwrap_or_else(|| first_sign(molecule, near, k, rank));
            let positive = molecule.double_bond_sign(k) == Some(true);
            for (end, first_is_up) in [(near, sign), (far, sign == positive)] {
                for side in side_bonds(molecule, end, k) {
                    up[side.bond] = Some(first_is_up ^ side.turns);
                    open.extend(molecule.bonds_at(side.atom));
                }
            }
        }
    }
    let mut written = vec![false; n_bonds];
    for (k, ends) in marked {
        for end in ends {
            let beside = side_bonds(molecule, end, k);
            if !beside.iter().any(|side| written[side.bond])
                && let Some(side) = beside.iter().min_by_key(|side| rank[side.atom])
            {
                written[side.bond] = true;
            }
        }
    }
    up.into_iter().zip(written).map(|(up, written)| up.filter(|_| written)).collect()
}

/// Returns `true` if the neighbour with the smallest index of a double bond's end is above this end. Returns
/// `None` if the directions in `up` don't determine this.
fn first_is_up(molecule: &Molecule, up: &[Option<bool>], end: usize, double: usize) -> Option<bool> {
    side_bonds(molecule, end, double).into_iter().find_map(|side| Some(up[side.bond]? ^ side.turns))
}

/// Returns `true` if the neighbour with the smallest index of a double bond's end is above this end. The
/// function assumes that the bond to the neighbour of lowest rank goes up from the atom of lower rank to the
/// atom of higher rank.
fn first_sign(molecule: &Molecule, end: usize, double: usize, rank: &[usize]) -> bool {
    let beside = molecule.beside(end, double);
    let lowest = beside.iter().enumerate().min_by_key(|(_, b)| rank[**b]);
    lowest.is_some_and(|(place, b)| (rank[end] < rank[*b]) ^ (place > 0))
}
