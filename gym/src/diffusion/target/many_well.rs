use gfn::env::Reals;
use gfn::{Error, Result, Rng};

use super::Target;
use crate::diffusion::kernel::Normals;

/// A product of d / 2 independent double wells (Noe et al. 2019; Midgley et al. 2023). Each pair (a, b) of
/// coordinates adds `-a^4 + 6 a^2 + a / 2 - b^2 / 2` to log p. There are 2^(d/2) modes.
///
/// log Z is `d / 2 * log(c sqrt(2 pi))`, with c the integral of `exp(-a^4 + 6 a^2 + a / 2)`. Quadrature gives
/// c = 11784.50927; the literature has a rounded number. Exact samples are drawn by inverting the
/// distribution function of a.
///
/// ```
/// use gfn_gym::diffusion::{ManyWell, Target};
/// assert!((ManyWell::new(32)?.log_z().unwrap() - 164.695675313).abs() < 1e-8);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct ManyWell {
    dim: usize,
    log_z: f64,
    /// The distribution function of the coordinate `a` at each point of the quadrature, scaled so that its
    /// last value is 1.
    cumulative: Vec<f64>,
}

/// The largest absolute value of the coordinate `a` in the quadrature. Beyond it the density is below
/// exp(-500).
const REACH: f64 = 6.0;
/// The number of intervals of the quadrature. The integrand and all its derivatives vanish at both ends, so
/// the trapezoid rule is exact to rounding.
const INTERVALS: usize = 12_000;

fn well(a: f64) -> f64 {
    let square = a * a;
    -square * square + 6.0 * square + 0.5 * a
}

fn place(k: usize) -> f64 {
    -REACH + 2.0 * REACH * k as f64 / INTERVALS as f64
}

impl ManyWell {
    /// Builds the target in `dim` coordinates, which are `dim / 2` pairs.
    ///
    /// # Errors
    /// [`Error::Config`] if `dim` is odd or 0.
    pub fn new(dim: usize) -> Result<Self> {
        if dim == 0 || dim % 2 == 1 {
            let got = dim.to_string();
            return Err(Error::config("the dimension of many wells", got, "an even number, at least 2"));
        }
        let densities: Vec<f64> = (0..=INTERVALS).map(|k| well(place(k)).exp()).collect();
        let mut cumulative = vec![0.0];
        for pair in densities.windows(2) {
            let sum = cumulative.last().copied().unwrap_or(0.0);
            cumulative.push(sum + f64::midpoint(pair[0], pair[1]));
        }
        let total = cumulative.last().copied().unwrap_or(0.0);
        for sum in &mut cumulative {
            *sum /= total;
        }
        let integral = total * 2.0 * REACH / INTERVALS as f64;
        let log_z = (dim / 2) as f64 * (integral.ln() + 0.5 * std::f64::consts::TAU.ln());
        Ok(Self { dim, log_z, cumulative })
    }
}

impl Target for ManyWell {
    fn dim(&self) -> usize {
        self.dim
    }

    fn log_density(&self, points: &Reals) -> Result<Vec<f64>> {
        let pair = |x: &[f64]| well(x[0]) - 0.5 * x[1] * x[1];
        Ok(points.rows().map(|point| point.chunks_exact(2).map(pair).sum()).collect())
    }

    fn gradient(&self, points: &Reals) -> Result<Reals> {
        let mut out = points.clone();
        for x in out.values_mut().chunks_exact_mut(2) {
            x[0] = -4.0 * x[0].powi(3) + 12.0 * x[0] + 0.5;
            x[1] = -x[1];
        }
        Ok(out)
    }

    fn log_z(&self) -> Option<f64> {
        Some(self.log_z)
    }

    fn sample(&self, n: usize, rng: &mut Rng) -> Option<Reals> {
        let mut normals = Normals::default();
        let mut out = Reals::filled(self.dim, n, 0.0);
        for x in out.values_mut().chunks_exact_mut(2) {
            let u = rng.uniform();
            let k = self.cumulative.partition_point(|&sum| sum <= u).clamp(1, INTERVALS);
            let low = self.cumulative[k - 1];
            let high = self.cumulative[k];
            // The distribution function is interpolated linearly between the points of the quadrature, which
            // are a thousandth apart.
            let part = if high > low { (u - low) / (high - low) } else { 0.5 };
            x[0] = place(k - 1) + part * (place(k) - place(k - 1));
            x[1] = normals.next(rng);
        }
        Some(out)
    }

    /// Returns the bottoms of the two wells as modes. Newton's method finds them as zeros of the density's
    /// derivative. Returns `None` unless there are two dimensions.
    fn modes(&self) -> Option<(Reals, f64)> {
        if self.dim != 2 {
            return None;
        }
        let bottom = |start: f64| {
            (0..50).fold(start, |a, _| a - (-4.0 * a.powi(3) + 12.0 * a + 0.5) / (12.0 - 12.0 * a * a))
        };
        Some((Reals::from_rows([[bottom(-1.7), 0.0], [bottom(1.7), 0.0]]), 1.0))
    }
}
