//! DIMACS: the format of the clique and colouring challenges, one undirected graph per file.

use std::fmt::Write;
use std::str::SplitAsciiWhitespace;

use super::MAX_EDGE_LIST_NODES;
use super::words::{found, shown};
use crate::graph::{Edge, GraphKind, GraphState, Node};
use crate::{Error, Result};

const PROBLEM: &str = "`p edge NODES EDGES` once, of at most 16,384 nodes";
const EDGE: &str = "`e A B`, two different nodes from 1 to the number of nodes";
const LINE: &str = "a line that begins with `c`, `p` or `e`";

pub(in crate::graph) fn write(graphs: &[GraphState]) -> Result<String> {
    let [graph] = graphs else {
        let detail = format!("{} graphs: write each to a file of its own", graphs.len());
        return Err(Error::contract("a DIMACS file holds one graph", detail));
    };
    if graph.n_nodes() > MAX_EDGE_LIST_NODES {
        let detail = format!("the graph has {}", graph.n_nodes());
        return Err(Error::contract("a DIMACS file holds at most 16,384 nodes", detail));
    }
    if graph.is_directed() || graph.has_edge_weights() || graph.nodes().any(|node| node != Node::default()) {
        return Err(Error::contract(
            "DIMACS has no room for directions, classes and attributes",
            "the graph has some: write it with GraphFormat::EdgeList",
        ));
    }
    let mut text = String::new();
    // Writing to a string can't fail.
    let _ = writeln!(text, "p edge {} {}", graph.n_nodes(), graph.n_edges());
    for (a, b) in graph.edges() {
        let _ = writeln!(text, "e {} {}", a + 1, b + 1);
    }
    Ok(text)
}

pub(in crate::graph) fn read(text: &[u8]) -> Result<Vec<GraphState>> {
    let mut graph: Option<GraphState> = None;
    for (number, bytes) in super::lines(text) {
        // Comments may be in any encoding.
        if matches!(bytes, [b'c'] | [b'c', b' ' | b'\t', ..]) {
            continue;
        }
        let Ok(content) = std::str::from_utf8(bytes) else {
            return Err(Error::parse(number, "bytes that are not UTF-8 text", "text outside of comments"));
        };
        let mut words = content.split_ascii_whitespace();
        match (words.next(), &mut graph) {
            (None, _) => {}
            (Some("p"), None) => graph = Some(problem(number, words)?),
            (Some("p"), Some(_)) => return Err(Error::parse(number, "a second `p` line", PROBLEM)),
            (Some("e"), Some(graph)) => edge(number, words, graph)?,
            (Some("e"), None) => return Err(Error::parse(number, "an edge before the `p` line", PROBLEM)),
            (Some(word), _) => return Err(Error::parse(number, format!("unknown word {}", shown(word)), LINE)),
        }
    }
    Ok(graph.into_iter().collect())
}

fn problem(line: usize, mut words: SplitAsciiWhitespace<'_>) -> Result<GraphState> {
    match words.next() {
        // The clique challenge has both words.
        Some("edge" | "col") => {}
        word => return Err(Error::parse(line, format!("unknown kind of problem {}", found(word)), PROBLEM)),
    }
    let [n, _] = numbers(line, words, PROBLEM)?;
    // Before anything is allocated. The number of edges isn't checked: the challenges' files count an edge once or twice.
    if n > MAX_EDGE_LIST_NODES {
        return Err(Error::parse(line, format!("a graph of {n} nodes"), PROBLEM));
    }
    Ok(GraphState::with_nodes(GraphKind::Undirected, n))
}

fn edge(line: usize, words: SplitAsciiWhitespace<'_>, graph: &mut GraphState) -> Result<()> {
    let [a, b] = numbers(line, words, EDGE)?;
    let n = graph.n_nodes();
    if a == 0 || b == 0 || a.max(b) > n {
        return Err(Error::parse(line, format!("edge ({a}, {b}) in a graph of {n} nodes"), EDGE));
    }
    if a == b {
        return Err(Error::parse(line, format!("self-loop ({a}, {b})"), EDGE));
    }
    let (a, b) = (a as u32 - 1, b as u32 - 1);
    // Colouring files name each edge both ways round.
    if graph.has_edge(a, b) { Ok(()) } else { graph.add_edge(a, b, Edge::default()) }
}

/// Two numbers and the end of the line.
fn numbers(line: usize, mut words: SplitAsciiWhitespace<'_>, expected: &'static str) -> Result<[usize; 2]> {
    let mut next = || {
        let word = words.next();
        let digits = word.filter(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
        let number = digits.and_then(|digits| digits.parse().ok());
        number.ok_or_else(|| Error::parse(line, format!("a number is {}", found(word)), expected))
    };
    let both = [next()?, next()?];
    match words.next() {
        None => Ok(both),
        Some(word) => Err(Error::parse(line, format!("{} after the end", shown(word)), expected)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_challenges_are_read() {
        let text = b"c a triangle with a tail \xff\r\nc\nc\tp edge 9 9\np edge 4 4\ne 1 2\ne 2 3\n\ne 3 1\ne 3 4\n";
        let graphs = read(text).unwrap();
        assert_eq!(graphs.len(), 1);
        assert_eq!(graphs[0].edges().collect::<Vec<_>>(), [(0, 1), (0, 2), (1, 2), (2, 3)]);
        assert_eq!(write(&graphs).unwrap(), "p edge 4 4\ne 1 2\ne 1 3\ne 2 3\ne 3 4\n");
        let twice = read(b"p col 2 2\ne 1 2\ne 2 1\n").unwrap();
        assert_eq!(twice[0].n_edges(), 1);
        assert!(read(b"").unwrap().is_empty());
    }

    #[test]
    fn each_mistake_is_named_with_its_line() {
        let cases: &[(&str, usize, &str)] = &[
            ("e 1 2", 1, "before the `p` line"),
            ("p", 1, "kind of problem missing"),
            ("p cnf 3 4", 1, "`cnf`"),
            ("p edge", 1, "a number is missing"),
            ("p edge 3", 1, "a number is missing"),
            ("p edge -3 1", 1, "a number is `-3`"),
            ("p edge 99999999999999999999999 1", 1, "`99999999999999999999999`"),
            ("p edge 16385 0", 1, "16385 nodes"),
            ("p edge 3 1 2", 1, "`2` after the end"),
            ("p edge 3 1\np edge 3 1", 2, "second `p`"),
            ("p edge 3 1\nc\ne 1", 3, "a number is missing"),
            ("p edge 3 1\ne 0 1", 2, "edge (0, 1) in a graph of 3"),
            ("p edge 3 1\ne 1 4", 2, "edge (1, 4) in a graph of 3"),
            ("p edge 3 1\ne 2 2", 2, "self-loop (2, 2)"),
            ("p edge 3 1\ne 1 2 3", 2, "`3` after the end"),
            ("p edge 3 1\nn 1 5", 2, "unknown word `n`"),
            ("cat", 1, "unknown word `cat`"),
        ];
        for &(text, at, part) in cases {
            let error = read(text.as_bytes()).unwrap_err();
            let message = error.to_string();
            assert!(matches!(error, Error::Parse { line, .. } if line == at), "{text:?}: {message}");
            assert!(message.contains(part), "{text:?}: {message}");
        }
        assert!(read(b"p edge 2 1\n\xff").unwrap_err().to_string().starts_with("line 2: bytes that are not UTF-8"));
    }

    #[test]
    fn what_has_no_room_is_refused() {
        let plain = GraphState::with_nodes(GraphKind::Undirected, 2);
        let coloured = GraphState::from_parts(GraphKind::Undirected, &[Node::of_class(1)], &[]).unwrap();
        for graphs in [vec![], vec![plain.clone(), plain], vec![GraphState::new(GraphKind::Directed)], vec![coloured]] {
            // An empty directed graph has no direction to lose, but would come back as another.
            assert!(matches!(write(&graphs), Err(Error::Contract { .. })), "{graphs:?}");
        }
    }
}
