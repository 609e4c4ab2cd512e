//! Batches of rows, and the grouping of equal rows.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use smallvec::SmallVec;

use crate::{Error, Result};

/// A batch of rows: states or actions.
pub trait Rows: Clone + Send + Sync {
    /// Returns the number of rows.
    fn len(&self) -> usize;

    /// Returns `true` if there is no row.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the rows at these indices, in this order. An index may occur several times.
    #[must_use]
    fn select(&self, rows: &[usize]) -> Self;

    /// Appends the rows of another batch after the rows of this batch.
    fn append(&mut self, other: Self);

    /// Returns the rows in another order, given as a permutation. The result is that of
    /// [`select`](Rows::select), but rows may be moved instead of copied.
    #[must_use]
    fn permute(self, order: &[usize]) -> Self {
        self.select(order)
    }

    /// Describes a row in words, for messages. If the result is `None` (the default), messages show the key
    /// by which the environment identifies the row.
    fn describe(&self, _row: usize) -> Option<String> {
        None
    }

    /// Groups equal rows, so that a network evaluates each distinct row only once.
    ///
    /// By default each row is a separate group.
    fn group(&self) -> Grouping {
        Grouping::identity(self.len())
    }
}

/// A batch of actions of a [`DiscreteEnv`](crate::env::DiscreteEnv): one slot index per row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slots(pub Vec<u32>);

impl Slots {
    /// A number that isn't a slot of any state.
    pub const NONE: u32 = u32::MAX;

    /// Converts the index of a slot, counted over all slots of a state, to the number type that [`Slots`]
    /// stores.
    ///
    /// ```
    /// use gfn::env::Slots;
    /// assert_eq!(Slots::slot(7)?, 7);
    /// assert!(Slots::slot(5_000_000_000).is_err());
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for an index that doesn't fit in 32 bits.
    pub fn slot(index: usize) -> Result<u32> {
        let slot = u32::try_from(index).ok().filter(|&slot| slot != Self::NONE);
        slot.ok_or_else(|| {
            Error::config(
                "the number of slots of a state",
                format!("at least {index}"),
                "fewer than 4294967295, because a slot has 32 bits: use fewer nodes (the number of pairs \
                 grows with their square) or fewer classes",
            )
        })
    }
}

impl Rows for Slots {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn select(&self, rows: &[usize]) -> Self {
        Self(rows.iter().map(|&i| self.0[i]).collect())
    }
    fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }
    fn describe(&self, row: usize) -> Option<String> {
        self.0.get(row).map(u32::to_string)
    }
}

/// Groups of equal rows of a batch: `first[g]` is the first row of group `g`, and `group_of[i]` is the group
/// of row `i`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grouping {
    /// The first row of each group, in ascending order.
    pub first: Vec<usize>,
    /// The group of each row.
    pub group_of: Vec<usize>,
}

impl Grouping {
    /// Creates `n` groups of one row each.
    #[must_use]
    pub fn identity(n: usize) -> Self {
        Self { first: (0..n).collect(), group_of: (0..n).collect() }
    }

    /// Groups equal rows by their hashes and an exact comparison. Rows with equal hashes that differ stay in
    /// different groups.
    ///
    /// ```
    /// use gfn::env::Grouping;
    /// let rows = ["a", "b", "a"];
    /// let grouping = Grouping::by(&[1, 2, 1], |i, j| rows[i] == rows[j]);
    /// assert_eq!(grouping.first, [0, 1]);
    /// assert_eq!(grouping.group_of, [0, 1, 0]);
    /// ```
    #[must_use]
    pub fn by(hashes: &[u64], equal: impl Fn(usize, usize) -> bool) -> Self {
        let mut groups: HashMap<u64, Vec<usize>, BuildHasherDefault<Identity>> =
            HashMap::with_capacity_and_hasher(hashes.len(), BuildHasherDefault::default());
        let mut out = Self { first: Vec::new(), group_of: Vec::with_capacity(hashes.len()) };
        for (row, &hash) in hashes.iter().enumerate() {
            let candidates = groups.entry(hash).or_default();
            let known = candidates.iter().copied().find(|&g| equal(out.first[g], row));
            let group = known.unwrap_or_else(|| {
                candidates.push(out.first.len());
                out.first.push(row);
                out.first.len() - 1
            });
            out.group_of.push(group);
        }
        out
    }

    /// Groups rows with equal keys.
    pub(crate) fn by_key<K: Hash + Eq>(keys: impl IntoIterator<Item = K>) -> Self {
        let mut groups = HashMap::new();
        let mut out = Self { first: Vec::new(), group_of: Vec::new() };
        for (row, key) in keys.into_iter().enumerate() {
            let next = out.first.len();
            let group = *groups.entry(key).or_insert(next);
            if group == next {
                out.first.push(row);
            }
            out.group_of.push(group);
        }
        out
    }

    /// Returns `true` if some group has several rows.
    #[must_use]
    pub fn merges(&self) -> bool {
        self.first.len() < self.group_of.len()
    }
}

/// Classes of rows for which a policy returns the same result, although the rows aren't equal. In an
/// environment up to isomorphism these are graphs that differ only in their labels. A policy is evaluated for
/// one row of each class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    /// The classes as groups of rows. The first row of a class represents it.
    pub grouping: Grouping,
    /// The nodes of each row, ordered so that node `k` of a row corresponds to node `k` of the other rows of
    /// its class.
    pub orders: Vec<SmallVec<[u32; 16]>>,
}

/// A hasher that returns the number that it gets. The keys are hashes already, so they needn't be hashed
/// again.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
