//! The parameters of several policies, stacked.

use tch::{Tensor, no_grad};

use super::Parameters;
use crate::nn::Group;
use crate::{Error, Result};

impl Parameters {
    /// Stacks the parameters of policies that were built alike: each parameter is `[policies, ...]`, under
    /// the name that it has in each policy.
    ///
    /// # Errors
    /// [`Error::Config`] if there is no policy, and for policies that were built with mistakes or that have
    /// different parameters.
    pub(crate) fn stack(policies: &[Self]) -> Result<Self> {
        let Some(first) = policies.first() else {
            return Err(Error::config("the seeds of a stacked policy", 0, "at least one seed"));
        };
        let mut stacked = Self::new(first.device, first.kind);
        stacked.n_stacked = Some(policies.len());
        for parameter in first {
            let mut tensors = Vec::new();
            for policy in policies {
                policy.check()?;
                tensors.extend(policy.iter().filter(|p| p.name == parameter.name).map(|p| &p.tensor));
            }
            let has_all = tensors.len() == policies.len();
            if !has_all || tensors.iter().any(|tensor| tensor.size() != parameter.tensor.size()) {
                let expected = "a parameter that all policies have, in one shape";
                return Err(Error::config("a stacked parameter", &parameter.name, expected));
            }
            let tensor = no_grad(|| Tensor::stack(&tensors, 0)).set_requires_grad(true);
            if parameter.group == Group::LogZ && first.log_z_without_initial_value.is_some() {
                stacked.log_z_without_initial_value = Some(tensor.shallow_clone());
            }
            stacked.push(parameter.name.clone(), tensor, parameter.group);
        }
        Ok(stacked)
    }

    /// Returns the number of policies whose parameters are stacked in these parameters; `None` for the
    /// parameters of a single policy.
    pub(crate) fn n_stacked(&self) -> Option<usize> {
        self.n_stacked
    }
}
