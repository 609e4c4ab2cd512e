//! The way back from a loss into the parameters.

use std::sync::OnceLock;

use tch::Tensor;

use super::flushing_denormals;
use crate::Result;

static BY: OnceLock<fn(&Tensor) -> Result<()>> = OnceLock::new();

/// Differentiates losses by this function from now on, in all of the process, instead of by libtorch's own call: for a program whose hooks
/// and functions of autograd are of another language, whose errors libtorch doesn't hand on. The first one stays.
pub fn differentiate_by(function: fn(&Tensor) -> Result<()>) {
    let _ = BY.set(function);
}

/// Adds the gradients of a sum to what it depends on.
///
/// # Errors
/// [`Error::Torch`](crate::Error::Torch) for what a hook, a network or an objective of somebody else's raises on the way, and whatever a
/// [function in libtorch's place](differentiate_by) says.
pub fn backward(sum: &Tensor) -> Result<()> {
    flushing_denormals(|| match BY.get() {
        Some(function) => function(sum),
        None => Ok(sum.f_backward()?),
    })
}
