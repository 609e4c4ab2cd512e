//! The optional parts of a trainer besides policy, objective and reward: sources of trajectories, companions
//! (parts that each step calls), an optimizer, a group of replicas.

use serde::Serialize;

use super::checkpoint::{RESERVED, parts, to_json};
use super::companions::Averaged;
use super::config::{check_interval, check_minibatches};
use super::replicas::GradientSum;
use super::sources::{Relabelling, Replay, Share};
use super::{AverageFor, Companion, Refill, Source, TrainEnv, Trainer};
use crate::condition::{ConditionSource, Hindsight};
use crate::group::Group;
use crate::nn::Parameters;
use crate::optim::{Average, Optimizer};
use crate::policy::Policy;
use crate::replay::ReplayBuffer;
use crate::{Error, Result};

impl<E: TrainEnv> Trainer<E> {
    /// Adds a replay buffer, which is offered every new trajectory. Its share of a batch is
    /// [`TrainerConfig::source`](super::TrainerConfig::source). A second call replaces the buffer. Replayed
    /// objects keep the log-rewards that they were stored with. If the reward has changed since then,
    /// [`Fit`](crate::run::Fit) warns with [`Warning::RewardChanged`](crate::error::Warning::RewardChanged).
    #[must_use]
    pub fn with_replay(mut self, buffer: ReplayBuffer<E>) -> Self {
        match self.sources.replay_mut() {
            Some(replay) => replay.buffer = buffer,
            None => self.sources.insert(Share::Replay, Box::new(Replay::new(buffer, false))),
        }
        self
    }

    /// Adds given trajectories, such as an offline data set. Their share of a batch is
    /// [`TrainerConfig::source`](super::TrainerConfig::source); the first step returns an error if that share
    /// is 0. Training adds no trajectories to the data and uses their stored log-rewards. A checkpoint
    /// contains the data only if trajectories are drawn with probabilities that depend on their losses,
    /// because these losses must then be saved.
    #[must_use]
    pub fn with_data(mut self, data: ReplayBuffer<E>) -> Self {
        self.sources.insert(Share::Data, Box::new(Replay::new(data, true)));
        self
    }

    /// Sets the source from which each trajectory gets a condition vector. Policy, log Z and reward depend on
    /// this vector.
    #[must_use]
    pub fn with_conditions(mut self, conditions: impl ConditionSource + 'static) -> Self {
        self.context.conditions = Some(Box::new(conditions));
        self
    }

    /// Gives each trajectory drawn from the replay buffer another condition with probability `share`, and
    /// computes the reward of its object under the new condition. The buffer's entries are unchanged.
    ///
    /// The objects aren't new, so [`reward_calls`](Self::reward_calls) doesn't count these evaluations of the
    /// reward. A costly reward should cache its results.
    ///
    /// # Errors
    /// [`Error::Config`] unless the share is between 0 and 1; [`Error::Missing`] without a replay buffer,
    /// without conditions, and for a buffer that draws by loss.
    pub fn with_hindsight(
        mut self,
        hindsight: impl Hindsight<E::States> + 'static,
        share: f64,
    ) -> Result<Self> {
        if !(0.0..=1.0).contains(&share) {
            return Err(Error::config("the share of hindsight", share, "a number between 0 and 1"));
        }
        let has_conditions = self.context.conditions.is_some();
        let Some(replay) = self.sources.replay_mut().filter(|_| has_conditions) else {
            let remedy = "give the trainer both first (`with_replay`, `with_conditions`)";
            return Err(Error::missing("hindsight", "a replay buffer and conditions", remedy));
        };
        if replay.draws_by_loss() {
            return Err(Error::missing(
                "hindsight",
                "a buffer that doesn't draw by loss, because an entry has another loss under another \
                 condition",
                "draw uniformly or by reward, or train without hindsight",
            ));
        }
        replay.hindsight = Some(Relabelling { hindsight: Box::new(hindsight), share });
        Ok(self)
    }

    /// Sets a function that adds entries to the replay buffer before the draws of each step.
    ///
    /// # Errors
    /// [`Error::Missing`] without a replay buffer; [`Error::Config`] for a replay share of 0.
    pub fn with_refill(mut self, refill: impl Refill<E> + 'static) -> Result<Self> {
        self.sources.replay_for("a search among objects")?.refill = Some(Box::new(refill));
        if self.context.config.source.replay() == 0.0 {
            let expected = "a share above 0 (`TrainerConfig::source`), because entries that the search adds \
                must be drawn";
            return Err(Error::config("the replay share of a batch", "0", expected));
        }
        Ok(self)
    }

    /// Replaces the policy as the source of fresh trajectories. The trainer then requests all fresh
    /// trajectories from `source` ([`BatchRequest`](super::BatchRequest)), and doesn't sample from its
    /// policy.
    ///
    /// The first step returns an error for an objective that learns only from trajectories of the policy, and
    /// for settings of sampling by the trainer itself: sampling with averaged parameters, and local search.
    /// If the trainer has conditions ([`with_conditions`](Self::with_conditions)), the trajectories must have
    /// conditions, too.
    ///
    /// # Errors
    /// [`Error::Config`] for a name that another part has, and for a second source of fresh trajectories.
    pub fn with_fresh(mut self, source: impl Source<E>) -> Result<Self> {
        self.check_name(source.name())?;
        if self.sources.has_replacement() {
            let expected = "only one source of fresh trajectories (`with_fresh`; Thompson sampling is such a \
                source)";
            return Err(Error::config(
                "the source of fresh trajectories",
                format!("`{}`, which is the second source of fresh trajectories", source.name()),
                expected,
            ));
        }
        self.sources.insert(Share::Rest, Box::new(source));
        Ok(self)
    }

    /// Adds a custom source, which supplies `share` of each batch, rounded to whole trajectories.
    /// [`TrainerConfig::source`](super::TrainerConfig::source) divides the rest of the batch into fresh,
    /// replayed and given trajectories. [`Source`] has an example.
    ///
    /// # Errors
    /// [`Error::Config`] unless `0 < share <= 1`, and for a name that another part has. The first step
    /// returns [`Error::Config`] for a share that rounds to no trajectory, and for shares whose sum exceeds
    /// the batch.
    pub fn with_source(mut self, share: f64, source: impl Source<E>) -> Result<Self> {
        if !(share > 0.0 && share <= 1.0) {
            return Err(Error::config("the share of a source", share, "0 < share <= 1"));
        }
        self.check_name(source.name())?;
        self.sources.insert(Share::Fixed(share), Box::new(source));
        Ok(self)
    }

    /// Adds a companion. Companions are called in the order in which they were added. [`Companion`] has an
    /// example.
    ///
    /// # Errors
    /// [`Error::Config`] for a name that another part has, and for a companion that
    /// [supplies](Companion::supplies) quantities if the objective needs none of them.
    pub fn with_companion(mut self, companion: impl Companion<E>) -> Result<Self> {
        self.check_name(companion.name())?;
        let supplied = companion.supplies();
        let objective = self.context.objective.as_ref();
        if !supplied.is_empty() && !objective.needs().has_any(supplied) {
            let expected = "an objective that needs a quantity which the companion supplies, because another \
                objective ignores the companion";
            return Err(Error::config(
                "the objective of a trainer with a companion",
                objective.name(),
                expected,
            ));
        }
        self.companions.push(Box::new(companion));
        Ok(self)
    }

    /// Keeps an exponential moving average of the parameters ([`Average`]), updated after each step and saved
    /// in checkpoints.
    ///
    /// # Errors
    /// [`Error::Missing`] for a policy without parameters; [`Error::Config`] unless `0 <= decay < 1`.
    pub fn with_average(mut self, decay: f64, purpose: AverageFor) -> Result<Self> {
        let average = Average::new(self.parameters("a moving average")?, decay)?;
        self.context.average = Some(Averaged { name: "average", average, every: 1, purpose });
        Ok(self)
    }

    /// Keeps a target network, for objectives that compare the policy with a target network
    /// ([`NextExit::TargetNetwork`](crate::objective::NextExit::TargetNetwork)). A target network is a copy
    /// of the parameters that is updated every `every` steps and saved in checkpoints.
    ///
    /// ```
    /// use gfn::objective::{ModifiedDetailedBalance, NextExit};
    /// use gfn::policy::{ByNumber, MlpPolicy, MlpPolicyConfig};
    /// use gfn::{
    ///     Result, Rng,
    ///     env::{Reward, VectorStates},
    ///     examples::word_env,
    ///     train::{Trainer, TrainerConfig},
    /// };
    /// use tch::{Device, Kind, Tensor};
    /// struct Length;
    /// impl Reward<VectorStates> for Length {
    ///     fn log_reward(&self, words: &VectorStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
    ///         Ok(words
    ///             .rows()
    ///             .map(|word| word.iter().filter(|&&letter| letter > 0).count() as f64)
    ///             .collect())
    ///     }
    ///     fn partial_log_reward(
    ///         &self,
    ///         words: &VectorStates,
    ///         c: Option<&Tensor>,
    ///     ) -> Result<Option<Vec<f64>>> {
    ///         self.log_reward(words, c).map(Some)
    ///     }
    /// }
    /// let (env, rng) = (word_env(2, 2), Rng::seeded(0));
    /// let policy = MlpPolicy::tabular(
    ///     &env,
    ///     ByNumber::new(2, 3),
    ///     MlpPolicyConfig::default(),
    ///     Device::Cpu,
    ///     Kind::Float,
    /// )?;
    /// let objective = ModifiedDetailedBalance { next_exit: NextExit::TargetNetwork };
    /// let trainer = Trainer::new(env, Length, policy, objective, TrainerConfig::default(), rng)?;
    /// assert!(trainer.with_target_network(100)?.step()?.loss.is_finite());
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Missing`] for a policy without parameters; [`Error::Config`] if `every` is 0.
    pub fn with_target_network(mut self, every: usize) -> Result<Self> {
        check_interval("steps between copies", Some(every))?;
        let name = "target_network";
        let average = Average::new(self.parameters("a target network")?, 0.0)?;
        self.companions.retain(|companion| companion.name() != name);
        self.companions.push(Box::new(Averaged { name, average, every, purpose: AverageFor::Evaluation }));
        Ok(self)
    }

    /// Trains as one of several replicas. Each replica has a trainer that was built in the same way, with the
    /// same optimizer (optimizers aren't compared). [`TrainerConfig::batch`](super::TrainerConfig::batch) is
    /// the batch of all replicas together. Each replica draws its [share](super::Context::share) with its own
    /// random stream and from its own replay buffer. Every replica's update uses the gradient of the whole
    /// batch, for every objective, so the replicas' parameters stay equal.
    ///
    /// Loss, log Z, gradient norm and the number of states are computed over all replicas. The
    /// [latest](Self::latest) trajectories and the [calls of the reward](Self::reward_calls) belong to this
    /// replica alone. [`Fit`](crate::run::Fit) calls observers on the first replica only and ends all
    /// replicas together. The other replicas wait while observers run, so the timeout of a group of processes
    /// must be longer than the run time of the observers. A run with the same number of replicas gives the
    /// same results bit for bit, also if it is resumed.
    ///
    /// ```
    /// use gfn::group::replicate;
    /// use gfn::policy::{ByNumber, MlpPolicy, MlpPolicyConfig};
    /// use gfn::{
    ///     Rng,
    ///     env::{Rows, VectorStates},
    ///     examples::word_env,
    ///     objective::TrajectoryBalance,
    /// };
    /// use gfn::{
    ///     run::Fit,
    ///     train::{Trainer, TrainerConfig},
    /// };
    /// let trainer = replicate(2, |replica| {
    ///     let env = word_env(2, 2);
    ///     let policy = MlpPolicy::tabular(
    ///         &env,
    ///         ByNumber::new(2, 3),
    ///         MlpPolicyConfig::default(),
    ///         tch::Device::Cpu,
    ///         tch::Kind::Float,
    ///     )?;
    ///     let reward = |states: &VectorStates, _: Option<&tch::Tensor>| Ok(vec![0.0; states.len()]);
    ///     let config = TrainerConfig { batch: 9, ..TrainerConfig::default() };
    ///     let mut trainer = Trainer::new(env, reward, policy, TrajectoryBalance, config, Rng::seeded(0))?
    ///         .with_group(replica)?;
    ///     Fit::new(5).run(&mut trainer)?;
    ///     Ok(trainer)
    /// })?;
    /// assert_eq!((trainer.context().share(), trainer.steps_done()), (4, 5));
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] for a batch with too few trajectories for the replicas and their minibatches;
    /// [`Error::Contract`] for replicas that differ (build them from one seed and for one environment);
    /// [`Error::Peer`] if another replica has ended. The first step evaluates each replica's reward for a few
    /// random objects, which [`reward_calls`](Self::reward_calls) doesn't count, and returns an error if
    /// rewards differ. Rewards aren't compared if
    /// [fresh trajectories come from a custom source](Self::with_fresh), or if random walks exceed
    /// [`max_steps`](super::TrainerConfig::max_steps).
    pub fn with_group(mut self, group: impl Into<Box<dyn Group>>) -> Result<Self> {
        let batch = self.context.config.batch;
        let group = group.into();
        if batch < group.size() {
            let got = format!("{batch} trajectories for {} replicas", group.size());
            return Err(Error::config("batch", got, "at least one trajectory per replica"));
        }
        // Without minibatches the objective sees the whole batch, whose size was checked before.
        if self.context.objective.n_minibatches() > 1 {
            check_minibatches(self.context.objective.as_ref(), batch / group.size())?;
        }
        self.context.group = group;
        self.check_equal_replicas()?;
        self.run_id = self.context.broadcast_from_first(self.run_id as f64)? as u64;
        self.companions.retain(|companion| companion.name() != "gradient_sum");
        self.companions.insert(0, Box::new(GradientSum));
        Ok(self)
    }

    /// Replaces the default optimizer, [`TrainerConfig::adam`](super::TrainerConfig::adam), by the optimizer
    /// that `make` builds for the policy's parameters. The schedule
    /// [`TrainerConfig::lr_scale`](super::TrainerConfig::lr_scale) multiplies the learning rates of the new
    /// optimizer, too. Does nothing for a policy without parameters.
    ///
    /// # Errors
    /// The errors of `make`.
    pub fn with_optimizer<O: Optimizer + 'static>(
        mut self,
        make: impl FnOnce(&Parameters) -> Result<O>,
    ) -> Result<Self> {
        if let Some(parameters) = self.context.policy.parameters() {
            self.optimizer = Some(Box::new(make(parameters)?));
        }
        Ok(self)
    }

    /// Stores a description of the run in every checkpoint, such as the settings of environment and network,
    /// for programs that have only the checkpoint
    /// ([`Checkpoint::description`](super::Checkpoint::description)). A run can be resumed only from a
    /// checkpoint with an equal description.
    ///
    /// # Errors
    /// [`Error::Contract`] for a value that can't be written as JSON.
    pub fn with_description(mut self, description: &impl Serialize) -> Result<Self> {
        self.description = to_json(description)?;
        Ok(self)
    }

    /// Stores a note for readers in every checkpoint ([`Checkpoint::note`](super::Checkpoint::note)).
    /// Resuming ignores it.
    ///
    /// # Errors
    /// [`Error::Contract`] for a value that can't be written as JSON.
    pub fn with_note(mut self, note: &impl Serialize) -> Result<Self> {
        self.note = to_json(note)?;
        Ok(self)
    }

    /// Returns the policy's parameters. Returns an error that names `needed_by`, the part that needs them, if
    /// the policy has no parameters.
    fn parameters(&self, needed_by: &'static str) -> Result<&Parameters> {
        let none = || {
            Error::missing(
                needed_by,
                "a policy with parameters",
                "leave this setting out, because this policy has no parameters",
            )
        };
        self.context.policy.parameters().ok_or_else(none)
    }

    /// Returns an error for a name that is empty, contains `/`, or belongs to another part. Parts need
    /// different names, because a checkpoint identifies them by name.
    fn check_name(&self, name: &str) -> Result<()> {
        let is_taken = || RESERVED.contains(&name) || parts(self).iter().any(|part| part.name() == name);
        if name.is_empty() || name.contains('/') || is_taken() {
            let expected = "a name without `/` that no other part of the trainer has, because a checkpoint \
                stores parts by name";
            return Err(Error::config("the name of a source or companion", format!("`{name}`"), expected));
        }
        Ok(())
    }
}
