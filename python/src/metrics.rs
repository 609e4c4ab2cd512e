//! Metrics of samples and of objectives that need no trainer.

use gfn::env::Reals;
use gfn::metrics::NoiseFloor;
use gfn::{Result, Rng};
use gfn_extras::{pareto, transport};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::errors::Outcome;
use crate::inside::Inside;
use crate::watch::Watch;

/// An array of points with a row per point, which `gfn_rs._metrics` has checked.
type Points<'py> = PyReadonlyArray2<'py, f64>;

fn points(rows: &Points<'_>) -> Result<Reals> {
    let rows = rows.as_array();
    Reals::from_flat(rows.ncols(), rows.iter().copied().collect())
}

/// Returns the 2-Wasserstein distance between two sets of points.
#[pyfunction]
pub(crate) fn wasserstein2(py: Python<'_>, a: Points<'_>, b: Points<'_>) -> Outcome<f64> {
    let a = points(&a)?;
    let b = points(&b)?;
    let _inside = Inside::enter(py)?;
    let watch = Watch::new();
    Ok(py.detach(|| transport::wasserstein2_watched(&a, &b, &mut || watch.look()))?)
}

/// Returns the squared maximum mean discrepancy between two sets of points.
#[pyfunction]
pub(crate) fn maximum_mean_discrepancy(py: Python<'_>, a: Points<'_>, b: Points<'_>) -> Outcome<f64> {
    let a = points(&a)?;
    let b = points(&b)?;
    let _inside = Inside::enter(py)?;
    Ok(py.detach(|| transport::maximum_mean_discrepancy(&a, &b))?)
}

/// Returns the Pareto front: the indices of the rows of `objectives` that no other row dominates.
#[pyfunction]
pub(crate) fn pareto_front(objectives: Points<'_>) -> Outcome<Vec<usize>> {
    Ok(pareto::pareto_front(&points(&objectives)?)?)
}

/// Returns the hypervolume: the volume of all points that dominate a reference point and are dominated by a
/// row of `objectives`.
#[pyfunction]
pub(crate) fn hypervolume(
    py: Python<'_>,
    objectives: Points<'_>,
    reference: PyReadonlyArray1<'_, f64>,
) -> Outcome<f64> {
    let objectives = points(&objectives)?;
    let reference = reference.as_array().to_vec();
    let _inside = Inside::enter(py)?;
    Ok(py.detach(|| pareto::hypervolume(&objectives, &reference))?)
}

/// Returns the distances between the target and `n` samples of a perfect sampler, over `rounds` simulations:
/// the mean and the standard deviation of the total variation, then of the JSD.
#[pyfunction]
pub(crate) fn noise_floor(
    py: Python<'_>,
    target: PyReadonlyArray1<'_, f64>,
    n: usize,
    rounds: usize,
    seed: u64,
) -> Outcome<[f64; 4]> {
    let target = target.as_array().to_vec();
    let _inside = Inside::enter(py)?;
    let floor = py.detach(|| NoiseFloor::simulate(&target, n, rounds, &mut Rng::seeded(seed)))?;
    let NoiseFloor { tv, tv_sd, jsd, jsd_sd } = floor;
    Ok([tv, tv_sd, jsd, jsd_sd])
}
