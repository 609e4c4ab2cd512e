//! Exact evaluations of a policy, certificates of policies, and comparisons of samples with the exact target.

use gfn::env::{EnumerableEnv, Grouping, Rows, StateGraph, log_rewards};
use gfn::metrics::{Distances, Target};
use gfn::train::Trainer;
use gfn::{Error, Result};
use gfn_judge::{Budget, Judgement, certify};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use serde_json::{Value, json};
use tch::Tensor;

use super::Evaluation;
use super::build::prior;
use super::sampled::{check_built_from, in_batches, pick_instance, repeat_row};
use super::trained::Trained;
use crate::border::DeferredObject;
use crate::conditions::check_conditions;
use crate::kinds::PyEnv;
use crate::states::whole;
use crate::watch::Watch;

/// The largest number of objects whose rewards are computed in one call.
const MAX_BATCH: usize = 2048;

impl<E: PyEnv + EnumerableEnv> Trained<E> {
    /// Evaluates the policy in every state of an instance, and computes the policy's exact distribution and
    /// the target distribution.
    pub(super) fn exact(
        &mut self,
        limit: usize,
        conditions: Option<&Tensor>,
        instance: Option<u32>,
    ) -> Result<Evaluation> {
        check_conditions(self.trainer.context(), conditions)?;
        self.without_noise(|trainer, space, _| {
            let env = &space.env;
            let watch = Watch::new();
            let instance = pick_instance(env, instance)?;
            let graph = StateGraph::build_watched(env, instance, limit, |_| watch.look())?;
            graph.check_ways_back(env)?;
            let target = target(trainer, &graph, conditions, &watch)?;
            let learned = graph.terminating_distribution(env, &watch.over(trainer.policy()), conditions)?;
            let of_states = Distances::between(&learned.probs, &target.probs)?;
            let groups = graph.objects(env)?;
            let of_policy = sum_objects(&groups, &learned.probs);
            let of_target = sum_objects(&groups, &target.probs);
            let of_objects = Distances::between(&of_policy, &of_target)?;
            let n_objects = groups.first.len();
            let groups: Vec<usize> = groups.group_of.iter().map(|&object| groups.first[object]).collect();
            let states = space.border.defer(graph.states().clone());
            let evaluation: Evaluation = Box::new(move |py| {
                let values = distances(py, &of_states)?;
                values.set_item("states", states)?;
                values.set_item("n_states", groups.len())?;
                values.set_item("probs", learned.probs.into_pyarray(py))?;
                values.set_item("target", target.probs.into_pyarray(py))?;
                values.set_item("log_rewards", target.log_rewards.into_pyarray(py))?;
                values.set_item("log_z", target.log_z)?;
                values.set_item("mean_len", learned.mean_len)?;
                values.set_item("n_objects", n_objects)?;
                values.set_item("groups", whole(groups))?;
                values.set_item("of_objects", distances(py, &of_objects)?)?;
                Ok(values)
            });
            Ok(evaluation)
        })
    }

    /// Computes a certificate of the policy (bounds on log Z and on the total variation) from its samples.
    pub(super) fn certify(&mut self, budget: Budget) -> Result<Value> {
        self.without_noise(|trainer, space, rng| {
            if space.env.n_instances() > 1 {
                let expected = "1; make an environment of one initial state and a trainer of it, and load \
                    the parameters by `restore`";
                let setting = "the number of initial states of an environment whose policy is certified";
                return Err(Error::config(setting, space.env.n_instances(), expected));
            }
            if prior(trainer).is_some() {
                let expected = "an objective whose target is R; evaluate this trainer by `exact` instead";
                return Err(Error::config("the objective", "relative to a prior", expected));
            }
            let watch = Watch::new();
            let policy = watch.over(trainer.policy());
            let certificate = certify(&space.env, &policy, trainer.reward(), None, budget, rng)?;
            let mut out = json!(certificate);
            out["text"] = json!(certificate.to_string());
            out["findings"] = json!(certificate.findings.iter().map(ToString::to_string).collect::<Vec<_>>());
            out["limits"] = json!(certificate.limits.iter().map(ToString::to_string).collect::<Vec<_>>());
            Ok(out)
        })
    }

    /// Compares samples of any sampler with the target of the trainer's reward in an instance. Returns the
    /// report, and the states of the objects that are missing among the samples.
    pub(super) fn judge(
        &mut self,
        objects: &Py<PyAny>,
        limit: usize,
        instance: Option<u32>,
    ) -> Result<(Value, DeferredObject)> {
        self.without_noise(|trainer, space, rng| {
            let env = &space.env;
            let watch = Watch::new();
            let instance = pick_instance(env, instance)?;
            let objects = space.border.read_some(objects, "objects")?;
            check_built_from(env, &objects, instance)?;
            let graph = StateGraph::build_watched(env, instance, limit, |_| watch.look())?;
            let of_states = graph.target_distribution(trainer.reward(), None)?;
            let groups = graph.objects(env)?;
            let target = sum_objects(&groups, &of_states.probs);
            let mut samples = Vec::new();
            for (row, state) in graph.indices(env, &objects).into_iter().enumerate() {
                let Some(state) = state.filter(|&state| graph.can_end(state)) else {
                    let got = format!("not valid (row {row} isn't a finished object)");
                    return Err(Error::config(
                        "the list of objects",
                        got,
                        "finished objects of the environment",
                    ));
                };
                samples.push(groups.group_of[state]);
            }
            let judgement = Judgement::new(&target, &samples, rng)?;
            let mut out = json!(judgement);
            out["log_z"] = json!(of_states.log_z);
            let missing: Vec<usize> =
                judgement.missing.iter().map(|object| groups.first[object.object]).collect();
            let states = space.border.defer(graph.states().select(&missing));
            Ok((out, states))
        })
    }
}

/// Returns the probability of each object, which is the sum of the probabilities of its states.
fn sum_objects(groups: &Grouping, probs: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0; groups.first.len()];
    for (&object, prob) in groups.group_of.iter().zip(probs) {
        sums[object] += prob;
    }
    sums
}

/// Returns a Python dictionary of the distances between two distributions, by name.
fn distances<'py>(py: Python<'py>, distances: &Distances) -> PyResult<Bound<'py, PyDict>> {
    let &Distances { l1, tv, jsd, kl_target_policy, kl_policy_target } = distances;
    let kl = [("kl_target_policy", kl_target_policy), ("kl_policy_target", kl_policy_target)];
    [("l1", l1), ("tv", tv), ("jsd", jsd)].into_iter().chain(kl).into_py_dict(py)
}

/// Returns the target distribution of the objective. The target is R / Z, or prior R^beta / Z if the
/// objective is relative to a prior.
fn target<E: PyEnv + EnumerableEnv>(
    trainer: &Trainer<E>,
    graph: &StateGraph<E>,
    conditions: Option<&Tensor>,
    watch: &Watch,
) -> Result<Target> {
    let ends = graph.ends();
    let mut values = Vec::new();
    in_batches(ends.len(), MAX_BATCH, watch, |range| {
        let conditions = repeat_row(conditions, range.len());
        values.extend(log_rewards(
            trainer.reward(),
            &graph.states().select(&ends[range]),
            conditions.as_ref(),
        )?);
        Ok(())
    })?;
    let mut target = graph.target_of(&values)?;
    let Some(prior) = prior(trainer) else { return Ok(target) };
    let beta = trainer.context().objective.reward_exponent();
    let prior = graph.terminating_distribution(trainer.env(), &watch.over(prior.as_ref()), conditions)?;
    let mut logs = Vec::new();
    for (log_reward, prior) in target.log_rewards.iter().zip(&prior.probs) {
        logs.push(beta * log_reward + prior.ln());
    }
    let max = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    target.log_z = max + logs.iter().map(|log| (log - max).exp()).sum::<f64>().ln();
    target.probs = logs.into_iter().map(|log| (log - target.log_z).exp()).collect();
    Ok(target)
}
