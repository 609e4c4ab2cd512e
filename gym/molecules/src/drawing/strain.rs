//! How far a drawing is from what one wants to see, and making it better atom by atom.

use std::f64::consts::{FRAC_PI_4, PI};

use super::place::{Place, cross, distance, gap, minus, plus, towards};

/// Atoms without a bond are no nearer than a bond is long.
const APART: f64 = 0.95;
/// And from bonds of others.
const CLEAR: f64 = 0.45;

/// What a drawing is judged by: bonds of length 1, regular rings, atoms apart from each other and from bonds, no crossings.
pub(super) struct Strain<'a> {
    pub(super) neighbours: &'a [Vec<usize>],
    pub(super) bonds: &'a [(usize, usize)],
    /// Distances that atoms should have, for each atom.
    pub(super) shapes: Vec<Vec<(usize, f64)>>,
}

impl Strain<'_> {
    /// Of two atoms without a bond.
    fn crowding(distance: f64) -> f64 {
        let (near, close) = ((APART - distance).max(0.0), (0.6 - distance).max(0.0));
        near * near + 40.0 * close * close
    }

    fn stretch(length: f64) -> f64 {
        let off = length - 1.0;
        let beyond = (off - 0.35).max(-0.3 - off).max(0.0);
        6.0 * off * off + 150.0 * beyond * beyond
    }

    /// Of two atoms with one between them: an angle that is too wide hides that one, so it counts more.
    fn bending(distance: f64, wanted: f64) -> f64 {
        let off = distance - wanted;
        (if off > 0.0 { 1.5 } else { 0.4 }) * off * off
    }

    /// Of an atom and a bond of others.
    fn covering(p: Place, a: Place, b: Place) -> f64 {
        let near = (CLEAR - gap(p, a, b)).max(0.0);
        8.0 * near * near
    }

    fn crossing(&self, places: &[Place], one: (usize, usize), other: (usize, usize)) -> f64 {
        let ((a, b), (c, d)) = (one, other);
        let apart = a != c && a != d && b != c && b != d;
        if apart && cross(places[a], places[b], places[c], places[d]) { 0.4 } else { 0.0 }
    }

    /// All that atom `i` has a part in.
    fn of(&self, places: &[Place], i: usize) -> f64 {
        let here = places[i];
        let mut sum = 0.0;
        for (j, &there) in places.iter().enumerate() {
            if (there.0 - here.0).abs() < APART && (there.1 - here.1).abs() < APART && j != i {
                sum += if self.neighbours[i].contains(&j) { 0.0 } else { Self::crowding(distance(here, there)) };
            }
        }
        for &(j, wanted) in &self.shapes[i] {
            sum += Self::bending(distance(here, places[j]), wanted);
        }
        for &j in &self.neighbours[i] {
            sum += Self::stretch(distance(here, places[j]));
            for (_, &p) in places.iter().enumerate().filter(|(k, _)| *k != i && *k != j) {
                if near(p, here, CLEAR + distance(here, places[j])) {
                    sum += Self::covering(p, here, places[j]);
                }
            }
        }
        for &(a, b) in self.bonds.iter().filter(|(a, b)| *a != i && *b != i) {
            if !near(places[a], here, 4.0) {
                continue;
            }
            sum += Self::covering(here, places[a], places[b]);
            sum += self.neighbours[i].iter().map(|&j| self.crossing(places, (i, j), (a, b))).sum::<f64>();
        }
        sum
    }

    /// Of the whole drawing.
    pub(super) fn total(&self, places: &[Place]) -> f64 {
        let n = places.len();
        let stretches = self.bonds.iter().map(|&(a, b)| Self::stretch(distance(places[a], places[b])));
        let shapes = self.shapes.iter().enumerate().flat_map(|(i, list)| list.iter().map(move |&(j, d)| (i, j, d)));
        let shapes = shapes.map(|(i, j, wanted)| Self::bending(distance(places[i], places[j]), wanted) / 2.0);
        stretches.sum::<f64>() + shapes.sum::<f64>() + self.between(places, &vec![true; n], &vec![true; n]) / 2.0
    }

    /// Crowding, covering and crossing between two sets of atoms.
    pub(super) fn between(&self, places: &[Place], one: &[bool], other: &[bool]) -> f64 {
        let mut sum = 0.0;
        for (i, &p) in places.iter().enumerate().filter(|(i, _)| one[*i]) {
            for (j, &q) in places.iter().enumerate().filter(|(j, _)| other[*j] && *j != i) {
                if near(p, q, APART) && !self.neighbours[i].contains(&j) {
                    sum += Self::crowding(distance(p, q));
                }
            }
        }
        let belongs = |set: &[bool], (a, b): (usize, usize)| set[a] && set[b];
        for &(a, b) in self.bonds {
            let ends = (places[a], places[b]);
            for (set, rest) in [(one, other), (other, one)] {
                if !belongs(set, (a, b)) {
                    continue;
                }
                for (_, &p) in places.iter().enumerate().filter(|(i, _)| rest[*i] && *i != a && *i != b) {
                    if near(p, ends.0, 3.0) {
                        sum += Self::covering(p, ends.0, ends.1);
                    }
                }
            }
            if belongs(one, (a, b)) {
                for &bond in
                    self.bonds.iter().filter(|bond| belongs(other, **bond) && near(places[bond.0], ends.0, 4.0))
                {
                    sum += self.crossing(places, (a, b), bond);
                }
            }
        }
        sum
    }

    /// Moves one atom after another, in steps that get smaller, while that makes the drawing better.
    pub(super) fn relax(&self, places: &mut [Place]) {
        let (mut step, mut twist) = (0.4, 0.0);
        while step > 0.005 {
            for _ in 0..12 {
                let mut moved = false;
                for i in 0..places.len() {
                    let mut least = self.of(places, i);
                    let from = places[i];
                    let mut best = from;
                    for k in 0..8 {
                        // Not always the same directions, so that no corner holds an atom.
                        places[i] = plus(from, step, towards(twist + f64::from(k) * FRAC_PI_4));
                        let cost = self.of(places, i);
                        if cost < least - 1e-9 {
                            (least, best) = (cost, places[i]);
                        }
                    }
                    places[i] = best;
                    moved |= best != from;
                }
                twist += 0.3;
                if !moved {
                    break;
                }
            }
            step *= 0.65;
        }
    }
}

fn near(p: Place, q: Place, within: f64) -> bool {
    let (x, y) = minus(p, q);
    x.abs() < within && y.abs() < within
}

/// Distances in regular rings of atoms two bonds apart, for each atom.
pub(super) fn shapes(n: usize, rings: &[Vec<usize>]) -> Vec<Vec<(usize, f64)>> {
    let mut out = vec![Vec::new(); n];
    for ring in rings.iter().filter(|ring| ring.len() > 3) {
        for (k, &a) in ring.iter().enumerate() {
            let b = ring[(k + 2) % ring.len()];
            let wanted = chord(ring.len(), 2);
            out[a].push((b, wanted));
            out[b].push((a, wanted));
        }
    }
    out
}

/// The distance of atoms `k` bonds apart in a regular ring.
pub(super) fn chord(size: usize, k: usize) -> f64 {
    (PI * k as f64 / size as f64).sin() / (PI / size as f64).sin()
}
