//! The adaptive teacher: a second policy that samples where the first one is wrong.

use std::any::Any;

use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::on_policy::forward;
use crate::condition::ConditionSource;
use crate::distribution::Exploration;
use crate::env::{Env, Reward};
use crate::objective::{Objective, RegressionLoss, Scores, TrajectoryBalance, score};
use crate::optim::{Adam, AdamConfig};
use crate::policy::Policy;
use crate::rollout::{ReplayEnv, Sampler, Trajectories};
use crate::runtime::flushing_denormals;
use crate::tensor::to_host;
use crate::train::companions::{load_network_state, network_state};
use crate::train::gradients::chunked::{self, Starts};
use crate::train::policy_checks::check_policy;
use crate::{Error, Result, Rng};

/// How an adaptive teacher rewards, learns and takes part; see [`Trainer::with_teacher`](crate::train::Trainer::with_teacher).
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
        let refuse = |setting, got: f64, expected| Err(Error::config(setting, got, expected));
        let size = |x: f64| x.is_finite() && x >= 0.0;
        if !(self.share > 0.0 && self.share <= 1.0) {
            return refuse("the teacher's share", self.share, "0 < share <= 1");
        }
        if !size(self.under_sampled) {
            return refuse("under_sampled", self.under_sampled, "a finite number of at least 0");
        }
        if !size(self.alpha) {
            return refuse("alpha", self.alpha, "a finite number of at least 0");
        }
        if !(size(self.epsilon) && self.epsilon > 0.0) {
            return refuse("epsilon", self.epsilon, "a finite number above 0");
        }
        Ok(())
    }

    /// How many of `n` fresh trajectories are the teacher's: its share, rounded up or down at random where it isn't whole.
    fn count(&self, n: usize, rng: &mut Rng) -> usize {
        let share = self.share * n as f64;
        share.floor() as usize + usize::from(share.fract() > 0.0 && rng.uniform() < share.fract())
    }
}

/// The teacher's log-reward of each trajectory's object: `log(epsilon + (1 + C [delta > 0]) delta^2) + alpha log R` with
/// `delta = log R + sum log P_B - log Z - sum log P_F` of the student. Where `delta > 0` the student samples too rarely.
///
/// ```
/// use gfn::{objective::Scores, quantity::Quantity, train::{TeacherConfig, teacher_log_rewards}};
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

/// A teacher, whatever its policy.
pub(in crate::train) trait Teacher<E: Env>: Send {
    /// How many of `n` fresh trajectories are its own.
    fn count(&self, n: usize, rng: &mut Rng) -> usize;

    /// Looks at what its policy promises, as trainers do at their own; false where it needs conditions and there are none.
    fn check(&self, env: &E, conditions: Option<&dyn ConditionSource>) -> Result<bool>;

    /// Draws the noise of noisy layers anew.
    fn reset_noise(&self, rng: &mut Rng);

    fn sample(
        &self,
        env: &E,
        n: usize,
        conditions: Option<&Tensor>,
        how: (Exploration, usize),
        rng: &mut Rng,
    ) -> Result<Trajectories<E>>;

    /// Learns from a batch and what the student made of it, as many transitions at once as `chunk` says.
    fn learn(
        &mut self,
        env: &E,
        reward: &dyn Reward<E::States>,
        trajectories: &Trajectories<E>,
        student: &Scores,
        chunk: Option<usize>,
    ) -> Result<()>;

    fn policy(&self) -> &dyn Any;
    fn state(&self) -> Result<Vec<(String, Tensor)>>;
    fn load_state(&mut self, state: &[(String, Tensor)]) -> Result<()>;
}

/// A teacher that learns by trajectory balance.
pub(in crate::train) struct Adaptive<T> {
    policy: T,
    adam: Adam,
    config: TeacherConfig,
}

impl<T> Adaptive<T> {
    pub(in crate::train) fn new<E: Env>(policy: T, config: TeacherConfig) -> Result<Self>
    where
        T: Policy<E>,
    {
        config.check()?;
        let adam = Adam::new(policy.parameters().ok_or_else(no_parameters)?, config.adam)?;
        Ok(Self { policy, adam, config })
    }
}

fn no_parameters() -> Error {
    Error::missing(
        "an adaptive teacher",
        "a policy with parameters",
        "give it a network: it has to learn where the student is wrong",
    )
}

impl<E: ReplayEnv, T: Policy<E> + Send + 'static> Teacher<E> for Adaptive<T> {
    fn count(&self, n: usize, rng: &mut Rng) -> usize {
        self.config.count(n, rng)
    }

    fn check(&self, env: &E, conditions: Option<&dyn ConditionSource>) -> Result<bool> {
        check_policy(env, &self.policy, conditions)
    }

    fn reset_noise(&self, rng: &mut Rng) {
        if let Some(parameters) = self.policy.parameters() {
            parameters.reset_noise(rng);
        }
    }

    fn sample(
        &self,
        env: &E,
        n: usize,
        conditions: Option<&Tensor>,
        (exploration, max_steps): (Exploration, usize),
        rng: &mut Rng,
    ) -> Result<Trajectories<E>> {
        forward(&Sampler::new(env, &self.policy).exploration(exploration).max_steps(max_steps), n, conditions, rng)
    }

    fn learn(
        &mut self,
        env: &E,
        reward: &dyn Reward<E::States>,
        trajectories: &Trajectories<E>,
        student: &Scores,
        chunk: Option<usize>,
    ) -> Result<()> {
        let differentiated = self.differentiate(env, reward, trajectories, student, chunk);
        if let (Err(_), Some(parameters)) = (&differentiated, self.policy.parameters()) {
            // What a part of the batch has left must not come into the next step.
            parameters.clear_gradients();
        }
        differentiated?;
        self.adam.step()?;
        Ok(())
    }

    fn policy(&self) -> &dyn Any {
        &self.policy
    }

    fn state(&self) -> Result<Vec<(String, Tensor)>> {
        network_state(self.policy.parameters().ok_or_else(no_parameters)?, &self.adam)
    }

    fn load_state(&mut self, state: &[(String, Tensor)]) -> Result<()> {
        load_network_state(self.policy.parameters().ok_or_else(no_parameters)?, &mut self.adam, state)
    }
}

impl<T> Adaptive<T> {
    /// Adds the gradients of the teacher's loss on a batch.
    fn differentiate<E: ReplayEnv>(
        &self,
        env: &E,
        reward: &dyn Reward<E::States>,
        trajectories: &Trajectories<E>,
        student: &Scores,
        chunk: Option<usize>,
    ) -> Result<()>
    where
        T: Policy<E>,
    {
        // Recorded log-rewards are taken for the reward.
        let batch = trajectories.clone().with_log_rewards(teacher_log_rewards(student, &self.config))?;
        let (policy, needs) = (&self.policy, Objective::needs(&TrajectoryBalance));
        let loss = |scores: &Scores| TrajectoryBalance.loss(scores, RegressionLoss::Squared);
        match chunk {
            None => {
                let loss = loss(&score(env, reward, policy, &batch, needs)?)?;
                flushing_denormals(|| loss.backward());
            }
            Some(limit) => {
                let chunks = chunked::chunks(&batch, limit)?;
                let scores = chunked::leaf_scores(env, reward, policy, &chunks, needs)?;
                let loss = loss(&scores)?;
                flushing_denormals(|| loss.backward());
                chunked::backward(env, reward, policy, &chunks, needs, (&scores, Starts::default()))?;
            }
        }
        Ok(())
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
