use serde::{Deserialize, Serialize, Serializer};
use tch::{Device, Tensor};

use crate::contract::check_regression;
use crate::distribution::Exploration;
use crate::objective::{Objective, Regression, RegressionLoss, Scores};
use crate::optim::{AdamConfig, Schedule};
use crate::replay::DataSource;
use crate::rollout::{LocalSearch, RolloutPlace};
use crate::{Error, Result, Rng};

/// The choice of the trajectory to an object that was drawn from the replay buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum ReplayPath {
    /// The stored trajectory, with which the object was sampled.
    Stored,
    /// A new trajectory, sampled by uniform legal backward steps. Such trajectories need no network
    /// evaluation, and repeated draws of an object give different trajectories.
    #[default]
    UniformBackward,
    /// A new trajectory, sampled backwards from the policy's P_B.
    PolicyBackward,
}

/// The settings for updates on single transitions ([`TrainerConfig::transitions`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransitionBatches {
    /// The number of transitions per update, drawn from the whole batch. If the batch has fewer transitions
    /// than `size`, all of them are used.
    pub size: usize,
    /// The number of updates that are made on each batch.
    pub updates_per_draw: usize,
}

/// The settings of a [`Trainer`](super::Trainer).
///
/// The initial value of log Z is a setting of the policy
/// ([`EstimatorsConfig::initial_log_z`](crate::nn::EstimatorsConfig::initial_log_z)). Without this setting,
/// the first step sets log Z to the importance estimate from its batch.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainerConfig {
    /// The number of trajectories per step, from all sources together.
    pub batch: usize,
    /// The shares of fresh trajectories, of replayed trajectories, and of trajectories from given data.
    /// Without a replay buffer, while the buffer is empty, and in the first `replay_after` steps, fresh
    /// trajectories take the replayed share, too.
    pub source: DataSource,
    /// The number of training steps before the first draw from the replay buffer.
    pub replay_after: usize,
    /// The choice of the trajectory to a replayed object: the stored trajectory or a new one.
    pub replay_path: ReplayPath,
    /// The probability that an action is sampled uniformly instead of from the policy. `None` means
    /// [`EPSILON`](Self::EPSILON) if the objective learns from any trajectory and the policy's distribution
    /// can be mixed with a uniform one
    /// ([`Distribution::MIXES_WITH_UNIFORM`](crate::distribution::Distribution::MIXES_WITH_UNIFORM)),
    /// otherwise 0.
    pub epsilon: Option<Schedule>,
    /// The temperature: the forward policy's logits are divided by it when trajectories are sampled.
    pub temperature: Schedule,
    /// The number that is added to the logit of the exit action when trajectories are sampled.
    pub exit_bias: Schedule,
    /// The additional standard deviation of Gaussian steps when trajectories are sampled, for continuous
    /// environments. Discrete environments return an error unless it is 0.
    pub noise: Schedule,
    /// The settings of local search, which starts from the object of each fresh trajectory. Trajectories to
    /// the objects found are added to the batch. `None` disables local search.
    pub local_search: Option<LocalSearch>,
    /// The largest number of transitions that are scored at once (a chunk). With chunks, memory for gradients
    /// doesn't grow with the batch, and the gradient is the same, but the batch is scored twice. `None`
    /// scores the whole batch at once.
    pub chunk: Option<usize>,
    /// The settings for several updates per step, each on single transitions of the batch; `None` for updates
    /// on whole trajectories. Such updates need an objective whose residuals span [one
    /// transition](crate::objective::Objective::learns_from_transitions).
    pub transitions: Option<TransitionBatches>,
    /// The exponent β of the reward: training uses R^β instead of R. The schedule must end at 1, so that the
    /// final target is R. A run may begin with an exponent below 1, that is, with a flatter reward. Loss and
    /// log Z of a step refer to R^β; replay buffers and exact distances use R. Objectives without a reward
    /// ignore the exponent.
    pub reward_exponent: Schedule,
    /// The factor that multiplies both learning rates, that of log Z and that of the other parameters. If the
    /// number of steps is known, a linear schedule to 0 ends closer to the target than the default, which is
    /// for a run of unknown length. While the factor is 0, nothing is learned, and [`Fit`](crate::run::Fit)
    /// warns.
    pub lr_scale: Schedule,
    /// The settings of the default optimizer, Adam.
    pub adam: AdamConfig,
    /// The function that is applied to each residual before the loss is summed, such as the square. A custom
    /// function is a [`RegressionLoss`](crate::objective::RegressionLoss).
    pub regression: Regression,
    /// The largest number of steps of a sampled trajectory.
    pub max_steps: usize,
    /// The place where roll-outs evaluate the policy.
    pub rollouts: RolloutPlace,
}

impl Default for TrainerConfig {
    /// Returns the defaults: 128 trajectories per step, half of them replayed if the trainer has a replay
    /// buffer; exploration if objective and policy allow it; learning rates that fall as 1 / sqrt(step).
    fn default() -> Self {
        Self {
            batch: 128,
            source: DataSource::HALF_REPLAYED,
            replay_after: 10,
            replay_path: ReplayPath::default(),
            epsilon: None,
            temperature: Schedule::Constant(1.0),
            exit_bias: Schedule::Constant(0.0),
            noise: Schedule::Constant(0.0),
            local_search: None,
            chunk: None,
            transitions: None,
            reward_exponent: Schedule::Constant(1.0),
            lr_scale: Schedule::InverseRoot { from: 1.0, steps: 1_000 },
            adam: AdamConfig::default(),
            regression: Regression::default(),
            max_steps: 100_000,
            rollouts: RolloutPlace::default(),
        }
    }
}

/// Checks that `len` trajectories can be split into the objective's minibatches.
pub(super) fn check_minibatches(objective: &dyn Objective, len: usize) -> Result<()> {
    let n = objective.n_minibatches();
    if n > 0 && len / n >= objective.smallest_batch().max(1) {
        return Ok(());
    }
    let expected = "at least one minibatch, and at least one trajectory in each minibatch of each replica \
        (two if the objective compares trajectories): draw larger batches, or lower n_minibatches";
    Err(Error::config(
        "n_minibatches",
        format!("{n} for a batch (or a replica's share) of size {len}"),
        expected,
    ))
}

impl TrainerConfig {
    /// The default of `epsilon`: it falls from 0.1 to 0.01 at step 2,000 and then stays constant. The value
    /// doesn't fall to 0, so that objects that the policy no longer samples are found again.
    pub const EPSILON: Schedule = Schedule::Linear { from: 0.1, to: 0.01, steps: 2_000 };

    /// Checks that each setting is valid, and that the objective supports the settings.
    pub(super) fn check(&self, objective: &dyn Objective) -> Result<()> {
        if self.batch == 0 {
            return Err(Error::config("batch", "0", "at least one trajectory"));
        }
        if self.batch < objective.smallest_batch() {
            return Err(Error::missing(
                objective.name(),
                "at least two trajectories per batch, which it compares with their mean",
                "raise `TrainerConfig::batch`, or choose an objective that learns from a single trajectory",
            ));
        }
        check_minibatches(objective, self.batch)?;
        if self.chunk == Some(0) {
            return Err(Error::config("chunk", "0", "at least one transition"));
        }
        if let Some(transitions) = self.transitions {
            self.check_transitions(transitions, objective)?;
        }
        check_regression(&self.regression)?;
        if objective.fixes_regression() && self.regression != Regression::default() {
            let expected = "the default, because the objective has a regression loss of its own \
                (`WithRegression`)";
            return Err(Error::config("regression", self.regression.name(), expected));
        }
        if let Some(search) = self.local_search {
            search.check()?;
        }
        let explored = || [&self.temperature, &self.exit_bias, &self.noise].into_iter().chain(&self.epsilon);
        for schedule in explored().chain([&self.lr_scale, &self.reward_exponent]) {
            schedule.check()?;
        }
        let end = self.reward_exponent.landmarks().last().map(|&step| self.reward_exponent.at(step));
        // The final value of a custom schedule is unknown, so it isn't checked.
        let known = !matches!(self.reward_exponent, Schedule::Custom(_));
        if known && end.is_some_and(|end| (end - 1.0).abs() > 1e-9) {
            let expected = "a schedule that ends at 1, so that training ends with the reward itself";
            return Err(Error::config("reward_exponent", format!("{:?}", self.reward_exponent), expected));
        }
        for step in explored().flat_map(Schedule::landmarks) {
            self.exploration(step)?;
        }
        let scales = self.lr_scale.landmarks().into_iter().map(|step| self.lr_scale.at(step));
        match scales.into_iter().find(|scale| *scale < 0.0) {
            Some(scale) => Err(Error::config("lr_scale", scale, "a factor of at least 0")),
            None => Ok(()),
        }
    }

    /// Checks the settings of updates on single transitions, and that the residuals of the objective span one
    /// transition.
    fn check_transitions(&self, transitions: TransitionBatches, objective: &dyn Objective) -> Result<()> {
        let TransitionBatches { size, updates_per_draw } = transitions;
        if size == 0 || updates_per_draw == 0 {
            let got = format!("{size} transitions, {updates_per_draw} updates");
            return Err(Error::config(
                "transitions",
                got,
                "at least one transition per update, and at least one update per step",
            ));
        }
        if !objective.learns_from_transitions() {
            let remedy = "leave `TrainerConfig::transitions` out, or choose detailed balance, modified \
                detailed balance or forward-looking detailed balance";
            return Err(Error::missing(objective.name(), "whole trajectories", remedy));
        }
        if objective.n_minibatches() > 1 {
            let remedy = "leave `TrainerConfig::transitions` out, or choose an objective that doesn't split \
                its batches";
            return Err(Error::missing(objective.name(), "whole trajectories", remedy));
        }
        if self.chunk.is_some() {
            let remedy = "leave `TrainerConfig::chunk` out, because an update on single transitions already \
                uses a small batch";
            return Err(Error::missing(objective.name(), "a batch that is scored at once", remedy));
        }
        Ok(())
    }

    /// Returns the exploration at a step.
    ///
    /// # Errors
    /// [`Error::Config`] for a schedule whose value at this step is out of bounds.
    pub fn exploration(&self, step: usize) -> Result<Exploration> {
        Exploration::epsilon(self.epsilon.as_ref().map_or(0.0, |epsilon| epsilon.at(step)))?
            .with_temperature(self.temperature.at(step))?
            .with_exit_bias(self.exit_bias.at(step))?
            .with_noise(self.noise.at(step))
    }
}

/// The results of one training step, and the time that its phases took.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct StepStats {
    /// The loss before the update; if a batch has several updates, the loss before the first of them.
    pub loss: f64,
    /// The estimate of log Z before the update: the parameter log Z, log F(s0), or the mean of the
    /// trajectories' estimates.
    pub log_z: f64,
    /// The mean number of actions per trajectory of the batch, exits included.
    pub mean_len: f64,
    /// The number of states that the trajectories of the batch visited.
    pub states: usize,
    /// The number of distinct states that the trajectories visited. The network evaluated each of these
    /// states once.
    pub distinct: usize,
    /// The Euclidean norm of the gradients of all parameters, before clipping.
    pub grad_norm: f64,
    /// The seconds spent on sampling and replay, on scores and loss, on gradients, and on the update, in this
    /// order. JSON names these phases `sample`, `score`, `backward` and `update`.
    #[serde(serialize_with = "serialize_phases")]
    pub seconds: [f64; 4],
}

/// Writes the seconds of the phases with their names.
fn serialize_phases<S: Serializer>(
    seconds: &[f64; 4],
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_map(["sample", "score", "backward", "update"].iter().zip(seconds))
}

impl StepStats {
    /// Sets the results that are computed from the scores of the first update.
    pub(super) fn describe(&mut self, scores: &Scores, reward_exponent: f64) {
        // Scores of single transitions don't include the initial state, whose flow is Z, so log Z is NaN.
        let log_z =
            if scores.ahead.is_none() { scores.log_z_estimates(reward_exponent) } else { vec![f64::NAN] };
        self.log_z = log_z.iter().sum::<f64>() / log_z.len().max(1) as f64;
        // This mean length comes from the scores. A trainer without other replicas replaces it by the mean
        // over its trajectories. One of several replicas keeps it, because a replica has the scores but not
        // the trajectories of the others.
        self.mean_len = scores.n_transitions() as f64 / scores.len().max(1) as f64;
        (self.distinct, self.states) = scores.distinct;
    }
}

/// Returns an error for an interval of 0 steps.
pub(crate) fn check_interval(setting: &'static str, every: Option<usize>) -> Result<()> {
    match every {
        Some(0) => Err(Error::config(setting, "0", "at least 1")),
        _ => Ok(()),
    }
}

/// The state of the current training step, from `draw` to `advance`.
#[derive(Default)]
pub(super) struct StepProgress {
    pub(super) stats: StepStats,
    /// The loss of the step's first update, or the loss set by `record_loss`.
    pub(super) loss: Option<f64>,
    /// The last loss, if its value hasn't been read yet.
    pub(super) unread_loss: Option<Tensor>,
    /// The number of updates made on this step's batch.
    pub(super) updates: usize,
    /// The parameter log Z if this step set its initial value; `None` otherwise and after an update.
    pub(super) first_log_z: Option<Tensor>,
    /// The random stream of this replica for the current step; `None` without other replicas.
    pub(super) replica_rng: Option<Rng>,
}

impl StepProgress {
    /// Begins a step, and returns an error if the step before it made updates, but didn't end.
    pub(super) fn restart(&mut self) -> Result<()> {
        if std::mem::take(self).updates == 0 {
            return Ok(());
        }
        let remedy = "call `advance(batch, &scores)` after the last `apply` or `update` of a step; otherwise \
            the step isn't counted, and schedules, replay priorities and averages don't change";
        Err(Error::missing("the next batch", "the end of the step before it", remedy))
    }

    /// Takes a loss of training step number `step`, which the step reports if it is the first one. The value
    /// on a device isn't read here, because reading it would wait for the device before the backward pass is
    /// queued.
    ///
    /// # Errors
    /// [`Error::NonFinite`] for a loss on the host, or an earlier loss, that isn't finite.
    pub(super) fn take_loss(&mut self, loss: &Tensor, step: usize) -> Result<()> {
        self.read_loss(step)?;
        self.unread_loss = Some(loss.detach());
        if loss.device() == Device::Cpu { self.read_loss(step) } else { Ok(()) }
    }

    /// Reads the value of the last loss, unless it was read already.
    ///
    /// # Errors
    /// [`Error::NonFinite`] for a loss that isn't finite.
    pub(super) fn read_loss(&mut self, step: usize) -> Result<()> {
        let Some(loss) = self.unread_loss.take() else { return Ok(()) };
        let value = loss.double_value(&[]);
        if !value.is_finite() {
            let remedy = "lower the learning rate, clip gradients (`max_norm`), or check the reward's scale";
            return Err(Error::non_finite("loss", step, value, remedy));
        }
        self.loss.get_or_insert(value);
        Ok(())
    }

    /// Ends the step and returns its results.
    ///
    /// # Errors
    /// [`Error::NonFinite`] for a loss that isn't finite.
    pub(super) fn finish(&mut self, step: usize) -> Result<Self> {
        self.read_loss(step)?;
        Ok(std::mem::take(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::Triangles;
    use crate::prelude::*;
    use crate::tensor::to_host;

    /// A loss on a device isn't read before its backward pass. The test sets such losses by hand.
    #[test]
    fn an_unread_loss_is_checked_before_the_update_and_reported() {
        let env = Triangles::env();
        let mut rng = Rng::seeded(0);
        let net =
            GraphNet::new(&env, GraphNetConfig::default(), Device::Cpu, tch::Kind::Float, &mut rng).unwrap();
        let reward = PerGraph(|graph: &GraphState| graph.n_edges() as f64);
        let config = TrainerConfig { batch: 4, ..TrainerConfig::default() };
        let mut trainer =
            Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, config, rng).unwrap();
        let values = |trainer: &Trainer<GraphEnv>| -> Vec<f64> {
            let parameters = trainer.policy().parameters().unwrap();
            parameters.iter().flat_map(|parameter| to_host(&parameter.tensor)).collect()
        };
        let mut batch = trainer.draw().unwrap();
        let scores = trainer.score(&mut batch).unwrap();
        let loss = trainer.loss(&scores).unwrap();
        let reported = trainer.progress.loss.take();
        assert!(reported.is_some() && trainer.progress.unread_loss.is_none(), "a loss on the host is read");
        let before = values(&trainer);
        trainer.progress.unread_loss = Some(Tensor::from(f64::NAN));
        let error = trainer.apply(&loss, &scores).unwrap_err();
        assert!(matches!(error, Error::NonFinite { .. }), "{error}");
        assert_eq!(values(&trainer), before);

        let scores = trainer.score(&mut batch).unwrap();
        let loss = trainer.loss(&scores).unwrap();
        trainer.progress.loss = None;
        trainer.progress.unread_loss = Some(Tensor::from(2.5));
        trainer.apply(&loss, &scores).unwrap();
        assert_ne!(values(&trainer), before);
        trainer.progress.unread_loss = Some(Tensor::from(7.0));
        assert_eq!(trainer.advance(batch, &scores).unwrap().loss, 2.5, "the first loss is reported");
    }
}
