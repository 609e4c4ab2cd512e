//! Evaluations of a policy on its own samples, and on given objects, for environments whose states can't be
//! listed.

use gfn::env::{Env, Forms, Rows, log_rewards};
use gfn::metrics::{Correlation, importance_log_z};
use gfn::objective::{Quantities, Quantity, Scores, score};
use gfn::rollout::Trajectories;
use gfn::train::{TrainEnv, Trainer};
use gfn::{Error, Result};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use tch::Tensor;

use super::Evaluation;
use super::trained::Trained;
use crate::border::{check_finished, draw_backward};
use crate::conditions::check_conditions;
use crate::kinds::PyEnv;
use crate::states::whole;
use crate::watch::Watch;

/// The largest number of trajectories that are drawn and scored in one batch.
const MAX_BATCH: usize = 512;

/// Returns `n` copies of a single condition, as a tensor `[n, C]`.
pub(super) fn repeat_row(condition: Option<&Tensor>, n: usize) -> Option<Tensor> {
    condition.map(|condition| condition.expand([n as i64, -1], false))
}

/// Divides `n` items into batches of at most `batch` items, calls `work` with the range of each batch, and
/// checks for Ctrl-C between batches.
pub(super) fn in_batches(
    n: usize,
    batch: usize,
    watch: &Watch,
    mut work: impl FnMut(std::ops::Range<usize>) -> Result<()>,
) -> Result<()> {
    for start in (0..n).step_by(batch) {
        work(start..n.min(start + batch))?;
        watch.look()?;
    }
    Ok(())
}

/// Scores trajectories without gradients. If the objective is relative to a prior, the scores include the
/// prior's log-probabilities.
fn score_trajectories<E: TrainEnv>(trainer: &Trainer<E>, trajectories: &Trajectories<E>) -> Result<Scores> {
    let context = trainer.context();
    let is_relative = context.objective.needs().has(Quantity::LogPrior);
    let needs = if is_relative { Quantity::LogPrior.into() } else { Quantities::NONE };
    tch::no_grad(|| score(&context.env, context.reward.as_ref(), context.policy(), trajectories, needs))
}

fn numbers(tensor: &Tensor) -> Result<Vec<f64>> {
    Ok(Vec::<f64>::try_from(tensor.to_kind(tch::Kind::Double).to_device(tch::Device::Cpu).contiguous())?)
}

/// Computes log w of each trajectory. The weight w is R(x) P_B / P_F, or R(x)^beta prior / P_F if the
/// objective is relative to a prior.
fn log_weights<E: TrainEnv>(trainer: &Trainer<E>, scores: &Scores) -> Result<Vec<f64>> {
    let objective = &trainer.context().objective;
    if objective.needs().has(Quantity::LogPrior) {
        scores.relative_log_weights(objective.reward_exponent())
    } else {
        numbers(&(&scores.log_reward + scores.sums(&(&scores.log_pb - &scores.log_pf))))
    }
}

/// Returns the instance that an evaluation is about: `instance`, or the only instance of the environment if
/// `instance` is `None`.
pub(super) fn pick_instance<E: Env>(env: &E, instance: Option<u32>) -> Result<u32> {
    let n = env.n_instances();
    match instance {
        Some(instance) if instance < n => Ok(instance),
        None if n == 1 => Ok(0),
        _ => {
            let instance = instance.map_or("None".to_owned(), |instance| instance.to_string());
            let expected = "the index of one of them, because each has its own log Z and distribution: \
                evaluate them one by one, with `instance=k`";
            let got = format!("{instance} in an environment with {n} initial states");
            Err(Error::config("instance", got, expected))
        }
    }
}

/// Returns an error for an object that was built from another initial state than that of `instance`.
pub(super) fn check_built_from<E: Env>(env: &E, objects: &E::States, instance: u32) -> Result<()> {
    let instances = env.instances(objects);
    let Some(row) = instances.iter().position(|&other| other != instance) else { return Ok(()) };
    let start = instances[row];
    let got =
        format!("not valid (row {row} is built from initial state {start}, but `instance` is {instance})");
    let expected = "objects that are built from the initial state `instance`; leave the other rows out";
    Err(Error::config("the list of objects", got, expected))
}

impl<E: PyEnv> Trained<E> {
    /// Draws `n` samples of an instance, and estimates log Z from these samples. If the trainer has
    /// conditions, `condition` is a single condition, `[1, C]`.
    pub(super) fn estimate(
        &mut self,
        n: usize,
        condition: Option<&Tensor>,
        instance: Option<u32>,
    ) -> Result<Evaluation> {
        check_conditions(self.trainer.context(), condition)?;
        self.without_noise(|trainer, space, rng| {
            let env = &space.env;
            let instance = pick_instance(env, instance)?;
            let watch = Watch::new();
            let policy = watch.over(trainer.policy());
            let sampler = trainer.context().sampler(env, &policy);
            let mut states = env.initial(&[]);
            let mut log_rewards = Vec::new();
            let mut weights = Vec::new();
            let mut lengths = Vec::new();
            in_batches(n, MAX_BATCH, &watch, |range| {
                let conditions = repeat_row(condition, range.len());
                let instances = vec![instance; range.len()];
                let trajectories = sampler.forward_in(&instances, conditions.as_ref(), rng)?;
                let scores = score_trajectories(trainer, &trajectories)?;
                weights.extend(log_weights(trainer, &scores)?);
                log_rewards.extend(numbers(&scores.raw_log_reward)?);
                lengths.extend(trajectories.offsets().windows(2).map(|ends| ends[1] - ends[0]));
                states.append(trajectories.terminal_states().clone());
                Ok(())
            })?;
            let log_z = importance_log_z(&weights)?;
            let groups = match E::discrete() {
                Some(discrete) => (discrete.first_of_object)(env, &states)?,
                None => (0..states.len()).collect(),
            };
            let states = space.border.defer(states);
            let evaluation: Evaluation = Box::new(move |py| {
                let values = PyDict::new(py);
                values.set_item("states", states)?;
                values.set_item("log_rewards", log_rewards.into_pyarray(py))?;
                values.set_item("log_weights", weights.into_pyarray(py))?;
                values.set_item("lengths", whole(lengths))?;
                values.set_item("groups", whole(groups))?;
                values.set_item("elbo", estimate(py, log_z.elbo.mean, log_z.elbo.standard_error)?)?;
                values.set_item("log_z", log_z.log_z)?;
                values.set_item("interval", log_z.interval)?;
                values.set_item("effective_samples", log_z.effective_samples)?;
                Ok(values)
            });
            Ok(evaluation)
        })
    }

    /// Estimates the policy's probabilities of objects of an instance, from `paths` paths to each state of an
    /// object.
    pub(super) fn test(
        &mut self,
        objects: &Py<PyAny>,
        paths: usize,
        condition: Option<&Tensor>,
        instance: Option<u32>,
    ) -> Result<Evaluation> {
        check_conditions(self.trainer.context(), condition)?;
        self.without_noise(|trainer, space, rng| {
            let env = &space.env;
            let context = trainer.context();
            let instance = pick_instance(env, instance)?;
            let objects = space.border.read_some(objects, "objects")?;
            check_built_from(env, &objects, instance)?;
            check_finished(env, &objects, rng)?;
            let watch = Watch::new();
            let n = objects.len();
            let mut of_objects = Vec::with_capacity(n);
            in_batches(n, MAX_BATCH, &watch, |range| {
                let conditions = repeat_row(condition, range.len());
                let some = objects.select(&range.collect::<Vec<_>>());
                of_objects.extend(log_rewards(trainer.reward(), &some, conditions.as_ref())?);
                Ok(())
            })?;
            // All states that are the same object are scored, because the policy may sample any of these
            // states.
            let Forms { states, offsets } = match env.symmetry().forms(&objects)? {
                Some(forms) => forms,
                None => Forms { states: objects, offsets: (0..=n).collect() },
            };
            let object: Vec<usize> = (0..n).flat_map(|k| vec![k; offsets[k + 1] - offsets[k]]).collect();
            let policy = watch.over(trainer.policy());
            let sampler = context.sampler(env, &policy);
            let mut ratios = Vec::new();
            let mut weights = Vec::new();
            in_batches(states.len() * paths, MAX_BATCH, &watch, |range| {
                let rows: Vec<usize> = range.map(|k| k / paths).collect();
                let some = states.select(&rows);
                let conditions = repeat_row(condition, rows.len());
                let of_paths = rows.iter().map(|&row| of_objects[object[row]]).collect();
                let trajectories = draw_backward(&sampler, &some, conditions.as_ref(), rng)?;
                let trajectories = trajectories.with_log_rewards(of_paths)?;
                let scores = score_trajectories(trainer, &trajectories)?;
                // log(P_F / P_B) of each path, minus the correction that training adds to log R(x) of the
                // path's object x. The correction is log |Aut(x)| (0 unless states are graphs up to
                // isomorphism), minus the log of the number of states that are the same object as x.
                let correction = &scores.log_reward - &scores.raw_log_reward;
                ratios.extend(numbers(&(scores.sums(&(&scores.log_pf - &scores.log_pb)) - &correction))?);
                weights.extend(numbers(
                    &(&scores.log_reward + scores.sums(&(&scores.log_pb - &scores.log_pf))),
                )?);
                Ok(())
            })?;
            let is_relative = context.objective.needs().has(Quantity::LogPrior);
            let ends = offsets.iter().map(|form| form * paths).collect();
            let weights = (!is_relative).then_some(weights);
            PathsToObjects { paths, ends, ratios, weights, log_rewards: of_objects }.evaluate()
        })
    }
}

/// Returns a Python dictionary with a mean and its standard error.
fn estimate(py: Python<'_>, mean: f64, standard_error: f64) -> PyResult<Bound<'_, PyDict>> {
    [("mean", mean), ("standard_error", standard_error)].into_py_dict(py)
}

/// The scores of paths to objects. There are `paths` paths to each state of an object, and the paths to
/// object k have the indices from `ends[k]` to below `ends[k + 1]`.
struct PathsToObjects {
    paths: usize,
    ends: Vec<usize>,
    /// log(P_F / P_B) of each path, minus the correction that training adds to log R of the path's object.
    /// The mean of the exponentials of these numbers over an object's paths estimates the policy's
    /// probability of the object.
    ratios: Vec<f64>,
    /// log w of each path, with w = R(x) P_B / P_F. `None` if the objective is relative to a prior.
    weights: Option<Vec<f64>>,
    /// log R of each object.
    log_rewards: Vec<f64>,
}

impl PathsToObjects {
    /// Estimates log p of each object, its correlation with log R, and an upper bound on log Z.
    fn evaluate(self) -> Result<Evaluation> {
        let log_probs: Vec<f64> =
            self.ends.windows(2).map(|ends| log_mean(&self.ratios[ends[0]..ends[1]])).collect();
        let correlation = match (log_probs.len(), &self.weights) {
            (1, _) | (_, None) => None,
            _ => Some(Correlation::between(&log_probs, &self.log_rewards)?),
        };
        let upper_bound = self.weights.as_ref().map(|weights| self.upper_bound(weights));
        Ok(Box::new(move |py| {
            let values = PyDict::new(py);
            values.set_item("log_probs", log_probs.into_pyarray(py))?;
            values.set_item("log_rewards", self.log_rewards.into_pyarray(py))?;
            let correlation = correlation.map(|Correlation { pearson, spearman }| {
                [("pearson", pearson), ("spearman", spearman)].into_py_dict(py)
            });
            values.set_item("correlation", correlation.transpose()?)?;
            let upper_bound = upper_bound.map(|(mean, standard_error)| estimate(py, mean, standard_error));
            values.set_item("upper_bound", upper_bound.transpose()?)?;
            Ok(values)
        }))
    }

    /// Returns the mean of log w and its standard error. `weights` holds log w of each path. An object
    /// contributes `paths` numbers to the mean, so that objects with many states don't count more. Its k-th
    /// number is the mean of log w over the k-th path to each of its states.
    fn upper_bound(&self, weights: &[f64]) -> (f64, f64) {
        let mut of_objects = Vec::new();
        for ends in self.ends.windows(2) {
            let weights = &weights[ends[0]..ends[1]];
            let n_states = (weights.len() / self.paths) as f64;
            for k in 0..self.paths {
                of_objects.push(weights[k..].iter().step_by(self.paths).sum::<f64>() / n_states);
            }
        }
        let n = of_objects.len() as f64;
        let mean = of_objects.iter().sum::<f64>() / n;
        let squares: f64 = of_objects.iter().map(|weight| (weight - mean).powi(2)).sum();
        (mean, (squares / (n - 1.0).max(1.0)).sqrt() / n.sqrt())
    }
}

/// Returns the log of the mean of several numbers, from the logs of these numbers.
fn log_mean(logs: &[f64]) -> f64 {
    let max = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // All logs are minus infinity, because P_F is 0 on all paths. The formula below would return NaN.
    if max == f64::NEG_INFINITY {
        return max;
    }
    max + (logs.iter().map(|log| (log - max).exp()).sum::<f64>() / logs.len() as f64).ln()
}
