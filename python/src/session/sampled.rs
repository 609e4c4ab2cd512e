//! Estimates from samples of a policy, and from given objects, where states can't be listed.

use gfn::env::{Env, Forms, Rows, log_rewards};
use gfn::metrics::importance_log_z;
use gfn::objective::{Quantities, Quantity};
use gfn::objective::{Scores, score};
use gfn::rollout::{Sampler, Trajectories};
use gfn::train::TrainEnv;
use gfn::train::Trainer;
use gfn::{Error, Result, Rng};
use pyo3::prelude::*;
use tch::Tensor;

use super::engine::later;
use crate::errors::passed_on;
use crate::evaluation::{Array, Estimate, Found, Sampled, Tested, places};
use crate::objects::{Border, finished, some};
use crate::watch::Watch;

/// Trajectories that are drawn and scored at once.
const AT_ONCE: usize = 512;

/// Which of these states are one object: the place of the first that is, for each.
pub(super) type Alike<E> = fn(&E, &<E as Env>::States) -> Result<Vec<usize>>;

/// The same row of conditions again and again.
pub(super) fn repeated(condition: Option<&Tensor>, n: usize) -> Option<Tensor> {
    condition.map(|condition| condition.expand([n as i64, -1], false))
}

/// Calls `work` for batches of `n` things, and looks for Ctrl-C between them.
pub(super) fn in_batches(
    n: usize,
    at_once: usize,
    watch: &Watch,
    mut work: impl FnMut(std::ops::Range<usize>) -> Result<()>,
) -> Result<()> {
    for start in (0..n).step_by(at_once) {
        work(start..n.min(start + at_once))?;
        watch.look()?;
    }
    Ok(())
}

/// Scores without gradients, with the prior's where the objective is relative to one.
fn scored<E: TrainEnv>(trainer: &Trainer<E>, trajectories: &Trajectories<E>) -> Result<Scores> {
    let context = trainer.context();
    let relative = context.objective.needs().has(Quantity::LogPrior);
    let needs = if relative { Quantity::LogPrior.into() } else { Quantities::NONE };
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

pub(super) fn one_instance<E: Env>(env: &E) -> Result<()> {
    match env.n_instances() {
        1 => Ok(()),
        n => {
            let expected = "one start, which has one log Z: make an environment of the one that is asked about, and a trainer that takes \
                            the parameters over by `restore`";
            Err(Error::config("the number of the environment's instances", n, expected))
        }
    }
}

/// Samples, and what they say of log Z.
pub(super) fn sampled<E>(
    trainer: &Trainer<E>,
    n: usize,
    condition: Option<&Tensor>,
    border: &Border<E::States>,
    alike: Alike<E>,
    rng: &mut Rng,
) -> Result<Found<Sampled>>
where
    E: TrainEnv + 'static,
    E::States: 'static,
{
    let (env, context) = (trainer.env(), trainer.context());
    one_instance(env)?;
    let watch = Watch::new();
    let policy = watch.over(trainer.policy());
    let sampler = Sampler::new(env, &policy).max_steps(context.config.max_steps);
    let mut states = env.initial(&[]);
    let (mut log_rewards, mut weights, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
    in_batches(n, AT_ONCE, &watch, |range| {
        let drawn = match repeated(condition, range.len()) {
            None => sampler.forward(range.len(), rng)?,
            Some(conditions) => sampler.forward_conditional(&conditions, rng)?,
        };
        let scores = scored(trainer, &drawn)?;
        weights.extend(log_weights(trainer, &scores)?);
        log_rewards.extend(numbers(&scores.raw_log_reward)?);
        lengths.extend(drawn.offsets().windows(2).map(|ends| (ends[1] - ends[0]) as i64));
        states.append(drawn.terminal_states().clone());
        Ok(())
    })?;
    let log_z = importance_log_z(&weights)?;
    let groups = alike(env, &states)?;
    let elbo = Estimate { mean: log_z.elbo.mean, standard_error: log_z.elbo.standard_error };
    let figures = Sampled {
        log_rewards: Array(log_rewards),
        log_weights: Array(weights),
        lengths: Array(lengths),
        groups: places(groups.into_iter()),
        elbo,
        log_z: log_z.log_z,
        interval: log_z.interval,
        effective_samples: log_z.effective_samples,
    };
    Ok(Found { states: later(&border.show, states), figures })
}

/// What a policy makes of given objects.
pub(super) fn tested<E>(
    trainer: &Trainer<E>,
    objects: &Py<PyAny>,
    paths: usize,
    condition: Option<&Tensor>,
    border: &Border<E::States>,
    rng: &mut Rng,
) -> Result<Tested>
where
    E: TrainEnv + 'static,
{
    let (env, context) = (trainer.env(), trainer.context());
    one_instance(env)?;
    if paths == 0 {
        return Err(Error::config("paths", 0, "at least one path to each object"));
    }
    let objects = Python::attach(|py| (border.read)(objects.bind(py), "objects")).map_err(passed_on("the objects"))?;
    let objects = some(objects)?;
    finished(env, &objects, rng)?;
    let watch = Watch::new();
    let mut of_objects = Vec::with_capacity(objects.len());
    in_batches(objects.len(), AT_ONCE, &watch, |range| {
        let conditions = repeated(condition, range.len());
        of_objects.extend(log_rewards(
            trainer.reward(),
            &objects.select(&range.collect::<Vec<_>>()),
            conditions.as_ref(),
        )?);
        Ok(())
    })?;
    let n = objects.len();
    // An object is drawn as any of its states.
    let Forms { states, offsets } = match env.symmetry().forms(&objects)? {
        Some(forms) => forms,
        None => Forms { states: objects, offsets: (0..=n).collect() },
    };
    let object: Vec<usize> = (0..n).flat_map(|k| vec![k; offsets[k + 1] - offsets[k]]).collect();
    let policy = watch.over(trainer.policy());
    let sampler = Sampler::new(env, &policy).max_steps(context.config.max_steps);
    let (mut ratios, mut weights) = (Vec::new(), Vec::new());
    in_batches(states.len() * paths, AT_ONCE, &watch, |range| {
        let rows: Vec<usize> = range.map(|k| k / paths).collect();
        let some = states.select(&rows);
        let drawn = match repeated(condition, rows.len()) {
            None => sampler.backward(&some, rng)?,
            Some(conditions) => sampler.backward_conditional(&some, &conditions, rng)?,
        };
        let drawn = drawn.with_log_rewards(rows.iter().map(|&row| of_objects[object[row]]).collect())?;
        let scores = scored(trainer, &drawn)?;
        // log P_F - log P_B, less the measure over states that is part of the reward in training.
        let correction = &scores.log_reward - &scores.raw_log_reward;
        ratios.extend(numbers(&(scores.sums(&(&scores.log_pf - &scores.log_pb)) - &correction))?);
        weights.extend(numbers(&(&scores.log_reward + scores.sums(&(&scores.log_pb - &scores.log_pf))))?);
        Ok(())
    })?;
    let relative = context.objective.needs().has(Quantity::LogPrior);
    let ends: Vec<usize> = offsets.iter().map(|form| form * paths).collect();
    Tested::new(&ratios, &ends, paths, of_objects, (!relative).then_some(weights))
}
