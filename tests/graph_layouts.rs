//! Tests of graph files in many formats. Each format must be recognised and read, or the error must name
//! the format.

use std::fs;

use gfn::Error;
use gfn::graph::{GraphFormat, GraphState, NamedGraph, read_graphs};
use gfn_gym::graph_problems::Instances;

use crate::trainers::Folder;

fn read(text: &str) -> gfn::Result<NamedGraph> {
    NamedGraph::from_edges(text.as_bytes())
}

/// Describes a graph in a text: its edges in sorted order, each as two names with the smaller name first,
/// followed by the names of isolated nodes.
fn describe(named: &NamedGraph) -> String {
    let mut edges = Vec::new();
    for (a, b) in named.graph.edges() {
        let mut ends = [&named.names[a as usize], &named.names[b as usize]].map(String::as_str);
        ends.sort_by_key(|name| (name.parse::<u64>().ok(), *name));
        edges.push(ends.join("-"));
    }
    edges.sort();
    let alone = (0..named.graph.n_nodes() as u32).filter(|&a| named.graph.degree(a) == 0);
    edges.extend(alone.map(|a| named.names[a as usize].clone()));
    edges.join(" ")
}

/// The texts that must be read: the name of the case, the text, the expected graph as [`describe`] writes
/// it, and `true` if an edge has a weight other than 1.
const READ: &[(&str, &str, &str, bool)] = &[
    // DIMACS and PACE files must be recognised whatever the file name is.
    ("DIMACS", "c 1dc.4-like: DIMACS in a .txt\np edge 4 3\ne 1 2\ne 2 3\ne 3 4\n", "1-2 2-3 3-4", false),
    ("DIMACS without comments", "p edge 4 3\ne 1 2\ne 2 3\ne 3 4\n", "1-2 2-3 3-4", false),
    ("DIMACS of colours, CRLF", "p col 4 3 \r\ne 1 2\r\ne 2 1\r\ne 3 4\r\n", "1-2 3-4", false),
    (
        "DIMACS with comments between",
        "c one\np edge 6 3\nc two\ne 1 2\ne 2 3\ne 3 5\n",
        "1-2 2-3 3-5 4 6",
        false,
    ),
    ("DIMACS called edges", "p edges 3 2\ne 1 2\ne 2 3", "1-2 2-3", false),
    ("DIMACS with weights", "p edge 4 3\ne 1 2 5\ne 2 3 7\ne 3 4 1\n", "1-2 2-3 3-4", true),
    ("DIMACS of shortest paths", "p sp 4 3\na 1 2 5\na 2 3 7\na 3 4 1\n", "1-2 2-3 3-4", true),
    ("shortest paths of length 1", "p sp 3 4\na 1 2 1\na 2 1 1\na 2 3 1\na 3 2 1\n", "1-2 2-3", false),
    ("PACE", "c a comment\np tw 4 3\n1 2\n2 3\n3 4\n", "1-2 2-3 3-4", false),
    ("PACE without comments", "p ds 4 2\n1 2\n2 3\n", "1-2 2-3 4", false),
    // The format of METIS has one line of neighbours per node.
    ("METIS", "6 7\n2 5\n1 3 5\n2 4\n3 5 6\n1 2 4\n4\n", "1-2 1-5 2-3 2-5 3-4 4-5 4-6", false),
    ("METIS of a clique", "4 6\n2 3 4\n1 3 4\n1 2 4\n1 2 3\n", "1-2 1-3 1-4 2-3 2-4 3-4", false),
    ("METIS of a cycle", "5 5\n2 5\n1 3\n2 4\n3 5\n1 4\n", "1-2 1-5 2-3 3-4 4-5", false),
    ("METIS of one edge", "2 1\n2\n1\n", "1-2", false),
    ("METIS with comments", "% a comment\n3 2\n2\n% another\n1 3\n2\n", "1-2 2-3", false),
    ("METIS with an isolated node", "4 2\n2\n1 3\n2\n\n", "1-2 2-3 4", false),
    ("METIS with an isolated node between", "4 2\n2\n1 4\n\n2", "1-2 2-4 3", false),
    ("METIS with weights", "3 2 1\n2 5\n1 5 3 7\n2 7\n", "1-2 2-3", true),
    ("METIS with weights of 1", "3 2 001\n2 1\n1 1 3 1\n2 1\n", "1-2 2-3", false),
    // The first line of these files states how many nodes and edges the graph has. The edges follow.
    ("Gset", "5 6\n1 2 1\n1 3 -1\n2 3 1\n2 4 1\n3 5 -1\n4 5 1\n", "1-2 1-3 2-3 2-4 3-5 4-5", true),
    ("rudy", "5 6\n1 2 1\n1 3 1\n2 3 1\n2 4 1\n3 5 1\n4 5 1\n", "1-2 1-3 2-3 2-4 3-5 4-5", false),
    ("edges from 0 below n m", "4 5\n0 1\n0 2\n1 2\n1 3\n2 3\n", "0-1 0-2 1-2 1-3 2-3", false),
    ("isolated nodes below n m", "5 6\n1 2\n2 1\n1 3\n3 1\n2 3\n3 2\n", "1-2 1-3 2-3 4 5", false),
    ("n n m", "4 4 3\n2 1\n3 2\n4 3\n", "1-2 2-3 3-4", false),
    ("n n m with three equal counts", "3 3 3\n2 1\n3 2\n3 1\n", "1-2 1-3 2-3", false),
    ("n m that is an edge of the same graph", "3 2\n2 3\n3 1\n", "1-3 2-3", false),
    // These files contain an adjacency matrix.
    ("matrix", "0 1 0 1\n1 0 1 0\n0 1 0 1\n1 0 1 0\n", "0-1 0-3 1-2 2-3", false),
    ("matrix with commas", "0,1,0\n1,0,0\n0,0,0\n", "0-1 2", false),
    (
        "matrix of numpy.savetxt",
        "0.0e+00 1.0e+00 0.0e+00\n1.0e+00 0.0e+00 1.0e+00\n0.0e+00 1.0e+00 0.0e+00\n",
        "0-1 1-2",
        false,
    ),
    ("matrix of weights", "0 5 2\n5 0 0\n2 0 0\n", "0-1 0-2", true),
    ("matrix of two nodes", "0 1\n1 0\n", "0-1", false),
    // These files contain adjacency lists: each line has a node and its neighbours.
    ("adjacency list of networkx", "#c.py\n# GMT\n# \n0 1 3\n1 2\n2 3\n3\n", "0-1 0-3 1-2 2-3", false),
    (
        "adjacency list of names",
        "Anna Bert Cem\nBert Cem\nCem\nDora\n",
        "Anna-Bert Anna-Cem Bert-Cem Dora",
        false,
    ),
    ("adjacency list, both ways", "0 1 3\n1 0 2\n2 1 3\n3 2 0\n", "0-1 0-3 1-2 2-3", false),
    // These lists of edges have a header above names or numbers.
    ("header", "source,target\nAnna,Bert\nBert,Cem\n", "Anna-Bert Bert-Cem", false),
    ("header with a weight", "Source,Target,Weight\n1,2,0.5\n2,3,1\n", "1-2 2-3", true),
    ("header between quotes", "\"from_id\" \"to_id\"\nx y\n", "x-y", false),
    ("header of numbered columns", "node1\tnode2\nAnna\tBert\n", "Anna-Bert", false),
    ("header that names a node", "source target\ntarget drain\n", "drain-target source-target", false),
    ("names that look like a header", "node1 node2\nnode3 node4\n", "node1-node2 node3-node4", false),
    // The character `#` may be part of a name, and it may begin a comment.
    ("names with #", "x b#1\nx b#2 # a comment\n", "b#1-x b#2-x", false),
    (
        "addresses",
        "http://a/x#1 http://a/x#2\nhttp://a/x#2 http://b/y\n",
        "http://a/x#1-http://a/x#2 http://a/x#2-http://b/y",
        false,
    ),
    // A byte-order mark at the beginning must be skipped.
    ("byte-order mark", "\u{feff}1 2\n2 3\n", "1-2 2-3", false),
    ("byte-order mark before DIMACS", "\u{feff}p edge 3 2\ne 1 2\ne 2 3\n", "1-2 2-3", false),
];

#[test]
fn each_format_is_read_for_what_it_is() {
    let folder = Folder::new("layouts");
    for &(name, text, expected, has_weights) in READ {
        let named = read(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((describe(&named).as_str(), named.has_weights), (expected, has_weights), "{name}");
        // The format must be recognised by its content, whatever the ending of the file name is.
        for ending in ["txt", "graph", "mis", "gr", "csv"] {
            let path = folder.join(&format!("graph.{ending}"));
            fs::write(&path, text).unwrap();
            assert_eq!(Instances::read_named(&path).unwrap(), named, "{name}");
            // `Instances::read` returns graphs whose nodes have numbers instead of names. It is therefore
            // compared with `Instances::read_named` only for texts in which the names are numbers.
            if named.names.iter().all(|name| name.parse::<u64>().is_ok())
                && !text.to_lowercase().contains("source")
            {
                assert_eq!(
                    Instances::read(&path).unwrap().graphs(),
                    std::slice::from_ref(&named.graph),
                    "{name}"
                );
            }
        }
    }
}

/// Tests lists of edges that resemble other formats. Such lists must still be read as lists of edges.
#[test]
fn lists_of_edges_are_still_read() {
    let cases = [
        (
            "SNAP",
            "# Nodes: 3 Edges: 4\n# FromNodeId\tToNodeId\n7\t30\n30\t7\n30\t88\n88\t30\n",
            "30-88 7-30",
            false,
        ),
        ("weights", "0 1 0.5\n1 2 3\n2 0 1e-3\n", "0-1 0-2 1-2", true),
        ("weights of 1", "0 1 1\n1 2 1\n2 0 1\n", "0-1 0-2 1-2", false),
        ("weights that are nodes", "1 2 3\n2 3 4\n1 4 2\n", "1-2 1-4 2-3", true),
        ("weight in a dictionary", "0 1 {'weight': 3}\n1 2 {'weight': 1}\n", "0-1 1-2", true),
        ("weight of 1 in a dictionary", "0 1 {\"weight\": 1.0, \"name\": \"a\"}\n1 2 {}\n", "0-1 1-2", false),
        ("another entry of a dictionary", "0 1 {'length': 3}\n", "0-1", false),
        ("weight and time", "1 2 1 1082040961\n2 3 1 1082155839\n3 4 1 1082155840\n", "1-2 2-3 3-4", false),
        ("letters that DIMACS uses", "a b 0.5\nb c 1.5\nc a 2\n", "a-b a-c b-c", true),
        ("a node p", "p q\nq e\ne p\n", "e-p e-q p-q", false),
        ("a node c first", "c a\na b\n", "a-b a-c", false),
        ("a node graph", "graph theory {}\ntheory sets {}\n", "graph-theory sets-theory", false),
        ("names with a colon", ":a :b\n:b :c\n", ":a-:b :b-:c", false),
        ("one edge", "1 0\n", "0-1", false),
        ("one edge between titles", "from to\n", "from-to", false),
        ("one edge both ways", "2 1\n1 2\n", "1-2", false),
        ("a star", "5 1\n5 2\n5 3\n5 4\n", "1-5 2-5 3-5 4-5", false),
        ("the first line is no count", "9 3\n2 3\n1 3\n1 2\n4 5\n", "1-2 1-3 2-3 3-9 4-5", false),
        ("a name that is no node of n m", "2 3\n1 2\n2 3\n3 4\n", "1-2 2-3 3-4", false),
        ("words and numbers", "b a\na 7\n", "a-7 a-b", false),
        ("edge_index", "0 1 1 2\n1 0 2 1\n", "0-1 1-2", false),
        ("header after #", "#source target\n1 2\n", "1-2", false),
    ];
    for (name, text, expected, has_weights) in cases {
        let named = read(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((describe(&named).as_str(), named.has_weights), (expected, has_weights), "{name}");
    }
}

#[test]
fn formats_that_are_not_read_are_named() {
    let cases = [
        (
            "%%MatrixMarket matrix coordinate pattern symmetric\n% a comment\n4 4 3\n2 1\n3 2\n4 3\n",
            1,
            "Matrix Market",
        ),
        ("% sym unweighted\n% 3 4 4\n1 2\n2 3\n3 4\n", 1, "KONECT"),
        ("% header\n1 2\n2 3\n", 1, "KONECT"),
        ("graph [\n  node [\n    id 0\n  ]\n]\n", 1, "GML"),
        ("Creator \"igraph\"\ngraph\n[\n]\n", 1, "GML"),
        ("<?xml version=\"1.0\"?>\n<graphml></graphml>\n", 1, "GraphML"),
        ("*Vertices 3\n1 \"a\"\n*Edges\n1 2\n", 1, "Pajek"),
        ("digraph G {\n a -> b;\n}\n", 1, "Graphviz"),
        ("{\"nodes\": [], \"links\": []}\n", 1, "JSON"),
        ("[[0, 1], [1, 2]]\n", 1, "JSON"),
        (":Fa@x^\n", 1, "sparse6"),
        (">>sparse6<<:Fa@x^\n", 1, "sparse6"),
        ("&DI?AO\n", 1, "digraph6"),
        ("p cnf 3 2\n1 -2 0\n2 3 0\n", 1, "the line is `p cnf 3 2`; expected DIMACS"),
        ("p edge 4\ne 1 2\n", 1, "the line is `p edge 4`; expected DIMACS"),
        ("p col 4 3\nn 1 2\ne 1 2\n", 2, "expected DIMACS"),
        ("p edge 3 2\ne 1 2\ne 3 4\n", 3, "edge (3, 4) is beyond the 3 nodes"),
        ("3 2 10\n7 2\n7 1 3\n7 2\n", 2, "In METIS"),
        ("graph undirected 3\nedge 0 1\n", 1, "a list for `GraphFormat::EdgeList`"),
        // These matrices aren't symmetric, aren't square, or have entries on the diagonal.
        ("0 1 0\n0 0 1\n0 0 0\n", 1, "the matrix of 3 rows and 3 columns"),
        ("1 0 0\n0 1 0\n0 0 1\n", 1, "the matrix of 3 rows and 3 columns"),
        ("1 0 0 1\n1 1 0 0\n0 1 1 0\n", 1, "the matrix of 3 rows and 4 columns"),
        ("0 5 2\n1 0 1\n3 1 0\n", 1, "the matrix of 3 rows and 3 columns"),
        // The first line of these texts states a wrong count of nodes or edges, or other lines don't fit the
        // format that the first line suggests.
        ("5 7\n1 2 1\n1 3 -1\n2 3 1\n", 2, "the line has 3 words, but the first line has 2"),
        ("5 7\n1 2 0.5\n1 3 1.5\n2 3 1.0\n", 2, "the line has 3 words, but the first line has 2"),
        ("0 1 2\n3 4\n", 2, "the line has 2 words, but the first line has 3"),
        (",a,b\na,0,1\nb,1,0\n", 2, "the line has 3 words"),
        ("6 7\n2 5\n1 3 5\n2 4\n3 5 6\n1 2 4\n4 1\n", 3, "the line has 3 words"),
        ("1 2\nx 3\n2 x3\n", 2, "a node is `x`"),
        // These texts can be read in two ways, so an error must say that.
        ("5 4\n1 2\n1 3\n1 4\n1 5\n", 1, "read in two ways"),
        ("3 2\n3 1\n2 1\n", 1, "read in two ways"),
        ("0 1 2\n1 2 3\n2 3 0\n3 1 2\n", 1, "read in two ways"),
        // This text is either a triangle with weights or an adjacency list.
        ("1 2 3\n2 3 1\n3 1 2\n", 1, "read in two ways"),
    ];
    for (text, at, part) in cases {
        let error = read(text).map(|named| describe(&named)).unwrap_err();
        let message = error.to_string();
        assert!(matches!(error, Error::Parse { line, .. } if line == at), "{text:?}: {message}");
        assert!(message.contains(part), "{text:?}: {message}");
        // The reader of lists of graphs must give an error for all of these texts, too. The library's own
        // format is an exception.
        if !text.starts_with("graph undirected") {
            assert!(GraphFormat::EdgeList.read(text.as_bytes()).is_err(), "{text:?}");
        }
    }
    for (text, part) in
        [("graph [\n", "GML"), ("*Vertices 3\n", "Pajek"), ("<graphml>\n", "GraphML"), ("% 1\n", "KONECT")]
    {
        let message = GraphFormat::EdgeList.read(text.as_bytes()).unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
    }
}

/// Tests a DIMACS file without its `p` line. Such a file must be an error, because it could be read as a
/// list of edges with a node `e`.
#[test]
fn dimacs_needs_its_first_line() {
    let folder = Folder::new("bare-dimacs");
    let path = folder.join("graph.col");
    fs::write(&path, "c a path\ne 1 2\ne 2 3\n").unwrap();
    for error in [Instances::read(&path).unwrap_err(), Instances::read_named(&path).unwrap_err()] {
        assert!(
            error.to_string().starts_with("line 2: an edge comes before the line `p KIND NODES EDGES`"),
            "{error}"
        );
    }
    // Comments may have any encoding, so invalid UTF-8 in a comment must be accepted.
    fs::write(&path, b"c \xff\np edge 3 1\ne 1 2\n").unwrap();
    assert_eq!(Instances::read_named(&path).unwrap().names, ["1", "2", "3"]);
}

/// Tests that graph6 is recognised by its content. A line of graph6 is a single word, unlike any line of a
/// list of edges.
#[test]
fn graph6_is_read_by_its_content() {
    let folder = Folder::new("graph6-by-content");
    let ring = GraphFormat::Graph6.read(b"Dhc").unwrap();
    let arcs = GraphFormat::Graph6.read(b"&DI?AO?").unwrap();
    let cases: [(&str, &[GraphState]); 5] = [
        ("Dhc\n", &ring),
        ("\u{feff}Dhc\r\n", &ring),
        (">>graph6<<\nDhc\n", &ring),
        ("&DI?AO?\n", &arcs),
        ("\u{feff}>>digraph6<<&DI?AO?\n", &arcs),
    ];
    for (text, graphs) in cases {
        for name in ["graphs.txt", "graphs", "graphs.g6", "graphs.d6"] {
            let path = folder.join(name);
            fs::write(&path, text).unwrap();
            assert_eq!(read_graphs(&path).unwrap(), graphs, "{name}: {text:?}");
        }
    }
    fs::write(folder.join("ring.txt"), "Dhc\n").unwrap();
    assert_eq!(Instances::read_named(folder.join("ring.txt")).unwrap().names, ["0", "1", "2", "3", "4"]);
}

#[test]
fn a_hash_within_a_word_begins_no_comment() {
    let graph = |text: &str| GraphFormat::EdgeList.read(text.as_bytes());
    let marked = "\u{feff}graph undirected 2 # two\n#edge 0 1\n\t# more\nedge 0 1\n";
    assert_eq!(graph(marked).unwrap()[0].n_edges(), 1);
    let message = graph("graph undirected 2\nedge 0 1#2\n").unwrap_err().to_string();
    assert!(message.starts_with("line 2: node is `1#2`"), "{message}");
}
