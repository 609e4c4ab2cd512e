//! Tests of |Aut| of large graphs with many symmetries. |Aut| must equal closed formulas and be computed
//! fast. Searches beyond a limit must give errors.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use gfn::env::{EnumerableEnv, Env, Slots};
use gfn::graph::{
    ActionSet, AddEdge, AddNode, Canonizer, Edge, Free, GraphEnv, GraphKind, GraphState, GraphStates, Node,
    Semantics, canonical_key, log_automorphisms,
};
use gfn::{Error, Rng};

/// The largest time that a computation may take. A computation usually takes a few hundredths of a second, or
/// more if it is compiled without optimisation. A full search would take far longer than this limit.
const MAX_TIME: Duration = Duration::from_secs(2);

fn graph(n: usize, edges: impl IntoIterator<Item = (usize, usize)>) -> GraphState {
    let mut out = GraphState::with_nodes(GraphKind::Undirected, n);
    for (a, b) in edges {
        out.add_edge(a as u32, b as u32, Edge::default()).unwrap();
    }
    out
}

fn log_factorial(n: usize) -> f64 {
    (2..=n).map(|k| (k as f64).ln()).sum()
}

/// Checks that `body` is fast. The best of up to three runs counts, because other programs may slow down a
/// run.
fn check_fast<T>(what: &str, body: impl Fn() -> T) -> T {
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let start = Instant::now();
        let out = body();
        best = best.min(start.elapsed());
        if best < MAX_TIME {
            return out;
        }
    }
    panic!("{what} takes {best:?}");
}

fn assert_close(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{what}: {found}, not {expected}");
}

#[test]
fn interchangeable_nodes_are_counted_at_once() {
    let n = 2000;
    let ln2 = 2_f64.ln();
    let cases = [
        ("isolated nodes", graph(n, []), log_factorial(n)),
        ("a star", graph(n, (1..n).map(|b| (0, b))), log_factorial(n - 1)),
        (
            "single edges",
            graph(n, (0..n / 2).map(|k| (2 * k, 2 * k + 1))),
            log_factorial(n / 2) + (n / 2) as f64 * ln2,
        ),
        (
            "two stars, joined",
            graph(n, (2..n).map(|b| (b % 2, b)).chain([(0, 1)])),
            2.0 * log_factorial(n / 2 - 1) + ln2,
        ),
        (
            "hexagons",
            graph(600, (0..600).map(|a| (a, if a % 6 == 5 { a - 5 } else { a + 1 }))),
            log_factorial(100) + 100.0 * 12_f64.ln(),
        ),
    ];
    for (what, graph, expected) in cases {
        assert_close(check_fast(what, || log_automorphisms(&graph).unwrap()), expected, what);
    }
}

#[test]
fn dense_graphs_of_interchangeable_nodes_are_counted_at_once() {
    let all = |n: usize, joined: fn(usize, usize) -> bool| {
        graph(n, (0..n).flat_map(|b| (0..b).map(move |a| (a, b))).filter(|&(a, b)| joined(a, b)))
    };
    let cases = [
        ("a complete graph", all(300, |_, _| true), log_factorial(300)),
        ("parts of three", all(300, |a, b| a / 3 != b / 3), log_factorial(100) + 100.0 * 6_f64.ln()),
        ("two sides", all(300, |a, b| a % 2 != b % 2), 2.0 * log_factorial(150) + 2_f64.ln()),
    ];
    for (what, graph, expected) in cases {
        assert_close(check_fast(what, || log_automorphisms(&graph).unwrap()), expected, what);
    }
}

#[test]
fn classes_directions_and_scaffolds_are_respected() {
    let mut canonizer = Canonizer::default();
    let star = graph(200, (1..200).map(|b| (0, b)));
    for (fixed, free) in [(0, 199), (1, 199), (2, 198), (150, 50), (199, 1), (200, 0)] {
        assert_close(
            canonizer.log_automorphisms(&star, fixed).unwrap(),
            log_factorial(free),
            "a star with a scaffold",
        );
        let order = canonizer.canonical(&star, fixed).order;
        assert!(order.iter().zip(0..).take(fixed).all(|(&a, k)| a == k));
    }
    // The graph is a star. Its leaves have two classes and its edges have two classes; each of the four
    // combinations occurs 60 times. If the graph is directed, half of the edges point to the centre.
    for kind in [GraphKind::Undirected, GraphKind::Directed] {
        let mut wheel = GraphState::with_nodes(kind, 1);
        for k in 0..240 {
            let leaf = wheel.add_node(Node::from_class(k % 2));
            let (a, b) = if k / 4 % 2 == 0 { (0, leaf) } else { (leaf, 0) };
            wheel.add_edge(a, b, Edge::from_class(k / 2 % 2)).unwrap();
        }
        let expected = match kind {
            GraphKind::Undirected => 4.0 * log_factorial(60),
            GraphKind::Directed => 8.0 * log_factorial(30),
        };
        assert_close(canonizer.log_automorphisms(&wheel, 0).unwrap(), expected, "leaves that differ");
    }
}

fn random_tree(n: usize, rng: &mut Rng) -> GraphState {
    graph(n, (1..n).map(|b| (rng.below(b), b)).collect::<Vec<_>>())
}

/// Returns ln |Aut| of a tree. The tree is rooted at its centre. Isomorphic subtrees get the same number, and
/// exchanging them is an automorphism (Aho, Hopcroft and Ullman).
fn log_of_tree(tree: &GraphState) -> f64 {
    let n = tree.n_nodes();
    let neighbours: Vec<Vec<usize>> = (0..n).map(|a| tree.adjacency().neighbours(a).collect()).collect();
    // The centre of a tree remains after leaves are removed repeatedly.
    let mut degrees: Vec<usize> = neighbours.iter().map(Vec::len).collect();
    let mut leaves: Vec<usize> = (0..n).filter(|&a| degrees[a] <= 1).collect();
    let mut n_left = n;
    while n_left > 2 {
        n_left -= leaves.len();
        let mut next = Vec::new();
        for leaf in leaves {
            degrees[leaf] = 0;
            for &a in &neighbours[leaf] {
                degrees[a] = degrees[a].saturating_sub(1);
                if degrees[a] == 1 {
                    next.push(a);
                }
            }
        }
        leaves = next;
    }
    let mut names = HashMap::new();
    match leaves[..] {
        [a] => subtree(tree, &neighbours, a, usize::MAX, &mut names).1,
        [a, b] => {
            let one = subtree(tree, &neighbours, a, b, &mut names);
            let other = subtree(tree, &neighbours, b, a, &mut names);
            one.1 + other.1 + if one.0 == other.0 { 2_f64.ln() } else { 0.0 }
        }
        _ => unreachable!("a tree has one or two centres"),
    }
}

type Names = HashMap<(Node, Vec<(Edge, usize)>), usize>;

/// Returns the isomorphism class and ln |Aut| of the subtree that consists of node `a` and everything
/// behind it, as seen from node `from`.
fn subtree(
    tree: &GraphState,
    neighbours: &[Vec<usize>],
    a: usize,
    from: usize,
    names: &mut Names,
) -> (usize, f64) {
    let mut log = 0.0;
    let mut children = Vec::new();
    for &b in neighbours[a].iter().filter(|&&b| b != from) {
        let (name, inner) = subtree(tree, neighbours, b, a, names);
        log += inner;
        children.push((tree.edge(a as u32, b as u32).unwrap(), name));
    }
    children.sort_unstable();
    log += children.chunk_by(|x, y| x == y).map(|same| log_factorial(same.len())).sum::<f64>();
    let next = names.len();
    (*names.entry((tree.node(a as u32).unwrap(), children)).or_insert(next), log)
}

#[test]
fn trees_have_the_automorphisms_of_their_branches() {
    let mut rng = Rng::seeded(1);
    for round in 0..150 {
        let n = 1 + rng.below(300);
        let mut tree = random_tree(n, &mut rng);
        if round % 2 == 0 {
            // Two copies of the tree are joined by an edge between a node and its copy. The centre of the new
            // tree is then often two nodes that are joined by an edge, not a single node.
            let edges: Vec<_> = tree.edges().map(|(a, b)| (a as usize, b as usize)).collect();
            let twice = edges.iter().flat_map(|&(a, b)| [(a, b), (n + a, n + b)]);
            let joint = rng.below(n);
            tree = graph(2 * n, twice.chain([(joint, n + joint)]));
        }
        let n = tree.n_nodes();
        if round % 3 == 0 {
            for _ in 0..n / 8 {
                tree.set_node(rng.below(n) as u32, Node::from_class(1 + rng.below(2) as u16)).unwrap();
            }
            let edges: Vec<_> = tree.edges().collect();
            for _ in 0..edges.len() / 8 {
                let (a, b) = edges[rng.below(edges.len())];
                tree.set_edge(a, b, Edge::from_class(1 + rng.below(2) as u16)).unwrap();
            }
        }
        let order = permutation(n, &mut rng);
        let found = log_automorphisms(&tree.induced(&order)).unwrap();
        assert_close(found, log_of_tree(&tree), &format!("a tree of {n} nodes"));
    }
}

#[test]
fn a_tree_of_ten_thousand_nodes_is_counted_at_once() {
    let tree = random_tree(10_000, &mut Rng::seeded(2));
    assert_close(
        check_fast("a random tree", || log_automorphisms(&tree).unwrap()),
        log_of_tree(&tree),
        "a random tree",
    );
    let path = graph(10_000, (1..10_000).map(|b| (b - 1, b)));
    assert_close(check_fast("a path", || log_automorphisms(&path).unwrap()), 2_f64.ln(), "a path");
}

fn permutation(n: usize, rng: &mut Rng) -> Vec<u32> {
    let mut out: Vec<u32> = (0..n as u32).collect();
    for k in (1..n).rev() {
        out.swap(k, rng.below(k + 1));
    }
    out
}

#[test]
fn keys_of_large_symmetric_graphs_are_fast_and_distinct() {
    let mut rng = Rng::seeded(3);
    for graph in
        [graph(1000, []), random_tree(1000, &mut rng), graph(1000, (0..500).map(|k| (2 * k, 2 * k + 1)))]
    {
        let mut other = graph.induced(&permutation(1000, &mut rng));
        let key = check_fast("a key", || canonical_key(&graph));
        assert!(key == canonical_key(&other));
        other.set_node(17, Node::from_class(1)).unwrap();
        assert!(key != canonical_key(&other));
        other.set_node(17, Node::default()).unwrap();
        // One edge of the graph, if it has any, is removed, and another edge is added. The key of the changed
        // graph must differ.
        let first = other.edges().next();
        if let Some((a, b)) = first {
            other.remove_edge(a, b).unwrap();
        }
        let [a, b] = [0, 1].map(|k| (0..1000).filter(|&a| other.degree(a) > 0).nth(k).unwrap_or(k as u32));
        other.add_edge(a, b, Edge::default()).unwrap();
        assert!(key != canonical_key(&other));
    }
}

/// Returns a graph of pentagons that are all joined to one node by an edge. Leaves, and nodes with equal
/// neighbours, are counted without a search. Pentagons have neither, so the search must find that they are
/// interchangeable.
fn flower(petals: usize) -> GraphState {
    let petal = |k: usize| {
        let ring = (0..5).map(move |j| (1 + 5 * k + j, 1 + 5 * k + (j + 1) % 5));
        ring.chain([(0, 1 + 5 * k)])
    };
    graph(1 + 5 * petals, (0..petals).flat_map(petal))
}

#[test]
fn slow_searches_are_refused_without_side_effects() {
    let small = flower(20);
    let expected = log_factorial(20) + 20.0 * 2_f64.ln();
    // Searches on other threads must continue while one search fails.
    std::thread::scope(|scope| {
        let refused = scope.spawn(|| {
            let mut canonizer = Canonizer::default();
            let large = flower(400);
            let error = canonizer.log_automorphisms(&large, 0).unwrap_err();
            assert!(matches!(error, Error::SymmetryLimit { n_nodes: 2001, n_edges: 2400 }), "{error}");
            assert!(error.to_string().contains("log_automorphisms"), "{error}");
            // The same canonizer, with its buffers, must be usable after the error.
            assert_close(canonizer.log_automorphisms(&small, 0).unwrap(), expected, "a small flower");
            assert!(canonizer.log_automorphisms(&large, 0).is_err());
        });
        while !refused.is_finished() {
            assert_close(log_automorphisms(&small).unwrap(), expected, "a small flower");
            assert_eq!(canonical_key(&small), canonical_key(&small));
        }
        refused.join().unwrap();
    });
}

#[test]
fn a_search_too_deep_for_the_stack_of_a_thread_is_refused() {
    let deep = flower(810);
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let found = thread.spawn(move || log_automorphisms(&deep)).unwrap().join().unwrap();
    assert!(matches!(found, Err(Error::SymmetryLimit { .. })));
}

#[test]
fn an_environment_hands_the_error_on() {
    let actions =
        ActionSet::new(Semantics::UpToIsomorphism).with(AddNode::free(1, 3000)).with(AddEdge::new(1));
    let kind = GraphKind::Undirected;
    let env = GraphEnv::new(Free, actions, GraphState::new(kind)).unwrap();
    let known = GraphStates::from(vec![flower(2), graph(100, [])]);
    let found = env.symmetry().log_symmetry(&known).unwrap().unwrap();
    assert_close(found[0], 8_f64.ln(), "a flower of two petals");
    assert_close(found[1], log_factorial(100), "isolated nodes");
    let unknown = GraphStates::from(vec![flower(2), flower(400)]);
    assert!(matches!(env.symmetry().log_symmetry(&unknown), Err(Error::SymmetryLimit { .. })));
}

/// Tests directed graphs that consist of several equal components (edges, paths or rings), and a binary tree.
/// Incoming edges must distinguish nodes, and outgoing edges must do so as well.
#[test]
fn directed_graphs_of_interchangeable_parts_are_counted_at_once() {
    let directed = |n: usize, edges: &[(u32, u32, u16)]| {
        let mut out = GraphState::with_nodes(GraphKind::Directed, n);
        for &(a, b, class) in edges {
            out.add_edge(a, b, Edge::from_class(class)).unwrap();
        }
        out
    };
    let parts = |n: u32, of: u32, edges: &[(u32, u32, u16)]| {
        let part = |k: u32| edges.iter().map(move |&(a, b, class)| (of * k + a, of * k + b, class));
        directed((n * of) as usize, &(0..n).flat_map(part).collect::<Vec<_>>())
    };
    let tree: Vec<_> = (1..31).map(|b| ((b - 1) / 2, b, 0)).collect();
    let cases = [
        ("single edges", parts(12, 2, &[(0, 1, 0)]), log_factorial(12)),
        ("paths", parts(20, 3, &[(0, 1, 0), (1, 2, 0)]), log_factorial(20)),
        ("paths of two classes", parts(20, 3, &[(0, 1, 1), (1, 2, 0)]), log_factorial(20)),
        ("rings", parts(20, 3, &[(0, 1, 0), (1, 2, 0), (2, 0, 0)]), log_factorial(20) + 20.0 * 3_f64.ln()),
        ("a binary tree", directed(31, &tree), 15.0 * 2_f64.ln()),
    ];
    let mut rng = Rng::seeded(4);
    for (what, graph, expected) in cases {
        assert_close(check_fast(what, || log_automorphisms(&graph).unwrap()), expected, what);
        let other = graph.induced(&permutation(graph.n_nodes(), &mut rng));
        assert!(check_fast(what, || canonical_key(&graph)) == canonical_key(&other), "{what}");
    }
}

#[test]
fn canonical_forms_that_would_take_too_long_are_refused() {
    let mut canonizer = Canonizer::default();
    let small = flower(20);
    let large = flower(400);
    assert!(matches!(
        canonizer.try_canonical(&large, 0),
        Err(Error::SymmetryLimit { n_nodes: 2001, n_edges: 2400 })
    ));
    assert_eq!(canonizer.try_canonical(&small, 0).unwrap(), canonizer.canonical(&small, 0));
    // Listing the states of an environment requires the keys of their children. The search for such a key
    // exceeds its limit here, so listing the states must give the error, too.
    let kind = GraphKind::Undirected;
    let actions = ActionSet::new(Semantics::UpToIsomorphism).with(AddNode::free(1, 3000));
    let env = GraphEnv::new(Free, actions, GraphState::new(kind)).unwrap();
    let states = GraphStates::from(vec![large]);
    assert!(matches!(env.child_keys(&states, &[0], &Slots(vec![0])), Err(Error::SymmetryLimit { .. })));
}
