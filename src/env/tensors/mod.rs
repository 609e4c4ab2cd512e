//! Environments whose states are a tensor, for roll-outs that stay on a device.

mod form;
mod reward;
mod rules;

pub use form::TensorForm;
pub use reward::{PerTensor, TensorReward};
pub(super) use rules::TensorRules;

use tch::{Device, Kind, Tensor};

use super::Direction;

/// An environment whose states are a tensor on any device, so that a roll-out on a GPU needs no copy between
/// host and device in each step.
///
/// States are vectors of small integers, `[n, width]` (i64). The moves of a direction are numbered, and the
/// number of a move is its slot. The exit, if there is one, is the last forward slot; the library adds it.
/// All methods are pure functions of their arguments, made of tensor operations on the device of `states`.
///
/// [`VectorEnv::from_tensors`](super::VectorEnv::from_tensors) makes a complete environment from a
/// `TensorEnv` alone. [`VectorEnv::with_tensors`](super::VectorEnv::with_tensors) adds a `TensorEnv` to an
/// environment that is written for the host. The form of the host is faster on a CPU.
/// [`check_tensors`](crate::contract::check_tensors) compares the two.
///
/// ```
/// use gfn::env::{Direction, StateGraph, TensorEnv, VectorEnv};
/// use tch::Tensor;
///
/// /// Subsets of `n` items, added one at a time; any of them can be the end.
/// struct Subsets { n: usize }
///
/// impl TensorEnv for Subsets {
///     fn width(&self) -> usize {
///         self.n
///     }
///     fn n_values(&self) -> usize {
///         2
///     }
///     fn n_moves(&self, _: Direction) -> usize {
///         self.n
///     }
///     fn legal(&self, direction: Direction, states: &Tensor) -> Tensor {
///         states.eq(if direction == Direction::Forward { 0 } else { 1 })
///     }
///     fn step(&self, direction: Direction, states: &Tensor, moves: &Tensor) -> Tensor {
///         let value = if direction == Direction::Forward { 1 } else { 0 };
///         states.scatter_value(1, &moves.unsqueeze(1), value)
///     }
///     fn reverse(&self, _: Direction, _: &Tensor, moves: &Tensor) -> Tensor {
///         moves.shallow_clone()
///     }
/// }
///
/// let env = VectorEnv::from_tensors(Subsets { n: 3 })?;
/// assert_eq!(StateGraph::build(&env, 100)?.len(), 8);
/// # Ok::<(), gfn::Error>(())
/// ```
pub trait TensorEnv: Send + Sync {
    /// Returns the number of entries of a state, at least 1.
    fn width(&self) -> usize;

    /// Returns the number of values that an entry can have, at least 1 and at most 65,536. All entries are at
    /// least 0 and below this number.
    fn n_values(&self) -> usize;

    /// Returns the number of moves in a direction, legal or not. The exit isn't counted.
    fn n_moves(&self, direction: Direction) -> usize;

    /// Returns `true` for each legal move of each state, `[n, n_moves]` (bool). The initial state has no
    /// legal backward move, and every other state has at least one.
    fn legal(&self, direction: Direction, states: &Tensor) -> Tensor;

    /// Returns the state after each move, `[n, width]` (i64). `moves` has one move per state, `[n]` (i64).
    ///
    /// Rows of finished trajectories have move 0, whether it is legal or not. Their results are ignored, so
    /// they may be anything, but the operation must not fail.
    fn step(&self, direction: Direction, states: &Tensor, moves: &Tensor) -> Tensor;

    /// Returns the move of the other direction that undoes each move, `[n]` (i64). `states` are the states
    /// before the moves. Rows of finished trajectories have move 0, as in [`step`](Self::step).
    fn reverse(&self, direction: Direction, states: &Tensor, moves: &Tensor) -> Tensor;

    /// Returns `n` copies of the initial state, `[n, width]` (i64). The default is zeros.
    fn initial(&self, n: i64, device: Device) -> Tensor {
        Tensor::zeros([n, self.width() as i64], (Kind::Int64, device))
    }

    /// Returns `true` (the default) if trajectories end by an exit action. If the method returns `false`, a
    /// trajectory ends in the first state for which [`can_end`](Self::can_end) is true.
    fn has_exit(&self) -> bool {
        true
    }

    /// Returns `true` for each state in which a trajectory can end, `[n]` (bool). The default is true for
    /// every state.
    fn can_end(&self, states: &Tensor) -> Tensor {
        Tensor::ones([states.size()[0]], (Kind::Bool, states.device()))
    }

    /// Returns the number of actions of every trajectory, including the exit, if all have the same number. A
    /// roll-out then waits for the device only at its end. The default is `None`.
    fn n_steps(&self) -> Option<usize> {
        None
    }
}
