//! The methods of a session for a policy, a sampler and a custom loop: evaluations of states, trajectories, and the parts of a step.

use gfn::distribution::{Distribution, Exploration};
use gfn::env::Rows;
use gfn::objective::{Quantities, Quantity, score};
use gfn::rollout::{Sampler, Trajectories};
use gfn::train::{Batch, BatchScores, TrainEnv, Trainer};
use gfn::{Error, Result, Rng};
use gfn_extras::explore::{Thompson, thompson_scores};
use numpy::IntoPyArray;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tch::Tensor;

use super::trained::{Steps, Trained};
use super::{Session, table};
use crate::border::{Shown, check_finished};
use crate::errors::raised;
use crate::kinds::{PyEnv, Space};
use crate::objective::Scores;
use crate::paths::{AnyPaths, PathBatch, Paths, Scored};
use crate::tensors;
use crate::watch::Watch;

/// log P of each possible action of a batch of states in one direction, with gradients.
struct Actions {
    /// The beginning of the actions of each state, `[n + 1]`.
    ptr: Vec<usize>,
    slots: Tensor,
    log_probs: Tensor,
}

/// An evaluation of a batch of states.
struct PolicyOutput {
    forward: Option<Actions>,
    backward: Option<Actions>,
    log_flow: Option<Tensor>,
    log_z: Option<Tensor>,
}

/// The state that trajectories are drawn from.
enum Origin {
    /// The initial state of `n` trajectories, or that of each of these instances.
    Start { n: usize, instances: Option<Vec<u32>> },
    /// Finished objects, from which trajectories are drawn backwards.
    Objects(Py<PyAny>),
}

/// Objects of a replay buffer, log R of each, and their conditions.
struct BufferContent {
    objects: Shown,
    log_rewards: Vec<f64>,
    conditions: Option<Tensor>,
}

/// log P_F and log P_B of each transition, without gradients; no reward is computed.
fn score_transitions<E: TrainEnv>(trainer: &Trainer<E>, paths: &Trajectories<E>) -> Result<Scored> {
    let unrewarded = paths.clone().with_log_rewards(vec![0.0; paths.len()])?;
    let zeros = |states: &E::States, _: Option<&Tensor>| Ok(vec![0.0; states.len()]);
    let scores = tch::no_grad(|| score(trainer.env(), &zeros, trainer.policy(), &unrewarded, Quantities::NONE))?;
    Ok(Scored { log_pf: scores.log_pf, log_pb: scores.log_pb })
}

/// The possible actions of each state, and their log-probabilities.
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
            // An initial state has no backward action, a finished one without exits no forward action.
            Err(Error::NoLegalAction { .. }) => {}
            Err(Error::Missing { .. }) => {
                let expected = "one whose moves can be listed; of points, `Sampler` draws and `Trainer.score` scores";
                return Err(Error::config(
                    "the environment of a policy that is called with states",
                    "one of points",
                    expected,
                ));
            }
            Err(other) => return Err(other),
        }
        ptr.push(rows.len());
    }
    let log_probs = dist.log_prob(&rows, &actions)?;
    Ok(Actions { ptr, slots: env.write_actions(&actions), log_probs })
}

impl<E: PyEnv> Trained<E> {
    fn evaluate(&self, states: &Py<PyAny>, conditions: Option<&Tensor>, flow: bool) -> Result<PolicyOutput> {
        let states = self.space.border.read_detached(states, "states")?;
        let (env, policy) = (&self.space.env, self.trainer.policy());
        let mut wants = Quantities::PF | Quantities::PB;
        if flow {
            wants |= Quantity::LogFlow;
        }
        let n = states.len();
        let log_z = policy.log_z(conditions, if conditions.is_some() { n } else { 1 });
        let mut evaluation = policy.evaluate(env, &states, conditions, wants)?;
        Ok(PolicyOutput {
            forward: evaluation.pf.map(|dist| list_actions(env, &dist, n)).transpose()?,
            backward: evaluation.pb.map(|dist| list_actions(env, &dist, n)).transpose()?,
            log_flow: evaluation.values.remove(Quantity::LogFlow),
            log_z,
        })
    }

    /// Draws trajectories, and scores each transition. They are drawn by a stream of their own, or by that of evaluations.
    fn draw_paths(
        &mut self,
        origin: Origin,
        conditions: Option<&Tensor>,
        exploration: Exploration,
        seed: Option<u64>,
    ) -> Result<PathBatch<E>> {
        self.check_conditions(conditions)?;
        let mut own_rng = seed.map(Rng::seeded);
        self.without_noise(|trainer, space: &Space<E>, rng| {
            let rng = own_rng.as_mut().unwrap_or(rng);
            let watch = Watch::new();
            let policy = watch.over(trainer.policy());
            let limit = trainer.context().config.max_steps;
            let sampler = Sampler::new(&space.env, &policy).exploration(exploration).max_steps(limit);
            let paths = match (origin, conditions) {
                (Origin::Start { n, instances: None }, None) => sampler.forward(n, rng)?,
                (Origin::Start { instances: None, .. }, Some(conditions)) => {
                    sampler.forward_conditional(conditions, rng)?
                }
                (Origin::Start { instances: Some(instances), .. }, None) => sampler.forward_of(&instances, rng)?,
                (Origin::Start { .. }, Some(_)) => {
                    let expected = "one of both: environments of several instances have none";
                    return Err(Error::config("conditions", "conditions and instances", expected));
                }
                (Origin::Objects(objects), conditions) => {
                    let objects = space.border.read_detached(&objects, "objects")?;
                    check_finished(&space.env, &objects, &mut rng.clone())?;
                    match conditions {
                        None => sampler.backward(&objects, rng)?,
                        Some(conditions) => sampler.backward_conditional(&objects, conditions, rng)?,
                    }
                }
            };
            let scored = score_transitions(trainer, &paths)?;
            Ok(PathBatch::new(space, paths, Some(scored)))
        })
    }

    /// Refuses a loop that differentiates by itself if only the trainer can.
    fn check_custom_loop(&self) -> Result<()> {
        if self.trainer.context().config.chunk.is_none() {
            return Ok(());
        }
        let missing = "a trainer that differentiates by itself";
        Err(Error::missing("batches that are scored in chunks", missing, "train by `fit`, or without `chunk`"))
    }

    fn draw_batch(&mut self) -> Result<PathBatch<E>> {
        self.check_custom_loop()?;
        let batch = self.trainer.draw()?;
        Ok(PathBatch::new(&self.space, batch, None))
    }

    fn batch<'a>(&self, paths: &'a mut AnyPaths) -> Result<&'a mut Batch<E>> {
        Ok(&mut paths.of_env(&self.space.env)?.batch)
    }

    fn score(&mut self, paths: &mut AnyPaths) -> Result<BatchScores> {
        let batch = self.batch(paths)?;
        self.check_custom_loop()?;
        match self.trainer.source::<Thompson>() {
            None => self.trainer.score(batch),
            Some(_) => thompson_scores(&mut self.trainer, batch),
        }
    }

    /// Ends a step that Python made.
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
            None => Err(Error::contract("a batch is one step", "a second one was asked for")),
        })
    }

    fn buffer(&self) -> Option<BufferContent> {
        let buffer = self.trainer.replay()?;
        let (objects, conditions) = match buffer.walks() {
            Some(walks) => (walks.terminal.clone(), walks.conditions().map(Tensor::shallow_clone)),
            None => (self.space.env.initial(&[]), None),
        };
        let objects = self.space.border.defer(objects);
        Some(BufferContent { objects, log_rewards: buffer.log_rewards().collect(), conditions })
    }

    fn remember(&mut self, paths: &mut AnyPaths) -> Result<usize> {
        let trajectories = &self.batch(paths)?.trajectories;
        self.trainer.remember(trajectories)
    }

    fn reward(&self, paths: &mut AnyPaths) -> Result<PathBatch<E>> {
        let paths = paths.of_env(&self.space.env)?;
        paths.with_log_rewards(paths.batch.trajectories.log_rewards(self.trainer.reward())?)
    }
}

/// Settings of exploration, with the names that Python has for them.
#[derive(FromPyObject)]
struct ExplorationSettings {
    epsilon: f64,
    temperature: f64,
    exit_bias: f64,
    noise: f64,
}

impl ExplorationSettings {
    fn read(&self) -> Result<Exploration> {
        Exploration::epsilon(self.epsilon)?
            .with_temperature(self.temperature)?
            .with_exit_bias(self.exit_bias)?
            .with_noise(self.noise)
    }
}

/// The beginning of the actions of each state, their slots, and log P of each.
type ActionArrays<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

fn action_arrays<'py>(py: Python<'py>, actions: Option<Actions>) -> PyResult<Option<ActionArrays<'py>>> {
    let Some(Actions { ptr, slots, log_probs }) = actions else { return Ok(None) };
    let ptr: Vec<i64> = ptr.into_iter().map(|start| start as i64).collect();
    let slots = tensors::to_python(py, &slots)?;
    Ok(Some((ptr.into_pyarray(py).into_any(), slots, tensors::to_python(py, &log_probs)?)))
}

#[pymethods]
impl Session {
    /// Evaluates states: P_F, P_B, log F if it is wanted, log Z; with gradients if `grad`.
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        states: Py<PyAny>,
        conditions: Option<&Bound<'py, PyAny>>,
        flow: bool,
        grad: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let conditions = tensors::optional(conditions)?;
        let output = self.ask(py, move |trained| {
            let evaluate = || each!(trained, trained => trained.evaluate(&states, conditions.as_ref(), flow));
            if grad { tch::with_grad(evaluate) } else { tch::no_grad(evaluate) }
        })?;
        // A view of a parameter that is made without gradients can't be read after an update.
        let log_z = output.log_z.map(|tensor| if grad { tensor } else { tensor.detach().copy() });
        let by_name = PyDict::new(py);
        by_name.set_item("forward", action_arrays(py, output.forward)?)?;
        by_name.set_item("backward", action_arrays(py, output.backward)?)?;
        by_name.set_item("log_flow", tensors::optional_to_python(py, output.log_flow)?)?;
        by_name.set_item("log_z", tensors::optional_to_python(py, log_z)?)?;
        Ok(by_name)
    }

    /// Draws `n` trajectories, from these instances if there are any.
    fn draw_paths(
        &self,
        py: Python<'_>,
        n: usize,
        instances: Option<Vec<u32>>,
        conditions: Option<&Bound<'_, PyAny>>,
        explored: ExplorationSettings,
        seed: Option<u64>,
    ) -> PyResult<Paths> {
        let exploration = explored.read().map_err(raised)?;
        self.draw_from(py, Origin::Start { n, instances }, conditions, exploration, seed)
    }

    /// Draws a trajectory backwards from each of these objects.
    fn draw_back(
        &self,
        py: Python<'_>,
        objects: Py<PyAny>,
        conditions: Option<&Bound<'_, PyAny>>,
        seed: Option<u64>,
    ) -> PyResult<Paths> {
        self.draw_from(py, Origin::Objects(objects), conditions, Exploration::none(), seed)
    }

    /// The batch of the next step.
    fn draw_batch(&self, py: Python<'_>) -> PyResult<Paths> {
        Ok(Paths::new(self.ask(py, |trained| Ok(map_each!(trained, trained => trained.draw_batch()?)))?))
    }

    /// The scores of trajectories, with gradients if `grad`.
    fn score(&self, py: Python<'_>, batch: &Paths, grad: bool) -> PyResult<Scores> {
        let scores = self.ask(py, |trained| {
            let mut paths = batch.lock()?;
            let mut score = || each!(trained, trained => trained.score(&mut paths));
            if grad { tch::with_grad(score) } else { Ok(tch::no_grad(&mut score)?.without_gradients()) }
        })?;
        Scores::from_batch(py, scores)
    }

    /// The loss of scores by the objective.
    fn loss<'py>(&self, py: Python<'py>, scores: &Scores) -> PyResult<Bound<'py, PyAny>> {
        let loss = self.ask(py, |trained| match scores.batch() {
            Some(scores) => each!(trained, trained => trained.trainer.loss(&scores)).map(Some),
            None => Ok(None),
        })?;
        tensors::to_python(py, &loss.ok_or_else(foreign_scores)?)
    }

    /// Ends a step that Python made: its record, as lists by name, and an error.
    fn end_step<'py>(
        &self,
        py: Python<'py>,
        batch: &Paths,
        scores: &Scores,
        loss: f64,
    ) -> PyResult<(Bound<'py, PyDict>, Option<PyErr>)> {
        let steps = self.work(py, |trained| {
            let scores = scores.batch()?;
            Some(match batch.lock() {
                Ok(mut paths) => each!(trained, trained => trained.end_step(&mut paths, &scores, loss)),
                Err(error) => (Vec::new(), Some(error)),
            })
        })?;
        let (records, error) = steps.ok_or_else(foreign_scores)?;
        Ok((table(py, &records)?, self.failures.take().or(error.map(raised))))
    }

    /// Objects of the buffer, log R of each, and their conditions; None without a buffer.
    #[expect(clippy::type_complexity, reason = "one class of Python reads it")]
    fn stored<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)>> {
        let content = self.read(py, |trained| each!(trained, trained => trained.buffer()))?;
        let Some(BufferContent { objects, log_rewards, conditions }) = content else { return Ok(None) };
        let log_rewards = log_rewards.into_pyarray(py).into_any();
        Ok(Some((objects(py)?, log_rewards, tensors::optional_to_python(py, conditions)?)))
    }

    /// Offers trajectories to the buffer; returns the number of those that stayed.
    fn remember(&self, py: Python<'_>, paths: &Paths) -> PyResult<usize> {
        self.ask(py, |trained| {
            let mut paths = paths.lock()?;
            each!(trained, trained => trained.remember(&mut paths))
        })
    }

    /// Trajectories with the log-rewards of their objects.
    fn rewarded(&self, py: Python<'_>, paths: &Paths) -> PyResult<Paths> {
        let rewarded = self.ask(py, |trained| {
            let mut paths = paths.lock()?;
            Ok(map_each!(trained, trained => trained.reward(&mut paths)?))
        })?;
        Ok(Paths::new(rewarded))
    }

    /// The heads that the objective needs: state flows, and numbers of paths.
    fn heads<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let needs = self.read(py, |trained| each!(trained, trained => trained.trainer.context().objective.needs()))?;
        let heads = PyDict::new(py);
        heads.set_item("flow", needs.has(Quantity::LogFlow))?;
        heads.set_item("paths", needs.has(Quantity::LogPaths))?;
        Ok(heads)
    }

    /// The factor on learning rates at the next step.
    fn lr_factor(&self, py: Python<'_>) -> PyResult<f64> {
        self.read(py, |trained| {
            each!(trained, trained => {
                let context = trained.trainer.context();
                context.config.lr_scale.at(context.step)
            })
        })
    }
}

impl Session {
    fn draw_from(
        &self,
        py: Python<'_>,
        origin: Origin,
        conditions: Option<&Bound<'_, PyAny>>,
        exploration: Exploration,
        seed: Option<u64>,
    ) -> PyResult<Paths> {
        let conditions = tensors::optional(conditions)?;
        let paths = self.ask(py, move |trained| {
            let conditions = conditions.as_ref();
            Ok(map_each!(trained, trained => trained.draw_paths(origin, conditions, exploration, seed)?))
        })?;
        Ok(Paths::new(paths))
    }
}

fn foreign_scores() -> PyErr {
    PyTypeError::new_err("the scores are those of an objective's call: expected what `Trainer.score(batch)` gave")
}
