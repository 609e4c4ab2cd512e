//! Conditions that a function of Python draws, or the library.

use std::sync::Arc;

use gfn::condition::ConditionSource;
use gfn::{Error, Result, Rng};
use gfn_extras::condition::Conditioning;
use pyo3::prelude::*;
use serde_json::Value;
use tch::{Kind, Tensor};

use crate::conditioning::Conditioner;
use crate::errors::passed_on;
use crate::kept::{Kept, Object};
use crate::tensors;

/// What the condition of each trajectory is drawn from, and how many numbers it has.
pub(crate) enum Conditions {
    /// Uniform in `[0, 1)`.
    Uniform(usize),
    /// A function of a number and a random generator of numpy that gives conditions, `[number, width]`.
    ///
    /// The generator is made anew for each batch, with a seed from the trainer's own stream, so that a run that goes on draws what it
    /// would have drawn.
    Called(Object, usize),
    /// Temperatures, preferences and directions of focus.
    Encoded(Box<Conditioning>),
}

impl Conditions {
    /// What Python gave; None without conditions.
    pub(crate) fn read(given: Option<Py<PyAny>>, width: usize, py: Python<'_>, kept: &Kept) -> Result<Option<Self>> {
        let Some(given) = given else { return Ok((width > 0).then_some(Self::Uniform(width))) };
        Ok(Some(match given.bind(py).cast::<Conditioner>() {
            Ok(conditioner) => Self::Encoded(Box::new(conditioner.get().conditioning().clone())),
            Err(_) => Self::Called(kept.keep(given), width),
        }))
    }

    /// Numbers of a condition.
    pub(crate) fn width(&self) -> usize {
        match self {
            Self::Uniform(width) | Self::Called(_, width) => *width,
            Self::Encoded(conditioning) => conditioning.width(),
        }
    }

    /// What says how rewards depend on conditions, where that isn't their own business.
    pub(crate) fn conditioning(&self) -> Option<&Conditioning> {
        match self {
            Self::Encoded(conditioning) => Some(conditioning),
            Self::Uniform(_) | Self::Called(..) => None,
        }
    }
}

/// Conditions that are drawn by a trainer, and known to its session.
pub(crate) struct Shared(pub(crate) Arc<Conditions>);

fn ask(function: &Py<PyAny>, n: usize, width: usize, seed: u64, py: Python<'_>) -> PyResult<Tensor> {
    let drawn = py.import("gfn_rs._conditions")?.call_method1("drawn", (function, n, width, seed))?;
    Ok(tensors::from_python(&drawn)?.to_kind(Kind::Double))
}

/// A trainer and its session have a share each.
impl ConditionSource for Shared {
    fn draw(&self, n: usize, rng: &mut Rng) -> Result<Tensor> {
        self.0.draw(n, rng)
    }

    fn check(&self, conditions: &Tensor) -> Result<()> {
        self.0.check(conditions)
    }
}

impl ConditionSource for Conditions {
    fn draw(&self, n: usize, rng: &mut Rng) -> Result<Tensor> {
        match self {
            Self::Uniform(width) => {
                let uniform: Vec<f64> = (0..n * width).map(|_| rng.uniform()).collect();
                Ok(Tensor::from_slice(&uniform).view([n as i64, *width as i64]))
            }
            Self::Called(function, width) => {
                let seed = rng.below(1 << 53) as u64;
                Python::attach(|py| ask(function, n, *width, seed, py)).map_err(passed_on("the conditions"))
            }
            Self::Encoded(conditioning) => conditioning.draw(n, rng),
        }
    }

    fn check(&self, conditions: &Tensor) -> Result<()> {
        self.conditioning().map_or(Ok(()), |conditioning| conditioning.check(conditions))
    }
}

/// Refuses a reward of the library's that takes no conditions.
pub(crate) fn check_native(reward: &Value) -> Result<()> {
    match reward.as_object().and_then(|object| object.keys().next()).map_or("none", String::as_str) {
        "ConditionalGridReward" => Ok(()),
        name => {
            let expected = "a function of states and conditions, or a reward that takes them";
            Err(Error::config("the reward of a trainer with conditions", name, expected))
        }
    }
}
