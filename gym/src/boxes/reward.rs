use gfn::env::{Reals, Reward};
use gfn::{Error, Result};

/// The reward of the original hyper-grid, transferred to the unit box (Lahlou et al., 2023): `R0 + R1 prod_i
/// [|x_i - 1/2| > 1/4] + R2 prod_i [0.3 < |x_i - 1/2| < 0.4]`. A bracket is 1 if its condition holds, and
/// otherwise 0.
///
/// Every point except the source can be the end of a trajectory, so unfinished states have the same reward.
///
/// ```
/// use gfn::env::{Reals, Reward};
/// use gfn_gym::boxes::BoxReward;
/// let reward = BoxReward::default();
/// let log_r = reward.log_reward(&Reals::from_rows([[0.15, 0.87], [0.5, 0.5]]), None)?;
/// assert_eq!(log_r, [2.6f64.ln(), 0.1f64.ln()]);
/// assert!((reward.log_z(2) + 1.1874).abs() < 1e-4);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BoxReward {
    r0: f64,
    r1: f64,
    r2: f64,
}

/// The intervals of an axis in which every coordinate of a point must lie for the point to earn R1.
const OUTER: [(f64, f64); 2] = [(0.0, 0.25), (0.75, 1.0)];
/// The intervals of an axis in which every coordinate of a point must lie for the point to earn R2.
const BANDS: [(f64, f64); 2] = [(0.1, 0.2), (0.8, 0.9)];

impl BoxReward {
    /// Builds a reward with these values of R0, R1 and R2.
    ///
    /// # Errors
    /// [`Error::Config`] unless R0 is positive, R1 and R2 are at least 0, and all are finite.
    pub fn new(r0: f64, r1: f64, r2: f64) -> Result<Self> {
        if r0 > 0.0 && r1 >= 0.0 && r2 >= 0.0 && [r0, r1, r2].iter().all(|r| r.is_finite()) {
            Ok(Self { r0, r1, r2 })
        } else {
            Err(Error::config(
                "the heights of the box's reward",
                format!("R0 {r0}, R1 {r1}, R2 {r2}"),
                "R0 > 0, R1 >= 0 and R2 >= 0, all finite",
            ))
        }
    }

    /// Returns the reward R of a point of the box.
    fn at(&self, point: &[f64]) -> f64 {
        let all = |inside: fn(f64) -> bool| point.iter().all(|x| inside((x - 0.5).abs()));
        let mut reward = self.r0;
        if all(|distance| distance > 0.25) {
            reward += self.r1;
        }
        if all(|distance| 0.3 < distance && distance < 0.4) {
            reward += self.r2;
        }
        reward
    }

    /// Returns log Z, which is the log of the integral of R over the box of `ndim` axes.
    #[must_use]
    pub fn log_z(&self, ndim: usize) -> f64 {
        let power = |length: f64| length.powi(ndim as i32);
        (self.r0 + self.r1 * power(0.5) + self.r2 * power(0.2)).ln()
    }

    /// Divides the square into `bins` by `bins` cells and returns the exact probability of each cell.
    /// Neighbours along the first axis are adjacent in the result.
    #[must_use]
    pub fn cells(&self, bins: usize) -> Vec<f64> {
        let share = |intervals: &[(f64, f64)], k: usize| -> f64 {
            let low = k as f64 / bins as f64;
            let high = (k + 1) as f64 / bins as f64;
            intervals.iter().map(|&(a, b)| (b.min(high) - a.max(low)).max(0.0)).sum()
        };
        let along = |k| [1.0 / bins as f64, share(&OUTER, k), share(&BANDS, k)];
        let axis: Vec<[f64; 3]> = (0..bins).map(along).collect();
        let total = self.log_z(2).exp();
        let heights = [self.r0, self.r1, self.r2];
        let cell = |x: &[f64; 3], y: &[f64; 3]| {
            (0..3).map(|part| heights[part] * x[part] * y[part]).sum::<f64>() / total
        };
        axis.iter().flat_map(|y| axis.iter().map(|x| cell(x, y)).collect::<Vec<_>>()).collect()
    }
}

impl Default for BoxReward {
    /// Returns the reward with R0 = 0.1, R1 = 0.5 and R2 = 2.
    fn default() -> Self {
        Self { r0: 0.1, r1: 0.5, r2: 2.0 }
    }
}

impl Reward<Reals> for BoxReward {
    fn log_reward(&self, points: &Reals, _: Option<&tch::Tensor>) -> Result<Vec<f64>> {
        Ok(points.rows().map(|point| self.at(point).ln()).collect())
    }
    fn partial_log_reward(
        &self,
        points: &Reals,
        conditions: Option<&tch::Tensor>,
    ) -> Result<Option<Vec<f64>>> {
        self.log_reward(points, conditions).map(Some)
    }
}
