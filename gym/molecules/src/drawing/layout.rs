//! Layout of molecules: rings are regular polygons, chains are zigzags, and overlapping atoms are pushed
//! apart.

use std::f64::consts::{FRAC_PI_2, PI, TAU};

use super::place::{Place, angle, distance, minus, plus, towards, turned};
use crate::Molecule;
use crate::molecule::{ranks, smallest_rings};

/// The smallest distance, in bond lengths, that two atoms without a common bond should have.
const APART: f64 = 0.6;
/// The tolerated deviation, in bond lengths, from the distances that atoms should have: 1 between bonded
/// atoms, and at least `APART` between other atoms.
const TOLERANCE: f64 = 0.02;
/// The largest number of rounds in which the distances between atoms are corrected.
const ROUNDS: usize = 100;

impl Molecule {
    /// Returns the coordinates of the atoms in a drawing, in bond lengths. The x-axis points to the right
    /// and the y-axis upwards.
    ///
    /// Rings are regular polygons, chains are zigzags with angles of 120 degrees, and bonds have length 1.
    /// In bridged rings, and if branches would overlap, atoms are pushed apart. This bends and stretches
    /// bonds. The coordinates depend neither on the order of the atoms nor on the Kekule form.
    ///
    /// ```
    /// use gfn_molecules::Molecule;
    /// let places = Molecule::from_smiles("CCO")?.coordinates();
    /// let distance = |a: usize, b: usize| (places[a].0 - places[b].0).hypot(places[a].1 - places[b].1);
    /// assert!((distance(0, 1) - 1.0).abs() < 1e-9 && (distance(0, 2) - 3f64.sqrt()).abs() < 1e-9);
    /// # Ok::<(), gfn_molecules::MoleculeError>(())
    /// ```
    #[must_use]
    pub fn coordinates(&self) -> Vec<(f64, f64)> {
        let order = self.canonical().order;
        let rank = ranks(&order);
        let order: Vec<usize> = order.iter().map(|&a| a as usize).collect();
        // The bonds are in canonical order, so that isomorphic molecules have equal drawings.
        let mut bonds: Vec<_> =
            self.bonds().iter().map(|bond| (rank[bond.a], rank[bond.b], bond.in_ring)).collect();
        for bond in &mut bonds {
            *bond = (bond.0.min(bond.1), bond.0.max(bond.1), bond.2);
        }
        bonds.sort_unstable();
        let in_rings: Vec<_> = bonds.iter().filter(|bond| bond.2).map(|bond| (bond.0, bond.1)).collect();
        let mut layout = Layout {
            neighbours: vec![Vec::new(); order.len()],
            straight: order.iter().map(|&a| self.is_straight(a)).collect(),
            rings: smallest_rings(order.len(), &in_rings),
            places: vec![None; order.len()],
            placed: Vec::new(),
        };
        for (a, b, _) in bonds {
            layout.neighbours[a].push(b);
            layout.neighbours[b].push(a);
        }
        let canonical = layout.place_all();
        let mut places: Vec<Place> = rank.iter().map(|&k| canonical[k]).collect();
        self.set_sides(&mut places);
        layout.push_apart(&order, &mut places);
        self.set_sides(&mut places);
        places
    }

    /// Returns `true` if an atom has two bonds that form a straight line: a single and a triple bond, or two
    /// double bonds.
    fn is_straight(&self, a: usize) -> bool {
        let orders =
            self.neighbours(a).filter(|(_, bond)| !bond.aromatic).map(|(_, bond)| bond.order.value() - 1);
        self.neighbours(a).len() == 2 && orders.sum::<u8>() == 2
    }
}

/// The state of a layout: the atoms of a molecule in canonical order, with the positions that have been
/// found so far.
struct Layout {
    neighbours: Vec<Vec<usize>>,
    straight: Vec<bool>,
    rings: Vec<Vec<usize>>,
    places: Vec<Option<Place>>,
    /// The atoms that have a position, in the order in which they got it.
    placed: Vec<usize>,
}

impl Layout {
    fn place_all(&mut self) -> Vec<Place> {
        let n = self.neighbours.len();
        let end_of_chain = (0..n).min_by_key(|&a| self.neighbours[a].len());
        if let Some(start) = self.rings.first().map(|ring| ring[0]).or(end_of_chain) {
            self.put(start, (0.0, 0.0));
        }
        let mut next = 0;
        while next < self.placed.len() {
            self.surround(self.placed[next]);
            next += 1;
        }
        self.places.iter().map(|place| place.unwrap_or_default()).collect()
    }

    fn put(&mut self, a: usize, place: Place) {
        self.places[a] = Some(place);
        self.placed.push(a);
    }

    /// Places the rings of an atom that has a position, and then its other neighbours.
    fn surround(&mut self, a: usize) {
        let Some(here) = self.places[a] else { return };
        let is_open = |places: &[Option<Place>], ring: &[usize]| {
            ring.contains(&a) && ring.iter().any(|&b| places[b].is_none())
        };
        while let Some(k) = self.rings.iter().position(|ring| is_open(&self.places, ring)) {
            let (start, width) = widest(&self.bond_directions(a, here));
            let ring = self.rings[k].clone();
            let size = ring.len();
            let centre = plus(here, 0.5 / (PI / size as f64).sin(), towards(start + width / 2.0));
            let at = ring.iter().position(|&b| b == a).unwrap_or(0);
            for step in 1..size {
                self.put(ring[(at + step) % size], turned(here, centre, TAU * step as f64 / size as f64));
            }
            while self.close_ring() {}
        }
        let free: Vec<usize> =
            self.neighbours[a].iter().copied().filter(|&b| self.places[b].is_none()).collect();
        let directions = self.directions(a, here, free.len());
        for (b, direction) in free.into_iter().zip(directions) {
            self.put(b, plus(here, 1.0, towards(direction)));
        }
    }

    /// Returns the directions of an atom's bonds to neighbours that have a position. If no neighbour has
    /// one, the function returns the single direction down.
    fn bond_directions(&self, a: usize, here: Place) -> Vec<f64> {
        let taken: Vec<f64> =
            self.neighbours[a].iter().filter_map(|&b| Some(angle(here, self.places[b]?))).collect();
        if taken.is_empty() { vec![-FRAC_PI_2] } else { taken }
    }

    /// Returns directions for `n` further bonds of an atom that has the position `here`.
    fn directions(&self, a: usize, here: Place, n: usize) -> Vec<f64> {
        let taken = self.bond_directions(a, here);
        let (start, width) = widest(&taken);
        if taken.len() > 1 || n != 1 || self.straight[a] {
            return (1..=n).map(|k| start + width * k as f64 / (n + 1) as f64).collect();
        }
        let crowd = |direction: f64| self.crowd(&[plus(here, 1.0, towards(direction))]);
        let sides = [start + TAU / 3.0, start - TAU / 3.0];
        // If both sides are equally crowded up to 1e-6, the first is chosen, so that the choice doesn't
        // depend on rounding errors.
        vec![if crowd(sides[0]) <= crowd(sides[1]) + 1e-6 { sides[0] } else { sides[1] }]
    }

    /// Returns a measure of how crowded these points are: it grows as they come nearer to atoms that have a
    /// position.
    fn crowd(&self, points: &[Place]) -> f64 {
        let atoms = || self.places.iter().flatten();
        points.iter().flat_map(|&p| atoms().map(move |&q| distance(p, q).max(0.05).powi(-4))).sum()
    }

    /// Completes a ring of which at least two atoms, but not all, have a position. Returns `false` if there
    /// is no such ring.
    fn close_ring(&mut self) -> bool {
        let n_placed = |ring: &Vec<usize>| ring.iter().filter(|&&a| self.places[a].is_some()).count();
        let open = self.rings.iter().filter(|ring| (2..ring.len()).contains(&n_placed(ring)));
        // Rings with few atoms that have a position come first, because a ring with two such atoms keeps its
        // shape: it shares only one bond with the rings that are already drawn.
        let Some(ring) = open.min_by_key(|ring| n_placed(ring)).cloned() else { return false };
        let size = ring.len();
        for start in 0..size {
            let after = (1..size).map(|k| ring[(start + k) % size]);
            let run: Vec<usize> = after.take_while(|&a| self.places[a].is_none()).collect();
            let end = ring[(start + run.len() + 1) % size];
            if let (Some(p), Some(q)) = (self.places[ring[start]], self.places[end]) {
                for (&a, place) in run.iter().zip(self.arc(p, q, run.len())) {
                    self.put(a, place);
                }
            }
        }
        true
    }

    /// Returns `n` points on an arc from `p` to `q`. Consecutive points have distance 1. The arc is on the
    /// less crowded side of the line from `p` to `q`.
    fn arc(&self, p: Place, q: Place, n: usize) -> Vec<Place> {
        let bonds = (n + 1) as f64;
        let chord = distance(p, q);
        if chord >= bonds - 1e-6 {
            return (1..=n).map(|k| plus(p, k as f64 / bonds, minus(q, p))).collect();
        }
        // Half the angle that a bond subtends at the arc's centre is found by bisection. As this angle grows,
        // the distance between the ends of the arc shrinks from `bonds` to 0.
        let mut low = 1e-9;
        let mut high = PI / bonds;
        for _ in 0..60 {
            let half = f64::midpoint(low, high);
            if (bonds * half).sin() / half.sin() > chord { low = half } else { high = half }
        }
        let height = 0.5 / low.sin() * (bonds * low).cos();
        let arcs = [1.0, -1.0].map(|sign| {
            let centre = plus(plus(p, 0.5, minus(q, p)), -sign * height, towards(angle(p, q) + FRAC_PI_2));
            let points: Vec<Place> =
                (1..=n).map(|k| turned(p, centre, -sign * 2.0 * low * k as f64)).collect();
            (self.crowd(&points), points)
        });
        let [(left, one), (right, other)] = arcs;
        if left <= right + 1e-6 { one } else { other }
    }

    /// Pushes overlapping atoms apart, and corrects the distance of bonded atoms to the bond length.
    /// `order[k]` is the atom of rank `k`.
    fn push_apart(&self, order: &[usize], places: &mut [Place]) {
        for _ in 0..ROUNDS {
            let mut is_settled = true;
            for (i, &a) in order.iter().enumerate() {
                for (j, &b) in order.iter().enumerate().take(i) {
                    let apart = distance(places[a], places[b]);
                    let wanted = if self.neighbours[i].contains(&j) { 1.0 } else { apart.max(APART) };
                    if (wanted - apart).abs() < TOLERANCE {
                        continue;
                    }
                    is_settled = false;
                    // Two atoms at the same position are moved apart in a direction that depends on the rank
                    // of `a`, so that more than two atoms at one position also separate.
                    let along =
                        if apart < 1e-6 { towards(i as f64) } else { towards(angle(places[b], places[a])) };
                    places[a] = plus(places[a], (wanted - apart) / 4.0, along);
                    places[b] = plus(places[b], (apart - wanted) / 4.0, along);
                }
            }
            if is_settled {
                return;
            }
        }
    }
}

/// Returns the start and the width of the widest gap between directions, in radians.
fn widest(directions: &[f64]) -> (f64, f64) {
    let mut sorted: Vec<f64> = directions.iter().map(|angle| angle.rem_euclid(TAU)).collect();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let gaps = (0..n).map(|k| (sorted[k], (sorted[(k + 1) % n] - sorted[k] - 1e-9).rem_euclid(TAU) + 1e-9));
    // Widths that differ by less than 1e-6 count as equal, so that the choice of the gap doesn't depend on
    // rounding errors.
    gaps.max_by_key(|gap| (gap.1 * 1e6).round() as i64).unwrap_or((0.0, TAU))
}
