//! Regression losses: the functions of a residual whose mean is the loss of a balance.

mod divergence;
mod laws;
mod with_regression;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tch::{Kind, Tensor, with_grad};

pub use divergence::FDivergence;
pub use laws::check_regression;
pub use with_regression::WithRegression;

use super::as_json;
use crate::Result;
use crate::error::{check_positive, check_setting};
use crate::tensor::to_host;

/// The loss of a residual: a non-negative, differentiable function that is 0 only at 0.
///
/// The choice of the loss decides which errors an imperfect policy makes (Hu et al., *Beyond Squared Error*,
/// 2024; [`FDivergence`]). The losses of the library are values of [`Regression`]. A custom loss implements
/// `name` and `apply`, and is used through [`Regression::custom`]. A trainer checks each loss by
/// [`check_regression`](crate::contract::check_regression).
///
/// ```
/// use gfn::contract::check_regression;
/// use gfn::objective::{Objective, Regression, RegressionLoss, SubTrajectoryBalance, Weighting};
/// use tch::Tensor;
///
/// #[derive(Debug)]
/// struct LogCosh;
///
/// impl RegressionLoss for LogCosh {
///     fn name(&self) -> &str {
///         "log-cosh"
///     }
///     fn apply(&self, residuals: &Tensor) -> gfn::Result<Tensor> {
///         Ok(residuals.f_cosh()?.f_log()?)
///     }
/// }
///
/// check_regression(&LogCosh)?;
/// let config = gfn::train::TrainerConfig { regression: Regression::custom(LogCosh), ..Default::default() };
/// assert_eq!(config.regression.name(), "log-cosh");
/// # Ok::<(), gfn::Error>(())
/// ```
pub trait RegressionLoss: Send + Sync + std::fmt::Debug {
    /// Returns the name of the loss for messages and checkpoints.
    fn name(&self) -> &str;

    /// Returns the loss of each residual, with gradient, in the shape and the dtype of `residuals`.
    ///
    /// # Errors
    /// The errors of the loss, such as [`Error::Torch`](crate::Error::Torch).
    fn apply(&self, residuals: &Tensor) -> Result<Tensor>;

    /// Returns the loss of each residual, equal to that of [`apply`](Self::apply), and its derivative, in
    /// double precision. Objectives with too many residuals for one tensor call this method. The default
    /// differentiates `apply`.
    ///
    /// # Errors
    /// The errors of the loss.
    fn costs(&self, residuals: &[f64]) -> Result<(Vec<f64>, Vec<f64>)> {
        differentiate(self, residuals)
    }

    /// Returns the settings that distinguish losses with the same name. Checkpoints store these settings, and
    /// a resumed run compares them. The default is null, so a loss with parameters must override this method.
    fn settings(&self) -> Value {
        Value::Null
    }

    /// Checks the settings of the loss. A trainer calls this method when it is built. The default accepts all
    /// settings.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for invalid settings.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// The regression losses that settings can name. The default is [`Squared`](Self::Squared).
///
/// The type is an enum, so that settings can be written and read as JSON. A custom loss is written with its
/// name, but can't be read from JSON.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub enum Regression {
    /// The square of the residual, `t^2`.
    #[default]
    Squared,
    /// Half the square of the residual, `t^2 / 2`.
    HalfSquared,
    /// The shifted cosh loss, `exp(t) + exp(-t) - 2`.
    ShiftedCosh,
    /// The linex loss, `(exp(alpha t) - alpha t - 1) / alpha^2`.
    Linex {
        /// The asymmetry, a number other than 0 from -20 to 20. If `alpha` is positive, a positive residual
        /// costs more than a negative residual of the same size; if `alpha` is negative, a positive residual
        /// costs less.
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
    /// The loss of an f-divergence.
    FDivergence(FDivergence),
    /// A custom loss ([`custom`](Self::custom)).
    #[serde(skip_deserializing)]
    Custom(CustomLoss),
}

/// A custom regression loss. Two custom losses compare equal if their names and settings are equal.
#[derive(Clone, Debug)]
pub struct CustomLoss(Arc<dyn RegressionLoss>);

impl PartialEq for CustomLoss {
    fn eq(&self, other: &Self) -> bool {
        self.0.name() == other.0.name() && self.0.settings() == other.0.settings()
    }
}

impl Serialize for CustomLoss {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map([("name", self.0.name().into()), ("settings", self.0.settings())])
    }
}

/// The absolute value of the `alpha` of a linex loss below which the loss is computed as half the square. The
/// two differ by a relative error of `alpha t / 3`, while the terms of the linex loss would cancel.
const FLAT: f64 = 1e-8;
/// The largest absolute value of the `alpha` of a linex loss: the loss of a residual of 4 is finite in single
/// precision.
const LARGEST_ALPHA: f64 = 20.0;

/// Returns the loss of each residual and its derivative, by differentiating `apply`.
fn differentiate<L: RegressionLoss + ?Sized>(loss: &L, residuals: &[f64]) -> Result<(Vec<f64>, Vec<f64>)> {
    let t = Tensor::from_slice(residuals).set_requires_grad(true);
    let losses = with_grad(|| loss.apply(&t))?;
    let slopes = Tensor::f_run_backward(&[losses.sum(Kind::Double)], &[&t], false, false)?;
    Ok((to_host(&losses), to_host(&slopes[0])))
}

/// Returns the loss and the derivative of each residual.
fn each(residuals: &[f64], cost: impl Fn(f64) -> (f64, f64)) -> (Vec<f64>, Vec<f64>) {
    residuals.iter().map(|&t| cost(t)).unzip()
}

impl Regression {
    /// Returns a custom loss.
    #[must_use]
    pub fn custom(loss: impl RegressionLoss + 'static) -> Self {
        Self::Custom(CustomLoss(Arc::new(loss)))
    }
}

impl RegressionLoss for Regression {
    fn name(&self) -> &str {
        match self {
            Self::Squared => "squared",
            Self::HalfSquared => "half-squared",
            Self::ShiftedCosh => "shifted-cosh",
            Self::Linex { .. } => "linex",
            Self::Huber { .. } => "Huber",
            Self::Absolute => "absolute",
            Self::FDivergence(divergence) => divergence.name(),
            Self::Custom(loss) => loss.0.name(),
        }
    }

    /// ```
    /// use gfn::objective::{Regression, RegressionLoss};
    /// let t = tch::Tensor::from_slice(&[2.0f64]);
    /// assert_eq!(Regression::Squared.apply(&t)?.double_value(&[0]), 4.0);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    fn apply(&self, residuals: &Tensor) -> Result<Tensor> {
        Ok(match *self {
            Self::Squared => residuals.square(),
            Self::HalfSquared => residuals.square() * 0.5,
            // The loss is computed as a square, because for small residuals the terms of `exp(t) + exp(-t) -
            // 2` cancel, which leaves mostly rounding errors in single precision.
            Self::ShiftedCosh => (residuals * 0.5).sinh().square() * 4.0,
            Self::Linex { alpha } if alpha.abs() < FLAT => residuals.square() * 0.5,
            Self::Linex { alpha } => {
                // In single precision the terms of a small loss, and those of its slope, would cancel.
                let scaled = residuals.to_kind(Kind::Double) * alpha;
                ((scaled.expm1() - scaled) / (alpha * alpha)).to_kind(residuals.kind())
            }
            Self::Absolute => residuals.abs(),
            Self::Huber { delta } => {
                let size = residuals.abs();
                let inner = size.clamp_max(delta);
                &inner * (size - &inner * 0.5)
            }
            Self::FDivergence(divergence) => divergence.apply(residuals)?,
            Self::Custom(ref loss) => loss.0.apply(residuals)?,
        })
    }

    fn costs(&self, residuals: &[f64]) -> Result<(Vec<f64>, Vec<f64>)> {
        Ok(match *self {
            Self::Squared => each(residuals, |t| (t * t, 2.0 * t)),
            Self::HalfSquared => each(residuals, |t| (0.5 * t * t, t)),
            Self::ShiftedCosh => each(residuals, |t| (4.0 * (0.5 * t).sinh().powi(2), 2.0 * t.sinh())),
            Self::Linex { alpha } if alpha.abs() < FLAT => return Self::HalfSquared.costs(residuals),
            Self::Linex { alpha } => each(residuals, |t| {
                let scaled = alpha * t;
                let slope = scaled.exp_m1();
                ((slope - scaled) / (alpha * alpha), slope / alpha)
            }),
            Self::Absolute => each(residuals, |t| (t.abs(), if t == 0.0 { 0.0 } else { t.signum() })),
            Self::Huber { delta } => each(residuals, |t| {
                let inner = t.abs().min(delta);
                (inner * (t.abs() - 0.5 * inner), t.clamp(-delta, delta))
            }),
            Self::FDivergence(divergence) => return divergence.costs(residuals),
            Self::Custom(ref loss) => return loss.0.costs(residuals),
        })
    }

    fn settings(&self) -> Value {
        as_json(self)
    }

    /// Checks the parameter of the loss.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for a linex loss whose `alpha` is 0 or not from -20 to 20,
    /// for a Huber loss whose `delta` isn't positive and finite, and for an alpha divergence whose `alpha`
    /// isn't from -19 to 21; the errors of a custom loss.
    fn check(&self) -> Result<()> {
        match self {
            Self::Linex { alpha } => {
                let is_valid = *alpha != 0.0 && alpha.abs() <= LARGEST_ALPHA;
                check_setting("alpha", *alpha, is_valid, "a number other than 0 from -20 to 20").map(drop)
            }
            Self::Huber { delta } => check_positive("delta", *delta).map(drop),
            Self::FDivergence(divergence) => divergence.check(),
            Self::Custom(loss) => loss.0.check(),
            _ => Ok(()),
        }
    }
}

impl From<FDivergence> for Regression {
    fn from(divergence: FDivergence) -> Self {
        Self::FDivergence(divergence)
    }
}
