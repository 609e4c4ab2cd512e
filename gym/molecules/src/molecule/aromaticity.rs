//! Detection of rings and of aromaticity.
//!
//! The model is RDKit's. Each ring atom contributes 0, 1 or 2 electrons, depending on its element, charge,
//! neighbours and multiple bonds. A ring with 4n + 2 electrons is aromatic. RDKit considers a smallest set of
//! rings and unions of these rings. This module considers every simple ring of candidate atoms (atoms that
//! can be in an aromatic ring) instead. The result therefore doesn't depend on the numbering of atoms, and
//! chords of an aromatic ring (the central bond of azulene) are aromatic, too. The contribution of an atom
//! doesn't depend on which of its ring bonds is double, so all Kekule forms of an aromatic system give the
//! same result. Atoms with triple bonds aren't candidates (in RDKit, benzyne is aromatic). Oxygen and sulphur
//! atoms contribute two electrons only if they are in a ring of up to 8 atoms, so oxonin isn't aromatic, as
//! in RDKit.
//!
//! Each connected system of candidate atoms is processed separately. Rings of up to 24 atoms are considered
//! first. If a system has more than 10,000 such rings, only rings of up to 12 atoms are considered. If
//! these are also more than 10,000, only rings of up to 8 atoms are considered. All rings within the limit
//! that applies are considered, so the order of the atoms has no influence.

use petgraph::algo::bridges::bridges;
use petgraph::graph::{NodeIndex, UnGraph};
use petgraph::visit::EdgeRef;
use smallvec::SmallVec;

use super::{BondOrder, Element, Molecule, valence};

/// The limits on the size of rings, in the order in which they are tried. Each comes with the largest number
/// of rings within this limit that a connected system of candidate atoms may have. If the system has more
/// rings, the next limit is tried. The last limit has no largest number, because the number of such small
/// rings is proportional to the number of atoms: a candidate atom has at most three neighbours.
const RINGS: [(usize, usize); 3] = [(24, 10_000), (12, 10_000), (8, usize::MAX)];

/// Oxygen and sulphur atoms contribute two electrons only if they are in a ring of at most this size.
const SMALL_RING: usize = 8;

/// Returns one flag per bond of a graph with `n` atoms: `true` if the bond is in a ring, that is, if its
/// ends stay connected after the bond is removed.
pub(super) fn ring_bonds(n: usize, bonds: impl ExactSizeIterator<Item = (usize, usize)>) -> Vec<bool> {
    let mut in_ring = vec![true; bonds.len()];
    let mut graph = UnGraph::<(), ()>::with_capacity(n, bonds.len());
    for _ in 0..n {
        graph.add_node(());
    }
    for (a, b) in bonds {
        graph.add_edge(NodeIndex::new(a), NodeIndex::new(b), ());
    }
    for bridge in bridges(&graph) {
        in_ring[bridge.id().index()] = false;
    }
    in_ring
}

/// Returns the number of electrons that an atom contributes to an aromatic ring; `None` if it can't be in an
/// aromatic ring.
fn electrons(molecule: &Molecule, a: usize) -> Option<u8> {
    let atom = molecule.atoms()[a];
    let usual = *valence::usual(atom.element, 0).first()?;
    let degree = molecule.degree(a);
    let is_beyond = |&usual: &u8| molecule.valence(a) > usual;
    if usual <= 1 || degree > 3 || valence::usual(atom.element, atom.charge).first().is_none_or(is_beyond) {
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

/// Returns `true` for oxygen and sulphur atoms that are only in rings of more than 8 atoms. Such atoms
/// don't contribute two electrons, as in RDKit.
fn holds_back(molecule: &Molecule, a: usize) -> bool {
    if !matches!(molecule.atoms()[a].element, Element::O | Element::S) {
        return false;
    }
    // The atom is in a ring of at most 8 atoms if two of its neighbours are joined by a path of at most 6
    // ring bonds that avoids the atom.
    let mut beside = molecule.neighbours(a).filter(|(_, bond)| bond.in_ring).map(|(b, _)| b);
    let Some(first) = beside.next() else { return true };
    let near = molecule.reach(first, SMALL_RING - 2, |k| {
        let bond = molecule.bonds()[k];
        bond.in_ring && bond.a != a && bond.b != a
    });
    !beside.any(|b| near.contains(&b))
}

/// Returns the indices of the bonds whose ends are both on the same aromatic ring. Each index comes with a
/// flag: `true` if the bond is a chord of every such ring. RDKit doesn't treat such chords as aromatic.
pub(super) fn aromatic_bonds(molecule: &Molecule) -> Vec<(usize, bool)> {
    let n = molecule.atoms().len();
    if molecule.n_rings() == 0 {
        return Vec::new();
    }
    let given = |a: usize| {
        let given = electrons(molecule, a).filter(|_| molecule.in_ring(a))?;
        (given < 2 || !holds_back(molecule, a)).then_some(given)
    };
    let mut gives: Vec<Option<u8>> = (0..n).map(given).collect();
    // A candidate is an atom that can be in an aromatic ring. An atom with fewer than two neighbouring
    // candidates can't be in a ring of candidates.
    let mut is_candidate: Vec<bool> = gives.iter().map(Option::is_some).collect();
    molecule.prune(&mut is_candidate, |bond| bond.in_ring);
    for (given, is_candidate) in gives.iter_mut().zip(is_candidate) {
        *given = given.filter(|_| is_candidate);
    }
    let mut is_chord: Vec<Option<bool>> = vec![None; molecule.bonds().len()];
    let mut place = vec![None; n];
    let mut seen = vec![false; n];
    let mut search = RingSearch::new(molecule, &gives);
    for start in (0..n).filter(|&a| gives[a].is_some()) {
        if seen[start] {
            continue;
        }
        let system = search.system(start);
        for &a in &system {
            seen[a] = true;
        }
        for ring in search.rings_of(&system) {
            let total: u32 = ring.iter().map(|&a| u32::from(gives[a].unwrap_or(0))).sum();
            if total % 4 != 2 {
                continue;
            }
            for (k, &a) in ring.iter().enumerate() {
                place[a] = Some(k);
            }
            for &k in ring.iter().flat_map(|&a| molecule.bonds_at(a)) {
                let bond = molecule.bonds()[k];
                if let (Some(a), Some(b), true) = (place[bond.a], place[bond.b], bond.in_ring) {
                    let apart: usize = usize::abs_diff(a, b);
                    is_chord[k] = Some(is_chord[k] != Some(false) && apart != 1 && apart != ring.len() - 1);
                }
            }
            for &a in &ring {
                place[a] = None;
            }
        }
    }
    is_chord.into_iter().enumerate().filter_map(|(k, is_chord)| Some((k, is_chord?))).collect()
}

/// A search for all simple rings of candidate atoms.
struct RingSearch<'a> {
    molecule: &'a Molecule,
    gives: &'a [Option<u8>],
    path: Vec<usize>,
    /// The number of bonds from each atom to the first atom of the path that the search extends. Paths lead
    /// only through candidates (atoms that can be in an aromatic ring) whose index isn't smaller than that of
    /// the first atom. The distance is `usize::MAX` for atoms that are too far away.
    distance: Vec<usize>,
    /// The size of the largest rings that the search finds.
    longest: usize,
    /// The largest number of rings that the search may collect. It stops when it finds more.
    most: usize,
    rings: Vec<Vec<usize>>,
}

impl<'a> RingSearch<'a> {
    fn new(molecule: &'a Molecule, gives: &'a [Option<u8>]) -> Self {
        let distance = vec![usize::MAX; gives.len()];
        Self { molecule, gives, path: Vec::new(), distance, longest: 0, most: 0, rings: Vec::new() }
    }

    /// Returns the candidates (atoms that can be in an aromatic ring) that ring bonds connect to `start`, in
    /// ascending order.
    fn system(&self, start: usize) -> Vec<usize> {
        let mut system = self.molecule.reach(start, usize::MAX, |k| {
            let bond = self.molecule.bonds()[k];
            bond.in_ring && self.gives[bond.a].is_some() && self.gives[bond.b].is_some()
        });
        system.sort_unstable();
        system
    }

    /// Returns the rings of a connected system of candidate atoms. The size limit is the first limit of
    /// [`RINGS`] within which the system doesn't have too many rings.
    fn rings_of(&mut self, system: &[usize]) -> Vec<Vec<usize>> {
        for (longest, most) in RINGS {
            (self.longest, self.most) = (longest, most);
            self.rings.clear();
            if system.iter().all(|&start| self.grow_from(start)) {
                break;
            }
        }
        std::mem::take(&mut self.rings)
    }

    /// Collects the rings whose smallest atom index is `start`; returns `false` if there are too many rings.
    fn grow_from(&mut self, start: usize) -> bool {
        let near = self.measure(start);
        self.path.push(start);
        let complete = self.grow(start);
        self.path.pop();
        for a in near.into_iter() {
            self.distance[a] = usize::MAX;
        }
        complete
    }

    /// Computes the distance from `start` for each atom that can be in a ring with `start`, and returns
    /// these atoms.
    fn measure(&mut self, start: usize) -> Vec<usize> {
        self.distance[start] = 0;
        let mut near = vec![start];
        let mut next = 0;
        while let Some(&a) = near.get(next) {
            next += 1;
            if 2 * self.distance[a] >= self.longest {
                break;
            }
            for b in self.candidates(a, start) {
                if self.distance[b] == usize::MAX {
                    self.distance[b] = self.distance[a] + 1;
                    near.push(b);
                }
            }
        }
        near
    }

    fn candidates(&self, a: usize, start: usize) -> SmallVec<[usize; 4]> {
        let ring = self.molecule.neighbours(a).filter(|(_, bond)| bond.in_ring);
        ring.map(|(b, _)| b).filter(|&b| b >= start && self.gives[b].is_some()).collect()
    }

    fn grow(&mut self, start: usize) -> bool {
        let Some(&last) = self.path.last() else { return true };
        for b in self.candidates(last, start) {
            // The search finds each ring twice, once in each direction around the ring. The condition on the
            // second atom of the path keeps only one of the two.
            if b == start && self.path.len() > 2 && self.path[1] < last {
                self.rings.push(self.path.clone());
                if self.rings.len() > self.most {
                    return false;
                }
            }
            if self.path.contains(&b) || self.path.len().saturating_add(self.distance[b]) > self.longest {
                continue;
            }
            self.path.push(b);
            let complete = self.grow(start);
            self.path.pop();
            if !complete {
                return false;
            }
        }
        true
    }
}

/// Returns `true` if the atom has a double bond among its aromatic bonds.
pub(super) fn has_ring_double(molecule: &Molecule, a: usize) -> bool {
    molecule.neighbours(a).any(|(_, bond)| bond.aromatic && bond.order == BondOrder::Double)
}

/// Returns `true` if an atom is in a ring of three atoms.
pub(crate) fn in_three_ring(molecule: &Molecule, a: usize) -> bool {
    let beside: Vec<usize> = molecule.neighbours(a).map(|(b, _)| b).collect();
    beside.iter().any(|&b| molecule.neighbours(b).any(|(c, _)| beside.contains(&c)))
}
