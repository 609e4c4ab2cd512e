//! Activation functions.

use tch::Tensor;

/// An activation function, applied to each element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// The rectified linear unit, `max(x, 0)`.
    #[default]
    Relu,
    /// The leaky rectified linear unit: `x` for positive `x`, otherwise `0.01 x`.
    LeakyRelu,
    /// The Gaussian error linear unit, `x Phi(x)`, where `Phi` is the exact normal distribution function.
    Gelu,
    /// The sigmoid linear unit, `x sigmoid(x)`.
    Silu,
    /// The hyperbolic tangent.
    Tanh,
    /// The exponential linear unit: `x` for positive `x`, otherwise `exp(x) - 1`.
    Elu,
}

impl Activation {
    /// Returns the activation of each element. The result has the shape, the kind (data type) and the device
    /// of the input.
    pub fn apply(self, x: &Tensor) -> Tensor {
        match self {
            Self::Relu => x.relu(),
            Self::LeakyRelu => x.leaky_relu(),
            Self::Gelu => x.gelu("none"),
            Self::Silu => x.silu(),
            Self::Tanh => x.tanh(),
            Self::Elu => x.elu(),
        }
    }

    /// Replaces each number of a list on the host by its activation.
    pub(in crate::nn) fn apply_on_host(self, x: &mut [f32]) {
        // NaN stays NaN, as in libtorch, because comparisons with NaN are false. So the check before actions
        // are drawn finds NaN.
        match self {
            Self::Relu => x.iter_mut().for_each(|x| *x = if *x < 0.0 { 0.0 } else { *x }),
            Self::LeakyRelu => x.iter_mut().for_each(|x| *x = if *x < 0.0 { 0.01 * *x } else { *x }),
            Self::Silu => x.iter_mut().for_each(|x| *x /= 1.0 + (-*x).exp()),
            Self::Tanh => x.iter_mut().for_each(|x| *x = x.tanh()),
            Self::Elu => x.iter_mut().for_each(|x| *x = if *x < 0.0 { x.exp_m1() } else { *x }),
            // The standard library has no error function, so libtorch computes it.
            Self::Gelu => self.apply(&Tensor::from_slice(x)).copy_data(x, x.len()),
        }
    }
}
