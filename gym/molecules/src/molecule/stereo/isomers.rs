//! Removal of stereo marks that have no meaning, because a symmetry of the molecule inverts them, and
//! enumeration of the stereoisomers of a molecule.

use std::collections::BTreeMap;

use gfn::graph::CanonicalKey;

use super::{StereoElement, StereoMark};
use crate::molecule::{Molecule, ranks};

/// The largest number of unmarked stereo elements for which all combinations of signs are enumerated.
const MAX_SETTINGS: u32 = 16;

impl Molecule {
    /// Returns the stereo elements of the molecule, in ascending order, whether they are marked or not. A
    /// stereo element is an atom (a carbon with four neighbours, of which at most one is hydrogen; a
    /// quaternary nitrogen; a sulphoxide; phosphorus; and so on) or a double bond outside of rings with fewer
    /// than eight atoms. A stereo element is left out if a symmetry inverts it and changes no other element.
    /// An example is an atom with two methyls, which the symmetry exchanges. If all elements are marked, the
    /// molecule is one stereoisomer. Different combinations of marks may describe the same stereoisomer.
    ///
    /// The rules are RDKit's. Nitrogen with three neighbours is an element only in rings of three and at
    /// bridgeheads, and only if it isn't conjugated. Cumulenes and atropisomers aren't elements. Double
    /// bonds in a ring of alternating double and single bonds aren't elements either, because SMILES can't
    /// express all of their configurations.
    ///
    /// ```
    /// use gfn_molecules::{Molecule, StereoElement};
    /// let elements = Molecule::from_smiles("CC(O)C=CC(C)C")?.stereo_elements();
    /// assert_eq!(elements, [StereoElement::Centre(1), StereoElement::DoubleBond(3)]);
    /// # Ok::<(), gfn_molecules::MoleculeError>(())
    /// ```
    #[must_use]
    pub fn stereo_elements(&self) -> Vec<StereoElement> {
        let (mut fixed, others) = self.elements();
        fixed.extend(others);
        fixed.sort_unstable();
        fixed
    }

    /// Returns the stereo elements in two groups. No symmetry changes or exchanges the signs of the first
    /// group, so each element of the first group doubles the number of isomers. The second group holds the
    /// other stereo elements. Atoms and bonds whose marks have no meaning, because a symmetry inverts them,
    /// are in neither group.
    fn elements(&self) -> (Vec<StereoElement>, Vec<StereoElement>) {
        let classes = self.classes();
        let mut count = BTreeMap::new();
        for class in &classes {
            *count.entry(class).or_insert(0) += 1;
        }
        let alone = |a: usize| count[&classes[a]] == 1;
        let is_fixed = |element: &StereoElement| self.ends(*element).into_iter().all(alone);
        let candidates =
            self.candidates().into_iter().filter(|element| !self.has_equal_ends(*element, &classes));
        let (sure, mut others): (Vec<_>, Vec<_>) =
            candidates.partition(|element| self.is_told(*element, &classes));
        let graph = self.graph(|k| self.class(k));
        while let Some(place) = (0..others.len()).find(|&place| {
            // A symmetry that inverts this stereo element must leave all other stereo elements in place, so
            // each of their atoms gets a unique node attribute.
            let rest = sure.iter().chain(&others).filter(|other| **other != others[place]);
            let mut held = graph.clone();
            for (a, number) in rest.flat_map(|other| self.atoms_of(*other)).zip(1u16..) {
                let mut node = held.node(a as u32).unwrap_or_default();
                node.attributes.set(4, (number >> 8) as u8);
                node.attributes.set(5, number as u8);
                let set = held.set_node(a as u32, node);
                debug_assert!(set.is_ok());
            }
            self.turns_in(&held, others[place])
        }) {
            others.remove(place);
        }
        let (fixed, exchanged): (Vec<_>, Vec<_>) = sure.into_iter().partition(is_fixed);
        others.extend(exchanged);
        (fixed, others)
    }

    /// Returns the atoms of a stereo element (its centre, or the two ends of its double bond) and their
    /// neighbours.
    fn atoms_of(&self, element: StereoElement) -> Vec<usize> {
        self.ends(element).into_iter().chain(self.ligands(element).concat()).collect()
    }

    /// Returns `true` if `alike` accepts two neighbours of the stereo element whose exchange would invert its
    /// sign.
    fn any_pair(&self, element: StereoElement, alike: impl Fn(usize, usize) -> bool) -> bool {
        let any =
            |atoms: &Vec<usize>| (1..atoms.len()).any(|k| atoms[..k].iter().any(|&a| alike(a, atoms[k])));
        self.ligands(element).iter().any(any)
    }

    /// Returns `true` if no two neighbours of a stereo element are in the same symmetry class, so that no
    /// symmetry exchanges two of them.
    fn is_told(&self, element: StereoElement, classes: &[usize]) -> bool {
        !self.any_pair(element, |a, b| classes[a] == classes[b])
    }

    /// Returns `true` if two neighbours of a stereo element are in the same symmetry class and are ends of
    /// the molecule: they have no other heavy neighbour.
    fn has_equal_ends(&self, element: StereoElement, classes: &[usize]) -> bool {
        self.any_pair(element, |a, b| classes[a] == classes[b] && self.neighbours(a).len() == 1)
    }

    /// Returns the molecule without the stereo marks that have no meaning, because a symmetry of the molecule
    /// inverts them.
    pub(crate) fn normal(mut self) -> Self {
        if self.marks().is_empty() {
            return self;
        }
        let possible = self.candidates();
        let classes = self.classes();
        self = self.keeping(|mark| {
            possible.binary_search(&mark.element).is_ok() && !self.has_equal_ends(mark.element, &classes)
        });
        loop {
            let doubted = self
                .marks()
                .iter()
                .map(|mark| mark.element)
                .filter(|&element| !self.is_told(element, &classes));
            let turned: Vec<_> = doubted.filter(|&element| self.is_turned(element)).collect();
            // Two marks may carry information together even if symmetries could invert each of them alone. In
            // 1,2,3-trimethylcyclopropane, for example, two marks show that two methyls are on the same side.
            // A mark is therefore removed only if a symmetry still inverts it after all other marks that a
            // symmetry can invert are removed.
            let alone = |&element: &StereoElement| {
                let gone = |mark: &StereoMark| mark.element == element || !turned.contains(&mark.element);
                self.keeping(gone).is_turned(element)
            };
            let mut going: Vec<_> = turned.iter().copied().filter(alone).collect();
            if going.is_empty() {
                return self;
            }
            let rank = ranks(&self.canonical().order);
            going.sort_by_cached_key(|&element| {
                let mut ends: Vec<usize> = self.ends(element).into_iter().map(|a| rank[a]).collect();
                ends.sort_unstable();
                (ends[0], ends[ends.len() - 1])
            });
            let before = self.marks().len();
            for element in going {
                if self.is_turned(element) {
                    self = self.keeping(|mark| mark.element != element);
                }
            }
            if self.marks().len() == before {
                return self;
            }
        }
    }

    /// Returns a copy of the molecule that has only those stereo marks that `keeps` accepts.
    fn keeping(&self, keeps: impl Fn(&StereoMark) -> bool) -> Self {
        self.with_stereo_marks(self.marks().iter().copied().filter(keeps).collect())
    }

    /// Returns a copy of the molecule that has the stereo marks `more` in addition to its own.
    fn with_more(&self, more: impl Iterator<Item = StereoMark>) -> Self {
        let mut marks: Vec<StereoMark> = self.marks().iter().copied().chain(more).collect();
        marks.sort_unstable();
        self.with_stereo_marks(marks)
    }

    /// Returns a marked molecule with additional marks. An unmarked stereo element gets a mark if both signs
    /// give the same molecule, because a symmetry exchanges them. A molecule without marks is returned
    /// unchanged.
    pub(crate) fn completed(mut self) -> Self {
        if self.marks().is_empty() {
            return self;
        }
        for element in self.stereo_elements() {
            if self.sign(element).is_none() {
                let more = self.with_more(std::iter::once(StereoMark { element, positive: true }));
                if more.is_turned(element) {
                    self = more;
                }
            }
        }
        self
    }

    /// Returns `true` if a symmetry maps the molecule to the molecule in which the mark of this stereo
    /// element is inverted.
    fn is_turned(&self, element: StereoElement) -> bool {
        let turn =
            |mark: &StereoMark| StereoMark { positive: mark.positive ^ (mark.element == element), ..*mark };
        self.key() == self.with_stereo_marks(self.marks().iter().map(turn).collect()).key()
    }

    /// Returns the index of a double bond without a mark that is between two marked double bonds, if the
    /// molecule has such a bond. SMILES can't express this molecule, because the directions next to the two
    /// marked bonds would imply a sign for the bond between them.
    pub(super) fn unwritable(&self) -> Option<usize> {
        let shown = |end: usize, bond: usize| {
            let marked = |k: &usize| *k != bond && self.double_bond_sign(*k).is_some();
            self.beside(end, bond).iter().any(|&b| self.bonds_at(b).iter().any(&marked))
        };
        let open = self.stereo_elements().into_iter().filter(|element| self.sign(*element).is_none());
        open.filter_map(|element| match element {
            StereoElement::DoubleBond(k) => Some(k),
            StereoElement::Centre(_) => None,
        })
        .find(|&k| shown(self.bonds()[k].a, k) && shown(self.bonds()[k].b, k))
    }

    /// Returns the number of stereoisomers that agree with the molecule's marks. Returns `None` if the number
    /// exceeds `u64`, or if symmetries change or exchange the signs of more than 16 unmarked stereo elements.
    ///
    /// ```
    /// use gfn_molecules::Molecule;
    /// let count = |smiles: &str| Molecule::from_smiles(smiles).map(|molecule| molecule.n_stereoisomers());
    /// // Tartaric acid has two mirror images and a meso form. Inositol has nine stereoisomers.
    /// assert_eq!(count("OC(=O)C(O)C(O)C(=O)O")?, Some(3));
    /// assert_eq!(count("OC1C(O)C(O)C(O)C(O)C1O")?, Some(9));
    /// assert_eq!(count("C[C@H](O)C(F)Cl")?, Some(2));
    /// # Ok::<(), gfn_molecules::MoleculeError>(())
    /// ```
    #[must_use]
    pub fn n_stereoisomers(&self) -> Option<u64> {
        let (fixed, others) = self.elements();
        let free = fixed.iter().filter(|element| self.sign(**element).is_none()).count();
        let bare = self.keeping(|mark| !fixed.contains(&mark.element));
        let others = bare.settings(&others)?.len() as u64;
        u32::try_from(free)
            .ok()
            .and_then(|free| 2u64.checked_pow(free))
            .and_then(|many| many.checked_mul(others))
    }

    /// Returns the stereoisomers that agree with the molecule's marks. Each stereoisomer is listed once, and
    /// each of its stereo elements is marked, unless a symmetry inverts its sign. Returns `None` if more than
    /// 16 stereo elements are unmarked (more than 65,536 combinations of signs).
    ///
    /// ```
    /// use gfn_molecules::Molecule;
    /// let isomers = Molecule::from_smiles("CC=CC(C)F")?.stereoisomers().unwrap_or_default();
    /// let texts: Vec<String> = isomers.iter().map(Molecule::smiles).collect();
    /// assert_eq!(texts.len(), 4);
    /// assert!(texts.iter().all(|text| text.contains('@') && text.contains('/')));
    /// # Ok::<(), gfn_molecules::MoleculeError>(())
    /// ```
    #[must_use]
    pub fn stereoisomers(&self) -> Option<Vec<Self>> {
        let isomers = self.settings(&self.stereo_elements())?;
        Some(isomers.into_values().map(Self::normal).collect())
    }

    /// Returns the distinct molecules that result from giving all combinations of signs to the unmarked ones
    /// of the given stereo elements. Returns `None` if more than 16 of them are unmarked.
    fn settings(&self, elements: &[StereoElement]) -> Option<BTreeMap<CanonicalKey, Self>> {
        let open: Vec<_> = elements.iter().copied().filter(|element| self.sign(*element).is_none()).collect();
        let n = u32::try_from(open.len()).ok().filter(|n| *n <= MAX_SETTINGS)?;
        let set = |bits: u32| {
            let new = open
                .iter()
                .enumerate()
                .map(|(k, &element)| StereoMark { element, positive: bits >> k & 1 == 0 });
            self.with_more(new)
        };
        Some((0..1u32 << n).map(set).map(|isomer| (isomer.key(), isomer)).collect())
    }
}
