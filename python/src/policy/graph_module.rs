//! Policies of graphs around a custom `torch.nn.Module`. The library adds heads, state flow and log Z to the
//! module, and trains and saves the module's parameters.

use gfn::Result;
use gfn::graph::{GraphBatch, GraphEnv};
use gfn::nn::{Embeddings, GraphNet, GraphNetConfig, Scope, SymmetryInput, TensorTorso};
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

#[derive(Debug)]
struct ModuleTorso {
    caller: ModuleCaller,
    widths: (i64, i64),
    view: GraphView,
}

impl ModuleTorso {
    fn ask(
        &self,
        py: Python<'_>,
        batch: &GraphBatch<'_>,
        conditions: Option<&Tensor>,
    ) -> PyResult<Embeddings> {
        match self.view {
            _ if batch.is_empty() => {
                let device = self.caller.device;
                let kind = self.caller.kind;
                let none = |width| Tensor::zeros([0, width], (kind, device));
                Ok(Embeddings { nodes: none(self.widths.0), graphs: none(self.widths.1) })
            }
            GraphView::Batch => self.ask_of_batch(py, batch, conditions),
            GraphView::Adjacency(n) => self.ask_of_adjacency(py, batch, n, conditions),
        }
    }

    /// Calls the module with a batch. If no graph of the batch has a node, a graph of one node is added, and
    /// the embeddings of this graph and its node are dropped from the result. Otherwise a network that takes
    /// a maximum over nodes, for example, would fail.
    fn ask_of_batch(
        &self,
        py: Python<'_>,
        batch: &GraphBatch<'_>,
        conditions: Option<&Tensor>,
    ) -> PyResult<Embeddings> {
        let graphs = batch.len() as i64;
        let nodes = batch.node_classes().size()[0];
        let more = i64::from(nodes == 0);
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
        let answer = self.caller.call(py, vec![Bound::new(py, py_batch)?.into_any()], None)?;
        let (of_node, of_graph) = self.widths;
        let embedded = self.caller.pair(&answer, &[nodes + more, of_node], &[graphs + more, of_graph])?;
        Ok(Embeddings {
            nodes: embedded.nodes.narrow(0, 0, nodes),
            graphs: embedded.graphs.narrow(0, 0, graphs),
        })
    }

    fn ask_of_adjacency(
        &self,
        py: Python<'_>,
        batch: &GraphBatch<'_>,
        n: i64,
        conditions: Option<&Tensor>,
    ) -> PyResult<Embeddings> {
        let device = self.caller.device;
        let kind = self.caller.kind;
        let graphs = batch.len() as i64;
        if let Some(other) = batch.arrays.sizes().find(|&size| size as i64 != n) {
            return Err(PyValueError::new_err(format!(
                "a graph has {other} nodes: expected {n} nodes, as in the environment"
            )));
        }
        let (of_node, of_graph) = self.widths;
        let ends = batch.edge_index();
        let places = ends.get(0) * n + ends.get(1).remainder(n);
        let adjacency =
            Tensor::zeros([graphs * n * n], (kind, device)).index_fill(0, &places, 1.0).view([graphs, n, n]);
        let answer = self.caller.call(py, vec![tensors::to_python(py, &adjacency)?], conditions)?;
        let embedded = self.caller.pair(&answer, &[graphs, n, of_node], &[graphs, of_graph])?;
        Ok(Embeddings { nodes: embedded.nodes.reshape([graphs * n, of_node]), ..embedded })
    }
}

impl TensorTorso for ModuleTorso {
    fn widths(&self) -> (i64, i64) {
        self.widths
    }

    fn embed(&self, batch: &GraphBatch<'_>, conditions: Option<&Tensor>) -> Result<Embeddings> {
        call_python("the module", |py| self.ask(py, batch, conditions))
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
    plan.build_around(|mut config: GraphNetConfig, of: Widths, plan, join| {
        if matches!(view, GraphView::Adjacency(_)) {
            // A module of adjacency matrices is for graphs whose nodes are distinct variables. Such graphs
            // have no automorphisms, so the number of automorphisms isn't an input of the heads.
            config.symmetry = SymmetryInput::Ignored;
        }
        let torso = |scope: &mut Scope<'_>| ModuleTorso {
            caller: join(scope),
            widths: (of.node_width, of.graph_width),
            view,
        };
        Ok(GraphPolicy(GraphNet::with_tensor_torso(env, torso, config, plan.device, plan.kind, plan.rng)?))
    })
}
