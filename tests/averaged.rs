//! Tests of a trainer's moving average of parameters. The average must follow its recursion, be used for
//! sampling on request, and be saved in checkpoints.

use crate::trainers::{Folder, GridTrainer, Setting, bytes, hypergrid, state, steps};
use gfn::env::VectorEnv;
use gfn::examples::Chain;
use gfn::nn::{EstimatorsConfig, Parameters};
use gfn::objective::{Advantage, PolicyGradient};
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig, Policy, UniformPolicy};
use gfn::train::{AverageFor, ReplayPath, Trainer, TrainerConfig};
use gfn::{Error, Rng};
use gfn_gym::hypergrid::{HyperGrid, OriginalReward};
use tch::{Device, Kind, Tensor};

const DECAY: f64 = 0.8;

fn trainer(seed: u64, purpose: AverageFor) -> GridTrainer {
    tch::set_num_threads(1);
    hypergrid(Setting::new(seed, ReplayPath::UniformBackward)).with_average(DECAY, purpose).unwrap()
}

fn values(policy: &dyn Policy<VectorEnv>) -> Vec<Tensor> {
    let values = policy.parameters().map(Parameters::iter).into_iter().flatten();
    values.map(|parameter| parameter.tensor.detach().copy()).collect()
}

#[test]
fn the_average_is_the_recursion_and_looking_changes_nothing() {
    let mut trainer = trainer(1, AverageFor::Evaluation);
    let mut plain = hypergrid(Setting::new(1, ReplayPath::UniformBackward));
    let mut expected = values(trainer.policy());
    for _ in 0..6 {
        trainer.step().unwrap();
        plain.step().unwrap();
        let now = values(trainer.policy());
        expected = expected.iter().zip(&now).map(|(a, p)| a * DECAY + p * (1.0 - DECAY)).collect();
        let averaged = trainer.averaged(|policy| Ok(values(policy))).unwrap();
        for (averaged, expected) in averaged.iter().zip(&expected) {
            assert!((averaged - expected).abs().max().double_value(&[]) < 1e-5);
        }
        assert_eq!(values(trainer.policy()), now, "given back");
        assert_eq!(values(plain.policy()), now, "an average for evaluation changes no training");
    }
    assert_ne!(values(trainer.policy()), trainer.averaged(|policy| Ok(values(policy))).unwrap());
}

#[test]
fn a_copied_average_stays() {
    let mut trainer = trainer(1, AverageFor::Evaluation);
    steps(&mut trainer, 4);
    let own = values(trainer.policy());
    let averaged = trainer.averaged(|policy| Ok(values(policy))).unwrap();
    trainer.take_average().unwrap();
    assert!(values(trainer.policy()) == averaged && averaged != own);
    let plain = hypergrid(Setting::new(1, ReplayPath::UniformBackward)).take_average();
    assert!(matches!(plain, Err(Error::Missing { .. })));
}

#[test]
fn a_run_that_samples_by_its_average_resumes_exactly() {
    let folder = Folder::new("averaged");
    let mut whole = trainer(1, AverageFor::Sampling);
    let first = steps(&mut whole, 5);
    assert_ne!(first, steps(&mut trainer(1, AverageFor::Evaluation), 5), "other trajectories are drawn");
    let middle = folder.join("middle");
    whole.save(&middle).unwrap();
    let expected = steps(&mut whole, 5);

    let mut resumed = trainer(2, AverageFor::Sampling);
    resumed.resume(&middle).unwrap();
    assert_eq!(state(&resumed, &folder), bytes(&middle));
    assert_eq!(steps(&mut resumed, 5), expected);

    let refused =
        hypergrid(Setting::new(1, ReplayPath::UniformBackward)).resume(&middle).unwrap_err().to_string();
    assert!(refused.contains("keeps an average"), "{refused}");
}

#[test]
fn invalid_settings_are_refused() {
    let reward = |states: &gfn::examples::Positions, _: Option<&Tensor>| -> gfn::Result<Vec<f64>> {
        Ok(vec![0.0; states.0.len()])
    };
    let objective = || PolicyGradient::new(Advantage::Gae { lambda: 0.7 }).unwrap();
    let config = TrainerConfig { batch: 4, ..TrainerConfig::default() };
    let nothing =
        Trainer::new(Chain::new(4), reward, UniformPolicy, objective(), config.clone(), Rng::seeded(0));
    assert!(matches!(nothing.unwrap().with_average(0.9, AverageFor::Sampling), Err(Error::Missing { .. })));

    let on_policy = |purpose, decay| {
        let grid = HyperGrid::new(2, 4).unwrap();
        let mut rng = Rng::seeded(0);
        let env = grid.env();
        let network =
            MlpPolicyConfig { estimators: EstimatorsConfig::with_flow(true), ..MlpPolicyConfig::default() };
        let policy =
            MlpPolicy::new(&env, KHot::new(2, 4), network, Device::Cpu, Kind::Float, &mut rng).unwrap();
        let reward = OriginalReward::standard(&grid).unwrap();
        Trainer::new(env, reward, policy, objective(), config.clone(), rng)
            .unwrap()
            .with_average(decay, purpose)
    };
    assert!(matches!(on_policy(AverageFor::Sampling, 1.0), Err(Error::Config { .. })));
    let refused = on_policy(AverageFor::Sampling, 0.9).unwrap().step().unwrap_err().to_string();
    assert!(refused.contains("use the average only for evaluation"), "{refused}");
    on_policy(AverageFor::Evaluation, 0.9).unwrap().step().unwrap();
}
