//! The law of ways back: every backward move leads on to the initial state. What P_B gives to any other move
//! is lost.

use std::collections::HashMap;

use super::Budget;
use super::env::{BATCH, batches};
use super::moves::Expansion;
use crate::env::topological::topological;
use crate::env::{Direction, EnumerableEnv, KEEP_BACK, Rows, Slots, describe_move, describe_state, random_moves};
use crate::{Error, Result, Rng};

/// The number of backward walks that are sampled from each examined state; 1 if the budget is limited.
const WALKS_BACK: usize = 4;
/// The largest number of steps of a backward walk, and of one under a limited budget.
const MAX_STEPS: usize = 100_000;
const MAX_QUICK_STEPS: usize = 10_000;
/// The number of steps of a backward walk between two calls of [`Budget::watch`].
const WATCH_INTERVAL: usize = 256;
const NO_MOVE: &str = "which isn't the initial state and has no legal backward move";

/// The part of a state space that a check examined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Coverage {
    /// The number of distinct states of random walks that were checked.
    pub n_visited: usize,
    /// The backward moves from these states that were followed.
    pub ways_back: WaysBack,
}

/// The ways back to the initial state that a check examined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaysBack {
    /// Every backward move of the visited states, and of all states that backward moves lead to.
    All {
        /// The number of these states.
        states: usize,
    },
    /// Random backward walks, because there are too many states. They can miss a move that leads elsewhere.
    Sample {
        /// The number of walks.
        walks: usize,
    },
}

/// A search along backward moves, from the examined states.
pub(super) struct Search<E: EnumerableEnv> {
    n_examined: usize,
    /// The examined states, and behind them the states found.
    states: E::States,
    index: HashMap<E::Key, u32>,
    /// The state, the parent and the slot of each backward move.
    moves: Vec<(u32, u32, u32)>,
    /// The number of states whose moves were added.
    done: usize,
}

impl<E: EnumerableEnv> Search<E> {
    pub(super) fn new(env: &E, examined: E::States) -> Self {
        let index = env.keys(&examined).into_iter().zip(0..).collect();
        Self { n_examined: examined.len(), states: examined, index, moves: Vec::new(), done: 0 }
    }

    /// Adds the backward moves of the next states.
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

    /// Follows backward moves until no state is new, or samples backward walks if there are too many states.
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

    /// Checks that only the initial state has no backward move, and that backward moves lead in no cycle.
    fn check_ends(&self, env: &E) -> Result<()> {
        let n = self.states.len();
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); n];
        let mut has_parent = vec![false; n];
        for &(child, parent, _) in &self.moves {
            children[parent as usize].push(child);
            has_parent[child as usize] = true;
        }
        // States from which some backward trajectory comes to the initial state.
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
        let why = if stuck.is_some() { NO_MOVE } else { "from which backward moves lead round and round" };
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

/// Walks back at random from each of these states, until all walks have come to the initial state.
///
/// # Errors
/// [`Error::Contract`] for a walk that ends in another state, [`Error::StepLimit`] for one that doesn't end.
pub(super) fn walk_back<E: EnumerableEnv>(
    env: &E,
    mut states: E::States,
    budget: &Budget<'_>,
    rng: &mut Rng,
) -> Result<()> {
    let n = states.len();
    let limit = if budget.is_complete() { MAX_STEPS } else { MAX_QUICK_STEPS };
    // The states before the last step, and the moves.
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

/// Returns the error of a state without a way back, and of the move (states, row, slot) that leads there, if
/// any.
fn no_way_back<E: EnumerableEnv>(env: &E, from: Option<(&E::States, usize, u32)>, parent: &str, why: &str) -> Error {
    let to = match from {
        Some((states, row, slot)) => {
            format!("{} leads to {parent}", describe_move(env, Direction::Backward, states, row, slot))
        }
        None => format!("forward moves lead to {parent}"),
    };
    Error::contract(
        "every state that a legal backward move leads to has itself a way back to the initial state",
        format!("{to}, {why}; {KEEP_BACK}"),
    )
}
