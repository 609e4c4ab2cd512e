use std::path::PathBuf;
use std::sync::{Mutex, Weak};
use std::time::Instant;

use tch::Tensor;

use super::checkpoint::Observed;
use super::companions::{Averaged, Companions, Novelty};
use super::gradients::{Graded, check_batch, differentiate, start_log_z};
use super::observers::{Sentinel, Sight};
use super::policy_checks::{check_policy, check_reward};
use super::replicas::Streams;
use super::sources::{Batch, Sources};
use super::{Context, StepStats, TrainerConfig};
use crate::distribution::Distribution;
use crate::env::{Env, Reward, log_rewards};
use crate::error::Warning;
use crate::nn::{Parameters, Restored};
use crate::objective::{Objective, Origin};
use crate::optim::{Adam, Optimizer, Schedule};
use crate::policy::Policy;
use crate::quantity::{Quantity, Values};
use crate::replay::ReplayBuffer;
use crate::rollout::{Container, ReplayEnv, Sampler, Trajectories};
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
    pub(super) context: Context<E, P>,
    pub(super) optimizer: Option<Box<dyn Optimizer>>,
    pub(super) sources: Sources<E, P>,
    pub(super) companions: Companions<E, P>,
    pub(super) sentinel: Sentinel<E::States>,
    pub(super) rng: Rng,
    /// Whether the policy was looked at: one that needs conditions is before the first step.
    pub(super) checked_policy: bool,
    pub(super) latest: Option<Batch<E>>,
    /// Whether no step has failed between its updates and its end.
    pub(super) whole: bool,
    /// What the checkpoint that it goes on from had seen.
    pub(super) seen: Vec<(String, Tensor)>,
    /// How often all replicas have asked the reward, as of the last step of a loop.
    pub(super) all_reward_calls: Option<u64>,
    pub(super) description: serde_json::Value,
    /// What the training loop and its observers keep; the loop's business alone.
    pub(super) observed: Observed,
    /// Where observers want checkpoints; the loop has it while they look at a step.
    pub(super) asked: Weak<Mutex<Vec<PathBuf>>>,
}

impl<E: Env, P> std::fmt::Debug for Trainer<E, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Context { objective, step, config, .. } = &self.context;
        let mut out = f.debug_struct("Trainer");
        out.field("objective", objective).field("step", step).field("config", config).finish_non_exhaustive()
    }
}

impl<E: ReplayEnv, P: Policy<E>> Trainer<E, P> {
    /// A trainer at step 0, without replay.
    ///
    /// # Errors
    /// [`Error::Config`] for settings that make no sense, [`Error::Missing`] for batches of one trajectory where the objective compares
    /// with the batch's mean, and those of [`Env::check_contract`] and [`Adam::new`]. [`Error::Contract`] for a policy that sees labels
    /// where states that differ in labels alone are one object ([`Env::relabelled`]): it is asked about some states of random walks, which are
    /// drawn by a stream of their own. A policy that takes conditions is asked by the first step.
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

    /// The same, with reward and objective chosen at run time.
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
        let checked_policy = check_policy(&env, &policy, None)?;
        Ok(Self {
            context: Context { env, reward, policy, conditions: None, objective, config, step: 0, collective: None },
            optimizer,
            sources: Sources::default(),
            companions: Companions::default(),
            sentinel: Sentinel::default(),
            rng,
            checked_policy,
            latest: None,
            whole: true,
            seen: Vec::new(),
            all_reward_calls: None,
            description: serde_json::Value::Null,
            observed: Observed::default(),
            asked: Weak::new(),
        })
    }

    /// One training step.
    ///
    /// # Errors
    /// [`Error::NonFinite`] for a loss that isn't finite, [`Error::Shape`] for one that isn't one number, [`Error::Missing`] for one without
    /// a gradient (inside of `tch::no_grad`, say) while something is to be trained, all before anything is updated; those of
    /// [`Optimizer::step`], sampler, reward, policy, [`score`](crate::objective::score), sources and companions; [`Error::Contract`], by the
    /// first step, for a reward that says something else of the same object under other labels, where labels mean nothing
    /// ([`Env::relabelled`]; it is asked about at most 8 objects more, which aren't counted); [`Error::Warned`] where
    /// [`TrainerConfig::on_warning`] says so. No gradient is left then: the next step is an ordinary one.
    pub fn step(&mut self) -> Result<StepStats> {
        let started = Instant::now();
        self.check_replicas()?;
        self.prepare()?;
        let average = self.companions.average.as_ref().and_then(Averaged::for_sampling);
        let mut streams = Streams::of(&self.context, &mut self.rng);
        let batch = self.sources.collect(&self.context, average, streams.own())?;
        let mut unset_log_z = start_log_z(&self.context, &batch.trajectories, batch.fresh)?;
        if let Some(parameters) = self.context.policy.parameters().filter(|_| unset_log_z.is_some()) {
            self.companions.average.iter_mut().try_for_each(|kept| kept.average.restart(parameters))?;
        }
        let (sampled, mean_len) = (started.elapsed().as_secs_f64(), batch.trajectories.mean_len());
        // Whoever draws elsewhere may have a reward of their own.
        if self.latest.is_none() && self.sources.elsewhere.is_none() {
            let Context { env, reward, .. } = &self.context;
            check_reward(env, reward.as_ref(), (&batch.trajectories, batch.fresh))?;
        }
        let mut stats = StepStats { mean_len, seconds: [sampled, 0.0, 0.0, 0.0], ..StepStats::default() };
        let mut old = None;
        for _ in 0..self.context.objective.epochs() {
            let Graded { mut scores, own, .. } = self.update(&batch.trajectories, old.take(), &mut stats)?;
            unset_log_z.take().into_iter().for_each(Restored::leave);
            if scores.old.is_none() {
                self.sources.learn(&batch, own.as_ref().unwrap_or(&scores), &self.context)?;
            }
            old = scores.old.take().or_else(|| Some(scores.to_old()));
        }
        for companion in self.companions.all_mut() {
            companion.after_step(&batch.trajectories, &self.context)?;
        }
        self.context.step += 1;
        self.whole = true;
        let sight = Sight::of(&self.context, &self.sources, &stats);
        let warned = sight.and_then(|sight| self.sentinel.watch(&self.context, &batch, &sight));
        self.latest = Some(batch);
        warned.map(|()| stats)
    }

    /// What must be known and drawn before a batch is.
    fn prepare(&mut self) -> Result<()> {
        let Context { env, policy, conditions, .. } = &self.context;
        if !self.checked_policy {
            check_policy(env, policy, conditions.as_deref())?;
            if let Some(teacher) = &self.sources.on_policy.teacher {
                teacher.check(env, conditions.as_deref())?;
            }
            // Without a source of conditions a policy that needs them can't be asked at all.
            self.checked_policy = true;
        }
        // Both draw nothing without noisy layers.
        if let Some(parameters) = policy.parameters() {
            parameters.reset_noise(&mut self.rng);
        }
        if let Some(teacher) = &self.sources.on_policy.teacher {
            teacher.reset_noise(&mut self.rng);
        }
        Ok(())
    }

    /// One update on a batch; what is reported is the first one's loss, and everyone's time.
    fn update(&mut self, trajectories: &Trajectories<E>, old: Option<Values>, stats: &mut StepStats) -> Result<Graded> {
        let first = old.is_none();
        // What somebody has left who differentiated a loss of their own.
        self.clear_gradients();
        let differentiated = self.differentiate(trajectories, old, stats);
        if differentiated.is_err() {
            // What a part of the batch has left: whoever goes on by themselves isn't to meet it.
            self.clear_gradients();
        }
        let mut graded = differentiated?;
        // A scalar log Z is a view of its parameter, which is about to change under all who read the scores later.
        for scores in graded.own.iter_mut().chain([&mut graded.scores]) {
            if let Some(log_z) = scores.remove(Quantity::LogZ) {
                scores.set(Quantity::LogZ, log_z.detach().copy())?;
            }
        }
        let started = Instant::now();
        let mut grad_norm = 0.0;
        self.whole = false;
        if let Some(optimizer) = &mut self.optimizer {
            optimizer.scale_lr(self.context.config.lr_scale.at(self.context.step))?;
            grad_norm = optimizer.step()?.grad_norm;
        }
        stats.seconds[3] += started.elapsed().as_secs_f64();
        if first {
            let Graded { scores, loss, .. } = &graded;
            if graded.own.is_some() {
                stats.mean_len = scores.n_transitions() as f64 / scores.len().max(1) as f64;
            }
            let log_z = scores.log_z_estimates(self.context.objective.reward_exponent());
            stats.loss = *loss;
            stats.log_z = log_z.iter().sum::<f64>() / log_z.len().max(1) as f64;
            (stats.distinct, stats.states) = scores.distinct;
            stats.grad_norm = grad_norm;
        }
        Ok(graded)
    }

    fn clear_gradients(&self) {
        self.context.policy.parameters().into_iter().for_each(Parameters::clear_gradients);
    }

    /// The gradients of a batch; of several heads, each on its share of it: the scores are the last one's then, the loss is the mean.
    fn differentiate(
        &mut self,
        trajectories: &Trajectories<E>,
        old: Option<Values>,
        stats: &mut StepStats,
    ) -> Result<Graded> {
        let parts = (&self.context, &self.companions);
        let done = match &self.sources.on_policy.thompson {
            None => differentiate(parts, trajectories, old, 1.0, stats)?,
            Some(thompson) => {
                let shares = thompson.draw_shares(trajectories.len(), &mut self.rng);
                let weight = 1.0 / shares.len() as f64;
                let (mut last, mut total) = (None, 0.0);
                thompson.each(&self.context.policy, 0..shares.len(), |head| {
                    // A head whose share is too small to learn anything from learns from all.
                    let share = &shares[head];
                    let least = self.context.objective.smallest_batch().max(1);
                    let all = share.iter().filter(|mine| **mine).count() < least;
                    let mine = trajectories.select((0..share.len()).filter(|&i| all || share[i]))?;
                    let graded = differentiate(parts, &mine, None, weight, stats)?;
                    total += weight * graded.loss;
                    last = Some(graded.scores);
                    Ok(())
                })?;
                let none = || Error::contract("a policy of several heads has heads", "there is none");
                Graded { scores: last.ok_or_else(none)?, own: None, loss: total }
            }
        };
        for companion in self.companions.all_mut() {
            companion.before_update(&self.context)?;
        }
        Ok(done)
    }

    /// Fills the replay buffer with `n` uniform random walks, without a network; under conditions, if trajectories have them. Of several
    /// replicas each fills its own with its share of them.
    ///
    /// # Errors
    /// [`Error::Missing`] without a buffer, and those of sampler and reward.
    pub fn prefill(&mut self, n: usize) -> Result<usize> {
        const CHUNK: usize = 8192;
        let Some(replay) = &mut self.sources.replay else {
            return Err(Error::missing("prefilling", "a replay buffer", "give the trainer one (`with_replay`)"));
        };
        let Context { env, reward, config, conditions, .. } = &self.context;
        let uniform = env.uniform();
        let mut stayed = 0;
        let mut streams = Streams::of(&self.context, &mut self.rng);
        let mut left = self.context.share_of(n);
        while left > 0 {
            let chunk = left.min(CHUNK);
            let mut walks = Sampler::new(env, &uniform).max_steps(config.max_steps).walks(chunk, streams.own())?;
            if let Some(source) = conditions {
                walks = walks.with_conditions(source.draw(chunk, streams.own())?)?;
            }
            let rewards = log_rewards(reward.as_ref(), &walks.terminal, walks.conditions())?;
            stayed += replay.buffer.add(env, &walks, &rewards)?;
            self.sources.reward_calls += chunk as u64;
            left -= chunk;
        }
        Ok(stayed)
    }

    /// What is trained, by what and how, as sources and companions see it.
    pub fn context(&self) -> &Context<E, P> {
        &self.context
    }

    /// The same for good, environment, reward and policy among it, for whoever goes on without training.
    pub fn into_context(self) -> Context<E, P> {
        self.context
    }

    /// The environment.
    pub fn env(&self) -> &E {
        &self.context.env
    }

    /// The reward.
    pub fn reward(&self) -> &dyn Reward<E::States> {
        self.context.reward.as_ref()
    }

    /// Says that the policy was changed in another way than by training: the next step looks at it as the first one did.
    pub fn policy_changed(&mut self) {
        self.checked_policy = false;
    }

    /// The policy.
    pub fn policy(&self) -> &P {
        &self.context.policy
    }

    /// The replay buffer.
    pub fn replay(&self) -> Option<&ReplayBuffer<E>> {
        self.sources.replay.as_ref().map(|replay| &replay.buffer)
    }

    /// The teacher's policy, if there is a teacher and its policy is a `T`.
    #[must_use]
    pub fn teacher<T: 'static>(&self) -> Option<&T> {
        self.sources.on_policy.teacher.as_ref()?.policy().downcast_ref()
    }

    /// What intrinsic rewards are given for.
    pub fn novelty(&self) -> Option<&dyn Novelty<E::States>> {
        self.companions.intrinsic.as_ref().map(|intrinsic| intrinsic.novelty.as_ref())
    }

    /// The number of steps made.
    pub fn steps_done(&self) -> usize {
        self.context.step
    }

    /// The number of new objects that a reward was computed for: fresh trajectories', local search's proposals and those that
    /// filled the buffer, not replayed ones. Of several replicas in a [`Fit`](super::Fit) it is the number of all of them, else this one's.
    pub fn reward_calls(&self) -> u64 {
        self.all_reward_calls.unwrap_or(self.sources.reward_calls)
    }

    /// The trajectories of the last step, fresh and replayed; `None` before the first.
    pub fn latest(&self) -> Option<&Trajectories<E>> {
        self.latest.as_ref().map(|batch| &batch.trajectories)
    }

    /// How many of the [`latest`](Self::latest) were drawn in their step, by the policy, a teacher or local search, or came
    /// [fresh from elsewhere](Self::with_fresh): they come first. Those behind them were replayed, given, or drawn by further sources.
    pub fn n_fresh(&self) -> usize {
        self.latest.as_ref().map_or(0, |batch| batch.fresh)
    }

    /// The signs of trouble that were seen so far, each kind once; a checkpoint doesn't keep them.
    pub fn warnings(&self) -> &[Warning] {
        self.sentinel.warnings()
    }

    /// The number of scalars that are trained.
    pub fn n_parameters(&self) -> i64 {
        self.context.policy.parameters().map_or(0, Parameters::count)
    }

    /// A stream of its own for evaluation, so that looking doesn't change what is trained next.
    pub fn evaluation_rng(&self) -> Rng {
        self.rng.clone().split()
    }
}
