//! Check, before training, that a policy treats all labellings of an object alike.

use tch::Tensor;

use crate::condition::{ConditionSource, Conditions};
use crate::distribution::{Distribution, Exploration};
use crate::env::{Classes, Direction, Env, Rows};
use crate::policy::Policy;
use crate::quantity::Quantities;
use crate::rollout::{ReplayEnv, Sampler, Trajectories};
use crate::tensor::to_host;
use crate::{Error, Result, Rng};

/// Number of random walks. Some of their states differ only in their labels.
const WALKS: usize = 32;
/// Largest number of states that are compared with another labelling.
const COMPARED: usize = 32;
/// Largest number of steps of a walk: environments identify labellings only of small states.
const MAX_STEPS: usize = 64;
/// Numbers added to the exit's logit, tried in turn until walks are short enough.
const EXIT_BIASES: [f64; 4] = [0.0, 4.0, 8.0, 12.0];
/// Allowed difference of a log-probability between labellings, per unit of its size if that is above 1. Single
/// precision sums in another order, and logits may be far larger than their differences.
const TOLERANCE: f64 = 1e-3;

/// States of random walks that have another labelling among the walks, and the rows of both.
struct Twins<E: Env> {
    walks: Trajectories<E>,
    classes: Classes,
    rows: Vec<usize>,
}

impl<E: ReplayEnv> Twins<E> {
    /// Draws walks from a random stream of its own; `None` if the environment doesn't identify labellings, or has no
    /// short walks.
    fn draw(env: &E) -> Result<Option<Self>> {
        if env.classes(&env.initial(&[0])).is_none() {
            return Ok(None);
        }
        let uniform = env.uniform();
        let short = |bias: &f64| {
            let exploration = match Exploration::none().with_exit_bias(*bias) {
                Ok(exploration) => exploration,
                Err(error) => return Some(Err(error)),
            };
            let sampler = Sampler::new(env, &uniform).max_steps(MAX_STEPS).exploration(exploration);
            match sampler.forward(WALKS, &mut Rng::seeded(0)) {
                Err(Error::StepLimit { .. }) => None,
                walks => Some(walks),
            }
        };
        let Some(walks) = EXIT_BIASES.iter().find_map(short).transpose()? else { return Ok(None) };
        let Some(classes) = env.classes(walks.states()) else { return Ok(None) };
        let equal = walks.states().group();
        let of_class = |row: usize| classes.grouping.first[classes.grouping.of[row]];
        // Each labelling once, except the one that represents its class.
        let rows: Vec<usize> =
            equal.first.iter().copied().filter(|&row| equal.of[of_class(row)] != equal.of[row]).collect();
        let apart = rows.len().div_ceil(COMPARED).max(1);
        let rows = rows.into_iter().step_by(apart).collect();
        Ok(Some(Self { walks, classes, rows }))
    }

    /// The rows that represent the classes of the given rows.
    fn firsts(&self, rows: &[usize]) -> Vec<usize> {
        rows.iter().map(|&row| self.classes.grouping.first[self.classes.grouping.of[row]]).collect()
    }

    /// The rows of compared states and one action of each in the given direction: the next one on its walk, or the one
    /// back.
    fn taken(&self, direction: Direction) -> (Vec<usize>, E::Actions) {
        match direction {
            Direction::Forward => (self.rows.clone(), self.walks.actions().select(&self.rows)),
            Direction::Backward => {
                let starts = self.walks.offsets();
                let rows = self.rows.iter().copied().filter(|row| starts.binary_search(row).is_err());
                let rows: Vec<usize> = rows.collect();
                let before: Vec<usize> = rows.iter().map(|row| row - 1).collect();
                (rows, self.walks.reverse_actions().select(&before))
            }
        }
    }

    /// Compares the probabilities of these actions with those of the same actions under other labels.
    fn compare<P: Policy<E>>(
        &self,
        env: &E,
        policy: &P,
        conditions: Option<&Tensor>,
        direction: Direction,
    ) -> Result<()> {
        let (rows, actions) = self.taken(direction);
        if rows.is_empty() {
            return Ok(());
        }
        let renamed = env.translate(direction, self.walks.states(), (&self.classes, &rows), &actions, false)?;
        let log_probs = |rows: &[usize], actions: &E::Actions| -> Result<Vec<f64>> {
            let states = self.walks.states().select(rows);
            let conditions = conditions.map(|c| c.f_narrow(0, 0, rows.len() as i64)).transpose()?;
            tch::no_grad(|| {
                let asked = |wants| policy.evaluate(env, &states, conditions.as_ref(), wants);
                let dist = match direction {
                    Direction::Forward => asked(Quantities::PF)?.pf,
                    Direction::Backward => asked(Quantities::PB)?.pb,
                };
                let all: Vec<usize> = (0..rows.len()).collect();
                match dist {
                    Some(dist) => Ok(to_host(&dist.log_prob(&all, actions)?)),
                    None => Ok(vec![0.0; rows.len()]),
                }
            })
        };
        let firsts = self.firsts(&rows);
        let (mine, others) = (log_probs(&rows, &actions)?, log_probs(&firsts, &renamed)?);
        for (k, (&mine, &other)) in mine.iter().zip(&others).enumerate() {
            // Two zero probabilities agree as well.
            if mine == other || (mine - other).abs() <= TOLERANCE * (1.0 + mine.abs()) {
                continue;
            }
            let (state, twin) = (self.words(rows[k]), self.words(firsts[k]));
            return Err(Error::contract(
                "up to isomorphism a policy is equivariant: relabelling a graph changes no probability \
                        (leave node identity, the order of nodes and chance out of the network)",
                format!(
                    "the log-probability ({direction}) of one action is {mine} in {state}, and {other} in the same under other \
                     labels, {twin}"
                ),
            ));
        }
        Ok(())
    }

    fn words(&self, row: usize) -> String {
        self.walks.states().describe(row).unwrap_or_else(|| format!("state {row} of random walks"))
    }
}

/// Checks that a policy gives the same probabilities for all labellings of a state, if the environment identifies them,
/// under conditions if the policy takes any. Returns false if the policy needs conditions and there are none.
///
/// # Errors
/// [`Error::Contract`] for a policy that depends on labels; the errors of sampler and policy.
pub(super) fn check_equivariance<E: ReplayEnv, P: Policy<E>>(
    env: &E,
    policy: &P,
    conditions: Option<&dyn ConditionSource>,
) -> Result<bool> {
    let Some(twins) = Twins::draw(env)? else { return Ok(true) };
    let drawn = conditions.map(|source| source.draw(COMPARED, &mut Rng::seeded(0))).transpose()?;
    let conditions = drawn.map(|drawn| Conditions::checked(drawn, COMPARED)).transpose()?;
    let conditions = conditions.as_ref().map(|Conditions(tensor)| tensor);
    if conditions.is_none() {
        let asked = tch::no_grad(|| policy.evaluate(env, &env.initial(&[0]), None, Quantities::PF));
        if let Err(Error::Missing { .. } | Error::Shape { .. }) = asked {
            return Ok(false);
        }
    }
    for direction in [Direction::Forward, Direction::Backward] {
        twins.compare(env, policy, conditions, direction)?;
    }
    Ok(true)
}
