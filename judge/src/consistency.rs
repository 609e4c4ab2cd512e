//! Flow consistency, which compares learned and target probabilities within small subsets of objects.

use gfn::metrics::Estimate;
use gfn::tensor::log_sum_exp;
use gfn::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::Interval;

/// The flow consistency of a policy on subsets of objects (FCS; Silva et al., *When do GFlowNets learn the
/// right distribution?*, ICLR 2025). Within each random subset, the learned and the target probabilities are
/// normalised, and the total variation between them is computed. Flow consistency is the mean over the
/// subsets.
///
/// Flow consistency is 0 for an exact policy, and 1 for a policy whose whole mass is on objects without
/// reward. Its computation needs neither Z nor a list of all objects.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowConsistency {
    /// The mean over the subsets. Noise in the probabilities may have increased the mean by `floor`, so the
    /// lower end of the interval is reduced by `floor`.
    pub fcs: Interval,
    /// The flow consistency that noise alone would cause: that of an exact policy whose probabilities have
    /// the same noise as those of the judged policy.
    pub floor: f64,
    /// The number of subsets over which the mean is taken.
    pub subsets: usize,
}

impl FlowConsistency {
    /// Computes flow consistency from the distances on randomly drawn subsets. `floor` is the mean distance
    /// that noise alone causes. `error` is the standard error of the mean that comes from errors of the
    /// estimated probabilities, which affect several subsets at once. It is 0 if the probabilities are exact.
    ///
    /// # Errors
    /// [`Error::Config`] for fewer than two subsets.
    pub fn from_distances(distances: &[f64], floor: f64, error: f64) -> Result<Self> {
        if distances.len() < 2 {
            return Err(Error::config("subsets", distances.len(), "at least two subsets"));
        }
        let Estimate { mean, standard_error } = Estimate::from_values(distances);
        let mut fcs = Interval::from_estimate(Estimate { mean, standard_error: standard_error.hypot(error) });
        fcs.low = (fcs.low - floor).max(0.0);
        fcs.high = fcs.high.min(1.0);
        Ok(Self { fcs, floor, subsets: distances.len() })
    }
}

/// Returns the total variation between two distributions over a subset of objects. `log_p` and `log_rewards`
/// are the logs of the two distributions, which needn't be normalised. The distance is 1 if only one
/// distribution has positive values in the subset, and 0 if neither distribution has positive values.
///
/// ```
/// use gfn_judge::subset_distance;
/// // Learned 1 : 3, target 1 : 1.
/// assert!((subset_distance(&[-7.0, -7.0 + 3f64.ln()], &[2.0, 2.0])? - 0.25).abs() < 1e-12);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Shape`] for lists of different lengths.
pub fn subset_distance(log_p: &[f64], log_rewards: &[f64]) -> Result<f64> {
    if log_p.len() != log_rewards.len() {
        let expected = [log_rewards.len() as i64];
        let got = [log_p.len() as i64];
        return Err(Error::shape(
            "log-probabilities of a subset",
            expected,
            got,
            "give one log-probability for each log-reward",
        ));
    }
    let p = log_sum_exp(log_p.iter().copied());
    let r = log_sum_exp(log_rewards.iter().copied());
    Ok(match (p == f64::NEG_INFINITY, r == f64::NEG_INFINITY) {
        (true, true) => 0.0,
        (true, _) | (_, true) => 1.0,
        _ => {
            log_p.iter().zip(log_rewards).map(|(a, b)| ((a - p).exp() - (b - r).exp()).abs()).sum::<f64>()
                / 2.0
        }
    })
}
