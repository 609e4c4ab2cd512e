use gfn::{Error, Result, Rng};
use rand_distr::{Distribution, Gamma};
use serde::{Deserialize, Serialize};

/// The distribution of the reward exponent beta (an inverse temperature). Beta is drawn for each
/// trajectory.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Temperature {
    /// A constant beta, which isn't encoded for the network.
    Constant(f64),
    /// A uniform distribution between two numbers.
    Uniform {
        /// The lower end of the range.
        least: f64,
        /// The upper end of the range.
        most: f64,
    },
    /// A log-uniform distribution between two numbers.
    LogUniform {
        /// The lower end of the range, above 0.
        least: f64,
        /// The upper end of the range.
        most: f64,
    },
    /// A gamma distribution. A draw above `most` is replaced by `most`, both in the reward and in the
    /// network's input.
    Gamma {
        /// The shape parameter of the gamma distribution.
        shape: f64,
        /// The scale parameter of the gamma distribution. The mean of the distribution is shape times
        /// scale.
        scale: f64,
        /// The largest beta; larger draws are replaced by this number.
        most: f64,
    },
}

impl Temperature {
    /// Returns the smallest and the largest beta of this distribution.
    ///
    /// # Errors
    /// [`Error::Config`] for parameters that don't define a distribution over numbers of 0 or more.
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
                "finite numbers of at least 0, with `least` below `most`; for `LogUniform` and `Gamma`, \
                 numbers above 0",
            ))
        }
    }

    /// Draws a beta from this distribution.
    #[must_use]
    pub fn draw(self, rng: &mut Rng) -> f64 {
        match self {
            Self::Constant(beta) => beta,
            Self::Uniform { least, most } => least + (most - least) * rng.uniform(),
            Self::LogUniform { least, most } => {
                // Rounding may move the result slightly out of the range, so it is clamped.
                (least.ln() + (most / least).ln() * rng.uniform()).exp().clamp(least, most)
            }
            // The fallback applies to invalid parameters, for which `range` returns an error.
            Self::Gamma { shape, scale, most } => {
                Gamma::new(shape, scale).map_or(most, |gamma| gamma.sample(rng)).min(most)
            }
        }
    }
}

/// The distribution of a vector that has one entry of 0 or more for each reward. Only the direction of the
/// vector matters, not its length.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Directions {
    /// A constant vector, which isn't encoded for the network.
    Constant(Vec<f64>),
    /// A uniform distribution over a list of vectors.
    OneOf(Vec<Vec<f64>>),
    /// A symmetric Dirichlet distribution, which is uniform on the simplex if the parameter is 1. A smaller
    /// parameter favours the corners of the simplex, and a larger parameter favours the middle.
    Dirichlet {
        /// The parameter of the distribution, which is the same for every entry.
        concentration: f64,
    },
}

impl Directions {
    pub(super) fn check(&self, n: usize) -> Result<()> {
        let vector = |v: &Vec<f64>| {
            v.len() == n && v.iter().all(|x| *x >= 0.0 && x.is_finite()) && v.iter().any(|x| *x > 0.0)
        };
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
                "vectors with one finite number of at least 0 for each reward, not all of them 0, and a \
                 concentration above 0",
            ))
        }
    }

    /// Returns `true` if the distribution isn't constant. The network then needs the vector as an input.
    pub(super) fn varies(&self) -> bool {
        !matches!(self, Self::Constant(_))
    }

    /// Draws a vector of `n` entries, which isn't normalised.
    ///
    /// # Panics
    /// Panics for [`OneOf`](Self::OneOf) without vectors.
    #[must_use]
    pub fn draw(&self, n: usize, rng: &mut Rng) -> Vec<f64> {
        match self {
            Self::Constant(one) => one.clone(),
            Self::OneOf(several) => several[rng.below(several.len())].clone(),
            Self::Dirichlet { concentration } => {
                // A Gamma(a) variable has the same distribution as the product of a Gamma(a + 1) variable
                // and U^(1 / a), where U is uniform. The computation uses logarithms, because all entries
                // would underflow for a small concentration.
                let Ok(gamma) = Gamma::new(concentration + 1.0, 1.0) else { return vec![1.0; n] };
                let one = |_| -> f64 { gamma.sample(rng).ln() + (1.0 - rng.uniform()).ln() / concentration };
                let logs: Vec<f64> = (0..n).map(one).collect();
                let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                logs.into_iter().map(|log| (log - largest).exp()).collect()
            }
        }
    }
}
