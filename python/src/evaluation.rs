//! The results of evaluations: values by name, of which the classes of `gfn_rs.results` are made.

use std::convert::Infallible;

use gfn::{Result, metrics};
use numpy::{Element, IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::border::Shown;

/// Numbers that Python gets as an array of numpy.
pub(crate) struct Array<T>(pub(crate) Vec<T>);

impl<'py, T: Element> IntoPyObject<'py> for Array<T> {
    type Target = PyArray1<T>;
    type Output = Bound<'py, PyArray1<T>>;
    type Error = Infallible;
    fn into_pyobject(self, py: Python<'py>) -> std::result::Result<Self::Output, Infallible> {
        Ok(self.0.into_pyarray(py))
    }
}

/// Places of states.
pub(crate) fn places(rows: impl Iterator<Item = usize>) -> Array<i64> {
    Array(rows.map(|row| row as i64).collect())
}

/// States, and figures of them.
pub(crate) struct WithStates<F> {
    pub(crate) states: Shown,
    pub(crate) figures: F,
}

impl<F> WithStates<F> {
    pub(crate) fn into_dict<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>>
    where
        F: IntoPyObject<'py, Target = PyDict, Output = Bound<'py, PyDict>, Error = PyErr>,
    {
        let values = self.figures.into_pyobject(py)?;
        values.set_item("states", (self.states)(py)?)?;
        Ok(values)
    }
}

#[derive(IntoPyObject)]
pub(crate) struct Distances {
    l1: f64,
    tv: f64,
    jsd: f64,
    kl_target_policy: f64,
    kl_policy_target: f64,
}

impl From<metrics::Distances> for Distances {
    fn from(of: metrics::Distances) -> Self {
        let metrics::Distances { l1, tv, jsd, kl_target_policy, kl_policy_target } = of;
        Self { l1, tv, jsd, kl_target_policy, kl_policy_target }
    }
}

#[derive(IntoPyObject)]
pub(crate) struct Estimate {
    pub(crate) mean: f64,
    pub(crate) standard_error: f64,
}

#[derive(IntoPyObject)]
struct Correlation {
    pearson: Option<f64>,
    spearman: Option<f64>,
}

#[derive(IntoPyObject)]
pub(crate) struct Sampled {
    pub(crate) log_rewards: Array<f64>,
    pub(crate) log_weights: Array<f64>,
    pub(crate) lengths: Array<i64>,
    pub(crate) groups: Array<i64>,
    pub(crate) elbo: Estimate,
    pub(crate) log_z: f64,
    pub(crate) interval: (f64, f64),
    pub(crate) effective_samples: f64,
}

#[derive(IntoPyObject)]
pub(crate) struct Tested {
    log_probs: Array<f64>,
    log_rewards: Array<f64>,
    correlation: Option<Correlation>,
    upper_bound: Option<Estimate>,
}

impl Tested {
    /// `ratios` are the log-ratios log P_F - log P_B of `paths` paths to each state, corrected for objects with several states, so that
    /// their mean is p of the object; those of object k are `ratios[ends[k]..ends[k + 1]]`. `weights` are the paths' log w.
    pub(crate) fn new(
        ratios: &[f64],
        ends: &[usize],
        paths: usize,
        log_rewards: Vec<f64>,
        weights: Option<Vec<f64>>,
    ) -> Result<Self> {
        let mean = |ratios: &[f64]| {
            let most = ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            // Where P_F is 0 on all paths.
            if most == f64::NEG_INFINITY {
                return most;
            }
            most + (ratios.iter().map(|ratio| (ratio - most).exp()).sum::<f64>() / ratios.len() as f64).ln()
        };
        let log_probs: Vec<f64> = ends.windows(2).map(|ends| mean(&ratios[ends[0]..ends[1]])).collect();
        let correlation = match log_probs.len() {
            1 => None,
            _ => weights.as_ref().map(|_| metrics::Correlation::between(&log_probs, &log_rewards)).transpose()?,
        };
        let correlation =
            correlation.map(|metrics::Correlation { pearson, spearman }| Correlation { pearson, spearman });
        let upper_bound = weights.map(|weights| {
            // Each object counts once, however many states it has: as many numbers of each as there are paths.
            let of_object = |ends: &[usize]| {
                let (own, states) = (&weights[ends[0]..ends[1]], (ends[1] - ends[0]) / paths);
                (0..paths).map(|k| own[k..].iter().step_by(paths).sum::<f64>() / states as f64).collect::<Vec<_>>()
            };
            let weights: Vec<f64> = ends.windows(2).flat_map(of_object).collect();
            let n = weights.len() as f64;
            let mean = weights.iter().sum::<f64>() / n;
            let squares: f64 = weights.iter().map(|weight| (weight - mean).powi(2)).sum();
            Estimate { mean, standard_error: (squares / (n - 1.0).max(1.0)).sqrt() / n.sqrt() }
        });
        Ok(Self { log_probs: Array(log_probs), log_rewards: Array(log_rewards), correlation, upper_bound })
    }
}
