//! What a trainer is given beside policy, objective and reward: sources, companions, an optimizer.

use serde::Serialize;

use super::checkpoint::{check_name, to_json};
use super::companions::{Averaged, Intrinsic, IntrinsicConfig, Novelty, TargetNetwork};
use super::fit::check_interval;
use super::replicas::agree;
use super::sources::{ObjectSearch, Relabelling, Replay, Searching, Teacher, TeacherConfig, Thompson};
use super::{AverageFor, Companion, Source, Trainer};
use crate::condition::{ConditionSource, Hindsight};
use crate::group::Group;
use crate::nn::Parameters;
use crate::optim::{Average, Optimizer};
use crate::policy::Policy;
use crate::quantity::Quantity;
use crate::replay::ReplayBuffer;
use crate::train::TrainEnv;
use crate::{Error, Result};

impl<E: TrainEnv> Trainer<E> {
    /// Learns from a replay buffer, too; hindsight and a search come after it. Replayed objects keep the log-rewards
    /// that they were stored with; if the reward gives others by then, a
    /// [`Warning::RewardChanged`](crate::error::Warning::RewardChanged) says so.
    #[must_use]
    pub fn with_replay(mut self, replay: ReplayBuffer<E>) -> Self {
        match &mut self.sources.replay {
            Some(there) => there.buffer = replay,
            none => *none = Some(Replay::new(replay, false)),
        }
        self
    }

    /// Learns from given trajectories, too, as much as [`TrainerConfig::source`](super::TrainerConfig::source) says; nothing is added to them, and the log-rewards that
    /// they came with are taken. The first step refuses a share of 0. Where they are drawn by loss, a checkpoint has them, too, with their losses.
    #[must_use]
    pub fn with_data(mut self, data: ReplayBuffer<E>) -> Self {
        self.sources.data = Some(Replay::new(data, true));
        self
    }

    /// Draws a condition vector for each trajectory, which policy, log Z and reward see.
    #[must_use]
    pub fn with_conditions(mut self, conditions: impl ConditionSource + 'static) -> Self {
        self.context.conditions = Some(Box::new(conditions));
        self
    }

    /// Gives each trajectory that is drawn from the replay buffer other conditions with the probability `share`, and asks the reward for its
    /// object again under them; what the buffer holds stays as it is.
    ///
    /// Such objects aren't new ones, so [`reward_calls`](Self::reward_calls) doesn't count them: a reward that is costly to ask should
    /// remember what it said.
    ///
    /// # Errors
    /// [`Error::Config`] unless the share is between 0 and 1; [`Error::Missing`] without a replay buffer and without conditions.
    pub fn with_hindsight(mut self, hindsight: impl Hindsight<E::States> + 'static, share: f64) -> Result<Self> {
        if !(0.0..=1.0).contains(&share) {
            return Err(Error::config("the share of hindsight", share, "a number between 0 and 1"));
        }
        let (Some(replay), true) = (&mut self.sources.replay, self.context.conditions.is_some()) else {
            let remedy = "give the trainer both before (`with_replay`, `with_conditions`)";
            return Err(Error::missing("hindsight", "a replay buffer and conditions", remedy));
        };
        if replay.draws_by_loss() {
            return Err(Error::missing(
                "hindsight",
                "a buffer that doesn't draw by loss: a loss under other conditions isn't that of the entry",
                "draw uniformly or by reward, or train without hindsight",
            ));
        }
        replay.hindsight = Some(Relabelling { hindsight: Box::new(hindsight), share });
        Ok(self)
    }

    /// Searches after every `every` steps from `objects` that are drawn from the replay buffer, as it draws, and adds what is found to
    /// the buffer (Sendera et al., *Improved Off-Policy Training of Diffusion Samplers*, 2024). Buffers that keep paths get
    /// them from the environment's uniform backward policy.
    ///
    /// Its time counts as the step's.
    ///
    /// # Errors
    /// [`Error::Config`] for an interval, a number of objects or a replay share of 0; [`Error::Missing`] without a replay buffer.
    pub fn with_search(mut self, search: impl ObjectSearch<E> + 'static, every: usize, objects: usize) -> Result<Self> {
        check_interval("the steps between searches", Some(every))?;
        check_interval("objects to search from", Some(objects))?;
        let Some(replay) = &mut self.sources.replay else {
            let remedy = "give the trainer one before (`with_replay`)";
            return Err(Error::missing("a search among objects", "a replay buffer", remedy));
        };
        if self.context.config.source.replay() == 0.0 {
            let expected = "a share above 0 (`TrainerConfig::source`) for what the trainer was given";
            return Err(Error::config("the replay share of a batch", "0 with a search", expected));
        }
        replay.searching = Some(Searching { search: Box::new(search), every, objects });
        Ok(self)
    }

    /// Takes fresh trajectories from elsewhere: the policy isn't sampled from here any more, and the source is told how many are wanted
    /// ([`Wanted`](super::Wanted)).
    ///
    /// The first step refuses an objective that learns from the policy's own trajectories alone, and whatever has a say in how a trainer
    /// draws: an adaptive teacher, Thompson sampling, sampling by the average, local search. Where the trainer has conditions
    /// ([`with_conditions`](Self::with_conditions)), what comes must have some, too.
    ///
    /// # Errors
    /// [`Error::Config`] for a name that another part has.
    pub fn with_fresh(mut self, source: impl Source<E> + 'static) -> Result<Self> {
        self.check_name(source.name())?;
        self.sources.elsewhere = Some(Box::new(source));
        Ok(self)
    }

    /// Takes `share` of each batch from a source of one's own, rounded to whole trajectories; what is left of the batch is shared as
    /// [`TrainerConfig::source`](super::TrainerConfig::source) says. [`Source`] has an example.
    ///
    /// # Errors
    /// [`Error::Config`] unless `0 < share <= 1`, and for a name that another part has; by the first step, for a share of no trajectory and
    /// for shares of more than a batch together.
    pub fn with_source(mut self, share: f64, source: impl Source<E> + 'static) -> Result<Self> {
        if !(share > 0.0 && share <= 1.0) {
            return Err(Error::config("the share of a source", share, "0 < share <= 1"));
        }
        self.check_name(source.name())?;
        self.sources.others.push((share, Box::new(source)));
        Ok(self)
    }

    /// Lets a companion of one's own ride along, behind those that are there. [`Companion`] has an example.
    ///
    /// # Errors
    /// [`Error::Config`] for a name that another part has.
    pub fn with_companion(mut self, companion: impl Companion<E> + 'static) -> Result<Self> {
        self.check_name(companion.name())?;
        self.companions.others.push(Box::new(companion));
        Ok(self)
    }

    /// Adds an adaptive teacher (Kim et al., *Adaptive Teachers for Amortized Samplers*, 2025): a second policy that draws a share of
    /// the fresh trajectories, and learns by trajectory balance to sample where the student, the trainer's own policy, is wrong. It changes the
    /// behaviour, not the target.
    ///
    /// Its reward is that of [`teacher_log_rewards`](super::teacher_log_rewards), of each trajectory that the student is trained on, whoever drew it. It moves
    /// as the student learns. As in the authors' code `delta` is that of one trajectory, not a mean over the paths to its object, so
    /// that the teacher samples in proportion to the geometric mean of its reward over the paths; the paper trains with a fixed,
    /// uniform P_B in both. Other than there, student, teacher and buffer share each batch instead of taking turns. An objective that
    /// is relative to a prior is refused: its balance isn't one with P_B.
    ///
    /// ```
    /// use gfn::{env::{Rows, VectorStates}, objective::TrajectoryBalance, testing::word_env, Rng};
    /// use gfn::policy::{ByNumber, MlpPolicy, MlpPolicyConfig};
    /// use gfn::train::{TeacherConfig, Trainer, TrainerConfig};
    /// let (env, rng) = (word_env(2, 2), Rng::seeded(0));
    /// let policy = || MlpPolicy::tabular(&env, ByNumber::new(2, 3), MlpPolicyConfig::default(), tch::Device::Cpu, tch::Kind::Float);
    /// let reward = |states: &VectorStates, _: Option<&tch::Tensor>| Ok(vec![0.0; states.len()]);
    /// let mut trainer = Trainer::new(env.clone(), reward, policy()?, TrajectoryBalance, TrainerConfig::default(), rng)?
    ///     .with_teacher(policy()?, TeacherConfig::default())?;
    /// assert!(trainer.step()?.loss.is_finite());
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] for settings that make no sense, [`Error::Missing`] for a policy without parameters and for an objective
    /// relative to a prior; [`Error::Contract`] for a policy that a trainer would refuse as its own.
    pub fn with_teacher<T: Policy<E> + Send + 'static>(mut self, policy: T, config: TeacherConfig) -> Result<Self> {
        if self.context.objective.needs().has(Quantity::LogPrior) {
            return Err(Error::missing(
                "an adaptive teacher",
                "an objective whose balance is one with P_B, not with a prior",
                "train the student without a teacher, or by an objective that isn't relative to a prior",
            ));
        }
        let teacher = Teacher::new(&self.context.env, policy, config)?;
        self.sources.own.teacher = Some((config.share, Box::new(teacher)));
        Ok(self)
    }

    /// Explores by Thompson sampling (Rector-Brooks et al., *Thompson Sampling for Improved Exploration in GFlowNets*, 2023): by what
    /// the heads of P_F don't agree on. It changes the behaviour, not the target.
    ///
    /// Each fresh trajectory follows a head drawn for it. Each head then learns from a random share of the batch (bootstrapping):
    /// from a trajectory with probability `share`, drawn for each pair, and from the whole batch where nothing was drawn for it. The loss is the mean
    /// over heads, which share torso, P_B, log F and log Z. Heads and shares are drawn from the trainer's own stream, so that a resumed run draws
    /// them as the whole one would have. After each step the head in use is the one that was before: the one that evaluation sees.
    ///
    /// # Errors
    /// [`Error::Config`] for a policy with one head, and unless `0 < share <= 1`.
    pub fn with_thompson(mut self, share: f64) -> Result<Self> {
        self.sources.own.thompson = Some(Thompson::new(self.context.policy(), share)?);
        Ok(self)
    }

    /// Keeps an exponential moving average of the parameters ([`Average`]), updated after each step and saved in checkpoints.
    ///
    /// # Errors
    /// [`Error::Missing`] for a policy without parameters; [`Error::Config`] unless `0 <= decay < 1`.
    pub fn with_average(mut self, decay: f64, purpose: AverageFor) -> Result<Self> {
        let average = Average::new(self.parameters("a moving average")?, decay)?;
        self.companions.average = Some(Averaged { average, purpose });
        Ok(self)
    }

    /// Keeps a target network: a copy of the parameters that takes their values every `every` steps, for objectives that compare with it
    /// ([`NextExit::TargetNetwork`](crate::objective::NextExit::TargetNetwork)). It is saved in checkpoints.
    ///
    /// ```
    /// use gfn::objective::{ModifiedDetailedBalance, NextExit};
    /// use gfn::policy::{ByNumber, MlpPolicy, MlpPolicyConfig};
    /// use gfn::{env::{Reward, VectorStates}, testing::word_env, train::{Trainer, TrainerConfig}, Result, Rng};
    /// use tch::{Device, Kind, Tensor};
    /// struct Length;
    /// impl Reward<VectorStates> for Length {
    ///     fn log_reward(&self, words: &VectorStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
    ///         Ok(words.rows().map(|word| word.iter().filter(|&&letter| letter > 0).count() as f64).collect())
    ///     }
    ///     fn partial_log_reward(&self, words: &VectorStates, c: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
    ///         self.log_reward(words, c).map(Some)
    ///     }
    /// }
    /// let (env, rng) = (word_env(2, 2), Rng::seeded(0));
    /// let policy = MlpPolicy::tabular(&env, ByNumber::new(2, 3), MlpPolicyConfig::default(), Device::Cpu, Kind::Float)?;
    /// let objective = ModifiedDetailedBalance { next_exit: NextExit::TargetNetwork };
    /// let trainer = Trainer::new(env, Length, policy, objective, TrainerConfig::default(), rng)?;
    /// assert!(trainer.with_target_network(100)?.step()?.loss.is_finite());
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Missing`] for a policy without parameters; [`Error::Config`] for every 0 steps.
    pub fn with_target_network(mut self, every: usize) -> Result<Self> {
        check_interval("steps between copies", Some(every))?;
        let copy = Average::new(self.parameters("a target network")?, 0.0)?;
        self.companions.others.retain(|companion| companion.name() != "target_network");
        self.companions.others.push(Box::new(TargetNetwork { copy, every }));
        Ok(self)
    }

    /// Adds intrinsic rewards, which the objective must know what to do with:
    /// [`AugmentedTrajectoryBalance`](crate::objective::AugmentedTrajectoryBalance) or
    /// [`AugmentedDetailedBalance`](crate::objective::AugmentedDetailedBalance). They change the target while they aren't 0.
    ///
    /// ```
    /// use gfn::{env::{Rows, VectorStates}, nn::EstimatorsConfig, objective::AugmentedTrajectoryBalance, optim::Schedule};
    /// use gfn::{testing::word_env, Rng};
    /// use gfn::policy::{ByNumber, MlpPolicy, MlpPolicyConfig};
    /// use gfn::train::{DistillationConfig, IntrinsicConfig, RandomDistillation, Trainer, TrainerConfig};
    /// use tch::{Device, Kind};
    /// let (env, mut rng) = (word_env(2, 2), Rng::seeded(0));
    /// let estimators = EstimatorsConfig::with_flow(true);
    /// let config = MlpPolicyConfig { estimators, ..MlpPolicyConfig::default() };
    /// let policy = MlpPolicy::tabular(&env, ByNumber::new(2, 3), config, Device::Cpu, Kind::Float)?;
    /// let (features, config) = (ByNumber::new(2, 3), DistillationConfig::default());
    /// let novelty = RandomDistillation::new(features, config, Device::Cpu, Kind::Float, &mut rng)?;
    /// let reward = |states: &VectorStates, _: Option<&tch::Tensor>| Ok(vec![0.0; states.len()]);
    /// let coefficient = Schedule::Linear { from: 0.1, to: 0.0, steps: 100 };
    /// let mut trainer = Trainer::new(env, reward, policy, AugmentedTrajectoryBalance, TrainerConfig::default(), rng)?
    ///     .with_intrinsic(novelty, IntrinsicConfig::joint(coefficient))?;
    /// assert!(trainer.step()?.loss.is_finite());
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] for an objective that has no place for them, and for a coefficient that is ever negative.
    pub fn with_intrinsic(
        mut self,
        novelty: impl Novelty<E::States> + 'static,
        config: IntrinsicConfig,
    ) -> Result<Self> {
        config.check()?;
        let objective = &self.context.objective;
        if !objective.needs().has_any(&[Quantity::IntrinsicEdge, Quantity::IntrinsicTerminal]) {
            let expected = "augmented trajectory or detailed balance: others would take no notice of them";
            return Err(Error::config("the objective with intrinsic rewards", objective.name(), expected));
        }
        self.companions.intrinsic = Some(Intrinsic { novelty: Box::new(novelty), config });
        Ok(self)
    }

    /// Trains as one of several replicas, each with a trainer that was built like this one (with the same optimizer, too: it isn't compared). [`TrainerConfig::batch`](super::TrainerConfig::batch)
    /// is that of all replicas together; each draws its [share](super::Context::share) by a random stream of its own, from its own buffer, if there is
    /// one. The gradient is that of the whole batch, for every objective, so the replicas stay equal.
    ///
    /// Loss, log Z, gradients and the states of a batch are of all replicas; the [latest](Self::latest) trajectories,
    /// [calls of the reward](Self::reward_calls), a teacher and novelty are this replica's own. [`Fit`](super::Fit) shows the first replica alone to observers, saves its checkpoints, and ends all together; the others wait meanwhile, so a group of processes needs a timeout that is longer than that takes. With as many replicas, a run gives the same bits again, also resumed.
    ///
    /// ```
    /// use gfn::group::replicate;
    /// use gfn::{env::{Rows, VectorStates}, objective::TrajectoryBalance, testing::word_env, Rng};
    /// use gfn::policy::{ByNumber, MlpPolicy, MlpPolicyConfig};
    /// use gfn::train::{Fit, Trainer, TrainerConfig};
    /// let trainer = replicate(2, |replica| {
    ///     let env = word_env(2, 2);
    ///     let policy = MlpPolicy::tabular(&env, ByNumber::new(2, 3), MlpPolicyConfig::default(), tch::Device::Cpu, tch::Kind::Float)?;
    ///     let reward = |states: &VectorStates, _: Option<&tch::Tensor>| Ok(vec![0.0; states.len()]);
    ///     let config = TrainerConfig { batch: 9, ..TrainerConfig::default() };
    ///     let mut trainer =
    ///         Trainer::new(env, reward, policy, TrajectoryBalance, config, Rng::seeded(0))?.with_group(replica)?;
    ///     Fit::new(5).run(&mut trainer)?;
    ///     Ok(trainer)
    /// })?;
    /// assert_eq!((trainer.context().share(), trainer.steps_done()), (4, 5));
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] for a batch of fewer trajectories than replicas; [`Error::Contract`] for replicas that aren't equal: they are to be
    /// built from one seed, for one environment; [`Error::Peer`] if another replica has ended. The first step asks each replica's reward (but where trajectories come [from elsewhere](Self::with_fresh)) about a few random
    /// objects, which [`reward_calls`](Self::reward_calls) doesn't count, and refuses rewards that differ; but not where walks at random are longer than
    /// [`max_steps`](super::TrainerConfig::max_steps).
    pub fn with_group(mut self, group: impl Into<Box<dyn Group>>) -> Result<Self> {
        let (batch, group) = (self.context.config.batch, group.into());
        if batch < group.size() {
            let got = format!("{batch} trajectories for {} replicas", group.size());
            return Err(Error::config("batch", got, "at least one trajectory per replica"));
        }
        self.context.group = group;
        self.check_equal_replicas()?;
        self.run_id = agree(&self.context, self.run_id as f64)? as u64;
        Ok(self)
    }

    /// Trains by another optimizer than the Adam of [`TrainerConfig::adam`](super::TrainerConfig::adam), made for the policy's parameters; the schedule
    /// [`TrainerConfig::lr_scale`](super::TrainerConfig::lr_scale) acts on its learning rates. A policy without parameters has none.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn with_optimizer<O: Optimizer + 'static>(
        mut self,
        make: impl FnOnce(&Parameters) -> Result<O>,
    ) -> Result<Self> {
        if let Some(parameters) = self.context.policy.parameters() {
            self.optimizer = Some(Box::new(make(parameters)?));
        }
        Ok(self)
    }

    /// Says in every checkpoint what this run is: the environment's and the network's settings, whatever a program needs that
    /// finds the checkpoint and nothing else ([`Checkpoint::description`](super::Checkpoint::description)).
    ///
    /// A run only resumes from a checkpoint with an equal description.
    ///
    /// # Errors
    /// [`Error::Contract`] for what can't be written as JSON.
    pub fn described_by(mut self, description: &impl Serialize) -> Result<Self> {
        self.description = to_json(description)?;
        Ok(self)
    }

    /// Leaves a note in every checkpoint for whoever reads it ([`Checkpoint::note`](super::Checkpoint::note)), which no resume compares: how
    /// to make the environment and the network again, say.
    ///
    /// # Errors
    /// [`Error::Contract`] for what can't be written as JSON.
    pub fn noted(mut self, note: &impl Serialize) -> Result<Self> {
        self.note = to_json(note)?;
        Ok(self)
    }

    /// The parameters, for what can't do without.
    fn parameters(&self, needed_by: &'static str) -> Result<&Parameters> {
        let none = || Error::missing(needed_by, "a policy with parameters", "leave it out: this policy has none");
        self.context.policy.parameters().ok_or_else(none)
    }

    /// Refuses the name of a part that can't be told from others in a checkpoint.
    fn check_name(&self, name: &str) -> Result<()> {
        check_name(name, self.parts().iter().map(|part| part.name()))
    }
}
