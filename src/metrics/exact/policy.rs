//! The policy that samples objects exactly in proportion to a reward.

use tch::{Device, Kind, Tensor};

use super::ExactFlows;
use super::flows::log_pb_of_moves;
use crate::distribution::GraphActionCategorical;
use crate::env::{Direction, EnumerableEnv, Masks, Moves, Reward, StateGraph, describe_move, describe_state};
use crate::policy::{Evaluation, Policy};
use crate::quantity::{Quantities, Quantity};
use crate::{Error, Result};

/// A policy with the exact P_F, log F and log Z for a reward and a backward policy P_B. Its residuals are
/// zero under every balance objective.
///
/// The forward policy is `P_F(s' | s) = F(s') P_B(s | s') / F(s)` for each legal move. States are looked up
/// in a [`StateGraph`], and all numbers are in double precision. The policy is a reference for tests, and not
/// fast.
///
/// ```
/// use gfn::{
///     env::StateGraph,
///     examples::{Chain, Positions},
///     metrics::{Distances, ExactPolicy},
///     policy::UniformPolicy,
/// };
/// let env = Chain::new(4);
/// let graph = StateGraph::build(&env, 100)?;
/// let reward = |s: &Positions, _: Option<&tch::Tensor>| -> gfn::Result<Vec<f64>> {
///     Ok(s.0.iter().map(|&x| f64::from(x)).collect())
/// };
/// let exact = ExactPolicy::new(&graph, &env, &UniformPolicy, &reward)?;
/// let sampled = graph.terminating_distribution(&env, &exact, None)?;
/// let target = graph.target_distribution(&reward, None)?;
/// assert!(Distances::between(&sampled.probs, &target.probs)?.l1 < 1e-12);
/// # Ok::<(), gfn::Error>(())
/// ```
pub struct ExactPolicy<'a, E: EnumerableEnv> {
    graph: &'a StateGraph<E>,
    backward: &'a dyn Policy<E>,
    flows: ExactFlows,
}

impl<'a, E: EnumerableEnv> ExactPolicy<'a, E> {
    /// Computes the exact policy of a reward with the P_B of `backward`.
    ///
    /// # Errors
    /// The errors of [`StateGraph::exact_flows`], which returns an error for a P_B that gives probability to
    /// states that no forward move reaches.
    pub fn new(
        graph: &'a StateGraph<E>,
        env: &E,
        backward: &'a dyn Policy<E>,
        reward: &dyn Reward<E::States>,
    ) -> Result<Self> {
        Ok(Self { graph, backward, flows: graph.exact_flows(env, backward, reward, None)? })
    }

    /// Returns the exact flows from which the policy is computed.
    #[must_use]
    pub fn flows(&self) -> &ExactFlows {
        &self.flows
    }

    /// Returns the index in the state graph of each state, given the states' keys. If a state isn't in the
    /// graph, `words(row)` describes it in the error message, where `row` is the state's index in `keys`.
    fn indices(&self, keys: &[E::Key], words: impl Fn(usize) -> String) -> Result<Vec<usize>> {
        let index = |(row, key)| {
            self.graph.index_of_key(key).ok_or_else(|| {
                Error::contract(
                    "an exact policy is evaluated only in states of its state graph",
                    format!("the policy was evaluated in {}, which no forward move reaches", words(row)),
                )
            })
        };
        keys.iter().enumerate().map(index).collect()
    }

    fn forward(&self, env: &E, states: &E::States, indices: &[usize]) -> Result<GraphActionCategorical> {
        let masks = env.masks(Direction::Forward, states);
        let moves = Moves::new(&masks);
        let mut logits = log_pb_of_moves(env, self.backward, states, &moves, None)?;
        let inner = moves.inner();
        let of_child = |k: usize| {
            let step = describe_move(env, Direction::Forward, states, inner.rows[k], inner.slots.0[k]);
            format!("what follows {step}")
        };
        let children = self.indices(&env.child_keys(states, &inner.rows, &inner.slots)?, of_child)?;
        for (&k, child) in inner.places.iter().zip(children) {
            logits[k] += self.flows.log_flow[child];
        }
        // The logits are the logs of edge flows, as the flow-matching objective requires.
        for (k, logit) in logits.iter_mut().enumerate() {
            if moves.exit[k] {
                *logit = self.flows.log_rewards[indices[moves.rows[k]]];
            }
        }
        let blocks = blocks(&masks, &moves, &logits);
        GraphActionCategorical::new(masks, &blocks)
    }
}

/// Returns a block of logits per action type, each `[rows, width]`, with `values` in the slots of the legal
/// moves and 0 in all other slots.
fn blocks(masks: &Masks, moves: &Moves, values: &[f64]) -> Vec<Tensor> {
    let mut out: Vec<Vec<f64>> =
        masks.blocks.iter().map(|block| vec![0.0; block.rows() * block.width]).collect();
    for ((&row, &slot), &value) in moves.rows.iter().zip(&moves.slots).zip(values) {
        let mut rest = slot as usize;
        for (block, values) in masks.blocks.iter().zip(&mut out) {
            let slots = (block.row_ptr[row + 1] - block.row_ptr[row]) * block.width;
            if rest < slots {
                values[block.row_ptr[row] * block.width + rest] = value;
                break;
            }
            rest -= slots;
        }
    }
    let shaped = masks.blocks.iter().zip(&out);
    shaped
        .map(|(block, values)| Tensor::from_slice(values).view([block.rows() as i64, block.width as i64]))
        .collect()
}

impl<E: EnumerableEnv> Policy<E> for ExactPolicy<'_, E> {
    fn evaluate(
        &self,
        env: &E,
        states: &E::States,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        let indices = self.indices(&env.keys(states), |row| describe_state(env, states, row))?;
        let pf = if wants.has(Quantity::LogPf) { Some(self.forward(env, states, &indices)?) } else { None };
        let pb = if wants.has(Quantity::LogPb) {
            self.backward.evaluate(env, states, conditions, Quantities::PB)?.pb
        } else {
            None
        };
        let log_flow = || indices.iter().map(|&state| self.flows.log_flow[state]).collect::<Vec<_>>();
        let log_flow = wants.has(Quantity::LogFlow).then(|| Tensor::from_slice(&log_flow()));
        Ok(Evaluation { pf, pb, ..Evaluation::default() }.with(Quantity::LogFlow, log_flow))
    }

    fn log_z(&self, _: Option<&Tensor>, n: usize) -> Option<Tensor> {
        Some(Tensor::full([n as i64], self.flows.log_z, (Kind::Double, Device::Cpu)))
    }
}
