use gfn::env::{Grouping, Rows};

/// A batch of grid points: `[n, ndim]` coordinates, row by row.
///
/// ```
/// use gfn::env::Rows;
/// use gfn_gym::hypergrid::GridStates;
/// let states = GridStates::from_rows([[0, 3], [1, 0], [0, 3]]);
/// assert_eq!((states.len(), states.row(1)), (3, [1u16, 0].as_slice()));
/// assert_eq!(states.group().first, [0, 1]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridStates {
    ndim: usize,
    coordinates: Vec<u16>,
}

impl GridStates {
    /// `n` times the origin.
    pub(super) fn origin(ndim: usize, n: usize) -> Self {
        Self { ndim, coordinates: vec![0; n * ndim] }
    }

    /// Points of `D` coordinates.
    #[must_use]
    pub fn from_rows<const D: usize>(rows: impl IntoIterator<Item = [u16; D]>) -> Self {
        const { assert!(D > 0, "a point has at least one coordinate") };
        Self { ndim: D, coordinates: rows.into_iter().flatten().collect() }
    }

    pub(super) fn from_flat(ndim: usize, coordinates: Vec<u16>) -> Self {
        debug_assert!(coordinates.len().is_multiple_of(ndim), "{} coordinates of {ndim} axes", coordinates.len());
        Self { ndim, coordinates }
    }

    /// Coordinates per point.
    #[must_use]
    pub fn ndim(&self) -> usize {
        self.ndim
    }

    /// The coordinates of all points, row by row.
    #[must_use]
    pub fn coordinates(&self) -> &[u16] {
        &self.coordinates
    }

    pub(super) fn coordinates_mut(&mut self) -> &mut [u16] {
        &mut self.coordinates
    }

    /// The coordinates of point `i`.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn row(&self, i: usize) -> &[u16] {
        &self.coordinates[i * self.ndim..(i + 1) * self.ndim]
    }

    /// The points, one after another.
    pub fn rows(&self) -> std::slice::ChunksExact<'_, u16> {
        self.coordinates.chunks_exact(self.ndim)
    }
}

impl Rows for GridStates {
    fn len(&self) -> usize {
        self.coordinates.len() / self.ndim
    }
    fn select(&self, rows: &[usize]) -> Self {
        let mut coordinates = Vec::with_capacity(rows.len() * self.ndim);
        for &i in rows {
            coordinates.extend_from_slice(self.row(i));
        }
        Self { ndim: self.ndim, coordinates }
    }
    fn append(&mut self, mut other: Self) {
        debug_assert_eq!(self.ndim, other.ndim, "points of one grid");
        self.coordinates.append(&mut other.coordinates);
    }
    fn group(&self) -> Grouping {
        let hashes: Vec<u64> = self.rows().map(hash).collect();
        Grouping::by(&hashes, |i, j| self.row(i) == self.row(j))
    }
}

/// Multiply and fold: points differ in few low bits, and a hash table looks at high and low ones.
fn hash(row: &[u16]) -> u64 {
    let mixed =
        row.iter().fold(0u64, |hash, &x| (hash.rotate_left(5) ^ u64::from(x)).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed ^ mixed >> 32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn equal_points_are_one_group(rows in proptest::collection::vec([0u16..3, 0..3, 0..3], 0..60)) {
            let states = GridStates::from_rows(rows.clone());
            let grouping = states.group();
            for (i, a) in rows.iter().enumerate() {
                prop_assert_eq!(states.row(grouping.first[grouping.of[i]]), a);
            }
            let distinct: std::collections::HashSet<_> = rows.iter().collect();
            prop_assert_eq!(grouping.first.len(), distinct.len());
        }
    }

    #[test]
    fn rows_are_picked_and_joined() {
        let mut states = GridStates::from_rows([[1, 2], [3, 4], [5, 6]]);
        states.append(states.select(&[2, 0]));
        assert_eq!(states.coordinates(), [1, 2, 3, 4, 5, 6, 5, 6, 1, 2]);
        assert_eq!(states.len(), 5);
    }
}
