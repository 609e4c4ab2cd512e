use std::collections::{BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::Distinct;
use super::identity::ByKey;
use crate::env::{DiscreteEnv, EnumerableEnv, Env, Rows, Slots};
use crate::trajectory::Walks;
use crate::{Error, Result, Rng};

/// What leaves a full buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Eviction {
    /// The oldest.
    Fifo,
    /// The one of least reward; of several, the newest. What isn't better than that doesn't come in.
    BestReward,
}

/// How objects are drawn, with replacement.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Draw {
    /// All alike.
    Uniform,
    /// In proportion to `R^exponent`, in the log domain: no reward underflows.
    RewardPrioritised {
        /// 1 draws in proportion to R, 0 uniformly.
        exponent: f64,
    },
}

/// How a buffer keeps and gives.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ReplayConfig {
    /// How many objects it holds.
    pub capacity: usize,
    /// What leaves when it is full.
    pub eviction: Eviction,
    /// How objects are drawn.
    pub draw: Draw,
}

/// Finished objects with their log-rewards and the walks that led to them.
///
/// What is stored is terminal state and moves, not the states between. A walk can be replayed as it was, or only its end be
/// used and another way to it drawn backwards with [`Sampler::backward`](crate::sampler::Sampler::backward).
pub struct ReplayBuffer<E: Env> {
    config: ReplayConfig,
    entries: VecDeque<Entry<E>>,
    /// (log-reward, age) of each entry, the least first; kept where the best stay.
    ranks: BTreeSet<Rank>,
    distinct: Option<Box<dyn Distinct<E>>>,
    added: u64,
}

struct Entry<E: Env> {
    walk: Walks<E>,
    log_reward: f64,
    serial: u64,
}

/// Orders entries: least reward first, and of equal ones the newest.
#[derive(PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
struct Rank(u64, std::cmp::Reverse<u64>);

impl Rank {
    fn new(log_reward: f64, serial: u64) -> Self {
        // Orders finite floats as integers: flip the sign bit, and all bits of negative ones.
        let bits = log_reward.to_bits();
        let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
        Self(ordered, std::cmp::Reverse(serial))
    }
}

impl<E: Env> std::fmt::Debug for ReplayBuffer<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplayBuffer").field("config", &self.config).field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<E: Env> ReplayBuffer<E> {
    /// An empty buffer that keeps whatever comes.
    ///
    /// # Errors
    /// [`Error::Config`] for a capacity of 0 or an exponent that isn't finite.
    pub fn new(config: ReplayConfig) -> Result<Self> {
        if config.capacity == 0 {
            return Err(Error::Config { setting: "replay capacity", got: "0".into(), expected: "at least 1" });
        }
        if let Draw::RewardPrioritised { exponent } = config.draw
            && !exponent.is_finite()
        {
            let got = exponent.to_string();
            return Err(Error::Config { setting: "replay exponent", got, expected: "a finite number" });
        }
        Ok(Self { config, entries: VecDeque::new(), ranks: BTreeSet::new(), distinct: None, added: 0 })
    }

    /// An empty buffer that holds each finished object once.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn distinct(config: ReplayConfig) -> Result<Self>
    where
        E: EnumerableEnv + 'static,
    {
        Ok(Self { distinct: Some(Box::new(ByKey::<E::Key>::default())), ..Self::new(config)? })
    }

    /// A buffer like this one, with nothing in it.
    pub(crate) fn emptied(&self) -> Self {
        Self {
            config: self.config,
            entries: VecDeque::new(),
            ranks: BTreeSet::new(),
            distinct: self.distinct.as_ref().map(|distinct| distinct.emptied()),
            added: 0,
        }
    }

    /// How the buffer keeps and gives.
    #[must_use]
    pub fn config(&self) -> &ReplayConfig {
        &self.config
    }

    /// The number of objects held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The raw log-rewards, in the order in which objects came.
    pub fn log_rewards(&self) -> impl Iterator<Item = f64> + '_ {
        self.entries.iter().map(|entry| entry.log_reward)
    }

    /// Adds walks with their raw log-rewards, and says how many of them stayed.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is one log-reward per walk, [`Error::NonFinite`] for one that isn't a finite number;
    /// nothing is added then.
    pub fn add(&mut self, env: &E, walks: &Walks<E>, log_rewards: &[f64]) -> Result<usize> {
        if walks.len() != log_rewards.len() {
            return Err(Error::Shape {
                what: "log-rewards of walks".into(),
                expected: vec![walks.len() as i64],
                got: vec![log_rewards.len() as i64],
                remedy: "give one log-reward per walk",
            });
        }
        if let Some(row) = log_rewards.iter().position(|value| !value.is_finite()) {
            return Err(Error::NonFinite {
                what: "log-reward",
                row,
                value: log_rewards[row],
                remedy: "keep only objects whose log-reward is finite; use a small floor in place of R = 0",
            });
        }
        let mut stayed = 0;
        for (i, &log_reward) in log_rewards.iter().enumerate() {
            let rank = Rank::new(log_reward, self.added);
            let full = self.len() == self.config.capacity;
            let best = self.config.eviction == Eviction::BestReward;
            if full && best && self.ranks.first().is_some_and(|least| rank.0 <= least.0) {
                continue;
            }
            let walk = walks.select(&[i]);
            if let Some(distinct) = &mut self.distinct
                && distinct.admit(env, &walk.terminal) == [false]
            {
                continue;
            }
            if full {
                self.evict(env);
            }
            if best {
                self.ranks.insert(rank);
            }
            self.entries.push_back(Entry { walk, log_reward, serial: self.added });
            self.added += 1;
            stayed += 1;
        }
        Ok(stayed)
    }

    fn evict(&mut self, env: &E) {
        let gone = match self.config.eviction {
            Eviction::Fifo => self.entries.pop_front(),
            Eviction::BestReward => self.ranks.pop_first().and_then(|Rank(_, std::cmp::Reverse(serial))| {
                let place = self.entries.binary_search_by_key(&serial, |entry| entry.serial).ok()?;
                self.entries.remove(place)
            }),
        };
        if let (Some(distinct), Some(entry)) = (&mut self.distinct, gone) {
            distinct.forget(env, &entry.walk.terminal);
        }
    }

    /// Draws `n` walks, with replacement.
    ///
    /// # Errors
    /// [`Error::Missing`] from an empty buffer.
    pub fn draw(&self, n: usize, rng: &mut Rng) -> Result<Walks<E>> {
        if self.is_empty() {
            return Err(Error::Missing {
                objective: "drawing from a replay buffer",
                needs: "at least one object in it",
                remedy: "add trajectories or prefill the buffer first",
            });
        }
        let picks: Vec<usize> = match self.config.draw {
            Draw::Uniform => (0..n).map(|_| rng.below(self.len())).collect(),
            Draw::RewardPrioritised { exponent } => {
                let cumulative = self.cumulative(exponent);
                let total = cumulative.last().copied().unwrap_or(1.0);
                let pick = |_| {
                    let u = rng.uniform() * total;
                    cumulative.partition_point(|&sum| sum <= u).min(self.len() - 1)
                };
                (0..n).map(pick).collect()
            }
        };
        Ok(self.gather(&picks))
    }

    /// Running sums of `R^exponent`, scaled so that the largest term is 1.
    fn cumulative(&self, exponent: f64) -> Vec<f64> {
        let powers = || self.log_rewards().map(|log_reward| exponent * log_reward);
        let max = powers().fold(f64::NEG_INFINITY, f64::max);
        let running = powers().scan(0.0, |sum, power| {
            *sum += (power - max).exp();
            Some(*sum)
        });
        running.collect()
    }

    fn gather(&self, picks: &[usize]) -> Walks<E> {
        let mut picked = picks.iter().map(|&i| &self.entries[i].walk);
        let mut out = match picked.next() {
            Some(first) => first.clone(),
            None => return self.entries[0].walk.select(&[]),
        };
        for walk in picked {
            out.actions.append(walk.actions.clone());
            out.offsets.push(out.actions.len());
            out.terminal.append(walk.terminal.clone());
        }
        out
    }
}

impl<E: DiscreteEnv<Actions = Slots>> ReplayBuffer<E> {
    /// The buffer as named tensors, for a checkpoint: moves, offsets and log-rewards, oldest first.
    #[must_use]
    pub fn state(&self) -> Vec<(String, Tensor)> {
        let mut actions = Vec::new();
        let mut offsets = vec![0i64];
        for entry in &self.entries {
            actions.extend(entry.walk.actions.0.iter().map(|&slot| i64::from(slot)));
            offsets.push(actions.len() as i64);
        }
        let log_rewards: Vec<f64> = self.log_rewards().collect();
        vec![
            ("actions".into(), Tensor::from_slice(&actions)),
            ("offsets".into(), Tensor::from_slice(&offsets)),
            ("log_rewards".into(), Tensor::from_slice(&log_rewards)),
        ]
    }

    /// Fills an empty buffer from a checkpoint's tensors; every move is checked.
    ///
    /// # Errors
    /// [`Error::Contract`] for tensors that aren't a buffer's; those of [`Walks::replay`] for moves of another environment.
    pub fn load_state(&mut self, env: &E, state: &[(String, Tensor)]) -> Result<()> {
        let ints = |name: &str| -> Result<Vec<i64>> {
            let found = state.iter().find(|(n, _)| n == name).map(|(_, t)| t);
            found.and_then(|t| Vec::<i64>::try_from(t).ok()).ok_or_else(|| not_a_buffer(name))
        };
        let log_rewards = state.iter().find(|(n, _)| n == "log_rewards").map(|(_, t)| t);
        let log_rewards = log_rewards.and_then(|t| Vec::<f64>::try_from(t).ok());
        let log_rewards = log_rewards.ok_or_else(|| not_a_buffer("log_rewards"))?;
        let offsets: Vec<usize> = ints("offsets")?.into_iter().map(|o| o as usize).collect();
        let actions = Slots(ints("actions")?.into_iter().map(|slot| slot as u32).collect());
        let ordered = offsets.first() == Some(&0) && offsets.is_sorted() && offsets.last() == Some(&actions.len());
        if !ordered || offsets.len() != log_rewards.len() + 1 {
            return Err(not_a_buffer("offsets"));
        }
        if log_rewards.is_empty() {
            return Ok(());
        }
        let replayed = crate::trajectory::Trajectories::replay(env, &actions, &offsets)?;
        self.add(env, &replayed.walks(env)?, &log_rewards).map(|_| ())
    }
}

fn not_a_buffer(name: &str) -> Error {
    Error::Contract {
        check: "a checkpoint's replay section is a buffer's",
        detail: format!("`{name}` is missing or malformed"),
    }
}
