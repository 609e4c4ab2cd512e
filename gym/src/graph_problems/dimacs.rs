//! DIMACS: the format of the clique and colouring challenges, one undirected graph per file.

use std::fmt::Write;
use std::str::SplitAsciiWhitespace;

use gfn::graph::{Edge, GraphKind, GraphState, MAX_EDGE_LIST_NODES, Node};
use gfn::{Error, Result};

const PROBLEM: &str = "`p edge NODES EDGES` once, of at most 16,384 nodes";
const EDGE: &str = "`e A B`, two different nodes from 1 to the number of nodes";
const LINE: &str = "a line that begins with `c`, `p` or `e`";

/// The text of a graph in the format of [`read_dimacs`].
///
/// # Errors
/// [`Error::Contract`] for a directed graph, one with classes or attributes, and one of more than 16,384 nodes.
pub fn write_dimacs(graph: &GraphState) -> Result<String> {
    if graph.n_nodes() > MAX_EDGE_LIST_NODES {
        let detail = format!("the graph has {}", graph.n_nodes());
        return Err(Error::contract("a DIMACS file holds at most 16,384 nodes", detail));
    }
    if graph.is_directed() || graph.has_edge_weights() || graph.nodes().any(|node| node != Node::default()) {
        return Err(Error::contract(
            "DIMACS has no room for directions, classes and attributes",
            "the graph has some: write it with `GraphFormat::EdgeList`",
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

/// The graph of a text in DIMACS, the format of the clique and colouring challenges (D. S. Johnson and M. A. Trick, *Cliques, Coloring,
/// and Satisfiability*, 1996): one undirected graph of at most 16,384 nodes, without classes and attributes. Nodes are numbered from 1; `c`
/// begins a comment:
///
/// ```
/// use gfn_gym::graph_problems::read_dimacs;
/// let path = read_dimacs(b"c a path\np edge 3 2\ne 1 2\ne 2 3\n")?;
/// assert_eq!((path.n_nodes(), path.n_edges()), (3, 2));
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// `p col` is read, too. The number of edges isn't compared, and an edge may be named twice: files of the colouring challenge name it both
/// ways round.
///
/// # Errors
/// [`Error::Parse`] with the number of the line for the first thing that isn't in the format.
pub fn read_dimacs(text: &[u8]) -> Result<GraphState> {
    let mut graph: Option<GraphState> = None;
    for (number, bytes) in (1..).zip(text.split(|&byte| byte == b'\n')) {
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
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
    graph.ok_or_else(|| Error::parse(1, "no `p` line", PROBLEM))
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

fn found(word: Option<&str>) -> String {
    word.map_or_else(|| "missing".to_owned(), shown)
}

/// A word in quotes, cut if it is long: a binary file read by mistake must not fill the terminal.
fn shown(word: &str) -> String {
    format!("`{}`", word.escape_debug().take(24).collect::<String>())
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
        let graph = read_dimacs(text).unwrap();
        assert_eq!(graph.edges().collect::<Vec<_>>(), [(0, 1), (0, 2), (1, 2), (2, 3)]);
        assert_eq!(write_dimacs(&graph).unwrap(), "p edge 4 4\ne 1 2\ne 1 3\ne 2 3\ne 3 4\n");
        let twice = read_dimacs(b"p col 2 2\ne 1 2\ne 2 1\n").unwrap();
        assert_eq!(twice.n_edges(), 1);
        assert_eq!(read_dimacs(&write_dimacs(&graph).unwrap().into_bytes()).unwrap(), graph);
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
            ("c nothing else", 1, "no `p` line"),
            ("cat", 1, "unknown word `cat`"),
        ];
        for &(text, at, part) in cases {
            let error = read_dimacs(text.as_bytes()).unwrap_err();
            let message = error.to_string();
            assert!(matches!(error, Error::Parse { line, .. } if line == at), "{text:?}: {message}");
            assert!(message.contains(part), "{text:?}: {message}");
        }
        assert!(
            read_dimacs(b"p edge 2 1\n\xff").unwrap_err().to_string().starts_with("line 2: bytes that are not UTF-8")
        );
    }

    #[test]
    fn what_has_no_room_is_refused() {
        let coloured = GraphState::from_parts(GraphKind::Undirected, &[Node::of_class(1)], &[]).unwrap();
        for graph in [GraphState::new(GraphKind::Directed), coloured] {
            // An empty directed graph has no direction to lose, but would come back as another.
            assert!(matches!(write_dimacs(&graph), Err(Error::Contract { .. })), "{graph:?}");
        }
    }
}
