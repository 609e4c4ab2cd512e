//! What a checkpoint keeps of a trainer's parts: optimizer, sources, companions.

use std::collections::BTreeMap;

use tch::Tensor;

use super::Checkpoint;
use crate::env::Env;
use crate::optim::Optimizer;
use crate::{Error, Result};

/// Tensors by name: what a part keeps.
pub(super) type Tensors = Vec<(String, Tensor)>;

/// The sections of a trainer's own parts, and of the model.
const RESERVED: [&str; 8] =
    ["model", "judged_objects", "replay", "data", "teacher", "average", "target_network", "novelty"];

/// A part of a trainer: each has a section of the checkpoint for what it must keep, so that a run that resumes goes on bit for bit. A
/// part that keeps nothing needs no more than a name.
pub trait Persist<E: Env>: Send {
    /// Its section of the checkpoint: a name that no other part has.
    fn name(&self) -> &str;

    /// A noun for it, with an article, for messages.
    fn describe(&self) -> String {
        format!("a part named `{}`", self.name())
    }

    /// The part of it that a checkpoint keeps: tensors by name, finite where they are floating-point numbers.
    ///
    /// # Errors
    /// Any error that keeps it from being saved.
    fn state(&self, _env: &E) -> Result<Vec<(String, Tensor)>> {
        Ok(Vec::new())
    }

    /// Goes on from what [`state`](Self::state) gave.
    ///
    /// # Errors
    /// For the state of another part, and nothing is changed then.
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

/// Refuses a name that other parts have, or that no section can have.
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

/// What each part keeps; nothing is left of those that keep nothing.
pub(super) fn kept<'a, E: Env + 'a>(
    env: &E,
    parts: impl IntoIterator<Item = &'a (dyn Persist<E> + 'a)>,
) -> Result<Vec<(&'a dyn Persist<E>, Tensors)>> {
    let mut kept = Vec::new();
    for part in parts {
        kept.push((part, part.state(env)?));
    }
    kept.retain(|(_, tensors)| !tensors.is_empty());
    Ok(kept)
}

/// Lets all parts go on from a checkpoint that says what it keeps; where one of them can't, none of them is changed.
pub(super) fn load<E: Env>(
    env: &E,
    parts: &mut [&mut dyn Persist<E>],
    checkpoint: &Checkpoint,
    there: &BTreeMap<String, String>,
    refuse: impl Fn(String) -> Error,
) -> Result<()> {
    let before: Vec<Tensors> = parts.iter().map(|part| part.state(env)).collect::<Result<_>>()?;
    let here = parts.iter().zip(&before).filter(|(_, tensors)| !tensors.is_empty());
    let here: BTreeMap<String, String> = here.map(|(part, _)| (part.name().to_owned(), part.describe())).collect();
    let only = |one: &BTreeMap<_, String>, other: &BTreeMap<String, String>| {
        one.iter().find(|(name, _)| !other.contains_key(*name)).map(|(_, noun)| noun.clone())
    };
    if let Some(noun) = only(there, &here).or_else(|| only(&here, there)) {
        return Err(refuse(format!("one of the two runs has {noun}, the other has none")));
    }
    for i in (0..parts.len()).filter(|&i| !before[i].is_empty()) {
        let part = &mut parts[i];
        let Err(error) = part.load_state(env, &checkpoint.section(part.name())) else { continue };
        let problem = format!("{} can't be used here ({error})", part.describe());
        let mut loaded = parts[..i].iter_mut().zip(&before).filter(|(_, own)| !own.is_empty());
        loaded.try_for_each(|(part, own)| part.load_state(env, own))?;
        return Err(refuse(problem));
    }
    Ok(())
}
