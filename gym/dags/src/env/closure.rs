//! The transitive closure of a graph under edits, as rows of bits.

use super::NodeSet;

/// Where the three matrices of one graph lie: `n` rows of `stride` words each. Bit `j` of row `i` is
/// - children: there is an edge from `i` to `j`,
/// - parents: there is an edge from `j` to `i`,
/// - ancestors: there is a directed path from `j` to `i`, or `i` is `j`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    pub(super) n: usize,
    pub(super) stride: usize,
}

impl Layout {
    pub(super) fn new(n: usize) -> Self {
        Self { n, stride: n.div_ceil(64).max(1) }
    }

    /// Words of one matrix.
    pub(super) fn matrix(self) -> usize {
        self.n * self.stride
    }

    /// Words of one graph.
    pub(super) fn words(self) -> usize {
        3 * self.matrix()
    }

    pub(super) fn children(self, words: &[u64]) -> &[u64] {
        &words[..self.matrix()]
    }

    pub(super) fn parents(self, words: &[u64]) -> &[u64] {
        &words[self.matrix()..2 * self.matrix()]
    }

    pub(super) fn ancestors(self, words: &[u64]) -> &[u64] {
        &words[2 * self.matrix()..]
    }

    pub(super) fn get(self, matrix: &[u64], row: usize, bit: usize) -> bool {
        matrix[row * self.stride + bit / 64] >> (bit % 64) & 1 == 1
    }

    pub(super) fn row(self, matrix: &[u64], row: usize) -> &[u64] {
        &matrix[row * self.stride..(row + 1) * self.stride]
    }

    /// The graph without an edge.
    pub(super) fn empty(self) -> Vec<u64> {
        let mut words = vec![0; self.words()];
        let ancestors = &mut words[2 * self.matrix()..];
        for i in 0..self.n {
            ancestors[i * self.stride + i / 64] |= 1 << (i % 64);
        }
        words
    }

    /// Whether an edge from `source` to `target` can be added: it isn't there, and closes no cycle.
    pub(super) fn can_add(self, words: &[u64], source: usize, target: usize) -> bool {
        !self.get(self.children(words), source, target) && !self.get(self.ancestors(words), source, target)
    }

    fn flip(self, words: &mut [u64], source: usize, target: usize) {
        words[source * self.stride + target / 64] ^= 1 << (target % 64);
        words[self.matrix() + target * self.stride + source / 64] ^= 1 << (source % 64);
    }

    /// Adds a legal edge: all descendants of `target` gain the ancestors of `source`.
    pub(super) fn add(self, words: &mut [u64], source: usize, target: usize) {
        debug_assert!(self.can_add(words, source, target), "edge ({source}, {target}) can't be added");
        self.flip(words, source, target);
        let ancestors = &mut words[2 * self.matrix()..];
        if self.stride == 1 {
            let gained = ancestors[source];
            // Without a branch: all rows of a small graph in a few vector instructions.
            for row in ancestors {
                *row |= gained & (*row >> target & 1).wrapping_neg();
            }
            return;
        }
        if self.get(ancestors, target, source) {
            return;
        }
        let mut gained = [0; NodeSet::WORDS];
        gained[..self.stride].copy_from_slice(self.row(ancestors, source));
        for row in ancestors.chunks_exact_mut(self.stride) {
            if row[target / 64] >> (target % 64) & 1 == 1 {
                row.iter_mut().zip(gained).for_each(|(word, gained)| *word |= gained);
            }
        }
    }

    /// Removes an edge that is there.
    ///
    /// Nothing changes in the closure if another path leads from `source` to `target`. Otherwise only descendants of `target`
    /// can lose ancestors, and of those only nodes with a parent that lost some.
    pub(super) fn remove(self, words: &mut [u64], source: usize, target: usize) {
        debug_assert!(self.get(self.children(words), source, target), "edge ({source}, {target}) isn't there");
        self.flip(words, source, target);
        let (edges, ancestors) = words.split_at_mut(2 * self.matrix());
        let parents = &edges[self.matrix()..];
        let other_path = ones(self.row(parents, target)).any(|parent| self.get(ancestors, parent, source));
        if other_path {
            return;
        }
        let mut descendants: Vec<(u32, u32)> = (0..self.n)
            .filter(|&i| self.get(ancestors, i, target))
            .map(|i| (self.row(ancestors, i).iter().map(|word| word.count_ones()).sum(), i as u32))
            .collect();
        // A node has more ancestors than any of them has: parents come before their children.
        descendants.sort_unstable();
        let mut changed = NodeSet::EMPTY;
        for &(_, node) in &descendants {
            let node = node as usize;
            let row = self.row(parents, node);
            let touched = row.iter().zip(changed.words()).any(|(parents, changed)| parents & changed != 0);
            if !touched && node != target {
                continue;
            }
            let mut now = [0; NodeSet::WORDS];
            now[node / 64] |= 1 << (node % 64);
            for parent in ones(row) {
                now.iter_mut().zip(self.row(ancestors, parent)).for_each(|(now, word)| *now |= word);
            }
            let before = &mut ancestors[node * self.stride..(node + 1) * self.stride];
            if *before != now[..self.stride] {
                before.copy_from_slice(&now[..self.stride]);
                changed.insert(node);
            }
        }
    }
}

/// The set bits of a row, ascending.
pub(super) fn ones(row: &[u64]) -> impl Iterator<Item = usize> + '_ {
    row.iter().enumerate().flat_map(|(k, &word)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            (rest != 0).then(|| {
                let bit = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                64 * k + bit
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Ancestors by walking up from each node.
    fn by_search(layout: Layout, words: &[u64]) -> Vec<u64> {
        let mut out = vec![0; layout.matrix()];
        for i in 0..layout.n {
            let mut open = vec![i];
            while let Some(node) = open.pop() {
                let word = &mut out[i * layout.stride + node / 64];
                if *word >> (node % 64) & 1 == 0 {
                    *word |= 1 << (node % 64);
                    open.extend(ones(layout.row(layout.parents(words), node)));
                }
            }
        }
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]
        /// Up to two words per row, additions and removals in any order: pairs that can't be added are removed if they are there.
        #[test]
        fn the_closure_is_what_a_search_finds(n in 2usize..100, edits in proptest::collection::vec((any::<u32>(), any::<u32>()), 0..400)) {
            let layout = Layout::new(n);
            let mut words = layout.empty();
            let mut removed = 0;
            for (k, &(a, b)) in edits.iter().enumerate() {
                // A few nodes meet often.
                let (a, b) = (a as usize % n.min(12) * (n / n.min(12)), b as usize % n.min(12) * (n / n.min(12)));
                if layout.get(layout.children(&words), a, b) {
                    layout.remove(&mut words, a, b);
                    removed += 1;
                } else if layout.can_add(&words, a, b) {
                    layout.add(&mut words, a, b);
                } else {
                    continue;
                }
                if k % 7 == 0 || k + 1 == edits.len() {
                    prop_assert_eq!(layout.ancestors(&words).to_vec(), by_search(layout, &words));
                }
            }
            prop_assert_eq!(layout.ancestors(&words).to_vec(), by_search(layout, &words));
            prop_assert!(edits.len() < 300 || n > 20 || removed > 0);
        }
    }
}
