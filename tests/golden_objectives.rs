//! The balance objectives and regression losses against `tests/golden/objectives.json`, and their gradients against finite
//! differences.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use gfn::objective::{
    DetailedBalance, LogPartitionVariance, Objective, RegressionLoss, SubTrajectoryBalance, TrajectoryBalance,
    Weighting,
};
use gfn::score::Scores;
use serde_json::Value;
use tch::{Kind, Tensor};

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

/// Everything that enters the scores of a case, as flat lists.
#[derive(Clone)]
struct Inputs {
    offsets: Vec<usize>,
    log_pf: Vec<f64>,
    log_pb: Vec<f64>,
    log_flow: Vec<f64>,
    log_reward: Vec<f64>,
    log_z: f64,
}

impl Inputs {
    fn new(case: &Value) -> Self {
        let mut out = Self {
            offsets: vec![0],
            log_pf: Vec::new(),
            log_pb: Vec::new(),
            log_flow: Vec::new(),
            log_reward: Vec::new(),
            log_z: case["logZ"].as_f64().unwrap(),
        };
        for trajectory in case["trajectories"].as_array().unwrap() {
            out.log_pf.extend(numbers(&trajectory["log_pf"]));
            out.log_pb.extend(numbers(&trajectory["log_pb"]));
            out.log_pb.push(0.0); // the exit's
            out.log_flow.extend(numbers(&trajectory["log_flow"]));
            out.log_reward.push(trajectory["log_reward"].as_f64().unwrap());
            out.offsets.push(out.log_pf.len());
        }
        out
    }

    /// The scores, and the leaves that gradients are taken of.
    fn scores(&self) -> (Scores, [Tensor; 4]) {
        let leaf = |values: &[f64]| Tensor::from_slice(values).set_requires_grad(true);
        let leaves = [leaf(&self.log_pf), leaf(&self.log_pb), leaf(&self.log_flow), leaf(&[self.log_z])];
        let n = self.log_reward.len() as i64;
        let scores = Scores {
            offsets: self.offsets.clone(),
            log_pf: leaves[0].shallow_clone(),
            log_pb: leaves[1].shallow_clone(),
            log_reward: Tensor::from_slice(&self.log_reward),
            log_flow: Some(leaves[2].shallow_clone()),
            log_z: Some(leaves[3].expand([n], false)),
            distinct: (self.log_pf.len(), self.log_pf.len()),
        };
        (scores, leaves)
    }

    fn loss(&self, objective: &dyn Objective, regression: RegressionLoss) -> f64 {
        objective.loss(&self.scores().0, regression).unwrap().double_value(&[])
    }
}

fn subtb(name: &str) -> Box<dyn Objective> {
    let (kind, lambda) = name.split_once(':').map_or((name, 1.0), |(kind, lambda)| (kind, lambda.parse().unwrap()));
    let weighting = match kind {
        "DB" => Weighting::Db,
        "ModifiedDB" => Weighting::ModifiedDb,
        "TB" => Weighting::Tb,
        "equal" => Weighting::Equal,
        "equal_within" => Weighting::EqualWithin,
        "geometric" => Weighting::Geometric { lambda },
        "geometric_within" => Weighting::GeometricWithin { lambda },
        other => panic!("{other}"),
    };
    Box::new(SubTrajectoryBalance::new(weighting).unwrap())
}

fn objectives(losses: &Value) -> Vec<(String, Box<dyn Objective>, f64)> {
    let mut out: Vec<(String, Box<dyn Objective>, f64)> = vec![
        ("TB".into(), Box::new(TrajectoryBalance), losses["TB"].as_f64().unwrap()),
        ("ZVar".into(), Box::new(LogPartitionVariance), losses["ZVar"].as_f64().unwrap()),
        ("DB".into(), Box::new(DetailedBalance), losses["DB"].as_f64().unwrap()),
    ];
    for (name, value) in losses["SubTB"].as_object().unwrap() {
        out.push((format!("SubTB {name}"), subtb(name), value.as_f64().unwrap()));
    }
    out
}

fn regressions() -> [(&'static str, RegressionLoss); 5] {
    [
        ("squared", RegressionLoss::Squared),
        ("half_squared", RegressionLoss::HalfSquared),
        ("shifted_cosh", RegressionLoss::ShiftedCosh),
        ("linex_1", RegressionLoss::Linex { alpha: 1.0 }),
        ("linex_-0.5", RegressionLoss::Linex { alpha: -0.5 }),
    ]
}

fn cases() -> Vec<Value> {
    let file: Value = serde_json::from_str(include_str!("golden/objectives.json")).unwrap();
    file["cases"].as_array().unwrap().clone()
}

#[test]
fn losses_equal_golden_numbers() {
    let mut checked = 0;
    for case in cases() {
        let inputs = Inputs::new(&case);
        for (regression_name, regression) in regressions() {
            for (name, objective, expected) in objectives(&case["losses"][regression_name]) {
                let got = inputs.loss(objective.as_ref(), regression);
                let close = (got - expected).abs() <= 1e-9 * expected.abs().max(1.0);
                assert!(close, "{} {regression_name} {name}: {got} instead of {expected}", case["name"]);
                checked += 1;
            }
        }
    }
    assert!(checked >= 6 * 5 * 14, "{checked}");
}

#[test]
fn residuals_equal_golden_numbers() {
    for case in cases() {
        let scores = Inputs::new(&case).scores().0;
        let objectives: [(&str, &dyn Objective); 3] =
            [("TB", &TrajectoryBalance), ("ZVar", &LogPartitionVariance), ("DB", &DetailedBalance)];
        for (name, objective) in objectives {
            let values = objective.residuals(&scores).unwrap().values;
            let got = Vec::<f64>::try_from(&values).unwrap();
            let expected = numbers(&case["residuals"][name]);
            assert_eq!(got.len(), expected.len());
            for (g, e) in got.iter().zip(&expected) {
                // The sign of a variance's deviation is a convention.
                let same = (g - e).abs() < 1e-9 || (name == "ZVar" && (g + e).abs() < 1e-9);
                assert!(same, "{} {name}: {g} instead of {e}", case["name"]);
            }
        }
    }
}

#[test]
fn gradients_equal_finite_differences() {
    let case = &cases()[1];
    let inputs = Inputs::new(case);
    for (name, objective, _) in objectives(&case["losses"]["squared"]) {
        let (scores, leaves) = inputs.scores();
        objective.loss(&scores, RegressionLoss::Squared).unwrap().backward();
        let h = 1e-5;
        for (which, leaf) in leaves.iter().enumerate() {
            let grad = leaf.grad();
            for k in 0..leaf.numel() {
                let shifted = |by: f64| {
                    let mut inputs = inputs.clone();
                    match which {
                        0 => inputs.log_pf[k] += by,
                        1 => inputs.log_pb[k] += by,
                        2 => inputs.log_flow[k] += by,
                        _ => inputs.log_z += by,
                    }
                    inputs.loss(objective.as_ref(), RegressionLoss::Squared)
                };
                let expected = (shifted(h) - shifted(-h)) / (2.0 * h);
                let got = if grad.defined() { grad.double_value(&[k as i64]) } else { 0.0 };
                let close = (got - expected).abs() < 1e-6 * expected.abs().max(1.0);
                assert!(close, "{name} input {which} entry {k}: {got} instead of {expected}");
            }
        }
    }
}

#[test]
fn huber_is_quadratic_inside_and_linear_outside() {
    let t = Tensor::from_slice(&[-3.0f64, -0.5, 0.0, 0.5, 3.0]);
    let got = Vec::<f64>::try_from(RegressionLoss::Huber { delta: 1.0 }.apply(&t)).unwrap();
    assert_eq!(got, [2.5, 0.125, 0.0, 0.125, 2.5]);
}

#[test]
fn missing_estimators_and_bad_lambdas_are_errors() {
    let (mut scores, _) = Inputs::new(&cases()[1]).scores();
    scores.log_z = None;
    scores.log_flow = None;
    let error = TrajectoryBalance.loss(&scores, RegressionLoss::Squared).unwrap_err().to_string();
    assert!(error.contains("trajectory balance") && error.contains("log Z"), "{error}");
    assert!(DetailedBalance.loss(&scores, RegressionLoss::Squared).is_err());
    for lambda in [0.0, -1.0, 1.5, f64::NAN] {
        assert!(SubTrajectoryBalance::new(Weighting::Geometric { lambda }).is_err());
    }
    assert_eq!(scores.log_pf.kind(), Kind::Double);
}
