//! Random walks without a policy, for checks, and what checks say about states and moves.

use super::{Masks, Rows, Slots};
use crate::env::{Direction, EnumerableEnv};
use crate::{Error, Result, Rng};

/// One uniformly drawn legal move other than the exit for each state that has any: the rows of these states, and the slots.
pub(crate) fn random_moves(masks: &Masks, rng: &mut Rng) -> (Vec<usize>, Slots) {
    let (mut rows, mut slots) = (Vec::new(), Vec::new());
    for row in 0..masks.len() {
        let options: Vec<u32> = masks.legal_slots(row).filter(|&slot| !masks.is_exit(row, slot)).collect();
        if !options.is_empty() {
            rows.push(row);
            slots.push(options[rng.below(options.len())]);
        }
    }
    (rows, Slots(slots))
}

/// Walks back at random from each of these states, until all have come to the initial one.
///
/// # Errors
/// [`Error::Contract`] for a way that ends elsewhere, [`Error::StepLimit`] for one that doesn't end within `max_steps`.
pub(crate) fn walk_back<E: EnumerableEnv>(
    env: &E,
    mut states: E::States,
    max_steps: usize,
    rng: &mut Rng,
) -> Result<()> {
    let n = states.len();
    // Where each of the states was reached from, and by which move.
    let mut last: Option<(E::States, Slots)> = None;
    for _ in 0..max_steps {
        let initial = env.is_initial(&states);
        let live: Vec<usize> = (0..states.len()).filter(|&row| !initial[row]).collect();
        if live.is_empty() {
            return Ok(());
        }
        states = states.select(&live);
        let (rows, slots) = random_moves(&env.masks(Direction::Backward, &states), rng);
        if let Some(row) = (0..states.len()).find(|&row| rows.get(row) != Some(&row)) {
            let dead = describe_state(env, &states, row);
            let from = last.as_ref().map(|(children, slots)| (children, live[row], slots.0[live[row]]));
            return Err(no_way_back(env, from, &dead, "which isn't the initial state and has no legal backward move"));
        }
        let children = states.clone();
        env.step(Direction::Backward, &mut states, &slots)?;
        last = Some((children, slots));
    }
    let live = env.is_initial(&states).iter().filter(|initial| !**initial).count();
    match live {
        0 => Ok(()),
        _ => Err(Error::StepLimit { direction: Direction::Backward, limit: max_steps, live, n }),
    }
}

/// What is broken where a way back doesn't end in the initial state: by a move of a state (`from`: states, row, slot), if any.
pub(crate) fn no_way_back<E: EnumerableEnv>(
    env: &E,
    from: Option<(&E::States, usize, u32)>,
    parent: &str,
    why: &str,
) -> Error {
    let to = match from {
        Some((states, row, slot)) => {
            format!("{} leads to {parent}", describe_move(env, Direction::Backward, states, row, slot))
        }
        None => format!("forward moves lead to {parent}"),
    };
    Error::contract(
        "every state that a legal backward move leads to has itself a way back to the initial state",
        format!("{to}, {why}; {KEEP_BACK}"),
    )
}

/// What to do about a backward move that leads to where no forward move does.
pub(crate) const KEEP_BACK: &str = "what P_B gives to such a move is lost, and the trained distribution is wrong by it: leave the \
     move out of the backward masks (graphs whose backward moves are derived: let `is_reachable` be false of what no forward move \
     builds; by type: use action types that keep to it, such as `AddEdge::keeping_connected`)";

/// A state in words: as its batch describes it, or else its key.
pub(crate) fn describe_state<E: EnumerableEnv>(env: &E, states: &E::States, row: usize) -> String {
    states.describe(row).unwrap_or_else(|| format!("{:?}", env.keys(&states.select(&[row]))[0]))
}

/// A move and its state in words.
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
