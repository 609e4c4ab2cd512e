//! What environments whose states are vectors have in common, given the moves of one vector; for packages of environments.

use gfn::env::{Direction, Masks, Rows, Slots, Step, VectorStates};
use gfn::{Error, Result};

/// The moves of one state: where environments of [`VectorStates`] differ. Free functions of this module make a batch of them.
///
/// The initial state is all zeros. A backward slot names a parent, and forward slots come before the exit.
pub trait Rules {
    /// Entries of a state.
    fn width(&self) -> usize;

    /// Slots in a direction, the exit not counted.
    fn n_moves(&self, direction: Direction) -> usize;

    /// Whether trajectories end by an exit action; if not, by reaching a state that can end.
    fn has_exit(&self) -> bool;

    /// Whether a trajectory can end in this state; without an exit it then does.
    fn can_end(&self, row: &[u16]) -> bool;

    /// Marks the legal moves of one state in `legal`, which starts as all `false`.
    fn mark(&self, direction: Direction, row: &[u16], legal: &mut [bool]);

    /// Makes a move and gives the slot that undoes it; `None`, the state unchanged, if it isn't legal.
    fn apply(&self, direction: Direction, row: &mut [u16], slot: usize) -> Option<usize>;

    /// A move in words, for messages; the slot is one of `n_moves`.
    fn describe(&self, direction: Direction, row: &[u16], slot: usize) -> String;
}

/// As many initial states.
pub fn initial(rules: &impl Rules, n: usize) -> VectorStates {
    VectorStates::filled(rules.width(), n, 0)
}

/// Takes one action of each state, as [`Env::step`](gfn::env::Env::step) does.
///
/// # Errors
/// [`Error::Shape`] for states of another environment or not one action for each, [`Error::IllegalAction`] for one that isn't legal.
pub fn step(
    rules: &impl Rules,
    direction: Direction,
    states: &mut VectorStates,
    actions: &Slots,
) -> Result<Step<Slots>> {
    let n = actions.len();
    if (states.len(), states.width()) != (n, rules.width()) {
        return Err(Error::Shape {
            what: "states".into(),
            expected: vec![n as i64, rules.width() as i64],
            got: vec![states.len() as i64, states.width() as i64],
            remedy: "give one action per state, and states of this environment",
        });
    }
    let forward = direction == Direction::Forward;
    let exit_slot = (forward && rules.has_exit()).then(|| rules.n_moves(direction));
    let mut step = Step { reverse: Slots(vec![0; n]), exit: vec![false; n], done: vec![false; n] };
    let mut illegal = None;
    for (i, (row, &slot)) in states.values_mut().chunks_exact_mut(rules.width()).zip(&actions.0).enumerate() {
        let slot = slot as usize;
        let exit = exit_slot == Some(slot) && rules.can_end(row);
        if exit {
            (step.exit[i], step.done[i]) = (true, true);
        } else if let Some(reverse) = rules.apply(direction, row, slot) {
            step.reverse.0[i] = reverse as u32;
            step.done[i] = if forward { exit_slot.is_none() && rules.can_end(row) } else { is_zero(row) };
        } else {
            illegal = Some((i, slot));
            break;
        }
    }
    match illegal {
        None => Ok(step),
        Some((row, slot)) => {
            let masks = masks(rules, direction, &states.select(&[row]));
            Err(Error::IllegalAction {
                row,
                direction,
                slot,
                n_slots: masks.row(0).len(),
                n_legal: masks.n_legal(0),
                detail: describe(rules, direction, states, row, slot as u32),
            })
        }
    }
}

/// Which states are initial.
pub fn is_initial(states: &VectorStates) -> Vec<bool> {
    states.rows().map(is_zero).collect()
}

fn is_zero(row: &[u16]) -> bool {
    row.iter().all(|&x| x == 0)
}

/// The exit of each state, if there is such an action.
pub fn exit_actions(rules: &impl Rules, states: &VectorStates) -> Option<Slots> {
    rules.has_exit().then(|| Slots(vec![rules.n_moves(Direction::Forward) as u32; states.len()]))
}

/// What is legal in each state, the exit behind the moves.
pub fn masks(rules: &impl Rules, direction: Direction, states: &VectorStates) -> Masks {
    let n_moves = rules.n_moves(direction);
    let has_exit = rules.has_exit() && direction == Direction::Forward;
    let width = n_moves + usize::from(has_exit);
    let mut legal = vec![false; states.len() * width];
    for (legal, row) in legal.chunks_exact_mut(width).zip(states.rows()) {
        rules.mark(direction, row, &mut legal[..n_moves]);
        if has_exit {
            legal[n_moves] = rules.can_end(row);
        }
    }
    Masks::of_rows(direction, states.len(), width, legal, has_exit)
}

/// A slot of a state in words, for messages.
pub fn describe(rules: &impl Rules, direction: Direction, states: &VectorStates, row: usize, slot: u32) -> String {
    if row >= states.len() {
        return format!("there is no state {row}");
    }
    let (row, slot, n_moves) = (states.row(row), slot as usize, rules.n_moves(direction));
    if slot < n_moves {
        rules.describe(direction, row, slot)
    } else if slot == n_moves && rules.has_exit() && direction == Direction::Forward {
        format!("exit at {row:?}")
    } else {
        format!("there is no {direction} slot {slot} at {row:?}")
    }
}

/// The entries themselves as keys: right whatever the size of the space.
pub fn keys(states: &VectorStates) -> Vec<Vec<u16>> {
    states.rows().map(<[u16]>::to_vec).collect()
}

/// One reward per state, each from a finished one.
///
/// # Errors
/// [`Error::Shape`] for states of another width, [`Error::Config`] for a state that `log_reward` has no reward for.
pub fn rewards(states: &VectorStates, width: usize, log_reward: impl Fn(&[u16]) -> Option<f64>) -> Result<Vec<f64>> {
    if states.width() != width {
        return Err(Error::Shape {
            what: "states".into(),
            expected: vec![states.len() as i64, width as i64],
            got: vec![states.len() as i64, states.width() as i64],
            remedy: "give the reward states of the environment that it was made for",
        });
    }
    let of_row = |row: &[u16]| {
        log_reward(row).ok_or_else(|| Error::Config {
            setting: "a state to be rewarded",
            got: format!("{row:?}"),
            expected: "a state that a trajectory of the reward's environment can end in",
        })
    };
    states.rows().map(of_row).collect()
}

/// Checks that `x` is finite and above zero, and gives it back.
///
/// # Errors
/// [`Error::Config`], which names the setting, if it isn't.
pub fn positive(setting: &'static str, x: f64) -> Result<f64> {
    if x > 0.0 && x.is_finite() {
        return Ok(x);
    }
    Err(Error::Config { setting, got: x.to_string(), expected: "a finite number above 0" })
}
