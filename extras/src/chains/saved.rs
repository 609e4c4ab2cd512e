//! The state of chains as named tensors, for checkpoints.

use gfn::env::DiscreteEnv;
use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::{Error, Result};
use tch::Tensor;

use super::{ChainConfig, ChainCounts, Chains, Proposal};

/// Named tensors, as a checkpoint stores them.
pub(super) type NamedTensors = Vec<(String, Tensor)>;

/// Returns tensors with `prefix` before their names.
pub(super) fn with_prefix(prefix: &str, tensors: NamedTensors) -> NamedTensors {
    tensors.into_iter().map(|(name, tensor)| (format!("{prefix}{name}"), tensor)).collect()
}

/// Returns the tensors whose names begin with `prefix`, without the prefix.
pub(super) fn below_prefix(prefix: &str, tensors: &[(String, Tensor)]) -> NamedTensors {
    let name = |(name, tensor): &(String, Tensor)| {
        Some((name.strip_prefix(prefix)?.to_owned(), tensor.shallow_clone()))
    };
    tensors.iter().filter_map(name).collect()
}

/// Returns the numbers of a tensor; `None` if it is missing, or has another type.
fn find_numbers<T: tch::kind::Element>(tensors: &[(String, Tensor)], name: &str) -> Option<Vec<T>>
where
    Vec<T>: TryFrom<Tensor>,
{
    let (_, tensor) = tensors.iter().find(|(other, tensor)| other == name && tensor.kind() == T::KIND)?;
    Vec::try_from(tensor.shallow_clone()).ok()
}

/// Returns the `n` numbers of a tensor.
pub(super) fn numbers<T: tch::kind::Element>(
    tensors: &[(String, Tensor)],
    name: &str,
    n: usize,
) -> Result<Vec<T>>
where
    Vec<T>: TryFrom<Tensor>,
{
    find_numbers(tensors, name).filter(|values: &Vec<T>| values.len() == n).ok_or_else(|| {
        let detail =
            format!("`{name}` is missing, or hasn't {n} numbers; resume with the same settings of chains");
        Error::contract("the saved state of chains belongs to chains of the same number", detail)
    })
}

/// Returns the numbers of a proposal: its weight, its kind, and its number of backward moves.
fn proposal_numbers(proposal: &(f64, Proposal)) -> [f64; 3] {
    let (weight, proposal) = *proposal;
    match proposal {
        Proposal::OneMove => [weight, 0.0, 0.0],
        Proposal::BackAndForth { max_back } => [weight, 1.0, max_back as f64],
        Proposal::Policy { max_back } => [weight, 2.0, max_back as f64],
    }
}

/// Returns the settings of chains other than their proposals as numbers.
fn other_settings(config: &ChainConfig) -> Vec<f64> {
    let mut out = config.powers.clone();
    out.extend([config.exchange_every as f64, f64::from(u8::from(config.score_changes))]);
    out
}

/// Returns settings with the proposals of saved chains, if they have none.
///
/// # Errors
/// [`Error::Contract`] if the saved chains had other settings.
fn with_saved_proposals(mut config: ChainConfig, state: &[(String, Tensor)]) -> Result<ChainConfig> {
    let saved: Vec<f64> = find_numbers(state, "proposals").unwrap_or_default();
    if config.proposals.is_empty() {
        let read = |numbers: &[f64]| {
            let max_back = numbers[2] as usize;
            let rules =
                [Proposal::OneMove, Proposal::BackAndForth { max_back }, Proposal::Policy { max_back }];
            rules.get(numbers[1] as usize).map(|rule| (numbers[0], *rule))
        };
        config.proposals = saved.chunks_exact(3).filter_map(read).collect();
    }
    let differs = |name: &str, saved: &[f64], now: &[f64]| {
        let detail = format!(
            "the {name} of the saved chains are stored as the numbers {saved:?}, those of the new chains are \
             {now:?}; resume with the same settings of chains"
        );
        Error::contract("resumed chains have the settings of the saved chains", detail)
    };
    let proposals: Vec<f64> = config.proposals.iter().flat_map(proposal_numbers).collect();
    if proposals != saved || proposals.is_empty() {
        return Err(differs("proposals", &saved, &proposals));
    }
    let others: Vec<f64> = find_numbers(state, "settings").unwrap_or_default();
    if others != other_settings(&config) {
        return Err(differs("powers, exchanges and scored changes", &others, &other_settings(&config)));
    }
    Ok(config)
}

impl<E: DiscreteEnv> Chains<E> {
    /// Returns a buffer with the objects of the chains, in their order. In an environment up to isomorphism
    /// the objects get the labels that a checkpoint restores, so a run that resumes has the same objects.
    pub(super) fn canonicalise_objects(&mut self, env: &E) -> Result<ReplayBuffer<E>> {
        let config = ReplayConfig { capacity: self.len(), eviction: Eviction::Fifo, draw: Draw::Uniform };
        let mut out = ReplayBuffer::new(config)?.terminal_only();
        let log_rewards: Vec<f64> = self.log_rewards.iter().map(|known| known.unwrap_or(0.0)).collect();
        out.add_objects(env, self.objects.clone(), &log_rewards)?;
        if let Some(walks) = out.walks() {
            self.objects = walks.terminal;
        }
        self.refresh(env)?;
        Ok(out)
    }

    /// Returns the state of the chains. `buffer` is the one that
    /// [`canonicalise_objects`](Self::canonicalise_objects) returned last.
    pub(super) fn state(&self, env: &E, buffer: &ReplayBuffer<E>) -> Result<NamedTensors> {
        let mut out = buffer.state(env)?;
        let is_known: Vec<i64> = self.log_rewards.iter().map(|known| i64::from(known.is_some())).collect();
        let ChainCounts { rounds, reward_calls, changes, proposed, accepted, exchanged } = self.counts;
        let counts = [rounds, reward_calls, changes, proposed, accepted, exchanged].map(|count| count as i64);
        out.push(("is_known".into(), Tensor::from_slice(&is_known)));
        out.push(("counts".into(), Tensor::from_slice(&counts)));
        let proposals: Vec<f64> = self.config.proposals.iter().flat_map(proposal_numbers).collect();
        out.push(("proposals".into(), Tensor::from_slice(&proposals)));
        out.push(("settings".into(), Tensor::from_slice(&other_settings(&self.config))));
        Ok(out)
    }

    /// Restores `n` chains from a state that [`state`](Self::state) returned, together with the buffer.
    pub(super) fn from_state(
        env: &E,
        config: ChainConfig,
        n: usize,
        state: &[(String, Tensor)],
    ) -> Result<(Self, ReplayBuffer<E>)> {
        let buffer_config = ReplayConfig { capacity: n, eviction: Eviction::Fifo, draw: Draw::Uniform };
        let config = with_saved_proposals(config, state)?;
        let mut buffer = ReplayBuffer::new(buffer_config)?.terminal_only();
        buffer.load_state(env, state)?;
        let is_known: Vec<i64> = numbers(state, "is_known", n)?;
        let counts: Vec<i64> = numbers(state, "counts", 6)?;
        let objects = buffer.walks().map_or_else(|| env.initial(&[]), |walks| walks.terminal);
        let mut out = Self::new(env, config, objects, Some(buffer.log_rewards().collect()))?;
        for (log_reward, is_known) in out.log_rewards.iter_mut().zip(is_known) {
            *log_reward = log_reward.filter(|_| is_known != 0);
        }
        let count = |k: usize| counts[k] as u64;
        out.counts = ChainCounts {
            rounds: count(0),
            reward_calls: count(1),
            changes: count(2),
            proposed: count(3),
            accepted: count(4),
            exchanged: count(5),
        };
        Ok((out, buffer))
    }
}
