//! The laws of policies, checked on states of random walks.

use tch::Tensor;

use super::Budget;
use crate::condition::{ConditionSource, Conditions};
use crate::distribution::{Distribution, Exploration, check_alone, equal_up_to_rounding, logit_size};
use crate::env::{Direction, Env, Rows, draw_instances};
use crate::policy::Policy;
use crate::quantity::{Quantities, Quantity};
use crate::rollout::ReplayEnv;
use crate::tensor::to_host;
use crate::{Error, Result, Rng};

/// Steps before which policy and reward are checked again: training may have enlarged what the first check
/// couldn't tell from rounding.
const CHECKED_AGAIN: [usize; 2] = [10, 100];

/// Returns the step before which the next check is due, after a check before `step`.
pub(crate) fn next_check(step: usize) -> usize {
    CHECKED_AGAIN.into_iter().find(|&again| again > step).unwrap_or(usize::MAX)
}

/// A part of a policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Forward,
    Backward,
    /// The P_F that the objective is relative to, if the policy has one.
    Prior,
}

impl Part {
    fn direction(self) -> Direction {
        if self == Self::Backward { Direction::Backward } else { Direction::Forward }
    }

    fn describe(self) -> String {
        if self == Self::Prior { "of the prior".to_owned() } else { self.direction().to_string() }
    }
}

/// States, and one action of each.
struct StateActions<E: Env> {
    states: E::States,
    actions: E::Actions,
}

impl<E: ReplayEnv> StateActions<E> {
    fn len(&self) -> usize {
        self.states.len()
    }

    fn select(&self, rows: &[usize]) -> Self {
        Self { states: self.states.select(rows), actions: self.actions.select(rows) }
    }

    /// Returns at most `n` of the states, no two of them equal.
    fn distinct_sample(&self, n: usize) -> Self {
        let distinct = self.states.group().first;
        let apart = distinct.len().div_ceil(n.max(1)).max(1);
        self.select(&distinct.into_iter().step_by(apart).collect::<Vec<_>>())
    }

    fn describe(&self, row: usize) -> String {
        self.states.describe(row).unwrap_or_else(|| format!("state {row} of random walks"))
    }
}

/// The check of one part of a policy.
struct PartCheck<'a, E> {
    env: &'a E,
    policy: &'a dyn Policy<E>,
    conditions: Option<&'a Tensor>,
    part: Part,
    /// The size of the policy's logits ([`logit_size`]).
    size: f64,
}

impl<E: ReplayEnv> PartCheck<'_, E> {
    /// Returns the log-probability of each action, evaluated in one batch under the conditions from row
    /// `first` on.
    fn log_probs(&self, sample: &StateActions<E>, first: usize) -> Result<Vec<f64>> {
        let n = sample.len();
        let conditions = self.conditions.map(|c| c.f_narrow(0, first as i64, n as i64)).transpose()?;
        tch::no_grad(|| {
            let evaluate = |wants| self.policy.evaluate(self.env, &sample.states, conditions.as_ref(), wants);
            let dist = match self.part {
                Part::Forward => evaluate(Quantities::PF)?.pf,
                Part::Backward => evaluate(Quantities::PB)?.pb,
                Part::Prior => evaluate(Quantity::LogPrior.into())?.prior,
            };
            log_probs(dist, &sample.actions, n)
        })
    }

    /// Checks that the policy's values for a state depend neither on the other states of its batch nor on
    /// chance.
    fn check_independence(&self, sample: &StateActions<E>, together: &[f64]) -> Result<()> {
        let offsets: Vec<usize> = (0..=sample.len()).collect();
        let alone = |row: usize| self.log_probs(&sample.select(&[row]), row);
        let words = |row: usize| format!("in {} ({})", sample.describe(row), self.part.describe());
        check_alone(&offsets, together, self.size, alone, words)
    }

    /// Checks that the policy gives the same probabilities for a state under other labels, if labels mean
    /// nothing.
    fn check_equivariance(&self, sample: &StateActions<E>, values: &[f64]) -> Result<()> {
        let symmetry = self.env.symmetry();
        let Some((both, classes)) = symmetry.relabelled(&sample.states, &mut Rng::seeded(0)) else {
            return Ok(());
        };
        let twins: Vec<usize> = (sample.len()..both.len()).collect();
        let actions = symmetry.translate(self.part.direction(), &both, &classes, &twins, &sample.actions, true)?;
        let renamed = StateActions { states: both.select(&twins), actions };
        let law = "up to isomorphism a policy is equivariant: relabelling a graph changes no probability \
                   (leave node identity, the order of nodes and chance out of the network)";
        self.compare(law, values, &self.log_probs(&renamed, 0)?, |k| {
            let twin = format!("in the same under other labels, {}", renamed.describe(k));
            [format!("in {}", sample.describe(k)), twin]
        })
    }

    /// Checks that the policy's form on the host, which roll-outs use, gives the policy's own values.
    fn check_host(&self, sample: &StateActions<E>, values: &[f64]) -> Result<()> {
        // Only roll-outs without conditions are made on the host, and none by a prior.
        if self.conditions.is_some() || self.part == Part::Prior {
            return Ok(());
        }
        let Some(on_host) = self.policy.on_host(self.part.direction()) else { return Ok(()) };
        let dist = on_host.distribution(self.env, &sample.states)?;
        let host_values = log_probs(Some(dist), &sample.actions, sample.len())?;
        let law = "a policy draws by what it is trained by: its form on the host (`Policy::on_host`, `Torso::on_host`) gives what it gives \
                   itself, up to rounding";
        self.compare(law, values, &host_values, |k| {
            ["itself".into(), format!("on the host, in {}", sample.describe(k))]
        })
    }

    /// Refuses log-probabilities that differ; `describe` tells where both come from.
    fn compare(
        &self,
        law: &'static str,
        values: &[f64],
        others: &[f64],
        describe: impl Fn(usize) -> [String; 2],
    ) -> Result<()> {
        for (k, (value, other)) in values.iter().zip(others).enumerate() {
            if !equal_up_to_rounding(*value, *other, self.size) {
                let ([here, there], part) = (describe(k), self.part.describe());
                let detail =
                    format!("the log-probability ({part}) of one action is {value} {here}, and {other} {there}");
                return Err(Error::contract(law, detail));
            }
        }
        Ok(())
    }
}

/// Returns states of random walks with the forward actions taken there, and states with the backward actions
/// that undo the last step.
fn random_states<E: ReplayEnv>(env: &E, budget: &Budget<'_>, rng: &mut Rng) -> Result<[StateActions<E>; 2]> {
    let uniform = env.uniform();
    let none = || StateActions::<E> { states: env.initial(&[]), actions: env.no_actions() };
    let [mut forward, mut backward] = [none(), none()];
    let mut states = env.initial(&draw_instances(env, budget.walks, rng));
    for _ in 0..budget.steps {
        if states.is_empty() {
            break;
        }
        let all: Vec<usize> = (0..states.len()).collect();
        let dist = tch::no_grad(|| uniform.evaluate(env, &states, None, Quantities::PF))?.pf;
        let missing = || Error::missing("random walks", "a forward policy", "give the environment a uniform one");
        let actions = dist.ok_or_else(missing)?.sample(&all, &Exploration::none(), rng)?;
        forward.states.append(states.clone());
        forward.actions.append(actions.clone());
        let step = env.step(Direction::Forward, &mut states, &actions)?;
        let staying = |leaves: &[bool]| -> Vec<usize> { all.iter().copied().filter(|&row| !leaves[row]).collect() };
        let moved = staying(&step.exit);
        backward.states.append(states.select(&moved));
        backward.actions.append(step.reverse.select(&moved));
        states = states.select(&staying(&step.done));
    }
    if backward.len() == 0 {
        return Err(Error::missing(
            "a trainer",
            "an environment with something to build, and no move leads on from its initial state",
            "start from a graph with more nodes, say, or give it a type of action that fits the initial state",
        ));
    }
    Ok([forward.distinct_sample(budget.states), backward.distinct_sample(budget.states)])
}

/// Returns the log-probability of an action of each state; 0 if there is no such distribution.
///
/// # Errors
/// [`Error::NonFinite`] for a value that is NaN, which differs from itself.
fn log_probs<D: Distribution>(dist: Option<D>, actions: &D::Actions, n: usize) -> Result<Vec<f64>> {
    let Some(dist) = dist else { return Ok(vec![0.0; n]) };
    let all: Vec<usize> = (0..n).collect();
    let values = to_host(&dist.log_prob(&all, actions)?);
    match values.iter().position(|value| value.is_nan()) {
        None => Ok(values),
        Some(row) => Err(Error::non_finite(
            "log-probability that the policy gives",
            row,
            values[row],
            "let the network give finite numbers for every state: look for a division by 0, the mean of no nodes or the logarithm of 0 say",
        )),
    }
}

/// Checks the laws of a policy and its prior on states of random walks: it evaluates each state by itself, is
/// equivariant if labels mean nothing, and samples from the distribution that is trained. Conditions are
/// drawn from `conditions`.
///
/// Returns false without a check if the policy needs conditions and there is no source.
///
/// ```
/// use gfn::{contract::{Budget, check_policy}, examples::Chain, policy::UniformPolicy, Rng};
/// assert!(check_policy(&Chain::new(9), &UniformPolicy, None, Budget::thorough(), &mut Rng::seeded(0))?);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Contract`] naming the law; [`Error::Missing`] for an environment with nothing to build;
/// [`Error::NonFinite`] for log-probabilities that are NaN; errors of the environment and of the policy.
pub fn check_policy<E: ReplayEnv>(
    env: &E,
    policy: &dyn Policy<E>,
    conditions: Option<&dyn ConditionSource>,
    budget: Budget<'_>,
    rng: &mut Rng,
) -> Result<bool> {
    let [forward, backward] = random_states(env, &budget, rng)?;
    let n = forward.len().max(backward.len());
    let drawn = conditions.map(|source| source.draw(n, rng)).transpose()?;
    let conditions = drawn.map(|drawn| Conditions::checked(drawn, n)).transpose()?;
    let conditions = conditions.as_ref().map(|Conditions(tensor)| tensor);
    if conditions.is_none() {
        let evaluated = tch::no_grad(|| policy.evaluate(env, &env.initial(&[0]), None, Quantities::PF));
        if let Err(Error::Missing { .. } | Error::Shape { .. }) = evaluated {
            return Ok(false);
        }
    }
    for part in [Part::Forward, Part::Backward, Part::Prior] {
        let sample = if part == Part::Backward { &backward } else { &forward };
        if sample.len() == 0 {
            continue;
        }
        budget.call_watch()?;
        let uniform = PartCheck { env, policy: &env.uniform(), conditions: None, part, size: 0.0 };
        let uniform_values = uniform.log_probs(sample, 0)?;
        let mut check = PartCheck { env, policy, conditions, part, size: 0.0 };
        let values = check.log_probs(sample, 0)?;
        check.size = logit_size(&values, &uniform_values);
        check.check_independence(sample, &values)?;
        check.check_equivariance(sample, &values)?;
        check.check_host(sample, &values)?;
    }
    Ok(true)
}
