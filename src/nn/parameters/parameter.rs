//! One parameter.

use tch::Tensor;

/// The group of a parameter, which decides its learning rate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Group {
    /// Weights of a network.
    Network,
    /// The estimate of log Z. It starts far from its final value and takes a larger learning rate.
    LogZ,
}

/// A named leaf tensor.
#[derive(Debug)]
pub struct Parameter {
    /// Its name: the scopes it was built in, joined by dots, such as `torso.0.weight`.
    pub name: String,
    /// The tensor, of any shape. One that doesn't require a gradient (a running mean) is saved but not
    /// trained.
    pub tensor: Tensor,
    /// The group, whose learning rate applies to it.
    pub group: Group,
}

impl Parameter {
    /// Sets the gradient to zero, if there is one.
    pub(crate) fn clear_gradient(&self) {
        self.tensor.shallow_clone().zero_grad();
    }
}

impl Clone for Parameter {
    /// The same tensor under the same name; values and gradient are shared.
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), tensor: self.tensor.shallow_clone(), group: self.group }
    }
}
