//! Tests that compare the steps of the diffusion policy with torchgfn's kernels.

use gfn::Rng;
use gfn::distribution::Distribution;
use gfn::env::Reals;
use gfn::objective::Quantity;
use gfn::policy::Policy;
use gfn_gym::diffusion::{
    BackwardSteps, DiffusionPolicy, DiffusionPolicyConfig, DiffusionSampling, DiffusionStates, GaussianSteps,
    GradNetConfig, Process, ProcessKind,
};
use serde_json::Value;
use tch::{Device, Kind, Tensor, no_grad};

/// The largest size of the learned correction of P_F's log-variance.
const RANGE: f64 = 40.0;
/// The scale of torchgfn's P_B, by which the network's output for the mean is multiplied after tanh.
const SCALE: f64 = 10.0;

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn environment(case: &Value, scale: f64) -> DiffusionSampling {
    let sigma = case["sigma"].as_f64().unwrap() * scale;
    let steps = case["num_steps"].as_u64().unwrap() as usize;
    let process = Process::new(ProcessKind::PinnedBrownian, sigma, steps).unwrap();
    DiffusionSampling::new(case["dim"].as_u64().unwrap() as usize, process).unwrap()
}

/// Builds a policy whose networks have constant outputs: `drift` for the drift, and `backward` for P_B's
/// corrections.
fn constant(
    env: &DiffusionSampling,
    kind: Kind,
    config: DiffusionPolicyConfig,
    drift: &[f64],
    backward: &[f64],
) -> DiffusionPolicy {
    let network = GradNetConfig { harmonics: 2, hidden: 16, layers: 1, zero_init: false };
    let config = DiffusionPolicyConfig { network, ..config };
    let policy = DiffusionPolicy::new(env, config, None, Device::Cpu, kind, &mut Rng::seeded(0)).unwrap();
    for (name, outputs) in [("drift", drift), ("backward", backward)] {
        let mut biases = 0;
        for parameter in
            policy.parameters().unwrap().iter().filter(|parameter| parameter.name.starts_with(name))
        {
            let mut tensor = parameter.tensor.shallow_clone();
            let _ = no_grad(|| tensor.zero_());
            if tensor.size() == [outputs.len() as i64] {
                no_grad(|| tensor.copy_(&Tensor::from_slice(outputs)));
                biases += 1;
            }
        }
        assert_eq!(biases, usize::from(!outputs.is_empty()), "{name}");
    }
    policy
}

/// Builds P_F with this drift. The standard deviation of P_F is that of the process times exp(`log_sd`).
fn forward(
    env: &DiffusionSampling,
    states: &DiffusionStates,
    kind: Kind,
    drift: &[f64],
    log_sd: Option<f64>,
) -> GaussianSteps {
    let log_variance_range = log_sd.map(|_| RANGE);
    let config = DiffusionPolicyConfig { log_variance_range, ..DiffusionPolicyConfig::default() };
    let log_sd = log_sd.map(|log_sd| (log_sd / (0.5 * RANGE)).atanh());
    let drift: Vec<f64> = drift.iter().copied().chain(log_sd).collect();
    let policy = constant(env, kind, config, &drift, &[]);
    policy.evaluate(env, states, None, Quantity::LogPf.into()).unwrap().pf.unwrap()
}

/// Builds torchgfn's P_B. `mean` and `spread` are the outputs of its network after tanh, multiplied by
/// `SCALE` and by `4 * SCALE`. Without a `spread`, the network adds nothing to the variance.
fn backward(
    env: &DiffusionSampling,
    states: &DiffusionStates,
    kind: Kind,
    mean: &[f64],
    spread: Option<f64>,
) -> GaussianSteps {
    let config = DiffusionPolicyConfig {
        backward: BackwardSteps::Torchgfn { scale: SCALE },
        ..DiffusionPolicyConfig::default()
    };
    let share = spread.map_or(-1.0, |spread| spread / (4.0 * SCALE));
    // `share` is the output of the network after tanh. At its smallest value, -1, it adds a standard
    // deviation of e^-40, that is, nothing.
    let raw = if share <= -1.0 { -50.0 } else { share.atanh() };
    let outputs: Vec<f64> = mean.iter().map(|mean| (mean / SCALE).atanh()).chain([raw]).collect();
    let policy = constant(env, kind, config, &vec![0.0; env.dim()], &outputs);
    policy.evaluate(env, states, None, Quantity::LogPb.into()).unwrap().pb.unwrap()
}

/// Checks that means, standard deviations and log-densities equal those of torchgfn's kernels. torchgfn's
/// actions are increments, so they are converted to points.
#[test]
fn kernels_are_those_of_the_golden_file() {
    check_golden(Kind::Double, 1e-12);
    check_golden(Kind::Float, 1e-4);
}

fn check_golden(kind: Kind, tolerance: f64) {
    let golden: Value = serde_json::from_str(include_str!("golden/diffusion.json")).unwrap();
    let mut checked = 0;
    for case in golden["cases"].as_array().unwrap().iter().filter(|case| case["kind"] == "pinned_brownian") {
        let forward_env = environment(case, case["t_scale"].as_f64().unwrap().sqrt());
        let backward_env = environment(case, 1.0);
        let dim = forward_env.dim();
        for item in case["items"].as_array().unwrap().iter().filter(|item| item.get("mean").is_some()) {
            let x = numbers(&item["x"]);
            let action = numbers(&item["action"]);
            let step = item["step"].as_u64().unwrap() as usize;
            let states = DiffusionStates::at(Reals::from_flat(dim, x.clone()).unwrap(), step);
            let is_forward = item["direction"] == "forward";
            let sign = if is_forward { 1.0 } else { -1.0 };
            let steps = if is_forward {
                forward(&forward_env, &states, kind, &numbers(&item["drift"]), item["log_std"].as_f64())
            } else {
                let scale = case["pb_scale_range"].as_f64().unwrap();
                let mean: Vec<f64> = numbers(&item["module_out"]).iter().map(|mean| scale * mean).collect();
                let spread = item["module_log_std"].as_f64().map(|spread| scale * spread);
                backward(&backward_env, &states, kind, &mean, spread)
            };
            if !is_forward && step == 1 {
                // torchgfn applies its learned corrections to the last backward step, too, which then has a
                // variance or doesn't lead to the origin. The environment starts at the origin, so its step
                // must be a point mass there.
                let (mean, sd) = steps.moments().unwrap();
                assert!(mean.values().iter().chain(sd.values()).all(|&x| x == 0.0));
                let origin = Reals::filled(dim, 1, 0.0);
                assert_eq!(steps.log_prob(&[0], &origin).unwrap().double_value(&[0]), 0.0);
                assert!(steps.log_prob(&[0], &states.points).is_err());
                continue;
            }
            let (mean, sd) = steps.moments().unwrap();
            let explored = item["exploration_std"].as_f64().unwrap_or(0.0);
            let sd = sd.values()[0].hypot(explored);
            assert!((sd - item["std"].as_f64().unwrap()).abs() < tolerance, "{item}");
            let increments = mean.values().iter().zip(&x).map(|(mean, x)| sign * (mean - x));
            for (got, expected) in increments.zip(numbers(&item["mean"])) {
                assert!((got - expected).abs() < tolerance, "{got} for {item}");
            }
            let next: Vec<f64> = x.iter().zip(action).map(|(x, a)| x + sign * a).collect();
            let next = Reals::from_flat(dim, next).unwrap();
            let steps = if explored == 0.0 {
                steps
            } else {
                assert!(is_forward, "{item}");
                let log_sd = (sd / forward_env.process().forward(step).sd).ln();
                forward(&forward_env, &states, kind, &numbers(&item["drift"]), Some(log_sd))
            };
            let expected = item["log_prob"].as_f64().unwrap();
            let got = steps.log_prob(&[0], &next).unwrap().double_value(&[0]);
            assert!((got - expected).abs() < tolerance, "{got} for {item}");
            checked += 1;
        }
    }
    assert!(checked >= 30, "{checked}");
}
