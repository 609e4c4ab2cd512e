//! The statistics of a run's training steps, which are read from its metrics file after a resume.

use std::collections::BTreeMap;
use std::path::Path;

use gfn::run::Record;
use gfn::{Error, Result};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The largest number of step records in memory. Without this limit, the records of a million steps would
/// take hundreds of megabytes.
const MAX_RECORDS: usize = 1 << 16;

/// The records of all steps of a run, in order. If a run has many steps, each record combines several steps.
#[derive(Default, Debug)]
pub(crate) struct Steps {
    pub(crate) records: Vec<StepRecord>,
    /// The base-2 logarithm of the number of steps that a record combines.
    n_halvings: u32,
}

impl Steps {
    pub(crate) fn push(&mut self, record: StepRecord) {
        match self.records.last_mut() {
            Some(last) if last.n < 1 << self.n_halvings => last.absorb(record),
            _ => self.records.push(record),
        }
        if self.records.len() > MAX_RECORDS {
            self.n_halvings += 1;
            for record in std::mem::take(&mut self.records) {
                self.push(record);
            }
        }
    }
}

/// The statistics of a training step, or of several consecutive steps together. The fields are named as in
/// the metrics file, in which a number that isn't finite is `null`.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub(crate) struct StepRecord {
    pub(crate) step: usize,
    /// The number of steps that this record combines. `loss` and `mean_len` are means over these steps, and
    /// `states`, `distinct` and `seconds` are sums. All other numbers belong to the last step.
    #[serde(skip, default = "one_step")]
    pub(crate) n: usize,
    pub(crate) reward_calls: u64,
    pub(crate) loss: Option<f64>,
    pub(crate) log_z: Option<f64>,
    pub(crate) mean_len: Option<f64>,
    pub(crate) states: usize,
    pub(crate) distinct: usize,
    pub(crate) grad_norm: Option<f64>,
    #[serde(deserialize_with = "read_phases")]
    pub(crate) seconds: [f64; 4],
    /// The metrics that were measured after the step, by name.
    #[serde(flatten)]
    pub(crate) metrics: BTreeMap<String, Option<f64>>,
}

/// Reads the seconds of the phases of a step, which have names in the file.
fn read_phases<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<[f64; 4], D::Error> {
    #[derive(Deserialize)]
    struct Phases {
        sample: f64,
        score: f64,
        backward: f64,
        update: f64,
    }
    let Phases { sample, score, backward, update } = Phases::deserialize(deserializer)?;
    Ok([sample, score, backward, update])
}

fn one_step() -> usize {
    1
}

impl StepRecord {
    fn absorb(&mut self, later: Self) {
        let own = self.n as f64;
        let other = later.n as f64;
        let mean =
            |before: Option<f64>, then: Option<f64>| Some((own * before? + other * then?) / (own + other));
        self.metrics.extend(later.metrics);
        *self = Self {
            n: self.n + later.n,
            loss: mean(self.loss, later.loss),
            mean_len: mean(self.mean_len, later.mean_len),
            states: self.states + later.states,
            distinct: self.distinct + later.distinct,
            seconds: std::array::from_fn(|k| self.seconds[k] + later.seconds[k]),
            metrics: std::mem::take(&mut self.metrics),
            ..later
        };
    }
}

impl StepRecord {
    /// Converts the library's record of a step.
    ///
    /// # Errors
    /// [`Error::Contract`] if the record can't be written as JSON.
    pub(crate) fn from_record(record: &Record) -> Result<Self> {
        let parsed = serde_json::to_value(record).and_then(serde_json::from_value);
        parsed.map_err(|error| Error::contract("a record of a step must be valid as JSON", error.to_string()))
    }
}

/// Reads the records of a metrics file, up to and including step `done`. Returns no records if the file
/// doesn't exist. An incomplete last line is skipped.
///
/// # Errors
/// [`Error::File`] for a line that lacks a number that every step has.
pub(crate) fn read_steps(path: &Path, done: usize) -> Result<Steps> {
    if !path.exists() {
        return Ok(Steps::default());
    }
    let text = std::fs::read_to_string(path).map_err(|source| Error::io(path, source))?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut steps = Steps::default();
    for (k, line) in whole.lines().enumerate() {
        let refuse = |error: serde_json::Error| {
            let problem = format!("line {} isn't a line of metrics ({error})", k + 1);
            Error::file(path, problem, "give a folder that --run wrote, without changes to its files")
        };
        let line: Value = serde_json::from_str(line).map_err(refuse)?;
        // A resumed run repeats the steps after its checkpoint, so the lines of these steps are ignored.
        if line["step"].as_u64().is_some_and(|step| step > done as u64) {
            break;
        }
        steps.push(serde_json::from_value(line).map_err(refuse)?);
    }
    Ok(steps)
}
