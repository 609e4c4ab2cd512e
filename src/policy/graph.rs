use crate::quantity::{Quantities, Quantity};
use tch::Tensor;

use crate::Result;
use crate::distribution::GraphActionCategorical;
use crate::env::{Direction, DiscreteEnv, Masks};
use crate::graph::{GraphBatch, GraphEnv, GraphRules, GraphStates, MoveSymmetries};
use crate::nn::{GraphNetwork, HostGraphNet, Parameters};
use crate::policy::{Evaluation, HostPolicy, Policy};

/// The policy of a graph network: encodes the states once, and makes one softmax per graph across all of its blocks.
#[derive(Debug)]
pub struct GraphPolicy<N>(pub N);

impl<R: GraphRules, N: GraphNetwork> Policy<GraphEnv<R>> for GraphPolicy<N> {
    type Dist = GraphActionCategorical;

    fn evaluate(
        &self,
        env: &GraphEnv<R>,
        states: &GraphStates,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        let batch = GraphBatch::new(env.schema(), states.arrays(), conditions, self.0.parameters().device())?;
        let mut batch = batch.with_label_classes(env.label_classes());
        let mut made: Vec<Masks> = Vec::new();
        let forward = wants.has(Quantity::LogPf) || wants.has(Quantity::LogFlow);
        for (direction, wanted) in [(Direction::Forward, forward), (Direction::Backward, wants.has(Quantity::LogPb))] {
            if wanted && self.0.sees_symmetry(direction) {
                let masks = env.masks(direction, states);
                batch = batch.with_symmetries(MoveSymmetries::of(env, &masks, states)?)?;
                made.push(masks);
            }
        }
        let output = self.0.forward(&batch, wants)?;
        let masks = |direction| {
            let made = made.iter().position(|masks| masks.direction == direction).map(|at| made.swap_remove(at));
            Ok(made.unwrap_or_else(|| env.masks(direction, states)))
        };
        Evaluation::of_masks(masks, wants, output)
    }

    fn on_host(&self, direction: Direction) -> Option<Box<dyn HostPolicy<GraphEnv<R>, GraphActionCategorical> + '_>> {
        let (network, sees_symmetry) = (self.0.on_host(direction)?, self.0.sees_symmetry(direction));
        Some(Box::new(HostGraphPolicy { network, sees_symmetry, direction }))
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        self.0.log_z(conditions, n)
    }

    fn parameters(&self) -> Option<&Parameters> {
        Some(self.0.parameters())
    }
}

/// A view of a [`GraphPolicy`] for a roll-out, in which parameters stay as they are.
struct HostGraphPolicy<'a> {
    network: HostGraphNet<'a>,
    sees_symmetry: bool,
    direction: Direction,
}

impl<R: GraphRules> HostPolicy<GraphEnv<R>, GraphActionCategorical> for HostGraphPolicy<'_> {
    fn distribution(&self, env: &GraphEnv<R>, states: &GraphStates) -> Result<GraphActionCategorical> {
        self.network.check_classes(&env.label_classes(), env.schema().max_nodes)?;
        let masks = env.masks(self.direction, states);
        let seen = self.sees_symmetry.then(|| MoveSymmetries::of(env, &masks, states)).transpose()?;
        let blocks = self.network.forward(states.arrays(), seen.as_ref())?;
        GraphActionCategorical::of_host_blocks(masks, &blocks)
    }
}
