//! Replicas save one after the other: a run that is stopped meanwhile leaves checkpoints of two steps.

use std::path::Path;

use tch::Tensor;

use super::{LAYOUT, Manifest};
use crate::io::FolderKind;
use crate::policy::Policy;
use crate::rollout::ReplayEnv;
use crate::train::{Checkpoint, Trainer};
use crate::{Error, Result};

impl<E: ReplayEnv, P: Policy<E>> Trainer<E, P> {
    /// `true` where another replica has no checkpoint of this one's newest step, but all have one of the step before.
    ///
    /// # Errors
    /// [`Error::File`] where they have no step in common; [`Error::Peer`] if another replica has ended.
    pub(super) fn behind(&self, path: &Path, newest: &Checkpoint) -> Result<bool> {
        let Some(group) = self.context.replicas() else { return Ok(false) };
        let newest = newest.manifest().step.cast_signed();
        // The older one is the newest itself where that was never replaced.
        let older = match FolderKind::older(path).filter(|_| path.exists()) {
            Some(older) => {
                let (file, text) = LAYOUT.manifest(&older)?;
                Manifest::parse(&text, &file)?.step.cast_signed()
            }
            None => newest,
        };
        let steps = group.join(&Tensor::from_slice(&[newest, older]))?;
        let steps = steps.iter().map(Vec::<i64>::try_from).collect::<std::result::Result<Vec<_>, _>>()?;
        let in_common = |step: &i64| steps.iter().all(|theirs| theirs.contains(step));
        match [newest, older].into_iter().find(in_common) {
            Some(step) => Ok(step != newest),
            None => {
                let problem = format!(
                    "replicas have checkpoints of different steps: {steps:?}, the newest and the one before of each"
                );
                Err(Error::file(path, problem, "go on from checkpoints that were saved in one step"))
            }
        }
    }
}
