//! A parameter and its group.

use tch::Tensor;

use super::Parameters;
use crate::tensor::flat;

/// The group to which a parameter belongs. The group determines the learning rate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Group {
    /// The parameters of a network.
    Network,
    /// The parameters that estimate log Z. The estimate starts far from its final value, so the learning rate
    /// of this group is larger.
    LogZ,
}

/// A named leaf tensor.
#[derive(Debug)]
pub struct Parameter {
    /// The full name of the parameter: the names of the scopes in which it was built and its name in the last
    /// scope, joined by dots, such as `torso.0.weight`.
    pub name: String,
    /// The tensor of values, of any shape. A tensor that doesn't require a gradient, such as a running mean,
    /// is saved but not trained.
    pub tensor: Tensor,
    /// The group of the parameter, which determines its learning rate.
    pub group: Group,
}

impl Parameter {
    /// Sets the gradient of the parameter to zero, if it has a gradient.
    pub(crate) fn clear_gradient(&self) {
        self.tensor.shallow_clone().zero_grad();
    }
}

impl Clone for Parameter {
    /// Returns a parameter with the same name and the same tensor. Values and gradient are shared.
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), tensor: self.tensor.shallow_clone(), group: self.group }
    }
}

impl Parameters {
    /// Sets the gradients of all parameters to zero.
    pub fn clear_gradients(&self) {
        for group in [Group::Network, Group::LogZ] {
            let members = || self.list.iter().filter(|parameter| parameter.group == group);
            let gradients = members().map(|parameter| parameter.tensor.grad());
            // An optimizer moves the gradients on a device into one block, which one operation clears.
            match flat::view(&gradients.filter(Tensor::defined).collect::<Vec<_>>()) {
                Some(mut block) => drop(block.zero_()),
                None => members().for_each(Parameter::clear_gradient),
            }
        }
    }

    /// Returns a list of the parameters for which `keep` returns `true`, to which further parameters can be
    /// added. Both lists share their tensors.
    ///
    /// ```
    /// use gfn::{Rng, nn::{Group, Parameters}};
    /// use tch::{Device, Kind};
    /// let mut all = Parameters::new(Device::Cpu, Kind::Float);
    /// let rng = &mut Rng::seeded(0);
    /// let _ = all.scope(rng).constant("weight", &[2], 1.0);
    /// let _ = all.scope(rng).group(Group::LogZ).constant("log_z", &[1], 0.0);
    /// let mut network = all.share(|parameter| parameter.group == Group::Network);
    /// let _ = network.scope(rng).constant("bias", &[1], 0.0);
    /// assert_eq!((network.count(), all.count()), (3, 3));
    /// ```
    #[must_use]
    pub fn share(&self, keep: impl Fn(&Parameter) -> bool) -> Self {
        let list: Vec<Parameter> = self.list.iter().filter(|parameter| keep(parameter)).cloned().collect();
        let is_kept = |tensor: &&Tensor| list.iter().any(|p| p.tensor.data_ptr() == tensor.data_ptr());
        Self {
            names: list.iter().map(|parameter| parameter.name.clone()).collect(),
            device: self.device,
            kind: self.kind,
            mistake: self.mistake.clone(),
            missing_device: self.missing_device,
            expected: None,
            n_stacked: self.n_stacked,
            noise: self.noise.iter().filter(is_kept).map(Tensor::shallow_clone).collect(),
            log_z_without_initial_value: self
                .log_z_without_initial_value
                .as_ref()
                .filter(is_kept)
                .map(Tensor::shallow_clone),
            list,
        }
    }
}
