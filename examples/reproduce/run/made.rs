//! A step that a run has made: as training told it, or as the run's folder has it.

use std::collections::BTreeMap;
use std::path::Path;

use gfn::run::Record;
use gfn::{Error, Result};
use serde::Deserialize;
use serde_json::Value;

/// Entries that are kept at most: the curves of a million steps would take hundreds of megabytes.
const MOST: usize = 1 << 16;

/// All steps of a run in their order: each one, or of many steps so many together.
#[derive(Default, Debug)]
pub(crate) struct Steps {
    pub(crate) kept: Vec<Made>,
    /// Halvings so far: `2^halved` steps stand together.
    halved: u32,
}

impl Steps {
    pub(crate) fn push(&mut self, made: Made) {
        match self.kept.last_mut() {
            Some(last) if last.n < 1 << self.halved => last.absorb(made),
            _ => self.kept.push(made),
        }
        if self.kept.len() > MOST {
            self.halved += 1;
            for made in std::mem::take(&mut self.kept) {
                self.push(made);
            }
        }
    }
}

/// The figures of a step, as a line of metrics has them: those that aren't finite are `null` there.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub(crate) struct Made {
    pub(crate) step: usize,
    /// The number of steps that stand together; what follows is the last one's, but for means of the loss and of the length, and sums.
    #[serde(skip, default = "one")]
    pub(crate) n: usize,
    pub(crate) reward_calls: u64,
    pub(crate) loss: Option<f64>,
    pub(crate) log_z: Option<f64>,
    pub(crate) mean_len: Option<f64>,
    pub(crate) states: usize,
    pub(crate) distinct: usize,
    pub(crate) grad_norm: Option<f64>,
    pub(crate) seconds: [f64; 4],
    /// What was measured after it, by name.
    #[serde(flatten)]
    pub(crate) metrics: BTreeMap<String, Option<f64>>,
}

fn one() -> usize {
    1
}

impl Made {
    fn absorb(&mut self, later: Self) {
        let (own, other) = (self.n as f64, later.n as f64);
        let mean = |before: Option<f64>, then: Option<f64>| Some((own * before? + other * then?) / (own + other));
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

impl Made {
    /// Takes the figures of a record, as its line of metrics has them.
    ///
    /// # Errors
    /// [`Error::Contract`] if it can't be written as JSON.
    pub(crate) fn from_record(record: &Record) -> Result<Self> {
        let made = serde_json::to_value(record).and_then(serde_json::from_value);
        made.map_err(|error| Error::contract("a record is JSON", error.to_string()))
    }
}

/// The steps that a file of metrics has, up to that of a checkpoint; none where there is no file, and without an incomplete last one.
///
/// # Errors
/// [`Error::File`] for lines that lack a figure of every step.
pub(crate) fn steps_before(path: &Path, done: usize) -> Result<Steps> {
    if !path.exists() {
        return Ok(Steps::default());
    }
    let text = std::fs::read_to_string(path).map_err(|source| Error::io(path, source))?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut made = Steps::default();
    for (k, line) in whole.lines().enumerate() {
        let refuse = |error: serde_json::Error| {
            let problem = format!("line {} isn't a line of metrics ({error})", k + 1);
            Error::file(path, problem, "give a folder that --run wrote, as it was written")
        };
        let line: Value = serde_json::from_str(line).map_err(refuse)?;
        // What is behind is of a part that will be made again.
        if line["step"].as_u64().is_some_and(|step| step > done as u64) {
            break;
        }
        made.push(serde_json::from_value(line).map_err(refuse)?);
    }
    Ok(made)
}
