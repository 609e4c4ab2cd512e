//! Drawing from a buffer, and updating the losses of drawn entries.

use super::entry::{Entry, Rank};
use super::ordered::Key;
use super::priority::Stored;
use super::rank_power::RankDistribution;
use super::weights::Scale;
use super::{Draw, RankBy, ReplayBuffer};
use crate::env::Env;
use crate::rollout::Walks;
use crate::{Error, Result, Rng};

/// Drawn entries.
#[derive(Debug)]
pub struct Drawn<E: Env> {
    /// Their walks; without actions from a buffer that stores terminal states only.
    pub walks: Walks<E>,
    /// Their raw log-rewards.
    pub log_rewards: Vec<f64>,
    /// Their serial numbers, for [`ReplayBuffer::update_losses`].
    pub serials: Vec<u64>,
    /// The log of the probability of drawing each entry in a single draw.
    pub log_probs: Vec<f64>,
    /// The number of objects in the buffer.
    pub held: usize,
}

/// A drawn entry.
struct Pick<'a, E: Env> {
    serial: u64,
    entry: &'a Entry<E>,
    log_prob: f64,
}

impl<E: Env> ReplayBuffer<E> {
    /// Draws `n` walks, with replacement: only the walks of [`draw_entries`](Self::draw_entries).
    ///
    /// # Errors
    /// [`Error::Missing`] from an empty buffer.
    pub fn draw(&self, n: usize, rng: &mut Rng) -> Result<Walks<E>> {
        self.gather(self.picks(n, rng)?.iter().map(|pick| pick.entry))
    }

    /// Draws `n` entries, with replacement: walks, log-rewards and probabilities. With every kind of draw the time is
    /// logarithmic in the number of stored objects.
    ///
    /// # Errors
    /// [`Error::Missing`] from an empty buffer.
    pub fn draw_entries(&self, n: usize, rng: &mut Rng) -> Result<Drawn<E>> {
        let picks = self.picks(n, rng)?;
        Ok(Drawn {
            walks: self.gather(picks.iter().map(|pick| pick.entry))?,
            log_rewards: picks.iter().map(|pick| pick.entry.log_reward).collect(),
            serials: picks.iter().map(|pick| pick.serial).collect(),
            log_probs: picks.iter().map(|pick| pick.log_prob).collect(),
            held: self.len(),
        })
    }

    fn picks(&self, n: usize, rng: &mut Rng) -> Result<Vec<Pick<'_, E>>> {
        if self.is_empty() {
            return Err(Error::missing(
                "drawing from a replay buffer",
                "at least one object in it",
                "add trajectories or prefill the buffer first",
            ));
        }
        let held = self.len();
        let picks: Vec<_> = match self.config.draw {
            Draw::Uniform => {
                let log_prob = -(held as f64).ln();
                let pick = |_| {
                    let (serial, entry) = self.entries.nth(rng.below(held))?;
                    Some(Pick { serial, entry, log_prob })
                };
                (0..n).filter_map(pick).collect()
            }
            Draw::RewardPrioritised { .. } | Draw::LossPrioritised { .. } | Draw::Own => self.by_weight(n, rng),
            Draw::RankPrioritised { by, exponent } => {
                self.by_rank(n, by, &RankDistribution::new(held, 0.0, exponent), rng)
            }
            Draw::WeightedRanks { by, k } => {
                self.by_rank(n, by, &RankDistribution::new(held, k * held as f64, 1.0), rng)
            }
        };
        debug_assert_eq!(picks.len(), n, "every draw finds an entry");
        Ok(picks)
    }

    fn by_weight(&self, n: usize, rng: &mut Rng) -> Vec<Pick<'_, E>> {
        let weighing = self.weighing();
        let scale = Scale::new(self.config.draw, self.entries.total());
        let pick = |_| {
            let u = rng.uniform() * scale.total();
            let (serial, entry) = self.entries.at_mass(u, |weights| scale.mass(weights))?;
            let weights = weighing.of(entry.log_reward, entry.loss);
            Some(Pick { serial, entry, log_prob: scale.log_prob(weights) })
        };
        (0..n).filter_map(pick).collect()
    }

    fn by_rank(&self, n: usize, by: RankBy, distribution: &RankDistribution, rng: &mut Rng) -> Vec<Pick<'_, E>> {
        let ranks = match by {
            RankBy::Reward => &self.by_reward,
            RankBy::Loss => &self.by_loss,
        };
        let pick = |_| {
            let rank = distribution.draw(rng);
            // The map is in ascending order, and the first rank is the greatest value.
            let serial = ranks.nth(self.len() - rank)?.0.serial();
            Some(Pick { serial, entry: self.entries.get(serial)?, log_prob: distribution.log_prob(rank) })
        };
        (0..n).filter_map(pick).collect()
    }

    /// Records the losses of a step for the entries that it used, and returns how many of these are still stored.
    /// Absolute values are stored, and for an entry that was drawn several times the last one.
    ///
    /// ```
    /// use gfn::{policy::UniformPolicy, rollout::Sampler, testing::Chain, Rng};
    /// use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
    /// let (env, mut rng) = (Chain::new(4), Rng::seeded(0));
    /// let draw = Draw::LossPrioritised { exponent: 0.6 };
    /// let mut buffer = ReplayBuffer::new(ReplayConfig { capacity: 10, eviction: Eviction::Fifo, draw })?;
    /// let walks = Sampler::new(&env, &UniformPolicy).walks(4, &mut rng)?;
    /// buffer.add(&env, &walks, &[0.0; 4])?;
    /// let drawn = buffer.draw_entries(8, &mut rng)?;
    /// // ... a training step; `drawn.log_probs` would give importance weights for its residuals ...
    /// let losses = [0.5; 8];
    /// buffer.update_losses(&drawn.serials, &losses)?;
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is one loss per serial, [`Error::NonFinite`] for one that isn't finite; nothing is
    /// recorded then.
    pub fn update_losses(&mut self, serials: &[u64], losses: &[f64]) -> Result<usize> {
        if serials.len() != losses.len() {
            return Err(Error::shape(
                "losses of drawn entries",
                [serials.len() as i64],
                [losses.len() as i64],
                "give one loss per serial",
            ));
        }
        if let Some(row) = losses.iter().position(|loss| !loss.is_finite()) {
            let value = losses[row];
            let remedy = "stop at a loss that isn't finite: nothing can be learned from it";
            return Err(Error::non_finite("loss of a drawn entry", row, value, remedy));
        }
        let (weighing, ranks_losses) = (self.weighing(), self.ranks_losses());
        weighing.check(serials.iter().zip(losses).filter_map(|(&serial, loss)| {
            let log_reward = self.entries.get(serial)?.log_reward;
            Some(Stored { log_reward, loss: Some(loss.abs()) })
        }))?;
        let mut held = 0;
        for (&serial, loss) in serials.iter().zip(losses) {
            let mut before = 0.0;
            held += usize::from(self.entries.update(serial, |entry| {
                before = entry.ranking_loss();
                entry.loss = Some(loss.abs());
                weighing.of(entry.log_reward, entry.loss)
            }));
            if ranks_losses && self.by_loss.remove(Rank::new(before, serial)).is_some() {
                self.by_loss.insert(Rank::new(loss.abs(), serial), (), ());
            }
        }
        Ok(held)
    }
}
