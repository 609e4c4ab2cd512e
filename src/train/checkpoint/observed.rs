//! What observers keep, in memory and in a checkpoint.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use tch::Tensor;

use crate::env::Env;
use crate::train::{Checkpoint, Observer, Trainer};
use crate::{Error, Result};

/// What a trainer keeps for its observers, by their names: JSON, and tensors for what is too large for that.
#[derive(Default)]
pub(in crate::train) struct Observed {
    pub(in crate::train) states: Value,
    tensors: BTreeMap<String, Vec<(String, Tensor)>>,
}

impl Observed {
    /// What the observers keep now.
    pub(in crate::train) fn of<E: Env>(observers: &mut [&mut dyn Observer<E>]) -> Result<Self> {
        let mut states = Map::new();
        let mut tensors = BTreeMap::new();
        for observer in observers {
            let (state, kept) = (observer.save()?, observer.save_tensors()?);
            let name = observer.name().to_owned();
            if !kept.is_empty() && name.contains('/') {
                return Err(Error::config(
                    "the name of an observer that keeps tensors",
                    format!("`{name}`"),
                    "a name without `/`, which divides the names of a checkpoint's sections",
                ));
            }
            let keeps = state != Value::Null || !kept.is_empty();
            if keeps && (states.contains_key(&name) || tensors.contains_key(&name)) {
                return Err(Error::config(
                    "the observers of a run",
                    format!("two of the name `{name}` that keep something"),
                    "a name of its own for each (`named`), by which a checkpoint tells them apart",
                ));
            }
            if state != Value::Null {
                states.insert(name.clone(), state);
            }
            if !kept.is_empty() {
                tensors.insert(name, kept);
            }
        }
        Ok(Self { states: Value::Object(states), tensors })
    }

    /// Gives an observer what was kept for its name, and starts it.
    pub(in crate::train) fn start<E: Env>(&self, observer: &mut dyn Observer<E>, trainer: &Trainer<E>) -> Result<()> {
        if let Some(kept) = self.tensors.get(observer.name()) {
            observer.load_tensors(kept)?;
        }
        observer.start(trainer, self.states.get(observer.name()))
    }

    /// Adds the tensors to a checkpoint, whose manifest has the JSON.
    pub(in crate::train) fn add_to(&self, checkpoint: Checkpoint) -> Checkpoint {
        self.tensors.iter().fold(checkpoint, |checkpoint, (name, tensors)| {
            let shared = tensors.iter().map(|(name, tensor)| (name.clone(), tensor.shallow_clone()));
            checkpoint.with(&format!("{SECTION}/{name}"), shared.collect())
        })
    }

    /// What a checkpoint with this JSON holds.
    pub(in crate::train) fn read(states: Value, checkpoint: &Checkpoint) -> Self {
        let mut tensors = BTreeMap::<String, Vec<_>>::new();
        for (name, tensor) in checkpoint.section(SECTION) {
            if let Some((observer, tensor_name)) = name.split_once('/') {
                tensors.entry(observer.to_owned()).or_default().push((tensor_name.to_owned(), tensor));
            }
        }
        Self { states, tensors }
    }
}

/// The section of observers' tensors, in which each has one of its own.
const SECTION: &str = "observed";
