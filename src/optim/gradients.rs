//! What optimizers have in common: the gradients of their parameters, and the norm of all of them together.

use tch::{Kind, Tensor};

use super::update::sum_of_squares;
use crate::nn::Parameter;
use crate::tensor::slices;
use crate::{Error, Result};

/// A sparse gradient (an embedding's) with its duplicates summed; any other as it is.
pub(super) fn dense(grad: &Tensor) -> Result<Tensor> {
    if grad.is_sparse() { Ok(grad.f_to_dense(None, false)?) } else { Ok(grad.shallow_clone()) }
}

/// The gradient to apply to a parameter; `None` if it is to be left alone. One that was `moved` before counts as having a zero
/// gradient where there is none.
pub(super) fn gradient(parameter: &Parameter, moved: bool) -> Option<Tensor> {
    let tensor = &parameter.tensor;
    if !tensor.requires_grad() {
        return None;
    }
    let grad = tensor.grad();
    if grad.defined() { Some(grad) } else { moved.then(|| tensor.zeros_like()) }
}

/// The norm of all gradients together; those of `parameters`, one by one.
///
/// # Errors
/// [`Error::NonFiniteGradient`] for the first one that isn't finite.
pub(super) fn norm<'a>(parameters: impl Iterator<Item = &'a Parameter>, grads: &[Option<Tensor>]) -> Result<f64> {
    let mut squares = vec![0.0; grads.len()];
    // Sums made on a device are fetched together: one wait for all of them.
    let (mut rows, mut pending) = (Vec::new(), Vec::new());
    for (row, grad) in grads.iter().enumerate() {
        let Some(grad) = grad else { continue };
        match slices::read(grad, sum_of_squares) {
            Some(square) => squares[row] = square,
            None => {
                rows.push(row);
                let grad = dense(grad)?.f_to_kind(Kind::Double)?;
                pending.push(grad.f_square()?.f_sum(Kind::Double)?);
            }
        }
    }
    if !pending.is_empty() {
        let fetched = Vec::<f64>::try_from(Tensor::f_stack(&pending, 0)?)?;
        for (row, square) in rows.into_iter().zip(fetched) {
            squares[row] = square;
        }
    }
    let bad = parameters.zip(&squares).find(|(_, square)| !square.is_finite());
    match bad {
        Some((parameter, square)) => {
            Err(Error::NonFiniteGradient { parameter: parameter.name.clone(), value: square.sqrt() })
        }
        None => Ok(squares.iter().sum::<f64>().sqrt()),
    }
}
