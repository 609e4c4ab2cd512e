//! Activation functions.

use tch::Tensor;

/// A non-linearity, applied to each element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// `max(x, 0)`.
    #[default]
    Relu,
    /// `x` above 0, `0.01 x` below.
    LeakyRelu,
    /// `x Phi(x)`, with the exact normal distribution function.
    Gelu,
    /// `x sigmoid(x)`.
    Silu,
    /// Hyperbolic tangent.
    Tanh,
    /// `x` above 0, `exp(x) - 1` below.
    Elu,
}

impl Activation {
    /// The activation of each element: same shape, kind and device.
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

    /// The activation on host numbers; `None` if it has no simple form without tensors.
    pub(in crate::nn) fn on_host(self) -> Option<fn(&mut [f32])> {
        // Comparisons let NaN through, as libtorch does; the check before drawing finds it.
        match self {
            Self::Relu => Some(|x| x.iter_mut().for_each(|x| *x = if *x < 0.0 { 0.0 } else { *x })),
            Self::LeakyRelu => Some(|x| x.iter_mut().for_each(|x| *x = if *x < 0.0 { 0.01 * *x } else { *x })),
            Self::Silu => Some(|x| x.iter_mut().for_each(|x| *x /= 1.0 + (-*x).exp())),
            Self::Tanh => Some(|x| x.iter_mut().for_each(|x| *x = x.tanh())),
            Self::Elu => Some(|x| x.iter_mut().for_each(|x| *x = if *x < 0.0 { x.exp_m1() } else { *x })),
            Self::Gelu => None,
        }
    }
}
