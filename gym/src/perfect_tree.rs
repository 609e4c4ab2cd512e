//! A perfect binary tree, in which trajectories descend from the root to a leaf.

use gfn::env::{Reward, VectorEnv, VectorStates};
use gfn::tensor::log_sum_exp;
use gfn::{Error, Result};

use crate::rewards;
use crate::sequence::TokenSequence;

/// A perfect binary tree. Node `i` has the children `2 i + 1` and `2 i + 2`, and trajectories lead from the
/// root, node 0, to a leaf.
///
/// * *States.* A state is the path from the root to its node. Entry `d` is 1 if the path goes left at depth
///   `d`, 2 if it goes right there, and 0 if it ends at depth `d` or nearer to the root. The input layer of a
///   network is `KHot::new(env.depth(), 3)`. (torchgfn's state is the node's index, which
///   [`node`](Self::node) returns. As input of a network the index would be a single number, or an entry of
///   `2^(depth + 1)` values.)
/// * *Forward slots.* Slot 0 goes to the left child, and slot 1 to the right child.
/// * *Backward slots.* Slot 0 goes to the parent.
/// * *End.* There is no exit action: a leaf ends the trajectory. (torchgfn adds a forced exit.)
///
/// ```
/// use gfn::env::{Direction, Env, Slots};
/// use gfn_gym::perfect_tree::PerfectBinaryTree;
/// let env = PerfectBinaryTree::new(3)?.env();
/// let mut states = env.initial(&[0]);
/// for slot in [0, 1, 0] {
///     env.step(Direction::Forward, &mut states, &Slots(vec![slot]))?;
/// }
/// assert_eq!(states.row(0), [1, 2, 1]);
/// assert_eq!(PerfectBinaryTree::node(states.row(0)), 9);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PerfectBinaryTree {
    path: TokenSequence,
}

impl PerfectBinaryTree {
    /// Builds the rules of a tree with `2^depth` leaves.
    ///
    /// # Errors
    /// [`Error::Config`] for a depth outside `1..=62`, because the index of a node is a `u64`.
    pub fn new(depth: usize) -> Result<Self> {
        if !(1..=62).contains(&depth) {
            return Err(Error::config("depth", depth, "1 to 62 levels of edges"));
        }
        Ok(Self { path: TokenSequence::fixed(2, depth)? })
    }

    /// The number of edges from the root to a leaf.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.path.entries()
    }

    /// The number of nodes, `2^(depth + 1) - 1`.
    #[must_use]
    pub fn n_states(&self) -> u64 {
        (2 << self.depth()) - 1
    }

    /// The indices of the leaves, `2^depth - 1 ..= 2^(depth + 1) - 2`.
    #[must_use]
    pub fn leaves(&self) -> std::ops::RangeInclusive<u64> {
        (1 << self.depth()) - 1..=self.n_states() - 1
    }

    /// Returns the index of the node to which a state's path leads.
    #[must_use]
    pub fn node(row: &[u16]) -> u64 {
        row.iter().take_while(|&&x| x > 0).fold(0, |node, &x| 2 * node + u64::from(x))
    }

    /// Returns the states of the nodes with the indices `nodes`.
    ///
    /// # Errors
    /// [`Error::Config`] for a node that the tree lacks.
    pub fn states_of(&self, nodes: impl IntoIterator<Item = u64>) -> Result<VectorStates> {
        let mut paths = Vec::new();
        for mut node in nodes {
            if node >= self.n_states() {
                return Err(Error::config("a node of the tree", node, "an index below `n_states()`"));
            }
            let mut path = Vec::new();
            while node > 0 {
                path.push(((node - 1) % 2) as u16);
                node = (node - 1) / 2;
            }
            path.reverse();
            paths.push(path);
        }
        self.path.states_of(&paths)
    }

    /// Returns the [`VectorEnv`] whose rules `self` defines.
    #[must_use]
    pub fn env(&self) -> VectorEnv {
        self.path.env()
    }
}

/// A reward defined by a function from a node's index to log R.
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
    /// The reward `R = sqrt(node + 1)`, a smooth function for first experiments.
    pub const SQRT: Self = Self(|node| 0.5 * (node as f64 + 1.0).ln());
}

impl<F: Fn(u64) -> f64> PerNode<F> {
    /// Returns log Z by enumeration of the leaves; `None` for a depth above 24.
    #[must_use]
    pub fn log_z(&self, env: &PerfectBinaryTree) -> Option<f64> {
        (env.depth() <= 24).then(|| log_sum_exp(env.leaves().map(&self.0)))
    }
}

impl<F: Fn(u64) -> f64 + Send> Reward<VectorStates> for PerNode<F> {
    fn log_reward(&self, states: &VectorStates, _: Option<&tch::Tensor>) -> Result<Vec<f64>> {
        rewards::score_rows(states, states.width(), |row| {
            (!row.contains(&0)).then(|| (self.0)(PerfectBinaryTree::node(row)))
        })
    }
}
