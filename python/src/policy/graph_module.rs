//! Policies of graphs around a custom `torch.nn.Module`. The library adds heads, state flow and log Z to the
//! module, and trains and saves the module's parameters.

use gfn::Result;
use gfn::graph::{GraphBatch, GraphEnv};
use gfn::nn::{
    Embeddings, GraphNet, GraphNetConfig, GraphNetwork, NetworkOutput, Parameters, Scope, SymmetryInput,
    TensorTorso,
};
use gfn::objective::{Quantities, Quantity};
use gfn::policy::GraphPolicy;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;
use tch::Tensor;

use super::module::ModuleCaller;
use super::{BuiltPolicy, Plan};
use crate::errors::{Outcome, call_python};
use crate::tensors;

/// The batch of graphs that a Python module gets as its input. All tensors are on the policy's device. All
/// tensors but `conditions` are int64.
///
///     >>> class Counts(torch.nn.Module):
///     ...     def forward(self, batch):
///     ...         nodes = torch.ones(len(batch.batch), 4)
///     ...         return nodes, nodes.new_zeros(batch.n_graphs, 4).index_add(0, batch.batch, nodes)
///     >>> network = gfn.GraphModule(Counts(), node_width=4, graph_width=4).build(gfn.Ring(3))
///     >>> network(network.env.initial(2)).log_pf.shape
///     torch.Size([14])
#[pyclass(frozen, get_all, module = "gfn_rs", name = "GraphBatch")]
pub(crate) struct PyBatch {
    /// The number of graphs, B.
    n_graphs: usize,
    /// The class of each node, `[N]`.
    node_classes: Py<PyAny>,
    /// The attributes of each node, `[N, K]`. The value 0 means that an attribute is unset.
    node_attributes: Py<PyAny>,
    /// The label of each node within its graph, `[N]`. A module may use labels only in environments of
    /// labelled graphs.
    node_labels: Py<PyAny>,
    /// The index of each node's graph, `[N]`, as in PyTorch Geometric's `batch`.
    batch: Py<PyAny>,
    /// The source and target node of each message, `[2, M]`. An undirected edge has two consecutive messages,
    /// one in each direction.
    edge_index: Py<PyAny>,
    /// The class of each message's edge, `[M]`.
    edge_classes: Py<PyAny>,
    /// The attributes of each message's edge, `[M, K]`. The value 0 means that an attribute is unset.
    edge_attributes: Py<PyAny>,
    /// The condition of each graph, `[B, C]`, in the policy's dtype; None without conditions.
    conditions: Option<Py<PyAny>>,
}

#[pymethods]
impl PyBatch {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let nodes = self.batch.bind(py).len()?;
        let messages = self.edge_classes.bind(py).len()?;
        Ok(format!("GraphBatch({} graphs, {nodes} nodes, {messages} messages)", self.n_graphs))
    }
}

/// The type of a module's input.
#[derive(Clone, Copy, Debug)]
pub(crate) enum GraphView {
    /// A `PyBatch` of nodes and messages.
    Batch,
    /// The adjacency matrices of graphs, all of which have this number of nodes.
    Adjacency(i64),
}

/// A module that is called with graphs.
#[derive(Debug)]
struct GraphCaller {
    caller: ModuleCaller,
    view: GraphView,
}

impl GraphCaller {
    /// Calls the module with a batch of at least one graph. Also returns the number of graphs, 0 or 1, that
    /// were added to the batch, each with one node, and for which the result has rows at its end.
    fn call<'py>(
        &self,
        py: Python<'py>,
        batch: &GraphBatch<'_>,
        conditions: Option<&Tensor>,
    ) -> PyResult<(Bound<'py, PyAny>, i64)> {
        match self.view {
            GraphView::Batch => self.call_with_batch(py, batch, conditions),
            GraphView::Adjacency(n) => Ok((self.call_with_adjacency(py, batch, n, conditions)?, 0)),
        }
    }

    /// Calls the module with a `PyBatch`. If no graph of the batch has a node, a graph of one node is added.
    /// Otherwise a network that takes a maximum over nodes, for example, would fail.
    fn call_with_batch<'py>(
        &self,
        py: Python<'py>,
        batch: &GraphBatch<'_>,
        conditions: Option<&Tensor>,
    ) -> PyResult<(Bound<'py, PyAny>, i64)> {
        let graphs = batch.len() as i64;
        let more = i64::from(batch.node_classes().size()[0] == 0);
        let tensor = |tensor: &Tensor| tensors::to_python(py, tensor).map(Bound::unbind);
        let of_nodes = |rows: &Tensor, value: i64| match more {
            0 => tensor(rows),
            _ => {
                tensor(&Tensor::full([&[1], &rows.size()[1..]].concat(), value, (rows.kind(), rows.device())))
            }
        };
        // If a graph of one node was added to the batch, it gets the condition of the last graph.
        let of_graphs = |rows: &Tensor| tensor(&Tensor::cat(&[rows, &rows.narrow(0, graphs - 1, more)], 0));
        let py_batch = PyBatch {
            n_graphs: (graphs + more) as usize,
            node_classes: of_nodes(batch.node_classes(), 0)?,
            node_attributes: of_nodes(batch.node_attributes(), 0)?,
            node_labels: of_nodes(batch.node_labels(), 0)?,
            batch: of_nodes(batch.node_graph(), graphs)?,
            edge_index: tensor(batch.edge_index())?,
            edge_classes: tensor(batch.edge_classes())?,
            edge_attributes: tensor(batch.edge_attributes())?,
            conditions: conditions.map(of_graphs).transpose()?,
        };
        Ok((self.caller.call(py, vec![Bound::new(py, py_batch)?.into_any()], None)?, more))
    }

    fn call_with_adjacency<'py>(
        &self,
        py: Python<'py>,
        batch: &GraphBatch<'_>,
        n: i64,
        conditions: Option<&Tensor>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = (self.caller.kind, self.caller.device);
        let graphs = batch.len() as i64;
        if let Some(other) = batch.arrays.sizes().find(|&size| size as i64 != n) {
            return Err(PyValueError::new_err(format!(
                "a graph has {other} nodes: expected {n} nodes, as in the environment"
            )));
        }
        let ends = batch.edge_index();
        let places = ends.get(0) * n + ends.get(1).remainder(n);
        let adjacency =
            Tensor::zeros([graphs * n * n], options).index_fill(0, &places, 1.0).view([graphs, n, n]);
        self.caller.call(py, vec![tensors::to_python(py, &adjacency)?], conditions)
    }
}

/// A module that computes embeddings of nodes and of graphs.
#[derive(Debug)]
struct ModuleTorso {
    graphs: GraphCaller,
    widths: (i64, i64),
}

impl ModuleTorso {
    fn ask(
        &self,
        py: Python<'_>,
        batch: &GraphBatch<'_>,
        conditions: Option<&Tensor>,
    ) -> PyResult<Embeddings> {
        let GraphCaller { caller, view } = &self.graphs;
        let (of_node, of_graph) = self.widths;
        let graphs = batch.len() as i64;
        let nodes = batch.node_classes().size()[0];
        let (answer, more) = self.graphs.call(py, batch, conditions)?;
        let nodes_shape = match *view {
            GraphView::Batch => vec![nodes + more, of_node],
            GraphView::Adjacency(n) => vec![graphs, n, of_node],
        };
        let embedded = caller.pair(&answer, &nodes_shape, &[graphs + more, of_graph])?;
        Ok(Embeddings {
            nodes: embedded.nodes.reshape([nodes + more, of_node]).narrow(0, 0, nodes),
            graphs: embedded.graphs.narrow(0, 0, graphs),
        })
    }
}

impl TensorTorso for ModuleTorso {
    fn widths(&self) -> (i64, i64) {
        self.widths
    }

    fn embed(&self, batch: &GraphBatch<'_>, conditions: Option<&Tensor>) -> Result<Embeddings> {
        if batch.is_empty() {
            let options = (self.graphs.caller.kind, self.graphs.caller.device);
            let none = |width| Tensor::zeros([0, width], options);
            return Ok(Embeddings { nodes: none(self.widths.0), graphs: none(self.widths.1) });
        }
        call_python("the module", |py| self.ask(py, batch, conditions))
    }
}

/// A network that has only log F, which a module computes.
#[derive(Debug)]
struct ModuleFlow {
    graphs: GraphCaller,
    /// An empty list, which holds the device and the dtype.
    parameters: Parameters,
}

impl GraphNetwork for ModuleFlow {
    fn forward(&self, batch: &GraphBatch<'_>, _wants: Quantities) -> Result<NetworkOutput> {
        let caller = &self.graphs.caller;
        let n = batch.len() as i64;
        let log_flow = if batch.is_empty() {
            Tensor::zeros([0], (caller.kind, caller.device))
        } else {
            let conditions =
                batch.conditions.as_ref().map(|rows| rows.to_device(caller.device).to_kind(caller.kind));
            call_python("the module", |py| {
                let (answer, more) = self.graphs.call(py, batch, conditions.as_ref())?;
                Ok(caller.numbers(&answer, "log F of graphs", n + more)?.narrow(0, 0, n))
            })?
        };
        let values = std::iter::once((Quantity::LogFlow, log_flow)).collect();
        Ok(NetworkOutput { values, ..NetworkOutput::default() })
    }

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }
}

/// The widths of the module's embeddings of nodes and of graphs.
#[derive(Deserialize)]
struct Widths {
    node_width: i64,
    graph_width: i64,
}

/// Builds a policy of graphs around a Python module.
pub(crate) fn policy(plan: Plan<'_>, env: &GraphEnv, view: GraphView) -> Outcome<BuiltPolicy<GraphEnv>> {
    let Widths { node_width, graph_width } = plan.own_settings()?;
    let options = (plan.device, plan.kind);
    plan.build_around(
        |mut config: GraphNetConfig, plan, join| {
            if matches!(view, GraphView::Adjacency(_)) {
                // A module of adjacency matrices is for graphs whose nodes are distinct variables. Such
                // graphs have no automorphisms, so the heads don't get the number of automorphisms.
                config.symmetry = SymmetryInput::Ignored;
            }
            let torso = |scope: &mut Scope<'_>| ModuleTorso {
                graphs: GraphCaller { caller: join(scope), view },
                widths: (node_width, graph_width),
            };
            Ok(GraphPolicy(GraphNet::with_tensor_torso(
                env,
                torso,
                config,
                plan.device,
                plan.kind,
                plan.rng,
            )?))
        },
        |caller| {
            let parameters = Parameters::new(options.0, options.1);
            Box::new(GraphPolicy(ModuleFlow { graphs: GraphCaller { caller, view }, parameters }))
        },
    )
}
