//! Counting modes while training.

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

/// An observer that counts the modes among the objects that a run trains on with a [`ModeTracker`], and adds
/// `modes_found` to each record.
///
/// It counts modes that the sampler has *seen*, including exploration and local search, not modes that the policy has
/// learned ([`modes_found`](crate::metrics::modes_found) counts those). The modes are saved in checkpoints.
#[derive(Clone, Debug)]
pub struct CountModes<K, F> {
    name: String,
    tracker: ModeTracker<K>,
    is_mode: F,
}

impl<K: Clone + Ord, F> CountModes<K, F> {
    /// Counts the objects for which `is_mode` is true, by the environment's keys.
    pub fn new<S>(is_mode: F) -> Self
    where
        F: FnMut(&S) -> Vec<bool>,
    {
        Self { name: "modes".to_owned(), tracker: ModeTracker::new(), is_mode }
    }

    /// Sets a name other than `modes` for checkpoints, and `NAME_found` for the figure. Several such observers in a run
    /// need different names.
    #[must_use]
    pub fn with_name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// The modes found so far, and when.
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
            Some(found) if found != Some(self.tracker.found() as u64) => Err(malformed("found")),
            _ => Ok(()),
        }
    }

    fn after_step(&mut self, trainer: &Trainer<E>, record: &mut Record) -> Result<ControlFlow<()>> {
        if let Some(latest) = trainer.latest() {
            let objects = latest.terminal_states();
            let is_mode = (self.is_mode)(objects);
            let rows: Vec<usize> = (0..objects.len()).filter(|&row| is_mode.get(row) == Some(&true)).collect();
            let keys = trainer.env().keys(&objects.select(&rows));
            self.tracker.add(record.step, record.reward_calls, keys);
        }
        record.metrics.insert(format!("{}_found", self.name), self.tracker.found() as f64);
        Ok(ControlFlow::Continue(()))
    }

    fn save(&mut self) -> Result<Value> {
        Ok(json!({ "found": self.tracker.found() }))
    }

    /// The keys as JSON in bytes, which needs no more memory than they do; a manifest has no room for a million.
    fn save_tensors(&mut self) -> Result<Vec<(String, Tensor)>> {
        let keys = serde_json::to_vec(self.tracker.set())
            .map_err(|error| Error::contract("keys of modes can be written as JSON", error))?;
        let column = |of: &dyn Fn(&ModeCount) -> i64| {
            Tensor::from_slice(&self.tracker.curve().iter().map(of).collect::<Vec<_>>())
        };
        Ok(vec![
            ("keys".into(), Tensor::from_slice(&keys)),
            ("steps".into(), column(&|point| point.step as i64)),
            ("reward_calls".into(), column(&|point| point.reward_calls as i64)),
            ("modes".into(), column(&|point| point.modes as i64)),
        ])
    }

    fn load_tensors(&mut self, tensors: &[(String, Tensor)]) -> Result<()> {
        let named = NamedTensors(tensors);
        let keys = serde_json::from_slice(&named.numbers::<u8>("keys")?).map_err(|_| malformed("keys"))?;
        let column = |name| -> Result<Vec<u64>> {
            let values = named.numbers::<i64>(name)?.into_iter().map(u64::try_from);
            values.collect::<std::result::Result<_, _>>().map_err(|_| malformed(name))
        };
        let (steps, modes) = (column("steps")?, column("modes")?);
        let reward_calls = named.column(column("reward_calls")?, "reward_calls", steps.len())?;
        let modes = named.column(modes, "modes", steps.len())?;
        let points = steps.into_iter().zip(reward_calls).zip(modes);
        let curve = points.map(|((step, reward_calls), modes)| ModeCount {
            step: step as usize,
            reward_calls,
            modes: modes as usize,
        });
        self.tracker = ModeTracker::from_parts(keys, curve.collect()).ok_or_else(|| malformed("modes"))?;
        Ok(())
    }
}
