//! The places of a ring system: rings that share bonds.

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI, TAU};

use gfn::Rng;
use gfn_plot::majorise;

use super::place::{Place, angle, distance, middle, plus, towards, turned};
use super::rings::bonds_of;
use super::strain::{Strain, chord, shapes};

/// A drawing of rings that hang together by bonds.
pub(super) struct Block {
    /// Its atoms.
    pub(super) atoms: Vec<usize>,
    /// Their places, in the same order.
    pub(super) places: Vec<Place>,
}

/// Below that a drawing of regular rings is as it should be.
const NEAT: f64 = 0.02;
/// Drawings by stress majorisation that are tried besides.
const STARTS: usize = 6;
/// With more atoms than that, rings are put side by side whatever comes of it.
const MAX_RELAXED: usize = 80;

impl Block {
    /// Places the atoms of `rings`.
    pub(super) fn new(rings: &[Vec<usize>]) -> Self {
        let mut atoms = rings.concat();
        atoms.sort_unstable();
        atoms.dedup();
        let local = |a: &usize| atoms.binary_search(a).unwrap_or(0);
        let rings: Vec<Vec<usize>> = rings.iter().map(|ring| ring.iter().map(local).collect()).collect();
        let mut bonds: Vec<_> = rings.iter().flat_map(|ring| bonds_of(ring)).collect();
        bonds.sort_unstable();
        bonds.dedup();
        let n = atoms.len();
        let mut neighbours = vec![Vec::new(); n];
        for &(a, b) in &bonds {
            neighbours[a].push(b);
            neighbours[b].push(a);
        }
        let strain = Strain { neighbours: &neighbours, bonds: &bonds, shapes: shapes(n, &rings) };
        let mut places = side_by_side(n, &rings);
        if n <= MAX_RELAXED && strain.total(&places) > NEAT {
            places = relaxed(&strain, places, &distances(n, &rings));
        }
        Self { atoms, places }
    }
}

/// One ring after the other, each as regular as those before leave it.
fn side_by_side(n: usize, rings: &[Vec<usize>]) -> Vec<Place> {
    let mut places: Vec<Option<Place>> = vec![None; n];
    let sharing = |i: usize| rings.iter().filter(|r| bonds_of(r).any(|b| bonds_of(&rings[i]).any(|c| b == c))).count();
    // From the ring with the most neighbours; hexagons stand on a corner, squares on a side.
    let first = (0..rings.len()).min_by_key(|&i| (std::cmp::Reverse(sharing(i)), rings[i].len().abs_diff(6)));
    let Some(first) = first else { return Vec::new() };
    let size = rings[first].len() as f64;
    let turn = if rings[first].len() == 4 { FRAC_PI_4 } else { FRAC_PI_2 };
    for (k, &a) in rings[first].iter().enumerate() {
        places[a] = Some(plus((0.0, 0.0), 0.5 / (PI / size).sin(), towards(TAU * k as f64 / size + turn)));
    }
    let mut left: Vec<usize> = (0..rings.len()).filter(|&i| i != first).collect();
    let placed = |places: &[Option<Place>], i: usize| rings[i].iter().filter(|&&a| places[a].is_some()).count();
    // First those that share a bond, then those that share more.
    while let Some(&i) = left.iter().filter(|&&i| placed(&places, i) > 1).min_by_key(|&&i| placed(&places, i)) {
        left.retain(|&other| other != i);
        let ring = &rings[i];
        let size = ring.len();
        // Runs of atoms without a place, between two with one.
        for start in 0..size {
            let run: Vec<usize> =
                (1..size).map(|k| ring[(start + k) % size]).take_while(|&a| places[a].is_none()).collect();
            let end = ring[(start + run.len() + 1) % size];
            if let (Some(p), Some(q), false) = (places[ring[start]], places[end], run.is_empty()) {
                let known: Vec<Place> = places.iter().flatten().copied().collect();
                for (a, place) in run.iter().zip(arc(p, q, run.len(), &known)) {
                    places[*a] = Some(place);
                }
            }
        }
    }
    places.into_iter().map(Option::unwrap_or_default).collect()
}

/// `n` points between two on an arc with bonds of length 1, on the side that is emptier.
fn arc(p: Place, q: Place, n: usize, known: &[Place]) -> Vec<Place> {
    let (bonds, far) = ((n + 1) as f64, distance(p, q));
    if far >= bonds - 1e-6 {
        return (1..=n).map(|k| plus(p, k as f64 / bonds, (q.0 - p.0, q.1 - p.1))).collect();
    }
    // Half the angle of a bond seen from the centre: the chord over all bonds falls from `bonds` to 0.
    let (mut low, mut high) = (1e-9, PI / bonds);
    for _ in 0..60 {
        let half = f64::midpoint(low, high);
        if (bonds * half).sin() / half.sin() > far { low = half } else { high = half }
    }
    let radius = 0.5 / low.sin();
    let along = angle(p, q);
    let sides = [1.0, -1.0].map(|sign| {
        let centre =
            plus(plus(p, 0.5, (q.0 - p.0, q.1 - p.1)), -sign * radius * (bonds * low).cos(), towards(along + PI / 2.0));
        let points: Vec<Place> = (1..=n).map(|k| turned(p, centre, -sign * 2.0 * low * k as f64)).collect();
        let crowd = points.iter().flat_map(|a| known.iter().map(move |b| distance(*a, *b).max(0.05).powi(-3)));
        (crowd.sum::<f64>(), points)
    });
    let [(left, one), (right, other)] = sides;
    if left <= right + 1e-9 { one } else { other }
}

/// Distances that atoms should have: in regular rings, and along the shortest ways through them.
fn distances(n: usize, rings: &[Vec<usize>]) -> Vec<Vec<f64>> {
    let mut out = vec![vec![f64::INFINITY; n]; n];
    for ring in rings {
        for (i, &a) in ring.iter().enumerate() {
            for (j, &b) in ring.iter().enumerate() {
                out[a][b] = out[a][b].min(chord(ring.len(), i.abs_diff(j)));
            }
        }
    }
    for via in 0..n {
        for a in 0..n {
            for b in 0..n {
                out[a][b] = out[a][b].min(out[a][via] + out[via][b]);
            }
        }
    }
    out
}

/// The best of several drawings, each made as good as it gets.
fn relaxed(strain: &Strain<'_>, first: Vec<Place>, distances: &[Vec<f64>]) -> Vec<Place> {
    let n = first.len();
    let mut rng = Rng::seeded(1);
    let mut starts = vec![first];
    for start in 0..STARTS {
        let mut places: Vec<Place> = if start == 0 {
            starts[0].clone()
        } else {
            let mut order: Vec<usize> = (0..n).collect();
            (1..n).rev().for_each(|i| order.swap(i, rng.below(i + 1)));
            order.iter().map(|&k| plus((0.0, 0.0), 2.0, towards(TAU * k as f64 / n as f64))).collect()
        };
        // Off a symmetric position, which may be an extremum that no step leaves.
        places.iter_mut().for_each(|p| *p = plus(*p, 1.0, (0.05 * rng.normal(), 0.05 * rng.normal())));
        (0..100).for_each(|_| majorise(&mut places, distances));
        starts.push(places);
    }
    let drawn = starts.into_iter().map(|mut places| {
        strain.relax(&mut places);
        (strain.total(&places), places)
    });
    let best = drawn.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, places)| places).unwrap_or_default();
    level(best)
}

/// Turned so that the longest direction lies level.
fn level(places: Vec<Place>) -> Vec<Place> {
    let centre = middle(places.iter().copied());
    let (mut along, mut across) = (0.0, 0.0);
    for (x, y) in places.iter().map(|p| (p.0 - centre.0, p.1 - centre.1)) {
        along += x * x - y * y;
        across += 2.0 * x * y;
    }
    let by = -0.5 * f64::atan2(across, along);
    places.into_iter().map(|p| turned(p, centre, by)).collect()
}
