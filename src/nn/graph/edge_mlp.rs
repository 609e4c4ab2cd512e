use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tch::{Device, Kind, Tensor};

use super::expected_graphs::ExpectedGraphs;
use super::features::Labels;
use super::heads::edge_pairs;
use super::torso::checked_conditions;
use super::{BackwardPolicy, GraphNetwork};
use crate::env::Direction;
use crate::graph::{ActionSet, Anchor, GraphArrays, GraphBatch, GraphEnv, GraphSchema, GraphState};
use crate::nn::{Estimators, EstimatorsConfig, Mlp, MlpConfig, NetworkOutput, Parameters};
use crate::quantity::{Quantities, Quantity};
use crate::{Error, Result, Rng};

/// The architecture and size of an [`EdgeMlp`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgeMlpConfig {
    /// The settings of the hidden layers.
    pub mlp: MlpConfig,
    /// The kind of backward policy: uniform or learned.
    pub backward: BackwardPolicy,
    /// The settings of the state-flow head, log Z, and conditions.
    pub estimators: EstimatorsConfig,
}

impl Default for EdgeMlpConfig {
    /// The default settings: two hidden layers of width 256 with ReLU, uniform P_B, no flow head, no
    /// conditions, and log Z from the first batch.
    fn default() -> Self {
        Self {
            mlp: MlpConfig::default(),
            backward: BackwardPolicy::Uniform,
            estimators: EstimatorsConfig::default(),
        }
    }
}

/// A perceptron on the flattened adjacency matrix: a baseline for graphs on a fixed set of labelled nodes.
///
/// The input consists of the one-hot class and attributes of the edge of every ordered pair of nodes, and of
/// every node if nodes have several classes or attributes. The output consists of the logits of every action
/// type: a row for the graph, for each node or for each ordered pair of nodes. The logits of an edge are
/// those of its pair. Different nodes have different weights, so the network isn't equivariant and doesn't
/// generalise to another number of nodes.
///
/// ```
/// use gfn::{env::Env, nn::{EdgeMlp, EdgeMlpConfig}, objective::Quantities, policy::{GraphPolicy, Policy}};
/// use gfn::{Rng, examples::Triangles};
/// let env = Triangles::env();
/// let (device, kind) = (tch::Device::Cpu, tch::Kind::Float);
/// let net = EdgeMlp::new(&env, EdgeMlpConfig::default(), device, kind, &mut Rng::seeded(0))?;
/// let evaluation = GraphPolicy(net).evaluate(&env, &env.initial(&[0; 2]), None, Quantities::PF)?;
/// assert_eq!(evaluation.pf.unwrap().n_actions(), [4, 4]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct EdgeMlp {
    config: EdgeMlpConfig,
    expected_graphs: ExpectedGraphs,
    pf: Vec<Columns>,
    pb: Vec<Columns>,
    /// The network that computes the logits of P_F, the logits of P_B if P_B shares the torso, and log F.
    torso: Mlp,
    /// The network of P_B if the setting is [`BackwardPolicy::Separate`]; otherwise `None`.
    backward: Option<Mlp>,
    estimators: Estimators,
    parameters: Parameters,
}

/// The range of an output layer's columns that forms one block of logits, that is, the logits of one action
/// type.
#[derive(Debug)]
struct Columns {
    anchor: Anchor,
    /// The number of logits per row of the block of logits, that is, per graph, node or pair of nodes.
    width: i64,
    /// The index of the first column of the block of logits in the output layer.
    first: i64,
    /// The number of columns of the block of logits in the output layer.
    n: i64,
}

impl EdgeMlp {
    /// Builds a network for the graphs and actions of an environment, with initial weights drawn from `rng`.
    ///
    /// # Errors
    /// [`Error::Config`] for an environment whose initial graphs have no nodes or fewer nodes than later
    /// graphs can have, and for sizes below 1; [`Error::Contract`] for an initial graph that violates the
    /// schema; [`Error::Device`] for a device that isn't available.
    pub fn new(
        env: &GraphEnv,
        config: EdgeMlpConfig,
        device: Device,
        kind: Kind,
        rng: &mut Rng,
    ) -> Result<Self> {
        Self::with_parameters(env, config, Parameters::new(device, kind), rng)
    }

    /// Builds a network as [`new`](Self::new) does, in an empty list of parameters.
    pub(crate) fn with_parameters(
        env: &GraphEnv,
        config: EdgeMlpConfig,
        mut parameters: Parameters,
        rng: &mut Rng,
    ) -> Result<Self> {
        let schema = env.schema().clone();
        let n_nodes = env.initial_graphs().iter().map(GraphState::n_nodes).min().unwrap_or(0);
        if n_nodes != schema.max_nodes || n_nodes == 0 {
            return Err(Error::config(
                "the environment of an `EdgeMlp`",
                format!(
                    "an environment whose graphs have {n_nodes} nodes at first and {} at most",
                    schema.max_nodes
                ),
                "an environment with a fixed number of nodes, at least one; use a `GraphNet` if nodes are \
                 added",
            ));
        }
        config.estimators.check()?;
        let is_pb_shared = config.backward == BackwardPolicy::SharedTorso;
        let mut outputs = 0;
        let pf = columns(env.actions(), Direction::Forward, n_nodes, &mut outputs);
        let mut separate_outputs = 0;
        let pb_outputs = if is_pb_shared { &mut outputs } else { &mut separate_outputs };
        let pb = columns(env.actions(), Direction::Backward, n_nodes, pb_outputs);
        outputs += i64::from(config.estimators.flow);

        let inputs = n_inputs(&schema) as i64 + config.estimators.n_conditions;
        let mut scope = parameters.scope(rng);
        let torso = Mlp::new(&mut scope.sub("torso"), inputs, outputs, &config.mlp);
        let backward = (config.backward == BackwardPolicy::Separate)
            .then(|| Mlp::new(&mut scope.sub("pb"), inputs, separate_outputs, &config.mlp));
        let estimators = Estimators::new(&mut scope, &config.estimators, Some(&config.mlp))?;
        parameters.check()?;
        // `n_labels` is `None`, because this network has no learned vectors of labels. Instead, a node's
        // label determines the position of its features in the input vector. Graphs must therefore have
        // exactly `max_nodes` nodes, which `inputs` checks.
        let expected_graphs = ExpectedGraphs { schema, n_labels: None, labels: Labels::default() };
        Ok(Self { config, expected_graphs, pf, pb, torso, backward, estimators, parameters })
    }

    /// The network's configuration.
    #[must_use]
    pub fn config(&self) -> &EdgeMlpConfig {
        &self.config
    }

    /// Encodes graphs and their conditions as the network's input, `[B, inputs]`.
    ///
    /// # Errors
    /// [`Error::Contract`] or [`Error::Shape`] for graphs that the network wasn't built for; the errors of
    /// [`checked_conditions`].
    fn inputs(&self, batch: &GraphBatch<'_>) -> Result<Tensor> {
        self.expected_graphs.check(batch)?;
        let schema = &self.expected_graphs.schema;
        let n = schema.max_nodes;
        let width = n_inputs(schema);
        let kind = self.parameters.kind();
        if let Some(got) = batch.arrays.sizes().find(|&size| size != n) {
            return Err(Error::shape(
                "a graph's list of nodes",
                [n as i64],
                [got as i64],
                "an `EdgeMlp` is for graphs with a fixed number of nodes; use a `GraphNet` if nodes are \
                 added or removed",
            ));
        }
        let mut values = vec![0.0; batch.len() * width];
        for (g, row) in values.chunks_exact_mut(width).enumerate() {
            encode(schema, batch.arrays, g, row);
        }
        let x =
            crate::tensor::from_host(&values, kind, batch.device()).view([batch.len() as i64, width as i64]);
        Ok(match checked_conditions(batch, self.config.estimators.n_conditions, kind)? {
            Some(conditions) => Tensor::cat(&[x, conditions], 1),
            None => x,
        })
    }

    /// Extracts the blocks of logits, one per action type, from the network's outputs, `[B, outputs]`.
    fn blocks(&self, batch: &GraphBatch<'_>, outputs: &Tensor, columns: &[Columns]) -> Vec<Tensor> {
        let block = |columns: &Columns| {
            let rows = outputs.narrow(1, columns.first, columns.n).reshape([-1, columns.width]);
            match columns.anchor {
                Anchor::Edge => rows.index_select(0, &edge_pairs(batch)),
                Anchor::Graph | Anchor::Node | Anchor::NodePair => rows,
            }
        };
        columns.iter().map(block).collect()
    }
}

/// Assigns columns of an output layer to the block of logits of each action type. The first block begins at
/// column `end`, which is advanced past all assigned columns.
fn columns(actions: &ActionSet, direction: Direction, n: usize, end: &mut i64) -> Vec<Columns> {
    let blocks = actions.heads(direction).map(|(_, _, head)| {
        let rows = match head.anchor {
            Anchor::Graph => 1,
            Anchor::Node => n,
            Anchor::Edge | Anchor::NodePair => n * n,
        };
        let columns = Columns {
            anchor: head.anchor,
            width: head.width as i64,
            first: *end,
            n: (rows * head.width) as i64,
        };
        *end += columns.n;
        columns
    });
    blocks.collect()
}

/// Returns the number of inputs per node and the number of inputs per ordered pair of nodes. A single edge
/// class has an input, because this input shows if there is an edge. A single node class has no input,
/// because the input would always be 1.
fn widths(schema: &GraphSchema) -> (usize, usize) {
    let values = |attributes: &[u8]| attributes.iter().map(|&n| usize::from(n)).sum::<usize>();
    let node_classes = if schema.node_classes > 1 { schema.node_classes } else { 0 };
    (node_classes + values(&schema.node_attributes), schema.edge_classes + values(&schema.edge_attributes))
}

/// Returns the number of inputs, without the conditions.
fn n_inputs(schema: &GraphSchema) -> usize {
    let (node, pair) = widths(schema);
    schema.max_nodes * (node + schema.max_nodes * pair)
}

/// Writes the input of graph `g` to `row`: the inputs of all ordered pairs of nodes, followed by the inputs
/// of all nodes.
fn encode(schema: &GraphSchema, arrays: &GraphArrays, g: usize, row: &mut [f64]) {
    let graph_nodes = &arrays.nodes[arrays.node_ptr[g]..arrays.node_ptr[g + 1]];
    let n = graph_nodes.len();
    let (node_width, pair_width) = widths(schema);
    let set = |row: &mut [f64], limits: &[u8], values: &[u8]| {
        let mut first = 0;
        for (&limit, &value) in limits.iter().zip(values) {
            if value > 0 {
                row[first + usize::from(value) - 1] = 1.0;
            }
            first += usize::from(limit);
        }
    };
    let (pairs, nodes) = row.split_at_mut(n * n * pair_width);
    for (a, b, edge) in arrays.edges_of(g) {
        let pairs_of_edge = [Some((a, b)), (!arrays.is_directed()).then_some((b, a))];
        for (i, j) in pairs_of_edge.into_iter().flatten() {
            let (class, attributes) =
                pairs[(i * n + j) * pair_width..][..pair_width].split_at_mut(schema.edge_classes);
            class[usize::from(edge.class)] = 1.0;
            set(attributes, &schema.edge_attributes, edge.attributes.values());
        }
    }
    if node_width > 0 {
        for (node, row) in graph_nodes.iter().zip(nodes.chunks_exact_mut(node_width)) {
            let classes = if schema.node_classes > 1 { schema.node_classes } else { 0 };
            let (class, attributes) = row.split_at_mut(classes);
            if let Some(class) = class.get_mut(usize::from(node.class)) {
                *class = 1.0;
            }
            set(attributes, &schema.node_attributes, node.attributes.values());
        }
    }
}

impl GraphNetwork for EdgeMlp {
    fn forward(&self, batch: &GraphBatch<'_>, wants: Quantities) -> Result<NetworkOutput> {
        let shared_pb = wants.has(Quantity::LogPb) && self.config.backward == BackwardPolicy::SharedTorso;
        let log_flow = wants.has(Quantity::LogFlow) && self.config.estimators.flow;
        let separate_pb = self.backward.as_ref().filter(|_| wants.has(Quantity::LogPb));
        let needs_torso = wants.has(Quantity::LogPf) || shared_pb || log_flow;
        if !needs_torso && separate_pb.is_none() {
            return Ok(NetworkOutput::default());
        }
        let inputs = self.inputs(batch)?;
        let outputs = needs_torso.then(|| self.torso.forward(&inputs));
        let separate_outputs = separate_pb.map(|network| network.forward(&inputs));
        let pb_outputs = separate_outputs.as_ref().or(outputs.as_ref().filter(|_| shared_pb));
        Ok(NetworkOutput {
            pf: outputs
                .as_ref()
                .filter(|_| wants.has(Quantity::LogPf))
                .map(|outputs| self.blocks(batch, outputs, &self.pf)),
            pb: pb_outputs.map(|outputs| self.blocks(batch, outputs, &self.pb)),
            values: outputs
                .iter()
                .filter(|_| log_flow)
                .map(|out| (Quantity::LogFlow, out.select(1, -1)))
                .collect(),
            pf_scale: self.estimators.pf_scale(batch.conditions.as_ref()),
        })
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        self.estimators.log_z(conditions, n)
    }

    fn settings(&self) -> Value {
        json!({ "EdgeMlp": self.config })
    }

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }
}
