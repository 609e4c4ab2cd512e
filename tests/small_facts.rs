//! Small facts that nothing else says: mutants of these lines lived (`scripts/mutants.py`).

use gfn::distribution::GraphActionCategorical;
use gfn::env::{Direction, Masks};
use gfn::graph::{SetEdgeAttr, SetNodeAttr};
use gfn::objective::{
    Advantage, Objective, PolicyGradient, ProximalPolicy, TrajectoryBalance, TrajectoryLikelihood, WithBackward,
};
use gfn::replay::DataSource;

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
fn objectives_say_how_often_a_batch_is_used() {
    assert_eq!(ProximalPolicy::default().epochs(), 4);
    assert_eq!(ProximalPolicy { epochs: 2, ..ProximalPolicy::default() }.epochs(), 2);
    assert_eq!((TrajectoryBalance.epochs(), PolicyGradient::new(Advantage::Total).unwrap().epochs()), (1, 1));
    assert_eq!(WithBackward::new(TrajectoryBalance, TrajectoryLikelihood).epochs(), 1);
}

#[test]
fn a_batch_of_no_states_is_empty() {
    let of =
        |legal: Vec<bool>| GraphActionCategorical::uniform(Masks::dense(Direction::Forward, 2, legal, true).unwrap());
    let (none, one) = (of(Vec::new()), of(vec![true, false]));
    assert!(none.is_empty() && none.n_actions().is_empty());
    assert!(!one.is_empty() && one.n_actions() == [1]);
}
