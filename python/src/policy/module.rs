//! A network of graphs that is a `torch.nn.Module`: the library adds heads, flow and log Z, trains its parameters and saves them.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use gfn::graph::GraphBatch;
use gfn::nn::{BackwardPolicy, Embedded, Engine, GraphNet, GraphNetConfig, Scope, Symmetry, Torso};
use gfn::policy::GraphPolicy;
use gfn::{Result, Rng};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use serde::Deserialize;
use serde_json::Value;
use tch::{Device, Kind, Tensor};

use super::{Adopted, Discrete, boxed, estimators};
use crate::env::AnyGraphEnv;
use crate::errors::{passed_on, raised};
use crate::kept::Object;
use crate::tensors;

/// A batch of graphs as a network sees it; all are tensors on the policy's device, int64 but for `conditions`.
#[pyclass(frozen, get_all, module = "gfn_rs", name = "GraphBatch")]
pub(crate) struct PyBatch {
    /// The number of graphs, B.
    n_graphs: usize,
    /// The class of each node, `[N]`.
    node_classes: Py<PyAny>,
    /// Attributes of each node, `[N, K]`, 0 for unset.
    node_attributes: Py<PyAny>,
    /// The label of each node within its graph, `[N]`: what a network may see where nodes are labelled.
    node_labels: Py<PyAny>,
    /// The graph of each node, `[N]`: PyTorch Geometric's `batch`.
    batch: Py<PyAny>,
    /// From and to of each message, `[2, M]`: an undirected edge is two, one behind the other.
    edge_index: Py<PyAny>,
    /// The class of each message's edge, `[M]`.
    edge_classes: Py<PyAny>,
    /// Attributes of each message's edge, `[M, K]`, 0 for unset.
    edge_attributes: Py<PyAny>,
    /// Conditions of each graph, `[B, C]`, in the policy's kind; None without conditions.
    conditions: Option<Py<PyAny>>,
}

#[pymethods]
impl PyBatch {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (nodes, messages) = (self.batch.bind(py).len()?, self.edge_classes.bind(py).len()?);
        Ok(format!("GraphBatch({} graphs, {nodes} nodes, {messages} messages)", self.n_graphs))
    }
}

#[derive(Debug)]
struct ModuleTorso {
    module: Object,
    widths: (i64, i64),
    /// Where its answers must be, and of which kind.
    made_for: (Device, Kind),
    /// `true` if it has something to learn, and nobody was told yet that it doesn't.
    learns: AtomicBool,
}

impl ModuleTorso {
    fn ask(&self, py: Python<'_>, batch: &GraphBatch<'_>, conditions: Option<&Tensor>) -> PyResult<Embedded> {
        let tensor = |tensor: &Tensor| tensors::to_python(py, tensor).map(Bound::unbind);
        let seen = PyBatch {
            n_graphs: batch.len(),
            node_classes: tensor(batch.node_classes())?,
            node_attributes: tensor(batch.node_attributes())?,
            node_labels: tensor(batch.node_labels())?,
            batch: tensor(batch.node_graph())?,
            edge_index: tensor(batch.edge_index())?,
            edge_classes: tensor(batch.edge_classes())?,
            edge_attributes: tensor(batch.edge_attributes())?,
            conditions: conditions.map(tensor).transpose()?,
        };
        let answer = self.module.bind(py).call1((Bound::new(py, seen)?,))?;
        let pair = answer.cast::<PyTuple>().map_err(|_| {
            PyTypeError::new_err(
                "the module gave one value: expected a pair, embeddings of nodes [N, D] and of graphs [B, G]",
            )
        })?;
        if pair.len() != 2 {
            return Err(PyValueError::new_err(format!(
                "the module gave {} values: expected embeddings of nodes [N, D] and of graphs [B, G]",
                pair.len()
            )));
        }
        let checked = |place: usize, what: &str| {
            let tensor = tensors::from_python(&pair.get_item(place)?)?;
            let (device, kind) = self.made_for;
            // Anything else would end in the middle of the backward pass.
            if (tensor.device(), tensor.kind()) == (device, kind) {
                Ok(tensor)
            } else {
                Err(PyTypeError::new_err(format!(
                    "the module gave embeddings of {what} of kind {:?} on {:?}: expected {kind:?} on {device:?}, as the trainer is",
                    tensor.kind(),
                    tensor.device()
                )))
            }
        };
        let embedded = Embedded { nodes: checked(0, "nodes")?, graphs: checked(1, "graphs")? };
        self.check_learning(py, &embedded)?;
        Ok(embedded)
    }

    /// Warns, once, of a module that is to be trained and gives embeddings that no gradient leads away from.
    fn check_learning(&self, py: Python<'_>, embedded: &Embedded) -> PyResult<()> {
        if embedded.nodes.requires_grad() || embedded.graphs.requires_grad() || !self.learns.load(Relaxed) {
            return Ok(());
        }
        if py.import("torch")?.call_method0("is_grad_enabled")?.is_truthy()? {
            self.learns.store(false, Relaxed);
            let warning = py.import("gfn_rs.training")?.getattr("TrainingWarning")?;
            let message =
                c"the module's embeddings have no gradients (are they detached, or computed under no_grad?): \
                            the heads alone are trained";
            PyErr::warn(py, &warning, message, 1)?;
        }
        Ok(())
    }
}

impl Torso for ModuleTorso {
    fn widths(&self) -> (i64, i64) {
        self.widths
    }

    fn embed<E: Engine>(&self, engine: &E, conditions: Option<&E::Rows>) -> Result<Embedded<E::Rows>> {
        let (batch, conditions) = (engine.batch()?, conditions.map(|rows| engine.to_tensor(rows)));
        let asked = Python::attach(|py| self.ask(py, batch, conditions.as_ref()));
        let Embedded { nodes, graphs } = asked.map_err(passed_on("the module"))?;
        Ok(Embedded { nodes: engine.of_tensor(nodes), graphs: engine.of_tensor(graphs) })
    }

    fn on_host(&self) -> bool {
        false
    }
}

#[derive(Deserialize)]
struct Settings {
    node_width: i64,
    graph_width: i64,
    backward: BackwardPolicy,
    pair_walks: Option<usize>,
    #[serde(default = "unseen")]
    symmetry: Symmetry,
    initial_exit_bias: f64,
}

/// Files from before the setting.
fn unseen() -> Symmetry {
    Symmetry::Unseen
}

/// A policy around a module.
pub(super) fn of_graphs(
    module: Object,
    settings: &Value,
    env: &AnyGraphEnv,
    device: Device,
    kind: Kind,
    rng: &mut Rng,
) -> PyResult<Discrete<AnyGraphEnv>> {
    let asked: Settings = serde_json::from_value(settings.clone())
        .map_err(|error| PyValueError::new_err(format!("GraphModule: {error}")))?;
    if asked.backward == BackwardPolicy::Separate {
        return Err(PyValueError::new_err(
            "backward is \"separate\": expected \"uniform\" or \"shared_torso\", as there is one module",
        ));
    }
    let config = GraphNetConfig {
        backward: asked.backward,
        pair_walks: asked.pair_walks,
        symmetry: asked.symmetry,
        initial_exit_bias: asked.initial_exit_bias,
        estimators: estimators(settings).map_err(raised)?,
        ..GraphNetConfig::default()
    };
    let adopted = Adopted::new(module.clone())?;
    let tensors = adopted.tensors();
    let mut taken = Ok(());
    let torso = |scope: &mut Scope<'_>| {
        taken = tensors.iter().try_for_each(|(name, tensor)| scope.adopt(name, tensor));
        ModuleTorso {
            module: module.clone(),
            widths: (asked.node_width, asked.graph_width),
            made_for: (device, kind),
            learns: AtomicBool::new(tensors.iter().any(|(_, tensor)| tensor.requires_grad())),
        }
    };
    let net = GraphNet::with_torso(env, torso, config, device, kind, rng);
    taken.map_err(raised)?;
    Ok(boxed(net.map(GraphPolicy))?.of_module(adopted))
}
