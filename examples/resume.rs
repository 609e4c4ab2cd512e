//! Stop and go on: a run that is saved halfway and taken up again ends as one that was never interrupted, bit for bit.

use gfn::graph::{GraphEnv, GraphKind};
use gfn::nn::{GraphNet, GraphNetConfig};
use gfn::objective::TrajectoryBalance;
use gfn::policy::GraphPolicy;
use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::runtime::{DeviceKind, Runtime};
use gfn::train::{Fit, Trainer, TrainerConfig};
use gfn::{Error, Result, Rng, tch};
use gfn_gym::ring::{Ring, RingReward};
use gfn_plot::Table;

type RingTrainer = Trainer<GraphEnv>;

/// A trainer at its first step: what a program makes whether it starts or goes on.
fn trainer(runtime: &Runtime) -> Result<RingTrainer> {
    let (env, mut rng) = (Ring::new(4, GraphKind::Directed)?.into_env(), Rng::seeded(0));
    let network = GraphNetConfig { identity: true, embedding: 64, ..GraphNetConfig::default() };
    let net = GraphNet::new(&env, network, runtime.device(), tch::Kind::Float, &mut rng)?;
    let replay = ReplayConfig { capacity: 1_000, eviction: Eviction::Fifo, draw: Draw::Uniform };
    let config = TrainerConfig { batch: 32, ..TrainerConfig::default() };
    Ok(Trainer::new(env, RingReward::default(), GraphPolicy(net), TrajectoryBalance, config, rng)?
        .with_replay(ReplayBuffer::new(replay)?))
}

/// Every number that was learned.
fn parameters(trainer: &RingTrainer) -> Vec<tch::Tensor> {
    trainer.policy().parameters().into_iter().flatten().map(|parameter| parameter.tensor.copy()).collect()
}

fn main() -> Result<()> {
    let runtime = Runtime::new(1, DeviceKind::Cpu)?;
    let checkpoint = "out/resume/checkpoint";

    let mut whole = trainer(&runtime)?;
    Fit::new(200).run(&mut whole)?;

    // A checkpoint at step 100, and everything else forgotten; `Fit::stop_on_interrupt` writes one on Ctrl-C.
    let mut first_half = trainer(&runtime)?;
    Fit::new(100).checkpoint(checkpoint, None)?.run(&mut first_half)?;
    drop(first_half);

    // Weights, the optimiser's moments, the buffer, the random stream and the number of steps come back.
    let mut second_half = trainer(&runtime)?;
    second_half.resume(checkpoint)?;
    let resumed_at = second_half.steps_done();
    Fit::new(200).run(&mut second_half)?;

    let mut table = Table::new(["run", "steps", "rewards computed"]);
    table.push(["in one go".into(), whole.steps_done().into(), whole.reward_calls().into()]);
    let resumed = format!("resumed at step {resumed_at}");
    table.push([resumed.into(), second_half.steps_done().into(), second_half.reward_calls().into()]);
    println!("{table}");
    let (once, twice) = (parameters(&whole), parameters(&second_half));
    match once.iter().zip(&twice).position(|(a, b)| !a.equal(b)) {
        None => println!("Equal bit for bit, in all {} tensors of parameters.", once.len()),
        Some(k) => {
            let detail = format!("tensor {k}: {} and {}", once[k], twice[k]);
            return Err(Error::contract("a resumed run equals an uninterrupted one", detail));
        }
    }
    Ok(())
}
