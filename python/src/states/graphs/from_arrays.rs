//! Graphs from arrays.

use gfn::graph::{Attributes, Edge, GraphKind, GraphState, MAX_ATTRIBUTES, Node};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::raised;

/// The most nodes of all graphs, and the most pairs of nodes of one graph: 4 GiB.
const MOST_NODES: i64 = 1 << 24;
const MOST_PAIRS: i64 = 1 << 35;

/// Nodes or edges of all graphs: how many in each, and what they are.
pub(super) struct LabelArrays<'py> {
    /// "node" or "edge".
    pub(super) of: &'static str,
    pub(super) classes: Option<PyReadonlyArray1<'py, i64>>,
    pub(super) attributes: Option<PyReadonlyArray2<'py, i64>>,
}

fn refused<T>(what: String) -> PyResult<T> {
    Err(PyValueError::new_err(what))
}

impl LabelArrays<'_> {
    /// Class and attributes of each of `n`.
    fn read(&self, n: usize) -> PyResult<Vec<(u16, Attributes)>> {
        let mut out = vec![(0, Attributes::default()); n];
        if let Some(classes) = &self.classes {
            let classes = classes.as_slice()?;
            if classes.len() != n {
                return refused(format!("{} of {}_classes, expected {n}", classes.len(), self.of));
            }
            for (each, &class) in out.iter_mut().zip(classes) {
                each.0 = u16::try_from(class)
                    .or_else(|_| refused(format!("{}_classes has {class}: expected 0 to 65535", self.of)))?;
            }
        }
        if let Some(attributes) = &self.attributes {
            let attributes = attributes.as_array();
            let (rows, columns) = attributes.dim();
            if rows != n || columns > MAX_ATTRIBUTES {
                let of = self.of;
                return refused(format!(
                    "{of}_attributes of shape [{rows}, {columns}]: expected [{n}, K], K of at most {MAX_ATTRIBUTES}"
                ));
            }
            for (each, row) in out.iter_mut().zip(attributes.rows()) {
                let small = |&value: &i64| {
                    u8::try_from(value)
                        .or_else(|_| refused(format!("{}_attributes has {value}: expected 0 to 255", self.of)))
                };
                let values: Vec<u8> = row.iter().map(small).collect::<PyResult<_>>()?;
                each.1 = Attributes::new(&values).map_err(raised)?;
            }
        }
        Ok(out)
    }
}

/// Graphs of `n_nodes[g]` nodes each, whose edges are the rows of `edges` from `edge_ptr[g]` to `edge_ptr[g + 1]`.
pub(super) fn graphs(
    kind: GraphKind,
    n_nodes: &PyReadonlyArray1<'_, i64>,
    nodes: &LabelArrays<'_>,
    edges: &PyReadonlyArray2<'_, i64>,
    edge_ptr: &PyReadonlyArray1<'_, i64>,
    of_edges: &LabelArrays<'_>,
) -> PyResult<Vec<GraphState>> {
    let n_nodes = n_nodes.as_slice()?;
    let (edges, ends) = (edges.as_array(), edge_ptr.as_slice()?);
    let rises = ends.windows(2).all(|pair| pair[0] <= pair[1]);
    if edges.ncols() != 2
        || ends.len() != n_nodes.len() + 1
        || !rises
        || ends.first() != Some(&0)
        || ends.last() != Some(&(edges.nrows() as i64))
    {
        let (rows, columns) = edges.dim();
        return refused(format!(
            "edges of shape [{rows}, {columns}] for {} graphs with edge_ptr {ends:?}: expected edges [E, 2], and an edge_ptr \
             of one more number than graphs, rising from 0 to E",
            n_nodes.len()
        ));
    }
    if n_nodes.iter().any(|&n| !(0..=65_535).contains(&n)) {
        return refused(format!("n_nodes {n_nodes:?}: expected 0 to 65535 for each graph"));
    }
    // Each graph takes a bit per pair of nodes; a failed allocation would end the process.
    let (total, pairs) = n_nodes.iter().fold((0, 0), |(total, pairs), n| (total + n, pairs + n * n));
    if total > MOST_NODES || pairs > MOST_PAIRS {
        return refused(format!(
            "{total} nodes and {pairs} pairs of them in {} graphs: expected at most {MOST_NODES} and {MOST_PAIRS}, as all are held",
            n_nodes.len()
        ));
    }
    let nodes = nodes.read(total as usize)?;
    let nodes: Vec<Node> = nodes.into_iter().map(|(class, attributes)| Node { class, attributes }).collect();
    let weights = of_edges.read(edges.nrows())?;
    let mut first = 0;
    let mut out = Vec::with_capacity(n_nodes.len());
    for (graph, &n) in n_nodes.iter().enumerate() {
        let mut own = Vec::new();
        for row in ends[graph] as usize..ends[graph + 1] as usize {
            let (a, b) = (edges[[row, 0]], edges[[row, 1]]);
            if !(0..n).contains(&a) || !(0..n).contains(&b) {
                return refused(format!(
                    "edge {row} is ({a}, {b}), in a graph of {n} nodes: expected numbers below that"
                ));
            }
            let (class, attributes) = weights[row];
            own.push((a as u32, b as u32, Edge { class, attributes }));
        }
        let of_graph = &nodes[first..first + n as usize];
        first += n as usize;
        out.push(GraphState::from_parts(kind, of_graph, &own).map_err(raised)?);
    }
    Ok(out)
}
