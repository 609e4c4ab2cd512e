use gfn::Result;
use gfn::env::Reward;
use gfn::graph::{GraphState, GraphStates};
use gfn::runtime::Threads;

use super::{Mark, Problem};
use crate::rewards::positive;

/// A reward of solutions and of unfinished states. The reward is `log R = beta size`, or `log R = -beta size`
/// for problems whose best solution is the smallest.
///
/// The size is that of [`Problem::check`]. The size of an unfinished state is that of its solution so far.
/// Forward-looking objectives use this size (Pan et al. 2023; Zhang et al. 2023, section 3.3).
///
/// If beta is a condition of the policy, pass the reward at beta = 1 to a `ConditionedReward` of the package
/// `gfn-extras`:
///
/// ```
/// use gfn::{env::Reward, graph::GraphFormat};
/// use gfn_extras::condition::{Condition, ConditionedReward, Conditioning, Encoding, Temperature};
/// use gfn_gym::graph_problems::{GraphProblem, Instances, Problem, SizeReward};
/// use std::sync::Arc;
/// let conditioning = Conditioning::new(1)?
///     .temperature(Temperature::Uniform { least: 1.0, most: 4.0 }, Encoding::Thermometer { bins: 16 })?;
/// let one = SizeReward::new(Problem::DominatingSet, 1.0)?;
/// let reward = ConditionedReward::new(conditioning.clone(), vec![Arc::new(one)])?;
/// let condition = conditioning.encode(&[Condition { beta: 3.0, preferences: vec![1.0], focus: None }])?;
/// // A graph of two nodes without an edge, which dominate nothing but themselves.
/// let env = GraphProblem::new(Problem::DominatingSet, &Instances::new(GraphFormat::Graph6.read(b"A?")?)?)?
///     .into_env();
/// let state = gfn::env::Env::initial(&env, &[0]);
/// assert!((reward.log_reward(&state, Some(&condition))?[0] + 3.0 * 2.0).abs() < 1e-6);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SizeReward {
    problem: Problem,
    beta: f64,
}

impl SizeReward {
    /// Builds the reward of a problem's solutions with the factor `beta` of the size.
    ///
    /// # Errors
    /// [`gfn::Error::Config`] unless beta is finite and positive.
    pub fn new(problem: Problem, beta: f64) -> Result<Self> {
        Ok(Self { problem, beta: positive("beta", beta)? })
    }

    /// Returns beta, the factor of the size in the log-reward.
    #[must_use]
    pub fn beta(&self) -> f64 {
        self.beta
    }

    fn log_reward_of(&self, state: &GraphState) -> f64 {
        let size = match self.problem {
            Problem::Cut => {
                let adjacency = state.adjacency();
                let sides: Vec<bool> = state.nodes().map(|node| Mark::from_node(node) == Mark::In).collect();
                let cut = |a: usize| adjacency.neighbours(a).filter(|&b| !sides[b]).count();
                (0..sides.len()).filter(|&a| sides[a]).map(cut).sum()
            }
            _ => self.problem.solution(state).len(),
        };
        let sign = if self.problem.is_minimised() { -1.0 } else { 1.0 };
        sign * self.beta * size as f64
    }
}

impl Reward<GraphStates> for SizeReward {
    fn log_reward(&self, states: &GraphStates, _: Option<&tch::Tensor>) -> Result<Vec<f64>> {
        Threads::try_map(states.graphs(), 256, |graph| Ok(self.log_reward_of(graph)))
    }

    fn partial_log_reward(
        &self,
        states: &GraphStates,
        conditions: Option<&tch::Tensor>,
    ) -> Result<Option<Vec<f64>>> {
        self.log_reward(states, conditions).map(Some)
    }
}
