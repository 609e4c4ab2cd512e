//! Random walks without a policy, for checks, and what checks say about states and moves.

use std::collections::HashSet;

use crate::env::{Direction, EnumerableEnv, Masks, Rows, Slots, StateGraph, instances_in_turn};
use crate::tensor::log_sum_exp;
use crate::{Error, Result, Rng};

/// The moves of a few random walks: what a trainer looks at before its first step.
pub(crate) struct Walked<E: EnumerableEnv> {
    /// The walk of each move.
    walk: Vec<usize>,
    before: E::States,
    slots: Slots,
    reverse: Slots,
    done: Vec<bool>,
    /// Where each move led to, all walks' first moves first.
    pub(crate) after: E::States,
}

impl<E: EnumerableEnv> Walked<E> {
    /// Walks of at most `steps` moves, as many of them for each instance as for the others.
    pub(crate) fn draw(env: &E, n: usize, steps: usize, rng: &mut Rng) -> Result<Self> {
        let none = env.initial(&[]);
        let (walk, done) = (Vec::new(), Vec::new());
        let mut out = Self {
            walk,
            before: none.clone(),
            slots: Slots(Vec::new()),
            reverse: Slots(Vec::new()),
            done,
            after: none,
        };
        let mut states = env.initial(&instances_in_turn(env, n));
        let mut walks: Vec<usize> = (0..n).collect();
        for _ in 0..steps {
            let (going, slots) = random_moves(&env.masks(Direction::Forward, &states), rng);
            if going.is_empty() {
                break;
            }
            states = states.select(&going);
            walks = going.iter().map(|&row| walks[row]).collect();
            out.before.append(states.clone());
            let step = env.step(Direction::Forward, &mut states, &slots)?;
            out.walk.extend(&walks);
            out.slots.append(slots);
            out.reverse.append(step.reverse);
            out.done.extend(step.done);
            out.after.append(states.clone());
        }
        Ok(out)
    }

    /// `n` of the moves, from all over the walks.
    fn some(&self, n: usize) -> Vec<usize> {
        (0..self.walk.len()).rev().step_by(self.walk.len().div_ceil(n.max(1)).max(1)).collect()
    }

    /// Checks that no walk comes round, that `n` of the moves are undone by their reverses, and that as many ways back end in the initial
    /// state. It sees what is broken in many places; `testing::check_env` looks at every move.
    pub(crate) fn check(&self, env: &E, n: usize, rng: &mut Rng) -> Result<()> {
        self.check_goes_on(env)?;
        let some = self.some(n);
        self.check_reverses(env, &some)?;
        walk_back(env, self.after.select(&some), MAX_STEPS_BACK, rng)
    }

    /// Checks that no walk comes to a state that it has left.
    fn check_goes_on(&self, env: &E) -> Result<()> {
        let of = self.after.group().of;
        let mut seen = HashSet::new();
        let is_initial = env.is_initial(&self.after);
        match (0..of.len()).find(|&k| is_initial[k] || !seen.insert((self.walk[k], of[k]))) {
            None => Ok(()),
            Some(k) => Err(self.broken(env, k, "no sequence of forward moves leads back to where it was")),
        }
    }

    fn check_reverses(&self, env: &E, some: &[usize]) -> Result<()> {
        let (before, after) = (self.before.select(some), self.after.select(some));
        let (slots, reverse) = (self.slots.select(some), self.reverse.select(some));
        let fail = |k: usize, check| Err(self.broken(env, some[k], check));
        let (ways_on, ways_back) = (env.masks(Direction::Forward, &after), env.masks(Direction::Backward, &after));
        for (k, &row) in some.iter().enumerate() {
            if self.done[row] != (ways_on.n_legal(k) == 0) {
                return fail(k, "a forward step is done at the exit, and where no forward move is legal");
            }
            if ways_back.row(k).get(reverse.0[k] as usize) != Some(&true) {
                return fail(k, "the reverse of a legal forward move is a legal backward move of the child");
            }
        }
        let mut again = after.clone();
        let undone = env.step(Direction::Backward, &mut again, &reverse)?;
        if let Some(k) = first_other(env, &again, &before) {
            return fail(k, "undoing a forward move restores the state");
        }
        let ways_on = env.masks(Direction::Forward, &again);
        for (k, &redo) in undone.reverse.0.iter().enumerate() {
            if ways_on.row(k).get(redo as usize) != Some(&true) {
                return fail(k, "the reverse of a move's reverse is a legal forward move");
            }
            if !env.merges_isomorphic() && redo != slots.0[k] {
                return fail(k, "where nodes are labelled, the reverse of a move's reverse is the move");
            }
        }
        env.step(Direction::Forward, &mut again, &undone.reverse)?;
        match first_other(env, &again, &after) {
            None => Ok(()),
            Some(k) => fail(k, "redoing an undone move leads to the same state"),
        }
    }

    fn broken(&self, env: &E, k: usize, check: &'static str) -> Error {
        let step = describe_move(env, Direction::Forward, &self.before, k, self.slots.0[k]);
        let to = describe_state(env, &self.after, k);
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
    if !env.merges_isomorphic() {
        return differ.next();
    }
    // Keys cost more than a comparison, and most moves give the labels back.
    differ.find(|&k| env.keys(&some.select(&[k])) != env.keys(&others.select(&[k])))
}

/// Whether random walks leave no doubt that more than `limit` states can be reached, before they are listed.
///
/// Along a walk that takes every move alike, the product of moves to choose from over ways back has, summed over the states that the walk
/// visits, the number of all states as its mean; up to isomorphism each counts |Aut| times as much.
pub(crate) fn has_more_states<E: EnumerableEnv>(env: &E, instance: u32, limit: usize) -> bool {
    /// Standard errors by which the mean must be a hundredth above the limit.
    const SURE: f64 = 4.0;
    const WALKS: usize = 1024;
    const MAX_STEPS: usize = 200;
    // What isn't known, such as the symmetry of a large graph, leaves doubt.
    let symmetry = |states: &E::States| match env.log_symmetry(states) {
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
    // Where batches tell no rows apart, states can't be compared.
    let compared = !env.merges_isomorphic() && states.group().first.len() == 1;
    // Longer walks come round, which is found when states are put in order.
    for _ in 0..graph.len() {
        let (going, slots) = random_moves(&env.masks(Direction::Forward, &states), rng);
        if going.is_empty() {
            break;
        }
        states = states.select(&going);
        env.step(Direction::Forward, &mut states, &slots)?;
        let (ways_on, indices) = (env.masks(Direction::Forward, &states), graph.indices(env, &states));
        let mut listed = Vec::with_capacity(states.len());
        for (row, index) in indices.into_iter().enumerate() {
            let index = index.filter(|&index| graph.raw_children(index).len() == ways_on.n_legal(row));
            listed.push(index.ok_or_else(|| {
                Error::contract(
                    "states of one key have as many moves, to states of the same keys (up to isomorphism, rules don't look at labels)",
                    format!("a walk comes to {}, which isn't listed so", describe_state(env, &states, row)),
                )
            })?);
        }
        let listed = graph.states().select(&listed);
        if compared && let Some(row) = first_other(env, &listed, &states) {
            let (one, other) = (describe_state(env, &listed, row), describe_state(env, &states, row));
            return Err(Error::contract(
                "states that differ have keys that differ (`VectorRules::key`: the entries themselves, where memory allows)",
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
