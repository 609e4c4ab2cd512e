//! The reward and the diversity of the best samples.

use crate::{Error, Result};

/// Reward and diversity of the k samples with the largest reward (Bengio et al., *Flow Network based
/// Generative Models for Non-Iterative Diverse Candidate Generation*, 2021).
///
/// An object that was sampled twice counts twice, so a sampler that collapsed onto few objects has little
/// diversity. To rank distinct objects instead of samples, remove duplicates before.
///
/// ```
/// use gfn::metrics::TopK;
/// let objects = [0.0, 10.0, 4.0, 5.0];
/// let log_rewards = [0.0, 3.0, 1.0, 2.0];
/// let top = TopK::new(&log_rewards, 3, |i, j| f64::abs(objects[i] - objects[j]))?;
/// assert_eq!(top.rows, [1, 3, 2]);
/// assert_eq!((top.mean_log_reward, top.diversity), (2.0, 4.0));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct TopK {
    /// The indices of the best samples, in descending order of reward. Samples of equal reward keep their
    /// order.
    pub rows: Vec<usize>,
    /// The mean reward of the best samples; infinite if a reward or their sum exceeds the range of f64.
    pub mean_reward: f64,
    /// The mean log-reward of the best samples.
    pub mean_log_reward: f64,
    /// The mean distance between pairs of the best samples; 0 for a single sample.
    pub diversity: f64,
}

impl TopK {
    /// Finds the `k` samples with the largest reward. `distance(i, j)` is the distance between samples `i`
    /// and `j`. `distance` is called with the sample of larger reward first.
    ///
    /// # Errors
    /// [`Error::Config`] if `k` is 0 or larger than the number of samples; [`Error::NonFinite`] for a
    /// log-reward that is NaN.
    pub fn new(log_rewards: &[f64], k: usize, distance: impl Fn(usize, usize) -> f64) -> Result<Self> {
        if k == 0 || k > log_rewards.len() {
            return Err(Error::config(
                "the number of best samples",
                format!("{k} of {}", log_rewards.len()),
                "at least one, and at most the number of samples",
            ));
        }
        if let Some(row) = log_rewards.iter().position(|value| value.is_nan()) {
            return Err(Error::non_finite(
                "a log-reward",
                row,
                log_rewards[row],
                "let the reward return finite numbers, because samples are ranked by them",
            ));
        }
        let mut rows: Vec<usize> = (0..log_rewards.len()).collect();
        rows.sort_by(|&i, &j| log_rewards[j].total_cmp(&log_rewards[i]));
        rows.truncate(k);
        let best = rows.iter().map(|&row| log_rewards[row]);
        let pairs = rows.iter().enumerate().flat_map(|(a, &i)| rows[a + 1..].iter().map(move |&j| (i, j)));
        let total: f64 = pairs.map(|(i, j)| distance(i, j)).sum();
        Ok(Self {
            mean_reward: best.clone().map(f64::exp).sum::<f64>() / k as f64,
            mean_log_reward: best.sum::<f64>() / k as f64,
            diversity: total / (k * (k - 1) / 2).max(1) as f64,
            rows,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_keep_their_order_and_bad_input_is_refused() {
        let distance = |i: usize, j: usize| (i * 10 + j) as f64;
        let top = TopK::new(&[1.0, 2.0, 2.0, f64::NEG_INFINITY], 2, distance).unwrap();
        assert_eq!((top.rows, top.diversity), (vec![1, 2], 12.0));
        assert!((top.mean_reward - 2f64.exp()).abs() < 1e-12);
        let one = TopK::new(&[1.0, 2.0], 1, distance).unwrap();
        assert_eq!((one.rows, one.diversity), (vec![1], 0.0));
        let zero = TopK::new(&[f64::NEG_INFINITY, 0.0], 2, distance).unwrap();
        assert_eq!((zero.mean_reward, zero.mean_log_reward), (0.5, f64::NEG_INFINITY));
        for k in [0, 3] {
            assert!(matches!(TopK::new(&[1.0, 2.0], k, distance), Err(Error::Config { .. })));
        }
        assert!(matches!(TopK::new(&[1.0, f64::NAN], 1, distance), Err(Error::NonFinite { row: 1, .. })));
    }
}
