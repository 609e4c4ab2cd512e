//! The promises of a policy and of a reward, looked at before training.

use tch::Tensor;

use crate::condition::{ConditionSource, Conditions};
use crate::distribution::{Distribution, Exploration, check_alone, equal_up_to_rounding, logit_size};
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
/// Steps before which policy and reward are checked again: training may have let grow what a first check
/// couldn't tell from rounding.
const CHECKED_AGAIN: [usize; 2] = [10, 100];

/// The step before which the next check is due, after one before `step`.
pub(crate) fn next_check(step: usize) -> usize {
    CHECKED_AGAIN.into_iter().find(|&again| again > step).unwrap_or(usize::MAX)
}

/// The parts of a policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Forward,
    Backward,
    /// The P_F that the objective is relative to, of a policy that has one.
    Prior,
}

impl Part {
    fn direction(self) -> Direction {
        if self == Self::Backward { Direction::Backward } else { Direction::Forward }
    }

    fn words(self) -> String {
        if self == Self::Prior { "of the prior".to_owned() } else { self.direction().to_string() }
    }
}

/// States, and an action of each.
struct Taken<E: Env> {
    states: E::States,
    actions: E::Actions,
}

impl<E: ReplayEnv> Taken<E> {
    fn len(&self) -> usize {
        self.states.len()
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

/// A policy, and the part of it that is looked at.
struct Examined<'a, E> {
    env: &'a E,
    policy: &'a dyn Policy<E>,
    conditions: Option<&'a Tensor>,
    part: Part,
    /// The size of its logits ([`logit_size`]).
    size: f64,
}

impl<E: ReplayEnv> Examined<'_, E> {
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

    /// Checks that what the policy gives for a state depends neither on the others of its batch nor on chance.
    fn check_independence(&self, taken: &Taken<E>, together: &[f64]) -> Result<()> {
        let offsets: Vec<usize> = (0..=taken.len()).collect();
        let alone = |row: usize| self.log_probs(&taken.select(&[row]), row);
        let words = |row: usize| format!("in {} ({})", taken.words(row), self.part.words());
        check_alone(&offsets, together, self.size, alone, words)
    }

    /// Checks that the policy gives the same probabilities for a state under other labels, where labels mean nothing.
    fn check_equivariance(&self, taken: &Taken<E>, mine: &[f64]) -> Result<()> {
        let env = self.env;
        let Some((both, classes)) = env.symmetry().relabelled(&taken.states, &mut Rng::seeded(0)) else {
            return Ok(());
        };
        let twins: Vec<usize> = (taken.len()..both.len()).collect();
        let actions = env.symmetry().translate(self.part.direction(), &both, &classes, &twins, &taken.actions, true)?;
        let renamed = Taken { states: both.select(&twins), actions };
        let rule = "up to isomorphism a policy is equivariant: relabelling a graph changes no probability \
                    (leave node identity, the order of nodes and chance out of the network)";
        self.compare(rule, mine, &self.log_probs(&renamed, 0)?, |k| {
            [format!("in {}", taken.words(k)), format!("in the same under other labels, {}", renamed.words(k))]
        })
    }

    /// Checks that the form of the policy that roll-outs are drawn by on the host gives what the policy itself gave.
    fn check_host(&self, taken: &Taken<E>, trained: &[f64]) -> Result<()> {
        // Roll-outs without conditions alone are drawn on the host, and none by a prior.
        let asked = self.conditions.is_none() && self.part != Part::Prior;
        let Some(on_host) = self.policy.on_host(self.part.direction()).filter(|_| asked) else { return Ok(()) };
        let drawn = log_probs(Some(on_host.distribution(self.env, &taken.states)?), &taken.actions, taken.len())?;
        let rule = "a policy draws by what it is trained by: its form on the host (`Policy::on_host`, `Torso::on_host`) gives what it gives \
                    itself, up to rounding";
        self.compare(rule, trained, &drawn, |k| ["itself".into(), format!("on the host, in {}", taken.words(k))])
    }

    /// Refuses a log-probability that differs; `words` says where both are from.
    fn compare(
        &self,
        rule: &'static str,
        some: &[f64],
        others: &[f64],
        words: impl Fn(usize) -> [String; 2],
    ) -> Result<()> {
        let differs = |k: &usize| !equal_up_to_rounding(some[*k], others[*k], self.size);
        let Some(k) = (0..some.len()).find(differs) else { return Ok(()) };
        let ([here, there], part, mine, other) = (words(k), self.part.words(), some[k], others[k]);
        let detail = format!("the log-probability ({part}) of one action is {mine} {here}, and {other} {there}");
        Err(Error::contract(rule, detail))
    }
}

/// Some states of random walks, with the actions by which these went on, and those by which they came there.
fn random_states<E: ReplayEnv>(env: &E, rng: &mut Rng) -> Result<[Taken<E>; 2]> {
    // Long walks are broken off.
    let uniform = env.uniform();
    let none = || Taken::<E> { states: env.initial(&[]), actions: env.no_actions() };
    let [mut on, mut back] = [none(), none()];
    let mut states = env.initial(&draw_instances(env, WALKS, rng));
    for _ in 0..MAX_STEPS {
        if states.is_empty() {
            break;
        }
        let all: Vec<usize> = (0..states.len()).collect();
        let asked = tch::no_grad(|| uniform.evaluate(env, &states, None, Quantities::PF))?.pf;
        let missing = || Error::missing("random walks", "a forward policy", "give the environment a uniform one");
        let actions = asked.ok_or_else(missing)?.sample(&all, &Exploration::none(), rng)?;
        on.states.append(states.clone());
        on.actions.append(actions.clone());
        let step = env.step(Direction::Forward, &mut states, &actions)?;
        let kept = |leaves: &[bool]| -> Vec<usize> { all.iter().copied().filter(|&row| !leaves[row]).collect() };
        let moved = kept(&step.exit);
        back.states.append(states.select(&moved));
        back.actions.append(step.reverse.select(&moved));
        states = states.select(&kept(&step.done));
    }
    if back.len() == 0 {
        return Err(Error::missing(
            "a trainer",
            "an environment with something to build, and no move leads on from its initial state",
            "start from a graph with more nodes, say, or give it a type of action that fits the initial state",
        ));
    }
    Ok([on.some(), back.some()])
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

/// Checks, on random walks of this seed, that a policy and its prior judge each state by itself, give the
/// same probabilities for all labellings of a state, where labels
/// mean nothing, and draw by what they are trained by; under conditions if the policy takes any. Returns false if the policy needs conditions and there are none.
///
/// # Errors
/// [`Error::Contract`] for a policy that depends on a state's batch mates or on labels, or whose form on the
/// host is another policy;
/// [`Error::Missing`] for an environment with nothing to build; the errors of sampler and policy;
/// [`Error::NonFinite`] for probabilities
/// that aren't numbers.
pub fn check_policy<E: ReplayEnv>(
    env: &E,
    policy: &dyn Policy<E>,
    conditions: Option<&dyn ConditionSource>,
    seed: usize,
) -> Result<bool> {
    // Nothing is drawn from the trainer's own stream.
    let rng = &mut Rng::seeded(seed as u64);
    let [on, back] = random_states(env, rng)?;
    let drawn = conditions.map(|source| source.draw(COMPARED, rng)).transpose()?;
    let conditions = drawn.map(|drawn| Conditions::checked(drawn, COMPARED)).transpose()?;
    let conditions = conditions.as_ref().map(|Conditions(tensor)| tensor);
    if conditions.is_none() {
        let asked = tch::no_grad(|| policy.evaluate(env, &env.initial(&[0]), None, Quantities::PF));
        if let Err(Error::Missing { .. } | Error::Shape { .. }) = asked {
            return Ok(false);
        }
    }
    for part in [Part::Forward, Part::Backward, Part::Prior] {
        let taken = if part == Part::Backward { &back } else { &on };
        if taken.len() == 0 {
            continue;
        }
        let uniform = Examined { env, policy: &env.uniform(), conditions: None, part, size: 0.0 };
        let uniform = uniform.log_probs(taken, 0)?;
        let mut examined = Examined { env, policy, conditions, part, size: 0.0 };
        let given = examined.log_probs(taken, 0)?;
        examined.size = logit_size(&given, &uniform);
        examined.check_independence(taken, &given)?;
        examined.check_equivariance(taken, &given)?;
        examined.check_host(taken, &given)?;
    }
    Ok(true)
}
