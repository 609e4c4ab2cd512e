//! Keys, symmetry and Kekule forms: what makes two bond graphs one molecule.

use std::collections::BTreeSet;

use gfn::graph::{Canonical, CanonicalKey, Edge, GraphKind, GraphState, Node};
use rayon::prelude::*;

use super::aromaticity::has_ring_double;
use super::placements::placements;
use super::{Bond, BondOrder, Molecule};

/// The edge class of an aromatic bond; others have their order less 1.
const AROMATIC: u8 = 3;

impl Molecule {
    /// An atom as a node of a graph: element, charge, hydrogens, and whether it has a double bond in an
    /// aromatic ring.
    fn node(&self, a: usize) -> Node {
        let atom = self.atoms()[a];
        let mut node = Node::of_class(atom.element as u16);
        // Two's complement: 0 stays 0, and -1 is 255.
        node.attributes.set(0, atom.charge as u8);
        node.attributes.set(1, atom.hydrogens);
        node.attributes.set(2, u8::from(has_ring_double(self, a)));
        node
    }

    /// The molecule as a graph; `class` says what a bond is.
    pub(super) fn graph(&self, class: impl Fn(usize) -> u8) -> GraphState {
        let nodes: Vec<Node> = (0..self.atoms().len()).map(|a| self.node(a)).collect();
        let edge = |(k, bond): (usize, &Bond)| (bond.a as u32, bond.b as u32, Edge::of_class(class(k).into()));
        let edges: Vec<_> = self.bonds().iter().enumerate().map(edge).collect();
        let graph = GraphState::from_parts(GraphKind::Undirected, &nodes, &edges);
        debug_assert!(graph.is_ok());
        // Neither loops nor parallel bonds: a molecule was checked when it was made.
        graph.unwrap_or_else(|_| GraphState::undirected(nodes.len()))
    }

    /// The class of a bond: its order in a Kekule form, but for aromatic ones.
    pub(super) fn class(&self, bond: usize) -> u8 {
        if self.bonds()[bond].aromatic { AROMATIC } else { self.kekule_class(bond) }
    }

    fn kekule_class(&self, bond: usize) -> u8 {
        self.bonds()[bond].order.value() - 1
    }

    /// The canonical form of the molecule with its aromatic bonds as such: the same for all Kekule forms.
    ///
    /// Its key has a bit for each pair of atoms: 8 KB for 360 atoms, 62 KB for
    /// [`MAX_ATOMS`](Self::MAX_ATOMS).
    #[must_use]
    pub fn canonical(&self) -> Canonical {
        self.canonical_marked(self.graph(|k| self.class(k)))
    }

    /// The canonical form of this Kekule form.
    pub(super) fn canonical_kekule(&self) -> Canonical {
        self.canonical_marked(self.graph(|k| self.kekule_class(k)))
    }

    /// Equal for the same molecule, whatever its Kekule form and the order of its atoms; different for
    /// others, stereoisomers among them. Two SMILES of different programs are compared by the keys of the
    /// molecules that they are read as.
    ///
    /// ```
    /// use gfn_molecules::Molecule;
    /// // The two Kekule forms of o-xylene.
    /// let one = Molecule::from_smiles("CC1=C(C)C=CC=C1")?;
    /// let other = Molecule::from_smiles("CC1=CC=CC=C1C")?;
    /// assert_eq!(one.key(), other.key());
    /// assert_eq!((one.n_kekule_forms(), one.automorphisms()), (Some(2), Some(2)));
    /// // Benzyne as RDKit writes it and with the bonds of a Kekule form.
    /// assert_eq!(Molecule::from_smiles("c1ccccc#1")?.key(), Molecule::from_smiles("C1=CC#CC=C1")?.key());
    /// # Ok::<(), gfn_molecules::MoleculeError>(())
    /// ```
    #[must_use]
    pub fn key(&self) -> CanonicalKey {
        self.canonical().key
    }

    /// |Aut| of the heavy atoms: permutations that keep elements, charges, hydrogens, bond orders and marks of stereochemistry, aromatic
    /// bonds being of one order of their own. `None` beyond `u64`.
    #[must_use]
    pub fn automorphisms(&self) -> Option<u64> {
        self.canonical().automorphisms
    }

    /// The number of Kekule forms that are different as graphs of single, double and triple bonds (benzene 1,
    /// o-xylene 2).
    ///
    /// `None` where [`kekule_forms`](Self::kekule_forms) is.
    #[must_use]
    pub fn n_kekule_forms(&self) -> Option<usize> {
        if !self.bonds().iter().any(|bond| bond.aromatic) {
            return Some(1);
        }
        self.kekule_forms().map(|forms| forms.len())
    }

    /// Its Kekule forms, one of each that are the same graph; `None` where there are more than 65,536 ways to
    /// place the double bonds of all its rings, or where the search for them is given up.
    ///
    /// ```
    /// use gfn_molecules::Molecule;
    /// let forms = Molecule::from_smiles("Cc1ccccc1C")?.kekule_forms().unwrap_or_default();
    /// let texts: Vec<String> = forms.iter().map(Molecule::kekule_smiles).collect();
    /// assert_eq!(texts.len(), 2);
    /// assert_ne!(texts[0], texts[1]);
    /// # Ok::<(), gfn_molecules::MoleculeError>(())
    /// ```
    #[must_use]
    pub fn kekule_forms(&self) -> Option<Vec<Self>> {
        let placements = placements(self)?;
        let placements: Vec<&[u32]> = placements.chunks_exact(self.atoms().len()).collect();
        let with_key = |form: Self| (form.canonical_kekule().key, form);
        let forms = |mates: &[&[u32]]| -> Vec<(CanonicalKey, Self)> {
            mates.par_iter().map(|mates| with_key(self.with_doubles(mates))).collect()
        };
        let mut seen = BTreeSet::new();
        let mut different = Vec::new();
        // Not all at once: there may be 65,536 of a thousand atoms.
        for some in placements.chunks(1_024) {
            different.extend(forms(some).into_iter().filter_map(|(key, form)| seen.insert(key).then_some(form)));
        }
        Some(different)
    }

    /// The same molecule with double bonds between these of its aromatic atoms.
    fn with_doubles(&self, mates: &[u32]) -> Self {
        let mut out = self.clone();
        for bond in out.bonds_mut().iter_mut().filter(|bond| bond.aromatic) {
            bond.order = if mates[bond.a] == bond.b as u32 { BondOrder::Double } else { BondOrder::Single };
        }
        out
    }
}
