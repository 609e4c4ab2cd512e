//! The laws of single moves: what they do, and what undoes them.

use crate::env::{
    Direction, EnumerableEnv, Masks, Rows, Slots, Step, dead_end, describe_move, describe_state, first_other,
};
use crate::{Error, Result};

/// Legal moves of some states in one direction, and their outcome.
pub(super) struct Expansion<E: EnumerableEnv> {
    pub(super) masks: Masks,
    /// The state of each move.
    pub(super) rows: Vec<usize>,
    pub(super) slots: Slots,
    /// True for each move that the masks have as the exit.
    pub(super) exit: Vec<bool>,
    /// The state that each move leads to.
    pub(super) after: E::States,
    pub(super) keys_after: Vec<E::Key>,
    step: Step<Slots>,
    /// The masks of the other direction in the states that the moves lead to.
    masks_after: Masks,
    /// True if there are more legal moves.
    is_partial: bool,
}

impl<E: EnumerableEnv> Expansion<E> {
    /// Makes at most `max_moves` moves of each state.
    pub(super) fn new(env: &E, states: &E::States, direction: Direction, max_moves: usize) -> Result<Self> {
        let masks = env.masks(direction, states);
        check_shape(&masks, states.len(), direction)?;
        let mut rows = Vec::new();
        let mut slots = Slots(Vec::new());
        for row in 0..states.len() {
            let apart = masks.n_legal(row).div_ceil(max_moves).max(1);
            // Neighbouring states make other moves.
            for slot in masks.legal_slots(row).skip(row % apart).step_by(apart) {
                rows.push(row);
                slots.0.push(slot);
            }
        }
        let exit = rows.iter().zip(&slots.0).map(|(&row, &slot)| masks.is_exit(row, slot)).collect();
        let mut after = states.select(&rows);
        let step = env.step(direction, &mut after, &slots)?;
        let n = rows.len();
        if [after.len(), step.reverse.len(), step.exit.len(), step.done.len()] != [n; 4] {
            let detail = format!("a {direction} step of {n} rows");
            return Err(Error::contract("a step answers for each row of its batch", detail));
        }
        let masks_after = env.masks(direction.opposite(), &after);
        check_shape(&masks_after, n, direction.opposite())?;
        let keys_after = env.keys(&after);
        let is_partial = max_moves < usize::MAX;
        Ok(Self { masks, rows, slots, exit, after, keys_after, step, masks_after, is_partial })
    }

    pub(super) fn broken(&self, env: &E, states: &E::States, k: usize, law: &'static str) -> Error {
        let step = describe_move(env, self.masks.direction, states, self.rows[k], self.slots.0[k]);
        let to = describe_state(env, &self.after, k);
        let remedy = if self.is_partial { " (`contract::check_env` examines every move)" } else { "" };
        Error::contract(law, format!("{step}, which leads to {to}{remedy}"))
    }
}

pub(super) fn check_shape(masks: &Masks, n: usize, direction: Direction) -> Result<()> {
    let slots = |row: usize| -> usize {
        masks.blocks.iter().map(|block| (block.row_ptr[row + 1] - block.row_ptr[row]) * block.width).sum()
    };
    let is_whole = masks.direction == direction
        && masks.slot_ptr.len() == n + 1
        && masks.slot_ptr.first() == Some(&0)
        && masks.slot_ptr.last() == Some(&masks.legal.len())
        && masks.blocks.iter().all(|block| block.row_ptr.len() == n + 1 && block.row_ptr[0] == 0)
        && !(masks.has_exit && direction == Direction::Backward)
        && (0..n).all(|row| masks.slot_ptr[row + 1] == masks.slot_ptr[row] + slots(row));
    if is_whole {
        return Ok(());
    }
    let detail = format!(
        "{direction} masks of {n} states: {} offsets, {} slots, direction {}, exit {}",
        masks.slot_ptr.len(),
        masks.legal.len(),
        masks.direction,
        masks.has_exit
    );
    let law = "masks hold one entry per slot of each block of each state, in the direction asked for";
    Err(Error::contract(law, detail))
}

/// Checks that forward moves change the state, are done where they end, and are undone and redone by their
/// reverses.
pub(super) fn check_forward<E: EnumerableEnv>(env: &E, states: &E::States, forward: &Expansion<E>) -> Result<()> {
    let keys = env.keys(states);
    let fail = |k: usize, law| Err(forward.broken(env, states, k, law));
    for (k, &row) in forward.rows.iter().enumerate() {
        let is_changed = forward.keys_after[k] != keys[row];
        if forward.step.exit[k] != forward.exit[k] {
            return fail(k, "`step` reports as an exit what the masks have as the exit slot");
        }
        if forward.exit[k] && (is_changed || !forward.step.done[k]) {
            return fail(k, "the exit leaves the state as it is, and is done");
        }
        if !forward.exit[k] && !is_changed {
            return fail(k, "a move other than the exit changes the state");
        }
    }
    // The moves other than the exit.
    let inner: Vec<usize> = (0..forward.rows.len()).filter(|&k| !forward.exit[k]).collect();
    let rows: Vec<usize> = inner.iter().map(|&k| forward.rows[k]).collect();
    let slots = forward.slots.select(&inner);
    let reverse = forward.step.reverse.select(&inner);
    let after = forward.after.select(&inner);
    let onward = env.masks(Direction::Forward, &after);
    for (i, &k) in inner.iter().enumerate() {
        let is_done = forward.step.done[k];
        let has_moves = onward.n_legal(i) > 0;
        if !is_done && !has_moves {
            return Err(dead_end(env, &after, i));
        }
        if is_done && has_moves {
            return fail(k, "a forward step is done at the exit, and where no forward move is legal");
        }
        if forward.masks_after.row(k).get(reverse.0[i] as usize) != Some(&true) {
            return fail(k, "the reverse of a legal forward move is a legal backward move of the child");
        }
    }
    let mut again = after.clone();
    let undone = env.step(Direction::Backward, &mut again, &reverse)?;
    if let Some(i) = first_other(env, &again, &states.select(&rows)) {
        return fail(inner[i], "undoing a forward move restores the state");
    }
    let onward = env.masks(Direction::Forward, &again);
    let is_initial = env.is_initial(&again);
    for (i, &k) in inner.iter().enumerate() {
        let redo = undone.reverse.0[i];
        if undone.done[i] != is_initial[i] {
            return fail(k, "a backward step is done at the initial state and nowhere else");
        }
        if onward.row(i).get(redo as usize) != Some(&true) {
            return fail(k, "the reverse of a move's reverse is a legal forward move");
        }
        if !env.merges_isomorphic() && redo != slots.0[i] {
            return fail(k, "where nodes are labelled, the reverse of a move's reverse is the move");
        }
    }
    env.step(Direction::Forward, &mut again, &undone.reverse)?;
    if let Some(i) = first_other(env, &again, &after) {
        return fail(inner[i], "redoing an undone move leads to the same state");
    }
    if forward.is_partial {
        return Ok(());
    }
    let child_keys = env.child_keys(states, &rows, &slots)?;
    match inner.iter().enumerate().find(|&(i, &k)| child_keys.get(i) != Some(&forward.keys_after[k])) {
        None => Ok(()),
        Some((_, &k)) => fail(k, "`child_keys` gives the key of the state that `step` leads to"),
    }
}

/// Checks that backward moves are redone by their reverses, and are done at the initial state.
pub(super) fn check_backward<E: EnumerableEnv>(env: &E, states: &E::States, backward: &Expansion<E>) -> Result<()> {
    let fail = |k: usize, law| Err(backward.broken(env, states, k, law));
    for (k, is_initial) in env.is_initial(&backward.after).into_iter().enumerate() {
        let redo = backward.step.reverse.0[k];
        if backward.masks_after.row(k).get(redo as usize) != Some(&true) || backward.masks_after.is_exit(k, redo) {
            return fail(k, "the reverse of a legal backward move is a legal forward move of the parent");
        }
        if backward.step.done[k] != is_initial {
            return fail(k, "a backward step is done at the initial state and nowhere else");
        }
    }
    let mut again = backward.after.clone();
    env.step(Direction::Forward, &mut again, &backward.step.reverse)?;
    match first_other(env, &again, &states.select(&backward.rows)) {
        None => Ok(()),
        Some(k) => fail(k, "redoing a backward move restores the state"),
    }
}
