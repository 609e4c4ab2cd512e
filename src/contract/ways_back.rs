//! The law that backward moves always lead to the initial state in the end. If P_B gives probability to a
//! backward move that never leads there, this probability is lost.

use std::collections::HashMap;

use super::Budget;
use super::env::{BATCH, batches};
use super::moves::Expansion;
use crate::env::topological::topological;
use crate::env::{
    Direction, EnumerableEnv, KEEP_BACK, Rows, Slots, describe_move, describe_state, random_moves,
};
use crate::{Error, Result, Rng};

/// The number of backward walks that a thorough check samples from each examined state. A check with a
/// limited budget samples one walk per state.
const WALKS_BACK: usize = 4;
/// The largest number of steps of a backward walk in a thorough check.
const MAX_STEPS: usize = 100_000;
/// The largest number of steps of a backward walk in a check with a limited budget.
const MAX_QUICK_STEPS: usize = 10_000;
/// The number of steps of a backward walk between two calls of [`Budget::watch`].
const WATCH_INTERVAL: usize = 256;
const NO_MOVE: &str = "which isn't the initial state and has no legal backward move";

/// The extent of a check: the number of states that were checked, and the extent to which backward moves from
/// these states were followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Coverage {
    /// The number of distinct states that were checked. Random walks had visited these states.
    pub n_visited: usize,
    /// The extent to which backward moves from the checked states were followed.
    pub ways_back: WaysBack,
}

/// The extent to which a check followed backward moves: all backward moves, or random backward walks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaysBack {
    /// A check of every backward move of the visited states and of all states that backward moves lead to.
    All {
        /// The number of states whose backward moves were followed.
        states: usize,
    },
    /// A check of random backward walks, because the budget doesn't allow the check to follow all backward
    /// moves. Such a check can miss a move that doesn't lead to the initial state.
    Sample {
        /// The number of backward walks.
        walks: usize,
    },
}

/// A search that follows backward moves from the examined states.
pub(super) struct Search<E: EnumerableEnv> {
    n_examined: usize,
    /// The examined states, followed by the states that the search found.
    states: E::States,
    index: HashMap<E::Key, u32>,
    /// Each backward move as a triple: the index of the state, the index of the parent that the move leads
    /// to, and the slot.
    moves: Vec<(u32, u32, u32)>,
    /// The number of states, counted from the start of `states`, whose backward moves are in `moves`.
    done: usize,
}

impl<E: EnumerableEnv> Search<E> {
    pub(super) fn new(env: &E, examined: E::States) -> Self {
        let index = env.keys(&examined).into_iter().zip(0..).collect();
        Self { n_examined: examined.len(), states: examined, index, moves: Vec::new(), done: 0 }
    }

    /// Adds the backward moves of the next states in `states` to the search. Appends the parents that are new
    /// to `states`.
    pub(super) fn add(&mut self, backward: &Expansion<'_, E>) {
        let mut new = Vec::new();
        for (k, key) in backward.keys_after.iter().enumerate() {
            let child = (self.done + backward.rows[k]) as u32;
            let next = self.index.len() as u32;
            let parent = *self.index.entry(key.clone()).or_insert(next);
            if parent == next {
                new.push(k);
            }
            self.moves.push((child, parent, backward.slots.0[k]));
        }
        self.states.append(backward.after.select(&new));
        self.done += backward.states.len();
    }

    /// Follows backward moves until they lead to no new state. If the budget doesn't allow this, samples
    /// backward walks from the examined states instead.
    pub(super) fn finish(mut self, env: &E, budget: &Budget<'_>, rng: &mut Rng) -> Result<WaysBack> {
        while budget.is_complete() && self.states.len() <= budget.followed {
            if self.done == self.states.len() {
                self.check_ends(env)?;
                return Ok(WaysBack::All { states: self.states.len() });
            }
            let next: Vec<usize> = (self.done..self.states.len().min(self.done + BATCH)).collect();
            let next = self.states.select(&next);
            for rows in batches(env, &next, budget.moves) {
                let states = next.select(&rows);
                let backward = Expansion::new(env, &states, Direction::Backward, budget)?;
                backward.check_backward()?;
                self.add(&backward);
            }
            budget.call_watch()?;
        }
        let n_walks = if budget.is_complete() { WALKS_BACK } else { 1 };
        let rows: Vec<usize> = (0..self.n_examined).flat_map(|row| vec![row; n_walks]).collect();
        for rows in rows.chunks(BATCH) {
            walk_back(env, self.states.select(rows), budget, rng)?;
            budget.call_watch()?;
        }
        Ok(WaysBack::Sample { walks: rows.len() })
    }

    /// Checks that only the initial state has no backward move, that backward moves lead from every state to
    /// the initial state, and that they form no cycle.
    fn check_ends(&self, env: &E) -> Result<()> {
        let n = self.states.len();
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); n];
        let mut has_parent = vec![false; n];
        for &(child, parent, _) in &self.moves {
            children[parent as usize].push(child);
            has_parent[child as usize] = true;
        }
        // One entry per state: `true` if some backward trajectory leads from the state to the initial state.
        let mut leads_back = env.is_initial(&self.states);
        let stuck = (0..n).find(|&state| !has_parent[state] && !leads_back[state]);
        let mut open: Vec<usize> = (0..n).filter(|&state| leads_back[state]).collect();
        while let Some(parent) = open.pop() {
            for &child in &children[parent] {
                if !std::mem::replace(&mut leads_back[child as usize], true) {
                    open.push(child as usize);
                }
            }
        }
        let why = if stuck.is_some() { NO_MOVE } else { "from which backward moves lead in a circle" };
        let mut found_first = (self.n_examined..n).chain(0..self.n_examined);
        let Some(state) = stuck.or_else(|| found_first.find(|&state| !leads_back[state])) else {
            let mut move_ptr = vec![0];
            move_ptr.extend(children.iter().scan(0, |end, children| {
                *end += children.len();
                Some(*end)
            }));
            return topological(&move_ptr, &children.concat()).map(drop);
        };
        let by = self.moves.iter().find(|&&(_, parent, _)| parent as usize == state);
        let from = by.map(|&(child, _, slot)| (&self.states, child as usize, slot));
        Err(no_way_back(env, from, &describe_state(env, &self.states, state), why))
    }
}

/// Makes random backward steps from each of these states, until all walks have reached the initial state.
///
/// # Errors
/// [`Error::Contract`] for a walk that reaches a state that isn't initial and has no legal backward move;
/// [`Error::StepLimit`] if a walk is too long.
pub(super) fn walk_back<E: EnumerableEnv>(
    env: &E,
    mut states: E::States,
    budget: &Budget<'_>,
    rng: &mut Rng,
) -> Result<()> {
    let n = states.len();
    let limit = if budget.is_complete() { MAX_STEPS } else { MAX_QUICK_STEPS };
    // The states before the last step of the walks, and the backward moves that this step made in them;
    // `None` before the first step.
    let mut last: Option<(E::States, Slots)> = None;
    for step in 0..limit {
        if step % WATCH_INTERVAL == 0 {
            budget.call_watch()?;
        }
        let initial = env.is_initial(&states);
        let live: Vec<usize> = (0..states.len()).filter(|&row| !initial[row]).collect();
        if live.is_empty() {
            return Ok(());
        }
        states = states.select(&live);
        let (rows, slots) = random_moves(&env.masks(Direction::Backward, &states), rng);
        if let Some(row) = (0..states.len()).find(|&row| rows.get(row) != Some(&row)) {
            let dead = describe_state(env, &states, row);
            let from = last.as_ref().map(|(children, slots)| (children, live[row], slots.0[live[row]]));
            return Err(no_way_back(env, from, &dead, NO_MOVE));
        }
        let children = states.clone();
        env.step(Direction::Backward, &mut states, &slots)?;
        last = Some((children, slots));
    }
    let live = env.is_initial(&states).iter().filter(|initial| !**initial).count();
    if live == 0 {
        return Ok(());
    }
    Err(Error::StepLimit { direction: Direction::Backward, limit, live, n })
}

/// Returns the error for a state from which no backward trajectory leads to the initial state. `from` is the
/// backward move that leads to the state, as (states, index of its state, slot); `None` if the search started
/// from the state.
fn no_way_back<E: EnumerableEnv>(
    env: &E,
    from: Option<(&E::States, usize, u32)>,
    parent: &str,
    why: &str,
) -> Error {
    let to = match from {
        Some((states, row, slot)) => {
            format!("{} leads to {parent}", describe_move(env, Direction::Backward, states, row, slot))
        }
        None => format!("forward moves lead to {parent}"),
    };
    Error::contract(
        "from every state that a legal backward move leads to, backward moves lead on to the initial state",
        format!("{to}, {why}; {KEEP_BACK}"),
    )
}
