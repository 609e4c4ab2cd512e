//! Tests of Markov equivalence classes, of comparisons with known edges, and of searches without a policy.

use std::collections::{BTreeMap, BTreeSet};

use gfn::env::{Rows, StateGraph};
use gfn::graph::{GraphState, GraphStates};
use gfn::{Error, Rng};
use gfn_dags::*;

fn all_graphs(n: usize) -> GraphStates {
    let env = BayesianStructure::new(StructureConfig::new(n)).unwrap().into_env();
    StateGraph::build(&env, 30_000).unwrap().states().clone()
}

/// The skeleton and the v-structures of a graph.
type Class = (BTreeSet<(u32, u32)>, BTreeSet<(u32, u32, u32)>);

/// Returns the Markov equivalence class of a graph.
fn class_of(graph: &GraphState) -> Class {
    let edges: Vec<(u32, u32)> = graph.edges().collect();
    let skeleton: BTreeSet<_> = edges.iter().map(|&(a, b)| (a.min(b), a.max(b))).collect();
    let mut colliders = BTreeSet::new();
    for &(a, c) in &edges {
        for &(b, d) in &edges {
            if c == d && a < b && !skeleton.contains(&(a, b)) {
                colliders.insert((a, c, b));
            }
        }
    }
    (skeleton, colliders)
}

/// The CPDAG of each of the 29,281 graphs of five nodes must have exactly the edges that some member of its
/// class has.
#[test]
fn classes_are_unions_of_their_members() {
    let states = all_graphs(5);
    let mut edges: BTreeMap<_, BTreeSet<(u32, u32)>> = BTreeMap::new();
    for graph in states.graphs() {
        edges.entry(class_of(graph)).or_default().extend(graph.edges());
    }
    assert_eq!((states.len(), edges.len()), (29_281, 8_782));
    for graph in states.graphs() {
        let found: BTreeSet<(u32, u32)> = cpdag(graph).unwrap().edges().collect();
        assert_eq!(found, edges[&class_of(graph)], "{graph}");
    }
}

#[test]
fn comparisons_at_both_levels() {
    // The known graph is the v-structure 0 -> 2 <- 1 and the edge 2 -> 3, which are all directed.
    let truth = acyclic(4, &[(0, 2), (1, 2), (2, 3)]).unwrap();
    let edges: Vec<(u32, u32)> = truth.edges().collect();
    let chain = acyclic(4, &[(0, 2), (2, 1), (2, 3)]).unwrap();
    let graphs: GraphStates = vec![truth.clone(), chain].into();
    let found = EdgeComparison::new(&graphs, Some(&[3.0, 1.0]), &edges).unwrap();
    assert_eq!((found.expected_shd, found.expected_f1), (0.25, 0.75 + 0.25 * 2.0 / 3.0));
    // One of 12 pairs is missing with probability 1/4, and another superfluous with the same probability.
    assert!((found.brier - 2.0 * 0.0625 / 12.0).abs() < 1e-15);
    assert_eq!(found.detection.unwrap().auroc, 1.0);
    // All three edges of the chain's CPDAG are undirected.
    let classes = cpdags(&graphs).unwrap();
    let found = EdgeComparison::new(&classes, Some(&[3.0, 1.0]), &edges).unwrap();
    assert_eq!(found.expected_shd, 0.75);
    assert!((found.expected_f1 - (0.75 + 0.25 * 6.0 / 9.0)).abs() < 1e-15);
    assert!((found.brier - 3.0 * 0.0625 / 12.0).abs() < 1e-15);
    // Without known edges there is nothing to detect, and a graph without edges is right.
    let empty = vec![acyclic(4, &[]).unwrap()].into();
    let found = EdgeComparison::new(&empty, None, &[]).unwrap();
    assert_eq!((found.expected_f1, found.brier, found.detection), (1.0, 0.0, None));
    assert!(matches!(EdgeComparison::new(&empty, None, &[(0, 4)]), Err(Error::OutOfRange { .. })));
}

/// Returns a problem whose posterior is spread over many graphs.
fn problem(n: usize, seed: u64) -> DagReward<CachedScores<Bge>> {
    let rng = &mut Rng::seeded(seed);
    let dag = GraphLaw::ErdosRenyi { edges: n as f64 }.draw(n, rng).unwrap();
    let data = Sem::draw(dag, SemConfig::Linear, 1.0, rng).unwrap().sample(30, rng).unwrap();
    let scores = CachedScores::new(Bge::new(&data, BgeConfig::default()).unwrap());
    DagReward::new(scores, StructurePrior::Uniform).unwrap()
}

/// Compares an order chain with two enumerations: without weights, a graph counts once for each order that it
/// fits; with weights, the distribution is the posterior.
#[test]
fn order_chains_have_their_stationary_distributions() {
    let knowledge = StructureConfig {
        max_parents: Some(2),
        forbidden: vec![(0, 3)],
        required: vec![(2, 1), (1, 0)],
        ..StructureConfig::new(5)
    };
    for (seed, config) in [(0, StructureConfig::new(4)), (1, StructureConfig::new(5)), (2, knowledge)] {
        let env = BayesianStructure::new(config.clone()).unwrap();
        let reward = problem(config.nodes, seed);
        let posterior = ExactPosterior::enumerate(env.env(), &reward, 30_000).unwrap();
        let orders: Vec<f64> = (posterior.states().graphs().iter().zip(posterior.probs()))
            .map(|(graph, p)| p * log_linear_extensions(graph).unwrap().unwrap().exp())
            .collect();
        let biased = Marginals::from_graphs(posterior.states(), Some(&orders)).unwrap().edge;
        let exact = posterior.marginals().unwrap().edge;
        let rng = &mut Rng::seeded(seed);
        let mut chain = OrderChain::new(&env, &reward, rng).unwrap();
        let graphs: GraphStates = chain.sample(20_000, 6, rng).unwrap().into();
        let plain = Marginals::from_graphs(&graphs, None).unwrap().edge;
        let weights = order_weights(&graphs).unwrap().unwrap();
        let weighted = Marginals::from_graphs(&graphs, Some(&weights)).unwrap().edge;
        assert!(plain.rmse(&biased).unwrap() < 0.008, "{seed}: {}", plain.rmse(&biased).unwrap());
        assert!(weighted.rmse(&exact).unwrap() < 0.008, "{seed}: {}", weighted.rmse(&exact).unwrap());
        // The two distributions differ by more than the noise, so a missing correction would be noticed.
        assert!(plain.rmse(&exact).unwrap() > 0.012, "{seed}: {}", plain.rmse(&exact).unwrap());
        assert!(chain.acceptance() > 0.1 && chain.acceptance() < 0.99);
    }
}

#[test]
fn linear_extensions_are_counted() {
    let count = |n: usize, edges: &[(u32, u32)]| {
        log_linear_extensions(&acyclic(n, edges).unwrap()).unwrap().map(|log| log.exp().round())
    };
    assert_eq!(count(5, &[]), Some(120.0));
    assert_eq!(count(4, &[(0, 1), (1, 2), (2, 3)]), Some(1.0));
    // Two chains of two nodes: 4! / (2! 2!).
    assert_eq!(count(4, &[(0, 1), (2, 3)]), Some(6.0));
    // Parts are counted one by one: 21 single nodes, and a chain beside two of them.
    let log = |n: usize, edges: &[(u32, u32)]| log_linear_extensions(&acyclic(n, edges).unwrap()).unwrap();
    let log_factorial = |n: u64| (1..=n).map(|k| (k as f64).ln()).sum::<f64>();
    assert!((log(21, &[]).unwrap() - log_factorial(21)).abs() < 1e-9);
    assert_eq!(count(5, &[(3, 0), (1, 3)]), Some(20.0));
    // The children of a node with 21 children form more than a million sets.
    let star: Vec<(u32, u32)> = (1..22).map(|child| (0, child)).collect();
    assert_eq!(log(22, &star), None);
    assert!((log(18, &star[..17]).unwrap() - log_factorial(17)).abs() < 1e-9);
}

#[test]
fn greedy_search_finds_the_best_graph() {
    let mut found = 0;
    for seed in 0..8 {
        let env = BayesianStructure::new(StructureConfig::new(5)).unwrap();
        let reward = problem(5, 100 + seed);
        let posterior = ExactPosterior::enumerate(env.env(), &reward, 30_000).unwrap();
        let best = reward.log_joint(&posterior.top(1).unwrap().0.graphs()[0]).unwrap();
        let climbed = greedy_search(&env, &reward, 5, &mut Rng::seeded(seed)).unwrap();
        assert_eq!(climbed.len(), 6);
        for (graph, log_reward) in &climbed {
            assert_eq!(reward.log_joint(graph).unwrap(), *log_reward);
            assert!(*log_reward <= best + 1e-9 && *log_reward <= climbed[0].1);
        }
        found += usize::from(climbed[0].1 > best - 1e-9);
    }
    assert!(found >= 7, "{found} of 8");
    let knowledge = StructureConfig {
        max_parents: Some(1),
        forbidden: vec![(0, 3)],
        required: vec![(4, 1)],
        ..StructureConfig::new(5)
    };
    let env = BayesianStructure::new(knowledge).unwrap();
    for (graph, _) in greedy_search(&env, &problem(5, 1), 5, &mut Rng::seeded(0)).unwrap() {
        assert!(graph.has_edge(4, 1) && !graph.has_edge(0, 3), "{graph}");
        assert!((0..5).all(|node| graph.in_degree(node) <= 1), "{graph}");
    }
}

#[test]
fn searches_refuse_what_they_cannot_list() {
    let rng = &mut Rng::seeded(0);
    let large = BayesianStructure::new(StructureConfig::new(40)).unwrap();
    let reward = problem(5, 0);
    assert!(matches!(OrderChain::new(&large, &reward, rng), Err(Error::Shape { .. })));
    assert!(matches!(greedy_search(&large, &reward, 0, rng), Err(Error::Shape { .. })));
    struct Flat;
    impl LocalScore for Flat {
        fn n_nodes(&self) -> usize {
            40
        }
        fn local_score(&self, _: usize, parents: &NodeSet) -> f64 {
            if parents.len() > 1 { f64::NAN } else { 0.0 }
        }
    }
    let reward = DagReward::new(Flat, StructurePrior::Uniform).unwrap();
    let error = OrderChain::new(&large, &reward, rng).unwrap_err();
    assert!(matches!(error, Error::Config { .. }) && error.to_string().contains("max_parents"));
    let limit = |most| StructureConfig { max_parents: Some(most), ..StructureConfig::new(40) };
    let env = BayesianStructure::new(limit(2)).unwrap();
    assert!(matches!(OrderChain::new(&env, &reward, rng), Err(Error::NonFinite { .. })));
    let env = BayesianStructure::new(limit(1)).unwrap();
    assert_eq!(OrderChain::new(&env, &reward, rng).unwrap().draw(rng).unwrap().n_nodes(), 40);
}

/// Intervals between runs that agree aren't narrower than those of as many independent samples, and the
/// weights of graphs that fit very different numbers of orders are reported.
#[test]
fn agreement_of_chains_and_weights_are_not_overstated() {
    let mut runs = [PairMatrix::zeros(3), PairMatrix::zeros(3)];
    for run in &mut runs {
        run.set(0, 1, 1.0);
        run.set(1, 2, 0.3);
    }
    let between = PairMatrix::intervals_between(&runs, 50).unwrap();
    assert_eq!(between, runs[0].intervals(100).unwrap());
    assert!(between.0.get(0, 1) < 0.97);
    runs[0].set(1, 2, 0.2);
    let (low, high) = PairMatrix::intervals_between(&runs, 50).unwrap();
    assert!(low.get(1, 2) == 0.0 && high.get(1, 2) > between.1.get(1, 2) + 0.1);

    let draw = |reward: &DagReward<_>, n: usize| {
        let env = BayesianStructure::new(StructureConfig::new(n)).unwrap();
        assert!(OrderChain::is_possible(&env));
        OrderSamples::draw(&env, reward, 2, 200, 10, &mut Rng::seeded(0)).unwrap()
    };
    let found = draw(&problem(6, 0), 6);
    assert!(found.is_corrected && found.effective_samples.len() == 2);
    assert!(
        found.effective_samples.iter().all(|n| (1.0..1_800.0).contains(n)),
        "{:?}",
        found.effective_samples
    );
    // Equal chains of 200 samples each: the width is that of the effective number of samples.
    let equal = |effective_samples: [f64; 2]| {
        let chains = vec![found.chains[0].clone(); 2];
        OrderSamples { chains, is_corrected: true, effective_samples: effective_samples.to_vec() }
    };
    let share = Marginals::from_graphs(&found.chains[0], None).unwrap().edge;
    for (effective_samples, total) in [([2.0, 5.0], 6), ([2.0, 1_800.0], 202), ([900.0, 1_800.0], 400)] {
        let found = equal(effective_samples);
        assert_eq!(found.intervals().unwrap(), share.intervals(total).unwrap(), "{effective_samples:?}");
    }
    let large = BayesianStructure::new(StructureConfig::new(21)).unwrap();
    let limited = StructureConfig { max_parents: Some(3), ..StructureConfig::new(37) };
    assert!(!OrderChain::is_possible(&large));
    assert!(OrderChain::is_possible(&BayesianStructure::new(limited).unwrap()));
    let wide = StructureConfig { max_parents: Some(1), ..StructureConfig::new(65) };
    assert!(!OrderChain::is_possible(&BayesianStructure::new(wide).unwrap()));
}
