//! The class `gfn_rs.Graphs`, which is a batch of graphs for Python.

mod exports;

use std::hash::{DefaultHasher, Hash, Hasher};

use gfn::graph::{
    Attributes, Edge, GraphArrays, GraphFormat, GraphKind, GraphState, GraphStates, MAX_ATTRIBUTES, Node,
};
use numpy::ndarray::ArrayView1;
use numpy::{IntoPyArray, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::{Array, table, whole};
use crate::errors::Outcome;
use crate::molecules::Reading;

/// A batch of graphs, whose properties are arrays over all graphs. Nodes and edges are listed graph by graph,
/// and `node_ptr` and `edge_ptr` have the offset of each graph's nodes and edges. `graphs[3]`, `graphs[2:5]`,
/// `graphs[[0, 4]]` and `graphs[mask]` are batches, too.
///
///     >>> graphs = gfn.Graphs.from_arrays([2, 3], [(0, 1), (1, 2)], [0, 1, 2], directed=False)
///     >>> len(graphs), graphs.n_edges.tolist(), graphs[1].edges.tolist()
///     (2, [1, 1], [[1, 2]])
#[pyclass(frozen, module = "gfn_rs", name = "Graphs")]
pub(crate) struct Graphs {
    states: GraphStates,
    reading: Option<Reading>,
}

impl Graphs {
    pub(crate) fn new(states: GraphStates, reading: Option<Reading>) -> Self {
        Self { states, reading }
    }

    /// Returns the graphs of the batch.
    pub(crate) fn states(&self) -> &GraphStates {
        &self.states
    }

    /// Returns `true` if the graphs of both batches represent molecules of environments with equal settings,
    /// or if no graphs of either batch represent molecules.
    fn reads_like(&self, other: &Self) -> bool {
        let settings = |graphs: &Self| graphs.reading.as_ref().map(|reading| reading.settings.clone());
        settings(self) == settings(other)
    }

    fn arrays(&self) -> &GraphArrays {
        self.states.arrays()
    }

    fn select(&self, rows: impl IntoIterator<Item = usize>) -> Self {
        let graphs: Vec<GraphState> = rows.into_iter().map(|row| self.states.graphs()[row].clone()).collect();
        Self::new(graphs.into(), self.reading.clone())
    }

    /// Returns each graph's place in the batch: the index of its first node, and the range of its edges.
    fn first_nodes(&self) -> impl Iterator<Item = (usize, std::ops::Range<usize>)> + '_ {
        let arrays = self.arrays();
        arrays.node_ptr.iter().copied().zip(arrays.edge_ptr.windows(2).map(|pair| pair[0]..pair[1]))
    }
}

/// The pair that `__reduce__` returns for pickle: a function that rebuilds the batch, and the function's
/// arguments.
type Again<'py> = (Bound<'py, PyAny>, (Bound<'py, PyAny>, Option<Bound<'py, PyAny>>, Vec<u32>));

/// Calls the function `name` of the Python module `gfn_rs._borders` with these arguments.
fn borders<'py>(py: Python<'py>, name: &str, arguments: impl PyCallArgs<'py>) -> PyResult<Bound<'py, PyAny>> {
    py.import("gfn_rs._borders")?.call_method1(name, arguments)
}

#[pymethods]
impl Graphs {
    /// Builds graphs from nodes and edges: `n_nodes[g]` nodes in graph g, and edges `[E, 2]` between nodes
    /// numbered from 0 in each graph; the edges of graph g are `edges[edge_ptr[g]:edge_ptr[g + 1]]`. Classes,
    /// and attributes `[N, K]` of nodes and `[E, K]` of edges, are 0 by default. Arguments are arrays or
    /// lists of ints.
    #[staticmethod]
    #[pyo3(signature = (n_nodes, edges, edge_ptr, *, directed, node_classes=None, edge_classes=None,
        node_attributes=None, edge_attributes=None))]
    #[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
    fn from_arrays<'py>(
        n_nodes: &Bound<'py, PyAny>,
        edges: &Bound<'py, PyAny>,
        edge_ptr: &Bound<'py, PyAny>,
        directed: bool,
        node_classes: Option<&Bound<'py, PyAny>>,
        edge_classes: Option<&Bound<'py, PyAny>>,
        node_attributes: Option<&Bound<'py, PyAny>>,
        edge_attributes: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let nodes = (node_classes, node_attributes);
        let of_edges = (edge_classes, edge_attributes);
        borders(n_nodes.py(), "of_arrays", (n_nodes, edges, edge_ptr, directed, nodes, of_edges))
    }

    /// Builds graphs from arrays that `gfn_rs._borders` has checked. `nodes` has a row for each node, and
    /// `weights` a row for each edge. A row has the class, then the attributes.
    #[staticmethod]
    fn _of_checked(
        n_nodes: Vec<usize>,
        edges: PyReadonlyArray2<'_, u32>,
        edge_ptr: Vec<usize>,
        directed: bool,
        nodes: PyReadonlyArray2<'_, u16>,
        weights: PyReadonlyArray2<'_, u16>,
    ) -> Outcome<Self> {
        let kind = if directed { GraphKind::Directed } else { GraphKind::Undirected };
        let attributes = |row: ArrayView1<'_, u16>| {
            let values: Vec<u8> = row.iter().skip(1).map(|&value| value as u8).collect();
            Attributes::new(&values)
        };
        let mut all_nodes = Vec::new();
        for row in nodes.as_array().rows() {
            all_nodes.push(Node { class: row[0], attributes: attributes(row)? });
        }
        let mut all_edges = Vec::new();
        for (ends, row) in edges.as_array().rows().into_iter().zip(weights.as_array().rows()) {
            all_edges.push((ends[0], ends[1], Edge { class: row[0], attributes: attributes(row)? }));
        }
        let mut graphs = Vec::with_capacity(n_nodes.len());
        let mut first = 0;
        for (n, ptr) in n_nodes.into_iter().zip(edge_ptr.windows(2)) {
            let nodes = &all_nodes[first..first + n];
            graphs.push(GraphState::from_parts(kind, nodes, &all_edges[ptr[0]..ptr[1]])?);
            first += n;
        }
        Ok(Self::new(graphs.into(), None))
    }

    /// Reads graphs from graph6 lines, or from digraph6 lines, which begin with `&`.
    #[staticmethod]
    fn from_graph6(lines: Vec<String>) -> Outcome<Self> {
        let graphs = GraphFormat::Graph6.read(lines.join("\n").as_bytes())?;
        Ok(Self::new(graphs.into(), None))
    }

    /// Reads graphs from the JSON text that `json` returns: a list of objects with the keys `directed`,
    /// `nodes` (their number) and `edges` (pairs), and optional lists `node_classes`, `edge_classes`,
    /// `node_attributes` and `edge_attributes`. All or none of the graphs must be directed.
    #[staticmethod]
    fn from_json(text: &str) -> Outcome<Self> {
        let graphs = GraphFormat::Json.read(text.as_bytes())?;
        if graphs.iter().any(|graph| graph.is_directed() != graphs[0].is_directed()) {
            return Err(PyValueError::new_err(
                "some of the graphs are directed and others aren't: expected only directed or only \
                 undirected graphs",
            )
            .into());
        }
        Ok(Self::new(graphs.into(), None))
    }

    /// Converts graphs of networkx, of which all or none must be directed. Nodes are numbered in the order in
    /// which networkx lists them. The data `class` and `attributes` of nodes and edges are converted. Edge
    /// weights are ignored, with a UserWarning if a weight isn't 1.
    #[staticmethod]
    fn from_networkx<'py>(py: Python<'py>, graphs: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        borders(py, "of_networkx", (graphs,))
    }

    /// Converts graphs of PyTorch Geometric, in the form that `pyg` returns: `x` has the classes of nodes,
    /// `edge_attr` the classes of edges, and `node_attributes` and `edge_attributes` may have attributes.
    /// Unless `directed`, each edge must occur in both directions.
    #[staticmethod]
    #[pyo3(signature = (graphs, *, directed=false))]
    fn from_pyg<'py>(
        py: Python<'py>,
        graphs: &Bound<'py, PyAny>,
        directed: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        borders(py, "of_pyg", (graphs, directed))
    }

    fn __len__(&self) -> usize {
        self.states.graphs().len()
    }

    /// Returns `true` if both batches have the same graphs in the same order, with equal numbering of nodes.
    /// Two batches of molecules are equal only if the settings of their environments are equal, too.
    fn __eq__(&self, other: &Self) -> bool {
        self.reads_like(other) && self.directed() == other.directed() && self.states == other.states
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.arrays().node_ptr, &self.arrays().edge_ptr).hash(&mut hasher);
        hasher.finish()
    }

    /// Returns a batch of this batch's graphs, followed by the graphs of the other batch.
    fn __add__(&self, other: &Self) -> PyResult<Self> {
        if self.__len__() > 0 && other.__len__() > 0 && self.directed() != other.directed() {
            return Err(PyValueError::new_err(
                "one batch is directed and the other is undirected: expected two directed or two undirected \
                 batches",
            ));
        }
        if !self.reads_like(other) {
            return Err(PyValueError::new_err(
                "only one batch has molecules, or the batches were made with different settings of \
                 molecules: expected two batches of environments with the same settings, or two batches \
                 without molecules",
            ));
        }
        let graphs = self.states.graphs().iter().chain(other.states.graphs());
        Ok(Self::new(graphs.cloned().collect::<Vec<_>>().into(), self.reading.clone()))
    }

    fn __getitem__(&self, index: &Bound<'_, PyAny>) -> PyResult<Self> {
        // `chosen` is looked up only once, because a loop over a batch calls this method for each graph.
        static CHOSEN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let chosen = CHOSEN.import(index.py(), "gfn_rs._checks", "chosen")?;
        let places = chosen.call1((index, self.__len__(), "graphs"))?;
        let places: PyReadonlyArray1<'_, i64> = places.extract()?;
        Ok(self.select(places.as_array().iter().map(|&place| place as usize)))
    }

    /// Returns the function and the arguments by which pickle rebuilds this batch: its arrays, and the
    /// settings of the environment if the graphs represent molecules.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Again<'py>> {
        let borders = slf.py().import("gfn_rs._borders")?;
        let settings = slf.get().reading.as_ref();
        let settings =
            settings.map(|reading| pythonize::pythonize(slf.py(), reading.settings.as_ref())).transpose()?;
        let graphs = slf.get().states.graphs().iter();
        let instances: Vec<u32> = graphs.map(GraphState::instance).collect();
        Ok((borders.getattr("again")?, (borders.call_method1("arrays", (slf,))?, settings, instances)))
    }

    /// Returns the same graphs with `instances` as the index of each graph's initial state. If `settings` are
    /// given, the graphs represent molecules of the environment with these settings.
    fn _restored(&self, settings: Option<&Bound<'_, PyAny>>, instances: Vec<u32>) -> Outcome<Self> {
        let graphs = self.states.graphs().iter().cloned().zip(instances);
        let graphs: Vec<GraphState> = graphs.map(|(graph, instance)| graph.with_instance(instance)).collect();
        Ok(Self::new(graphs.into(), settings.map(Reading::read).transpose()?))
    }

    fn __repr__(&self) -> String {
        let arrays = self.arrays();
        let kind = if self.directed() { "directed" } else { "undirected" };
        let n = arrays.nodes.len();
        format!("Graphs({}, {kind}, {n} nodes, {} edges)", arrays.len(), arrays.edges.len())
    }

    /// Returns `true` if edges have a direction.
    #[getter]
    fn directed(&self) -> bool {
        self.arrays().kind == GraphKind::Directed
    }

    /// The number of nodes of each graph, `[B]`, int64.
    #[getter]
    fn n_nodes(&self) -> Array<i64> {
        whole(self.arrays().node_ptr.windows(2).map(|pair| pair[1] - pair[0]))
    }

    /// The number of edges of each graph, `[B]`, int64.
    #[getter]
    fn n_edges(&self) -> Array<i64> {
        whole(self.arrays().edge_ptr.windows(2).map(|pair| pair[1] - pair[0]))
    }

    /// The number of edges at each node, incoming plus outgoing edges in directed graphs, `[N]`, int64.
    #[getter]
    fn degree(&self) -> Array<i64> {
        let mut degrees = vec![0; self.arrays().nodes.len()];
        for &(a, b) in &self.arrays().edges {
            degrees[a as usize] += 1;
            degrees[b as usize] += 1;
        }
        whole(degrees)
    }

    /// The index of the graph of each node, `[N]`, int64: `np.bincount(graphs.batch, x, len(graphs))` sums
    /// numbers `x` of nodes per graph.
    #[getter]
    fn batch(&self) -> Array<i64> {
        let sizes = self.arrays().node_ptr.windows(2).map(|pair| pair[1] - pair[0]);
        whole(sizes.enumerate().flat_map(|(graph, n)| std::iter::repeat_n(graph, n)))
    }

    /// The index of each graph's first node, and at the end the number of all nodes, `[B + 1]`, int64.
    #[getter]
    fn node_ptr(&self) -> Array<i64> {
        whole(self.arrays().node_ptr.iter().copied())
    }

    /// The index of each graph's first edge, and at the end the number of all edges, `[B + 1]`, int64.
    #[getter]
    fn edge_ptr(&self) -> Array<i64> {
        whole(self.arrays().edge_ptr.iter().copied())
    }

    /// The two nodes of each edge, `[E, 2]`, int64. Nodes are numbered from 0 in each graph.
    #[getter]
    fn edges<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let arrays = self.arrays();
        let mut ends = Vec::with_capacity(2 * arrays.edges.len());
        for (first, range) in self.first_nodes() {
            ends.extend(
                arrays.edges[range]
                    .iter()
                    .flat_map(|&(a, b)| [a, b].map(|end| i64::from(end) - first as i64)),
            );
        }
        table(py, ends, 2)
    }

    /// The two nodes of each edge, `[2, E]`, int64. Nodes are numbered through the whole batch, as in PyTorch
    /// Geometric's `edge_index`, but an undirected edge is listed only once.
    #[getter]
    fn edge_index<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let edges = &self.arrays().edges;
        let ends: Vec<i64> =
            edges.iter().map(|edge| edge.0).chain(edges.iter().map(|edge| edge.1)).map(i64::from).collect();
        Ok(ends.into_pyarray(py).reshape([2, edges.len()])?.into_any())
    }

    /// The class of each node, `[N]`, int64.
    #[getter]
    fn node_classes(&self) -> Array<i64> {
        whole(self.arrays().nodes.iter().map(|node| usize::from(node.class)))
    }

    /// The class of each edge, `[E]`, int64.
    #[getter]
    fn edge_classes(&self) -> Array<i64> {
        whole(self.arrays().weights.iter().map(|edge| usize::from(edge.class)))
    }

    /// The attributes of each node, `[N, 7]`, int64. The value 0 means that an attribute is unset.
    #[getter]
    fn node_attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let values = self.arrays().nodes.iter().flat_map(|node| *node.attributes.values());
        table(py, values.map(i64::from).collect(), MAX_ATTRIBUTES)
    }

    /// The attributes of each edge, `[E, 7]`, int64. The value 0 means that an attribute is unset.
    #[getter]
    fn edge_attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let values = self.arrays().weights.iter().flat_map(|edge| *edge.attributes.values());
        table(py, values.map(i64::from).collect(), MAX_ATTRIBUTES)
    }

    /// The canonical SMILES of each graph, if the graphs represent molecules. A graph without atoms has an
    /// empty SMILES. To compare these SMILES with RDKit's, pass RDKit's through `read_molecules`.
    #[getter]
    fn smiles(&self) -> Outcome<Vec<String>> {
        let reading = self.reading.as_ref().ok_or_else(|| {
            PyTypeError::new_err(
                "the graphs aren't molecules, so they have no SMILES: expected graphs of an environment of \
                 molecules",
            )
        })?;
        self.states.graphs().iter().map(|graph| Ok(reading.smiles(graph)?)).collect()
    }

    /// The graph6 line of each graph, or the digraph6 line of each directed graph. Graphs with classes or
    /// attributes are an error, because these formats can't store them.
    fn graph6(&self) -> Outcome<Vec<String>> {
        let text = GraphFormat::Graph6.write(self.states.graphs())?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Returns the graphs as JSON text, with a line per graph, which `from_json` reads. The text has classes
    /// and attributes, but not the index of each graph's initial state.
    fn json(&self) -> Outcome<String> {
        Ok(GraphFormat::Json.write(self.states.graphs())?)
    }
}
