//! Other conditions for replayed objects, by a function of Python.

use std::sync::Arc;

use gfn::condition::Hindsight;
use gfn::env::Rows;
use gfn::{Result, Rng};
use pyo3::prelude::*;
use tch::Tensor;

use crate::border::Border;
use crate::errors::python_error;
use crate::references::Object;
use crate::tensors;

/// A function of objects, of the conditions `[n, C]` that they were found under, and of a random generator of numpy.
pub(super) struct PyHindsight<S> {
    pub(super) function: Object,
    pub(super) border: Arc<dyn Border<S>>,
}

impl<S: Rows + 'static> Hindsight<S> for PyHindsight<S> {
    fn relabel(&self, objects: &S, conditions: &Tensor, rng: &mut Rng) -> Result<Tensor> {
        let seed = rng.below(1 << 53) as u64;
        let call = |py: Python<'_>| {
            let shown = self.border.show(py, objects)?;
            let arguments = (self.function.as_ref(), shown, tensors::to_python(py, conditions)?, seed);
            tensors::from_python(&py.import("gfn_rs._conditions")?.call_method1("relabelled", arguments)?)
        };
        let relabelled = tch::no_grad(|| Python::attach(call)).map_err(python_error("the hindsight"))?;
        Ok(relabelled.to_kind(conditions.kind()).to_device(conditions.device()))
    }
}
