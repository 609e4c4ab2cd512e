//! The interface between a graph network and a policy.

use crate::quantity::Quantities;
use tch::Tensor;

use crate::Result;
use crate::env::Direction;
use crate::graph::GraphBatch;
use crate::nn::{HostGraphNet, NetworkOutput, Parameters};

/// A network on batches of graphs: implement it to bring your own GNN.
pub trait GraphNetwork {
    /// The blocks of logits and the flows that `wants` asks for.
    ///
    /// # Errors
    /// Whatever the network finds wrong; the shapes of what it gives are checked by the caller.
    fn forward(&self, batch: &GraphBatch<'_>, wants: Quantities) -> Result<NetworkOutput>;

    /// A copy of the network for a roll-out without conditions ([`Policy::on_host`](crate::policy::Policy::on_host)), with the same logits up to
    /// rounding. `None` (the default) if there is no such form. A [`GraphNet`](super::GraphNet) has one if its torso
    /// has, it takes no conditions, and its weights are on the host in single precision; for P_B, if that is learned.
    fn on_host(&self, _direction: Direction) -> Option<HostGraphNet> {
        None
    }

    /// Whether the network reads how moves of this direction change symmetry, [`GraphBatch::symmetries`], which a policy then has
    /// counted. No, by default.
    fn sees_symmetry(&self, _direction: Direction) -> bool {
        false
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

    fn on_host(&self, direction: Direction) -> Option<HostGraphNet> {
        (**self).on_host(direction)
    }

    fn sees_symmetry(&self, direction: Direction) -> bool {
        (**self).sees_symmetry(direction)
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        (**self).log_z(conditions, n)
    }

    fn parameters(&self) -> &Parameters {
        (**self).parameters()
    }
}
