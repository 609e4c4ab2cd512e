//! The interface between a graph network and a policy.

use tch::Tensor;

use super::engine::{HostGraphs, HostRows};
use super::fits::Fits;
use crate::Result;
use crate::env::Direction;
use crate::graph::{GraphArrays, GraphBatch, MoveSymmetries, SymmetryCount};
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

    /// A view of the network, whose parameters stay as they are while it lives, for a roll-out without conditions ([`Policy::on_host`](crate::policy::Policy::on_host)), with the same logits up to
    /// rounding. `None` (the default) if there is no such form. A [`GraphNet`](super::GraphNet) has one if its torso
    /// has, it takes no conditions, and its weights are on the host in single precision; for P_B, if that is learned.
    fn on_host(&self, _direction: Direction) -> Option<HostGraphNet<'_>> {
        None
    }

    /// The way in which a policy has the symmetry of graphs counted, and how moves of this direction change it, for a network that
    /// reads [`GraphBatch::symmetries`]. `None` (the default) if it doesn't.
    fn sees_symmetry(&self, _direction: Direction) -> Option<SymmetryCount> {
        None
    }

    /// `false` if what it says of a node doesn't depend on the node's label ([`GraphBatch::node_labels`]); `true`, by default.
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

/// One direction of a network whose operations run on the host.
pub(in crate::nn) trait HostBlocks: std::fmt::Debug {
    /// The graphs that it is for.
    fn fits(&self) -> &Fits;

    /// The blocks of logits.
    fn host_blocks(&self, graphs: &HostGraphs<'_>, direction: Direction) -> Result<Vec<HostRows>>;
}

/// A [`GraphNet`](super::GraphNet) for a roll-out: on the host, in single precision, without gradients, with its parameters as
/// they are when each is first read.
///
/// ```
/// use gfn::{env::{Direction, Env}, nn::{GraphNet, GraphNetConfig, GraphNetwork}, testing::Triangles, Rng};
/// let env = Triangles::env();
/// let net = GraphNet::new(&env, GraphNetConfig::default(), tch::Device::Cpu, tch::Kind::Float, &mut Rng::seeded(0))?;
/// let frozen = net.on_host(Direction::Forward).ok_or("not for this network")?;
/// // The logits of pairs of nodes, then those of the exit.
/// let blocks = frozen.forward(env.initial(&[0; 2]).arrays(), None)?;
/// assert_eq!(blocks.iter().map(Vec::len).collect::<Vec<_>>(), [2 * 9, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct HostGraphNet<'a> {
    pub(super) net: &'a dyn HostBlocks,
    pub(super) direction: Direction,
    pub(super) packed: Packed,
}

impl HostGraphNet<'_> {
    /// Checks that it tells no two labels apart that are alike in an environment.
    pub(crate) fn check_classes(&self, label_classes: &[u32], max_nodes: usize) -> Result<()> {
        self.net.fits().check_classes(label_classes, max_nodes)
    }

    /// The blocks of logits of some graphs, each `[rows, width]` row by row, in the order of the action types. `symmetries` is what an
    /// environment [counted](crate::graph::GraphEnv::move_symmetries) of them, for a network that
    /// [sees it](GraphNetwork::sees_symmetry); others don't read it.
    ///
    /// # Errors
    /// [`Error::Contract`](crate::Error::Contract) where symmetries are missing, [`Error::Shape`](crate::Error::Shape) for those of other graphs;
    /// [`Error::Contract`](crate::Error::Contract) for a graph with classes, labels or attributes that the network's
    /// environment doesn't have; [`Error::Shape`](crate::Error::Shape) for embeddings of other widths than the torso's.
    pub fn forward(&self, arrays: &GraphArrays, symmetries: Option<&MoveSymmetries>) -> Result<Vec<Vec<f32>>> {
        self.net.fits().check_graphs(arrays)?;
        symmetries.map_or(Ok(()), |symmetries| symmetries.check(arrays.len()))?;
        let graphs = HostGraphs { arrays, symmetries, packed: &self.packed };
        let blocks = self.net.host_blocks(&graphs, self.direction)?;
        Ok(blocks.into_iter().map(|block| block.values).collect())
    }
}

impl<N: GraphNetwork> GraphNetwork for &N {
    fn forward(&self, batch: &GraphBatch<'_>, wants: Quantities) -> Result<NetworkOutput> {
        (**self).forward(batch, wants)
    }

    fn on_host(&self, direction: Direction) -> Option<HostGraphNet<'_>> {
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
