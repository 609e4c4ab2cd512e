use crate::distribution::GraphActionCategorical;
use crate::env::{Direction, DiscreteEnv, EnumerableEnv, Env, Grouping, Masks, Rows, Slots, Step};
use crate::train::TrainEnv;
use crate::{Error, Result};

/// A batch of states of a [`Chain`]. A state is a position, given by its number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Positions(pub Vec<u32>);

impl Rows for Positions {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn select(&self, rows: &[usize]) -> Self {
        Self(rows.iter().map(|&row| self.0[row]).collect())
    }
    fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }
    fn describe(&self, row: usize) -> Option<String> {
        self.0.get(row).map(|x| format!("position {x}"))
    }
    fn group(&self) -> Grouping {
        let hashes: Vec<u64> = self.0.iter().map(|&x| u64::from(x)).collect();
        Grouping::by(&hashes, |i, j| self.0[i] == self.0[j])
    }
}

/// A tiny environment without graphs. Its states are the positions `0..n`. An action moves one or two
/// positions ahead, or exits. The exit is legal in every position.
///
/// A position can be reached by several paths of different lengths. The number of these paths is a Fibonacci
/// number.
///
/// ```
/// use gfn::{env::{Direction, DiscreteEnv, Env}, examples::{Chain, Positions}};
/// let env = Chain::new(4);
/// assert_eq!(env.masks(Direction::Forward, &Positions(vec![0, 2, 3])).legal, [
///     true, true, true,
///     true, false, true,
///     false, false, true,
/// ]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    n: u32,
}

/// The slot of the exit action.
const EXIT: u32 = 2;

impl Chain {
    /// Creates a chain of the positions `0..n`. For `n` = 0 the chain has one position, as for `n` = 1.
    #[must_use]
    pub fn new(n: u32) -> Self {
        Self { n: n.max(1) }
    }
}

impl Env for Chain {
    type States = Positions;
    type Actions = Slots;
    type Dist = GraphActionCategorical;

    fn initial(&self, instances: &[u32]) -> Positions {
        Positions(vec![0; instances.len()])
    }

    fn step(&self, direction: Direction, states: &mut Positions, actions: &Slots) -> Result<Step<Slots>> {
        let mut out = Step { reverse: Slots(Vec::new()), exit: Vec::new(), done: Vec::new() };
        for (row, (x, &slot)) in states.0.iter_mut().zip(&actions.0).enumerate() {
            let exit = direction == Direction::Forward && slot == EXIT;
            let next = match direction {
                _ if exit => Some(*x),
                Direction::Forward => Some(*x + slot + 1).filter(|&next| next < self.n),
                Direction::Backward => x.checked_sub(slot + 1),
            };
            *x = next.ok_or_else(|| Error::IllegalAction {
                row,
                direction,
                slot: slot as usize,
                n_slots: 3,
                n_legal: 1,
                detail: format!("it leads from position {x} beyond the chain of {} positions", self.n),
            })?;
            // Forward and backward moves with the same slot cover `slot + 1` positions, so they undo each
            // other. An exit has no backward action, so its entry is 0.
            out.reverse.0.push(if exit { 0 } else { slot });
            out.exit.push(exit);
            out.done.push(exit || direction == Direction::Backward && *x == 0);
        }
        Ok(out)
    }

    fn is_initial(&self, states: &Positions) -> Vec<bool> {
        states.0.iter().map(|&x| x == 0).collect()
    }

    fn exit_actions(&self, states: &Positions) -> Option<Slots> {
        Some(Slots(vec![EXIT; states.len()]))
    }
}

impl DiscreteEnv for Chain {
    fn masks(&self, direction: Direction, states: &Positions) -> Masks {
        let row = |x: u32| match direction {
            Direction::Forward => vec![x + 1 < self.n, x + 2 < self.n, true],
            Direction::Backward => vec![x >= 1, x >= 2],
        };
        let legal = states.0.iter().flat_map(|&x| row(x)).collect();
        Masks::from_rows(direction, states.len(), row(0).len(), legal, direction == Direction::Forward)
    }

    fn describe(&self, direction: Direction, states: &Positions, row: usize, slot: u32) -> String {
        let from = states.0.get(row).copied().unwrap_or(0);
        match (direction, slot) {
            (Direction::Forward, EXIT) => format!("exit at {from}"),
            _ => format!("{} steps {direction} from {from}", slot + 1),
        }
    }
}

impl EnumerableEnv for Chain {
    type Key = u32;

    fn keys(&self, states: &Positions) -> Vec<u32> {
        states.0.clone()
    }
}

impl TrainEnv for Chain {}
