//! Fragments from a data set: the pieces that its molecules are cut into.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use gfn::Result;
use gfn::graph::CanonicalKey;

use super::decompose::is_cuttable;
use super::symmetry::MarkedFragment;
use super::{Fragment, FragmentLibrary};
use crate::molecule::ranks;
use crate::{Bond, Cleanup, Molecule, MoleculeReader, ReadReport};

/// A fragment and the number of its occurrences in a data set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CountedFragment {
    /// The fragment. Its stems are all atoms at which a bond was cut in any molecule, and the atoms that a
    /// symmetry of the fragment maps to them. The room of a stem (how many fragments can be attached to it)
    /// is the largest number of bonds that were cut at this atom in one molecule.
    pub fragment: Fragment,
    /// The number of times that the fragment occurs in the data set.
    pub count: usize,
}

/// The pieces that the molecules of a data set are cut into, with the most frequent first. Cuts separate
/// rings from the atoms between the rings, so pieces are ring systems, linkers and side chains.
///
/// A single bond outside of rings is cut if at least one of its ends is in a ring. An atom with a double
/// bond to a ring stays with the ring (as in [`Molecule::scaffold`]). With a library of all pieces, each
/// molecule that was cut is a tree of fragments ([`FragmentLibrary::trees`]). A piece without a cut bond
/// isn't a fragment, so a molecule without a ring contributes no fragment.
///
/// ```
/// use gfn_molecules::Molecule;
/// use gfn_molecules::fragments::{Fragment, Vocabulary};
/// let molecules = ["Cc1ccccc1", "Cc1ccc(CN)cc1", "OC1CC1"].map(Molecule::from_smiles);
/// let vocabulary: Vocabulary = molecules.iter().flatten().collect();
/// let counts: Vec<(String, usize)> =
///     vocabulary.fragments().iter().map(|counted| (counted.fragment.to_string(), counted.count)).collect();
/// // A symmetry maps each atom of benzene to each other atom, so all six atoms are stems.
/// assert_eq!(counts[..2], [("C 0".to_owned(), 2), ("c1ccccc1 0,1,2,3,4,5".to_owned(), 2)]);
/// assert_eq!(counts.len(), 5);
/// assert_eq!(vocabulary.library(2)?.fragments().len(), 2);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Vocabulary {
    fragments: Vec<CountedFragment>,
    report: ReadReport,
}

impl Vocabulary {
    /// Collects the fragments of the molecules in a SMILES or SD file. The molecules are cleaned by
    /// [`Cleanup::ALL`]: salts and isotopes are removed, and charges are neutralised.
    ///
    /// # Errors
    /// [`Error::Io`](gfn::Error::Io) for a file that can't be read; [`Error::File`](gfn::Error::File) for a
    /// file that isn't text or has no valid molecule. Lines that can't be converted into molecules are no
    /// error: the [`report`](Self::report) lists them.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let mut reader = MoleculeReader::open(path)?.with_cleanup(Cleanup::ALL);
        let mut pieces = Pieces::default();
        for molecule in reader.by_ref() {
            pieces.add(&molecule?);
        }
        Ok(Self { fragments: pieces.fragments(), report: reader.report().clone() })
    }

    /// Returns the fragments, with the most frequent first. Equally frequent fragments are sorted by size,
    /// with the smallest first.
    #[must_use]
    pub fn fragments(&self) -> &[CountedFragment] {
        &self.fragments
    }

    /// Returns the report on the lines of the file that the fragments were read from. If the fragments were
    /// collected from molecules in memory, the report only counts the molecules.
    #[must_use]
    pub fn report(&self) -> &ReadReport {
        &self.report
    }

    /// Returns a library of the `n` most frequent fragments, or of all fragments if there are fewer than
    /// `n`.
    ///
    /// # Errors
    /// Errors of [`FragmentLibrary::new`]: no fragments, or more than 4,096 fragments or stems.
    pub fn library(&self, n: usize) -> Result<FragmentLibrary> {
        FragmentLibrary::new(self.fragments.iter().take(n).map(|counted| counted.fragment.clone()).collect())
    }
}

impl<'a> FromIterator<&'a Molecule> for Vocabulary {
    fn from_iter<I: IntoIterator<Item = &'a Molecule>>(molecules: I) -> Self {
        let mut pieces = Pieces::default();
        let mut report = ReadReport::default();
        for molecule in molecules {
            pieces.add(molecule);
            report.read += 1;
        }
        Self { fragments: pieces.fragments(), report }
    }
}

impl FragmentLibrary {
    /// Creates a library of the `n` most frequent fragments of the molecules in a SMILES or SD file, by
    /// [`Vocabulary::read`] and [`Vocabulary::library`].
    ///
    /// # Errors
    /// Errors of [`Vocabulary::read`] and [`Vocabulary::library`].
    pub fn from_data(path: impl AsRef<Path>, n: usize) -> Result<Self> {
        Vocabulary::read(path)?.library(n)
    }
}

/// Writes the library in the text format that [`FragmentLibrary::parse`] and Python's
/// `gfn.Fragments(library=...)` accept.
impl fmt::Display for FragmentLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fragments().iter().try_for_each(|fragment| writeln!(f, "{fragment}"))
    }
}

/// A distinct piece of the data set's molecules, with the number of its occurrences.
struct Piece {
    molecule: Molecule,
    /// The largest number of bonds that were cut in one molecule, for each atom of the piece. The atoms are
    /// in canonical order.
    cuts: Vec<u8>,
    count: usize,
}

#[derive(Default)]
struct Pieces(HashMap<CanonicalKey, Piece>);

impl Pieces {
    /// Cuts a molecule into pieces, and adds 1 to the count of each piece.
    fn add(&mut self, molecule: &Molecule) {
        let is_cut =
            |bond: &Bond| is_cuttable(bond) && (molecule.in_ring(bond.a) || molecule.in_ring(bond.b));
        let mut seen = vec![false; molecule.atoms().len()];
        for first in 0..seen.len() {
            if !seen[first] {
                let atoms = molecule.reach(first, usize::MAX, |k| !is_cut(&molecule.bonds()[k]));
                for &a in &atoms {
                    seen[a] = true;
                }
                self.count(molecule, &atoms, is_cut);
            }
        }
    }

    fn count(&mut self, molecule: &Molecule, atoms: &[usize], is_cut: impl Fn(&Bond) -> bool) {
        let cuts = |a: usize| molecule.neighbours(a).filter(|(_, bond)| is_cut(bond)).count() as u8;
        // Hydrogens replace the cut bonds, which are single. Each piece of a molecule is therefore a valid
        // molecule.
        let Ok(piece) = molecule.part(atoms, |bond| !is_cut(bond)) else { return };
        let canonical = piece.canonical();
        let new = || Piece { cuts: vec![0; atoms.len()], molecule: piece, count: 0 };
        let known = self.0.entry(canonical.key).or_insert_with(new);
        known.count += 1;
        for (most, &k) in known.cuts.iter_mut().zip(&canonical.order) {
            *most = (*most).max(cuts(atoms[k as usize]));
        }
    }

    fn fragments(self) -> Vec<CountedFragment> {
        let counted =
            |piece: Piece| Some(CountedFragment { fragment: piece.fragment()?, count: piece.count });
        let mut out: Vec<CountedFragment> = self.0.into_values().filter_map(counted).collect();
        let size = |counted: &CountedFragment| counted.fragment.molecule().atoms().len();
        out.sort_by(|one, other| {
            let by_count = other.count.cmp(&one.count).then(size(one).cmp(&size(other)));
            by_count.then_with(|| one.fragment.smiles().cmp(other.fragment.smiles()))
        });
        out
    }
}

impl Piece {
    /// Returns the piece as a fragment. Returns `None` if the piece has no stem, or if it has too many
    /// stems or symmetries.
    fn fragment(&self) -> Option<Fragment> {
        let alike = MarkedFragment::new(&self.molecule, &[]);
        let rank = ranks(&self.molecule.canonical().order);
        let mut stems = Vec::new();
        for atom in 0..self.cuts.len() {
            let images = alike.images(&[atom], &alike, usize::MAX);
            let most = images.iter().map(|image| self.cuts[rank[image[0]]]).max();
            stems.extend(std::iter::repeat_n(atom, most.unwrap_or(0).into()));
        }
        Fragment::from_molecule(&self.molecule, &stems).ok()
    }
}
