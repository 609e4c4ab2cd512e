//! Measures the number of objects per second that a group of processes scores in training. The program also
//! prints this number as a share of the largest possible number, which would be reached if processes did
//! nothing but compute rewards. Use a release build: `gfn-dist local -n 2 --
//! target/release/examples/replicas_speed --sleep-ms 10`. Without a launcher the program runs as a single
//! process.

use std::time::{Duration, Instant};

use clap::Parser;
use gfn::graph::GraphStates;
use gfn::nn::{GraphNet, GraphNetConfig};
use gfn::prelude::*;
use gfn::tch;
use gfn_dist::Launch;

#[derive(Parser)]
struct Args {
    /// Milliseconds that the reward function sleeps for each object, as a substitute for an expensive reward
    #[arg(long, default_value_t = 10.0)]
    sleep_ms: f64,
    /// Number of trajectories per step, summed over all processes
    #[arg(long, default_value_t = 128)]
    batch: usize,
    /// Number of training steps that are measured
    #[arg(long, default_value_t = 10)]
    steps: usize,
}

fn main() -> gfn::Result<()> {
    let args = Args::parse();
    tch::set_num_threads(1);
    let mut trainer = trainer(&args)?;
    if let Some(launch) = Launch::from_env()? {
        trainer = trainer.with_group(launch.connect(Duration::from_secs(60))?)?;
    }
    (0..3).try_for_each(|_| trainer.step().map(drop))?;
    let began = Instant::now();
    (0..args.steps).try_for_each(|_| trainer.step().map(drop))?;
    let took = began.elapsed().as_secs_f64();
    if trainer.context().group.rank() == 0 {
        let n = trainer.context().group.size();
        let objects = (args.steps * args.batch) as f64 / took;
        let ideal = n as f64 * 1e3 / args.sleep_ms;
        let of = if args.sleep_ms > 0.0 {
            format!(", {:.2} of {ideal:.0}", objects / ideal)
        } else {
            String::new()
        };
        println!("{n} processes: {objects:.0} objects/s{of}, {:.1} steps/s", args.steps as f64 / took);
    }
    Ok(())
}

fn trainer(args: &Args) -> gfn::Result<Trainer<GraphEnv>> {
    // The objects are directed graphs on four labelled nodes, built edge by edge. The log-reward grows with
    // the number of nodes of degree 2.
    let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
    let env = GraphEnv::free(actions, GraphState::directed(4))?;
    let net = GraphNet::new(
        &env,
        GraphNetConfig::default(),
        tch::Device::Cpu,
        tch::Kind::Float,
        &mut Rng::seeded(0),
    )?;
    let one_each =
        PerGraph(|graph: &GraphState| 2.0 * (0..4).filter(|&node| graph.degree(node) == 2).count() as f64);
    let pause = Duration::from_secs_f64(args.sleep_ms / 1e3);
    let reward = move |graphs: &GraphStates, conditions: Option<&tch::Tensor>| {
        std::thread::sleep(pause * gfn::env::Rows::len(graphs) as u32);
        gfn::env::Reward::log_reward(&one_each, graphs, conditions)
    };
    let config = TrainerConfig { batch: args.batch, ..TrainerConfig::default() };
    Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, config, Rng::seeded(0))
}
