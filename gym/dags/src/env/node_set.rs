//! Sets of nodes.

use super::closure::ones;

/// A set of nodes: 256 bits, copied freely.
///
/// ```
/// use gfn_dags::NodeSet;
/// let set: NodeSet = [3, 130].into_iter().collect();
/// assert!(set.contains(130) && !set.contains(4));
/// assert_eq!((set.len(), set.iter().collect::<Vec<_>>()), (2, vec![3, 130]));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct NodeSet([u64; NodeSet::WORDS]);

impl NodeSet {
    pub(super) const WORDS: usize = 4;

    /// No node.
    pub const EMPTY: Self = Self([0; Self::WORDS]);

    /// The nodes of a row of bits.
    pub(super) fn of_row(row: &[u64]) -> Self {
        let mut words = [0; Self::WORDS];
        words[..row.len()].copy_from_slice(row);
        Self(words)
    }

    /// Nodes `0..64` by the bits of a word.
    #[must_use]
    pub fn of_bits(bits: u64) -> Self {
        let mut out = Self::EMPTY;
        out.0[0] = bits;
        out
    }

    /// Nodes `0..64` as the bits of a word; later ones are left out.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.0[0]
    }

    pub(crate) fn words(&self) -> &[u64; Self::WORDS] {
        &self.0
    }

    /// Adds a node.
    ///
    /// # Panics
    /// For a node of 256 or more.
    pub fn insert(&mut self, node: usize) {
        self.0[node / 64] |= 1 << (node % 64);
    }

    /// The set with one more node.
    ///
    /// # Panics
    /// For a node of 256 or more.
    #[must_use]
    pub fn with(mut self, node: usize) -> Self {
        self.insert(node);
        self
    }

    /// The set without a node.
    ///
    /// # Panics
    /// For a node of 256 or more.
    #[must_use]
    pub fn without(mut self, node: usize) -> Self {
        self.0[node / 64] &= !(1 << (node % 64));
        self
    }

    /// What is in either set.
    #[must_use]
    pub fn union(mut self, other: Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word |= other);
        self
    }

    /// Whether a node is in it.
    #[must_use]
    pub fn contains(&self, node: usize) -> bool {
        self.0.get(node / 64).is_some_and(|word| word >> (node % 64) & 1 == 1)
    }

    /// The number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; Self::WORDS]
    }

    /// The nodes, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        ones(&self.0)
    }
}

impl FromIterator<usize> for NodeSet {
    fn from_iter<I: IntoIterator<Item = usize>>(nodes: I) -> Self {
        let mut out = Self::EMPTY;
        nodes.into_iter().for_each(|node| out.insert(node));
        out
    }
}
