use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use gfn::{Error, Result};

use crate::{LeftOut, Molecule, MoleculeError, NotRead, ValenceTable};

/// How many lines of a kind a report shows.
const EXAMPLES: usize = 3;

/// Why a line of a file isn't a molecule here.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum SkipReason {
    /// It has what a molecule has no place for: a salt's parts, a metal, an isotope.
    NotRead(NotRead),
    /// An atom has fewer bonds and hydrogens than it needs: a radical.
    Radical,
    /// An atom has more bonds and hydrogens than it can have.
    Valence,
    /// Its aromatic atoms have no alternating single and double bonds, or are in no ring.
    Aromaticity,
    /// It has more than [`Molecule::MAX_ATOMS`] atoms.
    TooLarge,
    /// It is no SMILES, such as the names of a table's columns.
    Syntax,
}

impl SkipReason {
    fn of(error: &MoleculeError) -> Self {
        match error {
            MoleculeError::NotRead { what, .. } => Self::NotRead(*what),
            MoleculeError::Valence { valence, allowed, .. } => {
                let open = allowed.iter().any(|allowed| allowed > valence);
                if open { Self::Radical } else { Self::Valence }
            }
            MoleculeError::Kekulise { .. } | MoleculeError::NotInRing { .. } | MoleculeError::AromaticBond { .. } => {
                Self::Aromaticity
            }
            MoleculeError::TooLarge => Self::TooLarge,
            _ => Self::Syntax,
        }
    }

    /// Its name, in words.
    #[must_use]
    pub fn named(self) -> &'static str {
        match self {
            Self::NotRead(what) => what.named(),
            Self::Radical => "a radical",
            Self::Valence => "an atom with too many bonds",
            Self::Aromaticity => "aromatic atoms or bonds that can't be",
            Self::TooLarge => "too many atoms",
            Self::Syntax => "no SMILES",
        }
    }
}

/// Lines of a file that were skipped for one reason.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Skipped {
    /// The number.
    pub count: usize,
    /// The first of them, three at most.
    pub examples: Vec<SkippedLine>,
}

/// A line that was skipped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SkippedLine {
    /// Its number, from 1.
    pub line: usize,
    /// Its SMILES.
    pub smiles: String,
    /// The reason.
    pub error: MoleculeError,
}

/// The fate of the lines of a file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ReadReport {
    /// Lines that were read as molecules.
    pub read: usize,
    /// Those of them whose stereochemistry was left out: stereoisomers are one molecule here.
    pub without_stereo: usize,
    /// The others, by reason.
    pub skipped: BTreeMap<SkipReason, Skipped>,
}

impl ReadReport {
    /// The number of lines that were skipped.
    #[must_use]
    pub fn n_skipped(&self) -> usize {
        self.skipped.values().map(|skipped| skipped.count).sum()
    }

    /// Counts a line; gives its molecule, if it is one.
    pub(super) fn note(&mut self, line: usize, smiles: &str, read: Read) -> Option<Molecule> {
        match read {
            Ok((molecule, left_out)) => {
                self.read += 1;
                self.without_stereo += usize::from(left_out.stereo > 0 || !molecule.marks().is_empty());
                Some(molecule)
            }
            Err(error) => {
                let skipped = self.skipped.entry(SkipReason::of(&error)).or_default();
                skipped.count += 1;
                if skipped.count <= EXAMPLES {
                    skipped.examples.push(SkippedLine { line, smiles: smiles.to_owned(), error });
                }
                None
            }
        }
    }
}

impl fmt::Display for ReadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { read, without_stereo, .. } = self;
        write!(
            f,
            "{read} lines ({without_stereo} of them without their stereochemistry), {} skipped",
            self.n_skipped()
        )?;
        for (reason, skipped) in &self.skipped {
            write!(f, "; {} with {}", skipped.count, reason.named())?;
        }
        Ok(())
    }
}

/// The result of reading a line.
type Read = std::result::Result<(Molecule, LeftOut), MoleculeError>;

/// A file with a SMILES at the start of each line.
pub(super) struct SmilesFile(String);

impl SmilesFile {
    pub(super) fn open(path: &Path) -> Result<Self> {
        std::fs::read_to_string(path).map(Self).map_err(|source| Error::io(path, source))
    }

    /// The lines that aren't empty: their numbers from 1, their SMILES, and what these are read as.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str, Read)> {
        let table = ValenceTable::default();
        let filled = self.0.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        filled.map(move |(i, line)| {
            let smiles = line.trim().split([' ', '\t', ',']).next().unwrap_or_default();
            (i + 1, smiles, Molecule::read_noting(&table, smiles))
        })
    }
}
