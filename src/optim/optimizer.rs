use std::fmt::Debug;

use tch::Tensor;

use crate::Result;

/// The values that [`Optimizer::step`] reports.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StepReport {
    /// The Euclidean norm of all gradients together, before clipping.
    pub grad_norm: f64,
}

/// An optimizer, which updates parameters from their gradients. [`Adam`](super::Adam) and [`Sgd`](super::Sgd)
/// are included; a trainer accepts any other optimizer by
/// [`Trainer::with_optimizer`](crate::train::Trainer::with_optimizer).
///
/// An optimizer holds the parameters that it updates (a clone of a [`Parameter`](crate::nn::Parameter) shares
/// its tensor).
pub trait Optimizer: Debug + Send {
    /// Returns a short name, such as `adam`. The name is also the name of the checkpoint's section that holds
    /// the optimizer's state, so that a run can't resume with another optimizer.
    fn name(&self) -> &'static str;

    /// Updates every parameter from its gradient, and sets the gradients to zero, even after an error.
    ///
    /// # Errors
    /// [`Error::NonFiniteGradient`](crate::Error::NonFiniteGradient) for a gradient that isn't finite, and
    /// any other error that prevents a valid update. If it fails, parameters and state are unchanged.
    fn step(&mut self) -> Result<StepReport>;

    /// Sets the factor by which a schedule multiplies the learning rates of the settings. The new factor
    /// replaces the previous factor; the factor 1 restores the learning rates of the settings.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for a factor that is negative or not finite.
    fn scale_lr(&mut self, factor: f64) -> Result<()>;

    /// Returns the optimizer's state as named tensors on the host. Together with the values of the
    /// parameters, this state must be sufficient to resume bit for bit.
    ///
    /// # Errors
    /// [`Error::Torch`](crate::Error::Torch) if data can't be copied from a device.
    fn state(&self) -> Result<Vec<(String, Tensor)>>;

    /// Restores a state that [`state`](Self::state) returned for the same parameters.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) or [`Error::Shape`](crate::Error::Shape) for a state of
    /// another optimizer or model. If it fails, the optimizer is unchanged.
    fn load_state(&mut self, state: &[(String, Tensor)]) -> Result<()>;
}
