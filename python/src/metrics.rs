//! Figures of samples and of objectives that need no trainer.

use gfn::env::Reals;
use gfn::metrics::NoiseFloor as Floor;
use gfn::{Result, Rng};
use gfn_gym::transport;
use gfn_molecules::pareto;
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::errors::raised;
use crate::inside::Inside;
use crate::pickled::{Again, again};
use crate::watch::Watch;

/// Points, a row each, that `gfn_rs.metrics` has looked at.
type Points<'py> = PyReadonlyArray2<'py, f64>;

fn points(rows: &Points<'_>) -> Result<Reals> {
    let rows = rows.as_array();
    Reals::from_flat(rows.ncols(), rows.iter().copied().collect())
}

/// The 2-Wasserstein distance between two sets of points.
#[pyfunction]
pub(crate) fn wasserstein2(py: Python<'_>, a: Points<'_>, b: Points<'_>) -> PyResult<f64> {
    let (a, b) = (points(&a).map_err(raised)?, points(&b).map_err(raised)?);
    let (_inside, watch) = (Inside::enter(py)?, Watch::new());
    py.detach(|| transport::wasserstein2_watched(&a, &b, &mut || watch.look())).map_err(raised)
}

/// The squared maximum mean discrepancy between two sets of points.
#[pyfunction]
pub(crate) fn maximum_mean_discrepancy(py: Python<'_>, a: Points<'_>, b: Points<'_>) -> PyResult<f64> {
    let (a, b) = (points(&a).map_err(raised)?, points(&b).map_err(raised)?);
    let _inside = Inside::enter(py)?;
    py.detach(|| transport::maximum_mean_discrepancy(&a, &b)).map_err(raised)
}

/// The rows that no other one is better than.
#[pyfunction]
pub(crate) fn pareto_front(objectives: Points<'_>) -> PyResult<Vec<usize>> {
    points(&objectives).and_then(|objectives| pareto::pareto_front(&objectives)).map_err(raised)
}

/// The volume that vectors of objectives dominate, above a reference.
#[pyfunction]
pub(crate) fn hypervolume(
    py: Python<'_>,
    objectives: Points<'_>,
    reference: PyReadonlyArray1<'_, f64>,
) -> PyResult<f64> {
    let (objectives, reference) = (points(&objectives).map_err(raised)?, reference.as_array().to_vec());
    let _inside = Inside::enter(py)?;
    py.detach(|| pareto::hypervolume(&objectives, &reference)).map_err(raised)
}

/// How far the samples of a perfect sampler are from the target.
#[pyfunction]
pub(crate) fn noise_floor(
    py: Python<'_>,
    target: PyReadonlyArray1<'_, f64>,
    n: usize,
    rounds: usize,
    seed: u64,
) -> PyResult<NoiseFloor> {
    let target = target.as_array().to_vec();
    let _inside = Inside::enter(py)?;
    let floor = py.detach(|| Floor::simulate(&target, n, rounds, &mut Rng::seeded(seed))).map_err(raised)?;
    let Floor { tv, tv_sd, jsd, jsd_sd } = floor;
    Ok(NoiseFloor { tv, tv_sd, jsd, jsd_sd })
}

/// How far the samples of a perfect sampler are from the target: what to see beside distances that come from samples.
#[pyclass(frozen, get_all, module = "gfn_rs", name = "NoiseFloor")]
pub(crate) struct NoiseFloor {
    /// The mean total variation.
    tv: f64,
    /// Its standard deviation.
    tv_sd: f64,
    /// The mean Jensen-Shannon divergence (natural logarithm).
    jsd: f64,
    /// Its standard deviation.
    jsd_sd: f64,
}

#[pymethods]
impl NoiseFloor {
    #[new]
    #[pyo3(signature = (*, tv, tv_sd, jsd, jsd_sd))]
    fn new(tv: f64, tv_sd: f64, jsd: f64, jsd_sd: f64) -> Self {
        Self { tv, tv_sd, jsd, jsd_sd }
    }

    fn __getnewargs_ex__<'py>(slf: &Bound<'py, Self>) -> PyResult<Again<'py>> {
        again(slf, &["tv", "tv_sd", "jsd", "jsd_sd"])
    }

    fn __repr__(&self) -> String {
        let Self { tv, tv_sd, jsd, jsd_sd } = self;
        format!("NoiseFloor(tv={tv:.6} +- {tv_sd:.6}, jsd={jsd:.6} +- {jsd_sd:.6})")
    }
}
