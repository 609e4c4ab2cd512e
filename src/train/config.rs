use serde::{Deserialize, Serialize};

use crate::distribution::Exploration;
use crate::objective::{Objective, RegressionLoss, Scores};
use crate::optim::{AdamConfig, Schedule};
use crate::replay::DataSource;
use crate::rollout::LocalSearch;
use crate::{Error, Result};

/// The path to an object drawn from the replay buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum ReplayPath {
    /// The path on which it was sampled.
    Stored,
    /// A new path of uniform legal backward steps. It needs no network evaluation, and shows the object on many paths.
    #[default]
    UniformBackward,
    /// A new path, drawn from P_B.
    PolicyBackward,
}

/// Updates on single transitions ([`TrainerConfig::transitions`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransitionBatches {
    /// The number of transitions per update, drawn from the whole batch. If the batch has fewer, all are used.
    pub size: usize,
    /// The number of updates on each batch.
    pub updates_per_draw: usize,
}

/// The settings of a [`Trainer`](super::Trainer).
///
/// The first value of log Z is a setting of the policy ([`EstimatorsConfig::initial_log_z`](crate::nn::EstimatorsConfig::initial_log_z)). Without it,
/// the first step sets it to the importance estimate of its batch.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainerConfig {
    /// Trajectories per step, from all sources.
    pub batch: usize,
    /// The shares of newly sampled, replayed and given trajectories. Without a buffer, or while it is empty, its share
    /// is newly sampled.
    pub source: DataSource,
    /// Number of steps before the first draw from the buffer.
    pub replay_after: usize,
    /// The path to a replayed object.
    pub replay_path: ReplayPath,
    /// Share of uniform actions. `None` explores if objective and policy allow it: it is [`EPSILON`](Self::EPSILON) if the
    /// objective learns from any trajectory and the policy's distribution can be mixed with a uniform one
    /// ([`Distribution::MIXES_WITH_UNIFORM`](crate::distribution::Distribution::MIXES_WITH_UNIFORM)), otherwise not at
    /// all.
    pub epsilon: Option<Schedule>,
    /// Divisor of logits.
    pub temperature: Schedule,
    /// Number added to the exit's logit.
    pub exit_bias: Schedule,
    /// Standard deviation added to Gaussian steps, for continuous environments; discrete ones refuse it.
    pub noise: Schedule,
    /// Local search from the object of each newly sampled trajectory. Paths to the resulting objects are drawn
    /// backwards and join the batch.
    pub local_search: Option<LocalSearch>,
    /// Number of transitions that are scored at once. Memory for gradients then doesn't grow with the batch, at the
    /// cost of another pass without gradients. The gradient is the same. `None` scores the whole batch at once.
    pub chunk: Option<usize>,
    /// Several updates per step, each on single transitions of the batch, instead of one update on whole trajectories. For objectives whose
    /// residuals are of [one transition](crate::objective::Objective::learns_from_transitions).
    pub transitions: Option<TransitionBatches>,
    /// Exponent of R in training: a schedule that ends at 1, so that the final target is R itself. A run may begin with a flat reward and sharpen it. Buffers
    /// and exact distances use R itself; loss and log Z of a step are those of its own target. Objectives without a reward ignore it.
    pub reward_exponent: Schedule,
    /// Factor on both learning rates. If the number of steps is known, a linear schedule to 0 ends closer to the target
    /// than the default, which is for a run of unknown length. Beyond its end nothing is learned, of which [`Fit`](crate::run::Fit) warns.
    pub lr_scale: Schedule,
    /// The optimiser.
    pub adam: AdamConfig,
    /// The loss of a residual.
    pub regression: RegressionLoss,
    /// Largest number of steps of a roll-out.
    pub max_steps: usize,
}

impl Default for TrainerConfig {
    /// 128 trajectories a step, half of them replayed if there is a buffer; exploration if objective and policy allow
    /// it; learning rates that fall with the square root of the step.
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
            regression: RegressionLoss::default(),
            max_steps: 100_000,
        }
    }
}

impl TrainerConfig {
    /// The default share of uniform actions: 0.1 at first, and 0.01 from step 2,000 on, so that objects the policy has
    /// lost are sampled again.
    pub const EPSILON: Schedule = Schedule::Linear { from: 0.1, to: 0.01, steps: 2_000 };

    /// Checks the settings, by themselves and for an objective.
    pub(super) fn check(&self, objective: &dyn Objective) -> Result<()> {
        if self.batch == 0 {
            return Err(Error::config("batch", "0", "at least one trajectory"));
        }
        if self.batch < objective.smallest_batch() {
            return Err(Error::missing(
                objective.name(),
                "at least two trajectories per batch, which it compares with their mean",
                "raise `TrainerConfig::batch`, or choose an objective that learns from one",
            ));
        }
        if self.chunk == Some(0) {
            return Err(Error::config("chunk", "0", "at least one transition"));
        }
        if let Some(transitions) = self.transitions {
            self.check_transitions(transitions, objective)?;
        }
        self.regression.check()?;
        if let Some(search) = self.local_search {
            search.check()?;
        }
        let explored = || [&self.temperature, &self.exit_bias, &self.noise].into_iter().chain(&self.epsilon);
        for schedule in explored().chain([&self.lr_scale, &self.reward_exponent]) {
            schedule.check()?;
        }
        let end = self.reward_exponent.landmarks().last().map(|&step| self.reward_exponent.at(step));
        // The end of a custom function is unknown.
        let known = !matches!(self.reward_exponent, Schedule::Custom(_));
        if known && end.is_some_and(|end| (end - 1.0).abs() > 1e-9) {
            let expected = "a schedule that ends at 1: the last sharpness is the reward's own";
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

    /// Checks updates on single transitions, which need an objective whose residuals span one.
    fn check_transitions(&self, transitions: TransitionBatches, objective: &dyn Objective) -> Result<()> {
        let TransitionBatches { size, updates_per_draw } = transitions;
        if size == 0 || updates_per_draw == 0 {
            let got = format!("{size} transitions, {updates_per_draw} updates");
            return Err(Error::config("transitions", got, "at least one transition an update, and one update a step"));
        }
        if !objective.learns_from_transitions() {
            let remedy =
                "leave `TrainerConfig::transitions` out, or choose detailed balance, modified or forward-looking";
            return Err(Error::missing(objective.name(), "whole trajectories", remedy));
        }
        if self.chunk.is_some() {
            let remedy = "leave `TrainerConfig::chunk` out: an update on single transitions is a small batch by itself";
            return Err(Error::missing(objective.name(), "a batch that is scored at once", remedy));
        }
        Ok(())
    }

    /// The exploration of a step.
    ///
    /// # Errors
    /// [`Error::Config`] for a schedule that leaves its bounds.
    pub fn exploration(&self, step: usize) -> Result<Exploration> {
        Exploration::epsilon(self.epsilon.as_ref().map_or(0.0, |epsilon| epsilon.at(step)))?
            .with_temperature(self.temperature.at(step))?
            .with_exit_bias(self.exit_bias.at(step))?
            .with_noise(self.noise.at(step))
    }
}

/// The result of one training step, and its times.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct StepStats {
    /// The loss before the update; for several updates on one batch, before the first.
    pub loss: f64,
    /// The estimate of log Z before the update: the parameter, log F(s0), or the batch mean.
    pub log_z: f64,
    /// The mean number of actions of the batch, exits included.
    pub mean_len: f64,
    /// Number of visited states.
    pub states: usize,
    /// Number of evaluated states, that is, distinct ones.
    pub distinct: usize,
    /// The norm of all gradients together, before clipping.
    pub grad_norm: f64,
    /// Seconds spent on sampling and replay, on scores and loss, on gradients, and on the update.
    pub seconds: [f64; 4],
}

impl StepStats {
    /// Sets the figures that come from the scores of the first update.
    pub(super) fn describe(&mut self, scores: &Scores, reward_exponent: f64) {
        // Single transitions lack the initial state, which log Z belongs to.
        let log_z = if scores.ahead.is_none() { scores.log_z_estimates(reward_exponent) } else { vec![f64::NAN] };
        self.log_z = log_z.iter().sum::<f64>() / log_z.len().max(1) as f64;
        // The trainer replaces it by the mean over trajectories, unless there are several replicas: then only scores are known.
        self.mean_len = scores.n_transitions() as f64 / scores.len().max(1) as f64;
        (self.distinct, self.states) = scores.distinct;
    }
}

/// Refuses an interval of no steps.
pub(crate) fn check_interval(setting: &'static str, every: Option<usize>) -> Result<()> {
    match every {
        Some(0) => Err(Error::config(setting, "0", "at least 1")),
        _ => Ok(()),
    }
}
