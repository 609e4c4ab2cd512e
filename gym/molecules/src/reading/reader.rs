use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use gfn::{Error, Result};

use super::sd::SdRecord;
use super::{Cleaned, Cleanup, ReadReport, SkipReason, SkippedLine};
use crate::{Molecule, MoleculeError};

/// The most bytes of a line that are kept: a molecule of [`Molecule::MAX_ATOMS`] atoms has fewer.
const MAX_LINE: usize = 1 << 16;

/// Formats of files of molecules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MoleculeFormat {
    /// A SMILES at the start of each line, up to a space, a tab or a comma; empty lines are passed over.
    Smiles,
    /// An SD file: V2000 molfiles, each with data and `$$$$` behind it. Data are passed over.
    Sd,
}

impl MoleculeFormat {
    /// The format that a file's name ends in: `.sdf`, `.sd` and `.mol` for SD files.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let ending = path.extension().map(|ending| ending.to_ascii_lowercase());
        if ending.is_some_and(|ending| ["sdf", "sd", "mol"].iter().any(|other| ending == *other)) {
            Self::Sd
        } else {
            Self::Smiles
        }
    }
}

/// A stream of molecules from a file: one line or record is held at a time. What isn't read is skipped and noted in the
/// [`report`](Self::report).
///
/// ```
/// use gfn_molecules::{Cleanup, Molecule, MoleculeFormat, MoleculeReader};
/// let file = "CCO ethanol\n[Na+].CC(=O)[O-]\n[Pt]\nC[CH2]\n";
/// let mut reader = MoleculeReader::new(file.as_bytes(), MoleculeFormat::Smiles).with_cleanup(Cleanup::ALL);
/// let formulas: Vec<String> = reader.by_ref().map(|molecule| molecule.map(|m| m.formula())).collect::<gfn::Result<_>>()?;
/// assert_eq!(formulas, ["C2H6O", "C2H4O2"]);
/// let report = reader.report().to_string();
/// assert!(report.ends_with("2 skipped; 1 with an element beyond B C N O F Si P S Cl Se Br I; 1 with a radical"), "{report}");
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct MoleculeReader<R> {
    input: R,
    path: PathBuf,
    format: MoleculeFormat,
    cleanup: Cleanup,
    /// Lines that were taken.
    line: usize,
    report: ReadReport,
    ended: bool,
}

/// A line, or a record.
pub(crate) struct Record {
    pub(crate) line: usize,
    /// Its SMILES, or what isn't one.
    pub(crate) text: String,
    pub(crate) read: std::result::Result<Cleaned, MoleculeError>,
    reason: Option<SkipReason>,
}

impl MoleculeReader<BufReader<File>> {
    /// A stream of a file, of the format that its name ends in ([`MoleculeFormat::of`]).
    ///
    /// # Errors
    /// [`Error::Io`] for a file that can't be opened.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|source| Error::io(path, source))?;
        Ok(Self { path: path.to_owned(), ..Self::new(BufReader::new(file), MoleculeFormat::of(path)) })
    }
}

impl<R: BufRead> MoleculeReader<R> {
    /// A stream of some input.
    pub fn new(input: R, format: MoleculeFormat) -> Self {
        let (path, cleanup, report) = (PathBuf::from("molecules"), Cleanup::default(), ReadReport::default());
        Self { input, path, format, cleanup, line: 0, report, ended: false }
    }

    /// The same, with these changes made to each line.
    #[must_use]
    pub fn with_cleanup(self, cleanup: Cleanup) -> Self {
        Self { cleanup, ..self }
    }

    /// The fate of the lines so far.
    #[must_use]
    pub fn report(&self) -> &ReadReport {
        &self.report
    }

    /// The next line or record; `None` at the end.
    pub(crate) fn record(&mut self) -> Result<Option<Record>> {
        loop {
            let Some(text) = self.next_line()? else { return Ok(None) };
            let line = self.line;
            if self.format == MoleculeFormat::Sd {
                let mut record = SdRecord::default();
                let mut next = Some(text);
                let mut is_empty = true;
                while let Some(text) = next {
                    is_empty &= text.trim().is_empty();
                    if !record.take(&text) {
                        break;
                    }
                    next = self.next_line()?;
                }
                if is_empty {
                    continue;
                }
                let n_wedges = record.n_wedges;
                let (text, read, reason) = match record.smiles() {
                    Ok(text) => {
                        let mut read = self.cleanup.read(&text);
                        if let Ok(cleaned) = &mut read {
                            cleaned.left_out.stereo += n_wedges;
                        }
                        (text, read, None)
                    }
                    Err((text, problem)) => {
                        let error = MoleculeError::Syntax { smiles: text.clone(), position: 0, problem };
                        (text, Err(error), Some(SkipReason::Record))
                    }
                };
                return Ok(Some(Record { line, text, read, reason }));
            }
            if text.trim().is_empty() {
                continue;
            }
            let smiles = text.trim().split([' ', '\t', ',']).next().unwrap_or_default();
            let read = if text.len() < MAX_LINE { self.cleanup.read(smiles) } else { Err(MoleculeError::TooLarge) };
            return Ok(Some(Record { line, text: smiles.to_owned(), read, reason: None }));
        }
    }

    /// Notes a record; gives its molecule, if it is one.
    pub(crate) fn note(&mut self, record: Record) -> Option<Molecule> {
        match record.read {
            Ok(cleaned) => Some(self.report.note(cleaned)),
            Err(error) => {
                let reason = record.reason.unwrap_or_else(|| SkipReason::of(&error));
                let (line, mut smiles) = (record.line, record.text);
                if error == MoleculeError::TooLarge {
                    smiles = smiles.chars().take(80).collect();
                }
                self.report.note_skipped(reason, SkippedLine { line, smiles, error });
                None
            }
        }
    }

    /// The next line without its end, cut off after so many bytes; what isn't UTF-8 is replaced.
    fn next_line(&mut self) -> Result<Option<String>> {
        let mut kept = Vec::new();
        let mut any = false;
        loop {
            let read = self.input.fill_buf().map_err(|source| Error::io(&self.path, source))?;
            if read.is_empty() {
                break;
            }
            any = true;
            let end = read.iter().position(|&byte| byte == b'\n');
            let piece = &read[..end.unwrap_or(read.len())];
            kept.extend_from_slice(&piece[..piece.len().min(MAX_LINE - kept.len())]);
            let used = piece.len() + usize::from(end.is_some());
            self.input.consume(used);
            if end.is_some() {
                break;
            }
        }
        self.line += usize::from(any);
        let text = String::from_utf8_lossy(&kept);
        // Some programs mark a file as UTF-8.
        let text = if self.line == 1 { text.trim_start_matches('\u{feff}') } else { &text };
        Ok(any.then(|| text.trim_end_matches('\r').to_owned()))
    }
}

impl<R: BufRead> Iterator for MoleculeReader<R> {
    type Item = Result<Molecule>;

    /// The next molecule; [`Error::Io`] where the input can't be read, which ends the stream.
    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            match self.record() {
                Ok(Some(record)) => {
                    if let Some(molecule) = self.note(record) {
                        return Some(Ok(molecule));
                    }
                }
                Ok(None) => self.ended = true,
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}
