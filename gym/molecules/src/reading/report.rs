use std::collections::BTreeMap;
use std::fmt;

use super::Cleaned;
use crate::{Molecule, MoleculeError, NotRead};

/// The number of example lines that a report keeps for each reason.
const EXAMPLES: usize = 3;

/// The reason why a line of a file was skipped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkipReason {
    /// The line has a feature that a molecule can't store, such as several parts of a salt, a metal or an
    /// isotope.
    #[error("{0}")]
    NotRead(NotRead),
    /// The molecule is a radical: the sum of an atom's bonds and hydrogens is less than the valence that
    /// the atom must have.
    #[error("a radical")]
    Radical,
    /// The sum of an atom's bonds and hydrogens is larger than the largest valence of the atom.
    #[error("an atom with too many bonds")]
    Valence,
    /// The aromatic atoms of the molecule have no alternating single and double bonds, or they aren't in a
    /// ring.
    #[error("impossible aromatic atoms or bonds")]
    Aromaticity,
    /// The molecule has more than [`Molecule::MAX_ATOMS`] atoms, or the line is longer than the SMILES of
    /// such a molecule.
    #[error("too many atoms")]
    TooLarge,
    /// The text isn't a SMILES, but may be, for example, a header with the names of a table's columns.
    #[error("no SMILES")]
    Syntax,
    /// The record of an SD file is damaged, or has the format V3000.
    #[error("a record that is damaged or not V2000")]
    Record,
}

impl SkipReason {
    pub(super) fn from_error(error: &MoleculeError) -> Self {
        match error {
            MoleculeError::NotRead { what, .. } => Self::NotRead(*what),
            MoleculeError::Valence { valence, allowed, .. }
                if allowed.iter().any(|allowed| allowed > valence) =>
            {
                Self::Radical
            }
            MoleculeError::Valence { .. } => Self::Valence,
            MoleculeError::Kekulise { .. }
            | MoleculeError::NotInRing { .. }
            | MoleculeError::AromaticBond { .. } => Self::Aromaticity,
            MoleculeError::TooLarge => Self::TooLarge,
            _ => Self::Syntax,
        }
    }
}

/// The lines of a file that were skipped for the same reason.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Skipped {
    /// The number of lines that were skipped for this reason.
    pub count: usize,
    /// The first lines that were skipped for this reason. At most three are kept.
    pub examples: Vec<SkippedLine>,
}

/// A line that was skipped, with the reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SkippedLine {
    /// The number of the line, which begins at 1. For a record of an SD file, it is the number of the
    /// record's first line.
    pub line: usize,
    /// The SMILES in the line. For a record of an SD file, it is the SMILES of the record, or the line of
    /// the record that couldn't be read.
    pub smiles: String,
    /// The error that explains why the line was skipped.
    pub error: MoleculeError,
}

impl fmt::Display for SkippedLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, {:?}: {}", self.line, self.smiles, self.error)
    }
}

/// A report on the lines of a file, or on the records if the file is an SD file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ReadReport {
    /// The number of lines that were converted into molecules.
    pub read: usize,
    /// The number of molecules from which marks of stereochemistry were removed: marks at atoms and double
    /// bonds that have no two configurations, incomplete marks and, in SD files, wedges.
    pub without_stereo: usize,
    /// The number of molecules from lines with several parts (`.`), of which only the largest part was kept.
    pub without_parts: usize,
    /// The number of molecules from which isotope labels were removed.
    pub without_isotopes: usize,
    /// The number of molecules whose charges were neutralised.
    pub neutralised: usize,
    /// The skipped lines, grouped by reason.
    pub skipped: BTreeMap<SkipReason, Skipped>,
}

impl ReadReport {
    /// Returns the number of lines that were skipped.
    #[must_use]
    pub fn n_skipped(&self) -> usize {
        self.skipped.values().map(|skipped| skipped.count).sum()
    }

    /// Returns the first line that was skipped.
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
        let with_noun =
            |n: usize, noun: &str| if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") };
        let mut separator = " (";
        write!(f, "{} read", with_noun(self.read, "molecule"))?;
        for (count, what) in [
            (self.without_stereo, "without some of their stereochemistry"),
            (self.without_parts, "without smaller parts"),
            (self.without_isotopes, "without isotopes"),
            (self.neutralised, "neutralised"),
        ] {
            if count > 0 {
                write!(f, "{separator}{count} {what}")?;
                separator = ", ";
            }
        }
        let end = if separator == ", " { ")" } else { "" };
        write!(f, "{end}; {} skipped", with_noun(self.n_skipped(), "line"))?;
        for (reason, skipped) in &self.skipped {
            write!(f, "; {} with {reason}", skipped.count)?;
        }
        Ok(())
    }
}
