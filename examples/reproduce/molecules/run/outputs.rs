//! What is left of a run on molecules: a table of samples, a drawn sheet, and distances.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use gfn::graph::{CanonicalKey, GraphEnv, GraphRules, GraphState};
use gfn::metrics::{Distances, TopK};
use gfn::{Error, Result};
use gfn_molecules::{Fingerprint, Molecule};
use serde_json::{Value, json};

use super::files::{Entry, write_molecules};
use crate::cli::{Common, Exact};

/// Molecules on the sheet, and in the SD file.
const SHOWN: usize = 24;
const KEPT: usize = 1_000;

/// Writes `samples.csv`, and a sheet and an SD file of the best distinct samples, if files are wanted.
pub(crate) fn write(common: &Common, molecules: &[Molecule], log_scores: &[f64]) -> Result<()> {
    let Some(path) = common.picture("samples.csv") else { return Ok(()) };
    let mut text = String::from("smiles,log_score\n");
    for (molecule, log_score) in molecules.iter().zip(log_scores) {
        // Writing to a string can't fail.
        let _ = writeln!(text, "{},{log_score}", molecule.smiles());
    }
    std::fs::write(&path, text).map_err(|source| Error::io(path.clone(), source))?;
    let mut best: BTreeMap<CanonicalKey, (f64, &Molecule)> = BTreeMap::new();
    for (molecule, &log_score) in molecules.iter().zip(log_scores) {
        best.entry(molecule.key()).or_insert((log_score, molecule));
    }
    let mut best: Vec<_> = best.into_values().collect();
    best.sort_by(|a, b| b.0.total_cmp(&a.0));
    draw(&path, &best)?;
    for extension in ["sdf", "svg", "png"] {
        let _ = common.picture(&format!("molecules.{extension}"));
    }
    Ok(())
}

/// The best distinct samples as a drawn sheet and an SD file, beside the table.
fn draw(table: &Path, best: &[(f64, &Molecule)]) -> Result<()> {
    let entries: Vec<_> = best
        .iter()
        .take(KEPT)
        .map(|(log_score, molecule)| {
            let (smiles, score) = (molecule.smiles(), format!("{log_score:.4}"));
            let caption = [smiles.clone(), format!("log score {log_score:.2}")];
            Entry { molecule, title: String::new(), caption, data: vec![("smiles", smiles), ("log_score", score)] }
        })
        .collect();
    write_molecules(table.parent().unwrap_or(Path::new("")), "best samples", &entries, SHOWN)
}

/// The total variation between molecules, the states that are one molecule taken together, and how many of each there are:
/// finished states, and molecules.
pub(crate) fn tv_of_molecules<R: GraphRules>(
    exact: &Exact<GraphEnv<R>>,
    probs: &[f64],
    molecule: impl Fn(&GraphState) -> Result<Molecule>,
) -> Result<(f64, usize, usize)> {
    let mut gaps: BTreeMap<CanonicalKey, f64> = BTreeMap::new();
    let ends = exact.graph.ends();
    for &end in &ends {
        let molecule = molecule(&exact.graph.states().graphs()[end])?;
        *gaps.entry(molecule.key()).or_default() += probs[end] - exact.target.probs[end];
    }
    Ok((gaps.values().map(|gap| gap.abs()).sum::<f64>() / 2.0, ends.len(), gaps.len()))
}

/// What the JSON line says of samples: how many are read again as the same, how many are different, the mean score.
pub(crate) fn of_samples(molecules: &[Molecule], log_scores: &[f64]) -> Vec<(&'static str, Value)> {
    let round_trips =
        molecules.iter().filter(|m| Molecule::from_smiles(&m.smiles()).is_ok_and(|again| again.key() == m.key()));
    let mut distinct: Vec<_> = molecules.iter().map(Molecule::key).collect();
    distinct.sort_unstable();
    distinct.dedup();
    vec![
        ("samples", json!(molecules.len())),
        ("round_trip_share", json!(round_trips.count() as f64 / molecules.len().max(1) as f64)),
        ("distinct_samples", json!(distinct.len())),
        ("mean_log_score", json!(log_scores.iter().sum::<f64>() / log_scores.len().max(1) as f64)),
    ]
}

/// What the JSON line says of the best `k` samples; one that was sampled twice counts twice.
pub(super) fn of_best(k: usize, molecules: &[Molecule], log_scores: &[f64]) -> Result<(&'static str, Value)> {
    let prints: Vec<_> = molecules.iter().map(Fingerprint::of).collect();
    let best = TopK::of(log_scores, k, |i, j| 1.0 - prints[i].tanimoto(&prints[j]))?;
    Ok(("top_k", json!({ "k": k, "mean_log_score": best.mean_log_reward, "mean_distance": best.diversity })))
}

/// What is sampled without the correction for symmetry, and how far from that, and from the target, the policy is.
pub(crate) fn of_symmetry<R: GraphRules>(
    exact: &Exact<GraphEnv<R>>,
    env: &GraphEnv<R>,
    probs: &[f64],
) -> Result<Vec<(&'static str, Value)>> {
    let states = exact.graph.states().graphs();
    let mut biased = exact.target.probs.clone();
    for &end in &exact.graph.ends() {
        biased[end] /= env.log_automorphisms(&states[end])?.exp();
    }
    let total: f64 = biased.iter().sum();
    biased.iter_mut().for_each(|p| *p /= total);
    Ok(vec![
        ("tv_to_r_over_aut", json!(Distances::between(probs, &biased)?.tv)),
        ("tv_of_r_over_aut", json!(Distances::between(&exact.target.probs, &biased)?.tv)),
    ])
}
