//! A step that a run has made: as training told it, or as the run's folder has it.

use std::collections::BTreeMap;
use std::path::Path;

use gfn::train::Record;
use gfn::{Error, Result};
use serde::Deserialize;
use serde_json::Value;

/// The figures of a step, as a line of metrics has them: those that aren't finite are `null` there.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub(crate) struct Made {
    pub(crate) step: usize,
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

impl From<&Record> for Made {
    fn from(record: &Record) -> Self {
        let stats = &record.stats;
        Self {
            step: record.step,
            reward_calls: record.reward_calls,
            loss: Some(stats.loss),
            log_z: Some(stats.log_z),
            mean_len: Some(stats.mean_len),
            states: stats.states,
            distinct: stats.distinct,
            grad_norm: Some(stats.grad_norm),
            seconds: stats.seconds,
            metrics: record.metrics.iter().map(|(name, value)| (name.clone(), Some(*value))).collect(),
        }
    }
}

/// The steps that a file of metrics has, up to that of a checkpoint; none where there is no file, and without an incomplete last one.
///
/// # Errors
/// [`Error::File`] for lines that lack a figure of every step.
pub(crate) fn steps_before(path: &Path, done: usize) -> Result<Vec<Made>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(path).map_err(|source| Error::io(path, source))?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut made = Vec::new();
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
