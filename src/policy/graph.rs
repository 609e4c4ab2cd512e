use crate::quantity::{Quantities, Quantity};
use serde_json::Value;
use tch::Tensor;

use crate::distribution::GraphActionCategorical;
use crate::env::{Direction, DiscreteEnv, HostPolicy, Masks};
use crate::graph::{GraphBatch, GraphEnv, GraphStates, MoveSymmetries};
use crate::nn::{GraphNetwork, Parameters, reduced_states};
use crate::policy::{Evaluation, Policy};
use crate::tensor::select_rows;
use crate::{Error, Result};

/// A policy on graphs, made from a [`GraphNetwork`]. The network encodes each state once. P_F and P_B are
/// softmaxes over all legal slots of a graph, whatever their action types.
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

    fn settings(&self) -> Value {
        self.0.settings()
    }
}

/// Implements [`Policy::evaluate`]. The function isn't generic over the type of network, so it is compiled
/// only once.
fn evaluate(
    network: &dyn GraphNetwork,
    env: &GraphEnv,
    states: &GraphStates,
    conditions: Option<&Tensor>,
    wants: Quantities,
) -> Result<Evaluation<GraphActionCategorical>> {
    let needs_forward = wants.has(Quantity::LogPf) || wants.has(Quantity::LogFlow);
    let needs_backward = wants.has(Quantity::LogPb);
    let reduced = reduced_states(network, env, states, conditions.is_none());
    let arrays = reduced.as_ref().map_or_else(|| states.arrays(), |reduced| &reduced.arrays);
    let batch = GraphBatch::new(env.schema(), arrays, conditions, network.parameters().device())?;
    let mut batch = batch.with_label_classes(env.label_classes());
    let mut cached_masks: Vec<Masks> = Vec::new();
    for (direction, is_needed) in [(Direction::Forward, needs_forward), (Direction::Backward, needs_backward)]
    {
        if !is_needed {
            continue;
        }
        let Some(count) = network.sees_symmetry(direction) else { continue };
        let masks = env.masks(direction, states);
        batch = batch.with_symmetries(MoveSymmetries::count(env, count, &masks, states)?)?;
        cached_masks.push(masks);
    }
    let mut output = network.forward(&batch, wants)?;
    if let Some(reduced) = &reduced {
        for (direction, blocks) in
            [(Direction::Forward, &mut output.pf), (Direction::Backward, &mut output.pb)]
        {
            let Some(blocks) = blocks else { continue };
            let masks = env.masks(direction, states);
            let rows = reduced.rows_of_blocks(env, &masks)?;
            // If the network returned logits for a wrong number of action types, they are left unchanged
            // here, and building the distribution returns an error.
            if blocks.len() == rows.len() {
                for ((block, rows), action_block) in blocks.iter_mut().zip(&rows).zip(&masks.blocks) {
                    let what = || format!("the logit block of {} ({direction})", action_block.name);
                    *block = expand_rows(block, rows.n_rows, &rows.read, what)?;
                }
            }
            cached_masks.push(masks);
        }
        let n = reduced.arrays.len();
        let values = output.values.into_iter().map(|(quantity, values)| {
            Ok((
                quantity,
                expand_rows(&values, n, &reduced.group_of, || format!("the network's {quantity:?}"))?,
            ))
        });
        output.values = values.collect::<Result<_>>()?;
    }
    let masks = |direction| match cached_masks.iter().position(|masks| masks.direction == direction) {
        Some(index) => Ok(cached_masks.swap_remove(index)),
        None => Ok(env.masks(direction, states)),
    };
    Evaluation::from_masks(masks, wants, output)
}

/// Expands the output of a network for reduced graphs (graphs without the nodes and edges that the network
/// needn't see) to the whole graphs: row `i` of the result is row `rows[i]` of `output`. Returns an error
/// unless `output` has `n_rows` rows, the number of rows that the reduced graphs need.
fn expand_rows(output: &Tensor, n_rows: usize, rows: &[usize], what: impl Fn() -> String) -> Result<Tensor> {
    if output.size().first() != Some(&(n_rows as i64)) {
        let remedy =
            "let the network return one row per graph, or per node for moves of nodes, of the whole batch";
        return Err(Error::shape(what(), [n_rows as i64], output.size(), remedy));
    }
    if output.size().first() == Some(&0) {
        // The reduced graphs have nothing to which a row of `output` could belong, for example no nodes. No
        // move at a removed node or edge is legal, so the logits of such moves don't matter and are set to 0.
        let size: Vec<i64> =
            std::iter::once(rows.len() as i64).chain(output.size().into_iter().skip(1)).collect();
        return Ok(Tensor::zeros(size, (output.kind(), output.device())));
    }
    Ok(select_rows(output, rows))
}
