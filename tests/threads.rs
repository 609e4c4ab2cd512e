//! Tests of the thread settings of a process, and that the number of rayon's threads doesn't change the bits
//! of a run's results. Each run is a separate process of this test program, in which only the test `child`
//! runs. In other processes `child` does nothing.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::trainers::{Folder, bits};
use gfn::Rng;
use gfn::nn::{ConvKind, GraphNet, GraphNetConfig};
use gfn::objective::TrajectoryBalance;
use gfn::optim::Schedule;
use gfn::policy::GraphPolicy;
use gfn::runtime::{DeviceKind, Runtime, Threads};
use gfn::train::{Trainer, TrainerConfig};
use gfn_gym::ring::{Ring, RingReward};
use tch::{Device, Kind};

const MODE: &str = "GFN_TEST_THREADS";
const FILE: &str = "GFN_TEST_FILE";

/// Returns `true` if this thread keeps denormal numbers instead of rounding them to 0.
fn has_denormals() -> bool {
    std::hint::black_box(f64::MIN_POSITIVE) * std::hint::black_box(0.5) > 0.0
}

/// Returns a number of threads that differs from libtorch's default, which is one thread per core or per two
/// cores.
fn one_more_than_cores() -> usize {
    std::thread::available_parallelism().unwrap().get() + 1
}

/// The results of a run: the bits of its numbers, how many threads rayon and libtorch have used, and whether
/// denormal numbers are kept in rewards and in other threads.
#[derive(serde::Serialize, serde::Deserialize, PartialEq, Debug)]
struct RunResult {
    figures: Vec<[u64; 6]>,
    loss: f64,
    rayon: usize,
    libtorch: i32,
    denormals: bool,
}

/// Makes a few steps on rings, with the settings in the environment variable `MODE`.
#[test]
#[ignore = "run by the tests beside it, as a process of its own"]
fn child() {
    let Some(file) = std::env::var_os(FILE) else { return };
    let mode = std::env::var(MODE).unwrap();
    match mode.split(',').map(str::parse).collect::<Result<Vec<usize>, _>>().as_deref() {
        Ok(&[rayon, libtorch]) => {
            Runtime::new(Threads { rayon, libtorch }, DeviceKind::Cpu).unwrap();
        }
        _ if mode == "tch" => tch::set_num_threads(one_more_than_cores() as i32),
        _ => {}
    }
    let env = Ring::new(4, gfn::graph::GraphKind::Directed).unwrap().into_env();
    let mut rng = Rng::seeded(0);
    let config = GraphNetConfig { conv: ConvKind::Directed, identity: true, ..GraphNetConfig::default() };
    let net = GraphNet::new(&env, config, Device::Cpu, Kind::Float, &mut rng).unwrap();
    // The batch is large enough for parallel work in rayon and in libtorch.
    let config =
        TrainerConfig { batch: 600, epsilon: Some(Schedule::Constant(0.1)), ..TrainerConfig::default() };
    let rings = RingReward::default();
    let reward = move |graphs: &gfn::graph::GraphStates, conditions: Option<&tch::Tensor>| {
        assert!(has_denormals(), "a reward in f64 keeps its least numbers");
        gfn::env::Reward::log_reward(&rings, graphs, conditions)
    };
    let mut trainer = Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, config, rng).unwrap();
    let stats: Vec<_> = (0..8).map(|_| trainer.step().unwrap()).collect();
    let result = RunResult {
        figures: stats.iter().map(bits).collect(),
        loss: stats.last().unwrap().loss,
        rayon: rayon::current_num_threads(),
        libtorch: tch::get_num_threads(),
        denormals: has_denormals() && rayon::broadcast(|_| has_denormals()).into_iter().all(|has| has),
    };
    std::fs::write(file, serde_json::to_string(&result).unwrap()).unwrap();
}

/// Runs a process with the thread settings `mode`: the number of rayon's threads and the number of libtorch's
/// threads, such as `2,1`; `tch` if the process sets only the latter; or `none` if it sets neither.
fn run(mode: &str, environment: &[(&str, &str)]) -> RunResult {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let folder = Folder::new(&format!("processes-{}", RUNS.fetch_add(1, Ordering::Relaxed)));
    let file = folder.join("left");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "threads::child", "--ignored"]).env(MODE, mode).env(FILE, &file);
    // Waiting threads sleep instead of spinning, because other tests use the cores, too.
    command.env("OMP_WAIT_POLICY", "passive");
    // These variables keep libtorch and MKL from using fewer threads on a busy machine.
    command.env("OMP_DYNAMIC", "FALSE").env("MKL_DYNAMIC", "FALSE");
    for name in ["OMP_NUM_THREADS", "OMP_THREAD_LIMIT", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"].into_iter() {
        command.env_remove(name);
    }
    command.envs(environment.iter().copied());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{mode}: {}", String::from_utf8_lossy(&output.stdout));
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

#[test]
fn rayons_threads_change_no_bit_and_libtorchs_change_rounding() {
    let one = run("1,1", &[]);
    assert_eq!((one.rayon, one.libtorch, one.denormals), (1, 1, true));
    for rayon in [2, 3] {
        let more = run(&format!("{rayon},1"), &[]);
        assert_eq!((more.rayon, more.libtorch), (rayon, 1));
        assert_eq!(more.figures, one.figures, "{rayon} threads of rayon's");
    }
    // Another number of libtorch threads may change bits, but must change the results only by rounding.
    let two = run("2,2", &[]);
    assert_eq!((two.rayon, two.libtorch, two.denormals), (2, 2, true));
    assert!((two.loss - one.loss).abs() < 0.5 * one.loss, "{} and {}", two.loss, one.loss);
    assert_eq!(run("1,2", &[]).figures, two.figures, "rayon's don't matter beside two of libtorch's, either");
}

/// Checks that a process without `Runtime::new` gets its numbers of threads from its first trainer. The
/// trainer must change only numbers that neither the program nor its environment variables have set.
#[test]
fn threads_set_themselves_unless_somebody_chose() {
    let nobody = run("none", &[]);
    let cores = std::thread::available_parallelism().unwrap().get();
    assert_eq!((nobody.rayon, nobody.libtorch, nobody.denormals), (cores, 1, true));
    assert_eq!(
        nobody.figures,
        run("1,1", &[]).figures,
        "whoever sets nothing gets the bits of one thread of libtorch's"
    );
    let environment = run("none", &[("OMP_NUM_THREADS", "2"), ("RAYON_NUM_THREADS", "3")]);
    assert_eq!((environment.rayon, environment.libtorch), (3, 2));
    assert_eq!(run("tch", &[]).libtorch, one_more_than_cores() as i32, "a number that a program chose stays");
}
