use tch::Tensor;

use super::Reward;
use crate::env::VectorStates;
use crate::{Result, parallel};

/// The smallest number of vectors per thread. With fewer vectors, starting a thread costs more than it saves.
const MIN_PER_THREAD: usize = 256;

/// A reward computed by a function that returns log R of one vector. Vectors are evaluated in parallel. The
/// function doesn't get the conditions. [`PerGraph`](crate::graph::PerGraph) does the same for graphs.
///
/// ```
/// use gfn::env::{PerVector, Reward, VectorStates};
/// let reward = PerVector(|row: &[u16]| f64::from(row.iter().sum::<u16>()));
/// assert_eq!(reward.log_reward(&VectorStates::from_rows([[1, 2], [0, 0]]), None)?, [3.0, 0.0]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PerVector<F>(pub F);

impl<F: Fn(&[u16]) -> f64 + Send + Sync> Reward<VectorStates> for PerVector<F> {
    fn log_reward(&self, states: &VectorStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
        let rows: Vec<&[u16]> = states.rows().collect();
        Ok(parallel::map(&rows, MIN_PER_THREAD, |row| (self.0)(row)))
    }
}
