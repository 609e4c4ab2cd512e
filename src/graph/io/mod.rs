//! Graph files: the library's lossless edge list, the lists of pairs of nodes that other programs write,
//! nauty's formats graph6 and digraph6, and JSON.

mod edge_list;
mod graph6;
mod json;
mod layouts;
mod pairs;
mod words;

use std::path::Path;

pub use pairs::NamedGraph;

use crate::graph::GraphState;
use crate::graph::state::MAX_NODES_OF_BIT_ROWS;
use crate::io::replace;
use crate::{Error, Result};

/// The largest number of nodes of a graph in an edge list. A graph of this size without edges takes 1.3 MB of
/// memory.
///
/// The limit keeps a short line from taking all memory of the machine. For the same reason, all graphs of a
/// file together may take no more than about 32 MiB, plus 4 KiB for each byte of text. The formats graph6 and
/// digraph6 need no such limit, because there a large graph takes a long line.
pub const MAX_EDGE_LIST_NODES: usize = 16_384;

/// The format of graphs in a file.
///
/// # Edge list
/// An edge list is a text file of any number of graphs, with a line for each graph, node and
/// edge. Words are separated by spaces or tabs. A `#` at the start of a line or after a blank begins a
/// comment. Empty lines are ignored:
///
/// ```text
/// graph directed 4                     # directed | undirected, then the number of nodes (at most 16,384)
/// node 0 class 1 attributes 2 0 5      # class: 0..=65535; attributes: up to 7 values of 0..=255
/// edge 0 1 class 2                     # nodes are numbered from 0
/// edge 1 0
/// graph undirected 2
/// edge 0 1 attributes 0 3
/// ```
///
/// The parts `class` and `attributes` of a line may be left out. The default class is 0, and attributes
/// without a value are 0. A line of a node without class and attributes may be left out entirely. A node or
/// an edge may occur only once; an undirected edge may name either node first. Instances
/// ([`GraphState::instance`](crate::graph::GraphState::instance)) aren't written.
///
/// A file whose first line (besides comments) begins with a number is read as a list of edges, as networkx
/// (`write_edgelist`), SNAP, PyG and other programs write it. The list is one undirected graph of all nodes
/// that it names, labelled from 0 in ascending order of their names. Weights and dictionaries after the nodes
/// are skipped. [`NamedGraph`] reads the same files and keeps the names of nodes, and also reads names that
/// aren't numbers:
///
/// ```text
/// # FromNodeId  ToNodeId
/// 0 1
/// 1 7 {'weight': 0.5}
/// ```
///
/// Further layouts are read, too, such as DIMACS, METIS, adjacency matrices and adjacency lists. A layout is
/// recognised by its content ([`NamedGraph::from_edges`] lists all layouts).
///
/// # graph6 and digraph6
/// The formats of nauty's `formats.txt` (B. D. McKay), with a graph of up to 258,047 nodes per line: graph6
/// for undirected graphs, and digraph6 (which begins with `&`) for directed ones. Neither format can store
/// classes and attributes. The headers `>>graph6<<` and `>>digraph6<<` are read, but not written. A
/// byte-order mark is skipped here and in edge lists.
///
/// # JSON
/// A list of graphs, each as [`GraphState`] is [serialized](serde::Serialize). JSON stores classes and
/// attributes, but not instances:
///
/// ```text
/// [
/// {"directed":true,"nodes":4,"edges":[[0,1],[1,0]],"node_classes":[1,0,0,0],"edge_classes":[2,0]},
/// {"directed":false,"nodes":2,"edges":[[0,1]],"edge_attributes":[[0,3]]}
/// ]
/// ```
///
/// ```
/// use gfn::graph::GraphFormat;
/// let triangle = GraphFormat::Graph6.read(b"Bw")?;
/// assert_eq!((triangle[0].n_nodes(), triangle[0].n_edges()), (3, 3));
/// let text = GraphFormat::EdgeList.write(&triangle)?;
/// assert_eq!(text, "graph undirected 3\nedge 0 1\nedge 0 2\nedge 1 2\n");
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GraphFormat {
    /// The format of edge lists with classes and attributes. Graphs that are written and read again are
    /// equal, except for their instance, which becomes 0. Lists of pairs of nodes are read, too.
    EdgeList,
    /// The formats graph6 for undirected graphs and digraph6 for directed ones, without classes and
    /// attributes.
    Graph6,
    /// A JSON list of graphs with classes and attributes. Graphs that are written and read again are equal,
    /// except for their instance, which becomes 0.
    Json,
}

impl GraphFormat {
    /// Returns the format of a path's extension in any case: [`Graph6`](Self::Graph6) for `g6` and `d6`,
    /// [`Json`](Self::Json) for `json`, otherwise [`EdgeList`](Self::EdgeList).
    #[must_use]
    pub fn from_path(path: &Path) -> Self {
        let extension = path.extension().map(std::ffi::OsStr::to_ascii_lowercase);
        match extension.as_ref().and_then(|e| e.to_str()) {
            Some("g6" | "d6") => Self::Graph6,
            Some("json") => Self::Json,
            _ => Self::EdgeList,
        }
    }

    /// Reads the graphs of a text, in order.
    ///
    /// # Errors
    /// [`Error::Parse`] with the number of the line of the first mistake: an unexpected word or byte, a
    /// number out of range, a self-loop, a repeated node or edge, an incomplete line.
    pub fn read(self, text: &[u8]) -> Result<Vec<GraphState>> {
        match self {
            Self::EdgeList => edge_list::read(text),
            Self::Graph6 => graph6::read(text),
            Self::Json => json::read(text),
        }
    }

    /// Writes graphs, one after another. The text ends with a line break unless there is no graph.
    ///
    /// # Errors
    /// [`Error::Contract`] if the graphs can't be written in this format: classes or attributes in graph6,
    /// too many nodes, or an edge list or JSON of large graphs with hardly any edges, which
    /// [`read`](Self::read) would refuse.
    pub fn write(self, graphs: &[GraphState]) -> Result<String> {
        match self {
            Self::EdgeList => edge_list::write(graphs),
            Self::Graph6 => graph6::write(graphs),
            Self::Json => json::write(graphs),
        }
    }
}

/// Reads the graphs of a file. The file's extension determines the format (see [`GraphFormat::from_path`]). A
/// file in which each line is graph6 or digraph6 is read in these formats, unless its extension is `.json`.
///
/// # Errors
/// [`Error::Io`] if the file can't be read, and the errors of [`GraphFormat::read`].
pub fn read_graphs(path: impl AsRef<Path>) -> Result<Vec<GraphState>> {
    let path = path.as_ref();
    let text = std::fs::read(path).map_err(|source| Error::io(path, source))?;
    match GraphFormat::from_path(path) {
        GraphFormat::EdgeList => {
            GraphFormat::Graph6.read(&text).or_else(|_| GraphFormat::EdgeList.read(&text))
        }
        format => format.read(&text),
    }
}

/// Writes graphs to a file. The file's extension determines the format (see [`GraphFormat::from_path`]). An
/// existing file is replaced in one step.
///
/// # Errors
/// The errors of [`GraphFormat::write`], after which an existing file is unchanged, and [`Error::Io`] if the
/// file can't be written.
pub fn write_graphs(path: impl AsRef<Path>, graphs: &[GraphState]) -> Result<()> {
    let path = path.as_ref();
    let text = GraphFormat::from_path(path).write(graphs)?;
    replace::replace_bytes(path, text.as_bytes())
}

/// Returns the number of bytes that a graph without edges takes, up to a constant factor. The estimate counts
/// the nodes and, in graphs so small that edges are stored as a matrix of bits, a bit for each pair of nodes.
fn estimate_memory(n_nodes: usize) -> u64 {
    let n = n_nodes as u64;
    80 * n + if n_nodes <= MAX_NODES_OF_BIT_ROWS { n * n / 8 } else { 0 }
}

/// Returns `true` if graphs that take `memory` bytes may be read from a text of `length` bytes. The limit is
/// 32 MiB, plus 4 KiB for each byte of text. Without this limit, short lines that announce large graphs could
/// take all memory of the machine.
fn is_in_proportion(memory: u64, length: usize) -> bool {
    memory <= (32 << 20) + ((length as u64) << 12)
}

/// Returns the lines of a text without their comments, numbered from 1. A `#` at the start of a line or after
/// a blank begins a comment.
fn strip_comments(text: &[u8]) -> impl Iterator<Item = (usize, Result<&str>)> {
    split_lines(text).map(|(number, bytes)| {
        let begins_comment = |&k: &usize| bytes[k] == b'#' && (k == 0 || bytes[k - 1].is_ascii_whitespace());
        let content = &bytes[..(0..bytes.len()).find(begins_comment).unwrap_or(bytes.len())];
        let content = match std::str::from_utf8(content) {
            // Comments of DIMACS files may have any encoding, so they needn't be UTF-8.
            Err(_) if matches!(content, [b'c', b' ' | b'\t', ..]) => Ok("c"),
            content => content,
        };
        let refuse = |_| {
            Error::parse(
                number,
                "the line has bytes that are not UTF-8 text",
                "text in UTF-8 outside of comments",
            )
        };
        (number, content.map_err(refuse))
    })
}

/// Returns the lines of a text, numbered from 1, without the line breaks (LF or CRLF) and without a
/// byte-order mark.
fn split_lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let lines = text.split(|&byte| byte == b'\n').enumerate();
    lines.map(|(i, line)| (i + 1, line.strip_suffix(b"\r").unwrap_or(line)))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::graph::{Attributes, Edge, GraphKind, Node};

    fn attributes() -> impl Strategy<Value = Attributes> {
        vec(any::<u8>(), 0..=7).prop_map(|values| Attributes::new(&values).unwrap())
    }

    /// Generates graphs of up to 69 nodes, so that some of them exceed the 62 nodes that the one-byte size of
    /// graph6 can express. The graphs are plain, or have classes and attributes.
    fn graphs(is_plain: bool) -> impl Strategy<Value = GraphState> {
        let pairs = vec((any::<u32>(), any::<u32>(), any::<u16>(), attributes()), 0..60);
        let nodes = vec((any::<u16>(), attributes()), 0..70);
        (any::<bool>(), nodes, pairs).prop_map(move |(directed, nodes, pairs)| {
            let kind = if directed { GraphKind::Directed } else { GraphKind::Undirected };
            let mut graph = GraphState::with_nodes(kind, nodes.len());
            let n = nodes.len() as u32;
            for (a, (class, attributes)) in nodes.into_iter().enumerate() {
                if !is_plain {
                    let node = Node { class, attributes };
                    graph.set_node(a as u32, node).unwrap();
                }
            }
            for (a, b, class, attributes) in pairs.into_iter().filter(|_| n > 0) {
                let edge = Edge { class, attributes };
                let edge = if is_plain { Edge::default() } else { edge };
                // Self-loops and repeated edges are refused by `add_edge`, and left out of the graph.
                let _ = graph.add_edge(a % n, b % n, edge);
            }
            graph
        })
    }

    proptest! {
        #[test]
        fn an_edge_list_loses_nothing(graphs in vec(graphs(false), 0..4)) {
            let text = GraphFormat::EdgeList.write(&graphs).unwrap();
            prop_assert_eq!(GraphFormat::EdgeList.read(text.as_bytes()).unwrap(), graphs);
        }

        #[test]
        fn json_loses_nothing(graphs in vec(graphs(false), 0..4)) {
            let text = GraphFormat::Json.write(&graphs).unwrap();
            prop_assert_eq!(GraphFormat::Json.read(text.as_bytes()).unwrap(), graphs);
        }

        #[test]
        fn graph6_loses_nothing_of_plain_graphs(graphs in vec(graphs(true), 0..4)) {
            let text = GraphFormat::Graph6.write(&graphs).unwrap();
            prop_assert_eq!(GraphFormat::Graph6.read(text.as_bytes()).unwrap(), graphs);
        }

        #[test]
        fn random_bytes_are_read_or_refused(text in vec(any::<u8>(), 0..200)) {
            for format in [GraphFormat::EdgeList, GraphFormat::Graph6, GraphFormat::Json] {
                if let Err(error) = format.read(&text) {
                    prop_assert!(matches!(error, Error::Parse { line: 1.., .. }), "{}", error);
                }
            }
        }

        #[test]
        fn bytes_of_the_alphabet_are_read_or_refused(
            words in vec(prop::sample::select(vec![
                "graph", "directed", "undirected", "node", "edge", "class", "attributes", "0", "1", "2",
                "3", "70000",
                "99999999999999999999", "-1", "#", "p", "e", "c", "\n", "\n", "\n",
            ]), 0..40),
            bytes in vec(63u8..=126, 0..30),
            directed in any::<bool>(),
        ) {
            let text = words.join(" ");
            let listed = GraphFormat::EdgeList.read(text.as_bytes());
            prop_assert!(matches!(listed, Ok(_) | Err(Error::Parse { .. })), "{:?}", listed);
            let line = [if directed { &b"&"[..] } else { b"" }, &bytes].concat();
            let packed = GraphFormat::Graph6.read(&line);
            prop_assert!(matches!(packed, Ok(_) | Err(Error::Parse { line: 1, .. })), "{:?}", packed);
        }

        #[test]
        fn a_changed_byte_or_a_cut_never_panics(
            graphs in vec(graphs(true), 1..3), at in any::<prop::sample::Index>(), byte in any::<u8>(),
            cut in any::<bool>(),
        ) {
            for format in [GraphFormat::EdgeList, GraphFormat::Graph6, GraphFormat::Json] {
                let mut text = format.write(&graphs).unwrap().into_bytes();
                let at = at.index(text.len());
                if cut { text.truncate(at) } else { text[at] = byte }
                let read = format.read(&text);
                prop_assert!(matches!(read, Ok(_) | Err(Error::Parse { .. })), "{:?}", read);
            }
        }
    }

    #[test]
    fn the_extension_determines_the_format() {
        let folder = crate::io::replace::tests::folder("graph-files");
        let ring = GraphFormat::Graph6.read(b"Dhc").unwrap();
        let g6 = folder.join("ring.g6");
        let list = folder.join("ring.txt");
        write_graphs(&g6, &ring).unwrap();
        write_graphs(&list, &ring).unwrap();
        assert_eq!(std::fs::read(&g6).unwrap(), b"Dhc\n");
        assert!(std::fs::read(&list).unwrap().starts_with(b"graph undirected 5\n"));
        assert_eq!(read_graphs(&g6).unwrap(), read_graphs(&list).unwrap());
        let json = folder.join("ring.JSON");
        write_graphs(&json, &ring).unwrap();
        assert!(std::fs::read(&json).unwrap().starts_with(b"[\n{\"directed\":false,\"nodes\":5,"));
        assert_eq!(read_graphs(&json).unwrap(), ring);
        // A word of JSON can also be a graph in graph6, and graph6 in an edge list is read as such.
        std::fs::write(&json, "Dhc").unwrap();
        assert!(matches!(read_graphs(&json), Err(Error::Parse { .. })));
        std::fs::write(&list, "Dhc").unwrap();
        assert_eq!(read_graphs(&list).unwrap(), ring);
        // The existing file must stay unchanged if graphs can't be written.
        let coloured = GraphState::from_parts(GraphKind::Directed, &[Node::from_class(1)], &[]).unwrap();
        assert!(write_graphs(&g6, &[coloured]).is_err());
        assert_eq!(std::fs::read(&g6).unwrap(), b"Dhc\n");
        assert!(matches!(read_graphs(folder.join("none.g6")), Err(Error::Io { .. })));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
