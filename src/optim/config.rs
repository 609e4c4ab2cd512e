//! The settings of optimizers, and checks of these settings.

use crate::error::check_setting;
use crate::nn::Parameters;
use crate::{Error, Result};

/// The settings of [`Adam`](super::Adam).
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub struct AdamConfig {
    /// The learning rate of the parameters in [`Group::Network`](crate::nn::Group::Network); 0 freezes them.
    pub lr: f64,
    /// The learning rate of the parameters in [`Group::LogZ`](crate::nn::Group::LogZ).
    pub log_z_lr: f64,
    /// The factor by which each step multiplies the first moment (the mean of gradients), at least 0 and
    /// below 1.
    pub beta1: f64,
    /// The factor by which each step multiplies the second moment (the mean of squared gradients), at least 0
    /// and below 1.
    pub beta2: f64,
    /// The number that is added to the square root of the second moment, at least `sqrt(1.2e-38 / (1 -
    /// beta2))`.
    pub eps: f64,
    /// The decoupled weight decay (AdamW). Weight decay is applied only to
    /// [`Group::Network`](crate::nn::Group::Network), because log Z is an estimate that shouldn't shrink.
    pub weight_decay: f64,
    /// The largest Euclidean norm of all gradients together. Gradients with a larger norm are scaled down to
    /// this norm. `None` disables clipping.
    pub max_norm: Option<f64>,
}

impl Default for AdamConfig {
    /// Returns the defaults: learning rates 1e-3 and 1e-1, betas 0.9 and 0.999, eps 1e-8, no weight decay, no
    /// clipping.
    fn default() -> Self {
        Self {
            lr: 1e-3,
            log_z_lr: 1e-1,
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-8,
            weight_decay: 0.0,
            max_norm: None,
        }
    }
}

impl AdamConfig {
    /// Checks that each setting is in its range.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for the first invalid setting.
    pub(super) fn check(&self) -> Result<()> {
        // A smaller `eps` would be unsafe. The weighted square of a gradient may underflow in f32 although
        // the gradient doesn't. The update is divided by the sum of `eps` and the square root of this
        // weighted square, so it could then be arbitrarily large.
        let least = (f64::from(f32::MIN_POSITIVE) / (1.0 - self.beta2)).sqrt();
        let eps =
            "a finite number of at least sqrt(1.2e-38 / (1 - beta2)), which is 3.5e-18 if beta2 is 0.999";
        check_rate("lr", self.lr)?;
        check_rate("log_z_lr", self.log_z_lr)?;
        check_setting("beta1", self.beta1, is_decay(self.beta1), "0 <= beta1 < 1")?;
        check_setting("beta2", self.beta2, is_decay(self.beta2), "0 <= beta2 < 1")?;
        check_setting("eps", self.eps, self.eps.is_finite() && self.eps >= least, eps)?;
        check_rate("weight_decay", self.weight_decay)?;
        check_norm(self.max_norm)
    }
}

/// Checks that a learning rate or a weight decay is finite and not negative.
pub(super) fn check_rate(setting: &'static str, value: f64) -> Result<f64> {
    check_setting(setting, value, is_rate(value), "a finite number of at least 0")
}

/// Checks that the limit on the norm of the gradients is finite and above 0.
pub(super) fn check_norm(max_norm: Option<f64>) -> Result<()> {
    let max = max_norm.unwrap_or(1.0);
    check_setting("max_norm", max, max.is_finite() && max > 0.0, "a finite number above 0").map(drop)
}

/// Checks that gradients aren't clipped by the norm of all of them if the parameters are those of several
/// policies.
pub(super) fn check_stacked(parameters: &Parameters, max_norm: Option<f64>) -> Result<()> {
    let Some(max) = max_norm.filter(|_| parameters.n_stacked().is_some()) else { return Ok(()) };
    let expected = "`None` for a policy of several seeds, because the norm of all gradients would make the \
        update of a seed depend on the other seeds";
    Err(Error::config("max_norm", max, expected))
}

pub(super) fn is_rate(x: f64) -> bool {
    x.is_finite() && x >= 0.0
}

/// Returns `true` if a number is valid as the factor by which each step multiplies a moment.
pub(super) fn is_decay(x: f64) -> bool {
    (0.0..1.0).contains(&x)
}
