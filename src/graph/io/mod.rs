//! Graphs in files: an edge list of our own that loses nothing, others' lists of pairs of nodes, nauty's graph6 and digraph6.

mod edge_list;
mod graph6;
mod layouts;
mod pairs;
mod words;

use std::path::Path;

pub use pairs::NamedGraph;

use crate::graph::GraphState;
use crate::io::replace;
use crate::{Error, Result};

/// The most nodes that a graph of an edge list may announce: an empty one of this size takes 1.3 MB in memory.
///
/// A short line must not be able to ask for all of a machine's memory; graph6 needs no such limit, because there a large
/// graph is a long line. For the same reason all graphs of a file
/// together take no more than some 32 MiB and 4 KiB for each byte of text.
pub const MAX_EDGE_LIST_NODES: usize = 16_384;

/// The format of graphs in a file.
///
/// # Edge list
/// Text, one thing per line; a file holds any number of graphs. A `#` at the start of a line or after a blank
/// begins a comment, empty lines mean nothing, words are separated by spaces or tabs:
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
/// `class` and `attributes` may be left out (class 0; all attributes 0, which also stands for values that aren't given), and
/// so may a node without either. Instances ([`GraphState::instance`](crate::graph::GraphState::instance)) aren't written. A node or an edge may be given once; an undirected edge may name either node first.
///
/// A file whose first line (beside comments) begins with a number is read as others write edges, networkx (`write_edgelist`), SNAP and PyG
/// among them: one undirected graph, of the nodes that are named, numbered in ascending order from 0 ([`NamedGraph`], which keeps their names
/// and also reads names that aren't numbers). Weights and dictionaries behind the nodes are skipped:
///
/// ```text
/// # FromNodeId  ToNodeId
/// 0 1
/// 1 7 {'weight': 0.5}
/// ```
///
/// So are DIMACS, METIS, matrices of adjacency and adjacency lists, recognised by their content
/// ([`NamedGraph::from_edges`] lists them).
///
/// # graph6 and digraph6
/// The formats of nauty's `formats.txt` (B. D. McKay), one graph per line: graph6 for undirected graphs, digraph6 (`&` in
/// front) for directed ones, of up to 258,047 nodes. A byte-order mark is skipped here and in edge lists. The
/// headers `>>graph6<<` and `>>digraph6<<` are read and not written.
/// Neither has room for classes or attributes.
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
    /// An edge list with classes and attributes: what is written is read back equal. Lists of pairs of nodes are read, too.
    EdgeList,
    /// graph6 for undirected graphs, digraph6 for directed ones; no classes, no attributes.
    Graph6,
}

impl GraphFormat {
    /// The format of a path's extension: `g6` and `d6` are [`Graph6`](Self::Graph6), any other is an edge list.
    #[must_use]
    pub fn of_path(path: &Path) -> Self {
        let extension = path.extension().map(std::ffi::OsStr::to_ascii_lowercase);
        match extension.as_ref().and_then(|e| e.to_str()) {
            Some("g6" | "d6") => Self::Graph6,
            _ => Self::EdgeList,
        }
    }

    /// The graphs of a text, in order.
    ///
    /// # Errors
    /// [`Error::Parse`] with the number of the line for the first thing that isn't in the format: a word or byte that doesn't
    /// belong, a number out of range, a self-loop, a node or an edge given twice, a line cut short.
    pub fn read(self, text: &[u8]) -> Result<Vec<GraphState>> {
        match self {
            Self::EdgeList => edge_list::read(text),
            Self::Graph6 => graph6::read(text),
        }
    }

    /// The text of graphs, one after the other; it ends in a new line unless there is no graph.
    ///
    /// # Errors
    /// [`Error::Contract`] if a graph can't be written in this format: one with classes or attributes as graph6, one of too
    /// many nodes.
    pub fn write(self, graphs: &[GraphState]) -> Result<String> {
        match self {
            Self::EdgeList => edge_list::write(graphs),
            Self::Graph6 => graph6::write(graphs),
        }
    }
}

/// Reads the graphs of a file, in the format of its extension (see [`GraphFormat::of_path`]). Text in which
/// each line is graph6 or digraph6 is read as such, whatever the extension is.
///
/// # Errors
/// [`Error::Io`] if it can't be read; those of [`GraphFormat::read`].
pub fn read_graphs(path: impl AsRef<Path>) -> Result<Vec<GraphState>> {
    let path = path.as_ref();
    let text = std::fs::read(path).map_err(|source| Error::io(path, source))?;
    match (GraphFormat::of_path(path), GraphFormat::Graph6.read(&text)) {
        (GraphFormat::EdgeList, Err(_)) => GraphFormat::EdgeList.read(&text),
        (_, graphs) => graphs,
    }
}

/// Writes graphs to a file, in the format of its extension (see [`GraphFormat::of_path`]), replacing it in one step.
///
/// # Errors
/// Those of [`GraphFormat::write`], in which case the file stays as it was; [`Error::Io`] if it can't be written.
pub fn write_graphs(path: impl AsRef<Path>, graphs: &[GraphState]) -> Result<()> {
    let path = path.as_ref();
    let text = GraphFormat::of_path(path).write(graphs)?;
    replace::replace_bytes(path, text.as_bytes())
}

/// The lines of a text without their comments, numbered from 1. A `#` at the start or after a blank begins a
/// comment.
fn contents(text: &[u8]) -> impl Iterator<Item = (usize, Result<&str>)> {
    lines(text).map(|(number, bytes)| {
        let begins_comment = |&k: &usize| bytes[k] == b'#' && (k == 0 || bytes[k - 1].is_ascii_whitespace());
        let content = &bytes[..(0..bytes.len()).find(begins_comment).unwrap_or(bytes.len())];
        let content = match std::str::from_utf8(content) {
            // A comment of DIMACS may be in any encoding.
            Err(_) if matches!(content, [b'c', b' ' | b'\t', ..]) => Ok("c"),
            content => content,
        };
        let refuse = |_| Error::parse(number, "bytes that are not UTF-8 text", "text outside of comments");
        (number, content.map_err(refuse))
    })
}

/// The lines of a text without their ends (LF or CRLF) and without a byte-order mark, numbered from 1.
fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
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

    /// A graph of up to 70 nodes (past the one-byte size of graph6), plain or with classes and attributes.
    fn graphs(plain: bool) -> impl Strategy<Value = GraphState> {
        let pairs = vec((any::<u32>(), any::<u32>(), any::<u16>(), attributes()), 0..60);
        let nodes = vec((any::<u16>(), attributes()), 0..70);
        (any::<bool>(), nodes, pairs).prop_map(move |(directed, nodes, pairs)| {
            let kind = if directed { GraphKind::Directed } else { GraphKind::Undirected };
            let mut graph = GraphState::with_nodes(kind, nodes.len());
            let n = nodes.len() as u32;
            for (a, (class, attributes)) in nodes.into_iter().enumerate() {
                if !plain {
                    let node = Node { class, attributes };
                    graph.set_node(a as u32, node).unwrap();
                }
            }
            for (a, b, class, attributes) in pairs.into_iter().filter(|_| n > 0) {
                let edge = Edge { class, attributes };
                let edge = if plain { Edge::default() } else { edge };
                // Self-loops and repetitions are refused, which is as well.
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
        fn graph6_loses_nothing_of_plain_graphs(graphs in vec(graphs(true), 0..4)) {
            let text = GraphFormat::Graph6.write(&graphs).unwrap();
            prop_assert_eq!(GraphFormat::Graph6.read(text.as_bytes()).unwrap(), graphs);
        }

        #[test]
        fn bytes_at_random_are_read_or_refused(text in vec(any::<u8>(), 0..200)) {
            for format in [GraphFormat::EdgeList, GraphFormat::Graph6] {
                if let Err(error) = format.read(&text) {
                    prop_assert!(matches!(error, Error::Parse { line: 1.., .. }), "{}", error);
                }
            }
        }

        #[test]
        fn bytes_of_the_alphabet_are_read_or_refused(
            words in vec(prop::sample::select(vec![
                "graph", "directed", "undirected", "node", "edge", "class", "attributes", "0", "1", "2", "3", "70000",
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
        fn a_byte_changed_or_cut_never_panics(
            graphs in vec(graphs(true), 1..3), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>(),
        ) {
            for format in [GraphFormat::EdgeList, GraphFormat::Graph6] {
                let mut text = format.write(&graphs).unwrap().into_bytes();
                let at = at.index(text.len());
                if cut { text.truncate(at) } else { text[at] = byte }
                let read = format.read(&text);
                prop_assert!(matches!(read, Ok(_) | Err(Error::Parse { .. })), "{:?}", read);
            }
        }
    }

    #[test]
    fn files_take_their_format_from_their_extension() {
        let folder = crate::io::replace::tests::folder("graph-files");
        let ring = GraphFormat::Graph6.read(b"Dhc").unwrap();
        let (g6, list) = (folder.join("ring.g6"), folder.join("ring.txt"));
        write_graphs(&g6, &ring).unwrap();
        write_graphs(&list, &ring).unwrap();
        assert_eq!(std::fs::read(&g6).unwrap(), b"Dhc\n");
        assert!(std::fs::read(&list).unwrap().starts_with(b"graph undirected 5\n"));
        assert_eq!(read_graphs(&g6).unwrap(), read_graphs(&list).unwrap());
        // What can't be written must not destroy what was there.
        let coloured = GraphState::from_parts(GraphKind::Directed, &[Node::of_class(1)], &[]).unwrap();
        assert!(write_graphs(&g6, &[coloured]).is_err());
        assert_eq!(std::fs::read(&g6).unwrap(), b"Dhc\n");
        assert!(matches!(read_graphs(folder.join("none.g6")), Err(Error::Io { .. })));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
