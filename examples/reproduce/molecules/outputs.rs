//! The outputs of a run on molecules: tables of samples, a picture of the best samples, an SD file, and
//! distances to the target.

use gfn::metrics::TopK;
use gfn_molecules::{FactoredScore, Fingerprint, Ranking, ScoreConfig};

use crate::flags::config_file::from_toml;
use crate::prelude::*;

/// The number of best molecules in the picture.
const SHOWN: usize = 24;
/// The largest number of best molecules in the table and in the SD file.
const KEPT: usize = 1_000;

/// Reads the definition of a score from a TOML file.
pub(super) fn read_score(path: &Path) -> Result<FactoredScore> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::io(path, source))?;
    let remedy = "give factors as the documentation of `ScoreConfig` describes them";
    let config: ScoreConfig = from_toml(&text).map_err(|error| Error::file(path, error, remedy))?;
    config.build()
}

/// Writes all samples to `samples.csv`. Writes the best distinct samples as a table, as an SD file and as a
/// picture. The table has a column for each property of the score. Writes nothing if the run has no folder
/// for pictures.
pub(super) fn write(
    common: &Common,
    molecules: &[Molecule],
    log_scores: &[f64],
    properties: Option<&FactoredScore>,
) -> Result<()> {
    common.write("samples.csv", |path| {
        let scored = molecules.iter().zip(log_scores);
        let lines: String =
            scored.map(|(molecule, score)| format!("{},{score}\n", molecule.smiles())).collect();
        std::fs::write(path, format!("smiles,log_score\n{lines}")).map_err(|source| Error::io(path, source))
    })?;
    common.write("molecules.sdf", |path| {
        let folder = path.parent().unwrap_or(Path::new(""));
        let title = "best samples";
        let mut ranking = Ranking::new(molecules, log_scores)?.best(KEPT);
        if let Some(score) = properties {
            ranking = ranking.with_columns(&score.names(), |molecules| score.properties(molecules))?;
        }
        if let Some((n, first)) = ranking.write(folder, title, SHOWN)? {
            tell(format_args!(
                "{n} of {} molecules couldn't be written to {}: {first}",
                ranking.entries().len(),
                path.display()
            ));
        }
        ranking.sheet(title, SHOWN).write(folder.join("molecules.png"))
    })
}

/// Returns the total variation between the learned and the target distribution over molecules. The
/// probability of a molecule is the sum of the probabilities of its states. Also counts the states, the
/// finished states and the molecules.
pub(super) fn compare_molecules(
    exact: &Exact<GraphEnv>,
    molecule: impl Fn(&GraphState) -> Result<Molecule>,
) -> Result<Value> {
    let mut gaps: BTreeMap<CanonicalKey, f64> = BTreeMap::new();
    let ends = exact.graph.ends();
    for &end in &ends {
        let molecule = molecule(&exact.graph.states().graphs()[end])?;
        *gaps.entry(molecule.key()).or_default() += exact.probs[end] - exact.target.probs[end];
    }
    let tv = gaps.values().map(|gap| gap.abs()).sum::<f64>() / 2.0;
    let states = exact.graph.len();
    Ok(json!({ "tv_molecules": tv, "states": states, "finished_states": ends.len(),
            "molecules": gaps.len() }))
}

/// Returns statistics of the samples, such as the number of distinct molecules and the mean score.
pub(super) fn describe_samples(molecules: &[Molecule], log_scores: &[f64]) -> Value {
    let n = molecules.len().max(1) as f64;
    json!({
        "samples": molecules.len(),
        "distinct_samples": molecules.iter().map(Molecule::key).collect::<BTreeSet<_>>().len(),
        "mean_log_score": log_scores.iter().sum::<f64>() / n,
    })
}

/// Returns the mean log-score of the `k` best samples, and the mean Tanimoto distance between these samples.
/// A molecule that was sampled twice counts twice.
pub(super) fn describe_best(k: usize, molecules: &[Molecule], log_scores: &[f64]) -> Result<Value> {
    let prints: Vec<_> = molecules.iter().map(Fingerprint::from_molecule).collect();
    let best = TopK::new(log_scores, k, |i, j| 1.0 - prints[i].tanimoto(&prints[j]))?;
    Ok(json!({ "k": k, "mean_log_score": best.mean_log_reward, "mean_distance": best.diversity }))
}
