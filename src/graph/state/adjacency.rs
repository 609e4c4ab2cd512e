//! The neighbours of every node: rows of bits where nodes are few, sorted lists where they are many.

use smallvec::SmallVec;

/// Graphs of more nodes list neighbours: their rows of bits would take the square of that many bits (512 kB here).
pub(in crate::graph) const MOST_BIT_ROWS: usize = 2_048;

/// The neighbours of every node: the cache beside a petgraph graph which makes masks and neighbour tests cheap.
///
/// Its form depends on the number of nodes alone, so equal graphs have equal adjacencies.
///
/// ```
/// use gfn::graph::{Edge, GraphKind, GraphState};
/// for n in [3, 3_000] {
///     let mut graph = GraphState::with_nodes(GraphKind::Undirected, n);
///     graph.add_edge(0, 2, Edge::default())?;
///     graph.add_edge(1, 0, Edge::default())?;
///     let adjacency = graph.adjacency();
///     assert_eq!(adjacency.ones(0).collect::<Vec<_>>(), [1, 2]);
///     assert_eq!((adjacency.count(0), adjacency.get(2, 0), adjacency.get(2, 1)), (2, true, false));
///     // Words of bits are there for small graphs only.
///     assert_eq!(adjacency.bits(0), (n == 3).then_some(&[0b110][..]));
/// }
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Adjacency {
    n: usize,
    /// Words per row of bits.
    stride: usize,
    rows: Rows,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Rows {
    Bits(SmallVec<[u64; 12]>),
    Lists(Vec<SmallVec<[u32; 4]>>),
}

impl Adjacency {
    pub(super) fn new(n: usize) -> Self {
        let stride = n.div_ceil(64).max(1);
        let rows = if n <= MOST_BIT_ROWS {
            Rows::Bits(SmallVec::from_elem(0, n * stride))
        } else {
            Rows::Lists(vec![SmallVec::new(); n])
        };
        Self { n, stride, rows }
    }

    /// The number of rows (and of columns).
    #[must_use]
    pub fn len(&self) -> usize {
        self.n
    }

    /// `true` if there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// The bits of row `i` of a graph of at most 2,048 nodes, least significant bit first, for work that goes word by word.
    ///
    /// # Panics
    /// If there is no row `i`.
    #[inline]
    #[must_use]
    pub fn bits(&self, i: usize) -> Option<&[u64]> {
        assert!(i < self.n, "there is no row {i}: the graph has {} nodes", self.n);
        match &self.rows {
            Rows::Bits(words) => Some(&words[i * self.stride..(i + 1) * self.stride]),
            Rows::Lists(_) => None,
        }
    }

    /// `true` if there is an edge from `i` to `j`; false for a column that doesn't exist.
    ///
    /// # Panics
    /// If there is no row `i`.
    #[inline]
    #[must_use]
    pub fn get(&self, i: usize, j: usize) -> bool {
        assert!(i < self.n, "there is no row {i}: the graph has {} nodes", self.n);
        j < self.n
            && match &self.rows {
                Rows::Bits(words) => words[i * self.stride + j / 64] >> (j % 64) & 1 == 1,
                Rows::Lists(lists) => lists[i].binary_search(&(j as u32)).is_ok(),
            }
    }

    /// The nodes that an edge from `i` leads to, ascending.
    ///
    /// # Panics
    /// If there is no row `i`.
    #[inline]
    pub fn ones(&self, i: usize) -> impl Iterator<Item = usize> + '_ {
        let (mut words, mut list) = match &self.rows {
            Rows::Bits(_) => (self.bits(i).unwrap_or_default().iter(), [].iter()),
            Rows::Lists(lists) => ([].iter(), lists[i].iter()),
        };
        // The bits that are left of the word before column `end`.
        let (mut rest, mut end) = (0u64, 0);
        std::iter::from_fn(move || {
            while rest == 0 {
                let Some(&word) = words.next() else { return list.next().map(|&j| j as usize) };
                (rest, end) = (word, end + 64);
            }
            let bit = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            Some(end - 64 + bit)
        })
    }

    /// The number of edges from `i`.
    ///
    /// # Panics
    /// If there is no row `i`.
    #[inline]
    #[must_use]
    pub fn count(&self, i: usize) -> usize {
        match (self.bits(i), &self.rows) {
            (_, Rows::Lists(lists)) => lists[i].len(),
            (words, Rows::Bits(_)) => words.unwrap_or_default().iter().map(|word| word.count_ones() as usize).sum(),
        }
    }

    /// The number of edges from `i` to nodes `from..to`; nodes that don't exist have none.
    ///
    /// # Panics
    /// If there is no row `i`.
    #[must_use]
    pub fn count_between(&self, i: usize, from: usize, to: usize) -> usize {
        if let Rows::Lists(lists) = &self.rows {
            let before = |bound: usize| lists[i].partition_point(|&j| (j as usize) < bound);
            return before(to).saturating_sub(before(from));
        }
        let count = |(w, &word): (usize, &u64)| {
            let below = |bound: usize| match bound.saturating_sub(w * 64) {
                k @ 0..64 => (1 << k) - 1,
                _ => u64::MAX,
            };
            (word & below(to) & !below(from)).count_ones() as usize
        };
        self.bits(i).unwrap_or_default().iter().enumerate().map(count).sum()
    }

    pub(super) fn set(&mut self, i: usize, j: usize, value: bool) {
        debug_assert!(i < self.n && j < self.n, "bit ({i}, {j}) of {} rows", self.n);
        match &mut self.rows {
            Rows::Bits(words) => {
                let word = &mut words[i * self.stride + j / 64];
                *word = *word & !(1 << (j % 64)) | u64::from(value) << (j % 64);
            }
            Rows::Lists(lists) => match (lists[i].binary_search(&(j as u32)), value) {
                (Err(place), true) => lists[i].insert(place, j as u32),
                (Ok(place), false) => drop(lists[i].remove(place)),
                (Ok(_), true) | (Err(_), false) => {}
            },
        }
    }

    /// As many rows and columns; those that go must have no edge.
    pub(super) fn resize(&mut self, n: usize) {
        let stride = n.div_ceil(64).max(1);
        match &mut self.rows {
            Rows::Bits(words) if n <= MOST_BIT_ROWS && stride == self.stride => words.resize(n * stride, 0),
            Rows::Lists(lists) if n > MOST_BIT_ROWS => lists.resize(n, SmallVec::new()),
            // Equal graphs must have equal rows, whatever they went through.
            _ => {
                let mut other = Self::new(n);
                for i in 0..n.min(self.n) {
                    self.ones(i).for_each(|j| other.set(i, j, true));
                }
                *self = other;
            }
        }
        (self.n, self.stride) = (n, stride);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Over the border and back, whatever is there stays there, and all that is asked has the same answer in either form.
    #[test]
    fn both_forms_say_the_same() {
        let mut adjacency = Adjacency::new(MOST_BIT_ROWS);
        for (i, j) in [(0, 1), (0, 63), (0, 64), (0, 2_047), (2_047, 0), (5, 6)] {
            adjacency.set(i, j, true);
        }
        adjacency.set(5, 6, false);
        let small = adjacency.clone();
        adjacency.resize(MOST_BIT_ROWS + 1);
        assert!(small.bits(0).is_some() && adjacency.bits(0).is_none());
        for i in [0, 5, 2_047] {
            assert_eq!(small.ones(i).collect::<Vec<_>>(), adjacency.ones(i).collect::<Vec<_>>());
            assert_eq!(small.count(i), adjacency.count(i));
            for (from, to) in [(0, 64), (1, 64), (64, 10_000), (2_048, 0), (3, 3)] {
                assert_eq!(small.count_between(i, from, to), adjacency.count_between(i, from, to), "{i} {from} {to}");
            }
            for j in [0, 1, 6, 63, 2_047, 2_048, 1 << 20, 1 << 32] {
                assert_eq!(small.get(i, j), adjacency.get(i, j), "({i}, {j})");
            }
        }
        adjacency.set(2_048, 7, true);
        adjacency.set(2_048, 7, true);
        assert_eq!(adjacency.count(2_048), 1);
        adjacency.set(2_048, 7, false);
        adjacency.resize(MOST_BIT_ROWS);
        assert_eq!(small, adjacency);
    }

    #[test]
    fn columns_that_do_not_exist_are_empty() {
        // Three rows of one word each: column 64 of the first would be bit 0 of the second.
        let mut adjacency = Adjacency::new(3);
        adjacency.set(1, 0, true);
        assert!(adjacency.get(1, 0));
        for column in [3, 63, 64, 128, 1000] {
            assert!(!adjacency.get(0, column), "{column}");
        }
        assert_eq!(adjacency.count_between(0, 0, 1000), 0);
    }

    #[test]
    #[should_panic(expected = "there is no row 3: the graph has 3 nodes")]
    fn a_row_that_does_not_exist_is_refused() {
        let _ = Adjacency::new(3).get(3, 0);
    }

    /// Rows know nothing of what they went through: a matrix that grew over a word's border and shrank again is the one that never did.
    #[test]
    fn rows_that_grew_and_shrank_are_those_that_never_grew() {
        for border in [64, 128] {
            let mut adjacency = Adjacency::new(border);
            adjacency.set(1, border - 1, true);
            let small = adjacency.clone();
            adjacency.resize(border + 1);
            adjacency.set(border, 0, true);
            adjacency.set(border, 0, false);
            assert_ne!(adjacency, small, "{border}");
            adjacency.resize(border);
            assert_eq!(adjacency, small, "{border}");
        }
    }
}
