use gfn::env::{Direction, VectorEnv, VectorRules, VectorStates};
use gfn::{Error, Result};

use crate::sequence::TokenSequence;

/// A perfect binary tree: node `i` has the children `2 i + 1` and `2 i + 2`, trajectories go from the root 0 to a leaf.
///
/// *States.* The way from the root: entry `d` is 0 below the node's depth, else 1 for left and 2 for right;
/// `KHot::new(env.depth(), 3)`. torchgfn's state is the node's index, which [`node`](Self::node) gives: as an entry it would leave a
/// network an entry of `2^(depth + 1)` values, or a number.
/// *Forward slots.* 0 left, 1 right. *Backward slots.* 0 up.
/// *End.* No exit action: a leaf ends the trajectory (torchgfn has a forced exit on top).
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
    /// A tree of `2^depth` leaves.
    ///
    /// # Errors
    /// [`Error::Config`] for a depth outside `1..=62`: a node's index is a `u64`.
    pub fn new(depth: usize) -> Result<Self> {
        if !(1..=62).contains(&depth) {
            return Err(Error::config("depth", depth, "1 to 62 levels of edges"));
        }
        Ok(Self { path: TokenSequence::fixed(2, depth)? })
    }

    /// Edges from the root to a leaf.
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

    /// The index of the node that a state is.
    #[must_use]
    pub fn node(row: &[u16]) -> u64 {
        row.iter().take_while(|&&x| x > 0).fold(0, |node, &x| 2 * node + u64::from(x))
    }

    /// The states of these nodes.
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

    /// Returns the environment of these rules.
    #[must_use]
    pub fn env(&self) -> VectorEnv {
        VectorEnv::new(*self)
    }
}

impl VectorRules for PerfectBinaryTree {
    fn width(&self) -> usize {
        self.path.width()
    }
    fn n_moves(&self, direction: Direction) -> usize {
        self.path.n_moves(direction)
    }
    fn has_exit(&self) -> bool {
        self.path.has_exit()
    }
    fn can_end(&self, row: &[u16]) -> bool {
        self.path.can_end(row)
    }
    fn mark(&self, direction: Direction, row: &[u16], legal: &mut [bool]) {
        self.path.mark(direction, row, legal);
    }
    fn apply(&self, direction: Direction, row: &mut [u16], slot: usize) -> Option<usize> {
        self.path.apply(direction, row, slot)
    }
    fn describe(&self, direction: Direction, row: &[u16], slot: usize) -> String {
        let node = Self::node(row);
        match (direction, slot) {
            (Direction::Forward, 0) => format!("go left from node {node}, of a tree of depth {}", self.depth()),
            (Direction::Forward, _) => format!("go right from node {node}, of a tree of depth {}", self.depth()),
            (Direction::Backward, _) => format!("go up from node {node}"),
        }
    }
}
