//! Tests of small facts that no other test checks. Without these tests, changes of single operators in the
//! library's code would be undetected.

use crate::words::{fresh, trainer, with_flow};
use gfn::distribution::GraphActionCategorical;
use gfn::env::{Direction, Env, Masks};
use gfn::graph::{GraphKind, GraphState, SetEdgeAttr, SetNodeAttr, canonical_key};
use gfn::objective::{
    Advantage, DetailedBalance, MaximumEntropyBackward, Objective, PolicyGradient, ProximalPolicy, Quantity,
    Scores, TrajectoryBalance, TrajectoryLikelihood, WithBackward,
};
use gfn::replay::DataSource;
use tch::Tensor;

#[test]
fn shares_of_a_source_are_as_given() {
    let source = DataSource::new(0.25, 0.5, 0.25).unwrap();
    assert!(source.replay() == 0.5 && source.offline() == 0.25);
    assert!(source.without_replay().replay() == 0.0);
}

#[test]
fn seven_attributes_are_the_most() {
    assert!(SetNodeAttr::new(&[1; 7]).is_ok() && SetEdgeAttr::new(&[1; 7]).is_ok());
    assert!(SetNodeAttr::new(&[1; 8]).is_err() && SetEdgeAttr::new(&[1; 8]).is_err());
}

#[test]
fn keys_tell_directed_graphs_from_undirected_ones() {
    let key = |kind| canonical_key(&GraphState::with_nodes(kind, 2));
    assert_ne!(key(GraphKind::Directed), key(GraphKind::Undirected));
}

#[test]
fn objectives_say_how_often_a_batch_is_used() {
    assert_eq!(ProximalPolicy::default().epochs(), 4);
    assert_eq!(ProximalPolicy { epochs: 2, ..ProximalPolicy::default() }.epochs(), 2);
    assert_eq!((TrajectoryBalance.epochs(), PolicyGradient::new(Advantage::Total).unwrap().epochs()), (1, 1));
    assert_eq!(WithBackward::new(TrajectoryBalance, TrajectoryLikelihood).epochs(), 1);
}

#[test]
fn a_batch_of_no_states_is_empty() {
    let of = |legal: Vec<bool>| {
        GraphActionCategorical::uniform(Masks::dense(Direction::Forward, 2, legal, true).unwrap())
    };
    let none = of(Vec::new());
    let one = of(vec![true, false]);
    assert!(none.is_empty() && none.n_actions().is_empty());
    assert!(!one.is_empty() && one.n_actions() == [1]);
}

/// Checks the residuals of `MaximumEntropyBackward` on a trajectory of two moves and an exit. The initial
/// state has one path, and the next two states are reached by 3 and 12 paths. P_B of the two moves is 1/3 and
/// 1/2.
#[test]
fn numbers_of_paths_are_out_of_balance_by_their_ratio_and_the_step() {
    let log = |p: &[f64]| Tensor::from_slice(p).log();
    let mut scores = Scores::new(vec![0, 3], log(&[0.5; 3]), log(&[1.0 / 3.0, 0.5, 1.0]), log(&[1.0]));
    scores.set(Quantity::LogPaths, log(&[1.0, 3.0])).unwrap();
    scores.set(Quantity::NextLogPaths, log(&[3.0, 12.0])).unwrap();
    let values = MaximumEntropyBackward.residuals(&scores).unwrap().values;
    let expected = log(&[1.0, 2.0]);
    assert!(values.allclose(&expected, 0.0, 1e-12, false), "{values:?}");
}

#[test]
fn log_z_is_the_flow_out_of_the_initial_state() {
    let mut trainer = trainer(with_flow(), Box::new(DetailedBalance::default()), fresh(8)).unwrap();
    // The first step is made before the comparison, because it may set log Z to its estimate.
    trainer.step().unwrap();
    let start = trainer.env().initial(&[0]);
    let estimates =
        trainer.policy().evaluate(trainer.env(), &start, None, Quantity::LogFlow.into()).unwrap().values;
    let log_flow = estimates.get(Quantity::LogFlow).unwrap().double_value(&[0]);
    let stats = trainer.step().unwrap();
    assert!(log_flow != 0.0 && (stats.log_z - log_flow).abs() < 1e-5, "{} of {log_flow}", stats.log_z);
}
