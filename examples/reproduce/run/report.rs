//! The result of a task: a table for people, one line of JSON for programs.

use gfn::Result;
use gfn::metrics::Distances;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::files::written;
use super::folder::write_json;
use super::lines::{print, tell};
use super::{Run, Trained};
use crate::plot::Panel;

/// What a task reports besides what training left: its figures, and pictures beside the curves of training.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) figures: Map<String, Value>,
    pub(crate) panels: Vec<Panel>,
}

/// The figures that every task has, `null` where they aren't known.
const COMMON: [&str; 4] = ["log_z_true", "l1", "tv", "jsd"];

impl Report {
    /// Sets a figure by its name in the line of JSON.
    pub(crate) fn set(&mut self, name: &str, value: impl Serialize) {
        self.figures.insert(name.to_owned(), json!(value));
    }

    pub(crate) fn extend(&mut self, figures: impl IntoIterator<Item = (&'static str, Value)>) {
        self.figures.extend(figures.into_iter().map(|(name, value)| (name.to_owned(), value)));
    }

    /// Sets the distances, which are exact, not estimated from samples.
    pub(crate) fn exact(&mut self, distances: &Distances) {
        self.exact_mean([distances.l1, distances.tv, distances.jsd]);
    }

    /// Sets L1, TV and JSD, means of exact ones.
    pub(crate) fn exact_mean(&mut self, [l1, tv, jsd]: [f64; 3]) {
        self.extend([("l1", json!(l1)), ("tv", json!(tv)), ("jsd", json!(jsd)), ("exact", json!(true))]);
    }

    /// Says why there are no exact distances, where states are listed up to a limit.
    pub(crate) fn not_listed(&mut self, run: &Run<'_>) {
        let why = if run.common.is_frozen() {
            "the policy is frozen (--lr 0)".to_owned()
        } else {
            format!("there are more than {} states", run.recipe.exact_up_to)
        };
        self.extend([("modes_found", json!(null)), ("modes_total", json!(null)), ("why_not_exact", json!(why))]);
    }
}

impl Run<'_> {
    /// Draws the pictures, prints the table, and with `--json` the line.
    pub(crate) fn print(&self, trained: &Trained, mut report: Report) -> Result<()> {
        let common = self.common;
        let log_z_true = report.figures.get("log_z_true").and_then(Value::as_f64);
        self.draw_training(trained, log_z_true, std::mem::take(&mut report.panels))?;
        let mut figures = trained.figures(self);
        figures.extend(COMMON.map(|name| (name, report.figures.remove(name).unwrap_or(Value::Null))));
        figures.push(("exact", report.figures.remove("exact").unwrap_or(json!(false))));
        let own = std::mem::take(&mut report.figures);
        let all = figures
            .iter()
            .map(|(name, value)| (*name, value))
            .chain(own.iter().map(|(name, value)| (name.as_str(), value)));
        let text: String = all.clone().map(|(name, value)| row(name, value)).collect();
        let line = Value::Object(all.map(|(name, value)| (name.to_owned(), value.clone())).collect());
        if let Some(run) = common.run_folder() {
            write_json(&run.result(), &line)?;
            written(&run.result());
        }
        // The table is for people: with --json, standard output is for the line alone.
        if common.json {
            tell(text.trim_end());
            print(&line)?;
        } else {
            print(text.trim_end())?;
        }
        Ok(())
    }
}

/// What the names that don't say it themselves stand for.
const WORDS: [(&str, &str); 16] = [
    ("auprc", "area under precision and recall of known edges"),
    ("auroc", "area under the ROC curve of known edges"),
    ("distinct_share", "share of visited states that are distinct"),
    ("elbo", "ELBO: an estimate of a lower bound on log Z"),
    ("ess", "effective share of samples"),
    ("eubo", "EUBO: an estimate of an upper bound on log Z"),
    ("igd", "inverted generational distance from the front of all"),
    ("its_per_s", "iterations per s"),
    ("jsd", "JSD, nats"),
    ("mean_len", "actions per trajectory, mean"),
    ("mmd", "maximum mean discrepancy"),
    ("params", "parameters"),
    ("phases_ms", "sample, score, backward, update, ms per iteration"),
    ("train_s", "training, s"),
    ("tv", "TV"),
    ("w2", "Wasserstein-2 distance"),
];

/// The name of a figure in words.
pub(super) fn words(name: &str) -> String {
    let known = WORDS.iter().find(|(known, _)| *known == name);
    known.map_or_else(|| name.replace('_', " "), |(_, words)| (*words).to_owned())
}

/// A figure in lines of text: a list of several values has one for each.
fn row(name: &str, value: &Value) -> String {
    let nested = |value: &Value| value.is_array() || value.is_object();
    match value {
        Value::Array(values) if values.iter().any(nested) => {
            let rows: String = values.iter().map(|value| format!("  {}\n", shown(value))).collect();
            format!("{}:\n{rows}", words(name))
        }
        value => format!("{:50}  {}\n", words(name), shown(value)),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Number(value) if value.is_f64() => number(value.as_f64().unwrap_or(f64::NAN)),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| format!("{} {}", words(name), shown(value)))
            .collect::<Vec<_>>()
            .join(", "),
        other => other.to_string(),
    }
}

/// A number with four digits or so.
pub(crate) fn number(value: f64) -> String {
    let plain = value == 0.0 || (1e-3..1e7).contains(&value.abs());
    if plain { format!("{value:.4}") } else { format!("{value:.3e}") }
}

/// Rows of cells with their columns aligned to the right.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |k: usize| rows.iter().filter_map(|row| row.get(k)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:>width$}"));
        cells.collect::<Vec<_>>().join("  ") + "\n"
    };
    rows.iter().map(line).collect()
}
