//! Tests of the diffusion environment: time reversal, exact policies, and replay.
use std::sync::Arc;

use gfn::distribution::{Distribution, Exploration};
use gfn::env::{Direction, Env, Reals, Reward, Rows};
use gfn::metrics::{estimate_log_z, eubo};
use gfn::nn::EstimatorsConfig;
use gfn::objective::score;
use gfn::objective::{Quantities, Quantity};
use gfn::policy::Policy;
use gfn::rollout::ReplayEnv;
use gfn::rollout::Sampler;
use gfn::rollout::Trajectories;
use gfn::{Error, Rng};
use gfn_gym::diffusion::{
    BackwardSteps, DiffusionPolicy, DiffusionPolicyConfig, DiffusionSampling, DiffusionStates, Energy,
    GradNetConfig, Mixture, OptimalGaussian, Process, ProcessKind, ReferencePolicy,
};
use serde_json::Value;
use tch::{Device, Kind, Tensor};

const KINDS: [ProcessKind; 3] = [
    ProcessKind::PinnedBrownian,
    ProcessKind::OrnsteinUhlenbeck { rate: 1.5 },
    ProcessKind::VariancePreserving { beta_min: 0.02, beta_max: 0.4 },
];

pub(crate) fn environment(dim: usize, kind: ProcessKind, sigma: f64, steps: usize) -> DiffusionSampling {
    DiffusionSampling::new(dim, Process::new(kind, sigma, steps).unwrap()).unwrap()
}

pub(crate) fn small(flow: bool, backward: BackwardSteps) -> DiffusionPolicyConfig {
    let network = GradNetConfig { harmonics: 8, hidden: 32, layers: 1, zero_init: false };
    DiffusionPolicyConfig {
        network,
        estimators: EstimatorsConfig::with_flow(flow),
        backward,
        ..DiffusionPolicyConfig::default()
    }
}

/// Returns log R + log P_B - log P_F of each trajectory, computed in f64.
fn log_weights(
    env: &DiffusionSampling,
    policy: &dyn Policy<DiffusionSampling>,
    target: &Energy,
    trajectories: &Trajectories<DiffusionSampling>,
) -> Vec<f64> {
    let scores = tch::no_grad(|| score(env, target, policy, trajectories, Quantities::NONE)).unwrap();
    let ratio = Vec::<f64>::try_from((&scores.log_pb - &scores.log_pf).to_kind(Kind::Double)).unwrap();
    let log_reward = Vec::<f64>::try_from(scores.log_reward.to_kind(Kind::Double)).unwrap();
    let sums = scores.offsets.windows(2).map(|ends| ratio[ends[0]..ends[1]].iter().sum::<f64>());
    log_reward.iter().zip(sums).map(|(r, sum)| r + sum).collect()
}

#[test]
fn the_golden_path_telescopes() {
    let golden: Value = serde_json::from_str(include_str!("golden/diffusion.json")).unwrap();
    let case = golden["cases"]
        .as_array()
        .unwrap()
        .iter()
        .find(|case| case["kind"] == "brownian_trajectory")
        .unwrap();
    let numbers = |value: &Value| -> Vec<f64> {
        value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
    };
    let path: Vec<Vec<f64>> = case["path"].as_array().unwrap().iter().map(numbers).collect();
    let env = environment(2, ProcessKind::PinnedBrownian, 1.5, 8);
    let actions = Reals::from_flat(2, path[1..].concat()).unwrap();
    let trajectories = Trajectories::replay(&env, &actions, &[0, 8]).unwrap();
    let target = Energy::new(Arc::new(Mixture::gaussian(vec![0.0; 2], 1.5).unwrap()));
    let scores = score(&env, &target, &ReferencePolicy, &trajectories, Quantities::NONE).unwrap();
    let near = |got: &Tensor, expected: &[f64]| {
        let got = Vec::<f64>::try_from(got).unwrap();
        assert!(got.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{got:?} for {expected:?}");
    };
    near(&scores.log_pf, &numbers(&case["log_pf"]));
    near(&scores.log_pb, &numbers(&case["log_pb"]));
    near(&scores.log_reward, &[case["log_normal_xT"].as_f64().unwrap()]);
    let difference = scores.log_pf.sum(Kind::Double) - scores.log_pb.sum(Kind::Double);
    near(&difference.view([1]), &[case["sum_log_pf_minus_log_pb"].as_f64().unwrap()]);
}

/// Checks that the process without drift and its reversal satisfy trajectory balance for the Gaussian in
/// which the process ends: the residual is 0 on every trajectory.
#[test]
fn every_process_balances_with_its_reversal() {
    for kind in KINDS {
        for (steps, sigma) in [(1, 1.0), (2, 3.0), (25, 0.7)] {
            let env = environment(3, kind, sigma, steps);
            let sd = env.process().variance(steps).sqrt();
            let target = Energy::new(Arc::new(Mixture::gaussian(vec![0.0; 3], sd).unwrap()));
            let policy = ReferencePolicy;
            let mut rng = Rng::seeded(1);
            let wild = Exploration::on_policy().with_noise(1.3).unwrap();
            let forward = Sampler::new(&env, &policy).exploration(wild).forward(6, &mut rng).unwrap();
            let ends = env.terminal(Reals::from_rows([[5.0, -3.0, 0.1], [0.0, 0.2, 9.0]]));
            let back = Sampler::new(&env, &policy).backward(&ends, &mut rng).unwrap();
            assert_eq!(back.terminal_states(), &ends);
            for trajectories in [forward, back] {
                let weights = log_weights(&env, &policy, &target, &trajectories);
                assert!(weights.iter().all(|w| w.abs() < 1e-9), "{kind:?}, {steps} steps: {weights:?}");
            }
        }
    }
}

/// Checks that the exact P_F satisfies trajectory balance for a Gaussian of another mean and variance. As a
/// negative control, the process without drift must not satisfy it.
#[test]
fn log_z_of_gaussian_targets_is_recovered_by_the_exact_policy() {
    for kind in KINDS {
        let env = environment(2, kind, 2.0, 12);
        let target = Energy::new(Arc::new(Mixture::gaussian(vec![0.8; 2], 0.3).unwrap()));
        let policy = OptimalGaussian::new(&env, 0.8, 0.3).unwrap();
        let mut rng = Rng::seeded(2);
        let trajectories = Sampler::new(&env, &policy).forward(50, &mut rng).unwrap();
        let weights = log_weights(&env, &policy, &target, &trajectories);
        assert!(weights.iter().all(|w| w.abs() < 1e-8), "{kind:?}: {weights:?}");
        let estimate = estimate_log_z(&env, &policy, &target, 50, &mut rng).unwrap();
        assert!(estimate.log_z.abs() < 1e-8 && (estimate.effective_samples - 50.0).abs() < 1e-6);
        let exact = target.target().sample(50, &mut rng).unwrap();
        let upper = eubo(&env, &policy, &target, &env.terminal(exact), &mut rng).unwrap();
        assert!(upper.mean.abs() < 1e-8);
        let crude = estimate_log_z(&env, &ReferencePolicy, &target, 50, &mut rng).unwrap();
        assert!(crude.elbo.mean < -1.0, "{crude:?}");
    }
}

#[test]
fn walks_are_taken_again_bit_for_bit_and_saved() {
    let env = environment(3, ProcessKind::PinnedBrownian, 1.0, 6);
    let mut rng = Rng::seeded(3);
    let trajectories = Sampler::new(&env, &ReferencePolicy).forward(5, &mut rng).unwrap();
    let walks = trajectories.walks(&env).unwrap();
    let again = walks.replay(&env).unwrap();
    assert_eq!(again.states(), trajectories.states());
    assert_eq!(again.terminal_states(), trajectories.terminal_states());
    assert_eq!(again.reverse_actions(), trajectories.reverse_actions());
    let written = env.write_actions(&walks.actions);
    assert_eq!(env.read_actions(&written).unwrap(), walks.actions);
    assert!(env.read_actions(&written.to_kind(Kind::Float)).is_err());
    assert!(env.read_actions(&written.narrow(1, 0, 2)).is_err());
    let folder = std::env::temp_dir().join(format!("gfn-diffusion-{}", std::process::id()));
    trajectories.save(&env, &folder).unwrap();
    let loaded = Trajectories::load(&env, &folder).unwrap();
    assert_eq!(loaded.states(), trajectories.states());
    let other = environment(3, ProcessKind::PinnedBrownian, 2.0, 6);
    assert!(Trajectories::load(&other, &folder).is_err());
    if folder.is_dir() {
        std::fs::remove_dir_all(folder).unwrap()
    } else {
        std::fs::remove_file(folder).unwrap()
    }
}

#[test]
fn steps_that_make_no_sense_are_refused() {
    let env = environment(2, ProcessKind::PinnedBrownian, 1.0, 2);
    let states = |step| DiffusionStates::at(Reals::from_rows([[0.5, 1.0]]), step);
    let refused = |direction, step, point: [f64; 2], words: &str| {
        let error = env.step(direction, &mut states(step), &Reals::from_rows([point])).unwrap_err();
        assert!(
            matches!(&error, Error::IllegalStep { row: 0, direction: d, .. } if *d == direction),
            "{error}"
        );
        let message = error.to_string();
        assert!(message.contains(words) && message.contains("[0.5, 1.0]"), "{message}");
    };
    refused(Direction::Forward, 2, [0.0, 0.0], "no step is possible");
    refused(Direction::Backward, 0, [0.0, 0.0], "no step is possible");
    refused(Direction::Forward, 0, [0.0, f64::NAN], "finite");
    refused(Direction::Backward, 1, [0.0, 1e-9], "origin");
    assert!(env.step(Direction::Forward, &mut states(0), &Reals::from_rows([[1.0]])).is_err());
    let first = ReferencePolicy.evaluate(&env, &states(1), None, Quantities::PB).unwrap().pb.unwrap();
    let error = first.log_prob(&[0], &Reals::from_rows([[0.0, 1e-9]])).unwrap_err();
    assert!(matches!(error, Error::IllegalStep { row: 0, direction: Direction::Backward, .. }), "{error}");
    let steps = ReferencePolicy.evaluate(&env, &states(1), None, Quantities::PF).unwrap().pf.unwrap();
    let mut rng = Rng::seeded(0);
    let epsilon = Exploration::epsilon(0.1).unwrap();
    assert!(steps.sample(&[0], &epsilon, &mut rng).unwrap_err().to_string().contains("epsilon"));
    let biased = Exploration::on_policy().with_exit_bias(1.0).unwrap();
    assert!(steps.sample(&[0], &biased, &mut rng).unwrap_err().to_string().contains("exit_bias"));
    let chain = gfn::examples::Chain::new(3);
    let noisy = Exploration::on_policy().with_noise(0.1).unwrap();
    let uniform = gfn::policy::UniformPolicy;
    let error = Sampler::new(&chain, &uniform).exploration(noisy).forward(2, &mut rng).unwrap_err();
    assert!(error.to_string().contains("noise"), "{error}");
}

/// Checks that policies are refused if they were built for another dimension, number of steps or process.
/// States of another environment must be refused, too.
#[test]
fn parts_of_another_environment_are_refused() {
    let env = environment(2, ProcessKind::PinnedBrownian, 1.0, 4);
    let wide = environment(3, ProcessKind::PinnedBrownian, 1.0, 4);
    let long = environment(2, ProcessKind::PinnedBrownian, 1.0, 6);
    let short = environment(2, ProcessKind::PinnedBrownian, 1.0, 3);
    let loud = environment(2, ProcessKind::PinnedBrownian, 2.0, 4);
    let two = |step| DiffusionStates::at(Reals::from_rows([[0.5, 1.0]]), step);
    let policy = |langevin: bool| {
        let clip = langevin.then_some(1e2);
        let config = DiffusionPolicyConfig { langevin_clip: clip, ..small(true, BackwardSteps::Fixed) };
        let target = langevin.then(|| Arc::new(Mixture::two_modes()) as _);
        DiffusionPolicy::new(&env, config, target, Device::Cpu, Kind::Double, &mut Rng::seeded(0)).unwrap()
    };
    let wants = Quantities::PF | Quantity::LogFlow | Quantity::LogPb;
    for policy in [policy(false), policy(true)] {
        for other in [&wide, &long, &short] {
            let error = policy.evaluate(other, &other.initial(&[0]), None, wants).unwrap_err();
            assert!(matches!(error, Error::Config { .. }) && error.to_string().contains("policy"), "{error}");
        }
        let conditions = Tensor::zeros([1, 1], (Kind::Double, Device::Cpu));
        let error = policy.evaluate(&env, &two(1), Some(&conditions), wants).unwrap_err();
        assert!(
            matches!(error, Error::Missing { .. }) && error.to_string().contains("conditions"),
            "{error}"
        );
        assert!(matches!(policy.evaluate(&env, &two(5), None, wants), Err(Error::Contract { .. })));
        assert!(matches!(policy.evaluate(&env, &wide.initial(&[0]), None, wants), Err(Error::Shape { .. })));
    }
    let exact = OptimalGaussian::new(&env, 0.0, 1.0).unwrap();
    for other in [&long, &short, &loud] {
        let error = exact.evaluate(other, &other.initial(&[0]), None, wants).unwrap_err();
        assert!(matches!(error, Error::Config { .. }) && error.to_string().contains("policy"), "{error}");
    }
    let reference = ReferencePolicy;
    for wants in [Quantities::PF, Quantities::PB] {
        assert!(matches!(exact.evaluate(&env, &two(5), None, wants), Err(Error::Contract { .. })));
        assert!(matches!(reference.evaluate(&env, &two(5), None, wants), Err(Error::Contract { .. })));
        assert!(matches!(
            reference.evaluate(&env, &wide.initial(&[0]), None, wants),
            Err(Error::Shape { .. })
        ));
    }
    let point = Reals::from_rows([[0.0, 0.0]]);
    for direction in [Direction::Forward, Direction::Backward] {
        assert!(matches!(env.step(direction, &mut two(5), &point), Err(Error::Contract { .. })));
        assert!(matches!(env.step(direction, &mut wide.initial(&[0]), &point), Err(Error::Shape { .. })));
    }
    assert!(matches!(env.way_back(&two(5)), Err(Error::Contract { .. })));
    assert!(matches!(env.way_back(&wide.terminal(Reals::filled(3, 1, 0.0))), Err(Error::Shape { .. })));

    let energy = Energy::new(Arc::new(Mixture::two_modes())).along(env.process());
    assert!(energy.partial_log_reward(&two(4), None).is_ok());
    assert!(matches!(energy.partial_log_reward(&two(5), None), Err(Error::Contract { .. })));
}

/// Checks that exploration noise is added to the standard deviation in quadrature, and that a temperature
/// multiplies the variance.
#[test]
fn exploration_widens_steps() {
    let env = environment(1, ProcessKind::PinnedBrownian, 0.8, 4);
    let states = DiffusionStates::at(Reals::from_rows([[0.3]]), 2);
    let steps = ReferencePolicy.evaluate(&env, &states, None, Quantities::PF).unwrap().pf.unwrap();
    let n = 20_000;
    let spread = |exploration: Exploration| {
        let drawn = steps.sample(&vec![0; n], &exploration, &mut Rng::seeded(4)).unwrap();
        (drawn.values().iter().map(|x| (x - 0.3).powi(2)).sum::<f64>() / n as f64).sqrt()
    };
    for (exploration, expected) in [
        (Exploration::on_policy(), 0.4),
        (Exploration::on_policy().with_noise(0.3).unwrap(), 0.5),
        (Exploration::on_policy().with_temperature(4.0).unwrap(), 0.8),
    ] {
        assert!((spread(exploration) - expected).abs() < 0.01 * expected + 0.005, "{exploration:?}");
    }
}

/// Checks that the scores of a batch equal those of each state alone, in f32 and for every kind of P_B. Also
/// checks that log P_B of the step into the origin is 0.
#[test]
fn scores_do_not_depend_on_batch_mates() {
    for backward in
        [BackwardSteps::Fixed, BackwardSteps::Learned { range: 0.5 }, BackwardSteps::Torchgfn { scale: 0.1 }]
    {
        let env = environment(2, ProcessKind::PinnedBrownian, 2.0, 5);
        let target = Arc::new(Mixture::two_modes());
        let config = DiffusionPolicyConfig {
            log_variance_range: Some(4.0),
            langevin_clip: Some(1e2),
            ..small(true, backward)
        };
        let mut rng = Rng::seeded(6);
        let policy =
            DiffusionPolicy::new(&env, config, Some(target.clone()), Device::Cpu, Kind::Float, &mut rng)
                .unwrap();
        let energy = Energy::new(target);
        let trajectories = Sampler::new(&env, &policy).forward(7, &mut rng).unwrap();
        let all = score(&env, &energy, &policy, &trajectories, Quantities::from(Quantity::LogFlow)).unwrap();
        let log_pf = Vec::<f64>::try_from(&all.log_pf).unwrap();
        let log_pb = Vec::<f64>::try_from(&all.log_pb).unwrap();
        for row in 0..trajectories.n_transitions() {
            let states = trajectories.states().select(&[row]);
            let pf = policy.evaluate(&env, &states, None, Quantities::PF).unwrap().pf.unwrap();
            let alone = pf.log_prob(&[0], &trajectories.actions().select(&[row])).unwrap().double_value(&[0]);
            assert!((alone - log_pf[row]).abs() < 1e-4, "{alone} for {}", log_pf[row]);
            let after =
                DiffusionStates::at(trajectories.actions().select(&[row]), states.steps[0] as usize + 1);
            let pb = policy.evaluate(&env, &after, None, Quantities::PB).unwrap().pb.unwrap();
            let alone = pb.log_prob(&[0], &states.points).unwrap().double_value(&[0]);
            assert!((alone - log_pb[row]).abs() < 1e-4, "{alone} for {}", log_pb[row]);
            assert!(states.steps[0] != 0 || alone == 0.0);
        }
    }
}
