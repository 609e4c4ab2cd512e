//! Log-probabilities of objects under a policy, with intervals.

use gfn::env::Env;
use gfn::metrics::{Estimate, path_log_ratios};
use gfn::policy::Policy;
use gfn::tensor::log_sum_exp;
use gfn::{Result, Rng};
use serde::{Deserialize, Serialize};

use crate::Interval;

/// The log-probability that a policy ends in an object, estimated from backward trajectories from the object
/// (paths).
///
/// The mean of `P_F / P_B` over paths is an unbiased estimate of the probability, but its log is too low by
/// about `bias`. Both the log and the bias are computed from the same paths. If the policy prefers paths that
/// P_B hardly ever draws, the estimate is far too low, and neither the interval nor the bias shows that.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogProb {
    /// The estimate of log p(x), with an interval by the studentised bootstrap over paths. The interval isn't
    /// a bound. The interval is useful only if `bias` is at most 0.1.
    pub log_p: Interval,
    /// An estimate of the amount by which the estimate of log p(x) is too low on average. The bias is half of
    /// the squared relative standard error, and at most 0.5.
    pub bias: f64,
}

impl LogProb {
    /// Computes the estimate for one object from the values of `log P_F / P_B` on backward trajectories from
    /// it.
    fn from_log_ratios(log_ratios: &[f64], rng: &mut Rng) -> Self {
        let log_p = log_sum_exp(log_ratios.iter().copied()) - (log_ratios.len() as f64).ln();
        if log_p == f64::NEG_INFINITY {
            // The policy has probability 0 on all drawn paths, so the estimate of the object's probability is
            // 0. The paths are no basis for an interval, so both ends of the interval equal the estimate.
            return Self { log_p: Interval { estimate: log_p, low: log_p, high: log_p }, bias: 0.0 };
        }
        let relative: Vec<f64> = log_ratios.iter().map(|ratio| (ratio - log_p).exp()).collect();
        let error =
            if relative.len() > 1 { Estimate::from_values(&relative).standard_error } else { f64::INFINITY };
        let mut log_p = Interval::from_log_draws(log_ratios, rng);
        // The upper end is at most 0, because a probability is at most 1.
        log_p.high = log_p.high.min(0.0).max(log_p.estimate);
        Self { log_p, bias: error * error / 2.0 }
    }
}

/// Estimates the log-probability of each of these terminal objects, from backward trajectories
/// (paths). If an object has several states, `paths` paths are drawn from each of its states.
///
/// ```
/// use gfn::{
///     Rng,
///     examples::{Chain, Positions},
///     policy::UniformPolicy,
/// };
/// let found =
///     gfn_judge::log_probs(&Chain::new(4), &UniformPolicy, &Positions(vec![0]), 50, &mut Rng::seeded(0))?;
/// // One of three actions exits, and there is only one path, so the estimate has no error.
/// assert!((found[0].log_p.estimate + 3f64.ln()).abs() < 1e-6 && found[0].bias < 1e-12);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// Errors of [`path_log_ratios`].
pub fn log_probs<E: Env>(
    env: &E,
    policy: &dyn Policy<E>,
    objects: &E::States,
    paths: usize,
    rng: &mut Rng,
) -> Result<Vec<LogProb>> {
    let log_ratios = path_log_ratios(env, policy, objects, paths, rng)?;
    Ok(log_ratios.iter().map(|ratios| LogProb::from_log_ratios(ratios, rng)).collect())
}

/// The number of groups into which the backward trajectories from each object (paths) are divided.
pub(crate) const PARTS: usize = 8;

/// Estimates of log p(x) for several objects. An estimate can be computed from all paths of an object, or
/// from some of the `PARTS` groups of its paths.
pub(crate) struct SplitEstimates {
    pub(crate) log_probs: Vec<LogProb>,
    /// The mean of `log P_F / P_B` over the backward trajectories from each object.
    pub(crate) mean_log_ratios: Vec<f64>,
    /// A summary of each object's groups of paths (backward trajectories). For a group it holds the log of
    /// the sum of `P_F / P_B` over the group, and the number of its paths.
    parts: Vec<[(f64, usize); PARTS]>,
}

impl SplitEstimates {
    /// Divides the paths (backward trajectories) of each object into `PARTS` groups, and computes all
    /// estimates. `log_ratios` holds `log P_F / P_B` for each path of each object.
    pub(crate) fn new(log_ratios: &[Vec<f64>], rng: &mut Rng) -> Self {
        let part = |ratios: &[f64], k: usize| {
            let own = || ratios.iter().skip(k).step_by(PARTS).copied();
            (log_sum_exp(own()), own().count())
        };
        let parts = log_ratios.iter().map(|ratios| std::array::from_fn(|k| part(ratios, k))).collect();
        let mean = |ratios: &Vec<f64>| ratios.iter().sum::<f64>() / ratios.len() as f64;
        let mean_log_ratios = log_ratios.iter().map(mean).collect();
        let log_probs = log_ratios.iter().map(|ratios| LogProb::from_log_ratios(ratios, rng)).collect();
        Self { log_probs, mean_log_ratios, parts }
    }

    /// Returns the estimate of log p(x) of an object from some of the groups of its backward trajectories:
    /// the groups for whose index `keep` returns `true`.
    pub(crate) fn log_p_from_parts(&self, object: usize, keep: impl Fn(usize) -> bool) -> f64 {
        let kept = || self.parts[object].iter().enumerate().filter(|(k, _)| keep(*k)).map(|(_, part)| part);
        let n: usize = kept().map(|(_, n)| n).sum();
        log_sum_exp(kept().map(|(sum, _)| *sum)) - (n.max(1) as f64).ln()
    }
}
