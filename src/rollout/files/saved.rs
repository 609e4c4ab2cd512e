//! Saving and loading trajectories.

use std::path::Path;

use tch::Tensor;

use super::data;
use super::walk_tensors::{ReadWalks, read_walks, write_walks};
use crate::Result;
use crate::condition::Conditions;
use crate::io::{NamedTensors, TensorKind, malformed};
use crate::rollout::{ReplayEnv, Trajectories};

const CONDITIONS: &str = "conditions";
const LOG_REWARDS: &str = "log_rewards";

/// Appends the conditions to the tensors of a file, if `conditions` isn't `None`.
pub(crate) fn with_conditions(
    mut tensors: Vec<(String, Tensor)>,
    conditions: Option<&Tensor>,
) -> Vec<(String, Tensor)> {
    tensors.extend(conditions.map(|c| (CONDITIONS.to_owned(), c.shallow_clone())));
    tensors
}

/// Returns the conditions of `n` elements in a file; `None` if the file has no conditions.
pub(crate) fn conditions_of(named: &NamedTensors<'_>, n: usize) -> Result<Option<Conditions>> {
    let Some(tensor) = named.get(CONDITIONS) else { return Ok(None) };
    let is_float = TensorKind::from_tensor(tensor).is_some_and(TensorKind::is_float);
    if is_float && tensor.f_isfinite()?.f_all()?.f_int64_value(&[])? == 0 {
        return Err(malformed(CONDITIONS));
    }
    Conditions::checked(tensor.shallow_clone(), n).map(Some)
}

impl<E: ReplayEnv> Trajectories<E> {
    /// Saves the trajectories as a data set, together with their conditions and recorded log-rewards if there
    /// are any.
    ///
    /// A data set is a folder of two files. `data.safetensors` holds `actions`, trajectory by trajectory with
    /// exits (slots as i64 in discrete environments); `offsets`, `[n + 1]`, as i64; `instances`, `[n]`, as
    /// i64 if the environment has several; `conditions`, `[n, C]`; and `log_rewards`, `[n]`, as f64. States
    /// aren't saved, because the actions determine them. `manifest.json` holds the version of the format, the
    /// version of this library, a fingerprint of the environment, the number of trajectories, the names,
    /// shapes and dtypes of the tensors, the length of `data.safetensors`, and a checksum of both files. The
    /// new folder is written beside an older data set and then replaces it, so a reader always finds a
    /// complete data set.
    ///
    /// ```
    /// use gfn::{policy::UniformPolicy, rollout::{Sampler, Trajectories}, examples::Chain, Rng};
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
    /// [`Error::File`](crate::Error::File) if `path` exists and isn't a data set, or if writing fails; the
    /// errors of [`walks`](Self::walks).
    pub fn save(&self, env: &E, path: impl AsRef<Path>) -> Result<()> {
        let walks = self.walks(env)?;
        let tensors = write_walks(env, &walks.terminal, &walks.actions, &walks.offsets);
        let mut tensors = with_conditions(tensors, self.conditions());
        if let Some(log_rewards) = &self.log_rewards {
            tensors.push((LOG_REWARDS.to_owned(), Tensor::from_slice(log_rewards)));
        }
        data::write(env, path.as_ref(), tensors, self.len())
    }

    /// Loads trajectories from a data set. The actions are replayed step by step from the initial state, and
    /// every action is checked.
    ///
    /// In an environment up to isomorphism the loaded states are isomorphic to the saved states, and their
    /// nodes are labelled in the order in which they were inserted. Conditions are loaded into host memory.
    ///
    /// Loading needs memory for one state per action, which may be much more than the size of the file. If
    /// the origin of a file is unknown, compare `len` in its `manifest.json` with the available memory before
    /// loading it.
    ///
    /// # Errors
    /// [`Error::File`](crate::Error::File) for a data set that is damaged, truncated, or of another version
    /// or environment, and for an action that isn't legal in its state. Sizes are checked before anything is
    /// read or allocated.
    pub fn load(env: &E, path: impl AsRef<Path>) -> Result<Self> {
        data::read(env, path.as_ref(), |tensors| Self::read(env, &NamedTensors(tensors)))
    }

    fn read(env: &E, named: &NamedTensors<'_>) -> Result<Self> {
        let ReadWalks { actions, offsets, instances } = read_walks(named, env)?;
        let n = offsets.len() - 1;
        let mut out = match n {
            0 => Self::default_paths(env, &env.initial(&[]))?,
            _ => Self::replay_of(env, &instances, &actions, &offsets)?,
        };
        out.conditions = conditions_of(named, n)?;
        match named.get(LOG_REWARDS) {
            Some(_) => out.with_log_rewards(named.numbers(LOG_REWARDS)?),
            None => Ok(out),
        }
    }
}
