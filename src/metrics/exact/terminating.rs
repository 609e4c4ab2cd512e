//! The exact distribution of a policy, computed by following its probability through the state graph.

use tch::Tensor;

use super::evaluate::forward_policy;
use crate::distribution::{check_alone, logit_size};
use crate::env::{EXIT, EnumerableEnv, Rows, StateGraph, describe_state};
use crate::policy::Policy;
use crate::{Error, Result, Rng};

/// The number of relabelled states in which equivariance is checked before a distribution up to isomorphism
/// is computed.
const N_EQUIVARIANCE_CHECKS: usize = 32;

/// The exact distribution of a policy over finished objects. Lists are by state index.
#[derive(Clone, Debug, PartialEq)]
pub struct TerminatingDistribution {
    /// The probability, for each state, that a trajectory of the policy ends in the state.
    pub probs: Vec<f64>,
    /// The probability, for each state, that a trajectory of the policy visits the state.
    pub visits: Vec<f64>,
    /// The mean number of actions of a trajectory, including the exit.
    pub mean_len: f64,
}

impl<E: EnumerableEnv> StateGraph<E> {
    /// Returns the distribution of a policy's finished objects, in double precision. `conditions` is one
    /// condition vector `[C]` for all trajectories.
    ///
    /// Up to isomorphism the policy is evaluated only at the listed representative of each class. This is
    /// correct only for an equivariant policy, so equivariance is first checked on a few relabelled states.
    ///
    /// # Errors
    /// The errors of the policy; [`Error::Contract`] for a policy whose probabilities for a state depend on
    /// the other states of its batch (a few states are also evaluated alone), for a policy that isn't
    /// equivariant up to isomorphism, for a policy whose legal actions differ from the environment's, and for
    /// an environment whose initial state differs from that of the state graph.
    pub fn terminating_distribution(
        &self,
        env: &E,
        policy: &dyn Policy<E>,
        conditions: Option<&Tensor>,
    ) -> Result<TerminatingDistribution> {
        self.check_env(env)?;
        if env.merges_isomorphic() {
            self.check_equivariance(env, policy, conditions, N_EQUIVARIANCE_CHECKS, &mut Rng::seeded(0))?;
        }
        let mut visits = vec![0.0; self.len()];
        let mut probs = vec![0.0; self.len()];
        let mut mean_len = 0.0;
        visits[0] = 1.0;
        for range in self.chunks() {
            let pf = forward_policy(env, policy, &self.states_of(&range), conditions)?;
            let log_probs = pf.host_log_probs()?;
            if range.start == 0 {
                let legal = pf.legal_offsets().windows(2).map(|ends| ends[1] - ends[0]);
                let uniform: Vec<f64> = legal.flat_map(|n| vec![-(n as f64).ln(); n]).collect();
                let states = self.states();
                let alone = |state: usize| {
                    let pf = forward_policy(env, policy, &states.select(&[state]), conditions)?;
                    Ok(pf.host_log_probs()?.to_vec())
                };
                let words = |state: usize| format!("in {}", describe_state(env, states, state));
                let size = logit_size(log_probs, &uniform);
                check_alone(pf.legal_offsets(), log_probs, size, alone, words)?;
            }
            for (state, ends) in range.zip(pf.legal_offsets().windows(2)) {
                let children = self.raw_children(state);
                check_legal(state, children.len(), ends[1] - ends[0])?;
                let mass = visits[state];
                if children.is_empty() {
                    probs[state] += mass;
                    continue;
                }
                mean_len += mass;
                for (&child, log_prob) in children.iter().zip(&log_probs[ends[0]..ends[1]]) {
                    let share = mass * log_prob.exp();
                    match child {
                        EXIT => probs[state] += share,
                        child => visits[child as usize] += share,
                    }
                }
            }
        }
        Ok(TerminatingDistribution { probs, visits, mean_len })
    }
}

/// Checks that the policy's number of legal actions in a state (`evaluated`) equals the environment's
/// (`listed`).
pub(super) fn check_legal(state: usize, listed: usize, evaluated: usize) -> Result<()> {
    if listed == evaluated {
        return Ok(());
    }
    Err(Error::contract(
        "a policy has a probability for each action that the environment's masks allow, and for no other",
        format!(
            "state {state} has {listed} legal forward actions, but the policy has {evaluated} probabilities"
        ),
    ))
}
