//! The flows that a reward and a backward policy imply.

use tch::Tensor;

use super::state_graph::{EXIT, StateGraph};
use super::{CHUNK, Moves, backward_log_probs, log_sum_exp};
use crate::dist::GraphActionCategorical;
use crate::env::{Direction, EnumerableEnv, Reward, Rows, Slots};
use crate::policy::Policy;
use crate::{Error, Result};

/// log F of every state, for one reward and one backward policy.
#[derive(Clone, Debug, PartialEq)]
pub struct ExactFlows {
    /// log F by state index; minus infinity for states from which no trajectory can end.
    pub log_flow: Vec<f64>,
    /// log R of each state as it is trained on, corrected for symmetry; minus infinity where no trajectory ends.
    pub log_rewards: Vec<f64>,
    /// log Z = log F(s0).
    pub log_z: f64,
}

impl<E: EnumerableEnv> StateGraph<E> {
    /// The flows of a reward under a backward policy (any policy's P_B; `UniformPolicy`'s is uniform).
    ///
    /// `F(s) = R(s) [s can end] + sum over legal moves s -> s' of F(s') P_B(s | s')`, from the last state to the first.
    /// Up to isomorphism R is the reward that is trained on, |Aut(s)| R(s), and the sum is over moves, not classes, with the
    /// P_B of the very state that the move leads to: `log_z` is again that of the raw reward.
    ///
    /// # Errors
    /// Those of reward and policy; [`Error::IllegalAction`] if a move's reverse isn't legal.
    pub fn exact_flows<P: Policy<E, Dist = GraphActionCategorical>, R: Reward<E::States> + ?Sized>(
        &self,
        env: &E,
        backward: &P,
        reward: &R,
        conditions: Option<&Tensor>,
    ) -> Result<ExactFlows> {
        let mut log_rewards = self.target_distribution(reward, conditions)?.log_rewards;
        for ends in self.ends().chunks(CHUNK) {
            if let Some(symmetry) = env.log_symmetry(&self.states().select(ends))? {
                ends.iter().zip(symmetry).for_each(|(&state, value)| log_rewards[state] += value);
            }
        }
        let mut log_flow = log_rewards.clone();
        for (range, states) in self.chunks().rev() {
            let moves = Moves::of(&env.masks(Direction::Forward, &states));
            if moves.rows.len() != self.first_move(range.end) - self.first_move(range.start) {
                return Err(Error::Contract {
                    check: "the environment is the one that was enumerated",
                    detail: format!("states {range:?} have other legal moves now"),
                });
            }
            let log_pb = log_pb_of_moves(env, backward, &states, &moves, conditions)?;
            for state in range.clone().rev() {
                let shift = self.first_move(state) - self.first_move(range.start);
                let inner = self.raw_children(state).iter().enumerate().filter(|(_, child)| **child != EXIT);
                let flows = inner.map(|(k, &child)| log_flow[child as usize] + log_pb[shift + k]);
                log_flow[state] = log_sum_exp(flows.chain([log_flow[state]]));
            }
        }
        Ok(ExactFlows { log_z: log_flow[0], log_flow, log_rewards })
    }
}

/// log P_B of undoing each of these moves, in the very state that it leads to; 0 for exits.
pub(super) fn log_pb_of_moves<E: EnumerableEnv, P: Policy<E, Dist = GraphActionCategorical>>(
    env: &E,
    backward: &P,
    states: &E::States,
    moves: &Moves,
    conditions: Option<&Tensor>,
) -> Result<Vec<f64>> {
    let mut out = vec![0.0; moves.rows.len()];
    for inner in moves.inner().chunks(CHUNK) {
        let mut children = states.select(&inner.iter().map(|&k| moves.rows[k]).collect::<Vec<_>>());
        let slots = Slots(inner.iter().map(|&k| moves.slots[k]).collect());
        let step = env.step(Direction::Forward, &mut children, &slots)?;
        let log_pb = backward_log_probs(env, backward, &children, &step.reverse.0, conditions)?;
        inner.iter().zip(log_pb).for_each(|(&k, value)| out[k] = value);
    }
    Ok(out)
}
