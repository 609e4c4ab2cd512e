//! Reads molecules from files and lists, and finds their most frequent fragments.

use std::io::BufRead;
use std::path::PathBuf;

use gfn::{Error, Result};
use gfn_molecules::fragments::Vocabulary;
use gfn_molecules::{Cleanup, Molecule, MoleculeFormat, MoleculeReader, SkippedLine};
use pyo3::prelude::*;

use crate::errors::Outcome;
use crate::inside::Inside;
use crate::molecules::{lines, rows_of, warn_of_rows};

/// The SMILES of the molecules that could be read, the index of each molecule among the records of a file or
/// the items of a list, and a report about lines that were changed or skipped.
type Read = (Vec<String>, Vec<usize>, String);

/// Reads the molecules of a file, or of a list whose items are read like the lines of a file. If the file is
/// a table, `column` is the name of the column with the molecules.
#[pyfunction]
pub(crate) fn read_molecules(
    py: Python<'_>,
    molecules: &Bound<'_, PyAny>,
    cleanup: bool,
    column: Option<String>,
) -> Outcome<Read> {
    let _inside = Inside::enter(py)?;
    let cleanup = if cleanup { Cleanup::ALL } else { Cleanup::default() };
    if let Ok(path) = molecules.extract::<PathBuf>() {
        return Ok(py.detach(|| {
            let mut reader = MoleculeReader::open(path)?.with_cleanup(cleanup);
            if let Some(column) = column {
                reader = reader.with_column(column);
            }
            all(&mut reader, MoleculeReader::record_index, SkippedLine::to_string)
        })?);
    }
    let lines: Vec<String> = molecules.extract()?;
    Ok(py.detach(|| of_list(&lines, cleanup))?)
}

/// Reads the items of a list, which messages and the report count from 0 on.
fn of_list(items: &[String], cleanup: Cleanup) -> Result<Read> {
    // An item is one line, so that the number of a line is the number of an item.
    let text: Vec<String> = items.iter().map(|item| item.replace(['\n', '\r'], " ")).collect();
    let text = text.join("\n");
    let mut reader = MoleculeReader::new(text.as_bytes(), MoleculeFormat::Smiles).with_cleanup(cleanup);
    let show = |skipped: &SkippedLine| {
        format!("row {}, {:?}: {}", skipped.line.saturating_sub(1), skipped.smiles, skipped.error)
    };
    let read = all(&mut reader, |reader| reader.record_line().saturating_sub(1), show);
    if reader.report().read > 0 {
        return read;
    }
    let skipped = reader.report().skipped.values().flat_map(|skipped| &skipped.examples);
    let first =
        skipped.min_by_key(|skipped| skipped.line).map_or(String::new(), |one| "; ".to_owned() + &show(one));
    let got = format!("a list of {} items, of which none is read as a molecule{first}", items.len());
    Err(Error::config("molecules", got, "a list with a SMILES or a molecule of RDKit in each item"))
}

/// Reads all molecules. `row` returns the index of the last molecule, and `show` describes a line that was
/// skipped.
fn all<R: BufRead>(
    reader: &mut MoleculeReader<R>,
    row: impl Fn(&MoleculeReader<R>) -> usize,
    show: impl Fn(&SkippedLine) -> String,
) -> Result<Read> {
    let mut smiles = Vec::new();
    let mut rows = Vec::new();
    while let Some(molecule) = reader.next() {
        smiles.push(molecule?.smiles());
        rows.push(row(reader));
    }
    let mut report = reader.report().to_string();
    for skipped in reader.report().skipped.values().flat_map(|skipped| &skipped.examples) {
        report = report + "\n" + &show(skipped);
    }
    Ok((smiles, rows, report))
}

/// Returns the `n` most frequent fragments of these molecules, as the text of a file of fragments.
#[pyfunction]
pub(crate) fn fragments_of(py: Python<'_>, molecules: &Bound<'_, PyAny>, n: usize) -> Outcome<String> {
    let _inside = Inside::enter(py)?;
    let lines = lines(molecules, "molecules")?;
    let read = |line: &String| {
        let smiles = line.split_whitespace().next().unwrap_or_default();
        Molecule::from_smiles(smiles).map_err(Error::from)
    };
    let molecules =
        rows_of(py, &lines, read, "molecules", "read the file by `read_molecules`, which leaves them out")?;
    let lost: Vec<bool> = molecules.iter().map(|molecule| !molecule.marks().is_empty()).collect();
    warn_of_rows(py, &lost, &lines, "molecules")?;
    let library = || molecules.iter().collect::<Vocabulary>().library(n);
    Ok(py.detach(library)?.to_string())
}
