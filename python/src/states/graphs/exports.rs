//! Pictures of the graphs of a batch, and their conversion to objects of other packages.

use gfn::graph::GraphState;
use gfn_plot::{Canvas, GraphDrawing, Layout, NodeLabels, PictureSheet};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::{Graphs, borders};
use crate::errors::Outcome;

/// The largest number of graphs that a notebook shows as pictures. Further graphs of a batch aren't shown.
const DRAWN: usize = 24;

/// The width and height of a drawn molecule, in units of the SVG.
const SIDE: f64 = 200.0;
/// The width and height of a drawn graph whose nodes have names, in units of the SVG.
const NAMED_SIDE: f64 = 260.0;

impl Graphs {
    /// Returns the drawing of graphs whose nodes have these names.
    fn drawing_with_names(&self, names: Vec<String>) -> PyResult<GraphDrawing> {
        let is_other = |graph: &GraphState| graph.n_nodes() != names.len();
        if self.reading.is_some() || self.states.graphs().iter().any(is_other) {
            return Err(PyValueError::new_err(format!(
                "names has {} texts: expected one name for each node of graphs that aren't molecules and \
                 have equal numbers of nodes",
                names.len()
            )));
        }
        Ok(GraphDrawing { layout: Layout::Circle, labels: NodeLabels::Names(names), side: NAMED_SIDE })
    }
}

#[pymethods]
impl Graphs {
    /// Converts the graphs to networkx (`Graph` or `DiGraph`). Nodes and edges have the data `class`, and
    /// `attributes` if any attribute is set. The package networkx must be installed.
    fn networkx<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        borders(slf.py(), "to_networkx", (slf,))
    }

    /// Converts each graph to a `Data` of PyTorch Geometric. `edge_index` has undirected edges in both
    /// directions. `x` has the classes of nodes, and `edge_attr` the classes of edges. `node_attributes` and
    /// `edge_attributes` have the attributes. The package torch_geometric must be installed.
    fn pyg<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        borders(slf.py(), "to_pyg", (slf,))
    }

    /// Converts each graph to a molecule of RDKit, which must be installed; None for a graph without atoms.
    fn rdkit<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        borders(slf.py(), "to_rdkit", (slf,))
    }

    /// Returns an SVG with a picture of each graph, and a caption below each picture if `captions` are given.
    /// `names` are the labels of the nodes, which are otherwise labelled by their numbers; graphs with names
    /// are drawn with their nodes on a circle. Molecules are drawn as structural formulas, with their SMILES
    /// as default captions.
    #[pyo3(signature = (*, captions=None, title="", names=None))]
    fn svg(&self, captions: Option<Vec<String>>, title: &str, names: Option<Vec<String>>) -> Outcome<String> {
        let graphs = self.states.graphs();
        if let Some(captions) = captions.as_ref().filter(|captions| captions.len() != graphs.len()) {
            let refusal = format!(
                "captions has {} texts for {} graphs: expected one caption for each graph",
                captions.len(),
                graphs.len()
            );
            return Err(PyValueError::new_err(refusal).into());
        }
        let drawing = match names {
            None => GraphDrawing::default(),
            Some(names) => self.drawing_with_names(names)?,
        };
        let mut sheet = PictureSheet::new(title, if self.reading.is_some() { SIDE } else { drawing.side });
        for (k, graph) in graphs.iter().enumerate() {
            let caption = captions.as_ref().map(|captions| captions[k].clone());
            let (picture, own_caption) = match &self.reading {
                None => (drawing.draw(graph), String::new()),
                Some(_) if graph.n_nodes() == 0 => (Canvas::new(SIDE, SIDE), String::new()),
                Some(reading) => (reading.molecule(graph)?.drawing(SIDE, SIDE), reading.smiles(graph)?),
            };
            sheet = sheet.cell(picture, [caption.unwrap_or(own_caption), String::new()]);
        }
        Ok(sheet.to_svg()?)
    }

    fn _repr_svg_(&self) -> Outcome<String> {
        let n = self.__len__();
        let title = if n > DRAWN { format!("the first {DRAWN} of {n} graphs") } else { String::new() };
        self.select(0..n.min(DRAWN)).svg(None, &title, None)
    }
}
