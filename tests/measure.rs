//! Tests of environments in which an object has several states. Each state must get a share of the object's
//! reward, for any reward, in training, in the target and in estimates.

use std::collections::BTreeMap;

use crate::spaces::ColouredGraphs;
use gfn::contract::{Budget, check_env};
use gfn::env::{CachedReward, Clipped, EnumerableEnv, Reward, Rows, StateGraph};
use gfn::graph::{GraphEnv, GraphRules, GraphState, GraphStates, Node, canonical_key};
use gfn::metrics::{Distances, ExactPolicy, NoiseFloor, estimate_log_probs, estimate_log_z};
use gfn::objective::score;
use gfn::objective::{Quantities, Quantity};
use gfn::policy::UniformPolicy;
use gfn::rollout::{Acceptance, Container, LocalSearch, Sampler};
use gfn::tensor::to_host;
use gfn::{Error, Result, Rng};
use gfn_extras::condition::{Condition, ConditionedReward, Conditioning, Encoding, Temperature};
use tch::Tensor;

/// The rules of an environment in which a graph and the same graph with its two colours swapped are one
/// object. With `miscounts`, the rules have a mistake: they report each of the two as a separate object.
struct ColourSymmetric {
    miscounts: bool,
}

/// Returns the states of a graph's object: the graph, and the graph with swapped colours if the two differ.
fn forms(graph: &GraphState) -> Vec<GraphState> {
    let nodes: Vec<Node> = graph.nodes().map(|node| Node::from_class(1 - node.class)).collect();
    let edges: Vec<_> = graph.edges().map(|(a, b)| (a, b, graph.edge(a, b).unwrap())).collect();
    let other = GraphState::from_parts(graph.kind(), &nodes, &edges).unwrap();
    match canonical_key(&other) == canonical_key(graph) {
        true => vec![graph.clone()],
        false => vec![other, graph.clone()],
    }
}

impl GraphRules for ColourSymmetric {
    fn log_multiplicity(&self, graph: &GraphState) -> Result<f64> {
        Ok(if self.miscounts { 0.0 } else { (forms(graph).len() as f64).ln() })
    }
    fn forms(&self, graph: &GraphState) -> Result<Option<Vec<GraphState>>> {
        Ok(Some(forms(graph)).filter(|forms| forms.len() > 1))
    }
}

fn colour_symmetric(miscounts: bool) -> GraphEnv {
    ColouredGraphs::env(3).with_rules(|_| ColourSymmetric { miscounts })
}

/// A log-reward, with partial log-rewards, that is equal for both states of an object.
#[derive(Clone)]
struct Size;

fn size(graph: &GraphState) -> f64 {
    let one: usize = graph.nodes().map(|node| usize::from(node.class)).sum();
    graph.n_edges() as f64 - 0.5 * (graph.n_nodes() as f64 - 2.0 * one as f64).abs()
}

impl Reward<GraphStates> for Size {
    fn log_reward(&self, states: &GraphStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
        Ok(states.graphs().iter().map(size).collect())
    }
    fn partial_log_reward(
        &self,
        states: &GraphStates,
        conditions: Option<&Tensor>,
    ) -> Result<Option<Vec<f64>>> {
        self.log_reward(states, conditions).map(Some)
    }
}

fn close(what: &str, found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let off = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(off < 1e-5, "{what} is off by {off}");
}

#[test]
fn the_checker_counts_forms() {
    check_env(&colour_symmetric(false), Budget::thorough().with_walks(30), &mut Rng::seeded(0)).unwrap();
    let error = check_env(&colour_symmetric(true), Budget::thorough().with_walks(30), &mut Rng::seeded(0))
        .unwrap_err();
    assert!(
        matches!(error, Error::Contract { .. }) && error.to_string().contains("log_multiplicity"),
        "{error}"
    );
}

/// Checks that the target, the exact policy and estimates give each object the probability R / Z, where Z
/// sums over objects instead of states.
#[test]
fn objects_have_their_share() {
    let env = colour_symmetric(false);
    let graph = StateGraph::build(&env, 1_000).unwrap();
    let objects = env.objects(graph.states()).unwrap();
    // This map lists the objects independently of the environment. The key of an object is the lesser of the
    // keys of its two states.
    let mut listed = BTreeMap::new();
    for state in graph.states().graphs() {
        let keys = forms(state).iter().map(canonical_key).min();
        listed.insert(keys, size(state).exp());
    }
    assert_eq!(objects.first.len(), listed.len());
    assert!(listed.len() < graph.len() && 2 * listed.len() > graph.len());
    let z: f64 = listed.values().sum();
    let target = graph.target_distribution(&Size, None).unwrap();
    assert!((target.log_z - z.ln()).abs() < 1e-9);
    let exact = ExactPolicy::new(&graph, &env, &UniformPolicy, &Size).unwrap();
    let learned = graph.terminating_distribution(&env, &exact, None).unwrap();
    assert!(Distances::between(&learned.probs, &target.probs).unwrap().l1 < 1e-9);
    let mut shares = vec![0.0; listed.len()];
    for (&object, p) in objects.group_of.iter().zip(&learned.probs) {
        shares[object] += p;
    }
    let firsts = graph.states().select(&objects.first);
    let expected: Vec<f64> = firsts.graphs().iter().map(|state| size(state) - z.ln()).collect();
    close("shares", &shares.iter().map(|p| p.ln()).collect::<Vec<_>>(), &expected);
    // The exact policy satisfies trajectory balance, so a single path gives the exact probability of an
    // object.
    let log_p = estimate_log_probs(&env, &exact, &firsts, 1, &mut Rng::seeded(1)).unwrap();
    close("log p", &log_p, &expected);
    let estimate = estimate_log_z(&env, &exact, &Size, 50, &mut Rng::seeded(2)).unwrap();
    assert!((estimate.log_z - z.ln()).abs() < 1e-5 && (estimate.elbo.mean - z.ln()).abs() < 1e-5);
    // With the uniform policy several paths are needed. The estimate must be the probability of the object,
    // not of one of its states.
    let uniform = graph.terminating_distribution(&env, &UniformPolicy, None).unwrap();
    let mut shares = vec![0.0; listed.len()];
    for (&object, p) in objects.group_of.iter().zip(&uniform.probs) {
        shares[object] += p;
    }
    let log_p = estimate_log_probs(&env, &UniformPolicy, &firsts, 200, &mut Rng::seeded(3)).unwrap();
    let off = log_p.iter().zip(&shares).map(|(log_p, p)| (log_p - p.ln()).abs()).fold(0.0, f64::max);
    assert!(off < 0.2, "{off}");
}

/// Checks that training divides every reward among the states of an object, for finished and unfinished
/// objects.
#[test]
fn every_reward_gets_the_measure() {
    let env = colour_symmetric(false);
    let drawn = Sampler::new(&env, &UniformPolicy).forward(64, &mut Rng::seeded(3)).unwrap();
    let measure = |states: &GraphStates| -> Vec<f64> {
        let of =
            |state: &GraphState| env.log_automorphisms(state).unwrap() - (forms(state).len() as f64).ln();
        states.graphs().iter().map(of).collect()
    };
    let end_values = measure(drawn.terminal_states());
    let partial: Vec<f64> =
        drawn.states().graphs().iter().zip(measure(drawn.states())).map(|(s, m)| size(s) + m).collect();
    let keys = colour_symmetric(false);
    let law = Temperature::Constant(2.0);
    let conditioning = Conditioning::new(1).unwrap().temperature(law, Encoding::Number).unwrap();
    let condition = Condition { beta: 2.0, preferences: vec![1.0], focus: None };
    let conditions = conditioning.encode(&vec![condition; drawn.len()]).unwrap();
    let with_condition = drawn.clone().with_conditions(conditions).unwrap();
    let function = |states: &GraphStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
        Ok(states.graphs().iter().map(size).collect())
    };
    let raw = function(drawn.terminal_states(), None).unwrap();
    let recorded = drawn.clone().with_log_rewards(raw).unwrap();
    let conditioned = ConditionedReward::new(conditioning, vec![std::sync::Arc::new(Size)]).unwrap();
    let cached = CachedReward::new(Size, move |states: &GraphStates| keys.keys(states), 100).unwrap();
    let clipped = Clipped::new(Size, -0.25).unwrap();
    let all: [(&str, &dyn Reward<GraphStates>, _); 6] = [
        ("a trait's", &Size, &drawn),
        ("a function's", &function, &drawn),
        ("recorded", &Size, &recorded),
        ("cached", &cached, &drawn),
        ("clipped", &clipped, &drawn),
        ("conditioned", &conditioned, &with_condition),
    ];
    for (what, reward, trajectories) in all {
        let scores = score(&env, reward, &UniformPolicy, trajectories, Quantities::NONE).unwrap();
        let raw = to_host(&scores.raw_log_reward);
        close(
            what,
            &raw,
            &reward.log_reward(trajectories.terminal_states(), trajectories.conditions()).unwrap(),
        );
        let expected: Vec<f64> = raw.iter().zip(&end_values).map(|(raw, measure)| raw + measure).collect();
        close(what, &to_host(&scores.log_reward), &expected);
    }
    let scores =
        score(&env, &Size, &UniformPolicy, &drawn, Quantity::StateLogReward | Quantity::LogRewardChange)
            .unwrap();
    close("partial", &to_host(scores.need(Quantity::StateLogReward, "test").unwrap()), &partial);
    let exit = drawn.is_exit();
    let change = |row: usize| if exit[row] { 0.0 } else { partial[row + 1] - partial[row] };
    let change: Vec<f64> = (0..exit.len()).map(change).collect();
    close("changes", &to_host(scores.need(Quantity::LogRewardChange, "test").unwrap()), &change);
}

#[test]
fn local_search_keeps_the_shares_of_objects() {
    let env = colour_symmetric(false);
    let mut rng = Rng::seeded(0);
    let graph = StateGraph::build(&env, 1_000).unwrap();
    // In the target, the two objects that have a single state have the probability 1/2 together. If rewards
    // weren't divided among the states of an object, they would have 1/3.
    let reward = |states: &GraphStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
        Ok(states
            .graphs()
            .iter()
            .map(|state| if forms(state).len() == 1 { 3.5_f64.ln() } else { 0.0 })
            .collect())
    };
    let target = graph.target_distribution(&reward, None).unwrap().probs;
    let setting = LocalSearch { rounds: 15, max_back: 4, acceptance: Acceptance::MetropolisHastings };
    let sampler = Sampler::new(&env, &UniformPolicy);
    let start = sampler.forward(1_500, &mut rng).unwrap();
    let (found, _) = sampler.local_search(setting, start.terminal_states(), &reward, &mut rng).unwrap();
    let tv = Distances::between(&graph.empirical(&env, &found).unwrap(), &target).unwrap().tv;
    let floor = NoiseFloor::simulate(&target, 1_500, 50, &mut rng).unwrap();
    assert!(tv < floor.tv + 5.0 * floor.tv_sd, "{tv} {floor:?}");
}
