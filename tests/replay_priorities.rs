//! Tests of draws from a buffer by rewards, losses and ranks, compared with manual calculations. Further
//! tests are of importance weights, distances, conditions, and objects without paths.

use gfn::env::{Slots, VectorStates};
use gfn::examples::{Chain, Positions};
use gfn::nn::{BackwardPolicy, EstimatorsConfig};
use gfn::objective::Quantities;
use gfn::objective::TrajectoryBalance;
use gfn::objective::score;
use gfn::optim::AdamConfig;
use gfn::policy::{Features, KHot, MlpPolicy, MlpPolicyConfig, StateFeatures, UniformPolicy};
use gfn::replay::{DataSource, Diversity, Draw, Eviction, RankBy, ReplayBuffer, ReplayConfig};
use gfn::rollout::{Container, Sampler, Trajectories, Walks};
use gfn::train::{ReplayPath, Trainer, TrainerConfig};
use gfn::{Error, Rng};
use gfn_gym::hypergrid::{HyperGrid, OriginalReward};
use tch::{Device, Kind, Tensor};

pub(crate) fn env() -> Chain {
    Chain::new(100)
}

/// Builds trajectories that reach these positions of a chain by steps of length 1.
pub(crate) fn walks(positions: &[u32]) -> Walks<Chain> {
    let mut actions = Vec::new();
    let mut offsets = vec![0];
    for &x in positions {
        actions.extend((0..x).map(|_| 0));
        actions.push(2);
        offsets.push(actions.len());
    }
    Trajectories::replay(&env(), &Slots(actions), &offsets).unwrap().walks(&env()).unwrap()
}

pub(crate) fn config(capacity: usize, eviction: Eviction, draw: Draw) -> ReplayConfig {
    ReplayConfig { capacity, eviction, draw }
}

/// Builds a buffer that holds the positions 1, 2, 3, ... with these log-rewards.
fn filled_buffer(draw: Draw, log_rewards: &[f64]) -> ReplayBuffer<Chain> {
    let mut buffer = ReplayBuffer::new(config(log_rewards.len(), Eviction::Fifo, draw)).unwrap();
    let positions: Vec<u32> = (1..=log_rewards.len() as u32).collect();
    buffer.add(&env(), &walks(&positions), log_rewards).unwrap();
    buffer
}

fn stored_positions(buffer: &ReplayBuffer<Chain>) -> Vec<u32> {
    buffer.walks().map_or(Vec::new(), |walks| walks.terminal.0)
}

/// Checks that draws are in proportion to `weights`, by a chi-square test with the 99.9th percentile for up
/// to 4 degrees of freedom. Also checks the probabilities that the buffer reports.
pub(crate) fn check_draws(buffer: &ReplayBuffer<Chain>, weights: &[f64]) {
    const N: usize = 20_000;
    let drawn = buffer.draw_entries(N, &mut Rng::seeded(1)).unwrap();
    let total: f64 = weights.iter().sum();
    let mut counts = vec![0.0; weights.len()];
    for (k, &x) in drawn.walks.terminal.0.iter().enumerate() {
        let i = x as usize - 1;
        counts[i] += 1.0;
        assert!((drawn.log_probs[k].exp() - weights[i] / total).abs() < 1e-12, "{weights:?}: {i}");
        assert_eq!(drawn.serials[k], i as u64);
    }
    assert_eq!((drawn.walks.len(), drawn.n_stored), (N, weights.len()));
    let mut chi_square = 0.0;
    for (count, weight) in counts.iter().zip(weights) {
        let expected = N as f64 * weight / total;
        assert!(expected > 0.0 || *count == 0.0);
        chi_square += if expected > 0.0 { (count - expected).powi(2) / expected } else { 0.0 };
    }
    assert!(chi_square < 18.47, "{chi_square}: {counts:?} for {weights:?}");
}

#[test]
fn rewards_draw_by_their_power_far_below_what_exists_as_a_number() {
    let rewards = [1.0f64, 2.0, 4.0, 8.0];
    let logs = rewards.map(f64::ln);
    for offset in [0.0, -1e4, -1e6, 1e4] {
        let shifted = logs.map(|value| value + offset);
        // A log-reward of about 1e6 is rounded to a multiple of about 1e-10. The expected weights are
        // therefore computed from differences of the rounded log-rewards.
        let check = |draw, power: f64| {
            let weights = shifted.map(|value| (power * (value - shifted[0])).exp());
            check_draws(&filled_buffer(draw, &shifted), &weights);
        };
        check(Draw::RewardPrioritised { exponent: 1.0 }, 1.0);
        check(Draw::RewardPrioritised { exponent: 0.5 }, 0.5);
        check(Draw::RewardPrioritised { exponent: 2.0 }, 2.0);
        check(Draw::RewardPrioritised { exponent: 0.0 }, 0.0);
    }
    check_draws(&filled_buffer(Draw::Uniform, &logs), &[1.0; 4]);
    // These log-rewards are 1e4 apart, so all draws must be of the first object.
    check_draws(
        &filled_buffer(Draw::RewardPrioritised { exponent: 1.0 }, &[-1e4, -2e4, -3e4]),
        &[1.0, 0.0, 0.0],
    );
    check_draws(
        &filled_buffer(Draw::RewardPrioritised { exponent: 1e-4 }, &[-1e4, -2e4]),
        &[1.0, (-1f64).exp()],
    );
    for draw in [
        Draw::LossPrioritised { exponent: f64::NAN },
        Draw::RankPrioritised { by: RankBy::Loss, exponent: f64::INFINITY },
        Draw::RankPrioritised { by: RankBy::Loss, exponent: -0.1 },
        Draw::WeightedRanks { by: RankBy::Reward, k: -0.1 },
        Draw::WeightedRanks { by: RankBy::Reward, k: f64::NAN },
    ] {
        let error = ReplayBuffer::<Chain>::new(config(1, Eviction::Fifo, draw)).unwrap_err();
        assert!(matches!(error, Error::Config { setting: "replay exponent", .. }), "{error}");
    }
}

#[test]
fn losses_draw_by_their_power_once_they_are_known() {
    let mut buffer = filled_buffer(Draw::LossPrioritised { exponent: 2.0 }, &[0.0; 4]);
    check_draws(&buffer, &[1.0; 4]);
    // Objects without a known loss count as if they had the largest known loss.
    assert_eq!(buffer.update_losses(&[1, 2], &[-3.0, 1.0]).unwrap(), 2);
    check_draws(&buffer, &[9.0, 9.0, 1.0, 9.0]);
    assert_eq!(buffer.update_losses(&[0, 3, 0], &[7.0, 2.0, 0.5]).unwrap(), 3);
    check_draws(&buffer, &[0.25, 9.0, 1.0, 4.0]);
    // Objects with a tiny loss must keep a positive probability.
    buffer.update_losses(&[0, 1, 2, 3], &[0.0, 1e-6, 1e-9, 0.0]).unwrap();
    check_draws(&buffer, &[1.0; 4]);
    let mut plain = filled_buffer(Draw::LossPrioritised { exponent: 0.5 }, &[0.0; 2]);
    plain.update_losses(&[0, 1], &[1e-4, 4e-4]).unwrap();
    check_draws(&plain, &[1.0, 2.0]);
    // The added object gets the serial number 4, and object 0 is evicted. Serial numbers aren't used again. A
    // loss for number 0 must therefore be ignored, and so must a loss for 77, a number that no object has.
    assert_eq!(buffer.add(&env(), &walks(&[9]), &[0.0]).unwrap(), 1);
    assert_eq!(buffer.update_losses(&[0, 4, 77], &[5.0, 5.0, 5.0]).unwrap(), 1);
    assert_eq!(stored_positions(&buffer), [2, 3, 4, 9]);
    let before = buffer.draw_entries(4, &mut Rng::seeded(0)).unwrap().log_probs;
    let error = buffer.update_losses(&[1, 2], &[1.0, f64::NAN]).unwrap_err();
    assert!(matches!(error, Error::NonFinite { row: 1, .. }), "{error}");
    assert!(matches!(buffer.update_losses(&[1], &[]).unwrap_err(), Error::Shape { .. }));
    assert_eq!(buffer.draw_entries(4, &mut Rng::seeded(0)).unwrap().log_probs, before);
}

/// Checks which losses a buffer gets if a step changes log Z: those before the update, computed from the
/// scores of the batch.
#[test]
fn a_trainer_updates_losses_by_the_log_z_of_the_step() {
    let grid = HyperGrid::new(2, 4).unwrap();
    let mut rng = Rng::seeded(3);
    let env = grid.env();
    let reward = OriginalReward::standard(&grid).unwrap();
    let config = TrainerConfig {
        batch: 8,
        source: DataSource::new(0.0, 1.0, 0.0).unwrap(),
        replay_after: 0,
        replay_path: ReplayPath::Stored,
        adam: AdamConfig { lr: 0.0, log_z_lr: 0.5, ..AdamConfig::default() },
        ..TrainerConfig::default()
    };
    let policy = || {
        let estimators = EstimatorsConfig { initial_log_z: Some(0.0), ..EstimatorsConfig::default() };
        let config =
            MlpPolicyConfig { backward: BackwardPolicy::Uniform, estimators, ..MlpPolicyConfig::default() };
        MlpPolicy::new(&env, KHot::new(2, 4), config, Device::Cpu, Kind::Double, &mut Rng::seeded(7)).unwrap()
    };
    // The buffer holds a single object, which is drawn repeatedly. The loss of this object must be that of
    // its only path.
    let walks = Sampler::new(&env, &UniformPolicy).walks(1, &mut rng).unwrap();
    let path = walks.replay(&env).unwrap();
    let scores = score(&env, &reward, &policy(), &path, Quantities::NONE).unwrap();
    let [log_pf, log_pb, log_reward] = [&scores.log_pf, &scores.log_pb, &scores.log_reward]
        .map(|values| values.sum(Kind::Double).double_value(&[]));
    let draw = Draw::LossPrioritised { exponent: 1.0 };
    let mut buffer =
        ReplayBuffer::new(ReplayConfig { capacity: 100, eviction: Eviction::Fifo, draw }).unwrap();
    buffer.add(&env, &walks, &[log_reward]).unwrap();
    let mut trainer = Trainer::new(env.clone(), reward.clone(), policy(), TrajectoryBalance, config, rng)
        .unwrap()
        .with_replay(buffer);
    let mut log_zs = Vec::new();
    for _ in 0..3 {
        let log_z = trainer.step().unwrap().log_z;
        let state = trainer.replay().unwrap().state(&env).unwrap();
        let losses = state.iter().find(|(name, _)| name == "losses").unwrap();
        let expected = (log_z + log_pf - log_pb - log_reward).powi(2);
        assert!((losses.1.double_value(&[0]) - expected).abs() < 1e-9 * expected, "{expected}: {losses:?}");
        log_zs.push(log_z);
    }
    assert_eq!(log_zs[0], 0.0, "the first step is scored by the log Z that training starts with");
    assert!(log_zs.windows(2).all(|pair| (pair[1] - pair[0]).abs() > 0.1), "log Z must move: {log_zs:?}");
}

#[test]
fn ranks_draw_by_their_place_alone() {
    let by = |by, exponent| Draw::RankPrioritised { by, exponent };
    // The ranks are 3, 1, 4 and 2. The two objects with equal rewards are ordered by age.
    let rewards = [-1e4, 1e9, -1e4, 0.0];
    check_draws(&filled_buffer(by(RankBy::Reward, 1.0), &rewards), &[1.0 / 3.0, 1.0, 0.25, 0.5]);
    check_draws(&filled_buffer(by(RankBy::Reward, 2.0), &rewards), &[1.0 / 9.0, 1.0, 1.0 / 16.0, 0.25]);
    check_draws(&filled_buffer(by(RankBy::Reward, 0.0), &rewards), &[1.0; 4]);
    // With n = 4 objects and k = 0.5, ranks are shifted by n k = 2.
    let shifted = |k| Draw::WeightedRanks { by: RankBy::Reward, k };
    check_draws(&filled_buffer(shifted(0.5), &rewards), &[0.2, 1.0 / 3.0, 1.0 / 6.0, 0.25]);
    check_draws(&filled_buffer(shifted(0.0), &rewards), &[1.0 / 3.0, 1.0, 0.25, 0.5]);
    let mut buffer = filled_buffer(by(RankBy::Loss, 1.0), &rewards);
    check_draws(&buffer, &[1.0, 0.5, 1.0 / 3.0, 0.25]);
    // The ranks begin with the objects without a known loss, ordered by age (objects 1 and 3). The other
    // objects follow, ordered by loss (objects 2 and 0).
    buffer.update_losses(&[0, 2], &[0.1, 1e6]).unwrap();
    check_draws(&buffer, &[0.25, 1.0, 1.0 / 3.0, 0.5]);
}

/// A feature that is the position itself.
struct Place;

impl StateFeatures<Positions> for Place {
    fn width(&self) -> usize {
        1
    }
    fn encode(&self, states: &Positions) -> Features {
        Features::Dense(states.0.iter().map(|&x| x as f32).collect())
    }
}

fn add(buffer: &mut ReplayBuffer<Chain>, objects: &[(u32, f64)]) -> usize {
    let (positions, log_rewards): (Vec<u32>, Vec<f64>) = objects.iter().copied().unzip();
    buffer.add(&env(), &walks(&positions), &log_rewards).unwrap()
}

#[test]
fn a_full_diverse_buffer_refuses_what_is_near() {
    let config = config(3, Eviction::BestReward, Draw::Uniform);
    let make =
        |cutoff| ReplayBuffer::new(config).unwrap().diverse(Diversity::new(cutoff, 1.0, Place).unwrap());
    let mut buffer = make(2.0);
    assert_eq!(add(&mut buffer, &[(10, 1.0), (10, 1.0), (11, 0.0)]), 3, "not full yet: anything comes in");
    assert_eq!(
        add(&mut buffer, &[(12, 9.0), (14, 8.0), (8, 9.0)]),
        1,
        "14 alone is further than 2 from 10 and 11"
    );
    assert_eq!(stored_positions(&buffer), [10, 10, 14], "the least has left");
    // With `Eviction::BestReward`, the best objects of a batch must be added first. Therefore 20 is added,
    // and 21 and 18 are refused, because their distance from 20 isn't above the cutoff of 2.
    assert_eq!(add(&mut buffer, &[(21, 5.0), (18, 6.0), (20, 7.0), (23, 4.0)]), 2);
    assert_eq!(stored_positions(&buffer), [14, 20, 23]);
    assert_eq!(add(&mut buffer, &[(30, 3.0)]), 0, "far away, and no better than the least");
    // With a cutoff of 0, only objects with equal features are refused.
    let mut buffer = make(0.0);
    add(&mut buffer, &[(1, 0.0), (2, 0.0), (3, 0.0)]);
    assert_eq!(add(&mut buffer, &[(3, 5.0), (4, 5.0), (4, 5.0)]), 1);
    // With `Eviction::Fifo`, the objects of a batch must be added in the order in which they are passed.
    let fifo = ReplayConfig { eviction: Eviction::Fifo, ..config };
    let mut buffer = ReplayBuffer::new(fifo).unwrap().diverse(Diversity::new(2.0, 2.0, Place).unwrap());
    add(&mut buffer, &[(1, 0.0), (5, 0.0), (9, 0.0)]);
    assert_eq!(add(&mut buffer, &[(3, 9.0), (13, 0.0), (14, 9.0)]), 1);
    assert_eq!(stored_positions(&buffer), [5, 9, 13]);
}

/// Checks the distance between the points (1, 2) and (0, 0): it is 3 for p = 1, the root of 5 for p = 2, the
/// cube root of 9 for p = 3, and 2 for an infinite p.
#[test]
fn distances_are_p_norms() {
    let env = HyperGrid::new(2, 8).unwrap().env();
    let to = |points: &[[u16; 2]]| {
        let objects = VectorStates::from_rows(points.iter().copied());
        let back = Sampler::new(&env, &UniformPolicy).backward(&objects, &mut Rng::seeded(0)).unwrap();
        back.walks(&env).unwrap()
    };
    struct Point;
    impl StateFeatures<VectorStates> for Point {
        fn width(&self) -> usize {
            2
        }
        fn encode(&self, states: &VectorStates) -> Features {
            Features::Dense(states.values().iter().map(|&x| f32::from(x)).collect())
        }
    }
    let config = config(1, Eviction::Fifo, Draw::Uniform);
    let stays = |diversity| {
        let mut buffer = ReplayBuffer::new(config).unwrap().diverse(diversity);
        buffer.add(&env, &to(&[[0, 0]]), &[0.0]).unwrap();
        buffer.add(&env, &to(&[[1, 2]]), &[0.0]).unwrap() == 1
    };
    let root = 5f64.sqrt();
    let cube = 9f64.cbrt();
    for (p, distance) in [(1.0, 3.0), (2.0, root), (3.0, cube), (f64::INFINITY, 2.0)] {
        assert!(stays(Diversity::new(distance - 1e-9, p, Point).unwrap()), "{p}");
        assert!(!stays(Diversity::new(distance + 1e-9, p, Point).unwrap()), "{p}");
    }
    // The two points differ in both coordinates. In the one-hot encoding, each coordinate that differs
    // changes two entries by 1, so the distance for p = 1 is 4.
    assert!(stays(Diversity::new(3.9, 1.0, KHot::new(2, 8)).unwrap()));
    assert!(!stays(Diversity::new(4.0, 1.0, KHot::new(2, 8)).unwrap()));
    for (cutoff, p) in [(-1.0, 1.0), (f64::INFINITY, 1.0), (f64::NAN, 1.0), (1.0, 0.5), (1.0, f64::NAN)] {
        let error = Diversity::new(cutoff, p, Point).err().unwrap();
        assert!(matches!(error, Error::Config { .. }), "{cutoff} {p}: {error}");
    }
}

fn conditioned_walks(positions: &[u32], conditions: &[f32]) -> Walks<Chain> {
    walks(positions)
        .with_conditions(Tensor::from_slice(conditions).view([positions.len() as i64, -1]))
        .unwrap()
}

#[test]
fn conditions_are_kept_drawn_and_distinguished() {
    let settings = config(10, Eviction::Fifo, Draw::Uniform);
    let mut buffer = ReplayBuffer::distinct(settings).unwrap();
    let log_rewards = [0.0; 4];
    let first = conditioned_walks(&[1, 1, 2, 1], &[0.5, 0.25, 0.5, 0.5]);
    assert_eq!(buffer.add(&env(), &first, &log_rewards).unwrap(), 3, "1 is there under two conditions");
    assert_eq!(buffer.add(&env(), &conditioned_walks(&[2, 1], &[0.1, 0.5]), &[0.0; 2]).unwrap(), 1);
    assert_eq!(
        buffer.add(&env(), &conditioned_walks(&[3, 3], &[0.0, -0.0]), &[0.0; 2]).unwrap(),
        1,
        "there is one zero"
    );
    let all = buffer.walks().unwrap();
    assert_eq!(all.terminal.0, [1, 1, 2, 2, 3]);
    let conditions = all.conditions().unwrap();
    assert_eq!((conditions.kind(), conditions.size()), (Kind::Float, vec![5, 1]));
    assert_eq!(Vec::<f32>::try_from(conditions.view(-1)).unwrap(), [0.5, 0.25, 0.5, 0.1, 0.0], "bit for bit");
    let drawn = buffer.draw(200, &mut Rng::seeded(0)).unwrap();
    let replayed = drawn.replay(&env()).unwrap();
    let conditions = Vec::<f32>::try_from(replayed.conditions().unwrap().view(-1)).unwrap();
    let stored = [(1, 0.5), (1, 0.25), (2, 0.5), (2, 0.1), (3, 0.0)];
    let pairs: Vec<(u32, f32)> = replayed.terminal_states().0.iter().copied().zip(conditions).collect();
    assert!(pairs.iter().all(|pair| stored.contains(pair)) && stored.iter().all(|pair| pairs.contains(pair)));
    // An object is a duplicate only if its condition is equal, too. After the eviction of an object with
    // condition 1, the object can be added again with this condition.
    let mut small = ReplayBuffer::distinct(ReplayConfig { capacity: 2, ..settings }).unwrap();
    small.add(&env(), &conditioned_walks(&[1, 1, 1], &[1.0, 2.0, 3.0]), &[0.0; 3]).unwrap();
    assert_eq!(small.add(&env(), &conditioned_walks(&[1, 1], &[2.0, 1.0]), &[0.0; 2]).unwrap(), 1);
    // Distances between objects must include their conditions.
    let near = Diversity::new(1.0, 1.0, Place).unwrap();
    let mut diverse = ReplayBuffer::new(ReplayConfig { capacity: 1, ..settings }).unwrap().diverse(near);
    diverse.add(&env(), &conditioned_walks(&[1], &[0.0]), &[0.0]).unwrap();
    assert_eq!(diverse.add(&env(), &conditioned_walks(&[1], &[0.9]), &[0.0]).unwrap(), 0);
    assert_eq!(diverse.add(&env(), &conditioned_walks(&[1], &[1.1]), &[0.0]).unwrap(), 1);
}

#[test]
fn conditions_that_do_not_go_with_those_held_are_refused() {
    let settings = config(10, Eviction::Fifo, Draw::Uniform);
    let mut buffer = ReplayBuffer::new(settings).unwrap();
    buffer.add(&env(), &walks(&[1]), &[0.0]).unwrap();
    let error = buffer.add(&env(), &conditioned_walks(&[1], &[0.0]), &[0.0]).unwrap_err();
    assert!(
        matches!(error, Error::Missing { .. }) && error.to_string().contains("conditions on both"),
        "{error}"
    );
    let mut buffer = ReplayBuffer::new(settings).unwrap();
    buffer.add(&env(), &conditioned_walks(&[1], &[0.0, 1.0]), &[0.0]).unwrap();
    assert!(matches!(buffer.add(&env(), &walks(&[1]), &[0.0]).unwrap_err(), Error::Missing { .. }));
    assert!(matches!(
        buffer.add(&env(), &conditioned_walks(&[1], &[0.0]), &[0.0]).unwrap_err(),
        Error::Shape { .. }
    ));
    let error =
        buffer.add(&env(), &conditioned_walks(&[1, 2], &[0.0, 1.0, 2.0, f32::NAN]), &[0.0; 2]).unwrap_err();
    assert!(matches!(error, Error::NonFinite { what: "condition", row: 1, .. }), "{error}");
    assert_eq!(buffer.len(), 1);
    assert_eq!(buffer.walks().unwrap().conditions().unwrap().size(), [1, 2]);
}

#[test]
fn terminal_states_alone_are_walked_to_anew() {
    let env = env();
    let mut rng = Rng::seeded(5);
    let settings = config(6, Eviction::BestReward, Draw::RewardPrioritised { exponent: 1.0 });
    let mut whole = ReplayBuffer::distinct(settings).unwrap();
    let mut ends = ReplayBuffer::distinct(settings).unwrap().terminal_only();
    assert!(whole.keeps_paths() && !ends.keeps_paths());
    for _ in 0..20 {
        let walks = Sampler::new(&env, &UniformPolicy).walks(8, &mut rng).unwrap();
        let log_rewards: Vec<f64> = walks.terminal.0.iter().map(|&x| f64::from(x % 7)).collect();
        assert_eq!(
            ends.add(&env, &walks, &log_rewards).unwrap(),
            whole.add(&env, &walks, &log_rewards).unwrap()
        );
    }
    assert_eq!(stored_positions(&ends), stored_positions(&whole));
    assert!(ends.log_rewards().eq(whole.log_rewards()));
    let from_ends = ends.draw(30, &mut Rng::seeded(1)).unwrap();
    let from_whole = whole.draw(30, &mut Rng::seeded(1)).unwrap();
    assert_eq!(from_ends.terminal, from_whole.terminal);
    assert!(from_ends.actions.0.is_empty() && !from_ends.has_paths() && from_whole.has_paths());
    let error = from_ends.replay(&env).unwrap_err();
    assert!(
        matches!(error, Error::Missing { .. }) && error.to_string().contains("backward trajectories"),
        "{error}"
    );
    let back = Sampler::new(&env, &UniformPolicy).backward(&from_ends.terminal, &mut rng).unwrap();
    assert_eq!(back.terminal_states(), &from_ends.terminal);
    // Objects without paths must be refused by a buffer that stores paths. A buffer of terminal states
    // accepts them.
    let settings = ReplayConfig { eviction: Eviction::Fifo, ..settings };
    let mut plain = ReplayBuffer::new(settings).unwrap();
    let error = plain.add(&env, &from_ends, &[0.0; 30]).unwrap_err();
    assert!(matches!(error, Error::Missing { .. }) && error.to_string().contains("terminal_only"), "{error}");
    let mut ends = ReplayBuffer::new(settings).unwrap().terminal_only();
    assert_eq!(ends.add(&env, &from_ends, &[0.0; 30]).unwrap(), 30);
    // A buffer that holds paths can be converted to a buffer of terminal states later.
    let late = whole.terminal_only();
    assert!(!late.draw(3, &mut rng).unwrap().has_paths());
}
