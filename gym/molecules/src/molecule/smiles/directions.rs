//! Directions of single bonds (`/` and `\`), which determine the configuration (the sign) of the double bonds
//! next to them. A direction says which of the bond's two atoms is above the other.

use crate::molecule::{Molecule, StereoElement};

/// A single bond between one end of a double bond and a neighbour of this end.
pub(super) struct SideBond {
    pub(super) bond: usize,
    /// The neighbour: the atom of this bond that isn't an end of the double bond.
    pub(super) atom: usize,
    /// Relates two statements: "the second atom of this bond is above its first atom", and "the end's
    /// neighbour with the smallest index is above the end". If `turns` is `false`, both are true or both are
    /// false. If it is `true`, exactly one of them is true.
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

/// Returns the direction of each bond: `true` if its second atom is above its first atom, and `None` if the
/// SMILES has no `/` or `\` for this bond.
///
/// `rank` holds the position of each atom in the canonical order.
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

/// Compares a double bond's end with its neighbour that has the smallest index (the double bond's other end
/// doesn't count). Returns `true` if this neighbour is above the end, and `None` if the directions in `up`
/// don't determine this.
fn first_is_up(molecule: &Molecule, up: &[Option<bool>], end: usize, double: usize) -> Option<bool> {
    side_bonds(molecule, end, double).into_iter().find_map(|side| Some(up[side.bond]? ^ side.turns))
}

/// Chooses the directions at a double bond's end if no direction is known yet: of the end and its neighbour
/// of lowest rank, the atom of lower rank is below the other. Returns `true` if the end's neighbour with the
/// smallest index is then above the end. `rank` holds the position of each atom in the canonical order.
fn first_sign(molecule: &Molecule, end: usize, double: usize, rank: &[usize]) -> bool {
    let beside = molecule.beside(end, double);
    let lowest = beside.iter().enumerate().min_by_key(|(_, b)| rank[**b]);
    lowest.is_some_and(|(place, b)| (rank[end] < rank[*b]) ^ (place > 0))
}
