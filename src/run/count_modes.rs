//! An observer that counts modes while training.

use std::ops::ControlFlow;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tch::Tensor;

use crate::env::{EnumerableEnv, Rows};
use crate::io::{NamedTensors, malformed};
use crate::metrics::{ModeCount, ModeTracker};
use crate::run::{Observer, Record};
use crate::train::{TrainEnv, Trainer};
use crate::{Error, Result};

/// An observer that counts the modes among the objects of a run's batches with a [`ModeTracker`], and adds
/// the metric `modes_found` to each record.
///
/// The count includes modes that exploration or local search found. The number of modes among samples of the
/// policy alone is [`modes_found`](crate::metrics::modes_found). The modes are saved in checkpoints.
#[derive(Clone, Debug)]
pub struct CountModes<K, F> {
    name: String,
    tracker: ModeTracker<K>,
    is_mode: F,
}

impl<K: Clone + Ord, F> CountModes<K, F> {
    /// Returns an observer that counts the different objects for which `is_mode` is `true`. Objects with
    /// equal keys count as one object.
    pub fn new<S>(is_mode: F) -> Self
    where
        F: FnMut(&S) -> Vec<bool>,
    {
        Self { name: "modes".to_owned(), tracker: ModeTracker::new(), is_mode }
    }

    /// Sets the name of the observer's state in checkpoints, instead of `modes`. The metric is then named
    /// `NAME_found`. Several mode counters in a run need different names.
    #[must_use]
    pub fn with_name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Returns the modes found so far, with the steps at which they were found.
    pub fn tracker(&self) -> &ModeTracker<K> {
        &self.tracker
    }
}

impl<E, F> Observer<E> for CountModes<E::Key, F>
where
    E: EnumerableEnv + TrainEnv,
    E::Key: Serialize + DeserializeOwned,
    F: FnMut(&E::States) -> Vec<bool>,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn start(&mut self, trainer: &Trainer<E>, state: Option<&Value>) -> Result<()> {
        trainer.check_sees_all("counting modes while training")?;
        match state.map(|state| state["found"].as_u64()) {
            Some(found) if found != Some(self.tracker.n_modes() as u64) => Err(malformed("found")),
            _ => Ok(()),
        }
    }

    fn after_step(&mut self, trainer: &Trainer<E>, record: &mut Record) -> Result<ControlFlow<()>> {
        if let Some(latest) = trainer.latest() {
            let objects = latest.terminal_states();
            let is_mode = (self.is_mode)(objects);
            let rows: Vec<usize> =
                (0..objects.len()).filter(|&row| is_mode.get(row) == Some(&true)).collect();
            let keys = trainer.env().keys(&objects.select(&rows));
            self.tracker.add(record.step, record.reward_calls, keys);
        }
        record.metrics.insert(format!("{}_found", self.name), self.tracker.n_modes() as f64);
        Ok(ControlFlow::Continue(()))
    }

    fn save(&mut self) -> Result<Value> {
        Ok(json!({ "found": self.tracker.n_modes() }))
    }

    /// Returns the number of modes over time, and the modes' keys as JSON in a tensor of bytes. The keys
    /// aren't part of the JSON state, because a checkpoint's JSON file must stay small, and a run may find
    /// millions of modes.
    fn save_tensors(&mut self) -> Result<Vec<(String, Tensor)>> {
        let keys = serde_json::to_vec(self.tracker.set())
            .map_err(|error| Error::contract("keys of modes must be values that JSON can hold", error))?;
        let column = |value: fn(&ModeCount) -> i64| {
            Tensor::from_slice(&self.tracker.curve().iter().map(value).collect::<Vec<_>>())
        };
        Ok(vec![
            ("keys".into(), Tensor::from_slice(&keys)),
            ("steps".into(), column(|point| point.step as i64)),
            ("reward_calls".into(), column(|point| point.reward_calls as i64)),
            ("modes".into(), column(|point| point.modes as i64)),
        ])
    }

    fn load_tensors(&mut self, tensors: &[(String, Tensor)]) -> Result<()> {
        let named = NamedTensors(tensors);
        let keys = serde_json::from_slice(&named.numbers::<u8>("keys")?).map_err(|_| malformed("keys"))?;
        let n = named.numbers::<i64>("steps")?.len();
        let column = |name| {
            let values = named.column(named.numbers::<i64>(name)?, name, n)?;
            if values.iter().all(|&value| value >= 0) { Ok(values) } else { Err(malformed(name)) }
        };
        let [steps, reward_calls, modes] = [column("steps")?, column("reward_calls")?, column("modes")?];
        let point = |k: usize| ModeCount {
            step: steps[k] as usize,
            reward_calls: reward_calls[k] as u64,
            modes: modes[k] as usize,
        };
        self.tracker =
            ModeTracker::from_parts(keys, (0..n).map(point).collect()).ok_or_else(|| malformed("modes"))?;
        Ok(())
    }
}
