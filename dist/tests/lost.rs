//! Tests of what happens to the other processes of a group if one process is killed or stopped.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command};
use std::time::{Duration, Instant};

use gfn::Error;
use gfn::group::Group;
use gfn::run::Fit;
use tch::Tensor;

use super::{group, start, trainer};

#[test]
#[ignore = "a part of another test"]
fn part_waits() {
    let Some(group) = group(Duration::from_secs(3)) else { return };
    group.sum(&mut Tensor::from_slice(&[1.0f32])).unwrap();
    println!("READY");
    let (milliseconds, error) = loop {
        // The last member sleeps until the test kills or stops it, while the other members wait for it in a
        // sum.
        if group.rank() + 1 == group.size() {
            std::thread::sleep(Duration::from_secs(60));
        }
        let started = Instant::now();
        match group.sum(&mut Tensor::from_slice(&[1.0f32])) {
            Ok(()) => {}
            Err(error @ Error::Peer { .. }) => break (started.elapsed().as_millis(), error),
            Err(other) => panic!("{other}"),
        }
    };
    println!("SAYS {milliseconds} {error}");
    // A process that ended here could be named by another one, whose operation fails a little later.
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// Starts a group of three processes, and sends a signal to the last process after all have joined. Returns
/// the milliseconds from the start of the failing sum to the error, for each of the other two processes.
/// Checks that the error names the last process as `end` says, and no other process.
fn wait_after_signal(signal: &str, end: &str) -> Vec<u128> {
    let (mut children, file) = start("lost::part_waits", 3);
    let mut outputs: Vec<_> =
        children.iter_mut().map(|child| BufReader::new(child.stdout.take().unwrap())).collect();
    for output in &mut outputs {
        let ready = output.by_ref().lines().any(|line| line.unwrap().contains("READY"));
        assert!(ready, "a process ended before all had met");
    }
    let mut last = children.pop().unwrap();
    let sent = Command::new("kill").args([signal, &last.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let named = format!("process 2 (pid {}) {end}: ", last.id());
    let duration = |output: BufReader<ChildStdout>| {
        let mut lines = output.lines().map(|line| line.unwrap());
        let said = lines.find_map(|line| Some(line.split_once("SAYS ")?.1.to_owned()));
        let (milliseconds, error) = said.as_ref().and_then(|said| said.split_once(' ')).expect("an error");
        assert!(error.contains(&named) && error.matches("pid").count() == 1, "{error}, not {named}");
        milliseconds.parse().unwrap()
    };
    let waits = outputs.into_iter().take(2).map(duration).collect();
    last.kill().unwrap();
    for child in children.iter_mut().chain([&mut last]) {
        child.wait().unwrap();
    }
    let _ = std::fs::remove_file(file);
    waits
}

#[test]
fn a_killed_process_is_an_error_of_the_others_at_once() {
    let waits = wait_after_signal("-KILL", "has ended");
    assert!(waits.iter().all(|&wait| wait < 1_000), "{waits:?} ms");
}

#[test]
fn a_stopped_process_is_an_error_of_the_others_at_the_timeout() {
    let waits = wait_after_signal("-STOP", "is stopped");
    assert!(waits.iter().all(|&wait| wait < 10_000), "{waits:?} ms");
}

#[test]
#[ignore = "a part of another test"]
fn part_left_alone() {
    tch::set_num_threads(1);
    // After a signal this process waits for only a tenth of the timeout, 4 seconds. If it waited for the
    // whole timeout, the test would fail.
    let Some(group) = group(Duration::from_secs(40)) else { return };
    let mut trainer = trainer().unwrap().with_group(group).unwrap();
    trainer.step().unwrap();
    println!("READY");
    let fit = Fit::new(1_000_000).stop_on_interrupt();
    println!("SAYS {}", fit.run(&mut trainer).unwrap_err());
}

/// Tests that a signal ends a process that waits for a stopped process. The process must end within half a
/// minute, because schedulers then kill it.
#[test]
fn a_signal_ends_a_process_though_another_is_stopped() {
    let (mut children, file) = start("lost::part_left_alone", 2);
    let mut outputs: Vec<_> =
        children.iter_mut().map(|child| BufReader::new(child.stdout.take().unwrap())).collect();
    for output in &mut outputs {
        assert!(output.by_ref().lines().any(|line| line.unwrap().contains("READY")));
    }
    // The training loop sets the signal handlers when it begins, which is shortly after READY was printed.
    std::thread::sleep(Duration::from_millis(500));
    let send = |signal: &str, child: &Child| {
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    };
    send("-STOP", &children[1]);
    send("-TERM", &children[0]);
    let started = Instant::now();
    let error = outputs[0]
        .by_ref()
        .lines()
        .find_map(|line| Some(line.unwrap().split_once("SAYS ")?.1.to_owned()))
        .unwrap();
    assert!(error.contains("asked to end"), "{error}");
    assert!(children[0].wait().unwrap().success(), "nothing keeps it from ending");
    assert!(started.elapsed() < Duration::from_secs(25), "{:?}", started.elapsed());
    children[1].kill().unwrap();
    children[1].wait().unwrap();
    let _ = std::fs::remove_file(file);
}
