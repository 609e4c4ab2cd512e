//! Tests of replicas in a folder that also holds checkpoints of other runs, of a removed run, or of a later
//! step. Replicas must resume their own run, and must remove only checkpoints that they have replaced.

use gfn::env::VectorEnv;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::{copy, parameters};
use crate::trainers::{Folder, files};
use crate::words::{count, fresh, says, with_flow, words};
use gfn::group::{Group, replicate};
use gfn::objective::TrajectoryBalance;
use gfn::replay::{DataSource, Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::run::Fit;
use gfn::train::{Checkpoint, Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};

/// Builds a trainer with or without a replay buffer, depending on `replays`. All other settings are equal.
fn trainer(seed: u64, replays: bool) -> Result<Trainer<VectorEnv>> {
    let config = TrainerConfig { source: DataSource::new(0.5, 0.5, 0.0)?, replay_after: 0, ..fresh(12) };
    let trainer = Trainer::new(words(), count, with_flow(), TrajectoryBalance, config, Rng::seeded(seed))?;
    let buffer = ReplayConfig { capacity: 500, eviction: Eviction::Fifo, draw: Draw::Uniform };
    Ok(if replays { trainer.with_replay(ReplayBuffer::new(buffer)?) } else { trainer })
}

/// Trains two replicas up to step `steps`, from scratch or from the checkpoint at `path`, and saves them
/// every `every` steps. Returns the parameters.
fn train(seed: u64, steps: usize, every: usize, path: &Path, resume: bool) -> Vec<f64> {
    let first = Mutex::new(Vec::new());
    replicate(2, |replica| {
        let rank = replica.rank();
        let mut trainer = trainer(seed, true)?.with_group(replica)?;
        if resume {
            trainer.resume(path)?;
        }
        Fit::new(steps).checkpoint(path, Some(every))?.run(&mut trainer)?;
        if rank == 0 {
            *first.lock().unwrap() = parameters(&trainer);
        }
        Ok(())
    })
    .unwrap();
    first.into_inner().unwrap()
}

/// Resumes two replicas from the checkpoint at `path`. Returns the step that they have reached, and their
/// parameters.
fn resume_replicas(path: &Path) -> Result<(usize, Vec<f64>)> {
    let first = Mutex::new((0, Vec::new()));
    replicate(2, |replica| {
        let rank = replica.rank();
        let mut trainer = trainer(9, true)?.with_group(replica)?;
        trainer.resume(path)?;
        if rank == 0 {
            *first.lock().unwrap() = (trainer.steps_done(), parameters(&trainer));
        }
        Ok(())
    })?;
    Ok(first.into_inner().unwrap())
}

fn step(path: &Path) -> u64 {
    Checkpoint::load(path).unwrap().manifest().step
}

fn run_id(path: &Path) -> u64 {
    Checkpoint::load(path).unwrap().manifest().state["run_id"].as_u64().unwrap()
}

/// Returns the paths of the checkpoints of both replicas, and the paths of the hidden folders to which
/// checkpoints are written before they are renamed. A hidden folder remains if a run is killed while saving.
fn paths(path: &Path) -> [PathBuf; 4] {
    let name = path.file_name().unwrap().to_str().unwrap();
    let names =
        [name.to_owned(), format!("{name}.1"), format!(".{name}.partial"), format!(".{name}.1.partial")];
    names.map(|name| path.with_file_name(name))
}

fn steps(path: &Path) -> [u64; 2] {
    let [first, second, ..] = paths(path);
    [step(&first), step(&second)]
}

#[test]
fn a_second_run_in_a_folder_resumes_from_its_checkpoint() {
    let folder = Folder::new("other-runs-second");
    let path = folder.join("run");
    train(1, 8, 8, &path, false);
    let second = train(2, 4, 4, &path, false);
    assert_eq!(steps(&path), [4, 4]);
    assert!(resume_replicas(&path).unwrap() == (4, second), "the second run at step 4");
    train(2, 8, 4, &path, true);
    assert_eq!(steps(&path), [8, 8]);
    assert!(paths(&path)[2..].iter().all(|hidden| !hidden.exists()), "nothing is left beside them");
}

#[test]
fn a_removed_run_is_not_found() {
    let folder = Folder::new("other-runs-removed");
    let path = folder.join("run");
    train(1, 8, 4, &path, false);
    let [first, second, ..] = paths(&path);
    for visible in [&first, &second] {
        assert!(Checkpoint::exists(visible));
        fs::remove_dir_all(visible).unwrap();
        assert!(!Checkpoint::exists(visible) && Checkpoint::load(visible).is_err());
    }
    let second_run = train(2, 2, 2, &path, false);
    assert!(resume_replicas(&path).unwrap() == (2, second_run));
}

#[test]
fn a_backup_that_is_put_back_is_resumed() {
    let folder = Folder::new("other-runs-backup");
    let path = folder.join("run");
    let backup = folder.join("backup");
    let at_four = train(1, 4, 4, &path, false);
    for replica in 0..2 {
        copy(&paths(&path)[replica], &paths(&backup)[replica]);
    }
    let at_twelve = train(1, 12, 4, &path, true);
    assert_eq!(steps(&path), [12, 12]);
    for replica in 0..2 {
        copy(&paths(&backup)[replica], &paths(&path)[replica]);
    }
    assert!(resume_replicas(&path).unwrap() == (4, at_four));
    // Training must continue from step 4. Training must also resume after the first replica was killed before
    // it renamed its checkpoint.
    let [first, _, staged, _] = paths(&path);
    train(1, 8, 4, &path, true);
    fs::rename(&first, &staged).unwrap();
    copy(&paths(&backup)[0], &first);
    assert_eq!(steps(&path), [4, 8], "the second replica has replaced its checkpoint, the first one hasn't");
    assert!(train(1, 12, 4, &path, true) == at_twelve);
}

#[test]
fn checkpoints_of_different_runs_are_refused_and_kept() {
    let folder = Folder::new("other-runs-mixed");
    let path = folder.join("run");
    let other = folder.join("other");
    train(1, 8, 4, &other, false);
    train(2, 4, 4, &path, false);
    // In this state, the second run was killed when only its second replica had saved for the first time. The
    // first replica's checkpoint is still that of the other run.
    copy(&paths(&other)[0], &paths(&path)[0]);
    assert_eq!(steps(&path), [8, 4]);
    let before = [0, 1].map(|replica| files(&paths(&path)[replica]));
    let error = resume_replicas(&path).unwrap_err();
    assert!(matches!(error, Error::File { .. }), "{error:?}");
    says(&error, &["of another run than that of replica", "step 8", "4", "start in a new folder"]);
    assert!([0, 1].map(|replica| files(&paths(&path)[replica])) == before, "all files are as they were");
}

/// Checks that staged checkpoints, which a killed run left under hidden names, aren't taken for newer
/// checkpoints of this run if they belong to another run.
#[test]
fn a_staged_checkpoint_of_another_run_is_left_alone() {
    let folder = Folder::new("other-runs-staged");
    let path = folder.join("run");
    let other = folder.join("other");
    train(1, 8, 8, &other, false);
    let at_four = train(2, 4, 4, &path, false);
    for replica in 0..2 {
        copy(&paths(&other)[replica], &paths(&path)[2 + replica]);
    }
    assert!(resume_replicas(&path).unwrap() == (4, at_four));
    train(2, 8, 4, &path, true);
    assert!(paths(&path)[2..].iter().all(|hidden| !hidden.exists()), "the next save replaces it");
}

/// Checks that resuming fails if one or both replicas lack the buffer that the checkpoint has. The
/// checkpoints must remain unchanged.
#[test]
fn a_resume_that_fails_keeps_the_checkpoints() {
    let folder = Folder::new("other-runs-fails");
    let path = folder.join("run");
    train(1, 4, 4, &path, false);
    let before = [0, 1].map(|replica| files(&paths(&path)[replica]));
    for without in [[true, true], [true, false], [false, true]] {
        let error = replicate(2, |replica| {
            let replays = !without[replica.rank()];
            trainer(9, replays)?.with_group(replica)?.resume(&path)
        })
        .unwrap_err();
        says(&error, &["a replay buffer, the other has none"]);
        assert!([0, 1].map(|replica| files(&paths(&path)[replica])) == before, "{without:?}");
    }
    assert_eq!(resume_replicas(&path).unwrap().0, 4);
}

#[test]
fn a_run_keeps_its_id_and_replicas_share_it() {
    let folder = Folder::new("other-runs-id");
    let [path, other] = ["run", "other"].map(|name| folder.join(name));
    train(1, 4, 2, &path, false);
    let visible = || paths(&path).into_iter().take(2).map(|path| run_id(&path)).collect::<Vec<_>>();
    let mut ids = visible();
    train(1, 6, 2, &path, true);
    ids.extend(visible());
    assert!(ids.iter().all(|&id| id == ids[0] && id > 0), "{ids:?}");
    // Another run with the same seed makes the same steps, but must have another id. The same holds for a
    // single trainer.
    train(1, 6, 2, &other, false);
    assert_ne!(run_id(&other), ids[0]);
    assert!(files(&path)[1] == files(&other)[1], "the same tensors");
    let alone = [folder.join("alone"), folder.join("again")];
    let mut first = trainer(1, true).unwrap();
    first.save(&alone[0]).unwrap();
    let mut second = trainer(1, true).unwrap();
    second.save(&alone[1]).unwrap();
    assert_ne!(run_id(&alone[0]), run_id(&alone[1]));
    second.resume(&alone[0]).unwrap();
    assert_eq!(first.step().unwrap().loss, second.step().unwrap().loss);
    second.save(&alone[1]).unwrap();
    assert_eq!(run_id(&alone[0]), run_id(&alone[1]));
}
