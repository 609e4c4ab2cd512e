//! Random walks without a policy, for checks, and what checks say about states and moves.

use std::collections::HashSet;

use crate::env::{Direction, EnumerableEnv, Masks, Rows, Slots, StateGraph, instances_in_turn};
use crate::tensor::log_sum_exp;
use crate::{Error, Result, Rng};

/// Forward steps of some states, and what they say undoes them.
pub(crate) struct Steps<E: EnumerableEnv> {
    pub(crate) before: E::States,
    pub(crate) slots: Slots,
    pub(crate) reverse: Slots,
    pub(crate) done: Vec<bool>,
    /// Where each step led to.
    pub(crate) after: E::States,
}

impl<E: EnumerableEnv> Steps<E> {
    fn select(&self, rows: &[usize]) -> Self {
        Self {
            before: self.before.select(rows),
            slots: self.slots.select(rows),
            reverse: self.reverse.select(rows),
            done: rows.iter().map(|&row| self.done[row]).collect(),
            after: self.after.select(rows),
        }
    }

    /// The first step that its reverse doesn't undo, and the law that it breaks.
    ///
    /// # Errors
    /// [`Error::Contract`] for a step to a state without any move and without the exit; those of the
    /// environment.
    pub(crate) fn first_broken(&self, env: &E) -> Result<Option<(usize, &'static str)>> {
        let (ways_on, ways_back) =
            (env.masks(Direction::Forward, &self.after), env.masks(Direction::Backward, &self.after));
        for (k, &reverse) in self.reverse.0.iter().enumerate() {
            if !self.done[k] && ways_on.n_legal(k) == 0 {
                return Err(dead_end(env, &self.after, k));
            }
            if self.done[k] && ways_on.n_legal(k) > 0 {
                return Ok(Some((k, "a forward step is done at the exit, and where no forward move is legal")));
            }
            if ways_back.row(k).get(reverse as usize) != Some(&true) {
                return Ok(Some((k, "the reverse of a legal forward move is a legal backward move of the child")));
            }
        }
        let mut again = self.after.clone();
        let undone = env.step(Direction::Backward, &mut again, &self.reverse)?;
        if let Some(k) = first_other(env, &again, &self.before) {
            return Ok(Some((k, "undoing a forward move restores the state")));
        }
        let (ways_on, is_initial) = (env.masks(Direction::Forward, &again), env.is_initial(&again));
        for (k, &redo) in undone.reverse.0.iter().enumerate() {
            if undone.done[k] != is_initial[k] {
                return Ok(Some((k, "a backward step is done at the initial state and nowhere else")));
            }
            if ways_on.row(k).get(redo as usize) != Some(&true) {
                return Ok(Some((k, "the reverse of a move's reverse is a legal forward move")));
            }
            if !env.merges_isomorphic() && redo != self.slots.0[k] {
                return Ok(Some((k, "where nodes are labelled, the reverse of a move's reverse is the move")));
            }
        }
        env.step(Direction::Forward, &mut again, &undone.reverse)?;
        let other = first_other(env, &again, &self.after);
        Ok(other.map(|k| (k, "redoing an undone move leads to the same state")))
    }
}

/// Looks at 16 random walks of at most `steps` moves, as an environment's [`check_contract`](crate::env::Env::check_contract) may: that none
/// comes round, that `n` of the moves are undone by their reverses, and that as many ways back end in the initial state.
///
/// ```
/// use gfn::{env::check_walks, testing::Chain};
/// check_walks(&Chain::new(9), 32, 64)?;
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Contract`] naming the check and the state; whatever `step` fails with.
pub fn check_walks<E: EnumerableEnv>(env: &E, steps: usize, n: usize) -> Result<()> {
    const WALKS: usize = 16;
    let rng = &mut Rng::seeded(0);
    Walked::draw(env, WALKS, steps, rng)?.check(env, n, rng)
}

/// The moves of a few random walks, which a trainer looks at before its first step.
pub(crate) struct Walked<E: EnumerableEnv> {
    /// The walk of each move.
    walk: Vec<usize>,
    /// All walks' first moves first.
    pub(crate) steps: Steps<E>,
}

impl<E: EnumerableEnv> Walked<E> {
    /// Walks of at most `steps` moves, as many of them for each instance as for the others.
    pub(crate) fn draw(env: &E, n: usize, steps: usize, rng: &mut Rng) -> Result<Self> {
        let (none, no_slots) = (env.initial(&[]), || Slots(Vec::new()));
        let (slots, reverse, done) = (no_slots(), no_slots(), Vec::new());
        let mut out = Steps::<E> { before: none.clone(), slots, reverse, done, after: none };
        let mut states = env.initial(&instances_in_turn(env, n));
        let (mut walk, mut walks): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..n).collect());
        for _ in 0..steps {
            let (going, slots) = random_moves(&env.masks(Direction::Forward, &states), rng);
            if going.is_empty() {
                break;
            }
            states = states.select(&going);
            walks = going.iter().map(|&row| walks[row]).collect();
            out.before.append(states.clone());
            let step = env.step(Direction::Forward, &mut states, &slots)?;
            walk.extend(&walks);
            out.slots.append(slots);
            out.reverse.append(step.reverse);
            out.done.extend(step.done);
            out.after.append(states.clone());
        }
        Ok(Self { walk, steps: out })
    }

    /// Checks that no walk comes round, that `n` of the moves are undone by their reverses, and that as many ways back end in the initial
    /// state. It sees what is broken in many places; `testing::check_env` looks at every move.
    pub(crate) fn check(&self, env: &E, n: usize, rng: &mut Rng) -> Result<()> {
        let after = &self.steps.after;
        let (of, is_initial, mut seen) = (after.group().of, env.is_initial(after), HashSet::new());
        if let Some(k) = (0..of.len()).find(|&k| is_initial[k] || !seen.insert((self.walk[k], of[k]))) {
            return Err(self.broken(env, k, "no sequence of forward moves leads back to where it was"));
        }
        // From all over the walks.
        let some: Vec<usize> = (0..of.len()).rev().step_by(of.len().div_ceil(n.max(1)).max(1)).collect();
        let steps = self.steps.select(&some);
        if let Some((k, check)) = steps.first_broken(env)? {
            return Err(self.broken(env, some[k], check));
        }
        walk_back(env, steps.after, MAX_STEPS_BACK, rng)
    }

    fn broken(&self, env: &E, k: usize, check: &'static str) -> Error {
        let step = describe_move(env, Direction::Forward, &self.steps.before, k, self.steps.slots.0[k]);
        let to = describe_state(env, &self.steps.after, k);
        Error::contract(check, format!("{step}, which leads to {to} (`testing::check_env` looks at every move)"))
    }
}

/// The first row in which two batches have different states; up to isomorphism, states of different classes.
fn first_other<E: EnumerableEnv>(env: &E, some: &E::States, others: &E::States) -> Option<usize> {
    let n = some.len();
    let mut both = some.clone();
    both.append(others.clone());
    let of = both.group().of;
    let mut differ = (0..n).filter(|&k| of[k] != of[n + k]);
    // Where batches tell no rows apart, or equal ones aren't all that is the same, keys decide. They cost more than a comparison.
    if n > 0 && !env.merges_isomorphic() && both.select(&[0, 0]).group().merges() {
        return differ.next();
    }
    differ.find(|&k| env.keys(&some.select(&[k])) != env.keys(&others.select(&[k])))
}

/// `true` if random walks leave no doubt that more than `limit` states can be reached, before they are listed.
///
/// Along a walk that takes every move alike, the product of moves to choose from over ways back has, summed over the states that the walk
/// visits, the number of all states as its mean; up to isomorphism each counts |Aut| times as much.
pub(crate) fn has_more_states<E: EnumerableEnv>(env: &E, instance: u32, limit: usize) -> bool {
    /// Standard errors by which the mean must be a hundredth above the limit.
    const SURE: f64 = 4.0;
    const WALKS: usize = 1024;
    const MAX_STEPS: usize = 200;
    // What isn't known, such as the symmetry of a large graph, leaves doubt.
    let symmetry = |states: &E::States| match env.symmetry().log_symmetry(states) {
        Ok(None) if env.merges_isomorphic() => None,
        Ok(known) => Some(known.unwrap_or_else(|| vec![0.0; states.len()])),
        Err(_) => None,
    };
    let rng = &mut Rng::seeded(0);
    let mut states = env.initial(&[instance; WALKS]);
    let Some(at_first) = symmetry(&states) else { return false };
    // The logarithms of the product of each walk, and of its sum.
    let (mut products, mut sums) = (vec![0.0; WALKS], vec![0.0; WALKS]);
    let mut walks: Vec<usize> = (0..WALKS).collect();
    for _ in 0..MAX_STEPS {
        let masks = env.masks(Direction::Forward, &states);
        let (going, slots) = random_moves(&masks, rng);
        let n_moves = |&row: &usize| masks.legal_slots(row).filter(|&slot| !masks.is_exit(row, slot)).count();
        let n_moves: Vec<usize> = going.iter().map(n_moves).collect();
        states = states.select(&going);
        walks = going.iter().map(|&row| walks[row]).collect();
        if walks.is_empty() || env.step(Direction::Forward, &mut states, &slots).is_err() {
            return false;
        }
        let (ways_back, Some(symmetry)) = (env.masks(Direction::Backward, &states), symmetry(&states)) else {
            return false;
        };
        for (row, &walk) in walks.iter().enumerate() {
            products[walk] += (n_moves[row] as f64).ln() - (ways_back.n_legal(row) as f64).ln();
            sums[walk] = log_sum_exp([sums[walk], products[walk] + symmetry[row] - at_first[walk]]);
        }
        // In units of the largest, as there may be more states than a number can say.
        let most = sums.iter().copied().fold(0.0, f64::max);
        let (mut mean, mut square) = (0.0, 0.0);
        for sum in sums.iter().map(|sum| (sum - most).exp() / WALKS as f64) {
            mean += sum;
            square += sum * sum * WALKS as f64;
        }
        let error = ((square - mean * mean) / WALKS as f64).max(0.0).sqrt();
        if (mean - SURE * error).ln() + most > (1.01 * limit as f64).ln() {
            return true;
        }
    }
    false
}

/// Checks that what a few random walks come to is listed, each state by itself.
pub(crate) fn check_listed<E: EnumerableEnv>(env: &E, graph: &StateGraph<E>, instance: u32) -> Result<()> {
    const WALKS: usize = 32;
    let rng = &mut Rng::seeded(0);
    let mut states = env.initial(&[instance; WALKS]);
    // Longer walks come round, which is found when states are put in order.
    for _ in 0..graph.len() {
        let (going, slots) = random_moves(&env.masks(Direction::Forward, &states), rng);
        if going.is_empty() {
            break;
        }
        states = states.select(&going);
        env.step(Direction::Forward, &mut states, &slots)?;
        let ways_on = env.masks(Direction::Forward, &states);
        let indices = graph.indices(env, &states).into_iter().enumerate().map(|(row, index)| {
            index.filter(|&index| graph.raw_children(index).len() == ways_on.n_legal(row)).ok_or(row)
        });
        let listed = indices.collect::<std::result::Result<Vec<_>, _>>().map_err(|row| {
            Error::contract(
                "states of one key have as many moves, to states of the same keys (up to isomorphism, rules don't look at labels)",
                format!("a walk comes to {}, which isn't listed so", describe_state(env, &states, row)),
            )
        })?;
        let listed = graph.states().select(&listed);
        if let Some(row) = first_other(env, &listed, &states) {
            let (one, other) = (describe_state(env, &listed, row), describe_state(env, &states, row));
            return Err(Error::contract(
                "states that differ have keys that differ (see `EnumerableEnv::keys`)",
                format!("{one} and {other} have one key"),
            ));
        }
    }
    Ok(())
}

/// Steps of a way back: far more than a walk has.
pub(crate) const MAX_STEPS_BACK: usize = 10_000;

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
    if live == 0 { Ok(()) } else { Err(Error::StepLimit { direction: Direction::Backward, limit: max_steps, live, n }) }
}

/// The error where a way back doesn't end in the initial state: by a move of a state (`from`: states, row, slot), if any.
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

/// The remedy for a backward move that leads to where no forward move does.
pub(crate) const KEEP_BACK: &str = "what P_B gives to such a move is lost, and the trained distribution is wrong by it: leave the \
     move out of the backward masks (graphs whose backward moves are derived: let `is_reachable` be false of what no forward move \
     builds; by type: use action types that keep to it, such as `AddEdge::keeping_connected`)";

/// A state in words: as its batch describes it, or else its key.
pub(crate) fn describe_state<E: EnumerableEnv>(env: &E, states: &E::States, row: usize) -> String {
    states.describe(row).unwrap_or_else(|| format!("{:?}", env.keys(&states.select(&[row]))[0]))
}

/// The error of a state, not a finished one, from which no move leads on.
pub(crate) fn dead_end<E: EnumerableEnv>(env: &E, states: &E::States, row: usize) -> Error {
    let rule =
        "an unfinished state has a legal move, or the exit (allow one of both, or forbid the moves that lead there)";
    let state = describe_state(env, states, row);
    if env.masks(Direction::Forward, &states.select(&[row])).n_legal(0) > 0 {
        let rule = "the masks of a state don't depend on the other states of its batch";
        return Error::contract(
            rule,
            format!("{state} has a legal move or the exit if it is asked about alone, and none in a batch"),
        );
    }
    Error::contract(rule, format!("the rules leave {state} without any move and without the exit"))
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
