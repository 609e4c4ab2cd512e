//! The state of chains as named tensors, for checkpoints.

use gfn::env::{DiscreteEnv, Rows};
use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::rollout::{ReplayEnv, Walks};
use gfn::{Error, Result};
use tch::Tensor;

use super::{ChainConfig, ChainCounts, Chains};

/// Named tensors, as a checkpoint stores them.
pub(super) type NamedTensors = Vec<(String, Tensor)>;

/// Returns walks without actions to these objects.
pub(super) fn without_paths<E: DiscreteEnv>(env: &E, objects: E::States) -> Walks<E> {
    let offsets = vec![0; objects.len() + 1];
    Walks { actions: env.no_actions(), offsets, terminal: objects, conditions: None }
}

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

/// Returns the `n` numbers of a tensor.
pub(super) fn numbers<T: tch::kind::Element>(
    tensors: &[(String, Tensor)],
    name: &str,
    n: usize,
) -> Result<Vec<T>>
where
    Vec<T>: TryFrom<Tensor>,
{
    let tensor = tensors.iter().find(|(other, _)| other == name).map(|(_, tensor)| tensor.shallow_clone());
    let values =
        tensor.filter(|tensor| tensor.kind() == T::KIND).and_then(|tensor| Vec::try_from(tensor).ok());
    values.filter(|values: &Vec<T>| values.len() == n).ok_or_else(|| {
        let detail =
            format!("`{name}` is missing, or hasn't {n} numbers; resume with the same settings of chains");
        Error::contract("the saved state of chains belongs to chains of the same number", detail)
    })
}

impl<E: DiscreteEnv> Chains<E> {
    /// Returns a buffer with the objects of the chains, in their order. In an environment up to isomorphism
    /// the objects get the labels that a checkpoint restores, so a run that resumes has the same objects.
    pub(super) fn settle(&mut self, env: &E) -> Result<ReplayBuffer<E>> {
        let config = ReplayConfig { capacity: self.len(), eviction: Eviction::Fifo, draw: Draw::Uniform };
        let mut out = ReplayBuffer::new(config)?.terminal_only();
        let log_rewards: Vec<f64> = self.log_rewards.iter().map(|known| known.unwrap_or(0.0)).collect();
        out.add(env, &without_paths(env, self.objects.clone()), &log_rewards)?;
        if let Some(walks) = out.walks() {
            self.objects = walks.terminal;
        }
        self.refresh(env)?;
        Ok(out)
    }

    /// Returns the state of the chains. `settled` is the buffer that [`settle`](Self::settle) returned last.
    pub(super) fn state(&self, env: &E, settled: &ReplayBuffer<E>) -> Result<NamedTensors> {
        let mut out = settled.state(env)?;
        let is_known: Vec<i64> = self.log_rewards.iter().map(|known| i64::from(known.is_some())).collect();
        let ChainCounts { rounds, reward_calls, changes, proposed, accepted } = self.counts;
        let counts = [rounds, reward_calls, changes, proposed, accepted].map(|count| count as i64);
        out.push(("is_known".into(), Tensor::from_slice(&is_known)));
        out.push(("counts".into(), Tensor::from_slice(&counts)));
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
        let mut settled = ReplayBuffer::new(buffer_config)?.terminal_only();
        settled.load_state(env, state)?;
        let is_known: Vec<i64> = numbers(state, "is_known", n)?;
        let counts: Vec<i64> = numbers(state, "counts", 5)?;
        let objects = settled.walks().map_or_else(|| env.initial(&[]), |walks| walks.terminal);
        let mut out = Self::new(env, config, objects, Some(settled.log_rewards().collect()))?;
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
        };
        Ok((out, settled))
    }
}
