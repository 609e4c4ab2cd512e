//! The conversion of states to and from Python objects, which are `Graphs` or numpy arrays.

use gfn::env::{Reals, Rows, VectorStates};
use gfn::graph::{GraphSchema, GraphStates};
use gfn::policy::{Features, KHot, StateFeatures};
use gfn::rollout::{Sampler, Trajectories, Walks};
use gfn::train::TrainEnv;
use gfn::{Error, Result, Rng};
use gfn_dags::{AdjacencyFeatures, acyclic};
use gfn_gym::diffusion::{DiffusionSampling, DiffusionStates};
use numpy::ndarray::Dimension;
use numpy::{Element, IntoPyArray, PyArrayMethods, PyReadonlyArray, PyReadonlyArray2, PyReadonlyArray3};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use tch::Tensor;

use crate::errors::{call_python, to_exception};
use crate::molecules::{Reading, graphs_of, lines};
use crate::states::{Graphs, entries, table};

/// Converts the states of an environment to Python objects and back, and encodes states as vectors.
pub(crate) trait Border<S>: Send + Sync {
    /// Converts states to a Python object.
    fn show<'py>(&self, py: Python<'py>, states: &S) -> PyResult<Bound<'py, PyAny>>;

    /// Reads states from a Python object. Error messages name the caller by `who`.
    fn read(&self, states: &Bound<'_, PyAny>, who: &str) -> PyResult<S>;

    /// Returns `true` if every state can be finished. A reward of finished objects is then a reward of
    /// unfinished states, too.
    fn is_always_final(&self) -> bool {
        false
    }

    /// Returns `true` if states can be a tensor of whole numbers with a row per state.
    fn has_tensors(&self) -> bool {
        false
    }

    /// Returns the encoding of states as vectors; `None` if states can't be encoded as vectors of a fixed
    /// width.
    fn features(&self) -> Option<Box<dyn StateFeatures<S>>> {
        None
    }
}

type Show = Box<dyn for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyAny>> + Send>;

/// A batch of states that is converted to a Python object later, when a thread holds the interpreter.
pub(crate) struct DeferredObject(Show);

impl<'py> IntoPyObject<'py> for DeferredObject {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.0(py)
    }
}

impl<S: Send + 'static> dyn Border<S> {
    /// Returns states that are converted to a Python object later, when a thread holds the interpreter.
    pub(crate) fn defer(self: &std::sync::Arc<Self>, states: S) -> DeferredObject {
        let border = self.clone();
        DeferredObject(Box::new(move |py| border.show(py, &states)))
    }

    /// Reads states from a Python object, in a thread that doesn't hold the interpreter.
    pub(crate) fn read_detached(&self, states: &Py<PyAny>, who: &'static str) -> Result<S> {
        call_python(who, |py| self.read(states.bind(py), who))
    }

    /// Reads objects from a Python object. Returns an error for an empty batch.
    pub(crate) fn read_some(&self, objects: &Py<PyAny>, who: &'static str) -> Result<S>
    where
        S: Rows,
    {
        let objects = self.read_detached(objects, who)?;
        if objects.is_empty() {
            return Err(Error::config("the list of objects", "empty", "at least one object"));
        }
        Ok(objects)
    }
}

/// The conversion of graphs to and from `gfn_rs.Graphs`. If the graphs represent molecules, SMILES and
/// molecules of RDKit are read, too.
pub(crate) struct GraphBorder {
    pub(crate) reading: Option<Reading>,
    pub(crate) schema: GraphSchema,
}

impl Border<GraphStates> for GraphBorder {
    fn show<'py>(&self, py: Python<'py>, states: &GraphStates) -> PyResult<Bound<'py, PyAny>> {
        Ok(Bound::new(py, Graphs::new(states.clone(), self.reading.clone()))?.into_any())
    }

    fn read(&self, states: &Bound<'_, PyAny>, who: &str) -> PyResult<GraphStates> {
        if let Ok(graphs) = states.cast::<Graphs>() {
            let states = graphs.get().states();
            for graph in states.graphs() {
                self.schema.check_graph(graph).map_err(to_exception)?;
            }
            return Ok(states.clone());
        }
        let Some(reading) = &self.reading else {
            return Err(PyTypeError::new_err(format!(
                "{who} is a {}: expected Graphs",
                states.get_type().name()?
            )));
        };
        Ok(graphs_of(states.py(), reading, &lines(states, who)?, who)?.into())
    }
}

/// The conversion of acyclic graphs to a bool array of adjacency matrices, `[states, from, to]`.
pub(crate) struct StructureBorder {
    pub(crate) n_nodes: usize,
    pub(crate) features: AdjacencyFeatures,
}

impl Border<GraphStates> for StructureBorder {
    fn show<'py>(&self, py: Python<'py>, states: &GraphStates) -> PyResult<Bound<'py, PyAny>> {
        let n = self.n_nodes;
        let graphs = states.graphs();
        let mut values = vec![false; graphs.len() * n * n];
        for (matrix, graph) in values.chunks_exact_mut((n * n).max(1)).zip(graphs) {
            for (a, b) in graph.edges() {
                matrix[a as usize * n + b as usize] = true;
            }
        }
        Ok(values.into_pyarray(py).reshape([graphs.len(), n, n])?.into_any())
    }

    fn read(&self, states: &Bound<'_, PyAny>, who: &str) -> PyResult<GraphStates> {
        let n = self.n_nodes;
        let matrices: PyReadonlyArray3<'_, bool> = array(states, who, "bool", &[n, n])?;
        let mut graphs = Vec::new();
        for (row, matrix) in matrices.as_array().outer_iter().enumerate() {
            let ends = matrix.indexed_iter().filter(|(_, is_edge)| **is_edge);
            let edges: Vec<(u32, u32)> = ends.map(|((a, b), _)| (a as u32, b as u32)).collect();
            let graph = acyclic(n, &edges).map_err(|error| match error {
                Error::Contract { .. } => PyValueError::new_err(format!(
                    "row {row} of {who} has a directed cycle, or an edge from a node to itself: expected \
                     adjacency matrices [from, to] of acyclic graphs"
                )),
                other => to_exception(other),
            });
            graphs.push(graph?);
        }
        Ok(graphs.into())
    }

    fn is_always_final(&self) -> bool {
        true
    }

    fn features(&self) -> Option<Box<dyn StateFeatures<GraphStates>>> {
        Some(Box::new(self.features))
    }
}

/// The conversion of vectors of small integers to and from an int64 array with a row per state.
pub(crate) struct VectorBorder {
    pub(crate) width: usize,
    /// The number of values that an entry of a vector can have.
    pub(crate) values: usize,
    pub(crate) features: KHot,
}

impl Border<VectorStates> for VectorBorder {
    fn show<'py>(&self, py: Python<'py>, states: &VectorStates) -> PyResult<Bound<'py, PyAny>> {
        entries(py, states)
    }

    fn read(&self, states: &Bound<'_, PyAny>, who: &str) -> PyResult<VectorStates> {
        let rows: PyReadonlyArray2<'_, i64> = array(states, who, "int64", &[self.width])?;
        let most = self.values - 1;
        let mut values = Vec::with_capacity(rows.as_array().len());
        for &value in rows.as_array() {
            match u16::try_from(value) {
                Ok(entry) if usize::from(entry) <= most => values.push(entry),
                _ => {
                    let refusal = format!("an entry of {who} is {value}: expected 0 to {most}");
                    return Err(PyValueError::new_err(refusal));
                }
            }
        }
        VectorStates::from_flat(self.width, values).map_err(to_exception)
    }

    fn has_tensors(&self) -> bool {
        true
    }

    fn features(&self) -> Option<Box<dyn StateFeatures<VectorStates>>> {
        Some(Box::new(self.features))
    }
}

/// The conversion of points to and from a float64 array with a row per state. The field is the number of
/// coordinates. The encoding of a point as a vector is the point itself.
pub(crate) struct PointBorder(pub(crate) usize);

impl Border<Reals> for PointBorder {
    fn show<'py>(&self, py: Python<'py>, states: &Reals) -> PyResult<Bound<'py, PyAny>> {
        table(py, states.values().to_vec(), states.width())
    }

    fn read(&self, states: &Bound<'_, PyAny>, who: &str) -> PyResult<Reals> {
        let rows: PyReadonlyArray2<'_, f64> = array(states, who, "float64", &[self.0])?;
        Reals::from_flat(self.0, rows.as_array().iter().copied().collect()).map_err(to_exception)
    }

    fn features(&self) -> Option<Box<dyn StateFeatures<Reals>>> {
        Some(Box::new(Coordinates { width: self.0, points: |states: &Reals| states }))
    }
}

/// The conversion of the states of a diffusion. Python gets the point of each state without its time. A point
/// from Python is read as a state at the final time.
pub(crate) struct DiffusionBorder(pub(crate) DiffusionSampling);

impl DiffusionBorder {
    fn points(&self) -> PointBorder {
        PointBorder(self.0.dim())
    }
}

impl Border<DiffusionStates> for DiffusionBorder {
    fn show<'py>(&self, py: Python<'py>, states: &DiffusionStates) -> PyResult<Bound<'py, PyAny>> {
        self.points().show(py, &states.points)
    }

    fn read(&self, states: &Bound<'_, PyAny>, who: &str) -> PyResult<DiffusionStates> {
        Ok(self.0.terminal(self.points().read(states, who)?))
    }

    fn features(&self) -> Option<Box<dyn StateFeatures<DiffusionStates>>> {
        Some(Box::new(Coordinates { width: self.0.dim(), points: |states: &DiffusionStates| &states.points }))
    }
}

/// The encoding of a state as a vector of the coordinates of its point.
struct Coordinates<S> {
    width: usize,
    points: fn(&S) -> &Reals,
}

impl<S> StateFeatures<S> for Coordinates<S> {
    fn width(&self) -> usize {
        self.width
    }
    fn encode(&self, states: &S) -> Features {
        Features::Dense((self.points)(states).values().iter().map(|&x| x as f32).collect())
    }
}

/// Reads a rectangular array of numbers, by a function of the Python module `gfn_rs._objects`.
fn array<'py, T: Element, D: Dimension>(
    states: &Bound<'py, PyAny>,
    who: &str,
    kind: &str,
    widths: &[usize],
) -> PyResult<PyReadonlyArray<'py, T, D>> {
    let rows =
        states.py().import("gfn_rs._objects")?.call_method1("rows", (states, who, kind, widths.to_vec()))?;
    rows.extract()
}

/// Draws a trajectory (path) to each object by uniform backward steps. Returns an error if an object isn't a
/// finished object of the environment.
pub(crate) fn walks_to<E: TrainEnv>(env: &E, objects: &E::States, rng: &mut Rng) -> Result<Walks<E>> {
    if let Some(row) = env.is_initial(objects).iter().position(|initial| *initial)
        && env.exit_actions(&objects.select(&[row])).is_none()
    {
        let got = format!("not valid (row {row} is an initial state)");
        return Err(Error::config(
            "the list of objects",
            got,
            "only finished objects, because no trajectory ends in an initial state; leave this row out",
        ));
    }
    let uniform = env.uniform();
    let walks = Sampler::new(env, &uniform).backward(objects, rng)?.walks(env)?;
    // Backward steps don't check the state that they start from. So the paths are replayed by forward steps,
    // which check every state.
    walks.replay(env)?;
    Ok(walks)
}

/// Draws a path to each object by backward steps of P_B, under the conditions of the objects if there are
/// any.
pub(crate) fn draw_backward<E: TrainEnv>(
    sampler: &Sampler<'_, E>,
    objects: &E::States,
    conditions: Option<&Tensor>,
    rng: &mut Rng,
) -> Result<Trajectories<E>> {
    match conditions {
        None => sampler.backward(objects, rng),
        Some(conditions) => sampler.backward_conditional(objects, conditions, rng),
    }
}

/// Returns an error if a state isn't a finished object of the environment.
pub(crate) fn check_finished<E: TrainEnv>(env: &E, objects: &E::States, rng: &mut Rng) -> Result<()> {
    const MAX_BATCH: usize = 4096;
    let rows: Vec<usize> = (0..objects.len()).collect();
    for rows in rows.chunks(MAX_BATCH) {
        walks_to(env, &objects.select(rows), rng)?;
    }
    Ok(())
}
