//! Tests of runs that are interrupted twenty times, by SIGINT and SIGKILL, and are resumed each time.
//!
//! A run is a separate process of this test program. The process is started as the test `child`, which is
//! ignored otherwise.

#![cfg(unix)]
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::trainers::{Folder, GridTrainer, Setting, bytes, hypergrid};
use gfn::Rng;
use gfn::run::{Fit, FitOutcome, MetricsFile, Record};
use gfn::train::{Checkpoint, ReplayPath};
use serde_json::Value;

const STEPS: usize = 700;
/// The number of steps between checkpoints. The number is small, so that many signals arrive while a
/// checkpoint is written.
const EVERY: usize = 5;
/// The environment variable that tells a child process the folder of its checkpoint and metrics.
const FOLDER: &str = "GFN_TEST_FOLDER";
/// The environment variable that passes the kind of run to a child process.
const MODE: &str = "GFN_TEST_MODE";
/// The longest time that a test waits for a child process.
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes one run in the folder that the variable `FOLDER` names. The run resumes from the checkpoint in this
/// folder, if there is one.
#[test]
#[ignore = "run by the tests beside it, as a process of its own"]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    reset_sigint();
    let mode = std::env::var(MODE).unwrap();
    tch::set_num_threads(1);
    let checkpoint = folder.join("checkpoint");
    // A trainer that resumes is built with another seed, to test that it takes the random stream from the
    // checkpoint.
    let exists = checkpoint.exists() || folder.join(".checkpoint.previous").exists();
    let mut trainer = hypergrid(Setting::new(if exists { 9 } else { 1 }, ReplayPath::UniformBackward));
    if exists {
        trainer.resume(&checkpoint).unwrap();
    } else {
        trainer.prefill(30).unwrap();
    }
    let mut metrics = MetricsFile::new(folder.join("metrics.jsonl"));
    let mut stuck = |_: &GridTrainer, record: &mut Record| {
        if mode == "stuck" && record.step == EVERY + 1 {
            sleep(PATIENCE);
        }
        Ok(ControlFlow::Continue(()))
    };
    let own = Arc::new(AtomicBool::new(false));
    if mode == "own" {
        signal_hook::flag::register(signal_hook::consts::SIGINT, own.clone()).unwrap();
    }
    let steps = if mode == "after" || mode == "own" { EVERY } else { STEPS };
    let fit = Fit::new(steps).observe(&mut metrics).observe(&mut stuck);
    let fit = fit.checkpoint(&checkpoint, Some(EVERY)).unwrap().stop_on_interrupt();
    let ended = fit.run_with_outcome(&mut trainer).unwrap();
    fs::write(folder.join("ended"), format!("{ended:?}")).unwrap();
    if mode == "after" {
        sleep(PATIENCE);
    }
    if mode == "own" {
        let started = Instant::now();
        while !own.load(Ordering::SeqCst) && started.elapsed() < PATIENCE {
            sleep(Duration::from_millis(1));
        }
        fs::write(folder.join("own"), "called").unwrap();
    }
}

/// Resets the action of SIGINT to the default. Shells ignore this signal in background programs, and
/// processes inherit that.
#[allow(unsafe_code, reason = "what a signal does can only be set through the system")]
fn reset_sigint() {
    // SAFETY: no other thread of this process handles signals, and the default action is valid.
    unsafe {
        libc::signal(libc::SIGINT, libc::SIG_DFL);
    }
}

fn start(folder: &Folder, mode: &str) -> Child {
    fs::remove_file(folder.join("ended")).ok();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "interrupted::child", "--ignored", "--nocapture"])
        .env(FOLDER, &folder.0)
        .env(MODE, mode);
    command.stdout(Stdio::null()).spawn().unwrap()
}

/// Waits until `is_so` returns `true` or the process has ended. Returns `true` if the process is still
/// running.
fn wait_until(child: &mut Child, mut is_so: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    while !is_so() {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        assert!(started.elapsed() < PATIENCE, "nothing happened");
        sleep(Duration::from_millis(1));
    }
    true
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("sh").args(["-c", &format!("kill -{name} {}", child.id())]).status().unwrap();
    assert!(status.success());
}

fn end(mut child: Child) -> ExitStatus {
    assert!(!wait_until(&mut child, || false));
    child.wait().unwrap()
}

/// Returns the steps of those lines in the metrics file that are complete.
fn logged_steps(folder: &Folder) -> Vec<usize> {
    let text = fs::read_to_string(folder.join("metrics.jsonl")).unwrap_or_default();
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    let step = |line| serde_json::from_str::<Value>(line).unwrap()["step"].as_u64().unwrap() as usize;
    whole.lines().map(step).collect()
}

fn saved_step(folder: &Folder) -> usize {
    let path = folder.join("checkpoint");
    let any = path.exists() || folder.join(".checkpoint.previous").exists();
    if any { Checkpoint::load(path).unwrap().manifest().step as usize } else { 0 }
}

fn read_ended(folder: &Folder) -> String {
    fs::read_to_string(folder.join("ended")).unwrap_or_default()
}

#[test]
fn twenty_interruptions_lose_no_more_than_an_interval_and_never_a_file() {
    let whole = Folder::new("interrupted-never");
    let broken = Folder::new("interrupted-often");
    assert!(end(start(&whole, "train")).success());
    assert_eq!((read_ended(&whole), saved_step(&whole)), (format!("{:?}", FitOutcome::Done), STEPS));

    let mut rng = Rng::seeded(7);
    for round in 0..20 {
        let from = saved_step(&broken);
        // The signal is sent after the process has added lines to the metrics. A signal that arrives before
        // the training loop starts would end the process in the usual way.
        let target = logged_steps(&broken).last().unwrap_or(&0) + 1 + rng.below(3 * EVERY);
        let mut child = start(&broken, "train");
        let runs =
            wait_until(&mut child, || logged_steps(&broken).last().is_some_and(|&last| last >= target));
        assert!(runs, "round {round}: the run ended before step {target}");
        // The random delay makes the signal arrive in the middle of a step or of saving.
        sleep(Duration::from_micros(rng.below(8_000) as u64));
        let polite = round % 2 == 0;
        if polite {
            signal(&child, "INT");
        } else {
            child.kill().unwrap();
        }
        let status = end(child);
        let steps = logged_steps(&broken);
        let kept = saved_step(&broken);
        let last = *steps.last().unwrap();
        assert_eq!(steps, (1..=last).collect::<Vec<_>>(), "round {round}: every step once");
        if polite {
            assert!(status.success(), "round {round}: {status}");
            assert_eq!(
                (read_ended(&broken), kept),
                (format!("{:?}", FitOutcome::Interrupted), last),
                "round {round}"
            );
        } else {
            assert_eq!(status.signal(), Some(9), "round {round}");
            assert!(last - kept <= EVERY, "round {round}: {kept} of {last} steps are left");
        }
        assert!(kept >= from, "round {round}: {from} steps were saved, {kept} are");
    }
    assert!(saved_step(&broken) < STEPS, "there was something left to do");
    assert!(end(start(&broken, "train")).success());

    // Weights, moments, random stream, buffer and counters must be equal, bit for bit.
    assert_eq!(bytes(&broken.join("checkpoint")), bytes(&whole.join("checkpoint")));
    assert_eq!(logged_steps(&broken), (1..=STEPS).collect::<Vec<_>>());
    let left: Vec<_> = fs::read_dir(&broken.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "checkpoint, metrics and the test's own file: {left:?}");
}

#[test]
fn a_second_signal_kills_and_so_does_one_after_the_run() {
    let folder = Folder::new("interrupted-stuck");
    let mut child = start(&folder, "stuck");
    assert!(wait_until(&mut child, || logged_steps(&folder).len() > EVERY));
    signal(&child, "INT");
    sleep(Duration::from_millis(300));
    assert!(child.try_wait().unwrap().is_none(), "the first is a request");
    signal(&child, "INT");
    assert_eq!(end(child).signal(), Some(2));
    assert_eq!((saved_step(&folder), read_ended(&folder)), (EVERY, String::new()));

    let folder = Folder::new("interrupted-after");
    let mut child = start(&folder, "after");
    assert!(wait_until(&mut child, || !read_ended(&folder).is_empty()));
    signal(&child, "INT");
    assert_eq!(end(child).signal(), Some(2));
    assert_eq!(read_ended(&folder), format!("{:?}", FitOutcome::Done));
}

#[test]
fn a_handler_of_the_program_itself_is_called_and_keeps_it_alive() {
    let folder = Folder::new("interrupted-own");
    let mut child = start(&folder, "own");
    assert!(wait_until(&mut child, || !read_ended(&folder).is_empty()));
    signal(&child, "INT");
    let status = end(child);
    assert!(status.success(), "{status}");
    assert_eq!(fs::read_to_string(folder.join("own")).unwrap(), "called");
}
