use std::fmt::Debug;

use tch::Tensor;

use crate::Result;

/// The report of [`Optimizer::step`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StepReport {
    /// The 2-norm of all gradients together, before clipping.
    pub grad_norm: f64,
}

/// Updates parameters from their gradients. [`Adam`](super::Adam) and [`Sgd`](super::Sgd) are two of them; a trainer takes any other
/// by [`Trainer::with_optimizer`](crate::train::Trainer::with_optimizer).
///
/// An optimizer holds the parameters that it was made for (a clone of a [`Parameter`](crate::nn::Parameter) shares its tensor).
pub trait Optimizer: Debug + Send {
    /// A short name, such as `adam`: the section of a checkpoint that holds the state, so that a run doesn't resume with another one.
    fn name(&self) -> &'static str;

    /// Updates every parameter from its gradient, and sets the gradients to zero, also where it fails.
    ///
    /// # Errors
    /// [`Error::NonFiniteGradient`](crate::Error::NonFiniteGradient) for a gradient that isn't finite, and whatever else keeps it from a
    /// sound update. Parameters and state stay as they were.
    fn step(&mut self) -> Result<StepReport>;

    /// Multiplies the learning rates that the optimizer was made with by `factor`, for a schedule. A factor of 1 gives them back.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for a factor that is negative or not finite.
    fn scale_lr(&mut self, factor: f64) -> Result<()>;

    /// All that it needs, with the values of the parameters, to go on bit for bit: named tensors on the host.
    ///
    /// # Errors
    /// [`Error::Torch`](crate::Error::Torch) if a device can't give up its data.
    fn state(&self) -> Result<Vec<(String, Tensor)>>;

    /// Goes on from a state that [`state`](Self::state) gave for the same parameters.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) or [`Error::Shape`](crate::Error::Shape) for another state. Nothing is changed then.
    fn load_state(&mut self, state: &[(String, Tensor)]) -> Result<()>;
}
