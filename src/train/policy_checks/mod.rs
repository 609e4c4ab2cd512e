//! What a policy and a reward promise, looked at before training.

mod equivariance;
mod host;
mod independence;
mod reward;

pub(super) use reward::check_reward;
use tch::Tensor;

use crate::condition::{ConditionSource, Conditions};
use crate::distribution::{Distribution, Exploration};
use crate::env::{Direction, Env, Rows, draw_instances};
use crate::policy::Policy;
use crate::quantity::{Quantities, Quantity};
use crate::rollout::ReplayEnv;
use crate::tensor::to_host;
use crate::{Error, Result, Rng};

/// Number of random walks.
const WALKS: usize = 32;
/// Largest number of states that are compared.
const COMPARED: usize = 32;
/// Steps after which a walk is broken off: looking must stay cheap.
const MAX_STEPS: usize = 64;
/// Allowed difference of a log-probability, per unit of its size if that is above 1. Single precision sums in another order, and
/// logits may be far larger than their differences.
const TOLERANCE: f64 = 1e-3;

/// What of a policy is asked.
#[derive(Clone, Copy, Debug)]
enum Part {
    Forward,
    Backward,
    /// The P_F that the objective is relative to, of a policy that has one.
    Prior,
}

impl Part {
    const ALL: [Self; 3] = [Self::Forward, Self::Backward, Self::Prior];

    fn direction(self) -> Direction {
        match self {
            Self::Forward | Self::Prior => Direction::Forward,
            Self::Backward => Direction::Backward,
        }
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Prior => f.write_str("of the prior"),
            part => part.direction().fmt(f),
        }
    }
}

/// States, and an action of each.
struct Taken<E: Env> {
    states: E::States,
    actions: E::Actions,
}

impl<E: ReplayEnv> Taken<E> {
    fn none(env: &E) -> Self {
        Self { states: env.initial(&[]), actions: env.no_actions() }
    }

    fn len(&self) -> usize {
        self.states.len()
    }

    fn add(&mut self, states: E::States, actions: E::Actions) {
        self.states.append(states);
        self.actions.append(actions);
    }

    fn select(&self, rows: &[usize]) -> Self {
        Self { states: self.states.select(rows), actions: self.actions.select(rows) }
    }

    /// A few of them, no two of equal states.
    fn some(&self) -> Self {
        let distinct = self.states.group().first;
        let apart = distinct.len().div_ceil(COMPARED).max(1);
        self.select(&distinct.into_iter().step_by(apart).collect::<Vec<_>>())
    }

    fn words(&self, row: usize) -> String {
        self.states.describe(row).unwrap_or_else(|| format!("state {row} of random walks"))
    }
}

/// A policy, and what of it is asked.
struct Asked<'a, E, P> {
    env: &'a E,
    policy: &'a P,
    conditions: Option<&'a Tensor>,
    part: Part,
}

impl<E: ReplayEnv, P: Policy<E>> Asked<'_, E, P> {
    /// The log-probability of each action, all asked at once; with conditions, of which those from `first` on are taken.
    fn log_probs(&self, taken: &Taken<E>, first: usize) -> Result<Vec<f64>> {
        let (env, n) = (self.env, taken.len());
        let conditions = self.conditions.map(|c| c.f_narrow(0, first as i64, n as i64)).transpose()?;
        tch::no_grad(|| {
            let asked = |wants| self.policy.evaluate(env, &taken.states, conditions.as_ref(), wants);
            let dist = match self.part {
                Part::Forward => asked(Quantities::PF)?.pf,
                Part::Backward => asked(Quantities::PB)?.pb,
                Part::Prior => asked(Quantity::LogPrior.into())?.prior,
            };
            log_probs(dist, &taken.actions, n)
        })
    }
}

/// What a policy is asked about: some states of random walks, with the actions by which these went on, and came there.
struct Walks<E: Env> {
    on: Taken<E>,
    back: Taken<E>,
}

impl<E: ReplayEnv> Walks<E> {
    /// Draws walks from a random stream of their own, and breaks long ones off.
    fn draw(env: &E) -> Result<Self> {
        let (uniform, rng) = (env.uniform(), &mut Rng::seeded(0));
        let (mut on, mut back) = (Taken::none(env), Taken::none(env));
        let mut states = env.initial(&draw_instances(env, WALKS, rng));
        for _ in 0..MAX_STEPS {
            if states.is_empty() {
                break;
            }
            let all: Vec<usize> = (0..states.len()).collect();
            let asked = tch::no_grad(|| uniform.evaluate(env, &states, None, Quantities::PF))?.pf;
            let missing = || Error::missing("random walks", "a forward policy", "give the environment a uniform one");
            let actions = asked.ok_or_else(missing)?.sample(&all, &Exploration::none(), rng)?;
            on.add(states.clone(), actions.clone());
            let step = env.step(Direction::Forward, &mut states, &actions)?;
            let kept = |leaves: &[bool]| -> Vec<usize> { all.iter().copied().filter(|&row| !leaves[row]).collect() };
            let moved = kept(&step.exit);
            back.add(states.select(&moved), step.reverse.select(&moved));
            states = states.select(&kept(&step.done));
        }
        Ok(Self { on: on.some(), back: back.some() })
    }

    fn taken(&self, direction: Direction) -> &Taken<E> {
        match direction {
            Direction::Forward => &self.on,
            Direction::Backward => &self.back,
        }
    }
}

/// The log-probabilities of an action of each state; 0 where there is no such distribution.
///
/// # Errors
/// [`Error::NonFinite`] for one that is NaN, which differs from itself.
fn log_probs<D: Distribution>(dist: Option<D>, actions: &D::Actions, n: usize) -> Result<Vec<f64>> {
    let all: Vec<usize> = (0..n).collect();
    let Some(dist) = dist else { return Ok(vec![0.0; n]) };
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

/// The first place where two lists of log-probabilities differ, and both of them.
fn first_difference(some: &[f64], others: &[f64]) -> Option<(usize, f64, f64)> {
    let mut pairs = some.iter().zip(others).enumerate();
    // Two zero probabilities agree as well.
    let agree = |mine: f64, other: f64| mine == other || (mine - other).abs() <= TOLERANCE * (1.0 + mine.abs());
    pairs.find(|(_, (mine, other))| !agree(**mine, **other)).map(|(k, (&mine, &other))| (k, mine, other))
}

/// Checks that a policy and its prior judge each state by itself, give the same probabilities for all labellings of a state, where labels
/// mean nothing, and draw by what they are trained by; under conditions if the policy takes any. Returns false if the policy needs conditions and there are none.
///
/// # Errors
/// [`Error::Contract`] for a policy that depends on a state's batch mates or on labels, or whose form on the host is another policy; the errors of sampler and policy; [`Error::NonFinite`] for probabilities that aren't numbers.
pub(super) fn check_policy<E: ReplayEnv, P: Policy<E>>(
    env: &E,
    policy: &P,
    conditions: Option<&dyn ConditionSource>,
) -> Result<bool> {
    let walks = Walks::draw(env)?;
    let drawn = conditions.map(|source| source.draw(COMPARED, &mut Rng::seeded(0))).transpose()?;
    let conditions = drawn.map(|drawn| Conditions::checked(drawn, COMPARED)).transpose()?;
    let conditions = conditions.as_ref().map(|Conditions(tensor)| tensor);
    if conditions.is_none() {
        let asked = tch::no_grad(|| policy.evaluate(env, &env.initial(&[0]), None, Quantities::PF));
        if let Err(Error::Missing { .. } | Error::Shape { .. }) = asked {
            return Ok(false);
        }
    }
    for part in Part::ALL {
        let taken = walks.taken(part.direction());
        if taken.len() == 0 {
            continue;
        }
        let asked = Asked { env, policy, conditions, part };
        let given = asked.log_probs(taken, 0)?;
        independence::check(&asked, taken, &given)?;
        equivariance::check(&asked, taken, &given)?;
        host::check(&asked, taken, &given)?;
    }
    Ok(true)
}
