//! Conditions that rewards depend on, and their encoding for networks: the core of `gfn_rs.Conditioning`.

use gfn::condition::ConditionSource;
use gfn::{Result, Rng};
use gfn_extras::condition::{Condition, Conditioning, Directions, Encoding, Focus, Temperature};
use pyo3::prelude::*;
use serde::Deserialize;
use tch::Tensor;

use crate::errors::raised;
use crate::inside::Inside;
use crate::settings::read;
use crate::tensors;

/// The settings, as Python writes them; a part that doesn't vary has no marks.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    n_rewards: usize,
    temperature: Marked<Temperature>,
    preferences: Option<Marked<Directions>>,
    focus: Option<FocusSpec>,
}

/// A distribution, and the marks of its thermometer, if it is written as one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Marked<T> {
    of: T,
    bins: Option<usize>,
}

impl<T> Marked<T> {
    fn encoding(&self) -> Encoding {
        self.bins.map_or(Encoding::Number, |bins| Encoding::Thermometer { bins })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FocusSpec {
    directions: Marked<Directions>,
    cosine: f64,
    limit: f64,
    outside: f64,
}

impl Spec {
    fn build(self) -> Result<Conditioning> {
        let encoding = self.temperature.encoding();
        let mut out = Conditioning::new(self.n_rewards)?.temperature(self.temperature.of, encoding)?;
        if let Some(preferences) = self.preferences {
            let encoding = preferences.encoding();
            out = out.preferences(preferences.of, encoding)?;
        }
        match self.focus {
            None => Ok(out),
            Some(FocusSpec { directions, cosine, limit, outside }) => {
                let encoding = directions.encoding();
                out.focus(Focus { directions: directions.of, cosine, limit, outside }, encoding)
            }
        }
    }
}

/// beta, preferences and direction of focus of a condition.
type Plain = (f64, Vec<f64>, Option<Vec<f64>>);

/// A distribution of conditions and their encoding.
#[pyclass(frozen, module = "gfn_rs._gfn")]
pub(crate) struct Conditioner(Conditioning);

impl Conditioner {
    pub(crate) fn conditioning(&self) -> &Conditioning {
        &self.0
    }
}

#[pymethods]
impl Conditioner {
    #[new]
    fn new(settings: &Bound<'_, PyAny>) -> PyResult<Self> {
        let spec: Spec = read("Conditioning", settings)?;
        spec.build().map(Self).map_err(raised)
    }

    /// Numbers of a condition's vector.
    #[getter]
    fn width(&self) -> usize {
        self.0.width()
    }

    /// Vectors of `n` conditions, `[n, width]`.
    fn draw<'py>(&self, py: Python<'py>, n: usize, seed: u64) -> PyResult<Bound<'py, PyAny>> {
        let _inside = Inside::enter(py)?;
        let conditions = self.0.draw(n, &mut Rng::seeded(seed)).map_err(raised)?;
        tensors::to_python(py, &conditions)
    }

    /// The vectors of conditions.
    fn encode<'py>(&self, py: Python<'py>, conditions: Vec<Plain>) -> PyResult<Bound<'py, PyAny>> {
        let one = |(beta, preferences, focus)| Condition { beta, preferences, focus };
        let conditions: Vec<Condition> = conditions.into_iter().map(one).collect();
        let _inside = Inside::enter(py)?;
        let encoded: Tensor = self.0.encode(&conditions).map_err(raised)?;
        tensors::to_python(py, &encoded)
    }

    /// The conditions of vectors.
    fn decode(&self, vectors: &Bound<'_, PyAny>) -> PyResult<Vec<Plain>> {
        let _inside = Inside::enter(vectors.py())?;
        let vectors = tensors::from_python(vectors)?;
        self.0.check(&vectors).map_err(raised)?;
        let decoded = self.0.decode(&vectors).map_err(raised)?;
        Ok(decoded.into_iter().map(|Condition { beta, preferences, focus }| (beta, preferences, focus)).collect())
    }
}
