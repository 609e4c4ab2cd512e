use rand_distr::{Distribution, Gamma};
use serde::{Deserialize, Serialize};

use crate::{Error, Result, Rng};

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

    pub(super) fn draw(self, rng: &mut Rng) -> f64 {
        match self {
            Self::Constant(beta) => beta,
            Self::Uniform { least, most } => least + (most - least) * rng.uniform(),
            Self::LogUniform { least, most } => {
                // Rounding must not leave the range.
                (least.ln() + (most / least).ln() * rng.uniform()).exp().clamp(least, most)
            }
            // The parameters were checked when the distribution was set.
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
    /// One of these vectors, each with equal probability.
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

    /// Whether the vector varies, so that the network needs it.
    pub(super) fn varies(&self) -> bool {
        !matches!(self, Self::Constant(_))
    }

    /// Draws a vector, not normalised.
    pub(super) fn draw(&self, n: usize, rng: &mut Rng) -> Vec<f64> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(values: impl Iterator<Item = f64>) -> (f64, f64) {
        let values: Vec<f64> = values.collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        (mean, values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / values.len() as f64)
    }

    #[test]
    fn betas_have_the_moments_of_their_laws() {
        let n = 20_000;
        let cases = [
            (Temperature::Constant(3.0), 3.0, 0.0),
            (Temperature::Uniform { least: 1.0, most: 5.0 }, 3.0, 16.0 / 12.0),
            (
                Temperature::LogUniform { least: 1.0, most: 8.0 },
                7.0 / 8f64.ln(),
                63.0 / 2.0 / 8f64.ln() - (7.0 / 8f64.ln()).powi(2),
            ),
            (Temperature::Gamma { shape: 2.0, scale: 0.5, most: 100.0 }, 1.0, 0.5),
        ];
        for (distribution, mean, variance) in cases {
            let mut rng = Rng::seeded(1);
            let (least, most) = distribution.range().unwrap();
            let drawn: Vec<f64> = (0..n).map(|_| distribution.draw(&mut rng)).collect();
            assert!(drawn.iter().all(|beta| (least..=most).contains(beta)));
            let (m, v) = moments(drawn.into_iter());
            assert!((m - mean).abs() < 5.0 * (variance / f64::from(n)).sqrt() + 1e-12, "{distribution:?}: {m}");
            assert!((v - variance).abs() < 0.05 * variance + 1e-12, "{distribution:?}: {v}");
        }
        let cut = Temperature::Gamma { shape: 2.0, scale: 0.5, most: 0.5 };
        assert!((0..100).all(|seed| cut.draw(&mut Rng::seeded(seed)) <= 0.5));
        for bad in [
            Temperature::Constant(-1.0),
            Temperature::Uniform { least: 2.0, most: 2.0 },
            Temperature::LogUniform { least: 0.0, most: 2.0 },
            Temperature::Gamma { shape: -1.0, scale: 1.0, most: 2.0 },
            Temperature::Uniform { least: 0.0, most: f64::INFINITY },
        ] {
            assert!(matches!(bad.range(), Err(Error::Config { .. })), "{bad:?}");
        }
    }

    #[test]
    fn dirichlet_vectors_have_the_moments_of_their_law() {
        // Each entry is Beta(a, 2 a): mean 1/3, variance 2/9 / (3 a + 1).
        for concentration in [0.01, 0.5, 1.0, 4.0] {
            let mut rng = Rng::seeded(2);
            let distribution = Directions::Dirichlet { concentration };
            let first = (0..20_000).map(|_| {
                let vector = distribution.draw(3, &mut rng);
                assert!(vector.iter().all(|x| x.is_finite()) && vector.iter().sum::<f64>() > 0.0);
                vector[0] / vector.iter().sum::<f64>()
            });
            let (mean, variance) = moments(first);
            let exact = 2.0 / 9.0 / (3.0 * concentration + 1.0);
            assert!((mean - 1.0 / 3.0).abs() < 5.0 * (exact / 20_000.0).sqrt(), "{concentration}: {mean}");
            assert!((variance / exact - 1.0).abs() < 0.05, "{concentration}: {variance}, {exact}");
        }
    }
}
