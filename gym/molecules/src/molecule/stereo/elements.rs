//! Which atoms and bonds can be one of two ways, by their own neighbours.

use std::collections::BTreeMap;

use super::StereoElement;
use crate::molecule::aromaticity::ring_bonds;
use crate::molecule::{Bond, BondOrder, Element, Molecule, in_three_ring, smallest_rings};

/// Rings of fewer atoms have their double bonds in cis.
const TRANS_RING: usize = 8;

impl Molecule {
    /// The heavy neighbours of an atom, ascending.
    pub(crate) fn heavy_neighbours(&self, a: usize) -> Vec<usize> {
        let mut out: Vec<usize> = self.neighbours(a).map(|(b, _)| b).collect();
        out.sort_unstable();
        out
    }

    /// The neighbours of an end of a double bond but for the other end, ascending.
    pub(crate) fn beside(&self, end: usize, bond: usize) -> Vec<usize> {
        let other = self.bonds()[bond].other(end);
        self.heavy_neighbours(end).into_iter().filter(|&b| b != other).collect()
    }

    /// Atoms and double bonds that can be one of two ways, as RDKit has them; equal neighbours aren't looked at.
    pub(super) fn candidates(&self) -> Vec<StereoElement> {
        let centres = (0..self.atoms().len()).filter(|&a| self.is_centre(a)).map(StereoElement::Centre);
        let bonds: Vec<usize> = (0..self.bonds().len()).filter(|&k| self.is_open(k)).collect();
        // Around a ring of double and single bonds in turn, directions of the single ones would have to fit together: SMILES can't
        // write all that there is, so there these have no marks.
        let mut end_of = vec![false; self.atoms().len()];
        for &k in &bonds {
            (end_of[self.bonds()[k].a], end_of[self.bonds()[k].b]) = (true, true);
        }
        let links = |k: usize| {
            let bond = self.bonds()[k];
            bonds.binary_search(&k).is_ok() || (bond.order == BondOrder::Single && end_of[bond.a] && end_of[bond.b])
        };
        let linking: Vec<usize> = (0..self.bonds().len()).filter(|&k| links(k)).collect();
        let ends: Vec<_> = linking.iter().map(|&k| (self.bonds()[k].a, self.bonds()[k].b)).collect();
        let around = ring_bonds(self.atoms().len(), ends.into_iter());
        let free = linking.iter().zip(around).filter(|(k, around)| !around && bonds.binary_search(k).is_ok());
        centres.chain(free.map(|(&k, _)| StereoElement::DoubleBond(k))).collect()
    }

    /// `true` if an atom has four neighbours at the corners of a tetrahedron, a hydrogen or a lone pair among them.
    fn is_centre(&self, a: usize) -> bool {
        let atom = self.atoms()[a];
        let valence = self.bond_orders(a) + atom.hydrogens;
        // Beside a multiple bond of an element of its own row nitrogen is flat.
        let is_multiple = |bond: &Bond| bond.order != BondOrder::Single || bond.aromatic;
        let flattens =
            |b: usize| self.atoms()[b].element.number() < 10 && self.neighbours(b).any(|(_, bond)| is_multiple(bond));
        // Nor are atoms of triple bonds and aromatic ones at the centre of a tetrahedron.
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

    /// `true` if an atom is in two rings of a smallest set that share two bonds: it can't turn itself inside out.
    fn is_bridgehead(&self, a: usize) -> bool {
        if self.neighbours(a).filter(|(_, bond)| bond.in_ring).count() < 3 {
            return false;
        }
        let bonds: Vec<_> = self.bonds().iter().filter(|bond| bond.in_ring).map(|bond| (bond.a, bond.b)).collect();
        let rings = smallest_rings(self.atoms().len(), &bonds);
        let bonds_of = |ring: &[usize]| -> Vec<(usize, usize)> {
            let ends = ring.iter().zip(ring.iter().cycle().skip(1));
            ends.map(|(&a, &b)| (a.min(b), a.max(b))).collect()
        };
        let here: Vec<_> = rings.iter().filter(|ring| ring.contains(&a)).map(|ring| bonds_of(ring)).collect();
        let shared = |one: &Vec<(usize, usize)>, other: &Vec<(usize, usize)>| {
            one.iter().filter(|bond| other.contains(bond)).count()
        };
        (0..here.len()).any(|i| here[i + 1..].iter().any(|other| shared(&here[i], other) > 1))
    }

    /// `true` if a double bond has a neighbour at each end that can be on either side.
    fn is_open(&self, k: usize) -> bool {
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
            && !(bond.in_ring && self.in_small_ring(k))
    }

    /// `true` if a bond is in a ring that has no room for a double bond in trans.
    fn in_small_ring(&self, k: usize) -> bool {
        let bond = self.bonds()[k];
        let (mut seen, mut outer) = (vec![bond.a], vec![bond.a]);
        for _ in 0..TRANS_RING - 2 {
            let beyond =
                outer.iter().flat_map(|&a| self.bonds_at(a).iter().filter(|&&other| other != k).map(move |&l| (a, l)));
            let mut further: Vec<usize> = beyond.map(|(a, l)| self.bonds()[l].other(a)).collect();
            further.retain(|b| !seen.contains(b));
            further.sort_unstable();
            further.dedup();
            seen.extend(&further);
            outer = further;
        }
        seen.contains(&bond.b)
    }

    /// Numbers of atoms that are equal for all that a symmetry could exchange, marks apart: classes and those of neighbours, refined.
    pub(super) fn classes(&self) -> Vec<usize> {
        let atoms = self.atoms().iter();
        let numbered = |looks: Vec<Vec<usize>>| -> (Vec<usize>, usize) {
            let mut places: BTreeMap<&Vec<usize>, usize> = looks.iter().map(|look| (look, 0)).collect();
            places.values_mut().enumerate().for_each(|(k, place)| *place = k);
            (looks.iter().map(|look| places[look]).collect(), places.len())
        };
        let look = |atom: &super::super::Atom| {
            vec![
                usize::from(atom.element.number()),
                (i32::from(atom.charge) + 128) as usize,
                usize::from(atom.hydrogens),
            ]
        };
        let (mut classes, mut count) = numbered(atoms.map(look).collect());
        loop {
            let look = |a: usize| {
                let mut beside: Vec<_> =
                    self.bonds_at(a).iter().map(|&k| (self.class(k), classes[self.bonds()[k].other(a)])).collect();
                beside.sort_unstable();
                let beside = beside.into_iter().flat_map(|(class, other)| [usize::from(class), other]);
                std::iter::once(classes[a]).chain(beside).collect()
            };
            let (finer, more) = numbered((0..classes.len()).map(look).collect());
            if more == count {
                return classes;
            }
            (classes, count) = (finer, more);
        }
    }

    /// The sets of neighbours of an element of which no two may be alike: all of a centre's, those of each end of a double bond.
    pub(super) fn ligands(&self, element: StereoElement) -> Vec<Vec<usize>> {
        match element {
            StereoElement::Centre(a) => vec![self.heavy_neighbours(a)],
            StereoElement::DoubleBond(k) => {
                [self.bonds()[k].a, self.bonds()[k].b].iter().map(|&end| self.beside(end, k)).collect()
            }
        }
    }
}
