//! Detection of atoms and bonds that can be stereo elements. The detection looks mainly at direct
//! neighbours and rings, and ignores symmetries.

use std::collections::BTreeMap;

use super::StereoElement;
use crate::molecule::aromaticity::ring_bonds;
use crate::molecule::{Atom, Bond, BondOrder, Element, Molecule, in_three_ring, ring_edges, smallest_rings};

/// The size of the smallest rings that can contain a trans double bond.
const TRANS_RING: usize = 8;

impl Molecule {
    /// Returns the heavy neighbours of an atom, in ascending order.
    pub(crate) fn heavy_neighbours(&self, a: usize) -> Vec<usize> {
        let mut out: Vec<usize> = self.neighbours(a).map(|(b, _)| b).collect();
        out.sort_unstable();
        out
    }

    /// Returns the heavy neighbours of the atom `end` of a double bond, in ascending order. The atom at the
    /// other end of the bond isn't included.
    pub(crate) fn beside(&self, end: usize, bond: usize) -> Vec<usize> {
        let other = self.bonds()[bond].other_end(end);
        self.heavy_neighbours(end).into_iter().filter(|&b| b != other).collect()
    }

    /// Returns the atoms and double bonds that can be stereo elements by RDKit's rules. Atoms and bonds with
    /// two equal neighbours are included here, although they have only one configuration: exchanging these
    /// neighbours inverts the sign, but leaves the molecule the same.
    pub(super) fn candidates(&self) -> Vec<StereoElement> {
        let centres = (0..self.atoms().len()).filter(|&a| self.is_centre(a)).map(StereoElement::Centre);
        let open: Vec<bool> = (0..self.bonds().len()).map(|k| self.is_open(k)).collect();
        // Double bonds in a ring of alternating double and single bonds are left out. The directions of the
        // single bonds would have to agree around the ring, so SMILES can't express all combinations.
        let mut is_end = vec![false; self.atoms().len()];
        for bond in self.bonds().iter().zip(&open).filter(|(_, open)| **open).map(|(bond, _)| bond) {
            is_end[bond.a] = true;
            is_end[bond.b] = true;
        }
        let links = |k: usize, bond: &Bond| {
            open[k] || (bond.order == BondOrder::Single && is_end[bond.a] && is_end[bond.b])
        };
        let linking: Vec<(usize, &Bond)> =
            self.bonds().iter().enumerate().filter(|(k, bond)| links(*k, bond)).collect();
        let around = ring_bonds(self.atoms().len(), linking.iter().map(|(_, bond)| (bond.a, bond.b)));
        let free = linking.iter().zip(around).filter(|((k, _), around)| !around && open[*k]);
        centres.chain(free.map(|((k, _), _)| StereoElement::DoubleBond(*k))).collect()
    }

    /// Returns `true` if an atom is a tetrahedral centre. Such an atom has four neighbours; a hydrogen or a
    /// lone pair may be one of the four.
    fn is_centre(&self, a: usize) -> bool {
        let atom = self.atoms()[a];
        let valence = self.valence(a);
        // A nitrogen is planar, and therefore no centre, if a neighbour is boron, carbon, nitrogen, oxygen or
        // fluorine and has a multiple or aromatic bond.
        let is_multiple = |bond: &Bond| bond.order != BondOrder::Single || bond.aromatic;
        let flattens = |b: usize| {
            self.atoms()[b].element.number() < 10 && self.neighbours(b).any(|(_, bond)| is_multiple(bond))
        };
        // Aromatic atoms and atoms with triple bonds aren't tetrahedral.
        if atom.aromatic || self.neighbours(a).any(|(_, bond)| bond.order == BondOrder::Triple) {
            return false;
        }
        let pyramidal = || self.neighbours(a).all(|(b, bond)| !is_multiple(bond) && !flattens(b));
        match (self.neighbours(a).len(), atom.hydrogens, atom.element) {
            (4, 0, _) | (3, 1, _) => true,
            (3, 0, Element::P) | (2, 1, Element::P) => valence == 3,
            (3, 0, Element::S | Element::Se) => valence == 4 || (valence == 3 && atom.charge == 1),
            (3, 0, Element::N) => pyramidal() && (in_three_ring(self, a) || self.is_bridgehead(a)),
            _ => false,
        }
    }

    /// Returns `true` if an atom is in two rings that share at least two bonds. The rings then prevent the
    /// atom from changing its configuration. Only the rings of a smallest set of rings are considered.
    fn is_bridgehead(&self, a: usize) -> bool {
        if self.neighbours(a).filter(|(_, bond)| bond.in_ring).count() < 3 {
            return false;
        }
        type Pairs = Vec<(usize, usize)>;
        let sorted = |(b, c): (usize, usize)| (b.min(c), b.max(c));
        let here: Vec<Pairs> = self
            .rings()
            .iter()
            .filter(|ring| ring.contains(&a))
            .map(|ring| ring_edges(ring).map(sorted).collect())
            .collect();
        let shares = |one: &Pairs, other: &Pairs| one.iter().filter(|bond| other.contains(bond)).count() > 1;
        (0..here.len()).any(|i| here[i + 1..].iter().any(|other| shares(&here[i], other)))
    }

    /// Returns a smallest set of smallest rings. Each ring is a list of its atoms in their order around the
    /// ring.
    pub(crate) fn rings(&self) -> Vec<Vec<usize>> {
        let bonds: Vec<_> =
            self.bonds().iter().filter(|bond| bond.in_ring).map(|bond| (bond.a, bond.b)).collect();
        smallest_rings(self.atoms().len(), &bonds)
    }

    /// Returns `true` if a double bond can be cis or trans. This requires that each end has a neighbour
    /// that can be on either side of the bond, and that the bond isn't in a small ring.
    pub(crate) fn is_open(&self, k: usize) -> bool {
        let bond = self.bonds()[k];
        let end = |a: usize| {
            let atom = self.atoms()[a];
            let beside = self.neighbours(a).len() - 1;
            let single = self.neighbours(a).filter(|(_, bond)| bond.order != BondOrder::Single).count() == 1;
            let planar = !matches!(atom.element, Element::S | Element::Se) || beside == 1;
            (1..=2).contains(&beside) && beside + usize::from(atom.hydrogens) <= 2 && single && planar
        };
        bond.order == BondOrder::Double
            && !bond.aromatic
            && end(bond.a)
            && end(bond.b)
            && !(bond.in_ring && self.reach(bond.a, TRANS_RING - 2, |other| other != k).contains(&bond.b))
    }

    /// Returns the topological symmetry class of each atom. Marks of stereochemistry are ignored. The first
    /// classes are determined by element, charge and hydrogens. The classes are then refined by the bonds
    /// to neighbours and the neighbours' classes, until the number of classes stops growing.
    pub(super) fn classes(&self) -> Vec<usize> {
        let look = |atom: &Atom| {
            let charge = (i32::from(atom.charge) + 128) as usize;
            vec![usize::from(atom.element.number()), charge, usize::from(atom.hydrogens)]
        };
        let (mut classes, mut count) = numbered(self.atoms().iter().map(look).collect());
        loop {
            let look = |a: usize| {
                let bonds = self.bonds_at(a).iter();
                let mut beside: Vec<[usize; 2]> = bonds
                    .map(|&k| [usize::from(self.class(k)), classes[self.bonds()[k].other_end(a)]])
                    .collect();
                beside.sort_unstable();
                std::iter::once(classes[a]).chain(beside.into_iter().flatten()).collect()
            };
            let (finer, more) = numbered((0..classes.len()).map(look).collect());
            if more == count {
                return classes;
            }
            (classes, count) = (finer, more);
        }
    }

    /// Returns the atoms that a stereo element consists of: its centre, or both ends of its double bond.
    pub(super) fn ends(&self, element: StereoElement) -> Vec<usize> {
        match element {
            StereoElement::Centre(a) => vec![a],
            StereoElement::DoubleBond(k) => vec![self.bonds()[k].a, self.bonds()[k].b],
        }
    }

    /// Returns the sets of neighbours that determine the sign of a stereo element. Exchanging two
    /// neighbours of the same set would invert the sign. A centre has one set with all its neighbours, and
    /// a double bond has one set for each end.
    pub(super) fn ligands(&self, element: StereoElement) -> Vec<Vec<usize>> {
        match element {
            StereoElement::Centre(a) => vec![self.heavy_neighbours(a)],
            StereoElement::DoubleBond(k) => {
                self.ends(element).into_iter().map(|end| self.beside(end, k)).collect()
            }
        }
    }
}

/// Returns a number for each list, such that equal lists have equal numbers, and a greater list has a greater
/// number. Also returns the number of distinct lists.
fn numbered(looks: Vec<Vec<usize>>) -> (Vec<usize>, usize) {
    let mut places: BTreeMap<&Vec<usize>, usize> = looks.iter().map(|look| (look, 0)).collect();
    for (k, place) in places.values_mut().enumerate() {
        *place = k;
    }
    (looks.iter().map(|look| places[look]).collect(), places.len())
}
