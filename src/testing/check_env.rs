//! Steps, reverses and masks of an environment agree with each other.

use std::collections::{HashMap, HashSet};

use super::Coverage;
use super::ways_back::Followed;
use crate::env::{
    Direction, EnumerableEnv, Forms, Masks, Moves, Rows, Slots, Step, Steps, check_counts, dead_end, describe_move,
    describe_state, instances_in_turn, random_moves,
};
use crate::testing::broken;
use crate::{Result, Rng};

/// States that are checked at once, at most.
pub(super) const BATCH: usize = 256;
/// Entries of the masks of what all their moves lead to, at most: it grows with the square of a state's moves.
const ENTRIES: usize = 1 << 22;
/// States of each batch whose masks are also asked for one at a time.
const ALONE: usize = 8;

/// Checks the contract of an environment on every state that `n` random walks visit.
///
/// - Masks have the shape that they claim, don't depend on a state's batch mates, and leave every unfinished state a way on and
///   every state but the initial one a way back.
/// - Every legal forward move names a legal reverse that leads back, and whose own reverse is the move (up to isomorphism:
///   leads to the same class).
/// - Every legal backward move leads to a state in which its reverse is legal and leads back.
/// - Every way back ends in the initial state: backward moves are followed from the visited states, and from all that they lead to.
///   Beyond 5,000 states four ways back are drawn at random from each visited state instead, which the [`Coverage`] says.
/// - No walk comes round, and no moves back from what was followed do.
/// - `done`, `exit`, `is_initial`, `exit_actions` and `child_keys` tell the truth.
/// - Between two states there are as many moves forward as backward; up to isomorphism
///   `N_forward |Aut(child)| = N_backward |Aut(parent)|`.
/// - The states that are one object are as many as their measure says, different, and the same whichever of them is asked about.
///
/// The walks take the exit only where nothing else is legal.
///
/// ```
/// use gfn::{testing::{check_env, Chain, WaysBack}, Rng};
/// let coverage = check_env(&Chain::new(9), 20, &mut Rng::seeded(0))?;
/// assert_eq!((coverage.visited, coverage.ways_back), (9, WaysBack::All { states: 9 }));
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Contract`](crate::Error::Contract) naming the check and the state; whatever `step` fails with.
pub fn check_env<E: EnumerableEnv>(env: &E, n: usize, rng: &mut Rng) -> Result<Coverage> {
    check_env_watched(env, n, rng, &mut || Ok(()))
}

/// Same as [`check_env`], with a function that is called after every few hundred states: it ends the check by an error (because a user
/// asks for it, say).
///
/// # Errors
/// As for [`check_env`]; those of `watch`.
pub fn check_env_watched<E: EnumerableEnv>(
    env: &E,
    n: usize,
    rng: &mut Rng,
    watch: &mut dyn FnMut() -> Result<()>,
) -> Result<Coverage> {
    let visited = visited_states(env, n, rng)?;
    let mut followed = Followed::new(env, visited.clone());
    for start in (0..visited.len()).step_by(BATCH) {
        let some = visited.select(&(start..visited.len().min(start + BATCH)).collect::<Vec<_>>());
        for rows in batches(env, &some, &[Direction::Forward, Direction::Backward]) {
            watch()?;
            let states = some.select(&rows);
            let forward = Expansion::of(env, &states, Direction::Forward)?;
            let backward = Expansion::of(env, &states, Direction::Backward)?;
            check_masks(env, &states, &forward, &backward)?;
            check_forward(env, &states, &forward)?;
            check_backward(env, &states, &backward)?;
            check_counts(env, &states, usize::MAX)?;
            check_forms(env, &states)?;
            followed.add(&states, &backward);
        }
    }
    // A stream of its own, so that the caller's goes on the same however many ways there are.
    let ways_back = followed.finish(env, &mut rng.clone().split(), watch)?;
    Ok(Coverage { visited: visited.len(), ways_back })
}

/// Rows in turn, as many at once as their expansions in these directions leave room for.
pub(super) fn batches<E: EnumerableEnv>(env: &E, states: &E::States, directions: &[Direction]) -> Vec<Vec<usize>> {
    let mut out: Vec<Vec<usize>> = Vec::new();
    let mut entries = ENTRIES;
    for start in (0..states.len()).step_by(BATCH) {
        let rows: Vec<usize> = (start..states.len().min(start + BATCH)).collect();
        let states = states.select(&rows);
        let masks = [Direction::Forward, Direction::Backward].map(|direction| env.masks(direction, &states));
        for (k, row) in rows.into_iter().enumerate() {
            let slots: usize = masks.iter().map(|masks| masks.row(k).len()).sum();
            let asked = masks.iter().filter(|masks| directions.contains(&masks.direction));
            let own = slots * asked.map(|masks| masks.n_legal(k)).sum::<usize>();
            match out.last_mut() {
                Some(batch) if batch.len() < BATCH && entries + own <= ENTRIES => batch.push(row),
                _ => {
                    entries = 0;
                    out.push(vec![row]);
                }
            }
            entries += own;
        }
    }
    out
}

/// The initial states of the first `n` instances.
fn starts<E: EnumerableEnv>(env: &E, n: usize) -> E::States {
    env.initial(&instances_in_turn(env, (env.n_instances() as usize).clamp(1, n.max(1))))
}

/// Distinct states that random walks visit, the initial ones first.
pub(super) fn visited_states<E: EnumerableEnv>(env: &E, n: usize, rng: &mut Rng) -> Result<E::States> {
    let mut visited = starts(env, n);
    let mut known: HashMap<E::Key, usize> = env.keys(&visited).into_iter().zip(0..).collect();
    let mut states = env.initial(&instances_in_turn(env, n));
    // The states of each walk: one that came round would have no end.
    let mut walks: Vec<usize> = (0..n).collect();
    let mut seen: HashSet<(usize, usize)> =
        env.keys(&states).iter().zip(&walks).filter_map(|(key, &walk)| Some((walk, *known.get(key)?))).collect();
    loop {
        let masks = env.masks(Direction::Forward, &states);
        check_shape(&masks, states.len(), Direction::Forward)?;
        let (going, slots) = random_moves(&masks, rng);
        if going.is_empty() {
            return Ok(visited);
        }
        states = states.select(&going);
        walks = going.iter().map(|&row| walks[row]).collect();
        env.step(Direction::Forward, &mut states, &slots)?;
        let mut new = Vec::new();
        for (row, key) in env.keys(&states).into_iter().enumerate() {
            let next = known.len();
            let place = *known.entry(key).or_insert(next);
            if place == next {
                new.push(row);
            }
            if !seen.insert((walks[row], place)) {
                let detail = format!("a walk comes round to {}", describe_state(env, &states, row));
                return Err(broken("no sequence of forward moves leads back to where it was", detail));
            }
        }
        visited.append(states.select(&new));
    }
}

/// Every legal move of some states in a direction, and what it did.
pub(super) struct Expansion<E: EnumerableEnv> {
    pub(super) masks: Masks,
    /// The state of each move.
    pub(super) rows: Vec<usize>,
    pub(super) slots: Vec<u32>,
    /// `true` if the move is the exit, as the masks have it.
    exit: Vec<bool>,
    /// Where each move led to.
    pub(super) after: E::States,
    step: Step<Slots>,
    pub(super) keys_after: Vec<E::Key>,
    /// The masks of the other direction where the move led to.
    masks_after: Masks,
}

impl<E: EnumerableEnv> Expansion<E> {
    pub(super) fn of(env: &E, states: &E::States, direction: Direction) -> Result<Self> {
        let masks = env.masks(direction, states);
        check_shape(&masks, states.len(), direction)?;
        let Moves { rows, slots, exit } = Moves::of(&masks);
        let slots = Slots(slots);
        let mut after = states.select(&rows);
        let step = env.step(direction, &mut after, &slots)?;
        let n = rows.len();
        if [after.len(), step.reverse.len(), step.exit.len(), step.done.len()] != [n; 4] {
            let detail = format!("a {direction} step of {n} rows");
            return Err(broken("a step answers for each row of its batch", detail));
        }
        let masks_after = env.masks(direction.opposite(), &after);
        check_shape(&masks_after, n, direction.opposite())?;
        Ok(Self { masks, rows, slots: slots.0, exit, keys_after: env.keys(&after), after, step, masks_after })
    }

    fn broken(&self, env: &E, states: &E::States, k: usize, check: &'static str) -> crate::Error {
        let step = describe_move(env, self.masks.direction, states, self.rows[k], self.slots[k]);
        broken(check, format!("{step}, which leads to {}", describe_state(env, &self.after, k)))
    }
}

fn check_shape(masks: &Masks, n: usize, direction: Direction) -> Result<()> {
    let slots = |row: usize| -> usize {
        masks.blocks.iter().map(|block| (block.row_ptr[row + 1] - block.row_ptr[row]) * block.width).sum()
    };
    let whole = masks.direction == direction
        && masks.slot_ptr.len() == n + 1
        && masks.slot_ptr.first() == Some(&0)
        && masks.slot_ptr.last() == Some(&masks.legal.len())
        && masks.blocks.iter().all(|block| block.row_ptr.len() == n + 1 && block.row_ptr[0] == 0)
        && !(masks.has_exit && direction == Direction::Backward)
        && (0..n).all(|row| masks.slot_ptr[row + 1] == masks.slot_ptr[row] + slots(row));
    if whole {
        return Ok(());
    }
    let detail = format!(
        "{direction} masks of {n} states: {} offsets, {} slots, direction {}, exit {}",
        masks.slot_ptr.len(),
        masks.legal.len(),
        masks.direction,
        masks.has_exit
    );
    Err(broken("masks hold one entry per slot of each block of each state, in the direction asked for", detail))
}

fn check_masks<E: EnumerableEnv>(
    env: &E,
    states: &E::States,
    forward: &Expansion<E>,
    backward: &Expansion<E>,
) -> Result<()> {
    let keys = env.keys(states);
    let initial_keys = env.keys(&starts(env, states.len()));
    let is_initial = env.is_initial(states);
    let exits = env.exit_actions(states);
    for (row, key) in keys.iter().enumerate() {
        let at = || describe_state(env, states, row);
        if is_initial[row] != initial_keys.contains(key) {
            return Err(broken("`is_initial` says which states are the initial one", at()));
        }
        if is_initial[row] != (backward.masks.n_legal(row) == 0) {
            return Err(broken(
                "every state but the initial one has a legal backward move, and that one has none",
                at(),
            ));
        }
        if exits.is_some() && forward.masks.n_legal(row) == 0 {
            return Err(dead_end(env, states, row));
        }
    }
    for (k, &row) in forward.rows.iter().enumerate().filter(|(k, _)| forward.exit[*k]) {
        if exits.as_ref().map(|slots| slots.0[row]) != Some(forward.slots[k]) {
            return Err(forward.broken(env, states, k, "`exit_actions` names the exit, the last forward slot"));
        }
    }
    let n = states.len();
    let reversed: Vec<usize> = (0..n).rev().collect();
    let alone = (0..n.min(ALONE)).map(|row| vec![row]);
    for rows in alone.chain([reversed]) {
        for expansion in [forward, backward] {
            let direction = expansion.masks.direction;
            let again = env.masks(direction, &states.select(&rows));
            check_shape(&again, rows.len(), direction)?;
            if let Some(k) = (0..rows.len()).find(|&k| again.row(k) != expansion.masks.row(rows[k])) {
                let detail = format!("{direction} masks of {}", describe_state(env, states, rows[k]));
                return Err(broken("the masks of a state don't depend on the other states of its batch", detail));
            }
        }
    }
    Ok(())
}

fn check_forward<E: EnumerableEnv>(env: &E, states: &E::States, forward: &Expansion<E>) -> Result<()> {
    let keys = env.keys(states);
    for (k, &row) in forward.rows.iter().enumerate() {
        let fail = |check| Err(forward.broken(env, states, k, check));
        if forward.step.exit[k] != forward.exit[k] {
            return fail("`step` reports as an exit what the masks have as the exit slot");
        }
        if forward.exit[k] && (forward.keys_after[k] != keys[row] || !forward.step.done[k]) {
            return fail("the exit leaves the state as it is, and is done");
        }
        if !forward.exit[k] && forward.keys_after[k] == keys[row] {
            return fail("a move other than the exit changes the state");
        }
    }
    let inner: Vec<usize> = (0..forward.rows.len()).filter(|&k| !forward.exit[k]).collect();
    let rows: Vec<usize> = inner.iter().map(|&k| forward.rows[k]).collect();
    let steps = Steps::<E> {
        before: states.select(&rows),
        slots: Slots(inner.iter().map(|&k| forward.slots[k]).collect()),
        reverse: forward.step.reverse.select(&inner),
        done: inner.iter().map(|&k| forward.step.done[k]).collect(),
        after: forward.after.select(&inner),
    };
    if let Some((k, check)) = steps.first_broken(env)? {
        return Err(forward.broken(env, states, inner[k], check));
    }
    let child_keys = env.child_keys(states, &rows, &steps.slots)?;
    match (0..inner.len()).find(|&k| child_keys.get(k) != Some(&forward.keys_after[inner[k]])) {
        None => Ok(()),
        Some(k) => {
            let check = "`child_keys` gives the key of the state that `step` leads to";
            Err(forward.broken(env, states, inner[k], check))
        }
    }
}

pub(super) fn check_backward<E: EnumerableEnv>(env: &E, states: &E::States, backward: &Expansion<E>) -> Result<()> {
    let keys = env.keys(states);
    let is_initial = env.is_initial(&backward.after);
    for (k, &is_initial) in is_initial.iter().enumerate() {
        let fail = |check| Err(backward.broken(env, states, k, check));
        let redo = backward.step.reverse.0[k];
        if backward.masks_after.row(k).get(redo as usize) != Some(&true) || backward.masks_after.is_exit(k, redo) {
            return fail("the reverse of a legal backward move is a legal forward move of the parent");
        }
        if backward.step.done[k] != is_initial {
            return fail("a backward step is done at the initial state and nowhere else");
        }
    }
    let mut again = backward.after.clone();
    env.step(Direction::Forward, &mut again, &backward.step.reverse)?;
    let again = env.keys(&again);
    match (0..again.len()).find(|&k| again[k] != keys[backward.rows[k]]) {
        None => Ok(()),
        Some(k) => Err(backward.broken(env, states, k, "redoing a backward move restores the state")),
    }
}

/// The states that are one object: as many as the measure says, each once, and the same for all of them.
fn check_forms<E: EnumerableEnv>(env: &E, states: &E::States) -> Result<()> {
    let fail = |row, what| Err(miscounted(env, states, row, what));
    let logs = env.symmetry().log_multiplicity(states)?;
    let Some(Forms { states: forms, offsets }) = env.symmetry().forms(states)? else {
        return match logs.and_then(|logs| logs.iter().position(|log| *log != 0.0)) {
            None => Ok(()),
            Some(row) => fail(row, "is counted among several states of one object, and alone among its forms"),
        };
    };
    let (own, keys) = (env.keys(states), env.keys(&forms));
    let of_forms = env.symmetry().log_multiplicity(&forms)?.unwrap_or_else(|| vec![0.0; forms.len()]);
    for (row, ends) in offsets.windows(2).enumerate() {
        let range = ends[0]..ends[1];
        let distinct: HashSet<&E::Key> = keys[range.clone()].iter().collect();
        let log_n = (range.len() as f64).ln();
        let counted = logs.as_ref().map_or(0.0, |logs| logs[row]);
        if (counted - log_n).abs() > 1e-9 || of_forms[range.clone()].iter().any(|log| (log - log_n).abs() > 1e-9) {
            return fail(row, "has another number of forms than are counted for it or for one of these");
        }
        if distinct.len() != range.len() || !distinct.contains(&own[row]) {
            return fail(row, "isn't among its forms, or one of them is listed twice");
        }
    }
    Ok(())
}

fn miscounted<E: EnumerableEnv>(env: &E, states: &E::States, row: usize, what: &str) -> crate::Error {
    let detail = format!("{} {what}", describe_state(env, states, row));
    broken("`log_multiplicity` is the log of the number of `forms`: different states, the asked one among them", detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{ActionSet, AddEdge, Free, GraphEnv, GraphKind, GraphState, GraphStates, Semantics};

    /// Batches of as many states whatever their moves took 16 GB for 40 nodes: each of 780 moves leads to a state of 780 slots.
    #[test]
    fn batches_hold_no_more_than_their_moves_leave_room_for() {
        let batches_of = |n: usize| {
            let (kind, actions) = (GraphKind::Undirected, ActionSet::new(Semantics::Labelled).with(AddEdge::new(1)));
            let initial = GraphState::with_nodes(kind, n);
            let env = GraphEnv::new(Free, actions, initial.clone()).unwrap();
            batches(&env, &GraphStates::from(vec![initial; 300]), &[Direction::Forward, Direction::Backward])
        };
        // Few moves: only the number of states counts.
        assert_eq!(batches_of(4).iter().map(Vec::len).collect::<Vec<_>>(), [256, 44]);
        // 780 moves and 781 slots.
        let few = batches_of(40);
        assert!(few.iter().all(|rows| (1..=6).contains(&rows.len())));
        assert_eq!(few.concat(), (0..300).collect::<Vec<_>>());
        // One state at a time where one is already too much.
        assert_eq!(batches_of(70)[..2], [[0], [1]]);
    }
}
