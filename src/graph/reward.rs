use tch::Tensor;

use crate::env::Reward;
use crate::graph::{GraphState, GraphStates};
use crate::{Result, parallel};

/// The smallest number of graphs per thread. With fewer graphs, starting a thread costs more than it saves.
const MIN_PER_THREAD: usize = 64;

/// A reward computed by a function that returns log R of one graph. Graphs are evaluated in parallel. The
/// function doesn't get the conditions.
///
/// ```
/// use gfn::{env::Reward, graph::{GraphKind, GraphState, GraphStates, PerGraph}};
/// let reward = PerGraph(|graph: &GraphState| graph.n_edges() as f64);
/// let states = GraphStates::from(vec![GraphState::with_nodes(GraphKind::Directed, 2)]);
/// assert_eq!(reward.log_reward(&states, None)?, [0.0]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PerGraph<F>(pub F);

impl<F: Fn(&GraphState) -> f64 + Send + Sync> Reward<GraphStates> for PerGraph<F> {
    fn log_reward(&self, states: &GraphStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
        Ok(parallel::map(states.graphs(), MIN_PER_THREAD, &self.0))
    }
}
