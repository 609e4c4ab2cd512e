//! Every way back ends in the initial state: what P_B gives to one that doesn't is lost.

use std::collections::HashMap;

use super::check_env::{BATCH, Expansion, batches, check_backward};
use crate::env::{Direction, EnumerableEnv, Rows, describe_state, no_way_back, topological, walk_back};
use crate::{Result, Rng};

/// States from which backward moves are followed; where there are more, ways back are drawn.
const MOST_FOLLOWED: usize = 5_000;
/// Ways back that are drawn from each visited state.
const DRAWN: usize = 4;
/// Steps of a drawn way back.
const MAX_STEPS: usize = 100_000;

/// The part of a state space that a checker looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Coverage {
    /// Distinct states that random walks visited, each of which was checked.
    pub visited: usize,
    /// All ways back from them, or some.
    pub ways_back: WaysBack,
}

/// The ways back that were looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaysBack {
    /// All of them: every backward move of the visited states, and of all that backward moves lead to.
    All {
        /// The number of these states.
        states: usize,
    },
    /// There are too many: so many ways back were drawn at random, which can miss one that ends elsewhere.
    Drawn {
        /// The number of ways.
        walks: usize,
    },
}

/// States from which backward moves are followed, the visited ones first.
pub(super) struct Followed<E: EnumerableEnv> {
    n_visited: usize,
    states: E::States,
    index: HashMap<E::Key, u32>,
    /// The move back by which each state that wasn't visited was found: state and slot.
    found_by: Vec<(u32, u32)>,
    /// Of each backward move the state and its parent.
    moves: Vec<(u32, u32)>,
    /// States whose moves were added.
    done: usize,
}

impl<E: EnumerableEnv> Followed<E> {
    /// Nothing followed yet; the initial state is the first of the visited ones.
    pub(super) fn new(env: &E, visited: E::States) -> Self {
        let index = env.keys(&visited).into_iter().zip(0..).collect();
        Self { n_visited: visited.len(), states: visited, index, found_by: Vec::new(), moves: Vec::new(), done: 0 }
    }

    /// Adds the backward moves of the next states.
    pub(super) fn add(&mut self, states: &E::States, backward: &Expansion<E>) {
        let mut new = Vec::new();
        for (k, key) in backward.keys_after.iter().enumerate() {
            let child = (self.done + backward.rows[k]) as u32;
            let next = self.index.len() as u32;
            let parent = *self.index.entry(key.clone()).or_insert(next);
            if parent == next {
                self.found_by.push((child, backward.slots[k]));
                new.push(k);
            }
            self.moves.push((child, parent));
        }
        self.states.append(backward.after.select(&new));
        self.done += states.len();
    }

    /// Follows backward moves until no state is new, or draws some where there are too many.
    pub(super) fn finish(mut self, env: &E, rng: &mut Rng, watch: &mut dyn FnMut() -> Result<()>) -> Result<WaysBack> {
        while self.done < self.states.len() {
            if self.states.len() > MOST_FOLLOWED {
                return self.draw(env, rng, watch);
            }
            let next: Vec<usize> = (self.done..self.states.len().min(self.done + BATCH)).collect();
            let next = self.states.select(&next);
            for rows in batches(env, &next, &[Direction::Backward]) {
                let states = next.select(&rows);
                let backward = Expansion::of(env, &states, Direction::Backward)?;
                let initial = env.is_initial(&states);
                if let Some(row) = (0..states.len()).find(|&row| backward.masks.n_legal(row) == 0 && !initial[row]) {
                    let why = "which isn't the initial state and has no legal backward move";
                    return Err(self.broken(env, self.done + row, why));
                }
                check_backward(env, &states, &backward)?;
                self.add(&states, &backward);
            }
            watch()?;
        }
        match self.leads_nowhere(env) {
            Some(state) => Err(self.broken(env, state, "from which backward moves lead round and round")),
            None => self.comes_round().map(|()| WaysBack::All { states: self.states.len() }),
        }
    }

    /// Checks that no state is its own ancestor: walks may end before they come round.
    fn comes_round(&self) -> Result<()> {
        let ends = |state: usize| self.moves.partition_point(|&(child, _)| (child as usize) < state);
        let parents: Vec<u32> = self.moves.iter().map(|&(_, parent)| parent).collect();
        topological(&(0..=self.states.len()).map(ends).collect::<Vec<_>>(), &parents).map(drop)
    }

    /// The first state from which no way back comes to the initial one.
    fn leads_nowhere(&self, env: &E) -> Option<usize> {
        let mut children = vec![Vec::new(); self.states.len()];
        self.moves.iter().for_each(|&(child, parent)| children[parent as usize].push(child));
        let mut leads_back = env.is_initial(&self.states);
        let mut open: Vec<u32> = (0..).zip(&leads_back).filter(|(_, initial)| **initial).map(|(row, _)| row).collect();
        while let Some(parent) = open.pop() {
            for &child in &children[parent as usize] {
                if !std::mem::replace(&mut leads_back[child as usize], true) {
                    open.push(child);
                }
            }
        }
        leads_back.iter().position(|leads_back| !leads_back)
    }

    fn broken(&self, env: &E, state: usize, why: &str) -> crate::Error {
        let from = state.checked_sub(self.n_visited).and_then(|k| self.found_by.get(k));
        let from = from.map(|&(child, slot)| (&self.states, child as usize, slot));
        no_way_back(env, from, &describe_state(env, &self.states, state), why)
    }

    fn draw(&self, env: &E, rng: &mut Rng, watch: &mut dyn FnMut() -> Result<()>) -> Result<WaysBack> {
        let rows: Vec<usize> = (0..self.n_visited).flat_map(|row| [row; DRAWN]).collect();
        for rows in rows.chunks(BATCH) {
            walk_back(env, self.states.select(rows), MAX_STEPS, rng)?;
            watch()?;
        }
        Ok(WaysBack::Drawn { walks: rows.len() })
    }
}
