//! The computation of the gradients of a loss.

use std::sync::OnceLock;

use tch::Tensor;

use super::flushing_denormals;
use crate::Result;

static DIFFERENTIATE: OnceLock<fn(&Tensor) -> Result<()>> = OnceLock::new();

/// Sets the function that computes the gradients of losses in this process, instead of libtorch's own call.
/// Use this function in a program whose hooks and autograd functions are written in another language, because
/// libtorch doesn't pass on the errors of that language. A second call has no effect.
pub fn differentiate_by(function: fn(&Tensor) -> Result<()>) {
    let _ = DIFFERENTIATE.set(function);
}

/// Computes the gradients of a loss, and adds them to the gradients of all tensors on which the loss depends.
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
