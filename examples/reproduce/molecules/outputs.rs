//! What is left of a run on molecules: a table of samples, a drawn sheet, an SD file, and distances.

use std::collections::BTreeMap;
use std::path::Path;

use gfn::graph::{CanonicalKey, GraphEnv, GraphState};
use gfn::metrics::{Distances, TopK};
use gfn::{Error, Result};
use gfn_molecules::{FactoredScore, Fingerprint, Molecule, Ranking, ScoreConfig};
use serde_json::{Value, json};

use crate::flags::Common;
use crate::flags::config_file::from_toml;
use crate::run::Exact;
use crate::run::lines::tell;

/// Molecules on the sheet, and in the SD file and the table.
const SHOWN: usize = 24;
const KEPT: usize = 1_000;

/// Writes `molecules.csv`, `molecules.sdf`, and `molecules.svg` and `molecules.png` with the first `shown`; says how many the SD file can't hold.
fn write_ranking(folder: &Path, title: &str, ranking: &Ranking, shown: usize) -> Result<()> {
    if let Some((n, first)) = ranking.write(folder, title, shown)? {
        tell(format_args!(
            "{n} of {} molecules aren't in {}: {first}",
            ranking.entries().len(),
            folder.join("molecules.sdf").display()
        ));
    }
    ranking.sheet(title, shown).write(folder.join("molecules.png"))
}

/// The score of a TOML file.
pub(super) fn read_score(path: &Path) -> Result<FactoredScore> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::io(path, source))?;
    let remedy = "give factors as the documentation of `ScoreConfig` has them";
    let config: ScoreConfig = from_toml(&text).map_err(|error| Error::file(path, error, remedy))?;
    config.build()
}

/// Writes `samples.csv`, and the best distinct samples as a table, an SD file and a sheet, if files are wanted; with the properties of a score that
/// a file says.
pub(super) fn write(
    common: &Common,
    molecules: &[Molecule],
    log_scores: &[f64],
    properties: Option<&FactoredScore>,
) -> Result<()> {
    common.write("samples.csv", |path| {
        let scored = molecules.iter().zip(log_scores);
        let lines: String = scored.map(|(molecule, score)| format!("{},{score}\n", molecule.smiles())).collect();
        std::fs::write(path, format!("smiles,log_score\n{lines}")).map_err(|source| Error::io(path, source))
    })?;
    common.write("molecules.sdf", |path| {
        let best = with_properties(Ranking::new(molecules, log_scores)?.best(KEPT), properties)?;
        write_ranking(path.parent().unwrap_or(Path::new("")), "best samples", &best, SHOWN)
    })
}

/// The same with a column for each property of a score.
fn with_properties(ranking: Ranking, score: Option<&FactoredScore>) -> Result<Ranking> {
    match score {
        Some(score) => ranking.with_columns(&score.names(), |molecules| score.properties(molecules)),
        None => Ok(ranking),
    }
}

/// The total variation between molecules, the states that are one molecule taken together, and how many of each there are:
/// finished states, and molecules.
pub(super) fn tv_of_molecules(
    exact: &Exact<GraphEnv>,
    molecule: impl Fn(&GraphState) -> Result<Molecule>,
) -> Result<(f64, usize, usize)> {
    let mut gaps: BTreeMap<CanonicalKey, f64> = BTreeMap::new();
    let ends = exact.graph.ends();
    for &end in &ends {
        let molecule = molecule(&exact.graph.states().graphs()[end])?;
        *gaps.entry(molecule.key()).or_default() += exact.probs[end] - exact.target.probs[end];
    }
    Ok((gaps.values().map(|gap| gap.abs()).sum::<f64>() / 2.0, ends.len(), gaps.len()))
}

/// The figures of samples: how many are read again as the same, how many are different, the mean score.
pub(super) fn of_samples(molecules: &[Molecule], log_scores: &[f64]) -> Vec<(&'static str, Value)> {
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

/// The figures of the best `k` samples; one that was sampled twice counts twice.
pub(super) fn of_best(k: usize, molecules: &[Molecule], log_scores: &[f64]) -> Result<(&'static str, Value)> {
    let prints: Vec<_> = molecules.iter().map(Fingerprint::of).collect();
    let best = TopK::of(log_scores, k, |i, j| 1.0 - prints[i].tanimoto(&prints[j]))?;
    Ok(("top_k", json!({ "k": k, "mean_log_score": best.mean_log_reward, "mean_distance": best.diversity })))
}

/// The figures of what is sampled without the correction for symmetry, and how far from that, and from the target, the policy is.
pub(super) fn of_symmetry(exact: &Exact<GraphEnv>, env: &GraphEnv) -> Result<Vec<(&'static str, Value)>> {
    let states = exact.graph.states().graphs();
    let mut biased = exact.target.probs.clone();
    for &end in &exact.graph.ends() {
        biased[end] /= env.log_automorphisms(&states[end])?.exp();
    }
    let total: f64 = biased.iter().sum();
    biased.iter_mut().for_each(|p| *p /= total);
    Ok(vec![
        ("tv_to_r_over_aut", json!(Distances::between(&exact.probs, &biased)?.tv)),
        ("tv_of_r_over_aut", json!(Distances::between(&exact.target.probs, &biased)?.tv)),
    ])
}
