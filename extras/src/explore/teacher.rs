//! The adaptive teacher: a second policy that samples objects on which the trained policy has large errors.

use std::ops::Range;

use gfn::contract::{Budget, check_policy};
use gfn::env::Env;
use gfn::objective::{Objective, Quantity, Regression, Scores, TrajectoryBalance, score};
use gfn::optim::{Adam, AdamConfig, Optimizer};
use gfn::policy::Policy;
use gfn::rollout::{Container, Trajectories};
use gfn::runtime::backward;
use gfn::tensor::to_host;
use gfn::train::{BatchRequest, Context, Persist, Source, SourceTraits, TrainEnv};
use gfn::{Error, Result, Rng};
use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::distillation::{load_network_state, network_state};

/// The settings of a [`Teacher`]: its reward and its optimizer.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TeacherConfig {
    /// The additional weight C of objects that the student samples too rarely. The student's squared
    /// imbalance for such an object is multiplied by 1 + C in the teacher's reward ([`teacher_log_rewards`]).
    pub under_sampled: f64,
    /// The exponent alpha of the student's reward R in the teacher's reward.
    pub alpha: f64,
    /// The number epsilon that is added to the student's squared imbalance, so that the logarithm of the sum
    /// is finite ([`teacher_log_rewards`]).
    pub epsilon: f64,
    /// The settings of the teacher's optimizer.
    pub adam: AdamConfig,
}

impl Default for TeacherConfig {
    /// Returns the settings C = 19, alpha = 0.5, epsilon = 1e-3.
    fn default() -> Self {
        Self { under_sampled: 19.0, alpha: 0.5, epsilon: 1e-3, adam: AdamConfig::default() }
    }
}

impl TeacherConfig {
    fn check(&self) -> Result<()> {
        for (setting, value) in [("under_sampled", self.under_sampled), ("alpha", self.alpha)] {
            if !(value.is_finite() && value >= 0.0) {
                return Err(Error::config(setting, value, "a finite number of at least 0"));
            }
        }
        if !(self.epsilon.is_finite() && self.epsilon > 0.0) {
            return Err(Error::config("epsilon", self.epsilon, "a finite number above 0"));
        }
        Ok(())
    }
}

/// Returns the teacher's log-reward for the object of each trajectory: `log(epsilon + (1 + C [delta > 0])
/// delta^2) + alpha log R`. The student's imbalance is `delta = log R + sum log P_B - log Z - sum log P_F`.
/// If `delta > 0`, the student samples the object too rarely, and `[delta > 0]` is 1; otherwise it is 0.
///
/// ```
/// use gfn::objective::{Quantity, Scores};
/// use gfn_extras::explore::{TeacherConfig, teacher_log_rewards};
/// use tch::Tensor;
/// let zeros = Tensor::from_slice(&[0f64, 0.0]);
/// let log_reward = Tensor::from_slice(&[2f64, -2.0]);
/// let mut scores = Scores::new(vec![0, 1, 2], zeros.shallow_clone(), zeros.shallow_clone(), log_reward);
/// scores.set(Quantity::LogZ, zeros)?;
/// let config = TeacherConfig { under_sampled: 9.0, alpha: 0.5, epsilon: 1.0, ..TeacherConfig::default() };
/// let log_rewards = teacher_log_rewards(&scores, &config);
/// assert!(
///     (log_rewards[0] - (41f64.ln() + 1.0)).abs() < 1e-12
///         && (log_rewards[1] - (5f64.ln() - 1.0)).abs() < 1e-12
/// );
/// # Ok::<(), gfn::Error>(())
/// ```
#[must_use]
pub fn teacher_log_rewards(student: &Scores, config: &TeacherConfig) -> Vec<f64> {
    let raw = to_host(&student.raw_log_reward);
    let mut log_rewards = Vec::with_capacity(raw.len());
    for (imbalance, log_reward) in student.imbalances(1.0).into_iter().zip(raw) {
        let weight = 1.0 + if imbalance < 0.0 { config.under_sampled } else { 0.0 };
        log_rewards.push((config.epsilon + weight * imbalance.powi(2)).ln() + config.alpha * log_reward);
    }
    log_rewards
}

/// An adaptive teacher (Kim et al., *Adaptive Teachers for Amortized Samplers*, 2025): a second policy that
/// supplies a share of each batch. It learns by trajectory balance to sample objects on which the student,
/// the trainer's own policy, has large errors. A teacher changes which trajectories the student learns from,
/// but not the student's target.
///
/// The teacher's reward is computed by [`teacher_log_rewards`] for each trajectory that the student is
/// trained on. The teacher's reward changes as the student learns. The imbalance `delta` belongs to one
/// trajectory and isn't averaged over the trajectories to the same object, as in the authors' code. The
/// teacher therefore samples an object in proportion to the geometric mean of its reward over the
/// trajectories to the object. The paper trains both policies with a fixed, uniform P_B. In the authors'
/// code, student, teacher and buffer supply batches in turn; in this library they share each batch.
///
/// ```
/// use gfn::policy::{ByNumber, MlpPolicy, MlpPolicyConfig};
/// use gfn::train::{Trainer, TrainerConfig};
/// use gfn::{
///     Rng,
///     env::{Rows, VectorStates},
///     examples::word_env,
///     objective::TrajectoryBalance,
/// };
/// use gfn_extras::explore::{Teacher, TeacherConfig};
/// let (env, rng) = (word_env(2, 2), Rng::seeded(0));
/// let policy = || {
///     MlpPolicy::tabular(
///         &env,
///         ByNumber::new(2, 3),
///         MlpPolicyConfig::default(),
///         tch::Device::Cpu,
///         tch::Kind::Float,
///     )
/// };
/// let reward = |states: &VectorStates, _: Option<&tch::Tensor>| Ok(vec![0.0; states.len()]);
/// let teacher = Teacher::new(&env, policy()?, TeacherConfig::default())?;
/// let mut trainer =
///     Trainer::new(env.clone(), reward, policy()?, TrajectoryBalance, TrainerConfig::default(), rng)?
///         .with_source(0.5, teacher)?;
/// assert!(trainer.step()?.loss.is_finite());
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct Teacher<T> {
    policy: T,
    adam: Adam,
    config: TeacherConfig,
    /// `true` after `check_policy` has checked the policy. A policy that needs conditions can be checked only
    /// when it first samples.
    is_checked: bool,
}

impl<T> Teacher<T> {
    /// Creates a teacher from a policy, which must have parameters.
    ///
    /// # Errors
    /// [`Error::Config`] for invalid settings; [`Error::Missing`] for a policy without parameters;
    /// [`Error::Contract`] for a policy that a trainer would refuse.
    pub fn new<E: TrainEnv>(env: &E, policy: T, config: TeacherConfig) -> Result<Self>
    where
        T: Policy<E>,
    {
        config.check()?;
        let none = || {
            let remedy = "use a policy with a network, because a teacher must learn";
            Error::missing("an adaptive teacher", "a policy with parameters", remedy)
        };
        let adam = Adam::new(policy.parameters().ok_or_else(none)?, config.adam)?;
        let is_checked = check_policy(env, &policy, None, Budget::quick(), &mut Rng::seeded(0))?;
        Ok(Self { policy, adam, config, is_checked })
    }

    /// Returns the teacher's policy.
    pub fn policy(&self) -> &T {
        &self.policy
    }

    /// Computes the gradients of the teacher's loss, which is a mean over the trajectories of the batch,
    /// and adds them to the gradients of the teacher's parameters.
    fn differentiate<E: TrainEnv>(
        &self,
        batch: &Trajectories<E>,
        student: &Scores,
        context: &Context<E>,
    ) -> Result<()>
    where
        T: Policy<E>,
    {
        // The log-rewards that are stored in the batch replace the reward when the batch is scored.
        let batch = batch.clone().with_log_rewards(teacher_log_rewards(student, &self.config))?;
        let limit = context.config.chunk.unwrap_or(usize::MAX);
        let offsets = batch.offsets();
        let mut start = 0;
        for end in 1..=batch.len() {
            if end < batch.len() && offsets[end + 1] - offsets[start] <= limit {
                continue;
            }
            let part = batch.select(start..end)?;
            let needs = Objective::needs(&TrajectoryBalance);
            let scores = score(&context.env, context.reward.as_ref(), &self.policy, &part, needs)?;
            let share = part.len() as f64 / batch.len() as f64;
            backward(&(TrajectoryBalance.loss(&scores, &Regression::Squared)? * share))?;
            start = end;
        }
        Ok(())
    }
}

impl<E: Env, T: Policy<E> + Send> Persist<E> for Teacher<T> {
    fn name(&self) -> &str {
        "teacher"
    }
    fn describe(&self) -> String {
        "a teacher".into()
    }
    fn state(&self, _env: &E) -> Result<Vec<(String, Tensor)>> {
        match self.policy.parameters() {
            Some(parameters) => network_state(parameters, &self.adam),
            None => Ok(Vec::new()),
        }
    }
    fn load_state(&mut self, _env: &E, state: &[(String, Tensor)]) -> Result<()> {
        match self.policy.parameters() {
            Some(parameters) => load_network_state(parameters, &mut self.adam, state),
            None => Ok(()),
        }
    }
}

impl<E: TrainEnv, T: Policy<E> + Send + 'static> Source<E> for Teacher<T> {
    fn traits(&self, _: &Context<E>) -> SourceTraits {
        SourceTraits { needs_losses: true, is_external: false, ..SourceTraits::default() }
    }

    fn draw(
        &mut self,
        request: BatchRequest,
        context: &Context<E>,
        rng: &mut Rng,
    ) -> Result<Option<Trajectories<E>>> {
        if context.objective.needs().has(Quantity::LogPrior) {
            return Err(Error::missing(
                "an adaptive teacher",
                "an objective that balances P_F with P_B, not with a prior",
                "train without a teacher, or choose an objective that isn't relative to a prior",
            ));
        }
        if !self.is_checked {
            let conditions = context.conditions.as_deref();
            let check_rng = &mut Rng::seeded(0);
            self.is_checked =
                check_policy(&context.env, &self.policy, conditions, Budget::quick(), check_rng)?;
        }
        if let Some(parameters) = self.policy.parameters() {
            parameters.reset_noise(rng);
        }
        let sampler = context.sampler(&context.env, &self.policy).exploration(context.exploration()?);
        let drawn = match context.draw_conditions(request.max, rng)? {
            Some(conditions) => sampler.forward_conditional(&conditions, rng)?,
            None => sampler.forward(request.max, rng)?,
        };
        Ok(Some(drawn))
    }

    /// Trains the teacher on the whole batch, not only on the trajectories that the teacher sampled itself.
    fn learn(
        &mut self,
        batch: &Trajectories<E>,
        _: Range<usize>,
        student: &Scores,
        context: &Context<E>,
    ) -> Result<()> {
        let differentiated = self.differentiate(batch, student, context);
        if let (Err(_), Some(parameters)) = (&differentiated, self.policy.parameters()) {
            // The gradients of a part of the batch may already have been added. They must not enter the next
            // step.
            parameters.clear_gradients();
        }
        differentiated?;
        self.adam.step().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gfn::objective::Quantity;

    /// Tests two objects of equal reward. The student samples the first object too rarely and the second too
    /// often. The teacher's reward must be larger for the first object.
    #[test]
    fn a_teacher_is_after_what_the_student_samples_too_rarely() {
        let same = || Tensor::from_slice(&[0f64, 0.0]);
        let log_pf = Tensor::from_slice(&[-3f64, -1.0]);
        let log_reward = Tensor::from_slice(&[-2f64, -2.0]);
        let mut scores = Scores::new(vec![0, 1, 2], log_pf, same(), log_reward);
        scores.set(Quantity::LogZ, same()).unwrap();
        let config = TeacherConfig::default();
        let [rare, often] = teacher_log_rewards(&scores, &config)[..] else { panic!("one for each") };
        let expected = |weight: f64| (config.epsilon + weight).ln() - 2.0 * config.alpha;
        assert!((rare - expected(1.0 + config.under_sampled)).abs() < 1e-12, "{rare}");
        assert!((often - expected(1.0)).abs() < 1e-12, "{often}");
    }
}
