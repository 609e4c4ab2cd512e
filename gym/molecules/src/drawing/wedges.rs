//! Stereochemistry on paper: sides of double bonds, and wedges at centres.

use super::place::{Place, angle, minus, mirrored, side};
use crate::molecule::is_odd;
use crate::{BondOrder, Molecule, StereoElement};

/// A wedge, from a centre.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Wedge {
    /// The centre, at its tip.
    pub(super) from: usize,
    /// `true` where the bond comes towards the reader, `false` where it goes behind the paper.
    pub(super) up: bool,
}

impl Molecule {
    /// Turns what is beside marked double bonds, other than those of rings, to the side where it is.
    pub(super) fn set_sides(&self, places: &mut [Place]) {
        for k in 0..self.bonds().len() {
            if self.bonds()[k].in_ring || self.shows_sign(places, k) {
                continue;
            }
            let (a, b) = (self.bonds()[k].a, self.bonds()[k].b);
            let ends = (places[a], places[b]);
            for c in self.reach(b, usize::MAX, |other| other != k).into_iter().filter(|&c| c != b) {
                places[c] = mirrored(places[c], ends.0, ends.1);
            }
        }
    }

    /// `true` unless a double bond is marked as cis where the places of its neighbours have it trans, or the
    /// reverse.
    pub(super) fn shows_sign(&self, places: &[Place], k: usize) -> bool {
        let bond = self.bonds()[k];
        let first =
            |end: usize| self.beside(end, k).first().map(|&b| side(places[bond.a], places[bond.b], places[b]) > 0.0);
        self.double_bond_sign(k).is_none_or(|positive| positive == (first(bond.a) == first(bond.b)))
    }

    /// Returns for each bond its wedge, if it is drawn as a wedge.
    ///
    /// # Errors
    /// The atom of the first marked centre that has no bond to be drawn as a wedge.
    pub(super) fn wedges(&self, places: &[Place]) -> Result<Vec<Option<Wedge>>, usize> {
        let mut out = vec![None; self.bonds().len()];
        for mark in self.marks() {
            let StereoElement::Centre(from) = mark.element else { continue };
            let single = |k: &&usize| self.bonds()[**k].order == BondOrder::Single && out[**k].is_none();
            let to = |k: usize| self.bonds()[k].other_end(from);
            // Not in a ring, to an end of the molecule, not to another centre; the others well apart.
            let fitness = |&k: &usize| {
                let is_centre = self.sign(StereoElement::Centre(to(k))).is_some();
                let clear = self.volume(places, from, to(k)).abs() > 0.2;
                (!clear, self.bonds()[k].in_ring, is_centre, self.neighbours(to(k)).len() > 1)
            };
            let chosen = self.bonds_at(from).iter().filter(single).min_by_key(|&k| fitness(k)).copied();
            let Some(k) = chosen.filter(|_| self.neighbours(from).len() > 2) else { return Err(from) };
            let positive = self.turns_with_wedge(places, from, to(k));
            out[k] = Some(Wedge { from, up: positive == mark.positive });
        }
        Ok(out)
    }

    /// The area that the two other neighbours of a centre of three span; 1 with more.
    fn volume(&self, places: &[Place], from: usize, to: usize) -> f64 {
        match self.heavy_neighbours(from).into_iter().filter(|&b| b != to).collect::<Vec<_>>()[..] {
            [b, c] => side(places[from], places[b], places[c]),
            _ => 1.0,
        }
    }

    /// The sign of a centre whose bond to `to` comes towards the reader, the others being in the plane.
    fn turns_with_wedge(&self, places: &[Place], from: usize, to: usize) -> bool {
        let mut others: Vec<usize> = self.heavy_neighbours(from).into_iter().filter(|&b| b != to).collect();
        if others.len() == 2 {
            // Seen from the hydrogen or lone pair, behind the paper; it comes first in the order.
            let turns = self.volume(places, from, to) > 0.0;
            return !(turns ^ is_odd(&[to, others[0], others[1]]));
        }
        let start = angle((0.0, 0.0), minus(places[to], places[from]));
        let around =
            |b: usize| (angle((0.0, 0.0), minus(places[b], places[from])) - start).rem_euclid(std::f64::consts::TAU);
        others.sort_by(|&b, &c| around(b).total_cmp(&around(c)));
        // Seen from above, the others turn counterclockwise.
        others.insert(0, to);
        !is_odd(&others)
    }
}
