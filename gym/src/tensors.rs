//! Layouts of states whose moves are tensor operations. Environments with the same states and slots share a
//! layout.

use gfn::env::{Direction, TensorEnv, VectorEnv};
use tch::{Kind, Tensor};

use crate::cells::Cells;

/// Vectors of counts. A forward move raises an entry by 1, and a backward move lowers an entry by 1. The slot
/// of both moves is the index of the entry.
pub(crate) struct Counts {
    pub(crate) width: usize,
    /// The largest value of an entry.
    pub(crate) largest: usize,
    /// The largest sum of the entries; `None` if only the entries are bounded.
    pub(crate) max_sum: Option<usize>,
    /// If `true`, the exit is legal in every state. If `false`, a trajectory ends at the largest sum.
    pub(crate) has_exit: bool,
}

impl Counts {
    fn sums(states: &Tensor) -> Tensor {
        states.sum_dim_intlist(1, false, Kind::Int64)
    }
}

impl TensorEnv for Counts {
    fn width(&self) -> usize {
        self.width
    }
    fn n_values(&self) -> usize {
        self.largest + 1
    }
    fn n_moves(&self, _: Direction) -> usize {
        self.width
    }
    fn has_exit(&self) -> bool {
        self.has_exit
    }
    fn can_end(&self, states: &Tensor) -> Tensor {
        match self.max_sum {
            Some(most) if !self.has_exit => Self::sums(states).eq(most as i64),
            _ => Tensor::ones([states.size()[0]], (Kind::Bool, states.device())),
        }
    }
    fn legal(&self, direction: Direction, states: &Tensor) -> Tensor {
        if direction == Direction::Backward {
            return states.gt(0);
        }
        let fits = states.lt(self.largest as i64);
        match self.max_sum {
            Some(most) => fits.logical_and(&Self::sums(states).lt(most as i64).unsqueeze(1)),
            None => fits,
        }
    }
    fn step(&self, direction: Direction, states: &Tensor, moves: &Tensor) -> Tensor {
        let change = if direction == Direction::Forward { 1 } else { -1 };
        let moves = moves.unsqueeze(1);
        states.scatter_add(1, &moves, &moves.full_like(change))
    }
    fn reverse(&self, _: Direction, _: &Tensor, moves: &Tensor) -> Tensor {
        moves.shallow_clone()
    }
    fn n_steps(&self) -> Option<usize> {
        if self.has_exit { None } else { self.max_sum }
    }
}

impl Cells {
    /// Returns the environment with these rules, in both forms.
    pub(crate) fn env(self) -> VectorEnv {
        VectorEnv::new(self).with_tensors(self)
    }
}

impl TensorEnv for Cells {
    fn width(&self) -> usize {
        self.n
    }
    fn n_values(&self) -> usize {
        self.n_values + 1
    }
    fn n_moves(&self, direction: Direction) -> usize {
        if direction == Direction::Forward { self.n * self.n_values } else { self.n }
    }
    fn has_exit(&self) -> bool {
        false
    }
    fn can_end(&self, states: &Tensor) -> Tensor {
        states.gt(0).all_dim(1, false)
    }
    fn legal(&self, direction: Direction, states: &Tensor) -> Tensor {
        if direction == Direction::Backward {
            return states.gt(0);
        }
        let is_empty = states.eq(0);
        let n_values = self.n_values as i64;
        if self.by_value {
            is_empty.repeat([1, n_values])
        } else {
            is_empty.unsqueeze(2).expand([-1, -1, n_values], false).flatten(1, 2)
        }
    }
    fn step(&self, direction: Direction, states: &Tensor, moves: &Tensor) -> Tensor {
        if direction == Direction::Backward {
            return states.scatter_value(1, &moves.unsqueeze(1), 0);
        }
        let n = if self.by_value { self.n } else { self.n_values } as i64;
        let mut entry = moves.floor_divide_scalar(n);
        let mut value = moves.remainder(n);
        if self.by_value {
            std::mem::swap(&mut entry, &mut value);
        }
        states.scatter(1, &entry.unsqueeze(1), &(value + 1).unsqueeze(1))
    }
    fn reverse(&self, direction: Direction, states: &Tensor, moves: &Tensor) -> Tensor {
        match direction {
            Direction::Forward if self.by_value => moves.remainder(self.n as i64),
            Direction::Forward => moves.floor_divide_scalar(self.n_values as i64),
            Direction::Backward => {
                let value = states.gather(1, &moves.unsqueeze(1), false).squeeze_dim(1) - 1;
                if self.by_value {
                    value * self.n as i64 + moves
                } else {
                    moves * self.n_values as i64 + value
                }
            }
        }
    }
    fn n_steps(&self) -> Option<usize> {
        Some(self.n)
    }
}

/// Sequences of tokens as a tensor. An entry is a token plus 1, and 0 after the last token.
///
/// Forward slot `t` below `n_tokens` appends the token `t`, and backward slot 0 removes the last token. If
/// sequences grow at both ends, forward slot `n_tokens + t` prepends the token `t`, and backward slot 1
/// removes the first token. [`TokenSequence::env`](crate::sequence::TokenSequence::env) has this form.
///
/// ```
/// use gfn::env::{Direction, TensorEnv};
/// use gfn_gym::sequence::SequenceTensors;
/// let form = SequenceTensors { n_tokens: 4, min_len: None, max_len: 3, has_two_ends: true };
/// let states = tch::Tensor::from_slice(&[3i64, 0, 0]).unsqueeze(0);
/// let prepended = form.step(Direction::Forward, &states, &tch::Tensor::from_slice(&[4 + 1i64]));
/// assert_eq!(Vec::<i64>::try_from(prepended.view(-1))?, [2, 3, 0]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SequenceTensors {
    /// The number of different tokens that a sequence may have, at least 1.
    pub n_tokens: usize,
    /// The smallest length from which the exit action is legal. `None` means that there is no exit action,
    /// and that a trajectory ends with `max_len` tokens.
    pub min_len: Option<usize>,
    /// The largest length of a sequence, at least 1.
    pub max_len: usize,
    /// If `true`, sequences grow at both ends.
    pub has_two_ends: bool,
}

/// Returns the length of each sequence, `[n, 1]`.
fn lengths(states: &Tensor) -> Tensor {
    states.gt(0).sum_dim_intlist(1, true, Kind::Int64)
}

impl SequenceTensors {
    fn n_ends(&self) -> usize {
        1 + usize::from(self.has_two_ends)
    }

    /// Returns the index of the last token of each sequence, `[n, 1]`.
    fn last(states: &Tensor) -> Tensor {
        (lengths(states) - 1).clamp_min(0)
    }
}

impl TensorEnv for SequenceTensors {
    fn width(&self) -> usize {
        self.max_len
    }
    fn n_values(&self) -> usize {
        self.n_tokens + 1
    }
    fn n_moves(&self, direction: Direction) -> usize {
        if direction == Direction::Forward { self.n_ends() * self.n_tokens } else { self.n_ends() }
    }
    fn has_exit(&self) -> bool {
        self.min_len.is_some()
    }
    fn can_end(&self, states: &Tensor) -> Tensor {
        lengths(states).squeeze_dim(1).ge(self.min_len.unwrap_or(self.max_len) as i64)
    }
    fn legal(&self, direction: Direction, states: &Tensor) -> Tensor {
        // The empty entries come last, so a single entry shows if a sequence is full, or if it is empty.
        let any_move = match direction {
            Direction::Forward => states.narrow(1, self.max_len as i64 - 1, 1).eq(0),
            Direction::Backward => states.narrow(1, 0, 1).gt(0),
        };
        any_move.expand([-1, self.n_moves(direction) as i64], false)
    }
    fn step(&self, direction: Direction, states: &Tensor, moves: &Tensor) -> Tensor {
        let n_kept = self.max_len as i64 - 1;
        let n_tokens = self.n_tokens as i64;
        let entry = (moves.remainder(n_tokens) + 1).unsqueeze(1);
        let at_end = match direction {
            Direction::Forward => states.scatter(1, &lengths(states).clamp_max(n_kept), &entry),
            Direction::Backward => states.scatter_value(1, &Self::last(states), 0),
        };
        if !self.has_two_ends {
            return at_end;
        }
        let (at_start, is_start) = match direction {
            Direction::Forward => {
                (Tensor::cat(&[&entry, &states.narrow(1, 0, n_kept)], 1), moves.ge(n_tokens))
            }
            Direction::Backward => {
                (Tensor::cat(&[states.narrow(1, 1, n_kept), entry.zeros_like()], 1), moves.eq(1))
            }
        };
        at_start.where_self(&is_start.unsqueeze(1), &at_end)
    }
    fn reverse(&self, direction: Direction, states: &Tensor, moves: &Tensor) -> Tensor {
        let n_tokens = self.n_tokens as i64;
        if direction == Direction::Forward {
            return moves.floor_divide_scalar(n_tokens);
        }
        let last = states.gather(1, &Self::last(states), false).squeeze_dim(1) - 1;
        if !self.has_two_ends {
            return last;
        }
        let first = states.select(1, 0) - 1 + n_tokens;
        first.where_self(&moves.eq(1), &last)
    }
    fn n_steps(&self) -> Option<usize> {
        if self.has_exit() { None } else { Some(self.max_len) }
    }
}
