//! The objects at which the chains of a source start.

use gfn::env::{DiscreteEnv, Rows, log_rewards};
use gfn::train::{Context, TrainEnv};
use gfn::{Result, Rng};

use super::{ChainSourceConfig, Chains, ScoredObjects, Starts};

/// The factor by which the first candidates get more rounds.
const FIRST_ROUNDS: usize = 5;

/// Chooses `n` of these candidates in proportion to R^`power`, without replacement.
fn choose(log_rewards: &[f64], power: f64, n: usize, rng: &mut Rng) -> Vec<usize> {
    // The largest sums of log-weights and Gumbel noise are such a choice.
    let mut keys = Vec::new();
    for (row, log_reward) in log_rewards.iter().enumerate() {
        keys.push((power * log_reward - (-(1.0 - rng.uniform()).ln()).ln(), row));
    }
    keys.sort_by(|one, other| other.0.total_cmp(&one.0));
    keys.into_iter().take(n).map(|(_, row)| row).collect()
}

/// The result of [`draw_starts`].
pub(super) struct StartDraw<S> {
    /// The objects at which chains start.
    pub(super) starts: ScoredObjects<S>,
    /// All objects whose reward was computed.
    pub(super) evaluations: ScoredObjects<S>,
    pub(super) reward_calls: u64,
}

/// Draws `n` starts. `fresh` are objects with known rewards that the policy sampled in this step; if they are
/// too few, more are sampled. `explorers` are the chains of power 0; they are created when they are needed.
/// After an error `out` has what was computed before it.
pub(super) fn draw_starts<E: TrainEnv + DiscreteEnv>(
    config: &ChainSourceConfig,
    n: usize,
    fresh: &ScoredObjects<E::States>,
    explorers: &mut Option<Chains<E>>,
    out: &mut StartDraw<E::States>,
    context: &Context<E>,
    rng: &mut Rng,
) -> Result<()> {
    let env = &context.env;
    let chains = &config.chains;
    let sampled = |n: usize, rng: &mut Rng| -> Result<E::States> {
        let sampler = context.sampler(env, context.policy()).exploration(context.exploration()?);
        Ok(sampler.walks(n, rng)?.terminal)
    };
    // Chains of a large power search for large rewards, so they start near them.
    let power = chains.powers.iter().copied().fold(0.0, f64::max);
    let rule = config.restart.map_or(Starts::Policy, |restart| restart.starts);
    let Starts::Uniform { candidates, rounds } = rule else {
        let mut candidates = fresh.clone();
        let n_missing = n.saturating_sub(candidates.objects.len());
        if n_missing > 0 {
            let objects = sampled(n_missing, rng)?;
            let values = log_rewards(context.reward.as_ref(), &objects, None)?;
            out.reward_calls = n_missing as u64;
            out.evaluations.append(objects.clone(), &values);
            candidates.append(objects, &values);
        }
        out.starts = candidates.select(&choose(&candidates.log_rewards, power, n, rng));
        return Ok(());
    };
    let mut n_rounds = rounds;
    let explorers = match explorers {
        Some(explorers) => explorers,
        none => {
            // Samples of the policy aren't uniform, so the first candidates need more rounds.
            n_rounds *= FIRST_ROUNDS;
            none.insert(Chains::new(env, chains.explorers(), sampled(candidates, rng)?, None)?)
        }
    };
    for _ in 0..n {
        for _ in 0..n_rounds {
            explorers.round(env, context.reward.as_ref(), None, rng)?;
        }
        n_rounds = rounds;
        let before = explorers.counts().reward_calls;
        let all = (0..candidates).collect();
        explorers.score_current(context.reward.as_ref(), all, &mut out.evaluations)?;
        out.reward_calls += explorers.counts().reward_calls - before;
        let known: Vec<f64> = explorers.log_rewards().iter().copied().flatten().collect();
        for row in choose(&known, power, 1, rng) {
            out.starts.append(explorers.objects().select(&[row]), &[known[row]]);
        }
    }
    Ok(())
}
