//! Lists of pairs of nodes, as networkx, SNAP and PyG write edges. A file is one undirected graph, whose
//! nodes have names.

use std::collections::{HashMap, HashSet};

use super::words::{quote, quote_or_missing};
use super::{MAX_EDGE_LIST_NODES, layouts};
use crate::graph::{Edge, GraphState};
use crate::{Error, Result};

pub(super) const EXPECTED_NUMBERS: &str = "`A B`, the whole numbers of two different nodes, followed only by \
    weights or `{..}`; at most 16,384 nodes in all";
const EXPECTED_NAMES: &str = "`A B`, the names of two different nodes, followed only by weights or `{..}`; \
    at most 16,384 nodes in all";
const EXPECTED_SIZE: &str = "at most 16,384 nodes in all";
const EXPECTED_HEADER: &str =
    "numbers of nodes as on the other lines: if the line is a header, begin it with `#`";
pub(super) const EXPECTED_ONE_READING: &str = "a text that can be read in only one way. If each line is an \
    edge with a weight, write that in braces (`A B {'weight': W}`); if the first line is an edge, exchange \
    it with the next one; if it holds the numbers of nodes and edges, write `p edge NODES EDGES`; in an \
    edge_index name each edge both ways";
const EXPECTED_COLUMNS: &str = "the same number of words on each line: a list of edges gives a weight to all \
    edges or to none. In METIS (`n m`, then n lines of neighbours) and adjacency lists no line names a node \
    twice, and each edge is listed by both of its nodes; below the numbers `n m` of a list of edges there \
    are m edges between n nodes";

/// A graph from a file, with the name of each node in that file.
///
/// ```
/// use gfn::graph::NamedGraph;
/// // SNAP: any whole numbers, and each edge in both directions.
/// let snap = NamedGraph::from_edges(b"# Nodes: 3 Edges: 4\n7\t30\n30\t7\n30\t104\n104\t30\n")?;
/// assert_eq!((snap.graph.n_nodes(), snap.graph.n_edges()), (3, 2));
/// assert_eq!(snap.names_of(&[0, 2])?, ["7", "104"]);
/// // `write_edgelist` of networkx.
/// let networkx = NamedGraph::from_edges(b"#a comment\nAnna Bert {}\nBert Cem {'weight': 1}\n")?;
/// assert_eq!(networkx.names, ["Anna", "Bert", "Cem"]);
/// // An edge_index of PyG: the first nodes of all edges, and the second nodes below them.
/// let pyg = NamedGraph::from_edges(b"0, 1, 1, 2\n1, 0, 2, 1\n")?;
/// assert!(pyg.graph == snap.graph && pyg.graph == networkx.graph);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct NamedGraph {
    /// The graph that was read, with nodes labelled from 0.
    pub graph: GraphState,
    /// The name of each node, in label order.
    pub names: Vec<String>,
    /// `true` if at least one edge has a weight other than 1 in the text. `graph` doesn't store these
    /// weights, so problems that depend on them can't be solved with it.
    pub has_weights: bool,
}

impl NamedGraph {
    /// Reads the undirected graph of a text that lists edges: two names of nodes on each line, separated by
    /// blanks, tabs or commas. A `#` at the start of a line or after a blank begins a comment.
    ///
    /// If the first name begins with a digit, all names must be whole numbers, and nodes are sorted by their
    /// numbers. Otherwise names are words, and nodes are in the order in which the text first names them. An
    /// edge may occur several times. The weight of an edge is a number after its nodes, or the entry
    /// `'weight'` of a dictionary there ([`has_weights`](Self::has_weights)). A first line of common column
    /// titles (`source,target`, `from to`, `node1 node2`) is skipped if no other line begins with such names.
    ///
    /// Other layouts are recognised by their content. The text is read as the first of these layouts that
    /// fits:
    /// 1. DIMACS and PACE: a line `p KIND NODES EDGES` below comments `c`, then edges `e A B`, arcs
    ///    `a A B WEIGHT` or `A B`. Nodes are numbered from 1.
    /// 2. METIS, with weights of edges or without: each edge is listed by both of its nodes, and the number
    ///    of edges is that of the first line. Nodes are numbered from 1.
    /// 3. An adjacency matrix of at least three nodes, which are numbered from 0: entries are 0 and 1, or
    ///    weights.
    /// 4. Edges below a line `n m` or `n n m` (Gset, rudy): m lines follow, and name only the n nodes, which
    ///    are numbered from 0 if a 0 occurs, otherwise from 1.
    /// 5. An adjacency list: each node begins one line, and no line names a node twice.
    /// 6. An `edge_index`: two lines with equally many numbers, at least four.
    ///
    /// A text that could also be read as a list of edges, and would then give another graph or weights, is
    /// refused in these cases:
    /// * it fits layout 4, and m is also the number of a node (the first line could be an edge),
    /// * it fits layout 5, and a node lists a neighbour that doesn't list the node,
    /// * it fits layout 5, each line has three numbers, and no two lines begin with the same pair of nodes
    ///   (the lines could be edges with weights),
    /// * it is like layout 6, but with three numbers in each line (the lines could be edges with weights).
    ///
    /// Sparse6, GML, GraphML, Pajek, Matrix Market, KONECT, DOT and JSON are refused with an error that names
    /// the format.
    ///
    /// # Errors
    /// [`Error::Parse`] with the number of the line of the first mistake: a self-loop, another header without
    /// `#`, more than 16,384 nodes, lines of different numbers of columns, a text that could be read as two
    /// different graphs, a format that isn't supported.
    pub fn from_edges(text: &[u8]) -> Result<Self> {
        let mut lines = Vec::new();
        for (line, content) in super::strip_comments(text) {
            lines.push(Row { line, content: content?.trim_ascii() });
        }
        layouts::read(&lines)
    }

    /// Returns the names of some nodes of the graph, such as the nodes of a solution.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a node that the graph doesn't have.
    pub fn names_of(&self, nodes: &[u32]) -> Result<Vec<&str>> {
        let name_of = |&a: &u32| {
            let name = self.names.get(a as usize).map(String::as_str);
            name.ok_or_else(|| Error::out_of_range(a as usize, self.names.len()))
        };
        nodes.iter().map(name_of).collect()
    }
}

/// A line of a text, without its comment.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    /// The number of the line in the text, from 1.
    pub(super) line: usize,
    pub(super) content: &'a str,
}

/// An edge, given by the names of its nodes, its weight, and the number of its line.
pub(super) struct Pair {
    pub(super) line: usize,
    pub(super) ends: [String; 2],
    pub(super) weight: f64,
}

impl<'a> Row<'a> {
    /// Returns the words of the line, which blanks, tabs or commas separate.
    pub(super) fn words(&self) -> impl Iterator<Item = &'a str> {
        self.content.split(|c: char| c.is_ascii_whitespace() || c == ',').filter(|word| !word.is_empty())
    }

    /// Returns the words of the line as numbers; `None` if one of them isn't a whole number.
    pub(super) fn numbers(&self) -> Option<Vec<u64>> {
        self.words().map(parse_number).collect()
    }

    /// Reads the edge that the line names. If `is_numbered` is `true`, the names must be whole numbers;
    /// otherwise the names may be any words.
    pub(super) fn read_pair(&self, is_numbered: bool, expected: &'static str) -> Result<Pair> {
        let refuse = |problem: String| Error::parse(self.line, problem, expected);
        let mut words = self.words();
        let mut node = || {
            let word = words.next().filter(|word| !word.starts_with('{'));
            let name = if is_numbered {
                word.and_then(parse_number).map(|a| a.to_string())
            } else {
                word.map(str::to_owned)
            };
            name.ok_or_else(|| refuse(format!("a node is {}", quote_or_missing(word))))
        };
        let ends = [node()?, node()?];
        let mut behind = words.peekable();
        let is_dictionary =
            behind.peek().is_some_and(|word| word.starts_with('{')) && self.content.ends_with('}');
        let weight =
            if is_dictionary { find_weight(self.content) } else { behind.peek().copied().unwrap_or("1") };
        let weight = weight.parse().unwrap_or(f64::NAN);
        match behind.find(|word| !is_dictionary && word.parse::<f64>().is_err()) {
            Some(word) => Err(refuse(format!("{} follows after the two nodes", quote(word)))),
            None if ends[0] == ends[1] => {
                Err(refuse(format!("edge ({}, {}) is a self-loop", ends[0], ends[1])))
            }
            None => Ok(Pair { line: self.line, ends, weight }),
        }
    }
}

/// Returns the text of the entry `weight` in the dictionary of a line; "1" if there is no such entry.
fn find_weight(content: &str) -> &str {
    let entry = ["'weight':", "\"weight\":"].into_iter().find_map(|key| content.split_once(key));
    entry.map_or("1", |(_, entry)| entry.split([',', '}']).next().unwrap_or_default().trim())
}

/// Reads the graph of lines that each name one edge.
pub(super) fn read_edges(rows: &[Row<'_>]) -> Result<NamedGraph> {
    let is_numbered = rows.first().is_none_or(|row| row.content.starts_with(|c: char| c.is_ascii_digit()));
    let expected = if is_numbered { EXPECTED_NUMBERS } else { EXPECTED_NAMES };
    let pairs = rows.iter().map(|row| row.read_pair(is_numbered, expected)).collect::<Result<Vec<_>>>()?;
    if let ([header, rest @ ..], false) = (&pairs[..], is_numbered)
        && !rest.is_empty()
        && rest.iter().all(|pair| pair.ends.iter().all(|name| parse_number(name).is_some()))
    {
        let problem = format!("the line is the header {}", quote(&header.ends.join(" ")));
        return Err(Error::parse(header.line, problem, EXPECTED_HEADER));
    }
    let width = rows.first().map_or(0, |row| row.words().count());
    if let Some(row) = rows.iter().find(|row| row.words().count() != width)
        && !rows.iter().any(|row| row.content.contains('{'))
    {
        let n_words = row.words().count();
        let problem = format!("the line has {n_words} words, but the first line has {width}");
        return Err(Error::parse(row.line, problem, EXPECTED_COLUMNS));
    }
    build_graph(&[], &pairs)
}

/// Builds the graph with these edges. The graph has the nodes `nodes` and all nodes that edges name, sorted
/// by their names if all names are numbers.
pub(super) fn build_graph(nodes: &[String], pairs: &[Pair]) -> Result<NamedGraph> {
    if nodes.len() > MAX_EDGE_LIST_NODES {
        return Err(Error::parse(1, format!("the graph has {} nodes", nodes.len()), EXPECTED_SIZE));
    }
    let mut names: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let mut known: HashSet<&str> = names.iter().copied().collect();
    for Pair { line, ends, .. } in pairs {
        for name in ends.iter().filter(|name| known.insert(name)) {
            if names.len() == MAX_EDGE_LIST_NODES {
                let problem = format!("node {name} is one node more than a graph may have");
                return Err(Error::parse(*line, problem, EXPECTED_SIZE));
            }
            names.push(name);
        }
    }
    if names.iter().all(|name| parse_number(name).is_some()) {
        names.sort_by_key(|name| parse_number(name));
    }
    let places: HashMap<&str, u32> = names.iter().copied().zip(0..).collect();
    let mut graph = GraphState::undirected(names.len());
    for Pair { ends: [a, b], .. } in pairs {
        let a = places[a.as_str()];
        let b = places[b.as_str()];
        // An edge is added only once, because many files name each edge in both directions.
        if !graph.has_edge(a, b) {
            graph.add_edge(a, b, Edge::default())?;
        }
    }
    let names = names.into_iter().map(str::to_owned).collect();
    Ok(NamedGraph { graph, names, has_weights: pairs.iter().any(|pair| pair.weight != 1.0) })
}

/// Returns the whole number that a word represents; `None` if the word isn't a whole number.
pub(super) fn parse_number(word: &str) -> Option<u64> {
    word.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.parse().ok()).flatten()
}
