//! Replicas in a folder that holds checkpoints of other runs, of a run that was removed, or of a later step: they
//! resume their own run, and remove nothing that they didn't replace.

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

/// A trainer with a replay buffer, if it `replays`; its settings are the same without.
fn trainer(seed: u64, replays: bool) -> Result<Trainer<VectorEnv>> {
    let config = TrainerConfig { source: DataSource::new(0.5, 0.5, 0.0)?, replay_after: 0, ..fresh(12) };
    let trainer = Trainer::new(words(), count, with_flow(), TrajectoryBalance, config, Rng::seeded(seed))?;
    let buffer = ReplayConfig { capacity: 500, eviction: Eviction::Fifo, draw: Draw::Uniform };
    Ok(if replays { trainer.with_replay(ReplayBuffer::new(buffer)?) } else { trainer })
}

/// Trains two replicas to a step, from scratch or from the checkpoint that is there, and saves every `every` steps;
/// returns the parameters.
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

/// Returns the step that two replicas resume at, and their parameters.
fn resumed(path: &Path) -> Result<(usize, Vec<f64>)> {
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

/// The newest checkpoints of both replicas, and the hidden ones.
fn paths(path: &Path) -> [PathBuf; 4] {
    let name = path.file_name().unwrap().to_str().unwrap();
    let names = [name.to_owned(), format!("{name}.1"), format!(".{name}.previous"), format!(".{name}.1.previous")];
    names.map(|name| path.with_file_name(name))
}

fn steps(path: &Path) -> [u64; 4] {
    paths(path).map(|path| step(&path))
}

#[test]
fn a_second_run_in_a_folder_resumes_its_own_checkpoint() {
    let folder = Folder::new("other-runs-second");
    let path = folder.join("run");
    train(1, 8, 8, &path, false);
    let second = train(2, 4, 4, &path, false);
    assert_eq!(steps(&path), [4, 4, 8, 8]);
    assert!(resumed(&path).unwrap() == (4, second), "the second run at step 4");
    assert_eq!(steps(&path), [4, 4, 8, 8], "nothing is removed");
    // On from there, its older checkpoint takes the place of the other run's.
    train(2, 8, 4, &path, true);
    assert_eq!(steps(&path), [8, 8, 4, 4]);
}

#[test]
fn a_removed_run_is_not_found() {
    let folder = Folder::new("other-runs-removed");
    let path = folder.join("run");
    train(1, 8, 4, &path, false);
    let [first, second, older @ ..] = paths(&path);
    for visible in [&first, &second] {
        assert!(Checkpoint::exists(visible));
        fs::remove_dir_all(visible).unwrap();
        assert!(!Checkpoint::exists(visible) && Checkpoint::load(visible).is_err());
    }
    let second_run = train(2, 2, 2, &path, false);
    assert!(older.iter().all(|older| !older.exists()), "the first save removes what the run left");
    assert!(resumed(&path).unwrap() == (2, second_run));
}

#[test]
fn a_backup_that_is_put_back_is_resumed() {
    let folder = Folder::new("other-runs-backup");
    let (path, backup) = (folder.join("run"), folder.join("backup"));
    let at_four = train(1, 4, 4, &path, false);
    (0..2).for_each(|replica| copy(&paths(&path)[replica], &paths(&backup)[replica]));
    let at_twelve = train(1, 12, 4, &path, true);
    assert_eq!(steps(&path), [12, 12, 8, 8]);
    (0..2).for_each(|replica| copy(&paths(&backup)[replica], &paths(&path)[replica]));
    assert!(resumed(&path).unwrap() == (4, at_four));
    assert_eq!(steps(&path), [4, 4, 8, 8]);
    // It trains on from there, and a kill between two saves is survived, whatever the hidden checkpoints were.
    let [first, .., hidden, _] = paths(&path);
    let later = hidden.with_file_name("later");
    copy(&hidden, &later);
    train(1, 8, 4, &path, true);
    copy(&hidden, &first);
    copy(&later, &hidden);
    assert_eq!(steps(&path), [4, 8, 8, 4], "the second replica has saved step 8 again, the first one hasn't");
    assert_eq!(resumed(&path).unwrap().0, 4);
    assert_eq!(step(&paths(&path)[1]), 4);
    assert!(train(1, 12, 4, &path, true) == at_twelve);
}

#[test]
fn checkpoints_of_different_runs_are_refused_and_kept() {
    let folder = Folder::new("other-runs-mixed");
    let (path, kept) = (folder.join("run"), folder.join("kept"));
    train(1, 8, 4, &path, false);
    let [first, _, hidden, _] = paths(&path);
    let [kept_first, _, kept_hidden, _] = paths(&kept);
    copy(&first, &kept_first);
    copy(&hidden, &kept_hidden);
    train(2, 4, 4, &path, false);
    // As if the second run had been killed once its second replica had saved for the first time.
    copy(&kept_first, &first);
    copy(&kept_hidden, &hidden);
    assert_eq!(steps(&path), [8, 4, 4, 8]);
    let before = paths(&path).map(|path| files(&path));
    let error = resumed(&path).unwrap_err();
    assert!(matches!(error, Error::File { .. }), "{error:?}");
    says(&error, &["of another run than replica", "step 8", "4", "start in a new folder"]);
    assert!(paths(&path).map(|path| files(&path)) == before, "all files are as they were");
}

/// The replica that has saved once has an older checkpoint of another run, the one that has saved twice has its own.
#[test]
fn a_kill_at_the_second_save_goes_back_to_the_first_one() {
    let folder = Folder::new("other-runs-kill");
    let (path, kept) = (folder.join("run"), folder.join("kept"));
    train(1, 8, 8, &path, false);
    let at_four = train(2, 4, 4, &path, false);
    let [first, _, hidden, _] = paths(&path);
    let [kept_first, _, kept_hidden, _] = paths(&kept);
    copy(&first, &kept_first);
    copy(&hidden, &kept_hidden);
    train(2, 8, 4, &path, true);
    copy(&kept_first, &first);
    copy(&kept_hidden, &hidden);
    assert_eq!(steps(&path), [4, 8, 8, 4]);
    assert!(resumed(&path).unwrap() == (4, at_four));
    assert_eq!(step(&paths(&path)[1]), 4);
}

/// The second replica has a newer checkpoint, which must go; it stays until both have loaded the older one.
#[test]
fn a_resume_that_fails_keeps_the_newest_checkpoint() {
    let folder = Folder::new("other-runs-fails");
    let path = folder.join("run");
    train(1, 4, 4, &path, false);
    train(1, 8, 4, &path, true);
    let [first, second, hidden, _] = paths(&path);
    fs::remove_dir_all(&first).unwrap();
    fs::rename(&hidden, &first).unwrap();
    let [at_first, at_second] = [files(&first), files(&second)];
    // All of them, or only one, have no buffer for what was saved.
    for without in [[true, true], [true, false], [false, true]] {
        let error = replicate(2, |replica| {
            let replays = !without[replica.rank()];
            trainer(9, replays)?.with_group(replica)?.resume(&path)
        })
        .unwrap_err();
        says(&error, &["a replay buffer, the other has none"]);
        assert!([files(&first), files(&second)] == [at_first.clone(), at_second.clone()], "{without:?}");
    }
    assert_eq!(resumed(&path).unwrap().0, 4);
    assert_eq!([step(&first), step(&second)], [4, 4]);
}

#[test]
fn a_run_keeps_its_id_and_replicas_share_it() {
    let folder = Folder::new("other-runs-id");
    let [path, other] = ["run", "other"].map(|name| folder.join(name));
    train(1, 4, 2, &path, false);
    let mut ids = paths(&path).map(|path| run_id(&path)).to_vec();
    train(1, 6, 2, &path, true);
    ids.extend(paths(&path).map(|path| run_id(&path)));
    assert!(ids.iter().all(|&id| id == ids[0] && id > 0), "{ids:?}");
    // Another run of the same seed makes the same steps under another id; so does a trainer by itself.
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
