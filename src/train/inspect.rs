//! Access to the parts of a trainer, its replay buffer, and its checkpoints.

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
use crate::rollout::{Container, Sampler, Trajectories};
use crate::{Error, Result, Rng};

impl<E: Env> fmt::Debug for Trainer<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Context { objective, step, config, .. } = &self.context;
        let mut out = f.debug_struct("Trainer");
        out.field("objective", objective).field("step", step).field("config", config).finish_non_exhaustive()
    }
}

impl<E: Env> Trainer<E> {
    /// The parts of the trainer that sources and companions see.
    pub fn context(&self) -> &Context<E> {
        &self.context
    }

    /// The environment.
    pub fn env(&self) -> &E {
        &self.context.env
    }

    /// The reward.
    pub fn reward(&self) -> &dyn Reward<E::States> {
        self.context.reward.as_ref()
    }

    /// The policy.
    pub fn policy(&self) -> &dyn Policy<E> {
        self.context.policy()
    }

    /// Returns the policy as the type `P` that the trainer was built with; `None` for another type.
    #[must_use]
    pub fn policy_as<P: 'static>(&self) -> Option<&P> {
        let policy: &dyn Any = self.context.policy.as_ref();
        policy.downcast_ref()
    }

    /// Returns the policy by value.
    #[must_use]
    pub fn into_policy(self) -> Box<dyn Policy<E> + Send> {
        self.context.policy
    }

    /// Returns the policy by value as the type `P` that the trainer was built with; `None` for another type.
    #[must_use]
    pub fn into_policy_as<P: 'static>(self) -> Option<P> {
        let policy: Box<dyn Any> = self.context.policy;
        policy.downcast().ok().map(|policy| *policy)
    }

    /// Tells the trainer that the policy was changed by something other than training. The next step checks it as the first step did.
    pub fn policy_changed(&mut self) {
        self.next_check = 0;
    }

    /// The number of steps made.
    pub fn steps_done(&self) -> usize {
        self.context.step
    }

    /// The number of new objects that a reward was computed for: fresh trajectories, proposals of local search and objects that filled the
    /// buffer, not replayed ones. Each of several replicas counts its own.
    pub fn reward_calls(&self) -> u64 {
        self.sources.reward_calls
    }

    /// The trajectories of the last step; `None` before the first.
    pub fn latest(&self) -> Option<&Trajectories<E>> {
        self.latest.as_ref().map(|batch| &batch.trajectories)
    }

    /// The batch of the last step; `None` before the first.
    pub fn latest_batch(&self) -> Option<&Batch<E>> {
        self.latest.as_ref()
    }

    /// The number of the [`latest`](Self::latest) trajectories that the policy, local search, or the source in the policy's place supplied. They
    /// come first; the others were replayed, given, or supplied by further sources.
    pub fn n_fresh(&self) -> usize {
        self.latest.as_ref().map_or(0, |batch| batch.fresh)
    }

    /// The number of scalars that are trained.
    pub fn n_parameters(&self) -> i64 {
        self.context.policy.parameters().map_or(0, Parameters::count)
    }

    /// Returns a separate random stream for evaluation, so that evaluation doesn't change the training.
    pub fn evaluation_rng(&self) -> Rng {
        self.rng.clone().split()
    }

    /// Compares the trainers of all replicas, as each run does before its first step.
    ///
    /// # Errors
    /// [`Error::Contract`] for two that differ; [`Error::Peer`] if another replica has ended.
    pub fn check_equal_replicas(&self) -> Result<()> {
        super::replicas::check_equal_replicas(self)
    }

    /// The changes of settings since the checkpoint that this run resumed from ([`Warning::Resumed`]), if there are any.
    pub fn resume_warning(&self) -> Option<&Warning> {
        self.resume_warning.as_ref()
    }

    /// Returns the state that was [attached](Self::attach) by this name, also before a resume.
    pub fn attachment(&self, name: &str) -> Option<(&Value, &[(String, Tensor)])> {
        self.attachments.get(name).map(|(state, tensors)| (state, tensors.as_slice()))
    }

    /// Attaches the state of code around the trainer to its checkpoints: JSON, and tensors for values that are too large for it. A state with
    /// neither removes the attachment. [`Fit`](crate::run::Fit) attaches the states of its observers.
    ///
    /// # Errors
    /// [`Error::Config`] for a name with a `/` and tensors.
    pub fn attach(&mut self, name: &str, state: Value, tensors: Vec<(String, Tensor)>) -> Result<()> {
        if !tensors.is_empty() && name.contains('/') {
            let setting = "the name of an observer that keeps tensors";
            let expected = "a name without `/`, which divides the names of a checkpoint's sections";
            return Err(Error::config(setting, format!("`{name}`"), expected));
        }
        if state.is_null() && tensors.is_empty() {
            self.attachments.remove(name);
        } else {
            self.attachments.insert(name.to_owned(), (state, tensors));
        }
        Ok(())
    }

    /// Replaces the policy's parameters by their average, after training. Evaluations, samples and checkpoints are then those of the average.
    ///
    /// # Errors
    /// [`Error::Missing`] without an average ([`with_average`](Self::with_average)).
    pub fn take_average(&mut self) -> Result<()> {
        let Some((averaged, parameters)) = self.context.averaged() else {
            let remedy = "keep one while training (`with_average`)";
            return Err(Error::missing("taking the average", "an average of the parameters", remedy));
        };
        averaged.average.give(parameters)
    }

    /// Runs `f` on the policy with averaged parameters, or with the current ones if there is no average.
    ///
    /// # Errors
    /// Those of `f`.
    pub fn averaged<T>(&self, f: impl FnOnce(&dyn Policy<E>) -> Result<T>) -> Result<T> {
        match self.context.averaged() {
            Some((averaged, parameters)) => averaged.average.with(parameters, || f(self.policy()))?,
            None => f(self.policy()),
        }
    }
}

impl<E: TrainEnv> Trainer<E> {
    /// The replay buffer.
    pub fn replay(&self) -> Option<&ReplayBuffer<E>> {
        self.sources.replay().map(|replay| &replay.buffer)
    }

    /// Returns the first source of type `T`, for example a custom one.
    #[must_use]
    pub fn source<T: 'static>(&self) -> Option<&T> {
        self.sources.iter().find_map(|source| downcast(source))
    }

    /// Returns the first companion of type `T`.
    #[must_use]
    pub fn companion<T: 'static>(&self) -> Option<&T> {
        self.companions.iter().find_map(|companion| downcast(companion.as_ref()))
    }

    /// Returns `true` if fresh trajectories come from outside of the trainer ([`with_fresh`](Self::with_fresh)).
    pub fn is_sampled_outside(&self) -> bool {
        self.sources.fresh_traits(&self.context).is_external
    }

    /// Checks for an observer that it can see every trajectory. The first replica, which alone has observers, sees its own share of each batch,
    /// and a source that replaces the policy may put trajectories into the replay buffer only.
    ///
    /// # Errors
    /// [`Error::Missing`] if it can't.
    pub fn check_sees_all(&self, needed_by: &'static str) -> Result<()> {
        let (missing, remedy) = if self.is_sampled_outside() && self.sources.replay().is_some() {
            (
                "all fresh trajectories: some go into the replay buffer alone",
                "train without a replay buffer, or evaluate samples of the trained policy",
            )
        } else if self.context.replicas().is_some() {
            (
                "all trajectories of a batch, of which each replica sees its share",
                "train with one replica, or evaluate samples of the trained policy",
            )
        } else {
            return Ok(());
        };
        Err(Error::missing(needed_by, missing, remedy))
    }

    /// Saves everything that the run needs to continue: parameters, optimizer, random stream, replay buffer, step, and the states of observers
    /// as of their last save.
    ///
    /// Each of several replicas ([`with_group`](Self::with_group)) saves its own checkpoint, the first at `path`, the others beside it with
    /// their number after a dot. All of them must save in the same step: they wait until each has written its files before any replaces an
    /// older checkpoint. A call on one replica alone waits for the others until it fails; [`checkpoint`](Self::checkpoint) returns the checkpoint
    /// of one replica. An observer of [`Fit`](crate::run::Fit) requests checkpoints by
    /// [`Record::save_checkpoint`](crate::run::Record::save_checkpoint), so that they hold the states of all observers.
    ///
    /// # Errors
    /// [`Error::Missing`] for a policy without parameters; [`Error::File`] or [`Error::Io`] if the files can't be written, and for numbers
    /// that aren't finite; [`Error::Peer`] if another replica has ended.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = replica_path(self, path.as_ref());
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

    /// Checks before a run that its checkpoints can be saved at `path`.
    ///
    /// # Errors
    /// [`Error::Missing`] for a policy without parameters, and those of [`Checkpoint::try_path`].
    pub fn check_savable(&self, path: impl AsRef<Path>) -> Result<()> {
        self.context.policy.parameters().ok_or_else(no_parameters)?;
        Checkpoint::try_path(replica_path(self, path.as_ref()))
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

    /// Offers trajectories to the replay buffer, with their recorded log-rewards or those of the trainer's reward. Returns the number that the
    /// buffer keeps.
    ///
    /// # Errors
    /// [`Error::Missing`] without a buffer, and those of reward and buffer.
    pub fn remember(&mut self, trajectories: &Trajectories<E>) -> Result<usize> {
        let Self { context, sources, .. } = self;
        let Replay { buffer, .. } = sources.replay_for("keeping trajectories")?;
        context.check_conditions(trajectories)?;
        let walks = trajectories.walks(&context.env)?;
        let known = trajectories.recorded_log_rewards();
        let rewards =
            known.map_or_else(|| trajectories.log_rewards(context.reward.as_ref()), |known| Ok(known.to_vec()))?;
        let added = buffer.add(&context.env, &walks, &rewards)?;
        if known.is_none() {
            sources.reward_calls += rewards.len() as u64;
        }
        Ok(added)
    }

    /// Fills the replay buffer with `n` uniform random walks, without a network; under conditions if the trainer has some. Each of several
    /// replicas fills its own buffer with its share. Returns the number that the buffer keeps.
    ///
    /// # Errors
    /// [`Error::Missing`] without a buffer, and those of sampler and reward.
    pub fn prefill(&mut self, n: usize) -> Result<usize> {
        const CHUNK: usize = 8192;
        let Self { context, sources, rng, .. } = self;
        let env = &context.env;
        let uniform = env.uniform();
        let sampler = Sampler::new(env, &uniform).max_steps(context.config.max_steps);
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
