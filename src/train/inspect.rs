//! Methods that access the parts of a trainer, its replay buffer, and its checkpoints.

use std::any::Any;
use std::fmt;
use std::path::Path;

use serde_json::Value;
use tch::Tensor;

use super::checkpoint::{LAYOUT, no_parameters, replica_path};
use super::sources::Replay;
use super::{Batch, Checkpoint, Context, TrainEnv, Trainer};
use crate::env::{Env, Reward, log_rewards};
use crate::error::Warning;
use crate::nn::Parameters;
use crate::policy::Policy;
use crate::replay::ReplayBuffer;
use crate::rollout::{Container, Trajectories};
use crate::{Error, Result, Rng};

impl<E: Env> fmt::Debug for Trainer<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Context { objective, step, config, .. } = &self.context;
        let mut out = f.debug_struct("Trainer");
        out.field("objective", objective).field("step", step).field("config", config).finish_non_exhaustive()
    }
}

impl<E: Env> Trainer<E> {
    /// Returns the parts of the trainer that sources and companions see.
    pub fn context(&self) -> &Context<E> {
        &self.context
    }

    /// Returns the trainer's environment.
    pub fn env(&self) -> &E {
        &self.context.env
    }

    /// Returns the trainer's reward.
    pub fn reward(&self) -> &dyn Reward<E::States> {
        self.context.reward.as_ref()
    }

    /// Returns the trainer's policy.
    pub fn policy(&self) -> &dyn Policy<E> {
        self.context.policy()
    }

    /// Returns the policy with its concrete type `P`; `None` if the trainer was built with a policy of
    /// another type.
    #[must_use]
    pub fn policy_as<P: 'static>(&self) -> Option<&P> {
        let policy: &dyn Any = self.context.policy.as_ref();
        policy.downcast_ref()
    }

    /// Consumes the trainer and returns its policy.
    #[must_use]
    pub fn into_policy(self) -> Box<dyn Policy<E> + Send> {
        self.context.policy
    }

    /// Consumes the trainer and returns its policy with its concrete type `P`; `None` if the policy has
    /// another type.
    #[must_use]
    pub fn into_policy_as<P: 'static>(self) -> Option<P> {
        let policy: Box<dyn Any> = self.context.policy;
        policy.downcast().ok().map(|policy| *policy)
    }

    /// Tells the trainer that the policy was changed by something other than training. The next step then
    /// checks the policy as the first step does.
    pub fn policy_changed(&mut self) {
        self.next_check = 0;
    }

    /// Returns the number of training steps made.
    pub fn steps_done(&self) -> usize {
        self.context.step
    }

    /// Returns the number of new objects whose reward was computed: objects of fresh trajectories, proposals
    /// of local search, and objects added to the replay buffer. Replayed objects aren't counted. Each of
    /// several replicas counts its own objects.
    pub fn reward_calls(&self) -> u64 {
        self.sources.reward_calls
    }

    /// Returns the trajectories of the last step; `None` before the first step.
    pub fn latest(&self) -> Option<&Trajectories<E>> {
        self.latest.as_ref().map(|batch| &batch.trajectories)
    }

    /// Returns the batch of the last step; `None` before the first step.
    pub fn latest_batch(&self) -> Option<&Batch<E>> {
        self.latest.as_ref()
    }

    /// Returns the number of fresh trajectories in the [`latest`](Self::latest) batch. Fresh trajectories are
    /// supplied by the policy, by local search, or by a source that replaces the policy, and come first. The
    /// other trajectories were replayed, given as data, or supplied by further sources.
    pub fn n_fresh(&self) -> usize {
        self.latest.as_ref().map_or(0, |batch| batch.fresh)
    }

    /// Returns the number of scalars in the policy's parameters.
    pub fn n_parameters(&self) -> i64 {
        self.context.policy.parameters().map_or(0, Parameters::count)
    }

    /// Returns a separate random stream for evaluation, so that evaluating doesn't change the training.
    pub fn evaluation_rng(&self) -> Rng {
        self.rng.clone().split()
    }

    /// Checks that the trainers of all replicas are equal. Each run calls this method before its first step.
    ///
    /// # Errors
    /// [`Error::Contract`] for two trainers that differ; [`Error::Peer`] if another replica has ended.
    pub fn check_equal_replicas(&self) -> Result<()> {
        super::replicas::check_equal_replicas(self)
    }

    /// Returns a warning ([`Warning::Resumed`]) that names the settings in which this run differs from the
    /// checkpoint that it resumed from; `None` if no setting differs.
    pub fn resume_warning(&self) -> Option<&Warning> {
        self.resume_warning.as_ref()
    }

    /// Returns the state that was [attached](Self::attach) under this name, in this run or before it was
    /// resumed.
    pub fn attachment(&self, name: &str) -> Option<(&Value, &[(String, Tensor)])> {
        self.attachments.get(name).map(|(state, tensors)| (state, tensors.as_slice()))
    }

    /// Stores the state of code around the trainer in the trainer's checkpoints, under `name`. `state` is a
    /// JSON value, and `tensors` holds values that are too large for JSON. A `null` without tensors removes
    /// the attachment. [`Fit`](crate::run::Fit) attaches the states of its observers.
    ///
    /// # Errors
    /// [`Error::Config`] for a state with tensors under a name that contains `/`.
    pub fn attach(&mut self, name: &str, state: Value, tensors: Vec<(String, Tensor)>) -> Result<()> {
        if !tensors.is_empty() && name.contains('/') {
            let setting = "the name of an observer that keeps tensors";
            let expected = "a name without `/`, because `/` separates the names of sections in a checkpoint";
            return Err(Error::config(setting, format!("`{name}`"), expected));
        }
        if state.is_null() && tensors.is_empty() {
            self.attachments.remove(name);
        } else {
            self.attachments.insert(name.to_owned(), (state, tensors));
        }
        Ok(())
    }

    /// Replaces the policy's parameters by their moving average. Call this method after training:
    /// evaluations, samples and checkpoints then use the average.
    ///
    /// # Errors
    /// [`Error::Missing`] without an average ([`with_average`](Self::with_average)).
    pub fn take_average(&mut self) -> Result<()> {
        let Some((averaged, parameters)) = self.context.averaged() else {
            let remedy = "keep an average while training (`with_average`)";
            return Err(Error::missing("taking the average", "an average of the parameters", remedy));
        };
        averaged.average.give(parameters)
    }

    /// Runs `f` on the policy with averaged parameters, or with the current parameters if the trainer keeps
    /// no average.
    ///
    /// # Errors
    /// The errors of `f`.
    pub fn averaged<T>(&self, f: impl FnOnce(&dyn Policy<E>) -> Result<T>) -> Result<T> {
        match self.context.averaged() {
            Some((averaged, parameters)) => averaged.average.with(parameters, || f(self.policy()))?,
            None => f(self.policy()),
        }
    }
}

impl<E: TrainEnv> Trainer<E> {
    /// Returns the replay buffer, if the trainer has one.
    pub fn replay(&self) -> Option<&ReplayBuffer<E>> {
        self.sources.replay().map(|replay| &replay.buffer)
    }

    /// Returns the first source of type `T`, such as a custom source; `None` if the trainer has none.
    #[must_use]
    pub fn source<T: 'static>(&self) -> Option<&T> {
        self.sources.iter().find_map(|source| downcast(source))
    }

    /// Returns the first companion of type `T`; `None` if the trainer has none.
    #[must_use]
    pub fn companion<T: 'static>(&self) -> Option<&T> {
        self.companions.iter().find_map(|companion| downcast(companion.as_ref()))
    }

    /// Returns `true` if the source of fresh trajectories samples outside of the trainer
    /// ([`with_fresh`](Self::with_fresh)).
    pub fn is_sampled_outside(&self) -> bool {
        self.sources.fresh_traits(&self.context).is_external
    }

    /// Checks that an observer can see every trajectory. This is impossible with several replicas, because
    /// only the first replica has observers, and it sees only its share of each batch. Seeing every
    /// trajectory is also impossible if a source samples outside of the trainer and there is a replay buffer,
    /// because the trainer may put some of this source's trajectories only into the buffer.
    ///
    /// # Errors
    /// [`Error::Missing`] if the observer can't see every trajectory.
    pub fn check_sees_all(&self, needed_by: &'static str) -> Result<()> {
        let (missing, remedy) = if self.is_sampled_outside() && self.sources.replay().is_some() {
            (
                "all fresh trajectories, but some of them go only into the replay buffer",
                "train without a replay buffer, or evaluate samples of the trained policy",
            )
        } else if self.context.replicas().is_some() {
            (
                "all trajectories of a batch, but each replica has only its share of them",
                "train with one replica, or evaluate samples of the trained policy",
            )
        } else {
            return Ok(());
        };
        Err(Error::missing(needed_by, missing, remedy))
    }

    /// Saves everything that the run needs to continue: parameters, optimizer, random stream, replay buffer,
    /// step, and the attached states of observers, which date from the last time that the run attached them.
    ///
    /// Each of several replicas ([`with_group`](Self::with_group)) saves its own checkpoint: the first
    /// replica at `path`, the others beside it, with the replica's number after a dot. All replicas must call
    /// `save` in the same step, because each replica replaces its older checkpoint only after all have
    /// written their files. If only one replica calls `save`, it waits for the others until the group's
    /// timeout; [`checkpoint`](Self::checkpoint) returns the checkpoint of one replica without waiting. An
    /// observer of [`Fit`](crate::run::Fit) requests checkpoints by
    /// [`Record::save_checkpoint`](crate::run::Record::save_checkpoint), so that they hold the current states
    /// of all observers.
    ///
    /// # Errors
    /// [`Error::Missing`] for a policy without parameters; [`Error::File`] or [`Error::Io`] if the files
    /// can't be written, and for numbers that aren't finite; [`Error::Peer`] if another replica has ended.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = replica_path(self, path.as_ref());
        LAYOUT.check_target(&path)?;
        self.checkpoint()?.stage(&path)?;
        self.context.broadcast_from_first(0.0)?;
        LAYOUT.publish(&path)
    }

    /// Returns a checkpoint of this trainer, without writing it.
    ///
    /// # Errors
    /// [`Error::Missing`] for a policy without parameters.
    pub fn checkpoint(&self) -> Result<Checkpoint> {
        (E::trainer_code().checkpoint)(self)
    }

    /// Checks that checkpoints can be saved at `path`, before a run.
    ///
    /// # Errors
    /// [`Error::Missing`] for a policy without parameters; the errors of [`Checkpoint::try_path`].
    pub fn check_savable(&self, path: impl AsRef<Path>) -> Result<()> {
        self.context.policy.parameters().ok_or_else(no_parameters)?;
        Checkpoint::try_path(replica_path(self, path.as_ref()))
    }

    /// Restores this trainer from a checkpoint. Its next steps equal, bit for bit, the steps that the saving
    /// run made after the checkpoint.
    ///
    /// The trainer must have the same environment, network, objective, data and parts as the trainer that
    /// saved the checkpoint. A checkpoint with another network, objective,
    /// [settings](crate::objective::Objective::settings) of the objective, parts or description is refused.
    /// Settings of the trainer, such as the learning rate, may differ:
    /// [`resume_warning`](Self::resume_warning) names the differences, and [`Fit`](crate::run::Fit) reports
    /// them.
    ///
    /// Replicas must join their group ([`with_group`](Self::with_group)) before they resume. Their number
    /// must be the same as before, and each resumes from its own checkpoint. A run has an id, which its
    /// checkpoints store and a resumed run keeps; replicas with checkpoints of different runs or steps are
    /// refused.
    ///
    /// # Errors
    /// [`Error::File`] for a file that is damaged, incomplete, or of another model, objective or description;
    /// [`Error::Peer`] if another replica can't resume. The trainer is unchanged after an [`Error::File`].
    pub fn resume(&mut self, path: impl AsRef<Path>) -> Result<()> {
        (E::trainer_code().resume)(self, path.as_ref())
    }

    /// Offers trajectories to the replay buffer, with their recorded log-rewards, or with log-rewards of the
    /// trainer's reward if none are recorded. Returns the number of trajectories that the buffer keeps.
    ///
    /// # Errors
    /// [`Error::Missing`] without a buffer; the errors of reward and buffer.
    pub fn remember(&mut self, trajectories: &Trajectories<E>) -> Result<usize> {
        let Self { context, sources, .. } = self;
        let Replay { buffer, .. } = sources.replay_for("keeping trajectories")?;
        context.check_conditions(trajectories)?;
        let walks = trajectories.walks(&context.env)?;
        let known = trajectories.recorded_log_rewards();
        let rewards = known
            .map_or_else(|| trajectories.log_rewards(context.reward.as_ref()), |known| Ok(known.to_vec()))?;
        let added = buffer.add(&context.env, &walks, &rewards)?;
        if known.is_none() {
            sources.reward_calls += rewards.len() as u64;
        }
        Ok(added)
    }

    /// Fills the replay buffer with `n` trajectories of uniform random actions, without evaluating a network.
    /// If the trainer has conditions, it draws one for each trajectory. Each of several replicas adds its
    /// share of `n` to its own buffer. Returns the number of trajectories that the buffer keeps.
    ///
    /// # Errors
    /// [`Error::Missing`] without a buffer; the errors of sampler and reward.
    pub fn prefill(&mut self, n: usize) -> Result<usize> {
        const CHUNK: usize = 8192;
        let Self { context, sources, rng, .. } = self;
        let env = &context.env;
        let uniform = env.uniform();
        let sampler = context.sampler(env, &uniform);
        let mut replica_rng = context.split_stream(rng);
        let rng = replica_rng.as_mut().unwrap_or(rng);
        let n = context.share_of(n);
        let mut kept = 0;
        let Replay { buffer, .. } = sources.replay_for("prefilling")?;
        for start in (0..n).step_by(CHUNK) {
            let chunk = CHUNK.min(n - start);
            let mut walks = sampler.walks(chunk, rng)?;
            if let Some(conditions) = context.draw_conditions(chunk, rng)? {
                walks = walks.with_conditions(conditions)?;
            }
            let rewards = log_rewards(context.reward.as_ref(), &walks.terminal, walks.conditions())?;
            kept += buffer.add(env, &walks, &rewards)?;
        }
        sources.reward_calls += n as u64;
        Ok(kept)
    }
}

fn downcast<T: 'static>(part: &dyn Any) -> Option<&T> {
    part.downcast_ref()
}
