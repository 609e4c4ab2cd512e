//! Tests of a replay buffer with a user-defined priority.

use gfn::Error;
use gfn::examples::Chain;
use gfn::replay::{Draw, Eviction, ReplayBuffer, StoredObject};

use crate::replay_priorities::{check_draws, config, env, walks};

#[test]
fn a_custom_rule_draws_in_proportion_to_its_weights() {
    let rewards = [1.0f64, 2.0, 4.0];
    let n = 3;
    let rule = |stored: StoredObject| stored.log_reward + stored.loss.map_or(0.0, |loss| (1.0 + loss).ln());
    let mut buffer = ReplayBuffer::by_priority(config(n, Eviction::Fifo, Draw::Custom), rule).unwrap();
    buffer.add(&env(), &walks(&[1, 2, 3]), &rewards.map(f64::ln)).unwrap();
    check_draws(&buffer, &rewards);
    buffer.update_losses(&[1], &[3.0]).unwrap();
    check_draws(&buffer, &[1.0, 8.0, 4.0]);
    // A checkpoint doesn't store the function that gives priorities. A new buffer with the same function must
    // draw in the same way after resuming.
    let state = buffer.state(&env()).unwrap();
    let mut again = ReplayBuffer::by_priority(config(n, Eviction::Fifo, Draw::Custom), rule).unwrap();
    again.load_state(&env(), &state).unwrap();
    check_draws(&again, &[1.0, 8.0, 4.0]);
}

#[test]
fn a_rule_and_each_object_once_go_together() {
    let rule = |stored: StoredObject| stored.log_reward;
    let mut buffer = ReplayBuffer::by_priority(config(5, Eviction::Fifo, Draw::Custom), rule)
        .unwrap()
        .without_duplicates();
    buffer.add(&env(), &walks(&[1, 2, 1]), &[0.0, 3f64.ln(), 0.0]).unwrap();
    assert_eq!(buffer.len(), 2);
    check_draws(&buffer, &[1.0, 3.0]);
}

#[test]
fn a_rule_that_gives_no_number_is_refused_and_nothing_is_added() {
    let rule = |stored: StoredObject| {
        if stored.log_reward > 1.0 || stored.loss == Some(7.0) { f64::NAN } else { 0.0 }
    };
    let mut buffer = ReplayBuffer::by_priority(config(5, Eviction::Fifo, Draw::Custom), rule).unwrap();
    let error = buffer.add(&env(), &walks(&[1, 2]), &[0.0, 2.0]).unwrap_err();
    assert!(matches!(error, Error::NonFinite { row: 1, .. }) && buffer.is_empty(), "{error}");
    buffer.add(&env(), &walks(&[1]), &[0.0]).unwrap();
    assert!(buffer.update_losses(&[0], &[7.0]).is_err());
    check_draws(&buffer, &[1.0]);
    assert!(ReplayBuffer::<Chain>::new(config(5, Eviction::Fifo, Draw::Custom)).is_err());
    assert!(ReplayBuffer::<Chain>::by_priority(config(5, Eviction::Fifo, Draw::Uniform), rule).is_err());
}
