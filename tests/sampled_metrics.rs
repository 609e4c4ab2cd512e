//! Tests that compare metrics estimated from samples with the exact distribution: log p(x) from backward
//! paths, its correlation with log R(x), and modes.

use crate::spaces::ColouredGraphs;
use gfn::env::StateGraph;
use gfn::env::{EnumerableEnv, Reward, Rows, VectorKey, VectorStates};
use gfn::examples::Triangles;
use gfn::graph::{GraphState, GraphStates};
use gfn::metrics::{Correlation, ExactPolicy, ModeTracker, estimate_log_probs};
use gfn::policy::{Policy, UniformPolicy};
use gfn::rollout::Sampler;
use gfn::{Error, Result, Rng};
use gfn_gym::hypergrid::{HyperGrid, OriginalReward};
use tch::Tensor;

/// Returns a log-reward that differs between graphs, but is equal for isomorphic graphs.
fn graph_reward(states: &GraphStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
    let log_r = |graph: &GraphState| {
        let ones = graph.nodes().filter(|node| node.class == 1).count();
        graph.n_edges() as f64 * 0.4 - 0.3 * ones as f64
    };
    Ok(states.graphs().iter().map(log_r).collect())
}

/// Returns the largest difference between the estimated and the exact log p(x) over all objects.
fn worst<E>(env: &E, graph: &StateGraph<E>, policy: &dyn Policy<E>, paths: usize) -> f64
where
    E: EnumerableEnv,
{
    let probs = graph.terminating_distribution(env, policy, None).unwrap().probs;
    let ends = graph.ends();
    let objects = graph.states().select(&ends);
    let estimated = estimate_log_probs(env, policy, &objects, paths, &mut Rng::seeded(5)).unwrap();
    let errors = ends.iter().zip(estimated).map(|(&state, log_p)| (log_p - probs[state].ln()).abs());
    errors.fold(0.0, f64::max)
}

/// Checks estimates for an exact policy and for the uniform policy. `at_least` is a lower bound of Spearman's
/// rho for the exact policy. The bound is below 1, because rounding changes the order of objects with equal
/// rewards.
fn check<E, R>(env: &E, reward: R, at_least: f64)
where
    E: EnumerableEnv,
    R: Reward<E::States>,
{
    let graph = StateGraph::build(env, 10_000).unwrap();
    // For an exact policy all paths to an object have equal importance weights, so a single path is enough.
    let exact = ExactPolicy::new(&graph, env, &UniformPolicy, &reward).unwrap();
    let error = worst(env, &graph, &exact, 1);
    // The bound is 1e-6, because P_B is computed in single precision.
    assert!(error < 1e-6, "exact policy: {error}");

    // For a policy that isn't exact, the estimate needs many paths.
    let many = worst(env, &graph, &UniformPolicy, 4000);
    let one = worst(env, &graph, &UniformPolicy, 1);
    assert!(many < 0.08 && one > 2.0 * many, "uniform policy: {many} with 4000 paths, {one} with one");

    // The log p of the exact policy is log R - log Z, so it must correlate with log R. The log p of the
    // uniform policy must not correlate with log R.
    let ends = graph.states().select(&graph.ends());
    let log_rewards = reward.log_reward(&ends, None).unwrap();
    let estimated = estimate_log_probs(env, &exact, &ends, 2, &mut Rng::seeded(1)).unwrap();
    let c = Correlation::between(&estimated, &log_rewards).unwrap();
    assert!(c.pearson.unwrap() > 1.0 - 1e-6 && c.spearman.unwrap() > at_least, "{c:?}");
    let estimated = estimate_log_probs(env, &UniformPolicy, &ends, 200, &mut Rng::seeded(1)).unwrap();
    let c = Correlation::between(&estimated, &log_rewards).unwrap();
    assert!(c.pearson.unwrap() < 0.9 && c.spearman.unwrap() < 0.9, "{c:?}");
}

#[test]
fn log_p_is_that_of_the_exact_distribution() {
    tch::set_num_threads(1);
    let grid = HyperGrid::new(2, 6).unwrap();
    // This reward differs between all points, so that ranks are unique.
    let reward = |points: &VectorStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
        Ok(points.rows().map(|x| 0.31 * f64::from(x[0]) - 0.17 * f64::from(x[1])).collect())
    };
    check(&grid.env(), reward, 1.0 - 1e-12);
}

#[test]
fn log_p_of_a_graph_is_that_of_its_class() {
    tch::set_num_threads(1);
    check(&ColouredGraphs::env(4), graph_reward, 0.9);
}

#[test]
fn nothing_to_estimate_is_refused() {
    let env = Triangles::env();
    let objects =
        Sampler::new(&env, &UniformPolicy).forward(3, &mut Rng::seeded(0)).unwrap().terminal_states().clone();
    let none = objects.select(&[]);
    for (objects, paths) in [(&none, 5), (&objects, 0)] {
        let refused = estimate_log_probs(&env, &UniformPolicy, objects, paths, &mut Rng::seeded(0));
        assert!(matches!(refused, Err(Error::Config { .. })));
    }
}

#[test]
fn a_tracker_finds_the_modes_that_there_are_and_survives_json() {
    let grid = HyperGrid::new(2, 8).unwrap();
    let env = grid.env();
    let reward = OriginalReward::standard(&grid).unwrap();
    let mut tracker = ModeTracker::new();
    let mut rng = Rng::seeded(0);
    let mut seen = std::collections::BTreeSet::new();
    for step in 1..=400 {
        let walks = Sampler::new(&env, &UniformPolicy).walks(16, &mut rng).unwrap();
        let flags = reward.is_mode(&walks.terminal);
        let rows: Vec<usize> = (0..16).filter(|&row| flags[row]).collect();
        let modes = walks.terminal.select(&rows);
        seen.extend(modes.rows().map(<[u16]>::to_vec));
        tracker.add(step, 16 * step as u64, env.keys(&modes));
        assert_eq!(tracker.n_modes(), seen.len());
    }
    assert!(tracker.n_modes() > 1 && tracker.n_modes() as u64 <= reward.n_modes());
    let rising =
        tracker.curve().windows(2).all(|pair| pair[0].modes < pair[1].modes && pair[0].step < pair[1].step);
    assert!(rising && tracker.curve().iter().all(|point| point.reward_calls == 16 * point.step as u64));
    let text = serde_json::to_string(&tracker).unwrap();
    assert_eq!(serde_json::from_str::<ModeTracker<VectorKey>>(&text).unwrap(), tracker);
}
