//! What an evaluation of samples or of given objects found.

mod figures;

use gfn::Result;
use gfn::metrics::{Correlation as Of, LogZEstimate, TopK as Best};
use numpy::{IntoPyArray, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::counts::count;
use crate::errors::raised;
use crate::pickled::{Again, again};
pub(crate) use figures::{Correlation, Estimate, TopK};

/// Shows all states, or those in some places.
pub(crate) type Select =
    Box<dyn for<'py> Fn(Python<'py>, Option<&[usize]>) -> PyResult<Bound<'py, PyAny>> + Send + Sync>;

/// What an evaluation of samples found, before it is shown.
pub(crate) struct Parts {
    pub(crate) select: Select,
    pub(crate) log_rewards: Vec<f64>,
    pub(crate) log_weights: Vec<f64>,
    pub(crate) lengths: Vec<i64>,
    pub(crate) groups: Vec<usize>,
    pub(crate) log_z: LogZEstimate,
}

/// Objects that a policy samples, and what they say of log Z. An estimate: `exact` looks at all states, where they can be listed.
///
/// With w of a trajectory its object's reward times P_B over P_F, log Z is at least the mean of log w (`elbo`), and the log of the mean
/// of w estimates it (`log_z`). Relative to a prior it is R to the power beta times the prior over P_F, and Z is its mean under the prior.
#[pyclass(frozen, module = "gfn_rs", name = "Sampled")]
pub(crate) struct Sampled {
    parts: Parts,
}

#[pymethods]
impl Sampled {
    /// From what it shows, as pickle makes it.
    #[new]
    #[pyo3(signature = (*, states, log_rewards, log_weights, lengths, groups, elbo, log_z, interval, effective_samples))]
    #[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
    fn new(
        states: Py<PyAny>,
        log_rewards: Vec<f64>,
        log_weights: Vec<f64>,
        lengths: Vec<i64>,
        groups: Vec<usize>,
        elbo: PyRef<'_, Estimate>,
        log_z: f64,
        interval: (f64, f64),
        effective_samples: f64,
    ) -> PyResult<Self> {
        let n = log_rewards.len();
        if [log_weights.len(), lengths.len(), groups.len()] != [n; 3] || groups.iter().any(|&first| first >= n) {
            return Err(PyValueError::new_err(format!("`log_weights`, `lengths` or `groups` aren't of {n} objects")));
        }
        let select: Select = Box::new(move |py, rows| match rows {
            None => Ok(states.bind(py).clone()),
            Some(rows) => {
                let rows: Vec<i64> = rows.iter().map(|&row| row as i64).collect();
                states.bind(py).get_item(rows.into_pyarray(py))
            }
        });
        let elbo = gfn::metrics::Estimate { mean: elbo.mean, standard_error: elbo.standard_error };
        let log_z = LogZEstimate { elbo, log_z, interval, effective_samples };
        Ok(Self { parts: Parts { select, log_rewards, log_weights, lengths, groups, log_z } })
    }

    fn __getnewargs_ex__<'py>(slf: &Bound<'py, Self>) -> PyResult<Again<'py>> {
        const NAMES: [&str; 9] = [
            "states",
            "log_rewards",
            "log_weights",
            "lengths",
            "groups",
            "elbo",
            "log_z",
            "interval",
            "effective_samples",
        ];
        again(slf, &NAMES)
    }

    fn __len__(&self) -> usize {
        self.parts.log_rewards.len()
    }

    fn __repr__(&self) -> String {
        let LogZEstimate { elbo, log_z, effective_samples, .. } = self.parts.log_z;
        let (n, distinct) = (self.__len__(), self.n_distinct());
        format!(
            "Sampled({n} objects, {distinct} distinct, log_z={log_z:.4}, elbo={:.4}, effective_samples={effective_samples:.1})",
            elbo.mean
        )
    }

    /// The objects.
    #[getter]
    fn states<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        (self.parts.select)(py, None)
    }

    /// log R of each.
    #[getter]
    fn log_rewards<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.parts.log_rewards.clone().into_pyarray(py).into_any()
    }

    /// log w of each trajectory.
    #[getter]
    fn log_weights<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.parts.log_weights.clone().into_pyarray(py).into_any()
    }

    /// The number of actions of each trajectory, its exit included.
    #[getter]
    fn lengths<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.parts.lengths.clone().into_pyarray(py).into_any()
    }

    /// The groups of equal objects: for each object the place of the first that is equal to it, up to isomorphism where the environment is; Kekule
    /// forms of a molecule are one.
    #[getter]
    fn groups<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        let groups: Vec<i64> = self.parts.groups.iter().map(|&group| group as i64).collect();
        groups.into_pyarray(py).into_any()
    }

    /// The number of different objects.
    #[getter]
    fn n_distinct(&self) -> usize {
        self.parts.groups.iter().enumerate().filter(|(row, group)| row == *group).count()
    }

    /// The mean number of actions of a trajectory.
    #[getter]
    fn mean_len(&self) -> f64 {
        self.parts.lengths.iter().sum::<i64>() as f64 / self.__len__() as f64
    }

    /// The mean of log w: a lower bound on log Z, which a policy that samples in proportion to the reward reaches.
    #[getter]
    fn elbo(&self) -> Estimate {
        let elbo = self.parts.log_z.elbo;
        Estimate { mean: elbo.mean, standard_error: elbo.standard_error }
    }

    /// The log of the mean of w: an estimate of log Z.
    #[getter]
    fn log_z(&self) -> f64 {
        self.parts.log_z.log_z
    }

    /// The 95 % confidence interval of `log_z`; to be trusted where `effective_samples` is large.
    #[getter]
    fn interval(&self) -> (f64, f64) {
        self.parts.log_z.interval
    }

    /// (sum w)^2 / sum w^2: so many equally weighted samples would say as much.
    #[getter]
    fn effective_samples(&self) -> f64 {
        self.parts.log_z.effective_samples
    }

    /// The `k` objects of the greatest reward, one that was sampled twice counting twice.
    ///
    /// `distance`, a function from k objects to an array `[k, k]` of the distances between them, gives their diversity.
    #[pyo3(signature = (k, distance=None))]
    fn top_k<'py>(
        &self,
        py: Python<'py>,
        k: &Bound<'py, PyAny>,
        distance: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<TopK> {
        let k = count(k, "k", 0)?;
        let best = Best::of(&self.parts.log_rewards, k, |_, _| 0.0).map_err(raised)?;
        let states = (self.parts.select)(py, Some(&best.rows))?;
        let diversity = distance.map(|function| mean_distance(&function.call1((&states,))?, k)).transpose()?;
        let rows: Vec<i64> = best.rows.iter().map(|&row| row as i64).collect();
        Ok(TopK {
            rows: rows.into_pyarray(py).into_any().unbind(),
            states: states.unbind(),
            mean_reward: best.mean_reward,
            mean_log_reward: best.mean_log_reward,
            diversity,
        })
    }

    /// The number of different objects that are modes: `is_mode` is a function from objects to an array of bool.
    fn modes<'py>(&self, py: Python<'py>, is_mode: &Bound<'py, PyAny>) -> PyResult<usize> {
        let first: Vec<usize> =
            self.parts.groups.iter().enumerate().filter(|(row, group)| row == *group).map(|(row, _)| row).collect();
        let answer = is_mode.call1(((self.parts.select)(py, Some(&first))?,))?;
        let array = py.import("numpy")?.call_method1("asarray", (&answer,))?;
        let Ok(answers) = array.extract::<PyReadonlyArray1<'_, bool>>() else {
            let what = format!("an array of {} and shape {}", array.getattr("dtype")?, array.getattr("shape")?);
            let expected = format!("expected a flat array of bool, {} of them", first.len());
            return Err(PyTypeError::new_err(format!("`is_mode` gave {what}: {expected}")));
        };
        if answers.as_array().len() == first.len() {
            Ok(answers.as_array().iter().filter(|is_mode| **is_mode).count())
        } else {
            let (got, expected) = (answers.as_array().len(), first.len());
            Err(PyValueError::new_err(format!("`is_mode` gave {got} answers: expected {expected}")))
        }
    }
}

impl From<Parts> for Sampled {
    fn from(parts: Parts) -> Self {
        Self { parts }
    }
}

/// The mean distance between two of k objects.
fn mean_distance(answer: &Bound<'_, PyAny>, k: usize) -> PyResult<f64> {
    let numpy = answer.py().import("numpy")?;
    let array = numpy.call_method1("asarray", (answer, "float64")).map_err(|error| {
        let told = PyTypeError::new_err(format!("`distance` gave no numbers: expected an array of shape [{k}, {k}]"));
        told.set_cause(answer.py(), Some(error));
        told
    })?;
    let shape: Vec<usize> = array.getattr("shape")?.extract()?;
    if shape != [k, k] {
        let got = format!("an array of shape {shape:?}");
        return Err(PyValueError::new_err(format!("`distance` gave {got}: expected [{k}, {k}]")));
    }
    let table: PyReadonlyArray2<'_, f64> = array.extract()?;
    let table = table.as_array();
    let pairs = (0..k).flat_map(|i| (i + 1..k).map(move |j| (i, j)));
    // From 0: the sum of nothing is -0.
    let total = pairs.fold(0.0, |total, pair| total + table[pair]);
    if total.is_finite() {
        Ok(total / (k * (k - 1) / 2).max(1) as f64)
    } else {
        Err(PyValueError::new_err("`distance` gave a number that isn't finite: expected finite ones"))
    }
}

/// What a policy makes of given objects, a test set say.
#[pyclass(frozen, module = "gfn_rs", name = "Tested")]
pub(crate) struct Tested {
    log_probs: Vec<f64>,
    log_rewards: Vec<f64>,
    correlation: Option<Of>,
    /// Mean and standard error; none relative to a prior.
    upper_bound: Option<Estimate>,
}

impl Tested {
    /// `ratios` are log P_F - log P_B of paths, those to object k from `ends[k]` to `ends[k + 1]`: `paths` to each of its states, less the
    /// measure over states, so that their mean is p of the object. `weights` are their log w.
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
            _ => weights.as_ref().map(|_| Of::between(&log_probs, &log_rewards)).transpose()?,
        };
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
        Ok(Self { log_probs, log_rewards, correlation, upper_bound })
    }
}

#[pymethods]
impl Tested {
    /// From what it shows, as pickle makes it.
    #[new]
    #[pyo3(signature = (*, log_probs, log_rewards, correlation, upper_bound))]
    fn again(
        log_probs: Vec<f64>,
        log_rewards: Vec<f64>,
        correlation: Option<PyRef<'_, Correlation>>,
        upper_bound: Option<PyRef<'_, Estimate>>,
    ) -> Self {
        let correlation = correlation.map(|of| Of { pearson: of.pearson, spearman: of.spearman });
        Self { log_probs, log_rewards, correlation, upper_bound: upper_bound.map(|bound| *bound) }
    }

    fn __getnewargs_ex__<'py>(slf: &Bound<'py, Self>) -> PyResult<Again<'py>> {
        again(slf, &["log_probs", "log_rewards", "correlation", "upper_bound"])
    }

    fn __len__(&self) -> usize {
        self.log_probs.len()
    }

    fn __repr__(&self) -> String {
        let pearson = self.correlation.and_then(|correlation| correlation.pearson);
        let pearson = pearson.map_or_else(String::new, |r| format!(", pearson={r:.4}"));
        format!("Tested({} objects{pearson})", self.__len__())
    }

    /// log p(x), the log-probability that the policy ends in each (in any of its states, such as the Kekule forms of a molecule), estimated
    /// from paths back to the start: never too large on average, and
    /// the exact one where P_F and P_B balance.
    #[getter]
    fn log_probs<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.log_probs.clone().into_pyarray(py).into_any()
    }

    /// log R of each.
    #[getter]
    fn log_rewards<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.log_rewards.clone().into_pyarray(py).into_any()
    }

    /// That of `log_probs` and `log_rewards`; None of a single object, and relative to a prior.
    #[getter]
    fn correlation(&self) -> Option<Correlation> {
        self.correlation.map(|Of { pearson, spearman }| Correlation { pearson, spearman })
    }

    /// The mean of log w over the paths (EUBO): of objects that are drawn in proportion to their rewards an upper bound on log Z. None
    /// relative to a prior.
    #[getter]
    fn upper_bound(&self) -> Option<Estimate> {
        self.upper_bound
    }
}
