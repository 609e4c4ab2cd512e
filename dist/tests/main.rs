//! Tests with several processes on this machine: operations of a group, training of replicas, and processes
//! that end or are stopped.
//!
//! A test starts this program again for each process, with the name of an ignored test as argument. These
//! ignored tests are called parts.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, in its helpers too"
)]

mod faults;
mod gradients;
mod headers;
mod lost;
#[path = "../../tests/recorded_gradients.rs"]
mod recorded_gradients;

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gfn::env::{VectorEnv, VectorStates};
use gfn::examples::word_env;
use gfn::group::{Group, replicate};
use gfn::nn::EstimatorsConfig;
use gfn::objective::LogPartitionVariance;
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig, Policy};
use gfn::run::{Fit, FitOutcome};
use gfn::train::{Checkpoint, Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_dist::{Launch, ProcessGroup, Store};
use tch::{Device, Kind, Tensor};

const TIMEOUT: Duration = Duration::from_secs(20);

/// Returns the rank of this process, the number of processes, and the path of the store's file. Returns
/// `None` if a test hasn't started this process.
fn test_process() -> Option<(usize, usize, PathBuf)> {
    let number = |name| std::env::var(name).ok()?.parse().ok();
    Some((number("GFN_TEST_RANK")?, number("GFN_TEST_SIZE")?, std::env::var_os("GFN_TEST_FILE")?.into()))
}

fn group(timeout: Duration) -> Option<ProcessGroup> {
    let (rank, size, file) = test_process()?;
    let store = Store::file(&file, size).unwrap();
    Some(ProcessGroup::new(&store, rank, size, timeout, "127.0.0.1").unwrap())
}

/// Starts `size` processes that run a part, which is an ignored test of this program. Also returns the path
/// of the store's file.
fn start(part: &str, size: usize) -> (Vec<Child>, PathBuf) {
    let file = std::env::temp_dir().join(format!("gfn-dist-{part}-{}", std::process::id()));
    let _ = std::fs::remove_file(&file);
    let program = std::env::current_exe().unwrap();
    let start = |rank: usize| {
        let mut command = Command::new(&program);
        command.args(["--exact", part, "--ignored", "--nocapture", "--test-threads=1"]);
        command.env("GFN_TEST_RANK", rank.to_string()).env("GFN_TEST_SIZE", size.to_string());
        command.stdin(Stdio::piped());
        command.env("GFN_TEST_FILE", &file).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    ((0..size).map(start).collect(), file)
}

/// Waits until the processes have ended. Returns the messages of each process, which are the texts after
/// `SAYS `.
fn collect_output(children: Vec<Child>) -> Vec<Vec<String>> {
    let collect = |child: Child| {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
        text.lines().filter_map(|line| Some(line.split_once("SAYS ")?.1.to_owned())).collect()
    };
    children.into_iter().map(collect).collect()
}

fn run(part: &str, size: usize) -> Vec<Vec<String>> {
    let (children, file) = start(part, size);
    let outputs = collect_output(children);
    let _ = std::fs::remove_file(file);
    outputs
}

#[test]
#[ignore = "a part of another test"]
fn part_operations() {
    let Some(group) = group(TIMEOUT) else { return };
    let rank = group.rank();
    let size = group.size();
    let mut sum = Tensor::from_slice(&[rank as f32, 0.1 + rank as f32, 1e-3]);
    group.sum(&mut sum).unwrap();
    let numbers = Vec::<f32>::try_from(&sum).unwrap();
    assert!((numbers[0] - (0..size).sum::<usize>() as f32).abs() < 1e-6);
    let mine = Tensor::from_slice(&(0..rank + 1).map(|k| (10 * rank + k) as f64).collect::<Vec<_>>());
    let all: Vec<Vec<f64>> = group.join(&mine).unwrap().iter().map(|t| Vec::try_from(t).unwrap()).collect();
    let expected = |rank: usize| (0..rank + 1).map(|k| (10 * rank + k) as f64).collect::<Vec<_>>();
    assert_eq!(all, (0..size).map(expected).collect::<Vec<_>>());
    // A gather sends a second message for a tensor that doesn't fit into the first one, and then enlarges the
    // first message up to a limit. The first tensor is longer than the first message is initially, the second
    // one is longer than the limit, and the third one is short.
    let lengths: [fn(i64) -> i64; 3] = [|_| 100, |rank| 20_000 * (rank + 1), |_| 3];
    for kind in [Kind::Int, Kind::Half, Kind::Bool] {
        for length in lengths {
            let contribution = |rank: usize| {
                let numbers = Tensor::arange(length(rank as i64), (Kind::Int64, Device::Cpu)) + rank as i64;
                numbers.remainder(97).to_kind(kind)
            };
            let all = group.join(&contribution(rank)).unwrap();
            assert!(all == (0..size).map(contribution).collect::<Vec<_>>(), "{kind:?}");
        }
    }
    let refused = group.join(&Tensor::zeros([2], (Kind::ComplexFloat, Device::Cpu)));
    assert!(matches!(refused, Err(Error::Config { .. })), "{refused:?}");
    let mut uneven = Tensor::zeros([2 + rank as i64], (Kind::Float, Device::Cpu));
    let refused = group.sum(&mut uneven);
    assert!(size == 1 || matches!(refused, Err(Error::Shape { .. })), "{refused:?}");
    println!("SAYS {:?}", numbers.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
}

#[test]
fn a_group_sums_gathers_and_copies() {
    for size in [1, 2, 3] {
        let outputs = run("part_operations", size);
        assert!(
            outputs.len() == size && outputs.iter().all(|bits| bits.len() == 1 && *bits == outputs[0]),
            "{outputs:?}"
        );
        assert_eq!(outputs, run("part_operations", size), "the same bits again");
    }
}

fn trainer() -> Result<Trainer<VectorEnv>> {
    let env = word_env(2, 3);
    let mut rng = Rng::seeded(0);
    let config =
        MlpPolicyConfig { estimators: EstimatorsConfig::with_flow(true), ..MlpPolicyConfig::default() };
    let policy = MlpPolicy::new(&env, KHot::new(3, 3), config, Device::Cpu, Kind::Float, &mut rng)?;
    let count = |states: &VectorStates, _: Option<&Tensor>| {
        Ok(states.rows().map(|row| row.iter().filter(|&&x| x == 1).count() as f64).collect())
    };
    let config = TrainerConfig { batch: 16, ..TrainerConfig::default() };
    Trainer::new(env, count, policy, LogPartitionVariance, config, rng)
}

fn bits(trainer: &Trainer<VectorEnv>) -> Vec<u32> {
    let parameters = Policy::<VectorEnv>::parameters(trainer.policy()).unwrap();
    let all: Vec<Tensor> = parameters.iter().map(|p| p.tensor.detach().reshape([-1])).collect();
    Vec::<f32>::try_from(Tensor::cat(&all, 0)).unwrap().into_iter().map(f32::to_bits).collect()
}

#[test]
#[ignore = "a part of another test"]
fn part_training() {
    tch::set_num_threads(1);
    let Some(group) = group(TIMEOUT) else { return };
    let mut trainer = trainer().unwrap().with_group(group).unwrap();
    Fit::new(200).run(&mut trainer).unwrap();
    let hash = bits(&trainer).into_iter().fold(0u64, |hash, bits| Rng::mix64(hash ^ u64::from(bits)));
    println!("SAYS {hash}");
}

#[test]
fn processes_train_to_the_bits_of_threads() {
    let outputs = run("part_training", 2);
    assert!(outputs[0] == outputs[1], "replicas drift apart: {outputs:?}");
    let threads = replicate(2, |replica| {
        let mut trainer = trainer()?.with_group(replica)?;
        Fit::new(200).run(&mut trainer)?;
        Ok(bits(&trainer).into_iter().fold(0u64, |hash, bits| Rng::mix64(hash ^ u64::from(bits))))
    });
    // A sum over two replicas has two terms, and a floating-point sum of two terms doesn't depend on their
    // order. Processes and threads therefore get the same bits.
    assert_eq!(outputs[0], [threads.unwrap().to_string()]);
}

#[test]
#[ignore = "a part of another test"]
fn part_interrupted() {
    tch::set_num_threads(1);
    let Some(launch) = Launch::from_env().unwrap() else { return };
    let folder = std::env::var_os("GFN_TEST_FILE").unwrap();
    let mut trainer = trainer().unwrap().with_group(launch.connect(TIMEOUT).unwrap()).unwrap();
    let fit = Fit::new(1_000_000).checkpoint(&folder, None).unwrap().stop_on_interrupt();
    trainer.step().unwrap();
    println!("READY");
    assert_eq!(fit.run_with_outcome(&mut trainer).unwrap(), FitOutcome::Interrupted);
}

/// Tests that the launcher passes on the signals of Ctrl-C and of schedulers. The processes end after the
/// current step with a checkpoint, and the launcher exits with the code that shells expect after a signal.
#[test]
fn a_signal_ends_all_processes_after_their_step() {
    check_interrupt("-TERM", 143);
    check_interrupt("-INT", 130);
}

fn check_interrupt(signal: &str, code: i32) {
    let folder = std::env::temp_dir().join(format!("gfn-dist-interrupted{signal}-{}", std::process::id()));
    let mut command = Command::new(env!("CARGO_BIN_EXE_gfn-dist"));
    command.args(["local", "-n", "2", "--"]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", "part_interrupted", "--ignored", "--nocapture"]).env("GFN_TEST_FILE", &folder);
    let mut launcher = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut output = BufReader::new(launcher.stdout.take().unwrap());
    assert!(output.by_ref().lines().any(|line| line.unwrap().contains("READY")));
    // The training loop sets the signal handlers when it begins, which is shortly after READY was printed.
    std::thread::sleep(Duration::from_millis(500));
    assert!(Command::new("kill").args([signal, &launcher.id().to_string()]).status().unwrap().success());
    let rest: Vec<String> = output.lines().map(|line| line.unwrap()).collect();
    // The launcher exits with the code of the signal. If a process had failed, `rest` would contain a message
    // about it.
    assert_eq!(launcher.wait().unwrap().code(), Some(code), "{rest:?}");
    let other = std::path::PathBuf::from(format!("{}.1", folder.display()));
    let [first, second] = [&folder, &other].map(|folder| Checkpoint::load(folder).unwrap().manifest().step);
    assert!(first > 1 && first == second, "both save the same step");
    for folder in [folder, other].into_iter() {
        std::fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn a_missing_process_is_an_error_at_the_timeout() {
    let started = Instant::now();
    let file = std::env::temp_dir().join(format!("gfn-dist-alone-{}", std::process::id()));
    let store = Store::file(&file, 2).unwrap();
    let error = ProcessGroup::new(&store, 0, 2, Duration::from_secs(1), "127.0.0.1").unwrap_err().to_string();
    assert!(
        error.contains("a group of 2 replicas") && started.elapsed() < Duration::from_secs(10),
        "{error}"
    );
    let _ = std::fs::remove_file(file);
    let error = Store::connect("127.0.0.1", 9, Duration::from_secs(1)).unwrap_err().to_string();
    assert!(error.contains("the store at 127.0.0.1:9"), "{error}");
    let error = ProcessGroup::new(&store, 2, 2, TIMEOUT, "127.0.0.1").unwrap_err().to_string();
    assert!(error.contains("2 in a group of 2"), "{error}");
}

#[test]
#[ignore = "a part of another test"]
fn part_launched() {
    let Some(launch) = Launch::from_env().unwrap() else { return };
    if std::env::var_os("GFN_TEST_FAILS").is_some() && launch.rank == 1 {
        panic!("as this test wants");
    }
    let group = launch.connect(TIMEOUT).unwrap();
    let mut sum = Tensor::from_slice(&[1.0f32]);
    group.sum(&mut sum).unwrap();
    println!("SAYS {} of {}: {}", launch.rank, launch.size, sum.double_value(&[0]));
    if std::env::var_os("GFN_TEST_FAILS").is_some() {
        let _ = group.sum(&mut sum);
    }
}

#[test]
fn the_launcher_starts_processes_and_ends_them_when_one_fails() {
    let run = |fails: bool| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gfn-dist"));
        command.args(["local", "-n", "3", "--"]).arg(std::env::current_exe().unwrap());
        command.args(["--exact", "part_launched", "--ignored", "--nocapture"]);
        if fails {
            command.env("GFN_TEST_FAILS", "1");
        }
        command.output().unwrap()
    };
    let fine = run(false);
    let text = String::from_utf8_lossy(&fine.stdout).into_owned() + &String::from_utf8_lossy(&fine.stderr);
    assert!(fine.status.success(), "{text}");
    for rank in 0..3 {
        assert!(text.contains(&format!("{rank} of 3: 3")), "{text}");
    }
    let started = Instant::now();
    let failed = run(true);
    let text = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(!failed.status.success() && text.contains("process 1 of 3 failed"), "{text}");
    assert!(started.elapsed() < Duration::from_secs(15));
}

#[test]
fn launcher_variables_are_read_and_checked() {
    let read = |variables: &[(&str, &str)]| launch(variables);
    let torchrun =
        [("RANK", "1"), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "localhost"), ("MASTER_PORT", "4000")];
    let launch = read(&torchrun).unwrap().unwrap();
    assert_eq!((launch.rank, launch.size, launch.port, launch.launcher_serves), (1, 2, 4000, false));
    assert_eq!((launch.address.as_str(), launch.run.as_str()), ("127.0.0.1", ""));
    let jobs = [
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE"),
        ("PMI_RANK", "PMI_SIZE", "GFN_RUN_ID"),
    ];
    for (rank, size, job) in jobs {
        let launch = read(&[(rank, "4"), (size, "5"), (job, "ours")]).unwrap().unwrap();
        assert_eq!((launch.rank, launch.size, launch.run.as_str()), (4, 5, "ours"));
    }
    let slurm =
        [("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "2"), ("SLURM_JOB_ID", "8"), ("SLURM_STEP_ID", "1")];
    assert_eq!(read(&slurm).unwrap().unwrap().run, "8-1");
    // A Slurm job may start one process per job step, and these steps form one run. The id of the job step
    // can't identify such a run. MASTER_PORT or another id is needed.
    let by_hand = [("RANK", "0"), ("WORLD_SIZE", "2"), ("SLURM_JOB_ID", "8"), ("SLURM_STEP_ID", "1")];
    let with_port = [&by_hand[..], &[("MASTER_PORT", "4000")]].concat();
    assert_eq!(read(&with_port).unwrap().unwrap().run, "8");
    let says = |variables: &[(&str, &str)], words: &str| {
        let error = read(variables).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    says(&by_hand, "GFN_RUN_ID is not set");
    says(&[("RANK", "0")], "WORLD_SIZE is not set");
    says(&[("RANK", "x"), ("WORLD_SIZE", "2")], "RANK is `x`");
    says(&[("RANK", "2"), ("WORLD_SIZE", "2")], "RANK is 2 of 2");
    says(&[("RANK", "0"), ("WORLD_SIZE", "2"), ("MASTER_PORT", "99999")], "MASTER_PORT is `99999`");
    // Two runs on one machine couldn't be distinguished without an id, because both would use the default
    // port.
    says(&[("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "2")], "GFN_RUN_ID is not set");
}

#[test]
fn a_process_finds_the_address_by_which_others_reach_it() {
    let far = [("RANK", "1"), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "10.0.0.1"), ("MASTER_PORT", "4000")];
    let with = |name, value| launch(&[&far[..], &[(name, value)]].concat());
    match launch(&far) {
        Ok(found) => assert!(!found.unwrap().address.parse::<std::net::IpAddr>().unwrap().is_loopback()),
        // This machine may have no network. The address of this machine is then unknown, which is an error.
        Err(error) => assert!(error.to_string().contains("GFN_ADDRESS is not set"), "{error}"),
    }
    assert_eq!(with("GFN_ADDRESS", "10.0.0.7").unwrap().unwrap().address, "10.0.0.7");
    // 127.0.1.1 is what `hostname -i` prints on many systems. Other machines can't reach this address.
    let error = with("GFN_ADDRESS", "127.0.1.1").unwrap_err().to_string();
    assert!(error.contains("GFN_ADDRESS is 127.0.1.1"), "{error}");
    let by_interface = with("GLOO_SOCKET_IFNAME", "lo,eth0").unwrap().unwrap().address;
    let store = ["[::]:0", "0.0.0.0:0"]
        .iter()
        .find_map(|at| Store::serve(at.parse().unwrap(), TIMEOUT).ok())
        .unwrap();
    assert_eq!(ProcessGroup::new(&store, 0, 1, TIMEOUT, &by_interface).unwrap().size(), 1);
}

/// Reads a launch from a table of variables.
fn launch(variables: &[(&str, &str)]) -> Result<Option<Launch>> {
    Launch::read(|name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
}

/// Tests that a process can't join a run that uses the same port but has another id.
#[test]
fn a_process_of_another_run_is_no_member() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let of = |run: &str, rank: &str| {
        let variables = [("RANK", rank), ("WORLD_SIZE", "2"), ("MASTER_PORT", &free), ("GFN_RUN_ID", run)];
        launch(&variables).unwrap().unwrap()
    };
    std::thread::scope(|scope| {
        let first = scope.spawn(|| of("ours", "0").connect(TIMEOUT).map(|group| group.size()));
        let started = Instant::now();
        let stranger = of("theirs", "1").connect(TIMEOUT).unwrap_err().to_string();
        assert!(
            stranger.contains("the store belongs to run `ours`, but this process belongs to run `theirs`"),
            "{stranger}"
        );
        assert!(started.elapsed() < Duration::from_secs(5));
        let unbound = of("theirs", "0").connect(TIMEOUT).unwrap_err().to_string();
        assert!(unbound.contains("in use"), "{unbound}");
        assert_eq!(of("ours", "1").connect(TIMEOUT).unwrap().size(), 2);
        assert_eq!(first.join().unwrap().unwrap(), 2);
    });
}

/// Tests that all members get an error if one member gathers while another member sums.
#[test]
fn different_operations_are_an_error_for_all_members() {
    type Operation = fn(&ProcessGroup) -> Result<()>;
    let gathers: Operation = |group| group.join(&Tensor::from_slice(&[1.5f64, 2.5])).map(drop);
    let reduces: Operation = |group| group.sum(&mut Tensor::from_slice(&[7f32; 4]));
    for (first, second) in [(gathers, reduces), (reduces, gathers)] {
        let file = std::env::temp_dir().join(format!("gfn-dist-order-{}", std::process::id()));
        let _ = std::fs::remove_file(&file);
        let member = |rank: usize, work: Operation| {
            let group =
                ProcessGroup::new(&Store::file(&file, 2).unwrap(), rank, 2, TIMEOUT, "127.0.0.1").unwrap();
            // Both members first make the same operation, so that the group is connected.
            gathers(&group).unwrap();
            work(&group).unwrap_err()
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(|| member(1, second));
            for error in [member(0, first), other.join().unwrap()] {
                assert!(matches!(error, Error::Contract { .. }), "{error}");
                assert!(error.to_string().contains("(operation 1)"), "{error}");
            }
        });
        let _ = std::fs::remove_file(&file);
    }
}
