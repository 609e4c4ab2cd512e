//! Conditions that a function of Python draws.

use gfn::condition::ConditionSource;
use gfn::{Error, Result, Rng};
use pyo3::prelude::*;
use tch::{Kind, Tensor};

use crate::errors::passed_on;
use crate::kept::Object;
use crate::tensors;

/// A function of a number and a random generator of numpy that gives conditions, `[number, width]`.
///
/// The generator is made anew for each batch, with a seed from the trainer's own stream, so that a run that goes on draws what it would
/// have drawn.
pub(crate) struct Conditions {
    pub(crate) function: Object,
    pub(crate) width: usize,
}

impl Conditions {
    fn ask(&self, py: Python<'_>, n: usize, seed: u64) -> PyResult<Tensor> {
        let drawn =
            py.import("gfn_rs._conditions")?.call_method1("drawn", (self.function.as_ref(), n, self.width, seed))?;
        Ok(tensors::from_python(&drawn)?.to_kind(Kind::Double))
    }
}

impl ConditionSource for Conditions {
    fn draw(&self, n: usize, rng: &mut Rng) -> Result<Tensor> {
        let seed = rng.below(1 << 53) as u64;
        Python::attach(|py| self.ask(py, n, seed)).map_err(passed_on("the conditions"))
    }
}

/// What has no conditions where it should, or has them where it shouldn't.
pub(crate) fn refuse_native(name: &str) -> Error {
    Error::config("the reward of a trainer with conditions", name, "a function of states and conditions")
}
