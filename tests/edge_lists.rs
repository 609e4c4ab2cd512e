//! Edge lists of other programs: pairs of nodes.

use gfn::Error;
use gfn::graph::{GraphFormat, GraphKind, GraphState, read_graphs};

fn read(text: &str) -> gfn::Result<Vec<GraphState>> {
    GraphFormat::EdgeList.read(text.as_bytes())
}

#[test]
fn edges_are_read_as_networkx_snap_and_pyg_write_them() {
    let texts = [
        // networkx: write_edgelist, without data, with it, with a weight; write_weighted_edgelist.
        "0 1\n1 2\n2 0\n2 3\n",
        "0 1 {}\n1 2 {'weight': 3, 'name': 'a b'}\n2 0 {}\n2 3 {}\n",
        "#nodes.py\n# GMT Mon\n#\n0 1 0.5\r\n1 2 3\r\n2 0 1e-3\r\n2 3 1\r\n",
        // SNAP: comments in front, tabs, both ways round, numbers with gaps.
        "# Directed graph (each unordered pair of nodes is saved once): x.txt\n# FromNodeId\tToNodeId\n7\t30\n30\t7\n30\t88\n\
         88\t7\n88\t901234567890\n",
        // The columns of an edge_index in a CSV file, numbered from 1.
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
        ("0 1\n2 2", 2, "self-loop (2, 2)"),
        ("0 1 red", 1, "`red` behind the nodes"),
        ("0 1 {'weight': 3", 1, "behind the nodes"),
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
    assert!(message.starts_with("line 16384: node 16384 after as many others"), "{message}");
}

#[test]
fn a_file_of_pairs_is_read_whatever_its_extension_says() {
    let path = std::env::temp_dir().join(format!("gfn-pairs-{}.txt", std::process::id()));
    std::fs::write(&path, "# Nodes: 3 Edges: 2\n10\t20\n20\t30\n").unwrap();
    let graphs = read_graphs(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!((graphs[0].n_nodes(), graphs[0].n_edges()), (3, 2));
}
