use gfn::Result;
use gfn::env::Reward;
use gfn::graph::{GraphState, GraphStates};
use rayon::prelude::*;

/// A reward from a function of one graph that gives log R; graphs are rewarded in parallel.
///
/// ```
/// use gfn::{env::Reward, graph::{GraphKind, GraphState, GraphStates}};
/// use gfn_gym::graph_building::PerGraph;
/// let reward = PerGraph(|graph: &GraphState| graph.n_edges() as f64);
/// let states = GraphStates::from(vec![GraphState::with_nodes(GraphKind::Directed, 2)]);
/// assert_eq!(reward.log_reward(&states, None)?, [0.0]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PerGraph<F>(pub F);

impl<F: Fn(&GraphState) -> f64 + Sync> Reward<GraphStates> for PerGraph<F> {
    fn log_reward(&self, states: &GraphStates, _: Option<&tch::Tensor>) -> Result<Vec<f64>> {
        let graphs = states.graphs().par_iter().with_min_len(64);
        Ok(graphs.map(|graph| (self.0)(graph)).collect())
    }
}
