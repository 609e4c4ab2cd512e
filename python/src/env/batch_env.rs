//! Custom environments whose rules are Python methods that step batches of states, as arrays.

use gfn::distribution::GraphActionCategorical;
use gfn::env::{
    Direction, DiscreteEnv, EnumerableEnv, Env, Masks, Rows, Slots, Step, VectorEnv, VectorKey, VectorStates,
};
use gfn::{Error, Result};
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use super::rules::{Failures, read_answer};
use crate::kinds::Space;
use crate::references::Object;
use crate::states::{entries, whole};

/// The settings of a custom environment, without its rules.
#[derive(Clone, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct BatchEnvSettings {
    pub(super) width: usize,
    pub(super) values: usize,
    n_moves: usize,
    n_backward_moves: Option<usize>,
    pub(super) has_exit: bool,
    /// `true` if the rules define the method `reverse`, which returns the index of the backward move that
    /// undoes each move. If `false`, a move and the move that undoes it have the same index.
    pub(super) reverses: bool,
}

impl BatchEnvSettings {
    /// Builds the environment. The initial states are the result of a method of the rules.
    pub(super) fn build(&self, rules: Option<Object>, failures: &Failures) -> Result<Space<VectorEnv>> {
        let rules = self.check(rules)?;
        let mut env =
            BatchEnv { settings: self.clone(), initial: Vec::new(), rules, failures: failures.clone() };
        let initial = failures.call(|py| env.ask(py, "initial", &[self.width], self.values, ()));
        env.initial = entries_of(initial.ok_or_else(failed)?);
        Ok(Space::vectors(VectorEnv::from_env(env, self.values)))
    }

    /// Checks the numbers of moves, and returns the rules.
    pub(super) fn check(&self, rules: Option<Object>) -> Result<Object> {
        let n_backward = self.n_moves(Direction::Backward);
        if n_backward != self.n_moves && !self.reverses {
            let expected = "the value of `n_moves`, or rules with the methods `reverse` and \
                `backward_reverse`, which return the move that undoes a given move";
            return Err(Error::config("n_backward_moves", n_backward, expected));
        }
        rules.ok_or_else(|| Error::config("rules", "None", "an object like `EnvRules` or `TensorRules`"))
    }

    /// Returns the number of moves in a direction, without the exit.
    pub(super) fn n_moves(&self, direction: Direction) -> usize {
        match direction {
            Direction::Forward => self.n_moves,
            Direction::Backward => self.n_backward_moves.unwrap_or(self.n_moves),
        }
    }

    /// Returns the number of moves in a direction, including the exit.
    fn slots(&self, direction: Direction) -> usize {
        self.n_moves(direction) + usize::from(self.has_exit && direction == Direction::Forward)
    }
}

/// An environment whose rules are in Python. Each method of the rules is called once per batch.
struct BatchEnv {
    settings: BatchEnvSettings,
    initial: Vec<u16>,
    rules: Object,
    failures: Failures,
}

/// Returns a placeholder error for rules that raised an exception. The caller raises the exception instead of
/// this error.
pub(super) fn failed() -> Error {
    Error::config("the rules of the environment", "an error that they raised", "answers")
}

fn entries_of(numbers: Vec<i64>) -> Vec<u16> {
    numbers.into_iter().map(|number| number as u16).collect()
}

impl BatchEnv {
    /// Calls a method of the rules. Returns its result, which must be an array of this shape with whole
    /// numbers below `below`.
    fn ask<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        shape: &[usize],
        below: usize,
        arguments: impl PyCallArgs<'py>,
    ) -> PyResult<Vec<i64>> {
        let answer = self.rules.bind(py).call_method1(method, arguments)?;
        read_answer(&answer, method, "int64", shape, below)
    }

    /// Returns the states that these moves lead to, and the move in the other direction that undoes each
    /// move.
    fn apply(
        &self,
        direction: Direction,
        states: &VectorStates,
        moves: &[u32],
    ) -> Result<(VectorStates, Vec<u32>)> {
        let n = moves.len();
        let (step, reverse) = match direction {
            Direction::Forward => ("step", "reverse"),
            Direction::Backward => ("backward_step", "backward_reverse"),
        };
        let answers = self.failures.call(|py| {
            let arguments =
                || PyResult::Ok((entries(py, states)?, whole(moves.iter().map(|&slot| slot as usize))));
            let rows = self.ask(py, step, &[n, self.settings.width], self.settings.values, arguments()?)?;
            if !self.settings.reverses {
                return Ok((rows, moves.to_vec()));
            }
            let undo =
                self.ask(py, reverse, &[n], self.settings.n_moves(direction.opposite()), arguments()?)?;
            Ok((rows, undo.into_iter().map(|slot| slot as u32).collect()))
        });
        let (rows, undo) = answers.ok_or_else(failed)?;
        Ok((VectorStates::from_flat(self.settings.width, entries_of(rows))?, undo))
    }

    /// Returns a flag for each move of each state, including the exit: `true` if the move is legal. If the
    /// rules raise an exception, all flags are `false`, and the exception is raised later.
    fn legal(&self, direction: Direction, states: &VectorStates) -> Vec<bool> {
        let method = if direction == Direction::Forward { "masks" } else { "backward_masks" };
        let shape = [states.len(), self.settings.slots(direction)];
        let answer = self.failures.call(|py| {
            let answer = self.rules.bind(py).call_method1(method, (entries(py, states)?,))?;
            read_answer(&answer, method, "bool", &shape, 0)
        });
        answer.unwrap_or_else(|| vec![false; shape[0] * shape[1]])
    }
}

impl Env for BatchEnv {
    type States = VectorStates;
    type Actions = Slots;
    type Dist = GraphActionCategorical;

    fn initial(&self, instances: &[u32]) -> VectorStates {
        let mut states = VectorStates::filled(self.settings.width, instances.len(), 0);
        for row in states.values_mut().chunks_exact_mut(self.settings.width) {
            row.copy_from_slice(&self.initial);
        }
        states
    }

    fn step(&self, direction: Direction, states: &mut VectorStates, actions: &Slots) -> Result<Step<Slots>> {
        let n = actions.len();
        let n_moves = self.settings.n_moves(direction);
        if (states.len(), states.width()) != (n, self.settings.width) {
            let expected = [n as i64, self.settings.width as i64];
            let got = [states.len() as i64, states.width() as i64];
            return Err(Error::shape(
                "states",
                expected,
                got,
                "give states of this environment, and one action for each state",
            ));
        }
        let legal = self.settings.slots(direction);
        if let Some(row) = actions.0.iter().position(|&slot| slot as usize >= legal) {
            let slot = actions.0[row] as usize;
            let detail = self.describe(direction, states, row, actions.0[row]);
            return Err(Error::IllegalAction { row, direction, slot, n_slots: legal, n_legal: 0, detail });
        }
        let exit: Vec<bool> = actions.0.iter().map(|&slot| slot as usize == n_moves).collect();
        let inner: Vec<usize> = (0..n).filter(|&row| !exit[row]).collect();
        let mut step = Step { reverse: Slots(vec![0; n]), done: exit.clone(), exit };
        if inner.is_empty() {
            return Ok(step);
        }
        let moves = actions.select(&inner);
        let (after, undo) = self.apply(direction, &states.select(&inner), &moves.0)?;
        let done = match direction {
            Direction::Backward => self.is_initial(&after),
            Direction::Forward if self.settings.has_exit => vec![false; inner.len()],
            Direction::Forward => {
                let ways_on = self.legal(direction, &after);
                ways_on.chunks_exact(n_moves).map(|ways_on| !ways_on.contains(&true)).collect()
            }
        };
        for (k, &row) in inner.iter().enumerate() {
            states.values_mut()[row * self.settings.width..(row + 1) * self.settings.width]
                .copy_from_slice(after.row(k));
            (step.reverse.0[row], step.done[row]) = (undo[k], done[k]);
        }
        Ok(step)
    }

    fn is_initial(&self, states: &VectorStates) -> Vec<bool> {
        states.rows().map(|row| row == self.initial).collect()
    }

    fn exit_actions(&self, states: &VectorStates) -> Option<Slots> {
        self.settings.has_exit.then(|| Slots(vec![self.settings.n_moves as u32; states.len()]))
    }
}

impl DiscreteEnv for BatchEnv {
    fn masks(&self, direction: Direction, states: &VectorStates) -> Masks {
        let slots = self.settings.slots(direction);
        let has_exit = self.settings.has_exit && direction == Direction::Forward;
        Masks::from_rows(direction, states.len(), slots, self.legal(direction, states), has_exit)
    }

    fn describe(&self, direction: Direction, states: &VectorStates, row: usize, slot: u32) -> String {
        match states.describe(row) {
            None => format!("there is no state {row}"),
            Some(state)
                if slot as usize == self.settings.n_moves(direction)
                    && slot as usize + 1 == self.settings.slots(direction) =>
            {
                format!("exit at {state}")
            }
            Some(state) => format!("{direction} move {slot} of {state}"),
        }
    }
}

impl EnumerableEnv for BatchEnv {
    type Key = VectorKey;

    fn keys(&self, states: &VectorStates) -> Vec<VectorKey> {
        states.rows().map(VectorKey::from_slice).collect()
    }
}
