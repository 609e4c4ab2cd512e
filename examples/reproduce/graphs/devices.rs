//! A device held against the CPU: gradients of every objective, a checkpoint that goes over, and steps a second.

use std::time::Instant;

use clap::{Parser, ValueEnum};
use gfn::env::{Reward, VectorEnv, VectorStates};
use gfn::graph::{GraphEnv, GraphKind, GraphStates};
use gfn::nn::{BackwardPolicy, ConvKind, GraphNet, GraphNetConfig, MlpConfig};
use gfn::objective::Origin;
use gfn::policy::{GraphPolicy, KHot, MlpPolicy, MlpPolicyConfig, UniformPolicy};
use gfn::rollout::Sampler;
use gfn::runtime::{DeviceKind, Runtime};
use gfn::train::TrainEnv;
use gfn::train::{Batch, Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_gym::hypergrid::HyperGrid;
use gfn_gym::ring::Ring;
use serde_json::{Value, json};
use tch::{Device, Kind, Tensor};

use crate::flags::{ObjectiveName, words};
use crate::run::lines::{print, tell};

/// Hold a device against the CPU: gradients of every objective, resume, speed
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// The device: cpu, cuda or cuda:N
    #[arg(long, default_value = "cuda")]
    device: DeviceKind,
    /// Seconds that each speed is measured for
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Threads of rayon and of libtorch
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Print one line of JSON at the end
    #[arg(long)]
    json: bool,
}

type Grid = Trainer<VectorEnv>;
type Rings = Trainer<GraphEnv>;

/// log R of every state, finished or not: a tenth of the sum of coordinates, or of the number of edges.
struct Sums;

impl Reward<VectorStates> for Sums {
    fn log_reward(&self, states: &VectorStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
        Ok(states.rows().map(|row| 0.1 * row.iter().copied().map(f64::from).sum::<f64>()).collect())
    }
    fn partial_log_reward(&self, states: &VectorStates, _: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
        self.log_reward(states, None).map(Some)
    }
}

impl Reward<GraphStates> for Sums {
    fn log_reward(&self, states: &GraphStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
        Ok(states.graphs().iter().map(|graph| 0.1 * graph.n_edges() as f64).collect())
    }
    fn partial_log_reward(&self, states: &GraphStates, _: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
        self.log_reward(states, None).map(Some)
    }
}

/// Gradients may differ by so much of their norm.
const ALLOWED: f64 = 1e-4;
/// Batch and width of what is timed.
const SPEEDS: [(usize, i64); 4] = [(16, 64), (128, 128), (1_024, 256), (4_096, 512)];

pub(crate) fn run(args: &Args) -> Result<()> {
    let device = Runtime::new(args.threads, args.device)?.device();
    let (mut rows, mut worst) = (Vec::new(), 0.0f64);
    for &name in ObjectiveName::value_variants() {
        let of_grid = gap(&mut grid(name, Device::Cpu, 16, 64)?, &mut grid(name, device, 16, 64)?)?;
        // Graph networks have no estimate of the number of paths.
        let messages = !name.needs_paths();
        let of_rings = messages.then(|| gap(&mut rings(name, Device::Cpu, 16, 32)?, &mut rings(name, device, 16, 32)?));
        let of_rings = of_rings.transpose()?;
        worst = worst.max(of_grid).max(of_rings.unwrap_or_default());
        let shown = of_rings.map_or("not asked".to_owned(), |gap| format!("{gap:.1e}"));
        tell(format_args!("{:<14} gradients differ by {of_grid:.1e} (perceptron), {shown} (messages)", words(&name)));
        rows.push(json!({ "objective": words(&name), "perceptron": of_grid, "messages": of_rings }));
    }
    let (there, back) = (resumed(Device::Cpu, device)?, resumed(device, Device::Cpu)?);
    tell(format_args!("a checkpoint of the CPU's has gradients that differ by {there:.1e} there, and back {back:.1e}"));
    // Large batches take minutes on a CPU: they are for what they are meant for.
    let sizes = SPEEDS.iter().filter(|(batch, _)| *batch <= 128 || device != Device::Cpu);
    let speeds = sizes.map(|&(batch, width)| speed(args, device, batch, width)).collect::<Result<Vec<Value>>>()?;
    if args.json {
        print(format_args!(
            "{}",
            json!({ "example": "devices", "device": args.device.to_string(), "threads": args.threads, "gradients": rows,
            "worst": worst, "resumed": there, "resumed_back": back, "its_per_s": speeds })
        ))?;
    }
    let worst = worst.max(there).max(back);
    if worst > ALLOWED {
        let remedy = format!("at most {ALLOWED:e}: look at the objective above that differs most");
        return Err(Error::contract("gradients are the CPU's", format!("they differ by {worst:.1e}; {remedy}")));
    }
    Ok(())
}

fn grid(name: ObjectiveName, device: Device, batch: usize, width: i64) -> Result<Grid> {
    let (env, mut rng) = (HyperGrid::new(2, 8)?.env(), Rng::seeded(0));
    let network = MlpPolicyConfig {
        mlp: MlpConfig { hidden: vec![width; 2], ..MlpConfig::default() },
        backward: backward(name),
        estimators: name.estimators(),
        paths: name.needs_paths(),
        ..MlpPolicyConfig::default()
    };
    let policy = MlpPolicy::new(&env, KHot::new(2, 8), network, device, Kind::Float, &mut rng)?;
    let config = TrainerConfig { batch, ..TrainerConfig::default() };
    Trainer::new(env, Sums, policy, name.build()?, config, rng)
}

fn rings(name: ObjectiveName, device: Device, batch: usize, width: i64) -> Result<Rings> {
    let (env, mut rng) = (Ring::new(4, GraphKind::Directed)?.into_env(), Rng::seeded(0));
    let network = GraphNetConfig {
        conv: ConvKind::Directed,
        layers: 1,
        embedding: width,
        identity: true,
        backward: backward(name),
        estimators: name.estimators(),
        ..GraphNetConfig::default()
    };
    let policy = GraphPolicy(GraphNet::new(&env, network, device, Kind::Float, &mut rng)?);
    let config = TrainerConfig { batch, ..TrainerConfig::default() };
    Trainer::new(env, Sums, policy, name.build()?, config, rng)
}

fn backward(name: ObjectiveName) -> BackwardPolicy {
    if name.trains_backward() { BackwardPolicy::SharedTorso } else { BackwardPolicy::Uniform }
}

/// The distance of the gradients of two trainers on one batch, over the norm of the first's.
fn gap<E>(one: &mut Trainer<E>, other: &mut Trainer<E>) -> Result<f64>
where
    E: TrainEnv + gfn::env::DiscreteEnv,
{
    let (ours, theirs) = if one.context().objective.origin() == Origin::OnPolicy {
        // Draws are of one seed.
        (one.draw()?, other.draw()?)
    } else {
        let walks = || Sampler::new(one.env(), &UniformPolicy).forward(16, &mut Rng::seeded(1));
        (Batch::from(walks()?), Batch::from(walks()?))
    };
    let (ours, theirs) = (gradient(one, ours)?, gradient(other, theirs)?);
    let apart: f64 = ours.iter().zip(&theirs).map(|(a, b)| (a - b).square().sum(Kind::Double).double_value(&[])).sum();
    let norm: f64 = ours.iter().map(|a| a.square().sum(Kind::Double).double_value(&[])).sum();
    Ok((apart / norm.max(f64::MIN_POSITIVE)).sqrt())
}

fn gradient<E: TrainEnv>(trainer: &mut Trainer<E>, mut batch: Batch<E>) -> Result<Vec<Tensor>> {
    let scores = trainer.score(&mut batch)?;
    trainer.loss(&scores)?.backward();
    let parameters =
        trainer.policy().parameters().ok_or(Error::missing("a gradient", "parameters", "use a network"))?;
    let trained = parameters.iter().filter(|parameter| parameter.tensor.requires_grad());
    let of = |tensor: &Tensor| {
        let gradient = tensor.grad();
        if gradient.defined() {
            gradient.to_device(Device::Cpu).to_kind(Kind::Double)
        } else {
            tensor.zeros_like().to_device(Device::Cpu).to_kind(Kind::Double)
        }
    };
    Ok(trained.map(|parameter| of(&parameter.tensor)).collect())
}

/// The same of a trainer of a device that goes on from another's checkpoint.
fn resumed(from: Device, to: Device) -> Result<f64> {
    let (mut one, mut other) = (rings(ObjectiveName::Tb, from, 16, 32)?, rings(ObjectiveName::Tb, to, 16, 32)?);
    (0..5).try_for_each(|_| one.step().map(|_| ()))?;
    let folder = std::env::temp_dir().join(format!("gfn-devices-{}", std::process::id()));
    one.save(&folder)?;
    let resumed = other.resume(&folder);
    std::fs::remove_dir_all(&folder).map_err(|source| Error::io(&folder, source))?;
    resumed?;
    gap(&mut one, &mut other)
}

/// Steps a second on the CPU and on the device.
fn speed(args: &Args, device: Device, batch: usize, width: i64) -> Result<Value> {
    let timed = |device: Device| -> Result<f64> {
        let mut trainer = rings(ObjectiveName::Tb, device, batch, width)?;
        (0..3).try_for_each(|_| trainer.step().map(|_| ()))?;
        let (started, mut steps) = (Instant::now(), 0);
        while started.elapsed().as_secs_f64() < args.seconds {
            trainer.step()?;
            steps += 1;
        }
        Ok(f64::from(steps) / started.elapsed().as_secs_f64())
    };
    let (cpu, there) = (timed(Device::Cpu)?, timed(device)?);
    tell(format_args!(
        "rings, batch {batch}, width {width}: {cpu:.1} steps a second on the CPU, {there:.1} on {}",
        args.device
    ));
    Ok(json!({ "batch": batch, "width": width, "cpu": cpu, "device": there }))
}
