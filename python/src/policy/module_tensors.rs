//! The tensors of a module of Python, which a trainer trains and saves.

use std::sync::{Mutex, PoisonError};

use gfn::nn::Scope;
use gfn::{Error, Result};
use pyo3::prelude::*;
use tch::Tensor;

use crate::errors::python_error;
use crate::references::Object;
use crate::tensors;

/// A module, and its parameters and buffers when the trainer was built.
#[derive(Debug)]
pub(crate) struct ModuleTensors {
    module: Object,
    tensors: Mutex<Vec<(String, Tensor)>>,
    /// For each of its layers, `true` if it was in training mode at the last check.
    modes: Mutex<Vec<bool>>,
}

impl ModuleTensors {
    pub(super) fn new(module: Object) -> PyResult<Self> {
        let (tensors, modes) =
            Python::attach(|py| Ok::<_, PyErr>((named_tensors(module.bind(py))?, modes(module.bind(py))?)))?;
        Ok(Self { module, tensors: Mutex::new(tensors), modes: Mutex::new(modes) })
    }

    /// Returns its parameters and buffers when the trainer was built.
    pub(super) fn tensors(&self) -> Vec<(String, Tensor)> {
        let tensors = self.tensors.lock().unwrap_or_else(PoisonError::into_inner);
        tensors.iter().map(|(name, tensor)| (name.clone(), tensor.shallow_clone())).collect()
    }

    /// Has a trainer train and save them with a torso, under the module's names for them.
    pub(super) fn join(&self, scope: &mut Scope<'_>) -> Result<()> {
        self.tensors().iter().try_for_each(|(name, tensor)| scope.adopt(name, tensor))
    }

    /// Refuses a module that has other tensors now: it would compute with others than those that are trained and saved.
    pub(crate) fn check(&self) -> Result<()> {
        let now = Python::attach(|py| named_tensors(self.module.bind(py))).map_err(python_error("the module"))?;
        let before = self.tensors();
        let find = |all: &[(String, Tensor)], name: &str| {
            all.iter().find(|(other, _)| other == name).map(|(_, tensor)| tensor.shallow_clone())
        };
        let mut change = None;
        for (name, tensor) in &before {
            let problem = match find(&now, name) {
                None => "is gone",
                Some(other) if !tensors::is_same(tensor, &other) => "is another tensor now",
                Some(_) => continue,
            };
            change = Some(format!("`{name}` {problem}"));
            break;
        }
        if change.is_none() {
            let new = now.iter().find(|(name, _)| find(&before, name).is_none());
            change = new.map(|(name, _)| format!("`{name}` is new"));
        }
        match change {
            None => Ok(()),
            Some(change) => Err(Error::contract(
                "a module keeps the parameters and buffers that the trainer was made with: write values into them \
                 (`load_state_dict` without `assign=True`, `parameter.copy_(values)` under `torch.no_grad()`), or make a new trainer",
                change,
            )),
        }
    }

    /// Whether layers were put into another mode since the last look.
    pub(crate) fn changed_mode(&self) -> Result<bool> {
        let now = Python::attach(|py| modes(self.module.bind(py))).map_err(python_error("the module"))?;
        let mut modes = self.modes.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::replace(&mut *modes, now) != *modes)
    }
}

/// A module's parameters and its buffers, by name: what it is trained and saved by. Buffers of whole numbers are counters of modules
/// that change by being called, such as batch normalisation in training mode, which is refused, or constants, which need no saving.
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

/// For each layer, `true` if it is in training mode; nothing of what isn't a `torch.nn.Module`.
fn modes(module: &Bound<'_, PyAny>) -> PyResult<Vec<bool>> {
    match module.getattr_opt("modules")? {
        None => Ok(Vec::new()),
        Some(modules) => modules.call0()?.try_iter()?.map(mode).collect(),
    }
}
