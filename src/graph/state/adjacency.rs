//! The neighbours of every node of a graph: rows of bits in small graphs, sorted lists in large ones.

use smallvec::SmallVec;

/// The largest number of nodes for which neighbours are stored as rows of bits. The rows of `n` nodes take
/// `n^2` bits (512 kB at this size), so larger graphs store lists.
pub(in crate::graph) const MAX_NODES_OF_BIT_ROWS: usize = 2_048;

/// The neighbours of every node. The adjacency is cached beside the petgraph graph, so that masks and tests
/// for an edge are cheap.
///
/// Graphs of at most 2,048 nodes have a row of bits per node, and larger graphs a sorted list per node. The
/// representation depends on the number of nodes alone, so equal graphs have equal adjacencies.
///
/// ```
/// use gfn::graph::{Edge, GraphKind, GraphState};
/// for n in [3, 3_000] {
///     let mut graph = GraphState::with_nodes(GraphKind::Undirected, n);
///     graph.add_edge(0, 2, Edge::default())?;
///     graph.add_edge(1, 0, Edge::default())?;
///     let adjacency = graph.adjacency();
///     assert_eq!(adjacency.neighbours(0).collect::<Vec<_>>(), [1, 2]);
///     assert_eq!((adjacency.count(0), adjacency.get(2, 0), adjacency.get(2, 1)), (2, true, false));
///     // Only small graphs have rows of bits.
///     assert_eq!(adjacency.bits(0), (n == 3).then_some(&[0b110][..]));
/// }
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Adjacency {
    /// The number of nodes of the graph.
    n: usize,
    /// The number of words of 64 bits in each row of bits.
    stride: usize,
    rows: NeighbourRows,
}

/// The storage of the neighbours: rows of bits, or lists.
#[derive(Clone, PartialEq, Eq, Debug)]
enum NeighbourRows {
    /// The rows of bits, one after another, each of `stride` words.
    Bits(SmallVec<[u64; 12]>),
    /// The neighbours of each node, ascending.
    Lists(Vec<SmallVec<[u32; 4]>>),
}

impl Adjacency {
    /// Creates the adjacency of `n` nodes without edges.
    pub(super) fn new(n: usize) -> Self {
        let stride = n.div_ceil(64).max(1);
        let rows = if n <= MAX_NODES_OF_BIT_ROWS {
            NeighbourRows::Bits(SmallVec::from_elem(0, n * stride))
        } else {
            NeighbourRows::Lists(vec![SmallVec::new(); n])
        };
        Self { n, stride, rows }
    }

    /// The number of nodes of the graph, which is the number of rows and columns of the adjacency matrix.
    #[must_use]
    pub fn len(&self) -> usize {
        self.n
    }

    /// `true` if the graph has no nodes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Returns the neighbours of node `i` as a row of bits, in words of 64 bits, for loops over whole words.
    /// Bit `k` of word `w` is 1 if there is an edge from `i` to node `64 w + k`. Returns `None` if the graph
    /// has more than 2,048 nodes.
    ///
    /// # Panics
    /// If there is no node `i`.
    #[inline]
    #[must_use]
    pub fn bits(&self, i: usize) -> Option<&[u64]> {
        assert!(i < self.n, "there is no row {i}: the graph has {} nodes", self.n);
        match &self.rows {
            NeighbourRows::Bits(words) => Some(&words[i * self.stride..(i + 1) * self.stride]),
            NeighbourRows::Lists(_) => None,
        }
    }

    /// Returns `true` if there is an edge from `i` to `j`; `false` if there is no node `j`.
    ///
    /// # Panics
    /// If there is no node `i`.
    #[inline]
    #[must_use]
    pub fn get(&self, i: usize, j: usize) -> bool {
        assert!(i < self.n, "there is no row {i}: the graph has {} nodes", self.n);
        j < self.n
            && match &self.rows {
                NeighbourRows::Bits(words) => words[i * self.stride + j / 64] >> (j % 64) & 1 == 1,
                NeighbourRows::Lists(lists) => lists[i].binary_search(&(j as u32)).is_ok(),
            }
    }

    /// Returns the nodes to which an edge from `i` leads, ascending.
    ///
    /// # Panics
    /// If there is no node `i`.
    #[inline]
    pub fn neighbours(&self, i: usize) -> impl Iterator<Item = usize> + '_ {
        let (mut words, mut list) = match &self.rows {
            NeighbourRows::Bits(_) => (self.bits(i).unwrap_or_default().iter(), [].iter()),
            NeighbourRows::Lists(lists) => ([].iter(), lists[i].iter()),
        };
        // The variable `rest` holds the bits of the current word that haven't been returned yet, and `end` is
        // the number of bits in this word and the words before it.
        let mut rest = 0u64;
        let mut end = 0;
        std::iter::from_fn(move || {
            while rest == 0 {
                let Some(&word) = words.next() else { return list.next().map(|&j| j as usize) };
                rest = word;
                end += 64;
            }
            let bit = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            Some(end - 64 + bit)
        })
    }

    /// Returns the number of edges from `i`.
    ///
    /// # Panics
    /// If there is no node `i`.
    #[inline]
    #[must_use]
    pub fn count(&self, i: usize) -> usize {
        match &self.rows {
            NeighbourRows::Bits(_) => {
                self.bits(i).unwrap_or_default().iter().map(|word| word.count_ones() as usize).sum()
            }
            NeighbourRows::Lists(lists) => lists[i].len(),
        }
    }

    /// Returns the number of edges from `i` to the nodes `from..to`; `to` may exceed the number of nodes.
    ///
    /// # Panics
    /// If there is no node `i`.
    pub(super) fn count_between(&self, i: usize, from: usize, to: usize) -> usize {
        if let NeighbourRows::Lists(lists) = &self.rows {
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

    /// Sets the entry in row `i` and column `j` of the adjacency matrix, but not the entry in row `j` and
    /// column `i`.
    pub(super) fn set(&mut self, i: usize, j: usize, value: bool) {
        debug_assert!(i < self.n && j < self.n, "bit ({i}, {j}) of {} rows", self.n);
        match &mut self.rows {
            NeighbourRows::Bits(words) => {
                let word = &mut words[i * self.stride + j / 64];
                *word = *word & !(1 << (j % 64)) | u64::from(value) << (j % 64);
            }
            NeighbourRows::Lists(lists) => match (lists[i].binary_search(&(j as u32)), value) {
                (Err(place), true) => lists[i].insert(place, j as u32),
                (Ok(place), false) => drop(lists[i].remove(place)),
                (Ok(_), true) | (Err(_), false) => {}
            },
        }
    }

    /// Changes the number of nodes to `n`. Nodes that are removed must have no edges.
    pub(super) fn resize(&mut self, n: usize) {
        let stride = n.div_ceil(64).max(1);
        match &mut self.rows {
            NeighbourRows::Bits(words) if n <= MAX_NODES_OF_BIT_ROWS && stride == self.stride => {
                words.resize(n * stride, 0)
            }
            NeighbourRows::Lists(lists) if n > MAX_NODES_OF_BIT_ROWS => lists.resize(n, SmallVec::new()),
            // The rows are built anew, because the rows of equal graphs must be equal, whatever their numbers
            // of nodes were before.
            _ => {
                let mut resized = Self::new(n);
                for i in 0..n.min(self.n) {
                    for j in self.neighbours(i) {
                        resized.set(i, j, true);
                    }
                }
                *self = resized;
            }
        }
        self.n = n;
        self.stride = stride;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that rows of bits and sorted lists give the same results, and that resizing beyond
    /// [`MAX_NODES_OF_BIT_ROWS`] and back keeps all entries.
    #[test]
    fn bit_rows_and_lists_return_the_same() {
        let mut adjacency = Adjacency::new(MAX_NODES_OF_BIT_ROWS);
        for (i, j) in [(0, 1), (0, 63), (0, 64), (0, 2_047), (2_047, 0), (5, 6)] {
            adjacency.set(i, j, true);
        }
        adjacency.set(5, 6, false);
        let small = adjacency.clone();
        adjacency.resize(MAX_NODES_OF_BIT_ROWS + 1);
        assert!(small.bits(0).is_some() && adjacency.bits(0).is_none());
        for i in [0, 5, 2_047] {
            assert_eq!(small.neighbours(i).collect::<Vec<_>>(), adjacency.neighbours(i).collect::<Vec<_>>());
            assert_eq!(small.count(i), adjacency.count(i));
            for (from, to) in [(0, 64), (1, 64), (64, 10_000), (2_048, 0), (3, 3)] {
                assert_eq!(
                    small.count_between(i, from, to),
                    adjacency.count_between(i, from, to),
                    "{i} {from} {to}"
                );
            }
            for j in [0, 1, 6, 63, 2_047, 2_048, 1 << 20, 1 << 32] {
                assert_eq!(small.get(i, j), adjacency.get(i, j), "({i}, {j})");
            }
        }
        adjacency.set(2_048, 7, true);
        adjacency.set(2_048, 7, true);
        assert_eq!(adjacency.count(2_048), 1);
        adjacency.set(2_048, 7, false);
        adjacency.resize(MAX_NODES_OF_BIT_ROWS);
        assert_eq!(small, adjacency);
    }

    #[test]
    fn columns_that_do_not_exist_are_empty() {
        // Each of the three rows has one word. Without a check, column 64 of the first row would be read as
        // bit 0 of the second row.
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

    /// Checks that an adjacency that grew beyond the last bit of a word and shrank again equals an adjacency
    /// that never grew.
    #[test]
    fn growing_and_shrinking_leaves_no_trace() {
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
