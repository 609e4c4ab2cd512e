use tch::{Kind, Tensor};

use super::form::vectors_to_tensor;
use crate::Result;
use crate::env::{Reward, VectorStates};
use crate::tensor::to_host;

/// A reward as a function of a tensor of states, computed on their device.
///
/// A closure `Fn(&Tensor) -> Result<Tensor>` is a `TensorReward`. [`PerTensor`] makes it a
/// [`Reward`](crate::env::Reward).
pub trait TensorReward: Send {
    /// Returns log R of each finished state, `[n]` (f64). `states` is `[n, width]` (i64).
    ///
    /// # Errors
    /// Any error that prevents computing a number for each state.
    fn log_rewards(&self, states: &Tensor) -> Result<Tensor>;
}

impl<F: Fn(&Tensor) -> Result<Tensor> + Send> TensorReward for F {
    fn log_rewards(&self, states: &Tensor) -> Result<Tensor> {
        self(states)
    }
}

/// A reward of vectors that is computed by a [`TensorReward`], on the device of the states in a roll-out on a
/// device and on the host otherwise. The function doesn't get the conditions.
///
/// ```
/// use gfn::env::{PerTensor, Reward, VectorStates};
/// use tch::{Kind, Tensor};
/// let reward = PerTensor(|states: &Tensor| -> gfn::Result<Tensor> {
///     Ok(states.sum_dim_intlist(1, false, Kind::Double))
/// });
/// assert_eq!(reward.log_reward(&VectorStates::from_rows([[1, 2], [0, 0]]), None)?, [3.0, 0.0]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PerTensor<F>(pub F);

impl<F: TensorReward> Reward<VectorStates> for PerTensor<F> {
    fn log_reward(&self, states: &VectorStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
        Ok(to_host(&self.0.log_rewards(&vectors_to_tensor(states))?.to_kind(Kind::Double)))
    }
    fn on_tensors(&self) -> Option<&dyn TensorReward> {
        Some(&self.0)
    }
}
