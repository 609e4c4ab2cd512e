//! Counting modes while training.

use std::ops::ControlFlow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::env::{EnumerableEnv, Rows};
use crate::metrics::ModeTracker;
use crate::policy::Policy;
use crate::train::checkpoint::to_json;
use crate::train::{Observer, Record, Trainer};
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
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// The modes found so far, and when.
    pub fn tracker(&self) -> &ModeTracker<K> {
        &self.tracker
    }
}

impl<E, P, F> Observer<E, P> for CountModes<E::Key, F>
where
    E: EnumerableEnv,
    E::Key: Serialize + DeserializeOwned,
    P: Policy<E>,
    F: FnMut(&E::States) -> Vec<bool>,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn start(&mut self, _trainer: &Trainer<E, P>, state: Option<&Value>) -> Result<()> {
        if let Some(state) = state {
            self.tracker = ModeTracker::deserialize(state).map_err(|error| Error::Contract {
                check: "a checkpoint keeps the modes that were found",
                detail: error.to_string(),
            })?;
        }
        Ok(())
    }

    fn after_step(&mut self, trainer: &Trainer<E, P>, record: &mut Record) -> Result<ControlFlow<()>> {
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
        to_json(&self.tracker)
    }
}
