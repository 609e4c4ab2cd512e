//! A set type for the nodes of a graph.

/// A set of nodes with indices below 256. It is stored in 256 bits, so copies are cheap.
///
/// ```
/// use gfn_dags::NodeSet;
/// let set: NodeSet = [3, 130].into_iter().collect();
/// assert!(set.contains(130) && !set.contains(4));
/// assert_eq!((set.len(), set.iter().collect::<Vec<_>>()), (2, vec![3, 130]));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct NodeSet([u64; 4]);

impl NodeSet {
    /// The empty set.
    pub const EMPTY: Self = Self([0; 4]);

    /// Creates a set from the bits of a 64-bit word: node `k`, from 0 to 63, is in the set if bit `k` is 1.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self([bits, 0, 0, 0])
    }

    /// Returns a 64-bit word in which bit `k` is 1 if node `k` is in the set. Nodes from 64 on are ignored.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.0[0]
    }

    /// Adds a node to the set.
    ///
    /// # Panics
    /// If the index of the node is 256 or more.
    pub fn insert(&mut self, node: usize) {
        self.0[node / 64] |= 1 << (node % 64);
    }

    /// Returns a copy of the set that has an additional node.
    ///
    /// # Panics
    /// If the index of the node is 256 or more.
    #[must_use]
    pub fn with(mut self, node: usize) -> Self {
        self.insert(node);
        self
    }

    /// Returns a copy of the set from which a node is removed.
    ///
    /// # Panics
    /// If the index of the node is 256 or more.
    #[must_use]
    pub fn without(mut self, node: usize) -> Self {
        self.0[node / 64] &= !(1 << (node % 64));
        self
    }

    /// Returns the nodes that are in at least one of the two sets.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(std::array::from_fn(|k| self.0[k] | other.0[k]))
    }

    /// Returns the nodes of this set that aren't in the other set.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self(std::array::from_fn(|k| self.0[k] & !other.0[k]))
    }

    /// Returns `true` if a node is in the set.
    #[must_use]
    pub fn contains(&self, node: usize) -> bool {
        self.0.get(node / 64).is_some_and(|word| word >> (node % 64) & 1 == 1)
    }

    /// Returns the number of nodes in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns `true` if the set has no node.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::EMPTY
    }

    /// Iterates over the nodes in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + use<> {
        let mut words = self.0;
        let mut k = 0;
        std::iter::from_fn(move || {
            while words.get(k) == Some(&0) {
                k += 1;
            }
            let word = words.get_mut(k)?;
            let bit = word.trailing_zeros() as usize;
            *word &= *word - 1;
            Some(64 * k + bit)
        })
    }
}

impl FromIterator<usize> for NodeSet {
    fn from_iter<I: IntoIterator<Item = usize>>(nodes: I) -> Self {
        nodes.into_iter().fold(Self::EMPTY, Self::with)
    }
}

/// Returns all subsets of `nodes` that have at most `most` nodes.
pub(crate) fn subsets(nodes: &[usize], most: usize) -> Vec<NodeSet> {
    let mut out = vec![NodeSet::EMPTY];
    let mut last = vec![(0, NodeSet::EMPTY)];
    for _ in 0..most {
        let longer =
            |&(from, set): &(usize, NodeSet)| (from..nodes.len()).map(move |k| (k + 1, set.with(nodes[k])));
        last = last.iter().flat_map(longer).collect();
        out.extend(last.iter().map(|(_, set)| *set));
    }
    out
}

/// Returns the number of subsets of `n` nodes that have at most `most` nodes; `None` if it doesn't fit into a
/// `usize`.
pub(crate) fn count_subsets(n: usize, most: usize) -> Option<usize> {
    (0..=most).try_fold(0usize, |sum, k| sum.checked_add(binomial(n, k)?))
}

fn binomial(n: usize, k: usize) -> Option<usize> {
    (0..k).try_fold(1usize, |product, i| Some(product.checked_mul(n - i)? / (i + 1)))
}
