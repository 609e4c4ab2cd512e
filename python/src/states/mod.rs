//! Batches of states as Python sees them: `Graphs`, or numpy arrays.

mod graphs;
mod rows;

use std::sync::Arc;

use gfn::env::{Reals, VectorStates};
use gfn::graph::GraphStates;
use gfn_gym::diffusion::DiffusionStates;
use pyo3::prelude::*;

use crate::molecules::Reading;
pub(crate) use graphs::Graphs;
pub(crate) use rows::entries;
use rows::{adjacency, reals};

/// How states of one environment are shown to Python.
pub(crate) type Show<S> = Arc<dyn for<'py> Fn(Python<'py>, &S) -> PyResult<Bound<'py, PyAny>> + Send + Sync>;

/// Graphs, which may stand for molecules.
pub(crate) fn show_graphs(reading: Option<Reading>) -> Show<GraphStates> {
    Arc::new(move |py, states| Ok(Bound::new(py, Graphs::new(states.clone(), reading.clone()))?.into_any()))
}

/// Vectors of small integers: an int64 array, a row per state.
pub(crate) fn show_vectors() -> Show<VectorStates> {
    Arc::new(entries)
}

/// Acyclic graphs: a bool array of adjacency matrices, `[states, from, to]`.
pub(crate) fn show_structures(n: usize) -> Show<GraphStates> {
    Arc::new(move |py, states| adjacency(py, n, states))
}

/// Points: a float64 array, a row per state.
pub(crate) fn show_points() -> Show<Reals> {
    Arc::new(reals)
}

/// Points on their way through a diffusion: the points alone.
pub(crate) fn show_diffusion() -> Show<DiffusionStates> {
    Arc::new(|py, states| reals(py, &states.points))
}
