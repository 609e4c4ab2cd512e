//! The probabilities of actions under exploration, and the sampling of actions, both computed on the host.

use super::Exploration;
use crate::rows::Masks;
use crate::tensor::log_sum_exp;
use crate::{Error, Result};

/// The logits, masks and settings from which actions are sampled. The struct holds no tensors, so threads can
/// share it.
pub(super) struct Behaviour<'a> {
    pub(super) masks: &'a Masks,
    pub(super) legal_ptr: &'a [usize],
    pub(super) logits: &'a [f64],
    pub(super) exploration: &'a Exploration,
}

impl Behaviour<'_> {
    /// Returns the probabilities of the legal slots of state `row` under exploration.
    ///
    /// # Errors
    /// [`Error::NoLegalAction`] for a state without a legal slot.
    pub(super) fn probs(&self, row: usize) -> Result<Vec<f64>> {
        let range = self.legal_ptr[row]..self.legal_ptr[row + 1];
        let mut probs = self.logits[range.clone()].to_vec();
        let Some(last) = probs.last_mut() else {
            return Err(Error::NoLegalAction { row, direction: self.masks.direction });
        };
        if self.masks.has_exit && self.masks.row(row).last() == Some(&true) {
            *last += self.exploration.exit_bias();
        }
        let temperature = self.exploration.temperature();
        if temperature != 1.0 {
            divide_by_temperature(&mut probs, temperature);
        }
        let largest = probs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut sum = 0.0;
        for p in &mut probs {
            *p = (*p - largest).exp();
            sum += *p;
        }
        let epsilon = self.exploration.epsilon_value();
        let factor = (1.0 - epsilon) / sum;
        let uniform = epsilon / probs.len() as f64;
        for p in &mut probs {
            *p = factor * *p + uniform;
        }
        Ok(probs)
    }
}

/// Divides logits by a temperature. If a quotient would overflow, the largest logit is subtracted from all
/// logits first.
fn divide_by_temperature(logits: &mut [f64], temperature: f64) {
    let size = logits.iter().fold(0.0, |size: f64, logit| size.max(logit.abs()));
    let shift = if (size / temperature).is_finite() {
        0.0
    } else {
        logits.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    };
    for logit in logits.iter_mut() {
        *logit = (*logit - shift) / temperature;
    }
}

/// A limit of the largest logit's absolute value. Above it, [`log_softmax`] first subtracts the largest logit
/// from all logits. Without this step, the log of the sum of exponentials could be rounded to the largest
/// logit.
const LARGE_LOGIT: f64 = 1e6;

/// Subtracts the log of the sum of exponentials of all values from each value.
pub(super) fn log_softmax(values: &mut [f64]) {
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest.abs() > LARGE_LOGIT {
        for value in values.iter_mut() {
            *value -= largest;
        }
    }
    let shift = log_sum_exp(values.iter().copied());
    for value in values {
        *value -= shift;
    }
}

/// Returns the first index at which the cumulative sum of `probs` exceeds `u` times the sum of all `probs`.
/// An index of probability zero is never returned.
pub(super) fn inverse_cdf(probs: &[f64], u: f64) -> usize {
    let mut rest = u * probs.iter().sum::<f64>();
    let mut last = 0;
    for (k, &p) in probs.iter().enumerate() {
        if p > 0.0 {
            last = k;
            if rest < p {
                return k;
            }
        }
        rest -= p;
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::direction::Direction;

    #[test]
    fn huge_values_keep_the_logarithm_of_the_sum() {
        let mut values = [1e30, -1e30, 1e30];
        log_softmax(&mut values);
        let half = 0.5f64.ln();
        assert!(
            (values[0] - half).abs() < 1e-15 && values[0] == values[2] && values[1] < -1e30,
            "{values:?}"
        );
    }

    /// Checks that the exit bias is added only if the exit is legal. If the exit is illegal, the last legal
    /// slot is another action, whose probability must not change.
    #[test]
    fn only_a_legal_exit_is_biased() {
        let masks =
            Masks::dense(Direction::Forward, 3, vec![true, true, true, true, true, false], true).unwrap();
        let exploration = Exploration::on_policy().with_exit_bias(2.0).unwrap();
        let behaviour =
            Behaviour { masks: &masks, legal_ptr: &[0, 3, 5], logits: &[0.0; 5], exploration: &exploration };
        let [with_exit, without] = [0, 1].map(|row| behaviour.probs(row).unwrap());
        assert!((with_exit[2] / with_exit[0] - 2f64.exp()).abs() < 1e-12, "{with_exit:?}");
        assert!((without[1] / without[0] - 1.0).abs() < 1e-12, "{without:?}");
    }
}
