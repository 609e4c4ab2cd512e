use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor};

use super::features::Labels;
use super::fits::Fits;
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
pub struct EdgeMlpConfig {
    /// The hidden layers.
    pub mlp: MlpConfig,
    /// The kind of backward policy.
    pub backward: BackwardPolicy,
    /// The state-flow head, log Z, and conditions.
    pub estimators: EstimatorsConfig,
}

impl Default for EdgeMlpConfig {
    /// Two hidden layers of 256 with ReLU, uniform P_B, no flow head, no conditions, log Z from 0.
    fn default() -> Self {
        Self { mlp: MlpConfig::default(), backward: BackwardPolicy::Uniform, estimators: EstimatorsConfig::default() }
    }
}

/// The plain baseline for graphs on a fixed set of labelled nodes: a perceptron on the flattened adjacency
/// matrix.
///
/// Its input has, for every ordered pair of nodes, the edge's class and attributes as one-hot, and those of
/// every node where there is a choice. Its output has the logits of every action type: a row for the graph,
/// for each node or for each ordered pair. The logits of edges are taken from the rows of pairs. Nodes share
/// no weights, so it isn't equivariant and doesn't generalise to another number of nodes.
///
/// ```
/// use gfn::{env::Env, nn::{EdgeMlp, EdgeMlpConfig}, objective::Quantities, policy::{GraphPolicy, Policy}, testing::Triangles, Rng};
/// let env = Triangles::env();
/// let net = EdgeMlp::new(&env, EdgeMlpConfig::default(), tch::Device::Cpu, tch::Kind::Float, &mut Rng::seeded(0))?;
/// let evaluation = GraphPolicy(net).evaluate(&env, &env.initial(&[0; 2]), None, Quantities::PF)?;
/// assert_eq!(evaluation.pf.unwrap().n_actions(), [4, 4]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct EdgeMlp {
    config: EdgeMlpConfig,
    fits: Fits,
    pf: Vec<Columns>,
    pb: Vec<Columns>,
    /// Outputs: logits of P_F, then of P_B if it shares the torso, then log F.
    torso: Mlp,
    backward: Option<Mlp>,
    estimators: Estimators,
    parameters: Parameters,
}

/// The columns of an output layer that form one block of logits.
#[derive(Debug)]
struct Columns {
    anchor: Anchor,
    width: i64,
    first: i64,
    n: i64,
}

impl EdgeMlp {
    /// A network for the graphs and actions of an environment, with weights drawn from `rng`.
    ///
    /// # Errors
    /// [`Error::Config`] for an environment whose graphs start with no nodes or with fewer than they can
    /// have, and for sizes below 1; [`Error::Contract`] for an initial graph that violates the schema;
    /// [`Error::Device`] for a device that isn't there.
    pub fn new(env: &GraphEnv, config: EdgeMlpConfig, device: Device, kind: Kind, rng: &mut Rng) -> Result<Self> {
        let schema = env.schema().clone();
        let start = env.initial_graphs().iter().map(GraphState::n_nodes).min().unwrap_or(0);
        if start != schema.max_nodes || start == 0 {
            return Err(Error::config(
                "the environment of an `EdgeMlp`",
                format!("one whose graphs have {start} nodes at first and {} at most", schema.max_nodes),
                "a fixed set of nodes, at least one; where nodes are added use a `GraphNet`",
            ));
        }
        config.estimators.check()?;
        let shared = config.backward == BackwardPolicy::SharedTorso;
        let mut outputs = 0;
        let pf = columns(env.actions(), Direction::Forward, start, &mut outputs);
        let mut of_backward = 0;
        let pb_outputs = if shared { &mut outputs } else { &mut of_backward };
        let pb = columns(env.actions(), Direction::Backward, start, pb_outputs);
        outputs += i64::from(config.estimators.flow);

        let inputs = n_inputs(&schema) as i64 + config.estimators.n_conditions;
        let mut parameters = Parameters::new(device, kind);
        let mut scope = parameters.scope(rng);
        let torso = Mlp::new(&mut scope.sub("torso"), inputs, outputs, &config.mlp);
        let backward = (config.backward == BackwardPolicy::Separate)
            .then(|| Mlp::new(&mut scope.sub("pb"), inputs, of_backward, &config.mlp));
        let estimators = Estimators::new(&mut scope, &config.estimators, Some(&config.mlp))?;
        parameters.check()?;
        // Labels are positions in the input, so the number of nodes is checked when a batch is encoded.
        let fits = Fits { schema, n_labels: None, labels: Labels::default() };
        Ok(Self { config, fits, pf, pb, torso, backward, estimators, parameters })
    }

    /// The network's configuration.
    #[must_use]
    pub fn config(&self) -> &EdgeMlpConfig {
        &self.config
    }

    /// The graphs, and their conditions, as rows of numbers.
    fn inputs(&self, batch: &GraphBatch<'_>) -> Result<Tensor> {
        self.fits.check(batch)?;
        let schema = &self.fits.schema;
        let (n, width, kind) = (schema.max_nodes, n_inputs(schema), self.parameters.kind());
        if let Some(got) = batch.arrays.sizes().find(|&size| size != n) {
            return Err(Error::shape(
                "a graph's list of nodes",
                [n as i64],
                [got as i64],
                "an `EdgeMlp` is for graphs on a fixed set of nodes; where nodes come and go use a `GraphNet`",
            ));
        }
        let mut values = vec![0.0; batch.len() * width];
        for (g, row) in values.chunks_exact_mut(width).enumerate() {
            encode(schema, batch.arrays, g, row);
        }
        let x = crate::tensor::from_host(&values, kind, batch.device()).view([batch.len() as i64, width as i64]);
        Ok(match checked_conditions(batch, self.config.estimators.n_conditions, kind)? {
            Some(conditions) => Tensor::cat(&[x, conditions], 1),
            None => x,
        })
    }

    /// The blocks of logits in these columns of `[B, outputs]`.
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

/// The columns of an output layer for each action type's block, from column `end` on.
fn columns(actions: &ActionSet, direction: Direction, n: usize, end: &mut i64) -> Vec<Columns> {
    let blocks = actions.heads(direction).map(|(_, _, head)| {
        let rows = match head.anchor {
            Anchor::Graph => 1,
            Anchor::Node => n,
            Anchor::Edge | Anchor::NodePair => n * n,
        };
        let columns =
            Columns { anchor: head.anchor, width: head.width as i64, first: *end, n: (rows * head.width) as i64 };
        *end += columns.n;
        columns
    });
    blocks.collect()
}

/// Inputs for one node and for one ordered pair. If there is only one class, a node needs no input for it; a
/// pair does, to say that there is an edge.
fn widths(schema: &GraphSchema) -> (usize, usize) {
    let values = |attributes: &[u8]| attributes.iter().map(|&n| usize::from(n)).sum::<usize>();
    let node_classes = if schema.node_classes > 1 { schema.node_classes } else { 0 };
    (node_classes + values(&schema.node_attributes), schema.edge_classes + values(&schema.edge_attributes))
}

fn n_inputs(schema: &GraphSchema) -> usize {
    let (node, pair) = widths(schema);
    schema.max_nodes * (node + schema.max_nodes * pair)
}

/// Writes the input of graph `g`: pairs first, then nodes.
fn encode(schema: &GraphSchema, arrays: &GraphArrays, g: usize, row: &mut [f64]) {
    let nodes_of = &arrays.nodes[arrays.node_ptr[g]..arrays.node_ptr[g + 1]];
    let n = nodes_of.len();
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
        let both = [Some((a, b)), (!arrays.is_directed()).then_some((b, a))];
        for (i, j) in both.into_iter().flatten() {
            let (class, attributes) = pairs[(i * n + j) * pair_width..][..pair_width].split_at_mut(schema.edge_classes);
            class[usize::from(edge.class)] = 1.0;
            set(attributes, &schema.edge_attributes, edge.attributes.values());
        }
    }
    if node_width > 0 {
        for (node, row) in nodes_of.iter().zip(nodes.chunks_exact_mut(node_width)) {
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
        let own_pb = self.backward.as_ref().filter(|_| wants.has(Quantity::LogPb));
        let needs_torso = wants.has(Quantity::LogPf) || shared_pb || log_flow;
        if !needs_torso && own_pb.is_none() {
            return Ok(NetworkOutput::default());
        }
        let inputs = self.inputs(batch)?;
        let outputs = needs_torso.then(|| self.torso.forward(&inputs));
        let own = own_pb.map(|network| network.forward(&inputs));
        let of_pb = own.as_ref().or(outputs.as_ref().filter(|_| shared_pb));
        Ok(NetworkOutput {
            pf: outputs
                .as_ref()
                .filter(|_| wants.has(Quantity::LogPf))
                .map(|outputs| self.blocks(batch, outputs, &self.pf)),
            pb: of_pb.map(|outputs| self.blocks(batch, outputs, &self.pb)),
            values: outputs.iter().filter(|_| log_flow).map(|out| (Quantity::LogFlow, out.select(1, -1))).collect(),
            pf_scale: self.estimators.pf_scale(batch.conditions.as_ref()),
        })
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        self.estimators.log_z(conditions, n)
    }

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }
}
