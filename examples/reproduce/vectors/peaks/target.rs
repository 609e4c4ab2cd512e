//! The target: Gaussian peaks that lie apart, on a floor.

use gfn::env::{Reward, VectorStates};
use gfn::{Error, Result, Rng};
use gfn_gym::hypergrid::HyperGrid;
use tch::Tensor;

/// Seed of the peaks' places, which are the same for all runs.
const PLACES: u64 = 0;
/// Tops are at least so many widths apart.
const APART: f64 = 4.0;
/// Places that are tried for each peak.
const TRIES: usize = 10_000;

/// R(x) = floor + the sum over peaks of exp(-|x - top|^2 / (2 width^2)).
#[derive(Clone, Debug)]
pub(super) struct Peaks {
    grid: HyperGrid,
    tops: Vec<Vec<u16>>,
    width: f64,
    floor: f64,
}

impl Peaks {
    /// So many peaks at random points of the grid.
    pub(super) fn new(grid: HyperGrid, n: usize, width: f64, floor: f64) -> Result<Self> {
        for (flag, value) in [("--width", width), ("--floor", floor)] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Error::config(flag, value, "a finite number above 0"));
            }
        }
        let (mut rng, mut tops) = (Rng::seeded(PLACES), Vec::<Vec<u16>>::new());
        for _ in 0..n {
            let place = || (0..grid.ndim()).map(|_| rng.below(grid.height()) as u16).collect();
            let apart = |point: &Vec<u16>| tops.iter().all(|top| squared(top, point) >= (APART * width).powi(2));
            match std::iter::repeat_with(place).take(TRIES).find(apart) {
                Some(point) => tops.push(point),
                None => return Err(Error::config("--peaks", n, "fewer or narrower peaks, or a larger grid")),
            }
        }
        Ok(Self { grid, tops, width, floor })
    }

    pub(super) fn grid(&self) -> &HyperGrid {
        &self.grid
    }

    pub(super) fn len(&self) -> usize {
        self.tops.len()
    }

    /// Each peak at a point.
    fn heights(&self, point: &[u16]) -> impl Iterator<Item = f64> {
        self.tops.iter().map(move |top| (-0.5 * squared(top, point) / self.width.powi(2)).exp())
    }

    pub(super) fn log_value(&self, point: &[u16]) -> f64 {
        (self.floor + self.heights(point).sum::<f64>()).ln()
    }

    /// The peak that a point belongs to: one that is at least half as high there as at its top.
    pub(super) fn peak_at(&self, point: &[u16]) -> Option<usize> {
        self.heights(point).position(|height| height >= 0.5)
    }

    /// log Z: a peak's sum is a product over dimensions.
    pub(super) fn log_z(&self) -> f64 {
        let along = |&top: &u16| {
            let height = |x: usize| (-0.5 * ((x as f64 - f64::from(top)) / self.width).powi(2)).exp();
            (0..self.grid.height()).map(height).sum::<f64>()
        };
        let peak = |top: &Vec<u16>| top.iter().map(along).product::<f64>();
        (self.floor * self.grid.n_states() as f64 + self.tops.iter().map(peak).sum::<f64>()).ln()
    }
}

impl Reward<VectorStates> for Peaks {
    fn log_reward(&self, states: &VectorStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
        Ok(states.rows().map(|point| self.log_value(point)).collect())
    }
    fn partial_log_reward(&self, states: &VectorStates, _: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
        self.log_reward(states, None).map(Some)
    }
}

/// The squared distance of two points.
fn squared(one: &[u16], other: &[u16]) -> f64 {
    one.iter().zip(other).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum()
}
