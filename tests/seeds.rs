//! Tests of training with several seeds in one process, and of the mean and spread of their reports.

#[allow(dead_code, unreachable_pub, reason = "the examples' module, used as it is")]
#[path = "../examples/reproduce/run/spread.rs"]
mod spread;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::Duration;

use gfn::Error;
use gfn::run::{Fit, Record, train_seeds};
use gfn::train::ReplayPath;
use serde_json::json;

use crate::trainers::{Folder, GridTrainer, Setting, hypergrid, state};

/// Trains with a seed, and returns the files of its checkpoint.
fn train(seed: u64) -> gfn::Result<Vec<Vec<u8>>> {
    let mut trainer = hypergrid(Setting::new(seed, ReplayPath::UniformBackward));
    trainer.prefill(30)?;
    Fit::new(60).run(&mut trainer)?;
    Ok(state(&trainer, &Folder::new(&format!("seeds-{seed}"))))
}

#[test]
fn each_seed_has_the_bits_of_a_run_of_its_own() {
    tch::set_num_threads(1);
    let together = train_seeds(3..8, 2, train).unwrap();
    let alone: Vec<_> = (3..8).map(|seed| train(seed).unwrap()).collect();
    assert_eq!(together, alone);
    assert_eq!(together.iter().collect::<BTreeSet<_>>().len(), 5, "seeds differ");
}

#[test]
fn the_last_seeds_take_turns_on_the_threads() {
    // Three seeds on two threads: while a step runs, at most one other step runs. The third seed begins
    // before another seed has ended.
    let computing = AtomicUsize::new(0);
    let most = AtomicUsize::new(0);
    let order = Mutex::new(Vec::new());
    let slow = |seed: u64| {
        let mut wait = |_: &GridTrainer, record: &mut Record| {
            most.fetch_max(1 + computing.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
            sleep(Duration::from_millis(20));
            computing.fetch_sub(1, Ordering::SeqCst);
            order.lock().unwrap().push((seed, record.step));
            Ok(ControlFlow::Continue(()))
        };
        let mut trainer = hypergrid(Setting::new(seed, ReplayPath::Stored));
        Fit::new(12).observe(&mut wait).run(&mut trainer)
    };
    train_seeds(0..3, 2, slow).unwrap();
    assert_eq!(most.load(Ordering::SeqCst), 2);
    let order = order.into_inner().unwrap();
    let place = |step| order.iter().position(|one| *one == step).unwrap();
    let last_begin = (0..3).map(|seed| place((seed, 1))).max().unwrap();
    let first_end = (0..3).map(|seed| place((seed, 12))).min().unwrap();
    assert!(last_begin < first_end, "{order:?}");
}

#[test]
fn a_seed_that_fails_is_named_after_the_others_have_ended() {
    let ended = Mutex::new(BTreeSet::new());
    let work = |seed: u64| {
        if seed % 2 == 1 {
            return Err(Error::config("steps", 0, "at least one"));
        }
        ended.lock().unwrap().insert(seed);
        Ok(seed)
    };
    let error = train_seeds(0..6, 2, work).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the run with seed 1 failed (3 of 6 seeds failed): steps is 0, expected at least one"
    );
    assert!(matches!(error, Error::Seed { seed: 1, n_failed: 3, n: 6, .. }));
    assert_eq!(ended.into_inner().unwrap(), BTreeSet::from([0, 2, 4]));
    assert_eq!(train_seeds([5, 2, 9], 4, Ok).unwrap(), [5, 2, 9]);
    assert_eq!(train_seeds([], 4, Ok).unwrap(), [0_u64; 0]);
    assert!(matches!(train_seeds(0..2, 0, Ok), Err(Error::Config { setting: "threads", .. })));
}

#[test]
fn a_panic_ends_no_other_seed() {
    let ended = AtomicUsize::new(0);
    let work = |seed: u64| {
        assert_ne!(seed, 1, "as a bug might");
        ended.fetch_add(1, Ordering::SeqCst);
        Ok(())
    };
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| train_seeds(0..5, 2, work)));
    assert!(panicked.is_err() && ended.load(Ordering::SeqCst) == 4);
}

#[test]
fn reports_are_averaged_and_their_spread_is_measured() {
    let report = |seed: u64, tv: f64, found: u64, sample: f64| {
        json!({ "seed": seed, "steps": 10, "tv": tv, "jsd": null, "exact": true, "modes_found": found,
            "phases_ms": { "sample": sample, "score": 2.0 }, "log_z_interval": [0.0, sample] })
    };
    let reports = [report(0, 0.5, 3, 1.0), report(1, 1.5, 3, 2.0), report(2, 2.5, 4, 6.0)];
    let reports: Vec<_> = reports.iter().collect();
    let expected = json!({ "seed": 1.0, "steps": 10, "tv": 1.5, "jsd": null, "exact": true,
        "modes_found": 10.0 / 3.0, "phases_ms": { "sample": 3.0, "score": 2.0 }, "log_z_interval": null });
    assert_eq!(spread::mean(&reports), expected);
    let spread = spread::spread(&reports);
    assert_eq!(spread.keys().collect::<Vec<_>>(), ["modes_found", "tv"]);
    assert_eq!(spread["tv"], json!({ "mean": 1.5, "sd": 1.0, "min": 0.5, "max": 2.5 }));
}
