use gfn::policy::{Features, StateFeatures};

use super::{GridStates, HyperGrid};

/// A point as one block of `height` numbers per coordinate, 1 at the coordinate's value and 0 elsewhere; given as the columns
/// that are 1.
///
/// ```
/// use gfn::policy::{Features, StateFeatures};
/// use gfn_gym::hypergrid::{GridStates, HyperGrid, OneHot};
/// let features = OneHot::new(&HyperGrid::new(2, 3)?);
/// assert_eq!(features.width(), 6);
/// assert_eq!(features.encode(&GridStates::from_rows([[0, 2]])), Features::Active(vec![0, 3 + 2]));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OneHot {
    ndim: usize,
    height: usize,
}

impl OneHot {
    /// For the points of a grid.
    #[must_use]
    pub fn new(grid: &HyperGrid) -> Self {
        Self { ndim: grid.ndim(), height: grid.height() }
    }
}

impl StateFeatures<GridStates> for OneHot {
    fn width(&self) -> usize {
        self.ndim * self.height
    }
    fn encode(&self, states: &GridStates) -> Features {
        let mut columns = Vec::with_capacity(states.coordinates().len());
        for row in states.rows() {
            columns.extend(row.iter().enumerate().map(|(d, &x)| (d * self.height) as i64 + i64::from(x)));
        }
        Features::Active(columns)
    }
}

/// A point as its coordinates, scaled from `0..height` to -1 to 1: few inputs, and neighbours look alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Coordinates {
    ndim: usize,
    height: usize,
}

impl Coordinates {
    /// For the points of a grid.
    #[must_use]
    pub fn new(grid: &HyperGrid) -> Self {
        Self { ndim: grid.ndim(), height: grid.height() }
    }
}

impl StateFeatures<GridStates> for Coordinates {
    fn width(&self) -> usize {
        self.ndim
    }
    fn encode(&self, states: &GridStates) -> Features {
        let scale = 2.0 / (self.height - 1) as f32;
        Features::Dense(states.coordinates().iter().map(|&x| f32::from(x) * scale - 1.0).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_span_minus_one_to_one() {
        let grid = HyperGrid::new(3, 5).unwrap();
        let encoded = Coordinates::new(&grid).encode(&GridStates::from_rows([[0, 2, 4]]));
        assert_eq!(encoded, Features::Dense(vec![-1.0, 0.0, 1.0]));
    }
}
