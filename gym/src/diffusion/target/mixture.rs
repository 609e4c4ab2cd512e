use gfn::env::{Reals, Rows};
use gfn::tensor::log_sum_exp;
use gfn::{Error, Result, Rng};

use super::Target;
use crate::diffusion::kernel::Normals;

/// A mixture of Gaussians with diagonal covariances. The density is normalised, so log Z is 0.
///
/// ```
/// use gfn::env::Reals;
/// use gfn_gym::diffusion::{Mixture, Target};
/// let target = Mixture::twenty_five_modes();
/// let log_p = target.log_density(&Reals::from_rows([[5.0, -10.0]]))?;
/// assert!((log_p[0] + (25.0 * 0.3 * std::f64::consts::TAU).ln()).abs() < 1e-9);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Mixture {
    weights: Vec<f64>,
    means: Reals,
    sds: Reals,
    /// The log of a product for each component: its weight, times the factor that normalises its density.
    log_heights: Vec<f64>,
}

impl Mixture {
    /// Builds a mixture from the weight of each component, and from the mean and the standard deviation of
    /// each of its coordinates. Weights are divided by their sum.
    ///
    /// # Errors
    /// [`Error::Config`] if there is no component, if a weight or a standard deviation isn't positive and
    /// finite, and if a mean isn't finite. [`Error::Shape`] unless each component has a weight, a mean and a
    /// row of standard deviations.
    pub fn new(weights: &[f64], means: Reals, sds: Reals) -> Result<Self> {
        if means.len() != weights.len() || sds.len() != weights.len() || means.width() != sds.width() {
            return Err(Error::shape(
                "means and standard deviations of a mixture",
                [weights.len() as i64, means.width() as i64],
                [means.len() as i64, sds.len() as i64, sds.width() as i64],
                "give one mean and one row of standard deviations for each weight",
            ));
        }
        let positive = |values: &[f64]| values.iter().all(|x| *x > 0.0 && x.is_finite());
        if weights.is_empty() || !positive(weights) || !positive(sds.values()) {
            return Err(Error::config(
                "a mixture's weights and standard deviations",
                format!("{weights:?} and {:?}", sds.values()),
                "positive numbers, and at least one component",
            ));
        }
        if !means.values().iter().all(|x| x.is_finite()) {
            let got = format!("{:?}", means.values());
            return Err(Error::config("a mixture's means", got, "finite numbers"));
        }
        Ok(Self::normalised(weights, means, sds))
    }

    /// Builds a mixture whose components all have the standard deviation `sd` in each coordinate.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub fn isotropic(weights: &[f64], means: Reals, sd: f64) -> Result<Self> {
        let sds = Reals::filled(means.width(), means.len(), sd);
        Self::new(weights, means, sds)
    }

    /// Builds a single Gaussian, N(mean, sd^2).
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub fn gaussian(mean: Vec<f64>, sd: f64) -> Result<Self> {
        Self::isotropic(&[1.0], Reals::from_flat(mean.len(), mean)?, sd)
    }

    /// Builds two unit Gaussians in the plane at (-4, -4) and (4, 4), with weights 0.35 and 0.65.
    #[must_use]
    pub fn two_modes() -> Self {
        Self::from_valid(&[0.35, 0.65], Reals::from_rows([[-4.0, -4.0], [4.0, 4.0]]), 1.0)
    }

    /// Builds the mixture that the literature calls 25GMM: 25 Gaussians of equal weight and variance 0.3,
    /// with means on the grid {-10, -5, 0, 5, 10}^2.
    #[must_use]
    pub fn twenty_five_modes() -> Self {
        let grid = [-10.0, -5.0, 0.0, 5.0, 10.0];
        let means = grid.into_iter().flat_map(|x| grid.map(|y| [x, y]));
        Self::from_valid(&[1.0; 25], Reals::from_rows(means), 0.3f64.sqrt())
    }

    /// Builds nine of the 25 components of 25GMM, with the weights of torchgfn's posterior.
    #[must_use]
    pub fn nine_modes() -> Self {
        let means = [
            [-10.0, -5.0],
            [-5.0, -10.0],
            [-5.0, 0.0],
            [10.0, -5.0],
            [0.0, 0.0],
            [0.0, 5.0],
            [5.0, -5.0],
            [5.0, 0.0],
            [5.0, 10.0],
        ];
        let weights = [4.0, 10.0, 4.0, 5.0, 10.0, 5.0, 4.0, 15.0, 4.0];
        Self::from_valid(&weights, Reals::from_rows(means), 0.3f64.sqrt())
    }

    /// Builds 40 Gaussians of equal weight in the plane, with means uniform on `[-40, 40]^2` and standard
    /// deviation log(1 + e) = 1.31 (Midgley et al., *Flow Annealed Importance Sampling Bootstrap*, 2023). The
    /// means are drawn with `seed` and differ from the published means, which come from another random number
    /// generator.
    #[must_use]
    pub fn forty_modes(seed: u64) -> Self {
        let mut rng = Rng::seeded(seed);
        let mut draw = || 80.0 * rng.uniform() - 40.0;
        let means: Vec<[f64; 2]> = (0..40).map(|_| [draw(), draw()]).collect();
        Self::from_valid(&[1.0; 40], Reals::from_rows(means), 1f64.exp().ln_1p())
    }

    /// Builds a mixture whose components all have the standard deviation `sd`, without checks. The arguments
    /// must be valid.
    fn from_valid(weights: &[f64], means: Reals, sd: f64) -> Self {
        let sds = Reals::filled(means.width(), means.len(), sd);
        Self::normalised(weights, means, sds)
    }

    /// Builds a mixture from checked settings. The weights are divided by their sum.
    fn normalised(weights: &[f64], means: Reals, sds: Reals) -> Self {
        let total: f64 = weights.iter().sum();
        let weights: Vec<f64> = weights.iter().map(|weight| weight / total).collect();
        let log_height = |(weight, sds): (&f64, &[f64])| {
            weight.ln() - sds.iter().map(|sd| sd.ln() + 0.5 * std::f64::consts::TAU.ln()).sum::<f64>()
        };
        let log_heights = weights.iter().zip(sds.rows()).map(log_height).collect();
        Self { weights, means, sds, log_heights }
    }

    /// Computes for each component the log of its weight times its density at a point, and writes these terms
    /// to `out`. Returns the log-sum-exp of the terms.
    fn components(&self, point: &[f64], out: &mut Vec<f64>) -> f64 {
        out.clear();
        for (k, height) in self.log_heights.iter().enumerate() {
            let parts = point.iter().zip(self.means.row(k)).zip(self.sds.row(k));
            out.push(height - 0.5 * parts.map(|((x, mean), sd)| ((x - mean) / sd).powi(2)).sum::<f64>());
        }
        log_sum_exp(out.iter().copied())
    }
}

impl Target for Mixture {
    fn dim(&self) -> usize {
        self.means.width()
    }

    fn log_density(&self, points: &Reals) -> Result<Vec<f64>> {
        let mut scratch = Vec::new();
        Ok(points.rows().map(|point| self.components(point, &mut scratch)).collect())
    }

    fn gradient(&self, points: &Reals) -> Result<Reals> {
        let mut out = Reals::filled(self.dim(), points.len(), 0.0);
        let mut scratch = Vec::new();
        for (point, gradient) in points.rows().zip(out.values_mut().chunks_exact_mut(self.dim())) {
            let total = self.components(point, &mut scratch);
            for (k, component) in scratch.iter().enumerate() {
                let share = (component - total).exp();
                for (j, g) in gradient.iter_mut().enumerate() {
                    *g += share * (self.means.row(k)[j] - point[j]) / self.sds.row(k)[j].powi(2);
                }
            }
        }
        Ok(out)
    }

    fn log_z(&self) -> Option<f64> {
        Some(0.0)
    }

    fn sample(&self, n: usize, rng: &mut Rng) -> Option<Reals> {
        let mut normals = Normals::default();
        let mut out = Reals::filled(self.dim(), n, 0.0);
        for point in out.values_mut().chunks_exact_mut(self.dim()) {
            let mut rest = rng.uniform();
            let mut k = 0;
            while k + 1 < self.weights.len() && rest >= self.weights[k] {
                rest -= self.weights[k];
                k += 1;
            }
            for (j, x) in point.iter_mut().enumerate() {
                *x = self.means.row(k)[j] + self.sds.row(k)[j] * normals.next(rng);
            }
        }
        Some(out)
    }

    /// Returns the means of the components as modes. The radius within which a mode counts as found is twice
    /// the largest standard deviation.
    fn modes(&self) -> Option<(Reals, f64)> {
        let widest = self.sds.values().iter().copied().fold(0.0, f64::max);
        Some((self.means.clone(), 2.0 * widest))
    }
}

/// A likelihood ratio: the density of a posterior divided by that of a prior. With this reward, relative
/// trajectory balance fine-tunes the prior to the posterior.
///
/// The integral of the ratio doesn't exist in general, so this target has no log Z. (torchgfn gives 0, which
/// is log Z of the product of prior and ratio.)
///
/// ```
/// use gfn_gym::diffusion::{Posterior, Target};
/// assert_eq!(Posterior::nine_of_twenty_five().log_z(), None);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Posterior {
    posterior: Mixture,
    prior: Mixture,
}

impl Posterior {
    /// Builds the ratio of a posterior to a prior.
    ///
    /// # Errors
    /// [`Error::Shape`] unless both mixtures have the same dimension.
    pub fn new(posterior: Mixture, prior: Mixture) -> Result<Self> {
        if posterior.dim() == prior.dim() {
            return Ok(Self { posterior, prior });
        }
        Err(Error::shape(
            "the prior's dimension",
            [posterior.dim() as i64],
            [prior.dim() as i64],
            "give a prior of the posterior's dimension",
        ))
    }

    /// Builds the ratio of the mixture [`nine_modes`](Mixture::nine_modes) to the mixture
    /// [`twenty_five_modes`](Mixture::twenty_five_modes).
    #[must_use]
    pub fn nine_of_twenty_five() -> Self {
        Self { posterior: Mixture::nine_modes(), prior: Mixture::twenty_five_modes() }
    }

    /// Returns the posterior, which is the prior times the ratio.
    #[must_use]
    pub fn posterior(&self) -> &Mixture {
        &self.posterior
    }

    /// Returns the prior, by which the posterior is divided.
    #[must_use]
    pub fn prior(&self) -> &Mixture {
        &self.prior
    }
}

impl Target for Posterior {
    fn dim(&self) -> usize {
        self.posterior.dim()
    }

    fn log_density(&self, points: &Reals) -> Result<Vec<f64>> {
        let prior = self.prior.log_density(points)?;
        Ok(self.posterior.log_density(points)?.iter().zip(prior).map(|(p, q)| p - q).collect())
    }

    fn gradient(&self, points: &Reals) -> Result<Reals> {
        let mut out = self.posterior.gradient(points)?;
        let prior = self.prior.gradient(points)?;
        for (p, q) in out.values_mut().iter_mut().zip(prior.values()) {
            *p -= q;
        }
        Ok(out)
    }

    fn modes(&self) -> Option<(Reals, f64)> {
        self.posterior.modes()
    }
}
