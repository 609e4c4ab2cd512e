//! Vector environments that are declared in Python: their moves, each of which sets one entry, and rules that
//! are called with batches.

use std::collections::{HashMap, HashSet};

use gfn::env::{BatchRules, Direction, Rows, VectorEnv, VectorRules, VectorStates};
use gfn::{Error, Result};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use super::Failures;
use super::rules::Rules;
use crate::kinds::Space;
use crate::references::Object;
use crate::states::{entries, whole};

/// The declaration of a vector environment, in the form that Python passes.
#[derive(Clone, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct VectorDeclaration {
    width: usize,
    values: usize,
    /// The moves. Each move has an entry's index, the entry's value before the move, and its value after the
    /// move.
    moves: Vec<(usize, u16, u16)>,
    /// The initial states. If the list is empty, all entries of the only initial state are 0.
    initial: Vec<Vec<u16>>,
}

impl VectorDeclaration {
    pub(super) fn build(&self, rules: Option<Object>, failures: &Failures) -> Result<Space<VectorEnv>> {
        let &Self { width, values, .. } = self;
        let fits = |&(entry, before, after): &(usize, u16, u16)| {
            entry < width && before != after && usize::from(before.max(after)) < values
        };
        if let Some(wrong) = self.moves.iter().find(|each| !fits(each)) {
            let expected = "three numbers: an entry below `width`, its value before the move, and a \
                different value after it, both below `values`";
            return Err(Error::config("a row of changes", format!("{wrong:?}"), expected));
        }
        if self.moves.is_empty() {
            return Err(Error::config("changes", "empty", "at least one row"));
        }
        let starts = self.initial.clone();
        let wrong = |start: &&Vec<u16>| {
            start.len() != width || start.iter().any(|&value| usize::from(value) >= values)
        };
        if let Some(wrong) = starts.iter().find(wrong) {
            let expected = "one value below `values` for each of `width` entries";
            return Err(Error::config("start", format!("{wrong:?}"), expected));
        }
        let fixed: Vec<usize> =
            (0..width).filter(|&entry| self.moves.iter().all(|each| each.0 != entry)).collect();
        let mut instances = HashMap::new();
        for (instance, start) in (0..).zip(&starts) {
            if let Some(other) = instances.insert(select_entries(&fixed, start), instance) {
                let got = format!(
                    "rows {other} and {instance}, which are equal in all entries that no move changes"
                );
                let expected = "one row, or rows that differ in an entry that no move changes, so that each \
                    vector belongs to one row";
                return Err(Error::config("start", got, expected));
            }
        }
        let zeros = [vec![0; width]];
        let undoes = if starts.is_empty() { &zeros[..] } else { &starts };
        let undoes = undoes.iter().map(|start| self.undoes(start)).collect();
        let rules = Rules { object: rules, failures: failures.clone() };
        let moves = self.moves.clone();
        let steps = Steps { width, values, moves, starts, undoes, fixed, instances, rules };
        Ok(Space::vectors(VectorEnv::new(steps)))
    }
}

impl VectorDeclaration {
    /// Returns a flag for each move: `true` if its entry has the value from which the move starts, either in
    /// the initial state `start` or after other moves. Any other move can't be undone, because undoing it
    /// would lead to a state that isn't reachable.
    fn undoes(&self, start: &[u16]) -> Vec<bool> {
        let mut reached: HashSet<(usize, u16)> = start.iter().copied().enumerate().collect();
        let mut known = 0;
        while known < reached.len() {
            known = reached.len();
            for &(entry, before, after) in &self.moves {
                if reached.contains(&(entry, before)) {
                    reached.insert((entry, after));
                }
            }
        }
        self.moves.iter().map(|&(entry, before, _)| reached.contains(&(entry, before))).collect()
    }
}

/// The moves of a declared environment, each of which sets one entry from one value to another. Slot k is
/// move k, in both directions.
struct Steps {
    width: usize,
    values: usize,
    moves: Vec<(usize, u16, u16)>,
    starts: Vec<Vec<u16>>,
    /// A flag for each initial state and each move: `true` if the move can be undone.
    undoes: Vec<Vec<bool>>,
    /// The indices of the entries that no move changes. The values of these entries identify the initial
    /// state of a vector.
    fixed: Vec<usize>,
    instances: HashMap<Vec<u16>, u32>,
    rules: Rules,
}

/// Returns the entries of the vector `row` at these indices.
fn select_entries(entries: &[usize], row: &[u16]) -> Vec<u16> {
    entries.iter().map(|&entry| row[entry]).collect()
}

impl VectorRules for Steps {
    fn width(&self) -> usize {
        self.width
    }
    fn n_values(&self) -> usize {
        self.values
    }
    fn n_moves(&self, _: Direction) -> usize {
        self.moves.len()
    }
    fn apply(&self, direction: Direction, row: &mut [u16], slot: usize) -> Option<usize> {
        let &(entry, before, after) = self.moves.get(slot)?;
        let (from, to) = if direction == Direction::Forward { (before, after) } else { (after, before) };
        if direction == Direction::Backward && !self.undoes_from(row)[slot] {
            return None;
        }
        let value = row.get_mut(entry).filter(|value| **value == from)?;
        *value = to;
        Some(slot)
    }
    fn starts(&self) -> &[Vec<u16>] {
        &self.starts
    }
    fn instance(&self, row: &[u16]) -> u32 {
        if self.starts.len() < 2 {
            0
        } else {
            self.instances.get(&select_entries(&self.fixed, row)).copied().unwrap_or(0)
        }
    }
    fn mark(&self, direction: Direction, row: &[u16], legal: &mut [bool]) {
        let undoes = (direction == Direction::Backward).then(|| self.undoes_from(row));
        for (k, (legal, &(entry, before, after))) in legal.iter_mut().zip(&self.moves).enumerate() {
            *legal = undoes.map_or(row[entry] == before, |undoes| undoes[k] && row[entry] == after);
        }
    }
    fn describe(&self, direction: Direction, row: &[u16], slot: usize) -> String {
        match self.moves.get(slot) {
            Some((entry, before, after)) => {
                format!("{direction} move of entry {entry} between {before} and {after} of {row:?}")
            }
            None => format!("there is no move {slot}"),
        }
    }
    fn batched(&self) -> Option<&dyn BatchRules<VectorStates, (usize, u32)>> {
        self.rules.object.as_ref().map(|_| self as &dyn BatchRules<VectorStates, (usize, u32)>)
    }
}

impl Steps {
    /// Returns a flag for each move: `true` if the move can be undone in vectors that have the same initial
    /// state as `row`.
    fn undoes_from(&self, row: &[u16]) -> &[bool] {
        &self.undoes[self.instance(row) as usize]
    }

    fn ask_states(&self, method: &str, states: &VectorStates) -> Vec<bool> {
        self.rules.ask(method, states.len(), |function| function.call1((entries(function.py(), states)?,)))
    }
}

impl BatchRules<VectorStates, (usize, u32)> for Steps {
    fn permits(&self, states: &VectorStates, moves: &[(usize, u32)]) -> Vec<bool> {
        self.rules.ask("restrict", moves.len(), |function| {
            let py = function.py();
            let rows = moves.iter().map(|&(_, number)| self.moves[number as usize]);
            let columns = (
                whole(moves.iter().map(|&(state, _)| state)),
                whole(moves.iter().map(|&(_, number)| number as usize)),
                whole(rows.clone().map(|(entry, ..)| entry)),
                whole(rows.clone().map(|(_, before, _)| usize::from(before))),
                whole(rows.map(|(_, _, after)| usize::from(after))),
            );
            let shown = py.import("gfn_rs._declared")?.getattr("VectorMoves")?.call1(columns)?;
            function.call1((entries(py, states)?, shown))
        })
    }

    fn is_reachable(&self, states: &VectorStates) -> Vec<bool> {
        self.ask_states("is_reachable", states)
    }

    fn can_end(&self, states: &VectorStates) -> Vec<bool> {
        self.ask_states("can_end", states)
    }
}
