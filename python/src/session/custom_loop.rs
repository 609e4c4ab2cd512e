//! The methods of `Session` (the extension's trainer) for networks, samplers and custom training loops. These
//! methods evaluate states, draw and score trajectories, and carry out the parts of a training step.

use gfn::distribution::{Distribution, Exploration};
use gfn::env::Rows;
use gfn::objective::{Quantities, Quantity, score};
use gfn::rollout::Trajectories;
use gfn::train::{Batch, BatchScores, TrainEnv, Trainer};
use gfn::{Error, Result, Rng};
use gfn_extras::explore::{Thompson, thompson_scores};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use tch::Tensor;

use super::trained::{Steps, Trained};
use super::{PySteps, Session};
use crate::border::{DeferredObject, check_finished, draw_backward};
use crate::conditions::check_conditions;
use crate::kinds::{AnyPaths, PyEnv, Space};
use crate::objective::Scores;
use crate::paths::{PathBatch, Paths};
use crate::settings::Settings;
use crate::states::{Array, whole};
use crate::tensors::{self, PyTensor};
use crate::watch::Watch;

/// The possible actions of a batch of states in one direction, as three lists: the index of each state's
/// first action, followed by the number of all actions, `[n + 1]`; the slot of each action; and the
/// log-probability of each action, with gradients.
type Actions = (Array<i64>, PyTensor, PyTensor);

/// An evaluation of a batch of states: the forward actions, the backward actions, log F and log Z.
type PolicyOutput = (Option<Actions>, Option<Actions>, Option<PyTensor>, Option<PyTensor>);

/// The states that trajectories start from.
#[derive(FromPyObject)]
enum Origin {
    /// The initial states: the number of trajectories, and the index of each trajectory's initial state, or
    /// `None` to draw these indices.
    Start(usize, Option<Vec<u32>>),
    /// Finished objects, from which trajectories are drawn backwards.
    Objects(Py<PyAny>),
}

/// The objects of a replay buffer, log R of each object, and the condition of each object if the trainer has
/// conditions.
type BufferContent = (DeferredObject, Array<f64>, Option<PyTensor>);

/// Computes log P_F and log P_B of each transition, `[2, T]`, without gradients and without a call of the
/// reward.
fn score_transitions<E: TrainEnv>(trainer: &Trainer<E>, paths: &Trajectories<E>) -> Result<Tensor> {
    let unrewarded = paths.clone().with_log_rewards(vec![0.0; paths.len()])?;
    let zeros = |states: &E::States, _: Option<&Tensor>| Ok(vec![0.0; states.len()]);
    let scores =
        tch::no_grad(|| score(trainer.env(), &zeros, trainer.policy(), &unrewarded, Quantities::NONE))?;
    Ok(Tensor::stack(&[scores.log_pf, scores.log_pb], 0))
}

/// Lists the possible actions of each of `n` states, and the log-probability of each action.
fn list_actions<E: TrainEnv>(env: &E, dist: &E::Dist, n: usize) -> Result<Actions> {
    let mut ptr = vec![0];
    let mut rows = Vec::new();
    let mut actions = env.no_actions();
    for row in 0..n {
        match dist.support(&[row]) {
            Ok((_, of_row)) => {
                rows.resize(rows.len() + of_row.len(), row);
                actions.append(of_row);
            }
            // A state without actions isn't an error: initial states have no backward action, and finished
            // states without an exit have no forward action.
            Err(Error::NoLegalAction { .. }) => {}
            Err(Error::Missing { .. }) => {
                let expected = "an environment whose moves can be listed; for points, draw trajectories by a \
                    `Sampler`, and score them by `Trainer.score`";
                return Err(Error::config(
                    "the environment of a policy that is called with states",
                    "an environment of points",
                    expected,
                ));
            }
            Err(other) => return Err(other),
        }
        ptr.push(rows.len());
    }
    let log_probs = dist.log_prob(&rows, &actions)?;
    Ok((whole(ptr), PyTensor(env.write_actions(&actions)), PyTensor(log_probs)))
}

impl<E: PyEnv> Trained<E> {
    fn evaluate(
        &self,
        states: &Py<PyAny>,
        conditions: Option<&Tensor>,
        flow: bool,
        grad: bool,
    ) -> Result<PolicyOutput> {
        let states = self.space.border.read_detached(states, "states")?;
        let env = &self.space.env;
        let policy = self.trainer.policy();
        let mut wants = Quantities::PF | Quantities::PB;
        if flow {
            wants |= Quantity::LogFlow;
        }
        let n = states.len();
        let log_z = policy.log_z(conditions, if conditions.is_some() { n } else { 1 });
        let mut evaluation = policy.evaluate(env, &states, conditions, wants)?;
        let forward = evaluation.pf.map(|dist| list_actions(env, &dist, n)).transpose()?;
        let backward = evaluation.pb.map(|dist| list_actions(env, &dist, n)).transpose()?;
        // A detached tensor shares the parameter's memory, which the next update overwrites. So log Z is
        // copied.
        let log_z = log_z.map(|tensor| PyTensor(if grad { tensor } else { tensor.detach().copy() }));
        Ok((forward, backward, evaluation.values.remove(Quantity::LogFlow).map(PyTensor), log_z))
    }

    /// Draws trajectories, and computes log P_F and log P_B of each transition. The random numbers come from
    /// `seed`, or from the trainer's random stream for evaluations if `seed` is `None`.
    fn draw_paths(
        &mut self,
        origin: Origin,
        conditions: Option<&Tensor>,
        exploration: Exploration,
        seed: Option<u64>,
    ) -> Result<PathBatch<E>> {
        check_conditions(self.trainer.context(), conditions)?;
        let mut own_rng = seed.map(Rng::seeded);
        self.without_noise(|trainer, space: &Space<E>, rng| {
            let rng = own_rng.as_mut().unwrap_or(rng);
            let watch = Watch::new();
            let policy = watch.over(trainer.policy());
            let sampler = trainer.context().sampler(&space.env, &policy).exploration(exploration);
            let paths = match (origin, conditions) {
                (Origin::Start(n, None), None) => sampler.forward(n, rng)?,
                (Origin::Start(_, None), Some(conditions)) => sampler.forward_conditional(conditions, rng)?,
                (Origin::Start(_, Some(instances)), conditions) => {
                    sampler.forward_in(&instances, conditions, rng)?
                }
                (Origin::Objects(objects), conditions) => {
                    let objects = space.border.read_detached(&objects, "objects")?;
                    check_finished(&space.env, &objects, &mut rng.clone())?;
                    draw_backward(&sampler, &objects, conditions, rng)?
                }
            };
            let scored = score_transitions(trainer, &paths)?;
            Ok(PathBatch::new(space, paths, Some(scored)))
        })
    }

    /// Returns an error if the trainer computes gradients in chunks of a batch, because a custom loop can't
    /// do this.
    fn check_custom_loop(&self) -> Result<()> {
        if self.trainer.context().config.chunk.is_none() {
            return Ok(());
        }
        let missing = "a trainer that computes its gradients itself";
        Err(Error::missing(
            "training in chunks (`Adam.chunk`)",
            missing,
            "train by `fit`, or set `chunk` to None",
        ))
    }

    fn draw_batch(&mut self) -> Result<PathBatch<E>> {
        self.check_custom_loop()?;
        let batch = self.trainer.draw()?;
        Ok(PathBatch::new(&self.space, batch, None))
    }

    fn batch<'a>(&self, paths: &'a mut AnyPaths) -> Result<&'a mut Batch<E>> {
        Ok(&mut paths.for_env(&self.space.env)?.batch)
    }

    fn score(&mut self, paths: &mut AnyPaths) -> Result<BatchScores> {
        let batch = self.batch(paths)?;
        self.check_custom_loop()?;
        match self.trainer.source::<Thompson>() {
            None => self.trainer.score(batch),
            Some(_) => thompson_scores(&mut self.trainer, batch),
        }
    }

    /// Ends a training step whose loss and gradients a custom loop in Python computed.
    fn end_step(&mut self, paths: &mut AnyPaths, scores: &BatchScores, loss: f64) -> Steps {
        let mut batch = match self.batch(paths) {
            Ok(batch) => Some(batch.clone()),
            Err(error) => return (Vec::new(), Some(error)),
        };
        self.make_steps(1, &mut |trainer| match batch.take() {
            Some(batch) => {
                trainer.record_loss(loss);
                trainer.advance(batch, scores)
            }
            None => Err(Error::contract(
                "a batch is used for one step",
                "a second step was requested; draw a new batch for each step",
            )),
        })
    }

    fn buffer(&self) -> Option<BufferContent> {
        let buffer = self.trainer.replay()?;
        let (objects, conditions) = match buffer.walks() {
            Some(walks) => (walks.terminal.clone(), walks.conditions().map(Tensor::shallow_clone)),
            None => (self.space.env.initial(&[]), None),
        };
        let log_rewards = Array(buffer.log_rewards().collect());
        Some((self.space.border.defer(objects), log_rewards, conditions.map(PyTensor)))
    }

    fn reward(&self, paths: &mut AnyPaths) -> Result<PathBatch<E>> {
        let paths = paths.for_env(&self.space.env)?;
        paths.with_log_rewards(paths.batch.trajectories.log_rewards(self.trainer.reward())?)
    }
}

/// The estimates that an objective needs besides P_F and P_B: state flows, the number of paths from the
/// initial state to a state, and log Z.
#[derive(IntoPyObject)]
struct Heads {
    flow: bool,
    paths: bool,
    log_z: bool,
}

#[pymethods]
impl Session {
    /// Evaluates the policy in a batch of states: P_F, P_B, log F if `flow`, and log Z. The tensors have
    /// gradients if `grad`.
    fn evaluate(
        &self,
        py: Python<'_>,
        states: Py<PyAny>,
        conditions: Option<PyTensor>,
        flow: bool,
        grad: bool,
    ) -> PyResult<PolicyOutput> {
        self.ask(py, move |trained| {
            let conditions = tensors::optional(&conditions);
            let evaluate = || each!(trained, trained => trained.evaluate(&states, conditions, flow, grad));
            if grad { tch::with_grad(evaluate) } else { tch::no_grad(evaluate) }
        })
    }

    /// Draws trajectories from initial states, or backwards from objects.
    fn draw_paths(
        &self,
        py: Python<'_>,
        origin: Origin,
        conditions: Option<PyTensor>,
        explored: Settings<Exploration>,
        seed: Option<u64>,
    ) -> PyResult<Paths> {
        self.ask(py, move |trained| {
            let conditions = tensors::optional(&conditions);
            let paths =
                map_each!(trained, trained => trained.draw_paths(origin, conditions, explored.0, seed)?);
            Ok(Paths::new(paths))
        })
    }

    /// Draws the batch of the next training step.
    fn draw_batch(&self, py: Python<'_>) -> PyResult<Paths> {
        self.ask(py, |trained| Ok(Paths::new(map_each!(trained, trained => trained.draw_batch()?))))
    }

    /// Computes log P_F, log P_B and log R of these trajectories, with gradients if `grad`.
    fn score(&self, py: Python<'_>, batch: &Paths, grad: bool) -> PyResult<Scores> {
        let scores = self.ask(py, |trained| {
            let mut paths = batch.lock()?;
            let mut score = || each!(trained, trained => trained.score(&mut paths));
            if grad { tch::with_grad(score) } else { Ok(tch::no_grad(&mut score)?.without_gradients()) }
        })?;
        Scores::from_batch(py, scores)
    }

    /// Computes the objective's loss from these scores.
    fn loss(&self, py: Python<'_>, scores: &Scores) -> PyResult<PyTensor> {
        let loss = self.ask(py, |trained| match scores.batch() {
            Some(scores) => each!(trained, trained => trained.trainer.loss(&scores)).map(Some),
            None => Ok(None),
        })?;
        loss.map(PyTensor).ok_or_else(foreign_scores)
    }

    /// Ends a training step of a custom loop. Returns the step's record, and the error of the step if it
    /// failed.
    fn end_step(&self, py: Python<'_>, batch: &Paths, scores: &Scores, loss: f64) -> PyResult<PySteps> {
        let steps = self.work(py, |trained| {
            let scores = scores.batch()?;
            Some(match batch.lock() {
                Ok(mut paths) => each!(trained, trained => trained.end_step(&mut paths, &scores, loss)),
                Err(error) => (Vec::new(), Some(error)),
            })
        })?;
        Ok(self.show_steps(steps.ok_or_else(foreign_scores)?))
    }

    /// Returns the contents of the replay buffer; `None` if the trainer has no buffer.
    fn buffer_content(&self, py: Python<'_>) -> PyResult<Option<BufferContent>> {
        self.read(py, |trained| each!(trained, trained => trained.buffer()))
    }

    /// Offers trajectories to the replay buffer, and returns the number of trajectories that the buffer
    /// accepted.
    fn remember(&self, py: Python<'_>, paths: &Paths) -> PyResult<usize> {
        self.ask(py, |trained| {
            let mut paths = paths.lock()?;
            each!(trained, trained => {
                let batch = trained.batch(&mut paths)?;
                trained.trainer.remember(&batch.trajectories)
            })
        })
    }

    /// Returns the same trajectories with log R of each trajectory's object.
    fn rewarded(&self, py: Python<'_>, paths: &Paths) -> PyResult<Paths> {
        self.ask(py, |trained| {
            let mut paths = paths.lock()?;
            Ok(Paths::new(map_each!(trained, trained => trained.reward(&mut paths)?)))
        })
    }

    fn heads(&self, py: Python<'_>) -> PyResult<Heads> {
        let needs =
            self.read(py, |trained| each!(trained, trained => trained.trainer.context().objective.needs()))?;
        Ok(Heads {
            flow: needs.has(Quantity::LogFlow),
            paths: needs.has(Quantity::LogPaths),
            log_z: needs.has(Quantity::LogZ),
        })
    }

    /// Returns the factor by which the next step multiplies learning rates.
    fn lr_factor(&self, py: Python<'_>) -> PyResult<f64> {
        self.read(py, |trained| {
            each!(trained, trained => {
                let context = trained.trainer.context();
                context.config.lr_scale.at(context.step)
            })
        })
    }
}

fn foreign_scores() -> PyErr {
    PyTypeError::new_err(
        "the scores are those that an objective is called with: expected the scores that \
         `Trainer.score(batch)` returned",
    )
}
