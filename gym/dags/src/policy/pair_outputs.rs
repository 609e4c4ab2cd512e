//! What networks on pairs of nodes have in common: from logits to distributions.

use gfn::distribution::GraphActionCategorical;
use gfn::env::{Direction, DiscreteEnv, Masks, Rows};
use gfn::policy::Evaluation;
use gfn::quantity::{Quantities, Quantity};
use gfn::{Error, Result};
use tch::Tensor;

use crate::{BayesianStructure, DagStates};

/// What a network on pairs of nodes gives, and for graphs of how many nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct PairOutputs {
    pub(super) n_nodes: usize,
    /// Whether log F stands beside the exit's logit.
    pub(super) flow: bool,
}

impl PairOutputs {
    /// P_F and log F of a network that gives logits of ordered pairs `[B, d^2]` and of graphs `[B, 1 or 2]`, the exit's first; `slots`
    /// makes one row `[B, d^2 + 1]` of pairs and exit. P_B is uniform.
    pub(super) fn evaluate(
        self,
        env: &BayesianStructure,
        states: &DagStates,
        wants: Quantities,
        forward: impl FnOnce() -> (Tensor, Tensor),
        slots: impl FnOnce(&Tensor, &Tensor, &Masks) -> Tensor,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        if states.n_nodes() != self.n_nodes {
            return Err(Error::shape(
                "graphs of a network on pairs of nodes",
                [states.len() as i64, self.n_nodes as i64],
                [states.len() as i64, states.n_nodes() as i64],
                "give graphs of the environment that it was made for",
            ));
        }
        let mut evaluation = Evaluation::default();
        let log_flow = wants.has(Quantity::LogFlow) && self.flow;
        if wants.has(Quantity::LogPf) || log_flow {
            let (pairs, graph) = forward();
            if wants.has(Quantity::LogPf) {
                let masks = env.masks(Direction::Forward, states);
                let logits = slots(&pairs, &graph.narrow(1, 0, 1), &masks);
                evaluation.pf = Some(GraphActionCategorical::new(masks, &[logits])?);
            }
            evaluation = evaluation.with(Quantity::LogFlow, log_flow.then(|| graph.select(1, 1)));
        }
        if wants.has(Quantity::LogPb) {
            evaluation.pb = Some(GraphActionCategorical::uniform(env.masks(Direction::Backward, states)));
        }
        Ok(evaluation)
    }
}
