use std::any::Any;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::{Mutex, Weak};
use std::time::Instant;

use tch::Tensor;

use super::checkpoint::Observed;
use super::companions::{Companions, Novelty};
use super::gradients::{Scored, SingleTransitions, check_batch, check_transitions, start_log_z, sum};
use super::observers::{Sentinel, Sight};
use super::policy_checks::{check_policy, check_reward, next_check};
use super::sources::{Batch, Sources};
use super::{Context, StepStats, TrainerConfig};
use crate::distribution::Distribution;
use crate::env::{Env, Reward};
use crate::error::Warning;
use crate::group::Replica;
use crate::nn::{Parameters, Restored};
use crate::objective::{Objective, Origin};
use crate::optim::{Adam, Optimizer, Schedule};
use crate::policy::{OwnedPolicy, Policy};
use crate::replay::ReplayBuffer;
use crate::rollout::Trajectories;
use crate::train::TrainEnv;
use crate::{Result, Rng, runtime};

/// Trains a policy: samples, replays, scores, differentiates, updates.
///
/// ```
/// use gfn::{nn::{GraphNet, GraphNetConfig}, objective::TrajectoryBalance, policy::GraphPolicy, testing::Triangles,
///           train::{Trainer, TrainerConfig}, graph::GraphStates, Rng};
/// let env = Triangles::env();
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
pub struct Trainer<E: Env> {
    pub(super) context: Context<E>,
    pub(super) optimizer: Option<Box<dyn Optimizer>>,
    pub(super) sources: Sources<E>,
    pub(super) companions: Companions<E>,
    pub(super) sentinel: Sentinel<E::States>,
    pub(super) rng: Rng,
    /// The id of the run, below 2^53: tells its checkpoints from those of other runs. A resumed run keeps it, and
    /// replicas share the first one's.
    pub(super) run_id: u64,
    /// The step before which policy and reward are checked next: 0 for a policy that needs conditions, until it has some.
    pub(super) next_check: usize,
    pub(super) latest: Option<Batch<E>>,
    /// What the checkpoint that it goes on from had seen.
    pub(super) seen: Vec<(String, Tensor)>,
    pub(super) description: serde_json::Value,
    /// What a checkpoint holds for whoever reads it, and no resume looks at.
    pub(super) note: serde_json::Value,
    /// What the training loop and its observers keep; the loop's business alone.
    pub(super) observed: Observed,
    /// Where observers want checkpoints; the loop has it while they look at a step.
    pub(super) asked: Weak<Mutex<Vec<PathBuf>>>,
}

/// All that a trainer is made of.
pub(super) struct Beginning<E: Env> {
    env: E,
    reward: Box<dyn Reward<E::States>>,
    policy: Box<dyn OwnedPolicy<E> + Send>,
    objective: Box<dyn Objective>,
    config: TrainerConfig,
    rng: Rng,
}

/// A batch that was drawn and not yet learned from.
pub(super) struct Drawn<E: Env> {
    pub(super) batch: Batch<E>,
    /// Takes log Z's first value back where the step fails.
    pub(super) unset_log_z: Option<Restored>,
    /// The random stream of this replica alone, where there are several.
    own_stream: Option<Rng>,
}

impl<E: Env> std::fmt::Debug for Trainer<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Context { objective, step, config, .. } = &self.context;
        let mut out = f.debug_struct("Trainer");
        out.field("objective", objective).field("step", step).field("config", config).finish_non_exhaustive()
    }
}

impl<E: TrainEnv> Trainer<E> {
    /// A trainer at step 0, without replay, which owns its policy ([`policy_as`](Self::policy_as) gives the concrete type). Reward, policy
    /// and objective may be boxed, if they are chosen at run time.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for settings that make no sense, [`Error::Missing`](crate::Error::Missing) for batches of one trajectory if the objective compares
    /// with the batch's mean, and for an environment with nothing to build; those of [`Env::check_contract`] and [`Adam::new`].
    /// [`Error::Contract`](crate::Error::Contract) for a policy whose probabilities for a state depend on the other states of the batch, and for one that sees
    /// labels if states that differ in labels alone are one object ([`Symmetry::relabelled`](crate::env::Symmetry::relabelled)): it is evaluated on some states of random
    /// walks, which are drawn by a stream of their own. A policy that takes conditions is checked by the first step.
    pub fn new(
        env: E,
        reward: impl Reward<E::States> + 'static,
        policy: impl Policy<E> + Send + 'static,
        objective: impl Into<Box<dyn Objective>>,
        config: TrainerConfig,
        rng: Rng,
    ) -> Result<Self> {
        let (reward, policy) = (Box::new(reward), Box::new(policy));
        (E::trainer_code().begin)(Beginning { env, reward, policy, objective: objective.into(), config, rng })
    }

    pub(super) fn begin(beginning: Beginning<E>) -> Result<Self> {
        let Beginning { env, reward, policy, objective, mut config, rng } = beginning;
        runtime::prepare();
        config.check()?;
        objective.check()?;
        check_batch(objective.as_ref(), &config)?;
        config.transitions.map_or(Ok(()), |_| check_transitions(objective.as_ref(), &config))?;
        env.check_contract()?;
        let explorable = objective.origin() == Origin::Any && E::Dist::MIXES_WITH_UNIFORM;
        let unset = || if explorable { TrainerConfig::EPSILON } else { Schedule::Constant(0.0) };
        config.epsilon = Some(config.epsilon.unwrap_or_else(unset));
        let optimizer: Option<Box<dyn Optimizer>> = match policy.parameters() {
            Some(parameters) => Some(Box::new(Adam::new(parameters, config.adam)?)),
            None => None,
        };
        let next_check = if check_policy(&env, &policy, None, 0)? { next_check(0) } else { 0 };
        let group = Box::new(Replica::alone());
        Ok(Self {
            context: Context { env, reward, policy, conditions: None, objective, config, step: 0, group },
            optimizer,
            sources: Sources::default(),
            companions: Companions::default(),
            sentinel: Sentinel::default(),
            rng,
            // The keys come from the system; forked processes inherit them. Nothing else depends on this number.
            run_id: RandomState::new().hash_one(std::process::id()) >> 11,
            next_check,
            latest: None,
            seen: Vec::new(),
            description: serde_json::Value::Null,
            note: serde_json::Value::Null,
            observed: Observed::default(),
            asked: Weak::new(),
        })
    }

    /// One training step.
    ///
    /// # Errors
    /// [`Error::NonFinite`](crate::Error::NonFinite) for a loss that isn't finite, [`Error::Shape`](crate::Error::Shape) for one that isn't one number, [`Error::Missing`](crate::Error::Missing) for one without
    /// a gradient (inside of `tch::no_grad`, say) while something is to be trained, all before anything is updated; those of
    /// [`Optimizer::step`], sampler, reward, policy, [`score`](crate::objective::score), sources and companions; [`Error::Contract`](crate::Error::Contract), by the
    /// first step, the eleventh and the 101st, for a policy as for [`new`](Self::new), and for a reward that gives the same object another
    /// value under other labels, where labels mean nothing ([`Symmetry::relabelled`](crate::env::Symmetry::relabelled); it is asked about at most 16 objects more, which aren't
    /// counted); [`Error::Warned`](crate::Error::Warned) where [`TrainerConfig::on_warning`] says so. No gradient is left then: the next step is an ordinary one.
    /// Step 10 and every hundredth step end by asking the reward about at most 8 replayed objects again, which aren't counted
    /// either; if the reward fails there, the step has been made.
    pub fn step(&mut self) -> Result<StepStats> {
        (E::trainer_code().step)(self)
    }

    pub(super) fn make_step(&mut self) -> Result<StepStats> {
        self.try_step().inspect_err(|_| self.context.clear_gradients())
    }

    fn try_step(&mut self) -> Result<StepStats> {
        let mut lap = laps();
        let Drawn { batch, mut unset_log_z, mut own_stream } = self.draw_batch()?;
        let Self { context, sources, companions, optimizer, rng, .. } = self;
        let rng = own_stream.as_mut().unwrap_or(rng);
        let mut stats = StepStats { seconds: [lap(), 0.0, 0.0, 0.0], ..StepStats::default() };
        let (mut old, mut log_weights) = (None, Vec::new());
        let updates = context.config.transitions.map_or(context.objective.epochs(), |some| some.updates_per_draw);
        // Where heads of the policy score a part each, no part is the one that was scored before.
        let whole = sources.own.thompson.is_none();
        for epoch in 0..updates {
            let single = SingleTransitions::of(context, &batch.trajectories, rng)?;
            let (trajectories, scoring) = SingleTransitions::or_all(&single, context, &batch.trajectories);
            // Of a loss that somebody has differentiated by themselves.
            context.clear_gradients();
            let mut total = 0.0;
            let scores = sources.own.each_part(context, trajectories, rng, |part, weight| {
                let mut scores = Scored::new(context, companions, part, scoring, old.take())?;
                let loss = scores.loss(context)? * weight;
                total += loss.double_value(&[]);
                stats.seconds[1] += lap();
                scores.backward(context, &loss)?;
                stats.seconds[2] += lap();
                Ok(scores)
            })?;
            sum(context)?;
            companions.before_update(context)?;
            stats.seconds[2] += lap();
            let grad_norm = update(optimizer, context)?;
            stats.seconds[3] += lap();
            unset_log_z.take().into_iter().for_each(Restored::leave);
            if epoch == 0 {
                (stats.loss, stats.grad_norm) = (total, grad_norm);
                stats.describe(&scores.scores, context.objective.reward_exponent());
                if context.replicas().is_none() {
                    stats.mean_len = batch.trajectories.mean_len();
                }
                if single.is_none() {
                    log_weights = scores.scores.log_weights(1.0);
                    sources.learn(&batch, scores.own(), context)?;
                }
            }
            // The next update is on other transitions.
            old = (whole && single.is_none()).then(|| scores.into_old());
        }
        self.end_step(batch, stats, &log_weights)
    }

    /// The batch of the next step.
    pub(super) fn draw_batch(&mut self) -> Result<Drawn<E>> {
        let is_checked = self.latest.is_none() || self.context.step >= self.next_check;
        self.prepare()?;
        let Self { context, sources, companions, rng, .. } = self;
        let mut own_stream = context.own_stream(rng);
        let batch = sources.draw(context, companions.for_sampling(), own_stream.as_mut().unwrap_or(rng))?;
        let unset_log_z = start_log_z(context, &batch.trajectories, batch.fresh)?;
        companions.follow(context, &unset_log_z)?;
        // Whoever draws elsewhere may have a reward of their own.
        if is_checked && sources.elsewhere.is_none() {
            check_reward(&context.env, context.reward.as_ref(), &batch.trajectories, batch.fresh)?;
        }
        Ok(Drawn { batch, unset_log_z, own_stream })
    }

    /// Counts a step whose update is made, and looks at what it was like; `log_weights` are the log
    /// importance weights of what was scored.
    pub(super) fn end_step(&mut self, batch: Batch<E>, stats: StepStats, log_weights: &[f64]) -> Result<StepStats> {
        self.companions.after_step(&batch.trajectories, &self.context)?;
        self.context.step += 1;
        let sight = Sight::of(&self.context, &batch, &stats);
        // A teacher draws where the policy is known to be wrong.
        let is_own = self.sources.elsewhere.is_none() && self.sources.own.teacher.is_none();
        let log_weights = if is_own { log_weights } else { &[] };
        let warned = sight.and_then(|sight| self.sentinel.watch(&self.context, &batch, &sight, log_weights));
        let warned = warned.and_then(|()| self.check_stored_rewards(&batch));
        self.latest = Some(batch);
        warned.map(|()| stats)
    }

    /// Checks and draws what must be known before a batch is.
    fn prepare(&mut self) -> Result<()> {
        if self.latest.is_none() {
            // Each has resumed from a file of its own.
            self.check_equal_replicas()?;
            self.check_equal_tasks()?;
        }
        let Context { env, policy, conditions, step, .. } = &self.context;
        if *step >= self.next_check {
            // Without a source of conditions a policy that needs them can't be asked at all.
            check_policy(env, policy, conditions.as_deref(), *step)?;
            self.next_check = next_check(*step);
        }
        // Nothing is drawn without noisy layers.
        if let Some(parameters) = policy.parameters() {
            parameters.reset_noise(&mut self.rng);
        }
        Ok(())
    }
}

impl<E: Env> Trainer<E> {
    /// The context of training, as sources and companions see it.
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

    /// Says that the policy was changed in another way than by training: the next step looks at it as the first one did. A teacher isn't
    /// looked at again.
    pub fn policy_changed(&mut self) {
        self.next_check = 0;
    }

    /// The policy.
    pub fn policy(&self) -> &dyn Policy<E> {
        self.context.policy()
    }

    /// The policy as the `P` that the trainer was given; `None` if it is another type.
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

    /// Returns the policy by value, as the `P` that the trainer was given; `None` if it is another type.
    #[must_use]
    pub fn into_policy_as<P: 'static>(self) -> Option<P> {
        let policy: Box<dyn Any> = self.context.policy;
        policy.downcast().ok().map(|policy| *policy)
    }

    /// The replay buffer.
    pub fn replay(&self) -> Option<&ReplayBuffer<E>> {
        self.sources.replay.as_ref().map(|replay| &replay.buffer)
    }

    /// The teacher's policy, if there is a teacher and its policy is a `T`.
    #[must_use]
    pub fn teacher<T: 'static>(&self) -> Option<&T> {
        self.sources.own.teacher.as_ref()?.1.policy()?.downcast_ref()
    }

    /// The novelty that intrinsic rewards are given for.
    pub fn novelty(&self) -> Option<&dyn Novelty<E::States>> {
        self.companions.intrinsic.as_ref().map(|intrinsic| intrinsic.novelty.as_ref())
    }

    /// The number of steps made.
    pub fn steps_done(&self) -> usize {
        self.context.step
    }

    /// The number of new objects that a reward was computed for: fresh trajectories', local search's proposals and those that
    /// filled the buffer, not replayed ones. Of several replicas each counts its own.
    pub fn reward_calls(&self) -> u64 {
        self.sources.reward_calls
    }

    /// The trajectories of the last step, fresh and replayed; `None` before the first.
    pub fn latest(&self) -> Option<&Trajectories<E>> {
        self.latest.as_ref().map(|batch| &batch.trajectories)
    }

    /// The number of the [`latest`](Self::latest) that were drawn in their step, by the policy, a teacher or local search, or came
    /// [fresh from elsewhere](Self::with_fresh): they come first. Those behind them were replayed, given, or drawn by further sources.
    pub fn n_fresh(&self) -> usize {
        self.latest.as_ref().map_or(0, |batch| batch.fresh)
    }

    /// Looks at the latest steps when training has ended, as [`Fit::run`](super::Fit::run) does: warns if the
    /// latest trajectories are worth
    /// few samples of the target.
    ///
    /// # Errors
    /// [`Error::Warned`](crate::Error::Warned) as for [`step`](Self::step).
    pub fn look_at_end(&mut self) -> Result<()> {
        self.sentinel.look_at_end(self.context.step, self.context.config.on_warning)
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

/// Updates the parameters; gives the norm of all gradients.
fn update<E: Env>(optimizer: &mut Option<Box<dyn Optimizer>>, context: &Context<E>) -> Result<f64> {
    let Some(optimizer) = optimizer else { return Ok(0.0) };
    optimizer.scale_lr(context.config.lr_scale.at(context.step))?;
    Ok(optimizer.step()?.grad_norm)
}

/// The seconds since it was asked last.
fn laps() -> impl FnMut() -> f64 {
    let mut last = Instant::now();
    move || std::mem::replace(&mut last, Instant::now()).elapsed().as_secs_f64()
}
