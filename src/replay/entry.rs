//! What a buffer holds of an object, and how objects are ranked.

use super::diversity::Cell;
use super::ordered::Key;
use crate::env::Env;
use crate::rollout::Walks;

pub(super) struct Entry<E: Env> {
    pub(super) actions: E::Actions,
    pub(super) terminal: E::States,
    pub(super) condition: Vec<f64>,
    /// Where a diverse buffer has its vector; nowhere in particular in others.
    pub(super) cell: Cell,
    pub(super) log_reward: f64,
    /// The absolute loss of the last visit.
    pub(super) loss: Option<f64>,
}

impl<E: Env> Entry<E> {
    /// What its loss ranks by: what was never visited comes first.
    pub(super) fn ranking_loss(&self) -> f64 {
        self.loss.unwrap_or(f64::INFINITY)
    }
}

/// One walk that may come in.
pub(super) struct Offer<E: Env> {
    pub(super) walk: Walks<E>,
    pub(super) condition: Vec<f64>,
    pub(super) log_reward: f64,
}

/// Orders entries: least value first, and of equal ones the newest.
#[derive(PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
pub(super) struct Rank(pub(super) u64, pub(super) std::cmp::Reverse<u64>);

impl Rank {
    pub(super) fn new(value: f64, serial: u64) -> Self {
        // Orders floats as integers: flip the sign bit, and all bits of negative ones.
        let bits = value.to_bits();
        let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
        Self(ordered, std::cmp::Reverse(serial))
    }
}

impl Key for Rank {
    fn serial(self) -> u64 {
        self.1.0
    }
}
