//! A binary tree of the weights of a buffer's entries, ordered by serial number.

use super::weights::Weights;

/// A binary tree over all serial numbers. A leaf holds the weight of the entry with one serial number, and
/// each other node holds the sum of its two subtrees.
///
/// Only subtrees with entries have nodes. A sum depends, to the last bit, only on the entries and not on the
/// order in which they were added or removed, so that a loaded buffer makes the same draws as the saved
/// buffer.
pub(super) struct SumTree {
    /// The nodes of the tree. Node 0 (`EMPTY`) represents every subtree without entries.
    nodes: Vec<Node>,
    /// The indices in `nodes` that are no longer used and can be used again.
    free: Vec<usize>,
    root: usize,
}

struct Node {
    halves: [usize; 2],
    sum: Weights,
}

const EMPTY: usize = 0;

/// The number of bits of a serial number, which is the height of the tree.
const HEIGHT: u32 = u64::BITS;

impl Default for SumTree {
    fn default() -> Self {
        let nodes = vec![Node { halves: [EMPTY; 2], sum: Weights::NONE }];
        Self { nodes, free: Vec::new(), root: EMPTY }
    }
}

impl SumTree {
    /// Returns the sum of the weights of all entries.
    pub(super) fn total(&self) -> Weights {
        self.nodes[self.root].sum
    }

    /// Sets the weights of an entry; `None` removes the entry.
    pub(super) fn set(&mut self, serial: u64, weights: Option<Weights>) {
        self.root = self.set_below(self.root, HEIGHT, serial, weights);
    }

    /// Sets the weights of an entry in the subtree of node `at`, which has the height `height`. Returns the
    /// index of the node that replaces `at`.
    fn set_below(&mut self, at: usize, height: u32, serial: u64, weights: Option<Weights>) -> usize {
        let mut halves = self.nodes[at].halves;
        let mut sum = weights.unwrap_or(Weights::NONE);
        if let Some(height) = height.checked_sub(1) {
            let side = (serial >> height & 1) as usize;
            halves[side] = self.set_below(halves[side], height, serial, weights);
            sum = self.nodes[halves[0]].sum.and(self.nodes[halves[1]].sum);
        }
        if sum.count > 0 {
            return self.put(at, Node { halves, sum });
        }
        if at != EMPTY {
            self.free.push(at);
        }
        EMPTY
    }

    /// Stores a node at index `at`, or at an unused index if `at` is the empty node. Returns the index of the
    /// stored node.
    fn put(&mut self, at: usize, node: Node) -> usize {
        let at = if at == EMPTY { self.free.pop().unwrap_or(self.nodes.len()) } else { at };
        match self.nodes.get_mut(at) {
            Some(old) => *old = node,
            None => self.nodes.push(node),
        }
        at
    }

    /// Sums the entries' weights in the order of serial numbers until the sum exceeds `u`, and returns the
    /// serial number of the last entry in this sum. `mass` converts a sum of weights to a number. The tree
    /// must have an entry.
    pub(super) fn at_mass(&self, mut u: f64, mass: impl Fn(Weights) -> f64) -> u64 {
        let mut at = self.root;
        let mut serial = 0;
        for _ in 0..HEIGHT {
            let [left, right] = self.nodes[at].halves;
            let before = if left == EMPTY { 0.0 } else { mass(self.nodes[left].sum) };
            let goes_right = left == EMPTY || (right != EMPTY && u >= before);
            if goes_right {
                u -= before;
            }
            at = if goes_right { right } else { left };
            serial = serial << 1 | u64::from(goes_right);
        }
        serial
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn weights(weight: f64) -> Weights {
        Weights::from_log_weight(weight.ln())
    }

    proptest! {
        /// Checks that random insertions, changes and removals give the same sums as a plain list.
        #[test]
        fn entries_are_found_as_in_a_list(
            moves in prop::collection::vec((0u64..90, 0u32..3, 0.0f64..1.0), 0..300),
            shift in prop::sample::select(vec![0u64, 1 << 20, (1 << 60) - 7]),
        ) {
            let mut tree = SumTree::default();
            let mut list = std::collections::BTreeMap::new();
            for (serial, kind, weight) in moves {
                let serial = serial + shift * (serial % 2);
                if kind == 0 {
                    tree.set(serial, None);
                    list.remove(&serial);
                } else {
                    tree.set(serial, Some(weights(weight)));
                    list.insert(serial, weight);
                }
                prop_assert_eq!(tree.total().count as usize, list.len());
            }
            let whole: f64 = list.values().sum();
            prop_assert!((tree.total().over(0.0) - whole).abs() < 1e-9);
            let mut sum = 0.0;
            for (k, (&serial, &weight)) in list.iter().enumerate() {
                prop_assert_eq!(tree.at_mass(k as f64, |sum| f64::from(sum.count)), serial);
                if weight > 1e-6 {
                    prop_assert_eq!(tree.at_mass(sum + weight / 2.0, |sum| sum.over(0.0)), serial);
                }
                sum += weight;
            }
            if let Some((&last, _)) = list.last_key_value() {
                prop_assert_eq!(tree.at_mass(1e9, |sum| sum.over(0.0)), last);
            }
            for &serial in list.keys() { tree.set(serial, None); }
            prop_assert_eq!((tree.root, tree.free.len() + 1), (EMPTY, tree.nodes.len()), "no node is lost");
        }
    }

    #[test]
    fn sums_have_the_bits_of_what_is_held_however_it_came() {
        let weight = |serial: u64| Some(weights(1.0 / (serial as f64 + 0.3)));
        let mut straight = SumTree::default();
        let mut winding = SumTree::default();
        for serial in 500..1500 {
            straight.set(serial, weight(serial));
        }
        for serial in (0..9000).rev() {
            winding.set(serial, Some(weights(0.7)));
        }
        (0..500).chain(1500..9000).for_each(|serial| winding.set(serial, None));
        for serial in 500..1500 {
            winding.set(serial, weight(serial));
        }
        let [a, b] = [straight.total(), winding.total()].map(|sum| (sum.over(0.0).to_bits(), sum.count));
        assert_eq!(a, b);
    }
}
