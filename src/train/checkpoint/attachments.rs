//! State of code around the trainer, which its checkpoints carry.

use std::collections::BTreeMap;

use serde_json::Value;
use tch::Tensor;

use super::Checkpoint;
use super::persist::Tensors;
use crate::{Error, Result};

/// The section of these tensors in a checkpoint; each owner has a section below it.
const SECTION: &str = "attached";

/// States by the names of their owners (observers, for example): JSON, and tensors for values that are too large for JSON.
#[derive(Debug, Default)]
pub(in crate::train) struct Attachments(BTreeMap<String, (Value, Tensors)>);

impl Attachments {
    pub(in crate::train) fn get(&self, name: &str) -> Option<(&Value, &[(String, Tensor)])> {
        self.0.get(name).map(|(state, tensors)| (state, tensors.as_slice()))
    }

    /// Replaces the state of an owner; an empty state removes it.
    pub(in crate::train) fn set(&mut self, name: &str, state: Value, tensors: Tensors) -> Result<()> {
        if !tensors.is_empty() && name.contains('/') {
            return Err(Error::config(
                "the name of an observer that keeps tensors",
                format!("`{name}`"),
                "a name without `/`, which divides the names of a checkpoint's sections",
            ));
        }
        self.0.remove(name);
        if !state.is_null() || !tensors.is_empty() {
            self.0.insert(name.to_owned(), (state, tensors));
        }
        Ok(())
    }

    /// The JSON states, for the manifest.
    pub(super) fn states(&self) -> Value {
        let states = self.0.iter().filter(|(_, (state, _))| !state.is_null());
        states.map(|(name, (state, _))| (name.clone(), state.clone())).collect::<serde_json::Map<_, _>>().into()
    }

    /// Adds the tensors to a checkpoint.
    pub(super) fn add_to(&self, mut checkpoint: Checkpoint) -> Checkpoint {
        for (name, (_, tensors)) in &self.0 {
            let shared = tensors.iter().map(|(name, tensor)| (name.clone(), tensor.shallow_clone()));
            checkpoint = checkpoint.with(&format!("{SECTION}/{name}"), shared.collect());
        }
        checkpoint
    }

    /// Reads the attachments of a checkpoint whose manifest has these JSON states.
    pub(super) fn read(states: &Value, checkpoint: &Checkpoint) -> Self {
        let mut all = BTreeMap::<String, (Value, Tensors)>::new();
        for (name, state) in states.as_object().into_iter().flatten() {
            all.insert(name.clone(), (state.clone(), Vec::new()));
        }
        for (name, tensor) in checkpoint.section(SECTION) {
            if let Some((owner, tensor_name)) = name.split_once('/') {
                let (_, tensors) = all.entry(owner.to_owned()).or_default();
                tensors.push((tensor_name.to_owned(), tensor));
            }
        }
        Self(all)
    }
}
