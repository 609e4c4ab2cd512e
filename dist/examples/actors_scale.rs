//! How many actors a learner can feed on: its costs are measured here, and a simulation of events counts objects per second.
//! `cargo run --release -p gfn-dist --example actors_scale -- --measured 1:99 2:199 --out docs/guide/src/figures/actors.svg`

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Parser;
use gfn::graph::GraphStates;
use gfn::nn::{GraphNet, GraphNetConfig};
use gfn::prelude::*;
use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::rollout::{Sampler, Trajectories};
use gfn::tch;
use gfn_plot::{Curve, Figure, Panel, Scale};

#[derive(Parser)]
struct Args {
    /// Numbers of actors
    #[arg(long, num_args = 1.., default_values_t = [8, 16, 32, 64, 128, 256, 512, 1024])]
    actors: Vec<usize>,
    /// Numbers of learners that share the actors
    #[arg(long, num_args = 1.., default_values_t = [1, 2, 4, 8])]
    learners: Vec<usize>,
    /// Milliseconds that an object's reward takes
    #[arg(long, default_value_t = 10.0)]
    reward_ms: f64,
    /// Objects of a message
    #[arg(long, default_value_t = 16)]
    message: usize,
    /// Trajectories of a step
    #[arg(long, default_value_t = 128)]
    batch: usize,
    /// Walks that may wait at a learner, and that a step takes at most
    #[arg(long, default_value_t = 256)]
    queue: usize,
    /// The learners' networks, by which parameters go to actors
    #[arg(long, default_value_t = 10.0)]
    gigabits: f64,
    /// Objects per second that were measured, by number of actors, as 8:780
    #[arg(long, num_args = 1..)]
    measured: Vec<String>,
    /// A figure, as SVG or PNG
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Seconds that things take at a learner and its actors.
#[derive(Clone, Copy, Debug)]
struct Costs {
    /// An object's reward.
    reward: f64,
    /// To replay a walk, which checks it, and to store it.
    replay: f64,
    /// A step on replayed trajectories.
    step: f64,
    /// To send the parameters to one actor.
    answer: f64,
}

/// Trajectories that may be trained on for each that came, as [`gfn_dist::actors::LearnerConfig`] has it.
const MAX_REUSE: f64 = 8.0;
/// Simulated seconds, of which the first quarter doesn't count.
const SIMULATED: f64 = 60.0;

fn main() -> gfn::Result<()> {
    let args = Args::parse();
    tch::set_num_threads(1);
    let costs = measure(&args)?;
    println!("{costs:?}");
    println!("{:>8} {:>8} {:>10} {:>8} {:>8} {:>6}", "learners", "actors", "objects/s", "of ideal", "steps/s", "busy");
    let mut curves = Vec::new();
    for &learners in &args.learners {
        let mut points = Vec::new();
        for &actors in args.actors.iter().filter(|actors| **actors >= learners) {
            let one = simulate(costs, actors.div_ceil(learners), args.message, args.batch, args.queue);
            let (objects, steps) = (one.objects * learners as f64, one.steps);
            let ideal = actors as f64 / costs.reward;
            let share = objects / ideal;
            println!("{learners:>8} {actors:>8} {objects:>10.0} {share:>8.2} {steps:>8.1} {:>6.2}", one.busy);
            points.push(((actors as f64).log2(), objects));
        }
        let noun = if learners == 1 { "learner" } else { "learners" };
        curves.push(Curve::new(format!("{learners} {noun}"), points));
    }
    let measured: Vec<(f64, f64)> = args.measured.iter().map(|text| pair(text)).collect::<gfn::Result<_>>()?;
    for &(actors, objects) in &measured {
        let expected = simulate(costs, actors as usize, args.message, args.batch, args.queue).objects;
        println!("{actors} actors measured: {objects:.0} objects/s, {:.2} of what is simulated", objects / expected);
    }
    let Some(path) = args.out else { return Ok(()) };
    let title = format!("objects per second, rewards of {} ms", args.reward_ms);
    let mut panel = Panel::new(title).labels("actors, as a power of 2", "objects per second").y_scale(Scale::Log);
    if !measured.is_empty() {
        let points = measured.iter().map(|&(actors, objects)| (actors.log2(), objects));
        panel = panel.curve(Curve::new("measured", points));
    }
    panel = curves.into_iter().fold(panel, Panel::curve);
    Figure::new("Actors and learners").panel(panel).write(path)
}

fn pair(text: &str) -> gfn::Result<(f64, f64)> {
    let parsed = text.split_once(':').and_then(|(actors, objects)| Some((actors.parse().ok()?, objects.parse().ok()?)));
    parsed.ok_or_else(|| {
        gfn::Error::config("--measured", text, "a number of actors and their objects per second, as 8:780")
    })
}

/// The costs of a learner's work on this machine, for directed graphs on four labelled nodes.
fn measure(args: &Args) -> gfn::Result<Costs> {
    let env = || {
        let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
        let start = GraphState::with_nodes(GraphKind::Directed, 4);
        GraphEnv::free(actions, start)
    };
    let (cpu, float) = (tch::Device::Cpu, tch::Kind::Float);
    let net = GraphNet::new(&env()?, GraphNetConfig::default(), cpu, float, &mut Rng::seeded(0))?;
    let flat = |graphs: &GraphStates, _: Option<&tch::Tensor>| -> gfn::Result<Vec<f64>> {
        Ok(vec![0.0; gfn::env::Rows::len(graphs)])
    };
    let buffer = ReplayBuffer::new(ReplayConfig { capacity: 100_000, eviction: Eviction::Fifo, draw: Draw::Uniform })?;
    let config = TrainerConfig { batch: args.batch, ..TrainerConfig::default() };
    let trainer = Trainer::new(env()?, flat, GraphPolicy(net), TrajectoryBalance, config, Rng::seeded(0))?;
    let mut trainer = trainer.with_replay(buffer);
    let steps = median(|| {
        // Its own sampling is what actors do in its place.
        trainer.step().map(|stats| stats.seconds[1..].iter().sum())
    })?;
    let walks = Sampler::new(trainer.env(), trainer.policy()).walks(args.batch, &mut Rng::seeded(1))?;
    let config = ReplayConfig { capacity: 100_000, eviction: Eviction::Fifo, draw: Draw::Uniform };
    let mut stored = ReplayBuffer::new(config)?;
    let instances = vec![0; args.batch];
    let replay = median(|| {
        let began = Instant::now();
        let again = Trajectories::replay_of(trainer.env(), &instances, &walks.actions, &walks.offsets)?;
        stored.add(trainer.env(), &again.walks(trainer.env())?, &vec![0.0; args.batch])?;
        Ok(began.elapsed().as_secs_f64())
    })?;
    let bytes = 4 * trainer.n_parameters();
    Ok(Costs {
        reward: args.reward_ms / 1e3,
        replay: replay / args.batch as f64,
        step: steps,
        answer: 8.0 * bytes as f64 / (args.gigabits * 1e9),
    })
}

/// The median of what `work` gives, over a second and a half.
fn median(mut work: impl FnMut() -> gfn::Result<f64>) -> gfn::Result<f64> {
    let (began, mut all) = (Instant::now(), Vec::new());
    while began.elapsed() < Duration::from_millis(1500) {
        all.push(work()?);
    }
    all.sort_by(f64::total_cmp);
    Ok(all[all.len() / 2])
}

/// Rates per second of one learner.
struct Rates {
    objects: f64,
    steps: f64,
    /// The share of its time that it works.
    busy: f64,
}

/// A learner and its actors: a message is stored if there is room, answered over the one network, and taken before the next step.
fn simulate(costs: Costs, actors: usize, message: usize, batch: usize, most: usize) -> Rates {
    let nanos = |seconds: f64| (seconds * 1e9) as u64;
    let round = nanos(costs.reward * message as f64);
    // They begin one after another, as processes do.
    let mut arrivals: BinaryHeap<Reverse<u64>> =
        (0..actors as u64).map(|actor| Reverse(round + actor * round / actors as u64)).collect();
    let (mut queued, mut waiting, mut network) = (0, VecDeque::new(), 0u64);
    let (mut now, mut idle) = (0u64, 0u64);
    let (mut received, mut trained, mut steps) = (0usize, 0usize, 0usize);
    let (warm, end) = (nanos(SIMULATED / 4.0), nanos(SIMULATED));
    let mut at_warm = None;
    while now < end {
        if at_warm.is_none() && now >= warm {
            at_warm = Some((now, received, steps, idle));
        }
        let mut taken = 0;
        loop {
            while arrivals.peek().is_some_and(|Reverse(at)| *at <= now) {
                waiting.extend(arrivals.pop());
            }
            while queued == 0 || queued + message <= most {
                let Some(Reverse(at)) = waiting.pop_front() else { break };
                queued += message;
                network = network.max(at) + nanos(costs.answer);
                arrivals.push(Reverse(network + round));
            }
            if queued == 0 || taken >= most {
                break;
            }
            (queued, taken, received) = (queued - message, taken + message, received + message);
            now += nanos(costs.replay * message as f64);
        }
        if (trained + batch) as f64 > MAX_REUSE * received as f64 {
            let Some(Reverse(next)) = arrivals.peek() else { break };
            idle += next.saturating_sub(now);
            now = now.max(*next);
            continue;
        }
        (trained, steps) = (trained + batch, steps + 1);
        now += nanos(costs.step);
    }
    let (began, first, first_step, first_idle) = at_warm.unwrap_or_default();
    let seconds = (now - began) as f64 / 1e9;
    Rates {
        objects: (received - first) as f64 / seconds,
        steps: (steps - first_step) as f64 / seconds,
        busy: 1.0 - (idle - first_idle) as f64 / (now - began) as f64,
    }
}
