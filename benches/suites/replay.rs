//! Benchmarks of a full replay buffer of a million objects: adding a batch, and drawing a batch. For buffers
//! that accept only distinct or diverse objects, only adding is measured, because drawing is the same for all
//! buffers.

use criterion::{BatchSize, Criterion};
use gfn::env::{VectorEnv, VectorStates};
use gfn::examples::{Chain, word_env};
use gfn::policy::{Features, StateFeatures, UniformPolicy};
use gfn::replay::{Diversity, Draw, Eviction, RankBy, ReplayBuffer, ReplayConfig};
use gfn::rollout::{Sampler, Walks};
use gfn::{Result, Rng};

use super::{elements, slow_group};

const HELD: usize = 1_000_000;
const BATCH: usize = 64;

fn draws() -> [(&'static str, Draw); 7] {
    [
        ("uniform", Draw::Uniform),
        ("by_reward", Draw::RewardPrioritised { exponent: 1.0 }),
        ("by_loss", Draw::LossPrioritised { exponent: 0.6 }),
        ("by_rank_of_reward", Draw::RankPrioritised { by: RankBy::Reward, exponent: 1.0 }),
        ("by_rank_of_loss", Draw::RankPrioritised { by: RankBy::Loss, exponent: 1.0 }),
        ("by_weighted_rank_of_reward", Draw::WeightedRanks { by: RankBy::Reward, k: 0.01 }),
        ("by_weighted_rank_of_loss", Draw::WeightedRanks { by: RankBy::Loss, k: 0.01 }),
    ]
}

pub(crate) fn bench(criterion: &mut Criterion) {
    let mut group = slow_group(criterion, "replay");
    elements(&mut group, BATCH);
    let env = Chain::new(8);
    let mut rng = Rng::seeded(0);
    let walks = Sampler::new(&env, &UniformPolicy).walks(BATCH, &mut rng).expect("walks");
    for eviction in [Eviction::Fifo, Eviction::BestReward] {
        for (name, draw) in draws() {
            let config = ReplayConfig { capacity: HELD, eviction, draw };
            let mut buffer = ReplayBuffer::new(config).expect("a buffer");
            let mut log_rewards =
                |high: f64| -> Vec<f64> { (0..BATCH).map(|_| high + rng.normal()).collect() };
            while buffer.len() < HELD {
                buffer.add(&env, &walks, &log_rewards(0.0)).expect("room");
            }
            // If rewards didn't rise with each batch, the full buffer would reject objects of the batch.
            let mut high = 2.0;
            group.bench_function(format!("{eviction:?}/{name}/add"), |bencher| {
                bencher.iter(|| {
                    high += 1e-3;
                    buffer.add(&env, &walks, &log_rewards(high)).expect("room")
                });
            });
            let mut rng = Rng::seeded(1);
            group.bench_function(format!("{eviction:?}/{name}/draw"), |bencher| {
                bencher.iter(|| buffer.draw_entries(BATCH, &mut rng).expect("a draw"));
            });
        }
    }
    for eviction in [Eviction::Fifo, Eviction::BestReward] {
        let config = ReplayConfig { capacity: HELD, eviction, draw: Draw::Uniform };
        let diverse = || -> Result<ReplayBuffer<VectorEnv>> {
            Ok(ReplayBuffer::new(config)?.diverse(Diversity::new(2.0, 1.0, Letters)?))
        };
        for (name, buffer) in [("distinct", ReplayBuffer::distinct(config)), ("diverse", diverse())] {
            let mut buffer = buffer.expect("a buffer");
            let env = word_env(32, 6);
            let mut rng = Rng::seeded(0);
            let mut offered = |n: usize, high: f64| -> (Walks<VectorEnv>, Vec<f64>) {
                let walks = Sampler::new(&env, &UniformPolicy).walks(n, &mut rng).expect("walks");
                (walks, (0..n).map(|_| high + rng.normal()).collect())
            };
            while buffer.len() < HELD {
                let (walks, log_rewards) = offered(8192, 0.0);
                buffer.add(&env, &walks, &log_rewards).expect("room");
            }
            let mut high = 2.0;
            group.bench_function(format!("{eviction:?}/{name}/add"), |bencher| {
                let new = || {
                    high += 1e-3;
                    offered(BATCH, high)
                };
                let add = |(walks, log_rewards): (Walks<VectorEnv>, Vec<f64>)| {
                    buffer.add(&env, &walks, &log_rewards)
                };
                bencher.iter_batched(new, add, BatchSize::SmallInput);
            });
        }
    }
    group.finish();
}

/// The features of a word, by which diverse buffers measure distances: a number for each letter.
struct Letters;

impl StateFeatures<VectorStates> for Letters {
    fn width(&self) -> usize {
        6
    }
    fn encode(&self, states: &VectorStates) -> Features {
        Features::Dense(states.rows().flatten().map(|&letter| f32::from(letter)).collect())
    }
}
