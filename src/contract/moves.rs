//! The laws of single moves: their results, their reverses, and the number of moves between two states.

use std::collections::BTreeMap;

use super::Budget;
use super::env::BATCH;
use crate::env::{
    Direction, EnumerableEnv, Masks, Moves, Rows, Slots, Step, dead_end, describe_move, describe_state,
    first_other,
};
use crate::{Error, Result};

/// The moves that a check makes from some states in one direction, and their results.
pub(super) struct Expansion<'a, E: EnumerableEnv> {
    pub(super) env: &'a E,
    pub(super) states: &'a E::States,
    pub(super) keys: Vec<E::Key>,
    pub(super) masks: Masks,
    /// A flag per state: `true` if all legal moves of the state were made.
    pub(super) is_whole: Vec<bool>,
    /// The index, for each move, of the state in which the move was made.
    pub(super) rows: Vec<usize>,
    pub(super) slots: Slots,
    /// A flag per move: `true` if the move is the exit according to the masks.
    pub(super) exit: Vec<bool>,
    /// The states that the moves lead to, one per move.
    pub(super) after: E::States,
    pub(super) keys_after: Vec<E::Key>,
    step: Step<Slots>,
    /// The masks of the opposite direction in the states that the moves lead to. The reverses of the moves
    /// must be legal in these masks.
    masks_after: Masks,
    /// The advice at the end of error messages; empty if every move is examined.
    remedy: &'static str,
}

impl<'a, E: EnumerableEnv> Expansion<'a, E> {
    /// Makes moves in each state. While the budget allows it, all moves of a state are made; otherwise at
    /// most [`Budget::moves`] of them.
    pub(super) fn new(
        env: &'a E,
        states: &'a E::States,
        direction: Direction,
        budget: &Budget<'_>,
    ) -> Result<Self> {
        let masks = env.masks(direction, states);
        check_shape(&masks, states.len(), direction)?;
        let mut is_whole = Vec::new();
        let mut rows = Vec::new();
        let mut slots = Slots(Vec::new());
        for row in 0..states.len() {
            let n_legal = masks.n_legal(row);
            is_whole.push(n_legal <= budget.moves || rows.len() + n_legal <= budget.total_moves());
            let apart = if is_whole[row] { 1 } else { n_legal.div_ceil(budget.moves.max(1)) };
            // Every `apart`-th legal move is made. The first one depends on the state's index (`row`), so
            // that the slots of the moves differ between states.
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
            let detail = format!(
                "a {direction} step of {n} rows returned {} rows, {} reverses, {} marks of the exit and {} \
                 marks of the end",
                after.len(),
                step.reverse.len(),
                step.exit.len(),
                step.done.len()
            );
            return Err(Error::contract(
                "`step` returns one state, one reverse and one mark of the exit and of the end for each row \
                 of its batch",
                detail,
            ));
        }
        let masks_after = env.masks(direction.opposite(), &after);
        check_shape(&masks_after, n, direction.opposite())?;
        let keys_after = env.keys(&after);
        let remedy =
            if budget.is_complete() { "" } else { " (`contract::check_env` can examine every move)" };
        let keys = env.keys(states);
        Ok(Self {
            env,
            states,
            keys,
            masks,
            is_whole,
            rows,
            slots,
            exit,
            after,
            keys_after,
            step,
            masks_after,
            remedy,
        })
    }

    /// Returns an error that names the broken law and move `k`, unless `holds` is `true`.
    pub(super) fn require(&self, holds: bool, k: usize, law: &'static str) -> Result<()> {
        if holds {
            return Ok(());
        }
        let step = describe_move(self.env, self.masks.direction, self.states, self.rows[k], self.slots.0[k]);
        let to = describe_state(self.env, &self.after, k);
        Err(Error::contract(law, format!("{step}, which leads to {to}{}", self.remedy)))
    }

    /// Checks that forward moves other than the exit change the state; that `step` reports a trajectory as
    /// done exactly at the exit and in states without forward moves; and that the reverse of a move undoes
    /// the move, and is itself undone by the move. If the check is complete, `child_keys` is checked, too.
    pub(super) fn check_forward(&self, budget: &Budget<'_>) -> Result<()> {
        let masks = self.env.masks(Direction::Forward, &self.after);
        for (k, &row) in self.rows.iter().enumerate() {
            let exit = self.exit[k];
            let is_done = self.step.done[k];
            let is_changed = self.keys_after[k] != self.keys[row];
            let law = "`step` reports an exit for the exit slot of the masks, and for no other slot";
            self.require(self.step.exit[k] == exit, k, law)?;
            if exit {
                self.require(
                    !is_changed && is_done,
                    k,
                    "the exit leaves the state unchanged, and ends the trajectory (`done`)",
                )?;
                continue;
            }
            self.require(is_changed, k, "a move other than the exit changes the state")?;
            if !is_done && masks.n_legal(k) == 0 {
                return Err(dead_end(self.env, &self.after, k));
            }
            let law = "a forward step is `done` at the exit and in a state without a legal forward move, and \
                nowhere else";
            self.require(!is_done || masks.n_legal(k) == 0, k, law)?;
        }
        let inner = self.check_reverses()?;
        if !budget.is_complete() {
            return Ok(());
        }
        let rows: Vec<usize> = inner.iter().map(|&k| self.rows[k]).collect();
        let child_keys = self.env.child_keys(self.states, &rows, &self.slots.select(&inner))?;
        for (i, k) in inner.into_iter().enumerate() {
            let law = "`child_keys` gives the key of the state that `step` leads to";
            self.require(child_keys.get(i) == Some(&self.keys_after[k]), k, law)?;
        }
        Ok(())
    }

    /// Checks that the reverse of a backward move undoes it, and that `step` reports a backward trajectory as
    /// done exactly at the initial state.
    pub(super) fn check_backward(&self) -> Result<()> {
        self.check_reverses()?;
        for (k, is_initial) in self.env.is_initial(&self.after).into_iter().enumerate() {
            let law = "a backward step is `done` at the initial state and nowhere else";
            self.require(self.step.done[k] == is_initial, k, law)?;
        }
        Ok(())
    }

    /// Checks that the reverses of all moves except the exit are legal and undo the moves. Returns the
    /// indices of these moves.
    fn check_reverses(&self) -> Result<Vec<usize>> {
        let env = self.env;
        let direction = self.masks.direction;
        let [is_legal, restores] = match direction {
            Direction::Forward => [
                "the reverse of a legal forward move is a legal backward move of the child",
                "undoing a forward move restores the state",
            ],
            Direction::Backward => [
                "the reverse of a legal backward move is a legal forward move of the parent",
                "redoing a backward move restores the state",
            ],
        };
        let inner: Vec<usize> = (0..self.rows.len()).filter(|&k| !self.exit[k]).collect();
        let rows: Vec<usize> = inner.iter().map(|&k| self.rows[k]).collect();
        for &k in &inner {
            let reverse = self.step.reverse.0[k];
            let legal = self.masks_after.row(k).get(reverse as usize) == Some(&true);
            self.require(legal && !self.masks_after.is_exit(k, reverse), k, is_legal)?;
        }
        let after = self.after.select(&inner);
        let mut again = after.clone();
        let undone = env.step(direction.opposite(), &mut again, &self.step.reverse.select(&inner))?;
        if let Some(i) = first_other(env, &again, &self.states.select(&rows)) {
            self.require(false, inner[i], restores)?;
        }
        if direction == Direction::Backward {
            return Ok(inner);
        }
        let masks = env.masks(direction, &again);
        for (i, &k) in inner.iter().enumerate() {
            let redo = undone.reverse.0[i];
            let legal = masks.row(i).get(redo as usize) == Some(&true);
            self.require(legal, k, "the reverse of a move's reverse is a legal forward move")?;
            let is_same = env.merges_isomorphic() || redo == self.slots.0[k];
            self.require(
                is_same,
                k,
                "if nodes are labelled, the reverse of a move's reverse is the move itself",
            )?;
        }
        env.step(direction, &mut again, &undone.reverse)?;
        if let Some(i) = first_other(env, &again, &after) {
            self.require(false, inner[i], "redoing an undone move leads to the same state")?;
        }
        Ok(inner)
    }
}

pub(super) fn check_shape(masks: &Masks, n: usize, direction: Direction) -> Result<()> {
    let Masks { blocks, slot_ptr, legal, has_exit, .. } = masks;
    let slots = |row: usize| -> usize {
        blocks.iter().map(|block| (block.row_ptr[row + 1] - block.row_ptr[row]) * block.width).sum()
    };
    let is_whole = masks.direction == direction
        && slot_ptr.len() == n + 1
        && slot_ptr[0] == 0
        && slot_ptr[n] == legal.len()
        && blocks.iter().all(|block| block.row_ptr.len() == n + 1 && block.row_ptr[0] == 0)
        && !(*has_exit && direction == Direction::Backward)
        && (0..n).all(|row| slot_ptr[row + 1] == slot_ptr[row] + slots(row));
    if is_whole {
        return Ok(());
    }
    let n_offsets = slot_ptr.len();
    let n_slots = legal.len();
    let found = masks.direction;
    Err(Error::contract(
        "masks hold one entry per slot of each block of each state, in the requested direction",
        format!(
            "{direction} masks of {n} states: {n_offsets} offsets, {n_slots} slots, direction {found}, exit \
             {has_exit}"
        ),
    ))
}

/// Checks for each state and each of its children that the number of forward moves times |Aut(child)| equals
/// the number of backward moves times |Aut(state)|. States of which not all moves were made are skipped.
///
/// # Errors
/// [`Error::Contract`] with the names of two states for which the equation is wrong; errors of steps and of
/// the symmetry.
pub(super) fn check_counts<E: EnumerableEnv>(forward: &Expansion<'_, E>, budget: &Budget<'_>) -> Result<()> {
    let env = forward.env;
    let states = forward.states;
    let Some(of_parent) = log_symmetry(env, states)? else { return Ok(()) };
    // A map from a pair (index of a parent, key of a child) to two numbers: how many forward moves lead from
    // this parent to children with this key, and the index of one of these moves.
    let mut transitions: BTreeMap<(usize, &E::Key), (usize, usize)> = BTreeMap::new();
    for (k, (&row, key)) in forward.rows.iter().zip(&forward.keys_after).enumerate() {
        if forward.is_whole[row] && !forward.exit[k] {
            transitions.entry((row, key)).or_insert((0, k)).0 += 1;
        }
    }
    let apart = transitions.len().div_ceil(budget.states.max(1)).max(1);
    let pairs: Vec<(usize, usize, usize)> =
        transitions.into_iter().step_by(apart).map(|((row, _), (n, k))| (row, n, k)).collect();
    // The pairs of parent and child are checked in batches, so that the number of states in memory is
    // limited.
    for pairs in pairs.chunks(BATCH) {
        let children = forward.after.select(&pairs.iter().map(|&(_, _, k)| k).collect::<Vec<_>>());
        let Some(of_child) = log_symmetry(env, &children)? else { return Ok(()) };
        let back = Moves::new(&env.masks(Direction::Backward, &children));
        let mut parents = children.select(&back.rows);
        env.step(Direction::Backward, &mut parents, &Slots(back.slots))?;
        let mut n_backward = vec![0; pairs.len()];
        for (&place, key) in back.rows.iter().zip(env.keys(&parents)) {
            n_backward[place] += usize::from(key == forward.keys[pairs[place].0]);
        }
        for (place, (&(row, n_forward, _), n_backward)) in pairs.iter().zip(n_backward).enumerate() {
            let before = of_parent[row];
            let after = of_child[place];
            let short = (n_forward as f64).ln() + after - (n_backward as f64).ln() - before;
            if short.abs() <= 1e-6 {
                continue;
            }
            let parent = describe_state(env, states, row);
            let child = describe_state(env, &children, place);
            let remedy = if env.merges_isomorphic() { remedy(short.exp()) } else { String::new() };
            return Err(Error::contract(
                "N_forward |Aut(child)| = N_backward |Aut(parent)| between any two states",
                format!(
                    "{n_forward} moves lead forward from {parent} to {child}, and {n_backward} lead back; \
                     log |Aut|, minus log |Aut| of the initial state, is {before} of the parent and {after} \
                     of the child{remedy}"
                ),
            ));
        }
    }
    Ok(())
}

/// Returns log |Aut| of each state, minus log |Aut| of the initial state; zeros if isomorphic states are
/// different states. Returns `None` if isomorphic states are one state, but the environment doesn't correct
/// rewards by |Aut|.
fn log_symmetry<E: EnumerableEnv>(env: &E, states: &E::States) -> Result<Option<Vec<f64>>> {
    let known = env.symmetry().log_symmetry(states)?;
    if known.is_none() && !env.merges_isomorphic() {
        return Ok(Some(vec![0.0; states.len()]));
    }
    Ok(known)
}

/// Returns the advice for an error of [`check_counts`]. `short` is the number of backward moves that the
/// equation N_forward |Aut(child)| = N_backward |Aut(parent)| requires, divided by the number that was found.
fn remedy(short: f64) -> String {
    let (times, way) = if short < 1.0 { (1.0 / short, "forward") } else { (short, "back") };
    if !times.is_finite() || (times - times.round()).abs() > 1e-6 {
        return String::new();
    }
    format!(
        "; {} times as many moves {way} are expected. An action that adds several interchangeable nodes at \
         once (a ring) needs as many columns in its backward block, each of which undoes the same action; \
         otherwise `GraphRules::log_automorphisms` doesn't return ln |Aut|",
        times.round()
    )
}
