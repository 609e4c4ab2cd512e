//! Saving and loading the contents of a buffer as tensors, for checkpoints.

use tch::Tensor;

use super::ReplayBuffer;
use crate::env::check_log_rewards;
use crate::io::{NamedTensors, malformed};
use crate::rollout::{
    Container, ReadWalks, ReplayEnv, Trajectories, Walks, conditions_of, read_walks, with_conditions,
    write_walks,
};
use crate::{Error, Result};

/// The saved value of an unknown loss. Known losses are stored as absolute values, so they aren't negative.
const UNKNOWN: f64 = -1.0;

impl<E: ReplayEnv> ReplayBuffer<E> {
    /// Returns the buffer's contents as named tensors, for a checkpoint, the oldest entry first: `actions`,
    /// `offsets`, `log_rewards`, `serials`, `losses` (-1 if unknown), `added` (the number of objects ever
    /// added), and `conditions` if entries have conditions.
    ///
    /// For an object that is stored without actions, the actions of a default path to the object are saved
    /// ([`ReplayEnv::way_back`]).
    ///
    /// # Errors
    /// [`Error::NoLegalAction`] for a state without a backward path to the initial state.
    pub fn state(&self, env: &E) -> Result<Vec<(String, Tensor)>> {
        let mut held = if self.is_empty() {
            Walks::default_paths(env, &env.initial(&[]))?
        } else {
            self.gather(self.entries.values(), true)?
        };
        if !held.has_paths() {
            let found = Walks::default_paths(env, &held.terminal)?;
            (held.actions, held.offsets) = (found.actions, found.offsets);
        }
        let mut tensors = with_conditions(
            write_walks(env, &held.terminal, &held.actions, &held.offsets),
            held.conditions(),
        );
        let log_rewards: Vec<f64> = self.log_rewards().collect();
        let serials: Vec<i64> = self.entries.keys().map(|&serial| serial as i64).collect();
        let losses: Vec<f64> =
            self.entries.values().map(|entry| entry.object.loss.unwrap_or(UNKNOWN)).collect();
        tensors.extend([
            ("log_rewards".into(), Tensor::from_slice(&log_rewards)),
            ("serials".into(), Tensor::from_slice(&serials)),
            ("losses".into(), Tensor::from_slice(&losses)),
            ("added".into(), Tensor::from_slice(&[self.added as i64])),
        ]);
        Ok(tensors)
    }

    /// Replaces the contents of the buffer by contents that [`state`](Self::state) returned. Every action is
    /// checked.
    ///
    /// # Errors
    /// [`Error::Contract`] for tensors that don't describe a buffer, and for objects that a buffer with these
    /// settings doesn't accept; the errors of [`Trajectories::replay`] for actions of another environment. If
    /// it fails, the buffer is unchanged.
    pub fn load_state(&mut self, env: &E, state: &[(String, Tensor)]) -> Result<()> {
        let named = &NamedTensors(state);
        let log_rewards = named.numbers::<f64>("log_rewards")?;
        let n = log_rewards.len();
        let ReadWalks { actions, offsets, instances } = read_walks(named, env)?;
        let serials = named.column(named.numbers::<i64>("serials")?, "serials", n)?;
        let losses = named.column(named.numbers::<f64>("losses")?, "losses", n)?;
        let added = named.column(named.numbers::<i64>("added")?, "added", 1)?[0];
        let after = serials.last().map_or(0, |newest| newest.saturating_add(1));
        for (name, is_sound) in [
            ("offsets", offsets.len() == n + 1),
            ("serials", serials.iter().all(|&serial| serial >= 0) && serials.is_sorted_by(|a, b| a < b)),
            ("added", added >= after),
            ("losses", losses.iter().all(|&loss| loss.is_finite() && (loss >= 0.0 || loss == UNKNOWN))),
        ] {
            if !is_sound {
                return Err(malformed(name));
            }
        }
        let mut out = self.emptied()?;
        if n > out.config.capacity {
            return Err(no_room(format!(
                "{n} objects were saved, but the capacity is {}",
                out.config.capacity
            )));
        }
        if n > 0 {
            let mut held = Trajectories::replay_of(env, &instances, &actions, &offsets)?.walks(env)?;
            check_log_rewards(&log_rewards, &held.terminal)?;
            held.conditions = conditions_of(named, n)?;
            let conditions = out.take_conditions(&held)?;
            out.choose_paths(env)?;
            for (i, condition) in conditions.into_iter().enumerate() {
                out.added = serials[i] as u64;
                if !out.admit(env, held.select([i])?, condition, log_rewards[i]) {
                    return Err(no_room(format!(
                        "this buffer would not keep object {i}, because its settings differ"
                    )));
                }
                if losses[i] >= 0.0 {
                    out.update_losses(&[serials[i] as u64], &[losses[i]])?;
                }
            }
        }
        out.added = added as u64;
        *self = out;
        Ok(())
    }
}

fn no_room(detail: String) -> Error {
    Error::contract("a buffer can hold all objects that were saved", detail)
}
