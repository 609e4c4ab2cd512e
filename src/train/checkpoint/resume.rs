//! Making a trainer's checkpoint, and resuming a trainer from a checkpoint.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tch::Tensor;

use super::differences::describe_changes;
use super::{LAYOUT, Persist};
use crate::env::Env;
use crate::error::Warning;
use crate::policy::Policy;
use crate::train::{Checkpoint, Context, TrainEnv, Trainer};
use crate::{Error, Result, Rng};

/// The prefix of the sections that hold the tensors of attached states (`Trainer::attach`): the state with
/// the name `NAME` has the section `attached/NAME`.
pub(super) const ATTACHED: &str = "attached";

/// The JSON state of a trainer in its checkpoint.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    rng: Rng,
    /// The id of the run, which a resumed run keeps.
    run_id: u64,
    /// The descriptions of all parts of the trainer that have a state, for error messages. Each key is the
    /// name of the part's section in the checkpoint.
    parts: BTreeMap<String, String>,
    objective: String,
    objective_settings: Value,
    reward_calls: u64,
    description: Value,
    /// The user's text for readers of the checkpoint.
    note: Value,
    /// The settings of the environment ([`Env::settings`]).
    #[serde(default)]
    env: Value,
    /// The settings of the policy ([`Policy::settings`]).
    #[serde(default)]
    policy: Value,
    /// The JSON parts of the states that observers and other code attached to the trainer, by name.
    attachments: BTreeMap<String, Value>,
    /// The trainer's configuration as JSON; null if it has a custom schedule.
    settings: Value,
    /// The number of replicas that train as one.
    replicas: usize,
}

/// The states of a trainer's parts, by the names of their sections in the checkpoint. Each entry holds the
/// description of the part and its named tensors.
type PartStates = BTreeMap<String, (String, Vec<(String, Tensor)>)>;

/// Returns all parts of a trainer that may have a section in a checkpoint. Sources come last, so that errors
/// of other parts are found before a replay buffer is restored, which takes longest.
pub(in crate::train) fn parts<E: TrainEnv>(trainer: &Trainer<E>) -> Vec<&dyn Persist<E>> {
    let mut parts: Vec<&dyn Persist<E>> = Vec::new();
    parts.extend(trainer.optimizer.iter().map(|part| part as &dyn Persist<E>));
    parts.extend(trainer.context.average.iter().map(|part| part as &dyn Persist<E>));
    parts.extend(trainer.companions.iter().map(|part| part.as_ref() as &dyn Persist<E>));
    parts.extend(trainer.sources.iter().rev().map(|part| part as &dyn Persist<E>));
    parts
}

/// Returns the state of every part that has a state.
fn part_states<E: TrainEnv>(trainer: &Trainer<E>) -> Result<PartStates> {
    let mut states = PartStates::new();
    for part in parts(trainer) {
        let tensors = part.state(trainer.env())?;
        if !tensors.is_empty() {
            states.insert(part.name().to_owned(), (part.describe(), tensors));
        }
    }
    Ok(states)
}

/// Returns a checkpoint of a trainer, with the states of all its parts.
pub(in crate::train) fn make_checkpoint<E: TrainEnv>(trainer: &Trainer<E>) -> Result<Checkpoint> {
    let Context { env, policy, objective, config, step, group, .. } = &trainer.context;
    let parameters = policy.parameters().ok_or_else(no_parameters)?;
    let states = part_states(trainer)?;
    let attachments = trainer.attachments.iter();
    let state = to_json(&State {
        rng: trainer.rng.clone(),
        run_id: trainer.run_id,
        parts: states.iter().map(|(name, (noun, _))| (name.clone(), noun.clone())).collect(),
        objective: objective.name().to_owned(),
        objective_settings: objective.settings(),
        reward_calls: trainer.reward_calls(),
        description: trainer.description.clone(),
        note: trainer.note.clone(),
        env: env.settings(),
        policy: policy.settings(),
        attachments: attachments.map(|(name, (state, _))| (name.clone(), state.clone())).collect(),
        settings: serde_json::to_value(config).unwrap_or_default(),
        replicas: group.size(),
    })?;
    let mut checkpoint = Checkpoint::new(parameters, *step as u64, state)?;
    for (name, (_, tensors)) in states {
        checkpoint = checkpoint.with(&name, tensors);
    }
    for (name, (_, tensors)) in &trainer.attachments {
        let shared = tensors.iter().map(|(name, tensor)| (name.clone(), tensor.shallow_clone()));
        checkpoint = checkpoint.with(&format!("{ATTACHED}/{name}"), shared.collect());
    }
    Ok(checkpoint)
}

/// Returns the folder of this replica's checkpoint: `path` for the first replica, `path` with a dot and the
/// replica's number for the others.
pub(in crate::train) fn replica_path<E: TrainEnv>(trainer: &Trainer<E>, path: &Path) -> PathBuf {
    match trainer.context.group.rank() {
        0 => path.to_owned(),
        replica => {
            path.with_file_name(format!("{}.{replica}", path.file_name().unwrap_or_default().display()))
        }
    }
}

/// Restores a trainer from a checkpoint. If this replica fails, its trainer is unchanged. If only another
/// replica fails, the trainer may already be restored.
pub(in crate::train) fn resume<E: TrainEnv>(trainer: &mut Trainer<E>, path: &Path) -> Result<()> {
    let path = replica_path(trainer, path);
    // If replicas were stopped while they saved their first checkpoint, a replica may have only the staged
    // checkpoint, which wasn't moved to `path` yet.
    let staged =
        LAYOUT.staged(&path).filter(|_| trainer.context.replicas().is_some() && !Checkpoint::exists(&path));
    let mut saved = Saved::load(staged.unwrap_or_else(|| LAYOUT.resolve(&path)), &path)?;
    saved.check_same_run(trainer)?;
    if saved.publish_common_step(&trainer.context)? {
        saved = Saved::load(LAYOUT.resolve(&path), &path)?;
    }
    let before = part_states(trainer)?;
    let Trainer { context, optimizer, companions, sources, .. } = trainer;
    let Context { env, policy, average, config, .. } = context;
    let parameters = policy.parameters().ok_or_else(no_parameters)?;
    // All checks that can fail come before the first change that can't be undone.
    saved.checkpoint.fitting(parameters)?;
    let mut parts: Vec<&mut dyn Persist<E>> = Vec::new();
    parts.extend(optimizer.iter_mut().map(|part| part as &mut dyn Persist<E>));
    parts.extend(average.iter_mut().map(|part| part as &mut dyn Persist<E>));
    parts.extend(companions.iter_mut().map(|part| part.as_mut() as &mut dyn Persist<E>));
    parts.extend(sources.iter_mut().rev().map(|part| part as &mut dyn Persist<E>));
    saved.restore_parts(env, &mut parts, &before)?;
    let Saved { checkpoint, state, .. } = saved;
    checkpoint.restore(parameters)?;
    let settings = serde_json::to_value(config).unwrap_or_default();
    let step = checkpoint.manifest().step as usize;
    // A custom schedule can't be written as JSON. Settings with a custom schedule are therefore null, and
    // aren't compared.
    let is_changed = !state.settings.is_null() && !settings.is_null() && state.settings != settings;
    let changes = is_changed.then(|| describe_changes("its settings", &state.settings, &settings));
    trainer.resume_warning = changes.map(|changes| Warning::Resumed { step, changes });
    trainer.attachments.clear();
    for (name, state) in state.attachments {
        let tensors = checkpoint.attached(&name);
        trainer.attachments.insert(name, (state, tensors));
    }
    trainer.rng = state.rng;
    trainer.run_id = state.run_id;
    trainer.sources.reward_calls = state.reward_calls;
    trainer.sources.last_draw = None;
    trainer.latest = None;
    trainer.context.step = step;
    // Each replica waits here until all have resumed, so that none trains earlier.
    trainer.context.broadcast_from_first(0.0).map(drop)
}

/// A checkpoint that was read, and the trainer's state that it holds.
struct Saved {
    checkpoint: Checkpoint,
    state: State,
    /// The folder to which this replica saves its checkpoints. This checkpoint may have been read from a
    /// hidden folder beside it instead, in which an interrupted save left the checkpoint.
    path: PathBuf,
}

impl Saved {
    /// Reads the checkpoint in `folder`: either the published checkpoint at `path`, or a staged checkpoint
    /// that wasn't moved to `path` yet.
    fn load(folder: PathBuf, path: &Path) -> Result<Self> {
        let checkpoint = Checkpoint::load_folder(folder)?;
        let state = serde_json::from_value(checkpoint.manifest().state.clone());
        let state = state.map_err(|error| {
            other_run(path, format!("the checkpoint doesn't hold the state of a trainer ({error})"))
        })?;
        Ok(Self { checkpoint, state, path: path.to_owned() })
    }

    /// Returns an error for the checkpoint of a run with another number of replicas, another description or
    /// another objective.
    fn check_same_run<E: TrainEnv>(&self, trainer: &Trainer<E>) -> Result<()> {
        let State { objective, objective_settings, description, replicas: there, .. } = &self.state;
        let Context { objective: own, group, .. } = &trainer.context;
        let name = own.name();
        let settings = own.settings();
        let here = group.size();
        let problem = if *there != here {
            format!("this is the checkpoint of a run with {there} replicas, but this run has {here}")
        } else if *description != trainer.description {
            let changes = describe_changes("its description", description, &trainer.description);
            format!("this is the checkpoint of another run: {changes}")
        } else if objective != name {
            format!("this is the checkpoint of a run with the objective {objective}, but this run has {name}")
        } else if *objective_settings != settings {
            let changes = describe_changes("it", objective_settings, &settings);
            format!("this is the checkpoint of a run with other settings of {name}: {changes}")
        } else {
            return Ok(());
        };
        Err(other_run(&self.path, problem))
    }

    /// Makes replicas resume from the same step. If a run was stopped while replicas replaced their
    /// checkpoints, some replicas still have the older checkpoint, and beside it the complete newer
    /// checkpoint, which is staged. On these replicas the function publishes the staged checkpoint and
    /// returns `true`; on the others it returns `false`.
    ///
    /// # Errors
    /// [`Error::File`] for checkpoints of different runs, and if there is no step that all replicas have;
    /// [`Error::Peer`] if another replica has ended.
    fn publish_common_step<E: TrainEnv>(&self, context: &Context<E>) -> Result<bool> {
        let Some(group) = context.replicas() else { return Ok(false) };
        let path = &self.path;
        let run_id = self.state.run_id.cast_signed();
        let step = self.checkpoint.manifest().step.cast_signed();
        let staged = LAYOUT.staged(path).and_then(|folder| Self::load(folder, path).ok());
        let staged = staged.filter(|staged| staged.state.run_id == self.state.run_id);
        let staged = staged.map_or(step, |staged| staged.checkpoint.manifest().step.cast_signed().max(step));
        let mut members = Vec::new();
        for member in &group.join(&Tensor::from_slice(&[run_id, step, staged]))? {
            members.push(Vec::<i64>::try_from(member)?);
        }
        if let Some(other) = members.iter().position(|member| member[0] != run_id) {
            let there = members[other][1];
            let problem = format!(
                "this is the checkpoint of another run than that of replica {other}: it has step {step}, the \
                 other has step {there}"
            );
            return Err(Error::file(
                path,
                problem,
                "resume from the checkpoints of one run, or start in a new folder",
            ));
        }
        let in_common = |step: &i64| members.iter().all(|member| member[1..].contains(step));
        match [step, staged].into_iter().find(in_common) {
            Some(common) if common == step && Checkpoint::exists(path) => Ok(false),
            Some(_) => LAYOUT.publish(path).map(|()| true),
            None => {
                let steps: Vec<&[i64]> = members.iter().map(|member| &member[1..]).collect();
                let problem = format!(
                    "replicas have checkpoints of different steps: {steps:?} (the steps of the current and \
                     of the next checkpoint of each replica)"
                );
                Err(Error::file(path, problem, "resume all replicas from checkpoints of the same step"))
            }
        }
    }

    /// Restores all parts from the checkpoint. `before` holds the parts' current states. If restoring a part
    /// fails, all parts that were already restored get their states of `before` back.
    fn restore_parts<E: Env>(
        &self,
        env: &E,
        parts: &mut [&mut dyn Persist<E>],
        before: &PartStates,
    ) -> Result<()> {
        let there = &self.state.parts;
        let here = before.iter().map(|(name, (noun, _))| (name, noun));
        let is_common = |name: &String| there.contains_key(name) && before.contains_key(name);
        if let Some((_, noun)) = there.iter().chain(here).find(|(name, _)| !is_common(name)) {
            return Err(other_run(&self.path, format!("one of the two runs has {noun}, the other has none")));
        }
        for i in 0..parts.len() {
            let part = &mut parts[i];
            if !before.contains_key(part.name()) {
                continue;
            }
            let Err(error) = part.load_state(env, &self.checkpoint.section(part.name())) else { continue };
            let problem = format!("{} can't be used here ({error})", part.describe());
            for part in &mut parts[..i] {
                if let Some((_, tensors)) = before.get(part.name()) {
                    part.load_state(env, tensors)?;
                }
            }
            return Err(other_run(&self.path, problem));
        }
        Ok(())
    }
}

pub(crate) fn to_json(value: &impl Serialize) -> Result<Value> {
    let error = |error| Error::contract("the state of a checkpoint can be written as JSON", error);
    serde_json::to_value(value).map_err(error)
}

fn other_run(path: &Path, problem: String) -> Error {
    Error::file(path, problem, "resume with the settings of the run that saved the checkpoint")
}

pub(in crate::train) fn no_parameters() -> Error {
    Error::missing(
        "a checkpoint",
        "a policy with parameters",
        "use a policy with parameters, because this policy has nothing to save",
    )
}
