//! Tests of posteriors over graphs: sums over sinks (nodes without children) compared with enumeration, exact
//! distributions of policies, and metrics that compare distributions.

use gfn::env::Rows;
use gfn::env::StateGraph;
use gfn::graph::{GraphState, read_graphs, write_graphs};
use gfn::metrics::{Distances, ExactPolicy};
use gfn::policy::UniformPolicy;
use gfn::rollout::Sampler;
use gfn::{Error, Rng};
use gfn_dags::*;

/// Simulates a linear model. Returns its true graph and observations of its variables.
fn simulated(n: usize, edges: f64, rows: usize, seed: u64) -> (GraphState, ContinuousData) {
    let mut rng = Rng::seeded(seed);
    let dag = GraphLaw::ErdosRenyi { edges }.draw(n, &mut rng).unwrap();
    let data =
        Sem::draw(dag.clone(), SemConfig::Linear, 0.1, &mut rng).unwrap().sample(rows, &mut rng).unwrap();
    (dag, data)
}

fn reward_of(data: &ContinuousData, prior: StructurePrior) -> DagReward<CachedScores<Bge>> {
    let bge = Bge::new(data, BgeConfig::default()).unwrap();
    DagReward::new(CachedScores::ahead(bge, None).unwrap(), prior).unwrap()
}

fn worst(a: &PairMatrix, b: &PairMatrix) -> f64 {
    a.values().iter().zip(b.values()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[test]
fn sums_over_sinks_are_sums_over_graphs() {
    let knowledge = StructureConfig {
        max_parents: Some(2),
        forbidden: vec![(0, 3), (4, 1)],
        required: vec![(2, 0), (2, 1)],
        ..StructureConfig::new(5)
    };
    // With 5,000 rows the probabilities of graphs differ by factors down to e^-20000, so sums need a wide
    // range of exponents.
    for (seed, rows, config) in
        [(0, 100, StructureConfig::new(5)), (1, 5000, StructureConfig::new(5)), (2, 20, knowledge)]
    {
        let (_, data) = simulated(5, 6.0, rows, seed);
        let env = BayesianStructure::new(config).unwrap();
        let graph = StateGraph::build(env.env(), 30_000).unwrap();
        for prior in [StructurePrior::Uniform, StructurePrior::EdgePenalty { beta: 0.3 }] {
            let reward = reward_of(&data, prior).relative_to(&graph.states().graphs()[0]).unwrap();
            let listed = ExactPosterior::from_states(graph.states(), &reward).unwrap();
            let summed = EdgeMarginals::sum(&env, &reward).unwrap();
            let gap = worst(&summed.edge, &listed.marginals().unwrap().edge);
            assert!(gap < 1e-9, "{seed}: {gap:e}");
            assert!((summed.log_z - listed.log_z()).abs() < 1e-8, "{} {}", summed.log_z, listed.log_z());
            assert!(summed.deviation < 1e-10, "{:e}", summed.deviation);
        }
    }
}

/// A score that doesn't depend on data: each parent adds the same term.
struct PerParent {
    n: usize,
    term: f64,
}

impl LocalScore for PerParent {
    fn n_nodes(&self) -> usize {
        self.n
    }
    fn local_score(&self, _: usize, parents: &NodeSet) -> f64 {
        self.term * parents.len() as f64
    }
}

/// Sums the rewards e^(`term` * number of edges) of all graphs of `n` nodes.
fn sum(n: usize, term: f64) -> gfn::Result<EdgeMarginals> {
    let env = BayesianStructure::new(StructureConfig::new(n))?;
    EdgeMarginals::sum(&env, &DagReward::new(PerParent { n, term }, StructurePrior::Uniform)?)
}

/// Sums the rewards of all graphs of 20 nodes, the most that are permitted.
#[test]
#[ignore = "takes minutes, because time grows as 3^n"]
fn graphs_of_twenty_nodes_are_counted() {
    let summed = sum(MAX_SUMMED_NODES, 0.0).unwrap();
    // The logarithm of the number of acyclic graphs of 20 nodes (OEIS A003024).
    assert!((summed.log_z - 166.638_361_115_806).abs() < 1e-11, "{}", summed.log_z);
}

/// Compares the sum of the rewards, if all rewards are 1, with the number of acyclic graphs (OEIS A003024).
/// Then tests the worst case of cancellation, in which every edge has a tiny probability.
#[test]
fn cancellation_is_guarded() {
    for (n, count) in [
        (1, 1.0),
        (6, 3_781_503.0),
        (9, 1_213_442_454_842_881.0),
        (14, 1_439_428_141_044_398_334_941_790_719_839_535_103.0),
        (15, 237_725_265_553_410_354_992_180_218_286_376_719_253_505.0),
    ] {
        let summed = sum(n, 0.0).unwrap();
        let expected: f64 = count;
        assert!((summed.log_z - expected.ln()).abs() < 1e-12, "{n}: {}", summed.log_z);
        let edges = summed.edge.off_diagonal();
        assert!(edges.iter().all(|p| (p - edges[0]).abs() < 1e-12));
    }
    // Each edge has odds of e^`term`. They are so small that the exclusion of cycles has almost no influence,
    // so each edge must have the marginal probability e^`term`. If the sums used numbers of type `f64`, the
    // error would be 1e-7.
    for term in [-30.0, -300.0] {
        let summed = sum(11, term).unwrap();
        assert!(
            summed.edge.off_diagonal().iter().all(|p| (p / term.exp() - 1.0).abs() < 1e-9),
            "{:?}",
            summed.edge
        );
    }
    assert!(matches!(sum(MAX_SUMMED_NODES + 1, 0.0), Err(Error::Config { .. })));
    assert!(matches!(sum(4, f64::NAN), Err(Error::NonFinite { .. })));
    // At 1e20 two neighbouring numbers of type `f64` differ by 16,384, so differences of scores are lost. The
    // sum must be refused.
    assert!(matches!(sum(2, 1e20), Err(Error::Config { .. })));
}

#[test]
fn exact_distributions_of_policies_stand_beside_the_posterior() {
    let (_, data) = simulated(5, 5.0, 100, 0);
    let env = BayesianStructure::new(StructureConfig::new(5)).unwrap().into_env();
    let graph = StateGraph::build(&env, 30_000).unwrap();
    let reward = reward_of(&data, StructurePrior::Uniform);
    let posterior = ExactPosterior::from_states(graph.states(), &reward).unwrap();
    let exact = ExactPolicy::new(&graph, &env, &UniformPolicy, &reward).unwrap();
    let sampled = graph.terminating_distribution(&env, &exact, None).unwrap();
    let distances = Distances::between(&sampled.probs, posterior.probs()).unwrap();
    assert!(distances.jsd < 1e-10 && distances.tv < 1e-7, "{distances:?}");
    let uniform = graph.terminating_distribution(&env, &UniformPolicy, None).unwrap();
    assert!(Distances::between(&uniform.probs, posterior.probs()).unwrap().jsd > 0.1);

    // Marginals estimated from samples of the exact policy must equal those of the posterior, up to sampling
    // noise.
    let samples = Sampler::new(&env, &exact).forward(8000, &mut Rng::seeded(1)).unwrap();
    let estimated = Marginals::from_graphs(samples.terminal_states(), None).unwrap();
    let marginals = posterior.marginals().unwrap();
    for (a, b) in [
        (&estimated.edge, &marginals.edge),
        (&estimated.path, &marginals.path),
        (&estimated.markov_blanket, &marginals.markov_blanket),
    ] {
        let rmse = a.rmse(b).unwrap();
        let pearson = a.pearson(b).unwrap().unwrap();
        // The bound on the correlation is low, because the marginals of different pairs differ by little more
        // than the sampling noise.
        assert!(rmse < 0.01 && pearson > 0.975, "{rmse} {pearson}");
    }
    assert!((estimated.expected_edges - marginals.expected_edges).abs() < 0.15);
    let (_, probs) = posterior.top(3).unwrap();
    let (best, share) = most_probable(samples.terminal_states(), None, 1).unwrap()[0];
    assert!((share - probs[0]).abs() < 0.05 && probs[0] >= probs[1] && probs[1] >= probs[2]);
    assert!(best < 8000);
}

#[test]
fn more_data_finds_the_truth() {
    let mut rng = Rng::seeded(3);
    let truth = GraphLaw::ErdosRenyi { edges: 5.0 }.draw(5, &mut rng).unwrap();
    let strong = SemConfig::LinearAwayFromZero { low: 0.8, high: 1.6 };
    let data = Sem::draw(truth.clone(), strong, 1.0, &mut rng).unwrap().sample(400, &mut rng).unwrap();
    let truth: Vec<(u32, u32)> = truth.edges().collect();
    let env = BayesianStructure::new(StructureConfig::new(5)).unwrap().into_env();
    let graph = StateGraph::build(&env, 30_000).unwrap();
    let posterior = |rows: usize| {
        let data = data.select(&(0..rows).collect::<Vec<_>>()).unwrap();
        let reward = reward_of(&data, StructurePrior::Uniform);
        ExactPosterior::from_states(graph.states(), &reward).unwrap()
    };
    let few = posterior(8);
    let many = posterior(400);
    let shd = |posterior: &ExactPosterior| {
        EdgeComparison::new(posterior.states(), Some(posterior.probs()), &truth).unwrap().expected_shd
    };
    assert!(shd(&many) < shd(&few) && shd(&many) < 4.0, "{} {}", shd(&many), shd(&few));
    let found = many.marginals().unwrap().edge.detection(&truth).unwrap();
    assert!(found.auroc > 0.85 && found.auprc > 0.6, "{found:?}");
    assert!(many.entropy() < few.entropy());
}

#[test]
fn held_out_data_favours_the_posterior() {
    let (_, data) = simulated(4, 4.0, 60, 1);
    let env = BayesianStructure::new(StructureConfig::new(4)).unwrap().into_env();
    let graph = StateGraph::build(&env, 1000).unwrap();
    let training = data.select(&(0..40).collect::<Vec<_>>()).unwrap();
    let score = |data| Bge::new(data, BgeConfig::default()).unwrap();
    let of_training = score(&training);
    let of_all = score(&data);
    let values = held_out_log_likelihoods(graph.states(), &of_training, &of_all).unwrap();
    let posterior = ExactPosterior::from_states(
        graph.states(),
        &DagReward::new(&of_training, StructurePrior::Uniform).unwrap(),
    )
    .unwrap();
    let average = |weights: Option<&[f64]>| log_model_average(graph.states(), weights, &values).unwrap();
    // By the chain rule, the log-likelihood of the held-out data must be log p(all data) - log p(training
    // data), where each probability is a sum over all graphs.
    let all = ExactPosterior::from_states(
        graph.states(),
        &DagReward::new(&of_all, StructurePrior::Uniform).unwrap(),
    )
    .unwrap();
    assert!((average(Some(posterior.probs())) - (all.log_z() - posterior.log_z())).abs() < 1e-8);
    assert!(average(Some(posterior.probs())) > average(None));
}

#[test]
fn graphs_and_marginals_go_to_files() {
    let (_, data) = simulated(5, 5.0, 50, 0);
    let env = BayesianStructure::new(StructureConfig::new(5)).unwrap().into_env();
    let posterior = ExactPosterior::enumerate(&env, &reward_of(&data, StructurePrior::Fair), 30_000).unwrap();
    let (top, _) = posterior.top(10).unwrap();
    let folder = std::env::temp_dir().join(format!("gfn-dags-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["top.d6", "top.edges"] {
        write_graphs(folder.join(name), top.graphs()).unwrap();
        assert_eq!(read_graphs(folder.join(name)).unwrap(), top.graphs());
    }
    let edge = posterior.marginals().unwrap().edge;
    let names: Vec<String> = ["a", "b,c", "d", "e", "f"].map(String::from).to_vec();
    edge.write_csv(folder.join("edges.csv"), &names).unwrap();
    let text = std::fs::read_to_string(folder.join("edges.csv")).unwrap();
    assert!(text.starts_with("source,a,\"b,c\",d,e,f\na,0,"), "{text}");
    assert_eq!(text.lines().count(), 6);
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(edge.to_csv(&names[..4]).is_err());
    assert_eq!(PairMatrix::zeros(0).to_csv(&[]).unwrap(), "source\n");
}

/// Checks Wilson's intervals by their definition: a share is as far from each end as the normal quantile
/// times the standard deviation of shares at that end.
#[test]
fn intervals_end_where_the_shares_are_just_likely() {
    for (share, samples) in [(0.0, 10), (1.0, 10), (0.3, 20), (0.5, 1000), (0.999, 5000), (0.07, 1)] {
        let mut edges = PairMatrix::zeros(2);
        edges.set(0, 1, share);
        let (low, high) = edges.intervals(samples).unwrap();
        for end in [low.get(0, 1), high.get(0, 1)] {
            let deviation = (end * (1.0 - end) / samples as f64).sqrt();
            assert!(
                ((share - end).abs() - 1.959963984540054 * deviation).abs() < 1e-12,
                "{share} {samples} {end}"
            );
        }
        assert!(low.get(0, 1) <= share && share <= high.get(0, 1) && low.get(0, 1) < high.get(0, 1));
        assert_eq!((low.get(0, 0), high.get(1, 1)), (0.0, 0.0));
    }
    // Of intervals from exact samples, about 95 % must contain the true probability.
    let dags = super::graphs(2, &[&[(0, 1)], &[]]);
    let mut rng = Rng::seeded(0);
    let covered = (0..400).filter(|_| {
        let rows: Vec<usize> = (0..50).map(|_| usize::from(rng.uniform() > 0.3)).collect();
        let (low, high) =
            Marginals::from_graphs(&dags.select(&rows), None).unwrap().edge.intervals(50).unwrap();
        low.get(0, 1) <= 0.3 && 0.3 <= high.get(0, 1)
    });
    let covered = covered.count();
    assert!((365..=395).contains(&covered), "{covered}");
    let mut wrong = PairMatrix::zeros(2);
    assert!(wrong.intervals(0).is_err());
    wrong.set(1, 0, 1.1);
    assert!(wrong.intervals(10).unwrap_err().to_string().contains("1.1"));
}

#[test]
fn dot_has_the_probable_edges_under_their_names() {
    let mut edges = PairMatrix::zeros(3);
    edges.set(0, 1, 0.5);
    edges.set(2, 0, 0.4999);
    let names = ["a \"b\"", "c\\", "alone"].map(String::from);
    let dot = edges.to_dot(&names, 0.5).unwrap();
    let nodes = r#"  "a \"b\"";
  "c\\";
  "alone";
"#;
    assert_eq!(
        dot,
        format!("digraph {{\n{nodes}  {}\n}}\n", r#""a \"b\"" -> "c\\" [label="0.50", penwidth=2.00];"#)
    );
    for (names, threshold) in
        [(&names[..2], 0.5), (&names[..], 0.0), (&names[..], 1.5), (&names[..], f64::NAN)]
    {
        assert!(edges.to_dot(names, threshold).is_err());
    }
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let dags = super::graphs(3, &[&[(0, 1)], &[]]);
    assert!(Marginals::from_graphs(&dags, Some(&[1.0])).is_err());
    assert!(Marginals::from_graphs(&dags, Some(&[1.0, -0.5])).is_err());
    assert!(Marginals::from_graphs(&dags, Some(&[0.0, 0.0])).is_err());
    assert!(Marginals::from_graphs(&dags.select(&[]), None).is_err());
    assert!(EdgeComparison::new(&dags, None, &[(0, 3)]).is_err());
    // Samples whose graphs have different numbers of nodes, and samples that contain a graph with a cycle,
    // must be refused.
    let mut mixed = dags.clone();
    mixed.append(super::graphs(4, &[&[(0, 3)]]));
    assert!(matches!(Marginals::from_graphs(&mixed, None), Err(Error::Shape { .. })));
    assert!(matches!(EdgeComparison::new(&mixed, None, &[(0, 1)]), Err(Error::Shape { .. })));
    let mut cyclic = dags.graphs()[0].clone();
    cyclic.add_edge(1, 0, Default::default()).unwrap();
    assert!(matches!(Marginals::from_graphs(&vec![cyclic].into(), None), Err(Error::Contract { .. })));
    let edge = Marginals::from_graphs(&dags, None).unwrap().edge;
    assert!(edge.detection(&[]).unwrap_err().to_string().contains("0 of 6 pairs"));
    assert!(edge.rmse(&PairMatrix::zeros(4)).is_err());
    assert!(edge.pearson(&PairMatrix::zeros(3)).unwrap().is_none());
    assert!(log_model_average(&dags, None, &[0.0]).is_err());
    // A graph of weight 0 must have no influence on the result, however high its likelihood is.
    let (weights, likelihoods): (Vec<f64>, Vec<f64>) =
        (0..dags.len()).map(|i| if i == 0 { (1.0, -2000.0) } else { (0.0, 0.0) }).unzip();
    assert_eq!(log_model_average(&dags, Some(&weights), &likelihoods).unwrap(), -2000.0);
    let nan = vec![f64::NAN; dags.len()];
    assert!(matches!(log_model_average(&dags, None, &nan), Err(Error::NonFinite { .. })));
}
