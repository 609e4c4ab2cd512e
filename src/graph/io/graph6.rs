//! The formats graph6 and digraph6 of nauty's `formats.txt`. A line holds the number of nodes, then the bits
//! of the adjacency matrix, six per printable byte.

use crate::graph::{Edge, GraphKind, GraphState};
use crate::{Error, Result};

/// The largest number of nodes of a graph. The formats allow more, but this module reads and writes the
/// number of nodes in at most four bytes.
const MAX_NODES: usize = 258_047;
/// The number that is added to each group of six bits, so that the group becomes a printable byte.
const BIAS: u8 = 63;
/// The first of the four bytes of a number of nodes above 62.
const LONG_SIZE: u8 = 126;

const EXPECTED: &str =
    "graph6 (`Bw`) or digraph6 (`&BP_`): bytes 63 to 126, one graph per line, of at most 258047 nodes";

/// Writes graphs, one per line.
pub(in crate::graph) fn write(graphs: &[GraphState]) -> Result<String> {
    let mut text = String::new();
    for (row, graph) in graphs.iter().enumerate() {
        let n = graph.n_nodes();
        if n > MAX_NODES {
            return Err(Error::contract(
                "a graph6 graph has at most 258,047 nodes",
                format!("graph {row} has {n}"),
            ));
        }
        if graph.has_edge_weights() || graph.nodes().any(|node| !node.is_plain()) {
            return Err(Error::contract(
                "a graph6 graph has no classes and no attributes",
                format!(
                    "graph {row} has classes or attributes: write it with GraphFormat::EdgeList (any \
                     extension except g6 and d6)"
                ),
            ));
        }
        if graph.is_directed() {
            text.push('&');
        }
        write_size(&mut text, n);
        let adjacency = graph.adjacency();
        let mut pairs = list_pairs(graph.kind(), n).peekable();
        while pairs.peek().is_some() {
            let mut group = 0;
            for place in (0..6).rev() {
                let is_joined = pairs.next().is_some_and(|(a, b)| adjacency.get(a, b));
                group |= u8::from(is_joined) << place;
            }
            text.push(char::from(group + BIAS));
        }
        text.push('\n');
    }
    Ok(text)
}

/// Writes the number of nodes: up to 62 in one byte, larger numbers in four bytes.
fn write_size(text: &mut String, n: usize) {
    let six = |shift: usize| char::from((n >> shift & 63) as u8 + BIAS);
    if n > 62 {
        text.push(char::from(LONG_SIZE));
        text.push(six(12));
        text.push(six(6));
    }
    text.push(six(0));
}

/// Returns the pairs of nodes in the order of their bits. In directed graphs these are the entries of the
/// adjacency matrix by rows, in undirected graphs the entries of its upper triangle by columns.
fn list_pairs(kind: GraphKind, n: usize) -> impl Iterator<Item = (usize, usize)> {
    let directed = kind == GraphKind::Directed;
    (0..n).flat_map(move |i| {
        let second = 0..if directed { n } else { i };
        second.map(move |j| if directed { (i, j) } else { (j, i) })
    })
}

/// Reads graphs, one per line.
pub(in crate::graph) fn read(text: &[u8]) -> Result<Vec<GraphState>> {
    let mut graphs = Vec::new();
    for (number, line) in super::split_lines(text) {
        let mut rest = line;
        if number == 1 {
            for header in [&b">>graph6<<"[..], b">>digraph6<<"] {
                rest = rest.strip_prefix(header).unwrap_or(rest);
            }
        }
        if !rest.is_empty() {
            graphs.push(read_line(number, rest)?);
        }
    }
    Ok(graphs)
}

/// Reads the graph of a line. `line` is the number of the line in the file.
fn read_line(line: usize, bytes: &[u8]) -> Result<GraphState> {
    let error = |problem: String| Error::parse(line, problem, EXPECTED);
    let (kind, packed) = match bytes {
        [b'&', rest @ ..] => (GraphKind::Directed, rest),
        [b':' | b';', ..] => return Err(error("the graph is in sparse6, which can't be read".to_owned())),
        [b'>', ..] => return Err(error("the header is unknown, or comes after the first line".to_owned())),
        _ => (GraphKind::Undirected, bytes),
    };
    if let Some(at) = packed.iter().position(|byte| !(BIAS..=LONG_SIZE).contains(byte)) {
        let column = bytes.len() - packed.len() + at + 1;
        return Err(error(format!("the byte in column {column} is {}", packed[at])));
    }
    let six = |byte: u8| usize::from(byte - BIAS);
    let (n, bits) = match packed {
        [LONG_SIZE, LONG_SIZE, ..] => return Err(error("the graph has more than 258047 nodes".to_owned())),
        [LONG_SIZE, a, b, c, bits @ ..] => (six(*a) << 12 | six(*b) << 6 | six(*c), bits),
        [LONG_SIZE, ..] | [] => return Err(error("the line ends within the number of nodes".to_owned())),
        [a, bits @ ..] => (six(*a), bits),
    };
    let n_bits = if kind == GraphKind::Directed { n * n } else { n * n.saturating_sub(1) / 2 };
    // The number of nodes must match the length of the line. The length is checked before memory for the
    // graph is allocated.
    let n_bytes = n_bits.div_ceil(6);
    if bits.len() != n_bytes {
        return Err(error(format!(
            "the line has {} bytes of edges, but a graph of {n} nodes has {n_bytes}",
            bits.len()
        )));
    }
    let bit = |k: usize| six(bits[k / 6]) >> (5 - k % 6) & 1 == 1;
    if (n_bits..6 * bits.len()).any(bit) {
        return Err(error("the line has bits after the last pair of nodes".to_owned()));
    }
    let mut graph = GraphState::with_nodes(kind, n);
    for (k, (a, b)) in list_pairs(kind, n).enumerate() {
        if bit(k) {
            if a == b {
                return Err(error(format!("edge ({a}, {a}) is a self-loop")));
            }
            graph.add_edge(a as u32, b as u32, Edge::default())?;
        }
    }
    Ok(graph)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Node;

    fn undirected(n: usize, edges: &[(u32, u32)]) -> GraphState {
        graph(GraphKind::Undirected, n, edges)
    }

    fn graph(kind: GraphKind, n: usize, edges: &[(u32, u32)]) -> GraphState {
        let edges: Vec<_> = edges.iter().map(|&(a, b)| (a, b, Edge::default())).collect();
        GraphState::from_parts(kind, &vec![Node::default(); n], &edges).unwrap()
    }

    fn check_round_trip(text: &str, graph: &GraphState) {
        assert_eq!(read(text.as_bytes()).unwrap(), std::slice::from_ref(graph), "{text}");
        assert_eq!(write(std::slice::from_ref(graph)).unwrap(), format!("{text}\n"));
    }

    #[test]
    fn the_examples_of_the_format_and_known_graphs() {
        // The file `formats.txt` has these examples: n = 5 and the edges 0-2, 0-4, 1-3, 3-4 give the bytes 68
        // 81 99; the digraph 0->2, 0->4, 3->1, 3->4 gives &DI?AO?.
        check_round_trip("DQc", &undirected(5, &[(0, 2), (0, 4), (1, 3), (3, 4)]));
        let digraph = graph(GraphKind::Directed, 5, &[(0, 2), (0, 4), (3, 1), (3, 4)]);
        check_round_trip("&DI?AO?", &digraph);
        check_round_trip("?", &undirected(0, &[]));
        check_round_trip("@", &undirected(1, &[]));
        check_round_trip("&@?", &graph(GraphKind::Directed, 1, &[]));
        check_round_trip("A_", &undirected(2, &[(0, 1)]));
        check_round_trip("Bw", &undirected(3, &[(0, 1), (0, 2), (1, 2)]));
        check_round_trip("Dhc", &undirected(5, &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]));
        let outer = (0..5).map(|i| (i, (i + 1) % 5));
        let spokes = (0..5).map(|i| (i, i + 5));
        let inner = (0..5).map(|i| (5 + i, 5 + (i + 2) % 5));
        let petersen: Vec<_> = outer.chain(spokes).chain(inner).collect();
        check_round_trip("IheA@GUAo", &undirected(10, &petersen));
    }

    #[test]
    fn other_labellings_of_petersen_and_of_the_ring_have_their_invariants() {
        let graphs = read(b">>graph6<<DUW\r\nIsP@OkWHG\n\n").unwrap();
        let [ring, petersen] = graphs.as_slice() else {
            panic!("{} graphs", graphs.len());
        };
        assert!((0..5).all(|a| ring.degree(a) == 2));
        assert!((0..10).all(|a| petersen.degree(a) == 3));
        // Neighbours in the Petersen graph share no neighbour, and other pairs of nodes share exactly one. No
        // other graph of 10 nodes with 15 edges has this property.
        for a in 0..10u32 {
            for b in 0..a {
                let shared = (0..10).filter(|&c| petersen.has_edge(a, c) && petersen.has_edge(b, c));
                let expected = usize::from(!petersen.has_edge(a, b));
                assert_eq!(shared.count(), expected, "({a}, {b})");
            }
        }
    }

    #[test]
    fn sizes_are_written_in_one_byte_or_four() {
        let size = |n| {
            let mut text = String::new();
            write_size(&mut text, n);
            text.into_bytes()
        };
        assert_eq!(size(30), [93]);
        assert_eq!(size(62), [125]);
        assert_eq!(size(63), [126, 63, 63, 126]);
        assert_eq!(size(12_345), [126, 66, 63, 120]);
        assert_eq!(size(MAX_NODES), [126, 125, 126, 126]);
        let star: Vec<_> = (1..200).map(|b| (0, b)).collect();
        let graph = undirected(200, &star);
        let text = write(std::slice::from_ref(&graph)).unwrap();
        assert_eq!(text.len(), 4 + (200 * 199 / 2usize).div_ceil(6) + 1);
        assert_eq!(read(text.as_bytes()).unwrap(), [graph]);
    }

    #[test]
    fn each_mistake_is_named_with_its_line() {
        let cases: &[(&[u8], usize, &str)] = &[
            (b"Bw\nB", 2, "0 bytes of edges, but a graph of 3 nodes has 1"),
            (b"Bww", 1, "2 bytes of edges"),
            (b"Bx", 1, "bits after the last pair"),
            (b"B w", 1, "the byte in column 2 is 32"),
            (b"&B\xff_", 1, "the byte in column 3 is 255"),
            (b"&", 1, "ends within the number of nodes"),
            (b"~?", 1, "ends within the number of nodes"),
            (b"~~?????A", 1, "more than 258047"),
            (b"~}~~", 1, "0 bytes of edges, but a graph of 258047 nodes"),
            (b"&~}~~", 1, "0 bytes of edges, but a graph of 258047 nodes"),
            (b"&A_", 1, "edge (0, 0) is a self-loop"),
            (b":Fa@x^", 1, "sparse6"),
            (b">>sparse6<<:Fa@x^", 1, "header"),
            (b"Bw\n>>graph6<<Bw", 2, "header"),
        ];
        for &(text, at, part) in cases {
            let error = read(text).unwrap_err();
            let message = error.to_string();
            assert!(matches!(error, Error::Parse { line, .. } if line == at), "{text:?}: {message}");
            assert!(message.contains(part), "{text:?}: {message}");
        }
    }

    #[test]
    fn classes_are_refused_with_a_remedy() {
        let node = GraphState::from_parts(GraphKind::Directed, &[Node::from_class(2)], &[]).unwrap();
        let edge = [(0, 1, Edge::from_class(1))];
        let edge = GraphState::from_parts(GraphKind::Undirected, &[Node::default(); 2], &edge).unwrap();
        for graph in [node, edge] {
            let message = write(&[graph]).unwrap_err().to_string();
            assert!(
                message.contains("graph 0 has classes or attributes") && message.contains("EdgeList"),
                "{message}"
            );
        }
    }
}
