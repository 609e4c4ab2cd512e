//! Tests that compare the box with the golden file: rewards, densities of Beta mixtures in both geometries
//! and directions, and the legality of steps.

use gfn::distribution::Distribution;
use gfn::env::{Direction, Reals, Reward};
use gfn_gym::boxes::{BetaMixtures, BoxDist, BoxEnv, BoxReward, Coupling};
use serde_json::Value;
use tch::Tensor;

const GOLDEN: &str = include_str!("golden/box.json");

fn cases(kind: &str) -> Vec<Value> {
    let golden: Value = serde_json::from_str(GOLDEN).unwrap();
    let cases: Vec<Value> =
        golden["cases"].as_array().unwrap().iter().filter(|c| c["kind"] == kind).cloned().collect();
    assert!(!cases.is_empty(), "{kind}");
    cases
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| value.as_str().unwrap().parse().unwrap())
}

fn numbers(values: &Value) -> Vec<f64> {
    values.as_array().unwrap().iter().map(number).collect()
}

fn items(case: &Value) -> &Vec<Value> {
    case["items"].as_array().unwrap()
}

/// Joins the inner arrays of a nested array of numbers to a single list.
fn flat(values: &Value) -> Vec<f64> {
    values.as_array().unwrap().iter().flat_map(numbers).collect()
}

/// Returns a state, and the action of a step that adds `increment` to it (backwards: subtracts it).
fn step(direction: Direction, state: &[f64], increment: &[f64]) -> (Reals, Reals) {
    let sign = if direction == Direction::Forward { 1.0 } else { -1.0 };
    let point = state.iter().zip(increment).map(|(s, a)| s + sign * a);
    let action = point.chain([0.0]).collect();
    (
        Reals::from_flat(state.len(), state.to_vec()).unwrap(),
        Reals::from_flat(state.len() + 1, action).unwrap(),
    )
}

/// Returns the log-density of an action. For an action outside the support, for which the library returns a
/// typed error, the result is minus infinity.
fn log_prob(
    env: BoxEnv,
    direction: Direction,
    mixtures: BetaMixtures,
    outputs: &[f64],
    step: (Reals, Reals),
) -> f64 {
    let outputs = Tensor::from_slice(outputs).unsqueeze(0);
    let dist = BoxDist::new(env, direction, step.0, mixtures, outputs).unwrap();
    match dist.log_prob(&[0], &step.1) {
        Ok(log_prob) => log_prob.double_value(&[0]),
        Err(gfn::Error::IllegalStep { .. }) => f64::NEG_INFINITY,
        Err(error) => panic!("{error}"),
    }
}

fn assert_close(got: f64, expected: f64, case: &Value) {
    assert!(got == expected || (got - expected).abs() < 1e-6, "{got}, not {expected}: {case}");
}

fn mixtures(components: usize) -> BetaMixtures {
    BetaMixtures { coupling: Coupling::PerAxis, components, min_concentration: 0.1, max_concentration: 100.0 }
}

#[test]
fn rewards_and_log_z_are_the_golden_ones() {
    for case in cases("reward") {
        let [r0, r1, r2] = ["R0", "R1", "R2"].map(|key| number(&case[key]));
        let reward = BoxReward::new(r0, r1, r2).unwrap();
        let points = Reals::from_flat(2, flat(&case["points"])).unwrap();
        let got = reward.log_reward(&points, None).unwrap();
        for (got, expected) in got.iter().zip(numbers(&case["log_reward"])) {
            assert!((got - expected).abs() < 1e-12);
        }
        assert!((reward.log_z(2) - number(&case["log_partition"])).abs() < 1e-12);
        // The square is divided into `bins` by `bins` cells. The probabilities of all cells must add up to 1.
        for bins in [7, 50] {
            assert!((reward.cells(bins).iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }
}

#[test]
fn cartesian_densities_are_the_golden_ones() {
    for (kind, direction) in
        [("cartesian_forward", Direction::Forward), ("cartesian_backward", Direction::Backward)]
    {
        let mut illegal = 0;
        for case in cases(kind) {
            let env = BoxEnv::cartesian(2, number(&case["delta"])).unwrap();
            let temperature = number(&case["temperature"]);
            let mixtures = mixtures(case["n_components"].as_u64().unwrap() as usize);
            for item in items(&case) {
                let params = &item["params"];
                let mut outputs = vec![number(&params["logit"]) / temperature];
                outputs.extend(flat(&params["mixture_logits"]).iter().map(|logit| logit / temperature));
                outputs.extend(flat(&params["alpha_raw"]));
                outputs.extend(flat(&params["beta_raw"]));
                let state = numbers(&item["state"]);
                let (states, actions) = match item["action"].as_str() {
                    Some("exit") => {
                        let (states, _) = step(direction, &state, &[0.0, 0.0]);
                        (states, Reals::from_rows([[state[0], state[1], 1.0]]))
                    }
                    Some("back_to_source") => step(direction, &state, &state),
                    _ => step(direction, &state, &numbers(&item["action"])),
                };
                let got = log_prob(env, direction, mixtures, &outputs, (states, actions));
                assert_close(got, number(&item["log_prob"]), item);
                illegal += usize::from(got == f64::NEG_INFINITY);
            }
        }
        assert_eq!(illegal > 0, direction == Direction::Forward, "the file has actions outside the support");
    }
}

/// Returns the raw network outputs for which a mixture has these concentrations.
fn raw(mixtures: BetaMixtures, concentrations: &[f64]) -> Vec<f64> {
    let min = mixtures.min_concentration;
    let max = mixtures.max_concentration;
    let logit = |share: f64| (share / (1.0 - share)).ln();
    concentrations.iter().map(|c| logit((c - min) / (max - min))).collect()
}

/// Returns a network's outputs for two axes. `logit` is the logit of the exit; each axis has the logits,
/// alphas and betas of its components.
fn outputs(mixtures: BetaMixtures, logit: f64, axes: [[Vec<f64>; 3]; 2]) -> Vec<f64> {
    let [first, second] = &axes;
    let mut out = vec![logit];
    out.extend(first[0].iter().chain(&second[0]));
    for part in 1..3 {
        out.extend(raw(mixtures, &first[part]));
        out.extend(raw(mixtures, &second[part]));
    }
    out
}

#[test]
fn polar_densities_are_the_golden_ones() {
    let of = |value: &Value| ["mixture_logits", "alpha", "beta"].map(|key| numbers(&value[key]));
    for case in cases("polar_quarter_disk") {
        let env = BoxEnv::polar(number(&case["delta"])).unwrap();
        for item in items(&case) {
            let radius = of(&item["r"]);
            let angle = of(&item["theta"]);
            let mixtures = mixtures(radius[0].len());
            let outputs = outputs(mixtures, 0.3, [radius, angle]);
            let step = step(Direction::Forward, &[0.0, 0.0], &numbers(&item["action"]));
            let got = log_prob(env, Direction::Forward, mixtures, &outputs, step);
            assert_close(got, number(&item["log_prob"]), item);
        }
    }
    for case in cases("polar_quarter_circle") {
        let env = BoxEnv::polar(number(&case["delta"])).unwrap();
        for item in items(&case) {
            let angle = of(item);
            let mixtures = mixtures(angle[0].len());
            // All points of an arc have the same radius, so the network's outputs for the radius must have no
            // influence. To test this, these outputs are set to numbers from the golden file.
            let unused = ["mixture_logits", "beta", "alpha"].map(|key| numbers(&item[key]));
            let logit = 0.7;
            let outputs = outputs(mixtures, logit, [unused, angle]);
            let forward = item["direction"] == "forward";
            let direction = if forward { Direction::Forward } else { Direction::Backward };
            let step = step(direction, &numbers(&item["state"]), &numbers(&item["action"]));
            let got = log_prob(env, direction, mixtures, &outputs, step);
            // The densities of the golden file lack the probability of not taking the exit. `stays` is the
            // logarithm of this probability. Backwards there is no exit.
            let stays = if forward { -(1.0 + logit.exp()).ln() } else { 0.0 };
            assert_close(got - stays, number(&item["log_prob"]), item);
        }
    }
}

#[test]
fn steps_are_valid_where_the_golden_file_says_so() {
    let mut checked = 0;
    for case in cases("cartesian_validity") {
        let env = BoxEnv::cartesian(2, number(&case["delta"])).unwrap();
        for item in items(&case) {
            let direction = if item[2] == "forward" { Direction::Forward } else { Direction::Backward };
            let state = numbers(&item[0]);
            let increment = numbers(&item[1]);
            // In the golden file, a first step of length 0 is valid. The library refuses such a step, because
            // it would be a cycle from the initial state to itself.
            let cycle = direction == Direction::Forward && state == [0.0, 0.0] && increment == state;
            let (states, actions) = step(direction, &state, &increment);
            let got = env.check(direction, &states, &actions).is_ok();
            assert_eq!(got, item[3].as_bool().unwrap() && !cycle, "{item}");
            checked += 1;
        }
    }
    assert!(checked > 50);
}
