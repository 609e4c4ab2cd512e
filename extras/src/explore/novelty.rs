//! Intrinsic rewards: additional rewards for states that were rarely visited.

use gfn::env::{Env, Rows};
use gfn::objective::{Quantity, Values};
use gfn::optim::Schedule;
use gfn::rollout::Trajectories;
use gfn::train::{Companion, Context, Persist};
use gfn::{Error, Result};
use serde::{Deserialize, Serialize};
use tch::Tensor;

/// A measure of the novelty of states. The measure has one number per state, which is larger for states
/// that were visited less often. A closure `Fn(&States) -> Result<Vec<f64>>` is a measure that doesn't
/// learn.
///
/// [`RandomDistillation`](super::RandomDistillation) is a measure that learns from visits, so that the
/// novelty of a state shrinks each time the state is visited.
pub trait Novelty<S>: Send {
    /// Returns the novelty r of each state: one number per state, which must be 0 or more.
    ///
    /// # Errors
    /// Any error. The training step then fails with this error.
    fn rewards(&self, states: &S) -> Result<Vec<f64>>;

    /// Learns from visited states. A state that was visited twice is in the list twice.
    ///
    /// # Errors
    /// Any error. The training step then fails with this error.
    fn learn(&mut self, _visited: &S) -> Result<()> {
        Ok(())
    }

    /// Returns what this measure has learned, as named tensors for a checkpoint.
    ///
    /// # Errors
    /// [`Error::Torch`] if tensors can't be copied from their device.
    fn state(&self) -> Result<Vec<(String, Tensor)>> {
        Ok(Vec::new())
    }

    /// Restores tensors that [`state`](Self::state) returned.
    ///
    /// # Errors
    /// [`Error::Config`] or [`Error::Shape`] for tensors that don't fit this measure. The measure stays
    /// unchanged in this case.
    fn load_state(&mut self, _state: &[(String, Tensor)]) -> Result<()> {
        Ok(())
    }
}

impl<S, F: Fn(&S) -> Result<Vec<f64>> + Send> Novelty<S> for F {
    fn rewards(&self, states: &S) -> Result<Vec<f64>> {
        self(states)
    }
}

impl<S> Novelty<S> for Box<dyn Novelty<S>> {
    fn rewards(&self, states: &S) -> Result<Vec<f64>> {
        self.as_ref().rewards(states)
    }

    fn learn(&mut self, visited: &S) -> Result<()> {
        self.as_mut().learn(visited)
    }

    fn state(&self) -> Result<Vec<(String, Tensor)>> {
        self.as_ref().state()
    }

    fn load_state(&mut self, state: &[(String, Tensor)]) -> Result<()> {
        self.as_mut().load_state(state)
    }
}

/// The coefficients that multiply the novelty at each training step.
///
/// An edge is a transition from one state to the next, other than an exit. Its novelty is that of the state
/// that it leads to, as in the code of Pan et al. (2023). They call novelty on edges only edge-based, on
/// terminal states only state-based, and on both joint intrinsic rewards. Intrinsic rewards change the target
/// distribution as long as a coefficient isn't 0. If the schedules of both coefficients end at 0, training
/// ends with the target of the reward alone.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntrinsicConfig {
    /// The coefficient of the novelty on edges, which are transitions between states. Exits get no such
    /// reward.
    pub edges: Schedule,
    /// The coefficient of the novelty on terminal states.
    pub terminal: Schedule,
}

impl IntrinsicConfig {
    /// Creates the settings for intrinsic rewards on edges only, which are transitions between states.
    #[must_use]
    pub fn edge_based(coefficient: Schedule) -> Self {
        Self { edges: coefficient, terminal: Schedule::Constant(0.0) }
    }

    /// Creates the settings for intrinsic rewards on terminal states only.
    #[must_use]
    pub fn state_based(coefficient: Schedule) -> Self {
        Self { edges: Schedule::Constant(0.0), terminal: coefficient }
    }

    /// Creates the settings for intrinsic rewards on edges (transitions between states) and on terminal
    /// states, with the same coefficient.
    #[must_use]
    pub fn joint(coefficient: Schedule) -> Self {
        Self { edges: coefficient.clone(), terminal: coefficient }
    }

    fn check(&self) -> Result<()> {
        for schedule in [&self.edges, &self.terminal] {
            schedule.check()?;
            if let Some(step) = schedule.landmarks().into_iter().find(|&step| schedule.at(step) < 0.0) {
                return Err(Error::config(
                    "the coefficient of intrinsic rewards",
                    schedule.at(step),
                    "a number of at least 0 at every step",
                ));
            }
        }
        Ok(())
    }
}

/// Intrinsic rewards as a companion of a trainer
/// ([`Trainer::with_companion`](gfn::train::Trainer::with_companion)). The objective must use intrinsic
/// rewards: [`AugmentedTrajectoryBalance`](gfn::objective::AugmentedTrajectoryBalance) or
/// [`AugmentedDetailedBalance`](gfn::objective::AugmentedDetailedBalance). Intrinsic rewards change the
/// target distribution as long as they aren't 0.
///
/// ```
/// use gfn::policy::{ByNumber, MlpPolicy, MlpPolicyConfig};
/// use gfn::train::{Trainer, TrainerConfig};
/// use gfn::{Rng, examples::word_env};
/// use gfn::{
///     env::{Rows, VectorStates},
///     nn::EstimatorsConfig,
///     objective::AugmentedTrajectoryBalance,
///     optim::Schedule,
/// };
/// use gfn_extras::explore::{DistillationConfig, Intrinsic, IntrinsicConfig, RandomDistillation};
/// use tch::{Device, Kind};
/// let (env, mut rng) = (word_env(2, 2), Rng::seeded(0));
/// let estimators = EstimatorsConfig::with_flow(true);
/// let config = MlpPolicyConfig { estimators, ..MlpPolicyConfig::default() };
/// let policy = MlpPolicy::tabular(&env, ByNumber::new(2, 3), config, Device::Cpu, Kind::Float)?;
/// let (features, config) = (ByNumber::new(2, 3), DistillationConfig::default());
/// let novelty =
///     RandomDistillation::new::<VectorStates>(features, config, Device::Cpu, Kind::Float, &mut rng)?;
/// let reward = |states: &VectorStates, _: Option<&tch::Tensor>| Ok(vec![0.0; states.len()]);
/// let coefficient = Schedule::Linear { from: 0.1, to: 0.0, steps: 100 };
/// let mut trainer =
///     Trainer::new(env, reward, policy, AugmentedTrajectoryBalance, TrainerConfig::default(), rng)?
///         .with_companion(Intrinsic::new(novelty, IntrinsicConfig::joint(coefficient))?)?;
/// assert!(trainer.step()?.loss.is_finite());
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct Intrinsic<N> {
    novelty: N,
    config: IntrinsicConfig,
}

impl<N> Intrinsic<N> {
    /// Creates intrinsic rewards, which are the novelty multiplied by the coefficients of `config`.
    ///
    /// # Errors
    /// [`Error::Config`] for an invalid schedule, and for a coefficient that is negative at any step.
    pub fn new(novelty: N, config: IntrinsicConfig) -> Result<Self> {
        config.check()?;
        Ok(Self { novelty, config })
    }

    /// Returns the measure of novelty.
    pub fn novelty(&self) -> &N {
        &self.novelty
    }
}

/// Returns the visited states and, for each trajectory, the index of its terminal state among them. A state
/// that was visited several times is repeated.
fn visits<E: Env>(trajectories: &Trajectories<E>) -> (E::States, Vec<usize>) {
    let mut states = trajectories.states().clone();
    let mut terminal: Vec<usize> = trajectories.offsets()[1..].iter().map(|end| end - 1).collect();
    let exit = trajectories.is_exit();
    let without: Vec<usize> = (0..terminal.len()).filter(|&i| !exit[terminal[i]]).collect();
    for (k, &i) in without.iter().enumerate() {
        terminal[i] = exit.len() + k;
    }
    states.append(trajectories.terminal_states().select(&without));
    (states, terminal)
}

impl<N> Intrinsic<N> {
    /// Returns the intrinsic rewards of a batch at a training step. The first tensor has the reward of each
    /// transition, which is 0 for an exit. The second tensor has the reward of each trajectory's terminal
    /// state.
    fn rewards<E: Env>(&self, trajectories: &Trajectories<E>, step: usize) -> Result<[Tensor; 2]>
    where
        N: Novelty<E::States>,
    {
        let on_edges = self.config.edges.at(step);
        let on_terminal = self.config.terminal.at(step);
        let (states, terminal) = visits(trajectories);
        let novelty =
            if on_edges == 0.0 && on_terminal == 0.0 { vec![0.0; states.len()] } else { self.rate(&states)? };
        let after = trajectories.next_rows().into_iter().map(|row| row.unwrap_or_else(|i| terminal[i]));
        let edges = after.zip(trajectories.is_exit());
        let edges: Vec<f64> =
            edges.map(|(row, &exit)| if exit { 0.0 } else { on_edges * novelty[row] }).collect();
        let terminal: Vec<f64> = terminal.iter().map(|&row| on_terminal * novelty[row]).collect();
        Ok([Tensor::from_slice(&edges), Tensor::from_slice(&terminal)])
    }

    /// Returns the novelty of each state. If several states are equal, their novelty is computed only once.
    fn rate<S: Rows>(&self, states: &S) -> Result<Vec<f64>>
    where
        N: Novelty<S>,
    {
        let grouping = states.group();
        let values = self.novelty.rewards(&states.select(&grouping.first))?;
        if values.len() != grouping.first.len() {
            return Err(Error::shape(
                "intrinsic rewards",
                [grouping.first.len() as i64],
                [values.len() as i64],
                "let the novelty return one number per state",
            ));
        }
        if let Some((row, &value)) = values.iter().enumerate().find(|(_, r)| !(r.is_finite() && **r >= 0.0)) {
            let remedy = "let the novelty return finite rewards of at least 0";
            return Err(Error::non_finite("intrinsic reward", row, value, remedy));
        }
        Ok(grouping.group_of.iter().map(|&group| values[group]).collect())
    }
}

impl<E: Env, N: Novelty<E::States>> Persist<E> for Intrinsic<N> {
    fn name(&self) -> &str {
        "novelty"
    }
    fn describe(&self) -> String {
        "a novelty that learns".into()
    }
    fn state(&self, _env: &E) -> Result<Vec<(String, Tensor)>> {
        self.novelty.state()
    }
    fn load_state(&mut self, _env: &E, state: &[(String, Tensor)]) -> Result<()> {
        self.novelty.load_state(state)
    }
}

impl<E: Env, N: Novelty<E::States> + 'static> Companion<E> for Intrinsic<N> {
    fn supplies(&self) -> &'static [Quantity] {
        &[Quantity::IntrinsicEdge, Quantity::IntrinsicTerminal]
    }

    fn supply(&self, batch: &Trajectories<E>, context: &Context<E>, supplied: &mut Values) -> Result<()> {
        let [edges, terminal] = self.rewards(batch, context.step)?;
        supplied.insert(Quantity::IntrinsicEdge, edges);
        supplied.insert(Quantity::IntrinsicTerminal, terminal);
        Ok(())
    }

    fn after_step(&mut self, batch: &Trajectories<E>, _context: &Context<E>) -> Result<()> {
        self.novelty.learn(&visits(batch).0)
    }
}
