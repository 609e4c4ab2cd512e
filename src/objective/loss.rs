use serde::{Deserialize, Serialize};
use tch::Tensor;

use crate::Result;
use crate::error::{check_positive, check_setting};

/// The loss of a residual: a non-negative function that is 0 only at 0.
///
/// The choice of the loss decides which errors an imperfect policy makes (Hu et al., *Beyond Squared Error*,
/// 2024). The default is [`Squared`](Self::Squared).
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub enum RegressionLoss {
    /// The square of the residual, `t^2`.
    #[default]
    Squared,
    /// Half the square of the residual, `t^2 / 2`.
    HalfSquared,
    /// The shifted cosh loss, `exp(t) + exp(-t) - 2`.
    ShiftedCosh,
    /// The linex loss, `(exp(alpha t) - alpha t - 1) / alpha^2`.
    Linex {
        /// The asymmetry, a finite number other than 0. If `alpha` is positive, a positive residual costs
        /// more than a negative residual of the same size; if `alpha` is negative, a positive residual costs
        /// less.
        alpha: f64,
    },
    /// The Huber loss: `t^2 / 2` if the absolute value of the residual is at most `delta`, otherwise linear
    /// with slope `delta`.
    Huber {
        /// The absolute value of the residual at which the loss becomes linear. `delta` must be positive and
        /// finite.
        delta: f64,
    },
    /// The absolute value of the residual, `|t|`.
    Absolute,
}

impl RegressionLoss {
    /// Checks the parameter of the loss.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for a linex loss whose `alpha` is 0 or not finite, and for a
    /// Huber loss whose `delta` isn't positive and finite.
    pub fn check(self) -> Result<()> {
        match self {
            Self::Linex { alpha } => {
                check_setting("alpha", alpha, alpha != 0.0 && alpha.is_finite(), "a number other than 0")?
            }
            Self::Huber { delta } => check_positive("delta", delta)?,
            _ => 0.0,
        };
        Ok(())
    }

    /// Returns the loss of each residual, in the shape of `residuals`, with gradient.
    ///
    /// ```
    /// use gfn::objective::RegressionLoss;
    /// let t = tch::Tensor::from_slice(&[2.0f64]);
    /// assert_eq!(RegressionLoss::Squared.apply(&t).double_value(&[0]), 4.0);
    /// ```
    pub fn apply(self, residuals: &Tensor) -> Tensor {
        match self {
            Self::Squared => residuals.square(),
            Self::HalfSquared => residuals.square() * 0.5,
            // The loss is computed as a square, because for small residuals the terms of `exp(t) + exp(-t) -
            // 2` cancel, which leaves mostly rounding errors in single precision.
            Self::ShiftedCosh => (residuals * 0.5).sinh().square() * 4.0,
            Self::Linex { alpha } => {
                let scaled = residuals * alpha;
                (scaled.expm1() - scaled) / (alpha * alpha)
            }
            Self::Absolute => residuals.abs(),
            Self::Huber { delta } => {
                let size = residuals.abs();
                let inner = size.clamp_max(delta);
                &inner * (size - &inner * 0.5)
            }
        }
    }

    /// Returns the loss of one residual and its derivative. The loss is the same as that of
    /// [`apply`](Self::apply). This function is for objectives with too many residuals for a tensor.
    pub(super) fn cost(self, t: f64) -> (f64, f64) {
        match self {
            Self::Squared => (t * t, 2.0 * t),
            Self::HalfSquared => (0.5 * t * t, t),
            Self::ShiftedCosh => (4.0 * (0.5 * t).sinh().powi(2), 2.0 * t.sinh()),
            Self::Linex { alpha } => {
                let scaled = alpha * t;
                let slope = scaled.exp_m1();
                ((slope - scaled) / (alpha * alpha), slope / alpha)
            }
            Self::Absolute if t == 0.0 => (0.0, 0.0),
            Self::Absolute => (t.abs(), t.signum()),
            Self::Huber { delta } => {
                let inner = t.abs().min(delta);
                (inner * (t.abs() - 0.5 * inner), t.clamp(-delta, delta))
            }
        }
    }
}
