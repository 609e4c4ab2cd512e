//! Conditions that a function of Python draws, or the library.

use gfn::condition::ConditionSource;
use gfn::{Error, Result, Rng};
use gfn_extras::condition::Conditioning;
use pyo3::prelude::*;
use serde_json::Value;
use tch::{Kind, Tensor};

use crate::conditioning::Conditioner;
use crate::errors::python_error;
use crate::references::{Object, References};
use crate::reward::class_name;
use crate::tensors;

/// The source of the conditions of trajectories, and the width of a condition.
pub(crate) enum Conditions {
    /// Uniform in `[0, 1)`.
    Uniform(usize),
    /// A function of a number n and a random generator of numpy that returns conditions, `[n, width]`.
    ///
    /// Each batch has a new generator, with a seed from the trainer's stream, so that a resumed run draws what it would have drawn.
    Function(Object, usize),
    /// Temperatures, preferences and directions of focus.
    Encoded(Box<Conditioning>),
}

impl Conditions {
    /// Reads a source of conditions; None without conditions.
    pub(crate) fn read(
        source: Option<Py<PyAny>>,
        width: usize,
        py: Python<'_>,
        references: &References,
    ) -> Result<Option<Self>> {
        let Some(source) = source else { return Ok((width > 0).then_some(Self::Uniform(width))) };
        Ok(Some(match source.bind(py).cast::<Conditioner>() {
            Ok(conditioner) => Self::Encoded(Box::new(conditioner.get().conditioning().clone())),
            Err(_) => Self::Function(references.add(source), width),
        }))
    }

    /// The width of a condition.
    pub(crate) fn width(&self) -> usize {
        match self {
            Self::Uniform(width) | Self::Function(_, width) => *width,
            Self::Encoded(conditioning) => conditioning.width(),
        }
    }

    /// The rule by which rewards depend on conditions; None if each reward takes them itself.
    pub(crate) fn conditioning(&self) -> Option<&Conditioning> {
        match self {
            Self::Encoded(conditioning) => Some(conditioning),
            Self::Uniform(_) | Self::Function(..) => None,
        }
    }
}

fn ask(function: &Py<PyAny>, n: usize, width: usize, seed: u64, py: Python<'_>) -> PyResult<Tensor> {
    let conditions = py.import("gfn_rs._conditions")?.call_method1("drawn", (function, n, width, seed))?;
    Ok(tensors::from_python(&conditions)?.to_kind(Kind::Double))
}

impl ConditionSource for Conditions {
    fn draw(&self, n: usize, rng: &mut Rng) -> Result<Tensor> {
        match self {
            Self::Uniform(width) => {
                let uniform: Vec<f64> = (0..n * width).map(|_| rng.uniform()).collect();
                Ok(Tensor::from_slice(&uniform).view([n as i64, *width as i64]))
            }
            Self::Function(function, width) => {
                let seed = rng.below(1 << 53) as u64;
                Python::attach(|py| ask(function, n, *width, seed, py)).map_err(python_error("the conditions"))
            }
            Self::Encoded(conditioning) => conditioning.draw(n, rng),
        }
    }

    fn check(&self, conditions: &Tensor) -> Result<()> {
        self.conditioning().map_or(Ok(()), |conditioning| conditioning.check(conditions))
    }
}

/// Refuses a reward of the library that takes no conditions.
pub(crate) fn check_takes_conditions(reward: &Value) -> Result<()> {
    match class_name(reward) {
        "ConditionalGridReward" => Ok(()),
        name => {
            let expected = "a function of states and conditions, or a reward that takes them";
            Err(Error::config("the reward of a trainer with conditions", name, expected))
        }
    }
}
