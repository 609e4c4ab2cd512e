use super::symmetry::matchings;
use crate::{LeftOut, Molecule, MoleculeError, ValenceTable};

/// The largest number of symmetries of a fragment. The limit is needed because all symmetries are tried for
/// every fragment of every state.
const MAX_SYMMETRIES: usize = 1_000;
/// The largest number of stems of a fragment. A byte stores a stem as its index plus 1, and 0 means that
/// there is no stem.
const MAX_STEMS: usize = u8::MAX as usize - 1;

/// An atom of a fragment that other fragments can be attached to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stem {
    /// The index of the atom, from 0, in the order of the SMILES.
    pub atom: usize,
    /// The number of attachments that the atom has room for. Each attachment replaces a hydrogen.
    pub room: u8,
}

/// The reason why a text or a molecule isn't a fragment.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FragmentError {
    /// The text can't be converted into a molecule.
    #[error(transparent)]
    Molecule(#[from] MoleculeError),
    /// The fragment has no stem, so no other fragment could be attached to it.
    #[error("{smiles} has no stem: name one or more atoms with a hydrogen")]
    NoStem {
        /// The SMILES of the fragment.
        smiles: String,
    },
    /// A stem isn't an atom of the fragment.
    #[error("{smiles} has no atom {stem} that could be a stem: its {atoms} atoms are counted from 0")]
    NoAtom {
        /// The SMILES of the fragment.
        smiles: String,
        /// The index that was given as a stem.
        stem: usize,
        /// The number of heavy atoms of the fragment.
        atoms: usize,
    },
    /// An atom is listed as a stem more often than it has hydrogens.
    #[error(
        "stem {stem} of {smiles} is listed {listed} times, but has {hydrogens} hydrogens: list a stem at \
         most once per hydrogen"
    )]
    Hydrogens {
        /// The SMILES of the fragment.
        smiles: String,
        /// The index of the atom.
        stem: usize,
        /// The number of times that the atom is listed.
        listed: usize,
        /// The number of hydrogens of the atom.
        hydrogens: u8,
    },
    /// A `*` of the text isn't bonded to exactly one atom by a single bond, so it can't mark an attachment.
    #[error(
        "{smiles} has a `*` that isn't joined to one atom by a single bond: write [*:1] at each place where \
         a fragment may be attached"
    )]
    Mark {
        /// The SMILES with its `*` atoms.
        smiles: String,
    },
    /// The fragment has more stems or symmetries than the library supports.
    #[error("{smiles} has {got} {what}, but at most {most} are allowed: list fewer stems")]
    TooMany {
        /// The SMILES of the fragment.
        smiles: String,
        /// The name of the quantity that exceeds its limit: stems or symmetries.
        what: &'static str,
        /// The number of stems (attachment atoms), or a lower bound for the number of symmetries.
        got: usize,
        /// The largest number that the library supports.
        most: usize,
    },
}

impl From<FragmentError> for gfn::Error {
    fn from(error: FragmentError) -> Self {
        match error {
            FragmentError::Molecule(error) => error.into(),
            error => Self::Config {
                setting: "a fragment",
                got: format!("not valid ({error})"),
                expected: "a molecule and its stems, each listed at most once per hydrogen",
            },
        }
    }
}

/// A building block of molecules: a molecule, the atoms that other fragments can be attached to, and its
/// symmetries.
///
/// ```
/// use gfn_molecules::fragments::Fragment;
/// // Benzene has 6 rotations and 6 reflections. The nitrogen has room for two attachments.
/// assert_eq!(Fragment::new("c1ccccc1", &[0, 1, 2, 3, 4, 5])?.n_symmetries(), 12);
/// assert_eq!(Fragment::new("c1ccccc1", &[0, 3])?.n_symmetries(), 2);
/// assert_eq!(Fragment::new("N", &[0, 0])?.stems()[0].room, 2);
/// assert!(Fragment::new("n1ccccc1", &[0]).unwrap_err().to_string().contains("0 hydrogens"));
/// # Ok::<(), gfn_molecules::fragments::FragmentError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fragment {
    smiles: String,
    molecule: Molecule,
    left_out: LeftOut,
    stems: Vec<Stem>,
    /// The symmetries of the fragment, as permutations of the stems (attachment atoms). The identity is
    /// first.
    symmetries: Vec<Vec<u8>>,
}

impl Fragment {
    /// Creates a fragment from a SMILES and its stems. A stem is the index of an atom, counted from 0 in
    /// the order of the SMILES. An atom is listed once for each attachment that it has room for. An atom
    /// has room for at most one attachment per hydrogen.
    ///
    /// # Errors
    /// [`FragmentError`] for a text that isn't a molecule, for an empty list of stems, for a stem that
    /// isn't an atom or has too few hydrogens, and for too many stems or symmetries.
    pub fn new(smiles: &str, stems: &[usize]) -> Result<Self, FragmentError> {
        let (molecule, mut left_out) = Molecule::read_noting(&ValenceTable::default(), smiles)?;
        // All stereo marks are removed, because an attachment can change which atoms and bonds are stereo
        // elements.
        left_out.stereo += molecule.marks().len();
        let molecule = molecule.without_stereo();
        let smiles = smiles.to_owned();
        let mut listed: Vec<Stem> = Vec::new();
        for &stem in stems {
            let Some(atom) = molecule.atoms().get(stem) else {
                return Err(FragmentError::NoAtom { smiles, stem, atoms: molecule.atoms().len() });
            };
            let count = stems.iter().filter(|other| **other == stem).count();
            if count > usize::from(atom.hydrogens) {
                let hydrogens = atom.hydrogens;
                return Err(FragmentError::Hydrogens { smiles, stem, listed: count, hydrogens });
            }
            if listed.iter().all(|other| other.atom != stem) {
                listed.push(Stem { atom: stem, room: count as u8 });
            }
        }
        let too_many = |what, got, most| FragmentError::TooMany { smiles: smiles.clone(), what, got, most };
        match listed.len() {
            0 => return Err(FragmentError::NoStem { smiles }),
            n if n > MAX_STEMS => return Err(too_many("stems", n, MAX_STEMS)),
            _ => {}
        }
        let symmetries = matchings((&molecule, &listed), (&molecule, &listed), MAX_SYMMETRIES);
        if symmetries.len() > MAX_SYMMETRIES {
            return Err(too_many("symmetries", symmetries.len(), MAX_SYMMETRIES));
        }
        Ok(Self { smiles, molecule, left_out, stems: listed, symmetries })
    }

    /// Returns the SMILES that the fragment was created from.
    #[must_use]
    pub fn smiles(&self) -> &str {
        &self.smiles
    }

    /// Returns the molecule that consists of the fragment alone, with all of its hydrogens.
    #[must_use]
    pub fn molecule(&self) -> &Molecule {
        &self.molecule
    }

    /// Returns how many stereo marks and how many atom-map numbers were removed from the SMILES. Marks on
    /// atoms or bonds that aren't stereo elements count, too.
    #[must_use]
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// Returns the atoms that other fragments can be attached to. The atoms are in the order in which they
    /// first occur in the list of stems.
    #[must_use]
    pub fn stems(&self) -> &[Stem] {
        &self.stems
    }

    /// Returns the number of symmetries. A symmetry is a permutation of the stems that extends to a
    /// permutation of the atoms. The permutation of the atoms preserves elements, charges, hydrogens and
    /// bonds, and the number of times that each atom is a stem. All aromatic bonds count as equal.
    #[must_use]
    pub fn n_symmetries(&self) -> usize {
        self.symmetries.len()
    }

    /// Returns the permutations of stems that [`n_symmetries`](Self::n_symmetries) counts. The identity is
    /// first. A permutation `symmetry` maps stem `k` to stem `symmetry[k]`.
    pub(super) fn symmetries(&self) -> &[Vec<u8>] {
        &self.symmetries
    }

    /// Returns `true` if an isomorphism from this fragment to the other fragment maps the stems of this one
    /// to the stems of the other.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        !matchings((&self.molecule, &self.stems), (&other.molecule, &other.stems), 0).is_empty()
    }
}

/// Writes the fragment as a line of a library file: its SMILES and its stems.
impl std::fmt::Display for Fragment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let stems =
            self.stems.iter().flat_map(|stem| std::iter::repeat_n(stem.atom.to_string(), stem.room.into()));
        write!(f, "{} {}", self.smiles, stems.collect::<Vec<_>>().join(","))
    }
}
