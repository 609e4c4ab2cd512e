//! Environments, graphs and networks for tests of networks.

use gfn::env::{Direction, DiscreteEnv};
use gfn::graph::{
    Attributes, Edge, GraphBatch, GraphEnv, GraphKind, GraphState, GraphStates, Node, Semantics,
};
use gfn::nn::{
    BackwardPolicy, ConvKind, EstimatorsConfig, GraphNet, GraphNetConfig, JumpingKnowledge, NormKind,
    Parameters,
};
use gfn::nn::{GraphNetwork, NetworkOutput};
use gfn::objective::{Quantities, Quantity};
use gfn::policy::UniformPolicy;
use gfn::rollout::Sampler;
use gfn::{Result, Rng};
use gfn_gym::graph_building::{GraphBuilding, GraphBuildingConfig};
use tch::{Device, Kind, Tensor};

pub(crate) const CONVS: [ConvKind; 7] = [
    ConvKind::Gin,
    ConvKind::GinVirtual,
    ConvKind::Gine,
    ConvKind::Directed,
    ConvKind::Transformer { heads: 4 },
    ConvKind::Gat { heads: 4 },
    ConvKind::Gps { heads: 4 },
];
pub(crate) const KINDS: [GraphKind; 2] = [GraphKind::Directed, GraphKind::Undirected];
pub(crate) fn all() -> Quantities {
    Quantities::PF | Quantity::LogPb | Quantity::LogFlow
}

/// Builds an environment with every built-in action type, up to isomorphism. Nodes and edges have two classes
/// and an attribute.
pub(crate) fn everything(kind: GraphKind, max_nodes: usize) -> GraphEnv {
    everything_under(Semantics::UpToIsomorphism, kind, max_nodes)
}

/// Builds the environment of [`everything`] with other semantics of labels.
pub(crate) fn everything_under(semantics: Semantics, kind: GraphKind, max_nodes: usize) -> GraphEnv {
    let config = GraphBuildingConfig {
        semantics,
        node_classes: 2,
        edge_classes: 2,
        node_attributes: vec![2],
        edge_attributes: vec![3],
        ..GraphBuildingConfig::new(kind, max_nodes)
    };
    GraphBuilding::new(config).unwrap().into_env()
}

/// Draws a state of the environment [`everything`]. Each possible edge exists with probability `density`.
pub(crate) fn random_graph(kind: GraphKind, n: usize, density: f64, rng: &mut Rng) -> GraphState {
    let mut graph = GraphState::new(kind);
    for _ in 0..n {
        let attributes = Attributes::new(&[rng.below(3) as u8]).unwrap();
        graph.add_node(Node { class: rng.below(2) as u16, attributes });
    }
    for a in 0..n as u32 {
        for b in 0..n as u32 {
            if a != b && (kind == GraphKind::Directed || a < b) && rng.uniform() < density {
                let attributes = Attributes::new(&[rng.below(4) as u8]).unwrap();
                graph.add_edge(a, b, Edge { class: rng.below(2) as u16, attributes }).unwrap();
            }
        }
    }
    graph
}

/// Returns settings with a separate, learned P_B and a state-flow head. The settings are also accepted for
/// convolutions that can't distinguish all graphs.
pub(crate) fn config(conv: ConvKind) -> GraphNetConfig {
    let backward = BackwardPolicy::Separate;
    GraphNetConfig {
        conv,
        embedding: 32,
        backward,
        estimators: EstimatorsConfig::with_flow(true),
        ablation: true,
        ..GraphNetConfig::default()
    }
}

/// Lists settings that together use every convolution, every norm and every readout.
pub(crate) fn configs() -> Vec<GraphNetConfig> {
    let graph = NormKind::Graph;
    let none = NormKind::None;
    let more = [
        (ConvKind::Gin, graph, JumpingKnowledge::Max),
        (ConvKind::Gine, none, JumpingKnowledge::Concat),
        (ConvKind::Gat { heads: 2 }, graph, JumpingKnowledge::Concat),
        (ConvKind::Gps { heads: 2 }, graph, JumpingKnowledge::Max),
    ];
    let more =
        more.map(|(conv, norm, jumping)| GraphNetConfig { norm, jumping, degrees: true, ..config(conv) });
    CONVS.map(config).into_iter().chain(more).collect()
}

/// A user-defined network that changes the outputs of the network `net`, so that they depend on the labels of
/// nodes.
#[derive(Debug)]
pub(crate) struct SeesLabels<N> {
    pub(crate) net: N,
    /// The indices of the action types whose logits have a row per node, for forward and for backward
    /// actions.
    of_nodes: [Vec<usize>; 2],
}

impl<N> SeesLabels<N> {
    pub(crate) fn new(net: N, env: &GraphEnv) -> Self {
        let walks = Sampler::new(env, &UniformPolicy).forward(64, &mut Rng::seeded(0)).unwrap();
        let states = walks.terminal_states();
        let nodes: usize = states.graphs().iter().map(GraphState::n_nodes).sum();
        let of_nodes = [Direction::Forward, Direction::Backward].map(|direction| {
            let blocks = env.masks(direction, states).blocks;
            (0..blocks.len()).filter(|&k| blocks[k].rows() == nodes).collect()
        });
        Self { net, of_nodes }
    }
}

impl<N: GraphNetwork> GraphNetwork for SeesLabels<N> {
    fn forward(&self, batch: &GraphBatch<'_>, wants: Quantities) -> Result<NetworkOutput> {
        let mut output = self.net.forward(batch, wants)?;
        for (blocks, of_nodes) in [&mut output.pf, &mut output.pb].into_iter().zip(&self.of_nodes) {
            let blocks = blocks.iter_mut().flat_map(|blocks| blocks.iter_mut().enumerate());
            for (_, block) in blocks.filter(|(k, _)| of_nodes.contains(k)) {
                *block += batch.node_labels().unsqueeze(1);
            }
        }
        Ok(output)
    }
    fn sees_symmetry(&self, direction: Direction) -> Option<gfn::graph::SymmetryCount> {
        self.net.sees_symmetry(direction)
    }
    fn parameters(&self) -> &Parameters {
        self.net.parameters()
    }
}

pub(crate) fn net(env: &GraphEnv, config: GraphNetConfig, kind: Kind) -> GraphNet {
    GraphNet::new(env, config, Device::Cpu, kind, &mut Rng::seeded(3)).unwrap()
}

/// Returns the logits that a network computes for a batch of graphs, in a block per action type, before
/// illegal actions are masked.
pub(crate) fn blocks(
    env: &GraphEnv,
    net: &impl GraphNetwork,
    graphs: &[GraphState],
    conditions: Option<&Tensor>,
) -> NetworkOutput {
    let states = GraphStates::from(graphs.to_vec());
    let mut batch = GraphBatch::new(env.schema(), states.arrays(), conditions, Device::Cpu).unwrap();
    for direction in [Direction::Forward, Direction::Backward] {
        let Some(count) = net.sees_symmetry(direction) else { continue };
        batch = batch.with_symmetries(env.move_symmetries(count, direction, &states).unwrap()).unwrap();
    }
    tch::no_grad(|| net.forward(&batch, all())).unwrap()
}

/// Returns the largest absolute difference between two tensors of the same shape.
pub(crate) fn difference(a: &Tensor, b: &Tensor) -> f64 {
    assert_eq!(a.size(), b.size());
    if a.numel() == 0 { 0.0 } else { (a - b).abs().max().double_value(&[]) }
}
