use gfn::policy::DenseFeatures;

use super::{GridStates, HyperGrid};

/// A point as one block of `height` numbers per coordinate, 1 at the coordinate's value and 0 elsewhere.
///
/// ```
/// use gfn::policy::DenseFeatures;
/// use gfn_gym::hypergrid::{GridStates, HyperGrid, OneHot};
/// let features = OneHot::new(&HyperGrid::new(2, 3)?);
/// assert_eq!(features.encode(&GridStates::from_rows([[0, 2]])), [1.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
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

impl DenseFeatures<GridStates> for OneHot {
    fn width(&self) -> usize {
        self.ndim * self.height
    }
    fn encode(&self, states: &GridStates) -> Vec<f32> {
        let mut out = vec![0.0; states.coordinates().len() * self.height];
        for (block, &x) in out.chunks_exact_mut(self.height).zip(states.coordinates()) {
            block[usize::from(x)] = 1.0;
        }
        out
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

impl DenseFeatures<GridStates> for Coordinates {
    fn width(&self) -> usize {
        self.ndim
    }
    fn encode(&self, states: &GridStates) -> Vec<f32> {
        let scale = 2.0 / (self.height - 1) as f32;
        states.coordinates().iter().map(|&x| f32::from(x) * scale - 1.0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_span_minus_one_to_one() {
        let grid = HyperGrid::new(3, 5).unwrap();
        let encoded = Coordinates::new(&grid).encode(&GridStates::from_rows([[0, 2, 4]]));
        assert_eq!(encoded, [-1.0, 0.0, 1.0]);
    }
}
