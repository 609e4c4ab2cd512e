//! Keys, symmetry and Kekule forms: what makes two bond graphs one molecule.

use std::collections::BTreeSet;

use gfn::graph::{Attributes, Canonical, CanonicalKey, Edge, GraphKind, GraphState, Node};
use rayon::prelude::*;

use super::aromaticity::has_ring_double;
use super::placements::Placements;
use super::{BondOrder, Element, Molecule};

/// The edge class of an aromatic bond; others have their order less 1.
const AROMATIC: u8 = 3;

impl Molecule {
    /// An atom as a node of a graph: element, charge, hydrogens, and whether it has a double bond in an aromatic ring.
    fn node(&self, a: usize) -> Node {
        let atom = self.atoms()[a];
        let place = Element::ALL.iter().position(|element| *element == atom.element).unwrap_or(0);
        let mut node = Node { class: place as u16, attributes: Attributes::default() };
        // Two's complement: 0 stays 0, and -1 is 255.
        node.attributes.set(0, atom.charge as u8);
        node.attributes.set(1, atom.hydrogens);
        node.attributes.set(2, u8::from(has_ring_double(self, a)));
        node
    }

    /// The molecule as a graph; `class` says what a bond is.
    pub(super) fn graph(&self, class: impl Fn(usize) -> u8) -> GraphState {
        let n = self.atoms().len();
        let mut graph = GraphState::with_nodes(GraphKind::Undirected, n);
        for a in 0..n {
            // Neither foreign nodes nor loops nor parallel bonds: a molecule was checked when it was made.
            let set = graph.set_node(a as u32, self.node(a));
            debug_assert!(set.is_ok());
        }
        for (k, bond) in self.bonds().iter().enumerate() {
            let added = graph.add_edge(bond.a as u32, bond.b as u32, Edge::of_class(u16::from(class(k))));
            debug_assert!(added.is_ok());
        }
        graph
    }

    /// The class of a bond: its order in a Kekule form, but for aromatic ones.
    pub(super) fn class(&self, bond: usize) -> u8 {
        if self.bonds()[bond].aromatic { AROMATIC } else { self.kekule_class(bond) }
    }

    fn kekule_class(&self, bond: usize) -> u8 {
        self.bonds()[bond].order.value() - 1
    }

    /// The canonical form with these classes of bonds.
    fn canonical_of(&self, class: impl Fn(usize) -> u8) -> Canonical {
        self.canonical_marked(self.graph(class))
    }

    /// The canonical form of the molecule with its aromatic bonds as such: the same for all Kekule forms.
    ///
    /// Its key has a bit for each pair of atoms: 8 KB for 360 atoms, 62 KB for [`MAX_ATOMS`](Self::MAX_ATOMS).
    #[must_use]
    pub fn canonical(&self) -> Canonical {
        self.canonical_of(|k| self.class(k))
    }

    /// The canonical order of the atoms, the same for all Kekule forms.
    pub(super) fn order(&self) -> Vec<u32> {
        self.canonical_of(|k| self.class(k)).order.to_vec()
    }

    /// The canonical order of the atoms of this Kekule form.
    pub(super) fn kekule_order(&self) -> Vec<u32> {
        self.canonical_of(|k| self.kekule_class(k)).order.to_vec()
    }

    /// Equal for the same molecule, whatever its Kekule form and the order of its atoms; different for others, stereoisomers among them.
    /// Two SMILES of different programs are compared by the keys of the molecules that they are read as.
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

    /// The number of Kekule forms that are different as graphs of single, double and triple bonds (benzene 1, o-xylene 2).
    ///
    /// `None` where [`kekule_forms`](Self::kekule_forms) is.
    #[must_use]
    pub fn n_kekule_forms(&self) -> Option<usize> {
        if !self.bonds().iter().any(|bond| bond.aromatic) {
            return Some(1);
        }
        self.kekule_forms().map(|forms| forms.len())
    }

    /// Its Kekule forms, one of each that are the same graph; `None` where there are more than 65,536 ways to place the double bonds
    /// of all its rings, or where the search for them is given up.
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
        let all: Vec<usize> = (0..self.atoms().len()).collect();
        let placements = Placements::new(self, &all)?;
        let key = |form: &Self| form.canonical_of(|k| form.kekule_class(k)).key;
        let forms = |mates: &[&[u32]]| -> Vec<(CanonicalKey, Self)> {
            mates.par_iter().map(|mates| self.with_doubles(mates)).map(|form| (key(&form), form)).collect()
        };
        let mut seen = BTreeSet::new();
        let mut different = Vec::new();
        // Not all at once: there may be 65,536 of a thousand atoms.
        for some in placements.iter().collect::<Vec<_>>().chunks(1_024) {
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

#[cfg(test)]
mod tests {
    use gfn::Rng;

    use super::*;

    /// Buckminsterfullerene.
    const BALL: &str = "c12c3c4c5c1c1c6c7c2c2c8c3c3c9c4c4c%10c5c5c1c1c6c6c%11c7c2c2c7c8c3c3c8c9c4c4c9c%10c5c5c1c1c6c6c%11c2c2c7c3c3c8c4c4c9c5c1c1c6c2c3c41";

    /// A random tree of rings and chains: what hangs on the bond before it.
    fn grown(rng: &mut Rng, depth: usize) -> String {
        const ENDS: [&str; 6] = ["C", "O", "F", "c9ccccc9", "C9CC9", "[N+](=O)[O-]"];
        const LINKS: [&str; 8] = [
            "C(_)_",
            "N_",
            "c9ccc(_)cc9",
            "c9cc(_)cc(_)c9",
            "c9cc_ccn9",
            "c9cc8ccc(_)cc8cc9_",
            "C9CCC(_)CC9",
            "C(_)(_)_",
        ];
        if depth == 0 || rng.below(4) == 0 {
            return ENDS[rng.below(ENDS.len())].into();
        }
        let link = LINKS[rng.below(LINKS.len())].replace("c9cc_ccn9", "c9cc(_)ccn9").replace("c8cc9_", "c8cc9(_)");
        // Now and then the same below each place, so that there are symmetries.
        let same = (rng.below(3) == 0).then(|| grown(rng, depth - 1));
        let mut out = String::new();
        for piece in link.split_inclusive('_') {
            out += piece.trim_end_matches('_');
            if piece.ends_with('_') {
                out += &same.clone().unwrap_or_else(|| grown(rng, depth - 1));
            }
        }
        out
    }

    fn molecules() -> Vec<Molecule> {
        let golden: serde_json::Value =
            serde_json::from_str(include_str!("../../tests/golden/molecules.json")).unwrap();
        let valid = golden["cases"].as_array().unwrap().iter().filter(|case| case["valid"] == true);
        let mut texts: Vec<String> = valid.map(|case| case["smiles"].as_str().unwrap().into()).collect();
        let mut rng = Rng::seeded(11);
        texts.extend((0..400).map(|_| grown(&mut rng, 3)));
        // Cages, spiro rings, a ball, and rings in a ring.
        for text in [
            "C12C3C4C1C5C2C3C45",
            "C1C2CC3CC1CC(C2)C3",
            "C1CC11CC1",
            "C1CC2(C1)CC1(CC1)C2",
            "C1CC2CCC1CC2",
            "C",
            BALL,
            "c1cc2ccc1-c1ccc(cc1)-c1ccc(cc1)-c1ccc-2cc1",
        ] {
            texts.push(text.into());
        }
        texts.iter().filter_map(|text| Molecule::from_smiles(text).ok()).collect()
    }

    /// Another order of the atoms gives the same key.
    #[test]
    fn keys_do_not_depend_on_the_order_of_atoms() {
        let molecules = molecules();
        assert!(molecules.len() > 500, "{}", molecules.len());
        let mut rng = Rng::seeded(4);
        let mut keys = BTreeSet::new();
        for molecule in &molecules {
            let n = molecule.atoms().len();
            let mut place: Vec<u32> = (0..n as u32).collect();
            (1..n).rev().for_each(|k| place.swap(k, rng.below(k + 1)));
            let mut specs = vec![crate::molecule::AtomSpec::of(Element::C); n];
            for (atom, &k) in molecule.atoms().iter().zip(&place) {
                let hydrogens = Some(atom.hydrogens);
                specs[k as usize] = crate::molecule::AtomSpec { element: atom.element, charge: atom.charge, hydrogens };
            }
            let bonds: Vec<_> =
                molecule.bonds().iter().rev().map(|b| (place[b.b] as usize, place[b.a] as usize, b.order)).collect();
            let other = Molecule::new(&crate::molecule::ValenceTable::default(), &specs, &bonds).unwrap();
            assert_eq!(molecule.key(), other.key(), "{}", molecule.smiles());
            keys.insert(molecule.key());
        }
        assert!(keys.len() > 300, "{}", keys.len());
    }

    /// The ball of 60 carbons: 12,500 placements, 158 that are different (Vukicevic, Kroto and Randic 2005).
    #[test]
    fn forms_of_the_ball_are_those_of_the_literature() {
        let ball = Molecule::from_smiles(BALL).unwrap();
        assert_eq!(Placements::new(&ball, &(0..60).collect::<Vec<_>>()).unwrap().iter().len(), 12_500);
        assert_eq!((ball.n_kekule_forms(), ball.automorphisms()), (Some(158), Some(120)));
    }
}
