use tch::Tensor;

use super::{Evaluation, Frozen, Policy, Wants};
use crate::Result;
use crate::dist::GraphActionCategorical;
use crate::env::{Direction, DiscreteEnv};
use crate::graph::{GraphBatch, GraphEnv, GraphStates};
use crate::nn::{FrozenGraphNet, Parameters};

/// What a network says of a batch of graphs.
#[derive(Debug, Default)]
pub struct GraphOutput {
    /// Logits of P_F: one block `[anchor rows, width]` per forward action type, in the action set's order, exit last.
    pub pf: Option<Vec<Tensor>>,
    /// Logits of P_B: one block per backward action type. `None` makes P_B uniform over legal backward actions.
    pub pb: Option<Vec<Tensor>>,
    /// log F of each graph, `[B]`.
    pub log_flow: Option<Tensor>,
    /// What the logits of P_F of each graph are multiplied by, `[B]`.
    pub pf_scale: Option<Tensor>,
}

/// A network on batches of graphs: implement it to bring your own GNN.
pub trait GraphNetwork {
    /// The blocks of logits, and the flows, that are wanted.
    ///
    /// # Errors
    /// Whatever the network finds wrong; the shapes of what it gives are checked by the caller.
    fn forward(&self, batch: &GraphBatch<'_>, wants: Wants) -> Result<GraphOutput>;

    /// The network as it is now, for a roll-out without conditions ([`Policy::frozen`]). `None` (the default) without such a form; it must
    /// give the same logits up to rounding. A [`GraphNet`](crate::nn::GraphNet) has one if its rounds are GIN or directed, it takes no
    /// conditions, and its weights are on the host in single precision; for P_B, if that is learned.
    fn frozen(&self, _direction: Direction) -> Option<FrozenGraphNet> {
        None
    }

    /// log Z for each of `n` trajectories, `[n]`; `conditions` is `[n, C]`.
    fn log_z(&self, _conditions: Option<&Tensor>, _n: usize) -> Option<Tensor> {
        None
    }

    /// What is trained; on one device, which the batch is encoded on.
    fn parameters(&self) -> &Parameters;
}

impl<N: GraphNetwork> GraphNetwork for &N {
    fn forward(&self, batch: &GraphBatch<'_>, wants: Wants) -> Result<GraphOutput> {
        (**self).forward(batch, wants)
    }

    fn frozen(&self, direction: Direction) -> Option<FrozenGraphNet> {
        (**self).frozen(direction)
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        (**self).log_z(conditions, n)
    }

    fn parameters(&self) -> &Parameters {
        (**self).parameters()
    }
}

/// The policy of a network over graphs: encodes the states once, and makes one softmax per graph of its blocks.
#[derive(Debug)]
pub struct GraphPolicy<N>(pub N);

impl<E: GraphEnv, N: GraphNetwork> Policy<E> for GraphPolicy<N> {
    type Dist = GraphActionCategorical;

    fn evaluate(
        &self,
        env: &E,
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

    fn frozen(&self, direction: Direction) -> Option<Box<dyn Frozen<E, GraphActionCategorical> + '_>> {
        Some(Box::new(FrozenGraphPolicy { network: self.0.frozen(direction)?, direction }))
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        self.0.log_z(conditions, n)
    }

    fn parameters(&self) -> Option<&Parameters> {
        Some(self.0.parameters())
    }
}

/// A [`GraphPolicy`] for a roll-out.
struct FrozenGraphPolicy {
    network: FrozenGraphNet,
    direction: Direction,
}

impl<E: GraphEnv> Frozen<E, GraphActionCategorical> for FrozenGraphPolicy {
    fn distribution(&self, env: &E, states: &GraphStates) -> Result<GraphActionCategorical> {
        let blocks = self.network.forward(states.graphs())?;
        GraphActionCategorical::of_host_blocks(env.masks(self.direction, states), &blocks)
    }
}
