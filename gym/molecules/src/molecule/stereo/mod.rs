//! Stereochemistry: the signs of tetrahedral centres and of double bonds.
//!
//! A mark is a sign of a stereo element, relative to the indices of the neighbours of the element. A
//! permutation of the atoms acts on marks: it moves a mark, and it inverts the sign of the mark if it
//! permutes these indices oddly. Two molecules with marks are the same if a permutation that preserves
//! atoms and bonds maps the marks of one to the marks of the other. A mark has no meaning if such a
//! permutation maps the molecule to itself with only this sign inverted. Examples are marks at an isopropyl
//! group, at a centre whose branches have become equal, and at one centre of 1,4-dimethylcyclohexane if the
//! other is unmarked. Marks without a meaning are dropped, and the result doesn't depend on the order of
//! atoms.
//!
//! Permutations aren't enumerated. Instead, a molecule with marks is represented by a graph with a few
//! additional nodes ([`oriented`]). The canonical form and the symmetries of this graph are those of the
//! molecule with its marks.

mod elements;
mod isomers;
mod oriented;

pub(crate) use oriented::MarkNode;

use super::{Molecule, MoleculeError};

/// A part of a molecule that can have two configurations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum StereoElement {
    /// A tetrahedral centre, given by the index of its atom. The four neighbours of this atom, including a
    /// hydrogen or lone pair, are the corners of a tetrahedron.
    Centre(usize),
    /// A double bond, given by its index among the molecule's bonds.
    DoubleBond(usize),
}

/// The configuration of a stereo element, as a sign.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StereoMark {
    /// The stereo element that the mark belongs to.
    pub element: StereoElement,
    /// The sign of the stereo element.
    ///
    /// - Centre: `true` if the neighbours in ascending order turn counterclockwise, as seen from the first
    ///   of them. A hydrogen or lone pair comes first. (In a SMILES whose neighbours are in ascending
    ///   order, this is `@`.)
    /// - Double bond: `true` if the neighbours with the smallest index of both ends are on the same side of
    ///   the bond. The ends themselves don't count as neighbours here.
    pub positive: bool,
}

impl Molecule {
    /// Returns the molecule's marks of stereochemistry in ascending order. Marks without a meaning, which a
    /// symmetry of the molecule inverts, have been dropped. A molecule without marks represents all of its
    /// stereoisomers. A molecule in which some stereo elements are marked represents all stereoisomers that
    /// agree with these marks.
    ///
    /// ```
    /// use gfn_molecules::{Molecule, StereoElement};
    /// let alanine = Molecule::from_smiles("C[C@H](N)C(=O)O")?;
    /// assert_eq!(alanine.marks()[0].element, StereoElement::Centre(1));
    /// assert_ne!(alanine.key(), Molecule::from_smiles("C[C@@H](N)C(=O)O")?.key());
    /// // The two methyls of isopropanol are equal, so the mark has no meaning.
    /// assert!(Molecule::from_smiles("C[C@H](C)O")?.marks().is_empty());
    /// # Ok::<(), gfn_molecules::MoleculeError>(())
    /// ```
    #[must_use]
    pub fn marks(&self) -> &[StereoMark] {
        &self.marks
    }

    /// Returns the molecule without its marks of stereochemistry. The result represents all of its
    /// stereoisomers.
    #[must_use]
    pub fn without_stereo(&self) -> Self {
        self.with_stereo_marks(Vec::new())
    }

    /// Returns the molecule with the given marks of stereochemistry instead of its previous marks. Marks
    /// without a meaning, which a symmetry of the molecule inverts, are dropped.
    ///
    /// # Errors
    /// [`MoleculeError::Stereo`] for a mark at an atom or bond that can't be a stereo element, for two
    /// marks of the same element, and for an unmarked double bond between two marked double bonds, which
    /// SMILES can't express.
    ///
    /// ```
    /// use gfn_molecules::Molecule;
    /// let butene = Molecule::from_smiles("CC=CC")?;
    /// let mut texts = Vec::new();
    /// for positive in [true, false] {
    ///     let marks: Vec<_> = butene
    ///         .stereo_elements()
    ///         .into_iter()
    ///         .map(|element| gfn_molecules::StereoMark { element, positive })
    ///         .collect();
    ///     texts.push(butene.with_marks(&marks)?.key());
    /// }
    /// assert_eq!(
    ///     texts,
    ///     [Molecule::from_smiles("C/C=C\\C")?.key(), Molecule::from_smiles("C/C=C/C")?.key()]
    /// );
    /// # Ok::<(), gfn_molecules::MoleculeError>(())
    /// ```
    pub fn with_marks(&self, marks: &[StereoMark]) -> Result<Self, MoleculeError> {
        let refuse = |problem: String| Err(MoleculeError::Stereo { problem });
        let mut marks = marks.to_vec();
        marks.sort_unstable();
        if let Some(pair) = marks.windows(2).find(|pair| pair[0].element == pair[1].element) {
            return refuse(format!("two marks of {:?}", pair[0].element));
        }
        let possible = self.candidates();
        if let Some(mark) = marks.iter().find(|mark| possible.binary_search(&mark.element).is_err()) {
            return refuse(format!("a mark of {:?}, which has only one arrangement", mark.element));
        }
        let marked = self.with_stereo_marks(marks).normal();
        match marked.unwritable() {
            Some(bond) => refuse(format!(
                "no mark of {:?} if the double bonds next to it have marks",
                StereoElement::DoubleBond(bond)
            )),
            None => Ok(marked),
        }
    }

    /// Returns the molecule with the given marks of stereochemistry, which must be in ascending order. Marks
    /// without a meaning, which a symmetry of the molecule inverts, are kept.
    pub(crate) fn with_stereo_marks(&self, marks: Vec<StereoMark>) -> Self {
        let mut out = self.clone();
        out.marks = marks;
        out
    }

    /// Returns the sign of the mark (see `StereoMark`) of the double bond with this index; `None` if the
    /// bond isn't marked.
    pub(crate) fn double_bond_sign(&self, bond: usize) -> Option<bool> {
        self.sign(StereoElement::DoubleBond(bond))
    }

    /// Returns the sign of a stereo element; `None` if the element isn't marked.
    pub(crate) fn sign(&self, element: StereoElement) -> Option<bool> {
        let place = self.marks.binary_search_by_key(&element, |mark| mark.element).ok()?;
        Some(self.marks[place].positive)
    }
}

/// Returns `true` if the permutation that sorts the numbers of `order` is odd.
pub(crate) fn is_odd(order: &[usize]) -> bool {
    let inversions =
        (0..order.len()).map(|i| order[i + 1..].iter().filter(|&&later| later < order[i]).count());
    inversions.sum::<usize>() % 2 == 1
}
