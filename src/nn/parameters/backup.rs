//! A guard that restores the values of tensors.

use tch::{Tensor, no_grad};

/// A guard that restores the values of tensors when it is dropped, also after an error or a panic.
///
/// The field holds each tensor with a copy of its values.
pub(crate) struct ParameterBackup(Vec<(Tensor, Tensor)>);

impl ParameterBackup {
    /// Creates a guard that will restore the current values of these tensors.
    pub(crate) fn keep<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> Self {
        let copies = tensors.into_iter().map(|tensor| (tensor.shallow_clone(), tensor.detach().copy()));
        Self(copies.collect())
    }
}

impl Drop for ParameterBackup {
    fn drop(&mut self) {
        no_grad(|| self.0.iter_mut().for_each(|(tensor, value)| tensor.copy_(value)));
    }
}
