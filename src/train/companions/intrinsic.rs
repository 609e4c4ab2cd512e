//! Intrinsic rewards: a trainer's bonus for novel states.

use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor};

use crate::env::{Env, Rows};
use crate::objective::Scores;
use crate::optim::Schedule;
use crate::policy::Policy;
use crate::quantity::{Quantity, Values};
use crate::rollout::{ReplayEnv, Trajectories};
use crate::tensor::from_host;
use crate::train::Trainer;
use crate::{Error, Result};

/// The novelty of states: a number per state, larger for states seen less often. Closures `Fn(&States) ->
/// Result<Vec<f64>>` implement it without learning.
///
/// [`RandomDistillation`](super::RandomDistillation) learns, so that the reward of a state shrinks with visits.
pub trait Novelty<S> {
    /// r of each state, `[states]`, not negative.
    ///
    /// # Errors
    /// Any error of the implementation.
    fn rewards(&self, states: &S) -> Result<Vec<f64>>;

    /// Learns from visited states; one that was visited twice occurs twice.
    ///
    /// # Errors
    /// Any error of the implementation.
    fn learn(&mut self, _visited: &S) -> Result<()> {
        Ok(())
    }

    /// Its state for a checkpoint.
    ///
    /// # Errors
    /// [`Error::Torch`] if data can't be copied from a device.
    fn state(&self) -> Result<Vec<(String, Tensor)>> {
        Ok(Vec::new())
    }

    /// Continues from a state that [`state`](Self::state) gave.
    ///
    /// # Errors
    /// [`Error::Config`] or [`Error::Shape`] for the state of another one; nothing is changed then.
    fn load_state(&mut self, _state: &[(String, Tensor)]) -> Result<()> {
        Ok(())
    }
}

impl<S, F: Fn(&S) -> Result<Vec<f64>>> Novelty<S> for F {
    fn rewards(&self, states: &S) -> Result<Vec<f64>> {
        self(states)
    }
}

/// The coefficients of novelty at each step of training.
///
/// Pan et al. (2023) call them edge-based, state-based and joint intrinsic rewards. The reward of an edge is that of
/// the state it leads to, as in their code. Intrinsic rewards change the target while their coefficient isn't 0; with a
/// schedule that ends at 0 training ends at the original target.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntrinsicConfig {
    /// Coefficient on edges, except exits.
    pub edges: Schedule,
    /// Coefficient on terminal states.
    pub terminal: Schedule,
}

impl IntrinsicConfig {
    /// Rewards on edges only.
    #[must_use]
    pub fn edge_based(coefficient: Schedule) -> Self {
        Self { edges: coefficient, terminal: Schedule::Constant(0.0) }
    }

    /// Rewards on terminal states only.
    #[must_use]
    pub fn state_based(coefficient: Schedule) -> Self {
        Self { edges: Schedule::Constant(0.0), terminal: coefficient }
    }

    /// The same coefficient for both.
    #[must_use]
    pub fn joint(coefficient: Schedule) -> Self {
        Self { edges: coefficient.clone(), terminal: coefficient }
    }

    fn check(&self) -> Result<()> {
        for schedule in [&self.edges, &self.terminal] {
            schedule.check()?;
            if let Some(step) = schedule.landmarks().into_iter().find(|&step| schedule.at(step) < 0.0) {
                return Err(Error::Config {
                    setting: "the coefficient of intrinsic rewards",
                    got: schedule.at(step).to_string(),
                    expected: "a number of at least 0 at every step",
                });
            }
        }
        Ok(())
    }
}

/// A trainer's intrinsic rewards.
pub(in crate::train) struct Intrinsic<S> {
    pub(in crate::train) novelty: Box<dyn Novelty<S>>,
    pub(in crate::train) config: IntrinsicConfig,
}

/// All visited states, once per visit, and the row of each trajectory's terminal state.
fn visited<E: Env>(trajectories: &Trajectories<E>) -> (E::States, Vec<usize>) {
    let mut states = trajectories.states().clone();
    let mut terminal: Vec<usize> = trajectories.offsets()[1..].iter().map(|end| end - 1).collect();
    let exit = trajectories.is_exit();
    let without: Vec<usize> = (0..terminal.len()).filter(|&i| !exit[terminal[i]]).collect();
    without.iter().enumerate().for_each(|(k, &i)| terminal[i] = exit.len() + k);
    states.append(trajectories.terminal_states().select(&without));
    (states, terminal)
}

impl<S: Rows> Intrinsic<S> {
    /// The rewards of a batch at a step.
    pub(in crate::train) fn rewards<E: Env<States = S>>(
        &self,
        trajectories: &Trajectories<E>,
        step: usize,
        (kind, device): (Kind, Device),
    ) -> Result<Values> {
        let (on_edges, on_terminal) = (self.config.edges.at(step), self.config.terminal.at(step));
        let (states, terminal) = visited(trajectories);
        let novelty = if on_edges == 0.0 && on_terminal == 0.0 { vec![0.0; states.len()] } else { self.each(&states)? };
        let after = trajectories.next_rows().into_iter().map(|row| row.unwrap_or_else(|i| terminal[i]));
        let edges = after.zip(trajectories.is_exit());
        let edges: Vec<f64> = edges.map(|(row, &exit)| if exit { 0.0 } else { on_edges * novelty[row] }).collect();
        let terminal: Vec<f64> = terminal.iter().map(|&row| on_terminal * novelty[row]).collect();
        let edges = from_host(&edges, kind, device);
        let terminal = from_host(&terminal, kind, device);
        Ok(Values::default().with(Quantity::IntrinsicEdge, edges).with(Quantity::IntrinsicTerminal, terminal))
    }

    /// The novelty of each state; equal states are evaluated once.
    fn each(&self, states: &S) -> Result<Vec<f64>> {
        let grouping = states.group();
        let values = self.novelty.rewards(&states.select(&grouping.first))?;
        if values.len() != grouping.first.len() {
            return Err(Error::Shape {
                what: "intrinsic rewards".into(),
                expected: vec![grouping.first.len() as i64],
                got: vec![values.len() as i64],
                remedy: "give one number per state",
            });
        }
        if let Some((row, &value)) = values.iter().enumerate().find(|(_, r)| !(r.is_finite() && **r >= 0.0)) {
            let remedy = "give finite rewards for novelty, none of them negative";
            return Err(Error::NonFinite { what: "intrinsic reward", row, value, remedy });
        }
        Ok(grouping.of.iter().map(|&group| values[group]).collect())
    }
}

impl<E: ReplayEnv, P: Policy<E>> Trainer<E, P> {
    /// Adds intrinsic rewards. The objective must support them:
    /// [`AugmentedTrajectoryBalance`](crate::objective::AugmentedTrajectoryBalance) or
    /// [`AugmentedDetailedBalance`](crate::objective::AugmentedDetailedBalance). They change the target while they
    /// aren't 0.
    ///
    /// ```
    /// use gfn::{env::{Rows, VectorStates}, objective::AugmentedTrajectoryBalance, optim::Schedule, testing::Words, Rng};
    /// use gfn::policy::{ByKey, MlpPolicy, MlpPolicyConfig};
    /// use gfn::train::{DistillationConfig, IntrinsicConfig, RandomDistillation, Trainer, TrainerConfig};
    /// use tch::{Device, Kind};
    /// let (env, mut rng) = (Words::new(2, 2), Rng::seeded(0));
    /// let config = MlpPolicyConfig { flow: true, ..MlpPolicyConfig::default() };
    /// let policy = MlpPolicy::tabular(&env, ByKey::new(env, 9), config, Device::Cpu, Kind::Float)?;
    /// let (features, config) = (ByKey::new(env, 9), DistillationConfig::default());
    /// let novelty = RandomDistillation::new(features, config, Device::Cpu, Kind::Float, &mut rng)?;
    /// let reward = |states: &VectorStates, _: Option<&tch::Tensor>| Ok(vec![0.0; states.len()]);
    /// let coefficient = Schedule::Linear { from: 0.1, to: 0.0, steps: 100 };
    /// let mut trainer = Trainer::new(env, reward, policy, AugmentedTrajectoryBalance, TrainerConfig::default(), rng)?
    ///     .with_intrinsic(novelty, IntrinsicConfig::joint(coefficient))?;
    /// assert!(trainer.step()?.loss.is_finite());
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] for an objective that doesn't use them, and for a coefficient that is ever negative.
    pub fn with_intrinsic(
        mut self,
        novelty: impl Novelty<E::States> + 'static,
        config: IntrinsicConfig,
    ) -> Result<Self> {
        config.check()?;
        if !self.needs_intrinsic() {
            return Err(Error::Config {
                setting: "the objective with intrinsic rewards",
                got: self.objective.name().into(),
                expected: "augmented trajectory or detailed balance: other objectives take no notice of them",
            });
        }
        self.intrinsic = Some(Intrinsic { novelty: Box::new(novelty), config });
        Ok(self)
    }

    /// The novelty that gives intrinsic rewards.
    pub fn novelty(&self) -> Option<&dyn Novelty<E::States>> {
        self.intrinsic.as_ref().map(|intrinsic| intrinsic.novelty.as_ref())
    }

    fn needs_intrinsic(&self) -> bool {
        self.objective.needs().has_any(&[Quantity::IntrinsicEdge, Quantity::IntrinsicTerminal])
    }

    /// Adds intrinsic rewards to scores that need them; without any, the objective says so.
    pub(in crate::train) fn add_intrinsic(&self, trajectories: &Trajectories<E>, scores: &mut Scores) -> Result<()> {
        if let (Some(intrinsic), true) = (&self.intrinsic, self.needs_intrinsic()) {
            let kind = (scores.log_pf.kind(), scores.log_pf.device());
            scores.set_all(intrinsic.rewards(trajectories, self.step, kind)?)?;
        }
        Ok(())
    }

    /// Lets the novelty learn from the states of a batch.
    pub(in crate::train) fn learn_novelty(&mut self, trajectories: &Trajectories<E>) -> Result<()> {
        match &mut self.intrinsic {
            Some(intrinsic) => intrinsic.novelty.learn(&visited(trajectories).0),
            None => Ok(()),
        }
    }
}
