//! The reward of the task about narrow peaks: a sum of Gaussian peaks on a grid.

use std::f64::consts::PI;

use gfn::metrics::ModeTracker;

use crate::prelude::*;

/// The seed that places the peaks. The seed is fixed, so that all runs have the same peaks.
const PLACES_SEED: u64 = 0;
/// The smallest distance between the tops of two peaks, in standard deviations of a peak.
const MIN_DISTANCE: f64 = 4.0;
/// The largest number of random points that are tried as the top of a peak.
const MAX_TRIES: usize = 10_000;

/// A sum of Gaussian peaks far apart: R(x) = floor + the sum over peaks of exp(-|x - top|^2 / (2 width^2)).
#[derive(Clone)]
pub(super) struct Peaks {
    grid: HyperGrid,
    tops: Vec<Vec<u16>>,
    width: f64,
    floor: f64,
}

impl Peaks {
    /// Draws `n` peaks at random points of the grid, which are at least `MIN_DISTANCE` widths apart.
    pub(super) fn new(grid: HyperGrid, n: usize, width: f64, floor: f64) -> Result<Self> {
        for (flag, value) in [("--width", width), ("--floor", floor)] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Error::config(flag, value, "a finite number above 0"));
            }
        }
        let mut rng = Rng::seeded(PLACES_SEED);
        let mut tops = Vec::<Vec<u16>>::new();
        for _ in 0..n {
            let place = || (0..grid.ndim()).map(|_| rng.below(grid.height()) as u16).collect();
            let is_apart = |point: &Vec<u16>| {
                tops.iter().all(|top| squared(top, point) >= (MIN_DISTANCE * width).powi(2))
            };
            let point = std::iter::repeat_with(place).take(MAX_TRIES).find(is_apart);
            tops.push(point.ok_or(Error::config(
                "--peaks",
                n,
                "a number of peaks that fit on the grid at a distance from each other; give fewer or \
                 narrower peaks, or a larger grid",
            ))?);
        }
        Ok(Self { grid, tops, width, floor })
    }

    /// Returns the value of each peak's Gaussian at a point.
    fn heights(&self, point: &[u16]) -> impl Iterator<Item = f64> {
        self.tops.iter().map(move |top| (-0.5 * squared(top, point) / self.width.powi(2)).exp())
    }

    fn log_value(&self, point: &[u16]) -> f64 {
        (self.floor + self.heights(point).sum::<f64>()).ln()
    }

    pub(super) fn grid(&self) -> &HyperGrid {
        &self.grid
    }

    /// Returns `n` uniform points.
    pub(super) fn uniform(&self, n: usize, rng: &mut Rng) -> Result<VectorStates> {
        let n_values = n * self.grid.ndim();
        VectorStates::from_flat(
            self.grid.ndim(),
            (0..n_values).map(|_| rng.below(self.grid.height()) as u16).collect(),
        )
    }

    /// Returns the index of the peak whose Gaussian is at least 0.5 at a point; `None` if there is no such
    /// peak.
    fn top_near(&self, point: &[u16]) -> Option<usize> {
        self.heights(point).position(|height| height >= 0.5)
    }

    /// Counts the peaks whose tops are near some of these points.
    pub(super) fn add_tops(
        &self,
        found: &mut ModeTracker<usize>,
        step: usize,
        reward_calls: u64,
        points: &VectorStates,
    ) {
        found.add(step, reward_calls, points.rows().filter_map(|point| self.top_near(point)));
    }

    /// Returns the sum over the grid of each peak's Gaussian, and of the floor. The sum of a Gaussian is a
    /// product of sums over single dimensions.
    fn masses(&self) -> Vec<f64> {
        let along = |&top: &u16| {
            let height = |x: usize| (-0.5 * ((x as f64 - f64::from(top)) / self.width).powi(2)).exp();
            (0..self.grid.height()).map(height).sum::<f64>()
        };
        let peaks = self.tops.iter().map(|top| top.iter().map(along).product::<f64>());
        peaks.chain([self.floor * self.grid.n_states() as f64]).collect()
    }

    /// Returns the exact log Z.
    pub(super) fn log_z(&self) -> f64 {
        self.masses().iter().sum::<f64>().ln()
    }

    /// Returns entries of the report about the distribution of samples over the peaks and the floor. A point
    /// belongs to each peak, and to the floor, in proportion to their parts of its reward, so that the
    /// expected shares of samples from the target are the masses of the peaks. A peak is visited if more than
    /// half of a sample's reward is its Gaussian.
    pub(super) fn report_samples(&self, samples: &VectorStates) -> Value {
        let n = samples.len() as f64;
        let masses = self.masses();
        let total: f64 = masses.iter().sum();
        let mut shares = vec![0.0; masses.len()];
        let mut visited = vec![false; self.tops.len()];
        for point in samples.rows() {
            let parts: Vec<f64> = self.heights(point).chain([self.floor]).collect();
            let reward: f64 = parts.iter().sum();
            for (share, part) in shares.iter_mut().zip(&parts) {
                *share += part / reward / n;
            }
            for (visited, part) in visited.iter_mut().zip(&parts) {
                *visited |= *part > 0.5 * reward;
            }
        }
        let mut tv = 0.0;
        for (share, mass) in shares.iter().zip(&masses) {
            tv += (share - mass / total).abs() / 2.0;
        }
        let n_visited = visited.iter().filter(|visited| **visited).count();
        let floor_share = shares.pop();
        json!({ "peak_samples": samples.len(), "peaks_visited": n_visited, "tv_peaks": tv,
            "floor_share": floor_share, "peak_shares": shares })
    }

    /// Reports the TV between the target and the distribution of the chains' visits over the points, if the
    /// grid is small. For comparison, also reports the expected TV if the visits were independent samples
    /// from the target.
    pub(super) fn report_visits(&self, visits: &[u64], report: &mut Report) -> Result<()> {
        let n = visits.iter().sum::<u64>();
        if n == 0 {
            return Ok(());
        }
        let n_visits = n as f64;
        let mut tv = 0.0;
        let mut perfect = 0.0;
        for (point, &visits) in self.grid.states_of(0..visits.len() as u64)?.rows().zip(visits) {
            let p = (self.log_value(point) - self.log_z()).exp();
            tv += (visits as f64 / n_visits - p).abs() / 2.0;
            perfect += (p * (1.0 - p) / (2.0 * PI * n_visits)).sqrt();
        }
        report.extend(json!({ "visits": n, "tv_visits": tv, "tv_visits_perfect": perfect }));
        Ok(())
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

/// Returns the squared distance between two points.
fn squared(one: &[u16], other: &[u16]) -> f64 {
    one.iter().zip(other).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum()
}
