//! A parameter and its group.

use tch::Tensor;

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
