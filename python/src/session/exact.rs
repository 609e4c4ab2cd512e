//! The exact distribution of a policy, beside the reward's.

use gfn::distribution::GraphActionCategorical;
use gfn::env::{EnumerableEnv, Grouping, Rows, StateGraph, log_rewards};
use gfn::metrics::{Distances, Target};
use gfn::train::Trainer;
use numpy::IntoPyArray;
use pyo3::prelude::*;
use tch::Tensor;

use super::engine::{Shown, later};
use super::sampled::{in_batches, one_instance, repeated};
use crate::pickled::{Again, again};
use crate::policy::AnyPolicy;
use crate::states::Show;
use crate::watch::Watch;

/// Objects whose rewards are asked at once.
const AT_ONCE: usize = 2048;

/// A trainer of an environment whose actions can be listed.
type Listed<E> = Trainer<E, AnyPolicy<E, GraphActionCategorical>>;

/// What an exact evaluation found, before it is shown.
pub(super) struct Parts {
    states: Shown,
    n_states: usize,
    probs: Vec<f64>,
    target: Vec<f64>,
    log_rewards: Vec<f64>,
    log_z: f64,
    mean_len: f64,
    distances: Distances,
    groups: Grouping,
    of_objects: Distances,
}

/// Evaluates the policy in every state.
pub(super) fn evaluate<E>(
    trainer: &Listed<E>,
    limit: usize,
    conditions: Option<&Tensor>,
    show: &Show<E::States>,
) -> gfn::Result<Parts>
where
    E: EnumerableEnv + 'static,
    E::States: 'static,
{
    let watch = Watch::new();
    one_instance(trainer.env())?;
    let space = StateGraph::build_watched(trainer.env(), 0, limit, |_| watch.look())?;
    space.check_ways_back(trainer.env())?;
    let target = target(trainer, &space, conditions, &watch)?;
    let learned = space.terminating_distribution(trainer.env(), &watch.over(trainer.policy()), conditions)?;
    let distances = Distances::between(&learned.probs, &target.probs)?;
    let groups = space.objects(trainer.env())?;
    let together = |probs: &[f64]| {
        let mut sums = vec![0.0; groups.first.len()];
        groups.of.iter().zip(probs).for_each(|(&object, prob)| sums[object] += prob);
        sums
    };
    let of_objects = Distances::between(&together(&learned.probs), &together(&target.probs))?;
    let states = space.states().clone();
    Ok(Parts {
        n_states: states.len(),
        states: later(show, states),
        probs: learned.probs,
        target: target.probs,
        log_rewards: target.log_rewards,
        log_z: target.log_z,
        mean_len: learned.mean_len,
        distances,
        groups,
        of_objects,
    })
}

/// The distribution that the objective asks for: R / Z, or, relative to a prior, prior R^beta / Z.
fn target<E: EnumerableEnv + 'static>(
    trainer: &Listed<E>,
    space: &StateGraph<E>,
    conditions: Option<&Tensor>,
    watch: &Watch,
) -> gfn::Result<Target> {
    let (ends, mut values) = (space.ends(), Vec::new());
    in_batches(ends.len(), AT_ONCE, watch, |range| {
        let conditions = repeated(conditions, range.len());
        values.extend(log_rewards(trainer.reward(), &space.states().select(&ends[range]), conditions.as_ref())?);
        Ok(())
    })?;
    let mut target = space.target_of(&values)?;
    let Some(prior) = trainer.policy().prior() else { return Ok(target) };
    let beta = trainer.context().objective.reward_exponent();
    let prior = space.terminating_distribution(trainer.env(), &watch.over(prior), conditions)?;
    let logs = target.log_rewards.iter().zip(&prior.probs);
    let logs: Vec<f64> = logs.map(|(log_reward, prior)| beta * log_reward + prior.ln()).collect();
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    target.log_z = most + logs.iter().map(|log| (log - most).exp()).sum::<f64>().ln();
    target.probs = logs.into_iter().map(|log| (log - target.log_z).exp()).collect();
    Ok(target)
}

impl Parts {
    pub(super) fn shown(self, py: Python<'_>) -> PyResult<Exact> {
        let array = |values: Vec<f64>| values.into_pyarray(py).into_any().unbind();
        let Distances { l1, tv, jsd, kl_target_policy, kl_policy_target } = self.distances;
        let groups: Vec<i64> = self.groups.of.iter().map(|&object| self.groups.first[object] as i64).collect();
        Ok(Exact {
            states: (self.states)(py)?.unbind(),
            n_states: self.n_states,
            probs: array(self.probs),
            target: array(self.target),
            log_rewards: array(self.log_rewards),
            log_z: self.log_z,
            mean_len: self.mean_len,
            l1,
            tv,
            jsd,
            kl_target_policy,
            kl_policy_target,
            n_objects: self.groups.first.len(),
            groups: groups.into_pyarray(py).into_any().unbind(),
            of_objects: self.of_objects.into(),
        })
    }
}

/// How far the policy's distribution is from the one that the reward asks for.
#[pyclass(frozen, get_all, module = "gfn_rs", name = "Distances")]
#[derive(Clone, Copy)]
pub(crate) struct Apart {
    /// The sum of absolute differences.
    l1: f64,
    /// Total variation, half of it.
    tv: f64,
    /// The Jensen-Shannon divergence (natural logarithm).
    jsd: f64,
    /// The Kullback-Leibler divergence of the policy from the target; infinite where the policy misses something.
    kl_target_policy: f64,
    /// The same the other way round.
    kl_policy_target: f64,
}

impl From<Distances> for Apart {
    fn from(Distances { l1, tv, jsd, kl_target_policy, kl_policy_target }: Distances) -> Self {
        Self { l1, tv, jsd, kl_target_policy, kl_policy_target }
    }
}

#[pymethods]
impl Apart {
    /// From what it shows, as pickle makes it.
    #[new]
    #[pyo3(signature = (*, l1, tv, jsd, kl_target_policy, kl_policy_target))]
    fn new(l1: f64, tv: f64, jsd: f64, kl_target_policy: f64, kl_policy_target: f64) -> Self {
        Self { l1, tv, jsd, kl_target_policy, kl_policy_target }
    }

    fn __getnewargs_ex__<'py>(slf: &Bound<'py, Self>) -> PyResult<Again<'py>> {
        again(slf, &["l1", "tv", "jsd", "kl_target_policy", "kl_policy_target"])
    }

    fn __repr__(&self) -> String {
        let Self { tv, jsd, l1, .. } = self;
        format!("Distances(tv={tv:.6}, jsd={jsd:.6}, l1={l1:.6})")
    }
}

/// What a policy samples, exactly, beside what the reward asks for. Not an estimate: every state is looked at.
#[pyclass(frozen, get_all, module = "gfn_rs", name = "Exact")]
pub(crate) struct Exact {
    /// All states.
    states: Py<PyAny>,
    /// The number of states.
    n_states: usize,
    /// The probability that the policy ends in each, `[states]`.
    probs: Py<PyAny>,
    /// The probability that the reward asks for, R(x) / Z, of which states that are one object have equal shares; of an objective that is relative to a prior, that of prior(x) R(x)^beta.
    target: Py<PyAny>,
    /// log R of each, as the reward says it of the object; minus infinity where no trajectory can end.
    log_rewards: Py<PyAny>,
    /// The true log Z, of the same.
    log_z: f64,
    /// The mean number of actions of a trajectory.
    mean_len: f64,
    /// The sum of absolute differences.
    l1: f64,
    /// Total variation, half of it.
    tv: f64,
    /// The Jensen-Shannon divergence (natural logarithm).
    jsd: f64,
    /// The Kullback-Leibler divergence of the policy from the target; infinite where the policy misses a state.
    kl_target_policy: f64,
    /// The same the other way round.
    kl_policy_target: f64,
    /// The number of objects: fewer than states where several states are one, such as the Kekule forms of a molecule.
    n_objects: usize,
    /// The groups of states that are one object: for each state the place of the first of its group.
    groups: Py<PyAny>,
    /// The distances between the distributions over objects, the states of each taken together.
    of_objects: Apart,
}

#[pymethods]
impl Exact {
    /// From what it shows, as pickle makes it.
    #[new]
    #[pyo3(signature = (*, states, n_states, probs, target, log_rewards, log_z, mean_len, l1, tv, jsd, kl_target_policy, kl_policy_target, n_objects, groups, of_objects))]
    #[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
    fn new(
        states: Py<PyAny>,
        n_states: usize,
        probs: Py<PyAny>,
        target: Py<PyAny>,
        log_rewards: Py<PyAny>,
        log_z: f64,
        mean_len: f64,
        l1: f64,
        tv: f64,
        jsd: f64,
        kl_target_policy: f64,
        kl_policy_target: f64,
        n_objects: usize,
        groups: Py<PyAny>,
        of_objects: PyRef<'_, Apart>,
    ) -> Self {
        Self {
            states,
            n_states,
            probs,
            target,
            log_rewards,
            log_z,
            mean_len,
            l1,
            tv,
            jsd,
            kl_target_policy,
            kl_policy_target,
            n_objects,
            groups,
            of_objects: *of_objects,
        }
    }

    fn __getnewargs_ex__<'py>(slf: &Bound<'py, Self>) -> PyResult<Again<'py>> {
        const NAMES: [&str; 15] = [
            "states",
            "n_states",
            "probs",
            "target",
            "log_rewards",
            "log_z",
            "mean_len",
            "l1",
            "tv",
            "jsd",
            "kl_target_policy",
            "kl_policy_target",
            "n_objects",
            "groups",
            "of_objects",
        ];
        again(slf, &NAMES)
    }

    fn __repr__(&self) -> String {
        let Self { n_states, tv, jsd, l1, log_z, .. } = self;
        format!("Exact({n_states} states, tv={tv:.6}, jsd={jsd:.6}, l1={l1:.6}, log_z={log_z:.4})")
    }
}
