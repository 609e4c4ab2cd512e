use std::path::PathBuf;
use std::sync::{Mutex, Weak};
use std::time::Instant;

use serde::Serialize;

use super::checks::check_batch;
use super::equivariance::check_equivariance;
use super::{StepStats, TrainerConfig};
use crate::condition::ConditionSource;
use crate::distribution::Distribution;
use crate::env::{Env, Reward, log_rewards};
use crate::nn::Parameters;
use crate::objective::{Objective, Origin};
use crate::optim::{Adam, Average, Optimizer, Schedule};
use crate::policy::Policy;
use crate::replay::ReplayBuffer;
use crate::rollout::{ReplayEnv, Sampler, Trajectories};
use crate::train::AverageFor;
use crate::train::checkpoint::{Observed, to_json};
use crate::train::companions::{Intrinsic, Lagged};
use crate::train::observers::Sentinel;
use crate::train::sources::{Batch, Relabelling, Searching, Teacher, Thompson};
use crate::{Error, Result, Rng, runtime};

/// Trains a policy: samples, replays, scores, differentiates, updates.
///
/// ```
/// use gfn::{nn::{GraphNet, GraphNetConfig}, objective::TrajectoryBalance, policy::GraphPolicy, testing::Triangles,
///           train::{Trainer, TrainerConfig}, graph::GraphStates, Rng};
/// let env = Triangles::new();
/// let mut rng = Rng::seeded(0);
/// let net = GraphNet::new(&env, GraphNetConfig::default(), tch::Device::Cpu, tch::Kind::Float, &mut rng)?;
/// let reward = |graphs: &GraphStates, _: Option<&tch::Tensor>| -> gfn::Result<Vec<f64>> {
///     Ok(graphs.graphs().iter().map(|graph| graph.n_edges() as f64).collect())
/// };
/// let config = TrainerConfig { batch: 16, ..TrainerConfig::default() };
/// let mut trainer = Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, config, rng)?;
/// assert!(trainer.step()?.loss.is_finite());
/// # Ok::<(), gfn::Error>(())
/// ```
pub struct Trainer<E: Env, P> {
    pub(super) env: E,
    pub(super) reward: Box<dyn Reward<E::States>>,
    pub(super) policy: P,
    pub(super) objective: Box<dyn Objective>,
    pub(super) config: TrainerConfig,
    pub(super) optimizer: Option<Box<dyn Optimizer>>,
    pub(super) replay: Option<ReplayBuffer<E>>,
    pub(super) data: Option<ReplayBuffer<E>>,
    pub(super) conditions: Option<Box<dyn ConditionSource>>,
    pub(super) hindsight: Option<Relabelling<E::States>>,
    pub(super) search: Option<Searching<E>>,
    pub(super) rng: Rng,
    pub(super) step: usize,
    pub(super) average: Option<(Average, AverageFor)>,
    pub(super) lagged: Option<Lagged>,
    /// Whether the policy has passed the equivariance check.
    equivariant: bool,
    pub(super) intrinsic: Option<Intrinsic<E::States>>,
    pub(super) teacher: Option<Box<dyn Teacher<E>>>,
    pub(super) thompson: Option<Thompson<P>>,
    pub(super) reward_calls: u64,
    pub(super) sentinel: Sentinel<E::States>,
    pub(super) latest: Option<Trajectories<E>>,
    /// The number of the latest trajectories that were sampled in their step.
    pub(super) fresh: usize,
    pub(super) description: serde_json::Value,
    /// What the training loop and its observers keep; the loop's business alone.
    pub(super) observed: Observed,
    /// Where observers want checkpoints; the loop has it while they look at a step.
    pub(super) asked: Weak<Mutex<Vec<PathBuf>>>,
}

impl<E: Env, P> std::fmt::Debug for Trainer<E, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Trainer");
        out.field("objective", &self.objective).field("step", &self.step).field("config", &self.config);
        out.finish_non_exhaustive()
    }
}

impl<E: ReplayEnv, P: Policy<E>> Trainer<E, P> {
    /// A trainer at step 0, without replay.
    ///
    /// # Errors
    /// [`Error::Config`] for invalid settings; [`Error::Missing`] for batches of one trajectory if the objective
    /// compares with the batch mean; those of [`Env::check_contract`] and [`Adam::new`]. [`Error::Contract`] for a
    /// policy that depends on labels if the environment treats states that differ only in labels as one
    /// ([`Env::classes`]). This is checked on some states of random walks, which have a random stream of their own; for
    /// a policy with conditions the first step checks it.
    pub fn new(
        env: E,
        reward: impl Reward<E::States> + 'static,
        policy: P,
        objective: impl Objective + 'static,
        config: TrainerConfig,
        rng: Rng,
    ) -> Result<Self> {
        Self::boxed(env, Box::new(reward), policy, Box::new(objective), config, rng)
    }

    /// Same as [`new`](Self::new), with reward and objective chosen at run time.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn boxed(
        env: E,
        reward: Box<dyn Reward<E::States>>,
        policy: P,
        objective: Box<dyn Objective>,
        mut config: TrainerConfig,
        rng: Rng,
    ) -> Result<Self> {
        runtime::prepare();
        config.check()?;
        objective.check()?;
        check_batch(objective.as_ref(), &config)?;
        env.check_contract()?;
        let explorable = objective.origin() == Origin::Any && P::Dist::MIXES_WITH_UNIFORM;
        let unset = || if explorable { TrainerConfig::EPSILON } else { Schedule::Constant(0.0) };
        config.epsilon = Some(config.epsilon.unwrap_or_else(unset));
        let optimizer: Option<Box<dyn Optimizer>> = match policy.parameters() {
            Some(parameters) => Some(Box::new(Adam::new(parameters, config.adam)?)),
            None => None,
        };
        let equivariant = check_equivariance(&env, &policy, None)?;
        Ok(Self {
            env,
            reward,
            policy,
            objective,
            config,
            optimizer,
            replay: None,
            data: None,
            conditions: None,
            hindsight: None,
            search: None,
            rng,
            step: 0,
            average: None,
            lagged: None,
            equivariant,
            intrinsic: None,
            teacher: None,
            thompson: None,
            reward_calls: 0,
            sentinel: Sentinel::default(),
            latest: None,
            fresh: 0,
            description: serde_json::Value::Null,
            observed: Observed::default(),
            asked: Weak::new(),
        })
    }

    /// Also learns from given trajectories, with the share in [`TrainerConfig::source`]. Nothing is added to them, and
    /// their recorded log-rewards are used. The first step refuses a share of 0, and draws by loss, because the losses
    /// of given trajectories aren't updated.
    #[must_use]
    pub fn with_data(mut self, data: ReplayBuffer<E>) -> Self {
        self.data = Some(data);
        self
    }

    /// Draws a condition vector for each trajectory; policy, log Z and reward depend on it.
    #[must_use]
    pub fn with_conditions(mut self, conditions: impl ConditionSource + 'static) -> Self {
        self.conditions = Some(Box::new(conditions));
        self
    }

    /// Also learns from a replay buffer.
    #[must_use]
    pub fn with_replay(mut self, replay: ReplayBuffer<E>) -> Self {
        self.replay = Some(replay);
        self
    }

    /// Trains by another optimizer than the Adam of [`TrainerConfig::adam`], made for the policy's parameters; the schedule
    /// [`TrainerConfig::lr_scale`] acts on its learning rates. A policy without parameters has none.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn with_optimizer<O: Optimizer + 'static>(
        mut self,
        make: impl FnOnce(&Parameters) -> Result<O>,
    ) -> Result<Self> {
        if let Some(parameters) = self.policy.parameters() {
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
    /// [`Error::Contract`] for a description that can't be written as JSON.
    pub fn described_by(mut self, description: &impl Serialize) -> Result<Self> {
        self.description = to_json(description)?;
        Ok(self)
    }

    /// The environment.
    pub fn env(&self) -> &E {
        &self.env
    }

    /// The reward.
    pub fn reward(&self) -> &dyn Reward<E::States> {
        self.reward.as_ref()
    }

    /// The policy.
    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// The replay buffer.
    pub fn replay(&self) -> Option<&ReplayBuffer<E>> {
        self.replay.as_ref()
    }

    /// The number of steps made.
    pub fn steps_done(&self) -> usize {
        self.step
    }

    /// The number of new objects whose reward was computed: those of newly sampled trajectories, of local search's
    /// proposals and of prefilling the buffer, but not replayed ones.
    pub fn reward_calls(&self) -> u64 {
        self.reward_calls
    }

    /// The trajectories of the last step, newly sampled and replayed; `None` before the first step.
    pub fn latest(&self) -> Option<&Trajectories<E>> {
        self.latest.as_ref()
    }

    /// The number of the [`latest`](Self::latest) trajectories that were sampled in their step, by the policy, a
    /// teacher or local search. They come first, followed by replayed and given ones.
    pub fn n_fresh(&self) -> usize {
        self.fresh
    }

    /// The number of trained scalars.
    pub fn n_parameters(&self) -> i64 {
        self.policy.parameters().map_or(0, Parameters::count)
    }

    /// A separate random stream for evaluation, so that evaluating doesn't change the training.
    pub fn evaluation_rng(&self) -> Rng {
        self.rng.clone().split()
    }

    /// Fills the replay buffer with `n` uniform random walks, without a network; with conditions if trajectories have
    /// them.
    ///
    /// # Errors
    /// [`Error::Missing`] without a buffer, and those of sampler and reward.
    pub fn prefill(&mut self, n: usize) -> Result<usize> {
        const CHUNK: usize = 8192;
        let Some(replay) = &mut self.replay else {
            return Err(Error::Missing {
                objective: "prefilling",
                needs: "a replay buffer",
                remedy: "give the trainer one (`with_replay`)",
            });
        };
        let uniform = self.env.uniform();
        let mut stayed = 0;
        let mut left = n;
        while left > 0 {
            let chunk = left.min(CHUNK);
            let sampler = Sampler::new(&self.env, &uniform).max_steps(self.config.max_steps);
            let mut walks = sampler.walks(chunk, &mut self.rng)?;
            if let Some(source) = &self.conditions {
                walks = walks.with_conditions(source.draw(chunk, &mut self.rng)?)?;
            }
            let rewards = log_rewards(self.reward.as_ref(), &walks.terminal, walks.conditions())?;
            stayed += replay.add(&self.env, &walks, &rewards)?;
            self.reward_calls += chunk as u64;
            left -= chunk;
        }
        Ok(stayed)
    }

    /// One training step.
    ///
    /// # Errors
    /// [`Error::NonFinite`] for a loss that isn't finite, [`Error::Shape`] for a loss that isn't a single number,
    /// [`Error::Missing`] for a loss without a gradient (inside of `tch::no_grad`, for example) while there is
    /// something to train, all before anything is updated; those of [`Adam::step`], sampler, reward, policy and
    /// [`score`](crate::objective::score); [`Error::Warned`] if [`TrainerConfig::on_warning`] says so. Gradients are
    /// cleared then, so that the next step isn't affected.
    pub fn step(&mut self) -> Result<StepStats> {
        let started = Instant::now();
        if !self.equivariant {
            // Checked once, and only here: before there is a source of conditions, a policy that needs them can't be
            // evaluated.
            self.equivariant = true;
            check_equivariance(&self.env, &self.policy, self.conditions.as_deref())?;
        }
        if let Some(parameters) = self.policy.parameters() {
            // Without noisy layers this draws nothing.
            parameters.reset_noise(&mut self.rng);
        }
        if let Some(teacher) = &self.teacher {
            teacher.reset_noise(&mut self.rng);
        }
        let Batch { trajectories, replayed } = self.collect()?;
        let sampled = started.elapsed().as_secs_f64();
        let mut stats =
            StepStats { mean_len: trajectories.mean_len(), seconds: [sampled, 0.0, 0.0, 0.0], ..StepStats::default() };
        let mut old = None;
        for _ in 0..self.objective.epochs() {
            let mut scores = self.update(&trajectories, old.take(), &mut stats)?;
            if scores.old.is_none() {
                self.update_replay_losses(&replayed, &scores)?;
                self.teach(&trajectories, &scores)?;
            }
            old = scores.old.take().or_else(|| Some(scores.to_old()));
        }
        self.learn_novelty(&trajectories)?;
        self.update_average()?;
        self.update_lagged()?;
        self.step += 1;
        self.fresh = replayed.first();
        let warned = self.watch(&trajectories, &replayed, &stats);
        self.latest = Some(trajectories);
        warned.map(|()| stats)
    }
}
