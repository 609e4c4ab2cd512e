//! The result of a task: its figures for people, one line of JSON for programs.

use gfn::Result;
use gfn::metrics::Distances;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::files::{print, tell, written};
use super::folder::write_json;
use super::{Run, TrainingStats};
use crate::plot::Panel;

/// The report of a task: what training left, its figures, and panels beside the curves of training.
pub(crate) struct Report {
    pub(crate) stats: TrainingStats,
    pub(super) figures: Map<String, Value>,
    pub(crate) panels: Vec<Panel>,
}

/// The figures that every task has, `null` if they aren't known.
const COMMON: [&str; 4] = ["log_z_true", "l1", "tv", "jsd"];

impl Report {
    pub(crate) fn new(stats: TrainingStats) -> Self {
        let mut report = Self { stats, figures: Map::new(), panels: Vec::new() };
        COMMON.iter().for_each(|name| report.set(name, Value::Null));
        report.set("exact", false);
        report
    }

    /// Sets a figure by its name in the line of JSON.
    pub(crate) fn set(&mut self, name: &str, value: impl Serialize) {
        self.figures.insert(name.to_owned(), json!(value));
    }

    /// Sets all figures of a JSON object.
    pub(crate) fn extend(&mut self, figures: Value) {
        if let Value::Object(figures) = figures {
            self.figures.extend(figures);
        }
    }

    /// Sets log Z of the target, if it is known.
    pub(crate) fn set_log_z(&mut self, log_z: Option<f64>) {
        log_z.iter().for_each(|log_z| self.set("log_z_true", log_z));
    }

    /// Sets the distances, which are exact.
    pub(crate) fn exact(&mut self, distances: &Distances) {
        self.exact_mean(std::slice::from_ref(distances));
    }

    /// Sets L1, TV and JSD: means of exact distances.
    pub(crate) fn exact_mean(&mut self, distances: &[Distances]) {
        let n = distances.len() as f64;
        let mean = |of: fn(&Distances) -> f64| distances.iter().map(|one| of(one) / n).sum::<f64>();
        self.extend(json!({ "l1": mean(|d| d.l1), "tv": mean(|d| d.tv), "jsd": mean(|d| d.jsd), "exact": true }));
    }

    /// Says why there are no exact distances.
    pub(crate) fn not_listed(&mut self, run: &Run<'_>) {
        let why = if run.common.is_frozen() {
            "the policy is frozen (--lr 0)".to_owned()
        } else {
            format!("there are more than {} states", run.recipe.exact_up_to)
        };
        self.extend(json!({ "modes_found": null, "modes_total": null, "why_not_exact": why }));
    }
}

impl Run<'_> {
    /// Draws the pictures, prints the figures for people, and with `--json` the line.
    pub(crate) fn print(&self, mut report: Report) -> Result<()> {
        self.draw_training(&mut report)?;
        report.extend(json!({ "example": self.example, "seed": self.common.seed, "steps": self.steps(),
            "threads": self.common.threads, "device": self.common.device.to_string() }));
        report.extend(report.stats.figures());
        let line = Value::Object(report.figures);
        if let Some(run) = self.common.run_folder() {
            write_json(&run.result(), &line)?;
            written(&run.result());
        }
        // With --json, standard output is for the line alone.
        if self.common.json {
            tell(format_args!("{line:#}"));
            return print(line);
        }
        print(format_args!("{line:#}"))
    }
}

/// Returns a number with four digits or so.
pub(crate) fn number(value: f64) -> String {
    let is_plain = value == 0.0 || (1e-3..1e7).contains(&value.abs());
    if is_plain { format!("{value:.4}") } else { format!("{value:.3e}") }
}

/// Returns rows of cells with their columns aligned to the right.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let width = |k: usize| rows.iter().filter_map(|row| row.get(k)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(k, cell)| format!("{cell:>0$}", width(k)));
        cells.collect::<Vec<_>>().join("  ") + "\n"
    };
    rows.iter().map(line).collect()
}
