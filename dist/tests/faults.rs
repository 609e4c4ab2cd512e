//! Tests of faults outside of a process group: the process that serves the store ends, and the disk is full.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gfn::Error;
use gfn::group::Group;
use gfn::run::{Fit, FitOutcome};
use gfn::train::Checkpoint;
use gfn_dist::{Launch, ProcessGroup, Store};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tch::Tensor;

use super::{TIMEOUT, trainer};

/// Prints a message for the test that started this process. The test waits for the message.
fn print_message(word: &str) {
    println!("SAYS {word}");
    std::io::stdout().flush().unwrap();
}

#[test]
#[ignore = "a part of another test"]
fn part_without_store() {
    let Some(launch) = Launch::from_env().unwrap() else { return };
    let timeout = Duration::from_secs(2);
    let store = Store::connect(&launch.host, launch.port, timeout).unwrap();
    let group = |name: &str| {
        ProcessGroup::new(&store.under(name)?, launch.rank, launch.size, timeout, &launch.address)
    };
    let first = group("first").unwrap();
    let sum = || {
        let mut sum = Tensor::from_slice(&[1.0f32]);
        first.sum(&mut sum).map(|()| sum.double_value(&[0]))
    };
    assert_eq!(sum().unwrap(), launch.size as f64);
    print_message("READY");
    // The test writes a line to this process after it has ended the process that serves the store.
    std::io::stdin().read_line(&mut String::new()).unwrap();
    for _ in 0..20 {
        assert_eq!(sum().unwrap(), launch.size as f64, "a group that has met needs no store");
    }
    let started = Instant::now();
    match group("second") {
        Err(Error::Peer { problem, .. }) => {
            print_message(&format!("{} {problem}", started.elapsed().as_millis()))
        }
        other => panic!("{other:?}"),
    }
}

/// Starts two processes, with the variables that a launcher would set. Each runs a part, which is an ignored
/// test of this program.
fn start(part: &str, port: u16) -> [Child; 2] {
    [0, 1].map(|rank: usize| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", &format!("faults::{part}"), "--ignored", "--nocapture", "--test-threads=1"]);
        command.envs([
            ("RANK", rank.to_string()),
            ("WORLD_SIZE", 2.to_string()),
            ("MASTER_PORT", port.to_string()),
        ]);
        command.env("MASTER_ADDR", "127.0.0.1").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    })
}

/// Returns the next message that a process printed, which is the text after `SAYS `.
fn read_message(output: &mut impl BufRead) -> String {
    let mut lines = output.lines().map(|line| line.unwrap());
    lines.find_map(|line| Some(line.split_once("SAYS ")?.1.to_owned())).expect("a process that hasn't ended")
}

#[test]
fn a_group_goes_on_without_its_store_and_a_new_one_is_refused_at_the_timeout() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let store = Store::serve(free, TIMEOUT).unwrap();
    let mut children = start("part_without_store", free.port());
    let mut outputs = children.each_mut().map(|child| BufReader::new(child.stdout.take().unwrap()));
    for output in &mut outputs {
        assert_eq!(read_message(output), "READY");
    }
    drop(store);
    for child in &mut children {
        child.stdin.take().unwrap().write_all(b"gone\n").unwrap();
    }
    for output in &mut outputs {
        let message = read_message(output);
        println!("a second group: {message}");
        let (milliseconds, problem) = message.split_once(' ').unwrap();
        assert!(milliseconds.parse::<u128>().unwrap() < 10_000 && !problem.is_empty(), "{message}");
    }
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
}

#[test]
#[ignore = "a part of another test"]
fn part_disk_full() {
    tch::set_num_threads(1);
    let Some(launch) = Launch::from_env().unwrap() else { return };
    let folder = std::env::var_os("GFN_TEST_FILE").unwrap();
    let mut trainer = trainer().unwrap().with_group(launch.connect(TIMEOUT).unwrap()).unwrap();
    let fit = |steps| Fit::new(steps).checkpoint(&folder, Some(5)).unwrap();
    assert_eq!(fit(5).run_with_outcome(&mut trainer).unwrap(), FitOutcome::Done);
    // From here on files can't become larger than a kilobyte. Writing more is an error, as on a full disk.
    // Without a handler, the signal SIGXFSZ would end the process.
    signal_hook::flag::register(libc::SIGXFSZ, Arc::default()).unwrap();
    let most = getrlimit(Resource::Fsize).maximum;
    setrlimit(Resource::Fsize, Rlimit { current: Some(1024), maximum: most }).unwrap();
    let started = Instant::now();
    let error = fit(1_000_000).run(&mut trainer).unwrap_err();
    let kind = match error {
        Error::File { .. } => "File",
        Error::Peer { .. } => "Peer",
        _ => "another",
    };
    print_message(&format!("{} {} {kind}: {error}", trainer.steps_done(), started.elapsed().as_millis()));
}

#[test]
fn a_full_disk_ends_all_processes_and_leaves_the_last_checkpoint() {
    let folder = std::env::temp_dir().join(format!("gfn-dist-full-{}", std::process::id()));
    let checkpoint = folder.join("checkpoint");
    std::fs::create_dir_all(&folder).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_gfn-dist"));
    command.args(["local", "-n", "2", "--"]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", "faults::part_disk_full", "--ignored", "--nocapture"]);
    let output = command.env("GFN_TEST_FILE", &checkpoint).output().unwrap();
    // The launcher prints the output of the first process to stdout, and the output of all others to stderr.
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(output.status.success(), "{text}");
    let lines: Vec<&str> = text.lines().filter_map(|line| Some(line.split_once("SAYS ")?.1)).collect();
    println!("{lines:?}");
    let of = |kind: &str| {
        lines.iter().find(|line| line.contains(kind)).map(|line| line.split(' ').collect::<Vec<_>>())
    };
    // At least one process fails because it can't write its checkpoint ("File"). The other process fails for
    // the same reason, or because the first process has ended ("Peer").
    let ends: Vec<_> = [" File: ", " Peer: "].into_iter().filter_map(of).collect();
    assert_eq!((lines.len(), ends[0][0]), (2, "10"), "at the next checkpoint");
    assert!(ends.iter().all(|words| words[1].parse::<u128>().unwrap() < 10_000));
    let saved = ["checkpoint", "checkpoint.1"]
        .map(|name| Checkpoint::load(folder.join(name)).unwrap().manifest().step);
    assert_eq!(saved, [5, 5]);
    let mut left: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["checkpoint", "checkpoint.1"], "nothing half-written is left on the full disk");
    std::fs::remove_dir_all(folder).unwrap();
}
