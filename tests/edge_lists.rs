//! Tests of edge lists from other programs, which are lists of pairs of nodes.

use gfn::Error;
use gfn::graph::{GraphFormat, GraphKind, GraphState, NamedGraph, read_graphs};

fn read(text: &str) -> gfn::Result<Vec<GraphState>> {
    GraphFormat::EdgeList.read(text.as_bytes())
}

#[test]
fn edges_are_read_as_networkx_snap_and_pyg_write_them() {
    let texts = [
        // These texts are from networkx: `write_edgelist` without data, with data and with a weight, and
        // `write_weighted_edgelist`.
        "0 1\n1 2\n2 0\n2 3\n",
        "0 1 {}\n1 2 {'weight': 3, 'name': 'a b'}\n2 0 {}\n2 3 {}\n",
        "#nodes.py\n# GMT Mon\n#\n0 1 0.5\r\n1 2 3\r\n2 0 1e-3\r\n2 3 1\r\n",
        // This text is from SNAP. It has comments first, tabs, edges in both directions, and numbers with
        // gaps.
        "# Directed graph (each unordered pair of nodes is saved once): x.txt\n# \
         FromNodeId\tToNodeId\n7\t30\n30\t7\n30\t88\n88\t7\n88\t901234567890\n",
        // This text is CSV with one edge per line: the source and the target of the edge, as in the two
        // columns of a transposed `edge_index` of PyTorch Geometric. The nodes are numbered from 1.
        "1,2\n2,3\n3,1\n\n3,4 # the tail\n",
    ];
    for text in texts {
        let graphs = read(text).unwrap();
        assert!(graphs.len() == 1 && graphs[0].kind() == GraphKind::Undirected, "{text}");
        assert_eq!(graphs[0].edges().collect::<Vec<_>>(), [(0, 1), (0, 2), (1, 2), (2, 3)], "{text}");
    }
}

#[test]
fn each_mistake_is_named_with_its_line() {
    let cases: &[(&str, usize, &str)] = &[
        ("0", 1, "a node is missing"),
        ("# one\n0 1\n1 b", 3, "a node is `b`"),
        ("0 1\n-1 2", 2, "a node is `-1`"),
        ("0 1\n99999999999999999999 2", 2, "a node is `99999999999999999999`"),
        ("0 1\n2 2", 2, "edge (2, 2) is a self-loop"),
        ("0 1 red", 1, "`red` follows after the two nodes"),
        ("0 1 {'weight': 3", 1, "follows after the two nodes"),
        ("0 1\ngraph directed 3", 2, "a node is `graph`"),
        ("graph directed 3\n0 1", 2, "unknown word `0`"),
    ];
    for &(text, at, part) in cases {
        let error = read(text).unwrap_err();
        let message = error.to_string();
        assert!(matches!(error, Error::Parse { line, .. } if line == at), "{text:?}: {message}");
        assert!(message.contains(part), "{text:?}: {message}");
    }
    let path: String = (0..16_384).map(|a| format!("{a} {}\n", a + 1)).collect();
    let message = read(&path).unwrap_err().to_string();
    assert!(message.starts_with("line 16384: node 16384 is one node more"), "{message}");
}

#[test]
fn a_file_of_pairs_is_read_whatever_its_extension_says() {
    let path = std::env::temp_dir().join(format!("gfn-pairs-{}.txt", std::process::id()));
    std::fs::write(&path, "# Nodes: 3 Edges: 2\n10\t20\n20\t30\n").unwrap();
    let graphs = read_graphs(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!((graphs[0].n_nodes(), graphs[0].n_edges()), (3, 2));
}

#[test]
fn names_of_nodes_are_kept() {
    let read = |text: &str| NamedGraph::from_edges(text.as_bytes()).unwrap();
    let edges = |named: &NamedGraph| named.graph.edges().collect::<Vec<_>>();
    // Numbers must be sorted, whatever the order of the lines is. The numbers 07 and 7 are the same node.
    let snap = read("# FromNodeId\tToNodeId\n30\t7\n07\t9000000000\n9000000000\t30\n30\t7\n");
    assert_eq!(
        (&snap.names[..], edges(&snap)),
        (&["7", "30", "9000000000"].map(String::from)[..], vec![(0, 1), (0, 2), (1, 2)])
    );
    // Words must keep the order of their first occurrences in the lines. Numbers among them count as words.
    let words = read("#\nb a {}\r\na 7 {'weight': 2.5, 'to': 'b c'}\n");
    assert_eq!(
        (&words.names[..], edges(&words)),
        (&["b", "a", "7"].map(String::from)[..], vec![(0, 1), (1, 2)])
    );
    assert_eq!(words.names_of(&[2, 0]).unwrap(), ["7", "b"]);
    assert!(matches!(words.names_of(&[3]), Err(Error::OutOfRange { index: 3, len: 3 })));
    assert_eq!(read("# none\n").graph.n_nodes(), 0);
}

/// Tests texts of two lines of numbers. If a line has too many numbers for one edge, the first line lists the
/// sources of all edges, and the second line lists their targets. An earlier version took the further numbers
/// for weights of a single edge.
#[test]
fn an_edge_index_is_read_from_two_lines() {
    for text in ["0 1 1 2 2 3\n1 0 2 1 3 2\n", "# edge_index\n0,1,1,2,2,3\n\n1,0,2,1,3,2\n"] {
        let named = NamedGraph::from_edges(text.as_bytes()).unwrap();
        assert_eq!(named.graph.edges().collect::<Vec<_>>(), [(0, 1), (1, 2), (2, 3)], "{text}");
        assert_eq!(read(text).unwrap()[0], named.graph);
    }
    // The lines of this text may be two edges, or the sources and the targets of two edges. The graph is the
    // same: one edge, which is listed in both directions.
    assert_eq!(read("4 5\n5 4\n").unwrap()[0].n_edges(), 1);
    let cases: &[(&str, usize, &str)] = &[
        ("\n0 1 1\n1 0 2\n", 2, "read in two ways"),
        ("0 1 1 2\n1 0 2 2\n", 2, "edge (2, 2) is a self-loop"),
        ("start goal\n0 1\n1 2\n", 1, "the header `start goal`"),
        ("one,other,weight\n0,1,1\n1,2,1\n", 1, "`weight` follows"),
        ("a b\na a\n", 2, "edge (a, a) is a self-loop"),
        ("a b\nc\n", 2, "a node is missing"),
        ("a {}\n", 1, "a node is missing"),
    ];
    for &(text, at, part) in cases {
        let error = NamedGraph::from_edges(text.as_bytes()).unwrap_err();
        let message = error.to_string();
        assert!(matches!(error, Error::Parse { line, .. } if line == at), "{text:?}: {message}");
        assert!(message.contains(part), "{text:?}: {message}");
    }
    assert!(read("0 1 0.5\n1 0 2\n").is_ok() && read("0 1 2 {}\n1 0 2 {}\n").is_err());
}

/// Tests a text of many short lines. Each line of 23 bytes declares a graph of 16,384 nodes, which needs 1.3
/// MB of memory, so the text must be an error.
#[test]
fn many_short_lines_cannot_ask_for_all_memory() {
    let line = "graph undirected 16384\n";
    assert_eq!(GraphFormat::EdgeList.read(line.as_bytes()).unwrap().len(), 1);
    let error = GraphFormat::EdgeList.read(line.repeat(40).as_bytes()).unwrap_err().to_string();
    assert!(error.contains("more nodes together"), "{error}");
    // Graphs that are too large to be read must not be written either.
    let graphs = vec![GraphState::undirected(16_384); 40];
    assert!(matches!(GraphFormat::EdgeList.write(&graphs), Err(Error::Contract { .. })));
    // Many small graphs must be allowed, although they have half a million nodes together, because they need
    // little memory.
    let many = vec![GraphState::undirected(50); 10_000];
    let text = GraphFormat::EdgeList.write(&many).unwrap();
    assert_eq!(GraphFormat::EdgeList.read(text.as_bytes()).unwrap().len(), many.len());
}
