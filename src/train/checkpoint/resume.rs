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
    fn of(checkpoint: &Checkpoint, path: &Path) -> Result<Self> {
        let state = checkpoint.manifest().state.clone();
        serde_json::from_value(state).map_err(|error| other_run(path, format!("its state isn't a trainer's ({error})")))
    }
}

impl<E: TrainEnv> Trainer<E> {
    /// Returns all parts with a section of their own. Sources come last, because a replay buffer takes longest to restore.
    pub(in crate::train) fn parts(&self) -> Vec<&dyn Persist<E>> {
        let mut parts: Vec<&dyn Persist<E>> = Vec::new();
        parts.extend(self.optimizer.iter().map(|part| part as &dyn Persist<E>));
        parts.extend(self.context.average.iter().map(|part| part as &dyn Persist<E>));
        parts.extend(self.companions.iter().map(|part| part as &dyn Persist<E>));
        parts.extend(self.sources.iter().rev().map(|part| part as &dyn Persist<E>));
        parts
    }

    /// Saves everything that the run needs to continue: parameters, optimizer, random stream, replay buffer, step, and the states of observers
    /// as of their last save.
    ///
    /// Each of several replicas ([`with_group`](Self::with_group)) saves its own checkpoint, the first at `path`, the others beside it with
    /// their number after a dot. All of them must save in the same step: they wait until each has written its files before any replaces an
    /// older checkpoint. [`checkpoint`](Self::checkpoint) returns the checkpoint of one replica alone.
    ///
    /// # Errors
    /// [`Error::Missing`] for a policy without parameters; [`Error::File`] or [`Error::Io`] if the files can't be written, and for numbers
    /// that aren't finite; [`Error::Peer`] if another replica has ended.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = self.replica_path(path.as_ref());
        LAYOUT.check_target(&path)?;
        self.checkpoint()?.stage(&path)?;
        self.context.broadcast_from_first(0.0)?;
        LAYOUT.publish(&path)
    }

    /// Returns a checkpoint of this trainer, which isn't written yet.
    ///
    /// # Errors
    /// [`Error::Missing`] for a policy without parameters.
    pub fn checkpoint(&self) -> Result<Checkpoint> {
        (E::trainer_code().checkpoint)(self)
    }

    pub(in crate::train) fn make_checkpoint(&self) -> Result<Checkpoint> {
        let parameters = self.context.policy.parameters().ok_or_else(no_parameters)?;
        let states = states(&self.context.env, self.parts())?;
        let objective = &self.context.objective;
        let state = to_json(&State {
            rng: self.rng.clone(),
            run_id: self.run_id,
            parts: states.iter().map(|(part, _)| (part.name().to_owned(), part.describe())).collect(),
            objective: objective.name().to_owned(),
            objective_settings: objective.settings(),
            reward_calls: self.reward_calls(),
            description: self.description.clone(),
            note: self.note.clone(),
            attachments: self.attachments.states(),
            settings: serde_json::to_value(&self.context.config).unwrap_or_default(),
            replicas: self.n_replicas(),
        })?;
        let mut checkpoint = Checkpoint::new(parameters, self.context.step as u64, state)?;
        for (part, tensors) in states {
            checkpoint = checkpoint.with(part.name(), tensors);
        }
        Ok(self.attachments.add_to(checkpoint))
    }

    /// Checks before a run that its checkpoints can be saved at `path`.
    ///
    /// # Errors
    /// [`Error::Missing`] for a policy without parameters, and those of [`Checkpoint::try_path`].
    pub fn check_savable(&self, path: impl AsRef<Path>) -> Result<()> {
        self.context.policy.parameters().ok_or_else(no_parameters)?;
        Checkpoint::try_path(self.replica_path(path.as_ref()))
    }

    /// The folder of this replica's checkpoint.
    fn replica_path(&self, path: &Path) -> PathBuf {
        match self.replica() {
            0 => path.to_owned(),
            replica => path.with_file_name(format!("{}.{replica}", path.file_name().unwrap_or_default().display())),
        }
    }

    /// Continues from a checkpoint, bit for bit as the run that wrote it would have.
    ///
    /// The trainer must have the same environment, network, objective, data and parts as the one that saved the checkpoint. Other networks,
    /// objectives (or [settings](crate::objective::Objective::settings) of them), parts and descriptions are refused. Settings of the trainer
    /// may be changed on purpose, such as the learning rate: [`resume_warning`](Self::resume_warning) names the changes, and
    /// [`Fit`](crate::run::Fit) reports them.
    ///
    /// Replicas resume after they have joined ([`with_group`](Self::with_group)), as many as before, each from its own checkpoint. A run has
    /// an id, which its checkpoints store and a resumed run keeps; checkpoints of different runs or steps are refused.
    ///
    /// # Errors
    /// [`Error::File`] for a file that is damaged, incomplete, or of another model, objective or description; the trainer is unchanged then.
    /// [`Error::Peer`] if another replica can't resume.
    pub fn resume(&mut self, path: impl AsRef<Path>) -> Result<()> {
        (E::trainer_code().resume)(self, path.as_ref())
    }

    pub(in crate::train) fn resume_from(&mut self, path: &Path) -> Result<()> {
        let path = self.replica_path(path);
        publish_common_step(&self.context, &path)?;
        let checkpoint = Checkpoint::load(&path)?;
        let state = State::of(&checkpoint, &path)?;
        self.check_same_run(&state, &path)?;
        let parameters = self.context.policy.parameters().ok_or_else(no_parameters)?;
        // Every problem is found before anything changes for good.
        checkpoint.fitting(parameters)?;
        let mut parts: Vec<&mut dyn Persist<E>> = Vec::new();
        parts.extend(self.optimizer.iter_mut().map(|part| part as &mut dyn Persist<E>));
        parts.extend(self.context.average.iter_mut().map(|part| part as &mut dyn Persist<E>));
        parts.extend(self.companions.iter_mut().map(|part| part as &mut dyn Persist<E>));
        parts.extend(self.sources.iter_mut().rev().map(|part| part as &mut dyn Persist<E>));
        restore(&self.context.env, &mut parts, &checkpoint, &state.parts, |problem| other_run(&path, problem))?;
        checkpoint.restore(parameters)?;
        let settings = serde_json::to_value(&self.context.config).unwrap_or_default();
        let step = checkpoint.manifest().step as usize;
        // A custom schedule can't be written; settings with one are null.
        let is_changed = !state.settings.is_null() && !settings.is_null() && state.settings != settings;
        let changes = is_changed.then(|| describe_changes("its settings", &state.settings, &settings));
        self.resume_warning = changes.map(|changes| Warning::Resumed { step, changes });
        self.attachments = Attachments::read(&state.attachments, &checkpoint);
        self.rng = state.rng;
        self.run_id = state.run_id;
        self.sources.reward_calls = state.reward_calls;
        self.sources.last_draw = None;
        self.latest = None;
        self.context.step = step;
        Ok(())
    }

    /// Refuses the checkpoint of another run.
    fn check_same_run(&self, state: &State, path: &Path) -> Result<()> {
        let refuse = |problem: String| Err(other_run(path, problem));
        let n_replicas = self.n_replicas();
        if state.replicas != n_replicas {
            let there = state.replicas;
            return refuse(format!(
                "the checkpoint of one of {there} trainers that train as one, here they are {n_replicas}"
            ));
        }
        if state.description != self.description {
            let changes = describe_changes("its description", &state.description, &self.description);
            return refuse(format!("the checkpoint of another run: {changes}"));
        }
        let objective = self.context.objective.as_ref();
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
}

/// Makes replicas resume from the same step: a run that was stopped while replicas replaced their checkpoints leaves some with an older one,
/// beside a complete newer one.
///
/// # Errors
/// [`Error::File`] for checkpoints of different runs, and if there is no step that all replicas have; [`Error::Peer`] if another replica has
/// ended.
fn publish_common_step<E: TrainEnv>(context: &Context<E>, path: &Path) -> Result<()> {
    let Some(group) = context.replicas() else { return Ok(()) };
    let checkpoint = Checkpoint::load(path)?;
    let run_id = State::of(&checkpoint, path)?.run_id.cast_signed();
    let step = checkpoint.manifest().step.cast_signed();
    let staged = LAYOUT.staged(path).and_then(|folder| Checkpoint::load_folder(folder).ok());
    let staged = staged.filter(|one| State::of(one, path).is_ok_and(|state| state.run_id.cast_signed() == run_id));
    let staged = staged.map_or(step, |checkpoint| checkpoint.manifest().step.cast_signed());
    let mut members = Vec::new();
    for member in &group.join(&Tensor::from_slice(&[run_id, step, staged]))? {
        members.push(Vec::<i64>::try_from(member)?);
    }
    if let Some(other) = members.iter().position(|member| member[0] != run_id) {
        let problem = format!("of another run than replica {other}'s: step {step} here, {} there", members[other][1]);
        return Err(Error::file(path, problem, "resume from the checkpoints of one run, or start in a new folder"));
    }
    let in_common = |step: i64| members.iter().all(|member| member[1..].contains(&step));
    if in_common(step) && (step >= staged || !in_common(staged)) {
        return Ok(());
    }
    if in_common(staged) {
        return LAYOUT.publish(path);
    }
    let steps: Vec<&[i64]> = members.iter().map(|member| &member[1..]).collect();
    let problem =
        format!("replicas have checkpoints of different steps: {steps:?}, the current and the next one of each");
    Err(Error::file(path, problem, "resume from checkpoints that were saved in one step"))
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
