use gfn::{Error, Result, Rng};
use rand_distr::{Distribution, Gamma};
use serde::{Deserialize, Serialize};

/// The distribution of a trajectory's reward exponent beta (an inverse temperature).
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Temperature {
    /// Always this value. It isn't encoded for the network.
    Constant(f64),
    /// Uniform between two numbers.
    Uniform {
        /// The smaller.
        least: f64,
        /// The larger.
        most: f64,
    },
    /// Log-uniform between two numbers.
    LogUniform {
        /// The smaller, above 0.
        least: f64,
        /// The larger.
        most: f64,
    },
    /// Gamma distribution, clamped to `most`, both for the reward and for the network.
    Gamma {
        /// The shape parameter.
        shape: f64,
        /// The scale parameter: the mean is shape times scale.
        scale: f64,
        /// The largest beta; larger draws count as this one.
        most: f64,
    },
}

impl Temperature {
    /// The smallest and the largest beta.
    ///
    /// # Errors
    /// [`Error::Config`] for parameters that don't give a distribution over betas of 0 or more.
    pub fn range(self) -> Result<(f64, f64)> {
        let (least, most, valid) = match self {
            Self::Constant(beta) => (beta, beta, true),
            Self::Uniform { least, most } => (least, most, least < most),
            Self::LogUniform { least, most } => (least, most, 0.0 < least && least < most),
            Self::Gamma { shape, scale, most } => (0.0, most, Gamma::new(shape, scale).is_ok() && most > 0.0),
        };
        if valid && least >= 0.0 && most.is_finite() {
            Ok((least, most))
        } else {
            Err(Error::config(
                "the distribution of the temperature",
                format!("{self:?}"),
                "finite numbers of 0 or more, `least` below `most`; for `LogUniform` and `Gamma` above 0",
            ))
        }
    }

    /// Draws a beta.
    #[must_use]
    pub fn draw(self, rng: &mut Rng) -> f64 {
        match self {
            Self::Constant(beta) => beta,
            Self::Uniform { least, most } => least + (most - least) * rng.uniform(),
            Self::LogUniform { least, most } => {
                // Rounding must not leave the range.
                (least.ln() + (most / least).ln() * rng.uniform()).exp().clamp(least, most)
            }
            // Parameters that `range` refuses give the largest beta.
            Self::Gamma { shape, scale, most } => {
                Gamma::new(shape, scale).map_or(most, |gamma| gamma.sample(rng)).min(most)
            }
        }
    }
}

/// The distribution of a vector with one entry of 0 or more for each reward. Only its direction counts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Directions {
    /// Always this vector. It isn't encoded for the network.
    Constant(Vec<f64>),
    /// Uniform over these vectors.
    OneOf(Vec<Vec<f64>>),
    /// Symmetric Dirichlet: 1 is uniform on the simplex, a smaller parameter favours its corners, a larger one its
    /// middle.
    Dirichlet {
        /// The parameter of every entry.
        concentration: f64,
    },
}

impl Directions {
    pub(super) fn check(&self, n: usize) -> Result<()> {
        let vector =
            |v: &Vec<f64>| v.len() == n && v.iter().all(|x| *x >= 0.0 && x.is_finite()) && v.iter().any(|x| *x > 0.0);
        let valid = match self {
            Self::Constant(one) => vector(one),
            Self::OneOf(several) => !several.is_empty() && several.iter().all(vector),
            Self::Dirichlet { concentration } => *concentration > 0.0 && concentration.is_finite(),
        };
        if valid {
            Ok(())
        } else {
            Err(Error::config(
                "the distribution of preferences or directions",
                format!("{self:?} for {n} rewards"),
                "vectors of a finite number of 0 or more for each reward, not all 0; a concentration above 0",
            ))
        }
    }

    /// Returns `true` if the vector varies, so that the network needs it.
    pub(super) fn varies(&self) -> bool {
        !matches!(self, Self::Constant(_))
    }

    /// Draws a vector of `n` entries, not normalised.
    ///
    /// # Panics
    /// For [`OneOf`](Self::OneOf) of no vectors.
    #[must_use]
    pub fn draw(&self, n: usize, rng: &mut Rng) -> Vec<f64> {
        match self {
            Self::Constant(one) => one.clone(),
            Self::OneOf(several) => several[rng.below(several.len())].clone(),
            Self::Dirichlet { concentration } => {
                // Gamma(a) is distributed as Gamma(a + 1) U^(1 / a). In logs, because for a small concentration all
                // entries would underflow.
                let Ok(gamma) = Gamma::new(concentration + 1.0, 1.0) else { return vec![1.0; n] };
                let one = |_| -> f64 { gamma.sample(rng).ln() + (1.0 - rng.uniform()).ln() / concentration };
                let logs: Vec<f64> = (0..n).map(one).collect();
                let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                logs.into_iter().map(|log| (log - largest).exp()).collect()
            }
        }
    }
}
