//! Rings, and which of them are aromatic.
//!
//! The model is RDKit's: each atom of a ring gives 0, 1 or 2 electrons by its element, charge, neighbours and multiple bonds, and
//! a ring of 4n + 2 electrons is aromatic. RDKit looks at a smallest set of rings and at unions of them; here it is every simple ring
//! of candidate atoms, which no labelling can change, and the chords of an aromatic ring (the bond across azulene) are
//! aromatic with it. As an atom's electrons don't depend on which of its ring bonds is the double one, all Kekule forms of an
//! aromatic system come out alike. Atoms with triple bonds aren't candidates (RDKit takes benzyne for aromatic);
//! oxygen and sulphur with two electrons to give are only in rings of up to 8 (oxonin isn't aromatic, as in RDKit).
//!
//! Each system of candidate atoms is looked at by itself. Rings of up to 24 atoms count; in a system with more than 10,000 of
//! these those of up to 12, or, where these are too many as well, of up to 8: all of them in any case, so that the order of the
//! atoms decides nothing.

use petgraph::algo::bridges::bridges;
use petgraph::graph::{NodeIndex, UnGraph};
use petgraph::visit::EdgeRef;
use smallvec::SmallVec;

use super::{BondOrder, Element, Molecule, valence};

/// The longest rings that are looked at, and the number beyond which only smaller ones are. A candidate has three neighbours at most, so
/// the last ones are as many as there are atoms, give or take a factor.
const RINGS: [(usize, usize); 3] = [(24, 10_000), (12, 10_000), (8, usize::MAX)];

/// The largest rings to which oxygen and sulphur give two electrons.
const SMALL_RING: usize = 8;

/// Which bonds of `n` atoms are in a ring: those without which their ends are joined still.
pub(super) fn ring_bonds(n: usize, bonds: impl ExactSizeIterator<Item = (usize, usize)>) -> Vec<bool> {
    let mut in_ring = vec![true; bonds.len()];
    let mut graph = UnGraph::<(), ()>::with_capacity(n, bonds.len());
    (0..n).for_each(|_| {
        graph.add_node(());
    });
    for (a, b) in bonds {
        graph.add_edge(NodeIndex::new(a), NodeIndex::new(b), ());
    }
    for bridge in bridges(&graph) {
        in_ring[bridge.id().index()] = false;
    }
    in_ring
}

/// The electrons that an atom gives to an aromatic ring; `None` if it can't be in one.
fn electrons(molecule: &Molecule, a: usize) -> Option<u8> {
    let atom = molecule.atoms()[a];
    let usual = *valence::usual(atom.element, 0).first()?;
    let degree = molecule.bonds_at(a).len() as u8 + atom.hydrogens;
    if usual <= 1 || degree > 3 {
        return None;
    }
    let bonds = molecule.bond_orders(a) + atom.hydrogens;
    if valence::usual(atom.element, atom.charge).first().is_none_or(|&usual| bonds > usual) {
        return None;
    }
    let mut multiple = molecule.neighbours(a).filter(|(_, bond)| bond.order != BondOrder::Single);
    let first = multiple.next();
    if multiple.next().is_some() || first.is_some_and(|(_, bond)| bond.order == BondOrder::Triple) {
        return None;
    }
    let outside = first.filter(|(_, bond)| !bond.in_ring).map(|(b, _)| molecule.atoms()[b].element);
    let drawn = outside.is_some_and(|other| other.draws_from(atom.element));
    let lone = (atom.element.outer_electrons() - usual as i8 - atom.charge).max(0);
    let given = usual as i8 - degree as i8 + lone;
    match given {
        ..0 => None,
        0 if outside.is_some() => Some(0),
        0 => first.map(|_| 1),
        1 if outside.is_some() => Some(u8::from(!drawn)),
        1 if first.is_some() => Some(1),
        1 => (atom.charge == 1).then_some(0),
        more => Some(if (more - i8::from(drawn)) % 2 == 1 { 1 } else { 2 }),
    }
}

/// `true` if an atom keeps its two electrons: oxygen and sulphur in large rings only, as RDKit has it.
fn holds_back(molecule: &Molecule, a: usize) -> bool {
    if !matches!(molecule.atoms()[a].element, Element::O | Element::S) {
        return false;
    }
    // Its neighbours in a ring of at most 8 are 6 bonds apart without it.
    let mut beside = molecule.neighbours(a).filter(|(_, bond)| bond.in_ring).map(|(b, _)| b);
    let Some(first) = beside.next() else { return true };
    let (mut seen, mut outer) = (vec![a, first], vec![first]);
    for _ in 0..SMALL_RING - 2 {
        let mut further = Vec::new();
        for (c, _) in outer.iter().flat_map(|&b| molecule.neighbours(b)).filter(|(_, bond)| bond.in_ring) {
            if !seen.contains(&c) {
                seen.push(c);
                further.push(c);
            }
        }
        outer = further;
    }
    !beside.any(|b| seen.contains(&b))
}

/// The bonds of aromatic rings, by number.
#[derive(Default)]
pub(super) struct AromaticBonds {
    /// With the chords of such rings, both of whose ends are on one.
    pub(super) all: Vec<usize>,
    /// Without those that are nothing but chords, as RDKit has it.
    pub(super) on_rings: Vec<usize>,
}

pub(super) fn aromatic_bonds(molecule: &Molecule) -> AromaticBonds {
    let n = molecule.atoms().len();
    if molecule.n_rings() == 0 {
        return AromaticBonds::default();
    }
    let mut gives: Vec<Option<u8>> = (0..n)
        .map(|a| molecule.neighbours(a).any(|(_, bond)| bond.in_ring).then(|| electrons(molecule, a)).flatten())
        .enumerate()
        .map(|(a, given)| given.filter(|&given| given < 2 || !holds_back(molecule, a)))
        .collect();
    // An atom with fewer than two candidates beside it is in no ring of candidates.
    let mut open: Vec<usize> = (0..n).collect();
    while let Some(a) = open.pop() {
        let beside = |gives: &[Option<u8>]| -> Vec<usize> {
            let ring = molecule.neighbours(a).filter(|(_, bond)| bond.in_ring);
            ring.map(|(b, _)| b).filter(|&b| gives[b].is_some()).collect()
        };
        let others = beside(&gives);
        if gives[a].is_some() && others.len() < 2 {
            gives[a] = None;
            open.extend(others);
        }
    }
    if gives.iter().all(Option::is_none) {
        return AromaticBonds::default();
    }
    let mut search = RingSearch::new(molecule, &gives);
    let n_bonds = molecule.bonds().len();
    let (mut aromatic, mut on_rings) = (vec![false; n_bonds], vec![false; n_bonds]);
    let mut on_ring = vec![false; n];
    let mut seen = vec![false; n];
    for start in 0..n {
        if gives[start].is_none() || seen[start] {
            continue;
        }
        let system = search.system(start, &mut seen);
        for ring in search.rings_of(&system) {
            let total: u32 = ring.iter().map(|&a| u32::from(gives[a].unwrap_or(0))).sum();
            if total % 4 != 2 {
                continue;
            }
            ring.iter().for_each(|&a| on_ring[a] = true);
            for &k in ring.iter().flat_map(|&a| molecule.bonds_at(a)) {
                let bond = molecule.bonds()[k];
                aromatic[k] |= bond.in_ring && on_ring[bond.a] && on_ring[bond.b];
            }
            ring.iter().for_each(|&a| on_ring[a] = false);
            for (&a, &b) in ring.iter().zip(ring.iter().cycle().skip(1)) {
                let between = molecule.bonds_at(a).iter().find(|&&k| molecule.bonds()[k].other(a) == b);
                between.into_iter().for_each(|&k| on_rings[k] = true);
            }
        }
    }
    let marked = |marks: Vec<bool>| (0..n_bonds).filter(|&k| marks[k]).collect();
    AromaticBonds { all: marked(aromatic), on_rings: marked(on_rings) }
}

/// All simple rings of candidate atoms.
struct RingSearch<'a> {
    molecule: &'a Molecule,
    gives: &'a [Option<u8>],
    path: Vec<usize>,
    on_path: Vec<bool>,
    /// Bonds to the first atom of the path, by candidates of no smaller number; `usize::MAX` for those too far away.
    distance: Vec<usize>,
    /// The longest ring that is looked for, and how many may be found.
    longest: usize,
    most: usize,
    rings: Vec<Vec<usize>>,
}

impl<'a> RingSearch<'a> {
    fn new(molecule: &'a Molecule, gives: &'a [Option<u8>]) -> Self {
        let n = gives.len();
        let (on_path, distance) = (vec![false; n], vec![usize::MAX; n]);
        Self { molecule, gives, path: Vec::new(), on_path, distance, longest: 0, most: 0, rings: Vec::new() }
    }

    /// The candidates that ring bonds join to `start`, the smallest of them, in ascending order.
    fn system(&self, start: usize, seen: &mut [bool]) -> Vec<usize> {
        seen[start] = true;
        let mut system = vec![start];
        let mut next = 0;
        while let Some(&a) = system.get(next) {
            next += 1;
            system.extend(self.candidates(a, start).filter(|&b| !std::mem::replace(&mut seen[b], true)));
        }
        system.sort_unstable();
        system
    }

    /// The rings of a system: the longer ones, too, unless they are too many.
    fn rings_of(&mut self, system: &[usize]) -> Vec<Vec<usize>> {
        for (longest, most) in RINGS {
            (self.longest, self.most) = (longest, most);
            self.rings.clear();
            if system.iter().all(|&start| self.from(start)) {
                break;
            }
        }
        std::mem::take(&mut self.rings)
    }

    /// Collects the rings whose first atom is `start`; false when there are too many.
    fn from(&mut self, start: usize) -> bool {
        let near = self.measure(start);
        self.path.push(start);
        self.on_path[start] = true;
        let complete = self.grow(start);
        self.on_path[start] = false;
        self.path.pop();
        near.into_iter().for_each(|a| self.distance[a] = usize::MAX);
        complete
    }

    /// Finds the distances of what can be on a ring with `start`; which atoms these are.
    fn measure(&mut self, start: usize) -> Vec<usize> {
        self.distance[start] = 0;
        let mut near = vec![start];
        let mut next = 0;
        while let Some(&a) = near.get(next) {
            next += 1;
            if 2 * self.distance[a] >= self.longest {
                break;
            }
            let candidates: SmallVec<[usize; 4]> = self.candidates(a, start).collect();
            for b in candidates {
                if self.distance[b] == usize::MAX {
                    self.distance[b] = self.distance[a] + 1;
                    near.push(b);
                }
            }
        }
        near
    }

    fn candidates(&self, a: usize, start: usize) -> impl Iterator<Item = usize> {
        let ring = self.molecule.neighbours(a).filter(|(_, bond)| bond.in_ring);
        ring.map(|(b, _)| b).filter(move |&b| b >= start && self.gives[b].is_some())
    }

    fn grow(&mut self, start: usize) -> bool {
        let Some(&last) = self.path.last() else { return true };
        let next: SmallVec<[usize; 4]> = self.candidates(last, start).collect();
        for b in next {
            // Each ring is met in both directions: one is enough.
            if b == start && self.path.len() > 2 && self.path[1] < last {
                self.rings.push(self.path.clone());
                if self.rings.len() > self.most {
                    return false;
                }
            }
            if self.on_path[b] || self.path.len().saturating_add(self.distance[b]) > self.longest {
                continue;
            }
            self.path.push(b);
            self.on_path[b] = true;
            let complete = self.grow(start);
            self.on_path[b] = false;
            self.path.pop();
            if !complete {
                return false;
            }
        }
        true
    }
}

/// `true` if the atom has a double bond among its aromatic bonds.
pub(super) fn has_ring_double(molecule: &Molecule, a: usize) -> bool {
    molecule.neighbours(a).any(|(_, bond)| bond.aromatic && bond.order == BondOrder::Double)
}

/// `true` if an atom is in a ring of three.
pub(crate) fn in_three_ring(molecule: &Molecule, a: usize) -> bool {
    let beside: Vec<usize> = molecule.neighbours(a).map(|(b, _)| b).collect();
    beside.iter().any(|&b| molecule.neighbours(b).any(|(c, _)| beside.contains(&c)))
}
