//! Rewards under conditions are compared with results of manual calculations.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use gfn::condition::ConditionSource;
use gfn::env::{CachedReward, Reward, Slots};
use gfn::{Error, Result, Rng};
use gfn_extras::condition::{
    Condition, ConditionedReward, Conditioning, Directions, Encoding, Focus, Temperature,
};
use tch::Tensor;

/// Returns a reward R that is given by a list: state `s` has the reward `values[s]`.
fn table(values: &'static [f64]) -> Arc<dyn Reward<Slots> + Send + Sync> {
    Arc::new(move |states: &Slots, _: Option<&Tensor>| -> Result<Vec<f64>> {
        Ok(states.0.iter().map(|&s| values[s as usize].ln()).collect())
    })
}

fn cone() -> Focus {
    Focus { cosine: 0.9, limit: 0.2, ..Focus::new(Directions::Dirichlet { concentration: 1.0 }) }
}

fn two(focus: bool) -> ConditionedReward<Slots> {
    two_rewards_with(focus, [&[1.0, 4.0, 0.0, 3.0], &[3.0, 0.0, 0.0, 4.0]])
}

fn two_rewards_with(focus: bool, values: [&'static [f64]; 2]) -> ConditionedReward<Slots> {
    let number = Encoding::Number;
    let mut conditioning = Conditioning::new(2)
        .unwrap()
        .temperature(Temperature::Uniform { least: 0.0, most: 8.0 }, number)
        .unwrap()
        .preferences(Directions::Dirichlet { concentration: 1.0 }, number)
        .unwrap();
    if focus {
        conditioning = conditioning.focus(cone(), number).unwrap();
    }
    ConditionedReward::new(conditioning, values.map(table).to_vec()).unwrap()
}

fn log_reward_at(
    reward: &ConditionedReward<Slots>,
    state: u32,
    beta: f64,
    w: [f64; 2],
    focus: Option<[f64; 2]>,
) -> f64 {
    let condition = Condition { beta, preferences: w.to_vec(), focus: focus.map(|v| v.to_vec()) };
    let vectors = reward.conditioning().encode(&[condition]).unwrap();
    reward.log_reward(&Slots(vec![state]), Some(&vectors)).unwrap()[0]
}

#[test]
fn sums_and_powers_by_hand() {
    let reward = two(false);
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a}, {b}");
    near(log_reward_at(&reward, 0, 2.0, [0.25, 0.75], None), 2.5f64.powi(2).ln());
    near(log_reward_at(&reward, 1, 0.5, [1.0, 0.0], None), 2f64.ln());
    assert_eq!(log_reward_at(&reward, 1, 1.0, [0.0, 1.0], None), f64::NEG_INFINITY);
    assert_eq!(log_reward_at(&reward, 2, 0.0, [0.5, 0.5], None), 0.0);
    let objectives = reward.objectives(&Slots(vec![3, 2])).unwrap();
    assert!(objectives.values().iter().zip([3.0, 4.0, 0.0, 0.0]).all(|(a, b)| (a - b).abs() < 1e-12));
}

#[test]
fn a_focus_is_a_cone() {
    let reward = two(true);
    // The objectives of state 3 are (3, 4). A goal direction multiplies the reward by a factor that depends
    // on the cosine between objectives and direction. In the direction (3, 4) the factor is 1. In the
    // direction (1, 1) the cosine is 7 / (5 sqrt 2) = 0.98995.
    let along = log_reward_at(&reward, 3, 2.0, [0.5, 0.5], Some([0.3, 0.4]));
    assert!((along - 2.0 * 3.5f64.ln()).abs() < 1e-9, "{along}");
    let cosine = 7.0 / 50f64.sqrt();
    let exponent = 0.2f64.ln() / 0.9f64.ln();
    let beside = log_reward_at(&reward, 3, 2.0, [0.5, 0.5], Some([1.0, 1.0]));
    assert!((beside - 2.0 * (3.5 * f64::powf(cosine, exponent)).ln()).abs() < 1e-9, "{beside}");
    // The objectives of the first object, (3, 4), point too far away from the goal direction (1, 0): they are
    // outside of the cone around it. The objectives of the second object are both 0, so they have no
    // direction. Both objects get the fixed log-reward -75, to which beta isn't applied.
    assert_eq!(log_reward_at(&reward, 3, 2.0, [0.5, 0.5], Some([1.0, 0.0])), -75.0);
    assert_eq!(log_reward_at(&reward, 2, 2.0, [0.5, 0.5], Some([1.0, 1.0])), -75.0);
    // A cosine of 0.9 is the limit of the cone. The factor at this cosine is a setting of the cone, so it
    // must be 0.2.
    let factor = cone().log_factor(0.9).unwrap();
    assert!((factor - 0.2f64.ln()).abs() < 1e-12);
}

#[test]
fn missing_parts_are_reported() {
    let reward = two(false);
    let states = Slots(vec![0, 1]);
    assert!(matches!(reward.log_reward(&states, None), Err(Error::Missing { .. })));
    let vectors =
        reward.conditioning().encode(&reward.conditioning().conditions(3, &mut Rng::seeded(0))).unwrap();
    assert!(matches!(reward.log_reward(&states, Some(&vectors)), Err(Error::Shape { .. })));
    // The two combined rewards don't define rewards of unfinished objects, so their combination doesn't
    // either.
    assert!(reward.partial_log_reward(&states, Some(&vectors)).unwrap().is_none());
    let one = ConditionedReward::new(reward.conditioning().clone(), vec![table(&[1.0])]);
    assert!(matches!(one, Err(Error::Config { .. })));
    let short: Arc<dyn Reward<Slots> + Send + Sync> =
        Arc::new(|_: &Slots, _: Option<&Tensor>| -> Result<Vec<f64>> { Ok(vec![0.0]) });
    let short = ConditionedReward::new(reward.conditioning().clone(), vec![short.clone(), short]).unwrap();
    assert!(matches!(short.objectives(&states), Err(Error::Shape { .. })));
}

/// Tests that an invalid reward is reported for any reward exponent, with and without a goal direction.
#[test]
fn invalid_rewards_are_passed_on() {
    // The invalid rewards are log-rewards of NaN and infinity.
    const NOT_A_NUMBER: &[f64] = &[f64::NAN];
    const INFINITE: &[f64] = &[f64::INFINITY];
    for (focus, bad) in [(true, NOT_A_NUMBER), (true, INFINITE), (false, NOT_A_NUMBER)] {
        let reward = two_rewards_with(focus, [bad, &[1.0]]);
        let direction = focus.then_some([1.0, 1.0]);
        for beta in [0.0, 1.0] {
            let got = log_reward_at(&reward, 0, beta, [0.5, 0.5], direction);
            assert!(got.is_nan() && bad[0].is_nan() || got == bad[0], "{got}");
        }
    }
}

/// Tests a cached reward. A cached reward doesn't support conditions itself, but a conditioned reward can
/// wrap it.
#[test]
fn conditions_weigh_cached_rewards() {
    // The number of cached rewards that a cache checks by repeated calls.
    const COMPARED: usize = 16;
    let n_calls = Arc::new(AtomicUsize::new(0));
    let counter = n_calls.clone();
    let halves = move |states: &Slots, _: Option<&Tensor>| -> Result<Vec<f64>> {
        counter.fetch_add(states.0.len(), Relaxed);
        Ok(states.0.iter().map(|&s| f64::from(s) / 2.0).collect())
    };
    let cached = CachedReward::new(halves, |states: &Slots| states.0.clone(), 8).unwrap();
    let conditioning =
        Conditioning::new(1).unwrap().temperature(Temperature::Constant(2.0), Encoding::Number).unwrap();
    let weighed = ConditionedReward::new(conditioning, vec![Arc::new(cached)]).unwrap();
    let conditions = weighed.conditioning().draw(2, &mut Rng::seeded(0)).unwrap();
    for _ in 0..40 {
        assert_eq!(weighed.log_reward(&Slots(vec![1, 4]), Some(&conditions)).unwrap(), [1.0, 4.0]);
    }
    assert_eq!(n_calls.load(Relaxed), 2 + COMPARED);
}
