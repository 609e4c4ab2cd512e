use serde::{Deserialize, Serialize};

use crate::distribution::Exploration;
use crate::objective::{Objective, RegressionLoss, Scores};
use crate::optim::{AdamConfig, Schedule};
use crate::replay::DataSource;
use crate::rollout::LocalSearch;
use crate::{Error, Result};

/// The trajectory to an object that was drawn from the replay buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum ReplayPath {
    /// The stored trajectory, on which the object was sampled.
    Stored,
    /// A new trajectory, sampled by uniform legal backward steps. It needs no network evaluation, and
    /// repeated draws show the object on many trajectories.
    #[default]
    UniformBackward,
    /// A new trajectory, sampled from P_B.
    PolicyBackward,
}

/// Settings for updates on single transitions ([`TrainerConfig::transitions`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransitionBatches {
    /// The number of transitions per update, drawn from the whole batch. If the batch has fewer transitions,
    /// all are used.
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
    /// The shares of newly sampled, replayed and given trajectories. Without a replay buffer, or while it is
    /// empty, the replayed share is newly sampled instead.
    pub source: DataSource,
    /// The number of steps before the first draw from the replay buffer.
    pub replay_after: usize,
    /// The trajectory to a replayed object: the stored one, or a new one.
    pub replay_path: ReplayPath,
    /// The probability of a uniform action instead of the policy's. `None` means [`EPSILON`](Self::EPSILON)
    /// if the objective learns from any trajectory and the policy's distribution can be mixed with a uniform
    /// one ([`Distribution::MIXES_WITH_UNIFORM`](crate::distribution::Distribution::MIXES_WITH_UNIFORM)),
    /// otherwise 0.
    pub epsilon: Option<Schedule>,
    /// The divisor of the forward policy's logits in sampling.
    pub temperature: Schedule,
    /// A number added to the logit of the exit action in sampling.
    pub exit_bias: Schedule,
    /// The standard deviation added to Gaussian steps in sampling, for continuous environments. Discrete
    /// environments refuse it.
    pub noise: Schedule,
    /// Local search from the object of each newly sampled trajectory. Trajectories to the resulting objects
    /// are sampled backwards and join the batch.
    pub local_search: Option<LocalSearch>,
    /// The largest number of transitions that are scored at once. Memory for gradients then doesn't grow with
    /// the batch, at the cost of an additional pass without gradients. The gradient is the same. `None`
    /// scores the whole batch at once.
    pub chunk: Option<usize>,
    /// Settings for several updates per step, each on single transitions of the batch, instead of one update
    /// on whole trajectories. They need an objective whose residuals are of [one
    /// transition](crate::objective::Objective::learns_from_transitions).
    pub transitions: Option<TransitionBatches>,
    /// The exponent of R in training: a schedule that ends at 1, so that the final target is R itself. A run
    /// may begin with a flatter reward (an exponent below 1) and sharpen it. Buffers and exact distances use
    /// R itself; loss and log Z of a step belong to R with the step's exponent. Objectives without a reward
    /// ignore it.
    pub reward_exponent: Schedule,
    /// The factor on both learning rates, of log Z and of the other parameters. If the number of steps is
    /// known, a linear schedule to 0 ends closer to the target than the default, which is for a run of
    /// unknown length. After a schedule has reached 0 nothing is learned, and [`Fit`](crate::run::Fit) warns
    /// of it.
    pub lr_scale: Schedule,
    /// The settings of the default optimizer, Adam.
    pub adam: AdamConfig,
    /// The function of a residual that the loss sums, such as its square.
    pub regression: RegressionLoss,
    /// The largest number of steps of a sampled trajectory.
    pub max_steps: usize,
}

impl Default for TrainerConfig {
    /// Returns the defaults: 128 trajectories per step, half of them replayed if there is a buffer;
    /// exploration if objective and policy allow it; learning rates that fall with the square root of the
    /// step.
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
    /// The default of `epsilon`: 0.1 at first, falling to 0.01 at step 2,000 and constant after it, so that
    /// objects that the policy no longer samples are found again.
    pub const EPSILON: Schedule = Schedule::Linear { from: 0.1, to: 0.01, steps: 2_000 };

    /// Checks the settings by themselves, and against the objective.
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
        // The final value of a custom function is unknown, so it isn't checked.
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

    /// Checks the settings of updates on single transitions. They need an objective whose residuals span one
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
    /// The loss before the update. If a batch has several updates, the loss before the first.
    pub loss: f64,
    /// The estimate of log Z before the update: the parameter log Z, log F(s0), or the mean over the batch.
    pub log_z: f64,
    /// The mean number of actions per trajectory of the batch, exits included.
    pub mean_len: f64,
    /// The number of states that the trajectories of the batch visited.
    pub states: usize,
    /// The number of distinct states visited, which are the states that the network evaluated.
    pub distinct: usize,
    /// The Euclidean norm of the gradients of all parameters, before clipping.
    pub grad_norm: f64,
    /// The seconds spent on sampling and replay, on scores and loss, on gradients, and on the update, in this
    /// order.
    pub seconds: [f64; 4],
}

impl StepStats {
    /// Sets the results that are computed from the scores of the first update.
    pub(super) fn describe(&mut self, scores: &Scores, reward_exponent: f64) {
        // Single transitions lack the initial state, whose flow is Z, so log Z is NaN.
        let log_z =
            if scores.ahead.is_none() { scores.log_z_estimates(reward_exponent) } else { vec![f64::NAN] };
        self.log_z = log_z.iter().sum::<f64>() / log_z.len().max(1) as f64;
        // The trainer replaces this mean by the mean over trajectories. It keeps this one if there are
        // several replicas, because it has only the scores of the other replicas' trajectories.
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
