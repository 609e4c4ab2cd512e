//! A tracker that counts the distinct modes found during a run.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The number of modes found up to some step of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ModeCount {
    /// The number of training steps made.
    pub step: usize,
    /// The number of objects whose reward was computed up to this step.
    pub reward_calls: u64,
    /// The number of distinct modes found up to this step.
    pub modes: usize,
}

/// A counter of the distinct modes found, as a function of training steps and of reward calls.
///
/// Modes are distinguished by a key, such as the key of an [`EnumerableEnv`](crate::env::EnumerableEnv): up
/// to isomorphism an object counts once under all its labellings. [`CountModes`](crate::run::CountModes) uses
/// a tracker during training.
///
/// ```
/// use gfn::metrics::ModeTracker;
/// let mut tracker = ModeTracker::new();
/// tracker.add(1, 16, ["a", "b", "a"]);
/// tracker.add(2, 32, ["b"]);
/// tracker.add(3, 48, ["c"]);
/// assert_eq!(tracker.n_modes(), 3);
/// let curve: Vec<_> =
///     tracker.curve().iter().map(|point| (point.step, point.reward_calls, point.modes)).collect();
/// assert_eq!(curve, [(1, 16, 2), (3, 48, 3)]);
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(bound(serialize = "K: Serialize", deserialize = "K: Ord + Deserialize<'de>"))]
pub struct ModeTracker<K> {
    modes: BTreeSet<K>,
    curve: Vec<ModeCount>,
}

impl<K> Default for ModeTracker<K> {
    fn default() -> Self {
        Self { modes: BTreeSet::new(), curve: Vec::new() }
    }
}

impl<K: Ord> ModeTracker<K> {
    /// Creates a tracker without modes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a tracker from the keys of its modes and the points of its curve (the steps in which the
    /// number of modes rose). Returns `None` unless the counts rise from point to point and the last count is
    /// the number of modes.
    pub(crate) fn from_parts(modes: BTreeSet<K>, curve: Vec<ModeCount>) -> Option<Self> {
        let rises =
            curve.first().is_none_or(|point| point.modes > 0) && curve.is_sorted_by(|a, b| a.modes < b.modes);
        let last = curve.last().map_or(0, |point| point.modes);
        (rises && last == modes.len()).then_some(Self { modes, curve })
    }

    /// Returns the keys of the modes as a set.
    pub(crate) fn set(&self) -> &BTreeSet<K> {
        &self.modes
    }

    /// Adds the keys of the modes that were sampled in a step. `step` and `reward_calls` are counted from the
    /// start of the run.
    pub fn add(&mut self, step: usize, reward_calls: u64, modes: impl IntoIterator<Item = K>) {
        let before = self.modes.len();
        self.modes.extend(modes);
        if self.modes.len() > before {
            self.curve.push(ModeCount { step, reward_calls, modes: self.modes.len() });
        }
    }

    /// Returns the number of distinct modes found.
    #[must_use]
    pub fn n_modes(&self) -> usize {
        self.modes.len()
    }

    /// Iterates over the keys of the modes, in ascending order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.modes.iter()
    }

    /// Returns the points at which the number of modes rose. Between two points this number is constant.
    #[must_use]
    pub fn curve(&self) -> &[ModeCount] {
        &self.curve
    }
}
