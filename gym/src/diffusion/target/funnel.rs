use gfn::env::Reals;
use gfn::{Error, Result, Rng};

use super::Target;
use crate::diffusion::kernel::Normals;

/// Neal's funnel: `x_0 ~ N(0, sd^2)`, and given x_0 all other coordinates follow `N(0, exp(x_0))`. The
/// density is normalised, so log Z is 0.
///
/// Common settings are 10 coordinates with sd = 1 (Sendera et al. 2024) or sd = 3 (Neal).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Funnel {
    dim: usize,
    sd: f64,
}

impl Funnel {
    /// Builds a funnel of `dim` coordinates, of which the first has standard deviation `sd`.
    ///
    /// # Errors
    /// [`Error::Config`] for fewer than two coordinates and for a standard deviation that isn't positive.
    pub fn new(dim: usize, sd: f64) -> Result<Self> {
        if dim < 2 || !(sd > 0.0 && sd.is_finite()) {
            let got = format!("{dim} and {sd}");
            let expected = "at least two coordinates and a positive number";
            return Err(Error::config("a funnel's dimension and standard deviation", got, expected));
        }
        Ok(Self { dim, sd })
    }
}

impl Target for Funnel {
    fn dim(&self) -> usize {
        self.dim
    }

    fn log_density(&self, points: &Reals) -> Result<Vec<f64>> {
        let tau = std::f64::consts::TAU;
        let others = (self.dim - 1) as f64;
        let density = |x: &[f64]| {
            let squares: f64 = x[1..].iter().map(|y| y * y).sum();
            let first = -0.5 * ((x[0] / self.sd).powi(2) + (tau * self.sd * self.sd).ln());
            first - 0.5 * (squares * (-x[0]).exp() + others * (tau.ln() + x[0]))
        };
        Ok(points.rows().map(density).collect())
    }

    fn gradient(&self, points: &Reals) -> Result<Reals> {
        let mut out = points.clone();
        for x in out.values_mut().chunks_exact_mut(self.dim) {
            let precision = (-x[0]).exp();
            let squares: f64 = x[1..].iter().map(|y| y * y).sum();
            x[0] = -x[0] / (self.sd * self.sd) + 0.5 * (squares * precision - (self.dim - 1) as f64);
            for y in &mut x[1..] {
                *y *= -precision;
            }
        }
        Ok(out)
    }

    fn log_z(&self) -> Option<f64> {
        Some(0.0)
    }

    fn sample(&self, n: usize, rng: &mut Rng) -> Option<Reals> {
        let mut normals = Normals::default();
        let mut out = Reals::filled(self.dim, n, 0.0);
        for x in out.values_mut().chunks_exact_mut(self.dim) {
            x[0] = self.sd * normals.next(rng);
            let sd = (0.5 * x[0]).exp();
            for y in &mut x[1..] {
                *y = sd * normals.next(rng);
            }
        }
        Some(out)
    }
}
