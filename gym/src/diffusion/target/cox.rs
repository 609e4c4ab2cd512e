use std::sync::{Mutex, PoisonError};

use gfn::env::Reals;
use gfn::{Error, Result, Rng};
use tch::{Device, Kind, Tensor};

use super::Target;
use crate::diffusion::kernel::Normals;

/// A log-Gaussian Cox process on a grid (Moller et al. 1998). The density is the posterior of the
/// log-intensities x, given the number y of points in each cell: `log p = log N(x; mu, K) + sum over cells (y
/// x - exp(x) / d)`. Here d is the number of cells, `K = 1.91 exp(-33 distance / side)` with distances
/// measured in cells, and `mu = log 126 - 1.91 / 2`.
///
/// In the literature the counts are those of Finnish pines on a 40 x 40 grid. Here the log-intensities are
/// drawn from the prior, and the counts are drawn given the intensities. log Z is unknown.
#[derive(Debug)]
pub struct CoxProcess {
    side: usize,
    counts: Vec<f64>,
    /// The matrix K^-1: the inverse of the covariance of the prior.
    precision: Mutex<Tensor>,
    log_normaliser: f64,
}

const VARIANCE: f64 = 1.91;
const RANGE: f64 = 33.0;

fn mean() -> f64 {
    126f64.ln() - 0.5 * VARIANCE
}

impl CoxProcess {
    /// Draws counts for a grid of `side` times `side` cells from `rng`, and builds the posterior given these
    /// counts.
    ///
    /// # Errors
    /// [`Error::Config`] for a side of less than 2 or more than 64; [`Error::Torch`] if the covariance can't
    /// be inverted.
    pub fn generated(side: usize, rng: &mut Rng) -> Result<Self> {
        if !(2..=64).contains(&side) {
            return Err(Error::config("the grid's side", side, "2 to 64 cells"));
        }
        let n = side * side;
        let at = |cell: usize| ((cell % side) as f64, (cell / side) as f64);
        let mut covariance = Vec::with_capacity(n * n);
        for i in 0..n {
            for j in 0..n {
                let ((a, b), (c, d)) = (at(i), at(j));
                covariance.push(VARIANCE * (-(a - c).hypot(b - d) * RANGE / side as f64).exp());
            }
        }
        let covariance = Tensor::from_slice(&covariance).view([n as i64, n as i64]);
        let root = covariance.f_linalg_cholesky(false)?;
        let precision = root.f_cholesky_inverse(false)?;
        let log_det = 2.0 * root.diagonal(0, 0, 1).log().sum(Kind::Double).double_value(&[]);
        let mut normals = Normals::default();
        let noise: Vec<f64> = (0..n).map(|_| normals.next(rng)).collect();
        let field = root.matmul(&Tensor::from_slice(&noise).unsqueeze(1)).squeeze_dim(1) + mean();
        let field = Vec::<f64>::try_from(field)?;
        let counts = field.iter().map(|x| poisson(x.exp() / n as f64, rng)).collect();
        let log_normaliser = -0.5 * (log_det + n as f64 * std::f64::consts::TAU.ln());
        Ok(Self { side, counts, precision: Mutex::new(precision), log_normaliser })
    }

    /// Returns the number of points in each cell of the grid, which are the data of the posterior.
    #[must_use]
    pub fn counts(&self) -> &[f64] {
        &self.counts
    }

    /// Returns the vector `K^-1 (x - mu)` for each point x, `[n, d]`, with mu and K the mean and the
    /// covariance of the prior of the log-intensities.
    fn pulled(&self, points: &Reals) -> Result<Reals> {
        let away = points.to_tensor(Kind::Double, Device::Cpu) - mean();
        let precision = self.precision.lock().unwrap_or_else(PoisonError::into_inner);
        Reals::from_tensor(&away.matmul(&precision))
    }
}

/// Draws a Poisson number, which is the number of exponential waiting times that fit into an interval of
/// length `mean`.
fn poisson(mean: f64, rng: &mut Rng) -> f64 {
    let mut time = 0.0;
    let mut n = 0.0;
    loop {
        time -= (1.0 - rng.uniform()).ln();
        if time > mean {
            return n;
        }
        n += 1.0;
    }
}

impl Target for CoxProcess {
    fn dim(&self) -> usize {
        self.side * self.side
    }

    fn log_density(&self, points: &Reals) -> Result<Vec<f64>> {
        let pulled = self.pulled(points)?;
        let area = 1.0 / self.dim() as f64;
        let density = |(x, pulled): (&[f64], &[f64])| {
            let prior: f64 = x.iter().zip(pulled).map(|(x, p)| (x - mean()) * p).sum();
            let seen: f64 = x.iter().zip(&self.counts).map(|(x, y)| y * x - area * x.exp()).sum();
            self.log_normaliser - 0.5 * prior + seen
        };
        Ok(points.rows().zip(pulled.rows()).map(density).collect())
    }

    fn gradient(&self, points: &Reals) -> Result<Reals> {
        let mut out = self.pulled(points)?;
        let area = 1.0 / self.dim() as f64;
        let each = out.values_mut().iter_mut().zip(points.values()).zip(self.counts.iter().cycle());
        for ((g, x), y) in each {
            *g = y - area * x.exp() - *g;
        }
        Ok(out)
    }
}
