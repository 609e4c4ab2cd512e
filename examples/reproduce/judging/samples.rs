//! The samples of a file, and the sequences of an alignment, as other programs write them.

use std::path::Path;

use gfn::{Error, Result};

/// First words of headers, in lower case.
const TITLES: [&str; 11] =
    ["molecule", "mol", "sequence", "seq", "tree", "newick", "graph", "graphs", "object", "sample", "samples"];

/// The text of a file, without a byte-order mark.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::io(path, source))?;
    Ok(text.trim_start_matches('\u{feff}').to_owned())
}

/// Reads a row from a line.
pub(crate) type RowReader<'a, T> = &'a dyn Fn(&str) -> Result<T>;

/// Reads the samples of a text, one per line: the rows, the number of lines that are no object of the task,
/// and notes about lines that aren't plain samples. Empty lines are skipped; so is the first line if it is a
/// header: the title of a column of objects or, if objects are `numbers`, nothing but names.
pub(crate) fn samples<T>(text: &str, numbers: bool, row: RowReader<'_, T>) -> (Vec<T>, usize, Vec<String>) {
    let (mut rows, mut n_invalid, mut notes) = (Vec::new(), 0, Vec::new());
    let lines = (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty());
    for (k, (number, line)) in lines.enumerate() {
        // Pandas numbers columns without names from 0.
        let are_columns = line.contains(',')
            && (0..).zip(line.trim_start_matches(',').split(',')).all(|(k, word)| word == k.to_string());
        match row(line) {
            Ok(row) => {
                if k == 0 && numbers && are_columns {
                    notes.push(format!("line {number}, {line:?}, counts as a sample: remove it if it is a header"));
                }
                rows.push(row);
            }
            Err(_) if k == 0 && is_header(line, numbers) => {
                notes.push(format!("line {number}, {line:?}, is read as a header"));
            }
            Err(error) => {
                if n_invalid == 0 {
                    notes.push(format!("line {number} counts as an invalid sample: {error}"));
                }
                n_invalid += 1;
            }
        }
    }
    (rows, n_invalid, notes)
}

fn is_header(line: &str, numbers: bool) -> bool {
    let mut words = line.split([',', ';', ' ', '\t']).map(|word| word.trim_matches('"').to_lowercase());
    if numbers {
        return words.all(|word| !word.starts_with(|c: char| c.is_ascii_digit() || "+-.[(".contains(c)));
    }
    let first = words.find(|word| !word.is_empty()).unwrap_or_default();
    TITLES.contains(&first.as_str()) || first.ends_with("smiles")
}

/// Reads the names and sequences of an alignment in FASTA.
///
/// # Errors
/// [`Error::File`] for a text of another format, by its name.
pub(crate) fn fasta(path: &Path, text: &str) -> Result<Vec<(String, String)>> {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    if !first.starts_with(['>', ';']) {
        let format = match first {
            _ if first.eq_ignore_ascii_case("#nexus") => "NEXUS",
            _ if first.starts_with(|c: char| c.is_ascii_digit()) => "PHYLIP",
            _ => "not FASTA",
        };
        let remedy = "write FASTA: for each species a line `>NAME`, then its sequence";
        return Err(Error::file(path, format!("the alignment is {format}"), remedy));
    }
    let mut species: Vec<(String, String)> = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(title) = line.strip_prefix('>') {
            species.push((title.split_whitespace().next().unwrap_or_default().to_owned(), String::new()));
        } else if let Some((_, sequence)) = species.last_mut() {
            sequence.push_str(line);
        }
    }
    Ok(species)
}

/// The Newick text of a tree with the numbers of species instead of their names. Numbers stay as they are:
/// they are places in the alignment, whatever its names are.
pub(crate) fn with_numbers(tree: &str, names: &[String]) -> String {
    let (mut out, mut is_leaf) = (String::new(), true);
    for part in tree.split_inclusive(['(', ')', ',', ';']) {
        let word = part.split([':', '(', ')', ',', ';']).next().unwrap_or_default();
        let name = word.trim().trim_matches('\'');
        match names.iter().position(|known| known == name && name.parse::<usize>().is_err()) {
            Some(number) if is_leaf => out.push_str(&format!("{number}{}", &part[word.len()..])),
            _ => out.push_str(part),
        }
        is_leaf = part.ends_with(['(', ',']);
    }
    out
}
