//! Tests of optimizers other than Adam: SGD must equal libtorch's SGD, and a trainer must accept a
//! user-defined optimizer.

use gfn::Rng;
use gfn::env::StateGraph;
use gfn::examples::Triangles;
use gfn::graph::{GraphEnv, GraphStates};
use gfn::metrics::Distances;
use gfn::nn::{GraphNet, GraphNetConfig, Group, Parameters};
use gfn::objective::TrajectoryBalance;
use gfn::optim::{Optimizer, Schedule, Sgd, SgdConfig};
use gfn::policy::GraphPolicy;
use gfn::train::{Trainer, TrainerConfig};
use tch::nn::OptimizerConfig;
use tch::{Device, Kind, Tensor};

const START: [f64; 3] = [1.0, -2.0, 0.5];

fn loss(x: &Tensor, step: i64) -> Tensor {
    let target = Tensor::from_slice(&[0.1 * step as f64, 1.0, -1.0]);
    ((x - target) * Tensor::from_slice(&[1.0, 3.0, 0.2])).square().sum(Kind::Double)
}

#[test]
fn sgd_with_momentum_is_that_of_libtorch() {
    let mut store = tch::nn::VarStore::new(Device::Cpu);
    let theirs = store.root().zeros("x", &[3]);
    store.double();
    let theirs = store.variables().remove("x").unwrap_or(theirs);
    tch::no_grad(|| theirs.shallow_clone().copy_(&Tensor::from_slice(&START)));
    let mut reference = tch::nn::sgd(0.9, 0.0, 0.0, false).build(&store, 0.05).unwrap();

    let mut parameters = Parameters::new(Device::Cpu, Kind::Double);
    let ours = parameters.scope(&mut Rng::seeded(0)).constant("x", &[3], 0.0);
    tch::no_grad(|| ours.shallow_clone().copy_(&Tensor::from_slice(&START)));
    let config = SgdConfig { lr: 0.05, momentum: 0.9, max_norm: None, ..SgdConfig::default() };
    let mut sgd = Sgd::new(&parameters, config).unwrap();
    for step in 0..20 {
        reference.backward_step(&loss(&theirs, step));
        loss(&ours, step).backward();
        sgd.step().unwrap();
        let difference = (&ours - &theirs).abs().max().double_value(&[]);
        assert!(difference < 1e-12, "step {step}: {difference}");
    }
}

#[test]
fn a_bad_gradient_changes_nothing_and_is_cleared() {
    let mut parameters = Parameters::new(Device::Cpu, Kind::Double);
    let x = parameters.scope(&mut Rng::seeded(0)).constant("x", &[2], 1.0);
    let mut sgd = Sgd::new(&parameters, SgdConfig::default()).unwrap();
    (&x * f64::INFINITY).sum(Kind::Double).backward();
    let error = sgd.step().unwrap_err().to_string();
    assert!(error.contains("`x`"), "{error}");
    assert_eq!(Vec::<f64>::try_from(&x.detach()).unwrap(), [1.0, 1.0]);
    assert_eq!(x.grad().abs().sum(Kind::Double).double_value(&[]), 0.0);
    assert!(sgd.scale_lr(f64::NAN).is_err() && sgd.scale_lr(-1.0).is_err());
    for wrong in
        [SgdConfig { momentum: 1.0, ..SgdConfig::default() }, SgdConfig { lr: -1.0, ..SgdConfig::default() }]
    {
        assert!(Sgd::new(&parameters, wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn log_z_has_a_separate_learning_rate() {
    let mut parameters = Parameters::new(Device::Cpu, Kind::Double);
    let mut rng = Rng::seeded(0);
    let mut scope = parameters.scope(&mut rng);
    let weight = scope.constant("w", &[1], 1.0);
    let log_z = scope.group(Group::LogZ).constant("z", &[1], 1.0);
    let config = SgdConfig { lr: 0.1, log_z_lr: 0.5, momentum: 0.0, max_norm: None };
    let mut sgd = Sgd::new(&parameters, config).unwrap();
    sgd.scale_lr(0.5).unwrap();
    (&weight + &log_z).sum(Kind::Double).backward();
    sgd.step().unwrap();
    let moved = |tensor: &Tensor| 1.0 - tensor.double_value(&[0]);
    assert!((moved(&weight) - 0.05).abs() < 1e-12 && (moved(&log_z) - 0.25).abs() < 1e-12);
}

fn reward(graphs: &GraphStates, _: Option<&Tensor>) -> gfn::Result<Vec<f64>> {
    Ok(graphs.graphs().iter().map(|graph| graph.n_edges() as f64).collect())
}

fn trainer(seed: u64) -> Trainer<GraphEnv> {
    let decay = Schedule::InverseRoot { from: 1.0, steps: 200 };
    trainer_with_schedule(seed, Schedule::WarmUp { steps: 20, then: Box::new(decay) })
}

fn trainer_with_schedule(seed: u64, lr_scale: Schedule) -> Trainer<GraphEnv> {
    let env = Triangles::env();
    let mut rng = Rng::seeded(seed);
    let config = GraphNetConfig { embedding: 32, ..GraphNetConfig::default() };
    let net = GraphNet::new(&env, config, Device::Cpu, Kind::Float, &mut rng).unwrap();
    let config = TrainerConfig { batch: 32, lr_scale, ..TrainerConfig::default() };
    Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, config, rng).unwrap()
}

fn sgd_trainer(seed: u64) -> Trainer<GraphEnv> {
    trainer(seed).with_optimizer(|parameters| Sgd::new(parameters, SgdConfig::default())).unwrap()
}

#[test]
fn a_trainer_learns_by_the_optimizer_that_it_is_given() {
    let mut trainer = sgd_trainer(1);
    for _ in 0..400 {
        trainer.step().unwrap();
    }
    let space = StateGraph::build(trainer.env(), 1000).unwrap();
    let learned = space.terminating_distribution(trainer.env(), trainer.policy(), None).unwrap();
    let target = space.target_distribution(&reward, None).unwrap();
    let tv = Distances::between(&learned.probs, &target.probs).unwrap().tv;
    assert!(tv < 0.05, "{tv}");
}

#[test]
fn a_run_by_sgd_goes_on_bit_for_bit_and_not_by_another_optimizer() {
    let folder = std::env::temp_dir().join(format!("gfn-sgd-{}", std::process::id()));
    let mut whole = sgd_trainer(2);
    for _ in 0..5 {
        whole.step().unwrap();
    }
    whole.save(&folder).unwrap();
    let expected: Vec<u64> = (0..5).map(|_| whole.step().unwrap().loss.to_bits()).collect();
    let mut resumed = sgd_trainer(3);
    resumed.resume(&folder).unwrap();
    let found: Vec<u64> = (0..5).map(|_| resumed.step().unwrap().loss.to_bits()).collect();
    assert_eq!(found, expected);
    let error = trainer(3).resume(&folder).unwrap_err().to_string();
    assert!(error.contains("optimiser's state"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_custom_schedule_is_used_and_checked_step_by_step() {
    let losses = |lr_scale| {
        let mut trainer = trainer_with_schedule(4, lr_scale);
        (0..4).map(|_| trainer.step().unwrap().loss.to_bits()).collect::<Vec<u64>>()
    };
    let line = losses(Schedule::Linear { from: 1.0, to: 0.5, steps: 4 });
    assert_eq!(losses(Schedule::from_fn(|step| 1.0 - 0.125 * step as f64)), line);
    assert_ne!(losses(Schedule::Constant(1.0)), line, "the rates must matter");

    let mut trainer =
        trainer_with_schedule(4, Schedule::from_fn(|step| if step == 2 { f64::NAN } else { 1.0 }));
    assert!(trainer.step().is_ok() && trainer.step().is_ok());
    let error = trainer.step().unwrap_err().to_string();
    assert!(error.contains("NaN"), "{error}");
    // A schedule defined by a function can't be serialised, but a run that uses it can be saved and resumed.
    assert!(serde_json::to_string(&Schedule::from_fn(|_| 1.0)).is_err());
    let folder = std::env::temp_dir().join(format!("gfn-own-schedule-{}", std::process::id()));
    let own = || trainer_with_schedule(4, Schedule::from_fn(|step| 1.0 / (1.0 + step as f64)));
    let mut whole = own();
    whole.step().unwrap();
    whole.save(&folder).unwrap();
    let mut resumed = own();
    resumed.resume(&folder).unwrap();
    assert_eq!(resumed.step().unwrap().loss.to_bits(), whole.step().unwrap().loss.to_bits());
    assert_eq!(resumed.resume_warning(), None);
    std::fs::remove_dir_all(&folder).unwrap();
}
