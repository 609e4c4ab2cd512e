//! Calls of a module of Python by the torsos that are made of one.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use gfn::nn::Embeddings;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tch::{Device, Kind, Tensor};

use super::ModuleTensors;
use crate::references::Object;
use crate::tensors;

/// A module of Python that gives embeddings.
#[derive(Debug)]
pub(super) struct ModuleCaller {
    module: Object,
    /// The device and the kind that its answers must have.
    pub(super) device: Device,
    pub(super) kind: Kind,
    /// `true` if it has parameters to train, and no warning was given yet that it doesn't train them.
    learns: AtomicBool,
}

impl ModuleCaller {
    pub(super) fn new(module: Object, own: &ModuleTensors, device: Device, kind: Kind) -> Self {
        let learns = own.tensors().iter().any(|(_, tensor)| tensor.requires_grad());
        Self { module, device, kind, learns: AtomicBool::new(learns) }
    }

    /// Calls the module with these arguments, and with the conditions behind them if there are any.
    pub(super) fn call<'py>(
        &self,
        py: Python<'py>,
        mut arguments: Vec<Bound<'py, PyAny>>,
        conditions: Option<&Tensor>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // Constant conditions have no columns.
        if let Some(conditions) = conditions.filter(|conditions| conditions.size().get(1) != Some(&0)) {
            arguments.push(tensors::to_python(py, conditions)?);
        }
        self.module.bind(py).call1(PyTuple::new(py, arguments)?)
    }

    /// An answer that is one tensor, of this shape.
    pub(super) fn one(&self, answer: &Bound<'_, PyAny>, shape: &[i64]) -> PyResult<Tensor> {
        let states = self.check(answer, "states", shape)?;
        self.check_learning(answer.py(), &[&states])?;
        Ok(states)
    }

    /// An answer that is a pair of tensors, of these shapes.
    pub(super) fn pair(&self, answer: &Bound<'_, PyAny>, of_nodes: &[i64], of_graphs: &[i64]) -> PyResult<Embeddings> {
        let expected = || format!("expected a pair, embeddings of nodes {of_nodes:?} and of graphs {of_graphs:?}");
        let pair = answer
            .cast::<PyTuple>()
            .map_err(|_| PyTypeError::new_err(format!("the module gave one value: {}", expected())))?;
        if pair.len() != 2 {
            return Err(PyValueError::new_err(format!("the module gave {} values: {}", pair.len(), expected())));
        }
        let nodes = self.check(&pair.get_item(0)?, "nodes", of_nodes)?;
        let graphs = self.check(&pair.get_item(1)?, "graphs", of_graphs)?;
        self.check_learning(answer.py(), &[&nodes, &graphs])?;
        Ok(Embeddings { nodes, graphs })
    }

    /// The tensor that the module gave. One of another kind would end in the middle of the backward pass.
    fn check(&self, answer: &Bound<'_, PyAny>, what: &str, shape: &[i64]) -> PyResult<Tensor> {
        let tensor = tensors::from_python(answer)?;
        let (device, kind) = (self.device, self.kind);
        if (tensor.device(), tensor.kind()) != (device, kind) {
            return Err(PyTypeError::new_err(format!(
                "the module gave embeddings of {what} of kind {:?} on {:?}: expected {kind:?} on {device:?}, as the trainer is",
                tensor.kind(),
                tensor.device()
            )));
        }
        if tensor.size() != shape {
            return Err(PyValueError::new_err(format!(
                "what the module gave for {what} has shape {:?}: expected {shape:?}, each embedding as wide as the settings of the policy say",
                tensor.size()
            )));
        }
        Ok(tensor)
    }

    /// Warns, once, of a module that is to be trained and gives embeddings that no gradient leads away from.
    fn check_learning(&self, py: Python<'_>, embedded: &[&Tensor]) -> PyResult<()> {
        if embedded.iter().any(|tensor| tensor.requires_grad()) || !self.learns.load(Relaxed) {
            return Ok(());
        }
        if py.import("torch")?.call_method0("is_grad_enabled")?.is_truthy()? {
            self.learns.store(false, Relaxed);
            py.import("gfn_rs.training")?.call_method1("_warn_of_detached", (self.module.bind(py),))?;
        }
        Ok(())
    }
}
