//! Tests that compare draws from a buffer with sums and sorts of a plain list of the same objects, and tests
//! of the cost of draws from large buffers.

use std::time::{Duration, Instant};

use gfn::Rng;
use gfn::env::Slots;
use gfn::examples::{Chain, Positions};
use gfn::policy::{Features, StateFeatures};
use gfn::replay::{Diversity, Draw, Eviction, RankBy, ReplayBuffer, ReplayConfig};
use gfn::rollout::{Trajectories, Walks};

fn env() -> Chain {
    Chain::new(100)
}

/// Builds `n` trajectories that end at the positions 1 to 8 of a chain, in turn.
fn walks(n: usize) -> Walks<Chain> {
    walks_to((0..n).map(|k| k % 8 + 1))
}

fn walks_to(positions: impl Iterator<Item = usize>) -> Walks<Chain> {
    let mut actions = Vec::new();
    let mut offsets = vec![0];
    for position in positions {
        actions.extend(std::iter::repeat_n(0, position));
        actions.push(2);
        offsets.push(actions.len());
    }
    Trajectories::replay(&env(), &Slots(actions), &offsets).unwrap().walks(&env()).unwrap()
}

/// An object of the plain list with which the buffer is compared: its serial number, its log-reward, and its
/// loss if it is known.
type Item = (u64, f64, Option<f64>);

/// Computes the weight with which `draw` must draw each object of `list`, directly from the definition of
/// `draw`.
fn weights(list: &[Item], draw: Draw) -> Vec<f64> {
    let by_rank = |by: RankBy, weight: &dyn Fn(f64) -> f64| {
        let value = |item: &Item| if by == RankBy::Reward { item.1 } else { item.2.unwrap_or(f64::INFINITY) };
        let mut order: Vec<usize> = (0..list.len()).collect();
        order.sort_by(|&i, &j| value(&list[j]).total_cmp(&value(&list[i])));
        let mut out = vec![0.0; list.len()];
        for (k, &i) in order.iter().enumerate() {
            out[i] = weight((k + 1) as f64);
        }
        out
    };
    match draw {
        Draw::Uniform => vec![1.0; list.len()],
        Draw::RewardPrioritised { exponent } => {
            let greatest = list.iter().map(|item| exponent * item.1).fold(f64::NEG_INFINITY, f64::max);
            list.iter().map(|item| (exponent * item.1 - greatest).exp()).collect()
        }
        Draw::LossPrioritised { exponent } => {
            let unvisited = list.iter().filter_map(|item| item.2).reduce(f64::max).unwrap_or(1.0);
            list.iter().map(|item| item.2.unwrap_or(unvisited).max(1e-6).powf(exponent)).collect()
        }
        Draw::RankPrioritised { by, exponent } => by_rank(by, &|rank| rank.powf(-exponent)),
        Draw::WeightedRanks { by, k } => by_rank(by, &|rank| 1.0 / (k * list.len() as f64 + rank)),
        Draw::Custom => list.iter().map(|item| item.1.exp()).collect(),
    }
}

/// Adds and evicts random objects, in a buffer and in a plain list, and draws from both. After each batch,
/// the buffer's probabilities must equal those that are computed from the list. Unless draws are by rank, the
/// drawn objects themselves must be equal, too, because buffer and list then hold the objects in the same
/// order, by age.
fn check_against_list(eviction: Eviction, draw: Draw) {
    const CAPACITY: usize = 60;
    let mut rng = Rng::seeded(7);
    let mut buffer = ReplayBuffer::new(ReplayConfig { capacity: CAPACITY, eviction, draw }).unwrap();
    let mut list: Vec<Item> = Vec::new();
    let mut added = 0;
    for _ in 0..60 {
        // The log-rewards have few different values, so that some are equal.
        let log_rewards: Vec<f64> = (0..7).map(|_| -1e4 + rng.below(9) as f64).collect();
        buffer.add(&env(), &walks(7), &log_rewards).unwrap();
        for log_reward in log_rewards {
            if list.len() == CAPACITY {
                let least = list.iter().map(|item| item.1).fold(f64::INFINITY, f64::min);
                if eviction == Eviction::BestReward && log_reward <= least {
                    continue;
                }
                let newest_least = list.iter().rposition(|item| item.1 == least).unwrap();
                list.remove(if eviction == Eviction::Fifo { 0 } else { newest_least });
            }
            list.push((added, log_reward, None));
            added += 1;
        }
        let weights = weights(&list, draw);
        let total: f64 = weights.iter().sum();
        let mut again = rng.clone();
        let drawn = buffer.draw_entries(20, &mut rng).unwrap();
        for (k, &serial) in drawn.serials.iter().enumerate() {
            let i = list.binary_search_by_key(&serial, |item| item.0).unwrap();
            assert_eq!(drawn.log_rewards[k], list[i].1);
            assert!((drawn.log_probs[k].exp() - weights[i] / total).abs() < 1e-12, "{eviction:?} {draw:?}");
            let by_age = match draw {
                Draw::Uniform => again.below(list.len()),
                _ => {
                    let u = again.uniform() * total;
                    let running = weights.iter().scan(0.0, |sum, weight| {
                        *sum += weight;
                        Some(*sum)
                    });
                    running.take_while(|sum| *sum <= u).count()
                }
            };
            let ranks = matches!(draw, Draw::RankPrioritised { .. } | Draw::WeightedRanks { .. });
            assert!(ranks || by_age == i, "{eviction:?} {draw:?}: {by_age}, not {i}");
        }
        let losses: Vec<f64> = (0..20).map(|_| f64::from(rng.below(5) as u32)).collect();
        assert_eq!(buffer.update_losses(&drawn.serials, &losses).unwrap(), 20);
        for (serial, &loss) in drawn.serials.iter().zip(&losses) {
            let i = list.binary_search_by_key(serial, |item| item.0).unwrap();
            list[i].2 = Some(loss);
        }
    }
}

const DRAWS: [Draw; 8] = [
    Draw::Uniform,
    Draw::RewardPrioritised { exponent: 0.5 },
    Draw::LossPrioritised { exponent: 0.6 },
    Draw::LossPrioritised { exponent: -0.6 },
    Draw::RankPrioritised { by: RankBy::Reward, exponent: 1.0 },
    Draw::RankPrioritised { by: RankBy::Loss, exponent: 0.7 },
    Draw::WeightedRanks { by: RankBy::Reward, k: 0.01 },
    Draw::WeightedRanks { by: RankBy::Loss, k: 0.3 },
];

#[test]
fn draws_are_those_of_a_list_that_is_summed_anew() {
    for eviction in [Eviction::Fifo, Eviction::BestReward] {
        for draw in DRAWS {
            check_against_list(eviction, draw);
        }
    }
}

/// Returns the time of the fastest of a few rounds. A round adds a batch to a buffer of `held` objects, draws
/// a batch and updates its losses.
fn round(held: usize, eviction: Eviction, draw: Draw) -> Duration {
    let mut rng = Rng::seeded(1);
    let mut buffer = ReplayBuffer::new(ReplayConfig { capacity: held, eviction, draw }).unwrap();
    let batch = walks(64);
    let mut rewards = |high: f64| -> Vec<f64> { (0..64).map(|_| high + rng.normal()).collect() };
    while buffer.len() < held {
        buffer.add(&env(), &batch, &rewards(0.0)).unwrap();
    }
    let rewards: Vec<Vec<f64>> = (0..12).map(|_| rewards(2.0)).collect();
    let times = rewards.iter().map(|rewards| {
        let started = Instant::now();
        buffer.add(&env(), &batch, rewards).unwrap();
        let drawn = buffer.draw_entries(64, &mut rng).unwrap();
        buffer.update_losses(&drawn.serials, &drawn.log_rewards).unwrap();
        started.elapsed()
    });
    times.min().unwrap()
}

/// Checks that no operation passes over all objects: with a hundred times as many objects, a round may take a
/// few times as long, but not a hundred times.
#[test]
fn no_draw_and_no_eviction_passes_over_all_objects() {
    for eviction in [Eviction::Fifo, Eviction::BestReward] {
        for draw in DRAWS {
            let small = round(1_000, eviction, draw);
            let large = round(100_000, eviction, draw);
            assert!(large < 20 * small, "{eviction:?} {draw:?}: {small:?}, then {large:?}");
        }
    }
}

/// The features of a position: a scattered point in four dimensions. The buffer searches for near objects in
/// the cells of a grid with only three dimensions, to which it maps the points.
struct ScatteredPositions;

impl ScatteredPositions {
    fn point(x: usize) -> [f32; 4] {
        [x * 37 % 11, x * 53 % 13, x * 29 % 7, x * 71 % 5].map(|x| x as f32)
    }
}

impl StateFeatures<Positions> for ScatteredPositions {
    fn width(&self) -> usize {
        4
    }
    fn encode(&self, states: &Positions) -> Features {
        Features::Dense(states.0.iter().flat_map(|&x| Self::point(x as usize)).collect())
    }
}

fn distance(a: usize, b: usize, p: f64) -> f64 {
    let apart = ScatteredPositions::point(a)
        .into_iter()
        .zip(ScatteredPositions::point(b))
        .map(|(x, y)| f64::from((x - y).abs()));
    if p.is_infinite() {
        apart.fold(0.0, f64::max)
    } else {
        apart.map(|d| d.powf(p)).sum::<f64>().powf(1.0 / p)
    }
}

/// Compares a buffer that refuses near objects with an exhaustive search. Objects are crowded at first and
/// spread out later. An evicted object must not make the buffer refuse others, and near objects must be found
/// in every cell of the buffer's grid.
#[test]
fn a_diverse_buffer_equals_an_exhaustive_search() {
    const CAPACITY: usize = 12;
    let cases = [(1.0, 6.5), (2.0, 4.4), (3.0, 4.1), (f64::INFINITY, 3.5)];
    for (eviction, (p, cutoff)) in
        [Eviction::Fifo, Eviction::BestReward].into_iter().flat_map(|e| cases.map(|c| (e, c)))
    {
        let mut rng = Rng::seeded(5);
        let near = Diversity::new(cutoff, p, ScatteredPositions).unwrap();
        let config = ReplayConfig { capacity: CAPACITY, eviction, draw: Draw::Uniform };
        let mut buffer = ReplayBuffer::new(config).unwrap().diverse(near);
        let mut list: Vec<(usize, f64)> = Vec::new();
        let mut refused = 0;
        let mut left = 0;
        for round in 0..200 {
            let width = if list.len() < CAPACITY { 8 } else { 90 };
            let mut offer = |_| (1 + rng.below(width), 0.05 * f64::from(round) + rng.normal());
            let mut offered: Vec<(usize, f64)> = (0..5).map(&mut offer).collect();
            let log_rewards: Vec<f64> = offered.iter().map(|object| object.1).collect();
            buffer.add(&env(), &walks_to(offered.iter().map(|object| object.0)), &log_rewards).unwrap();
            if eviction == Eviction::BestReward {
                offered.sort_by(|a, b| b.1.total_cmp(&a.1));
            }
            for (place, log_reward) in offered {
                if list.len() == CAPACITY {
                    let least = (0..CAPACITY).min_by(|&i, &j| list[i].1.total_cmp(&list[j].1)).unwrap();
                    let too_little = eviction == Eviction::BestReward && log_reward <= list[least].1;
                    if too_little || list.iter().any(|held| distance(held.0, place, p) <= cutoff) {
                        refused += 1;
                        continue;
                    }
                    list.remove(if eviction == Eviction::Fifo { 0 } else { least });
                    left += 1;
                }
                list.push((place, log_reward));
            }
            let held: Vec<usize> = buffer.walks().unwrap().terminal.0.iter().map(|&x| x as usize).collect();
            assert_eq!(
                held,
                list.iter().map(|object| object.0).collect::<Vec<_>>(),
                "{eviction:?}, p {p}, round {round}"
            );
        }
        assert!(refused > 100 && left > 5, "{eviction:?}, p {p}: {refused} refused, {left} left");
    }
}
