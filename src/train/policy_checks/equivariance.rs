//! A policy treats all labellings of an object alike.

use tch::Tensor;

use super::{COMPARED, Part, Walks};
use crate::env::{Classes, Env, Rows};
use crate::policy::Policy;
use crate::rollout::ReplayEnv;
use crate::{Error, Result};

/// States of random walks that have another labelling among the walks, and the rows of both.
struct Twins<'a, E: Env> {
    walks: &'a Walks<E>,
    classes: Classes,
    rows: Vec<usize>,
}

impl<'a, E: ReplayEnv> Twins<'a, E> {
    /// `None` if the environment doesn't identify labellings.
    fn among(env: &E, walks: &'a Walks<E>) -> Option<Self> {
        let states = walks.0.states();
        let classes = env.classes(states)?;
        let equal = states.group();
        let of_class = |row: usize| classes.grouping.first[classes.grouping.of[row]];
        // Each labelling once, except the one that represents its class.
        let rows: Vec<usize> =
            equal.first.iter().copied().filter(|&row| equal.of[of_class(row)] != equal.of[row]).collect();
        let apart = rows.len().div_ceil(COMPARED).max(1);
        let rows = rows.into_iter().step_by(apart).collect();
        Some(Self { walks, classes, rows })
    }

    /// The rows that represent the classes of the given rows.
    fn firsts(&self, rows: &[usize]) -> Vec<usize> {
        rows.iter().map(|&row| self.classes.grouping.first[self.classes.grouping.of[row]]).collect()
    }

    /// Compares the probabilities of these actions with those of the same actions under other labels.
    fn compare<P: Policy<E>>(&self, env: &E, policy: &P, conditions: Option<&Tensor>, part: Part) -> Result<()> {
        let direction = part.direction();
        let (rows, actions) = self.walks.taken(&self.rows, direction);
        if rows.is_empty() {
            return Ok(());
        }
        let renamed = env.translate(direction, self.walks.0.states(), (&self.classes, &rows), &actions, false)?;
        let firsts = self.firsts(&rows);
        let asked = |rows: &[usize], actions: &E::Actions| {
            self.walks.log_probs((env, policy, conditions), part, (rows, actions))
        };
        let (mine, others) = (asked(&rows, &actions)?, asked(&firsts, &renamed)?);
        let Some((k, mine, other)) = super::first_difference(&mine, &others) else { return Ok(()) };
        let (state, twin) = (self.walks.words(rows[k]), self.walks.words(firsts[k]));
        Err(Error::contract(
            "up to isomorphism a policy is equivariant: relabelling a graph changes no probability \
             (leave node identity, the order of nodes and chance out of the network)",
            format!(
                "the log-probability ({part}) of one action is {mine} in {state}, and {other} in the same under other \
                 labels, {twin}"
            ),
        ))
    }
}

/// Checks that a policy gives the same probabilities for all labellings of a state, if the environment identifies them.
///
/// # Errors
/// [`Error::Contract`] for a policy that depends on labels; the errors of the policy.
pub(super) fn check<E: ReplayEnv, P: Policy<E>>(
    env: &E,
    policy: &P,
    walks: &Walks<E>,
    conditions: Option<&Tensor>,
) -> Result<()> {
    let Some(twins) = Twins::among(env, walks) else { return Ok(()) };
    Part::ALL.into_iter().try_for_each(|part| twins.compare(env, policy, conditions, part))
}
