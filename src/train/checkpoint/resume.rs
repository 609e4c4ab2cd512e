//! A trainer's checkpoint: what it keeps, and how a run goes on from it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use serde::{Deserialize, Serialize};

use super::LAYOUT;
use super::differences::differences;
use super::observed::Observed;
use super::persist::{kept, load};
use super::seen::{SEEN, otherwise, seen};
use crate::error::Warning;
use crate::io::Older;
use crate::policy::Policy;
use crate::train::TrainEnv;
use crate::train::replicas::agree;
use crate::train::{Checkpoint, OnWarning, Persist, Trainer};
use crate::{Error, Result, Rng};

/// What a checkpoint keeps of a trainer besides tensors.
#[derive(Serialize, Deserialize)]
struct State {
    rng: Rng,
    /// The id of the run.
    run_id: u64,
    /// The parts that keep something, by the names of their sections, and what they are.
    parts: BTreeMap<String, String>,
    objective: String,
    objective_settings: serde_json::Value,
    reward_calls: u64,
    description: serde_json::Value,
    /// A program's note for itself.
    note: serde_json::Value,
    observed: serde_json::Value,
    /// The trainer's settings.
    settings: serde_json::Value,
    /// The number of trainers that train as one.
    replicas: usize,
}

impl<E: TrainEnv> Trainer<E> {
    /// All that has a section of its own, the buffer last: it takes longest to put back.
    pub(in crate::train) fn parts(&self) -> Vec<&dyn Persist<E>> {
        let mut parts: Vec<&dyn Persist<E>> = Vec::new();
        self.optimizer.iter().for_each(|optimizer| parts.push(optimizer));
        self.companions.all().into_iter().for_each(|companion| parts.push(companion));
        self.sources.all().into_iter().rev().for_each(|source| parts.push(source));
        parts
    }

    /// Saves everything that the run needs to go on: weights, moments, random stream, replay buffer, step, what observers keep.
    ///
    /// While an observer of [`Fit`](crate::train::Fit) looks at a step, the checkpoint is only noted. The loop writes it once all observers
    /// have seen the step, so that it holds what they keep of it; an error then ends the run.
    ///
    /// Each of several replicas ([`with_group`](Self::with_group)) saves its own: the first here, the others beside it, under the same name with
    /// their number behind a dot. All of them save in the same step, as [`Fit`](crate::train::Fit) does. What an observer asks for is the first
    /// one's alone: its parameters can be restored, the run can't go on from it. As a run may be stopped when some have saved and others haven't,
    /// the checkpoint before stays beside each one's, as a hidden folder.
    ///
    /// # Errors
    /// [`Error::Missing`] for a policy without parameters; [`Error::File`] or [`Error::Io`] where it can't be written, and for
    /// numbers that aren't finite.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        (E::trainer_code().save)(self, path.as_ref())
    }

    pub(in crate::train) fn save_to(&self, path: &Path) -> Result<()> {
        let path = self.own_path(path);
        LAYOUT.check_target(&path)?;
        if let Some(asked) = self.asked.upgrade() {
            asked.lock().unwrap_or_else(PoisonError::into_inner).push(path);
            return Ok(());
        }
        self.checkpoint()?.write(&path, if self.n_replicas() > 1 { Older::Kept } else { Older::Removed })
    }

    /// The folder of this replica's checkpoint.
    pub(in crate::train) fn own_path(&self, path: &Path) -> PathBuf {
        match self.replica() {
            0 => path.to_owned(),
            replica => path.with_file_name(format!("{}.{replica}", path.file_name().unwrap_or_default().display())),
        }
    }

    /// Refuses a policy that has nothing to save.
    pub(in crate::train) fn check_savable(&self) -> Result<()> {
        self.context.policy.parameters().map(drop).ok_or_else(no_parameters)
    }

    fn checkpoint(&self) -> Result<Checkpoint> {
        let parameters = self.context.policy.parameters().ok_or_else(no_parameters)?;
        let kept = kept(&self.context.env, self.parts())?;
        let objective = &self.context.objective;
        let state = to_json(&State {
            rng: self.rng.clone(),
            run_id: self.run_id,
            parts: kept.iter().map(|(part, _)| (part.name().to_owned(), part.describe())).collect(),
            objective: objective.name().to_owned(),
            objective_settings: objective.settings(),
            reward_calls: self.reward_calls(),
            description: self.description.clone(),
            note: self.note.clone(),
            observed: self.observed.states.clone(),
            settings: self.settings(),
            replicas: self.n_replicas(),
        })?;
        let model = Checkpoint::new(parameters, self.context.step as u64, state)?;
        let whole = kept.into_iter().fold(model, |checkpoint, (part, tensors)| checkpoint.with(part.name(), tensors));
        // Without a step of its own it goes on remembering what the run before it had seen.
        let seen = match &self.latest {
            None => self.seen.iter().map(|(name, tensor)| (name.clone(), tensor.shallow_clone())).collect(),
            // What can't be walked again isn't remembered: nothing of the run itself is lost by that.
            Some(latest) if self.judges_itself() => seen(&self.context.env, latest).unwrap_or_default(),
            Some(_) => Vec::new(),
        };
        Ok(self.observed.add_to(whole.with(SEEN, seen)))
    }

    /// `true` if the rewards of fresh objects are its own: whoever draws elsewhere may have another.
    fn judges_itself(&self) -> bool {
        self.sources.elsewhere.is_none()
    }

    /// Its settings, but for the one that says what becomes of a warning; null where a schedule of one's own can't be written.
    fn settings(&self) -> serde_json::Value {
        let mut settings = serde_json::to_value(&self.context.config).unwrap_or_default();
        if let Some(settings) = settings.as_object_mut() {
            settings.remove("on_warning");
        }
        settings
    }

    /// A warning of settings, environment and reward that aren't as they were in the run of a checkpoint.
    fn changed(&self, theirs: &serde_json::Value, checkpoint: &Checkpoint) -> Result<Option<Warning>> {
        let settings = self.settings();
        let mut changes = Vec::new();
        if !theirs.is_null() && !settings.is_null() && *theirs != settings {
            changes.push(differences("its settings", theirs, &settings));
        }
        if self.judges_itself() {
            changes.extend(otherwise(&self.context.env, self.context.reward.as_ref(), &checkpoint.section(SEEN))?);
        }
        let step = checkpoint.manifest().step as usize;
        Ok((!changes.is_empty()).then(|| Warning::Resumed { step, changes: changes.join("; ") }))
    }

    /// Goes on from a checkpoint, bit for bit as the run that wrote it would have.
    ///
    /// Replicas resume after they have joined ([`with_group`](Self::with_group)), as many as before, each from its
    /// own checkpoint. If they were stopped while they saved, all go back to the newest step of the run that each
    /// has; newer checkpoints are removed once all have loaded the older ones. Checkpoints of different runs are
    /// refused. A run has an id, which its checkpoints store and a resumed run keeps.
    ///
    /// That takes a trainer made as that one was: same environment, network, objective, data and settings. Other networks, objectives (or
    /// [settings](crate::objective::Objective::settings) of them), buffers and descriptions are refused. Settings, environment and reward
    /// may be changed on purpose, such as the learning rate of what is left: a [`Warning::Resumed`] says what is changed. Environment and
    /// reward are compared on four objects of the last step, which this reward is asked for again.
    ///
    /// # Errors
    /// [`Error::File`] for a file that is damaged, incomplete, or of another model, objective or description; [`Error::Warned`] for a change
    /// where [`TrainerConfig::on_warning`](crate::train::TrainerConfig::on_warning) says so. The trainer is unchanged then.
    /// [`Error::Peer`] if another replica can't resume, and [`Error::File`] if a newer checkpoint can't be removed:
    /// this trainer may have resumed then.
    pub fn resume(&mut self, path: impl AsRef<Path>) -> Result<()> {
        (E::trainer_code().resume)(self, path.as_ref())
    }

    pub(in crate::train) fn resume_from(&mut self, path: &Path) -> Result<()> {
        let path = self.own_path(path);
        let mut checkpoint = Checkpoint::load(&path)?;
        let parameters = self.context.policy.parameters().ok_or_else(no_parameters)?;
        let other = |problem: String| {
            Error::file(path.clone(), problem, "resume with the settings that the checkpoint was made with")
        };
        let state_of = |checkpoint: &Checkpoint| {
            serde_json::from_value::<State>(checkpoint.manifest().state.clone())
                .map_err(|error| other(format!("its state isn't a trainer's ({error})")))
        };
        let mut state = state_of(&checkpoint)?;
        if state.replicas != self.n_replicas() {
            let (there, here) = (state.replicas, self.n_replicas());
            return Err(other(format!(
                "the checkpoint of one of {there} trainers that train as one, here they are {here}"
            )));
        }
        let older = self.older_in_common(&path, &checkpoint)?;
        let is_older = older.is_some();
        if let Some(older) = older {
            state = state_of(&older)?;
            checkpoint = older;
        }
        if state.description != self.description {
            let differences = differences("its description", &state.description, &self.description);
            return Err(other(format!("the checkpoint of another run: {differences}")));
        }
        let (theirs, ours) = (&state.objective, self.context.objective.name());
        if theirs != ours {
            return Err(other(format!("the checkpoint of a run by {theirs}, this one is by {ours}")));
        }
        let settings = self.context.objective.settings();
        if state.objective_settings != settings {
            let differences = differences("it", &state.objective_settings, &settings);
            return Err(other(format!("the checkpoint of a run by another {ours}: {differences}")));
        }
        let changed = self.changed(&state.settings, &checkpoint)?;
        if let (Some(warning), OnWarning::Fail) = (&changed, self.context.config.on_warning) {
            return Err(Error::Warned(warning.clone()));
        }
        // All that can be wrong is found before anything changes for good.
        checkpoint.fitting(parameters)?;
        let mut parts: Vec<&mut dyn Persist<E>> = Vec::new();
        self.optimizer.iter_mut().for_each(|optimizer| parts.push(optimizer));
        self.companions.all_mut().into_iter().for_each(|companion| parts.push(companion));
        self.sources.all_mut().into_iter().rev().for_each(|source| parts.push(source));
        load(&self.context.env, &mut parts, &checkpoint, &state.parts, other)?;
        checkpoint.restore(parameters)?;
        self.rng = state.rng;
        self.run_id = state.run_id;
        self.sources.reward_calls = state.reward_calls;
        self.observed = Observed::read(state.observed, &checkpoint);
        self.latest = None;
        self.seen = checkpoint.section(SEEN);
        self.context.step = checkpoint.manifest().step as usize;
        // A batch that was drawn before is nobody's to learn from.
        self.sources.drawn = None;
        // The newer checkpoint stays until all replicas have loaded the older ones; it is of no use to them then.
        agree(&self.context, 0.0)?;
        if is_older {
            LAYOUT.put_back(&path)?;
        }
        changed.map_or(Ok(()), |warning| self.sentinel.warn(warning, self.context.config.on_warning))
    }
}

pub(in crate::train) fn to_json(value: &impl Serialize) -> Result<serde_json::Value> {
    serde_json::to_value(value)
        .map_err(|error| Error::contract("what a checkpoint keeps can be written as JSON", error))
}

fn no_parameters() -> Error {
    Error::missing("a checkpoint", "a policy with parameters", "there is nothing to save")
}
