//! Other conditions for replayed objects, which a function of Python gives.

use gfn::condition::Hindsight;
use gfn::env::Rows;
use gfn::{Result, Rng};
use pyo3::prelude::*;
use tch::Tensor;

use crate::errors::passed_on;
use crate::kept::Object;
use crate::states::Show;
use crate::tensors;

/// A function of objects, of the conditions `[n, C]` that they were found under, and of a random generator of numpy.
pub(super) struct CalledHindsight<S> {
    pub(super) function: Object,
    pub(super) show: Show<S>,
}

impl<S: Rows> Hindsight<S> for CalledHindsight<S> {
    fn relabel(&self, objects: &S, conditions: &Tensor, rng: &mut Rng) -> Result<Tensor> {
        let seed = rng.below(1 << 53) as u64;
        let asked = |py: Python<'_>| {
            let shown = ((self.show)(py, objects)?, tensors::to_python(py, conditions)?);
            let given = (self.function.as_ref(), shown.0, shown.1, seed);
            let relabelled = py.import("gfn_rs._conditions")?.call_method1("relabelled", given)?;
            tensors::from_python(&relabelled)
        };
        let others = tch::no_grad(|| Python::attach(asked)).map_err(passed_on("the hindsight"))?;
        Ok(others.to_kind(conditions.kind()).to_device(conditions.device()))
    }
}
