//! The interface between a graph network and a policy, and evaluation on the host for roll-outs.

use serde_json::Value;
use tch::Tensor;

use super::engine::HostGraphs;
use super::graph_net::GraphNet;
use super::torso::HostTorso;
use crate::Result;
use crate::distribution::GraphActionCategorical;
use crate::env::{Direction, DiscreteEnv, HostPolicy};
use crate::graph::{
    GraphArrays, GraphBatch, GraphEnv, GraphStates, MoveSymmetries, ReducedStates, SymmetryCount,
};
use crate::nn::host::{Mirror, Packed};
use crate::nn::{NetworkOutput, Parameters};
use crate::quantity::Quantities;

/// A network that evaluates batches of graphs. Implement this trait for a custom GNN. To replace only the
/// torso of a [`GraphNet`](super::GraphNet), implement [`Torso`](super::Torso) instead.
pub trait GraphNetwork {
    /// Computes the blocks of logits and the estimates that `wants` requests.
    ///
    /// # Errors
    /// Returns any error of the network. The caller checks the shapes of the output.
    fn forward(&self, batch: &GraphBatch<'_>, wants: Quantities) -> Result<NetworkOutput>;

    /// Returns a copy of the network for a roll-out without conditions
    /// ([`Policy::on_host`](crate::policy::Policy::on_host)). The copy has the same distributions up to
    /// rounding. Returns `None` (the default) if the network can't be copied.
    ///
    /// A [`GraphNet`](super::GraphNet) returns a copy if its torso is a [`Torso`](super::Torso) and not a
    /// [`TensorTorso`](super::TensorTorso), if it has no conditions, and if its weights are in single
    /// precision, on any device. A copy for the backward direction also requires that P_B is learned.
    ///
    /// ```
    /// use gfn::env::{Direction, Env};
    /// use gfn::{nn::{GraphNet, GraphNetConfig, GraphNetwork}, examples::Triangles, Rng};
    /// let env = Triangles::env();
    /// let (device, kind) = (tch::Device::Cpu, tch::Kind::Float);
    /// let net = GraphNet::new(&env, GraphNetConfig::default(), device, kind, &mut Rng::seeded(0))?;
    /// let host = net.on_host(Direction::Forward).ok_or("not for this network")?;
    /// // Three edges and the exit.
    /// assert_eq!(host.distribution(&env, &env.initial(&[0]))?.masks().n_legal(0), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn on_host(&self, _direction: Direction) -> Option<Box<dyn HostPolicy<GraphEnv> + '_>> {
        None
    }

    /// Returns the method by which the policy must count the automorphisms for [`GraphBatch::symmetries`] in
    /// this direction; `None` (the default) if the network doesn't use them.
    fn sees_symmetry(&self, _direction: Direction) -> Option<SymmetryCount> {
        None
    }

    /// Returns `false` if the network's output for a node never depends on the node's label
    /// ([`GraphBatch::node_labels`]). Defaults to `true`.
    fn sees_labels(&self) -> bool {
        true
    }

    /// Returns log Z for each of `n` trajectories, `[n]`; `None` (the default) if the network has no
    /// estimate. `conditions` is `[n, C]`.
    fn log_z(&self, _conditions: Option<&Tensor>, _n: usize) -> Option<Tensor> {
        None
    }

    /// Returns the settings of the network, from which [`gfn::load`](crate::load) builds it again; null (the
    /// default) for a custom network, which can't be built from a file.
    fn settings(&self) -> Value {
        Value::Null
    }

    /// The trained parameters of the network. Batches are encoded on the device of the parameters.
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

    fn settings(&self) -> Value {
        (**self).settings()
    }

    fn parameters(&self) -> &Parameters {
        (**self).parameters()
    }
}

/// Returns the reduced graphs (the states without the nodes and edges that the network needn't see) on which
/// the network is evaluated; `None` if the environment's rules don't reduce the states. `merges` is the
/// argument of [`ReducedStates::from_states`].
///
/// A network that uses numbers of automorphisms is always evaluated on whole graphs.
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
    ReducedStates::from_states(env, states, network.sees_labels(), merges)
}

/// A [`GraphNet`] that is evaluated on the host in one direction during a roll-out. Each parameter is copied
/// when it is first used, in an order that makes products fast (packed).
pub(super) struct HostGraphNet<'a> {
    net: &'a GraphNet,
    /// The torso for the heads of this direction.
    torso: &'a dyn HostTorso,
    direction: Direction,
    packed: Packed,
}

impl<'a> HostGraphNet<'a> {
    /// Creates the host network with an empty cache of packed parameters (copies in an order that makes
    /// products fast), which will be copied from `mirror`.
    pub(super) fn new(
        net: &'a GraphNet,
        torso: &'a dyn HostTorso,
        direction: Direction,
        mirror: Mirror,
    ) -> Self {
        Self { net, torso, direction, packed: Packed::new(mirror) }
    }

    /// Computes the logits of some graphs: one block per action type, in the order of the action types. A
    /// block is `[rows, width]`, row by row, with a row for each graph, node, edge or pair of nodes,
    /// depending on the action type.
    fn blocks(&self, arrays: &GraphArrays, symmetries: Option<&MoveSymmetries>) -> Result<Vec<Vec<f32>>> {
        self.net.expected_graphs.check_graphs(arrays)?;
        if let Some(symmetries) = symmetries {
            symmetries.check(arrays.len())?;
        }
        let graphs = HostGraphs::new(arrays, &self.packed);
        let blocks = self.net.host_blocks(self.torso, &graphs, symmetries, self.direction)?;
        Ok(blocks.into_iter().map(|block| block.values).collect())
    }
}

impl HostPolicy<GraphEnv> for HostGraphNet<'_> {
    fn distribution(&self, env: &GraphEnv, states: &GraphStates) -> Result<GraphActionCategorical> {
        self.net.expected_graphs.check_classes(&env.label_classes(), env.schema().max_nodes)?;
        let masks = env.masks(self.direction, states);
        if let Some(reduced) = reduced_states(self.net, env, states, true) {
            let rows = reduced.rows_of_blocks(env, &masks)?;
            let blocks = self.blocks(&reduced.arrays, None)?;
            let widths = masks.blocks.iter().map(|block| block.width);
            let blocks: Vec<Vec<f32>> = blocks
                .iter()
                .zip(rows)
                .zip(widths)
                .map(|((block, rows), width)| expand_rows(block, &rows.read, width))
                .collect();
            return GraphActionCategorical::from_host_blocks(masks, &blocks);
        }
        let count = self.net.sees_symmetry(self.direction);
        let symmetries = count.map(|count| MoveSymmetries::count(env, count, &masks, states)).transpose()?;
        let blocks = self.blocks(states.arrays(), symmetries.as_ref())?;
        GraphActionCategorical::from_host_blocks(masks, &blocks)
    }
}

/// Expands the logits for reduced graphs (graphs without the nodes and edges that the network needn't see) to
/// the whole graphs. Row `i` of the result is row `rows[i]` of `output`. If `output` is empty, all logits are
/// 0, because no move at a removed node or edge is legal.
fn expand_rows(output: &[f32], rows: &[usize], width: usize) -> Vec<f32> {
    if output.is_empty() {
        return vec![0.0; rows.len() * width];
    }
    rows.iter().flat_map(|&row| &output[row * width..(row + 1) * width]).copied().collect()
}

#[cfg(test)]
mod tests {
    use tch::{Device, Kind};

    use super::*;
    use crate::Rng;
    use crate::graph::{ActionSet, AddEdge, Edge, GraphState, Semantics};
    use crate::nn::{BackwardPolicy, GraphNetConfig, SymmetryInput};

    #[test]
    fn heads_copied_from_a_mirror_give_the_same_logits() {
        let actions = ActionSet::new(Semantics::UpToIsomorphism).with(AddEdge::new(1));
        let env = GraphEnv::free(actions, GraphState::undirected(3)).unwrap();
        let mut graph = GraphState::undirected(3);
        graph.add_edge(0, 1, Edge::default()).unwrap();
        let states = GraphStates::from(vec![graph; 2]);
        let symmetry = SymmetryInput::Exact;
        let backward = BackwardPolicy::SharedTorso;
        let config = GraphNetConfig { symmetry, backward, ..GraphNetConfig::default() };
        let net = GraphNet::new(&env, config, Device::Cpu, Kind::Float, &mut Rng::seeded(0)).unwrap();
        for direction in [Direction::Forward, Direction::Backward] {
            let masks = env.masks(direction, &states);
            let symmetries = MoveSymmetries::count(&env, SymmetryCount::Exact, &masks, &states).unwrap();
            let blocks = |mirror: Mirror| {
                let torso = net.torso_and_heads(direction).0.on_host().unwrap();
                let host = HostGraphNet::new(&net, torso, direction, mirror);
                host.blocks(states.arrays(), Some(&symmetries)).unwrap()
            };
            let expected = blocks(Mirror::default());
            assert!(expected.concat().iter().any(|&logit| logit != 0.0));
            assert_eq!(blocks(Mirror::new(net.parameters())), expected);
        }
    }
}
