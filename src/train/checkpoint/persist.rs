//! The states of a trainer's parts (optimizer, sources, companions) in a checkpoint.

use std::collections::BTreeMap;

use tch::Tensor;

use super::Checkpoint;
use crate::env::Env;
use crate::optim::Optimizer;
use crate::{Error, Result};

/// The state of a part: tensors by name.
pub(super) type Tensors = Vec<(String, Tensor)>;

/// The sections of a trainer's own parts, and of the model.
const RESERVED: [&str; 8] =
    ["model", "attached", "policy", "replay", "data", "average", "target_network", "gradient_sum"];

/// A part of a trainer with a section of the checkpoint for its state, so that a resumed run equals the uninterrupted one bit for bit. A part
/// without a state needs only a name.
pub trait Persist<E: Env>: Send {
    /// The name of its section in a checkpoint, which no other part has.
    fn name(&self) -> &str;

    /// A noun with an article, for messages.
    fn describe(&self) -> String {
        format!("a part named `{}`", self.name())
    }

    /// Returns the state that a checkpoint stores: tensors by name. Floating-point numbers must be finite.
    ///
    /// # Errors
    /// Any error that prevents saving.
    fn state(&self, _env: &E) -> Result<Vec<(String, Tensor)>> {
        Ok(Vec::new())
    }

    /// Restores a state that [`state`](Self::state) returned.
    ///
    /// # Errors
    /// Any error for the state of another part; nothing may change then.
    fn load_state(&mut self, _env: &E, _state: &[(String, Tensor)]) -> Result<()> {
        Ok(())
    }
}

impl<E: Env> Persist<E> for Box<dyn Optimizer> {
    fn name(&self) -> &str {
        self.as_ref().name()
    }
    fn describe(&self) -> String {
        format!("an optimiser's state (`{}`)", self.as_ref().name())
    }
    fn state(&self, _env: &E) -> Result<Tensors> {
        self.as_ref().state()
    }
    fn load_state(&mut self, _env: &E, state: &[(String, Tensor)]) -> Result<()> {
        self.as_mut().load_state(state)
    }
}

/// Refuses the name of another part, and a name that a section can't have.
pub(in crate::train) fn check_name<'a>(name: &str, mut taken: impl Iterator<Item = &'a str>) -> Result<()> {
    if name.is_empty() || name.contains('/') || RESERVED.contains(&name) || taken.any(|other| other == name) {
        Err(Error::config(
            "the name of a source or companion",
            format!("`{name}`"),
            "a name without `/` that no other part of the trainer has: a checkpoint tells them apart by it",
        ))
    } else {
        Ok(())
    }
}

/// Returns the state of every part that has any.
pub(super) fn states<'a, E: Env + 'a>(
    env: &E,
    parts: impl IntoIterator<Item = &'a (dyn Persist<E> + 'a)>,
) -> Result<Vec<(&'a dyn Persist<E>, Tensors)>> {
    let mut states = Vec::new();
    for part in parts {
        let tensors = part.state(env)?;
        if !tensors.is_empty() {
            states.push((part, tensors));
        }
    }
    Ok(states)
}

/// Restores all parts from a checkpoint with these parts (nouns by name). If one of them fails, none of them is changed.
pub(super) fn restore<E: Env>(
    env: &E,
    parts: &mut [&mut dyn Persist<E>],
    checkpoint: &Checkpoint,
    saved: &BTreeMap<String, String>,
    refuse: impl Fn(String) -> Error,
) -> Result<()> {
    let before: Vec<Tensors> = parts.iter().map(|part| part.state(env)).collect::<Result<_>>()?;
    let mut present = BTreeMap::new();
    for (part, tensors) in parts.iter().zip(&before) {
        if !tensors.is_empty() {
            present.insert(part.name().to_owned(), part.describe());
        }
    }
    let only = |one: &BTreeMap<_, String>, other: &BTreeMap<String, String>| {
        one.iter().find(|(name, _)| !other.contains_key(*name)).map(|(_, noun)| noun.clone())
    };
    if let Some(noun) = only(saved, &present).or_else(|| only(&present, saved)) {
        return Err(refuse(format!("one of the two runs has {noun}, the other has none")));
    }
    for i in 0..parts.len() {
        if before[i].is_empty() {
            continue;
        }
        let part = &mut parts[i];
        let Err(error) = part.load_state(env, &checkpoint.section(part.name())) else { continue };
        let problem = format!("{} can't be used here ({error})", part.describe());
        for (part, tensors) in parts[..i].iter_mut().zip(&before) {
            if !tensors.is_empty() {
                part.load_state(env, tensors)?;
            }
        }
        return Err(refuse(problem));
    }
    Ok(())
}
