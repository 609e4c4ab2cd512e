use std::f64::consts::{LN_2, PI};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tch::{Kind, Tensor};

use super::{LARGEST_ALPHA, Regression, RegressionLoss, differentiate};
use crate::Result;
use crate::error::check_setting;
use crate::objective::as_json;

/// The regression loss of an f-divergence between the policy and the target, as a function of the residual of
/// [`TrajectoryBalance`](crate::objective::TrajectoryBalance) (Fawkes and Hartford, *f-Trajectory Balance*,
/// ICML 2026, arXiv:2605.15417).
///
/// With the policy's probability q and the target's probability p of a trajectory, the residual is `t = log(q
/// / p)`. The divergence is `D(q) = sum p f(q / p)` with a convex generator f and `f(1) = 0`. Its loss is the
/// integral of `f'(exp(s)) - f'(1)` over s from 0 to t. On trajectories of the policy itself, and with the
/// exact log Z, the expected gradient of this loss is the gradient of D. On any other trajectories the loss
/// has the same minimum, at which all residuals are 0.
///
/// A divergence that grows fast for negative residuals (the policy has too little probability) makes an
/// imperfect policy cover all modes of the target. A divergence that grows fast for positive residuals (the
/// policy has too much probability) makes it leave modes out. From the most covering to the most seeking:
/// forward KL, Hellinger, Jensen-Shannon, reverse KL, chi-squared.
///
/// Use it as `TrainerConfig::regression` of trajectory balance, or of
/// [`LogPartitionDeviation`](crate::objective::LogPartitionDeviation), which replaces log Z by the minimizer
/// of the loss. Other objectives accept it, too, but aren't gradients of a divergence of the policy.
///
/// ```
/// use gfn::objective::{FDivergence, RegressionLoss};
/// let t = tch::Tensor::from_slice(&[-2.0f64, 2.0]);
/// let [covering, seeking] = [FDivergence::ForwardKl, FDivergence::ChiSquared].map(|f| f.apply(&t).unwrap());
/// assert!(covering.double_value(&[0]) > covering.double_value(&[1]));
/// assert!(seeking.double_value(&[0]) < seeking.double_value(&[1]));
/// ```
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum FDivergence {
    /// KL(q, p): `f(u) = u log u`. The loss is `t^2 / 2`, the usual loss of trajectory balance.
    ReverseKl,
    /// KL(p, q): `f(u) = -log u`. The loss is `exp(-t) + t - 1`.
    ForwardKl,
    /// The Jensen-Shannon divergence, `KL(p, m) / 2 + KL(q, m) / 2` with `m = (p + q) / 2`. The loss grows
    /// like `t^2 / 4` for negative residuals and like `t log(2) / 2` for positive ones, so that a residual of
    /// any size has a moderate gradient.
    JensenShannon,
    /// The squared Hellinger distance, `sum (sqrt(p) - sqrt(q))^2`. The loss is `t + 2 exp(-t / 2) - 2`.
    Hellinger,
    /// The chi-squared divergence, `sum (q - p)^2 / p`. The loss is `2 (exp(t) - t - 1)`.
    ChiSquared,
    /// The alpha divergence, `f(u) = (u^alpha - 1 - alpha (u - 1)) / (alpha (alpha - 1))`. The loss is that
    /// of [`Regression::Linex`] with `alpha - 1`. It is the forward KL divergence at 0 and the reverse KL
    /// divergence at 1; twice the Hellinger distance at 1/2, and half the chi-squared divergence at 2.
    Alpha {
        /// A number from -19 to 21. The smaller it is, the more the policy covers the target.
        alpha: f64,
    },
}

impl FDivergence {
    /// Returns the loss as a multiple of another loss; `None` for the Jensen-Shannon divergence.
    fn as_multiple(self) -> Option<(f64, Regression)> {
        match self {
            Self::JensenShannon => None,
            Self::ReverseKl => Some((1.0, Regression::HalfSquared)),
            Self::ForwardKl => Some((1.0, Regression::Linex { alpha: -1.0 })),
            Self::Hellinger => Some((0.5, Regression::Linex { alpha: -0.5 })),
            Self::ChiSquared => Some((2.0, Regression::Linex { alpha: 1.0 })),
            Self::Alpha { alpha } => Some((1.0, Regression::Linex { alpha: alpha - 1.0 })),
        }
    }
}

/// The coefficients of u, u^2, u^3, ... in the dilogarithm of `1 - exp(-u)`: Bernoulli numbers divided by
/// factorials. For u up to log 2 the next term is below 1e-16.
const DILOGARITHM: [f64; 15] = [
    1.0,
    -0.25,
    1.0 / 36.0,
    0.0,
    -1.0 / 3_600.0,
    0.0,
    1.0 / 211_680.0,
    0.0,
    -1.0 / 10_886_400.0,
    0.0,
    1.0 / 526_901_760.0,
    0.0,
    -4.064_761_645_144_225_5e-11,
    0.0,
    8.921_691_020_456_452e-13,
];

/// Returns the Jensen-Shannon loss of residuals in double precision: half the integral of `log 2 - log(1 +
/// exp(-s))` over s from 0 to t.
fn jensen_shannon(t: &Tensor) -> Tensor {
    let size = t.abs();
    // The integral of log(1 + exp(-s)) from 0 to |t| is a dilogarithm of -exp(-|t|). By Landen's identity it
    // is a power series in u.
    let u = (-&size).exp().log1p();
    let mut series = u.zeros_like();
    for coefficient in DILOGARITHM.into_iter().rev() {
        series = (series + coefficient) * &u;
    }
    let integral = PI * PI / 12.0 - series - u.square() * 0.5;
    let positive = &size * LN_2 - integral;
    // log(1 + exp(s)) = s + log(1 + exp(-s)) gives the other side.
    let negative = size.square() * 0.5 - &positive;
    positive.where_self(&t.ge(0.0), &negative) * 0.5
}

impl RegressionLoss for FDivergence {
    fn name(&self) -> &str {
        match self {
            Self::ReverseKl => "reverse KL",
            Self::ForwardKl => "forward KL",
            Self::JensenShannon => "Jensen-Shannon",
            Self::Hellinger => "Hellinger",
            Self::ChiSquared => "chi-squared",
            Self::Alpha { .. } => "alpha divergence",
        }
    }

    fn apply(&self, residuals: &Tensor) -> Result<Tensor> {
        match self.as_multiple() {
            Some((1.0, loss)) => loss.apply(residuals),
            Some((factor, loss)) => Ok(loss.apply(residuals)? * factor),
            // In single precision the terms of a small loss would cancel.
            None => Ok(jensen_shannon(&residuals.to_kind(Kind::Double)).to_kind(residuals.kind())),
        }
    }

    fn costs(&self, residuals: &[f64]) -> Result<(Vec<f64>, Vec<f64>)> {
        let Some((factor, loss)) = self.as_multiple() else {
            return differentiate(self, residuals);
        };
        let (mut losses, mut slopes) = loss.costs(residuals)?;
        losses.iter_mut().chain(&mut slopes).for_each(|value| *value *= factor);
        Ok((losses, slopes))
    }

    fn settings(&self) -> Value {
        as_json(self)
    }

    fn check(&self) -> Result<()> {
        let Self::Alpha { alpha } = *self else { return Ok(()) };
        let is_valid = (alpha - 1.0).abs() <= LARGEST_ALPHA;
        check_setting("alpha", alpha, is_valid, "a number from -19 to 21").map(drop)
    }
}
