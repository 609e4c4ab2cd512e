//! Stereochemistry in drawings: sides of double bonds, and wedges at stereocentres (called centres in this
//! file).

use super::place::{Place, angle, minus, mirrored, side};
use crate::molecule::is_odd;
use crate::{BondOrder, Molecule, StereoElement};

/// A bond that is drawn as a wedge to show the sign (the arrangement of the neighbours) of a stereocentre.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Wedge {
    /// The stereocentre, which is the atom at the tip of the wedge.
    pub(super) from: usize,
    /// `true` if the bond points towards the reader, `false` if it points behind the paper.
    pub(super) up: bool,
}

impl Molecule {
    /// Mirrors one side of the molecule at each marked double bond outside of rings, if needed, so that the
    /// bond is drawn as cis or trans as its mark requires.
    pub(super) fn set_sides(&self, places: &mut [Place]) {
        for k in 0..self.bonds().len() {
            if self.bonds()[k].in_ring || self.shows_sign(places, k) {
                continue;
            }
            let a = self.bonds()[k].a;
            let b = self.bonds()[k].b;
            let ends = (places[a], places[b]);
            for c in self.reach(b, usize::MAX, |other| other != k).into_iter().filter(|&c| c != b) {
                places[c] = mirrored(places[c], ends.0, ends.1);
            }
        }
    }

    /// Returns `false` for a double bond that is marked as cis but drawn as trans, or marked as trans but
    /// drawn as cis. Returns `true` for all other bonds.
    pub(super) fn shows_sign(&self, places: &[Place], k: usize) -> bool {
        let bond = self.bonds()[k];
        let first = |end: usize| {
            self.beside(end, k).first().map(|&b| side(places[bond.a], places[bond.b], places[b]) > 0.0)
        };
        self.double_bond_sign(k).is_none_or(|positive| positive == (first(bond.a) == first(bond.b)))
    }

    /// Returns the wedge that each bond is drawn as; `None` for plain bonds.
    ///
    /// # Errors
    /// Returns the atom of the first marked centre that has no bond which can be drawn as a wedge.
    pub(super) fn wedges(&self, places: &[Place]) -> Result<Vec<Option<Wedge>>, usize> {
        let mut out = vec![None; self.bonds().len()];
        for mark in self.marks() {
            let StereoElement::Centre(from) = mark.element else { continue };
            let single = |k: &&usize| self.bonds()[**k].order == BondOrder::Single && out[**k].is_none();
            let to = |k: usize| self.bonds()[k].other_end(from);
            // The bond that becomes a wedge should meet four criteria, the most important first: the other
            // two bonds aren't parallel, the bond is outside of rings, it leads to no other centre, and it
            // leads to an end of the molecule.
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

    /// Returns the cross product of the bonds from the centre `from` to its two neighbours other than `to`.
    /// The wedge to `to` is clear if these bonds aren't parallel. Otherwise (three other neighbours) returns
    /// 1, because such a wedge is clear in any case.
    fn volume(&self, places: &[Place], from: usize, to: usize) -> f64 {
        match self.heavy_neighbours(from).into_iter().filter(|&b| b != to).collect::<Vec<_>>()[..] {
            [b, c] => side(places[from], places[b], places[c]),
            _ => 1.0,
        }
    }

    /// Returns the sign that the centre `from` has if its bond to `to` points towards the reader and its
    /// other bonds are in the plane of the paper.
    fn turns_with_wedge(&self, places: &[Place], from: usize, to: usize) -> bool {
        let mut others: Vec<usize> = self.heavy_neighbours(from).into_iter().filter(|&b| b != to).collect();
        if others.len() == 2 {
            // The hydrogen or lone pair is behind the paper, and it comes first in the order of neighbours.
            // The sign is defined by the view from this first neighbour, so it is the opposite of what the
            // reader sees.
            let turns = self.volume(places, from, to) > 0.0;
            return !(turns ^ is_odd(&[to, others[0], others[1]]));
        }
        let start = angle((0.0, 0.0), minus(places[to], places[from]));
        let around = |b: usize| {
            (angle((0.0, 0.0), minus(places[b], places[from])) - start).rem_euclid(std::f64::consts::TAU)
        };
        others.sort_by(|&b, &c| around(b).total_cmp(&around(c)));
        // The other neighbours are now in counterclockwise order as the reader sees them.
        others.insert(0, to);
        !is_odd(&others)
    }
}
