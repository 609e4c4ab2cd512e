use serde::{Deserialize, Serialize};

use crate::Result;
use crate::error::{check_positive, check_setting};

/// Changes to the policy for sampling actions. The objective still uses the probabilities of the unchanged
/// policy.
///
/// Actions are sampled from the distribution
/// `(1 - epsilon) softmax((logits + exit_bias on the exit slot) / temperature) + epsilon uniform(legal)`.
/// Exploration changes which trajectories the objective trains on, but not the optimum of the objective,
/// because the balance objectives are off-policy.
///
/// Gaussian steps of continuous environments use `noise`: the square of `noise` is added to the variance of a
/// step. A distribution that doesn't support a setting returns an error when actions are sampled: discrete
/// distributions and Beta distributions on a box refuse noise, and Gaussian steps of a diffusion refuse
/// epsilon. On the real line there is no uniform distribution, so a share `epsilon` of the actions is sampled
/// from a wide distribution instead.
///
/// ```
/// use gfn::distribution::Exploration;
/// let exploration = Exploration::epsilon(0.1)?;
/// assert_eq!(exploration.temperature(), 1.0);
/// assert!(Exploration::epsilon(1.5).is_err());
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Exploration {
    epsilon: f64,
    temperature: f64,
    exit_bias: f64,
    #[serde(default)]
    noise: f64,
}

impl Default for Exploration {
    fn default() -> Self {
        Self::on_policy()
    }
}

impl Exploration {
    /// Returns the settings without exploration, with which actions are sampled from the policy itself. These
    /// settings are the default.
    #[must_use]
    pub const fn on_policy() -> Self {
        Self { epsilon: 0.0, temperature: 1.0, exit_bias: 0.0, noise: 0.0 }
    }

    /// Creates settings with which a uniform legal action is sampled with probability `epsilon`. Nothing else
    /// is changed.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if `epsilon` is outside `[0, 1]`.
    pub fn epsilon(epsilon: f64) -> Result<Self> {
        let is_valid = (0.0..=1.0).contains(&epsilon);
        let epsilon = check_setting("epsilon", epsilon, is_valid, "a probability between 0 and 1")?;
        Ok(Self { epsilon, ..Self::on_policy() })
    }

    /// Sets the temperature, the number by which logits are divided. The default is 1.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) unless `temperature` is positive and finite.
    pub fn with_temperature(self, temperature: f64) -> Result<Self> {
        Ok(Self { temperature: check_positive("temperature", temperature)?, ..self })
    }

    /// Sets the number that is added to the logit of the exit action. A negative number makes trajectories
    /// longer. The default is 0.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) unless `exit_bias` is finite.
    pub fn with_exit_bias(self, exit_bias: f64) -> Result<Self> {
        let exit_bias = check_setting("exit_bias", exit_bias, exit_bias.is_finite(), "a finite number")?;
        Ok(Self { exit_bias, ..self })
    }

    /// Sets the noise of Gaussian steps: the variance of a step grows by the square of this standard
    /// deviation. The default is 0.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) unless `noise` is finite and not negative.
    pub fn with_noise(self, noise: f64) -> Result<Self> {
        let is_valid = noise >= 0.0 && noise.is_finite();
        let noise = check_setting("noise", noise, is_valid, "a standard deviation of at least 0")?;
        Ok(Self { noise, ..self })
    }

    /// Returns the probability with which a uniform action is sampled.
    #[must_use]
    pub fn epsilon_value(&self) -> f64 {
        self.epsilon
    }

    /// Returns the temperature, the number by which logits are divided.
    #[must_use]
    pub fn temperature(&self) -> f64 {
        self.temperature
    }

    /// Returns the noise of Gaussian steps: the variance of a step grows by the square of this standard
    /// deviation.
    #[must_use]
    pub fn noise(&self) -> f64 {
        self.noise
    }

    /// Returns the number that is added to the logit of the exit action.
    #[must_use]
    pub fn exit_bias(&self) -> f64 {
        self.exit_bias
    }
}
