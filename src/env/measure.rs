//! The division of rewards: if several states are the same object, each has a share of the reward of the
//! object.

use super::{CHUNK, EnumerableEnv, Env, Grouping, Rows, StateGraph, describe_state};
use crate::{Error, Result};

/// The forms of some states. The forms of a state are all states that are the same object
/// ([`Symmetry::forms`](crate::env::Symmetry::forms)).
#[derive(Clone, Debug)]
pub struct Forms<S> {
    /// The forms (states that are the same object) of the first state, then those of the second, and so on.
    pub states: S,
    /// The index in `states` of the first form of each state, followed by the number of all forms.
    pub offsets: Vec<usize>,
}

/// Returns the log-rewards that training uses for these states. R of an object is divided equally among its
/// states, and multiplied by |Aut|, the number of automorphisms, if states are isomorphism classes. Both
/// corrections are made here, so rewards don't make them. With `log_rewards` of 0 the result is the
/// correction alone.
///
/// # Errors
/// The errors of [`Symmetry::log_multiplicity`](super::Symmetry::log_multiplicity) and
/// [`Symmetry::log_symmetry`](super::Symmetry::log_symmetry).
pub fn training_log_rewards<E: Env>(
    env: &E,
    states: &E::States,
    mut log_rewards: Vec<f64>,
) -> Result<Vec<f64>> {
    if let Some(several) = env.symmetry().log_multiplicity(states)? {
        for (log_reward, log_n) in log_rewards.iter_mut().zip(several) {
            *log_reward -= log_n;
        }
    }
    if let Some(symmetry) = env.symmetry().log_symmetry(states)? {
        for (log_reward, log_aut) in log_rewards.iter_mut().zip(symmetry) {
            *log_reward += log_aut;
        }
    }
    Ok(log_rewards)
}

/// Returns, for each listed state, the log of the number of states that are the same object, and 0 for states
/// in which no trajectory ends. Returns `None` if each state is a different object.
pub(super) fn count_forms<E: EnumerableEnv>(env: &E, graph: &StateGraph<E>) -> Result<Option<Vec<f64>>> {
    let mut found = None;
    for ends in graph.ends().chunks(CHUNK) {
        if let Some(logs) = env.symmetry().log_multiplicity(&graph.states().select(ends))? {
            let found = found.get_or_insert_with(|| vec![0.0; graph.len()]);
            for (&state, log) in ends.iter().zip(&logs) {
                found[state] = *log;
            }
            let several = ends.iter().zip(&logs).filter(|(_, log)| **log != 0.0).map(|(&state, _)| state);
            check_forms(env, graph, &several.collect::<Vec<_>>())?;
        }
    }
    Ok(found)
}

/// Checks that all forms of these states (the states that are the same object) are listed. If a form weren't
/// listed, its share of the object's reward would be lost.
fn check_forms<E: EnumerableEnv>(env: &E, graph: &StateGraph<E>, several: &[usize]) -> Result<()> {
    let states = graph.states().select(several);
    let Some(Forms { states: forms, .. }) = env.symmetry().forms(&states)? else { return Ok(()) };
    match graph.indices(env, &forms).iter().position(Option::is_none) {
        None => Ok(()),
        Some(row) => Err(Error::contract(
            "trajectories lead to each form of a state (`Symmetry::forms`), because each form has a share of \
             the reward",
            format!(
                "{} is listed as a form, but no trajectory leads to it",
                describe_state(env, &forms, row)
            ),
        )),
    }
}

/// Implements the default of [`EnumerableEnv::objects`].
pub(super) fn objects<E: EnumerableEnv + ?Sized>(env: &E, states: &E::States) -> Result<Grouping> {
    let rows: Vec<usize> = (0..states.len()).collect();
    let mut keys: Vec<E::Key> = Vec::with_capacity(states.len());
    for rows in rows.chunks(CHUNK) {
        let some = states.select(rows);
        match env.symmetry().forms(&some)? {
            None => keys.extend(env.keys(&some)),
            // All states of an object (its forms) must get the same key, so the smallest of their keys
            // identifies the object.
            Some(Forms { states, offsets }) => {
                let of_forms = env.keys(&states);
                keys.extend(
                    offsets.windows(2).filter_map(|ends| of_forms[ends[0]..ends[1]].iter().min().cloned()),
                );
            }
        }
    }
    Ok(Grouping::by_key(keys))
}
