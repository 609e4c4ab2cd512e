//! Lists of pairs of nodes, as networkx, SNAP and PyG write edges: one undirected graph per file, whose nodes have names.

use std::collections::HashMap;

use super::MAX_EDGE_LIST_NODES;
use super::words::{found, shown};
use crate::graph::{Edge, GraphKind, GraphState};
use crate::{Error, Result};

const PAIR: &str = "`A B`, the whole numbers of two different nodes, with nothing behind them but weights or `{..}`; at most 16,384 \
                    nodes in all";
const WORDS: &str = "`A B`, the names of two different nodes, with nothing behind them but weights or `{..}`; at most 16,384 nodes in all";
const HEADER: &str = "names of nodes like those of the other lines, which are numbers: begin a header with `#`";
const EITHER: &str = "what can be read in one way: a weight between braces (`A B {'weight': W}`) if each line is an edge, and both directions of \
                      each edge in an edge_index";
/// From so many words on, two lines are an `edge_index`.
const WIDE: usize = 4;

/// A graph, and the name that each of its nodes has in the file that it comes from.
///
/// ```
/// use gfn::graph::NamedGraph;
/// // As SNAP writes it: any whole numbers, and each edge both ways round.
/// let snap = NamedGraph::from_edges(b"# Nodes: 3 Edges: 4\n7\t30\n30\t7\n30\t104\n104\t30\n")?;
/// assert_eq!((snap.graph.n_nodes(), snap.graph.n_edges()), (3, 2));
/// assert_eq!(snap.names_of(&[0, 2])?, ["7", "104"]);
/// // As `write_edgelist` of networkx does.
/// let networkx = NamedGraph::from_edges(b"#a comment\nAnna Bert {}\nBert Cem {'weight': 1}\n")?;
/// assert_eq!(networkx.names, ["Anna", "Bert", "Cem"]);
/// // An edge_index of PyG: nodes, and those that they have edges to below them.
/// let pyg = NamedGraph::from_edges(b"0, 1, 1, 2\n1, 0, 2, 1\n")?;
/// assert!(pyg.graph == snap.graph && pyg.graph == networkx.graph);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct NamedGraph {
    /// The graph.
    pub graph: GraphState,
    /// The name of each node.
    pub names: Vec<String>,
}

impl NamedGraph {
    /// The undirected graph of a text that lists edges: two names of nodes in each line, between spaces, tabs or commas; or an `edge_index` of
    /// four columns or more in two lines. Everything after `#` is a comment.
    ///
    /// If the first name begins with a digit, all are whole numbers, and nodes are in their order; else names are words, and nodes are in
    /// the order in which they are named first. An edge may be named twice. Weights and dictionaries behind the nodes are read over.
    ///
    /// # Errors
    /// [`Error::Parse`] with the number of the line for the first thing that isn't in the format: a self-loop, a header without `#`, more than
    /// 16,384 nodes; two lines of three numbers each, which can be edges with weights and an `edge_index`.
    pub fn from_edges(text: &[u8]) -> Result<Self> {
        let mut rows = Vec::new();
        for (line, content) in super::contents(text) {
            let content = content?.trim_ascii();
            if !content.is_empty() {
                rows.push(Row { line, content });
            }
        }
        let numbered = rows.first().is_none_or(|row| row.content.starts_with(|c: char| c.is_ascii_digit()));
        let pairs = match edge_index(&rows)? {
            Some(pairs) => pairs,
            None => rows.iter().map(|row| row.pair(numbered)).collect::<Result<_>>()?,
        };
        if let ([header, rest @ ..], false) = (&pairs[..], numbered)
            && !rest.is_empty()
            && rest.iter().all(|pair| pair.ends.iter().all(|name| number(name).is_some()))
        {
            return Err(Error::parse(header.line, format!("the header {}", shown(&header.ends.join(" "))), HEADER));
        }
        named(&pairs, numbered)
    }

    /// The names of these nodes: those of a solution, say.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a node that the graph doesn't have.
    pub fn names_of(&self, nodes: &[u32]) -> Result<Vec<&str>> {
        let of = |&a: &u32| {
            let name = self.names.get(a as usize).map(String::as_str);
            name.ok_or_else(|| Error::out_of_range(a as usize, self.names.len()))
        };
        nodes.iter().map(of).collect()
    }
}

/// A line that isn't empty, without its comment.
struct Row<'a> {
    line: usize,
    content: &'a str,
}

/// An edge, and the line that names it.
struct Pair {
    line: usize,
    ends: [String; 2],
}

impl<'a> Row<'a> {
    fn words(&self) -> impl Iterator<Item = &'a str> {
        self.content.split(|c: char| c.is_ascii_whitespace() || c == ',').filter(|word| !word.is_empty())
    }

    /// The edge of a line, whose names are whole numbers or any words.
    fn pair(&self, numbered: bool) -> Result<Pair> {
        let refuse = |problem: String| Error::parse(self.line, problem, if numbered { PAIR } else { WORDS });
        let mut words = self.words();
        let mut node = || {
            let word = words.next().filter(|word| !word.starts_with('{'));
            let name = if numbered { word.and_then(number).map(|a| a.to_string()) } else { word.map(str::to_owned) };
            name.ok_or_else(|| refuse(format!("a node is {}", found(word))))
        };
        let ends = [node()?, node()?];
        let mut behind = words.peekable();
        let is_dictionary = behind.peek().is_some_and(|word| word.starts_with('{')) && self.content.ends_with('}');
        match behind.find(|word| !is_dictionary && word.parse::<f64>().is_err()) {
            Some(word) => Err(refuse(format!("{} behind the nodes", shown(word)))),
            None if ends[0] == ends[1] => Err(refuse(format!("self-loop ({}, {})", ends[0], ends[1]))),
            None => Ok(Pair { line: self.line, ends }),
        }
    }
}

/// The edges of two lines with as many whole numbers each; `None` of anything else, and of two lines of two, which are two edges.
fn edge_index(rows: &[Row<'_>]) -> Result<Option<Vec<Pair>>> {
    let [sources, targets] = rows else { return Ok(None) };
    let numbers = |row: &Row<'_>| row.words().map(number).collect::<Option<Vec<_>>>().unwrap_or_default();
    let (from, to) = (numbers(sources), numbers(targets));
    if from.len() != to.len() || from.len() + 1 < WIDE {
        return Ok(None);
    }
    if from.len() < WIDE {
        return Err(Error::parse(sources.line, "two lines of three numbers", EITHER));
    }
    if let Some((a, _)) = from.iter().zip(&to).find(|(a, b)| a == b) {
        return Err(Error::parse(targets.line, format!("self-loop ({a}, {a})"), PAIR));
    }
    let pair = |(a, b): (u64, u64)| Pair { line: targets.line, ends: [a, b].map(|end| end.to_string()) };
    Ok(Some(from.into_iter().zip(to).map(pair).collect()))
}

fn named(pairs: &[Pair], numbered: bool) -> Result<NamedGraph> {
    let (mut places, mut names) = (HashMap::new(), Vec::new());
    for Pair { line, ends } in pairs {
        for name in ends {
            if !places.contains_key(name.as_str()) {
                if names.len() == MAX_EDGE_LIST_NODES {
                    let problem = format!("node {name} after as many others as a graph may have");
                    return Err(Error::parse(*line, problem, if numbered { PAIR } else { WORDS }));
                }
                places.insert(name.as_str(), names.len() as u32);
                names.push(name.clone());
            }
        }
    }
    if numbered {
        names.sort_by_key(|name| number(name));
        for (name, place) in names.iter().zip(0..) {
            places.entry(name).and_modify(|at| *at = place);
        }
    }
    let mut graph = GraphState::with_nodes(GraphKind::Undirected, names.len());
    for Pair { ends: [a, b], .. } in pairs {
        let (a, b) = (places[a.as_str()], places[b.as_str()]);
        // Many files name each edge both ways round.
        if !graph.has_edge(a, b) {
            graph.add_edge(a, b, Edge::default())?;
        }
    }
    drop(places);
    Ok(NamedGraph { graph, names })
}

/// The whole number that a word is, if it is one.
fn number(word: &str) -> Option<u64> {
    word.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.parse().ok()).flatten()
}
