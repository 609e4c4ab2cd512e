use gfn::{Error, Result, Rng};
use rand_distr::{Distribution, Gamma};
use serde::{Deserialize, Serialize};

/// The distribution of a trajectory's reward exponent beta (an inverse temperature).
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Temperature {
    /// A constant beta. It isn't encoded for the network.
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
    /// A gamma distribution. Draws are clamped to `most`, both for the reward and for the network.
    Gamma {
        /// The shape parameter.
        shape: f64,
        /// The scale parameter. The mean of the distribution is shape times scale.
        scale: f64,
        /// The largest beta; larger draws are replaced by this number.
        most: f64,
    },
}

impl Temperature {
    /// Returns the smallest and the largest beta.
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

    /// Draws a beta.
    #[must_use]
    pub fn draw(self, rng: &mut Rng) -> f64 {
        match self {
            Self::Constant(beta) => beta,
            Self::Uniform { least, most } => least + (most - least) * rng.uniform(),
            Self::LogUniform { least, most } => {
                // The clamp undoes rounding beyond the range.
                (least.ln() + (most / least).ln() * rng.uniform()).exp().clamp(least, most)
            }
            // Parameters that `range` refuses give the largest beta here.
            Self::Gamma { shape, scale, most } => {
                Gamma::new(shape, scale).map_or(most, |gamma| gamma.sample(rng)).min(most)
            }
        }
    }
}

/// The distribution of a vector that has one entry of 0 or more for each reward. Only the direction of the
/// vector matters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Directions {
    /// A constant vector. It isn't encoded for the network.
    Constant(Vec<f64>),
    /// A uniform distribution over these vectors.
    OneOf(Vec<Vec<f64>>),
    /// A symmetric Dirichlet distribution. The parameter 1 is uniform on the simplex. A smaller parameter
    /// favours the corners of the simplex, and a larger one its middle.
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

    /// Returns `true` if the vector varies, so that the network needs it.
    pub(super) fn varies(&self) -> bool {
        !matches!(self, Self::Constant(_))
    }

    /// Draws a vector of `n` entries. It isn't normalised.
    ///
    /// # Panics
    /// Panics for [`OneOf`](Self::OneOf) without vectors.
    #[must_use]
    pub fn draw(&self, n: usize, rng: &mut Rng) -> Vec<f64> {
        match self {
            Self::Constant(one) => one.clone(),
            Self::OneOf(several) => several[rng.below(several.len())].clone(),
            Self::Dirichlet { concentration } => {
                // Gamma(a) is distributed as Gamma(a + 1) U^(1 / a). The computation uses logarithms, because
                // all entries would underflow for a small concentration.
                let Ok(gamma) = Gamma::new(concentration + 1.0, 1.0) else { return vec![1.0; n] };
                let one = |_| -> f64 { gamma.sample(rng).ln() + (1.0 - rng.uniform()).ln() / concentration };
                let logs: Vec<f64> = (0..n).map(one).collect();
                let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                logs.into_iter().map(|log| (log - largest).exp()).collect()
            }
        }
    }
}
