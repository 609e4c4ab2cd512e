//! A parameter and its group.

use tch::Tensor;

/// The group of a parameter, which decides its learning rate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Group {
    /// Weights of a network.
    Network,
    /// The estimate of log Z. It starts far from its final value, so its learning rate is larger.
    LogZ,
}

/// A named leaf tensor.
#[derive(Debug)]
pub struct Parameter {
    /// The name: the scopes in which it was built and its own name, joined by dots, such as `torso.0.weight`.
    pub name: String,
    /// The tensor, of any shape. A tensor that doesn't require a gradient, such as a running mean, is saved
    /// but not trained.
    pub tensor: Tensor,
    /// The group, which decides the learning rate.
    pub group: Group,
}

impl Parameter {
    /// Sets the gradient to zero, if there is one.
    pub(crate) fn clear_gradient(&self) {
        self.tensor.shallow_clone().zero_grad();
    }
}

impl Clone for Parameter {
    /// Returns the same tensor under the same name. Values and gradient are shared.
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), tensor: self.tensor.shallow_clone(), group: self.group }
    }
}
