use gfn::env::{Direction, Env, Reals, Rows, Step};
use gfn::rollout::ReplayEnv;
use gfn::train::{TrainEnv, TrainerCode};
use gfn::{Error, Result};
use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor};

use super::chart::is_source;
use super::{BoxDist, BoxUniform};
use crate::continuous::{check_widths, read_actions};

/// The geometry of the steps of a [`BoxEnv`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Geometry {
    /// Each step except the first moves at least delta along every axis. The first step leads to any point.
    Cartesian,
    /// Each step except the first leads to a quarter-circle of radius delta around the state. The first step
    /// leads into the quarter-disk of radius delta around the origin.
    Polar,
}

/// The unit box, crossed from the origin in steps that never decrease a coordinate (Lahlou et al., *A Theory
/// of Continuous Generative Flow Networks*, 2023).
///
/// A state is a point of `[0, 1]^n`, the source is the origin, and every other point can be left by the exit
/// action.
///
/// | | [Cartesian](Self::cartesian), n axes | [polar](Self::polar), 2 axes |
/// |---|---|---|
/// | from the source | to any point | into the quarter-disk of radius delta |
/// | from elsewhere | at least delta along every axis, or exit | along a quarter-circle of radius delta, or exit |
/// | forced exit | within delta of an upper side | within delta of the upper corner |
/// | backwards | at least delta along every axis, or to the source | along the quarter-circle |
/// | forced to the source | within delta of a lower side | within the quarter-disk |
///
/// A point on an axis, farther than delta from the origin, can't be reached in the polar box, because it has
/// no parent.
///
/// An action is the point that the step leads to, in absolute coordinates, and a flag: `[n + 1]` numbers, the
/// last of them 1 for the exit and 0 otherwise. A backward action is the point that the step came from. A
/// replayed trajectory therefore passes through exactly the same points, without rounding. (torchgfn's
/// actions are increments, which restore a state only up to rounding.)
///
/// Densities are with respect to length, area or volume; along a quarter-circle they are with respect to arc
/// length, in both directions. The exit and the step to the source have probabilities instead of densities.
///
/// ```
/// use gfn::env::{Direction, Env, Reals};
/// use gfn_gym::boxes::BoxEnv;
/// let env = BoxEnv::cartesian(2, 0.25)?;
/// let mut states = env.initial(&[0]);
/// let step = env.step(Direction::Forward, &mut states, &Reals::from_rows([[0.3, 0.5, 0.0]]))?;
/// assert_eq!(states, Reals::from_rows([[0.3, 0.5]]));
/// env.step(Direction::Backward, &mut states, &step.reverse)?;
/// assert_eq!(env.is_initial(&states), [true]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BoxEnv {
    ndim: usize,
    delta: f64,
    geometry: Geometry,
}

impl BoxEnv {
    /// Builds the box of `ndim` axes.
    ///
    /// # Errors
    /// [`Error::Config`] if `ndim` is 0, and if `delta` isn't in `(0, 1)`.
    pub fn cartesian(ndim: usize, delta: f64) -> Result<Self> {
        if ndim == 0 {
            return Err(Error::config("the number of axes", 0, "at least 1"));
        }
        checked_delta(delta)?;
        Ok(Self { ndim, delta, geometry: Geometry::Cartesian })
    }

    /// Builds the box of two axes. Each step except the first leads to a quarter-circle of radius `delta`.
    ///
    /// # Errors
    /// [`Error::Config`] if `delta` isn't in `(0, 1)`.
    pub fn polar(delta: f64) -> Result<Self> {
        checked_delta(delta)?;
        Ok(Self { ndim: 2, delta, geometry: Geometry::Polar })
    }

    /// Returns the number of axes of the box.
    #[must_use]
    pub fn ndim(&self) -> usize {
        self.ndim
    }

    /// Returns delta: the smallest length of a step along each axis of the Cartesian box, or the radius of
    /// the quarter-circles in the polar box.
    #[must_use]
    pub fn delta(&self) -> f64 {
        self.delta
    }

    /// Returns the geometry of the steps: Cartesian or polar.
    #[must_use]
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Checks that each action can be taken in its state.
    ///
    /// # Errors
    /// [`Error::Shape`] for states or actions of another width; [`Error::Contract`] for states outside the
    /// box; [`Error::IllegalStep`] for the first action that isn't permitted or contains NaN.
    pub fn check(&self, direction: Direction, states: &Reals, actions: &Reals) -> Result<()> {
        check_widths(states, actions, [self.ndim, self.ndim + 1])?;
        let mut unit = vec![0.0; self.ndim];
        for (row, (state, action)) in states.rows().zip(actions.rows()).enumerate() {
            self.check_state(row, state)?;
            let (point, exit) = self.split(action);
            let support = self.support(direction, state);
            let problem = match direction {
                Direction::Forward if exit == 1.0 && !support.atom => "the exit isn't possible at the source",
                Direction::Forward if exit == 1.0 && point == state => continue,
                Direction::Forward if exit == 1.0 => "the action of an exit must hold the point of the state",
                _ if exit != 0.0 => {
                    "the last number of an action must be 0 for a step, or 1 for the exit, which exists only \
                     forwards"
                }
                Direction::Forward if is_source(point) => "no step leads to the source",
                Direction::Backward if is_source(point) && support.atom => continue,
                Direction::Backward if is_source(state) => "no backward step is possible at the source",
                _ if !support.points && direction == Direction::Forward => {
                    "only the exit is possible in this state"
                }
                _ if !support.points && support.atom => "only the step from the source leads to this state",
                _ if !support.points => "no step leads to this state",
                _ => match self.unit(direction, state, point, &mut unit) {
                    Some(_) => continue,
                    None => "no step of the length `delta` within the box joins the two points",
                },
            };
            return Err(illegal(row, direction, state, action, problem));
        }
        Ok(())
    }

    pub(super) fn check_state(&self, row: usize, state: &[f64]) -> Result<()> {
        if state.iter().all(|x| (0.0..=1.0).contains(x)) {
            Ok(())
        } else {
            Err(Error::contract(
                "states lie in the box",
                format!("row {row} is {state:?}, with a coordinate outside [0, 1]"),
            ))
        }
    }

    /// Splits an action into its point and the number that is 1 for the exit.
    pub(super) fn split<'a>(&self, action: &'a [f64]) -> (&'a [f64], f64) {
        (&action[..self.ndim], action[self.ndim])
    }

    /// Builds an action for each of these points. The actions exit at the points if `exit` is `true`;
    /// otherwise they are steps to the points.
    fn actions(&self, points: &Reals, exit: bool) -> Reals {
        let mut values = Vec::with_capacity(points.len() * (self.ndim + 1));
        for point in points.rows() {
            values.extend_from_slice(point);
            values.push(f64::from(u8::from(exit)));
        }
        let mut actions = Reals::filled(self.ndim + 1, points.len(), 0.0);
        actions.values_mut().copy_from_slice(&values);
        actions
    }
}

/// Builds the error for an action that isn't permitted; `problem` gives the reason.
pub(super) fn illegal(
    row: usize,
    direction: Direction,
    state: &[f64],
    action: &[f64],
    problem: &str,
) -> Error {
    Error::IllegalStep { row, direction, detail: format!("from {state:?} by {action:?}: {problem}") }
}

fn checked_delta(delta: f64) -> Result<()> {
    if delta > 0.0 && delta < 1.0 {
        Ok(())
    } else {
        Err(Error::config("delta", delta, "the length of a step, above 0 and below 1"))
    }
}

impl Env for BoxEnv {
    type States = Reals;
    type Actions = Reals;
    type Dist = BoxDist;

    fn initial(&self, instances: &[u32]) -> Reals {
        Reals::filled(self.ndim, instances.len(), 0.0)
    }

    /// Takes every action after a check of all actions by [`check`](Self::check).
    fn step(&self, direction: Direction, states: &mut Reals, actions: &Reals) -> Result<Step<Reals>> {
        self.check(direction, states, actions)?;
        let n = states.len();
        let reverse = self.actions(states, false);
        let forward = direction == Direction::Forward;
        let mut exit = vec![false; n];
        let mut done = vec![false; n];
        for (row, (state, action)) in
            states.values_mut().chunks_exact_mut(self.ndim).zip(actions.rows()).enumerate()
        {
            let (point, flag) = self.split(action);
            if forward && flag == 1.0 {
                (exit[row], done[row]) = (true, true);
            } else {
                state.copy_from_slice(point);
                done[row] = !forward && is_source(point);
            }
        }
        Ok(Step { reverse, exit, done })
    }

    fn is_initial(&self, states: &Reals) -> Vec<bool> {
        states.rows().map(is_source).collect()
    }

    fn exit_actions(&self, states: &Reals) -> Option<Reals> {
        Some(self.actions(states, true))
    }
}

impl ReplayEnv for BoxEnv {
    type Uniform = BoxUniform;

    fn uniform(&self) -> BoxUniform {
        BoxUniform
    }

    fn check_actions(&self, states: &Reals, actions: &Reals) -> Result<()> {
        self.check(Direction::Forward, states, actions)
    }

    fn way_back(&self, states: &Reals) -> Result<Reals> {
        let mut points = Reals::filled(self.ndim, states.len(), 0.0);
        for (row, state) in states.rows().enumerate() {
            let support = self.support(Direction::Backward, state);
            if support.is_empty() {
                return Err(Error::NoLegalAction { row, direction: Direction::Backward });
            }
            if !support.atom {
                // The state lies in the polar box, farther than delta from the source. Its possible previous
                // points form an arc. Unit coordinates range from 0 to 1, so that one half gives the middle
                // of this arc.
                let point = &mut points.values_mut()[row * self.ndim..(row + 1) * self.ndim];
                self.place(Direction::Backward, state, &[0.5, 0.5], point);
            }
        }
        Ok(self.actions(&points, false))
    }

    fn no_actions(&self) -> Reals {
        Reals::filled(self.ndim + 1, 0, 0.0)
    }

    fn write_actions(&self, actions: &Reals) -> Tensor {
        actions.to_tensor(Kind::Double, Device::Cpu)
    }

    fn read_actions(&self, tensor: &Tensor) -> Result<Reals> {
        read_actions(tensor, self.ndim + 1)
    }
    fn fingerprint(&self) -> Result<String> {
        Ok(format!("box {:?} {} {}", self.geometry, self.ndim, self.delta))
    }
}

impl TrainEnv for BoxEnv {
    #[inline(never)]
    fn trainer_code() -> TrainerCode<Self> {
        TrainerCode::new()
    }
}
