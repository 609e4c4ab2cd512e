//! Estimates from samples of a policy, and from objects, if states can't be listed.

use gfn::env::{Env, Forms, Rows, log_rewards};
use gfn::metrics::importance_log_z;
use gfn::objective::{Quantities, Quantity, Scores, score};
use gfn::rollout::{Sampler, Trajectories};
use gfn::train::{TrainEnv, Trainer};
use gfn::{Error, Result};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tch::Tensor;

use super::trained::Trained;
use crate::border::check_finished;
use crate::evaluation::{Evaluation, PathsToObjects, estimate, places};
use crate::kinds::PyEnv;
use crate::watch::Watch;

/// The number of trajectories that are drawn and scored at once.
const MAX_BATCH: usize = 512;

/// `n` copies of a row of conditions.
pub(super) fn repeat_row(condition: Option<&Tensor>, n: usize) -> Option<Tensor> {
    condition.map(|condition| condition.expand([n as i64, -1], false))
}

/// Calls `work` for batches of `n` items, and checks for Ctrl-C between them.
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

/// Scores trajectories without gradients, with a prior's scores if the objective is relative to one.
fn score_trajectories<E: TrainEnv>(trainer: &Trainer<E>, trajectories: &Trajectories<E>) -> Result<Scores> {
    let context = trainer.context();
    let is_relative = context.objective.needs().has(Quantity::LogPrior);
    let needs = if is_relative { Quantity::LogPrior.into() } else { Quantities::NONE };
    tch::no_grad(|| score(&context.env, context.reward.as_ref(), context.policy(), trajectories, needs))
}

fn numbers(tensor: &Tensor) -> Result<Vec<f64>> {
    Ok(Vec::<f64>::try_from(tensor.to_kind(tch::Kind::Double).to_device(tch::Device::Cpu).contiguous())?)
}

/// log w of each trajectory: its share of the target over its probability.
fn log_weights<E: TrainEnv>(trainer: &Trainer<E>, scores: &Scores) -> Result<Vec<f64>> {
    let objective = &trainer.context().objective;
    if objective.needs().has(Quantity::LogPrior) {
        scores.relative_log_weights(objective.reward_exponent())
    } else {
        numbers(&(&scores.log_reward + scores.sums(&(&scores.log_pb - &scores.log_pf))))
    }
}

/// Refuses an environment of several instances.
pub(super) fn check_one_instance<E: Env>(env: &E) -> Result<()> {
    match env.n_instances() {
        1 => Ok(()),
        n => {
            let expected = "one start, which has one log Z: make an environment of the one that is asked about, and a trainer that takes \
                            the parameters over by `restore`";
            Err(Error::config("the number of the environment's instances", n, expected))
        }
    }
}

impl<E: PyEnv> Trained<E> {
    /// Draws samples, and estimates log Z from them, under one condition, `[1, C]`, if the trainer has conditions.
    pub(super) fn estimate(&mut self, n: usize, condition: Option<&Tensor>) -> Result<Evaluation> {
        self.check_conditions(condition)?;
        self.without_noise(|trainer, space, rng| {
            let env = &space.env;
            check_one_instance(env)?;
            let watch = Watch::new();
            let policy = watch.over(trainer.policy());
            let sampler = Sampler::new(env, &policy).max_steps(trainer.context().config.max_steps);
            let mut states = env.initial(&[]);
            let (mut log_rewards, mut weights, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
            in_batches(n, MAX_BATCH, &watch, |range| {
                let trajectories = match repeat_row(condition, range.len()) {
                    None => sampler.forward(range.len(), rng)?,
                    Some(conditions) => sampler.forward_conditional(&conditions, rng)?,
                };
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
                values.set_item("states", states(py)?)?;
                values.set_item("log_rewards", log_rewards.into_pyarray(py))?;
                values.set_item("log_weights", weights.into_pyarray(py))?;
                values.set_item("lengths", places(py, lengths))?;
                values.set_item("groups", places(py, groups))?;
                values.set_item("elbo", estimate(py, log_z.elbo.mean, log_z.elbo.standard_error)?)?;
                values.set_item("log_z", log_z.log_z)?;
                values.set_item("interval", log_z.interval)?;
                values.set_item("effective_samples", log_z.effective_samples)?;
                Ok(values)
            });
            Ok(evaluation)
        })
    }

    /// Estimates the policy's probabilities of objects, from so many paths to each.
    pub(super) fn test(&mut self, objects: &Py<PyAny>, paths: usize, condition: Option<&Tensor>) -> Result<Evaluation> {
        self.check_conditions(condition)?;
        self.without_noise(|trainer, space, rng| {
            let (env, context) = (&space.env, trainer.context());
            check_one_instance(env)?;
            if paths == 0 {
                return Err(Error::config("paths", 0, "at least one path to each object"));
            }
            let objects = space.border.read_some(objects)?;
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
            // An object is drawn as any of its states.
            let Forms { states, offsets } = match env.symmetry().forms(&objects)? {
                Some(forms) => forms,
                None => Forms { states: objects, offsets: (0..=n).collect() },
            };
            let object: Vec<usize> = (0..n).flat_map(|k| vec![k; offsets[k + 1] - offsets[k]]).collect();
            let policy = watch.over(trainer.policy());
            let sampler = Sampler::new(env, &policy).max_steps(context.config.max_steps);
            let (mut ratios, mut weights) = (Vec::new(), Vec::new());
            in_batches(states.len() * paths, MAX_BATCH, &watch, |range| {
                let rows: Vec<usize> = range.map(|k| k / paths).collect();
                let some = states.select(&rows);
                let trajectories = match repeat_row(condition, rows.len()) {
                    None => sampler.backward(&some, rng)?,
                    Some(conditions) => sampler.backward_conditional(&some, &conditions, rng)?,
                };
                let trajectories =
                    trajectories.with_log_rewards(rows.iter().map(|&row| of_objects[object[row]]).collect())?;
                let scores = score_trajectories(trainer, &trajectories)?;
                // log P_F - log P_B, less the measure over states that is part of the reward in training.
                let correction = &scores.log_reward - &scores.raw_log_reward;
                ratios.extend(numbers(&(scores.sums(&(&scores.log_pf - &scores.log_pb)) - &correction))?);
                weights.extend(numbers(&(&scores.log_reward + scores.sums(&(&scores.log_pb - &scores.log_pf))))?);
                Ok(())
            })?;
            let is_relative = context.objective.needs().has(Quantity::LogPrior);
            let ends = offsets.iter().map(|form| form * paths).collect();
            let weights = (!is_relative).then_some(weights);
            PathsToObjects { paths, ends, ratios, weights, log_rewards: of_objects }.evaluate()
        })
    }
}
