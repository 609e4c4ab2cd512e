//! Tests of the losses of f-divergences against their definitions. Gradients are compared with those of the
//! divergences on small sets of objects, all of which are enumerated.

use gfn::objective::{
    FDivergence, LogPartitionDeviation, LogPartitionVariance, Objective, Regression, RegressionLoss,
    TrajectoryBalance,
};
use tch::{Kind, Tensor};

use crate::regressions::{DIVERGENCES, LOG_COSH, LOG_WEIGHTS, LOGITS, enumerated, train};

/// Returns the generator f(u) of a divergence, written out from its definition.
fn generator(divergence: FDivergence, u: f64) -> f64 {
    match divergence {
        FDivergence::ReverseKl => u * u.ln(),
        FDivergence::ForwardKl => -u.ln(),
        FDivergence::JensenShannon => 0.5 * (u * u.ln() - (u + 1.0) * (0.5 * (u + 1.0)).ln()),
        FDivergence::Hellinger => (u.sqrt() - 1.0).powi(2),
        FDivergence::ChiSquared => (u - 1.0).powi(2),
        FDivergence::Alpha { alpha: 1.0 } => u * u.ln() - (u - 1.0),
        FDivergence::Alpha { alpha } => (u.powf(alpha) - 1.0 - alpha * (u - 1.0)) / (alpha * (alpha - 1.0)),
    }
}

/// Returns the derivative of a function by central differences.
fn derivative(f: impl Fn(f64) -> f64, at: f64) -> f64 {
    let step = 1e-5 * at.abs().max(0.1);
    (f(at + step) - f(at - step)) / (2.0 * step)
}

/// Checks the closed forms: each loss is the integral of `f'(exp(s)) - f'(1)`, computed by Simpson's rule
/// from the definition of f.
#[test]
fn losses_of_divergences_are_integrals_of_their_generators() {
    for divergence in DIVERGENCES {
        let slope = |s: f64| {
            let f = |u| generator(divergence, u);
            derivative(f, s.exp()) - derivative(f, 1.0)
        };
        for t in [-2.0, -0.4, 0.7, 2.5] {
            let n = 400;
            let h = t / f64::from(n);
            let inner: f64 =
                (1..n).map(|k| slope(f64::from(k) * h) * if k % 2 == 1 { 4.0 } else { 2.0 }).sum();
            let integral = (slope(0.0) + inner + slope(t)) * h / 3.0;
            let (losses, gradients) = divergence.costs(&[t]).unwrap();
            let (loss, gradient) = (losses[0], gradients[0]);
            assert!(
                (loss - integral).abs() < 1e-6 * loss.max(1.0),
                "{divergence:?} at {t}: {loss}, {integral}"
            );
            assert!((gradient - slope(t)).abs() < 1e-5 * gradient.abs().max(1.0), "{divergence:?} at {t}");
        }
    }
}

/// Compares slopes of the Jensen-Shannon loss, which are computed by autograd, with their closed form, also
/// where an exponential would overflow or terms cancel.
#[test]
fn slopes_of_jensen_shannon_are_accurate_far_from_zero_and_near_it() {
    let at = [-800.0, -80.0, -1e-3, 0.0, 1e-3, 80.0, 800.0];
    let (_, slopes) = FDivergence::JensenShannon.costs(&at).unwrap();
    for (t, slope) in at.into_iter().zip(slopes) {
        let softplus = f64::max(-t, 0.0) + (-f64::abs(t)).exp().ln_1p();
        let expected = 0.5 * (2f64.ln() - softplus);
        assert!((slope - expected).abs() < 1e-9 * expected.abs().max(1.0), "{slope} at {t}, not {expected}");
    }
}

/// Checks that slopes near alpha 1 are those of half the square in single precision, where the terms of the
/// linex loss cancel.
#[test]
fn slopes_near_reverse_kl_are_accurate_in_single_precision() {
    for shift in [1e-9, 1e-7, -1e-7, 1e-5, -1e-5, 1e-3, -1e-3] {
        let losses = [Regression::Linex { alpha: shift }, FDivergence::Alpha { alpha: 1.0 + shift }.into()];
        for loss in losses {
            for t in [-4.0, -0.3, 0.02, 2.0_f64] {
                let residual = Tensor::from_slice(&[t as f32]).set_requires_grad(true);
                let value = loss.apply(&residual).unwrap();
                value.sum(Kind::Float).backward();
                // The next term of each series is below 1e-5 of these terms.
                let slope = t * (1.0 + shift * t / 2.0 + (shift * t).powi(2) / 6.0);
                let expected = 0.5 * t * t * (1.0 + shift * t / 3.0);
                let [value, got] = [&value, &residual.grad()].map(|one| one.double_value(&[0]));
                assert!((got / slope - 1.0).abs() < 1e-5, "{loss:?} {t}: {got}, {slope}");
                assert!((value / expected - 1.0).abs() < 1e-5, "{loss:?} {t}: {value}, {expected}");
            }
        }
    }
    for alpha in [0.0, 20.5, f64::NEG_INFINITY] {
        assert!(Regression::Linex { alpha }.check().is_err());
    }
    assert!(FDivergence::Alpha { alpha: -19.5 }.check().is_err());
}

/// Checks the Jensen-Shannon loss in both precisions: far from 0, where its asymptotes are known, and near 0,
/// where it is `t^2 / 8`.
#[test]
fn the_jensen_shannon_loss_is_accurate_at_all_sizes() {
    for kind in [Kind::Double, Kind::Float] {
        for t in [-80.0, -1e-3, 1e-3, 80.0_f64] {
            let got = FDivergence::JensenShannon
                .apply(&Tensor::from_slice(&[t]).to_kind(kind))
                .unwrap()
                .double_value(&[0]);
            let far = std::f64::consts::PI.powi(2) / 24.0 - 0.5 * t.abs() * std::f64::consts::LN_2;
            let expected = match t {
                80.0 => -far,
                -80.0 => 0.25 * t * t + far,
                _ => t * t / 8.0 * (1.0 - t / 6.0),
            };
            let tolerance = if kind == Kind::Float { 1e-5 } else { 1e-6 };
            assert!((got / expected - 1.0).abs() < tolerance, "{kind:?} {t}: {got}, {expected}");
        }
    }
}

fn softmax(logits: &[f64]) -> Vec<f64> {
    let total: f64 = logits.iter().map(|x| x.exp()).sum();
    logits.iter().map(|x| x.exp() / total).collect()
}

/// Returns the expected gradient of trajectory balance with this loss on trajectories of the policy itself,
/// that is the gradient of each trajectory's loss with the policy's probability as its weight.
fn on_policy_gradient(divergence: FDivergence, logits: &[f64], log_weights: &[f64], log_z: f64) -> Vec<f64> {
    let (scores, leaf) = enumerated(logits, log_weights, log_z);
    let residuals = TrajectoryBalance.residuals(&scores).unwrap().values;
    let weights = scores.log_pf.detach().exp();
    (divergence.apply(&residuals).unwrap() * weights).sum(Kind::Double).backward();
    Vec::try_from(leaf.grad()).unwrap()
}

fn log_sum(values: &[f64]) -> f64 {
    values.iter().map(|x| x.exp()).sum::<f64>().ln()
}

#[test]
fn on_policy_gradients_are_those_of_the_divergences() {
    let target = softmax(&LOG_WEIGHTS);
    let largest = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let mut gradients = Vec::new();
    for divergence in DIVERGENCES {
        let value = |logits: &[f64]| -> f64 {
            let policy = softmax(logits);
            policy.iter().zip(&target).map(|(q, p)| p * generator(divergence, q / p)).sum()
        };
        let mut expected = Vec::new();
        for k in 0..LOGITS.len() {
            let moved = |x: f64| {
                let mut logits = LOGITS;
                logits[k] = x;
                value(&logits)
            };
            expected.push(derivative(moved, LOGITS[k]));
        }
        let log_z = log_sum(&LOG_WEIGHTS);
        let got = on_policy_gradient(divergence, &LOGITS, &LOG_WEIGHTS, log_z);
        assert!(largest(&got, &expected) < 1e-8, "{divergence:?}: {got:?} instead of {expected:?}");
        // With another log Z the gradient is that of the divergence only for the reverse KL divergence, whose
        // gradient doesn't depend on log Z.
        let shifted = on_policy_gradient(divergence, &LOGITS, &LOG_WEIGHTS, log_z + 1.0);
        let is_reverse = matches!(divergence, FDivergence::ReverseKl | FDivergence::Alpha { alpha: 1.0 });
        assert_eq!(largest(&shifted, &expected) < 1e-8, is_reverse, "{divergence:?}");
        gradients.push(got);
    }
    // Different divergences have different gradients; `Alpha` at 1 is the reverse KL divergence.
    for (i, a) in gradients.iter().enumerate() {
        for (j, b) in gradients.iter().enumerate().skip(i + 1) {
            assert_eq!(largest(a, b) < 1e-3, (i, j) == (0, 6), "{:?} {:?}", DIVERGENCES[i], DIVERGENCES[j]);
        }
    }
}

/// Checks the number that replaces log Z: it is the minimizer of the loss, in closed form the mean for the
/// squared loss and the log of the mean weight for the forward KL divergence. The gradient equals finite
/// differences of the minimum.
#[test]
fn the_batch_gives_the_minimizing_log_z() {
    let loss_at = |objective: &dyn Objective, regression: &Regression, logits: &[f64], log_z: f64| {
        let (scores, _) = enumerated(logits, &LOG_WEIGHTS, log_z);
        objective.loss(&scores, regression).unwrap().double_value(&[])
    };
    let log_q = softmax(&LOGITS).iter().map(|q| q.ln()).collect::<Vec<_>>();
    let estimates: Vec<f64> = LOG_WEIGHTS.iter().zip(&log_q).map(|(w, q)| w - q).collect();
    let closed = [
        (Regression::Squared, estimates.iter().sum::<f64>() / 5.0),
        (FDivergence::ForwardKl.into(), log_sum(&estimates) - 5.0_f64.ln()),
    ];
    for (regression, log_z) in closed {
        let minimum = loss_at(&LogPartitionDeviation, &regression, &LOGITS, 0.0);
        assert!(
            (minimum - loss_at(&TrajectoryBalance, &regression, &LOGITS, log_z)).abs() < 1e-12,
            "{regression:?}"
        );
        assert!(minimum < loss_at(&TrajectoryBalance, &regression, &LOGITS, log_z + 0.01));
    }
    for regression in DIVERGENCES.map(Regression::from).into_iter().chain([Regression::custom(LOG_COSH)]) {
        let (scores, leaf) = enumerated(&LOGITS, &LOG_WEIGHTS, 0.0);
        LogPartitionDeviation.loss(&scores, &regression).unwrap().backward();
        let got = Vec::<f64>::try_from(leaf.grad()).unwrap();
        for k in 0..LOGITS.len() {
            let moved = |x: f64| {
                let mut logits = LOGITS;
                logits[k] = x;
                loss_at(&LogPartitionDeviation, &regression, &logits, 0.0)
            };
            assert!((derivative(moved, LOGITS[k]) - got[k]).abs() < 1e-7, "{regression:?} {k}");
        }
    }
    let squared = Regression::Squared;
    let variance = loss_at(&LogPartitionVariance, &squared, &LOGITS, 0.0);
    assert!((variance - loss_at(&LogPartitionDeviation, &squared, &LOGITS, 0.0)).abs() < 1e-12);
}

#[test]
fn all_divergences_train_to_the_target() {
    for divergence in DIVERGENCES {
        let learned = train(TrajectoryBalance, divergence.into(), 300);
        let batch = train(LogPartitionDeviation, divergence.into(), 300);
        assert!(learned < 0.02 && batch < 0.02, "{divergence:?}: {learned} {batch}");
    }
}

/// Repeats the effect by which the paper chooses a divergence: if the policy can't represent the target, a
/// divergence of small alpha covers all modes, and a divergence of large alpha leaves modes out.
///
/// A word of four bits, each with a probability of its own, independent of the others, is to have the target
/// of two modes, `0000` and `1111`. The on-policy gradient is exact, and training starts near equal
/// probabilities.
#[test]
fn small_alpha_covers_modes_and_large_alpha_leaves_one_out() {
    const BITS: usize = 4;
    let words: Vec<Vec<f64>> =
        (0..1 << BITS).map(|word| (0..BITS).map(|bit| f64::from(word >> bit & 1)).collect()).collect();
    let log_weights: Vec<f64> = words
        .iter()
        .map(|word| if (word.iter().sum::<f64>() as usize).is_multiple_of(BITS) { 0.0 } else { -3.0 })
        .collect();
    let matrix = Tensor::from_slice2(&words);
    let log_z = log_sum(&log_weights);
    let ratio_of_modes = |alpha: f64| {
        let divergence = FDivergence::Alpha { alpha };
        let mut logits = Tensor::from_slice(&[0.02; BITS]).set_requires_grad(true);
        let mut log_q = Tensor::new();
        for _ in 0..4_000 {
            log_q = matrix.matmul(&logits.log_sigmoid()) + (-&matrix + 1.0).matmul(&(-&logits).log_sigmoid());
            let residuals = &log_q + log_z - Tensor::from_slice(&log_weights);
            let loss = (divergence.apply(&residuals).unwrap() * log_q.detach().exp()).sum(Kind::Double);
            let gradient = Tensor::run_backward(&[&loss], &[&logits], false, false);
            let _ = tch::no_grad(|| logits.f_sub_(&(&gradient[0] * 0.5)).unwrap());
        }
        (log_q.double_value(&[0]) - log_q.double_value(&[(1 << BITS) - 1])).exp()
    };
    let [covering, seeking] = [0.0, 1.0].map(ratio_of_modes);
    assert!(
        (covering - 1.0).abs() < 1e-3,
        "forward KL: the second mode has {covering} of the first one's mass"
    );
    assert!(seeking < 0.01, "reverse KL: the second mode has {seeking} of the first one's mass");
}
