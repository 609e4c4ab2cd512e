//! Tests of the exact transition probabilities of Markov chains between all pairs of objects.

use gfn::Result;
use gfn::env::{EnumerableEnv, Reward, Rows, StateGraph, training_log_rewards};
use gfn::graph::{GraphEnv, GraphKind, GraphState, GraphStates, PerGraph};
use gfn_extras::chains::proposed_moves;
use gfn_gym::colored_graphs::{ColoredGraphReward, ColoredGraphs};
use gfn_gym::graph_building::{GraphBuilding, GraphBuildingConfig};
use tch::Tensor;

use super::chains::{grid, structures};

/// Returns undirected graphs that grow freely up to isomorphism, with and without the correction for
/// symmetry.
fn growing(corrects_symmetry: bool) -> GraphEnv {
    let config = GraphBuildingConfig {
        corrects_symmetry,
        node_classes: 2,
        ..GraphBuildingConfig::new(GraphKind::Undirected, 3)
    };
    GraphBuilding::new(config).unwrap().into_env()
}

fn growing_reward() -> impl Reward<GraphStates> {
    PerGraph(|graph: &GraphState| 0.5 * graph.n_nodes() as f64 - 0.9 * graph.n_edges() as f64)
}

/// A change of the logarithm of the acceptance factor, for negative controls: (environment, object, result,
/// probability of the move, probability of the reverse move) -> change.
type Spoil<E> = fn(&E, &<E as gfn::env::Env>::States, &<E as gfn::env::Env>::States, f64, f64) -> f64;

fn exact<E: gfn::env::Env>(_: &E, _: &E::States, _: &E::States, _: f64, _: f64) -> f64 {
    0.0
}

/// Leaves out n(x) / n(y).
fn without_counts<E: gfn::env::Env>(_: &E, _: &E::States, _: &E::States, forth: f64, back: f64) -> f64 {
    (forth / back).ln()
}

/// Leaves out |Aut(y)| / |Aut(x)|.
fn without_symmetry<E: gfn::env::Env>(env: &E, x: &E::States, y: &E::States, _: f64, _: f64) -> f64 {
    let correction = |state: &E::States| training_log_rewards(env, state, vec![0.0]).unwrap()[0];
    correction(x) - correction(y)
}

/// Computes the transition probabilities of one-move chains of a power between all objects. Returns the
/// largest violations of detailed balance, over all pairs of objects, and of stationarity.
fn violations<E: EnumerableEnv>(
    env: &E,
    reward: &dyn Reward<E::States>,
    power: f64,
    spoil: Spoil<E>,
) -> (f64, f64) {
    violations_of(env, reward, reward, power, spoil)
}

/// Computes the violations of chains that accept by `reward`, for the distribution in proportion to `target`
/// to the same power.
fn violations_of<E: EnumerableEnv>(
    env: &E,
    reward: &dyn Reward<E::States>,
    target: &dyn Reward<E::States>,
    power: f64,
    spoil: Spoil<E>,
) -> (f64, f64) {
    let graph = StateGraph::build(env, 1 << 12).unwrap();
    let ends = graph.ends();
    let objects = graph.states().select(&ends);
    let log_rewards = reward.log_reward(&objects, None).unwrap();
    let tempered =
        target.log_reward(&objects, None).unwrap().iter().map(|value| power * value).collect::<Vec<_>>();
    let target = graph.target_of(&tempered).unwrap().probs;
    let place = |state: usize| ends.iter().position(|&end| end == state).unwrap();
    let n = ends.len();
    let listed: Vec<_> =
        ends.iter().map(|&end| proposed_moves(env, &graph.states().select(&[end])).unwrap()).collect();
    let mut transitions = vec![vec![0.0; n]; n];
    for (x, (results, moves)) in listed.iter().enumerate() {
        let indices = graph.indices(env, results);
        for (k, one) in moves.iter().enumerate() {
            if !one.is_finished {
                continue;
            }
            let y = place(indices[k].unwrap());
            let object = graph.states().select(&[ends[x]]);
            let back = listed[y].1[0].probability;
            let change = spoil(env, &object, &results.select(&[k]), one.probability, back);
            let log_ratio = power * (log_rewards[y] - log_rewards[x]) + one.log_factor + change;
            transitions[x][y] += one.probability * log_ratio.exp().min(1.0);
        }
    }
    let mut balance: f64 = 0.0;
    let mut stationarity: f64 = 0.0;
    for x in 0..n {
        let stay = 1.0 - transitions[x].iter().sum::<f64>();
        assert!(stay > -1e-12, "transition probabilities sum to more than 1");
        let mut inflow = target[ends[x]] * stay;
        for y in 0..n {
            let forth = target[ends[x]] * transitions[x][y];
            let back = target[ends[y]] * transitions[y][x];
            balance = balance.max((forth - back).abs());
            inflow += back;
        }
        stationarity = stationarity.max((inflow - target[ends[x]]).abs());
    }
    (balance, stationarity)
}

#[test]
fn one_move_has_detailed_balance_over_all_pairs() {
    let check = |(balance, stationarity): (f64, f64), what: &str| {
        assert!(balance < 1e-14 && stationarity < 1e-13, "{what}: {balance:e} {stationarity:e}");
    };
    let fails = |(balance, stationarity): (f64, f64), what: &str| {
        assert!(balance > 1e-4 && stationarity > 1e-4, "{what}: {balance:e} {stationarity:e}");
    };
    for power in [1.0, 0.3, 0.0] {
        let (env, reward) = grid();
        check(violations(&env, &reward, power, exact), "grid");
        fails(violations(&env, &reward, power, without_counts), "grid");
        let (env, reward) = structures::<3>();
        check(violations(&env, &reward, power, exact), "structures");
        fails(violations(&env, &reward, power, without_counts), "structures");
        let env = ColoredGraphs::new(3).unwrap().into_env();
        check(violations(&env, &ColoredGraphReward::Count, power, exact), "coloured graphs");
        fails(violations(&env, &ColoredGraphReward::Count, power, without_counts), "coloured graphs");
        fails(violations(&env, &ColoredGraphReward::Count, power, without_symmetry), "coloured graphs");
        let env = growing(true);
        check(violations(&env, &growing_reward(), power, exact), "growing graphs");
        fails(violations(&env, &growing_reward(), power, without_symmetry), "growing graphs");
        // Without the correction for symmetry, chains of power b sample R^b / |Aut|.
        let (env, reward) = (growing(false), growing_reward());
        let uncorrected = |states: &GraphStates, conditions: Option<&Tensor>| -> Result<Vec<f64>> {
            let symmetry = training_log_rewards(&growing(true), states, vec![0.0; states.len()])?;
            let log_rewards = reward.log_reward(states, conditions)?;
            Ok(log_rewards.iter().zip(symmetry).map(|(value, log_count)| value - log_count / power).collect())
        };
        fails(violations(&env, &reward, power, exact), "uncorrected graphs");
        if power > 0.0 {
            check(violations_of(&env, &reward, &uncorrected, power, exact), "uncorrected graphs");
        }
    }
}
