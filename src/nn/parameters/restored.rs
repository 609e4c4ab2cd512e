//! A guard that restores values.

use tch::{Tensor, no_grad};

/// Restores the values of tensors when it is dropped, also after an error or a panic.
pub(crate) struct Restored(Vec<(Tensor, Tensor)>);

impl Restored {
    /// Keeps a copy of the values.
    pub(crate) fn keep<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> Self {
        let kept = tensors.into_iter().map(|tensor| (tensor.shallow_clone(), tensor.detach().copy()));
        Self(kept.collect())
    }

    /// Leaves them as they are now.
    pub(crate) fn leave(mut self) {
        self.0.clear();
    }
}

impl Drop for Restored {
    fn drop(&mut self) {
        no_grad(|| self.0.iter_mut().for_each(|(tensor, value)| tensor.copy_(value)));
    }
}
