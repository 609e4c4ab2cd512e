//! A check that a policy is equivariant: if labels have no meaning, the policy must not depend on them.

use std::collections::BTreeMap;

use tch::Tensor;

use super::evaluate::forward_policy;
use super::terminating::check_legal;
use crate::env::{Direction, EXIT, EnumerableEnv, Moves, Rows, StateGraph, describe_state, random_moves};
use crate::policy::Policy;
use crate::{Error, Result, Rng};

/// The tolerance for rounding when the log-probabilities of a child are compared under two labellings of its
/// parent. Their difference is divided by 1 plus the absolute value of the log-probability. Rounding depends
/// on the labelling, because in single precision a sum depends on the order of its summands.
const TOLERANCE: f64 = 1e-4;

impl<E: EnumerableEnv> StateGraph<E> {
    /// Checks that a policy gives each child the same probability under every labelling of a state.
    ///
    /// The check takes `n_checks` states of random trajectories, and compares the policy in each state and in
    /// the representative of its isomorphism class in the state graph. Each isomorphism class of children
    /// must have the same total probability in both. Only labellings that trajectories can produce are
    /// tested. `conditions` is one condition vector `[C]` for all states.
    ///
    /// # Errors
    /// [`Error::Contract`] if two log-probabilities differ by more than 1e-4 times (1 + the absolute value of
    /// the log-probability).
    pub fn check_equivariance(
        &self,
        env: &E,
        policy: &dyn Policy<E>,
        conditions: Option<&Tensor>,
        n_checks: usize,
        rng: &mut Rng,
    ) -> Result<()> {
        let instance = env.instances(&self.states().select(&[0]))[0];
        let states = walked_states(env, instance, n_checks, rng)?;
        let unlisted = |row| {
            Error::contract(
                "every state of a random trajectory is listed: use the environment whose states were listed",
                format!(
                    "a trajectory leads to {}, which isn't in the state graph",
                    describe_state(env, &states, row)
                ),
            )
        };
        let indices = self.indices(env, &states).into_iter().enumerate();
        let indices: Vec<usize> =
            indices.map(|(row, index)| index.ok_or_else(|| unlisted(row))).collect::<Result<_>>()?;
        let mine = self.child_probs(env, policy, conditions, &states)?;
        let listed = self.child_probs(env, policy, conditions, &self.states().select(&indices))?;
        for (row, ((state, walked), listed)) in indices.iter().zip(&mine).zip(&listed).enumerate() {
            check_legal(*state, listed.len(), walked.len())?;
            for (child, p) in listed {
                let other = walked.get(child).copied().unwrap_or(0.0);
                if (log(*p) - log(other)).abs() <= TOLERANCE * (1.0 + log(*p).abs()) {
                    continue;
                }
                let child = match *child {
                    EXIT => "the exit".into(),
                    child => describe_state(env, self.states(), child as usize),
                };
                return Err(Error::contract(
                    "up to isomorphism a policy is equivariant: relabelling a graph changes no probability \
                     (the network must use neither the numbers nor the order of nodes)",
                    format!(
                        "the probability from {} to {child} is {other}, but it is {p} if the same state is \
                         labelled as {}",
                        describe_state(env, &states, row),
                        describe_state(env, self.states(), *state)
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Returns, for each of these states, the total probability of each isomorphism class of children, and
    /// the probability of the exit.
    fn child_probs(
        &self,
        env: &E,
        policy: &dyn Policy<E>,
        conditions: Option<&Tensor>,
        states: &E::States,
    ) -> Result<Vec<BTreeMap<u32, f64>>> {
        let pf = forward_policy(env, policy, states, conditions)?;
        let moves = Moves::new(pf.masks());
        let inner = moves.inner();
        let mut child = vec![EXIT; moves.rows.len()];
        for (&k, key) in inner.places.iter().zip(env.child_keys(states, &inner.rows, &inner.slots)?) {
            child[k] = self.index_of_key(&key).map_or(EXIT, |index| index as u32);
        }
        let mut out = vec![BTreeMap::new(); states.len()];
        for ((&row, child), log_prob) in moves.rows.iter().zip(child).zip(pf.host_log_probs()?) {
            *out[row].entry(child).or_insert(0.0) += log_prob.exp();
        }
        Ok(out)
    }
}

/// Returns the logarithm of a probability. A probability below the smallest normal number is raised to that
/// number, so that underflow and zero give the same result.
fn log(p: f64) -> f64 {
    p.max(f64::MIN_POSITIVE).ln()
}

/// Samples `n` random trajectories of an instance that never take the exit, and returns one state of each, at
/// a uniformly drawn step.
fn walked_states<E: EnumerableEnv>(env: &E, instance: u32, n: usize, rng: &mut Rng) -> Result<E::States> {
    let mut states = env.initial(&vec![instance; n]);
    let mut live: Vec<usize> = (0..n).collect();
    let mut kept = states.clone();
    for step in 2.. {
        let (going, slots) = random_moves(&env.masks(Direction::Forward, &states), rng);
        if going.is_empty() {
            break;
        }
        states = states.select(&going);
        live = going.iter().map(|&row| live[row]).collect();
        env.step(Direction::Forward, &mut states, &slots)?;
        // This is reservoir sampling: the k-th state of a trajectory replaces the stored state with
        // probability 1 / k, so each state of the trajectory is equally likely to be stored at the end.
        let mut source: Vec<usize> = (0..n).collect();
        for (row, &walk) in live.iter().enumerate() {
            if rng.below(step) == 0 {
                source[walk] = n + row;
            }
        }
        kept.append(states.clone());
        kept = kept.select(&source);
    }
    Ok(kept)
}
