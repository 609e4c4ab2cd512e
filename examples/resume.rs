//! Stop and go on: a run that is saved halfway and taken up again ends as one that was never interrupted, bit for bit.

use gfn::env::StateGraph;
use gfn::graph::{GraphEnv, GraphKind};
use gfn::metrics::Distances;
use gfn::nn::{GraphNet, GraphNetConfig, GraphNetwork};
use gfn::objective::TrajectoryBalance;
use gfn::policy::GraphPolicy;
use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::report::Table;
use gfn::runtime::{DeviceKind, Runtime};
use gfn::train::{Fit, Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_gym::ring::{Ring, RingReward};

type RingTrainer = Trainer<GraphEnv<Ring>, GraphPolicy<GraphNet>>;

/// A trainer at its first step: what a program makes whether it starts or goes on.
fn trainer(runtime: &Runtime) -> Result<RingTrainer> {
    let (env, mut rng) = (Ring::new(4, GraphKind::Directed)?, Rng::seeded(0));
    let network = GraphNetConfig { identity: true, embedding: 64, ..GraphNetConfig::default() };
    let net = GraphNet::new(&env, network, runtime.device(), tch::Kind::Float, &mut rng)?;
    let replay = ReplayConfig { capacity: 1_000, eviction: Eviction::Fifo, draw: Draw::Uniform };
    let config = TrainerConfig { batch: 32, ..TrainerConfig::default() };
    Ok(Trainer::new(env, RingReward::default(), GraphPolicy(net), TrajectoryBalance, config, rng)?
        .with_replay(ReplayBuffer::new(replay)?))
}

/// What the policy samples, exactly, and all of its parameters.
fn end(trainer: &RingTrainer) -> Result<(f64, Vec<tch::Tensor>)> {
    let space = StateGraph::build(trainer.env(), 4_096)?;
    let learned = space.terminating_distribution(trainer.env(), trainer.policy(), None)?;
    let target = space.target_distribution(&RingReward::default(), None)?;
    let parameters = trainer.policy().0.parameters().iter();
    Ok((
        Distances::between(&learned.probs, &target.probs)?.tv,
        parameters.map(|parameter| parameter.tensor.copy()).collect(),
    ))
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

    let ((tv, parameters), (tv_again, parameters_again)) = (end(&whole)?, end(&second_half)?);
    let mut table = Table::new(["run", "steps", "total variation"]);
    table.push(["in one go".into(), whole.steps_done().into(), format!("{tv:.17}").into()]);
    table.push([
        format!("resumed at step {resumed_at}").into(),
        second_half.steps_done().into(),
        format!("{tv_again:.17}").into(),
    ]);
    println!("{table}");
    let equal =
        parameters.len() == parameters_again.len() && parameters.iter().zip(&parameters_again).all(|(a, b)| a.equal(b));
    match equal && tv.to_bits() == tv_again.to_bits() {
        true => println!("Equal bit for bit, in all {} tensors of parameters.", parameters.len()),
        false => {
            let detail = format!("total variations {tv} and {tv_again}");
            return Err(Error::contract("a resumed run equals an uninterrupted one", detail));
        }
    }
    Ok(())
}
