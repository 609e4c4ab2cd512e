//! Drawing entries from a buffer, and updating the losses of drawn entries.

use super::priority::StoredObject;
use super::ranking::{Rank, harmonic};
use super::weights::Scale;
use super::{Draw, RankBy, ReplayBuffer};
use crate::env::Env;
use crate::error::{check_finite, check_len};
use crate::rollout::Walks;
use crate::{Error, Result, Rng};

/// Entries that were drawn from a buffer, in the order of the draws.
#[derive(Debug)]
pub struct ReplayDraw<E: Env> {
    /// The walks of the entries. The walks have no actions if the buffer returns terminal states only.
    pub walks: Walks<E>,
    /// The log-rewards stored with the entries.
    pub log_rewards: Vec<f64>,
    /// The serial numbers of the entries, which [`ReplayBuffer::update_losses`] takes.
    pub serials: Vec<u64>,
    /// The log-probability of each entry in a single draw.
    pub log_probs: Vec<f64>,
    /// The number of objects in the buffer at the time of the draw.
    pub n_stored: usize,
}

impl<E: Env> ReplayBuffer<E> {
    /// Draws `n` walks, with replacement. [`draw_entries`](Self::draw_entries) also returns log-rewards and
    /// probabilities.
    ///
    /// # Errors
    /// [`Error::Missing`] if the buffer is empty.
    pub fn draw(&self, n: usize, rng: &mut Rng) -> Result<Walks<E>> {
        Ok(self.draw_entries(n, rng)?.walks)
    }

    /// Draws `n` entries, with replacement: walks, log-rewards and probabilities. The time of a draw grows
    /// with the logarithm of the number of stored objects.
    ///
    /// # Errors
    /// [`Error::Missing`] if the buffer is empty.
    pub fn draw_entries(&self, n: usize, rng: &mut Rng) -> Result<ReplayDraw<E>> {
        let held = self.len();
        if held == 0 {
            return Err(no_object("drawing from a replay buffer"));
        }
        let scale = Scale::new(self.config.draw, self.weights.total());
        let draw = |_| match self.config.draw {
            Draw::Uniform => {
                let serial = self.weights.at_mass(rng.below(held) as f64, |weights| f64::from(weights.count));
                (serial, -(held as f64).ln())
            }
            Draw::RewardPrioritised { .. } | Draw::LossPrioritised { .. } | Draw::Custom => {
                let serial = self.weights.at_mass(rng.uniform() * scale.total, |weights| scale.mass(weights));
                (serial, scale.log_prob(self.weights_of(self.entries[&serial].object)))
            }
            Draw::RankPrioritised { by, exponent } => {
                self.by_rank(by, |rank| -exponent * rank.ln(), |ranks| self.rank_sums[ranks], rng)
            }
            Draw::WeightedRanks { by, k } => {
                let shift = k * held as f64;
                self.by_rank(by, |rank| -(shift + rank).ln(), |ranks| harmonic(shift, ranks), rng)
            }
        };
        let (serials, log_probs): (Vec<u64>, Vec<f64>) = (0..n).map(draw).unzip();
        let entries: Vec<_> = serials.iter().map(|serial| &self.entries[serial]).collect();
        let log_rewards = entries.iter().map(|entry| entry.object.log_reward).collect();
        let walks = self.gather(entries.into_iter(), self.keeps_paths)?;
        Ok(ReplayDraw { walks, log_rewards, serials, log_probs, n_stored: held })
    }

    /// Draws an entry by its rank, and returns its serial number and its log-probability. `log_weight(rank)`
    /// is the log-weight of a rank, and `sum(k)` is the sum of the weights of the first `k` ranks.
    fn by_rank(
        &self,
        by: RankBy,
        log_weight: impl Fn(f64) -> f64,
        sum: impl Fn(usize) -> f64,
        rng: &mut Rng,
    ) -> (u64, f64) {
        let held = self.len();
        let total = sum(held);
        let u = rng.uniform() * total;
        let mut low = 1;
        let mut high = held;
        while low < high {
            let middle = low.midpoint(high);
            if sum(middle) <= u {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        // The ranking is in ascending order, but rank 1 is the entry with the greatest value, so ranks are
        // counted from the end of the ranking.
        let serial = self.rankings[by as usize].nth(held - low).map_or(0, Rank::serial);
        (serial, log_weight(low as f64) - total.ln())
    }

    /// Records the absolute values of the losses of drawn entries, and returns the number of losses whose
    /// entries are still stored. If an entry occurs several times, its last loss is recorded.
    ///
    /// ```
    /// use gfn::{policy::UniformPolicy, rollout::Sampler, examples::Chain, Rng};
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
    /// [`Error::Shape`] unless there is one loss per serial number; [`Error::NonFinite`] for a loss that
    /// isn't finite; errors of a custom priority. If it fails, no loss is recorded.
    pub fn update_losses(&mut self, serials: &[u64], losses: &[f64]) -> Result<usize> {
        check_len("losses of drawn entries", serials.len(), losses.len(), "give one loss per serial")?;
        let remedy = "give finite losses: stop training if a loss isn't finite, because nothing can be \
            learned from it";
        check_finite("loss of a drawn entry", losses, remedy)?;
        self.check_priorities(serials.iter().zip(losses).filter_map(|(serial, loss)| {
            Some(StoredObject { loss: Some(loss.abs()), ..self.entries.get(serial)?.object })
        }))?;
        let mut held = 0;
        for (&serial, loss) in serials.iter().zip(losses) {
            let Some(entry) = self.entries.get_mut(&serial) else { continue };
            let before = entry.object;
            entry.object.loss = Some(loss.abs());
            let after = entry.object;
            self.index(serial, before, false);
            self.index(serial, after, true);
            held += 1;
        }
        Ok(held)
    }
}

pub(super) fn no_object(what: &'static str) -> Error {
    Error::missing(what, "at least one object in it", "add trajectories or prefill the buffer first")
}
