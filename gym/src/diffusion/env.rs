use gfn::env::{Direction, Env, Reals, Rows, Step};
use gfn::rollout::ReplayEnv;
use gfn::train::{TrainEnv, TrainerCode};
use gfn::{Error, Result};
use tch::{Device, Kind, Tensor};

use super::{DiffusionStates, GaussianSteps, Process, ReferencePolicy};
use crate::continuous::read_actions;

/// An environment for sampling from a density on R^d by a controlled diffusion (Lahlou et al. 2023; Sendera
/// et al. 2024). The origin is the initial state, and `steps` Gaussian steps lead to the object.
///
/// A *state* is a point and the number of steps made so far. A forward *action* is the next point, and a
/// backward action is the previous point. Actions are absolute coordinates instead of differences, so that a
/// recorded trajectory is repeated bit for bit. There is no exit action: a trajectory ends with its last
/// step. The backward step from step 1 leads to the origin, with probability 1. torchgfn's actions are
/// increments, and its last step counts as the exit, with log P_F = 0; here the last step is scored like all
/// others.
///
/// ```
/// use gfn::{env::{Env, Rows}, rollout::Sampler, Rng};
/// use gfn_gym::diffusion::{DiffusionSampling, Process, ProcessKind, ReferencePolicy};
/// let env = DiffusionSampling::new(2, Process::new(ProcessKind::PinnedBrownian, 1.0, 10)?)?;
/// let trajectories = Sampler::new(&env, &ReferencePolicy).forward(5, &mut Rng::seeded(0))?;
/// assert_eq!((trajectories.len(), trajectories.mean_len()), (5, 10.0));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct DiffusionSampling {
    dim: usize,
    process: Process,
}

impl DiffusionSampling {
    /// Builds the environment of points with `dim` coordinates. The process defines the number of steps and
    /// their distribution without drift.
    ///
    /// # Errors
    /// [`Error::Config`] if `dim` is 0.
    pub fn new(dim: usize, process: Process) -> Result<Self> {
        match dim {
            0 => Err(Error::config("the dimension", "0", "at least one coordinate")),
            dim => Ok(Self { dim, process }),
        }
    }

    /// Returns the number of coordinates of a point.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Returns the process that defines the number of steps and their distribution without drift.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Returns these points as the states of finished objects.
    #[must_use]
    pub fn terminal(&self, points: Reals) -> DiffusionStates {
        DiffusionStates::at(points, self.process.steps())
    }

    pub(super) fn check_states(&self, states: &DiffusionStates) -> Result<()> {
        states.check(self.dim, self.process.steps())
    }

    /// Returns the number of steps that have been made in the state in which a trajectory ends: all steps if
    /// the trajectory runs forwards, 0 if it runs backwards.
    fn last_step(&self, direction: Direction) -> u32 {
        match direction {
            Direction::Forward => self.process.steps() as u32,
            Direction::Backward => 0,
        }
    }

    fn check(&self, direction: Direction, states: &DiffusionStates, actions: &Reals) -> Result<()> {
        self.check_states(states)?;
        if actions.width() != self.dim || actions.len() != states.len() {
            return Err(Error::shape(
                "a step's next points",
                [states.len() as i64, self.dim as i64],
                [actions.len() as i64, actions.width() as i64],
                "give one point of the environment's dimension for each state",
            ));
        }
        let end = self.last_step(direction);
        for (row, (&step, point)) in states.steps.iter().zip(actions.rows()).enumerate() {
            let problem = if step == end {
                "no step is possible at the end of a trajectory"
            } else if !point.iter().all(|x| x.is_finite()) {
                "a step must lead to a point with finite coordinates"
            } else if direction == Direction::Backward && step == 1 && point.iter().any(|&x| x != 0.0) {
                "the first step of a trajectory starts at the origin"
            } else {
                continue;
            };
            let detail =
                format!("from step {step}, point {:?}, to {point:?}: {problem}", states.points.row(row));
            return Err(Error::IllegalStep { row, direction, detail });
        }
        Ok(())
    }
}

impl Env for DiffusionSampling {
    type States = DiffusionStates;
    type Actions = Reals;
    type Dist = GaussianSteps;

    fn initial(&self, instances: &[u32]) -> DiffusionStates {
        DiffusionStates::at(Reals::filled(self.dim, instances.len(), 0.0), 0)
    }

    fn step(
        &self,
        direction: Direction,
        states: &mut DiffusionStates,
        actions: &Reals,
    ) -> Result<Step<Reals>> {
        self.check(direction, states, actions)?;
        let reverse = std::mem::replace(&mut states.points, actions.clone());
        let end = self.last_step(direction);
        for step in &mut states.steps {
            match direction {
                Direction::Forward => *step += 1,
                Direction::Backward => *step -= 1,
            }
        }
        let done = states.steps.iter().map(|&step| step == end).collect();
        Ok(Step { reverse, exit: vec![false; states.len()], done })
    }

    fn is_initial(&self, states: &DiffusionStates) -> Vec<bool> {
        states.steps.iter().map(|&step| step == 0).collect()
    }

    fn exit_actions(&self, _: &DiffusionStates) -> Option<Reals> {
        None
    }
}

impl ReplayEnv for DiffusionSampling {
    type Uniform = ReferencePolicy;

    /// Returns the policy that follows the process without drift.
    fn uniform(&self) -> ReferencePolicy {
        ReferencePolicy
    }

    fn check_actions(&self, states: &DiffusionStates, actions: &Reals) -> Result<()> {
        self.check(Direction::Forward, states, actions)
    }

    /// Returns a possible previous point for each state: the mean of the backward step's distribution.
    fn way_back(&self, states: &DiffusionStates) -> Result<Reals> {
        self.check_states(states)?;
        let mut points = states.points.clone();
        for (row, (&step, point)) in
            states.steps.iter().zip(points.values_mut().chunks_exact_mut(self.dim)).enumerate()
        {
            if step == 0 {
                return Err(Error::NoLegalAction { row, direction: Direction::Backward });
            }
            let shrink = self.process.backward(step as usize).shrink;
            for x in point.iter_mut() {
                *x *= shrink;
            }
        }
        Ok(points)
    }

    fn no_actions(&self) -> Reals {
        Reals::filled(self.dim, 0, 0.0)
    }

    fn write_actions(&self, actions: &Reals) -> Tensor {
        actions.to_tensor(Kind::Double, Device::Cpu)
    }

    fn read_actions(&self, tensor: &Tensor) -> Result<Reals> {
        read_actions(tensor, self.dim)
    }
    fn fingerprint(&self) -> Result<String> {
        let Self { dim, process } = self;
        Ok(format!(
            "diffusion {dim} {:?} sigma {} steps {}",
            process.kind(),
            process.sigma(),
            process.steps()
        ))
    }
}

impl TrainEnv for DiffusionSampling {
    #[inline(never)]
    fn trainer_code() -> TrainerCode<Self> {
        TrainerCode::new()
    }
}
