//! Checkpoints of replicas with buffers of their own: all of them are saved, and dealt out again to any number of replicas.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::parameters;
use crate::trainers::Folder;
use crate::words::{count, fresh, says, with_flow, words};
use gfn::collective::{Collective, replicate};
use gfn::objective::TrajectoryBalance;
use gfn::policy::{KHot, MlpPolicy};
use gfn::replay::{DataSource, Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::testing::Words;
use gfn::train::{Fit, Goal, KeepBest, Trainer, TrainerConfig};
use gfn::{Result, Rng};

/// A trainer that replays half of each batch, by loss, from a buffer that nothing has to leave.
fn replaying() -> Result<Trainer<Words, MlpPolicy<KHot>>> {
    let config = TrainerConfig { source: DataSource::new(0.5, 0.5, 0.0)?, replay_after: 0, ..fresh(12) };
    let trainer = Trainer::new(words(), count, with_flow(), TrajectoryBalance, config, Rng::seeded(1))?;
    let draw = Draw::LossPrioritised { exponent: 1.0 };
    Ok(trainer.with_replay(ReplayBuffer::new(ReplayConfig { capacity: 500, eviction: Eviction::Fifo, draw })?))
}

/// What each replica has at the end, by rank: its parameters, and the log-rewards in its buffer.
type Ends = Vec<(usize, Vec<f64>, Vec<f64>)>;

/// Trains up to so many steps, on from a checkpoint if there is one, and saves.
fn run(n: usize, steps: usize, from: Option<&Path>, to: &Path) -> Ends {
    let ends = Mutex::new(Vec::new());
    replicate(n, |replica| {
        let rank = replica.rank();
        let mut trainer = replaying()?.with_collective(replica)?;
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

/// Log-rewards in all buffers.
fn held(ends: &Ends) -> Vec<f64> {
    let mut all: Vec<f64> = ends.iter().flat_map(|end| end.2.clone()).collect();
    all.sort_by(f64::total_cmp);
    all
}

fn paths(folder: &Folder) -> [PathBuf; 3] {
    ["half", "whole", "resumed"].map(|name| folder.join(name))
}

#[test]
fn replicas_go_on_with_their_own_buffers_bit_for_bit() {
    let folder = Folder::new("replicas-resume");
    let [half, whole, resumed] = paths(&folder);
    let at_once = run(2, 12, None, &whole);
    run(2, 5, None, &half);
    assert!(run(2, 12, Some(&half), &resumed) == at_once, "parameters and buffers of both replicas");
    assert_ne!(at_once[0].2, at_once[1].2, "each has a buffer of its own");
}

#[test]
fn another_number_of_replicas_deals_out_what_all_held() {
    let folder = Folder::new("replicas-deal");
    let [half, again, more] = paths(&folder);
    for n in [1, 2, 3] {
        let before = run(n, 5, None, &half);
        for other in [1, 2, 3] {
            let dealt = run(other, 5, Some(&half), &again);
            assert_eq!(held(&dealt), held(&before), "{n} to {other}");
            let sizes: Vec<usize> = dealt.iter().map(|end| end.2.len()).collect();
            let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
            assert!(n == other || most - least <= 1, "{n} to {other}: {sizes:?}");
            // It trains on, and what it saves is whole again.
            let after = run(other, 8, Some(&half), &more);
            let once_more = run(n, 8, Some(&more), &again);
            assert_eq!(held(&once_more), held(&after));
        }
    }
}

#[test]
fn an_observer_can_not_ask_for_what_other_replicas_hold() {
    let folder = Folder::new("replicas-best");
    let kept = replicate(2, |replica| {
        let mut trainer = replaying()?.with_collective(replica)?;
        let mut best = KeepBest::new("loss", Goal::Smaller, folder.join("best"));
        Fit::new(3).observe(&mut best).run(&mut trainer)
    });
    says(&kept.unwrap_err(), &["a checkpoint that an observer asks for", "Fit::checkpoint"]);
}

#[test]
fn replicas_that_don_t_save_together_are_told() {
    let folder = Folder::new("replicas-apart");
    let saved = replicate(2, |replica| {
        let rank = replica.rank();
        let mut trainer = replaying()?.with_collective(replica)?;
        match rank {
            0 => trainer.save(folder.join("alone")),
            _ => trainer.step().map(drop),
        }
    });
    let error = saved.unwrap_err();
    assert!(error.to_string().contains("replica"), "{error}");
    assert!(!folder.join("alone").exists());
}
