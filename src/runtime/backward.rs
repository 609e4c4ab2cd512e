//! The computation of the gradients of a loss.

use std::sync::OnceLock;

use tch::Tensor;

use super::flushing_denormals;
use crate::Result;

static DIFFERENTIATE: OnceLock<fn(&Tensor) -> Result<()>> = OnceLock::new();

/// Sets the function that computes the gradients of losses in this process, instead of libtorch's own call.
/// Use it in a program whose hooks and autograd functions are written in another language, because libtorch
/// doesn't pass on the errors of that language. A second call has no effect.
pub fn differentiate_by(function: fn(&Tensor) -> Result<()>) {
    let _ = DIFFERENTIATE.set(function);
}

/// Adds the gradient of a loss with respect to each tensor on which it depends to the gradient of that
/// tensor.
///
/// # Errors
/// [`Error::Torch`](crate::Error::Torch) for an error of a hook, a network or an objective; the errors of a
/// [custom function](differentiate_by).
pub fn backward(loss: &Tensor) -> Result<()> {
    flushing_denormals(|| match DIFFERENTIATE.get() {
        Some(function) => function(loss),
        None => Ok(loss.f_backward()?),
    })
}
