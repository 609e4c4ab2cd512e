//! Balance objectives and regression losses are compared with numbers in `tests/golden/objectives.json`.
//! The gradients are compared with finite differences.

use gfn::objective::Quantity;
use gfn::objective::{
    DetailedBalance, FlowMatching, LogPartitionVariance, ModifiedDetailedBalance, Objective, Regression,
    RegressionLoss, RelativeLogPartitionVariance, RelativeTrajectoryBalance, Scores, StateFlow,
    SubTrajectoryBalance, TrajectoryBalance, TrustPcl, Weighting,
};
use serde_json::Value;
use tch::{Kind, Tensor};

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

/// The numbers from which the scores of a test case are built, as flat lists. Some lists are differentiated,
/// and the others are constants.
#[derive(Clone)]
struct Inputs {
    offsets: Vec<usize>,
    /// The differentiated inputs: log P_F, log P_B, log F, log P_F(exit), inflow, outflow, terminal flow
    /// and log Z, in this order.
    leaves: [Vec<f64>; 8],
    log_prior: Vec<f64>,
    state_log_reward: Vec<f64>,
    log_reward: Vec<f64>,
}

fn logsumexps(lists: &Value) -> Vec<f64> {
    let logsumexp = |list: &Value| numbers(list).iter().map(|v| v.exp()).sum::<f64>().ln();
    lists.as_array().unwrap().iter().map(logsumexp).collect()
}

impl Inputs {
    fn new(case: &Value) -> Self {
        let mut offsets = vec![0];
        let mut log_prior = Vec::new();
        let mut state_log_reward = Vec::new();
        let mut log_reward = Vec::new();
        let [mut log_pf, mut log_pb, mut log_flow, mut log_p_exit] = [const { Vec::new() }; 4];
        for trajectory in case["trajectories"].as_array().unwrap() {
            log_pf.extend(numbers(&trajectory["log_pf"]));
            log_pb.extend(numbers(&trajectory["log_pb"]));
            log_pb.push(0.0); // The exit has log P_B = 0.
            log_flow.extend(numbers(&trajectory["log_flow"]));
            log_p_exit.extend(numbers(&trajectory["log_p_exit"]));
            log_prior.extend(numbers(&trajectory["log_pf_prior"]));
            state_log_reward.extend(numbers(&trajectory["state_log_reward"]));
            log_reward.push(trajectory["log_reward"].as_f64().unwrap());
            offsets.push(log_pf.len());
        }
        let fm = &case["fm"];
        let [inflow, outflow] = ["log_inflows", "log_outflows"].map(|name| logsumexps(&fm[name]));
        let terminal = numbers(&fm["terminal_log_flow"]);
        let log_z = vec![case["logZ"].as_f64().unwrap()];
        let leaves = [log_pf, log_pb, log_flow, log_p_exit, inflow, outflow, terminal, log_z];
        Self { offsets, leaves, log_prior, state_log_reward, log_reward }
    }

    /// Builds the scores, and returns the leaf tensors whose gradients are tested.
    fn scores(&self) -> (Scores, Vec<Tensor>) {
        let leaf = |values: &Vec<f64>| Tensor::from_slice(values).set_requires_grad(true);
        let leaves: Vec<Tensor> = self.leaves.iter().map(leaf).collect();
        let n = self.log_reward.len() as i64;
        let of = |k: usize| leaves[k].shallow_clone();
        let mut scores =
            Scores::new(self.offsets.clone(), of(0), of(1), Tensor::from_slice(&self.log_reward));
        scores.set(Quantity::LogFlow, of(2)).unwrap();
        scores.set(Quantity::LogExit, of(3)).unwrap();
        scores.set(Quantity::LogInflow, of(4)).unwrap();
        scores.set(Quantity::LogOutflow, of(5)).unwrap();
        scores.set(Quantity::LogTerminalFlow, of(6)).unwrap();
        scores.set(Quantity::LogZ, leaves[7].expand([n], false)).unwrap();
        scores.set(Quantity::LogPrior, Tensor::from_slice(&self.log_prior)).unwrap();
        scores.set(Quantity::StateLogReward, Tensor::from_slice(&self.state_log_reward)).unwrap();
        let mut change = vec![0.0; self.state_log_reward.len()];
        for ends in self.offsets.windows(2) {
            // The last transition of a trajectory is its exit, which doesn't change the log-reward.
            (ends[0]..ends[1] - 1)
                .for_each(|t| change[t] = self.state_log_reward[t + 1] - self.state_log_reward[t]);
        }
        scores.set(Quantity::LogRewardChange, Tensor::from_slice(&change)).unwrap();
        (scores, leaves)
    }

    fn loss(&self, objective: &dyn Objective, regression: &dyn RegressionLoss) -> f64 {
        objective.loss(&self.scores().0, regression).unwrap().double_value(&[])
    }
}

fn subtb(name: &str) -> SubTrajectoryBalance {
    let (kind, lambda) =
        name.split_once(':').map_or((name, 1.0), |(kind, lambda)| (kind, lambda.parse().unwrap()));
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
    SubTrajectoryBalance::new(weighting).unwrap()
}

fn forward_looking() -> DetailedBalance {
    DetailedBalance { flow: StateFlow::ForwardLooking }
}

fn objectives(case: &Value, regression: &str) -> Vec<(String, Box<dyn Objective>, f64)> {
    let losses = &case["losses"][regression];
    let beta = case["beta"].as_f64().unwrap();
    let alpha = case["fm"]["alpha"].as_f64().unwrap();
    let balanced: Vec<(&str, Box<dyn Objective>)> = vec![
        ("TB", Box::new(TrajectoryBalance)),
        ("ZVar", Box::new(LogPartitionVariance)),
        ("RTB", Box::new(RelativeTrajectoryBalance::new(beta).unwrap())),
        ("RelativeZVar", Box::new(RelativeLogPartitionVariance::new(beta).unwrap())),
        ("DB", Box::new(DetailedBalance::default())),
        ("DB_forward_looking", Box::new(forward_looking())),
        ("ModifiedDB", Box::new(ModifiedDetailedBalance::default())),
        ("FM", Box::new(FlowMatching::new(alpha).unwrap())),
    ];
    let mut out: Vec<(String, Box<dyn Objective>, f64)> = balanced
        .into_iter()
        .map(|(name, objective)| (name.into(), objective, losses[name].as_f64().unwrap()))
        .collect();
    for (name, value) in losses["SubTB"].as_object().unwrap() {
        out.push((format!("SubTB {name}"), Box::new(subtb(name)), value.as_f64().unwrap()));
    }
    for (name, value) in losses["SubTB_forward_looking"].as_object().unwrap() {
        let objective = subtb(name).with_flow(StateFlow::ForwardLooking);
        out.push((format!("forward-looking SubTB {name}"), Box::new(objective), value.as_f64().unwrap()));
    }
    out
}

fn regressions() -> [(&'static str, Regression); 5] {
    [
        ("squared", Regression::Squared),
        ("half_squared", Regression::HalfSquared),
        ("shifted_cosh", Regression::ShiftedCosh),
        ("linex_1", Regression::Linex { alpha: 1.0 }),
        ("linex_-0.5", Regression::Linex { alpha: -0.5 }),
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
            for (name, objective, expected) in objectives(&case, regression_name) {
                let got = inputs.loss(objective.as_ref(), &regression);
                let close = (got - expected).abs() <= 1e-9 * expected.abs().max(1.0);
                assert!(close, "{} {regression_name} {name}: {got} instead of {expected}", case["name"]);
                checked += 1;
            }
        }
    }
    assert!(checked >= 6 * 5 * 20, "{checked}");
}

#[test]
fn residuals_equal_golden_numbers() {
    for case in cases() {
        let scores = Inputs::new(&case).scores().0;
        let beta = case["beta"].as_f64().unwrap();
        let objectives: [(&str, &dyn Objective); 7] = [
            ("TB", &TrajectoryBalance),
            ("ZVar", &LogPartitionVariance),
            ("RTB", &RelativeTrajectoryBalance::new(beta).unwrap()),
            ("RelativeZVar", &RelativeLogPartitionVariance::new(beta).unwrap()),
            ("DB", &DetailedBalance::default()),
            ("DB_forward_looking", &forward_looking()),
            ("ModifiedDB", &ModifiedDetailedBalance::default()),
        ];
        for (name, objective) in objectives {
            let values = objective.residuals(&scores).unwrap().values;
            let got = Vec::<f64>::try_from(&values).unwrap();
            let expected = numbers(&case["residuals"][name]);
            assert_eq!(got.len(), expected.len());
            for (g, e) in got.iter().zip(&expected) {
                // The residuals of the objectives named `ZVar` are deviations from the mean. Their sign is a
                // convention, so both signs are accepted.
                let same = (g - e).abs() < 1e-9 || (name.ends_with("ZVar") && (g + e).abs() < 1e-9);
                assert!(same, "{} {name}: {g} instead of {e}", case["name"]);
            }
        }
    }
}

#[test]
fn gradients_equal_finite_differences() {
    let case = &cases()[1];
    let inputs = Inputs::new(case);
    for (name, objective, _) in objectives(case, "squared") {
        let (scores, leaves) = inputs.scores();
        objective.loss(&scores, &Regression::Squared).unwrap().backward();
        let h = 1e-5;
        for (which, leaf) in leaves.iter().enumerate() {
            let grad = leaf.grad();
            for k in 0..leaf.numel() {
                let shifted = |by: f64| {
                    let mut inputs = inputs.clone();
                    inputs.leaves[which][k] += by;
                    inputs.loss(objective.as_ref(), &Regression::Squared)
                };
                let expected = (shifted(h) - shifted(-h)) / (2.0 * h);
                let got = if grad.defined() { grad.double_value(&[k as i64]) } else { 0.0 };
                let close = (got - expected).abs() < 1e-6 * expected.abs().max(1.0);
                assert!(close, "{name} input {which} entry {k}: {got} instead of {expected}");
            }
        }
    }
}

/// Tests that Trust-PCL is relative trajectory balance with alpha = 1 / beta, except that its residuals are
/// multiplied by alpha.
#[test]
fn trust_pcl_is_relative_trajectory_balance_in_other_units() {
    for case in cases() {
        let scores = Inputs::new(&case).scores().0;
        let alpha = 0.7;
        let pcl = TrustPcl::new(alpha).unwrap();
        let relative =
            RelativeTrajectoryBalance::new(1.0 / alpha).unwrap().residuals(&scores).unwrap().values;
        let difference = pcl.residuals(&scores).unwrap().values - relative * alpha;
        assert!(difference.abs().max().double_value(&[]) < 1e-12);
        assert_eq!(pcl.soft_value(&scores).unwrap(), scores.get(Quantity::LogZ).unwrap() * alpha);
    }
}

#[test]
fn huber_is_quadratic_inside_and_linear_outside() {
    let t = Tensor::from_slice(&[-3.0f64, -0.5, 0.0, 0.5, 3.0]);
    let got = Vec::<f64>::try_from(Regression::Huber { delta: 1.0 }.apply(&t).unwrap()).unwrap();
    assert_eq!(got, [2.5, 0.125, 0.0, 0.125, 2.5]);
}

#[test]
fn missing_estimators_and_bad_lambdas_are_errors() {
    let (mut scores, _) = Inputs::new(&cases()[1]).scores();
    scores.remove(Quantity::LogZ);
    scores.remove(Quantity::LogFlow);
    let error = TrajectoryBalance.loss(&scores, &Regression::Squared).unwrap_err().to_string();
    assert!(error.contains("trajectory balance") && error.contains("log Z"), "{error}");
    assert!(DetailedBalance::default().loss(&scores, &Regression::Squared).is_err());
    for lambda in [0.0, -1.0, 1.5, f64::NAN] {
        assert!(SubTrajectoryBalance::new(Weighting::Geometric { lambda }).is_err());
    }
    assert_eq!(scores.log_pf.kind(), Kind::Double);
}
