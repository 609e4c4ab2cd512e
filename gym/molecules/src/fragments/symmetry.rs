//! In how many ways a fragment is itself: permutations of its stems that its atoms and bonds allow.

use std::collections::VecDeque;

use super::fragment::Stem;
use crate::{Atom, Molecule};

/// A ring's bond that is of no fixed order.
const AROMATIC: u8 = 4;

/// A fragment as its symmetries see it.
struct Marked {
    /// The marks that tell atoms apart: the atom, its bonds of all orders, and how often it is a stem.
    atoms: Vec<(Atom, u8, u8)>,
    /// Bonds of every two atoms: 0 for none, the order, or [`AROMATIC`].
    bonds: Vec<Vec<u8>>,
    /// Bonds between every two atoms on the shortest way: stems that aren't bonded to each other keep theirs, too.
    distances: Vec<Vec<usize>>,
}

impl Marked {
    fn new(molecule: &Molecule, stems: &[Stem]) -> Self {
        let n = molecule.atoms().len();
        let room = |a: usize| stems.iter().find(|stem| stem.atom == a).map_or(0, |stem| stem.room);
        let atoms = (0..n).map(|a| (molecule.atoms()[a], molecule.bond_orders(a), room(a))).collect();
        let mut bonds = vec![vec![0; n]; n];
        for bond in molecule.bonds() {
            let kind = if bond.aromatic { AROMATIC } else { bond.order.value() };
            (bonds[bond.a][bond.b], bonds[bond.b][bond.a]) = (kind, kind);
        }
        Self { atoms, bonds, distances: (0..n).map(|a| distances(molecule, a)).collect() }
    }
}

/// The number of bonds between an atom and each atom.
fn distances(molecule: &Molecule, from: usize) -> Vec<usize> {
    let mut out = vec![usize::MAX; molecule.atoms().len()];
    out[from] = 0;
    let mut queue = VecDeque::from([from]);
    while let Some(a) = queue.pop_front() {
        for (b, _) in molecule.neighbours(a) {
            if out[b] == usize::MAX {
                out[b] = out[a] + 1;
                queue.push_back(b);
            }
        }
    }
    out
}

/// Where the stems of one fragment can go in another that is the same, atom by atom: each way as the places of the images, in
/// ascending order. None if they aren't the same; as soon as there are more than `most` ways, those found so far.
pub(super) fn matchings(one: (&Molecule, &[Stem]), other: (&Molecule, &[Stem]), most: usize) -> Vec<Vec<u8>> {
    if one.0.atoms().len() != other.0.atoms().len()
        || one.1.len() != other.1.len()
        || one.0.bonds().len() != other.0.bonds().len()
    {
        return Vec::new();
    }
    let (from, to) = (Marked::new(one.0, one.1), Marked::new(other.0, other.1));
    // Stems first; then each atom has a neighbour before it, so that it can go to few places.
    let mut order: Vec<usize> = one.1.iter().map(|stem| stem.atom).collect();
    let mut next = 0;
    while let Some(&a) = order.get(next) {
        let new: Vec<usize> = one.0.neighbours(a).map(|(b, _)| b).filter(|b| !order.contains(b)).collect();
        order.extend(new);
        next += 1;
    }
    let n = from.atoms.len();
    let mut search = SymmetrySearch {
        from: &from,
        to: &to,
        order,
        n_stems: one.1.len(),
        image: vec![0; n],
        taken: vec![false; n],
        most,
        found: Vec::new(),
    };
    search.place(0);
    let place = |atom: usize| other.1.iter().position(|stem| stem.atom == atom).unwrap_or(0) as u8;
    let mut out: Vec<Vec<u8>> = search.found.into_iter().map(|atoms| atoms.into_iter().map(place).collect()).collect();
    out.sort_unstable();
    out
}

struct SymmetrySearch<'a> {
    from: &'a Marked,
    to: &'a Marked,
    order: Vec<usize>,
    n_stems: usize,
    /// Where the atoms that are placed have gone.
    image: Vec<usize>,
    taken: Vec<bool>,
    most: usize,
    /// Images of the stems.
    found: Vec<Vec<usize>>,
}

impl SymmetrySearch<'_> {
    /// Places atom number `k` and later ones in all ways that differ in the stems; whether there was one.
    fn place(&mut self, k: usize) -> bool {
        let Some(&a) = self.order.get(k) else {
            self.found.push(self.order[..self.n_stems].iter().map(|&stem| self.image[stem]).collect());
            return true;
        };
        let mut any = false;
        for b in 0..self.taken.len() {
            if self.taken[b] || !self.fits(k, a, b) {
                continue;
            }
            (self.image[a], self.taken[b]) = (b, true);
            any |= self.place(k + 1);
            self.taken[b] = false;
            // Beyond the stems one way is as good as another.
            if any && k >= self.n_stems || self.found.len() > self.most {
                break;
            }
        }
        any
    }

    fn fits(&self, k: usize, a: usize, b: usize) -> bool {
        let same_way = |&c: &usize| {
            let d = self.image[c];
            self.from.bonds[a][c] == self.to.bonds[b][d] && self.from.distances[a][c] == self.to.distances[b][d]
        };
        self.from.atoms[a] == self.to.atoms[b] && self.order[..k].iter().all(same_way)
    }
}
