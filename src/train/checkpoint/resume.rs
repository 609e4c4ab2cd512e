//! Saving and resuming a trainer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tch::Tensor;

use super::differences::describe_changes;
use super::persist::{restore, states};
use super::{Attachments, LAYOUT, Persist};
use crate::error::Warning;
use crate::policy::Policy;
use crate::train::{Checkpoint, Context, TrainEnv, Trainer};
use crate::{Error, Result, Rng};

/// The JSON half of a trainer's checkpoint.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    rng: Rng,
    /// The id of the run.
    run_id: u64,
    /// Nouns for the parts that have a state, by the names of their sections.
    parts: BTreeMap<String, String>,
    objective: String,
    objective_settings: Value,
    reward_calls: u64,
    description: Value,
    /// Text for readers of the checkpoint.
    note: Value,
    attachments: Value,
    /// The trainer's settings.
    settings: Value,
    /// The number of replicas that train as one.
    replicas: usize,
}

impl State {
    fn from_checkpoint(checkpoint: &Checkpoint, path: &Path) -> Result<Self> {
        let state = checkpoint.manifest().state.clone();
        serde_json::from_value(state).map_err(|error| other_run(path, format!("its state isn't a trainer's ({error})")))
    }
}

/// Returns all parts with a section of their own. Sources come last, because a replay buffer takes longest to restore.
pub(in crate::train) fn parts<E: TrainEnv>(trainer: &Trainer<E>) -> Vec<&dyn Persist<E>> {
    let mut parts: Vec<&dyn Persist<E>> = Vec::new();
    parts.extend(trainer.optimizer.iter().map(|part| part as &dyn Persist<E>));
    parts.extend(trainer.context.average.iter().map(|part| part as &dyn Persist<E>));
    parts.extend(trainer.companions.iter().map(|part| part as &dyn Persist<E>));
    parts.extend(trainer.sources.iter().rev().map(|part| part as &dyn Persist<E>));
    parts
}

/// Saves a trainer's checkpoint; several replicas save together.
pub(in crate::train) fn save<E: TrainEnv>(trainer: &Trainer<E>, path: &Path) -> Result<()> {
    let path = replica_path(trainer, path);
    LAYOUT.check_target(&path)?;
    trainer.checkpoint()?.stage(&path)?;
    trainer.context.broadcast_from_first(0.0)?;
    LAYOUT.publish(&path)
}

/// Makes the checkpoint of a trainer.
pub(in crate::train) fn make_checkpoint<E: TrainEnv>(trainer: &Trainer<E>) -> Result<Checkpoint> {
    let Context { env, policy, objective, config, step, .. } = &trainer.context;
    let parameters = policy.parameters().ok_or_else(no_parameters)?;
    let states = states(env, parts(trainer))?;
    let state = to_json(&State {
        rng: trainer.rng.clone(),
        run_id: trainer.run_id,
        parts: states.iter().map(|(part, _)| (part.name().to_owned(), part.describe())).collect(),
        objective: objective.name().to_owned(),
        objective_settings: objective.settings(),
        reward_calls: trainer.reward_calls(),
        description: trainer.description.clone(),
        note: trainer.note.clone(),
        attachments: trainer.attachments.states(),
        settings: serde_json::to_value(config).unwrap_or_default(),
        replicas: trainer.n_replicas(),
    })?;
    let mut checkpoint = Checkpoint::new(parameters, *step as u64, state)?;
    for (part, tensors) in states {
        checkpoint = checkpoint.with(part.name(), tensors);
    }
    Ok(trainer.attachments.add_to(checkpoint))
}

/// Checks that checkpoints can be saved at `path`.
pub(in crate::train) fn check_savable<E: TrainEnv>(trainer: &Trainer<E>, path: &Path) -> Result<()> {
    trainer.context.policy.parameters().ok_or_else(no_parameters)?;
    Checkpoint::try_path(replica_path(trainer, path))
}

/// The folder of this replica's checkpoint.
fn replica_path<E: TrainEnv>(trainer: &Trainer<E>, path: &Path) -> PathBuf {
    match trainer.replica() {
        0 => path.to_owned(),
        replica => path.with_file_name(format!("{}.{replica}", path.file_name().unwrap_or_default().display())),
    }
}

/// Continues from a checkpoint. On an error the trainer is unchanged, unless only another replica failed.
pub(in crate::train) fn resume<E: TrainEnv>(trainer: &mut Trainer<E>, path: &Path) -> Result<()> {
    let path = replica_path(trainer, path);
    // A run that was stopped while it saved for the first time has nothing but a staged checkpoint.
    let staged = LAYOUT.staged(&path).filter(|_| trainer.n_replicas() > 1 && !Checkpoint::exists(&path));
    let mut checkpoint = staged.map_or_else(|| Checkpoint::load(&path), Checkpoint::load_folder)?;
    let mut state = State::from_checkpoint(&checkpoint, &path)?;
    check_same_run(trainer, &state, &path)?;
    if publish_common_step(&trainer.context, &path, &checkpoint, &state)? {
        checkpoint = Checkpoint::load(&path)?;
        state = State::from_checkpoint(&checkpoint, &path)?;
    }
    trainer.keep_first_log_z();
    let Trainer { context, optimizer, companions, sources, .. } = trainer;
    let Context { env, policy, average, config, .. } = context;
    let parameters = policy.parameters().ok_or_else(no_parameters)?;
    // Every problem is found before anything changes for good.
    checkpoint.fitting(parameters)?;
    let mut parts: Vec<&mut dyn Persist<E>> = Vec::new();
    parts.extend(optimizer.iter_mut().map(|part| part as &mut dyn Persist<E>));
    parts.extend(average.iter_mut().map(|part| part as &mut dyn Persist<E>));
    parts.extend(companions.iter_mut().map(|part| part as &mut dyn Persist<E>));
    parts.extend(sources.iter_mut().rev().map(|part| part as &mut dyn Persist<E>));
    restore(env, &mut parts, &checkpoint, &state.parts, |problem| other_run(&path, problem))?;
    checkpoint.restore(parameters)?;
    let settings = serde_json::to_value(config).unwrap_or_default();
    let step = checkpoint.manifest().step as usize;
    // A custom schedule can't be written; settings with one are null.
    let is_changed = !state.settings.is_null() && !settings.is_null() && state.settings != settings;
    let changes = is_changed.then(|| describe_changes("its settings", &state.settings, &settings));
    trainer.resume_warning = changes.map(|changes| Warning::Resumed { step, changes });
    trainer.attachments = Attachments::read(&state.attachments, &checkpoint);
    trainer.rng = state.rng;
    trainer.run_id = state.run_id;
    trainer.sources.reward_calls = state.reward_calls;
    trainer.sources.last_draw = None;
    trainer.latest = None;
    trainer.context.step = step;
    // No replica trains before all have resumed.
    trainer.context.broadcast_from_first(0.0).map(drop)
}

/// Refuses the checkpoint of another run.
fn check_same_run<E: TrainEnv>(trainer: &Trainer<E>, state: &State, path: &Path) -> Result<()> {
    let refuse = |problem: String| Err(other_run(path, problem));
    let (there, here) = (state.replicas, trainer.n_replicas());
    if there != here {
        return refuse(format!("the checkpoint of one of {there} trainers that train as one, here they are {here}"));
    }
    if state.description != trainer.description {
        let changes = describe_changes("its description", &state.description, &trainer.description);
        return refuse(format!("the checkpoint of another run: {changes}"));
    }
    let objective = trainer.context.objective.as_ref();
    let name = objective.name();
    if state.objective != name {
        return refuse(format!("the checkpoint of a run by {}, this one is by {name}", state.objective));
    }
    let settings = objective.settings();
    if state.objective_settings != settings {
        let changes = describe_changes("it", &state.objective_settings, &settings);
        return refuse(format!("the checkpoint of a run by another {name}: {changes}"));
    }
    Ok(())
}

/// Makes replicas resume from the same step. A run that was stopped while replicas replaced their checkpoints leaves some with an older one, beside
/// a complete newer one, which is published here. Returns whether that happened.
///
/// # Errors
/// [`Error::File`] for checkpoints of different runs, and if there is no step that all replicas have; [`Error::Peer`] if another replica has ended.
fn publish_common_step<E: TrainEnv>(
    context: &Context<E>,
    path: &Path,
    checkpoint: &Checkpoint,
    state: &State,
) -> Result<bool> {
    let Some(group) = context.replicas() else { return Ok(false) };
    let run_id = state.run_id.cast_signed();
    let step = checkpoint.manifest().step.cast_signed();
    let staged = LAYOUT.staged(path).and_then(|folder| Checkpoint::load_folder(folder).ok());
    let staged =
        staged.filter(|staged| State::from_checkpoint(staged, path).is_ok_and(|other| other.run_id == state.run_id));
    let staged = staged.map_or(step, |staged| staged.manifest().step.cast_signed().max(step));
    let mut members = Vec::new();
    for member in &group.join(&Tensor::from_slice(&[run_id, step, staged]))? {
        members.push(Vec::<i64>::try_from(member)?);
    }
    if let Some(other) = members.iter().position(|member| member[0] != run_id) {
        let problem = format!("of another run than replica {other}'s: step {step} here, {} there", members[other][1]);
        return Err(Error::file(path, problem, "resume from the checkpoints of one run, or start in a new folder"));
    }
    let in_common = |step: &i64| members.iter().all(|member| member[1..].contains(step));
    match [step, staged].into_iter().find(in_common) {
        Some(common) if common == step && Checkpoint::exists(path) => Ok(false),
        Some(_) => LAYOUT.publish(path).map(|()| true),
        None => {
            let steps: Vec<&[i64]> = members.iter().map(|member| &member[1..]).collect();
            let problem = format!(
                "replicas have checkpoints of different steps: {steps:?}, the current and the next one of each"
            );
            Err(Error::file(path, problem, "resume from checkpoints that were saved in one step"))
        }
    }
}

pub(crate) fn to_json(value: &impl Serialize) -> Result<Value> {
    let error = |error| Error::contract("the state of a checkpoint can be written as JSON", error);
    serde_json::to_value(value).map_err(error)
}

fn other_run(path: &Path, problem: String) -> Error {
    Error::file(path, problem, "resume with the settings that the checkpoint was made with")
}

fn no_parameters() -> Error {
    Error::missing("a checkpoint", "a policy with parameters", "there is nothing to save")
}
