//! Tests of the replay buffer: storage, eviction, draws, and checkpoints.

use gfn::env::{EnumerableEnv, Rows, Slots};
use gfn::examples::{Chain, Positions};
use gfn::graph::GraphEnv;
use gfn::policy::UniformPolicy;
use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::rollout::Sampler;
use gfn::rollout::{Trajectories, Walks};
use gfn::{Error, Rng};
use gfn_gym::colored_graphs::ColoredGraphs;

const UNIFORM: Draw = Draw::Uniform;

/// Builds trajectories that reach these positions of a chain by steps of length 1.
fn walks_to(positions: &[u32]) -> Walks<Chain> {
    let mut actions = Vec::new();
    let mut offsets = vec![0];
    for &x in positions {
        actions.extend((0..x).map(|_| 0));
        actions.push(2);
        offsets.push(actions.len());
    }
    Trajectories::replay(&env(), &Slots(actions), &offsets).unwrap().walks(&env()).unwrap()
}

fn env() -> Chain {
    Chain::new(100)
}

fn buffer(capacity: usize, eviction: Eviction, draw: Draw) -> ReplayBuffer<Chain> {
    ReplayBuffer::new(ReplayConfig { capacity, eviction, draw }).unwrap()
}

/// Adds objects with these log-rewards to a buffer. Returns the number of objects that the buffer kept.
fn add(buffer: &mut ReplayBuffer<Chain>, objects: &[(u32, f64)]) -> usize {
    let (positions, log_rewards): (Vec<u32>, Vec<f64>) = objects.iter().copied().unzip();
    buffer.add(&env(), &walks_to(&positions), &log_rewards).unwrap()
}

/// Returns the positions and log-rewards of the stored objects, in the order of the buffer.
fn stored_objects(buffer: &ReplayBuffer<Chain>) -> Vec<(u32, f64)> {
    buffer
        .walks()
        .map_or(Vec::new(), |walks| walks.terminal.0.into_iter().zip(buffer.log_rewards()).collect())
}

fn rewards(buffer: &ReplayBuffer<Chain>) -> Vec<f64> {
    buffer.log_rewards().collect()
}

#[test]
fn first_in_first_out_keeps_the_newest() {
    let mut buffer = buffer(3, Eviction::Fifo, UNIFORM);
    assert!(buffer.is_empty());
    assert_eq!(add(&mut buffer, &[(1, 9.0), (2, 1.0), (1, 9.0)]), 3);
    assert_eq!(stored_objects(&buffer), [(1, 9.0), (2, 1.0), (1, 9.0)], "an object may be there twice");
    assert_eq!(add(&mut buffer, &[(3, -5.0), (4, -6.0)]), 2);
    assert_eq!(stored_objects(&buffer), [(1, 9.0), (3, -5.0), (4, -6.0)]);
}

#[test]
fn best_reward_keeps_the_best_and_of_equals_the_oldest() {
    let mut buffer = buffer(3, Eviction::BestReward, UNIFORM);
    assert_eq!(add(&mut buffer, &[(1, 0.5), (2, -2.0), (3, -1.0)]), 3);
    assert_eq!(add(&mut buffer, &[(4, -2.0), (5, -3.0)]), 0, "no better than the least");
    assert_eq!(rewards(&buffer), [0.5, -2.0, -1.0]);
    assert_eq!(add(&mut buffer, &[(6, 0.0)]), 1);
    assert_eq!(stored_objects(&buffer), [(1, 0.5), (3, -1.0), (6, 0.0)], "-2 has left, below -1 and 0");
    assert_eq!(add(&mut buffer, &[(7, -1.0), (8, 3.0), (9, 0.5)]), 2);
    assert_eq!(stored_objects(&buffer), [(1, 0.5), (8, 3.0), (9, 0.5)]);
    assert_eq!(add(&mut buffer, &[(10, 0.6)]), 1);
    assert_eq!(
        stored_objects(&buffer),
        [(1, 0.5), (8, 3.0), (10, 0.6)],
        "of the two of 0.5 the newer has left"
    );
}

#[test]
fn distinct_buffers_hold_each_object_once_and_forget_what_left() {
    for eviction in [Eviction::Fifo, Eviction::BestReward] {
        let config = ReplayConfig { capacity: 2, eviction, draw: UNIFORM };
        let mut buffer = ReplayBuffer::distinct(config).unwrap();
        assert_eq!(add(&mut buffer, &[(1, 0.0), (1, 0.0), (2, 1.0), (1, 0.0)]), 2);
        assert_eq!(stored_objects(&buffer), [(1, 0.0), (2, 1.0)]);
        assert_eq!(add(&mut buffer, &[(3, 2.0), (2, 1.0)]), 1);
        assert_eq!(stored_objects(&buffer), [(2, 1.0), (3, 2.0)], "1 was the oldest, and the worst");
        assert_eq!(add(&mut buffer, &[(1, 5.0)]), 1, "{eviction:?}: what left may come again");
        assert_eq!(stored_objects(&buffer), [(3, 2.0), (1, 5.0)]);
        // An object that was refused because of its reward must not be remembered as a duplicate.
        if eviction == Eviction::BestReward {
            assert_eq!(add(&mut buffer, &[(9, 1.0)]), 0);
            assert_eq!(add(&mut buffer, &[(9, 9.0)]), 1);
        }
    }
}

#[test]
fn isomorphic_graphs_are_one_object() {
    let env = ColoredGraphs::new(4).unwrap().into_env();
    let trajectories = Sampler::new(&env, &UniformPolicy).forward(400, &mut Rng::seeded(0)).unwrap();
    let walks = trajectories.walks(&env).unwrap();
    let mut keys = env.keys(&walks.terminal);
    keys.sort();
    keys.dedup();
    let labelled = walks.terminal.group().first.len();
    assert!(keys.len() < labelled, "{} classes of {labelled} labelled graphs", keys.len());
    let config = ReplayConfig { capacity: 1000, eviction: Eviction::Fifo, draw: UNIFORM };
    let mut buffer = ReplayBuffer::distinct(config).unwrap();
    let log_rewards = vec![0.0; walks.len()];
    assert_eq!(buffer.add(&env, &walks, &log_rewards).unwrap(), keys.len());
    assert_eq!(buffer.add(&env, &walks, &log_rewards).unwrap(), 0);
    let mut plain = ReplayBuffer::new(config).unwrap();
    assert_eq!(plain.add(&env, &walks, &log_rewards).unwrap(), 400);
}

/// Draws `n` objects from a buffer. Returns the shares of the positions 1, 2 and 3 among the draws.
fn draw_shares(buffer: &ReplayBuffer<Chain>, n: usize) -> Vec<f64> {
    let drawn = buffer.draw(n, &mut Rng::seeded(4)).unwrap();
    assert_eq!(drawn.len(), n);
    let Positions(positions) = drawn.terminal;
    (1..=3).map(|x| positions.iter().filter(|&&position| position == x).count() as f64 / n as f64).collect()
}

fn close(shares: &[f64], expected: &[f64]) {
    // The bound is at least four standard deviations of a share in 20,000 draws.
    assert!(shares.iter().zip(expected).all(|(a, b)| (a - b).abs() < 0.015), "{shares:?}, not {expected:?}");
}

#[test]
fn draws_are_uniform_or_in_proportion_to_a_power_of_the_reward() {
    let of = |draw, log_rewards: [f64; 3]| {
        let mut buffer = buffer(3, Eviction::Fifo, draw);
        let objects: Vec<(u32, f64)> = (1..=3).zip(log_rewards).collect();
        add(&mut buffer, &objects);
        draw_shares(&buffer, 20_000)
    };
    let third = [1.0 / 3.0; 3];
    let by = |exponent| Draw::RewardPrioritised { exponent };
    let weights = [0.0, 2f64.ln(), 5f64.ln()];
    close(&of(UNIFORM, weights), &third);
    close(&of(by(0.0), weights), &third);
    close(&of(by(1.0), weights), &[0.125, 0.25, 0.625]);
    close(&of(by(2.0), weights), &[1.0 / 30.0, 4.0 / 30.0, 25.0 / 30.0]);
    close(&of(by(-1.0), weights), &[10.0 / 17.0, 5.0 / 17.0, 2.0 / 17.0]);
    // Each offset is added to all log-rewards. The rewards themselves would then overflow or underflow f64,
    // so the buffer must compare logarithms.
    for offset in [-1e5, 1e5] {
        close(&of(by(1.0), weights.map(|w| w + offset)), &[0.125, 0.25, 0.625]);
    }
    assert_eq!(of(by(1.0), [-1e6, 0.0, -800.0]), [0.0, 1.0, 0.0]);
    close(&of(by(1.0), [-1e6, -1e6, -1e9]), &[0.5, 0.5, 0.0]);
    close(&of(by(1e-3), [-1000.0, 0.0, 0.0]), &[0.155, 0.4225, 0.4225]);
}

#[test]
fn a_buffer_of_nothing_is_refused() {
    let config = ReplayConfig { capacity: 0, eviction: Eviction::Fifo, draw: UNIFORM };
    for made in [ReplayBuffer::<Chain>::new(config), ReplayBuffer::distinct(config)] {
        let error = made.unwrap_err();
        assert!(matches!(error, Error::Config { setting: "replay capacity", .. }), "{error}");
        assert_eq!(error.to_string(), "replay capacity is 0, expected at least 1");
    }
    let error = buffer(1, Eviction::Fifo, UNIFORM).draw(1, &mut Rng::seeded(0)).unwrap_err();
    assert!(matches!(error, Error::Missing { .. }) && error.to_string().contains("prefill"), "{error}");
}

#[test]
fn the_state_brings_back_what_was_held_and_what_comes_next() {
    let env = ColoredGraphs::new(5).unwrap().into_env();
    for eviction in [Eviction::Fifo, Eviction::BestReward] {
        let config = ReplayConfig { capacity: 50, eviction, draw: Draw::RewardPrioritised { exponent: 0.5 } };
        let mut first = ReplayBuffer::distinct(config).unwrap();
        let mut second = ReplayBuffer::distinct(config).unwrap();
        second.load_state(&env, &first.state(&env).unwrap()).unwrap();
        assert!(second.is_empty(), "an empty buffer comes back, too");
        let mut rng = Rng::seeded(1);
        let mut fill = |buffers: &mut [&mut ReplayBuffer<GraphEnv>], n| {
            let walks = Sampler::new(&env, &UniformPolicy).walks(n, &mut rng).unwrap();
            let log_rewards: Vec<f64> = walks
                .terminal
                .graphs()
                .iter()
                .map(|g| f64::from((g.n_nodes() * g.n_edges()) as u32 % 5))
                .collect();
            for buffer in buffers {
                buffer.add(&env, &walks, &log_rewards).unwrap();
            }
        };
        fill(&mut [&mut first], 400);
        assert_eq!(first.len(), 50);
        second.load_state(&env, &first.state(&env).unwrap()).unwrap();
        let tensors = |buffer: &ReplayBuffer<GraphEnv>| {
            buffer.state(&env).unwrap().into_iter().map(|(_, t)| t).collect::<Vec<_>>()
        };
        assert_eq!(tensors(&first), tensors(&second), "{eviction:?}");
        fill(&mut [&mut first, &mut second], 400);
        assert_eq!(tensors(&first), tensors(&second), "{eviction:?}: evictions go on as before");
        let [a, b] = [&first, &second].map(|buffer| buffer.draw(20, &mut Rng::seeded(2)).unwrap());
        assert_eq!((a.actions, a.offsets, a.terminal), (b.actions, b.offsets, b.terminal), "{eviction:?}");
    }
}
