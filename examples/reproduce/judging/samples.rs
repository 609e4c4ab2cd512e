//! Parsers of files that other programs wrote: files of samples, and alignments of sequences.

use std::path::Path;

use gfn::{Error, Result, graph::GraphFormat::Graph6};

/// Usual titles of columns, in lower case. Unless objects consist of numbers, a first line that begins with
/// one of these titles is a header.
const TITLES: [&str; 11] = [
    "molecule", "mol", "sequence", "seq", "tree", "newick", "graph", "graphs", "object", "sample", "samples",
];

/// Returns the text of a file, without a byte-order mark.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::io(path, source))?;
    Ok(text.trim_start_matches('\u{feff}').to_owned())
}

/// A function that reads an object from a line of text.
pub(crate) type RowReader<'a, T> = &'a dyn Fn(&str) -> Result<T>;

/// Reads samples from a text, one per line; empty lines are skipped. Returns the objects, the number of lines
/// that aren't objects of the task, and notes about unusual lines.
///
/// The first line is skipped if it is a header. If objects consist of numbers (`numbers`), a header is a line
/// in which no word looks like a number. Otherwise a header is a line that begins with a title of a column.
pub(crate) fn samples<T>(text: &str, numbers: bool, row: RowReader<'_, T>) -> (Vec<T>, usize, Vec<String>) {
    let mut rows = Vec::new();
    let mut n_invalid = 0;
    let mut notes = Vec::new();
    let lines = (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty());
    for (k, (number, line)) in lines.enumerate() {
        // The header that pandas writes for columns without names is 0,1,2 and so on.
        let are_columns = line.contains(',')
            && (0..).zip(line.trim_start_matches(',').split(',')).all(|(k, word)| word == k.to_string());
        match row(line) {
            Ok(row) => {
                if k == 0 && numbers && are_columns {
                    notes.push(format!(
                        "line {number}, {line:?}, counts as a sample: remove this line if it is a header"
                    ));
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
        // The words `nan`, `inf` and `none` are values, so a line with one of them isn't a header.
        let is_value = |word: &str| word.parse::<f64>().is_ok() || word == "none";
        return words
            .all(|word| !word.starts_with(|c: char| "0123456789+-.[(".contains(c)) && !is_value(&word));
    }
    let first = words.find(|word| !word.is_empty()).unwrap_or_default();
    TITLES.contains(&first.as_str()) || first.ends_with("smiles")
}

/// Returns `true` if a line of the text is graph6 or digraph6. A line of an edge list can't be read in either
/// format.
pub(crate) fn has_graph6(text: &str) -> bool {
    text.lines().any(|line| Graph6.read(line.trim().as_bytes()).is_ok_and(|graphs| !graphs.is_empty()))
}

/// Reads the names and sequences of an alignment in FASTA. A name is the whole title of a sequence. Lines
/// that begin with `;` are comments.
///
/// # Errors
/// [`Error::File`] if the text has another format, which the message names, and for a title that is empty or
/// isn't unique.
pub(crate) fn fasta(path: &Path, text: &str) -> Result<Vec<(String, String)>> {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(';'));
    let first = lines().next().unwrap_or_default();
    if !first.starts_with('>') {
        let format = match first {
            _ if first.eq_ignore_ascii_case("#nexus") => "NEXUS",
            _ if first.starts_with(|c: char| c.is_ascii_digit()) => "PHYLIP",
            _ => "not FASTA",
        };
        let remedy =
            "give a file in the FASTA format: for each species a line `>NAME`, and then its sequence";
        return Err(Error::file(path, format!("the alignment is {format}"), remedy));
    }
    let mut species: Vec<(String, String)> = Vec::new();
    for line in lines() {
        if let Some(title) = line.strip_prefix('>').map(str::trim) {
            if title.is_empty() || species.iter().any(|(name, _)| name == title) {
                return Err(Error::file(
                    path,
                    format!("the title {title:?} is empty or not unique"),
                    "give each species a different title",
                ));
            }
            species.push((title.to_owned(), String::new()));
        } else if let Some((_, sequence)) = species.last_mut() {
            sequence.push_str(line);
        }
    }
    Ok(species)
}

/// Replaces the names of species in the Newick text of a tree by indices into the alignment. `names` are the
/// whole titles of the alignment. The text may also name a species by the first word of its title, if no
/// other title begins with this word. A number in the text isn't replaced, because it already is an index.
pub(crate) fn with_numbers(tree: &str, names: &[String]) -> String {
    let mut out = String::new();
    let mut is_leaf = true;
    for part in tree.split_inclusive(['(', ')', ',', ';']) {
        let word = part.split([':', '(', ')', ',', ';']).next().unwrap_or_default();
        let name = word.trim().trim_matches('\'');
        let mut places = (0..names.len()).filter(|&k| names[k].split_whitespace().next() == Some(name));
        let by_word = places.next().filter(|_| places.next().is_none());
        match names.iter().position(|known| known == name).or(by_word) {
            Some(k) if is_leaf && name.parse::<usize>().is_err() => {
                out += &format!("{k}{}", &part[word.len()..])
            }
            _ => out.push_str(part),
        }
        is_leaf = part.ends_with(['(', ',']);
    }
    out
}
