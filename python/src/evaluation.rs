//! The results of evaluations: values by name, of which the classes of `gfn_rs.results` are made.

use gfn::{Result, metrics};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};

/// The values of an evaluation by name, for a caller that is attached to the interpreter.
pub(crate) type Evaluation = Box<dyn for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyDict>> + Send>;

/// Places of states as an int64 array.
pub(crate) fn places(py: Python<'_>, rows: impl IntoIterator<Item = usize>) -> Bound<'_, PyArray1<i64>> {
    rows.into_iter().map(|row| row as i64).collect::<Vec<_>>().into_pyarray(py)
}

/// Distances by name.
pub(crate) fn distances<'py>(py: Python<'py>, distances: &metrics::Distances) -> PyResult<Bound<'py, PyDict>> {
    let &metrics::Distances { l1, tv, jsd, kl_target_policy, kl_policy_target } = distances;
    let kl = [("kl_target_policy", kl_target_policy), ("kl_policy_target", kl_policy_target)];
    [("l1", l1), ("tv", tv), ("jsd", jsd)].into_iter().chain(kl).into_py_dict(py)
}

/// A mean and its standard error by name.
pub(crate) fn estimate(py: Python<'_>, mean: f64, standard_error: f64) -> PyResult<Bound<'_, PyDict>> {
    [("mean", mean), ("standard_error", standard_error)].into_py_dict(py)
}

/// Paths to objects: `paths` to each state, those to object k from `ends[k]` to `ends[k + 1]`.
pub(crate) struct PathsToObjects {
    pub(crate) paths: usize,
    pub(crate) ends: Vec<usize>,
    /// log P_F - log P_B of each path, corrected for objects with several states, so that their mean is p of the object.
    pub(crate) ratios: Vec<f64>,
    /// log w of each path; None if the objective is relative to a prior.
    pub(crate) weights: Option<Vec<f64>>,
    /// log R of each object.
    pub(crate) log_rewards: Vec<f64>,
}

impl PathsToObjects {
    /// Estimates log p of each object, its correlation with log R, and an upper bound on log Z.
    pub(crate) fn evaluate(self) -> Result<Evaluation> {
        let log_probs: Vec<f64> = self.ends.windows(2).map(|ends| log_mean(&self.ratios[ends[0]..ends[1]])).collect();
        let correlation = match (log_probs.len(), &self.weights) {
            (1, _) | (_, None) => None,
            _ => Some(metrics::Correlation::between(&log_probs, &self.log_rewards)?),
        };
        let upper_bound = self.weights.as_ref().map(|weights| self.upper_bound(weights));
        Ok(Box::new(move |py| {
            let values = PyDict::new(py);
            values.set_item("log_probs", log_probs.into_pyarray(py))?;
            values.set_item("log_rewards", self.log_rewards.into_pyarray(py))?;
            let correlation = correlation.map(|metrics::Correlation { pearson, spearman }| {
                [("pearson", pearson), ("spearman", spearman)].into_py_dict(py)
            });
            values.set_item("correlation", correlation.transpose()?)?;
            let upper_bound = upper_bound.map(|(mean, standard_error)| estimate(py, mean, standard_error));
            values.set_item("upper_bound", upper_bound.transpose()?)?;
            Ok(values)
        }))
    }

    /// The mean of the weights, and its standard error. Each object counts once, however many states it has, so there are as many numbers
    /// of each as there are paths to a state.
    fn upper_bound(&self, weights: &[f64]) -> (f64, f64) {
        let mut of_objects = Vec::new();
        for ends in self.ends.windows(2) {
            let weights = &weights[ends[0]..ends[1]];
            let n_states = (weights.len() / self.paths) as f64;
            for k in 0..self.paths {
                of_objects.push(weights[k..].iter().step_by(self.paths).sum::<f64>() / n_states);
            }
        }
        let n = of_objects.len() as f64;
        let mean = of_objects.iter().sum::<f64>() / n;
        let squares: f64 = of_objects.iter().map(|weight| (weight - mean).powi(2)).sum();
        (mean, (squares / (n - 1.0).max(1.0)).sqrt() / n.sqrt())
    }
}

/// The log of a mean, of logs.
fn log_mean(logs: &[f64]) -> f64 {
    let max = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // P_F is 0 on all paths.
    if max == f64::NEG_INFINITY {
        return max;
    }
    max + (logs.iter().map(|log| (log - max).exp()).sum::<f64>() / logs.len() as f64).ln()
}
