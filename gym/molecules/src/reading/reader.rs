use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use gfn::{Error, Result};

use super::sd::SdRecord;
use super::table::{Table, TableRecord};
use super::{Cleanup, ReadReport, SkipReason, SkippedLine};
use crate::{Molecule, MoleculeError};

/// The number of bytes after which a line is cut off. The SMILES of a molecule with [`Molecule::MAX_ATOMS`]
/// atoms is shorter.
const MAX_LINE: usize = 1 << 16;

/// The first bytes of a gzipped file.
const GZIP: &[u8] = &[0x1f, 0x8b];

/// The first bytes of file formats other than UTF-8 text, each with a description for error messages.
const NOT_TEXT: [(&[u8], &str); 8] = [
    (GZIP, "is compressed by gzip"),
    (b"PK\x03\x04", "is a zip archive, such as a workbook (.xlsx)"),
    (b"BZh", "is compressed by bzip2"),
    (b"\xfd7zXZ\0", "is compressed by xz"),
    (b"\x28\xb5\x2f\xfd", "is compressed by zstd"),
    (b"PAR1", "is a Parquet file"),
    (b"\xff\xfe", "is text in UTF-16"),
    (b"\xfe\xff", "is text in UTF-16"),
];

/// A format of molecule files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MoleculeFormat {
    /// A SMILES per line, or a table with a column of SMILES (see [`MoleculeReader`]). Empty lines are
    /// skipped.
    Smiles,
    /// An SD file. Each record is a V2000 molfile followed by data items and the line `$$$$`. The data
    /// items are ignored.
    Sd,
}

impl MoleculeFormat {
    /// Returns the format that a file name implies: `.sdf`, `.sd` and `.mol` (also with `.gz`) are SD
    /// files, and all other files contain SMILES.
    #[must_use]
    pub fn from_path(path: &Path) -> Self {
        let name = path.to_string_lossy().to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        let is_sd = [".sdf", ".sd", ".mol"].iter().any(|ending| name.ends_with(ending));
        if is_sd { Self::Sd } else { Self::Smiles }
    }
}

/// A stream of molecules from a file. Only one line or record of the file is in memory at a time. Lines
/// that can't be converted into molecules are skipped and counted in the [`report`](Self::report). The
/// stream ends with an error if the file contains no valid molecule.
///
/// A file of SMILES is read as a table if its first line names a column of SMILES. This is the column set
/// by [`with_column`](Self::with_column). If none was set, it is a column named `smiles` or else a column
/// whose name ends in `smiles` (`canonical_smiles`), in upper or lower case. Fields are separated by tabs,
/// `;`, `,`, `|` or blanks, and may be quoted. If the file isn't a table, each line begins with a SMILES,
/// which ends at the first of these separators.
///
/// ```
/// use gfn_molecules::{Cleanup, Molecule, MoleculeFormat, MoleculeReader};
/// let file = "CCO ethanol\n[Na+].CC(=O)[O-]\n[Pt]\nC[CH2]\n";
/// let mut reader = MoleculeReader::new(file.as_bytes(), MoleculeFormat::Smiles).with_cleanup(Cleanup::ALL);
/// let formulas: Vec<String> =
///     reader.by_ref().map(|molecule| molecule.map(|m| m.formula())).collect::<gfn::Result<_>>()?;
/// assert_eq!(formulas, ["C2H6O", "C2H4O2"]);
/// let report = reader.report().to_string();
/// assert!(report.contains("2 lines skipped; 1 with an element beyond B C N O"), "{report}");
/// assert!(report.ends_with("1 with a radical"), "{report}");
/// let table = "\"id\";\"Smiles\"\n\"CHEMBL1\";\"CCO\"\n";
/// assert_eq!(MoleculeReader::new(table.as_bytes(), MoleculeFormat::Smiles).count(), 1);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct MoleculeReader<R> {
    input: R,
    path: PathBuf,
    format: MoleculeFormat,
    cleanup: Cleanup,
    /// The name of the column of SMILES, if [`with_column`](Self::with_column) set it.
    column: Option<String>,
    /// The layout of the file (columns and separator); `None` before the first line is read.
    table: Option<Table>,
    /// The number of lines that have been read.
    line: usize,
    /// The number of records that have been read. Headers and empty lines aren't records.
    records: usize,
    /// The number of the line at which the last record begins, from 1 on.
    record_line: usize,
    report: ReadReport,
    is_at_end: bool,
}

/// A record of a file. The first entry is the record's SMILES, or the text that replaces it in messages. The
/// second is the error if the record can't be converted into a SMILES. The third is how many wedge bonds the
/// record has.
type Record = (String, Option<MoleculeError>, usize);

impl MoleculeReader<Box<dyn BufRead + Send>> {
    /// Opens a file. [`MoleculeFormat::from_path`] determines the format from the file's name. A gzipped file
    /// is decompressed while it is read.
    ///
    /// # Errors
    /// [`Error::Io`] if the file can't be opened.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let failed = |source| Error::io(path, source);
        let mut file = BufReader::new(File::open(path).map_err(failed)?);
        let is_gzipped = file.fill_buf().map_err(failed)?.starts_with(GZIP);
        let input: Box<dyn BufRead + Send> =
            if is_gzipped { Box::new(BufReader::new(MultiGzDecoder::new(file))) } else { Box::new(file) };
        Ok(Self { path: path.to_owned(), ..Self::new(input, MoleculeFormat::from_path(path)) })
    }
}

impl<R: BufRead> MoleculeReader<R> {
    /// Creates a stream from any buffered reader.
    pub fn new(input: R, format: MoleculeFormat) -> Self {
        let path = PathBuf::from("molecules");
        let cleanup = Cleanup::default();
        let report = ReadReport::default();
        Self {
            input,
            path,
            format,
            cleanup,
            column: None,
            table: None,
            line: 0,
            records: 0,
            record_line: 0,
            report,
            is_at_end: false,
        }
    }

    /// Selects the column of SMILES in a table, by its exact name in the first line.
    #[must_use]
    pub fn with_column(self, name: impl Into<String>) -> Self {
        Self { column: Some(name.into()), ..self }
    }

    /// Sets the cleanup of each SMILES (charges, salts and so on). There is no cleanup by default.
    #[must_use]
    pub fn with_cleanup(self, cleanup: Cleanup) -> Self {
        Self { cleanup, ..self }
    }

    /// Returns the report on the lines that have been read so far.
    #[must_use]
    pub fn report(&self) -> &ReadReport {
        &self.report
    }

    /// Returns the index of the record that the last molecule was read from, from 0 on, as rows of a table
    /// are numbered: skipped records count, but the header and empty lines don't.
    #[must_use]
    pub fn record_index(&self) -> usize {
        self.records.saturating_sub(1)
    }

    /// Returns the number of the line at which the record of the last molecule begins, from 1 on.
    #[must_use]
    pub fn record_line(&self) -> usize {
        self.record_line
    }

    /// Reads the next molecule; returns `None` at the end of the file.
    fn read_next(&mut self) -> Result<Option<Molecule>> {
        if self.line == 0 {
            self.check_start()?;
        }
        while let Some(text) = self.next_line()? {
            let line = self.line;
            let record = match self.format {
                MoleculeFormat::Sd => self.sd_record(text)?,
                MoleculeFormat::Smiles => self.table_record(&text)?,
            };
            let Some((mut smiles, mistake, n_wedges)) = record else { continue };
            self.records += 1;
            self.record_line = line;
            let error = match mistake.map_or_else(|| self.cleanup.read(&smiles), Err) {
                Err(error) => error,
                Ok(mut cleaned) => {
                    cleaned.left_out.stereo += n_wedges;
                    return Ok(Some(self.report.note(cleaned)));
                }
            };
            if error == MoleculeError::TooLarge {
                smiles = smiles.chars().take(80).collect();
            }
            let reason = match SkipReason::from_error(&error) {
                SkipReason::Syntax if self.format == MoleculeFormat::Sd => SkipReason::Record,
                reason => reason,
            };
            self.report.note_skipped(reason, SkippedLine { line, smiles, error });
        }
        if self.report.read == 0 { Err(self.nothing_read()) } else { Ok(None) }
    }

    /// Reads a record of an SD file, whose first line is `first`; returns `None` for an empty record.
    fn sd_record(&mut self, first: String) -> Result<Option<Record>> {
        let mut record = SdRecord::default();
        let mut next = Some(first);
        let mut is_empty = true;
        while let Some(text) = next {
            is_empty &= text.trim().is_empty();
            if !record.take(&text) {
                break;
            }
            next = self.next_line()?;
        }
        let n_wedges = record.n_wedges;
        let (smiles, problem) = record.smiles();
        let mistake =
            problem.map(|problem| MoleculeError::Syntax { smiles: smiles.clone(), position: 0, problem });
        Ok(Some((smiles, mistake, n_wedges)).filter(|_| !is_empty))
    }

    /// Reads a record of a file of SMILES, whose first line is `first`; returns `None` for an empty line
    /// and for a header.
    fn table_record(&mut self, first: &str) -> Result<Option<Record>> {
        if first.trim().is_empty() {
            return Ok(None);
        }
        let Some(table) = self.table_of(first)? else { return Ok(None) };
        let mut record = TableRecord::new(table);
        let mut is_complete = record.take(first);
        let mut length = first.len();
        while !is_complete && length < MAX_LINE {
            let Some(more) = self.next_line()? else { break };
            is_complete = record.take(&more);
            length += 1 + more.len();
        }
        let smiles = record.smiles().to_owned();
        let mistake = if length >= MAX_LINE {
            Some(MoleculeError::TooLarge)
        } else {
            let problem = "a quote that opens a field isn't closed";
            (!is_complete).then(|| MoleculeError::Syntax { smiles: smiles.clone(), position: 0, problem })
        };
        Ok(Some((smiles, mistake, 0)))
    }

    /// Returns an error if the file isn't text. Also returns an error if a column was selected in an SD
    /// file, which has no columns.
    fn check_start(&mut self) -> Result<()> {
        let start = self.input.fill_buf().map_err(|source| Error::io(&self.path, source))?;
        if let Some((_, what)) = NOT_TEXT.iter().find(|(bytes, _)| start.starts_with(bytes)) {
            let remedy = "unpack the file, or save it as text in UTF-8: SMILES, CSV or an SD file (a gzipped \
                file can be read by its path)";
            return Err(Error::file(&self.path, format!("the file {what}"), remedy));
        }
        if self.format == MoleculeFormat::Sd && self.column.is_some() {
            let problem = "the file is an SD file, which has no columns";
            return Err(Error::file(&self.path, problem, "name a column only for a table"));
        }
        Ok(())
    }

    /// Returns the layout of the file. It is determined by the first line that isn't empty and doesn't begin
    /// with `#`. For lines before it, the function returns the layout of a file without a header. Returns
    /// `None` if `text` is the header, because a header isn't a record.
    fn table_of(&mut self, text: &str) -> Result<Option<Table>> {
        if self.table.is_some() || text.starts_with('#') {
            return Ok(self.table.or(Some(Table::LINES)));
        }
        let header = Table::from_header(text, self.column.as_deref());
        if let (None, Some(column)) = (header, &self.column) {
            let start: String = text.chars().take(200).collect();
            let problem = format!("the file has no column {column:?}: line {} is {start:?}", self.line);
            return Err(Error::file(
                &self.path,
                problem,
                "give the name of a column as it is written in the first line",
            ));
        }
        self.table = header.or(Some(Table::LINES));
        Ok(self.table.filter(|_| header.is_none()))
    }

    /// Returns the error for a file that contains no valid molecule.
    fn nothing_read(&self) -> Error {
        let problem = self.report.first_skipped().map_or("the file has no molecule".to_owned(), |first| {
            format!("none of its {} lines or records is read as a molecule; {first}", self.report.n_skipped())
        });
        let remedy = "give a SMILES at the start of each line, a table with a header that has a column \
            `smiles` or the one that `column` names, or an SD file (.sdf)";
        Error::file(&self.path, problem, remedy)
    }

    /// Returns the next line without its line end; `None` at the end of the file. The line is cut off after
    /// [`MAX_LINE`] bytes, and invalid UTF-8 is replaced.
    fn next_line(&mut self) -> Result<Option<String>> {
        let failed = |source| Error::io(&self.path, source);
        let mut kept = Vec::new();
        let read = self.input.by_ref().take(MAX_LINE as u64).read_until(b'\n', &mut kept).map_err(failed)?;
        if read == 0 {
            return Ok(None);
        }
        if kept.pop_if(|last| *last == b'\n').is_none() && read == MAX_LINE {
            self.input.skip_until(b'\n').map_err(failed)?;
        }
        self.line += 1;
        let text = String::from_utf8_lossy(&kept);
        // A byte-order mark at the start of the file is removed.
        let text = if self.line == 1 { text.trim_start_matches('\u{feff}') } else { &text };
        Ok(Some(text.trim_end_matches('\r').to_owned()))
    }
}

impl<R: BufRead> Iterator for MoleculeReader<R> {
    type Item = Result<Molecule>;

    /// Returns the next molecule. The stream ends after an error. The error is [`Error::Io`] if the input
    /// can't be read. The error is [`Error::File`] if the input isn't text, doesn't have the selected
    /// column, or ends without a valid molecule.
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_at_end {
            return None;
        }
        let next = self.read_next().transpose();
        self.is_at_end = !matches!(next, Some(Ok(_)));
        next
    }
}
