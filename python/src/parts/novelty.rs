//! Intrinsic rewards that a function of Python gives.

use gfn::Result;
use gfn::env::Rows;
use gfn_extras::explore::Novelty;
use pyo3::prelude::*;
use tch::Tensor;

use crate::errors::passed_on;
use crate::kept::Object;
use crate::reward::numbers;
use crate::states::Show;

/// A function of a batch of states that says how new each is; it never changes as far as checkpoints know.
pub(super) struct CalledNovelty<S> {
    pub(super) function: Object,
    pub(super) show: Show<S>,
}

impl<S: Rows> Novelty<S> for CalledNovelty<S> {
    fn rewards(&self, states: &S) -> Result<Vec<f64>> {
        let asked = |py: Python<'_>| {
            let answer = self.function.bind(py).call1(((self.show)(py, states)?,))?;
            numbers(&answer, states.len(), "the novelty", "a number of at least 0")
        };
        tch::no_grad(|| Python::attach(asked)).map_err(passed_on("the novelty"))
    }
}

/// Any novelty.
pub(super) struct AnyNovelty<S>(pub(super) Box<dyn Novelty<S>>);

impl<S> Novelty<S> for AnyNovelty<S> {
    fn rewards(&self, states: &S) -> Result<Vec<f64>> {
        self.0.rewards(states)
    }
    fn learn(&mut self, visited: &S) -> Result<()> {
        self.0.learn(visited)
    }
    fn state(&self) -> Result<Vec<(String, Tensor)>> {
        self.0.state()
    }
    fn load_state(&mut self, state: &[(String, Tensor)]) -> Result<()> {
        self.0.load_state(state)
    }
}
