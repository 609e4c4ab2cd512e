//! Tests of checkpoints of replicas that have separate buffers. Each replica has its own checkpoint, and a
//! run can be resumed only by the same number of replicas.

use gfn::env::VectorEnv;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::{copy, parameters};
use crate::trainers::Folder;
use crate::words::{count, fresh, says, with_flow, words};
use gfn::group::{Group, replicate};
use gfn::objective::TrajectoryBalance;
use gfn::replay::{DataSource, Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::run::{Fit, Goal, KeepBest};
use gfn::train::{Checkpoint, Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};

/// Builds a trainer that replays half of each batch with priorities by loss. The buffer is so large that
/// nothing is evicted.
fn replay_trainer() -> Result<Trainer<VectorEnv>> {
    let config = TrainerConfig { source: DataSource::new(0.5, 0.5, 0.0)?, replay_after: 0, ..fresh(12) };
    let trainer = Trainer::new(words(), count, with_flow(), TrajectoryBalance, config, Rng::seeded(1))?;
    let draw = Draw::LossPrioritised { exponent: 1.0 };
    Ok(trainer.with_replay(ReplayBuffer::new(ReplayConfig {
        capacity: 500,
        eviction: Eviction::Fifo,
        draw,
    })?))
}

/// The final state of each replica: its rank, its parameters, and the log-rewards in its buffer.
type FinalStates = Vec<(usize, Vec<f64>, Vec<f64>)>;

/// Trains `n` replicas up to step `steps`, starting from the checkpoint `from` if it is given, and saves them
/// at `to`.
fn run(n: usize, steps: usize, from: Option<&Path>, to: &Path) -> FinalStates {
    let ends = Mutex::new(Vec::new());
    replicate(n, |replica| {
        let rank = replica.rank();
        let mut trainer = replay_trainer()?.with_group(replica)?;
        match from {
            Some(from) => trainer.resume(from)?,
            None => assert_eq!(trainer.prefill(24)?, 24 / n),
        }
        let at_first: Vec<f64> = trainer.replay().unwrap().log_rewards().collect();
        Fit::new(steps).checkpoint(to, None)?.run(&mut trainer)?;
        let held = if steps == 0 { at_first } else { trainer.replay().unwrap().log_rewards().collect() };
        ends.lock().unwrap().push((rank, parameters(&trainer), held));
        Ok(())
    })
    .unwrap();
    let mut ends = ends.into_inner().unwrap();
    ends.sort_by_key(|end| end.0);
    assert!(ends.iter().all(|end| end.1 == ends[0].1), "replicas drift apart");
    ends
}

fn paths(folder: &Folder) -> [PathBuf; 3] {
    ["half", "whole", "resumed"].map(|name| folder.join(name))
}

#[test]
fn replicas_resume_with_separate_buffers_bit_for_bit() {
    let folder = Folder::new("replicas-resume");
    let [half, whole, resumed] = paths(&folder);
    let at_once = run(2, 12, None, &whole);
    run(2, 5, None, &half);
    assert!(run(2, 12, Some(&half), &resumed) == at_once, "parameters and buffers of both replicas");
    assert_ne!(at_once[0].2, at_once[1].2, "each has a buffer of its own");
}

/// Tests a run that was killed between two saves: one replica has replaced its checkpoint, the other hasn't.
/// The other replica's new checkpoint is complete, but still has the hidden name under which it was written.
#[test]
fn replicas_go_on_from_the_newest_step_that_all_have() {
    let folder = Folder::new("replicas-between");
    let [half, whole, resumed] = paths(&folder);
    let at_once = run(2, 12, None, &whole);
    let step = |path: &Path| Checkpoint::load(path).unwrap().manifest().step;
    for last in ["half", "half.1"] {
        run(2, 5, None, &half);
        copy(&folder.join(last), &folder.join("older"));
        run(2, 8, Some(&half), &half);
        copy(&folder.join(last), &folder.join(&format!(".{last}.partial")));
        copy(&folder.join("older"), &folder.join(last));
        // The first resume completes the interrupted save: it renames the checkpoint that has a hidden name.
        // At the second resume the checkpoints are already complete.
        for before in [5, 8] {
            assert_eq!(step(&folder.join(last)), before);
            assert!(run(2, 12, Some(&half), &resumed) == at_once);
            assert_eq!(["half", "half.1"].map(|name| step(&folder.join(name))), [8, 8]);
        }
    }
    // This run was killed at its first save. One replica has its checkpoint. The other replica's checkpoint
    // is complete, but still has the hidden name under which it was written.
    run(2, 8, Some(&half), &half);
    std::fs::rename(folder.join("half.1"), folder.join(".half.1.partial")).unwrap();
    assert!(run(2, 12, Some(&half), &resumed) == at_once);
    assert_eq!(["half", "half.1"].map(|name| step(&folder.join(name))), [8, 8]);
    // The second replica has only the checkpoint of an older step, so the replicas must refuse to resume.
    copy(&folder.join("older"), &folder.join("half.1"));
    let error = replicate(2, |replica| replay_trainer()?.with_group(replica)?.resume(&half)).unwrap_err();
    says(&error, &["checkpoints of different steps", "5", "8"]);
}

#[test]
fn the_first_replica_saves_once_all_others_have() {
    let folder = Folder::new("replicas-first");
    let [half, _, resumed] = paths(&folder);
    run(2, 5, None, &half);
    std::fs::create_dir(folder.join("resumed.1")).unwrap();
    std::fs::write(folder.join("resumed.1").join("note"), "").unwrap();
    let ended = replicate(2, |replica| {
        let mut trainer = replay_trainer()?.with_group(replica)?;
        trainer.resume(&half)?;
        Fit::new(5).checkpoint(&resumed, None)?.run(&mut trainer)
    });
    says(&ended.unwrap_err(), &["resumed.1", "holds `note` too"]);
    assert!(!Checkpoint::exists(&resumed));
}

#[test]
fn another_number_of_replicas_is_refused() {
    let folder = Folder::new("replicas-number");
    let [two, one, _] = paths(&folder);
    run(2, 3, None, &two);
    run(1, 3, None, &one);
    let resumes = |n: usize, from: &Path| {
        let resumed = replicate(n, |replica| replay_trainer()?.with_group(replica)?.resume(from));
        resumed.unwrap_err()
    };
    for (n, from, there) in [(1, &two, 2), (3, &two, 2), (2, &one, 1)] {
        let error = resumes(n, from);
        assert!(matches!(error, Error::File { .. }), "{error:?}");
        says(
            &error,
            &[&format!("the checkpoint of a run with {there} replicas"), &format!("this run has {n}")],
        );
    }
}

/// Checks that only the first replica has observers, and that it saves the checkpoints that they request.
#[test]
fn an_observer_saves_the_first_replica() {
    let folder = Folder::new("replicas-best");
    replicate(2, |replica| {
        let mut trainer = replay_trainer()?.with_group(replica)?;
        let mut best = KeepBest::new("loss", Goal::Smaller, folder.join("best"));
        Fit::new(3).observe(&mut best).run(&mut trainer)
    })
    .unwrap();
    assert!(Checkpoint::load(folder.join("best")).is_ok() && !folder.join("best.1").exists());
}
