//! Tolerances for comparing the log-probabilities of two evaluations of the same policy.

use crate::{Error, Result};

/// The allowed difference of two log-probabilities, relative to the size of the logits. Single precision
/// rounds each number by about 1e-7 of its size. In a network without normalisation layers, numbers inside
/// the network may be thousands of times larger than the logits, so the error may exceed 1e-4 of the logits.
const TOLERANCE: f64 = 1e-3;
/// The second part of the allowed difference, relative to (1 + the absolute value of the log-probability). It
/// is added to the part that [`TOLERANCE`] allows, which is too small if the logits are close to 0.
const LEAST_TOLERANCE: f64 = 1e-5;
/// The maximum number of states of a batch that are evaluated alone, in addition to the whole batch.
const N_STATES_ALONE: usize = 8;

/// Estimates the size of the logits from which these log-probabilities were computed. The estimate is the
/// largest finite difference between these log-probabilities and the log-probabilities of the uniform policy.
pub(crate) fn logit_size(log_probs: &[f64], uniform: &[f64]) -> f64 {
    let distances = log_probs.iter().zip(uniform).map(|(log_prob, uniform)| (log_prob - uniform).abs());
    distances.filter(|distance| distance.is_finite()).fold(0.0, f64::max)
}

/// Returns `true` if two log-probabilities of the same action are equal up to rounding. `size` is the size of
/// the logits of the batch ([`logit_size`]).
pub(crate) fn equal_up_to_rounding(first: f64, second: f64, size: f64) -> bool {
    // Two log-probabilities of minus infinity are equal, although their difference is NaN.
    first == second || (first - second).abs() <= TOLERANCE * size + LEAST_TOLERANCE * (1.0 + first.abs())
}

/// Checks that a policy gives a state the same log-probabilities alone as in a batch, for at most
/// [`N_STATES_ALONE`] states. `together[offsets[row]..offsets[row + 1]]` are the log-probabilities of state
/// `row` in the batch. `size` is the size of the logits of the batch ([`logit_size`]). `alone` evaluates one
/// state, and `words` describes that state.
///
/// # Errors
/// [`Error::Contract`] for a log-probability that differs, and if `alone` fails.
pub(crate) fn check_alone(
    offsets: &[usize],
    together: &[f64],
    size: f64,
    alone: impl Fn(usize) -> Result<Vec<f64>>,
    words: impl Fn(usize) -> String,
) -> Result<()> {
    let n = offsets.len() - 1;
    let rule = "the probabilities that a policy gives a state depend neither on the other states of the \
        batch nor on chance (leave batch normalisation in training mode and dropout out of the network)";
    for row in (0..n).step_by(n.div_ceil(N_STATES_ALONE).max(1)) {
        let together = &together[offsets[row]..offsets[row + 1]];
        // A failure for a single state counts as a dependence on the batch. For example, batch normalisation
        // in training mode fails on a batch of one state.
        let fails = |error: Error| {
            Error::contract(
                rule,
                format!("the policy evaluates a batch of {n} states, but fails on one state alone: {error}"),
            )
        };
        let alone = alone(row).map_err(fails)?;
        let differing = |pair: &(&f64, &f64)| !equal_up_to_rounding(*pair.0, *pair.1, size);
        if let Some((together, alone)) = together.iter().zip(&alone).find(differing) {
            let detail =
                format!("a value is {together} in a batch of {n} states, but {alone} alone, {}", words(row));
            return Err(Error::contract(rule, detail));
        }
    }
    Ok(())
}
