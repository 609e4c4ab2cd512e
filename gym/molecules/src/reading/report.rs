use std::collections::BTreeMap;
use std::fmt;

use super::Cleaned;
use crate::{Molecule, MoleculeError, NotRead};

/// The number of example lines that a report keeps per reason.
const EXAMPLES: usize = 3;

/// The reason why a line of a file isn't read as a molecule.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkipReason {
    /// The line has something that a molecule can't hold: several parts of a salt, a metal, an isotope.
    #[error("{0}")]
    NotRead(NotRead),
    /// An atom has fewer bonds and hydrogens than it needs: a radical.
    #[error("a radical")]
    Radical,
    /// An atom has more bonds and hydrogens than it can have.
    #[error("an atom with too many bonds")]
    Valence,
    /// Its aromatic atoms have no alternating single and double bonds, or are in no ring.
    #[error("aromatic atoms or bonds that can't be")]
    Aromaticity,
    /// The molecule has more than [`Molecule::MAX_ATOMS`] atoms, or the line is longer than such a molecule
    /// needs.
    #[error("too many atoms")]
    TooLarge,
    /// The text is no SMILES, such as the names of a table's columns.
    #[error("no SMILES")]
    Syntax,
    /// The record of an SD file is damaged, or has the format V3000.
    #[error("a record that is damaged or not V2000")]
    Record,
}

impl SkipReason {
    pub(super) fn of(error: &MoleculeError) -> Self {
        match error {
            MoleculeError::NotRead { what, .. } => Self::NotRead(*what),
            MoleculeError::Valence { valence, allowed, .. } if allowed.iter().any(|allowed| allowed > valence) => {
                Self::Radical
            }
            MoleculeError::Valence { .. } => Self::Valence,
            MoleculeError::Kekulise { .. } | MoleculeError::NotInRing { .. } | MoleculeError::AromaticBond { .. } => {
                Self::Aromaticity
            }
            MoleculeError::TooLarge => Self::TooLarge,
            _ => Self::Syntax,
        }
    }
}

/// The lines of a file that were skipped for one reason.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Skipped {
    /// The number of these lines.
    pub count: usize,
    /// The first of these lines, at most three.
    pub examples: Vec<SkippedLine>,
}

/// A line that was skipped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SkippedLine {
    /// Its number, from 1; for a record of an SD file, the number of its first line.
    pub line: usize,
    /// Its SMILES; for a record of an SD file, an equivalent SMILES or the line that couldn't be read.
    pub smiles: String,
    /// The reason.
    pub error: MoleculeError,
}

impl fmt::Display for SkippedLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, {:?}: {}", self.line, self.smiles, self.error)
    }
}

/// A report on the lines of a file or, for SD files, its records.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ReadReport {
    /// The number of lines that were read as molecules.
    pub read: usize,
    /// The number of molecules whose marks of stereochemistry were left out: meaningless marks and, in SD
    /// files, wedges.
    pub without_stereo: usize,
    /// The number of molecules read from lines of several parts, of which the largest was kept.
    pub without_parts: usize,
    /// The number of molecules read with isotopes as their elements.
    pub without_isotopes: usize,
    /// The number of molecules whose charges were changed.
    pub neutralised: usize,
    /// Skipped lines by reason.
    pub skipped: BTreeMap<SkipReason, Skipped>,
}

impl ReadReport {
    /// The number of lines that were skipped.
    #[must_use]
    pub fn n_skipped(&self) -> usize {
        self.skipped.values().map(|skipped| skipped.count).sum()
    }

    /// The first line that was skipped.
    pub(crate) fn first_skipped(&self) -> Option<&SkippedLine> {
        self.skipped.values().flat_map(|skipped| &skipped.examples).min_by_key(|skipped| skipped.line)
    }

    pub(super) fn note(&mut self, cleaned: Cleaned) -> Molecule {
        self.read += 1;
        self.without_stereo += usize::from(cleaned.left_out.stereo > 0);
        self.without_parts += usize::from(cleaned.parts > 0);
        self.without_isotopes += usize::from(cleaned.isotopes > 0);
        self.neutralised += usize::from(cleaned.charges > 0);
        cleaned.molecule
    }

    pub(super) fn note_skipped(&mut self, reason: SkipReason, skipped: SkippedLine) {
        let of_reason = self.skipped.entry(reason).or_default();
        of_reason.count += 1;
        if of_reason.count <= EXAMPLES {
            of_reason.examples.push(skipped);
        }
    }
}

impl fmt::Display for ReadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { read, without_stereo, .. } = self;
        write!(f, "{read} lines ({without_stereo} of them without some of their stereochemistry")?;
        for (count, what) in [
            (self.without_parts, "without smaller parts"),
            (self.without_isotopes, "without isotopes"),
            (self.neutralised, "neutralised"),
        ] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        write!(f, "), {} skipped", self.n_skipped())?;
        for (reason, skipped) in &self.skipped {
            write!(f, "; {} with {reason}", skipped.count)?;
        }
        Ok(())
    }
}
