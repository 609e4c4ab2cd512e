//! Densities to be sampled, and the rewards that they define.

mod cox;
mod funnel;
mod many_well;
mod mixture;
mod tensors;

use std::sync::Arc;

use gfn::env::{Reals, Reward, Rows};
use gfn::{Error, Result, Rng};
use tch::Tensor;

pub use self::cox::CoxProcess;
pub use self::funnel::Funnel;
pub use self::many_well::ManyWell;
pub use self::mixture::{Mixture, Posterior};
pub use self::tensors::FromTensors;
use super::{DiffusionSampling, DiffusionStates};

/// A density on R^d to be sampled, known up to a constant factor.
///
/// Log-densities and gradients are computed on the host in f64. Results that a network or a script computes
/// on another device are copied to the host once per call.
pub trait Target: Send + Sync {
    /// Returns the number of coordinates of a point.
    fn dim(&self) -> usize;

    /// The log of the unnormalised density at each point.
    ///
    /// # Errors
    /// Returns the implementation's error if it can't compute a number for each point.
    fn log_density(&self, points: &Reals) -> Result<Vec<f64>>;

    /// Returns the gradient of the log-density at each point.
    ///
    /// # Errors
    /// The errors of [`log_density`](Self::log_density).
    fn gradient(&self, points: &Reals) -> Result<Reals>;

    /// Returns log Z, the log of the integral of the density; `None` if it is unknown.
    fn log_z(&self) -> Option<f64> {
        None
    }

    /// Draws `n` exact samples from the density. Returns `None` if the target can't draw exact samples.
    fn sample(&self, _n: usize, _rng: &mut Rng) -> Option<Reals> {
        None
    }

    /// Returns the centres of the modes, and a radius. A mode counts as found if a sample lies within the
    /// radius of its centre. Returns `None` if the modes aren't known as points.
    fn modes(&self) -> Option<(Reals, f64)> {
        None
    }
}

/// The reward of a target: log R is the target's log-density.
///
/// If [`along`](Self::along) has set the process, unfinished states have a partial log-reward for
/// forward-looking objectives. The partial log-reward is `t log density + (1 - t) log N(x; 0, v_t)`, with t
/// the time and v_t the variance of the process, as in Sendera et al. (2024). The origin has a partial
/// log-reward of 0.
///
/// ```
/// use gfn::env::{Reals, Reward};
/// use gfn_gym::diffusion::{DiffusionStates, Energy, Mixture};
/// let energy = Energy::new(std::sync::Arc::new(Mixture::gaussian(vec![0.0], 1.0)?));
/// let origin = DiffusionStates::at(Reals::from_rows([[0.0]]), 4);
/// assert!((energy.log_reward(&origin, None)?[0] + 0.5 * std::f64::consts::TAU.ln()).abs() < 1e-12);
/// let lost = DiffusionStates::at(Reals::from_rows([[f64::NAN]]), 4);
/// assert!(energy.log_reward(&lost, None).unwrap_err().to_string().contains("NaN"));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone)]
pub struct Energy {
    target: Arc<dyn Target>,
    process: Option<super::Process>,
}

impl std::fmt::Debug for Energy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Energy").field("dim", &self.target.dim()).finish_non_exhaustive()
    }
}

impl Energy {
    /// Builds the reward of finished objects from a target. Unfinished states have no partial log-reward.
    #[must_use]
    pub fn new(target: Arc<dyn Target>) -> Self {
        Self { target, process: None }
    }

    /// Adds partial log-rewards of unfinished states, which are computed with the variances of this process.
    #[must_use]
    pub fn along(self, process: &super::Process) -> Self {
        Self { process: Some(process.clone()), ..self }
    }

    /// The target whose density is the reward.
    #[must_use]
    pub fn target(&self) -> &Arc<dyn Target> {
        &self.target
    }
}

impl Reward<DiffusionStates> for Energy {
    fn log_reward(&self, states: &DiffusionStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
        checked_log_density(self.target.as_ref(), &states.points)
    }

    fn partial_log_reward(&self, states: &DiffusionStates, _: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
        let Some(process) = &self.process else { return Ok(None) };
        states.check(self.target.dim(), process.steps())?;
        let away: Vec<usize> = (0..states.len()).filter(|&row| states.steps[row] > 0).collect();
        let mut out = vec![0.0; states.len()];
        let log_density = checked_log_density(self.target.as_ref(), &states.points.select(&away))?;
        for (&row, log_density) in away.iter().zip(log_density) {
            let step = states.steps[row] as usize;
            let point = states.points.row(row);
            let t = step as f64 / process.steps() as f64;
            let v = process.variance(step);
            let squares: f64 = point.iter().map(|x| x * x).sum();
            let log_reference = -0.5 * (squares / v + point.len() as f64 * (std::f64::consts::TAU * v).ln());
            out[row] = t * log_density + (1.0 - t) * log_reference;
        }
        Ok(Some(out))
    }
}

/// Refuses a target whose dimension differs from that of the environment.
pub(super) fn check_dim(env: &DiffusionSampling, target: &dyn Target) -> Result<()> {
    if env.dim() == target.dim() {
        Ok(())
    } else {
        Err(Error::config(
            "the target's dimension",
            format!("{}, but the points of the environment have {} coordinates", target.dim(), env.dim()),
            "the dimension of the environment",
        ))
    }
}

fn check_width(target: &dyn Target, points: &Reals) -> Result<()> {
    if points.width() == target.dim() {
        return Ok(());
    }
    Err(Error::shape(
        "points under a target",
        [points.len() as i64, target.dim() as i64],
        [points.len() as i64, points.width() as i64],
        "build the environment with the target's dimension",
    ))
}

/// Returns the log-density at each point, and refuses log-densities that aren't finite.
pub(super) fn checked_log_density(target: &dyn Target, points: &Reals) -> Result<Vec<f64>> {
    let values = log_density(target, points)?;
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(values),
        Some(row) => {
            Err(not_finite("the target's log-density is finite everywhere", values[row], points, row))
        }
    }
}

/// Returns the log-density at each point. A log-density may be infinite or NaN.
pub(super) fn log_density(target: &dyn Target, points: &Reals) -> Result<Vec<f64>> {
    check_width(target, points)?;
    let values = target.log_density(points)?;
    if values.len() == points.len() {
        Ok(values)
    } else {
        Err(Error::shape(
            "a target's log-densities",
            [points.len() as i64],
            [values.len() as i64],
            "let the target return one number for each point",
        ))
    }
}

/// Returns the gradient of the log-density at each point. The coordinates of a gradient may be infinite or
/// NaN.
pub(super) fn gradient(target: &dyn Target, points: &Reals) -> Result<Reals> {
    check_width(target, points)?;
    let gradient = target.gradient(points)?;
    if (gradient.len(), gradient.width()) == (points.len(), points.width()) {
        Ok(gradient)
    } else {
        Err(Error::shape(
            "a target's gradients",
            [points.len() as i64, points.width() as i64],
            [gradient.len() as i64, gradient.width() as i64],
            "let the target return one row for each point, of the point's dimension",
        ))
    }
}

/// Returns the gradient of the log-density at each point, and refuses coordinates of the gradient that aren't
/// finite.
pub(super) fn checked_gradient(target: &dyn Target, points: &Reals) -> Result<Reals> {
    let gradient = gradient(target, points)?;
    match gradient.values().iter().position(|value| !value.is_finite()) {
        None => Ok(gradient),
        Some(k) => {
            let row = k / points.width();
            let value = gradient.values()[k];
            Err(not_finite("the target's gradient is finite everywhere", value, points, row))
        }
    }
}

fn not_finite(check: &'static str, value: f64, points: &Reals, row: usize) -> Error {
    /// The largest number of coordinates in an error message. A longer list would fill the screen.
    const SHOWN: usize = 8;
    let point = points.row(row);
    let shown = &point[..point.len().min(SHOWN)];
    let more = if point.len() > SHOWN { ", ..." } else { "" };
    Error::contract(check, format!("{value} at row {row}, point {shown:?}{more}"))
}
