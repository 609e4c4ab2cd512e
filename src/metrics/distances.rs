//! Distances between a distribution and its target.

use crate::error::check_len;
use crate::{Error, Result};

/// The largest accepted difference between a sum of probabilities and 1. Sums may differ from 1 because
/// probabilities may have been rounded for printing.
const SUM_TOLERANCE: f64 = 1e-3;

/// The share of a mode's target probability above which the mode counts as found. [`modes_found`] assumes
/// that each mode has the target probability `1 / n_modes`.
const MODE_SHARE: f64 = 0.1;

/// The distances between a policy's distribution and the target distribution. Logarithms are natural.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distances {
    /// The sum of the absolute differences of probabilities, from 0 to 2.
    pub l1: f64,
    /// The total variation, which is half of `l1`.
    pub tv: f64,
    /// The Jensen-Shannon divergence, from 0 to ln 2.
    pub jsd: f64,
    /// The divergence KL(target || policy); infinite if the policy never samples an object to which the
    /// target gives probability.
    pub kl_target_policy: f64,
    /// The divergence KL(policy || target); infinite if the policy samples an object to which the target
    /// gives no probability.
    pub kl_policy_target: f64,
}

impl Distances {
    /// Compares two distributions over the same states.
    ///
    /// ```
    /// use gfn::metrics::Distances;
    /// let d = Distances::between(&[1.0, 0.0], &[0.5, 0.5])?;
    /// assert_eq!((d.l1, d.tv), (1.0, 0.5));
    /// assert!((d.kl_policy_target - 2f64.ln()).abs() < 1e-15 && d.kl_target_policy.is_infinite());
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if the numbers of states differ; [`Error::Config`] if one of the lists isn't a
    /// distribution: a number is negative or not finite, or the sum differs from 1 by more than 1e-3.
    pub fn between(policy: &[f64], target: &[f64]) -> Result<Self> {
        check_length("the policy's probabilities", policy.len(), target.len())?;
        check_distribution("the policy's distribution", policy)?;
        check_distribution("the target distribution", target)?;
        let sum =
            |term: fn(f64, f64) -> f64| policy.iter().zip(target).map(|(&p, &t)| term(p, t)).sum::<f64>();
        let l1 = sum(|p, t| (p - t).abs());
        Ok(Self {
            l1,
            tv: l1 / 2.0,
            jsd: sum(jsd_term),
            kl_target_policy: sum(|p, t| kl_term(t, p)),
            kl_policy_target: sum(kl_term),
        })
    }
}

/// Checks that numbers are a probability distribution: finite, not negative, with the sum 1.
pub(super) fn check_distribution(what: &'static str, probs: &[f64]) -> Result<()> {
    let refuse = |got| Err(Error::config(what, got, "probabilities of 0 or more that sum to 1"));
    if let Some(state) = probs.iter().position(|p| !(p.is_finite() && *p >= 0.0)) {
        return refuse(format!("a list that has {} for state {state}", probs[state]));
    }
    let sum: f64 = probs.iter().sum();
    if (sum - 1.0).abs() <= SUM_TOLERANCE {
        Ok(())
    } else {
        refuse(format!("a list of {} that sums to {sum}", probs.len()))
    }
}

fn check_length(what: &str, got: usize, expected: usize) -> Result<()> {
    check_len(what, expected, got, "compare lists over the states of one state graph")
}

fn kl_term(p: f64, q: f64) -> f64 {
    if p > 0.0 { p * (p / q).ln() } else { 0.0 }
}

/// Returns the summand of one state in the Jensen-Shannon divergence, for its probabilities `p` and `q`.
pub(super) fn jsd_term(p: f64, q: f64) -> f64 {
    let middle = 0.5 * (p + q);
    0.5 * (kl_term(p, middle) + kl_term(q, middle))
}

/// Returns the number of modes that a distribution covers. A mode is covered if its probability is more than
/// a tenth of its target probability.
///
/// Use this function instead of [`modes_found`] if much of the target's probability isn't at the modes,
/// because then even the target may not reach the threshold of `modes_found`.
///
/// ```
/// use gfn::metrics::modes_covered;
/// assert_eq!(modes_covered(&[0.9, 0.01, 0.09], &[0.2, 0.2, 0.6], &[true, true, false])?, 1);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Shape`] for lists of different lengths.
pub fn modes_covered(probs: &[f64], target: &[f64], is_mode: &[bool]) -> Result<usize> {
    check_length("the target's probabilities", target.len(), probs.len())?;
    check_length("the marks of modes", is_mode.len(), probs.len())?;
    let covered = |i: &usize| is_mode[*i] && probs[*i] > MODE_SHARE * target[*i];
    Ok((0..probs.len()).filter(covered).count())
}

/// Returns the number of modes that a distribution has found: the modes with a probability above 0.1 /
/// `n_modes`.
///
/// `n_modes` is the number of modes of the whole problem. `n_modes` may exceed the number of `true` entries
/// of `is_mode`.
///
/// ```
/// assert_eq!(gfn::metrics::modes_found(&[0.9, 0.04, 0.06], &[true, true, false], 2)?, 1);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Shape`] for lists of different lengths.
pub fn modes_found(probs: &[f64], is_mode: &[bool], n_modes: usize) -> Result<usize> {
    check_length("the marks of modes", is_mode.len(), probs.len())?;
    let bar = MODE_SHARE / n_modes.max(1) as f64;
    Ok(probs.iter().zip(is_mode).filter(|(p, is_mode)| **is_mode && **p > bar).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divergences_have_their_direction() {
        let found = Distances::between(&[0.5, 0.5], &[0.25, 0.75]).unwrap();
        let close =
            |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found}, not {expected}");
        close(found.kl_target_policy, 0.25 * 0.5f64.ln() + 0.75 * 1.5f64.ln());
        close(found.kl_policy_target, 0.5 * 2f64.ln() + 0.5 * (2.0f64 / 3.0).ln());
        close(found.l1, 0.5);
        close(found.tv, 0.25);
    }
}
