//! Tests that isomorphic states of a batch are evaluated once. The result must be the same as if each state
//! were evaluated.
use gfn::Rng;
use gfn::distribution::Distribution;
use gfn::env::{Direction, DiscreteEnv, Env};
use gfn::graph::GraphEnv;
use gfn::nn::{BackwardPolicy, GraphNet, GraphNetConfig};
use gfn::objective::score;
use gfn::objective::{Quantities, Quantity};
use gfn::policy::{GraphPolicy, Policy};
use gfn::rollout::Sampler;
use gfn::rollout::Trajectories;
use gfn_gym::colored_graphs::{ColoredGraphReward, ColoredGraphs};
use tch::{Device, Kind, Tensor};

fn policy(env: &GraphEnv) -> GraphPolicy<GraphNet> {
    let config = GraphNetConfig {
        embedding: 16,
        pair_walks: Some(2),
        backward: BackwardPolicy::SharedTorso,
        ..GraphNetConfig::default()
    };
    GraphPolicy(GraphNet::new(env, config, Device::Cpu, Kind::Double, &mut Rng::seeded(1)).unwrap())
}

fn largest_difference(a: &Tensor, b: &Tensor) -> f64 {
    (a - b).abs().max().double_value(&[])
}

fn scores_are_those_of_each_row(
    env: &GraphEnv,
    policy: &GraphPolicy<GraphNet>,
    walked: &Trajectories<GraphEnv>,
) {
    let needs = Quantities::from(Quantity::LogZ);
    let scores = score(env, &ColoredGraphReward::Count, policy, walked, needs).unwrap();
    assert!(scores.distinct.0 * 3 < scores.distinct.1, "classes merge: {:?}", scores.distinct);
    let wants = Quantity::LogPf | Quantity::LogPb;
    let by_row = policy.evaluate(env, walked.states(), None, wants).unwrap();
    let rows: Vec<usize> = (0..walked.n_transitions()).collect();
    let log_pf = by_row.pf.unwrap().log_prob(&rows, walked.actions()).unwrap();
    assert!(largest_difference(&scores.log_pf, &log_pf) < 1e-10);
    let inner: Vec<usize> = rows.iter().copied().filter(|&row| !walked.is_exit()[row]).collect();
    let after: Vec<usize> = inner.iter().map(|row| row + 1).collect();
    let undone = gfn::env::Rows::select(walked.reverse_actions(), &inner);
    let log_pb = by_row.pb.unwrap().log_prob(&after, &undone).unwrap();
    let index = Tensor::from_slice(&inner.iter().map(|&row| row as i64).collect::<Vec<_>>());
    assert!(largest_difference(&scores.log_pb.index_select(0, &index), &log_pb) < 1e-10);
}

#[test]
fn scores_do_not_depend_on_who_stands_for_a_class() {
    let env = ColoredGraphs::new(5).unwrap().into_env();
    let policy = policy(&env);
    let sampler = Sampler::new(&env, &policy);
    let walked = sampler.forward(256, &mut Rng::seeded(2)).unwrap();
    scores_are_those_of_each_row(&env, &policy, &walked);
    let back = sampler.backward(walked.terminal_states(), &mut Rng::seeded(3)).unwrap();
    scores_are_those_of_each_row(&env, &policy, &back);
    for (states, actions) in [(walked.states(), walked.actions()), (back.states(), back.actions())] {
        let masks = env.masks(Direction::Forward, states);
        assert!(
            actions.0.iter().enumerate().all(|(row, &slot)| masks.row(row)[slot as usize]),
            "only legal actions"
        );
    }
}

/// Tests the translation of actions between isomorphic states of a batch. Each action is translated from its
/// state to the first state of the isomorphism class. There it must lead to an isomorphic child.
#[test]
fn renamed_actions_lead_to_isomorphic_children() {
    let env = ColoredGraphs::new(5).unwrap().into_env();
    let walked = Sampler::new(&env, &policy(&env)).forward(64, &mut Rng::seeded(4)).unwrap();
    let states = walked.states().clone();
    let classes = env.symmetry().classes(&states).unwrap();
    let rows: Vec<usize> = (0..walked.n_transitions()).collect();
    let renamed = env
        .symmetry()
        .translate(Direction::Forward, &states, &classes, &rows, walked.actions(), false)
        .unwrap();
    let firsts: Vec<usize> =
        rows.iter().map(|&row| classes.grouping.first[classes.grouping.group_of[row]]).collect();
    let mut own = states.clone();
    let mut other = gfn::env::Rows::select(&states, &firsts);
    env.step(Direction::Forward, &mut own, walked.actions()).unwrap();
    env.step(Direction::Forward, &mut other, &renamed).unwrap();
    assert_eq!(gfn::graph::canonical_keys(own.graphs()), gfn::graph::canonical_keys(other.graphs()));
    assert_ne!(renamed, *walked.actions(), "some names differ");
}

#[test]
fn large_or_labelled_graphs_are_left_alone() {
    let large = ColoredGraphs::new(9).unwrap().into_env();
    assert!(large.symmetry().classes(&large.initial(&[0; 3])).is_none());
    let ring = gfn_gym::ring::Ring::new(4, gfn::graph::GraphKind::Directed).unwrap().into_env();
    assert!(ring.symmetry().classes(&ring.initial(&[0; 3])).is_none());
}
