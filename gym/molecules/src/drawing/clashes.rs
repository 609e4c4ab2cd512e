//! Taking apart what lies on itself: parts are flipped about bonds, then bent, and at last single atoms are moved.

use super::layout::Skeleton;
use super::place::{Place, mirrored, turned};
use super::strain::{Strain, shapes};

/// With more atoms than that, a drawing stays as it was put together: every try looks at all pairs of atoms.
const MAX_ATOMS: usize = 250;
/// What a drawing without clashes may have.
const CLEAN: f64 = 0.01;
const ROUNDS: usize = 12;

/// One side of a bond that is in no ring.
struct Branch {
    /// The atom that stays.
    pivot: usize,
    /// The atom that moves.
    tip: usize,
    /// Both ends of the bond are on either side.
    inside: Vec<bool>,
    outside: Vec<bool>,
}

/// Changes a drawing until no atoms or bonds lie on each other, as far as that succeeds.
pub(super) fn resolve(skeleton: &Skeleton, places: &mut Vec<Place>) {
    let n = places.len();
    if !(4..=MAX_ATOMS).contains(&n) {
        return;
    }
    let everything = vec![true; n];
    let strain = skeleton.strain();
    let clash = |places: &[Place]| strain.between(places, &everything, &everything);
    let rigid = blocks_alone(skeleton, &strain, places);
    if clash(places) <= rigid + CLEAN {
        return;
    }
    let branches = branches(skeleton);
    // Flips are free; a bend costs something, so that it is made only where no flip helps.
    let bent: [&[f64]; 3] = [&[], &[0.26, -0.26, 0.52, -0.52], &[0.26, -0.26, 0.52, -0.52, 0.79, -0.79]];
    for bends in bent {
        for _ in 0..ROUNDS {
            let mut better = false;
            for branch in &branches {
                let now = strain.between(places, &branch.inside, &branch.outside);
                if now <= CLEAN {
                    continue;
                }
                let mut best = (now - 1e-6, None);
                let (pivot, tip) = (places[branch.pivot], places[branch.tip]);
                // Flipped or not, and then bent.
                let bent = bends.iter().flat_map(|&by| [(false, by), (true, by)]);
                for (flips, by) in bent.chain([(true, 0.0)]) {
                    let change = |p: Place| turned(if flips { mirrored(p, pivot, tip) } else { p }, pivot, by);
                    let moved: Vec<Place> =
                        (0..n).map(|i| if branch.inside[i] { change(places[i]) } else { places[i] }).collect();
                    let price = if by == 0.0 { 0.0 } else { 0.03 + 0.05 * by.abs() };
                    let cost = price + strain.between(&moved, &branch.inside, &branch.outside);
                    if cost < best.0 {
                        best = (cost, Some(moved));
                    }
                }
                if let Some(moved) = best.1 {
                    *places = moved;
                    better = true;
                }
            }
            if !better || clash(places) <= rigid + CLEAN {
                break;
            }
        }
        if clash(places) <= rigid + CLEAN {
            return;
        }
    }
    // Small faults stay: moving single atoms spoils angles.
    if clash(places) > rigid + 0.3 && n <= MAX_ATOMS / 2 {
        strain.relax(places);
    }
}

/// The clashes within ring systems, which no flip takes away.
fn blocks_alone(skeleton: &Skeleton, strain: &Strain<'_>, places: &[Place]) -> f64 {
    let systems = super::rings::systems(&skeleton.rings);
    let of = |system: &Vec<usize>| {
        let mut inside = vec![false; places.len()];
        system.iter().flat_map(|&i| &skeleton.rings[i]).for_each(|&a| inside[a] = true);
        strain.between(places, &inside, &inside)
    };
    systems.iter().map(of).sum()
}

fn branches(skeleton: &Skeleton) -> Vec<Branch> {
    let n = skeleton.neighbours.len();
    let mut out = Vec::new();
    for (&(a, b), _) in skeleton.bonds.iter().zip(&skeleton.in_ring).filter(|(_, ring)| !**ring) {
        let mut inside = vec![false; n];
        inside[b] = true;
        let mut open = vec![b];
        while let Some(c) = open.pop() {
            for &d in skeleton.neighbours[c].iter().filter(|d| (c, **d) != (b, a)) {
                if !std::mem::replace(&mut inside[d], true) {
                    open.push(d);
                }
            }
        }
        let mut outside: Vec<bool> = inside.iter().map(|inside| !inside).collect();
        // The smaller part moves.
        let (mut pivot, mut tip) = (a, b);
        if 2 * inside.iter().filter(|inside| **inside).count() > n {
            (pivot, tip) = (b, a);
            std::mem::swap(&mut inside, &mut outside);
        }
        // The bond between is on both sides, so that what lies on it is seen.
        (inside[pivot], outside[tip]) = (true, true);
        out.push(Branch { pivot, tip, inside, outside });
    }
    out
}

impl Skeleton {
    fn strain(&self) -> Strain<'_> {
        let mut shapes = shapes(self.neighbours.len(), &self.rings);
        for a in (0..self.neighbours.len()).filter(|&a| self.straight[a]) {
            if let [b, c] = self.neighbours[a][..] {
                shapes[b].push((c, 2.0));
                shapes[c].push((b, 2.0));
            }
        }
        Strain { neighbours: &self.neighbours, bonds: &self.bonds, shapes }
    }
}
