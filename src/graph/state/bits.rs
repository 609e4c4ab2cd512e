//! Adjacency as rows of bits: the cache beside each petgraph graph of not too many nodes, which makes masks and neighbour tests cheap.

use smallvec::SmallVec;

/// A square bit matrix, one row per node, that grows with the graph.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BitRows {
    n: usize,
    /// Words per row.
    stride: usize,
    words: SmallVec<[u64; 12]>,
}

impl Default for BitRows {
    /// No row, in the same form as a matrix that lost all of its rows.
    fn default() -> Self {
        Self::new(0)
    }
}

impl BitRows {
    /// `n` empty rows.
    #[must_use]
    pub fn new(n: usize) -> Self {
        let stride = n.div_ceil(64).max(1);
        Self { n, stride, words: SmallVec::from_elem(0, n * stride) }
    }

    /// The number of rows (and of columns).
    #[must_use]
    pub fn len(&self) -> usize {
        self.n
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// The words of row `i`, least significant bit first.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn row(&self, i: usize) -> &[u64] {
        assert!(i < self.n, "there is no row {i}: the graph has {} nodes", self.n);
        &self.words[i * self.stride..(i + 1) * self.stride]
    }

    /// Whether bit `j` of row `i` is set; false for a column that doesn't exist.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn get(&self, i: usize, j: usize) -> bool {
        assert!(i < self.n, "there is no row {i}: the graph has {} nodes", self.n);
        j < self.n && self.words[i * self.stride + j / 64] >> (j % 64) & 1 == 1
    }

    pub(crate) fn set(&mut self, i: usize, j: usize, value: bool) {
        debug_assert!(i < self.n && j < self.n, "bit ({i}, {j}) of {} rows", self.n);
        let word = &mut self.words[i * self.stride + j / 64];
        *word = *word & !(1 << (j % 64)) | u64::from(value) << (j % 64);
    }

    pub(crate) fn push_row(&mut self) {
        if self.n + 1 > self.stride * 64 {
            let mut wider = Self::new(0);
            wider.n = self.n;
            wider.stride = self.stride + 1;
            for i in 0..self.n {
                wider.words.extend_from_slice(self.row(i));
                wider.words.push(0);
            }
            *self = wider;
        }
        self.n += 1;
        self.words.resize(self.n * self.stride, 0);
    }

    /// Removes the last row and column; both must be empty of bits of the other rows.
    pub(crate) fn pop_row(&mut self) {
        self.n -= 1;
        self.words.truncate(self.n * self.stride);
        // Equal graphs must have equal rows, whatever they went through.
        let stride = self.n.div_ceil(64).max(1);
        if stride < self.stride {
            let old = std::mem::take(self);
            self.n = old.n;
            self.stride = stride;
            for i in 0..old.n {
                self.words.extend_from_slice(&old.row(i)[..stride]);
            }
        }
    }

    /// The set bits of row `i`, ascending.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn ones(&self, i: usize) -> impl Iterator<Item = usize> + '_ {
        self.row(i).iter().enumerate().flat_map(|(w, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    w * 64 + bit
                })
            })
        })
    }

    /// The number of set bits of row `i`.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn count(&self, i: usize) -> usize {
        self.row(i).iter().map(|w| w.count_ones() as usize).sum()
    }

    /// The number of set bits of row `i` in columns `from..to`; columns that don't exist count as empty.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn count_between(&self, i: usize, from: usize, to: usize) -> usize {
        self.row(i)
            .iter()
            .enumerate()
            .map(|(w, &word)| {
                let low = from.saturating_sub(w * 64).min(64);
                let high = to.saturating_sub(w * 64).min(64);
                (word & below(high) & !below(low)).count_ones() as usize
            })
            .sum()
    }
}

/// The lowest `k` bits.
fn below(k: usize) -> u64 {
    if k >= 64 { u64::MAX } else { (1 << k) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_do_not_exist_are_empty() {
        // Three rows of one word each: column 64 of the first would be bit 0 of the second.
        let mut bits = BitRows::new(3);
        bits.set(1, 0, true);
        assert!(bits.get(1, 0));
        for column in [3, 63, 64, 128, 1000] {
            assert!(!bits.get(0, column), "{column}");
        }
        assert_eq!(bits.count_between(0, 0, 1000), 0);
    }

    #[test]
    #[should_panic(expected = "there is no row 3: the graph has 3 nodes")]
    fn a_row_that_does_not_exist_is_refused() {
        let _ = BitRows::new(3).get(3, 0);
    }

    /// Rows know nothing of what they went through: a matrix that grew over a word's border and shrank again is the one that never did.
    #[test]
    fn rows_that_grew_and_shrank_are_those_that_never_grew() {
        for border in [64, 128] {
            let mut bits = BitRows::new(border);
            bits.set(1, border - 1, true);
            let small = bits.clone();
            bits.push_row();
            bits.set(border, 0, true);
            bits.set(border, 0, false);
            assert_ne!(bits, small, "{border}");
            bits.pop_row();
            assert_eq!(bits, small, "{border}");
        }
    }
}
