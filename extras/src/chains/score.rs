//! The log-rewards of the objects of chains.

use gfn::env::{Direction, DiscreteEnv, Reward, Rows, log_rewards};
use gfn::{Error, Result};

use super::propose::ProposalBatch;
use super::{Chains, ScoredObjects};

/// The number of rounds between comparisons of summed changes of the log-reward with full log-rewards.
const CHECK_EVERY: u64 = 1_000;
/// The largest allowed difference between both, relative to the absolute value of the log-reward, or to 1.
const TOLERANCE: f64 = 1e-6;

impl<E: DiscreteEnv> Chains<E> {
    /// Computes the log-rewards of those of the chains `rows` whose log-reward isn't known.
    pub(super) fn score_current(
        &mut self,
        reward: &dyn Reward<E::States>,
        mut rows: Vec<usize>,
        scored: &mut ScoredObjects<E::States>,
    ) -> Result<()> {
        rows.retain(|&row| self.log_rewards[row].is_none());
        if rows.is_empty() {
            return Ok(());
        }
        let objects = self.objects.select(&rows);
        let computed = log_rewards(reward, &objects, None)?;
        self.counts.reward_calls += rows.len() as u64;
        for (&row, &log_reward) in rows.iter().zip(&computed) {
            self.log_rewards[row] = Some(log_reward);
        }
        scored.append(objects, &computed);
        Ok(())
    }

    /// Computes the log-rewards of the proposals of chains whose power isn't 0.
    pub(super) fn score_proposed(
        &mut self,
        reward: &dyn Reward<E::States>,
        proposed: &ProposalBatch<E::States>,
    ) -> Result<Vec<Option<f64>>> {
        let mut out = vec![None; proposed.rows.len()];
        let places: Vec<usize> = (0..out.len()).filter(|&k| self.power(proposed.rows[k]) > 0.0).collect();
        if places.is_empty() {
            return Ok(out);
        }
        let values = if self.config.score_changes && !proposed.moves.is_empty() {
            let values = self.add_changes(reward, proposed, &places)?;
            self.counts.changes += places.len() as u64;
            values
        } else {
            let values = log_rewards(reward, &proposed.objects.select(&places), None)?;
            self.counts.reward_calls += places.len() as u64;
            values
        };
        for (&k, value) in places.iter().zip(values) {
            out[k] = Some(value);
        }
        Ok(out)
    }

    /// Returns the log-rewards of the proposals `places`: the log-reward of the chain's object plus the
    /// scored change. The reward scores changes from a state to its child, so backward moves are scored in
    /// reverse.
    fn add_changes(
        &self,
        reward: &dyn Reward<E::States>,
        proposed: &ProposalBatch<E::States>,
        places: &[usize],
    ) -> Result<Vec<f64>> {
        let n = self.len();
        let mut all = self.objects.clone();
        all.append(proposed.objects.clone());
        let is_back = |k: usize| proposed.moves[k].0 == Direction::Backward;
        let mut parents = Vec::new();
        let mut children = Vec::new();
        for &k in places {
            let ends = [proposed.rows[k], n + k];
            parents.push(ends[usize::from(is_back(k))]);
            children.push(ends[usize::from(!is_back(k))]);
        }
        let changes = reward.log_reward_change(&all.select(&parents), &all.select(&children), None)?;
        let remedy = "set `ChainConfig::score_changes` to false for this reward";
        let missing = || Error::missing("chains that score changes", "`Reward::log_reward_change`", remedy);
        let changes = changes.ok_or_else(missing)?;
        let mut out = Vec::new();
        for (&k, change) in places.iter().zip(changes) {
            let sign = if is_back(k) { -1.0 } else { 1.0 };
            let value = self.log_rewards[proposed.rows[k]].unwrap_or(f64::NAN) + sign * change;
            if !value.is_finite() {
                let remedy = "let `Reward::log_reward_change` return finite changes";
                return Err(Error::non_finite("a log-reward after a scored change", k, value, remedy));
            }
            out.push(value);
        }
        Ok(out)
    }

    /// Compares the log-rewards of the chains' objects, which are sums of changes, with full log-rewards: in
    /// the first round, and then once in `CHECK_EVERY` rounds.
    pub(super) fn check_changes(&mut self, env: &E, reward: &dyn Reward<E::States>) -> Result<()> {
        if !self.counts.rounds.is_multiple_of(CHECK_EVERY) {
            return Ok(());
        }
        let rows: Vec<usize> = (0..self.len()).filter(|&row| self.log_rewards[row].is_some()).collect();
        let full = log_rewards(reward, &self.objects.select(&rows), None)?;
        self.counts.reward_calls += rows.len() as u64;
        for (&row, full) in rows.iter().zip(full) {
            let sum = self.log_rewards[row].unwrap_or(full);
            if (sum - full).abs() > TOLERANCE * full.abs().max(1.0) {
                let object =
                    env.describe_state(&self.objects, row).unwrap_or_else(|| format!("object {row}"));
                let detail = format!(
                    "log R of {object} is {full}, but scored changes add up to {sum}; set \
                     `ChainConfig::score_changes` to false for this reward"
                );
                let law = "`Reward::log_reward_change` is the change of the whole log-reward";
                return Err(Error::contract(law, detail));
            }
            self.log_rewards[row] = Some(full);
        }
        Ok(())
    }
}
