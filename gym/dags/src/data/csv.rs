//! Tables in CSV files: a header with the variables' names, then one observation per line.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use gfn::{Error, Result};

use super::{ContinuousData, DiscreteData, NodeSet, Observations, check_size, constant_column};

/// The words that mark a missing number, in lower case.
const MISSING_NUMBER: [&str; 8] = ["", "na", "n/a", "nan", "null", "none", "?", "."];
/// The words that mark a missing label, in lower case. The list is shorter than [`MISSING_NUMBER`], because
/// the other words of that list may be labels.
const MISSING_WORD: [&str; 3] = ["", "na", "?"];

/// The remedy for a table that can't be read.
const REMEDY: &str = "write a header with a name for each variable, then lines with one value for each of \
    them, none of them missing: the guide's chapter \"Bayesian structures in Python\" shows how to fill in \
    missing values (multiple imputation), and how to score tables of numbers and words (levels)";
/// The remedy without its verb, which is what was expected.
const EXPECTED: &str = REMEDY.split_at("write ".len()).1;

/// A CSV table with a header, whose cells haven't been converted to values yet.
#[derive(Debug)]
pub struct TextTable {
    names: Vec<String>,
    /// The line number and the cells of each row.
    rows: Vec<(usize, Vec<String>)>,
}

impl TextTable {
    /// Splits a CSV text into cells. Rows may have any number of cells.
    fn split(mut input: impl Read, expected: &'static str) -> Result<Self> {
        let error = |line: usize, problem: String| Error::parse(line, problem, expected);
        let broken = |broken: csv::Error| {
            error(broken.position().map_or(1, |p| p.line() as usize), broken.to_string())
        };
        let mut text = Vec::new();
        input.read_to_end(&mut text).map_err(|broken| error(1, broken.to_string()))?;
        let mut reader =
            csv::ReaderBuilder::new().flexible(true).trim(csv::Trim::All).from_reader(text.as_slice());
        let words = |record: &csv::StringRecord| record.iter().map(String::from).collect();
        let names = words(reader.headers().map_err(broken)?);
        let row = |record: csv::Result<csv::StringRecord>| {
            let record = record.map_err(broken)?;
            Ok((record.position().map_or(0, |position| line_of(&text, position)), words(&record)))
        };
        let out = Self { names, rows: reader.records().map(row).collect::<Result<_>>()? };
        match out.foreign_header() {
            Some(problem) => Err(error(1, problem)),
            None => Ok(out),
        }
    }

    /// Describes why the first line isn't a comma-separated header. Returns `None` if the function
    /// recognizes no problem.
    fn foreign_header(&self) -> Option<String> {
        let first = self.names.first()?;
        let row = self.rows.first().map_or(&[][..], |(_, cells)| cells.as_slice());
        if first.to_ascii_lowercase().starts_with("sep=") {
            return Some(
                "the first line, `sep=`, is for spreadsheets: remove it, and write the table with commas"
                    .into(),
            );
        }
        if first.starts_with(['#', '%']) && !row.is_empty() && row.len() != self.names.len() {
            return Some(format!("`{first}` is a comment: remove it, so that the header is the first line"));
        }
        if self.names.len() > 1 {
            return None;
        }
        let mut separators = [(';', ";"), ('\t', "tab"), ('|', "|")].into_iter();
        let is_blank = first.contains(' ') && row.iter().any(|cell| cell.contains(' '));
        let separator = separators.find(|(c, _)| first.contains(*c)).map(|(_, name)| name);
        let separator = separator.or(is_blank.then_some("blank"))?;
        Some(format!(
            "the header has one name, `{first}`: the separator is `{separator}`, but must be a comma"
        ))
    }

    /// Reads a table and checks that no value is missing. Only cells of the column `interventions` may be
    /// empty.
    fn read(input: impl Read, missing: &[&str], interventions: Option<&str>) -> Result<Self> {
        let Self { names, rows } = Self::split(input, EXPECTED)?;
        if names.is_empty() {
            return Err(parse(1, "the file is empty".into()));
        }
        if let Some(i) = names.iter().position(String::is_empty) {
            return Err(parse(1, format!("column {} has no name", i + 1)));
        }
        if names.iter().all(|name| name.parse::<f64>().is_ok()) {
            return Err(parse(
                1,
                format!("the names are numbers ({}, ...): the header is missing", names[0]),
            ));
        }
        if let Some(column) = interventions.filter(|column| !names.iter().any(|name| name == column)) {
            return Err(parse(1, format!("there is no column `{column}`")));
        }
        // The number of names must be limited before the names are compared with each other, because the
        // comparison takes quadratic time.
        check_size(names.len() - usize::from(interventions.is_some()))?;
        if let Some(i) = (0..names.len()).find(|&i| names[..i].contains(&names[i])) {
            return Err(parse(1, format!("the name `{}` occurs twice", names[i])));
        }
        for (line, cells) in &rows {
            if cells.len() != names.len() {
                return Err(parse(
                    *line,
                    format!("the line has {} values, but there are {} variables", cells.len(), names.len()),
                ));
            }
            let is_missing = |(cell, name): &(&String, &String)| {
                Some(name.as_str()) != interventions && missing.contains(&cell.to_ascii_lowercase().as_str())
            };
            if let Some((cell, name)) = cells.iter().zip(&names).find(is_missing) {
                return Err(parse(*line, format!("the value of `{name}` is missing (`{cell}`)")));
            }
        }
        match rows.len() {
            0 => Err(parse(2, "there is a header, but no observation".into())),
            1 => Err(parse(rows[0].0, "there is only one observation, but at least two are needed".into())),
            _ => Ok(Self { names, rows }),
        }
    }

    /// Removes the column of interventions, and returns for each row the set of variables that the column
    /// lists.
    fn take_interventions(&mut self, column: &str) -> Result<Vec<NodeSet>> {
        let place = self.names.iter().position(|name| name == column).unwrap_or(0);
        self.names.remove(place);
        let names = &self.names;
        let set_in_row = |(line, cells): &mut (usize, Vec<String>)| {
            let cell = cells.remove(place);
            let set = cell.split(';').map(str::trim).filter(|name| !name.is_empty()).map(|name| {
                let unknown =
                    || parse(*line, format!("the column `{column}` names `{name}`, which isn't a variable"));
                names.iter().position(|known| known == name).ok_or_else(unknown)
            });
            set.collect()
        };
        self.rows.iter_mut().map(set_in_row).collect()
    }

    /// Returns the distinct labels of a column. The labels are sorted by value if all of them are numbers,
    /// and alphabetically otherwise.
    fn labels(&self, column: usize) -> Vec<String> {
        let mut labels: Vec<String> = self.rows.iter().map(|(_, cells)| cells[column].clone()).collect();
        labels.sort_unstable();
        labels.dedup();
        if labels.iter().all(|label| label.parse::<f64>().is_ok_and(f64::is_finite)) {
            labels.sort_by(|a, b| f64::total_cmp(&a.parse().unwrap_or(0.0), &b.parse().unwrap_or(0.0)));
        }
        labels
    }
}

/// Returns the line on which a record begins. If blank lines precede the record, the position given by the
/// `csv` crate is that of the first blank line.
fn line_of(text: &[u8], position: &csv::Position) -> usize {
    let before = text.iter().skip(position.byte() as usize).take_while(|byte| matches!(byte, b'\n' | b'\r'));
    position.line() as usize + before.filter(|byte| **byte == b'\n').count()
}

fn parse(line: usize, problem: String) -> Error {
    Error::parse(line, problem, EXPECTED)
}

/// Reads a file. Errors in a line of the file have the file's path.
fn read_file<T>(path: &Path, read: impl FnOnce(std::fs::File) -> Result<T>) -> Result<T> {
    read(std::fs::File::open(path).map_err(|source| Error::io(path, source))?).map_err(|error| match error {
        Error::Parse { line, problem, .. } => Error::file(path, format!("line {line}: {problem}"), REMEDY),
        other => other,
    })
}

/// A type of observations that can be converted from a table of text.
pub trait FromTable: Sized {
    /// The words that mark a missing value, in lower case.
    const MISSING: &'static [&'static str];

    /// Converts a table without missing values into observations.
    ///
    /// # Errors
    /// [`Error::Parse`] for a cell that isn't a valid value; [`Error::Config`] for a variable that has the
    /// same value in all rows.
    fn from_table(table: TextTable) -> Result<Self>;
}

impl<T: Copy, L: Clone> Observations<T, L>
where
    Self: FromTable,
{
    /// Reads a CSV table with a header. The cells of continuous data are numbers, and the cells of discrete
    /// data are labels. The values of a discrete variable are numbered in the order of its labels. This
    /// order is numerical if all labels are numbers, and alphabetical otherwise.
    ///
    /// # Errors
    /// [`Error::Parse`] with the line of the first problem: no header, no observation, a single
    /// observation, a line of a wrong length, a missing value (an empty cell, NA, NaN, ...), or a number
    /// that isn't finite. In discrete data, only an empty cell, NA and ? count as missing.
    /// [`Error::Config`] for a column that has the same value in all rows, and for more than 200 columns.
    pub fn from_csv(input: impl Read) -> Result<Self> {
        Self::from_table(TextTable::read(input, Self::MISSING, None)?)
    }

    /// Reads a CSV table with a header and a column of interventions. A cell of this column lists the
    /// variables that an experiment set in this row: their names, separated by `;`, or nothing.
    ///
    /// ```
    /// use gfn_dags::{ContinuousData, NodeSet};
    /// let text = "raf,mek,set\n0.3,1.2,\n0.5,3.0,mek\n2.0,3.0,raf; mek\n";
    /// let data = ContinuousData::from_csv_with_interventions(text.as_bytes(), "set")?;
    /// assert_eq!(
    ///     (data.names(), data.row(1)),
    ///     (["raf", "mek"].map(String::from).as_slice(), [0.5, 3.0].as_slice())
    /// );
    /// assert_eq!(data.interventions(), Some([0, 0b10, 0b11].map(NodeSet::from_bits).as_slice()));
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Errors of [`from_csv`](Self::from_csv); [`Error::Parse`] if the table has no column of this name,
    /// and if a cell of the column has an unknown name.
    pub fn from_csv_with_interventions(input: impl Read, column: &str) -> Result<Self> {
        let mut table = TextTable::read(input, Self::MISSING, Some(column))?;
        let targets = table.take_interventions(column)?;
        Self::from_table(table)?.with_interventions(targets)
    }

    /// Reads a CSV file: see [`from_csv`](Self::from_csv).
    ///
    /// # Errors
    /// [`Error::Io`] if the file can't be opened; the errors of [`from_csv`](Self::from_csv), with
    /// [`Error::File`] instead of [`Error::Parse`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        read_file(path.as_ref(), Self::from_csv)
    }

    /// Reads a CSV file with a column of interventions: see
    /// [`from_csv_with_interventions`](Self::from_csv_with_interventions).
    ///
    /// # Errors
    /// [`Error::Io`] if the file can't be opened; the errors of
    /// [`from_csv_with_interventions`](Self::from_csv_with_interventions), with [`Error::File`] instead of
    /// [`Error::Parse`].
    pub fn read_with_interventions(path: impl AsRef<Path>, column: &str) -> Result<Self> {
        read_file(path.as_ref(), |file| Self::from_csv_with_interventions(file, column))
    }
}

impl FromTable for ContinuousData {
    const MISSING: &'static [&'static str] = &MISSING_NUMBER;

    fn from_table(table: TextTable) -> Result<Self> {
        let mut values = Vec::with_capacity(table.rows.len() * table.names.len());
        for (line, cells) in &table.rows {
            for (cell, name) in cells.iter().zip(&table.names) {
                match cell.parse::<f64>() {
                    Ok(value) if value.is_finite() => values.push(value),
                    Ok(_) => {
                        return Err(parse(
                            *line,
                            format!("the value of `{name}` is {cell}, which isn't finite"),
                        ));
                    }
                    Err(_) => {
                        return Err(parse(
                            *line,
                            format!("the value of `{name}` is `{cell}`, which isn't a number"),
                        ));
                    }
                }
            }
        }
        let out = Self::new(table.names, values)?;
        out.check_varying(&(0..out.n_rows()).collect::<Vec<_>>())?;
        Ok(out)
    }
}

impl FromTable for DiscreteData {
    const MISSING: &'static [&'static str] = &MISSING_WORD;

    fn from_table(table: TextTable) -> Result<Self> {
        let labels: Vec<Vec<String>> = (0..table.names.len()).map(|i| table.labels(i)).collect();
        if let Some(i) = labels.iter().position(|labels| labels.len() == 1) {
            return Err(constant_column(&table.names[i], &labels[i][0]));
        }
        let values: Vec<HashMap<&str, u16>> = labels
            .iter()
            .map(|labels| {
                labels.iter().enumerate().map(|(value, label)| (label.as_str(), value as u16)).collect()
            })
            .collect();
        let row = |(_, cells): &(usize, Vec<String>)| -> Vec<u16> {
            cells.iter().zip(&values).map(|(cell, values)| values[cell.as_str()]).collect()
        };
        let cells = table.rows.iter().flat_map(row).collect();
        Self::labelled(table.names, labels, cells)
    }
}

/// Reads the edges of a known network from a CSV table. The table has a header and two columns: the cause
/// and the effect.
///
/// ```
/// use gfn_dags::named_edges;
/// let names = ["raf".to_string(), "mek".to_string()];
/// assert_eq!(named_edges("Cause,Effect\nraf,mek\n".as_bytes(), &names)?, [(0, 1)]);
/// assert!(named_edges("Cause,Effect\nraf,erk\n".as_bytes(), &names).is_err());
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Parse`] with the line of an unknown name or of a row that isn't a pair. A header that consists
/// of two names of variables is an error, too, because it is probably an edge in a file without a header.
pub fn named_edges(input: impl Read, names: &[String]) -> Result<Vec<(u32, u32)>> {
    const EXPECTED: &str = "a header, then lines with the names of two variables of the data: cause, effect";
    let error = |line: usize, problem: String| Error::parse(line, problem, EXPECTED);
    let table = TextTable::split(input, EXPECTED)?;
    if table.names.len() == 2 && table.names.iter().all(|word| names.contains(word)) {
        return Err(error(1, "the first line is an edge instead of the header".into()));
    }
    let edge = |(line, cells): &(usize, Vec<String>)| {
        let [cause, effect] = cells.as_slice() else {
            return Err(error(*line, format!("the line has {} names", cells.len())));
        };
        let find = |name: &String| {
            let index = names.iter().position(|known| known == name);
            index
                .map(|index| index as u32)
                .ok_or_else(|| error(*line, format!("there is no variable `{name}`")))
        };
        Ok((find(cause)?, find(effect)?))
    };
    table.rows.iter().map(edge).collect()
}
