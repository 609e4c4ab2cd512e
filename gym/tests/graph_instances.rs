//! Tests of the input graphs of graph problems: graphs are drawn at random, read from files, listed, and
//! solved exactly.

use std::ops::RangeInclusive;

use gfn::graph::{GraphFormat, GraphKind, GraphState, Node};
use gfn::{Error, Rng};
use gfn_gym::graph_problems::{
    Instances, Problem, RbModel, barabasi_albert, erdos_renyi, maximum_clique, maximum_independent_set,
    read_dimacs, write_dimacs,
};

/// Returns the size of the best solution, by checking all subsets of nodes.
fn best_size(problem: Problem, graph: &GraphState) -> usize {
    let n = graph.n_nodes() as u32;
    let sets = (0..1u32 << n).map(|bits| (0..n).filter(|a| bits >> a & 1 == 1).collect::<Vec<_>>());
    sets.filter_map(|nodes| problem.check(graph, &nodes).ok()).max().unwrap()
}

#[test]
fn the_optimum_is_that_of_all_subsets() {
    let rng = &mut Rng::seeded(7);
    for n in 0..=10 {
        for p in [0.0, 0.2, 0.5, 0.8, 1.0] {
            let graph = erdos_renyi(n, p, rng).unwrap();
            let clique = maximum_clique(&graph, u64::MAX).unwrap();
            assert_eq!(Problem::Clique.check(&graph, &clique).unwrap(), best_size(Problem::Clique, &graph));
            let set = maximum_independent_set(&graph, u64::MAX).unwrap();
            let size = Problem::IndependentSet.check(&graph, &set).unwrap();
            assert_eq!(size, best_size(Problem::IndependentSet, &graph));
        }
    }
}

#[test]
fn graphs_of_more_than_a_word_are_searched_and_a_budget_is_kept() {
    let graph = erdos_renyi(150, 0.5, &mut Rng::seeded(8)).unwrap();
    let clique = maximum_clique(&graph, u64::MAX).unwrap();
    // The largest clique of a random graph with 150 nodes and edge probability 1/2 nearly always has 10 or 11
    // nodes: theory gives 2 log2 150 - 2 log2 log2 150 + 2 log2(e / 2) + 1 = 11.7.
    let size = Problem::Clique.check(&graph, &clique).unwrap();
    assert!((9..=12).contains(&size), "{size}");
    assert_eq!(maximum_clique(&graph, 100), None);
}

#[test]
fn all_graphs_are_as_many_as_there_are() {
    for (n, count) in [1, 1, 2, 4, 11, 34, 156, 1044].into_iter().enumerate() {
        assert_eq!(Instances::all(n).unwrap().graphs().len(), count, "{n}");
    }
    assert!(Instances::all(9).unwrap_err().to_string().contains("at most 8"));
}

#[test]
fn isomorphic_graphs_are_dropped_and_others_kept() {
    // The test uses a path, the same path with other labels, and a triangle.
    let of = |text: &[u8]| Instances::new(GraphFormat::EdgeList.read(text).unwrap()).unwrap();
    let path = of(b"graph undirected 3\nedge 0 1\nedge 1 2");
    let other = of(b"graph undirected 3\nedge 0 1\nedge 0 2");
    let ring = of(b"graph undirected 3\nedge 0 1\nedge 0 2\nedge 1 2");
    let both = path.clone().and(other.clone()).and(ring.clone());
    assert_eq!(both.clone().distinct().graphs(), path.clone().and(ring.clone()).graphs());
    assert_eq!(both.without(&other).graphs(), ring.graphs());
}

#[test]
fn graphs_that_no_problem_supports_are_refused() {
    for (text, words) in [
        ("graph directed 2", "directed"),
        (
            "graph undirected 1\ngraph undirected 2\nnode 1 class 1",
            "graph 1 is a graph with classes or attributes of nodes",
        ),
        ("graph undirected 2\nedge 0 1 attributes 1", "of edges"),
    ] {
        let message =
            Instances::new(GraphFormat::EdgeList.read(text.as_bytes()).unwrap()).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn files_of_the_challenges_are_read() {
    let text =
        b"c a triangle with a tail \xff\r\nc\nc\tp edge 9 9\np edge 4 4\ne 1 2\ne 2 3\n\ne 3 1\ne 3 4\n";
    let graph = read_dimacs(text).unwrap();
    assert_eq!(graph.edges().collect::<Vec<_>>(), [(0, 1), (0, 2), (1, 2), (2, 3)]);
    assert_eq!(write_dimacs(&graph).unwrap(), "p edge 4 4\ne 1 2\ne 1 3\ne 2 3\ne 3 4\n");
    let twice = read_dimacs(b"p col 2 2\ne 1 2\ne 2 1\n").unwrap();
    assert_eq!(twice.n_edges(), 1);
    let arcs = read_dimacs(b"\xef\xbb\xbfp sp 3 2\na 1 2 5\na 2 3 7\n").unwrap();
    assert_eq!(arcs.edges().collect::<Vec<_>>(), [(0, 1), (1, 2)]);
    assert_eq!(read_dimacs(&write_dimacs(&graph).unwrap().into_bytes()).unwrap(), graph);
}

#[test]
fn each_mistake_is_named_with_its_line() {
    let cases: &[(&str, usize, &str)] = &[
        ("e 1 2", 1, "isn't the line `p KIND NODES EDGES`"),
        ("c\n\ne 1 2", 3, "isn't the line `p KIND NODES EDGES`"),
        ("p", 1, "isn't the line `p KIND NODES EDGES`"),
        ("p cnf 3 4", 1, "the line is `p cnf 3 4`"),
        ("p edge", 1, "isn't the line `p KIND NODES EDGES`"),
        ("p edge 3", 1, "isn't the line `p KIND NODES EDGES`"),
        ("p edge -3 1", 1, "isn't the line `p KIND NODES EDGES`"),
        ("p edge 99999999999999999999999 1", 1, "the line is `p edge 99999999999999999"),
        ("p edge 16385 0", 1, "the line is `p edge 16385 0`"),
        ("p edge 3 1 2", 1, "the line is `p edge 3 1 2`"),
        ("p edge 3 1\np edge 3 1", 2, "a node is `p`"),
        ("p edge 3 1\nc\ne 1", 3, "a node is missing"),
        ("p edge 3 1\ne 0 1", 2, "edge (0, 1) is beyond the 3 nodes"),
        ("p edge 3 1\ne 1 4", 2, "edge (1, 4) is beyond the 3 nodes"),
        ("p edge 3 1\ne 2 2", 2, "edge (2, 2) is a self-loop"),
        ("p edge 3 1\nn 1 5", 2, "a node is `n`"),
        ("c nothing else", 1, "there is no line `p KIND NODES EDGES`"),
        ("cat", 1, "isn't the line `p KIND NODES EDGES`"),
    ];
    for &(text, at, part) in cases {
        let error = read_dimacs(text.as_bytes()).unwrap_err();
        let message = error.to_string();
        assert!(matches!(error, Error::Parse { line, .. } if line == at), "{text:?}: {message}");
        assert!(message.contains(part), "{text:?}: {message}");
    }
    assert!(
        read_dimacs(b"p edge 2 1\n\xff")
            .unwrap_err()
            .to_string()
            .starts_with("line 2: the line has bytes that are not UTF-8")
    );
}

#[test]
fn graphs_that_a_format_cannot_hold_are_refused() {
    let coloured = GraphState::from_parts(GraphKind::Undirected, &[Node::from_class(1)], &[]).unwrap();
    for graph in [GraphState::new(GraphKind::Directed), coloured] {
        // A directed graph must be refused even if it is empty: no edge would lose its direction, but the
        // file would be read as an undirected graph.
        assert!(matches!(write_dimacs(&graph), Err(Error::Contract { .. })), "{graph:?}");
    }
}

#[test]
fn edges_of_a_random_graph_come_with_their_probability() {
    let rng = &mut Rng::seeded(1);
    for p in [0.0, 0.3, 0.8, 1.0] {
        let edges: usize = (0..200).map(|_| erdos_renyi(12, p, rng).unwrap().n_edges()).sum();
        let n = 200.0 * 66.0;
        // The number of edges may differ from its expectation by at most five standard deviations.
        assert!((edges as f64 - n * p).abs() <= 5.0 * (n * p * (1.0 - p)).sqrt(), "{p}: {edges}");
    }
    for p in [-0.1, 1.1, f64::NAN] {
        assert!(erdos_renyi(3, p, rng).unwrap_err().to_string().contains("from 0 to 1"));
    }
}

#[test]
fn attachment_prefers_nodes_of_high_degree() {
    let rng = &mut Rng::seeded(2);
    let mut largest_degree = 0;
    let mut of_uniform = 0;
    for _ in 0..50 {
        let graph = barabasi_albert(60, 2, rng).unwrap();
        assert_eq!(graph.n_edges(), 2 * 58);
        assert!((0..60).all(|a| graph.degree(a) >= 1) && (3..60).all(|a| graph.degree(a) >= 2));
        largest_degree += (0..60).map(|a| graph.degree(a)).max().unwrap();
        let other = erdos_renyi(60, 2.0 * 58.0 / (30.0 * 59.0), rng).unwrap();
        of_uniform += (0..60).map(|a| other.degree(a)).max().unwrap();
    }
    // The largest degree must be much larger than in graphs with the same number of uniformly random edges.
    assert!(largest_degree as f64 > 1.5 * of_uniform as f64, "{largest_degree} {of_uniform}");
    for (n, attached) in [(3, 0), (3, 3), (0, 0)] {
        assert!(barabasi_albert(n, attached, rng).is_err());
    }
}

/// Draws a graph of exactly `n` cliques of `k` nodes.
fn rb_graph(n: usize, k: usize, tightness: f64, rng: &mut Rng) -> GraphState {
    let model =
        RbModel { cliques: n..=n, clique_nodes: k..=k, tightness: [tightness; 2], nodes: n * k..=n * k };
    model.draw(rng).unwrap()
}

/// Returns the expected number of edges between the cliques of an RB graph. A constraint draws two cliques,
/// in one of `n (n - 1)` orders, and pairs of their nodes. Constraints on the same cliques in the same order
/// draw different pairs, as long as any are left. With `repeats`, constraints in the two orders draw
/// independently, as in the published program. Otherwise no pair is drawn again in either order.
fn expected_edges_between(n: usize, k: usize, p: f64, repeats: bool) -> f64 {
    // Model RB draws r n ln n - 1 constraints between n cliques, with r = a / -ln(1 - p) and a clique size of
    // k = n^a. Therefore r n ln n is n ln k / -ln(1 - p).
    let constraints = (n as f64 * (k as f64).ln() / -(1.0 - p).ln() - 1.0).floor() as i32;
    let pairs = (k * k) as f64;
    let free = |times: i32| 1.0 - (f64::from(times) * (p * pairs).floor()).min(pairs) / pairs;
    let choose = |n: i32, m: i32| (0..m).map(|i| f64::from(n - i) / f64::from(i + 1)).product::<f64>();
    let share = 1.0 / (n * (n - 1)) as f64;
    let mut left_free = 0.0;
    for one in 0..=constraints {
        for other in 0..=constraints - one {
            let times = one + other;
            let chance = choose(constraints, one)
                * choose(constraints - one, other)
                * share.powi(times)
                * (1.0 - 2.0 * share).powi(constraints - times);
            left_free += chance * if repeats { free(one) * free(other) } else { free(times) };
        }
    }
    (n * (n - 1) / 2) as f64 * pairs * (1.0 - left_free)
}

#[test]
fn rb_graphs_are_cliques_with_the_expected_edges_between_them() {
    let rng = &mut Rng::seeded(3);
    let n_graphs = 500;
    for (n, k, p) in [(10, 5, 0.3), (12, 8, 0.6), (16, 4, 0.55)] {
        let mut between = 0;
        for _ in 0..n_graphs {
            let graph = rb_graph(n, k, p, rng);
            assert_eq!(graph.n_nodes(), n * k);
            let within = graph.edges().filter(|&(a, b)| a as usize / k == b as usize / k).count();
            assert_eq!(within, n * k * (k - 1) / 2);
            between += graph.n_edges() - within;
        }
        let mean = between as f64 / f64::from(n_graphs);
        let expected = expected_edges_between(n, k, p, true);
        let without_repeats = expected_edges_between(n, k, p, false);
        let tolerance = 0.4 * (without_repeats - expected);
        assert!((mean - expected).abs() < tolerance, "{mean} {expected} {without_repeats}");
    }
    // A tightness of 1 must give no constraint, and must not divide by zero.
    assert_eq!(rb_graph(4, 3, 1.0, rng).n_edges(), 4 * 3);
}

#[test]
fn ranges_are_kept_to_and_impossible_ones_refused() {
    let rng = &mut Rng::seeded(4);
    let models = [
        (RbModel::nodes_50_to_100(), 50..=100),
        (RbModel::nodes_200_to_300(), 200..=300),
        (RbModel::nodes_800_to_1200(), 800..=1_200),
    ];
    for (model, nodes) in models {
        for _ in 0..5 {
            let graph = model.draw(rng).unwrap();
            assert!(nodes.contains(&graph.n_nodes()), "{}", graph.n_nodes());
        }
    }
    for wrong in [
        RbModel { cliques: 1..=3, ..RbModel::nodes_50_to_100() },
        RbModel { clique_nodes: RangeInclusive::new(5, 4), ..RbModel::nodes_50_to_100() },
        RbModel { nodes: 10..=20, ..RbModel::nodes_50_to_100() },
        RbModel { tightness: [0.0, 0.5], ..RbModel::nodes_50_to_100() },
        RbModel { tightness: [0.6, 0.5], ..RbModel::nodes_50_to_100() },
        RbModel { tightness: [0.6, f64::NAN], ..RbModel::nodes_50_to_100() },
    ] {
        assert!(matches!(wrong.draw(rng), Err(Error::Config { .. })), "{wrong:?}");
    }
}

/// Compares the settings with what the published program (`rbgraph_generator.py` of GFlowNet-CombOpt) draws:
/// numpy's `randint(20, 25)` cliques of `randint(5, 12)` nodes, or `randint(40, 55)` of `randint(20, 25)`,
/// without the upper ends, until a graph has 200 to 300 or 800 to 1,200 nodes. The expected number of
/// edges at 200 to 300 nodes is 4,037: those within cliques and `expected_edges_between`, averaged over sizes
/// and tightness.
#[test]
fn rb_graphs_have_the_published_sizes() {
    let rng = &mut Rng::seeded(5);
    let published = [
        (RbModel::nodes_200_to_300(), (20..25, 5..12), 200..=300, 400),
        (RbModel::nodes_800_to_1200(), (40..55, 20..25), 800..=1_200, 12),
    ];
    for (model, (cliques, clique_nodes), nodes, n_graphs) in published {
        let products = cliques.flat_map(|n| clique_nodes.clone().map(move |k| n * k));
        let sizes: Vec<usize> = products.filter(|size| nodes.contains(size)).collect();
        let graphs: Vec<GraphState> = (0..n_graphs).map(|_| model.draw(rng).unwrap()).collect();
        let mean = |of: fn(&GraphState) -> usize| {
            graphs.iter().map(|graph| of(graph) as f64).sum::<f64>() / n_graphs as f64
        };
        assert!(graphs.iter().all(|graph| sizes.contains(&graph.n_nodes())), "{model:?}");
        if n_graphs > 100 {
            let expected = sizes.iter().sum::<usize>() as f64 / sizes.len() as f64;
            let n_nodes = mean(GraphState::n_nodes);
            // Ranges with the upper end would give 247 nodes and sizes of up to 300.
            assert!((n_nodes - expected).abs() < 4.0 && (expected - 227.75).abs() < 0.01, "{n_nodes}");
            let n_edges = mean(GraphState::n_edges);
            assert!((n_edges - 4_037.0).abs() < 250.0, "{n_edges}");
        }
    }
}

#[test]
fn a_seed_gives_one_graph() {
    let draw = |seed| RbModel::nodes_50_to_100().draw(&mut Rng::seeded(seed)).unwrap();
    assert_eq!(draw(5), draw(5));
    assert_ne!(draw(5), draw(6));
}
