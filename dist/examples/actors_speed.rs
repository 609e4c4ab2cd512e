//! Objects per second of N actors whose reward takes its time, beside the most that it allows. On a release build:
//! `cargo run --release -p gfn-dist --example actors_speed -- --actors 1 2 4 8 --sleep-ms 10`

use std::net::SocketAddr;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use clap::Parser;
use gfn::graph::GraphStates;
use gfn::nn::{GraphNet, GraphNetConfig};
use gfn::prelude::*;
use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::tch;
use gfn_dist::actors::{Actor, ActorConfig, Learner, LearnerConfig};

#[derive(Parser)]
struct Args {
    /// Numbers of actors, one after another.
    #[arg(long, num_args = 1.., default_values_t = [1, 2, 4, 8])]
    actors: Vec<usize>,
    /// Milliseconds that an object's reward takes.
    #[arg(long, default_value_t = 10.0)]
    sleep_ms: f64,
    /// Objects of all actors' messages together.
    #[arg(long, default_value_t = 128)]
    batch: usize,
    /// Seconds for which each number is measured.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// The learner of this process, an actor.
    #[arg(long, hide = true)]
    of: Option<SocketAddr>,
}

fn main() -> gfn::Result<()> {
    let args = Args::parse();
    tch::set_num_threads(1);
    // Directed graphs on four labelled nodes, built edge by edge; the more nodes have one edge in and one out, the better.
    let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
    let env = GraphEnv::free(actions, GraphState::directed(4))?;
    let net = GraphNet::new(&env, GraphNetConfig::default(), tch::Device::Cpu, tch::Kind::Float, &mut Rng::seeded(0))?;
    let one_each = PerGraph(|graph: &GraphState| 2.0 * (0..4).filter(|&node| graph.degree(node) == 2).count() as f64);
    let pause = Duration::from_secs_f64(args.sleep_ms / 1e3);
    let reward = move |graphs: &GraphStates, conditions: Option<&tch::Tensor>| {
        std::thread::sleep(pause * gfn::env::Rows::len(graphs) as u32);
        gfn::env::Reward::log_reward(&one_each, graphs, conditions)
    };
    if let Some(address) = args.of {
        let config = ActorConfig { batch: args.batch, ..ActorConfig::default() };
        return Actor::connect(address, env, reward, GraphPolicy(net), config)?.run().map(drop);
    }
    let learner = Learner::listen(SocketAddr::from(([127, 0, 0, 1], 0)), LearnerConfig::default())?;
    let (address, monitor) = (learner.address(), learner.monitor());
    let buffer = ReplayBuffer::new(ReplayConfig { capacity: 100_000, eviction: Eviction::Fifo, draw: Draw::Uniform })?;
    let config = TrainerConfig { batch: args.batch, ..TrainerConfig::default() };
    let mut trainer = Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, config, Rng::seeded(0))?
        .with_replay(buffer)
        .with_fresh(learner)?;
    for &n in &args.actors {
        let mut actors =
            (0..n).map(|_| start_actor(address, &args, args.batch / n)).collect::<gfn::Result<Vec<Child>>>()?;
        // The first steps take no replayed trajectories.
        while monitor.counts().actors < n || trainer.steps_done() < 12 {
            trainer.step()?;
        }
        let mut run = |seconds: f64| -> gfn::Result<_> {
            // From the arrival of a message to that of another one.
            let mut arrival = |after: Duration| -> gfn::Result<_> {
                let began = Instant::now();
                while began.elapsed() < after {
                    trainer.step()?;
                }
                let before = monitor.counts().received;
                while monitor.counts().received == before {
                    trainer.step()?;
                }
                Ok((Instant::now(), monitor.counts(), trainer.steps_done()))
            };
            let (began, first, steps) = arrival(Duration::ZERO)?;
            let (ended, last, last_step) = arrival(Duration::from_secs_f64(seconds))?;
            let took = (ended - began).as_secs_f64();
            let staleness = last.mean_staleness * last.used as f64 - first.mean_staleness * first.used as f64;
            let objects = (last.received - first.received) as f64 / took;
            Ok((objects, (last_step - steps) as f64 / took, staleness / (last.used - first.used).max(1) as f64))
        };
        run(2.0)?;
        let (objects, steps, staleness) = run(args.seconds)?;
        let ideal =
            if args.sleep_ms > 0.0 { format!(" of {:.0}", n as f64 * 1e3 / args.sleep_ms) } else { String::new() };
        println!("{n} actors: {objects:.0} objects/s{ideal}, {steps:.1} steps/s, {staleness:.1} steps old");
        for actor in &mut actors {
            // An actor that has ended by itself is over as well.
            let _ = actor.kill().and_then(|()| actor.wait().map(drop));
        }
        while monitor.counts().actors > 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    Ok(())
}

fn start_actor(address: SocketAddr, args: &Args, batch: usize) -> gfn::Result<Child> {
    let refuse = |error| gfn::Error::io("this program", error);
    let mut command = Command::new(std::env::current_exe().map_err(refuse)?);
    command.args(["--of", &address.to_string(), "--batch", &batch.to_string()]);
    command.args(["--sleep-ms", &args.sleep_ms.to_string()]).spawn().map_err(refuse)
}
