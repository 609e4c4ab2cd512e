//! The interface between a graph network and a policy, and the network's form for roll-outs.

use tch::Tensor;

use super::engine::HostGraphs;
use super::graph_net::GraphNet;
use crate::Result;
use crate::distribution::GraphActionCategorical;
use crate::env::{Direction, DiscreteEnv, HostPolicy};
use crate::graph::{GraphArrays, GraphBatch, GraphEnv, GraphStates, MoveSymmetries, ReducedStates, SymmetryCount};
use crate::nn::host::Packed;
use crate::nn::{NetworkOutput, Parameters};
use crate::quantity::Quantities;

/// A network on batches of graphs: implement it to bring your own GNN.
pub trait GraphNetwork {
    /// The blocks of logits and the flows that `wants` asks for.
    ///
    /// # Errors
    /// Whatever the network finds wrong; the shapes of what it gives are checked by the caller.
    fn forward(&self, batch: &GraphBatch<'_>, wants: Quantities) -> Result<NetworkOutput>;

    /// Returns the network's form for a roll-out without conditions
    /// ([`Policy::on_host`](crate::policy::Policy::on_host)), with the same distributions up to rounding.
    /// `None` (the default) if there is no such form. A [`GraphNet`](super::GraphNet) has one if its torso
    /// has, it takes no conditions, and its weights are on the host in single precision; for P_B, if that is
    /// learned.
    ///
    /// ```
    /// use gfn::env::{Direction, Env};
    /// use gfn::{nn::{GraphNet, GraphNetConfig, GraphNetwork}, testing::Triangles, Rng};
    /// let env = Triangles::env();
    /// let net = GraphNet::new(&env, GraphNetConfig::default(), tch::Device::Cpu, tch::Kind::Float, &mut Rng::seeded(0))?;
    /// let host = net.on_host(Direction::Forward).ok_or("not for this network")?;
    /// // Three edges and the exit.
    /// assert_eq!(host.distribution(&env, &env.initial(&[0]))?.masks().n_legal(0), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn on_host(&self, _direction: Direction) -> Option<Box<dyn HostPolicy<GraphEnv> + '_>> {
        None
    }

    /// The way in which a policy has the symmetry of graphs counted, and how moves of this direction change
    /// it, for a network that reads [`GraphBatch::symmetries`]. `None` (the default) if it doesn't.
    fn sees_symmetry(&self, _direction: Direction) -> Option<SymmetryCount> {
        None
    }

    /// `false` if what it says of a node doesn't depend on the node's label ([`GraphBatch::node_labels`]);
    /// `true`, by default.
    fn sees_labels(&self) -> bool {
        true
    }

    /// log Z for each of `n` trajectories, `[n]`; `conditions` is `[n, C]`.
    fn log_z(&self, _conditions: Option<&Tensor>, _n: usize) -> Option<Tensor> {
        None
    }

    /// The trained parameters. They are on one device, and batches are encoded on it.
    fn parameters(&self) -> &Parameters;
}

impl<N: GraphNetwork> GraphNetwork for &N {
    fn forward(&self, batch: &GraphBatch<'_>, wants: Quantities) -> Result<NetworkOutput> {
        (**self).forward(batch, wants)
    }

    fn on_host(&self, direction: Direction) -> Option<Box<dyn HostPolicy<GraphEnv> + '_>> {
        (**self).on_host(direction)
    }

    fn sees_symmetry(&self, direction: Direction) -> Option<SymmetryCount> {
        (**self).sees_symmetry(direction)
    }

    fn sees_labels(&self) -> bool {
        (**self).sees_labels()
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        (**self).log_z(conditions, n)
    }

    fn parameters(&self) -> &Parameters {
        (**self).parameters()
    }
}

/// Returns the graphs that a network is evaluated on instead of the states, if the environment's rules reduce
/// them.
///
/// A network that sees symmetry is one of whole graphs, whatever it is asked for.
pub(crate) fn reduced_states(
    network: &dyn GraphNetwork,
    env: &GraphEnv,
    states: &GraphStates,
    merges: bool,
) -> Option<ReducedStates> {
    let sees_symmetry = |direction| network.sees_symmetry(direction).is_some();
    if [Direction::Forward, Direction::Backward].into_iter().any(sees_symmetry) {
        return None;
    }
    ReducedStates::of(env, states, network.sees_labels(), merges)
}

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

    /// Returns the blocks of logits of some graphs, each `[rows, width]` row by row, in the order of the
    /// action types.
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
