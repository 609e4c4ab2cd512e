//! Saving and resuming a trainer.

use std::path::Path;
use std::sync::PoisonError;

use serde::{Deserialize, Serialize};

use super::LAYOUT;
use super::differences::differences;
use super::observed::Observed;
use crate::policy::Policy;
use crate::rollout::ReplayEnv;
use crate::train::{Checkpoint, Trainer};
use crate::{Error, Result, Rng};

/// A trainer's state in a checkpoint, except tensors.
#[derive(Serialize, Deserialize)]
struct State {
    rng: Rng,
    replay: bool,
    #[serde(default)]
    objective: Option<String>,
    /// `None` in checkpoints of versions that compared only the names of objectives.
    #[serde(default)]
    objective_settings: Option<serde_json::Value>,
    #[serde(default)]
    reward_calls: u64,
    #[serde(default)]
    description: serde_json::Value,
    #[serde(default)]
    observed: serde_json::Value,
}

impl<E: ReplayEnv, P: Policy<E>> Trainer<E, P> {
    /// Saves everything that the run needs to continue: weights, moments, random stream, replay buffer, step, and the
    /// observers' states.
    ///
    /// If it is called by an observer of [`Fit`](crate::train::Fit) during a step, the checkpoint is written later:
    /// after all observers have seen the step, so that it holds their states after it. An error then ends the run.
    ///
    /// # Errors
    /// [`Error::Missing`] for a policy without parameters; [`Error::File`] or [`Error::Io`] if it can't be written, and
    /// for numbers that aren't finite.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        if self.optimizer.is_none() {
            return Err(no_parameters());
        }
        LAYOUT.check_target(path.as_ref())?;
        match self.asked.upgrade() {
            Some(asked) => asked.lock().unwrap_or_else(PoisonError::into_inner).push(path.as_ref().to_owned()),
            None => self.checkpoint()?.save(path)?,
        }
        Ok(())
    }

    /// A checkpoint of the trainer's current state.
    fn checkpoint(&self) -> Result<Checkpoint> {
        let (Some(parameters), Some(optimizer)) = (self.policy.parameters(), &self.optimizer) else {
            return Err(no_parameters());
        };
        let state = to_json(&State {
            rng: self.rng.clone(),
            replay: self.replay.is_some(),
            objective: Some(self.objective.name().to_owned()),
            objective_settings: Some(self.objective.settings()),
            reward_calls: self.reward_calls,
            description: self.description.clone(),
            observed: self.observed.states.clone(),
        })?;
        let mut checkpoint =
            Checkpoint::new(parameters, self.step as u64, state)?.with(optimizer.name(), optimizer.state()?);
        if let Some(replay) = &self.replay {
            checkpoint = checkpoint.with("replay", replay.state(&self.env)?);
        }
        Ok(self.observed.add_to(self.sections()?.add_to(checkpoint)))
    }

    /// Continues from a checkpoint, bit for bit like the run that wrote it.
    ///
    /// The trainer must be built in the same way: with the same environment, network, objective, data and settings.
    /// Network, objective (with its settings, [`Objective::settings`](crate::objective::Objective::settings)), buffer
    /// and description are compared. Other settings may be changed on purpose, such as the learning rate for the
    /// remaining steps; to have them compared, put them in the description.
    ///
    /// # Errors
    /// [`Error::File`] for a file that is damaged, incomplete, or of another model, objective or description; the
    /// trainer is unchanged then.
    pub fn resume(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let checkpoint = Checkpoint::load(path.as_ref())?;
        let Some(parameters) = self.policy.parameters() else {
            return Err(no_parameters());
        };
        let other = |problem: String| Error::File {
            path: path.as_ref().to_owned(),
            problem,
            remedy: "resume with the settings that the checkpoint was made with",
        };
        let state: State = serde_json::from_value(checkpoint.manifest().state.clone())
            .map_err(|error| other(format!("its state isn't a trainer's ({error})")))?;
        if state.description != self.description {
            let differences = differences("its description", &state.description, &self.description);
            return Err(other(format!("the checkpoint of another run: {differences}")));
        }
        let ours = self.objective.name();
        if let Some(theirs) = state.objective.filter(|theirs| theirs != ours) {
            return Err(other(format!("the checkpoint of a run by {theirs}, this one is by {ours}")));
        }
        let settings = self.objective.settings();
        if let Some(theirs) = state.objective_settings.filter(|theirs| *theirs != settings) {
            let differences = differences("it", &theirs, &settings);
            return Err(other(format!("the checkpoint of a run by another {ours}: {differences}")));
        }
        checkpoint.fitting(parameters)?;
        let replay = match &self.replay {
            Some(buffer) if state.replay => {
                let mut filled = buffer.emptied();
                let loaded = filled.load_state(&self.env, &checkpoint.section("replay"));
                loaded.map_err(|error| other(format!("its replay buffer can't be used here ({error})")))?;
                Some(filled)
            }
            None if !state.replay => None,
            _ => return Err(other("one of the two runs has a replay buffer, the other has none".into())),
        };
        // All errors occur before anything changes: the parameters were checked above, and moments are loaded last.
        let before = self.load_sections(&checkpoint)?.map_err(other)?;
        let (Some(parameters), Some(optimizer)) = (self.policy.parameters(), &mut self.optimizer) else {
            return Err(no_parameters());
        };
        if let Err(error) = optimizer.load_state(&checkpoint.section(optimizer.name())) {
            self.restore_sections(&before)?;
            return Err(other(format!("its optimiser's state can't be used here ({error})")));
        }
        checkpoint.restore(parameters)?;
        self.replay = replay;
        self.rng = state.rng;
        self.reward_calls = state.reward_calls;
        self.observed = Observed::read(state.observed, &checkpoint);
        self.latest = None;
        self.fresh = 0;
        self.step = checkpoint.manifest().step as usize;
        Ok(())
    }
}

pub(in crate::train) fn to_json(value: &impl Serialize) -> Result<serde_json::Value> {
    serde_json::to_value(value).map_err(|error| Error::Contract {
        check: "what a checkpoint keeps can be written as JSON",
        detail: error.to_string(),
    })
}

fn no_parameters() -> Error {
    Error::Missing { objective: "a checkpoint", needs: "a policy with parameters", remedy: "there is nothing to save" }
}
