use gfn::env::{Reward, Rows, VectorStates};
use gfn::{Error, Result, Rng};
use tch::{Kind, Tensor};

use super::{OriginalReward, check_points};
use crate::hypergrid::HyperGrid;

/// A mixture of a flat reward and the hyper-grid's reward by Bengio et al. (2021), under a condition `c` in
/// `[0, 1]` of each trajectory.
///
/// The reward is `R(x | c) = (1 - c) (r0 + r1 + r2) + c R_original(x)`. Here `R_original` is the
/// [`OriginalReward`], and `r0`, `r1` and `r2` are its parameters. At c = 0 every point earns as much as a
/// mode; at c = 1 the reward is `R_original`. The conditions of `n` points are a tensor `[n, 1]`.
///
/// ```
/// use gfn::env::{Reward, VectorStates};
/// use gfn_gym::hypergrid::{ConditionalReward, HyperGrid, OriginalReward};
/// let grid = HyperGrid::new(2, 8)?;
/// let reward = ConditionalReward::new(OriginalReward::standard(&grid)?);
/// let states = VectorStates::from_rows([[4, 4], [4, 4]]);
/// let conditions = tch::Tensor::from_slice(&[0.0, 1.0]).unsqueeze(1);
/// let log_rewards = reward.log_reward(&states, Some(&conditions))?;
/// assert!((log_rewards[0] - 2.6f64.ln()).abs() < 1e-12 && (log_rewards[1] - 0.1f64.ln()).abs() < 1e-12);
/// assert!((reward.log_z(0.0)? - (64.0 * 2.6f64).ln()).abs() < 1e-12);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ConditionalReward {
    original: OriginalReward,
}

impl ConditionalReward {
    /// The number of columns of the tensor of conditions: a single condition per trajectory.
    pub const CONDITION_DIM: i64 = 1;

    /// Builds the mixture of a flat reward and `original`.
    #[must_use]
    pub fn new(original: OriginalReward) -> Self {
        Self { original }
    }

    /// Returns the [`OriginalReward`] of the mixture, which is the reward at a condition of 1. The modes are
    /// the same at every condition above 0.
    #[must_use]
    pub fn original(&self) -> &OriginalReward {
        &self.original
    }

    /// Draws `n` conditions, uniform in `[0, 1)`, and returns them as a tensor `[n, 1]` of type `f64` on the
    /// CPU.
    pub fn sample_conditions(&self, n: usize, rng: &mut Rng) -> Tensor {
        let conditions: Vec<f64> = (0..n).map(|_| rng.uniform()).collect();
        Tensor::from_slice(&conditions).view([n as i64, Self::CONDITION_DIM])
    }

    /// Returns R of each point under one condition; 0 for a point outside the grid.
    ///
    /// # Errors
    /// [`Error::Config`] for a condition outside `[0, 1]`.
    pub fn reward(&self, states: &VectorStates, condition: f64) -> Result<Vec<f64>> {
        check_condition(condition, None)?;
        let mix = |original: f64| if original > 0.0 { self.mixed(original, condition) } else { 0.0 };
        Ok(self.original.reward(states).into_iter().map(mix).collect())
    }

    /// Returns log Z under a condition c: `log((1 - c) (r0 + r1 + r2) H^D + c Z_original)`, with `H^D` the
    /// number of points of the grid and `Z_original` the sum of the [`OriginalReward`] over all points.
    ///
    /// # Errors
    /// [`Error::Config`] for a condition outside `[0, 1]`.
    pub fn log_z(&self, condition: f64) -> Result<f64> {
        check_condition(condition, None)?;
        let flat = self.original.grid_reward().mode_threshold() * self.grid().n_states() as f64;
        Ok(((1.0 - condition) * flat + condition * self.original.log_z().exp()).ln())
    }

    /// Returns the target distribution under a condition: the logarithm of `R(x | c) / Z(c)` for each point.
    ///
    /// # Errors
    /// [`Error::Config`] for a condition outside `[0, 1]`; [`Error::Shape`] or [`Error::Config`] for points
    /// outside the grid.
    pub fn log_target(&self, states: &VectorStates, condition: f64) -> Result<Vec<f64>> {
        check_points(self.grid(), states)?;
        let log_z = self.log_z(condition)?;
        Ok(self.reward(states, condition)?.into_iter().map(|reward| reward.ln() - log_z).collect())
    }

    fn grid(&self) -> &HyperGrid {
        self.original.grid_reward().grid()
    }

    fn mixed(&self, original: f64, condition: f64) -> f64 {
        (1.0 - condition) * self.original.grid_reward().mode_threshold() + condition * original
    }
}

fn check_condition(condition: f64, row: Option<usize>) -> Result<()> {
    if (0.0..=1.0).contains(&condition) {
        return Ok(());
    }
    Err(Error::config(
        "a condition",
        condition.to_string() + &row.map(|row| format!(" in row {row}")).unwrap_or_default(),
        "a number from 0 (a flat reward) to 1 (the original reward)",
    ))
}

impl Reward<VectorStates> for ConditionalReward {
    fn log_reward(&self, states: &VectorStates, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
        check_points(self.grid(), states)?;
        let Some(conditions) = conditions else {
            return Err(Error::config(
                "the conditions",
                "none",
                "a tensor [n, 1] of numbers from 0 to 1: sample with conditions, or use the original reward",
            ));
        };
        let expected = vec![states.len() as i64, Self::CONDITION_DIM];
        if conditions.size() != expected {
            return Err(Error::shape(
                "the conditions",
                expected,
                conditions.size(),
                "give one row of one number for each state",
            ));
        }
        let conditions = Vec::<f64>::try_from(conditions.to_kind(Kind::Double).reshape(-1))?;
        for (row, &condition) in conditions.iter().enumerate() {
            check_condition(condition, Some(row))?;
        }
        let original = self.original.reward(states);
        Ok(original.into_iter().zip(conditions).map(|(reward, c)| self.mixed(reward, c).ln()).collect())
    }

    fn partial_log_reward(
        &self,
        states: &VectorStates,
        conditions: Option<&Tensor>,
    ) -> Result<Option<Vec<f64>>> {
        self.log_reward(states, conditions).map(Some)
    }
}
