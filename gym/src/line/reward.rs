use std::f64::consts::TAU;

use gfn::env::{Reals, Reward};
use gfn::tensor::log_sum_exp;
use gfn::{Error, Result};

/// A sum of Gaussian densities, each of weight 1: R(x) = sum_i N(x; mean_i, std_i). Therefore Z is the number
/// of Gaussians.
///
/// ```
/// use gfn_gym::line::LineReward;
/// assert_eq!(LineReward::default().log_z(), 2f64.ln());
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct LineReward {
    modes: Vec<(f64, f64)>,
}

impl LineReward {
    /// Builds a reward from the mean and the standard deviation of each mode.
    ///
    /// # Errors
    /// [`Error::Config`] if there is no mode, for a mean that isn't finite, and for a standard deviation that
    /// isn't positive and finite.
    pub fn new(modes: impl IntoIterator<Item = (f64, f64)>) -> Result<Self> {
        let modes: Vec<_> = modes.into_iter().collect();
        let wrong = modes.iter().find(|(mean, std)| !(mean.is_finite() && std.is_finite() && *std > 0.0));
        let got = match wrong {
            Some((mean, std)) => format!("mean {mean}, standard deviation {std}"),
            None if modes.is_empty() => "none".into(),
            None => return Ok(Self { modes }),
        };
        let expected = "at least one mode, each with a finite mean and a positive, finite standard deviation";
        Err(Error::config("the modes of the line's reward", got, expected))
    }

    /// Returns log Z, the logarithm of the number of modes.
    #[must_use]
    pub fn log_z(&self) -> f64 {
        (self.modes.len() as f64).ln()
    }

    /// Returns log R of the object at position `x`.
    #[must_use]
    pub fn log_density(&self, x: f64) -> f64 {
        let each = |&(mean, std): &(f64, f64)| -0.5 * ((x - mean) / std).powi(2) - (std * TAU.sqrt()).ln();
        log_sum_exp(self.modes.iter().map(each))
    }
}

impl Default for LineReward {
    /// Returns the reward of torchgfn's example, which has modes at 2 and 5 with standard deviations of 0.5.
    fn default() -> Self {
        Self { modes: vec![(2.0, 0.5), (5.0, 0.5)] }
    }
}

impl Reward<Reals> for LineReward {
    fn log_reward(&self, states: &Reals, _: Option<&tch::Tensor>) -> Result<Vec<f64>> {
        Ok(states.rows().map(|state| self.log_density(state[0])).collect())
    }
}
