//! Rewards: those of the library by their settings, and Python's own.

mod called;
mod graphs;
mod other;
mod vectors;

pub(crate) use called::{Called, numbers};
pub(crate) use graphs::graph_reward;
pub(crate) use other::{box_reward, diffusion_target, line_reward, structure_reward};
pub(crate) use vectors::vector_reward;

use gfn::env::{Reward, Rows};
use pyo3::prelude::*;

use crate::kept::Object;
use crate::settings::read;
use crate::states::Show;

/// What Python gave for a reward.
pub(crate) enum Asked {
    /// The settings of one of the library's, as JSON.
    Native(serde_json::Value),
    /// A callable.
    Called(Object),
}

impl Asked {
    /// Reads `(text, callable)`, one of which is there.
    pub(crate) fn new(settings: Option<&str>, callable: Option<Object>) -> PyResult<Self> {
        match (settings, callable) {
            (_, Some(callable)) => Ok(Self::Called(callable)),
            (settings, None) => Ok(Self::Native(read("a reward", settings.unwrap_or("null"))?)),
        }
    }

    /// The reward: Python's own is shown the states, `native` makes the library's.
    pub(crate) fn build<S: Rows + 'static>(
        self,
        show: Show<S>,
        native: impl FnOnce(serde_json::Value) -> PyResult<Box<dyn Reward<S>>>,
    ) -> PyResult<Box<dyn Reward<S>>> {
        match self {
            Self::Native(settings) => native(settings),
            Self::Called(callable) => Python::attach(|py| Ok(Box::new(Called::new(py, callable, show)?) as _)),
        }
    }
}

/// What a reward of the library's for other states than these says.
pub(crate) fn wrong_states(settings: &serde_json::Value, states: &'static str) -> PyErr {
    let name = settings.as_object().and_then(|object| object.keys().next()).cloned().unwrap_or_else(|| "none".into());
    pyo3::exceptions::PyTypeError::new_err(format!(
        "the reward {name} isn't one of {states}: expected one that is made for this environment, or a function of a batch of states"
    ))
}
