//! A graph network for a roll-out: on the host, in single precision, without gradients.

use super::engine::HostGraphs;
use super::graph_net::GraphNet;
use super::network::{GraphNetwork, reduced_states};
use crate::Result;
use crate::distribution::GraphActionCategorical;
use crate::env::{Direction, DiscreteEnv, HostPolicy};
use crate::graph::{GraphArrays, GraphEnv, GraphStates, MoveSymmetries};
use crate::nn::host::Packed;

/// One direction of a [`GraphNet`], with its parameters as they are when each is first read.
pub(super) struct HostGraphNet<'a> {
    net: &'a GraphNet,
    direction: Direction,
    packed: Packed,
}

impl<'a> HostGraphNet<'a> {
    pub(super) fn new(net: &'a GraphNet, direction: Direction) -> Self {
        Self { net, direction, packed: Packed::default() }
    }

    /// Returns the blocks of logits of some graphs, each `[rows, width]` row by row, in the order of the action types.
    fn blocks(&self, arrays: &GraphArrays, symmetries: Option<&MoveSymmetries>) -> Result<Vec<Vec<f32>>> {
        self.net.fits.check_graphs(arrays)?;
        if let Some(symmetries) = symmetries {
            symmetries.check(arrays.len())?;
        }
        let graphs = HostGraphs { arrays, symmetries, packed: &self.packed };
        let blocks = self.net.host_blocks(&graphs, self.direction)?;
        Ok(blocks.into_iter().map(|block| block.values).collect())
    }
}

impl HostPolicy<GraphEnv> for HostGraphNet<'_> {
    fn distribution(&self, env: &GraphEnv, states: &GraphStates) -> Result<GraphActionCategorical> {
        self.net.fits.check_classes(&env.label_classes(), env.schema().max_nodes)?;
        let masks = env.masks(self.direction, states);
        if let Some(reduced) = reduced_states(self.net, env, states, true) {
            let rows = reduced.rows_of_blocks(env, &masks)?;
            let blocks = self.blocks(&reduced.arrays, None)?;
            let widths = masks.blocks.iter().map(|block| block.width);
            let blocks: Vec<Vec<f32>> = blocks
                .iter()
                .zip(rows)
                .zip(widths)
                .map(|((block, rows), width)| spread(block, &rows.read, width))
                .collect();
            return GraphActionCategorical::of_host_blocks(masks, &blocks);
        }
        let count = self.net.sees_symmetry(self.direction);
        let symmetries = count.map(|count| MoveSymmetries::of(env, count, &masks, states)).transpose()?;
        let blocks = self.blocks(states.arrays(), symmetries.as_ref())?;
        GraphActionCategorical::of_host_blocks(masks, &blocks)
    }
}

/// Returns the rows of a network's answer that each row of the states reads.
fn spread(of_reduced: &[f32], rows: &[usize], width: usize) -> Vec<f32> {
    if of_reduced.is_empty() {
        return vec![0.0; rows.len() * width];
    }
    rows.iter().flat_map(|&row| &of_reduced[row * width..(row + 1) * width]).copied().collect()
}
