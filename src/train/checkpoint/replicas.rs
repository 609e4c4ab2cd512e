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
    /// The older checkpoint, where another replica has none of this one's newest step, but all have one of the step before.
    ///
    /// # Errors
    /// [`Error::File`] where they have no step in common; [`Error::Peer`] if another replica has ended.
    pub(super) fn older_in_common(&self, path: &Path, newest: &Checkpoint) -> Result<Option<Checkpoint>> {
        let Some(group) = self.context.replicas() else { return Ok(None) };
        let newest = newest.manifest().step.cast_signed();
        let older = FolderKind::older(path).filter(|_| path.exists());
        // One that can't be read was being removed: all have the newest step then.
        let before = older.as_ref().and_then(|older| LAYOUT.manifest(older).ok());
        let before = before.and_then(|(file, text)| Manifest::parse(&text, &file).ok());
        let before = before.map_or(newest, |manifest| manifest.step.cast_signed());
        let steps = group.join(&Tensor::from_slice(&[newest, before]))?;
        let steps = steps.iter().map(Vec::<i64>::try_from).collect::<std::result::Result<Vec<_>, _>>()?;
        let in_common = |step: &i64| steps.iter().all(|theirs| theirs.contains(step));
        let Some(step) = [newest, before].into_iter().filter(in_common).max() else {
            let problem = format!(
                "replicas have checkpoints of different steps: {steps:?}, the newest and the one before of each"
            );
            return Err(Error::file(path, problem, "go on from checkpoints that were saved in one step"));
        };
        older.filter(|_| step != newest).map(Checkpoint::load).transpose()
    }
}
