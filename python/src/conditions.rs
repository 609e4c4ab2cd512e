//! Conditions of trajectories, which the library or a Python function draws, and their encoding as vectors
//! for networks.

use gfn::condition::ConditionSource;
use gfn::env::Env;
use gfn::train::Context;
use gfn::{Error, Result, Rng};
use gfn_extras::condition::{Condition, Conditioning, Directions, Encoding, Focus, Temperature};
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::Value;
use tch::{Kind, Tensor};

use crate::errors::{Outcome, call_python};
use crate::inside::Inside;
use crate::references::{Object, References};
use crate::reward::class_name;
use crate::settings::Settings;
use crate::tensors::PyTensor;

/// The settings of conditions, in the form that Python passes. Without `preferences`, the weights of the
/// rewards are equal. Without `focus`, conditions have no direction of focus.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    n_rewards: usize,
    temperature: WithBins<Temperature>,
    preferences: Option<WithBins<Directions>>,
    focus: Option<FocusSpec>,
}

/// The distribution of one part of a condition, and the part's encoding for networks. `bins` is the length of
/// the thermometer encoding, in which a larger number has more ones. With `None`, the part is encoded as
/// plain numbers, or not at all if it is constant.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WithBins<T> {
    value: T,
    bins: Option<usize>,
}

impl<T> WithBins<T> {
    fn encoding(&self) -> Encoding {
        self.bins.map_or(Encoding::Number, |bins| Encoding::Thermometer { bins })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FocusSpec {
    directions: WithBins<Directions>,
    cosine: f64,
    limit: f64,
    outside: f64,
}

impl Spec {
    fn build(self) -> Result<Conditioning> {
        let encoding = self.temperature.encoding();
        let mut out = Conditioning::new(self.n_rewards)?.temperature(self.temperature.value, encoding)?;
        if let Some(preferences) = self.preferences {
            let encoding = preferences.encoding();
            out = out.preferences(preferences.value, encoding)?;
        }
        match self.focus {
            None => Ok(out),
            Some(FocusSpec { directions, cosine, limit, outside }) => {
                let encoding = directions.encoding();
                out.focus(Focus { directions: directions.value, cosine, limit, outside }, encoding)
            }
        }
    }
}

/// A decoded condition: beta (the exponent of R), the weights of the rewards (preferences), and the direction
/// of focus.
type Plain = (f64, Vec<f64>, Option<Vec<f64>>);

/// The class that `gfn_rs.Conditioning` wraps: a distribution of conditions, and their encoding as vectors.
#[pyclass(frozen, module = "gfn_rs._gfn")]
pub(crate) struct Conditioner(Conditioning);

#[pymethods]
impl Conditioner {
    #[new]
    fn new(settings: Settings<Spec>) -> Outcome<Self> {
        Ok(Self(settings.0.build()?))
    }

    /// The length of a condition's vector.
    #[getter]
    fn width(&self) -> usize {
        self.0.width()
    }

    /// Draws `n` conditions, and returns their vectors, `[n, width]`.
    fn draw(&self, py: Python<'_>, n: usize, seed: u64) -> Outcome<PyTensor> {
        let _inside = Inside::enter(py)?;
        Ok(PyTensor(self.0.draw(n, &mut Rng::seeded(seed))?))
    }

    /// Encodes conditions as vectors, `[n, width]`.
    fn encode(&self, py: Python<'_>, conditions: Vec<Plain>) -> Outcome<PyTensor> {
        let one = |(beta, preferences, focus)| Condition { beta, preferences, focus };
        let conditions: Vec<Condition> = conditions.into_iter().map(one).collect();
        let _inside = Inside::enter(py)?;
        Ok(PyTensor(self.0.encode(&conditions)?))
    }

    /// Decodes conditions from their vectors.
    fn decode(&self, py: Python<'_>, vectors: PyTensor) -> Outcome<Vec<Plain>> {
        let _inside = Inside::enter(py)?;
        self.0.check(&vectors.0)?;
        let decoded = self.0.decode(&vectors.0)?;
        Ok(decoded
            .into_iter()
            .map(|Condition { beta, preferences, focus }| (beta, preferences, focus))
            .collect())
    }
}

/// The source of a trainer's conditions, in the form that Python passes.
#[derive(FromPyObject)]
pub(crate) enum ConditionSettings {
    Encoded(Py<Conditioner>),
    Function(Py<PyAny>),
}

/// The source of the conditions of trajectories.
pub(crate) enum Conditions {
    /// Vectors of this length, whose entries are uniform in `[0, 1)`.
    Uniform(usize),
    /// A Python function of a number n and a random generator of numpy, which returns conditions, `[n,
    /// width]`. The second field is the width.
    ///
    /// Each batch gets a new generator, whose seed comes from the trainer's random numbers, so that a
    /// resumed run draws the same conditions as an uninterrupted run.
    Function(Object, usize),
    /// Conditions that the library itself draws and encodes as vectors. Such conditions have temperatures
    /// (exponents of R), weights of several rewards, and directions in the space of rewards.
    Encoded(Box<Conditioning>),
}

impl Conditions {
    /// Returns a source of conditions; None if there are no conditions.
    pub(crate) fn new(
        source: Option<ConditionSettings>,
        width: usize,
        references: &References,
    ) -> Option<Self> {
        match source {
            None => (width > 0).then_some(Self::Uniform(width)),
            Some(ConditionSettings::Function(function)) => {
                Some(Self::Function(references.add(function), width))
            }
            Some(ConditionSettings::Encoded(of)) => Some(Self::Encoded(Box::new(of.get().0.clone()))),
        }
    }

    /// Returns the length of a condition's vector.
    pub(crate) fn width(&self) -> usize {
        match self {
            Self::Uniform(width) | Self::Function(_, width) => *width,
            Self::Encoded(conditioning) => conditioning.width(),
        }
    }

    /// Returns the `Conditioning`, by which the library itself applies conditions to rewards; `None` if
    /// rewards get the conditions as an argument.
    pub(crate) fn conditioning(&self) -> Option<&Conditioning> {
        match self {
            Self::Encoded(conditioning) => Some(conditioning),
            Self::Uniform(_) | Self::Function(..) => None,
        }
    }
}

impl ConditionSource for Conditions {
    fn draw(&self, n: usize, rng: &mut Rng) -> Result<Tensor> {
        match self {
            Self::Uniform(width) => {
                let uniform: Vec<f64> = (0..n * width).map(|_| rng.uniform()).collect();
                Ok(Tensor::from_slice(&uniform).view([n as i64, *width as i64]))
            }
            Self::Function(function, width) => {
                let arguments = (function.as_ref(), n, *width, rng.below(1 << 53));
                let PyTensor(drawn) = call_python("the conditions", |py| {
                    py.import("gfn_rs._conditions")?.call_method1("drawn", arguments)?.extract()
                })?;
                Ok(drawn.to_kind(Kind::Double))
            }
            Self::Encoded(conditioning) => conditioning.draw(n, rng),
        }
    }

    fn check(&self, conditions: &Tensor) -> Result<()> {
        self.conditioning().map_or(Ok(()), |conditioning| conditioning.check(conditions))
    }
}

/// Returns an error for conditions that the trainer's source of conditions can't draw.
pub(crate) fn check_conditions<E: Env>(context: &Context<E>, conditions: Option<&Tensor>) -> Result<()> {
    match (&context.conditions, conditions) {
        (Some(source), Some(conditions)) => source.check(conditions),
        _ => Ok(()),
    }
}

/// Returns an error for a reward of the library that doesn't accept conditions as an argument.
pub(crate) fn check_takes_conditions(reward: &Value) -> Result<()> {
    match class_name(reward) {
        "ConditionalGridReward" => Ok(()),
        name => {
            let expected = "a function of states and conditions, or ConditionalGridReward";
            Err(Error::config("the reward of a trainer with conditions", name, expected))
        }
    }
}
