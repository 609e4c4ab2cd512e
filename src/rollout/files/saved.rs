//! Saving and loading of containers.

use std::path::Path;

use serde_json::Value;
use tch::Tensor;

use super::data::{Content, DataFile};
use super::walk_tensors::{ReadWalks, read_walks, write_walks};
use crate::condition::Conditions;
use crate::env::Rows;
use crate::io::{Named, TensorKind, malformed};
use crate::rollout::paths::{checked_step, paths_to, states_at};
use crate::rollout::{ReplayEnv, StatesContainer, Trajectories, Transitions};
use crate::{Error, Result};

const CONDITIONS: &str = "conditions";
const LOG_REWARDS: &str = "log_rewards";
const FINISHED: &str = "finished";

/// Adds conditions to a file's tensors.
pub(crate) fn with_conditions(
    mut tensors: Vec<(String, Tensor)>,
    conditions: Option<&Tensor>,
) -> Vec<(String, Tensor)> {
    tensors.extend(conditions.map(|c| (CONDITIONS.to_owned(), c.shallow_clone())));
    tensors
}

/// The conditions of `n` elements in a file, if it has any.
pub(crate) fn conditions_of(named: &Named<'_>, n: usize) -> Result<Option<Conditions>> {
    let Some(tensor) = named.get(CONDITIONS) else { return Ok(None) };
    let float = TensorKind::of(tensor).is_some_and(TensorKind::is_float);
    if float && tensor.f_isfinite()?.f_all()?.f_int64_value(&[])? == 0 {
        return Err(malformed(CONDITIONS));
    }
    Conditions::checked(tensor.shallow_clone(), n).map(Some)
}

impl<E: ReplayEnv> Trajectories<E> {
    /// Saves the trajectories as a data set, with their conditions and recorded log-rewards, if they have any.
    ///
    /// A data set is a folder of two files. `data.safetensors` holds `actions` (in discrete environments slots, as i64;
    /// trajectory by trajectory, exits included) and, as i64, `offsets` `[n + 1]`; `conditions` `[n, C]`; `log_rewards`
    /// `[n]` in f64. States aren't saved, because the actions determine them. `manifest.json` has the version of the
    /// format, the kind of container, a fingerprint of the environment, the number of elements, the tensors' names,
    /// shapes and kinds, and the length and the checksum of the other file. The folder is written beside an older one
    /// and swapped with it: a reader of the path sees either the old data set or the new one.
    ///
    /// ```
    /// use gfn::{policy::UniformPolicy, rollout::{Sampler, Trajectories}, testing::Chain, Rng};
    /// let env = Chain::new(4);
    /// let trajectories = Sampler::new(&env, &UniformPolicy).forward(8, &mut Rng::seeded(0))?;
    /// let path = std::env::temp_dir().join(format!("gfn-doc-trajectories-{}", std::process::id()));
    /// trajectories.save(&env, &path)?;
    /// let loaded = Trajectories::load(&env, &path)?;
    /// assert_eq!(loaded.actions(), trajectories.actions());
    /// assert!(Trajectories::load(&Chain::new(5), &path).is_err());
    /// # std::fs::remove_dir_all(&path).ok();
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::File`] if something that isn't a data set has the same path, or if writing fails; those of
    /// [`walks`](Self::walks).
    pub fn save(&self, env: &E, path: impl AsRef<Path>) -> Result<()> {
        let walked = self.walks(env)?;
        let mut tensors =
            with_conditions(write_walks(env, &walked.terminal, &walked.actions, &walked.offsets), self.conditions());
        tensors.extend(self.log_rewards.as_deref().map(|known| (LOG_REWARDS.to_owned(), Tensor::from_slice(known))));
        DataFile::new(tensors, self.len(), Value::Null).write(env, Content::Trajectories, path.as_ref())
    }

    /// Loads trajectories from a data set: they are replayed step by step from the initial state, and every action is
    /// checked.
    ///
    /// Up to isomorphism they are isomorphic to the saved ones, with nodes labelled in the order of insertion.
    /// Conditions are on the host.
    ///
    /// Loading takes memory for one state per action and trajectory, even if the file is small. For a file of unknown
    /// origin use a [`ReplayBuffer`](crate::replay::ReplayBuffer), which creates no more states than its capacity.
    ///
    /// # Errors
    /// [`Error::File`] for a data set that is damaged, truncated, of another version, container or environment, or that
    /// has an action that isn't legal in its state. Sizes are checked before anything is read or allocated.
    pub fn load(env: &E, path: impl AsRef<Path>) -> Result<Self> {
        let file = DataFile::read(env, Content::Trajectories, path.as_ref())?;
        let read = |named: &Named<'_>| {
            let ReadWalks { actions, offsets, instances } = read_walks(named, env)?;
            let n = offsets.len() - 1;
            let mut out = if n == 0 { Self::none(env) } else { Self::replay_of(env, &instances, &actions, &offsets)? };
            out.conditions = conditions_of(named, n)?;
            match named.get(LOG_REWARDS) {
                Some(_) => out.with_log_rewards(named.floats(LOG_REWARDS)?),
                None => Ok(out),
            }
        };
        file.into_container(read, Self::len)
    }
}

impl<E: ReplayEnv> Transitions<E> {
    /// Saves the transitions as a data set; the format is that of [`Trajectories::save`].
    ///
    /// Each transition is saved as actions that lead to its state (the first legal backward path, reversed) and its own
    /// action after them. So everything in a file can be checked from the initial state on. A transition takes as many
    /// numbers as its state is deep: for whole trajectories, saving those is shorter.
    ///
    /// # Errors
    /// As for [`Trajectories::save`]; [`Error::NoLegalAction`] for a state without a backward path to the initial one.
    pub fn save(&self, env: &E, path: impl AsRef<Path>) -> Result<()> {
        let (actions, offsets) = paths_to(env, &self.states, Some((&self.actions, &self.reverse_actions)))?;
        let tensors = with_conditions(write_walks(env, &self.states, &actions, &offsets), self.conditions());
        DataFile::new(tensors, self.len(), Value::Null).write(env, Content::Transitions, path.as_ref())
    }

    /// Loads transitions from a data set. Every action is checked, and the states after are computed by stepping.
    ///
    /// Up to isomorphism they are isomorphic to the saved ones. Conditions are on the host.
    ///
    /// # Errors
    /// As for [`Trajectories::load`].
    pub fn load(env: &E, path: impl AsRef<Path>) -> Result<Self> {
        let file = DataFile::read(env, Content::Transitions, path.as_ref())?;
        let read = |named: &Named<'_>| {
            let ReadWalks { actions, offsets, instances } = read_walks(named, env)?;
            let n = offsets.len() - 1;
            if offsets.windows(2).any(|ends| ends[0] == ends[1]) {
                return Err(malformed("offsets"));
            }
            // The last action of each path is the transition's own.
            let own: Vec<usize> = offsets[1..].iter().map(|end| end - 1).collect();
            let mut is_own = vec![false; actions.len()];
            own.iter().for_each(|&place| is_own[place] = true);
            let to: Vec<usize> = (0..actions.len()).filter(|&place| !is_own[place]).collect();
            let starts: Vec<usize> = offsets.iter().enumerate().map(|(i, offset)| offset - i).collect();
            let states = states_at(env, &instances, &actions.select(&to), &starts)?;
            let actions = actions.select(&own);
            let mut next_states = states.clone();
            let step = checked_step(env, &mut next_states, &actions)?;
            Ok(Self {
                states,
                actions,
                next_states,
                reverse_actions: step.reverse,
                is_last: step.done,
                is_exit: step.exit,
                conditions: conditions_of(named, n)?,
            })
        };
        file.into_container(read, Self::len)
    }
}

impl<E: ReplayEnv> StatesContainer<E> {
    /// Saves the states as a data set; the format is that of [`Trajectories::save`], plus `finished` as bytes.
    ///
    /// Each state is saved as actions that lead to it (the first legal backward path, reversed), so that only states
    /// are read that the environment can reach.
    ///
    /// # Errors
    /// As for [`Trajectories::save`]; [`Error::NoLegalAction`] for a state without a backward path to the initial one.
    pub fn save(&self, env: &E, path: impl AsRef<Path>) -> Result<()> {
        let (actions, offsets) = paths_to(env, &self.states, None)?;
        let mut tensors = with_conditions(write_walks(env, &self.states, &actions, &offsets), self.conditions());
        let finished: Vec<u8> = self.finished.iter().map(|&finished| u8::from(finished)).collect();
        tensors.push((FINISHED.to_owned(), Tensor::from_slice(&finished)));
        if let Some(known) = &self.log_rewards {
            let values: Vec<f64> = known.iter().map(|value| value.unwrap_or(f64::NAN)).collect();
            tensors.push((LOG_REWARDS.to_owned(), Tensor::from_slice(&values)));
        }
        DataFile::new(tensors, self.len(), Value::Null).write(env, Content::States, path.as_ref())
    }

    /// Loads states from a data set. They are reached from the initial state, every action is checked, and every
    /// finished state must be able to end a trajectory.
    ///
    /// Up to isomorphism they are isomorphic to the saved ones. Conditions are on the host.
    ///
    /// # Errors
    /// As for [`Trajectories::load`].
    pub fn load(env: &E, path: impl AsRef<Path>) -> Result<Self> {
        let file = DataFile::read(env, Content::States, path.as_ref())?;
        let read = |named: &Named<'_>| {
            let ReadWalks { actions, offsets, instances } = read_walks(named, env)?;
            let n = offsets.len() - 1;
            let states = states_at(env, &instances, &actions, &offsets)?;
            let finished = named.flags(FINISHED, n)?;
            if let Some(row) = env.can_finish(&states).iter().zip(&finished).position(|(can, is)| *is && !can) {
                return Err(Error::contract("a finished state can end a trajectory", format!("state {row} can't")));
            }
            let mut out = Self { states, finished, conditions: conditions_of(named, n)?, log_rewards: None };
            if named.get(LOG_REWARDS).is_some() {
                let values = named.column(named.floats(LOG_REWARDS)?, LOG_REWARDS, n)?;
                let known = |(value, &finished): (f64, &bool)| finished.then_some(value);
                let known = values.into_iter().zip(&out.finished).map(known).collect();
                out = out.with_log_rewards(known)?;
            }
            Ok(out)
        };
        file.into_container(read, Self::len)
    }
}
