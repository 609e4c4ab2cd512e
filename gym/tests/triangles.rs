//! Tests of triangles of coloured nodes: the closed forms of the numbers of graphs and of triangles are
//! compared with an enumeration of all graphs.

use std::collections::HashSet;

use gfn::graph::{Edge, GraphKind, GraphState, Node};
use gfn_gym::triangle::{Triangle, TriangleReward};

#[test]
fn no_class_is_refused() {
    for classes in [0, 1001] {
        let message = Triangle::new(GraphKind::Directed, classes).unwrap_err().to_string();
        assert!(message.contains(&format!("node classes is {classes}")), "{message}");
    }
}

/// Counts all coloured graphs of at most three nodes up to isomorphism, and the triangles among them. The
/// smallest relabelling of a graph represents its isomorphism class.
fn classes(kind: GraphKind, colours: u16) -> (usize, usize) {
    let orders: Vec<Vec<Vec<u32>>> = vec![
        vec![vec![]],
        vec![vec![0]],
        vec![vec![0, 1], vec![1, 0]],
        vec![vec![0, 1, 2], vec![0, 2, 1], vec![1, 0, 2], vec![1, 2, 0], vec![2, 0, 1], vec![2, 1, 0]],
    ];
    let mut seen = HashSet::new();
    let mut triangles = HashSet::new();
    for n in 0..=3u32 {
        let pairs: Vec<(u32, u32)> = (0..n)
            .flat_map(|a| (0..n).map(move |b| (a, b)))
            .filter(|&(a, b)| a < b || (a > b && kind == GraphKind::Directed))
            .collect();
        for colouring in 0..u32::from(colours).pow(n) {
            let nodes: Vec<Node> = (0..n)
                .map(|a| Node::from_class((colouring / u32::from(colours).pow(a)) as u16 % colours))
                .collect();
            for bits in 0..1u32 << pairs.len() {
                let chosen = pairs.iter().enumerate().filter(|(k, _)| bits >> k & 1 == 1);
                let edges: Vec<_> = chosen.map(|(_, &(a, b))| (a, b, Edge::default())).collect();
                let graph = GraphState::from_parts(kind, &nodes, &edges).unwrap();
                let key = orders[n as usize]
                    .iter()
                    .map(|order| {
                        let other = graph.induced(order);
                        let colours: Vec<u16> = other.nodes().map(|node| node.class).collect();
                        (colours, other.edges().collect::<Vec<_>>())
                    })
                    .min()
                    .unwrap();
                if TriangleReward::is_triangle(&graph) {
                    triangles.insert(key.clone());
                }
                seen.insert(key);
            }
        }
    }
    (seen.len(), triangles.len())
}

#[test]
fn closed_forms_equal_brute_force() {
    for kind in [GraphKind::Directed, GraphKind::Undirected] {
        for colours in [1, 2, 3, 5] {
            let env = Triangle::new(kind, colours).unwrap();
            let (states, triangles) = classes(kind, colours);
            assert_eq!(
                (states as f64, triangles as f64),
                (env.n_states(), env.n_triangles()),
                "{kind:?} {colours}"
            );
            let z = 100.0 * triangles as f64 + 1e-6 * (states - triangles) as f64;
            assert!((TriangleReward::default().log_z(&env) - z.ln()).abs() < 1e-12);
        }
    }
}

#[test]
fn a_directed_triangle_is_a_cycle() {
    let graph = |edges: &[(u32, u32)]| {
        let edges: Vec<_> = edges.iter().map(|&(a, b)| (a, b, Edge::default())).collect();
        GraphState::from_parts(GraphKind::Directed, &[Node::default(); 3], &edges).unwrap()
    };
    assert!(TriangleReward::is_triangle(&graph(&[(0, 1), (1, 2), (2, 0)])));
    assert!(!TriangleReward::is_triangle(&graph(&[(0, 1), (1, 2), (0, 2)])));
    assert!(!TriangleReward::is_triangle(&graph(&[(0, 1), (1, 2), (2, 0), (0, 2)])));
}

#[test]
fn senseless_values_are_refused() {
    assert!(TriangleReward::new(1.0, -1.0).is_err());
}
