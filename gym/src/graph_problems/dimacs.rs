//! DIMACS, the file format of the clique and colouring challenges, with one undirected graph per file.

use std::fmt::Write;

use gfn::graph::{GraphState, MAX_EDGE_LIST_NODES, NamedGraph, Node};
use gfn::{Error, Result};

const DIMACS: &str = "comments `c`, then `p edge NODES EDGES`, then `e A B` for each edge";

/// Writes a graph in the format of [`read_dimacs`].
///
/// # Errors
/// [`Error::Contract`] for a directed graph, a graph with classes or attributes, and a graph of more than
/// 16,384 nodes.
pub fn write_dimacs(graph: &GraphState) -> Result<String> {
    if graph.n_nodes() > MAX_EDGE_LIST_NODES {
        let detail = format!("the graph has {} nodes", graph.n_nodes());
        return Err(Error::contract("a DIMACS file holds at most 16,384 nodes", detail));
    }
    if graph.is_directed() || graph.has_edge_weights() || graph.nodes().any(|node| node != Node::default()) {
        return Err(Error::contract(
            "a graph in DIMACS has no directions, classes or attributes",
            "this graph has some of them: write it with `GraphFormat::EdgeList`",
        ));
    }
    let mut text = String::new();
    // Writing to a string can't fail, so the result is ignored.
    let _ = writeln!(text, "p edge {} {}", graph.n_nodes(), graph.n_edges());
    for (a, b) in graph.edges() {
        let _ = writeln!(text, "e {} {}", a + 1, b + 1);
    }
    Ok(text)
}

/// Reads the graph of a text in DIMACS, the format of the clique and colouring challenges (D. S. Johnson and
/// M. A. Trick, *Cliques, Coloring, and Satisfiability*, 1996): one undirected graph of at most 16,384 nodes,
/// without classes and attributes. Nodes are numbered from 1; `c` begins a comment:
///
/// ```
/// use gfn_gym::graph_problems::read_dimacs;
/// let path = read_dimacs(b"c a path\np edge 3 2\ne 1 2\ne 2 3\n")?;
/// assert_eq!((path.n_nodes(), path.n_edges()), (3, 2));
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// Files with `p col`, with `p sp` and its arcs `a A B WEIGHT`, and with the variants of the PACE challenges
/// are read, too. Weights are skipped. [`NamedGraph::from_edges`] recognises this format among others and
/// reports if edges have weights. The declared number of edges isn't checked, and an edge may occur twice,
/// because files of the colouring challenge list it in both orders.
///
/// # Errors
/// [`Error::Parse`] with the number of the first line that isn't in the format.
pub fn read_dimacs(text: &[u8]) -> Result<GraphState> {
    let text_without_mark = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    for (line, content) in (1..).zip(text_without_mark.split(|&byte| byte == b'\n')) {
        let mut words = content.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let is_number = |word: &[u8]| word.iter().all(u8::is_ascii_digit);
        match (words.next(), words.nth(1), words.next()) {
            (None | Some(b"c"), ..) => {}
            (Some(b"p"), Some(n), Some(m)) if is_number(n) && is_number(m) => {
                return Ok(NamedGraph::from_edges(text)?.graph);
            }
            _ => return Err(Error::parse(line, "this isn't the line `p KIND NODES EDGES`", DIMACS)),
        }
    }
    Err(Error::parse(1, "there is no line `p KIND NODES EDGES`", DIMACS))
}
