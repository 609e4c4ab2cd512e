//! An ordered map with counts and sums: the k-th item, and the item at which a running sum exceeds a number, are found
//! in logarithmic time, also after insertions and removals.
//!
//! It is a treap whose priorities are hashes of the keys' serial numbers. Its shape, and with it the rounding of every
//! sum, depends only on its items, not on their history. So a loaded buffer draws exactly what the saved one would have
//! drawn.

/// A key with a serial number that is unique within its map.
pub(super) trait Key: Ord + Copy {
    /// The serial number.
    fn serial(self) -> u64;
}

impl Key for u64 {
    fn serial(self) -> u64 {
        self
    }
}

/// A quantity that is summed over items.
pub(super) trait Sum: Copy {
    /// The sum of no items.
    const EMPTY: Self;

    /// The sum of this and what follows it.
    #[must_use]
    fn and(self, behind: Self) -> Self;
}

impl Sum for () {
    const EMPTY: Self = ();
    fn and(self, (): Self) -> Self {}
}

/// An index for a missing node.
const NONE: u32 = u32::MAX;

pub(super) struct Ordered<K, V, S> {
    /// Whether sums are kept; counts always are.
    sums: bool,
    nodes: Vec<Node<K, S>>,
    /// The value of each node, stored separately because a search doesn't read values.
    values: Vec<V>,
    root: u32,
}

struct Node<K, S> {
    key: K,
    left: u32,
    right: u32,
    /// Number of nodes in the subtree of this node, itself included.
    count: u32,
    own: S,
    total: S,
}

impl<K: Key, V> Ordered<K, V, ()> {
    /// An empty map with counts only.
    pub(super) fn counting() -> Self {
        Self::new(false)
    }
}

impl<K: Key, V, S: Sum> Ordered<K, V, S> {
    /// An empty map; without `sums` it saves the time to update them.
    pub(super) fn new(sums: bool) -> Self {
        Self { sums, nodes: Vec::new(), values: Vec::new(), root: NONE }
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The sum over all items.
    pub(super) fn total(&self) -> S {
        self.total_at(self.root)
    }

    /// Inserts an item with a new key.
    pub(super) fn insert(&mut self, key: K, value: V, own: S) {
        let new = self.nodes.len() as u32;
        self.nodes.push(Node { key, left: NONE, right: NONE, count: 1, own, total: own });
        self.values.push(value);
        self.root = self.insert_below(self.root, new);
    }

    /// Removes an item.
    pub(super) fn remove(&mut self, key: K) -> Option<V> {
        let hole = self.find(key)?;
        self.root = self.unlink(self.root, key);
        self.nodes.swap_remove(hole);
        let value = self.values.swap_remove(hole);
        if let Some(moved) = self.nodes.get(hole) {
            self.relink(moved.key, self.nodes.len() as u32, hole as u32);
        }
        Some(value)
    }

    /// Calls `change` on the value of a key; it returns the item's new term in sums. Returns whether there is such an
    /// item.
    pub(super) fn update(&mut self, key: K, change: impl FnOnce(&mut V) -> S) -> bool {
        let Some(at) = self.find(key) else { return false };
        self.nodes[at].own = change(&mut self.values[at]);
        if self.sums {
            self.pull_along(self.root, key);
        }
        true
    }

    /// The value of a key.
    pub(super) fn get(&self, key: K) -> Option<&V> {
        self.find(key).map(|at| &self.values[at])
    }

    /// The item that has `k` items before it.
    pub(super) fn nth(&self, mut k: usize) -> Option<(K, &V)> {
        let mut at = self.root;
        while let Some(node) = self.nodes.get(at as usize) {
            let before = self.count_at(node.left) as usize;
            match k.cmp(&before) {
                std::cmp::Ordering::Less => at = node.left,
                std::cmp::Ordering::Equal => return Some((node.key, &self.values[at as usize])),
                std::cmp::Ordering::Greater => {
                    k -= before + 1;
                    at = node.right;
                }
            }
        }
        None
    }

    /// The first item at which the running sum of `mass` exceeds `u`, or else the last item; `mass` is the number for a
    /// sum.
    pub(super) fn at_mass(&self, mut u: f64, mass: impl Fn(S) -> f64) -> Option<(K, &V)> {
        let mut at = self.root;
        while let Some(node) = self.nodes.get(at as usize) {
            let before = mass(self.total_at(node.left));
            if node.left != NONE && u < before {
                at = node.left;
                continue;
            }
            let behind = u - before - mass(node.own);
            if behind < 0.0 || node.right == NONE {
                return Some((node.key, &self.values[at as usize]));
            }
            u = behind;
            at = node.right;
        }
        None
    }

    /// Calls `change` on each item, in no particular order; sums don't change.
    pub(super) fn for_each_mut(&mut self, mut change: impl FnMut(K, &mut V)) {
        self.nodes.iter().zip(&mut self.values).for_each(|(node, value)| change(node.key, value));
    }

    /// All items in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        let mut path = Vec::new();
        let mut at = self.root;
        std::iter::from_fn(move || {
            while let Some(node) = self.nodes.get(at as usize) {
                path.push(at as usize);
                at = node.left;
            }
            let next = path.pop()?;
            at = self.nodes[next].right;
            Some((self.nodes[next].key, &self.values[next]))
        })
    }

    fn find(&self, key: K) -> Option<usize> {
        let mut at = self.root;
        while let Some(node) = self.nodes.get(at as usize) {
            at = match key.cmp(&node.key) {
                std::cmp::Ordering::Less => node.left,
                std::cmp::Ordering::Equal => return Some(at as usize),
                std::cmp::Ordering::Greater => node.right,
            };
        }
        None
    }

    fn count_at(&self, at: u32) -> u32 {
        self.nodes.get(at as usize).map_or(0, |node| node.count)
    }

    fn total_at(&self, at: u32) -> S {
        self.nodes.get(at as usize).map_or(S::EMPTY, |node| node.total)
    }

    /// Recomputes count and sum of a node from its two children.
    fn pull(&mut self, at: u32) {
        let Node { left, right, own, .. } = self.nodes[at as usize];
        self.nodes[at as usize].count = 1 + self.count_at(left) + self.count_at(right);
        if self.sums {
            self.nodes[at as usize].total = self.total_at(left).and(own).and(self.total_at(right));
        }
    }

    /// Same as [`pull`](Self::pull) if the new count is known: without sums, the children aren't read.
    fn pull_counted(&mut self, at: u32, count: u32) {
        if self.sums {
            self.pull(at);
        }
        self.nodes[at as usize].count = count;
    }

    fn pull_along(&mut self, at: u32, key: K) {
        let node = &self.nodes[at as usize];
        match key.cmp(&node.key) {
            std::cmp::Ordering::Less => self.pull_along(node.left, key),
            std::cmp::Ordering::Equal => {}
            std::cmp::Ordering::Greater => self.pull_along(node.right, key),
        }
        self.pull(at);
    }

    fn above(&self, a: u32, b: u32) -> bool {
        priority(self.nodes[a as usize].key) > priority(self.nodes[b as usize].key)
    }

    /// Splits a subtree into the keys below `key` and the others.
    fn split(&mut self, at: u32, key: K) -> (u32, u32) {
        if at == NONE {
            return (NONE, NONE);
        }
        let (left, right) = (self.nodes[at as usize].left, self.nodes[at as usize].right);
        let parts = if self.nodes[at as usize].key < key {
            let (low, high) = self.split(right, key);
            self.nodes[at as usize].right = low;
            (at, high)
        } else {
            let (low, high) = self.split(left, key);
            self.nodes[at as usize].left = high;
            (low, at)
        };
        self.pull(at);
        parts
    }

    /// Joins two trees, where all keys of the first are below all of the second.
    fn merge(&mut self, a: u32, b: u32) -> u32 {
        if a == NONE || b == NONE {
            return if a == NONE { b } else { a };
        }
        if self.above(a, b) {
            let merged = self.merge(self.nodes[a as usize].right, b);
            self.nodes[a as usize].right = merged;
            self.pull(a);
            a
        } else {
            let merged = self.merge(a, self.nodes[b as usize].left);
            self.nodes[b as usize].left = merged;
            self.pull(b);
            b
        }
    }

    fn insert_below(&mut self, at: u32, new: u32) -> u32 {
        if at == NONE {
            return new;
        }
        let key = self.nodes[new as usize].key;
        if self.above(new, at) {
            let (left, right) = self.split(at, key);
            let node = &mut self.nodes[new as usize];
            (node.left, node.right) = (left, right);
            self.pull(new);
            return new;
        }
        if key < self.nodes[at as usize].key {
            let left = self.insert_below(self.nodes[at as usize].left, new);
            self.nodes[at as usize].left = left;
        } else {
            let right = self.insert_below(self.nodes[at as usize].right, new);
            self.nodes[at as usize].right = right;
        }
        self.pull_counted(at, self.nodes[at as usize].count + 1);
        at
    }

    /// The subtree without a key that it contains.
    fn unlink(&mut self, at: u32, key: K) -> u32 {
        let Node { key: here, left, right, .. } = self.nodes[at as usize];
        match key.cmp(&here) {
            std::cmp::Ordering::Equal => return self.merge(left, right),
            std::cmp::Ordering::Less => self.nodes[at as usize].left = self.unlink(left, key),
            std::cmp::Ordering::Greater => self.nodes[at as usize].right = self.unlink(right, key),
        }
        self.pull_counted(at, self.nodes[at as usize].count - 1);
        at
    }

    /// Updates the link to this key's node after the node has moved.
    fn relink(&mut self, key: K, from: u32, to: u32) {
        if self.root == from {
            self.root = to;
            return;
        }
        let mut at = self.root as usize;
        while let Some(node) = self.nodes.get_mut(at) {
            let below = if key < node.key { &mut node.left } else { &mut node.right };
            if *below == from {
                *below = to;
                return;
            }
            at = *below as usize;
        }
    }
}

/// Hashes a serial number, one to one (splitmix64).
fn priority<K: Key>(key: K) -> u64 {
    crate::Rng::mix64(key.serial().wrapping_add(0x9e37_79b9_7f4a_7c15))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, PartialEq, Debug)]
    struct Total(f64);

    impl Sum for Total {
        const EMPTY: Self = Self(0.0);
        fn and(self, behind: Self) -> Self {
            Self(self.0 + behind.0)
        }
    }

    proptest! {
        /// Agrees with a plain list under random insertions and removals.
        #[test]
        fn items_are_found_as_in_a_list(moves in prop::collection::vec((0u64..60, 0u32..3, 0.0f64..1.0), 0..200)) {
            let mut map = Ordered::<u64, u64, Total>::new(true);
            let mut list: Vec<(u64, f64)> = Vec::new();
            for (key, kind, weight) in moves {
                let place = list.binary_search_by_key(&key, |item| item.0);
                match (kind, place) {
                    (0, Ok(i)) => {
                        prop_assert_eq!(map.remove(key), Some(key + 1));
                        list.remove(i);
                    }
                    (0, Err(_)) => prop_assert_eq!(map.remove(key), None),
                    (1, Ok(i)) => {
                        let changed = map.update(key, |_| Total(weight));
                        prop_assert!(changed);
                        list[i].1 = weight;
                    }
                    (_, Err(i)) => {
                        map.insert(key, key + 1, Total(weight));
                        list.insert(i, (key, weight));
                    }
                    _ => {}
                }
                prop_assert_eq!(map.len(), list.len());
            }
            prop_assert!(map.iter().map(|item| item.0).eq(list.iter().map(|item| item.0)));
            let mut sum = 0.0;
            for (k, &(key, weight)) in list.iter().enumerate() {
                prop_assert_eq!(map.nth(k), Some((key, &(key + 1))));
                prop_assert_eq!(map.get(key), Some(&(key + 1)));
                if weight > 1e-6 {
                    let middle = sum + weight / 2.0;
                    prop_assert_eq!(map.at_mass(middle, |total| total.0).map(|item| item.0), Some(key));
                }
                sum += weight;
            }
            prop_assert!(map.nth(list.len()).is_none());
            prop_assert!((map.total().0 - sum).abs() < 1e-9);
            prop_assert_eq!(map.at_mass(1e9, |total| total.0).map(|item| item.0), list.last().map(|item| item.0));
        }
    }

    #[test]
    fn sums_have_the_bits_of_what_is_held_however_it_came() {
        let weight = |key: u64| Total(1.0 / (key as f64 + 0.3));
        let mut straight = Ordered::<u64, (), Total>::new(true);
        (500..1500).for_each(|key| straight.insert(key, (), weight(key)));
        let mut winding = Ordered::<u64, (), Total>::new(true);
        (0..1500).rev().for_each(|key| winding.insert(key, (), Total(0.7)));
        (0..500).for_each(|key| assert!(winding.remove(key).is_some()));
        (500..1500).for_each(|key| assert!(winding.update(key, |()| weight(key))));
        assert_eq!(straight.total().0.to_bits(), winding.total().0.to_bits());
    }
}
