//! Differences of log-probabilities that rounding explains, for checks that evaluate a policy twice.

use crate::{Error, Result};

/// Allowed difference, per unit of the logits' size. Single precision rounds by 1e-7 of the numbers that are
/// summed, which in a network without norms may be thousands of times larger than the logits.
const TOLERANCE: f64 = 1e-3;
/// The same per unit of 1 plus the log-probability's size, if logits are next to 0.
const LEAST_TOLERANCE: f64 = 1e-5;
/// Number of states of a batch that are also evaluated alone.
const ALONE: usize = 8;

/// The size of the logits that gave these log-probabilities: the largest distance from the uniform policy's.
pub(crate) fn logit_size(log_probs: &[f64], uniform: &[f64]) -> f64 {
    let apart = log_probs.iter().zip(uniform).map(|(log_prob, uniform)| (log_prob - uniform).abs());
    apart.filter(|size| size.is_finite()).fold(0.0, f64::max)
}

/// `true` if two log-probabilities of one action are equal up to rounding, in a batch whose logits have this
/// size.
pub(crate) fn equal_up_to_rounding(one: f64, other: f64, size: f64) -> bool {
    // Two zero probabilities agree as well.
    one == other || (one - other).abs() <= TOLERANCE * size + LEAST_TOLERANCE * (1.0 + one.abs())
}

/// Checks that a policy gives a few states alone the log-probabilities that it gave them in a batch. Those of
/// `row` are `together[offsets[row]..offsets[row + 1]]`; `alone` evaluates one row, and `words` describes it.
///
/// # Errors
/// [`Error::Contract`] for one that differs, and if `alone` fails.
pub(crate) fn check_alone(
    offsets: &[usize],
    together: &[f64],
    size: f64,
    alone: impl Fn(usize) -> Result<Vec<f64>>,
    words: impl Fn(usize) -> String,
) -> Result<()> {
    let n = offsets.len() - 1;
    let rule = "a policy judges each state by itself: what it gives for one depends neither on the others of its batch nor \
                on chance (leave batch normalisation in training mode and dropout out of the network)";
    for row in (0..n).step_by(n.div_ceil(ALONE).max(1)) {
        let together = &together[offsets[row]..offsets[row + 1]];
        // Batch normalisation in training mode refuses one state alone.
        let fails =
            |error: Error| Error::contract(rule, format!("it evaluates {n} states, but fails on one alone: {error}"));
        let alone = alone(row).map_err(fails)?;
        let differing = |pair: &(&f64, &f64)| !equal_up_to_rounding(*pair.0, *pair.1, size);
        if let Some((together, alone)) = together.iter().zip(&alone).find(differing) {
            let detail =
                format!("a log-probability is {together} in a batch of {n} states, and {alone} alone, {}", words(row));
            return Err(Error::contract(rule, detail));
        }
    }
    Ok(())
}
