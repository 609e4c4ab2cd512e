//! Symmetries of fragments: permutations of the stems that extend to permutations of the atoms and preserve
//! bonds.

use std::collections::VecDeque;

use super::fragment::Stem;
use crate::{Atom, Molecule};

/// The code of an aromatic bond. It is the same whether the bond is single or double in the current Kekule
/// form.
const AROMATIC: u8 = 4;

/// A labelled graph for the search of symmetries. It represents a fragment, or a part of a molecule that is
/// compared with fragments.
pub(super) struct MarkedFragment {
    /// The label of each atom: the properties of the atom, the sum of its bond orders, and the number of
    /// times that the atom is a stem.
    pub(super) atoms: Vec<(Atom, u8, u8)>,
    /// The code of the bond between any two atoms: 0 for no bond, the bond's order, or [`AROMATIC`].
    bonds: Vec<Vec<u8>>,
    /// The number of bonds on the shortest path between any two atoms. The search for symmetries compares
    /// these numbers, so that it discards a wrong assignment of stems early, even if the stems aren't bonded
    /// to each other.
    distances: Vec<Vec<usize>>,
}

impl MarkedFragment {
    pub(super) fn new(molecule: &Molecule, stems: &[Stem]) -> Self {
        let room = |a: usize| stems.iter().find(|stem| stem.atom == a).map_or(0, |stem| stem.room);
        let all: Vec<usize> = (0..molecule.atoms().len()).collect();
        Self::from_atoms(molecule, &all, |a| (molecule.atoms()[a], molecule.bond_orders(a), room(a)))
    }

    /// Creates the labelled graph of the atoms that `part` lists, in this order, and of the bonds among them.
    /// `mark` returns the label of an atom: its properties, the sum of its bond orders, and the number of
    /// times that it is a stem.
    pub(super) fn from_atoms(
        molecule: &Molecule,
        part: &[usize],
        mark: impl Fn(usize) -> (Atom, u8, u8),
    ) -> Self {
        let n = part.len();
        let mut place = vec![usize::MAX; molecule.atoms().len()];
        for (k, &a) in part.iter().enumerate() {
            place[a] = k;
        }
        let mut bonds = vec![vec![0; n]; n];
        let mut beside = vec![Vec::new(); n];
        for (k, &a) in part.iter().enumerate() {
            for (b, bond) in molecule.neighbours(a).filter(|(b, _)| place[*b] < n) {
                bonds[k][place[b]] = if bond.aromatic { AROMATIC } else { bond.order.value() };
                beside[k].push(place[b]);
            }
        }
        let distances = (0..n).map(|k| distances(&beside, k)).collect();
        Self { atoms: part.iter().map(|&a| mark(a)).collect(), bonds, distances }
    }

    /// Returns an order of all atoms that begins with the atoms `first`. Each further atom comes after one of
    /// its neighbours. The search for symmetries maps the atoms in this order. When it maps a further atom, a
    /// neighbour is already mapped, so there are few candidates: the neighbours of the atom to which that
    /// neighbour is mapped.
    fn order(&self, first: impl Iterator<Item = usize>) -> Vec<usize> {
        let mut order: Vec<usize> = first.collect();
        let mut next = 0;
        while let Some(&a) = order.get(next) {
            let new = (0..self.atoms.len()).filter(|&b| self.bonds[a][b] > 0 && !order.contains(&b));
            let new: Vec<usize> = new.collect();
            order.extend(new);
            next += 1;
        }
        order
    }

    /// Returns the embeddings of this graph into `other`: the maps that preserve bonds and the labels of
    /// atoms, except that an atom can be mapped to an atom with more room for attachments. The result is
    /// empty if the graphs have different numbers of atoms. An embedding is given by the atoms of `other` to
    /// which it maps `atoms`. The search stops as soon as it has found more than `most` embeddings.
    pub(super) fn images(&self, atoms: &[usize], other: &Self, most: usize) -> Vec<Vec<usize>> {
        let n = self.atoms.len();
        if n != other.atoms.len() {
            return Vec::new();
        }
        // If `atoms` is empty, the search can start at any atom.
        let order = self.order(if atoms.is_empty() { vec![0] } else { atoms.to_vec() }.into_iter());
        let mut search = SymmetrySearch {
            from: self,
            to: other,
            order,
            n_stems: atoms.len(),
            image: vec![0; n],
            is_image: vec![false; n],
            most,
            images: Vec::new(),
        };
        search.place(0);
        search.images
    }
}

/// Returns the number of bonds on the shortest path from the atom `from` to each other atom.
fn distances(beside: &[Vec<usize>], from: usize) -> Vec<usize> {
    let mut out = vec![usize::MAX; beside.len()];
    out[from] = 0;
    let mut queue = VecDeque::from([from]);
    while let Some(a) = queue.pop_front() {
        for &b in &beside[a] {
            if out[b] == usize::MAX {
                out[b] = out[a] + 1;
                queue.push_back(b);
            }
        }
    }
    out
}

/// Returns the maps from the stems (attachment atoms) of one fragment to the stems of an isomorphic fragment,
/// in ascending order. A map lists the index of each stem's image. The result is empty if the fragments
/// aren't isomorphic. The search stops as soon as it has found more than `most` maps.
pub(super) fn matchings(one: (&Molecule, &[Stem]), other: (&Molecule, &[Stem]), most: usize) -> Vec<Vec<u8>> {
    let rooms = |stems: &[Stem]| stems.iter().map(|stem| usize::from(stem.room)).sum::<usize>();
    if one.1.len() != other.1.len()
        || rooms(one.1) != rooms(other.1)
        || one.0.bonds().len() != other.0.bonds().len()
    {
        return Vec::new();
    }
    let from = MarkedFragment::new(one.0, one.1);
    let to = MarkedFragment::new(other.0, other.1);
    let stems: Vec<usize> = one.1.iter().map(|stem| stem.atom).collect();
    let found = from.images(&stems, &to, most);
    let place = |atom: usize| other.1.iter().position(|stem| stem.atom == atom).unwrap_or(0) as u8;
    let mut out: Vec<Vec<u8>> =
        found.into_iter().map(|atoms| atoms.into_iter().map(place).collect()).collect();
    out.sort_unstable();
    out
}

struct SymmetrySearch<'a> {
    from: &'a MarkedFragment,
    to: &'a MarkedFragment,
    order: Vec<usize>,
    n_stems: usize,
    /// The image of each atom, that is, the atom of the other graph to which the search maps it. Entries of
    /// atoms that aren't mapped yet have no meaning.
    image: Vec<usize>,
    is_image: Vec<bool>,
    most: usize,
    /// The atoms to which the stems (attachment atoms) are mapped, for each embedding that has been found.
    images: Vec<Vec<usize>>,
}

impl SymmetrySearch<'_> {
    /// Maps the atom at index `k` in the order of the search, and all later atoms, to atoms of the other
    /// graph. Adds to `images` one embedding for each way to map the remaining stems. Returns `true` if at
    /// least one embedding was found.
    fn place(&mut self, k: usize) -> bool {
        let Some(&a) = self.order.get(k) else {
            self.images.push(self.order[..self.n_stems].iter().map(|&stem| self.image[stem]).collect());
            return true;
        };
        let mut any = false;
        for b in 0..self.is_image.len() {
            if self.is_image[b] || !self.is_compatible(k, a, b) {
                continue;
            }
            (self.image[a], self.is_image[b]) = (b, true);
            any |= self.place(k + 1);
            self.is_image[b] = false;
            // Only the images of the stems are returned. For atoms that come after the stems in the order of
            // the search, one embedding is therefore enough for each choice of images of the stems.
            if any && k >= self.n_stems || self.images.len() > self.most {
                break;
            }
        }
        any
    }

    fn is_compatible(&self, k: usize, a: usize, b: usize) -> bool {
        let same_way = |&c: &usize| {
            let d = self.image[c];
            self.from.bonds[a][c] == self.to.bonds[b][d]
                && self.from.distances[a][c] == self.to.distances[b][d]
        };
        let ((one, orders, room), (other, others, others_room)) = (self.from.atoms[a], self.to.atoms[b]);
        // An atom may be mapped to an atom with more room for attachments. If all atoms of one fragment
        // together have as much room as those of the other (see `matchings`), a complete map nevertheless
        // preserves the room of each atom.
        (one, orders) == (other, others) && room <= others_room && self.order[..k].iter().all(same_way)
    }
}
