//! The format of the library's edge lists: a line for each graph, node and edge.

use std::fmt::Write;
use std::iter::Peekable;
use std::str::SplitAsciiWhitespace;

use super::words::{quote, quote_or_missing};
use super::{estimate_memory, is_in_proportion};
use crate::graph::{Attributes, GraphKind, GraphState, MAX_EDGE_LIST_NODES, NamedGraph, Weight};
use crate::{Error, Result};

const EXPECTED_GRAPH: &str = "`graph directed N` or `graph undirected N`, N at most 16384";
const EXPECTED_NODE: &str = "`node A [class C] [attributes V..]`, A below the graph's number of nodes, C at \
    most 65535, up to 7 V of at most 255";
const EXPECTED_EDGE: &str = "`edge A B [class C] [attributes V..]`, A and B different nodes of the graph, C \
    at most 65535, up to 7 V of at most 255";

/// Writes graphs as an edge list, one after another.
pub(in crate::graph) fn write(graphs: &[GraphState]) -> Result<String> {
    let mut text = String::new();
    for (row, graph) in graphs.iter().enumerate() {
        if graph.n_nodes() > MAX_EDGE_LIST_NODES {
            return Err(Error::contract(
                "a graph of an edge list has at most 16,384 nodes",
                format!("graph {row} has {} nodes: write it as graph6", graph.n_nodes()),
            ));
        }
        let kind = if graph.is_directed() { "directed" } else { "undirected" };
        // The result is ignored, because writing to a string can't fail.
        let _ = writeln!(text, "graph {kind} {}", graph.n_nodes());
        for (a, node) in graph.nodes().enumerate() {
            if !node.is_plain() {
                let _ = writeln!(text, "node {a} {node}");
            }
        }
        for (a, b) in graph.edges() {
            let line = format!("edge {a} {b} {}", graph.edge(a, b).unwrap_or_default());
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
    if !is_in_proportion(graphs.iter().map(|graph| estimate_memory(graph.n_nodes())).sum(), text.len()) {
        return Err(Error::contract(
            "an edge list doesn't consist only of large graphs without edges, because `read` refuses such a \
             file",
            format!("{} graphs in {} bytes: write them to several files", graphs.len(), text.len()),
        ));
    }
    Ok(text)
}

/// Reads the graphs of an edge list. If the first line begins like a line of another format,
/// [`NamedGraph::from_edges`] reads the text.
pub(in crate::graph) fn read(text: &[u8]) -> Result<Vec<GraphState>> {
    let mut graphs: Vec<GraphState> = Vec::new();
    // The flag of each node of the last graph, which is `true` if the text already had a line for the node.
    let mut has_line = Vec::new();
    let mut needed_memory = 0;
    for (number, content) in super::strip_comments(text) {
        let content = content?.trim_ascii();
        let is_foreign = content.starts_with(|c: char| c.is_ascii_digit() || "%<*{[:>&".contains(c));
        let mut line = Line {
            number,
            words: content.split_ascii_whitespace().peekable(),
            expected: "a line that begins with `graph`, `node`, `edge` or `#` (or, on all lines, the numbers \
                of two nodes)",
        };
        match (line.words.next(), graphs.last_mut()) {
            (None, _) => {}
            (Some(word), None)
                if is_foreign || matches!(word, "c" | "e" | "p") || content.ends_with(['[', '{']) =>
            {
                return Ok(vec![NamedGraph::from_edges(text)?.graph]);
            }
            (Some("graph"), _) => {
                line.expected = EXPECTED_GRAPH;
                let graph = line.read_graph()?;
                needed_memory += estimate_memory(graph.n_nodes());
                if !is_in_proportion(needed_memory, text.len()) {
                    return Err(line.error(
                        "the graphs have more nodes together than a text of this length can describe",
                    ));
                }
                has_line = vec![false; graph.n_nodes()];
                graphs.push(graph);
            }
            (Some("node"), Some(graph)) => {
                line.expected = EXPECTED_NODE;
                line.read_node(graph, &mut has_line)?;
            }
            (Some("edge"), Some(graph)) => {
                line.expected = EXPECTED_EDGE;
                line.read_edge(graph)?;
            }
            (Some("node" | "edge"), None) => {
                line.expected = EXPECTED_GRAPH;
                return Err(line.error("a line with a node or an edge comes before the first line `graph`"));
            }
            (Some(word), _) => return Err(line.error(format!("unknown word {}", quote(word)))),
        }
    }
    Ok(graphs)
}

/// A line of an edge list that is read word by word.
struct Line<'a> {
    number: usize,
    /// The words that haven't been read yet.
    words: Peekable<SplitAsciiWhitespace<'a>>,
    /// The correct form of the line, for error messages.
    expected: &'static str,
}

impl Line<'_> {
    fn read_graph(&mut self) -> Result<GraphState> {
        let kind = match self.words.next() {
            Some("directed") => GraphKind::Directed,
            Some("undirected") => GraphKind::Undirected,
            word => return Err(self.error(format!("unknown kind of graph {}", quote_or_missing(word)))),
        };
        let n: usize = self.read_number("number of nodes")?;
        if n > MAX_EDGE_LIST_NODES {
            return Err(self.error(format!("the graph has {n} nodes")));
        }
        self.check_end()?;
        Ok(GraphState::with_nodes(kind, n))
    }

    fn read_node(&mut self, graph: &mut GraphState, has_line: &mut [bool]) -> Result<()> {
        let a: u32 = self.read_number("node")?;
        match has_line.get_mut(a as usize) {
            Some(has_line) if !*has_line => *has_line = true,
            Some(_) => return Err(self.error(format!("node {a} is listed twice"))),
            None => {
                return Err(
                    self.error(format!("node {a} is beyond the {} nodes of the graph", has_line.len()))
                );
            }
        }
        graph.set_node(a, self.read_weight()?)
    }

    fn read_edge(&mut self, graph: &mut GraphState) -> Result<()> {
        let (a, b): (u32, u32) = (self.read_number("node")?, self.read_number("node")?);
        let weight = self.read_weight()?;
        let n = graph.n_nodes();
        let problem = if a.max(b) as usize >= n {
            format!("edge ({a}, {b}) is beyond the {n} nodes of the graph")
        } else if a == b {
            format!("edge ({a}, {b}) is a self-loop")
        } else {
            format!("edge ({a}, {b}) is listed twice")
        };
        graph.add_edge(a, b, weight).map_err(|_| self.error(problem))
    }

    /// Reads `[class C] [attributes V..]`, and checks that the line ends after them.
    fn read_weight(&mut self) -> Result<Weight> {
        let mut weight = Weight::default();
        if self.words.next_if_eq(&"class").is_some() {
            weight.class = self.read_number("class")?;
        }
        if self.words.next_if_eq(&"attributes").is_some() {
            // If no value follows, a value is requested nevertheless, so that `read_number` returns the
            // error.
            let n_values = self.words.clone().count().max(1);
            let values = (0..n_values).map(|_| self.read_number("attribute")).collect::<Result<Vec<u8>>>()?;
            weight.attributes =
                Attributes::new(&values).map_err(|_| self.error("the line has more than 7 attributes"))?;
        }
        self.check_end()?;
        Ok(weight)
    }

    fn read_number<T: std::str::FromStr>(&mut self, what: &str) -> Result<T> {
        let word = self.words.next();
        match word.filter(|word| word.bytes().all(|byte| byte.is_ascii_digit())) {
            None => Err(self.error(format!("{what} is {}", quote_or_missing(word)))),
            Some(digits) => {
                digits.parse().map_err(|_| self.error(format!("{what} {} is out of range", quote(digits))))
            }
        }
    }

    fn check_end(&mut self) -> Result<()> {
        match self.words.next() {
            None => Ok(()),
            Some(word) => Err(self.error(format!("{} follows after the end of the line", quote(word)))),
        }
    }

    fn error(&self, problem: impl ToString) -> Error {
        Error::parse(self.number, problem, self.expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Edge;

    #[test]
    fn the_format_of_the_documentation_is_read() {
        let text =
            b"# two graphs\r\n\r\ngraph directed 4\nnode 0 class 1 attributes 2 0 5 # a comment\nedge\t0 1 \
             class 2\nedge 1 0\n\ngraph undirected 2\nedge 1 0 attributes 0 3";
        let graphs = read(text).unwrap();
        let [first, second] = graphs.as_slice() else {
            panic!("{} graphs", graphs.len());
        };
        assert_eq!((first.kind(), first.n_nodes()), (GraphKind::Directed, 4));
        let node = first.node(0).unwrap();
        assert_eq!(node.class, 1);
        assert_eq!(node.attributes.values(), &[2, 0, 5, 0, 0, 0, 0]);
        assert_eq!(first.edges().collect::<Vec<_>>(), [(0, 1), (1, 0)]);
        assert_eq!(first.edge(0, 1), Some(Edge::from_class(2)));
        assert_eq!(second.edges().collect::<Vec<_>>(), [(0, 1)]);
        assert_eq!(second.edge(0, 1).unwrap().attributes.get(1), 3);
        assert!(read(b"").unwrap().is_empty());
    }

    #[test]
    fn each_mistake_is_named_with_its_line() {
        let cases: &[(&str, usize, &str)] = &[
            ("node 0", 1, "before the first line `graph`"),
            ("graph", 1, "kind of graph missing"),
            ("graph mixed 3", 1, "kind of graph `mixed`"),
            ("graph directed", 1, "number of nodes is missing"),
            ("graph directed -1", 1, "number of nodes is `-1`"),
            ("graph directed 99999999999999999999", 1, "out of range"),
            ("graph directed 16385", 1, "16385 nodes"),
            ("graph directed 3 4", 1, "`4` follows after the end"),
            ("graph directed 3\nvertex 0", 2, "unknown word `vertex`"),
            ("graph directed 3\nnode 3", 2, "node 3 is beyond the 3"),
            ("graph directed 3\nnode 0\nnode 0", 3, "is listed twice"),
            ("graph directed 3\nnode 0 class 65536", 2, "class `65536` is out of range"),
            ("graph directed 3\nnode 0 class", 2, "class is missing"),
            ("graph directed 3\nnode 0 attributes", 2, "attribute is missing"),
            ("graph directed 3\nnode 0 attributes 256", 2, "out of range"),
            ("graph directed 3\nnode 0 attributes 1 2 3 4 5 6 7 8", 2, "more than 7"),
            ("graph directed 3\nnode 0 colour 1", 2, "`colour`"),
            ("graph directed 3\nedge 0", 2, "node is missing"),
            ("graph directed 3\nedge 0 3", 2, "edge (0, 3) is beyond the 3"),
            ("graph directed 3\nedge 1 1", 2, "edge (1, 1) is a self-loop"),
            ("graph directed 3\nedge 0 1\n\nedge 0 1", 4, "is listed twice"),
            ("graph undirected 3\nedge 0 1\nedge 1 0", 3, "is listed twice"),
            ("graph directed 0\nnode 0", 2, "beyond the 0 nodes"),
        ];
        for &(text, at, part) in cases {
            let error = read(text.as_bytes()).unwrap_err();
            let message = error.to_string();
            assert!(matches!(error, Error::Parse { line, .. } if line == at), "{text:?}: {message}");
            assert!(message.contains(part), "{text:?}: {message}");
        }
        let message = read(b"graph directed 1\n\xff\xfe").unwrap_err().to_string();
        assert!(message.starts_with("line 2: the line has bytes that are not UTF-8"), "{message}");
        assert!(read(b"# \xff is allowed in comments\n").unwrap().is_empty());
    }
}
