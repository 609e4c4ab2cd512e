//! What is left of a run on molecules: a table of samples, a drawn sheet, an SD file, and distances.

use std::collections::BTreeMap;
use std::path::Path;

use gfn::graph::{CanonicalKey, GraphEnv, GraphRules, GraphState};
use gfn::metrics::{Distances, TopK};
use gfn::{Error, Result};
use gfn_molecules::{Fingerprint, Molecule, MoleculeError};
use serde_json::{Value, json};

use crate::flags::Common;
use crate::plot::PictureSheet;
use crate::run::Exact;

/// The side of a drawn molecule.
const SIDE: f64 = 200.0;

/// A molecule, two lines to be written below it, and what the SD file says of it.
pub(crate) struct Drawn<'a> {
    pub(crate) molecule: &'a Molecule,
    /// What the SD file calls it; its number if that is empty.
    pub(crate) title: String,
    pub(crate) caption: [String; 2],
    pub(crate) data: Vec<(&'a str, String)>,
}

impl Drawn<'_> {
    /// The record of an SD file. A title that it has no room for is kept as a data item, in favour of the number.
    fn record(&self, number: usize) -> std::result::Result<String, MoleculeError> {
        let mut data: Vec<_> = self.data.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let number = number.to_string();
        if self.title.is_empty() {
            return self.molecule.sdf_record(&number, &data);
        }
        self.molecule.sdf_record(&self.title, &data).or_else(|_| {
            data.push(("name", &self.title));
            self.molecule.sdf_record(&number, &data)
        })
    }
}

/// Writes `molecules.sdf` with all that it can hold, and says how many it can't; writes `molecules.svg` and `molecules.png` with the first `shown`.
pub(crate) fn write_molecules(folder: &Path, title: &str, entries: &[Drawn<'_>], shown: usize) -> Result<()> {
    let io = |path: &Path, source| Error::io(path, source);
    std::fs::create_dir_all(folder).map_err(|source| io(folder, source))?;
    let (mut sheet, mut sdf, mut left_out) = (PictureSheet::new(title, SIDE), String::new(), Vec::new());
    for (k, entry) in entries.iter().enumerate() {
        match entry.record(k + 1) {
            Ok(record) => sdf.push_str(&record),
            Err(error) => left_out.push(error),
        }
        if k < shown {
            sheet = sheet.cell(entry.molecule.drawing(SIDE, SIDE), entry.caption.clone());
        }
    }
    let path = folder.join("molecules.sdf");
    if let Some(first) = left_out.first() {
        eprintln!("{} of {} molecules aren't in {}: {first}", left_out.len(), entries.len(), path.display());
    }
    std::fs::write(&path, sdf).map_err(|source| io(&path, source))?;
    sheet.write(folder.join("molecules.svg"))?;
    sheet.write(folder.join("molecules.png"))
}

/// Molecules on the sheet, and in the SD file.
const SHOWN: usize = 24;
const KEPT: usize = 1_000;

/// Writes `samples.csv`, and a sheet and an SD file of the best distinct samples, if files are wanted.
pub(super) fn write(common: &Common, molecules: &[Molecule], log_scores: &[f64]) -> Result<()> {
    let scored = || molecules.iter().zip(log_scores);
    common.write("samples.csv", |path| {
        let lines: String = scored().map(|(molecule, score)| format!("{},{score}\n", molecule.smiles())).collect();
        std::fs::write(path, format!("smiles,log_score\n{lines}")).map_err(|source| Error::io(path, source))
    })?;
    let mut best: BTreeMap<CanonicalKey, (f64, &Molecule)> = BTreeMap::new();
    for (molecule, &log_score) in scored() {
        best.entry(molecule.key()).or_insert((log_score, molecule));
    }
    let mut best: Vec<_> = best.into_values().collect();
    best.sort_by(|a, b| b.0.total_cmp(&a.0));
    let entry = |(log_score, molecule): &(f64, &'_ Molecule)| {
        let (smiles, score) = (molecule.smiles(), format!("{log_score:.4}"));
        let caption = [smiles.clone(), format!("log score {log_score:.2}")];
        (caption, vec![("smiles", smiles), ("log_score", score)])
    };
    let texts: Vec<_> = best.iter().take(KEPT).map(entry).collect();
    let entries: Vec<_> = best
        .iter()
        .zip(texts)
        .map(|((_, molecule), (caption, data))| Drawn { molecule, title: String::new(), caption, data })
        .collect();
    common.write("molecules.sdf", |path| {
        write_molecules(path.parent().unwrap_or(Path::new("")), "best samples", &entries, SHOWN)
    })
}

/// The total variation between molecules, the states that are one molecule taken together, and how many of each there are:
/// finished states, and molecules.
pub(super) fn tv_of_molecules<R: GraphRules>(
    exact: &Exact<GraphEnv<R>>,
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
pub(super) fn of_symmetry<R: GraphRules>(
    exact: &Exact<GraphEnv<R>>,
    env: &GraphEnv<R>,
) -> Result<Vec<(&'static str, Value)>> {
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
