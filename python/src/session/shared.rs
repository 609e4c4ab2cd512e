//! What Python has of the networks, too, and can change behind the library's back.

use std::sync::Arc;

use gfn::env::Env;
use gfn::nn::Parameters;
use gfn::policy::Policy;
use gfn::{Error, Result};
use tch::{Device, Kind, Tensor};

use crate::policy::{Adopted, Policies};
use crate::tensors;

/// The tensors of a trainer's own network and of prior and teacher, as they were when it was made, and modules of Python among them.
pub(super) struct Shared {
    parameters: Vec<Parameter>,
    modules: Vec<Arc<Adopted>>,
}

struct Parameter {
    name: String,
    tensor: Tensor,
    size: Vec<i64>,
    made: (Kind, Device),
}

impl Shared {
    pub(super) fn of<E: Env>(policies: &Policies<E>) -> Self {
        let all = || [Some(&policies.own), policies.own.prior(), policies.teacher.as_ref()].into_iter().flatten();
        Self {
            parameters: all()
                .flat_map(|policy| named(policy.parameters()))
                .map(|(name, tensor)| Parameter::new(name, tensor))
                .collect(),
            modules: all().filter_map(|policy| policy.module().cloned()).collect(),
        }
    }

    /// Refuses tensors that aren't as they were made, and modules that have others now.
    pub(super) fn check(&self) -> Result<()> {
        self.check_tensors()?;
        self.modules.iter().try_for_each(|module| module.check())
    }

    /// Refuses tensors that aren't as they were made: the library reads their memory.
    pub(super) fn check_tensors(&self) -> Result<()> {
        self.parameters.iter().try_for_each(Parameter::check)
    }

    /// Whether layers were put into another mode (`train`, `eval`) since the last look.
    pub(super) fn changed_mode(&self) -> Result<bool> {
        self.modules.iter().try_fold(false, |changed, module| Ok(module.changed_mode()? || changed))
    }
}

impl Parameter {
    fn new(name: String, tensor: Tensor) -> Self {
        let (size, made) = (tensor.size(), (tensor.kind(), tensor.device()));
        Self { name, tensor, size, made }
    }

    fn check(&self) -> Result<()> {
        let Self { name, tensor, size, made } = self;
        if !tensors::is_whole(tensor) {
            return Err(Error::contract(
                "the storage of a parameter stays as long as the parameter: resize it back, or make a new trainer",
                format!("`{name}` of shape {:?} has a storage that was made shorter", tensor.size()),
            ));
        }
        if (tensor.size(), tensor.kind(), tensor.device()) != (size.clone(), made.0, made.1) {
            return Err(Error::contract(
                "a parameter keeps its shape, its kind and its device: set `data` back, or make a new trainer",
                format!(
                    "`{name}` was {size:?}, {:?} on {:?}, and is {:?}, {:?} on {:?}",
                    made.0,
                    made.1,
                    tensor.size(),
                    tensor.kind(),
                    tensor.device()
                ),
            ));
        }
        Ok(())
    }
}

/// Parameters by name.
pub(super) fn named(parameters: Option<&Parameters>) -> impl Iterator<Item = (String, Tensor)> + '_ {
    let all = parameters.into_iter().flat_map(|parameters| parameters.iter());
    all.map(|parameter| (parameter.name.clone(), parameter.tensor.shallow_clone()))
}
