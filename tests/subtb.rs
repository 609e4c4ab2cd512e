//! Tests of sub-trajectory balance. The library sums over all pairs of states of a trajectory without storing
//! a number per pair. The result must equal that of a computation that stores all pairs.

use gfn::Rng;
use gfn::objective::Quantity;
use gfn::objective::{
    FDivergence, Objective, Regression, RegressionLoss, Scores, StateFlow, SubTrajectoryBalance, Weighting,
};
use tch::{Kind, Tensor};

const WEIGHTINGS: [Weighting; 7] = [
    Weighting::Db,
    Weighting::ModifiedDb,
    Weighting::Tb,
    Weighting::Equal,
    Weighting::EqualWithin,
    Weighting::Geometric { lambda: 0.9 },
    Weighting::GeometricWithin { lambda: 0.8 },
];

const LOSSES: [Regression; 7] = [
    Regression::Squared,
    Regression::HalfSquared,
    Regression::ShiftedCosh,
    Regression::Linex { alpha: -0.5 },
    Regression::Huber { delta: 0.7 },
    Regression::Absolute,
    Regression::FDivergence(FDivergence::JensenShannon),
];

/// Builds scores of trajectories of these lengths. Also returns the tensors whose gradients are compared: log
/// P_F, log P_B and log F.
fn scores(lengths: &[usize], kind: Kind) -> (Scores, [Tensor; 3]) {
    let mut rng = Rng::seeded(4);
    let mut offsets = vec![0];
    for n in lengths {
        offsets.push(offsets[offsets.len() - 1] + n);
    }
    let rows = offsets[lengths.len()];
    let mut leaf = |scale: f64| {
        let values: Vec<f64> = (0..rows).map(|_| scale * rng.normal()).collect();
        Tensor::from_slice(&values).to_kind(kind).set_requires_grad(true)
    };
    let leaves = [leaf(0.3), leaf(0.3), leaf(1.0)];
    let rewards: Vec<f64> = lengths.iter().map(|&n| (n as f64).sin()).collect();
    let [log_pf, log_pb, log_flow] = leaves.each_ref().map(Tensor::shallow_clone);
    let mut scores = Scores::new(offsets, log_pf, log_pb, Tensor::from_slice(&rewards).to_kind(kind));
    scores.set(Quantity::LogFlow, log_flow).unwrap();
    let ahead: Vec<f64> = (0..rows).map(|k| (k as f64).cos()).collect();
    scores.set(Quantity::StateLogReward, Tensor::from_slice(&ahead).to_kind(kind)).unwrap();
    (scores, leaves)
}

/// Computes the loss and its gradients from stored residuals of all pairs of a trajectory's states. The loss
/// is the sum over pairs of the weight times the regression loss of the residual.
fn dense(
    objective: &SubTrajectoryBalance,
    regression: &dyn RegressionLoss,
    lengths: &[usize],
    kind: Kind,
) -> Vec<Tensor> {
    let (scores, leaves) = scores(lengths, kind);
    let residuals = objective.residuals(&scores).unwrap();
    let loss = (regression.apply(&residuals.values).unwrap() * residuals.weights).sum(kind);
    loss.backward();
    std::iter::once(loss.detach()).chain(leaves.iter().map(Tensor::grad)).collect()
}

fn linear(
    objective: &SubTrajectoryBalance,
    regression: &dyn RegressionLoss,
    lengths: &[usize],
    kind: Kind,
) -> Vec<Tensor> {
    let (scores, leaves) = scores(lengths, kind);
    let loss = objective.loss(&scores, regression).unwrap();
    // The factor 1 makes the gradient pass through another operation before it reaches the loss, as it would
    // if the loss were a part of a larger loss.
    (&loss * 1.0).backward();
    std::iter::once(loss.detach()).chain(leaves.iter().map(Tensor::grad)).collect()
}

#[test]
fn losses_and_gradients_are_those_of_all_pairs() {
    for lengths in [&[1][..], &[3, 1, 7, 2], &[40, 5, 23]] {
        for weighting in WEIGHTINGS {
            for regression in LOSSES {
                for flow in [StateFlow::Whole, StateFlow::ForwardLooking] {
                    let objective = SubTrajectoryBalance::new(weighting).unwrap().with_flow(flow);
                    let [expected, got] =
                        [dense, linear].map(|f| f(&objective, &regression, lengths, Kind::Double));
                    for (expected, got) in expected.iter().zip(&got) {
                        let size = expected.abs().max().double_value(&[]).max(1.0);
                        let off = (expected - got).abs().max().double_value(&[]);
                        assert!(
                            off <= 1e-12 * size,
                            "{weighting:?} {regression:?} {lengths:?}: off by {off}"
                        );
                    }
                    let single = linear(&objective, &regression, lengths, Kind::Float);
                    for (expected, got) in expected.iter().zip(&single) {
                        assert_eq!(got.kind(), Kind::Float);
                        let size = expected.abs().max().double_value(&[]).max(1.0);
                        let off = (expected - got.to_kind(Kind::Double)).abs().max().double_value(&[]);
                        assert!(
                            off <= 1e-5 * size,
                            "{weighting:?} {regression:?} {lengths:?} in f32: off by {off}"
                        );
                    }
                }
            }
        }
    }
}

/// Returns the peak memory of this process in MiB.
#[cfg(target_os = "linux")]
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() / 1024
}

#[cfg(target_os = "linux")]
const CHILD: &str = "GFN_TEST_PAIRS";

/// Measures the memory of a loss with 64 million pairs of states, in a separate process. Storing a single
/// number per pair would take 512 MB, and a loss that is computed from stored pairs needs more than ten
/// numbers per pair.
#[test]
#[ignore = "run by the test below, as a process of its own"]
#[cfg(target_os = "linux")]
fn child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let objective = SubTrajectoryBalance::new(Weighting::GeometricWithin { lambda: 0.9 }).unwrap();
    let loss = |lengths: &[usize]| {
        let got = linear(&objective, &Regression::Squared, lengths, Kind::Float);
        assert!(got[0].double_value(&[]).is_finite());
    };
    // A small loss is computed first, so that memory that libtorch allocates only once isn't counted.
    loss(&[8, 8]);
    let before = peak();
    loss(&[8000, 8000]);
    assert!(peak() - before < 500, "{} MiB more", peak() - before);
}

/// Runs the measurement in a separate process, because the peak memory of this process includes other tests.
#[test]
#[cfg(target_os = "linux")]
fn memory_does_not_grow_with_the_number_of_pairs() {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    let output = command.args(["--exact", "subtb::child", "--ignored"]).env(CHILD, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}
