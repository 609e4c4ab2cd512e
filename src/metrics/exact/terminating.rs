//! The exact distribution of a policy: probability mass is pushed through the state graph.

use tch::Tensor;

use super::alike::check_moves;
use super::evaluate::forward_policy;
use crate::distribution::GraphActionCategorical;
use crate::env::{EXIT, EnumerableEnv, StateGraph};
use crate::metrics::Evaluator;
use crate::policy::Policy;
use crate::{Error, Result, Rng};

/// Number of relabelled states for the equivariance check before a distribution up to isomorphism is computed.
const EQUIVARIANCE_CHECKS: usize = 32;

/// The exact distribution of a policy, by state index.
#[derive(Clone, Debug, PartialEq)]
pub struct TerminatingDistribution {
    /// The probability that a trajectory ends in each state.
    pub probs: Vec<f64>,
    /// The probability that a trajectory visits each state.
    pub visits: Vec<f64>,
    /// The mean number of actions of a trajectory, the exit included.
    pub mean_len: f64,
}

impl<E: EnumerableEnv> StateGraph<E> {
    /// The distribution of a policy's finished objects, in double precision; `conditions` is one vector `[C]`.
    /// [`Evaluator::terminating_distribution`] shares the work.
    ///
    /// Up to isomorphism the policy is evaluated once per class, at its representative. That is correct only for an
    /// equivariant policy, so equivariance is checked on a few relabelled states first.
    ///
    /// # Errors
    /// Those of the policy; [`Error::Contract`] for a policy that isn't equivariant although it must be, or whose legal
    /// actions differ from the environment's, and for an environment that starts elsewhere than the listed one.
    pub fn terminating_distribution<P: Policy<E, Dist = GraphActionCategorical>>(
        &self,
        env: &E,
        policy: &P,
        conditions: Option<&Tensor>,
    ) -> Result<TerminatingDistribution> {
        Evaluator::of(env).terminating_distribution(self, policy, conditions)
    }
}

impl<E: EnumerableEnv> Evaluator<'_, E> {
    /// Same as [`StateGraph::terminating_distribution`]. Members evaluate the policy on chunks of the states; all follow the probability.
    ///
    /// # Errors
    /// As there; [`Error::Contract`] for members that don't evaluate the same, and those of the group.
    pub fn terminating_distribution<P: Policy<E, Dist = GraphActionCategorical>>(
        &self,
        graph: &StateGraph<E>,
        policy: &P,
        conditions: Option<&Tensor>,
    ) -> Result<TerminatingDistribution> {
        let env = self.env;
        graph.check_env(env)?;
        if env.merges_isomorphic() {
            graph.check_equivariance_under(env, policy, conditions, EQUIVARIANCE_CHECKS, &mut Rng::seeded(0))?;
        }
        self.check_exact("terminating distribution", graph, policy, conditions)?;
        let mut visits = vec![0.0; graph.len()];
        let mut probs = vec![0.0; graph.len()];
        let mut mean_len = 0.0;
        visits[0] = 1.0;
        let of_moves = |k: usize| {
            let states = graph.chunk(k);
            let pf = forward_policy(env, policy, &graph.states_of(k), conditions)?;
            for (state, ends) in states.zip(pf.legal_offsets().windows(2)) {
                check_legal(state, graph.raw_children(state).len(), ends[1] - ends[0])?;
            }
            Ok(pf.host_log_probs()?.iter().map(|log_prob| log_prob.exp()).collect())
        };
        self.shares.each(graph.n_chunks(), of_moves, |k, of_moves| {
            check_moves(graph, k, &of_moves)?;
            let mut of_moves = of_moves.into_iter();
            for state in graph.chunk(k) {
                let children = graph.raw_children(state);
                let mass = visits[state];
                if children.is_empty() {
                    probs[state] += mass;
                    continue;
                }
                mean_len += mass;
                for (&child, prob) in children.iter().zip(of_moves.by_ref()) {
                    let share = mass * prob;
                    match child {
                        EXIT => probs[state] += share,
                        child => visits[child as usize] += share,
                    }
                }
            }
            Ok(())
        })?;
        Ok(TerminatingDistribution { probs, visits, mean_len })
    }
}

/// Checks that a policy has as many legal actions in a state as the environment.
pub(in crate::metrics) fn check_legal(state: usize, listed: usize, seen: usize) -> Result<()> {
    if listed == seen {
        return Ok(());
    }
    Err(Error::contract(
        "a policy gives a probability to each action that the environment's masks allow, and to no other",
        format!("state {state} has {listed} legal forward actions, the policy knows {seen}"),
    ))
}
