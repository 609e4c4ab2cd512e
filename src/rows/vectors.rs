use tch::{Device, Kind, Tensor};

use super::{Grouping, Rows};
use crate::{Error, Result};

/// A batch of vectors of the same width: `[n, width]` entries, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vectors<T> {
    width: usize,
    values: Vec<T>,
}

/// States that are vectors of small integers: grid points, words, sets, spins.
///
/// ```
/// use gfn::env::{Rows, VectorStates};
/// let states = VectorStates::from_rows([[0, 3], [1, 0], [0, 3]]);
/// assert_eq!((states.len(), states.row(1)), (3, [1u16, 0].as_slice()));
/// assert_eq!(states.group().first, [0, 1]);
/// ```
pub type VectorStates = Vectors<u16>;

/// Vectors of real numbers: states and actions of continuous environments.
///
/// The vectors (points) are on the host in f64, whatever the dtype and device of a network, because they are
/// stored and replayed, and because densities are computed from small differences of points. Points are equal
/// if their bits are equal.
///
/// ```
/// use gfn::env::{Reals, Rows};
/// let points = Reals::from_rows([[0.0, 1.5], [2.0, 0.5]]);
/// assert_eq!((points.len(), points.row(1)), (2, [2.0, 0.5].as_slice()));
/// ```
pub type Reals = Vectors<f64>;

/// A number type that the entries of vectors can have.
pub trait Entry: Copy + Send + Sync + std::fmt::Debug {
    /// Returns bits that identify the number: equal entries have equal bits, and different entries have
    /// different bits.
    fn bits(self) -> u64;
}

impl Entry for u16 {
    fn bits(self) -> u64 {
        u64::from(self)
    }
}

impl Entry for f64 {
    fn bits(self) -> u64 {
        self.to_bits()
    }
}

impl<T: Entry> Vectors<T> {
    /// Creates `n` vectors of `width` entries, all equal to `value`.
    ///
    /// # Panics
    /// If `width` is 0.
    #[must_use]
    pub fn filled(width: usize, n: usize, value: T) -> Self {
        assert!(width > 0, "a vector has at least one entry");
        Self { width, values: vec![value; n * width] }
    }

    /// Creates one vector of `W` entries from each array.
    #[must_use]
    pub fn from_rows<const W: usize>(rows: impl IntoIterator<Item = [T; W]>) -> Self {
        const { assert!(W > 0, "a vector has at least one entry") };
        Self { width: W, values: rows.into_iter().flatten().collect() }
    }

    /// Creates vectors of `width` entries from a flat list, row by row.
    ///
    /// # Errors
    /// [`Error::Shape`] unless `values` is a whole number of rows and the width is at least 1.
    pub fn from_flat(width: usize, values: Vec<T>) -> Result<Self> {
        if width == 0 || !values.len().is_multiple_of(width) {
            return Err(Error::shape(
                "the vectors' entries",
                [values.len().checked_div(width).unwrap_or(0) as i64, width as i64],
                [values.len() as i64],
                "give `width` entries for each vector, row by row, and a width of at least 1",
            ));
        }
        Ok(Self { width, values })
    }

    /// Creates vectors from rows. The caller ensures that each row has `width` entries.
    pub(crate) fn from_vecs(width: usize, rows: Vec<Vec<T>>) -> Self {
        Self { width, values: rows.concat() }
    }

    /// Returns the number of entries per vector.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the entries of all vectors, row by row.
    #[must_use]
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Returns the entries of all vectors, row by row, for changes in place, as
    /// [`step`](crate::env::Env::step) makes them.
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// Returns the entries of vector `i`.
    ///
    /// # Panics
    /// If there is no vector `i`.
    #[must_use]
    pub fn row(&self, i: usize) -> &[T] {
        &self.values[i * self.width..(i + 1) * self.width]
    }

    /// Iterates over the vectors.
    pub fn rows(&self) -> std::slice::ChunksExact<'_, T> {
        self.values.chunks_exact(self.width)
    }
}

impl Reals {
    /// Converts a tensor `[n, width]` of any dtype and device to points.
    ///
    /// # Errors
    /// [`Error::Shape`] if the tensor doesn't have two dimensions, or if its width is 0.
    pub fn from_tensor(tensor: &Tensor) -> Result<Self> {
        match tensor.size()[..] {
            [_, width] if width > 0 => Self::from_flat(width as usize, crate::tensor::to_host(tensor)),
            _ => Err(Error::shape(
                "a batch of points",
                [-1, -1],
                tensor.size(),
                "give one row for each point, with at least one coordinate",
            )),
        }
    }

    /// Converts the points to a tensor `[n, width]` with this dtype and device.
    pub fn to_tensor(&self, kind: Kind, device: Device) -> Tensor {
        crate::tensor::from_host(&self.values, kind, device).view([self.len() as i64, self.width as i64])
    }
}

impl<T: Entry> Rows for Vectors<T> {
    fn len(&self) -> usize {
        self.values.len() / self.width
    }
    fn describe(&self, row: usize) -> Option<String> {
        (row < self.len()).then(|| format!("{:?}", self.row(row)))
    }
    fn select(&self, rows: &[usize]) -> Self {
        let mut values = Vec::with_capacity(rows.len() * self.width);
        for &i in rows {
            values.extend_from_slice(self.row(i));
        }
        Self { width: self.width, values }
    }
    fn append(&mut self, mut other: Self) {
        assert_eq!(self.width, other.width, "vectors of one environment");
        self.values.append(&mut other.values);
    }
    fn group(&self) -> Grouping {
        let hashes: Vec<u64> = self.rows().map(hash).collect();
        let bits = |i: usize| self.row(i).iter().map(|x| x.bits());
        Grouping::by(&hashes, |i, j| bits(i).eq(bits(j)))
    }
}

/// Returns a hash of a row. Each multiplication mixes low bits into the high bits, and the XOR at the end
/// mixes high bits into the low bits. A hash table uses both, and states often differ only in few low bits.
/// Four hashes, each of every fourth entry, are computed side by side, because one hash would wait for each
/// multiplication.
fn hash<T: Entry>(row: &[T]) -> u64 {
    let mix = |hash: u64, bits: u64| (hash.rotate_left(5) ^ bits).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut lanes = [0u64; 4];
    for entries in row.chunks(4) {
        for (lane, x) in lanes.iter_mut().zip(entries) {
            *lane = mix(*lane, x.bits());
        }
    }
    let mixed = lanes.into_iter().fold(0, mix);
    mixed ^ mixed >> 32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn equal_states_are_one_group(rows in proptest::collection::vec([0u16..3, 0..3, 0..3], 0..60)) {
            let states = VectorStates::from_rows(rows.clone());
            let grouping = states.group();
            for (i, a) in rows.iter().enumerate() {
                prop_assert_eq!(states.row(grouping.first[grouping.group_of[i]]), a);
            }
            let distinct: std::collections::HashSet<_> = rows.iter().collect();
            prop_assert_eq!(grouping.first.len(), distinct.len());
        }
    }

    #[test]
    fn rows_are_picked_and_joined() {
        let mut states = VectorStates::from_rows([[1, 2], [3, 4], [5, 6]]);
        states.append(states.select(&[2, 0]));
        assert_eq!(states.values(), [1, 2, 3, 4, 5, 6, 5, 6, 1, 2]);
        assert_eq!(states.len(), 5);
    }

    #[test]
    fn points_are_picked_joined_grouped_and_turned_into_tensors() {
        let mut points = Reals::from_rows([[1.0, 0.1], [3.0, 4.0]]);
        points.append(points.select(&[0]));
        assert_eq!(points.group().group_of, [0, 1, 0]);
        let tensor = points.to_tensor(Kind::Double, Device::Cpu);
        assert_eq!(tensor.size(), [3, 2]);
        assert_eq!(Reals::from_tensor(&tensor).unwrap(), points);
        assert!(Reals::from_tensor(&tensor.view([6])).is_err());
        assert!(Reals::from_flat(2, vec![1.0]).is_err());
        // Points are compared by bits: the two zeros are different points, and NaN is equal to itself.
        let odd = Reals::from_rows([[0.0], [-0.0], [f64::NAN], [f64::NAN]]);
        assert_eq!(odd.group().group_of, [0, 1, 2, 2]);
    }
}
