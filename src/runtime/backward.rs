//! The computation of the gradients of a loss.

use std::sync::OnceLock;

use tch::Tensor;

use super::flushing_denormals;
use crate::{Error, Result};

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
/// [`Error::Missing`] for a loss whose scores were differentiated before; [`Error::Torch`] for an error of a
/// hook, a network or an objective; the errors of a [custom function](differentiate_by).
pub fn backward(loss: &Tensor) -> Result<()> {
    flushing_denormals(|| match DIFFERENTIATE.get() {
        Some(function) => function(loss),
        None => loss.f_backward().map_err(explain),
    })
}

/// Says what to do if a loss was differentiated before. Returns any other error unchanged.
fn explain(error: tch::TchError) -> Error {
    if !error.to_string().contains("backward through the graph a second time") {
        return error.into();
    }
    let remedy = "score the batch again before each further update (`Trainer::score`, then `loss` and \
        `apply`), because the first update changed the parameters and freed the graph of these scores";
    Error::missing("the gradient of a loss", "scores that weren't differentiated before", remedy)
}
