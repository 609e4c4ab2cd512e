//! The distribution of the next point after a Gaussian step.

use gfn::distribution::{Distribution, Exploration};
use gfn::env::{Direction, Reals, Rows};
use gfn::tensor::index_tensor;
use gfn::{Error, Result, Rng};
use tch::Tensor;

use crate::continuous::{check_no_exit_bias, check_rows};

/// The corrections that a network adds to the Gaussian steps of a process.
#[derive(Debug)]
pub(super) struct Steering {
    /// The drift, a tensor `[n, d]`. Each row is multiplied by the row's `gain` and added to the mean.
    pub(super) drift: Tensor,
    /// The correction that is added to the log standard deviation, a tensor `[n, 1]` or `[n, d]`; `None` if
    /// the standard deviation isn't corrected.
    pub(super) log_sd: Option<Tensor>,
}

/// Gaussian steps: the distribution of the next point for each state of a batch. The covariance is isotropic
/// or diagonal. If the standard deviation is 0, the distribution is a point mass.
///
/// Exploration adds its [`noise`](Exploration::noise) to the standard deviation in quadrature, as Sendera et
/// al. (2024) do, and a temperature multiplies the variance. Epsilon is refused, because there is no uniform
/// distribution over all points. An exit bias is refused, because there is no exit. A point mass stays a
/// point mass.
#[derive(Debug)]
pub struct GaussianSteps {
    dim: usize,
    direction: Direction,
    /// The mean of each step before a network's correction, flat `[n, d]`.
    mean: Vec<f64>,
    /// The standard deviation of each step before a network's correction, a number per state.
    sd: Vec<f64>,
    /// The factor by which each state's drift is multiplied, a number per state. The list is empty without a
    /// network's correction.
    gain: Vec<f64>,
    steering: Option<Steering>,
}

impl GaussianSteps {
    /// Builds steps from their means, flat `[n, d]`, and from a standard deviation for each state.
    pub(super) fn new(dim: usize, direction: Direction, mean: Vec<f64>, sd: Vec<f64>) -> Self {
        Self { dim, direction, mean, sd, gain: Vec::new(), steering: None }
    }

    /// Adds a network's corrections to the steps. `gain` holds the factor of the drift for each state.
    pub(super) fn steered(self, gain: Vec<f64>, steering: Steering) -> Self {
        Self { gain, steering: Some(steering), ..self }
    }

    /// Returns the number of states for which the distribution is given.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sd.len()
    }

    /// Returns `true` if there is no state.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sd.is_empty()
    }

    /// Returns the means and the standard deviations of the steps, including a network's corrections to
    /// them: two lists with a row per state and a number per coordinate.
    ///
    /// # Errors
    /// [`Error::NonFinite`] for a drift or a standard deviation that isn't finite.
    pub fn moments(&self) -> Result<(Reals, Reals)> {
        let mut mean = self.mean.clone();
        let mut sd: Vec<f64> = self.sd.iter().flat_map(|&sd| std::iter::repeat_n(sd, self.dim)).collect();
        if let Some(Steering { drift, log_sd }) = &self.steering {
            let drift = Reals::from_tensor(drift)?;
            for (k, (mean, drift)) in mean.iter_mut().zip(drift.values()).enumerate() {
                *mean += self.gain[k / self.dim] * drift;
            }
            if let Some(log_sd) = log_sd {
                let log_sd = Reals::from_tensor(log_sd)?;
                let columns = log_sd.width();
                for (k, sd) in sd.iter_mut().enumerate() {
                    *sd *= log_sd.values()[k / self.dim * columns + (k % self.dim).min(columns - 1)].exp();
                }
            }
        }
        for (what, values) in [("a step's mean", &mean), ("a step's standard deviation", &sd)] {
            if let Some(k) = values.iter().position(|x| !x.is_finite()) {
                let remedy = "lower the learning rate, clip gradients (`max_norm`), or clip the drift";
                return Err(Error::non_finite(what, k / self.dim, values[k], remedy));
            }
        }
        Ok((Reals::from_flat(self.dim, mean)?, Reals::from_flat(self.dim, sd)?))
    }

    /// Checks that an action leads to the mean, which is the only point that a step of standard deviation 0
    /// can reach.
    fn check_point_mass(&self, row: usize, action: &[f64]) -> Result<()> {
        let mean = &self.mean[row * self.dim..(row + 1) * self.dim];
        if mean == action {
            return Ok(());
        }
        let detail = format!("the step leads to {action:?}, but only {mean:?} can be reached");
        Err(Error::IllegalStep { row, direction: self.direction, detail })
    }

    /// Returns `d + 3` numbers for each action, in one flat list: the standardised distance of the action
    /// from the uncorrected mean (`d` numbers), the amount by which a drift of 1 reduces this distance, the
    /// log of the density at the uncorrected mean, and a 1. For a point mass all `d + 3` numbers are 0, the
    /// last of them included. A product with the last number therefore makes the log-probability of a point
    /// mass 0.
    fn standardise(&self, rows: &[usize], actions: &Reals) -> Result<Vec<f64>> {
        let half_log_tau = 0.5 * std::f64::consts::TAU.ln();
        let mut out = Vec::with_capacity(rows.len() * (self.dim + 3));
        for (&row, action) in rows.iter().zip(actions.rows()) {
            let sd = self.sd[row];
            if sd == 0.0 {
                self.check_point_mass(row, action)?;
                out.extend(std::iter::repeat_n(0.0, self.dim + 3));
                continue;
            }
            let mean = &self.mean[row * self.dim..(row + 1) * self.dim];
            out.extend(action.iter().zip(mean).map(|(x, mean)| (x - mean) / sd));
            let gain = self.gain.get(row).copied().unwrap_or(0.0);
            out.extend([gain / sd, -(self.dim as f64) * (sd.ln() + half_log_tau), 1.0]);
        }
        Ok(out)
    }
}

impl Distribution for GaussianSteps {
    type Actions = Reals;

    const MIXES_WITH_UNIFORM: bool = false;

    fn sample(&self, rows: &[usize], exploration: &Exploration, rng: &mut Rng) -> Result<Reals> {
        const EXPECTED: &str = "0, because Gaussian steps explore by `noise` and temperature";
        check_no_exit_bias(exploration, EXPECTED)?;
        if exploration.epsilon_value() != 0.0 {
            let got = exploration.epsilon_value().to_string();
            return Err(Error::config("epsilon", got, EXPECTED));
        }
        check_rows(self.len(), rows, None)?;
        let (mean, sd) = self.moments()?;
        let mut points = mean.select(rows);
        let mut normals = Normals::default();
        for (&row, point) in rows.iter().zip(points.values_mut().chunks_exact_mut(self.dim)) {
            if self.sd[row] == 0.0 {
                continue;
            }
            for (x, sd) in point.iter_mut().zip(sd.row(row)) {
                let sd = (sd * sd * exploration.temperature()).sqrt().hypot(exploration.noise());
                *x += sd * normals.next(rng);
            }
        }
        Ok(points)
    }

    fn log_prob(&self, rows: &[usize], actions: &Reals) -> Result<Tensor> {
        check_rows(self.len(), rows, Some((actions, self.dim)))?;
        let flat = self.standardise(rows, actions)?;
        let columns = self.dim + 3;
        let Some(Steering { drift, log_sd }) = &self.steering else {
            let log_probs: Vec<f64> = flat
                .chunks_exact(columns)
                .map(|row| row[self.dim + 1] - 0.5 * row[..self.dim].iter().map(|z| z * z).sum::<f64>())
                .collect();
            return Ok(Tensor::from_slice(&log_probs));
        };
        let kind = drift.kind();
        let device = drift.device();
        let flat = Reals::from_flat(columns, flat)?.to_tensor(kind, device);
        let column = |k: usize| flat.narrow(1, k as i64, 1);
        let z = flat.narrow(1, 0, self.dim as i64) - pick_rows(drift, rows) * column(self.dim);
        let constant = column(self.dim + 1).squeeze_dim(1);
        let halved = |z: &Tensor| z.square().sum_dim_intlist([1i64].as_slice(), false, kind) * -0.5;
        let Some(log_sd) = log_sd else { return Ok(halved(&z) + constant) };
        let log_sd = pick_rows(log_sd, rows);
        let total = log_sd.sum_dim_intlist([1i64].as_slice(), false, kind)
            * (self.dim as f64 / log_sd.size()[1] as f64);
        let log_prob = halved(&(z * (-log_sd).exp())) - total + constant;
        Ok(log_prob * column(self.dim + 2).squeeze_dim(1))
    }
}

/// Returns the rows of `values` that `rows` lists, in this order. Copies nothing if `rows` lists 0, 1, 2 and
/// so on.
fn pick_rows(values: &Tensor, rows: &[usize]) -> Tensor {
    if rows.iter().enumerate().all(|(k, &row)| k == row) {
        return values.narrow(0, 0, rows.len() as i64);
    }
    values.index_select(0, &index_tensor(rows, values.device()))
}

/// A generator of normal numbers. The generator computes two numbers at a time and keeps the second one for
/// the next call.
#[derive(Default)]
pub(super) struct Normals(Option<f64>);

impl Normals {
    pub(super) fn next(&mut self, rng: &mut Rng) -> f64 {
        if let Some(second) = self.0.take() {
            return second;
        }
        let (first, second) = rng.normal_pair();
        self.0 = Some(second);
        first
    }
}
