//! Who is joined to whom: rows of bits where nodes are few, sorted lists of neighbours where they are many.

use smallvec::SmallVec;

use super::BitRows;

/// Graphs of more nodes list neighbours: their rows of bits would take the square of that many bits (512 kB here).
const MOST_BIT_ROWS: usize = 2_048;

/// The neighbours of every node.
///
/// Which form they have depends on the number of nodes alone, so equal graphs have equal adjacencies.
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
///     assert_eq!(adjacency.bits().is_some(), n == 3);
/// }
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Adjacency(Rows);

#[derive(Clone, PartialEq, Eq, Debug)]
enum Rows {
    Bits(BitRows),
    Lists(Vec<SmallVec<[u32; 4]>>),
}

impl Adjacency {
    pub(super) fn new(n: usize) -> Self {
        Self(if n <= MOST_BIT_ROWS { Rows::Bits(BitRows::new(n)) } else { Rows::Lists(vec![SmallVec::new(); n]) })
    }

    /// The number of rows (and of columns).
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Rows::Bits(bits) => bits.len(),
            Rows::Lists(lists) => lists.len(),
        }
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows of bits of a graph of at most 2,048 nodes, for work that goes word by word.
    #[must_use]
    pub fn bits(&self) -> Option<&BitRows> {
        match &self.0 {
            Rows::Bits(bits) => Some(bits),
            Rows::Lists(_) => None,
        }
    }

    /// Whether there is an edge from `i` to `j`; false for a column that doesn't exist.
    ///
    /// # Panics
    /// If there is no row `i`.
    #[must_use]
    pub fn get(&self, i: usize, j: usize) -> bool {
        match &self.0 {
            Rows::Bits(bits) => bits.get(i, j),
            Rows::Lists(lists) => j < lists.len() && lists[i].binary_search(&(j as u32)).is_ok(),
        }
    }

    /// The nodes that an edge from `i` leads to, ascending.
    ///
    /// # Panics
    /// If there is no row `i`.
    pub fn ones(&self, i: usize) -> impl Iterator<Item = usize> + '_ {
        let (bits, list) = match &self.0 {
            Rows::Bits(bits) => (Some(bits.ones(i)), None),
            Rows::Lists(lists) => (None, Some(lists[i].iter().map(|&j| j as usize))),
        };
        bits.into_iter().flatten().chain(list.into_iter().flatten())
    }

    /// The number of edges from `i`.
    ///
    /// # Panics
    /// If there is no row `i`.
    #[must_use]
    pub fn count(&self, i: usize) -> usize {
        match &self.0 {
            Rows::Bits(bits) => bits.count(i),
            Rows::Lists(lists) => lists[i].len(),
        }
    }

    /// The number of edges from `i` to nodes `from..to`; nodes that don't exist have none.
    ///
    /// # Panics
    /// If there is no row `i`.
    #[must_use]
    pub fn count_between(&self, i: usize, from: usize, to: usize) -> usize {
        match &self.0 {
            Rows::Bits(bits) => bits.count_between(i, from, to),
            Rows::Lists(lists) => {
                let before = |bound: usize| lists[i].partition_point(|&j| (j as usize) < bound);
                before(to).saturating_sub(before(from))
            }
        }
    }

    pub(super) fn set(&mut self, i: usize, j: usize, value: bool) {
        match &mut self.0 {
            Rows::Bits(bits) => bits.set(i, j, value),
            Rows::Lists(lists) => match (lists[i].binary_search(&(j as u32)), value) {
                (Err(place), true) => lists[i].insert(place, j as u32),
                (Ok(place), false) => drop(lists[i].remove(place)),
                (Ok(_), true) | (Err(_), false) => {}
            },
        }
    }

    pub(super) fn push_row(&mut self) {
        match &mut self.0 {
            Rows::Bits(bits) if bits.len() < MOST_BIT_ROWS => bits.push_row(),
            Rows::Bits(bits) => {
                let list = |i: usize| bits.ones(i).map(|j| j as u32).collect();
                let lists = (0..bits.len()).map(list).chain([SmallVec::new()]).collect();
                self.0 = Rows::Lists(lists);
            }
            Rows::Lists(lists) => lists.push(SmallVec::new()),
        }
    }

    /// Removes the last row and column; there must be no edge at that node.
    pub(super) fn pop_row(&mut self) {
        match &mut self.0 {
            Rows::Bits(bits) => bits.pop_row(),
            Rows::Lists(lists) => {
                lists.pop();
                if lists.len() <= MOST_BIT_ROWS {
                    let mut bits = BitRows::new(lists.len());
                    for (i, list) in lists.iter().enumerate() {
                        list.iter().for_each(|&j| bits.set(i, j as usize, true));
                    }
                    self.0 = Rows::Bits(bits);
                }
            }
        }
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
        adjacency.push_row();
        assert!(small.bits().is_some() && adjacency.bits().is_none());
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
        adjacency.pop_row();
        assert_eq!(small, adjacency);
    }
}
