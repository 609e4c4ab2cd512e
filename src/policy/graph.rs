use crate::quantity::{Quantities, Quantity};
use tch::Tensor;

use crate::distribution::GraphActionCategorical;
use crate::env::{Direction, DiscreteEnv, HostPolicy, Masks};
use crate::graph::{GraphBatch, GraphEnv, GraphStates, MoveSymmetries};
use crate::nn::{GraphNetwork, Parameters, reduced_states};
use crate::policy::{Evaluation, Policy};
use crate::tensor::index_tensor;
use crate::{Error, Result};

/// The policy of a graph network: encodes the states once, and makes one softmax per graph across all of its
/// blocks.
#[derive(Debug)]
pub struct GraphPolicy<N>(pub N);

impl<N: GraphNetwork> Policy<GraphEnv> for GraphPolicy<N> {
    fn evaluate(
        &self,
        env: &GraphEnv,
        states: &GraphStates,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        evaluate(&self.0, env, states, conditions, wants)
    }

    fn on_host(&self, direction: Direction) -> Option<Box<dyn HostPolicy<GraphEnv> + '_>> {
        self.0.on_host(direction)
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        self.0.log_z(conditions, n)
    }

    fn parameters(&self) -> Option<&Parameters> {
        Some(self.0.parameters())
    }
}

/// Evaluates each state once by a network, in any of its types.
fn evaluate(
    network: &dyn GraphNetwork,
    env: &GraphEnv,
    states: &GraphStates,
    conditions: Option<&Tensor>,
    wants: Quantities,
) -> Result<Evaluation<GraphActionCategorical>> {
    let forward = wants.has(Quantity::LogPf) || wants.has(Quantity::LogFlow);
    let wanted = [(Direction::Forward, forward), (Direction::Backward, wants.has(Quantity::LogPb))];
    let reduced = reduced_states(network, env, states, conditions.is_none());
    let arrays = reduced.as_ref().map_or_else(|| states.arrays(), |reduced| &reduced.arrays);
    let batch = GraphBatch::new(env.schema(), arrays, conditions, network.parameters().device())?;
    let mut batch = batch.with_label_classes(env.label_classes());
    let mut made: Vec<Masks> = Vec::new();
    for (direction, _) in wanted.into_iter().filter(|(_, wanted)| *wanted) {
        let Some(count) = network.sees_symmetry(direction) else { continue };
        let masks = env.masks(direction, states);
        batch = batch.with_symmetries(MoveSymmetries::of(env, count, &masks, states)?)?;
        made.push(masks);
    }
    let mut output = network.forward(&batch, wants)?;
    if let Some(reduced) = &reduced {
        for (direction, blocks) in [(Direction::Forward, &mut output.pf), (Direction::Backward, &mut output.pb)] {
            let Some(blocks) = blocks else { continue };
            let masks = env.masks(direction, states);
            let rows = reduced.rows_of_blocks(env, &masks)?;
            // Too few or too many are refused below.
            if blocks.len() == rows.len() {
                let each = blocks.iter().zip(&rows).zip(&masks.blocks);
                let spread = each.map(|((block, rows), of)| {
                    let what = || format!("the logit block of {} ({direction})", of.name);
                    spread(block, rows.given, &rows.read, what)
                });
                *blocks = spread.collect::<Result<_>>()?;
            }
            made.push(masks);
        }
        let n = reduced.arrays.len();
        let of_states = output.values.into_iter().map(|(quantity, of)| {
            Ok((quantity, spread(&of, n, &reduced.of, || format!("the network's {quantity:?}"))?))
        });
        output.values = of_states.collect::<Result<_>>()?;
    }
    let masks = |direction| {
        let made = made.iter().position(|masks| masks.direction == direction).map(|at| made.swap_remove(at));
        Ok(made.unwrap_or_else(|| env.masks(direction, states)))
    };
    Evaluation::of_masks(masks, wants, output)
}

/// The rows of a network's answer that each row of the states reads.
fn spread(of_reduced: &Tensor, given: usize, rows: &[usize], what: impl Fn() -> String) -> Result<Tensor> {
    if of_reduced.size().first() != Some(&(given as i64)) {
        let remedy = "a network gives one row per graph, or per node where moves are of nodes, of the whole batch";
        return Err(Error::shape(what(), [given as i64], of_reduced.size(), remedy));
    }
    if of_reduced.size().first() == Some(&0) {
        // All nodes of all states were left out, and nothing is legal at any.
        let size: Vec<i64> = std::iter::once(rows.len() as i64).chain(of_reduced.size().into_iter().skip(1)).collect();
        return Ok(Tensor::zeros(size, (of_reduced.kind(), of_reduced.device())));
    }
    Ok(of_reduced.index_select(0, &index_tensor(rows, of_reduced.device())))
}
