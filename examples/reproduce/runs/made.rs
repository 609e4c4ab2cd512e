//! A step that a run has made: as training told it, or as the run's folder has it.

use gfn::train::{Metrics, Record, StepStats};
use serde_json::{Map, Value};

/// The figures of a step.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Made {
    pub(crate) step: usize,
    pub(crate) reward_calls: u64,
    pub(crate) stats: StepStats,
    /// What was measured after it, by name.
    pub(crate) metrics: Metrics,
}

impl From<&Record> for Made {
    fn from(record: &Record) -> Self {
        let Record { step, reward_calls, stats, metrics, .. } = record;
        Self { step: *step, reward_calls: *reward_calls, stats: *stats, metrics: metrics.clone() }
    }
}

impl Made {
    /// A line of metrics; the name of what it lacks, if it lacks something.
    pub(crate) fn read(mut line: Map<String, Value>) -> Result<Self, &'static str> {
        let mut count = |name| line.remove(name).as_ref().and_then(Value::as_u64).ok_or(name);
        let (step, reward_calls) = (count("step")? as usize, count("reward_calls")?);
        let (states, distinct) = (count("states")? as usize, count("distinct")? as usize);
        let mut figure = |name| line.remove(name).as_ref().and_then(number).ok_or(name);
        let (loss, log_z) = (figure("loss")?, figure("log_z")?);
        let (mean_len, grad_norm) = (figure("mean_len")?, figure("grad_norm")?);
        let seconds = line.remove("seconds").as_ref().and_then(phases).ok_or("seconds")?;
        let stats = StepStats { loss, log_z, mean_len, states, distinct, grad_norm, seconds };
        let metrics = line.into_iter().filter_map(|(name, value)| Some((name, number(&value)?))).collect();
        Ok(Self { step, reward_calls, stats, metrics })
    }
}

/// A number; JSON has null for one that isn't finite.
fn number(value: &Value) -> Option<f64> {
    if value.is_null() { Some(f64::NAN) } else { value.as_f64() }
}

fn phases(value: &Value) -> Option<[f64; 4]> {
    let numbers: Vec<f64> = value.as_array()?.iter().map(number).collect::<Option<_>>()?;
    numbers.try_into().ok()
}
