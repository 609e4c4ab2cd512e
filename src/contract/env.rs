//! The laws of environments, checked on states that random walks visit.

use std::collections::{HashMap, HashSet};

use super::moves::{Expansion, check_counts, check_shape};
use super::ways_back::Search;
use super::{Budget, Coverage};
use crate::env::{
    Direction, EnumerableEnv, Forms, Rows, dead_end, describe_state, instances_in_turn, random_moves,
};
use crate::{Error, Result, Rng};

/// The largest number of states that are checked in one batch.
pub(super) const BATCH: usize = 256;
/// The largest number of mask entries, summed over all states that the moves of one batch lead to.
const BATCH_ENTRIES: usize = 1 << 22;
/// The number of states of each batch whose masks are computed twice: in the batch, and for the state alone.
const N_ALONE: usize = 8;
/// The number of steps that random walks make even if the masks are so large that they exceed the budget.
const MIN_STEPS: usize = 2;
/// The number of states that are examined even if their masks are so large that they exceed the budget.
const MIN_STATES: usize = 8;

/// Checks the laws of an environment on the states that random walks visit. [`contract`](crate::contract)
/// lists the laws.
///
/// The random walks take the exit only if no other move is legal. The check also follows backward moves, from
/// the visited states and from all states that the backward moves lead to. If these are more than
/// [`Budget::followed`] states, random backward walks are sampled instead; [`Coverage`] reports which of the
/// two was done. Only the forward walks advance the random stream `rng`.
///
/// ```
/// use gfn::{contract::{Budget, WaysBack, check_env}, examples::Chain, Rng};
/// let coverage = check_env(&Chain::new(9), Budget::thorough().with_walks(20), &mut Rng::seeded(0))?;
/// assert_eq!((coverage.n_visited, coverage.ways_back), (9, WaysBack::All { states: 9 }));
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Contract`] with the name of the law and the state that breaks it; errors of the environment's
/// `step`, and of [`Budget::watch`].
pub fn check_env<E: EnumerableEnv>(env: &E, budget: Budget<'_>, rng: &mut Rng) -> Result<Coverage> {
    let visited = visited_states(env, &budget, rng)?;
    check_states(env, &select_examined(env, visited, &budget), &budget, rng)
}

/// Returns the distinct states that random walks visit, in the order in which they were first visited.
///
/// # Errors
/// [`Error::Contract`] for masks of a wrong shape, and for a random walk that visits a state twice.
pub(super) fn visited_states<E: EnumerableEnv>(
    env: &E,
    budget: &Budget<'_>,
    rng: &mut Rng,
) -> Result<E::States> {
    let mut visited = env.initial(&[]);
    let mut places: HashMap<E::Key, usize> = HashMap::new();
    // All pairs of the index of a walk and the index of a state that this walk has visited.
    let mut passed: HashSet<(usize, usize)> = HashSet::new();
    let mut states = env.initial(&instances_in_turn(env, budget.walks.max(1)));
    let mut walks: Vec<usize> = (0..states.len()).collect();
    let mut entries = 0;
    for step in 0.. {
        let mut new = Vec::new();
        for (row, key) in env.keys(&states).into_iter().enumerate() {
            let next = places.len();
            let place = *places.entry(key).or_insert(next);
            if place == next {
                new.push(row);
            }
            if !passed.insert((walks[row], place)) {
                let detail = format!("a trajectory returns to {}", describe_state(env, &states, row));
                return Err(Error::contract(
                    "no sequence of forward moves leads back to a state that it has left",
                    detail,
                ));
            }
        }
        visited.append(states.select(&new));
        let masks = env.masks(Direction::Forward, &states);
        check_shape(&masks, states.len(), Direction::Forward)?;
        entries += masks.legal.len();
        let (going, moves) = random_moves(&masks, rng);
        let is_spent = step == budget.steps || step >= MIN_STEPS && entries > budget.entries;
        if going.is_empty() || is_spent {
            break;
        }
        states = states.select(&going);
        walks = going.iter().map(|&row| walks[row]).collect();
        env.step(Direction::Forward, &mut states, &moves)?;
    }
    Ok(visited)
}

/// Returns as many of the visited states as the budget allows, evenly spaced from the first to the last.
pub(super) fn select_examined<E: EnumerableEnv>(
    env: &E,
    visited: E::States,
    budget: &Budget<'_>,
) -> E::States {
    let last = visited.len() - 1;
    let slots = env.masks(Direction::Forward, &visited.select(&[last])).legal.len().max(1);
    let affordable = (budget.entries / slots).max(MIN_STATES);
    let n = visited.len().min(budget.states).min(affordable);
    let spread: Vec<usize> = (0..n).map(|k| k * last / n.saturating_sub(1).max(1)).collect();
    visited.select(&spread)
}

/// Checks the laws of environments in these states. Also checks that their backward moves lead to the initial
/// state: follows and checks all backward moves or, if the budget doesn't allow this, samples backward walks.
pub(super) fn check_states<E: EnumerableEnv>(
    env: &E,
    states: &E::States,
    budget: &Budget<'_>,
    rng: &Rng,
) -> Result<Coverage> {
    let mut search = Search::new(env, states.clone());
    for rows in batches(env, states, budget.moves) {
        budget.call_watch()?;
        let states = states.select(&rows);
        let forward = Expansion::new(env, &states, Direction::Forward, budget)?;
        let backward = Expansion::new(env, &states, Direction::Backward, budget)?;
        check_masks(&forward, &backward)?;
        forward.check_forward(budget)?;
        backward.check_backward()?;
        check_counts(&forward, budget)?;
        if budget.is_complete() {
            check_forms(env, &states)?;
        }
        search.add(&backward);
    }
    // Backward walks use a separate random stream, so that the caller's stream doesn't depend on the number
    // of these walks.
    let ways_back = search.finish(env, budget, &mut rng.clone().split())?;
    Ok(Coverage { n_visited: states.len(), ways_back })
}

/// Divides the indices of the states, in order, into batches. The batches are so small that the states to
/// which a batch's moves lead have at most `BATCH_ENTRIES` mask entries in total.
pub(super) fn batches<E: EnumerableEnv>(env: &E, states: &E::States, max_moves: usize) -> Vec<Vec<usize>> {
    let mut out = Vec::new();
    for start in (0..states.len()).step_by(BATCH) {
        let rows: Vec<usize> = (start..states.len().min(start + BATCH)).collect();
        let states = states.select(&rows);
        let masks = [Direction::Forward, Direction::Backward].map(|direction| env.masks(direction, &states));
        let mut most = 1;
        for row in 0..rows.len() {
            let slots: usize = masks.iter().map(|masks| masks.row(row).len()).sum();
            let moves: usize = masks.iter().map(|masks| masks.n_legal(row).min(max_moves)).sum();
            most = most.max(slots * moves);
        }
        out.extend(rows.chunks((BATCH_ENTRIES / most).clamp(1, BATCH)).map(<[usize]>::to_vec));
    }
    out
}

fn check_masks<E: EnumerableEnv>(forward: &Expansion<'_, E>, backward: &Expansion<'_, E>) -> Result<()> {
    let env = forward.env;
    let states = forward.states;
    let keys = &forward.keys;
    let initial_keys = env.keys(&env.initial(&env.instances(states)));
    let is_initial = env.is_initial(states);
    let exits = env.exit_actions(states);
    for row in 0..states.len() {
        let require = |holds: bool, law| {
            if holds { Ok(()) } else { Err(Error::contract(law, describe_state(env, states, row))) }
        };
        let is_first = is_initial[row];
        require(
            is_first == (initial_keys[row] == keys[row]),
            "`is_initial` is true of the initial state and of no other",
        )?;
        let law = "every state but the initial state has a legal backward move, and the initial state has \
            none";
        require(is_first == (backward.masks.n_legal(row) == 0), law)?;
        if exits.is_some() && forward.masks.n_legal(row) == 0 {
            return Err(dead_end(env, states, row));
        }
    }
    for (k, &row) in forward.rows.iter().enumerate() {
        let is_named =
            !forward.exit[k] || exits.as_ref().is_some_and(|slots| slots.0[row] == forward.slots.0[k]);
        forward.require(
            is_named,
            k,
            "`exit_actions` returns the slot of the exit, which is the last forward slot",
        )?;
    }
    let n = states.len();
    let reversed: Vec<usize> = (0..n).rev().collect();
    let alone = (0..n.min(N_ALONE)).map(|row| vec![row]);
    for rows in alone.chain([reversed]) {
        for expansion in [forward, backward] {
            let direction = expansion.masks.direction;
            let again = env.masks(direction, &states.select(&rows));
            check_shape(&again, rows.len(), direction)?;
            if let Some(k) = (0..rows.len()).find(|&k| again.row(k) != expansion.masks.row(rows[k])) {
                let detail = format!(
                    "the {direction} mask differs in another batch for {}",
                    describe_state(env, states, rows[k])
                );
                let law = "the masks of a state don't depend on the other states of its batch";
                return Err(Error::contract(law, detail));
            }
        }
    }
    Ok(())
}

/// Checks `forms`, which lists all states that are the same object as a state: their number equals the
/// state's multiplicity, no state is listed twice, the state itself is listed, and all listed states have the
/// same multiplicity.
fn check_forms<E: EnumerableEnv>(env: &E, states: &E::States) -> Result<()> {
    let fail = |row, what| {
        let law = "`log_multiplicity` is the log of the number of `forms`: different states that include the \
            state itself";
        Err(Error::contract(law, format!("{} {what}", describe_state(env, states, row))))
    };
    let logs = env.symmetry().log_multiplicity(states)?.unwrap_or_else(|| vec![0.0; states.len()]);
    let Some(Forms { states: forms, offsets }) = env.symmetry().forms(states)? else {
        return match logs.iter().position(|log| *log != 0.0) {
            None => Ok(()),
            Some(row) => fail(row, "has a multiplicity above 1, and `forms` lists only the state itself"),
        };
    };
    let state_keys = env.keys(states);
    let form_keys = env.keys(&forms);
    let form_logs = env.symmetry().log_multiplicity(&forms)?.unwrap_or_else(|| vec![0.0; forms.len()]);
    for (row, ends) in offsets.windows(2).enumerate() {
        let range = ends[0]..ends[1];
        let log_n = (range.len() as f64).ln();
        let mut counts = form_logs[range.clone()].iter().chain([&logs[row]]);
        if counts.any(|log| (log - log_n).abs() > 1e-9) {
            return fail(
                row,
                "has a number of `forms` that differs from its `log_multiplicity` or from the one of a form",
            );
        }
        let distinct: HashSet<&E::Key> = form_keys[range.clone()].iter().collect();
        if distinct.len() != range.len() || !distinct.contains(&state_keys[row]) {
            return fail(row, "isn't among its `forms`, or `forms` lists a state twice");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{ActionSet, AddEdge, Free, GraphEnv, GraphKind, GraphState, GraphStates, Semantics};

    /// Checks that batches shrink for states with many moves. Batches of a fixed number of states took 16 GB
    /// for graphs of 40 nodes, because each of 780 moves leads to a state with 781 slots.
    #[test]
    fn batches_hold_no_more_than_their_moves_leave_room_for() {
        let batches_of = |n: usize| {
            let kind = GraphKind::Undirected;
            let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
            let initial = GraphState::with_nodes(kind, n);
            let env = GraphEnv::new(Free, actions, initial.clone()).unwrap();
            batches(&env, &GraphStates::from(vec![initial; 300]), usize::MAX)
        };
        // States with few moves fill batches up to the limit of 256 states.
        assert_eq!(batches_of(4).iter().map(Vec::len).collect::<Vec<_>>(), [256, 44]);
        // Each graph of 40 nodes has 780 moves, each of which leads to a state with 781 slots, so a batch
        // holds at most 6 graphs.
        let few = batches_of(40);
        assert!(few.iter().all(|rows| (1..=6).contains(&rows.len())));
        assert_eq!(few.concat(), (0..300).collect::<Vec<_>>());
        // A single state whose children exceed the limit of mask entries still gets a batch.
        assert_eq!(batches_of(70)[..2], [[0], [1]]);
    }
}
