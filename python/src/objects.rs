//! Objects that come from Python: states as `Trainer.sample` shows them, read again.

use std::sync::Arc;

use gfn::env::{Reals, Rows, VectorStates};
use gfn::graph::{GraphSchema, GraphStates};
use gfn::policy::{Features, StateFeatures};
use gfn::rollout::{Sampler, Walks};
use gfn::train::TrainEnv;
use gfn::{Error, Rng};
use gfn_dags::acyclic;
use gfn_gym::diffusion::{DiffusionSampling, DiffusionStates};
use numpy::{PyReadonlyArray2, PyReadonlyArray3};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::errors::raised;
use crate::molecules::{Reading, graphs_of, lines};
use crate::states::{Graphs, Show};

/// How states of one environment are read; the text says what they are, where they are refused.
pub(crate) type Read<S> = Arc<dyn Fn(&Bound<'_, PyAny>, &str) -> PyResult<S> + Send + Sync>;

/// How states of one environment go to Python and come from there, and as what vectors a network may read them.
pub(crate) struct Border<S> {
    pub(crate) show: Show<S>,
    pub(crate) read: Read<S>,
    /// None where states have no vectors of one width.
    pub(crate) features: Option<Encoding<S>>,
}

impl<S> Clone for Border<S> {
    fn clone(&self) -> Self {
        Self { show: Arc::clone(&self.show), read: Arc::clone(&self.read), features: self.features.clone() }
    }
}

/// Features of any kind.
pub(crate) struct Encoding<S>(Arc<dyn StateFeatures<S>>);

impl<S> Clone for Encoding<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> Encoding<S> {
    pub(crate) fn new(features: impl StateFeatures<S> + 'static) -> Self {
        Self(Arc::new(features))
    }
}

impl<S> StateFeatures<S> for Encoding<S> {
    fn width(&self) -> usize {
        self.0.width()
    }
    fn encode(&self, states: &S) -> Features {
        self.0.encode(states)
    }
}

/// Points as they are, for distances between them.
pub(crate) struct Coordinates(pub(crate) usize);

impl StateFeatures<Reals> for Coordinates {
    fn width(&self) -> usize {
        self.0
    }
    fn encode(&self, states: &Reals) -> Features {
        Features::Dense(states.values().iter().map(|&x| x as f32).collect())
    }
}

impl StateFeatures<DiffusionStates> for Coordinates {
    fn width(&self) -> usize {
        self.0
    }
    fn encode(&self, states: &DiffusionStates) -> Features {
        StateFeatures::<Reals>::encode(self, &states.points)
    }
}

/// Ways to objects, at random; whether there is one shows that they are finished objects of the environment.
pub(crate) fn ways<E: TrainEnv>(env: &E, objects: &E::States, rng: &mut Rng) -> gfn::Result<Walks<E>> {
    if let Some(row) = env.is_initial(objects).iter().position(|initial| *initial)
        && env.exit_actions(&objects.select(&[row])).is_none()
    {
        let got = format!("not valid (row {row} is the state that trajectories start from)");
        return Err(Error::config(
            "the list of objects",
            got,
            "finished objects only: no trajectory ends before its first step",
        ));
    }
    let uniform = env.uniform();
    let walks = Sampler::new(env, &uniform).backward(objects, rng)?.walks(env)?;
    // Steps back are taken without a look at where they began: taken again from the start, each is looked at.
    walks.replay(env)?;
    Ok(walks)
}

/// Objects, none of which is refused.
pub(crate) fn finished<E: TrainEnv>(env: &E, objects: &E::States, rng: &mut Rng) -> gfn::Result<()> {
    const AT_ONCE: usize = 4096;
    let rows: Vec<usize> = (0..objects.len()).collect();
    for rows in rows.chunks(AT_ONCE) {
        ways(env, &objects.select(rows), rng)?;
    }
    Ok(())
}

/// No objects where some are needed.
pub(crate) fn some<S: Rows>(objects: S) -> gfn::Result<S> {
    if objects.is_empty() {
        Err(Error::config("the list of objects", "empty", "at least one object"))
    } else {
        Ok(objects)
    }
}

/// Graphs that keep to a schema; of molecules SMILES, and RDKit's, too.
pub(crate) fn read_graphs(reading: Option<Reading>, schema: GraphSchema) -> Read<GraphStates> {
    Arc::new(move |given, who| {
        if let Ok(graphs) = given.cast::<Graphs>() {
            let states = graphs.get().states();
            states.graphs().iter().try_for_each(|graph| schema.check_graph(graph)).map_err(raised)?;
            return Ok(states.clone());
        }
        let Some(reading) = &reading else {
            return Err(PyTypeError::new_err(format!("{who} is a {}: expected Graphs", given.get_type().name()?)));
        };
        Ok(graphs_of(given.py(), reading, &lines(given, who)?, who)?.into())
    })
}

/// A rectangular array of numbers, as `gfn_rs._objects` makes one of what was given.
fn array<'py>(given: &Bound<'py, PyAny>, who: &str, kind: &str, widths: &[usize]) -> PyResult<Bound<'py, PyAny>> {
    given.py().import("gfn_rs._objects")?.call_method1("rows", (given, who, kind, widths.to_vec()))
}

/// Vectors of `width` entries, each below `values`.
pub(crate) fn read_vectors(width: usize, values: usize) -> Read<VectorStates> {
    Arc::new(move |given, who| {
        let rows = array(given, who, "int64", &[width])?;
        let rows: PyReadonlyArray2<'_, i64> = rows.extract()?;
        let entry = |&value: &i64| match u16::try_from(value) {
            Ok(entry) if usize::from(entry) < values => Ok(entry),
            _ => Err(PyValueError::new_err(format!("an entry of {who} is {value}: expected 0 to {}", values - 1))),
        };
        let entries = rows.as_array().iter().map(entry).collect::<PyResult<Vec<u16>>>()?;
        VectorStates::from_flat(width, entries).map_err(raised)
    })
}

/// Adjacency matrices of acyclic graphs of `n` nodes.
pub(crate) fn read_structures(n: usize) -> Read<GraphStates> {
    Arc::new(move |given, who| {
        let matrices = array(given, who, "bool", &[n, n])?;
        let matrices: PyReadonlyArray3<'_, bool> = matrices.extract()?;
        let edges = |matrix: numpy::ndarray::ArrayView2<'_, bool>| {
            let ends = matrix.indexed_iter().filter(|(_, there)| **there);
            ends.map(|((a, b), _)| (a as u32, b as u32)).collect::<Vec<_>>()
        };
        let graphs =
            matrices.as_array().outer_iter().map(|matrix| acyclic(n, &edges(matrix))).collect::<gfn::Result<Vec<_>>>();
        Ok(graphs.map_err(raised)?.into())
    })
}

/// Points of `width` coordinates.
pub(crate) fn read_points(width: usize) -> Read<Reals> {
    Arc::new(move |given, who| points(given, who, width))
}

/// Points at the end of a diffusion.
pub(crate) fn read_diffusion(env: DiffusionSampling) -> Read<DiffusionStates> {
    Arc::new(move |given, who| Ok(env.terminal(points(given, who, env.dim())?)))
}

fn points(given: &Bound<'_, PyAny>, who: &str, width: usize) -> PyResult<Reals> {
    let rows = array(given, who, "float64", &[width])?;
    let rows: PyReadonlyArray2<'_, f64> = rows.extract()?;
    Reals::from_flat(width, rows.as_array().iter().copied().collect()).map_err(raised)
}
