//! Checks of the networks that Python shares with a trainer. Python code can change these networks at any
//! time.

use std::sync::Arc;

use gfn::nn::Parameters;
use gfn::policy::Policy;
use gfn::{Error, Result};
use tch::{Device, Kind, Tensor};

use crate::kinds::PyEnv;
use crate::policy::{BuiltPolicy, PolicyModule};
use crate::tensors;

/// The tensors of a trainer's policy, prior and teacher, as they were when the trainer was built, and the
/// Python modules in these networks.
#[derive(Default)]
pub(super) struct SharedState {
    parameters: Vec<Parameter>,
    modules: Vec<Arc<PolicyModule>>,
}

struct Parameter {
    name: String,
    tensor: Tensor,
    size: Vec<i64>,
    kind: Kind,
    device: Device,
}

impl SharedState {
    pub(super) fn add<E: PyEnv>(&mut self, built: &BuiltPolicy<E>) {
        for (name, tensor) in named_parameters(built.policy.parameters()) {
            let size = tensor.size();
            let kind = tensor.kind();
            let device = tensor.device();
            self.parameters.push(Parameter { name, tensor, size, kind, device });
        }
        self.modules.extend(built.modules.iter().cloned());
    }

    /// Returns an error if a tensor's shape, dtype or device has changed since the trainer was built, or if a
    /// module has other tensors than at that time.
    pub(super) fn check(&self) -> Result<()> {
        self.check_tensors()?;
        self.modules.iter().try_for_each(|module| module.check())
    }

    /// Returns an error if a tensor's shape, dtype or device has changed since the trainer was built. It
    /// would be unsafe to use such a tensor, because the library reads the tensor's memory.
    pub(super) fn check_tensors(&self) -> Result<()> {
        self.parameters.iter().try_for_each(Parameter::check)
    }

    /// Returns `true` if a layer was switched between training and evaluation mode since the last call.
    pub(super) fn changed_mode(&self) -> Result<bool> {
        let mut has_changed = false;
        for module in &self.modules {
            has_changed |= module.changed_mode()?;
        }
        Ok(has_changed)
    }
}

impl Parameter {
    fn check(&self) -> Result<()> {
        let Self { name, tensor, size, kind, device } = self;
        if !tensors::is_whole(tensor) {
            return Err(Error::contract(
                "the storage of a parameter must keep its size; restore its size, or make a new trainer",
                format!(
                    "the storage of `{name}`, of shape {:?}, is shorter than the parameter",
                    tensor.size()
                ),
            ));
        }
        let new_size = tensor.size();
        let new_kind = tensor.kind();
        let new_device = tensor.device();
        if (&new_size, new_kind, new_device) != (size, *kind, *device) {
            return Err(Error::contract(
                "a parameter must keep its shape, dtype and device; restore its `data`, or make a new \
                 trainer",
                format!(
                    "`{name}` had shape {size:?} and dtype {kind:?} on {device:?}, and has shape \
                     {new_size:?} and dtype {new_kind:?} on {new_device:?}"
                ),
            ));
        }
        Ok(())
    }
}

/// Lists the names and tensors of parameters.
pub(super) fn named_parameters(
    parameters: Option<&Parameters>,
) -> impl Iterator<Item = (String, Tensor)> + '_ {
    let all = parameters.into_iter().flat_map(|parameters| parameters.iter());
    all.map(|parameter| (parameter.name.clone(), parameter.tensor.shallow_clone()))
}
