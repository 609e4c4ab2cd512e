//! Figures that evaluations give: each is what it shows, and nothing else.

use pyo3::prelude::*;

use crate::pickled::{Again, again};

/// A mean and its standard error.
#[pyclass(frozen, get_all, module = "gfn_rs", name = "Estimate")]
#[derive(Clone, Copy)]
pub(crate) struct Estimate {
    /// The mean.
    pub(super) mean: f64,
    /// Its standard error.
    pub(super) standard_error: f64,
}

#[pymethods]
impl Estimate {
    #[new]
    #[pyo3(signature = (*, mean, standard_error))]
    fn new(mean: f64, standard_error: f64) -> Self {
        Self { mean, standard_error }
    }

    fn __getnewargs_ex__<'py>(slf: &Bound<'py, Self>) -> PyResult<Again<'py>> {
        again(slf, &["mean", "standard_error"])
    }

    fn __repr__(&self) -> String {
        format!("Estimate({:.4} +- {:.4})", self.mean, self.standard_error)
    }
}

/// How two numbers of the same objects go together: 1 where log p(x) is log R(x) less a constant.
#[pyclass(frozen, get_all, module = "gfn_rs", name = "Correlation")]
#[derive(Clone, Copy)]
pub(crate) struct Correlation {
    /// Pearson's r; None where one of the numbers is the same for all.
    pub(super) pearson: Option<f64>,
    /// Spearman's rho, of ranks.
    pub(super) spearman: Option<f64>,
}

#[pymethods]
impl Correlation {
    #[new]
    #[pyo3(signature = (*, pearson, spearman))]
    fn new(pearson: Option<f64>, spearman: Option<f64>) -> Self {
        Self { pearson, spearman }
    }

    fn __getnewargs_ex__<'py>(slf: &Bound<'py, Self>) -> PyResult<Again<'py>> {
        again(slf, &["pearson", "spearman"])
    }

    fn __repr__(&self) -> String {
        let shown = |value: Option<f64>| value.map_or_else(|| "None".to_owned(), |value| format!("{value:.4}"));
        format!("Correlation(pearson={}, spearman={})", shown(self.pearson), shown(self.spearman))
    }
}

/// The objects of the greatest reward among samples.
#[pyclass(frozen, get_all, module = "gfn_rs", name = "TopK")]
pub(crate) struct TopK {
    /// Their places among the samples, best first.
    pub(super) rows: Py<PyAny>,
    /// The objects, best first.
    pub(super) states: Py<PyAny>,
    /// Their mean reward.
    pub(super) mean_reward: f64,
    /// Their mean log R.
    pub(super) mean_log_reward: f64,
    /// The mean distance between two of them; None without a distance.
    pub(super) diversity: Option<f64>,
}

#[pymethods]
impl TopK {
    #[new]
    #[pyo3(signature = (*, rows, states, mean_reward, mean_log_reward, diversity))]
    fn new(rows: Py<PyAny>, states: Py<PyAny>, mean_reward: f64, mean_log_reward: f64, diversity: Option<f64>) -> Self {
        Self { rows, states, mean_reward, mean_log_reward, diversity }
    }

    fn __getnewargs_ex__<'py>(slf: &Bound<'py, Self>) -> PyResult<Again<'py>> {
        again(slf, &["rows", "states", "mean_reward", "mean_log_reward", "diversity"])
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let diversity = self.diversity.map_or_else(String::new, |mean| format!(", diversity={mean:.4}"));
        let k = self.rows.bind(py).len()?;
        Ok(format!("TopK({k} objects, mean_log_reward={:.4}{diversity})", self.mean_log_reward))
    }
}
