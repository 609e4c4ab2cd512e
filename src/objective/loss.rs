use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::positive;
use crate::{Error, Result};

/// The loss of a residual: a non-negative function that is 0 only at 0.
///
/// The choice decides the bias of an imperfect policy (Hu et al., *Beyond Squared Error*, 2024).
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub enum RegressionLoss {
    /// `t^2`.
    #[default]
    Squared,
    /// `t^2 / 2`.
    HalfSquared,
    /// `exp(t) + exp(-t) - 2`.
    ShiftedCosh,
    /// `(exp(alpha t) - alpha t - 1) / alpha^2`; `alpha` isn't 0.
    Linex {
        /// If positive, large positive residuals cost most; if negative, large negative ones.
        alpha: f64,
    },
    /// `t^2 / 2` up to `delta`, linear with slope `delta` beyond.
    Huber {
        /// The residual at which it turns linear.
        delta: f64,
    },
    /// `|t|`.
    Absolute,
}

impl RegressionLoss {
    /// Checks the loss's parameter.
    ///
    /// # Errors
    /// [`Error::Config`] for a linex with `alpha` 0 and a Huber loss whose `delta` isn't positive.
    pub fn check(self) -> Result<()> {
        match self {
            Self::Linex { alpha } if alpha == 0.0 || !alpha.is_finite() => {
                Err(Error::config("alpha", alpha, "a number other than 0"))
            }
            Self::Huber { delta } => positive("delta", delta).map(drop),
            _ => Ok(()),
        }
    }

    /// The loss of each residual.
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
            // As a square, because the sum of exponentials cancels in single precision.
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

    /// The loss of one residual and its derivative: the host form of [`apply`](Self::apply), for residuals that are too
    /// many for a tensor.
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
