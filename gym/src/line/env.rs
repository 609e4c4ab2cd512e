use gfn::env::{Direction, Env, Reals, Rows, Step};
use gfn::rollout::ReplayEnv;
use gfn::train::{TrainEnv, TrainerCode};
use gfn::{Error, Result};
use tch::{Device, Kind, Tensor};

use super::{LineDist, LineUniform};
use crate::continuous::{check_widths, read_actions};

/// The real line, crossed from 0 in a fixed number of steps of any length (torchgfn's `Line`).
///
/// A state is a position and the number of steps made, `[x, t]`. An action is one number: the next position
/// (forwards), or the previous position (backwards). There is no exit: the last step ends the trajectory. The
/// backward step from a state with t = 1 leads to 0, with probability 1. (torchgfn's policy ends a trajectory
/// after a number of steps; here the environment does so.)
///
/// ```
/// use gfn::env::{Direction, Env, Reals};
/// use gfn_gym::line::Line;
/// let env = Line::new(2)?;
/// let mut states = env.initial(&[0]);
/// assert_eq!(env.step(Direction::Forward, &mut states, &Reals::from_rows([[1.5]]))?.done, [false]);
/// assert_eq!(env.step(Direction::Forward, &mut states, &Reals::from_rows([[-0.5]]))?.done, [true]);
/// assert_eq!(states, Reals::from_rows([[-0.5, 2.0]]));
/// assert!(env.step(Direction::Forward, &mut states, &Reals::from_rows([[0.0]])).is_err());
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Line {
    n_steps: usize,
}

impl Line {
    /// Builds the environment of trajectories of `n_steps` steps.
    ///
    /// # Errors
    /// [`Error::Config`] for 0 steps, and for more than a million steps.
    pub fn new(n_steps: usize) -> Result<Self> {
        if (1..=1_000_000).contains(&n_steps) {
            Ok(Self { n_steps })
        } else {
            Err(Error::config("the number of steps", n_steps, "a number from 1 to a million"))
        }
    }

    /// The number of steps of every trajectory.
    #[must_use]
    pub fn n_steps(&self) -> usize {
        self.n_steps
    }

    /// Returns `true` for a state after exactly one step. The backward step from such a state must lead to 0.
    pub(super) fn is_forced_back(&self, state: &[f64]) -> bool {
        state[1] == 1.0
    }

    /// Checks that each action can be taken in its state.
    ///
    /// # Errors
    /// [`Error::Shape`] for states or actions of another width; [`Error::IllegalStep`] for the first action
    /// that isn't permitted.
    pub fn check(&self, direction: Direction, states: &Reals, actions: &Reals) -> Result<()> {
        check_widths(states, actions, [2, 1])?;
        for (row, (state, action)) in states.rows().zip(actions.rows()).enumerate() {
            let x = state[0];
            let t = state[1];
            let to = action[0];
            let problem = if !x.is_finite() || t.fract() != 0.0 || !(0.0..=self.n_steps as f64).contains(&t) {
                "a state must have a finite position and a whole number of steps from 0 to the limit"
            } else if !to.is_finite() {
                "the position must be finite"
            } else if direction == Direction::Forward && t == self.n_steps as f64 {
                "the trajectory has already made all of its steps"
            } else if direction == Direction::Backward && t == 0.0 {
                "the trajectory has made no step yet"
            } else if direction == Direction::Backward && self.is_forced_back(state) && to != 0.0 {
                "the first step of a trajectory starts at 0"
            } else {
                continue;
            };
            return Err(illegal(row, direction, state, to, problem));
        }
        Ok(())
    }
}

pub(super) fn illegal(row: usize, direction: Direction, state: &[f64], to: f64, problem: &str) -> Error {
    Error::IllegalStep { row, direction, detail: format!("from [x, t] = {state:?} to x = {to}: {problem}") }
}

impl Env for Line {
    type States = Reals;
    type Actions = Reals;
    type Dist = LineDist;

    fn initial(&self, instances: &[u32]) -> Reals {
        Reals::filled(2, instances.len(), 0.0)
    }

    /// Takes every action after a check of all actions by [`check`](Self::check).
    fn step(&self, direction: Direction, states: &mut Reals, actions: &Reals) -> Result<Step<Reals>> {
        self.check(direction, states, actions)?;
        let n = states.len();
        let mut reverse = Reals::filled(1, n, 0.0);
        let mut done = vec![false; n];
        let (change, end) = match direction {
            Direction::Forward => (1.0, self.n_steps as f64),
            Direction::Backward => (-1.0, 0.0),
        };
        for (row, (state, action)) in states.values_mut().chunks_exact_mut(2).zip(actions.rows()).enumerate()
        {
            reverse.values_mut()[row] = state[0];
            state[0] = action[0];
            state[1] += change;
            done[row] = state[1] == end;
        }
        Ok(Step { reverse, exit: vec![false; n], done })
    }

    fn is_initial(&self, states: &Reals) -> Vec<bool> {
        states.rows().map(|state| state[1] == 0.0).collect()
    }

    fn exit_actions(&self, _: &Reals) -> Option<Reals> {
        None
    }
}

impl ReplayEnv for Line {
    type Uniform = LineUniform;

    fn uniform(&self) -> LineUniform {
        LineUniform
    }

    fn check_actions(&self, states: &Reals, actions: &Reals) -> Result<()> {
        self.check(Direction::Forward, states, actions)
    }

    /// Returns the previous position for each state, on a trajectory that leads from 0 to the state in equal
    /// steps.
    fn way_back(&self, states: &Reals) -> Result<Reals> {
        let mut back = self.no_actions();
        for (row, state) in states.rows().enumerate() {
            let t = state[1];
            if t < 1.0 {
                return Err(Error::NoLegalAction { row, direction: Direction::Backward });
            }
            back.append(Reals::from_rows([[state[0] * (t - 1.0) / t]]));
        }
        Ok(back)
    }

    fn no_actions(&self) -> Reals {
        Reals::filled(1, 0, 0.0)
    }

    fn write_actions(&self, actions: &Reals) -> Tensor {
        actions.to_tensor(Kind::Double, Device::Cpu)
    }

    fn read_actions(&self, tensor: &Tensor) -> Result<Reals> {
        read_actions(tensor, 1)
    }
    fn fingerprint(&self) -> Result<String> {
        Ok(format!("line {}", self.n_steps))
    }
}

impl TrainEnv for Line {
    #[inline(never)]
    fn trainer_code() -> TrainerCode<Self> {
        TrainerCode::new()
    }
}
