//! Keys, symmetries and Kekule forms of molecules. Two molecules are the same if their keys are equal.

use std::collections::BTreeSet;

use gfn::graph::{Canonical, CanonicalKey, Edge, GraphKind, GraphState, Node};
use rayon::prelude::*;

use super::aromaticity::has_ring_double;
use super::placements::placements;
use super::{Bond, BondOrder, Molecule};

/// The class of an aromatic bond's edge in a molecule's graph. The class of any other bond is its order
/// minus 1.
const AROMATIC: u8 = 3;

impl Molecule {
    /// Returns the node that represents an atom in the molecule's graph. The node holds the atom's element,
    /// charge and hydrogens, and a flag that is 1 if the atom has a double bond in an aromatic ring.
    fn node(&self, a: usize) -> Node {
        let atom = self.atoms()[a];
        let mut node = Node::from_class(atom.element as u16);
        // The charge is stored in two's complement, so 0 stays 0, and -1 is 255.
        node.attributes.set(0, atom.charge as u8);
        node.attributes.set(1, atom.hydrogens);
        node.attributes.set(2, u8::from(has_ring_double(self, a)));
        node
    }

    /// Returns the molecule as a graph. `class` returns the edge class of the bond with a given index.
    pub(super) fn graph(&self, class: impl Fn(usize) -> u8) -> GraphState {
        let nodes: Vec<Node> = (0..self.atoms().len()).map(|a| self.node(a)).collect();
        let edge =
            |(k, bond): (usize, &Bond)| (bond.a as u32, bond.b as u32, Edge::from_class(class(k).into()));
        let edges: Vec<_> = self.bonds().iter().enumerate().map(edge).collect();
        let graph = GraphState::from_parts(GraphKind::Undirected, &nodes, &edges);
        debug_assert!(graph.is_ok());
        // Creating the graph can't fail, because loops and parallel bonds are errors when a molecule is
        // created.
        graph.unwrap_or_else(|_| GraphState::undirected(nodes.len()))
    }

    /// Returns the edge class of a bond: the aromatic class, or the bond's order minus 1.
    pub(super) fn class(&self, bond: usize) -> u8 {
        if self.bonds()[bond].aromatic { AROMATIC } else { self.kekule_class(bond) }
    }

    fn kekule_class(&self, bond: usize) -> u8 {
        self.bonds()[bond].order.value() - 1
    }

    /// Computes the canonical form of the molecule. All aromatic bonds have the same class, so the
    /// canonical form is the same for all Kekule forms.
    ///
    /// The key of the canonical form has a bit for each pair of atoms. It takes 8 KB for 360 atoms and 62 KB
    /// for [`MAX_ATOMS`](Self::MAX_ATOMS).
    #[must_use]
    pub fn canonical(&self) -> Canonical {
        self.canonical_marked(self.graph(|k| self.class(k)))
    }

    /// Computes the canonical form of the molecule's current Kekule form. Unlike in the canonical form of the
    /// molecule, single and double bonds of aromatic rings have different classes.
    pub(super) fn canonical_kekule(&self) -> Canonical {
        self.canonical_marked(self.graph(|k| self.kekule_class(k)))
    }

    /// Returns a key that is equal for two molecules exactly if the molecules are equal. The key depends
    /// neither on the Kekule form nor on the order of the atoms. Stereoisomers have different keys. To
    /// compare SMILES from different programs, read them with this library and compare the keys.
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

    /// Returns the number of automorphisms |Aut|. Automorphisms are the permutations of the heavy atoms
    /// that preserve elements, charges, hydrogens, bond orders and marks of stereochemistry. All aromatic
    /// bonds count as equal. Returns `None` if the number exceeds `u64`.
    #[must_use]
    pub fn automorphisms(&self) -> Option<u64> {
        self.canonical().automorphisms
    }

    /// Returns the number of Kekule forms. Two forms count as one if they are isomorphic as graphs of
    /// single, double and triple bonds: benzene has 1 form, and o-xylene has 2.
    ///
    /// Returns `None` if [`kekule_forms`](Self::kekule_forms) returns `None`.
    #[must_use]
    pub fn n_kekule_forms(&self) -> Option<usize> {
        if !self.bonds().iter().any(|bond| bond.aromatic) {
            return Some(1);
        }
        self.kekule_forms().map(|forms| forms.len())
    }

    /// Returns the Kekule forms of the molecule, one for each class of isomorphic graphs. Returns `None` if
    /// the double bonds of all its rings can be placed in more than 65,536 ways, or if the search for
    /// placements takes too long.
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
        // There may be 65,536 placements in a molecule of a thousand atoms. They are processed in chunks, so
        // that few molecules are in memory at a time.
        for some in placements.chunks(1_024) {
            different
                .extend(forms(some).into_iter().filter_map(|(key, form)| seen.insert(key).then_some(form)));
        }
        Some(different)
    }

    /// Returns the molecule with other bond orders in its aromatic rings. An aromatic atom that has a partner
    /// in `mates` has a double bond to it, and all other aromatic bonds are single.
    fn with_doubles(&self, mates: &[u32]) -> Self {
        let mut out = self.clone();
        for bond in out.bonds_mut().iter_mut().filter(|bond| bond.aromatic) {
            bond.order = if mates[bond.a] == bond.b as u32 { BondOrder::Double } else { BondOrder::Single };
        }
        out
    }
}
