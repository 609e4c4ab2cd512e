//! The places of all atoms: ring systems as they are, chains in zigzag, and all put together atom by atom.

use std::collections::VecDeque;
use std::f64::consts::{FRAC_PI_2, PI, TAU};

use super::block::Block;
use super::clashes;
use super::place::{Place, angle, distance, middle, plus, towards, turned};
use super::rings::{smallest_rings, systems};
use crate::Molecule;

impl Molecule {
    /// Where its atoms are in a drawing, to the right and up, in bond lengths.
    ///
    /// Rings are regular polygons as far as they can be, chains are zigzags with angles of 120 degrees, and atoms keep apart.
    /// Bridged rings, and what would lie on itself, are bent and stretched: bond lengths are 1 elsewhere. The
    /// same molecule has the same places, whatever the order of its atoms and its Kekule form.
    ///
    /// Large ones are drawn as they come, so that time stays short: rings that hang together by bonds and have over 80 atoms
    /// aren't made regular where they don't fit side by side, and in molecules of over 250 atoms parts may lie on each other.
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
        self.drawn().0
    }

    /// The places of its atoms, and a smallest set of its rings.
    pub(super) fn drawn(&self) -> (Vec<Place>, Vec<Vec<usize>>) {
        let order = self.canonical().order;
        let skeleton = Skeleton::new(self, &order);
        let mut places = vec![(0.0, 0.0); order.len()];
        for (&a, place) in order.iter().zip(skeleton.places()) {
            places[a as usize] = place;
        }
        self.set_sides(&mut places);
        let named = |ring: &Vec<usize>| ring.iter().map(|&a| order[a] as usize).collect();
        (places, skeleton.rings.iter().map(named).collect())
    }

    /// `true` if an atom's two bonds lie on a line: next to a triple bond, or between two double ones.
    pub(super) fn is_straight(&self, a: usize) -> bool {
        let orders = self.neighbours(a).filter(|(_, bond)| !bond.aromatic).map(|(_, bond)| bond.order.value() - 1);
        self.neighbours(a).len() == 2 && orders.sum::<u8>() == 2
    }
}

/// A molecule as a drawing sees it, its atoms in canonical order.
pub(super) struct Skeleton {
    pub(super) neighbours: Vec<Vec<usize>>,
    pub(super) bonds: Vec<(usize, usize)>,
    pub(super) in_ring: Vec<bool>,
    pub(super) straight: Vec<bool>,
    pub(super) rings: Vec<Vec<usize>>,
}

/// What is put at an atom: a bond to another, or a ring system that the atom is part of.
enum Part {
    Bond(usize),
    Rings(usize),
}

impl Skeleton {
    pub(super) fn new(molecule: &Molecule, order: &[u32]) -> Self {
        let n = order.len();
        let mut rank = vec![0; n];
        for (place, &a) in order.iter().enumerate() {
            rank[a as usize] = place;
        }
        let ends = |a: usize, b: usize| (rank[a].min(rank[b]), rank[a].max(rank[b]));
        let mut all: Vec<_> = molecule.bonds().iter().map(|bond| (ends(bond.a, bond.b), bond.in_ring)).collect();
        all.sort_unstable();
        let (bonds, in_ring): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        let mut neighbours = vec![Vec::new(); n];
        for &(a, b) in &bonds {
            neighbours[a].push(b);
            neighbours[b].push(a);
        }
        neighbours.iter_mut().for_each(|list: &mut Vec<usize>| list.sort_unstable());
        let straight = order.iter().map(|&a| molecule.is_straight(a as usize)).collect();
        let of_rings: Vec<_> = bonds.iter().zip(&in_ring).filter(|(_, ring)| **ring).map(|(bond, _)| *bond).collect();
        let rings = smallest_rings(n, &of_rings);
        Self { neighbours, bonds, in_ring, straight, rings }
    }

    fn places(&self) -> Vec<Place> {
        let systems = systems(&self.rings);
        let blocks = systems.iter().map(|system| {
            let rings: Vec<Vec<usize>> = system.iter().map(|&i| self.rings[i].clone()).collect();
            Block::new(&rings)
        });
        let assembly = Assembly { skeleton: self, blocks: blocks.collect(), places: vec![None; self.neighbours.len()] };
        let mut places = assembly.assemble();
        clashes::resolve(self, &mut places);
        upright(places)
    }

    /// The branch at `b` seen from `a`: its depth and its number of atoms.
    fn branch(&self, a: usize, b: usize) -> (usize, usize) {
        let mut seen = vec![false; self.neighbours.len()];
        (seen[a], seen[b]) = (true, true);
        let (mut front, mut depth, mut size) = (vec![b], 0, 0);
        while !front.is_empty() {
            (depth, size) = (depth + 1, size + front.len());
            let mut next = Vec::new();
            for &c in &front {
                next.extend(self.neighbours[c].iter().copied().filter(|&d| !std::mem::replace(&mut seen[d], true)));
            }
            front = next;
        }
        (depth, size)
    }

    /// An end of a longest chain.
    fn end_of_chain(&self) -> usize {
        let deepest = (0..self.neighbours.len()).max_by_key(|&a| {
            let depth = self.neighbours[a].iter().map(|&b| self.branch(a, b).0).max();
            (depth, std::cmp::Reverse(a))
        });
        deepest.unwrap_or(0)
    }
}

struct Assembly<'a> {
    skeleton: &'a Skeleton,
    blocks: Vec<Block>,
    places: Vec<Option<Place>>,
}

impl Assembly<'_> {
    fn assemble(mut self) -> Vec<Place> {
        let largest = (0..self.blocks.len()).max_by_key(|&k| (self.blocks[k].atoms.len(), std::cmp::Reverse(k)));
        let mut open = VecDeque::new();
        match largest {
            Some(k) => {
                for (&a, &place) in self.blocks[k].atoms.iter().zip(&self.blocks[k].places) {
                    self.places[a] = Some(place);
                    open.push_back(a);
                }
            }
            None => {
                let root = self.skeleton.end_of_chain();
                self.places[root] = Some((0.0, 0.0));
                open.push_back(root);
            }
        }
        while let Some(a) = open.pop_front() {
            open.extend(self.surround(a));
        }
        self.places.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// Places what hangs at an atom; the atoms that have a place now.
    fn surround(&mut self, a: usize) -> Vec<usize> {
        let Some(here) = self.places[a] else { return Vec::new() };
        let mut parts = Vec::new();
        let mut inside: Vec<usize> = Vec::new();
        for (k, block) in self.blocks.iter().enumerate().filter(|(_, block)| block.atoms.contains(&a)) {
            inside.extend(&block.atoms);
            if block.atoms.iter().any(|&b| self.places[b].is_none()) {
                parts.push(Part::Rings(k));
            }
        }
        let mut free: Vec<usize> = self.skeleton.neighbours[a].clone();
        free.retain(|b| self.places[*b].is_none() && !inside.contains(b));
        // The longest branch first.
        free.sort_by_key(|&b| std::cmp::Reverse(self.skeleton.branch(a, b)));
        parts.extend(free.into_iter().map(Part::Bond));
        if parts.is_empty() {
            return Vec::new();
        }
        let taken: Vec<f64> =
            self.skeleton.neighbours[a].iter().filter_map(|&b| Some(angle(here, self.places[b]?))).collect();
        let plain = parts.iter().all(|part| matches!(part, Part::Bond(_)));
        let directions = match taken[..] {
            // The first atom is the end of a chain: one bond, of a zigzag that lies level.
            [] => vec![PI / 6.0],
            [back] if plain => self.along_chain(a, here, back, parts.len()),
            _ => self.within_gap(a, &taken, &parts),
        };
        let mut placed = Vec::new();
        for (part, direction) in parts.iter().zip(directions) {
            match part {
                Part::Bond(b) => {
                    self.places[*b] = Some(plus(here, 1.0, towards(direction)));
                    placed.push(*b);
                }
                Part::Rings(k) => placed.extend(self.put_rings(*k, a, here, direction)),
            }
        }
        placed
    }

    /// Directions at an atom that came by one bond, the emptiest first.
    fn along_chain(&self, a: usize, here: Place, back: f64, n: usize) -> Vec<f64> {
        if n == 1 && self.skeleton.straight[a] {
            return vec![back + PI];
        }
        if n == 3 {
            return [PI, FRAC_PI_2, -FRAC_PI_2].map(|by| back + by).to_vec();
        }
        let step = if n <= 2 { TAU / 3.0 } else { TAU / (n + 1) as f64 };
        let mut turns: Vec<f64> = (1..=n.max(2)).map(|k| back + step * k as f64).collect();
        let crowd = |direction: f64| {
            let there = plus(here, 1.0, towards(direction));
            self.places.iter().flatten().map(|p| distance(*p, there).max(0.05).powi(-4)).sum::<f64>()
        };
        // Equal to the eye is equal: rounding must not decide.
        turns.sort_by_key(|&direction| (crowd(direction) * 1e6).round() as i64);
        turns.truncate(n);
        turns
    }

    /// Directions in the widest gap between those that are taken.
    fn within_gap(&self, a: usize, taken: &[f64], parts: &[Part]) -> Vec<f64> {
        let widths: Vec<f64> = parts
            .iter()
            .map(|part| match part {
                Part::Bond(_) => 0.0,
                Part::Rings(k) => TAU - self.opening(*k, a).1,
            })
            .collect();
        let (start, width) = widest(taken);
        let space = (width - widths.iter().sum::<f64>()) / (parts.len() + 1) as f64;
        let mut at = start;
        widths
            .iter()
            .map(|width| {
                let direction = at + space + width / 2.0;
                at += space + width;
                direction
            })
            .collect()
    }

    /// Where a ring system is open at one of its atoms: from which angle, and how wide.
    fn opening(&self, k: usize, a: usize) -> (f64, f64) {
        let block = &self.blocks[k];
        let place = |b: &usize| block.atoms.binary_search(b).ok().map(|i| block.places[i]);
        let Some(here) = place(&a) else { return (0.0, TAU) };
        let bonds = self.skeleton.neighbours[a].iter().filter_map(place);
        widest(&bonds.map(|there| angle(here, there)).collect::<Vec<f64>>())
    }

    /// Places a ring system at one of its atoms, its inner side in a direction.
    fn put_rings(&mut self, k: usize, a: usize, here: Place, direction: f64) -> Vec<usize> {
        let (start, width) = self.opening(k, a);
        let by = direction - (start + width / 2.0 + PI);
        let block = &self.blocks[k];
        let Ok(at) = block.atoms.binary_search(&a) else { return Vec::new() };
        let from = block.places[at];
        let mut placed = Vec::new();
        for (&b, &place) in block.atoms.iter().zip(&block.places) {
            if b != a {
                self.places[b] = Some(turned(plus(here, 1.0, (place.0 - from.0, place.1 - from.1)), here, by));
                placed.push(b);
            }
        }
        placed
    }
}

/// The widest gap between directions: where it starts, and how wide it is.
fn widest(directions: &[f64]) -> (f64, f64) {
    let mut sorted: Vec<f64> = directions.iter().map(|angle| angle.rem_euclid(TAU)).collect();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let gaps = (0..n).map(|k| (sorted[k], (sorted[(k + 1) % n] - sorted[k] - 1e-9).rem_euclid(TAU) + 1e-9));
    // Equal to the eye is equal.
    gaps.max_by_key(|gap| ((gap.1 * 1e6).round() as i64, std::cmp::Reverse((gap.0 * 1e6).round() as i64)))
        .unwrap_or((0.0, TAU))
}

/// Turned, by multiples of 30 degrees, to be wider than high if it is worth it; the middle at the origin.
fn upright(places: Vec<Place>) -> Vec<Place> {
    let centre = middle(places.iter().copied());
    let drawn = (0..6).map(|k| {
        let turned: Vec<Place> = places.iter().map(|p| turned(*p, centre, PI / 6.0 * f64::from(k))).collect();
        let range = |of: fn(&Place) -> f64| {
            let values = || turned.iter().map(of);
            values().fold(f64::NEG_INFINITY, f64::max) - values().fold(f64::INFINITY, f64::min)
        };
        let height = range(|p| p.1) * if k == 0 { 0.85 } else { 1.0 };
        ((height * 1e4).round() as i64, turned)
    });
    let best = drawn.min_by_key(|(height, _)| *height).map(|(_, places)| places).unwrap_or_default();
    best.into_iter().map(|p| (p.0 - centre.0, p.1 - centre.1)).collect()
}
