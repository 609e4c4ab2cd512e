//! Whether the members of a group evaluate the same policy on the same states.

use tch::Tensor;

use super::evaluate::forward_policy;
use super::flows::log_pb_of_moves;
use crate::distribution::GraphActionCategorical;
use crate::env::{Direction, EnumerableEnv, Moves, Rows, StateGraph};
use crate::group::hash;
use crate::metrics::Evaluator;
use crate::metrics::evaluator::{of_policy, of_tensor};
use crate::policy::Policy;
use crate::{Error, Result};

/// States at which all members evaluate their policies to compare them.
const COMPARED: usize = 32;

impl<E: EnumerableEnv> Evaluator<'_, E> {
    /// Compares the lists of states, the policies' parameters and what the policies say of some states: noise, and what is kept elsewhere
    /// than in parameters, shows there.
    pub(super) fn check_exact<P: Policy<E, Dist = GraphActionCategorical>>(
        &self,
        what: &'static str,
        graph: &StateGraph<E>,
        policy: &P,
        conditions: Option<&Tensor>,
    ) -> Result<()> {
        self.shares.check_alike(|| {
            let mut out = of_list(what, graph, conditions);
            out.push(("policy", of_policy(policy)));
            let pf = forward_policy(self.env, policy, &some_states(graph), conditions)?;
            out.push(("forward policy", of_numbers(pf.host_log_probs()?)));
            Ok(out)
        })
    }

    /// The same for a backward policy.
    pub(super) fn check_backward<P: Policy<E, Dist = GraphActionCategorical>>(
        &self,
        what: &'static str,
        graph: &StateGraph<E>,
        backward: &P,
        conditions: Option<&Tensor>,
    ) -> Result<()> {
        self.shares.check_alike(|| {
            let mut out = of_list(what, graph, conditions);
            out.push(("policy", of_policy(backward)));
            let states = some_states(graph);
            let moves = Moves::of(&self.env.masks(Direction::Forward, &states));
            let log_pb = log_pb_of_moves(self.env, backward, &states, &moves, conditions)?;
            out.push(("backward policy", of_numbers(&log_pb)));
            Ok(out)
        })
    }
}

/// Hashes of what is asked of which states.
pub(super) fn of_list<E: EnumerableEnv>(
    what: &'static str,
    graph: &StateGraph<E>,
    conditions: Option<&Tensor>,
) -> Vec<(&'static str, u64)> {
    let question = hash(what.bytes().map(u64::from));
    let states = hash([graph.len() as u64, graph.n_moves() as u64]);
    vec![("question", question), ("list of states", states), ("condition", conditions.map_or(0, of_tensor))]
}

/// States from all over the list.
fn some_states<E: EnumerableEnv>(graph: &StateGraph<E>) -> E::States {
    let rows: Vec<usize> = (0..graph.len()).step_by(graph.len().div_ceil(COMPARED).max(1)).collect();
    graph.states().select(&rows)
}

fn of_numbers(numbers: &[f64]) -> u64 {
    hash(numbers.iter().map(|number| number.to_bits()))
}

/// Checks that there is a number of each move of a chunk's states.
pub(super) fn check_moves<E: EnumerableEnv>(graph: &StateGraph<E>, chunk: usize, of_moves: &[f64]) -> Result<()> {
    let states = graph.chunk(chunk);
    let n = graph.first_move(states.end) - graph.first_move(states.start);
    match of_moves.len() == n {
        true => Ok(()),
        false => Err(Error::contract(
            "members of a group that share an evaluation evaluate the same",
            format!("{} moves of states {states:?} were evaluated, of {n}", of_moves.len()),
        )),
    }
}
