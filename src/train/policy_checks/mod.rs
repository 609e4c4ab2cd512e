//! What a policy promises, looked at before training.

mod equivariance;
mod host;
mod independence;

use tch::Tensor;

use crate::condition::{ConditionSource, Conditions};
use crate::distribution::{Distribution, Exploration};
use crate::env::{Direction, Env, Rows};
use crate::policy::Policy;
use crate::quantity::{Quantities, Quantity};
use crate::rollout::{ReplayEnv, Sampler, Trajectories};
use crate::tensor::to_host;
use crate::{Error, Result, Rng};

/// Number of random walks. Some of their states differ only in their labels.
const WALKS: usize = 32;
/// Largest number of states that are compared.
const COMPARED: usize = 32;
/// Largest number of steps of a walk: environments identify labellings only of small states.
const MAX_STEPS: usize = 64;
/// Numbers added to the exit's logit, tried in turn until walks are short enough.
const EXIT_BIASES: [f64; 4] = [0.0, 4.0, 8.0, 12.0];
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

/// Random walks whose states a policy is asked about.
struct Walks<E: Env>(Trajectories<E>);

/// What `draw` makes of the uniform policy and a random stream of its own, with an exit that is made likelier until walks are short enough; `None`
/// if there are no short ones.
pub(super) fn random_walks<E: ReplayEnv, T>(
    env: &E,
    max_steps: usize,
    draw: impl Fn(Sampler<'_, E, E::Uniform>, &mut Rng) -> Result<T>,
) -> Result<Option<T>> {
    let uniform = env.uniform();
    let short = |bias: &f64| {
        let exploration = match Exploration::none().with_exit_bias(*bias) {
            Ok(exploration) => exploration,
            Err(error) => return Some(Err(error)),
        };
        let sampler = Sampler::new(env, &uniform).max_steps(max_steps).exploration(exploration);
        match draw(sampler, &mut Rng::seeded(0)) {
            Err(Error::StepLimit { .. }) => None,
            // There is no exit to be more likely.
            Err(Error::Config { .. }) if *bias > 0.0 => None,
            drawn => Some(drawn),
        }
    };
    EXIT_BIASES.iter().find_map(short).transpose()
}

impl<E: ReplayEnv> Walks<E> {
    /// Draws walks from a random stream of its own; `None` if there are no short ones.
    fn draw(env: &E) -> Result<Option<Self>> {
        Ok(random_walks(env, MAX_STEPS, |sampler, rng| sampler.forward(WALKS, rng))?.map(Self))
    }

    /// Those of these rows that have one, and one action of each in the given direction: the next one on its walk, or the one back.
    fn taken(&self, rows: &[usize], direction: Direction) -> (Vec<usize>, E::Actions) {
        match direction {
            Direction::Forward => (rows.to_vec(), self.0.actions().select(rows)),
            Direction::Backward => {
                let starts = self.0.offsets();
                let rows = rows.iter().copied().filter(|row| starts.binary_search(row).is_err());
                let rows: Vec<usize> = rows.collect();
                let before: Vec<usize> = rows.iter().map(|row| row - 1).collect();
                (rows, self.0.reverse_actions().select(&before))
            }
        }
    }

    /// The log-probability of an action in each of these rows, all asked at once; with conditions, of which the first ones are taken.
    fn log_probs<P: Policy<E>>(
        &self,
        (env, policy, conditions): (&E, &P, Option<&Tensor>),
        part: Part,
        (rows, actions): (&[usize], &E::Actions),
    ) -> Result<Vec<f64>> {
        let states = self.0.states().select(rows);
        let conditions = conditions.map(|c| c.f_narrow(0, 0, rows.len() as i64)).transpose()?;
        tch::no_grad(|| {
            let asked = |wants| policy.evaluate(env, &states, conditions.as_ref(), wants);
            let dist = match part {
                Part::Forward => asked(Quantities::PF)?.pf,
                Part::Backward => asked(Quantities::PB)?.pb,
                Part::Prior => asked(Quantity::LogPrior.into())?.prior,
            };
            log_probs(dist, actions, rows.len())
        })
    }

    fn words(&self, row: usize) -> String {
        self.0.states().describe(row).unwrap_or_else(|| format!("state {row} of random walks"))
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

/// Checks that a policy and its prior judge each state by itself, give the same probabilities for all labellings of a state, if the
/// environment identifies them, and draw by what they are trained by; under conditions if the policy takes any. Returns false if the policy needs conditions and there are none.
///
/// # Errors
/// [`Error::Contract`] for a policy that depends on a state's batch mates or on labels, or whose form on the host is another policy; the errors of sampler and policy; [`Error::NonFinite`] for probabilities that aren't numbers.
pub(super) fn check_policy<E: ReplayEnv, P: Policy<E>>(
    env: &E,
    policy: &P,
    conditions: Option<&dyn ConditionSource>,
) -> Result<bool> {
    let Some(walks) = Walks::draw(env)? else { return Ok(true) };
    let drawn = conditions.map(|source| source.draw(COMPARED, &mut Rng::seeded(0))).transpose()?;
    let conditions = drawn.map(|drawn| Conditions::checked(drawn, COMPARED)).transpose()?;
    let conditions = conditions.as_ref().map(|Conditions(tensor)| tensor);
    if conditions.is_none() {
        let asked = tch::no_grad(|| policy.evaluate(env, &env.initial(&[0]), None, Quantities::PF));
        if let Err(Error::Missing { .. } | Error::Shape { .. }) = asked {
            return Ok(false);
        }
    }
    equivariance::check(env, policy, &walks, conditions)?;
    independence::check(env, policy, &walks, conditions)?;
    // Roll-outs without conditions alone are drawn on the host.
    conditions.map_or_else(|| host::check(env, policy, &walks), |_| Ok(()))?;
    Ok(true)
}
