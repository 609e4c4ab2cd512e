//! Conditions that a function of Python draws, or the library.

use gfn::condition::ConditionSource;
use gfn::{Error, Result, Rng};
use pyo3::prelude::*;
use serde_json::Value;
use tch::{Kind, Tensor};

use crate::errors::passed_on;
use crate::kept::Object;
use crate::tensors;

/// A function of a number and a random generator of numpy that gives conditions, `[number, width]`; without one they are uniform in
/// `[0, 1)`.
///
/// The generator is made anew for each batch, with a seed from the trainer's own stream, so that a run that goes on draws what it would
/// have drawn.
pub(crate) struct Conditions {
    pub(crate) function: Option<Object>,
    pub(crate) width: usize,
}

impl Conditions {
    fn ask(&self, function: &Py<PyAny>, n: usize, seed: u64, py: Python<'_>) -> PyResult<Tensor> {
        let drawn = py.import("gfn_rs._conditions")?.call_method1("drawn", (function, n, self.width, seed))?;
        Ok(tensors::from_python(&drawn)?.to_kind(Kind::Double))
    }
}

impl ConditionSource for Conditions {
    fn draw(&self, n: usize, rng: &mut Rng) -> Result<Tensor> {
        let Some(function) = &self.function else {
            let uniform: Vec<f64> = (0..n * self.width).map(|_| rng.uniform()).collect();
            return Ok(Tensor::from_slice(&uniform).view([n as i64, self.width as i64]));
        };
        let seed = rng.below(1 << 53) as u64;
        Python::attach(|py| self.ask(function, n, seed, py)).map_err(passed_on("the conditions"))
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
