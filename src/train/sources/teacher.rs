//! Adaptive teacher: a second policy that samples where the first one is wrong.

use std::any::Any;

use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::on_policy::forward;
use crate::distribution::Exploration;
use crate::env::{Env, Reward};
use crate::objective::{Objective, RegressionLoss, Scores, TrajectoryBalance, score};
use crate::optim::{Adam, AdamConfig};
use crate::policy::Policy;
use crate::rollout::{ReplayEnv, Sampler, Trajectories};
use crate::runtime::flushing_denormals;
use crate::tensor::to_host;
use crate::train::companions::{load_network_state, network_state};
use crate::train::gradients::imbalance_of_each;
use crate::train::{Trainer, chunked};
use crate::{Error, Result, Rng};

/// The settings of an adaptive teacher: its share, its reward and its optimiser; see [`Trainer::with_teacher`].
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TeacherConfig {
    /// The teacher's share of the new trajectories.
    pub share: f64,
    /// C, the additional weight of objects that the student samples too rarely.
    pub under_sampled: f64,
    /// alpha, the exponent of the student's reward in the teacher's.
    pub alpha: f64,
    /// Added to the squared imbalance, so that its log is finite.
    pub epsilon: f64,
    /// The teacher's optimiser.
    pub adam: AdamConfig,
}

impl Default for TeacherConfig {
    /// Half of the new trajectories, C = 19, alpha = 0.5, epsilon = 1e-3.
    fn default() -> Self {
        Self { share: 0.5, under_sampled: 19.0, alpha: 0.5, epsilon: 1e-3, adam: AdamConfig::default() }
    }
}

impl TeacherConfig {
    fn check(&self) -> Result<()> {
        let refuse = |setting, got: f64, expected| Err(Error::Config { setting, got: got.to_string(), expected });
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

    /// The teacher's number of `n` new trajectories: its share, rounded up or down at random if it isn't whole.
    fn count(&self, n: usize, rng: &mut Rng) -> usize {
        let share = self.share * n as f64;
        share.floor() as usize + usize::from(share.fract() > 0.0 && rng.uniform() < share.fract())
    }
}

/// The teacher's log-reward of each trajectory's object: `log(epsilon + (1 + C [delta > 0]) delta^2) + alpha log R`
/// with the student's `delta = log R + sum log P_B - log Z - sum log P_F`. If `delta > 0` the student samples it too
/// rarely.
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
    let each = imbalance_of_each(student, 1.0).into_iter().zip(raw);
    let log_reward = |(imbalance, log_reward): (f64, f64)| {
        let weight = 1.0 + if imbalance < 0.0 { config.under_sampled } else { 0.0 };
        (config.epsilon + weight * imbalance.powi(2)).ln() + config.alpha * log_reward
    };
    each.map(log_reward).collect()
}

/// A teacher with any type of policy.
pub(in crate::train) trait Teacher<E: Env> {
    /// The teacher's number of `n` new trajectories.
    fn count(&self, n: usize, rng: &mut Rng) -> usize;

    /// Draws the noise of noisy layers again.
    fn reset_noise(&self, rng: &mut Rng);

    fn sample(
        &self,
        env: &E,
        n: usize,
        conditions: Option<&Tensor>,
        how: (Exploration, usize),
        rng: &mut Rng,
    ) -> Result<Trajectories<E>>;

    /// Learns from a batch and the student's scores of it, in chunks of `chunk` transitions.
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

struct Adaptive<T> {
    policy: T,
    adam: Adam,
    config: TeacherConfig,
}

fn no_parameters() -> Error {
    Error::Missing {
        objective: "an adaptive teacher",
        needs: "a policy with parameters",
        remedy: "give it a network: it has to learn where the student is wrong",
    }
}

impl<E: ReplayEnv, T: Policy<E> + 'static> Teacher<E> for Adaptive<T> {
    fn count(&self, n: usize, rng: &mut Rng) -> usize {
        self.config.count(n, rng)
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
            // Gradients of a failed backward pass must not enter the next step.
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
        // Recorded log-rewards replace the reward.
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
                chunked::backward(env, reward, policy, &chunks, needs, &scores)?;
            }
        }
        Ok(())
    }
}

impl<E: ReplayEnv, P: Policy<E>> Trainer<E, P> {
    /// Adds an adaptive teacher (Kim et al., *Adaptive Teachers for Amortized Samplers*, 2025): a second policy that
    /// samples a share of the new trajectories. It learns by trajectory balance to sample where the student, the
    /// trainer's own policy, is wrong. It changes the behaviour, not the target.
    ///
    /// Its reward is [`teacher_log_rewards`], evaluated on each trajectory that the student is trained on, whatever its
    /// source. This reward changes as the student learns. As in the authors' code `delta` is that of one trajectory,
    /// not a mean over the paths to its object. So the teacher samples in proportion to the geometric mean of its
    /// reward over the paths; the paper trains with a fixed, uniform P_B in both. Unlike there, student, teacher and
    /// buffer share each batch instead of taking turns. An objective that is relative to a prior is refused, because
    /// its balance doesn't use P_B.
    ///
    /// ```
    /// use gfn::{env::{Rows, VectorStates}, objective::TrajectoryBalance, testing::Words, Rng};
    /// use gfn::policy::{ByKey, MlpPolicy, MlpPolicyConfig};
    /// use gfn::train::{TeacherConfig, Trainer, TrainerConfig};
    /// let (env, rng) = (Words::new(2, 2), Rng::seeded(0));
    /// let policy = || MlpPolicy::tabular(&env, ByKey::new(env, 9), MlpPolicyConfig::default(), tch::Device::Cpu, tch::Kind::Float);
    /// let reward = |states: &VectorStates, _: Option<&tch::Tensor>| Ok(vec![0.0; states.len()]);
    /// let mut trainer = Trainer::new(env, reward, policy()?, TrajectoryBalance, TrainerConfig::default(), rng)?
    ///     .with_teacher(policy()?, TeacherConfig::default())?;
    /// assert!(trainer.step()?.loss.is_finite());
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] for invalid settings; [`Error::Missing`] for a policy without parameters.
    pub fn with_teacher<T: Policy<E> + 'static>(mut self, policy: T, config: TeacherConfig) -> Result<Self> {
        config.check()?;
        let adam = Adam::new(policy.parameters().ok_or_else(no_parameters)?, config.adam)?;
        self.teacher = Some(Box::new(Adaptive { policy, adam, config }));
        Ok(self)
    }

    /// The teacher's policy, if there is a teacher and its policy is a `T`.
    #[must_use]
    pub fn teacher<T: 'static>(&self) -> Option<&T> {
        self.teacher.as_ref()?.policy().downcast_ref()
    }

    /// Trains the teacher on a batch.
    pub(in crate::train) fn teach(&mut self, trajectories: &Trajectories<E>, student: &Scores) -> Result<()> {
        match &mut self.teacher {
            Some(teacher) => teacher.learn(&self.env, self.reward.as_ref(), trajectories, student, self.config.chunk),
            None => Ok(()),
        }
    }
}
