//! Tests of sets that grow by one element at a time.

use gfn::Error;
use gfn_gym::set_addition::{SetAddition, WeightReward};

#[test]
fn sizes_do_not_overflow() {
    let n_states = |n, max, fixed| SetAddition::new(n, max, fixed).unwrap().n_states();
    assert_eq!((n_states(4, 3, false), n_states(5, 2, true)), (Some(15), Some(16)));
    assert_eq!((n_states(63, 63, false), n_states(64, 64, false)), (Some(1 << 63), None));
    assert_eq!(n_states(10_000, 5_000, true), None);
    assert_eq!(SetAddition::new(5, 2, true).unwrap().n_terminal(), Some(10));
    assert!(SetAddition::new(3, 4, false).is_err() && SetAddition::new(3, 0, false).is_err());
}

#[test]
fn senseless_weights_are_refused() {
    let env = SetAddition::new(2, 2, false).unwrap();
    assert!(matches!(WeightReward::new(&env, 1.0, &[1.0]), Err(Error::Shape { .. })));
    for (base, weights) in
        [(0.0, [1.0, 1.0]), (1.0, [-1.0, 1.0]), (1.0, [f64::NAN, 1.0]), (f64::INFINITY, [1.0, 1.0])]
    {
        assert!(matches!(WeightReward::new(&env, base, &weights), Err(Error::Config { .. })));
    }
}
