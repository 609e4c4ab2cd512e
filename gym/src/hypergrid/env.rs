use gfn::env::{Direction, VectorEnv, VectorRules, VectorStates};
use gfn::{Error, Result};
use tch::Tensor;

use crate::tensors::Counts;

/// A grid of the points with integer coordinates `0..height` in `ndim` dimensions. The origin is the initial
/// state. Each action raises one coordinate by 1 or exits, and every point permits the exit.
///
/// Forward slot `d` in `0..ndim` raises coordinate `d` by 1, and forward slot `ndim` exits. Backward slot `d`
/// lowers coordinate `d` by 1. The key of a point is its index in lexicographic order, in which the last
/// coordinate changes fastest: `sum x_d height^(ndim - 1 - d)`.
///
/// ```
/// use gfn::env::{Direction, DiscreteEnv, Env, Slots};
/// use gfn_gym::hypergrid::HyperGrid;
/// let grid = HyperGrid::new(2, 8)?;
/// let env = grid.env();
/// let mut states = env.initial(&[0]);
/// env.step(Direction::Forward, &mut states, &Slots(vec![1]))?;
/// assert_eq!((states.row(0), grid.index(states.row(0))), ([0u16, 1].as_slice(), 1));
/// assert_eq!(env.masks(Direction::Backward, &states).row(0), [false, true]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HyperGrid {
    ndim: usize,
    height: u32,
    n_states: u64,
}

impl HyperGrid {
    /// Builds a grid of `ndim` dimensions with `height` points along each dimension.
    ///
    /// # Errors
    /// [`Error::Config`] if `ndim` is 0, if the height is outside `2..=65536`, or if `height^ndim` exceeds
    /// `u64`.
    pub fn new(ndim: usize, height: usize) -> Result<Self> {
        let refuse = |setting, got: String, expected| Err(Error::config(setting, got, expected));
        if ndim == 0 {
            return refuse("ndim", "0".into(), "at least 1 dimension");
        }
        let height = match u32::try_from(height) {
            Ok(h) if (2..=1 << 16).contains(&h) => h,
            _ => return refuse("height", height.to_string(), "2 to 65,536 points along each dimension"),
        };
        let n_states = u32::try_from(ndim).ok().and_then(|d| u64::from(height).checked_pow(d));
        let Some(n_states) = n_states else {
            let got = format!("{height} points along each of {ndim} dimensions");
            return refuse(
                "the size of the grid",
                got,
                "height^ndim below 2^64, because every point needs an index",
            );
        };
        Ok(Self { ndim, height, n_states })
    }

    /// Returns the number of dimensions of the grid.
    #[must_use]
    pub fn ndim(&self) -> usize {
        self.ndim
    }

    /// The number of points along each dimension.
    #[must_use]
    pub fn height(&self) -> usize {
        self.height as usize
    }

    /// The number of states, `height^ndim`.
    #[must_use]
    pub fn n_states(&self) -> u64 {
        self.n_states
    }

    /// Returns the points with these keys.
    ///
    /// # Errors
    /// [`Error::Config`] for a key that no point has.
    pub fn states_of(&self, keys: impl IntoIterator<Item = u64>) -> Result<VectorStates> {
        let mut coordinates = Vec::new();
        for key in keys {
            if key >= self.n_states {
                return Err(Error::config("a grid point's key", key, "a number below `n_states()`"));
            }
            let start = coordinates.len();
            coordinates.resize(start + self.ndim, 0);
            let mut rest = key;
            for x in coordinates[start..].iter_mut().rev() {
                *x = (rest % u64::from(self.height)) as u16;
                rest /= u64::from(self.height);
            }
        }
        VectorStates::from_flat(self.ndim, coordinates)
    }

    /// Returns `true` if a point has `ndim` coordinates, each below the height.
    #[must_use]
    pub fn contains(&self, point: &[u16]) -> bool {
        point.len() == self.ndim && point.iter().all(|&x| u32::from(x) < self.height)
    }

    /// Returns the largest value of a coordinate.
    fn top(&self) -> u16 {
        (self.height - 1) as u16
    }

    /// Returns the [`VectorEnv`] whose rules `self` defines.
    #[must_use]
    pub fn env(&self) -> VectorEnv {
        let top = self.top().into();
        let form = Counts { width: self.ndim, largest: top, max_sum: None, has_exit: true };
        VectorEnv::new(*self).with_tensors(form)
    }

    /// Returns the index of a point among all points in lexicographic order.
    #[must_use]
    pub fn index(&self, point: &[u16]) -> u64 {
        point.iter().fold(0, |index, &x| index * u64::from(self.height) + u64::from(x))
    }

    /// Returns the index of each point `[n, ndim]`, `[n]` (i64). Indices from 2^63 on are negative, with the
    /// same bits.
    pub(super) fn index_on_tensors(&self, points: &Tensor) -> Tensor {
        let first = points.select(1, 0);
        (1..self.ndim as i64).fold(first, |index, d| index * i64::from(self.height) + points.select(1, d))
    }
}

impl VectorRules for HyperGrid {
    fn width(&self) -> usize {
        self.ndim
    }
    fn n_values(&self) -> usize {
        self.height as usize
    }
    fn n_moves(&self, _: Direction) -> usize {
        self.ndim
    }
    fn mark(&self, direction: Direction, row: &[u16], legal: &mut [bool]) {
        let top = self.top();
        match direction {
            Direction::Forward => legal.iter_mut().zip(row).for_each(|(legal, &x)| *legal = x < top),
            Direction::Backward => legal.iter_mut().zip(row).for_each(|(legal, &x)| *legal = x > 0),
        }
    }
    fn apply(&self, direction: Direction, row: &mut [u16], slot: usize) -> Option<usize> {
        let x = row.get_mut(slot)?;
        *x = match direction {
            Direction::Forward if *x < self.top() => *x + 1,
            Direction::Backward if *x > 0 => *x - 1,
            _ => return None,
        };
        Some(slot)
    }
    fn describe(&self, direction: Direction, row: &[u16], slot: usize) -> String {
        match direction {
            Direction::Forward => format!("raise coordinate {slot} of {row:?}, at most {}", self.top()),
            Direction::Backward => format!("lower coordinate {slot} of {row:?}"),
        }
    }
}
