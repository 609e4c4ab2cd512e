//! The result of a task: a table for people, one line of JSON for programs.

use gfn::Result;
use gfn::metrics::Distances;
use gfn_plot::Panel;
use gfn_plot::{Cell, Table};
use serde_json::{Map, Value, json};

use super::words::{cell, fields, rows, words};
use super::{Common, Trained, members};
use crate::runs::folder::write_json;

/// How far the learned distribution is from the target.
#[derive(Clone, Debug, Default)]
pub(crate) struct Distance {
    /// Sum of absolute differences.
    pub(crate) l1: Option<f64>,
    /// Half of it.
    pub(crate) tv: Option<f64>,
    /// Jensen-Shannon divergence in nats.
    pub(crate) jsd: Option<f64>,
    /// Whether these are exact, not estimated from samples.
    pub(crate) exact: bool,
    /// Why they aren't, where they could have been.
    pub(crate) why_not_exact: Option<String>,
}

impl Distance {
    /// No exact distance, where states are listed up to a limit.
    pub(crate) fn not_listed(common: &Common, limit: usize) -> Self {
        Self::unknown(match common.is_frozen() {
            true => "the policy is frozen (--lr 0)".into(),
            false => format!("there are more than {limit} states"),
        })
    }

    /// No exact distance for a reason.
    pub(crate) fn unknown(why: String) -> Self {
        Self { why_not_exact: Some(why), ..Self::default() }
    }
}

impl From<Distances> for Distance {
    fn from(exact: Distances) -> Self {
        Self { l1: Some(exact.l1), tv: Some(exact.tv), jsd: Some(exact.jsd), exact: true, why_not_exact: None }
    }
}

/// What a task reports besides what training left.
#[derive(Default)]
pub(crate) struct Report {
    /// The title of its pictures.
    pub(crate) title: String,
    pub(crate) log_z_true: Option<f64>,
    pub(crate) distance: Distance,
    /// The task's own keys.
    pub(crate) extra: Vec<(&'static str, Value)>,
    /// Pictures beside the curves of training.
    pub(crate) panels: Vec<Panel>,
}

impl Report {
    /// Draws the pictures, prints the table and what was written, and with `--json` the line: the first member does.
    pub(crate) fn print(mut self, common: &Common, trained: &Trained) -> Result<()> {
        if !members::is_first() {
            return Ok(());
        }
        trained.draw(common, &self.title, self.log_z_true, std::mem::take(&mut self.panels))?;
        let line = self.line(common, trained);
        if let Some(run) = common.run_folder() {
            write_json(&run.result(), &line)?;
            common.written.add(&run.result());
        }
        let (table, written) = (self.table(trained), common.written.lines());
        // The table is for people: with --json, standard output is for the line alone.
        if common.json {
            eprint!("{table}{written}");
            println!("{line}");
        } else {
            print!("{table}{written}");
        }
        Ok(())
    }

    fn table(&self, trained: &Trained) -> String {
        let mut shown: Vec<[Cell; 2]> = Vec::new();
        let mut row = |name: &str, cell: Cell| shown.push([name.into(), cell]);
        row("parameters", Cell::Integer(trained.params.into()));
        row("training, s", trained.train_s.into());
        row("iterations per s", known(trained.its_per_s));
        row("actions per trajectory, mean", known(trained.mean_len));
        row("share of visited states that are distinct", known(trained.distinct_share));
        for (name, seconds) in ["sample", "score", "backward", "update"].iter().zip(trained.phases) {
            row(&format!("  {name}, ms per iteration"), known(1e3 * seconds));
        }
        row("reward calls", Cell::Integer(trained.reward_calls.into()));
        if let Some(seen) = trained.modes_seen() {
            row("modes seen in training", seen.into());
        }
        row("loss", known(trained.loss));
        row("log Z", known(trained.log_z));
        let kind = if self.distance.exact { "exact" } else { "sampled" };
        // Where a part of the probability wasn't followed, the rest gives a bound.
        let is_bound = self.extra.contains(&("jsd_is_upper_bound", json!(true)));
        let of_jsd = if is_bound { "at most" } else { kind };
        for (name, value) in [
            ("log Z, true".to_owned(), self.log_z_true),
            (format!("L1, {kind}"), self.distance.l1),
            (format!("TV, {kind}"), self.distance.tv),
            (format!("JSD, {of_jsd}, nats"), self.distance.jsd),
        ] {
            if let Some(value) = value {
                row(&name, value.into());
            }
        }
        let mut lists = String::new();
        for (name, value) in &self.extra {
            match (cell(name, value), value) {
                (Some(cell), _) => shown.push([words(name).into(), cell]),
                (None, Value::Object(values)) => {
                    shown.push([words(name).into(), "".into()]);
                    shown.extend(fields(values));
                }
                (None, value) => {
                    let values = value.as_array().map_or(&[][..], Vec::as_slice);
                    lists += &format!("\n{}\n\n{}", words(name), rows(name, values));
                }
            }
        }
        let table = shown.into_iter().fold(Table::new(["", "value"]), Table::row);
        let why = self.distance.why_not_exact.as_ref().filter(|_| !self.distance.exact);
        let why = why.map_or_else(String::new, |why| format!("No exact distances: {why}.\n"));
        format!("{table}{lists}\n{why}")
    }

    fn line(&self, common: &Common, trained: &Trained) -> Value {
        let states_per_s = trained.its_per_s * trained.batch as f64 * trained.mean_len;
        let mut line = json!({
            "example": trained.example,
            "seed": common.seed,
            "steps": trained.steps,
            "batch": trained.batch,
            "threads": common.threads,
            "members": trained.members,
            "device": common.device.to_string(),
            "params": trained.params,
            "train_s": trained.train_s,
            "its_per_s": trained.its_per_s,
            "mean_len": trained.mean_len,
            "states_per_s": states_per_s,
            "loss": trained.loss,
            "log_z": trained.log_z,
            "log_z_true": self.log_z_true,
            "distinct_share": trained.distinct_share,
            "reward_calls": trained.reward_calls,
            "modes_seen": trained.modes_seen(),
            "phases_ms": trained.phases.map(|s| 1e3 * s),
            "l1": self.distance.l1,
            "tv": self.distance.tv,
            "jsd": self.distance.jsd,
            "exact": self.distance.exact,
        });
        if let Some(object) = line.as_object_mut() {
            object.extend(self.extra.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect::<Map<_, _>>());
        }
        line
    }
}

/// A figure of training; NaN where no step was made.
fn known(value: f64) -> Cell {
    if value.is_nan() { Cell::Missing } else { value.into() }
}

/// Counts the most memory that is held from here on, where the system lets it.
pub(crate) fn forget_peak_memory() {
    // Where it doesn't, the peak is that of all of the process, which is no less.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// The most memory that the process has held, where the system says so.
pub(crate) fn peak_memory_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kib / 1024.0)
}
