//! Whether a policy treats states alike that are one object, before it is trained as if it did.

use tch::Tensor;

use crate::condition::{ConditionSource, Conditions};
use crate::distribution::{Distribution, Exploration};
use crate::env::{Classes, Direction, Env, Rows};
use crate::policy::Policy;
use crate::quantity::Quantities;
use crate::rollout::{ReplayEnv, Sampler, Trajectories};
use crate::tensor::to_host;
use crate::{Error, Result, Rng};

/// Random walks, among whose states are some that differ in their labels alone.
const WALKS: usize = 32;
/// States that are compared with others of their class, at most.
const COMPARED: usize = 32;
/// The most steps of a walk: states are merged only while they are small.
const MAX_STEPS: usize = 64;
/// What the exit's logit is raised by, one after another, until walks are that short.
const EXIT_BIASES: [f64; 4] = [0.0, 4.0, 8.0, 12.0];
/// By how much a log-probability may depend on labels, per unit of its size from 1 on: single precision sums in another order, and
/// logits may be far larger than their differences.
const TOLERANCE: f64 = 1e-3;

/// States of random walks, each with another of its class: the rows of both.
struct Twins<E: Env> {
    walks: Trajectories<E>,
    classes: Classes,
    rows: Vec<usize>,
}

impl<E: ReplayEnv> Twins<E> {
    /// Drawn by a stream of their own; `None` where the environment merges no states, or has no short walks.
    fn draw(env: &E) -> Result<Option<Self>> {
        if env.classes(&env.initial(1)).is_none() {
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
        // Each labelling once, but for the one that stands for the class.
        let rows: Vec<usize> =
            equal.first.iter().copied().filter(|&row| equal.of[of_class(row)] != equal.of[row]).collect();
        let apart = rows.len().div_ceil(COMPARED).max(1);
        let rows = rows.into_iter().step_by(apart).collect();
        Ok(Some(Self { walks, classes, rows }))
    }

    /// The rows that stand for the classes of others.
    fn firsts(&self, rows: &[usize]) -> Vec<usize> {
        rows.iter().map(|&row| self.classes.grouping.first[self.classes.grouping.of[row]]).collect()
    }

    /// Actions of a direction that were taken in compared states, with their rows: each state's own way on, or back.
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

    /// Compares the probabilities of actions taken with those of the same actions under other labels.
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
            // Both impossible is no difference either.
            if mine == other || (mine - other).abs() <= TOLERANCE * (1.0 + mine.abs()) {
                continue;
            }
            let (state, twin) = (self.words(rows[k]), self.words(firsts[k]));
            return Err(Error::Contract {
                check: "up to isomorphism a policy is equivariant: relabelling a graph changes no probability \
                        (leave node identity, the order of nodes and chance out of the network)",
                detail: format!(
                    "the log-probability ({direction}) of one action is {mine} in {state}, and {other} in the same under other \
                     labels, {twin}"
                ),
            });
        }
        Ok(())
    }

    fn words(&self, row: usize) -> String {
        self.walks.states().describe(row).unwrap_or_else(|| format!("state {row} of random walks"))
    }
}

/// Where environments merge states that differ in labels alone, checks that a policy says the same of them, under conditions if it takes
/// any: false for a policy that can't be asked without.
///
/// # Errors
/// [`Error::Contract`] for a policy that sees labels, and the errors of sampler and policy.
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
        let asked = tch::no_grad(|| policy.evaluate(env, &env.initial(1), None, Quantities::PF));
        if let Err(Error::Missing { .. } | Error::Shape { .. }) = asked {
            return Ok(false);
        }
    }
    for direction in [Direction::Forward, Direction::Backward] {
        twins.compare(env, policy, conditions, direction)?;
    }
    Ok(true)
}
