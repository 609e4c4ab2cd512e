//! Saving and loading of buffers: as tensors in checkpoints, and as data sets.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::entry::{Entry, Offer};
use super::{ReplayBuffer, ReplayConfig};
use crate::env::check_log_rewards;
use crate::io::{Named, malformed};
use crate::rollout::{
    Container, Content, DataFile, ReadWalks, ReplayEnv, Trajectories, Walks, conditions_of, first_walked, first_walks,
    read_walks, with_conditions, write_walks,
};
use crate::{Error, Result};

/// The saved value of an unknown loss; real ones aren't negative.
const UNKNOWN: f64 = -1.0;

/// The name of the tensor with the labels of stored states' nodes.
const LABELS: &str = "labels";

/// The settings of a saved buffer.
#[derive(Serialize, Deserialize)]
struct Settings {
    config: ReplayConfig,
    paths: bool,
}

impl<E: ReplayEnv> ReplayBuffer<E> {
    /// The buffer as named tensors, for a checkpoint, oldest first: `actions`, `offsets`, `log_rewards`, `serials`,
    /// `losses` (-1 if unknown), `added` (the number of objects ever added), and `conditions` if there are any.
    ///
    /// A buffer of terminal states only saves the first legal path to each. Up to isomorphism that path labels nodes
    /// differently, and `labels` holds the original labels.
    ///
    /// # Errors
    /// [`Error::NoLegalAction`] for a state without a backward path to the initial one.
    pub fn state(&self, env: &E) -> Result<Vec<(String, Tensor)>> {
        let held = match self.is_empty() {
            true => first_walks(env, &env.initial(&[]))?.0,
            false => self.gather(self.entries.iter().map(|(_, entry)| entry))?,
        };
        let (found, labels) = match self.keeps_paths {
            true => (None, Vec::new()),
            false => first_walks(env, &held.terminal).map(|(walks, labels)| (Some(walks), labels))?,
        };
        let Walks { actions, offsets, .. } = found.as_ref().unwrap_or(&held);
        let mut tensors = with_conditions(write_walks(env, &held.terminal, actions, offsets), held.conditions());
        if !labels.is_empty() {
            let labels: Vec<i64> = labels.into_iter().map(i64::from).collect();
            tensors.push((LABELS.into(), Tensor::from_slice(&labels)));
        }
        let log_rewards: Vec<f64> = self.log_rewards().collect();
        let serials: Vec<i64> = self.entries.iter().map(|(serial, _)| serial as i64).collect();
        let losses: Vec<f64> = self.entries.iter().map(|(_, entry)| entry.loss.unwrap_or(UNKNOWN)).collect();
        tensors.extend([
            ("log_rewards".into(), Tensor::from_slice(&log_rewards)),
            ("serials".into(), Tensor::from_slice(&serials)),
            ("losses".into(), Tensor::from_slice(&losses)),
            ("added".into(), Tensor::from_slice(&[self.added as i64])),
        ]);
        Ok(tensors)
    }

    /// Replaces the contents of the buffer by those that [`state`](Self::state) gave. Every action is checked.
    ///
    /// # Errors
    /// [`Error::Contract`] for tensors that aren't a buffer's and for objects that these settings wouldn't store; those
    /// of [`Trajectories::replay`] for actions of another environment. The buffer is unchanged then.
    pub fn load_state(&mut self, env: &E, state: &[(String, Tensor)]) -> Result<()> {
        *self = self.filled(env, &Named(state))?;
        Ok(())
    }

    /// Replaces the contents by this replica's share of what several buffers held: their objects in turn, the oldest first.
    pub(crate) fn load_share(
        &mut self,
        env: &E,
        states: &[Vec<(String, Tensor)>],
        (rank, size): (usize, usize),
    ) -> Result<()> {
        let parts = states.iter().map(|state| self.filled(env, &Named(state))).collect::<Result<Vec<Self>>>()?;
        let mut all: Vec<(u64, &Self, &Entry<E>)> = parts
            .iter()
            .flat_map(|part| part.entries.iter().map(move |(serial, entry)| (serial, part, entry)))
            .collect();
        // Stable: of equal age, the first buffer's comes first.
        all.sort_by_key(|(serial, ..)| *serial);
        let mut out = self.emptied();
        for (_, part, entry) in all.into_iter().skip(rank).step_by(size) {
            let held = part.gather(std::iter::once(entry))?;
            // Learns the form of conditions, as it does of objects that are added.
            let condition = out.take_conditions(&held)?.swap_remove(0);
            let serial = out.added;
            let offer = Offer { walk: held, condition, log_reward: entry.log_reward };
            if out.offer(env, offer)
                && let Some(loss) = entry.loss
            {
                out.update_losses(&[serial], &[loss])?;
            }
        }
        *self = out;
        Ok(())
    }

    /// Saves the buffer as a data set; the format is that of [`Trajectories::save`], with the tensors of
    /// [`state`](Self::state).
    ///
    /// # Errors
    /// [`Error::File`] if something that isn't a data set has the same path, or if writing fails; those of
    /// [`state`](Self::state).
    pub fn save(&self, env: &E, path: impl AsRef<Path>) -> Result<()> {
        let settings = Settings { config: self.config, paths: self.keeps_paths };
        let settings = serde_json::to_value(settings)
            .map_err(|error| Error::contract("a buffer's settings can be written as JSON", error))?;
        DataFile::new(self.state(env)?, self.len(), settings).write(env, Content::ReplayBuffer, path.as_ref())
    }

    /// Replaces the contents of the buffer by a data set that [`save`](Self::save) wrote. The buffer keeps its own
    /// settings, and its capacity must be large enough.
    ///
    /// # Errors
    /// [`Error::File`] for a data set that is damaged, truncated, of another version, container or environment, or that
    /// doesn't fit this buffer; the buffer is unchanged then.
    pub fn load(&mut self, env: &E, path: impl AsRef<Path>) -> Result<()> {
        let file = DataFile::read(env, Content::ReplayBuffer, path.as_ref())?;
        let settings: Settings =
            serde_json::from_value(file.settings.clone()).map_err(|_| file.refuse(&malformed("settings")))?;
        if self.keeps_paths && !settings.paths {
            return Err(file.refuse(&Error::missing(
                "a buffer that keeps paths",
                "the paths to its objects",
                "load it into a buffer of terminal states only (`terminal_only`)",
            )));
        }
        let filled = file.into_container(|named| self.filled(env, named), Self::len)?;
        *self = filled;
        Ok(())
    }

    /// A buffer with the same settings and the contents of a file.
    fn filled(&self, env: &E, named: &Named<'_>) -> Result<Self> {
        let log_rewards = named.floats("log_rewards")?;
        let n = log_rewards.len();
        let ReadWalks { actions, offsets, instances } = read_walks(named, env)?;
        if offsets.len() != n + 1 {
            return Err(malformed("offsets"));
        }
        let serials = named.column(named.ints("serials")?, "serials", n)?;
        let losses = named.column(named.floats("losses")?, "losses", n)?;
        let added = named.column(named.ints("added")?, "added", 1)?[0];
        if serials.first().is_some_and(|&first| first < 0) || !serials.is_sorted_by(|a, b| a < b) {
            return Err(malformed("serials"));
        }
        if added < serials.last().map_or(0, |last| last.saturating_add(1)) {
            return Err(malformed("added"));
        }
        if losses.iter().any(|&loss| !(loss.is_finite() && (loss >= 0.0 || loss == UNKNOWN))) {
            return Err(malformed("losses"));
        }
        check_log_rewards(&log_rewards, n)?;
        let mut out = self.emptied();
        if n > out.config.capacity {
            return Err(no_room(format!("{n} objects, and room for {}", out.config.capacity)));
        }
        if n > 0 {
            let mut held = Trajectories::replay_of(env, &instances, &actions, &offsets)?.walks(env)?;
            if !self.keeps_paths && named.get(LABELS).is_some() {
                let labels =
                    named.ints(LABELS)?.into_iter().map(u32::try_from).collect::<std::result::Result<Vec<_>, _>>();
                held.terminal = first_walked(env, &held, &labels.map_err(|_| malformed(LABELS))?)?;
            }
            held.conditions = conditions_of(named, n)?;
            let conditions = out.take_conditions(&held)?;
            for i in 0..n {
                out.added = serials[i] as u64;
                let offer =
                    Offer { walk: held.select([i])?, condition: conditions[i].clone(), log_reward: log_rewards[i] };
                if !out.offer(env, offer) {
                    return Err(no_room(format!("object {i} would not be kept")));
                }
                if losses[i] >= 0.0 {
                    out.update_losses(&[serials[i] as u64], &[losses[i]])?;
                }
            }
        }
        out.added = added as u64;
        Ok(out)
    }
}

fn no_room(detail: String) -> Error {
    Error::contract("the buffer holds all that was saved", detail)
}
