//! What is left of a run: a table of samples, a drawn sheet, and the distance between molecules.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use gfn::graph::CanonicalKey;
use gfn::{Error, Result};
use gfn_gym::molecule::{Molecule, MoleculeCodec, MoleculeEnv};

use crate::cli::molecules::{Entry, write_molecules};
use crate::cli::{Common, Exact};

/// Molecules on the sheet, and in the SD file.
const SHOWN: usize = 24;
const KEPT: usize = 1_000;

/// Writes `samples.csv`, and a sheet and an SD file of the best distinct samples, if files are wanted.
pub(crate) fn write(common: &Common, molecules: &[Molecule], log_scores: &[f64]) -> Result<()> {
    let Some(path) = common.picture("samples.csv")? else { return Ok(()) };
    let mut text = String::from("smiles,log_score\n");
    for (molecule, log_score) in molecules.iter().zip(log_scores) {
        // Writing to a string can't fail.
        let _ = writeln!(text, "{},{log_score}", molecule.smiles());
    }
    std::fs::write(&path, text).map_err(|source| Error::Io { path: path.clone(), source })?;
    let mut best: BTreeMap<CanonicalKey, (f64, &Molecule)> = BTreeMap::new();
    for (molecule, &log_score) in molecules.iter().zip(log_scores) {
        best.entry(molecule.key()).or_insert((log_score, molecule));
    }
    let mut best: Vec<_> = best.into_values().collect();
    best.sort_by(|a, b| b.0.total_cmp(&a.0));
    draw(&path, &best)
}

/// The best distinct samples as a drawn sheet and an SD file, beside the table.
fn draw(table: &Path, best: &[(f64, &Molecule)]) -> Result<()> {
    let entries: Vec<_> = best
        .iter()
        .take(KEPT)
        .map(|(log_score, molecule)| {
            let (smiles, score) = (molecule.smiles(), format!("{log_score:.4}"));
            let caption = [smiles.clone(), format!("log score {log_score:.2}")];
            Entry { molecule, caption, data: vec![("smiles", smiles), ("log_score", score)] }
        })
        .collect();
    write_molecules(table.parent().unwrap_or(Path::new("")), "best samples", &entries, SHOWN)
}

/// The total variation between molecules, their Kekule forms taken together.
pub(crate) fn tv_of_molecules(codec: &MoleculeCodec, exact: &Exact<MoleculeEnv>, probs: &[f64]) -> Result<f64> {
    let mut gaps: BTreeMap<CanonicalKey, f64> = BTreeMap::new();
    for end in exact.graph.ends() {
        let molecule = codec.molecule(&exact.graph.states().graphs()[end])?;
        *gaps.entry(molecule.key()).or_default() += probs[end] - exact.target.probs[end];
    }
    Ok(gaps.values().map(|gap| gap.abs()).sum::<f64>() / 2.0)
}
