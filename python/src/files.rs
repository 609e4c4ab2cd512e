//! Reads molecules from files and lists, and finds their most frequent fragments.

use std::io::BufRead;
use std::path::PathBuf;

use gfn::{Error, Result};
use gfn_molecules::fragments::Vocabulary;
use gfn_molecules::{Cleanup, Molecule, MoleculeFormat, MoleculeReader};
use pyo3::prelude::*;

use crate::errors::Outcome;
use crate::inside::Inside;
use crate::molecules::{lines, rows_of, warn_of_rows};

/// The SMILES of the molecules that could be read, and a report about lines that were changed or skipped.
type Read = (Vec<String>, String);

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
        return Ok(py.detach(|| all(MoleculeReader::open(path)?, cleanup, column))?);
    }
    let text = lines(molecules, "molecules")?.join("\n");
    let reader = || MoleculeReader::new(text.as_bytes(), MoleculeFormat::Smiles);
    Ok(py.detach(|| all(reader(), cleanup, column))?)
}

fn all(reader: MoleculeReader<impl BufRead>, cleanup: Cleanup, column: Option<String>) -> Result<Read> {
    let mut reader = reader.with_cleanup(cleanup);
    if let Some(column) = column {
        reader = reader.with_column(column);
    }
    let smiles = reader.by_ref().map(|molecule| Ok(molecule?.smiles())).collect::<Result<_>>()?;
    let mut report = reader.report().to_string();
    for skipped in reader.report().skipped.values().flat_map(|skipped| &skipped.examples) {
        report += &format!("\n{skipped}");
    }
    Ok((smiles, report))
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
