//! Copies of graph networks on the host for roll-outs.

use crate::Result;
use crate::graph::{GraphArrays, MoveSymmetries};
use crate::nn::graph::{Fits, HostHeads, HostSymmetry, HostTorso, host_pair_features};

/// A copy of a [`GraphNet`](crate::nn::GraphNet) on the host, in single precision and without gradients.
/// A roll-out step holds so few graphs that tensor operations cost more than the computation in them.
///
/// ```
/// use gfn::{env::{Direction, Env}, nn::{GraphNet, GraphNetConfig, GraphNetwork}, testing::Triangles, Rng};
/// let env = Triangles::new();
/// let net = GraphNet::new(&env, GraphNetConfig::default(), tch::Device::Cpu, tch::Kind::Float, &mut Rng::seeded(0))?;
/// let frozen = net.on_host(Direction::Forward).ok_or("not for this network")?;
/// // The logits of pairs of nodes, then those of the exit.
/// let blocks = frozen.forward(env.initial(&[0; 2]).arrays(), None)?;
/// assert_eq!(blocks.iter().map(Vec::len).collect::<Vec<_>>(), [2 * 9, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct HostGraphNet {
    fits: Fits,
    torso: Box<dyn HostTorso>,
    widths: (i64, i64),
    heads: HostHeads,
    pair_walks: Option<usize>,
    symmetry: Option<HostSymmetry>,
}

impl HostGraphNet {
    pub(in crate::nn) fn new(
        fits: Fits,
        (torso, widths): (Box<dyn HostTorso>, (i64, i64)),
        heads: HostHeads,
        pair_walks: Option<usize>,
        symmetry: Option<HostSymmetry>,
    ) -> Self {
        Self { fits, torso, widths, heads, pair_walks, symmetry }
    }

    /// Whether the environment has to count symmetries first.
    pub(crate) fn sees_symmetry(&self) -> bool {
        self.symmetry.is_some()
    }

    /// Checks that it tells no two labels apart that are alike in an environment.
    pub(crate) fn check_classes(&self, label_classes: &[u32], max_nodes: usize) -> Result<()> {
        self.fits.check_classes(label_classes, max_nodes)
    }

    /// The blocks of logits of some graphs, each `[rows, width]` row by row, in the order of the action types. `symmetries` is what an
    /// environment [counted](crate::graph::GraphEnv::move_symmetries) of them, for a network that
    /// [sees it](crate::nn::GraphNetwork::sees_symmetry); others don't read it.
    ///
    /// # Errors
    /// [`Error::Contract`](crate::Error::Contract) where symmetries are missing, [`Error::Shape`](crate::Error::Shape) for those of other graphs;
    /// [`Error::Contract`](crate::Error::Contract) for a graph with classes, labels or attributes that the network's
    /// environment doesn't have; [`Error::Shape`](crate::Error::Shape) for embeddings of other widths than the torso's.
    pub fn forward(&self, arrays: &GraphArrays, symmetries: Option<&MoveSymmetries>) -> Result<Vec<Vec<f32>>> {
        self.fits.check_graphs(arrays)?;
        let mut embedded = self.torso.embed(arrays).checked(arrays, self.widths)?;
        let symmetries = match &self.symmetry {
            Some(symmetry) => Some(symmetry.tell(arrays, symmetries, &mut embedded)?),
            None => None,
        };
        let pairs = self.pair_walks.map(|walks| host_pair_features(arrays, walks));
        self.heads.forward(arrays, &embedded, pairs.as_deref(), symmetries)
    }
}
