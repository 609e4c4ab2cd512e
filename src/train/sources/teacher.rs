//! The adaptive teacher: a second policy that samples where the first one is wrong.

use std::any::Any;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::own::forward;
use super::{Facts, Source, Wanted};
use crate::env::Env;
use crate::objective::{Objective, RegressionLoss, Scores, Scoring, TrajectoryBalance, score};
use crate::optim::{Adam, AdamConfig};
use crate::policy::Policy;
use crate::rollout::{Sampler, Trajectories};
use crate::runtime::backward;
use crate::tensor::to_host;
use crate::train::TrainEnv;
use crate::train::companions::{load_network_state, network_state};
use crate::train::gradients::chunked::{self, Starts};
use crate::train::policy_checks::check_policy;
use crate::train::{Context, Persist};
use crate::{Error, Result, Rng};

/// The reward of an adaptive teacher, its optimiser and its part; see [`Trainer::with_teacher`](crate::train::Trainer::with_teacher).
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TeacherConfig {
    /// Its share of the fresh trajectories.
    pub share: f64,
    /// The weight, on top of 1, of objects that the student samples too rarely: C.
    pub under_sampled: f64,
    /// The exponent of the student's reward in the teacher's: alpha.
    pub alpha: f64,
    /// Added to the squared imbalance, so that its log is finite.
    pub epsilon: f64,
    /// The teacher's optimiser.
    pub adam: AdamConfig,
}

impl Default for TeacherConfig {
    /// Half of the fresh trajectories, C = 19, alpha = 0.5, epsilon = 1e-3.
    fn default() -> Self {
        Self { share: 0.5, under_sampled: 19.0, alpha: 0.5, epsilon: 1e-3, adam: AdamConfig::default() }
    }
}

impl TeacherConfig {
    fn check(&self) -> Result<()> {
        let size = |x: f64| x.is_finite() && x >= 0.0;
        let settings = [
            ("the teacher's share", self.share, self.share > 0.0 && self.share <= 1.0, "0 < share <= 1"),
            ("under_sampled", self.under_sampled, size(self.under_sampled), "a finite number of at least 0"),
            ("alpha", self.alpha, size(self.alpha), "a finite number of at least 0"),
            ("epsilon", self.epsilon, size(self.epsilon) && self.epsilon > 0.0, "a finite number above 0"),
        ];
        let refused = settings.into_iter().find(|(.., makes_sense, _)| !makes_sense);
        refused.map_or(Ok(()), |(setting, got, _, expected)| Err(Error::config(setting, got, expected)))
    }
}

/// The teacher's log-reward of each trajectory's object: `log(epsilon + (1 + C [delta > 0]) delta^2) + alpha log R` with
/// `delta = log R + sum log P_B - log Z - sum log P_F` of the student. Where `delta > 0` the student samples too rarely.
///
/// ```
/// use gfn::{objective::{Quantity, Scores}, train::{TeacherConfig, teacher_log_rewards}};
/// use tch::Tensor;
/// let zeros = Tensor::from_slice(&[0f64, 0.0]);
/// let log_reward = Tensor::from_slice(&[2f64, -2.0]);
/// let mut scores = Scores::new(vec![0, 1, 2], zeros.shallow_clone(), zeros.shallow_clone(), log_reward);
/// scores.set(Quantity::LogZ, zeros)?;
/// let config = TeacherConfig { under_sampled: 9.0, alpha: 0.5, epsilon: 1.0, ..TeacherConfig::default() };
/// let log_rewards = teacher_log_rewards(&scores, &config);
/// assert!((log_rewards[0] - (41f64.ln() + 1.0)).abs() < 1e-12 && (log_rewards[1] - (5f64.ln() - 1.0)).abs() < 1e-12);
/// # Ok::<(), gfn::Error>(())
/// ```
#[must_use]
pub fn teacher_log_rewards(student: &Scores, config: &TeacherConfig) -> Vec<f64> {
    let raw = to_host(&student.raw_log_reward);
    let each = student.imbalances(1.0).into_iter().zip(raw);
    let log_reward = |(imbalance, log_reward): (f64, f64)| {
        let weight = 1.0 + if imbalance < 0.0 { config.under_sampled } else { 0.0 };
        (config.epsilon + weight * imbalance.powi(2)).ln() + config.alpha * log_reward
    };
    each.map(log_reward).collect()
}

/// A teacher that learns by trajectory balance.
pub(in crate::train) struct Teacher<T> {
    policy: T,
    adam: Adam,
    config: TeacherConfig,
    /// `true` once the policy was looked at: one that needs conditions is when it first draws.
    checked: bool,
}

impl<T> Teacher<T> {
    pub(in crate::train) fn new<E: TrainEnv>(env: &E, policy: T, config: TeacherConfig) -> Result<Self>
    where
        T: Policy<E>,
    {
        config.check()?;
        let none = || {
            let remedy = "give it a network: it has to learn where the student is wrong";
            Error::missing("an adaptive teacher", "a policy with parameters", remedy)
        };
        let adam = Adam::new(policy.parameters().ok_or_else(none)?, config.adam)?;
        let checked = check_policy(env, &policy, None, 0)?;
        Ok(Self { policy, adam, config, checked })
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
        self.policy.parameters().map_or(Ok(Vec::new()), |parameters| network_state(parameters, &self.adam))
    }
    fn load_state(&mut self, _env: &E, state: &[(String, Tensor)]) -> Result<()> {
        let Self { policy, adam, .. } = self;
        policy.parameters().map_or(Ok(()), |parameters| load_network_state(parameters, adam, state))
    }
}

impl<E: TrainEnv, T: Policy<E> + Send + 'static> Source<E> for Teacher<T> {
    fn facts(&self, _: &Context<E>) -> Facts {
        Facts { sees_losses: true, ..Facts::default() }
    }

    fn draw(&mut self, wanted: Wanted, context: &Context<E>, rng: &mut Rng) -> Result<Option<Trajectories<E>>> {
        let Context { env, config, conditions, .. } = context;
        if !self.checked {
            self.checked = check_policy(env, &self.policy, conditions.as_deref(), 0)?;
        }
        if let Some(parameters) = self.policy.parameters() {
            parameters.reset_noise(rng);
        }
        let sampler = Sampler::new(env, &self.policy).exploration(context.exploration()?).max_steps(config.max_steps);
        let conditions = context.draw_conditions(wanted.most, rng)?;
        forward(&sampler, wanted.most, conditions.as_ref(), rng).map(Some)
    }

    /// Learns from the whole batch, whoever drew it.
    fn learn(
        &mut self,
        batch: &Trajectories<E>,
        _: Range<usize>,
        student: &Scores,
        context: &Context<E>,
    ) -> Result<()> {
        let differentiated = self.differentiate(batch, student, context);
        if let (Err(_), Some(parameters)) = (&differentiated, self.policy.parameters()) {
            // What a part of the batch has left must not come into the next step.
            parameters.clear_gradients();
        }
        differentiated?;
        self.adam.step().map(drop)
    }

    fn policy(&self) -> Option<&dyn Any> {
        Some(&self.policy)
    }
}

impl<T> Teacher<T> {
    /// Adds the gradients of the teacher's loss on a batch.
    fn differentiate<E: TrainEnv>(&self, batch: &Trajectories<E>, student: &Scores, context: &Context<E>) -> Result<()>
    where
        T: Policy<E>,
    {
        // Recorded log-rewards are taken for the reward.
        let batch = batch.clone().with_log_rewards(teacher_log_rewards(student, &self.config))?;
        let (env, reward, policy) = (&context.env, context.reward.as_ref(), &self.policy);
        let needs = Objective::needs(&TrajectoryBalance);
        let loss = |scores: &Scores| backward(&TrajectoryBalance.loss(scores, RegressionLoss::Squared)?);
        let Some(limit) = context.config.chunk else { return loss(&score(env, reward, policy, &batch, needs)?) };
        let chunks = chunked::chunks(&batch, limit)?;
        let leaves = chunked::leaf_scores(env, reward, policy, &chunks, &Scoring::of(needs))?;
        loss(&leaves)?;
        chunked::backward(env, reward, policy, &chunks, &Scoring::of(needs), &leaves, Starts::default()).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::Quantity;

    /// Two objects of one reward, one of which the student samples too rarely and the other as much too often: the first is worth more.
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
