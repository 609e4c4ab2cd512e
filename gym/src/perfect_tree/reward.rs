use gfn::Result;
use gfn::env::{Reward, VectorStates};
use gfn::tensor::log_sum_exp;

use super::PerfectBinaryTree;
use crate::rewards;

/// A reward from a function that gives log R of a node's index.
///
/// ```
/// use gfn::env::Reward;
/// use gfn_gym::perfect_tree::{PerNode, PerfectBinaryTree};
/// let rules = PerfectBinaryTree::new(2)?;
/// let reward = PerNode::SQRT;
/// assert_eq!(reward.log_reward(&rules.states_of([3])?, None)?, [2f64.ln()]);
/// assert!((reward.log_z(&rules).unwrap_or(0.0) - 2.2333753084846895).abs() < 1e-12);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PerNode<F>(pub F);

impl PerNode<fn(u64) -> f64> {
    /// `R = sqrt(node + 1)`, a smooth reward to try things with.
    pub const SQRT: Self = Self(|node| 0.5 * (node as f64 + 1.0).ln());
}

impl<F: Fn(u64) -> f64> PerNode<F> {
    /// The true log Z, by enumeration of the leaves; `None` beyond a depth of 24.
    #[must_use]
    pub fn log_z(&self, env: &PerfectBinaryTree) -> Option<f64> {
        (env.depth() <= 24).then(|| log_sum_exp(env.leaves().map(&self.0)))
    }
}

impl<F: Fn(u64) -> f64 + Send> Reward<VectorStates> for PerNode<F> {
    fn log_reward(&self, states: &VectorStates, _: Option<&tch::Tensor>) -> Result<Vec<f64>> {
        rewards::of_rows(states, states.width(), |row| {
            (!row.contains(&0)).then(|| (self.0)(PerfectBinaryTree::node(row)))
        })
    }
}
