//! Creation of fragments from molecules, and from SMILES in which `*` marks attachment points.

use super::{Fragment, FragmentError};
use crate::molecule::ranks;
use crate::{BondOrder, Element, Molecule};

/// The element that replaces `*` before the text is read as a SMILES. Its smallest valence is 1, so an atom
/// with one single bond is valid.
const MARK: char = 'I';

impl Fragment {
    /// Creates a fragment from a molecule. Stems are indices of the molecule's atoms. An atom is listed
    /// once for each attachment that it has room for. The fragment's SMILES is the canonical SMILES of the
    /// molecule, and the fragment's stems are in the order of the atoms in this SMILES.
    ///
    /// ```
    /// use gfn_molecules::Molecule;
    /// use gfn_molecules::fragments::Fragment;
    /// let phenol = Molecule::from_smiles("Oc1ccccc1")?;
    /// // The stems are the two ortho atoms, which a symmetry exchanges.
    /// let fragment = Fragment::from_molecule(&phenol, &[2, 6])?;
    /// assert_eq!(fragment.n_symmetries(), 2);
    /// # Ok::<(), gfn_molecules::fragments::FragmentError>(())
    /// ```
    ///
    /// # Errors
    /// Errors of [`new`](Self::new).
    pub fn from_molecule(molecule: &Molecule, stems: &[usize]) -> Result<Self, FragmentError> {
        let smiles = molecule.smiles();
        let atoms = molecule.atoms().len();
        if let Some(&stem) = stems.iter().find(|stem| **stem >= atoms) {
            return Err(FragmentError::NoAtom { smiles, stem, atoms });
        }
        // The molecule that is read from the canonical SMILES of `molecule` has the same canonical form as
        // `molecule`. Atoms at the same position of the two canonical orders are therefore the same atom.
        let written = Molecule::from_smiles(&smiles)?;
        let rank = ranks(&molecule.canonical().order);
        let order = written.canonical().order;
        let mut stems: Vec<usize> = stems.iter().map(|stem| order[rank[*stem]] as usize).collect();
        stems.sort_unstable();
        Self::new(&smiles, &stems)
    }

    /// Creates a fragment from a SMILES in which `*`, `[*]`, `[*:1]` or `[14*]` (a label of BRICS) marks
    /// each attachment point. Each `*` must be bonded to an atom by a single bond. This atom becomes a
    /// stem. Numbers next to `*` are ignored.
    ///
    /// ```
    /// use gfn_molecules::fragments::Fragment;
    /// let para = Fragment::from_marked("c1cc([*:1])ccc1[*:2]")?;
    /// assert!(para.is_same(&Fragment::new("c1ccccc1", &[0, 3])?));
    /// assert!(Fragment::from_marked("c1ccccc1").unwrap_err().to_string().contains("has no stem"));
    /// # Ok::<(), gfn_molecules::fragments::FragmentError>(())
    /// ```
    ///
    /// # Errors
    /// [`FragmentError::Mark`] for a `*` that isn't bonded to exactly one atom by a single bond; errors of
    /// [`new`](Self::new).
    pub fn from_marked(smiles: &str) -> Result<Self, FragmentError> {
        let (text, marks) = without_marks(smiles);
        let molecule = Molecule::from_smiles(&text)?;
        let refused = || FragmentError::Mark { smiles: smiles.to_owned() };
        let mut stems = Vec::new();
        for &mark in &marks {
            let mut beside = molecule.neighbours(mark);
            match (beside.next(), beside.next()) {
                (Some((on, bond)), None) if bond.order == BondOrder::Single && !marks.contains(&on) => {
                    stems.push(on)
                }
                _ => return Err(refused()),
            }
        }
        let left: Vec<usize> = (0..molecule.atoms().len()).filter(|a| !marks.contains(a)).collect();
        let stems: Vec<usize> = stems.iter().filter_map(|stem| left.binary_search(stem).ok()).collect();
        Self::from_molecule(&molecule.part(&left, |_| true)?, &stems)
    }
}

/// Replaces each `*` in a SMILES by an atom. Returns the new text and the indices of the new atoms.
fn without_marks(smiles: &str) -> (String, Vec<usize>) {
    let mut out = String::new();
    let mut marks = Vec::new();
    let mut atom = 0;
    let mut rest = smiles;
    while let Some(first) = rest.chars().next() {
        let bracket = (first == '[').then(|| rest.find(']')).flatten();
        let length = match bracket {
            Some(end) => end + 1,
            None if rest.get(..2).and_then(Element::from_symbol).is_some() => 2,
            None => first.len_utf8(),
        };
        let (piece, after) = rest.split_at(length);
        let inner = piece.trim_start_matches('[').trim_end_matches(']');
        let label = inner.trim_start_matches(|c: char| c.is_ascii_digit());
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let is_map = |text: &str| is_number(text.strip_prefix(':').unwrap_or(text));
        let is_mark = label.strip_prefix('*').is_some_and(is_map);
        // A hydrogen in brackets gets no index. It isn't an atom of the molecule, but part of its neighbour's
        // hydrogen count.
        let is_hydrogen = inner.strip_prefix('H').is_some_and(|map| map.is_empty() || map.starts_with(':'));
        if is_mark {
            marks.push(atom);
            out.push(MARK);
        } else {
            out.push_str(piece);
        }
        atom += usize::from(is_mark || (bracket.is_some() && !is_hydrogen) || first.is_ascii_alphabetic());
        rest = after;
    }
    (out, marks)
}
