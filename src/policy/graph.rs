use tch::Tensor;

use crate::Result;
use crate::distribution::GraphActionCategorical;
use crate::env::{Direction, DiscreteEnv};
use crate::graph::{GraphBatch, GraphEnv, GraphRules, GraphStates};
use crate::nn::{GraphNetwork, HostGraphNet, Parameters, Wants};
use crate::policy::{Evaluation, HostPolicy, Policy};

/// The policy of a network over graphs: encodes the states once, and makes one softmax per graph of its blocks.
#[derive(Debug)]
pub struct GraphPolicy<N>(pub N);

impl<R: GraphRules, N: GraphNetwork> Policy<GraphEnv<R>> for GraphPolicy<N> {
    type Dist = GraphActionCategorical;

    fn evaluate(
        &self,
        env: &GraphEnv<R>,
        states: &GraphStates,
        conditions: Option<&Tensor>,
        wants: Wants,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        let batch = GraphBatch::new(env.schema(), states, conditions, self.0.parameters().device())?;
        let output = self.0.forward(&batch, wants)?;
        let dist = |wanted: bool, direction: Direction, blocks: Option<Vec<Tensor>>| {
            if !wanted {
                return Ok(None);
            }
            let masks = env.masks(direction, states);
            match (blocks, direction) {
                (Some(blocks), _) => GraphActionCategorical::new(masks, &blocks).map(Some),
                (None, Direction::Backward) => Ok(Some(GraphActionCategorical::uniform(masks))),
                (None, Direction::Forward) => Ok(None),
            }
        };
        let pf = dist(wants.pf, Direction::Forward, output.pf)?;
        Ok(Evaluation {
            pf: match (pf, &output.pf_scale) {
                (Some(pf), Some(scale)) => Some(pf.scaled(scale)?),
                (pf, _) => pf,
            },
            pb: dist(wants.pb, Direction::Backward, output.pb)?,
            log_flow: output.log_flow,
            ..Evaluation::default()
        })
    }

    fn on_host(&self, direction: Direction) -> Option<Box<dyn HostPolicy<GraphEnv<R>, GraphActionCategorical> + '_>> {
        Some(Box::new(HostGraphPolicy { network: self.0.on_host(direction)?, direction }))
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        self.0.log_z(conditions, n)
    }

    fn parameters(&self) -> Option<&Parameters> {
        Some(self.0.parameters())
    }
}

/// A [`GraphPolicy`] for a roll-out.
struct HostGraphPolicy {
    network: HostGraphNet,
    direction: Direction,
}

impl<R: GraphRules> HostPolicy<GraphEnv<R>, GraphActionCategorical> for HostGraphPolicy {
    fn distribution(&self, env: &GraphEnv<R>, states: &GraphStates) -> Result<GraphActionCategorical> {
        let blocks = self.network.forward(states.graphs())?;
        GraphActionCategorical::of_host_blocks(env.masks(self.direction, states), &blocks)
    }
}
