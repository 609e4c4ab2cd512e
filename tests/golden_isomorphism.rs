//! Canonical keys and |Aut| are compared with all isomorphism classes of small graphs, which an independent
//! program enumerated.

use std::collections::HashMap;

use gfn::graph::{CanonicalKey, Canonizer, Edge, GraphKind, GraphState, Node, canonical_key, labelled_key};
use serde::Deserialize;

type Edges = Vec<(u32, u32)>;

#[derive(Deserialize)]
struct Golden {
    cases: Vec<Case>,
    relabelled_pairs: Vec<Pair>,
}

#[derive(Deserialize)]
struct Case {
    kind: String,
    n: usize,
    n_colors: usize,
    n_classes: usize,
    n_labelled: usize,
    classes: Vec<(Vec<u16>, Edges, u64, usize)>,
}

#[derive(Deserialize)]
struct Pair {
    directed: bool,
    n: usize,
    colors: Vec<u16>,
    edges: Edges,
    canonical_colors: Vec<u16>,
    canonical_edges: Edges,
    aut: u64,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("golden/graphs_up_to_isomorphism.json")).unwrap()
}

fn graph(directed: bool, colors: &[u16], edges: &[(u32, u32)]) -> GraphState {
    let kind = if directed { GraphKind::Directed } else { GraphKind::Undirected };
    let nodes: Vec<_> = colors.iter().map(|&c| Node::from_class(c)).collect();
    let edges: Vec<_> = edges.iter().map(|&(a, b)| (a, b, Edge::default())).collect();
    GraphState::from_parts(kind, &nodes, &edges).unwrap()
}

impl Case {
    fn is_directed(&self) -> bool {
        match self.kind.as_str() {
            "connected simple graphs" | "simple graphs (any)" => false,
            "digraphs (no loops, 2-cycles allowed)" | "DAGs" => true,
            other => unreachable!("a kind of graphs that this test doesn't know: {other}"),
        }
    }

    fn permits(&self, graph: &GraphState) -> bool {
        match self.kind.as_str() {
            "connected simple graphs" => {
                petgraph::algo::connected_components(graph.as_undirected().unwrap()) == 1
            }
            "DAGs" => petgraph::algo::toposort(graph.as_directed().unwrap(), None).is_ok(),
            _ => true,
        }
    }

    /// Lists all labelled graphs of the test case whose nodes have up to `colors` colours.
    fn labelled(&self, colors: usize) -> Vec<GraphState> {
        let n = self.n as u32;
        let pairs: Edges = (0..n)
            .flat_map(|a| (0..n).map(move |b| (a, b)))
            .filter(|&(a, b)| a < b || (self.is_directed() && a != b))
            .collect();
        let mut out = Vec::new();
        for set in 0..1_usize << pairs.len() {
            let edges: Edges = (0..pairs.len()).filter(|k| set >> k & 1 == 1).map(|k| pairs[k]).collect();
            for colouring in 0..colors.pow(n) {
                let colors: Vec<_> = (0..n).map(|k| (colouring / colors.pow(k) % colors) as u16).collect();
                let graph = graph(self.is_directed(), &colors, &edges);
                if self.permits(&graph) {
                    out.push(graph);
                }
            }
        }
        out
    }
}

fn count_by_key(graphs: &[GraphState]) -> HashMap<CanonicalKey, usize> {
    let mut counts = HashMap::new();
    for graph in graphs {
        *counts.entry(canonical_key(graph)).or_default() += 1;
    }
    counts
}

#[test]
fn every_class_has_its_key_its_automorphisms_and_its_labelled_copies() {
    let mut canonizer = Canonizer::default();
    let mut n_classes = 0;
    for case in golden().cases {
        let labelled = case.labelled(case.n_colors);
        assert_eq!(labelled.len(), case.n_labelled, "{} of {}", case.kind, case.n);
        let counts = count_by_key(&labelled);
        assert_eq!(counts.len(), case.n_classes, "{} of {}", case.kind, case.n);
        assert_eq!(case.classes.len(), case.n_classes);
        let factorial: u64 = (1..=case.n as u64).product();
        for (colors, edges, automorphisms, copies) in &case.classes {
            let found = canonizer.canonical(&graph(case.is_directed(), colors, edges), 0);
            let name = format!("{} {colors:?} {edges:?}", case.kind);
            assert_eq!(found.automorphisms, Some(*automorphisms), "{name}");
            let log = (*automorphisms as f64).ln();
            assert!((found.log_automorphisms - log).abs() < 1e-14, "{name}");
            // There must be as many keys as classes, and each key must occur as often as the file says. No
            // two classes can then share a key.
            assert_eq!(counts.get(&found.key), Some(copies), "{name}");
            // A class must have n! / |Aut| labelled copies. Copies whose nodes have the same colours in
            // another order are different copies.
            assert_eq!(factorial / automorphisms, *copies as u64, "{name}");
        }
        n_classes += case.n_classes;
    }
    assert!(n_classes > 150, "only {n_classes} classes were compared");
}

#[test]
fn relabelled_graphs_have_the_key_of_their_representative() {
    let mut canonizer = Canonizer::default();
    for pair in golden().relabelled_pairs {
        let relabelled = graph(pair.directed, &pair.colors, &pair.edges);
        let representative = graph(pair.directed, &pair.canonical_colors, &pair.canonical_edges);
        assert_eq!(relabelled.n_nodes(), pair.n);
        let one = canonizer.canonical(&relabelled, 0);
        let other = canonizer.canonical(&representative, 0);
        assert_eq!(one.key, other.key);
        assert_eq!(one.automorphisms, Some(pair.aut));
        assert_eq!(other.automorphisms, Some(pair.aut));
        let canonical = relabelled.induced(&one.order);
        assert_eq!(canonical, representative.induced(&other.order));
        assert_eq!(labelled_key(&canonical), one.key);
    }
}

#[test]
fn the_counts_notice_when_colours_or_directions_are_ignored() {
    let golden = golden();
    let case = |kind: &str, n: usize, colors: usize| {
        let mut cases = golden.cases.iter();
        cases.find(|case| (case.kind.as_str(), case.n, case.n_colors) == (kind, n, colors))
    };
    let coloured = case("connected simple graphs", 4, 2).unwrap();
    let mut graphs = coloured.labelled(2);
    for graph in &mut graphs {
        for node in 0..4 {
            graph.set_node(node, Node::default()).unwrap();
        }
    }
    // If colours are ignored, only the 6 classes of graphs without colours remain.
    assert_eq!((coloured.n_classes, count_by_key(&graphs).len()), (50, 6));

    let digraphs = case("digraphs (no loops, 2-cycles allowed)", 3, 1).unwrap();
    let undirected: Vec<_> = digraphs
        .labelled(1)
        .iter()
        .map(|digraph| {
            let edges: Edges = digraph.edges().filter(|&(a, b)| a < b || !digraph.has_edge(b, a)).collect();
            graph(false, &[0; 3], &edges)
        })
        .collect();
    assert_eq!((digraphs.n_classes, count_by_key(&undirected).len()), (16, 4));
}
