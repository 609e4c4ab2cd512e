//! Replicas save one after the other: a run that is stopped meanwhile leaves checkpoints of two steps.

use std::path::Path;

use tch::Tensor;

use super::{LAYOUT, Manifest};
use crate::io::FolderKind;
use crate::train::TrainEnv;
use crate::train::{Checkpoint, Trainer};
use crate::{Error, Result};

impl<E: TrainEnv> Trainer<E> {
    /// Returns the older checkpoint if another replica has none of this one's newest step, but all have one of
    /// the step before. Only an older checkpoint of the same run counts.
    ///
    /// # Errors
    /// [`Error::File`] if they are of different runs, or have no step in common; [`Error::Peer`] if another
    /// replica has ended.
    pub(super) fn older_in_common(&self, path: &Path, newest: &Checkpoint) -> Result<Option<Checkpoint>> {
        let Some(group) = self.context.replicas() else { return Ok(None) };
        let run_id = stored_run_id(newest.manifest());
        let newest = newest.manifest().step.cast_signed();
        let older = FolderKind::older(path).filter(|_| path.exists());
        // One that can't be read was being removed: all have the newest step then.
        let before = older.as_ref().and_then(|older| LAYOUT.manifest(older).ok());
        let before = before.and_then(|(file, text)| Manifest::parse(&text, &file).ok());
        let before = before.filter(|manifest| stored_run_id(manifest) == run_id);
        // The older one is of a later step if a backup was put back in the newest one's place.
        let before = before.map_or(newest, |manifest| manifest.step.cast_signed().min(newest));
        let found = group.join(&Tensor::from_slice(&[newest, before, run_id]))?;
        let found = found.iter().map(Vec::<i64>::try_from).collect::<std::result::Result<Vec<_>, _>>()?;
        if let Some((other, theirs)) = found.iter().enumerate().find(|(_, theirs)| theirs[2] != run_id) {
            let problem = format!("of another run than replica {other}'s: step {newest} here, {} there", theirs[0]);
            return Err(Error::file(path, problem, "resume from the checkpoints of one run, or start in a new folder"));
        }
        let steps: Vec<_> = found.iter().map(|theirs| &theirs[..2]).collect();
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

/// Returns the id of the run that saved a checkpoint, or 0 if it isn't of a trainer.
fn stored_run_id(manifest: &Manifest) -> i64 {
    manifest.state["run_id"].as_i64().unwrap_or(0)
}
