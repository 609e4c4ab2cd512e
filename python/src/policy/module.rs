//! Python modules inside policies: the tensors of a module, which a trainer trains and saves, and the calls
//! of a module.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use gfn::nn::{Embeddings, Scope};
use gfn::{Error, Result};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tch::{Device, Kind, Tensor};

use crate::errors::call_python;
use crate::references::Object;
use crate::tensors;

/// A Python module, with the parameters and buffers that it had when the trainer was built.
#[derive(Debug)]
pub(crate) struct ModuleTensors {
    module: Object,
    tensors: Mutex<Vec<(String, Tensor)>>,
    /// A flag for each layer of the module: `true` if the layer was in training mode at the last check.
    modes: Mutex<Vec<bool>>,
}

impl ModuleTensors {
    pub(super) fn new(module: Object) -> PyResult<Self> {
        let (tensors, modes) =
            Python::attach(|py| Ok::<_, PyErr>((named_tensors(module.bind(py))?, modes(module.bind(py))?)))?;
        Ok(Self { module, tensors: Mutex::new(tensors), modes: Mutex::new(modes) })
    }

    /// Returns the parameters and buffers that the module had when the trainer was built.
    pub(super) fn tensors(&self) -> Vec<(String, Tensor)> {
        let tensors = self.tensors.lock().unwrap_or_else(PoisonError::into_inner);
        tensors.iter().map(|(name, tensor)| (name.clone(), tensor.shallow_clone())).collect()
    }

    /// Adds the module's tensors to the parameters of a torso, under their names in the module, so that a
    /// trainer trains and saves these tensors.
    pub(super) fn join(&self, scope: &mut Scope<'_>) -> Result<()> {
        self.tensors().iter().try_for_each(|(name, tensor)| scope.adopt(name, tensor))
    }

    /// Returns an error if the module has other tensors now than when the trainer was built, because the new
    /// tensors would neither be trained nor saved.
    pub(crate) fn check(&self) -> Result<()> {
        let now = call_python("the module", |py| named_tensors(self.module.bind(py)))?;
        match describe_change(&self.tensors(), &now) {
            None => Ok(()),
            Some(change) => Err(Error::contract(
                "a module must keep the parameters and buffers that it had when the trainer was made; write \
                 values into them (`load_state_dict` without `assign=True`, `parameter.copy_(values)` under \
                 `torch.no_grad()`), or make a new trainer",
                change,
            )),
        }
    }

    /// Returns `true` if a layer was switched between training and evaluation mode since the last check.
    pub(crate) fn changed_mode(&self) -> Result<bool> {
        let now = call_python("the module", |py| modes(self.module.bind(py)))?;
        let mut modes = self.modes.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::replace(&mut *modes, now) != *modes)
    }
}

/// Describes the first tensor that is missing, replaced or new; `None` if there is no change.
fn describe_change(before: &[(String, Tensor)], now: &[(String, Tensor)]) -> Option<String> {
    for (name, tensor) in before {
        match now.iter().find(|(other, _)| other == name) {
            None => return Some(format!("`{name}` was removed")),
            Some((_, other)) if !tensors::is_same(tensor, other) => {
                return Some(format!("`{name}` was replaced by another tensor"));
            }
            Some(_) => {}
        }
    }
    let is_new = |(name, _): &&(String, Tensor)| before.iter().all(|(other, _)| other != name);
    now.iter().find(is_new).map(|(name, _)| format!("`{name}` was added"))
}

/// Returns a module's parameters and buffers by name. Buffers of whole numbers are left out, because they
/// needn't be saved: they are constants, or counters of layers such as batch normalisation. For such layers
/// in training mode a trainer raises an error anyway.
fn named_tensors(module: &Bound<'_, PyAny>) -> PyResult<Vec<(String, Tensor)>> {
    let mut out = Vec::new();
    for list in ["named_parameters", "named_buffers"] {
        for item in module.call_method0(list)?.try_iter()? {
            let (name, tensor): (String, Bound<'_, PyAny>) = item?.extract()?;
            let tensor = tensors::from_python(&tensor)?;
            if tensor.is_floating_point() {
                out.push((name, tensor));
            }
        }
    }
    Ok(out)
}

fn mode(layer: PyResult<Bound<'_, PyAny>>) -> PyResult<bool> {
    layer?.getattr_opt("training")?.map_or(Ok(false), |training| training.is_truthy())
}

/// Returns a flag for each layer, `true` if the layer is in training mode. The list is empty for an object
/// that isn't a `torch.nn.Module`.
fn modes(module: &Bound<'_, PyAny>) -> PyResult<Vec<bool>> {
    match module.getattr_opt("modules")? {
        None => Ok(Vec::new()),
        Some(modules) => modules.call0()?.try_iter()?.map(mode).collect(),
    }
}

/// A Python module that computes embeddings, with the device and the dtype that its results must have.
#[derive(Debug)]
pub(super) struct ModuleCaller {
    module: Object,
    /// The device that the module's results must be on.
    pub(super) device: Device,
    /// The dtype that the module's results must have.
    pub(super) kind: Kind,
    /// `true` if the module has parameters to train, and no warning was issued yet that its embeddings have
    /// no gradient.
    learns: AtomicBool,
}

impl ModuleCaller {
    pub(super) fn new(module: Object, own: &ModuleTensors, device: Device, kind: Kind) -> Self {
        let learns = own.tensors().iter().any(|(_, tensor)| tensor.requires_grad());
        Self { module, device, kind, learns: AtomicBool::new(learns) }
    }

    /// Calls the module with these arguments, followed by the conditions if there are any.
    pub(super) fn call<'py>(
        &self,
        py: Python<'py>,
        mut arguments: Vec<Bound<'py, PyAny>>,
        conditions: Option<&Tensor>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // A condition's vector leaves out constant parts, such as a fixed temperature. If all parts are
        // constant, the vectors have no entries, and the module gets no conditions.
        if let Some(conditions) = conditions.filter(|conditions| conditions.size().get(1) != Some(&0)) {
            arguments.push(tensors::to_python(py, conditions)?);
        }
        self.module.bind(py).call1(PyTuple::new(py, arguments)?)
    }

    /// Checks that the module's result is a single tensor of this shape, and returns this tensor.
    pub(super) fn single_tensor(&self, answer: &Bound<'_, PyAny>, shape: &[i64]) -> PyResult<Tensor> {
        let states = self.check(answer, "states", shape)?;
        self.check_learning(answer.py(), &[&states])?;
        Ok(states)
    }

    /// Checks that the module's result is a pair of tensors of these shapes, and returns both tensors.
    pub(super) fn pair(
        &self,
        answer: &Bound<'_, PyAny>,
        of_nodes: &[i64],
        of_graphs: &[i64],
    ) -> PyResult<Embeddings> {
        let expected = || {
            format!(
                "expected a pair of tensors: embeddings of nodes of shape {of_nodes:?}, and embeddings of \
                 graphs of shape {of_graphs:?}"
            )
        };
        let pair = answer.cast::<PyTuple>().map_err(|_| {
            PyTypeError::new_err(format!("the module gave a value that isn't a tuple: {}", expected()))
        })?;
        if pair.len() != 2 {
            return Err(PyValueError::new_err(format!(
                "the module gave {} values: {}",
                pair.len(),
                expected()
            )));
        }
        let nodes = self.check(&pair.get_item(0)?, "nodes", of_nodes)?;
        let graphs = self.check(&pair.get_item(1)?, "graphs", of_graphs)?;
        self.check_learning(answer.py(), &[&nodes, &graphs])?;
        Ok(Embeddings { nodes, graphs })
    }

    /// Reads a tensor that the module returned, and checks its shape, device and dtype. Without this check, a
    /// wrong dtype would cause an error only in the middle of the backward pass.
    fn check(&self, answer: &Bound<'_, PyAny>, what: &str, shape: &[i64]) -> PyResult<Tensor> {
        let tensor = tensors::from_python(answer)?;
        let device = self.device;
        let kind = self.kind;
        if (tensor.device(), tensor.kind()) != (device, kind) {
            return Err(PyTypeError::new_err(format!(
                "the module gave embeddings of {what} of dtype {:?} on {:?}: expected {kind:?} on \
                 {device:?}, as in the trainer",
                tensor.kind(),
                tensor.device()
            )));
        }
        if tensor.size() != shape {
            return Err(PyValueError::new_err(format!(
                "the module gave embeddings of {what} of shape {:?}: expected {shape:?}, in which the last \
                 number is the width in the settings of the policy",
                tensor.size()
            )));
        }
        Ok(tensor)
    }

    /// Warns once if the module has parameters to train but its embeddings have no gradient.
    fn check_learning(&self, py: Python<'_>, embedded: &[&Tensor]) -> PyResult<()> {
        if embedded.iter().any(|tensor| tensor.requires_grad()) || !self.learns.load(Relaxed) {
            return Ok(());
        }
        if py.import("torch")?.call_method0("is_grad_enabled")?.is_truthy()? {
            self.learns.store(false, Relaxed);
            py.import("gfn_rs._training")?.call_method1("_warn_of_detached", (self.module.bind(py),))?;
        }
        Ok(())
    }
}
