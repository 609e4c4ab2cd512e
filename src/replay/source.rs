use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The shares of a batch's trajectories by source: sampled from the policy in this step, replayed from a
/// buffer, and drawn from an offline data set.
///
/// ```
/// use gfn::replay::{DataSource, SourceCounts};
/// let source = DataSource::new(0.5, 0.25, 0.25)?;
/// assert_eq!(source.counts(10), SourceCounts { on_policy: 5, replay: 3, offline: 2 });
/// assert_eq!(source.without_replay().counts(10), SourceCounts { on_policy: 8, replay: 0, offline: 2 });
/// assert!(DataSource::new(0.5, 0.25, 0.5).is_err());
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Shares", into = "Shares")]
pub struct DataSource(Shares);

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shares {
    on_policy: f64,
    #[serde(default)]
    replay: f64,
    #[serde(default)]
    offline: f64,
}

impl TryFrom<Shares> for DataSource {
    type Error = Error;
    fn try_from(shares: Shares) -> Result<Self> {
        Self::new(shares.on_policy, shares.replay, shares.offline)
    }
}

impl From<DataSource> for Shares {
    fn from(source: DataSource) -> Self {
        source.0
    }
}

/// The number of trajectories from each source in a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SourceCounts {
    /// The number of trajectories sampled from the policy in this step.
    pub on_policy: usize,
    /// The number of trajectories drawn from a replay buffer.
    pub replay: usize,
    /// The number of trajectories drawn from a data set.
    pub offline: usize,
}

impl Default for DataSource {
    /// Returns the shares of a batch whose trajectories are all sampled from the policy.
    fn default() -> Self {
        Self(Shares { on_policy: 1.0, replay: 0.0, offline: 0.0 })
    }
}

impl DataSource {
    /// The allowed difference between the sum of shares and 1, because shares such as 1/3 are rounded.
    const TOLERANCE: f64 = 1e-6;

    /// The shares of a batch of which one half is sampled from the policy and the other half is replayed.
    pub const HALF_REPLAYED: Self = Self(Shares { on_policy: 0.5, replay: 0.5, offline: 0.0 });

    /// Creates the shares of a batch: `on_policy` is sampled from the policy, `replay` is replayed, and
    /// `offline` is drawn from a data set.
    ///
    /// # Errors
    /// [`Error::Config`] unless no share is negative and they sum to 1.
    pub fn new(on_policy: f64, replay: f64, offline: f64) -> Result<Self> {
        let sum = on_policy + replay + offline;
        // Comparisons with NaN are false, so a share of NaN is refused.
        if [on_policy, replay, offline].iter().all(|&share| share >= 0.0)
            && (sum - 1.0).abs() <= Self::TOLERANCE
        {
            return Ok(Self(Shares { on_policy, replay, offline }));
        }
        Err(Error::config(
            "shares of a data source",
            format!("on-policy {on_policy}, replay {replay}, offline {offline} (sum {sum})"),
            "three numbers of at least 0 that sum to 1",
        ))
    }

    /// Returns the share that is drawn from a replay buffer.
    #[must_use]
    pub fn replay(&self) -> f64 {
        self.0.replay
    }

    /// Returns the share that is drawn from a data set.
    #[must_use]
    pub fn offline(&self) -> f64 {
        self.0.offline
    }

    /// Returns the shares to use while the replay buffer is empty: the policy also samples the share of
    /// replay.
    #[must_use]
    pub fn without_replay(self) -> Self {
        Self(Shares { on_policy: self.0.on_policy + self.0.replay, replay: 0.0, ..self.0 })
    }

    /// Returns the number of trajectories of each source in a batch of `batch` trajectories, by the method of
    /// largest remainders: all numbers are rounded down, and then those with the largest remainders are
    /// raised by 1 until the numbers sum to `batch`. If remainders are equal, the policy comes first and
    /// replay second.
    #[must_use]
    pub fn counts(&self, batch: usize) -> SourceCounts {
        let Shares { on_policy, replay, offline } = self.0;
        let sum = on_policy + replay + offline;
        let quotas = [on_policy, replay, offline].map(|share| share / sum * batch as f64);
        let mut counts = quotas.map(|quota| quota as usize);
        let left = batch.saturating_sub(counts.iter().sum());
        let mut order = [0, 1, 2];
        order.sort_by(|&i, &j| (quotas[j] - quotas[j].floor()).total_cmp(&(quotas[i] - quotas[i].floor())));
        for &i in order.iter().take(left) {
            counts[i] += 1;
        }
        SourceCounts { on_policy: counts[0], replay: counts[1], offline: counts[2] }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn counts(shares: [f64; 3], batch: usize) -> [usize; 3] {
        let SourceCounts { on_policy, replay, offline } =
            DataSource::new(shares[0], shares[1], shares[2]).unwrap().counts(batch);
        [on_policy, replay, offline]
    }

    #[test]
    fn shares_are_rounded_by_largest_remainders() {
        assert_eq!(counts([1.0, 0.0, 0.0], 7), [7, 0, 0]);
        assert_eq!(counts([0.5, 0.5, 0.0], 7), [4, 3, 0], "of equal remainders on-policy first");
        assert_eq!(counts([0.0, 0.5, 0.5], 7), [0, 4, 3]);
        let third = 1.0 / 3.0;
        assert_eq!(counts([third, third, third], 10), [4, 3, 3]);
        assert_eq!(counts([third, third, third], 11), [4, 4, 3]);
        // The shares of the 6 trajectories are 1.2, 4.2 and 0.6 before rounding. The third has the largest
        // remainder, so only the third is rounded up.
        assert_eq!(counts([0.2, 0.7, 0.1], 6), [1, 4, 1]);
        assert_eq!(counts([0.7, 0.2, 0.1], 10), [7, 2, 1], "no remainder, whatever the rounding of 0.7 * 10");
        assert_eq!(counts([0.7, 0.2, 0.1], 0), [0, 0, 0]);
        let source = DataSource::new(0.25, 0.5, 0.25).unwrap().without_replay();
        assert_eq!(source, DataSource::new(0.75, 0.0, 0.25).unwrap());
        assert_eq!(DataSource::default().counts(5), SourceCounts { on_policy: 5, ..SourceCounts::default() });
    }

    #[test]
    fn shares_that_make_no_sense_are_refused() {
        for shares in
            [[0.5, 0.25, 0.5], [1.5, -0.5, 0.0], [0.0; 3], [f64::NAN, 0.5, 0.5], [f64::INFINITY, 0.0, 0.0]]
        {
            let error = DataSource::new(shares[0], shares[1], shares[2]).unwrap_err();
            assert!(matches!(error, Error::Config { setting: "shares of a data source", .. }), "{error}");
        }
        for text in [r#"{"on_policy":0.5}"#, r#"{"replay":1.0}"#, r#"{"on_policy":1.0,"online":0.0}"#] {
            assert!(serde_json::from_str::<DataSource>(text).is_err(), "{text}");
        }
        let source = DataSource::new(0.5, 0.2, 0.3).unwrap();
        let text = serde_json::to_string(&source).unwrap();
        assert_eq!(serde_json::from_str::<DataSource>(&text).unwrap(), source);
        assert_eq!(
            serde_json::from_str::<DataSource>(r#"{"on_policy":1.0}"#).unwrap(),
            DataSource::default()
        );
    }

    proptest! {
        #[test]
        fn counts_sum_to_the_batch_and_are_within_one_of_their_share(
            weights in [0u32..100, 0..100, 1..100],
            batch in 0usize..100_000,
        ) {
            let sum = f64::from(weights.iter().sum::<u32>());
            let shares = weights.map(|weight| f64::from(weight) / sum);
            let counts = counts(shares, batch);
            prop_assert_eq!(counts.iter().sum::<usize>(), batch);
            for (count, share) in counts.iter().zip(shares) {
                prop_assert!((*count as f64 - share * batch as f64).abs() < 1.0 + 1e-6);
                prop_assert!(share > 0.0 || *count == 0);
            }
        }
    }
}
