//! Descriptions of states, moves and dead ends, for error messages.

use crate::Error;
use crate::env::{Direction, EnumerableEnv, Rows};

/// The remedy for a backward move to a state from which no forward move leads back.
pub(crate) const KEEP_BACK: &str = "the probability that P_B gives to such a move is lost, so the trained \
    distribution is wrong: leave the move out of the backward masks (if the backward moves of graphs are \
    derived, let `is_reachable` return false for graphs that no forward move builds; if they are masked by \
    type, use action types that never lead to such graphs, such as `AddEdge::keeping_connected`)";

/// Describes a state in words, or by its key if the environment has no words for the state
/// ([`Env::describe_state`](crate::env::Env::describe_state)).
pub(crate) fn describe_state<E: EnumerableEnv>(env: &E, states: &E::States, row: usize) -> String {
    env.describe_state(states, row).unwrap_or_else(|| format!("{:?}", env.keys(&states.select(&[row]))[0]))
}

/// Returns the error for an unfinished state that has neither a legal move nor the exit.
pub(crate) fn dead_end<E: EnumerableEnv>(env: &E, states: &E::States, row: usize) -> Error {
    let rule = "an unfinished state has a legal move, or the exit (allow one of them, or forbid the moves \
        that lead to the state)";
    let state = describe_state(env, states, row);
    if env.masks(Direction::Forward, &states.select(&[row])).n_legal(0) > 0 {
        let rule = "the masks of a state don't depend on the other states of its batch";
        return Error::contract(
            rule,
            format!(
                "{state} has a legal move or the exit if it is alone in a batch, but none in a larger batch"
            ),
        );
    }
    Error::contract(
        rule,
        format!(
            "the rules leave `{state}` without any move and without the exit: it has no legal forward action"
        ),
    )
}

/// Describes a move in words, together with the state in which it is made.
pub(crate) fn describe_move<E: EnumerableEnv>(
    env: &E,
    direction: Direction,
    states: &E::States,
    row: usize,
    slot: u32,
) -> String {
    let words = env.describe(direction, states, row, slot);
    format!("{direction} slot {slot} ({words}) of {}", describe_state(env, states, row))
}
