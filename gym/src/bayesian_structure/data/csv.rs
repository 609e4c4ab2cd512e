//! Tables in CSV files: a header with the variables' names, then one observation per line.

use std::io::Read;
use std::path::Path;

use gfn::{Error, Result};

use super::{ContinuousData, DiscreteData};

/// What stands for a missing value in the files that are about, in small letters.
const MISSING_NUMBER: [&str; 8] = ["", "na", "n/a", "nan", "null", "none", "?", "."];
/// The same where values are words, which the others may be.
const MISSING_WORD: [&str; 3] = ["", "na", "?"];

const EXPECTED: &str =
    "a header with a name for each variable, then lines with one value for each of them, none of them missing";

/// The cells of a table, as text.
struct Table {
    names: Vec<String>,
    /// The line of each row and its cells.
    rows: Vec<(usize, Vec<String>)>,
}

impl Table {
    fn read(mut input: impl Read, missing: &[&str]) -> Result<Self> {
        let mut text = Vec::new();
        input.read_to_end(&mut text).map_err(|error| parse(1, error.to_string()))?;
        // Rows of another length are told apart here, in words of our own.
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(true)
            .flexible(true)
            .trim(csv::Trim::All)
            .from_reader(text.as_slice());
        let names: Vec<String> = reader.headers().map_err(|error| broken(&error))?.iter().map(String::from).collect();
        if names.is_empty() {
            return Err(parse(1, "the file is empty".into()));
        }
        if let Some(i) = names.iter().position(String::is_empty) {
            return Err(parse(1, format!("column {} has no name", i + 1)));
        }
        if names.iter().all(|name| name.parse::<f64>().is_ok()) {
            return Err(parse(1, format!("the names are numbers ({}, ...): the header is missing", names[0])));
        }
        if let Some(i) = (0..names.len()).find(|&i| names[..i].contains(&names[i])) {
            return Err(parse(1, format!("the name `{}` comes twice", names[i])));
        }
        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|error| broken(&error))?;
            let line = record.position().map_or(0, |position| line_of(&text, position));
            if record.len() != names.len() {
                return Err(parse(line, format!("{} values for {} variables", record.len(), names.len())));
            }
            let is_missing = |cell: &str| missing.contains(&cell.to_ascii_lowercase().as_str());
            if let Some((cell, name)) = record.iter().zip(&names).find(|(cell, _)| is_missing(cell)) {
                return Err(parse(line, format!("the value of `{name}` is missing (`{cell}`)")));
            }
            rows.push((line, record.iter().map(String::from).collect()));
        }
        match rows.len() {
            0 => Err(parse(2, "there is a header and no observation".into())),
            1 => Err(parse(rows[0].0, "there is only one observation: nothing can be learned from it".into())),
            _ => Ok(Self { names, rows }),
        }
    }

    /// Refuses a column that has the same value everywhere.
    fn check_varying(&self) -> Result<()> {
        let constant =
            (0..self.names.len()).find(|&i| self.rows.iter().all(|(_, cells)| cells[i] == self.rows[0].1[i]));
        match constant {
            None => Ok(()),
            Some(i) => Err(constant_column(&self.names[i], &self.rows[0].1[i])),
        }
    }
}

/// The line on which a record begins: its position is that of the blank lines before it.
fn line_of(text: &[u8], position: &csv::Position) -> usize {
    let before = text.iter().skip(position.byte() as usize).take_while(|byte| matches!(byte, b'\n' | b'\r'));
    position.line() as usize + before.filter(|byte| **byte == b'\n').count()
}

fn constant_column(name: &str, value: &str) -> Error {
    Error::Config {
        setting: "a variable",
        got: format!("`{name}`, {value} in every row"),
        expected: "variables that vary: leave the column out",
    }
}

fn parse(line: usize, problem: String) -> Error {
    Error::Parse { line, problem, expected: EXPECTED }
}

fn broken(error: &csv::Error) -> Error {
    parse(error.position().map_or(1, |position| position.line() as usize), error.to_string())
}

fn open(path: &Path) -> Result<std::fs::File> {
    std::fs::File::open(path).map_err(|source| Error::Io { path: path.to_owned(), source })
}

impl ContinuousData {
    /// Reads a table of numbers with a header.
    ///
    /// # Errors
    /// [`Error::Parse`] with the line of the first thing that is wrong: no header, a header alone, a single observation, a line of
    /// another length, a missing value (an empty cell, NA, NaN, ...), what isn't a finite number. [`Error::Config`] for a column that
    /// has one value everywhere, and for more than 200 columns.
    pub fn from_csv(input: impl Read) -> Result<Self> {
        let table = Table::read(input, &MISSING_NUMBER)?;
        let mut values = Vec::with_capacity(table.rows.len() * table.names.len());
        for (line, cells) in &table.rows {
            for (cell, name) in cells.iter().zip(&table.names) {
                match cell.parse::<f64>() {
                    Ok(value) if value.is_finite() => values.push(value),
                    Ok(_) => return Err(parse(*line, format!("the value of `{name}` is {cell}, which isn't finite"))),
                    Err(_) => {
                        return Err(parse(*line, format!("the value of `{name}` is `{cell}`, which isn't a number")));
                    }
                }
            }
        }
        let out = Self::new(table.names, values)?;
        let varies = |i: &usize| (1..out.n_rows()).any(|row| out.row(row)[*i] != out.row(0)[*i]);
        match (0..out.n_variables()).find(|i| !varies(i)) {
            None => Ok(out),
            Some(i) => Err(constant_column(&out.names()[i], &out.row(0)[i].to_string())),
        }
    }

    /// Reads a file: see [`from_csv`](Self::from_csv).
    ///
    /// # Errors
    /// [`Error::Io`] if it can't be opened; those of [`from_csv`](Self::from_csv).
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_csv(open(path.as_ref())?)
    }
}

impl DiscreteData {
    /// Reads a table of labels with a header; the values of a variable are its labels in order (as numbers where all of them are).
    ///
    /// # Errors
    /// As for [`ContinuousData::from_csv`], but that values may be any words: an empty cell, NA and ? alone are missing ones.
    pub fn from_csv(input: impl Read) -> Result<Self> {
        let table = Table::read(input, &MISSING_WORD)?;
        table.check_varying()?;
        let labels: Vec<Vec<String>> = (0..table.names.len())
            .map(|i| {
                let mut labels: Vec<String> = table.rows.iter().map(|(_, cells)| cells[i].clone()).collect();
                labels.sort_unstable();
                labels.dedup();
                if labels.iter().all(|label| label.parse::<f64>().is_ok_and(f64::is_finite)) {
                    labels.sort_by(|a, b| f64::total_cmp(&a.parse().unwrap_or(0.0), &b.parse().unwrap_or(0.0)));
                }
                labels
            })
            .collect();
        let value =
            |(cell, labels): (&String, &Vec<String>)| labels.iter().position(|label| label == cell).unwrap_or(0) as u16;
        let cells = table.rows.iter().flat_map(|(_, cells)| cells.iter().zip(&labels).map(value)).collect();
        Self::labelled(table.names, labels, cells)
    }

    /// Reads a file: see [`from_csv`](Self::from_csv).
    ///
    /// # Errors
    /// [`Error::Io`] if it can't be opened; those of [`from_csv`](Self::from_csv).
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_csv(open(path.as_ref())?)
    }
}

/// The edges of a known network, from a table of two columns, cause and effect, under a header of two words that aren't both names.
///
/// ```
/// use gfn_gym::bayesian_structure::named_edges;
/// let names = ["raf".to_string(), "mek".to_string()];
/// assert_eq!(named_edges("Cause,Effect\nraf,mek\n".as_bytes(), &names)?, [(0, 1)]);
/// assert!(named_edges("Cause,Effect\nraf,erk\n".as_bytes(), &names).is_err());
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Parse`] with the line of a name that isn't one of `names`, and of what isn't a pair; for a header that is an edge.
pub fn named_edges(mut input: impl Read, names: &[String]) -> Result<Vec<(u32, u32)>> {
    const EXPECTED: &str = "a header, then lines with the names of two variables of the data: cause, effect";
    let error = |line: usize, problem: String| Error::Parse { line, problem, expected: EXPECTED };
    let mut text = Vec::new();
    input.read_to_end(&mut text).map_err(|broken| error(1, broken.to_string()))?;
    let mut reader = csv::ReaderBuilder::new().flexible(true).trim(csv::Trim::All).from_reader(text.as_slice());
    let is_name = |word: &str| names.iter().any(|name| name == word);
    if reader.headers().is_ok_and(|header| header.len() == 2 && header.iter().all(is_name)) {
        return Err(error(1, "an edge where the header belongs".into()));
    }
    let mut out = Vec::new();
    for record in reader.records() {
        let record =
            record.map_err(|broken| error(broken.position().map_or(1, |p| p.line() as usize), broken.to_string()))?;
        let line = record.position().map_or(0, |position| line_of(&text, position));
        if record.len() != 2 {
            return Err(error(line, format!("{} names", record.len())));
        }
        let find = |name: &str| {
            let index = names.iter().position(|known| known == name);
            index.map(|index| index as u32).ok_or_else(|| error(line, format!("there is no variable `{name}`")))
        };
        out.push((find(&record[0])?, find(&record[1])?));
    }
    Ok(out)
}
