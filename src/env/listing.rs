//! Checks for the listing of all states. At the beginning of a long listing, random walks estimate whether
//! there are more states than the limit. After the listing, a check ensures that random walks reach only
//! listed states.

use crate::env::{Direction, EnumerableEnv, Rows, StateGraph, describe_state, random_moves};
use crate::tensor::log_sum_exp;
use crate::{Error, Result, Rng};

/// Returns the first row in which two batches have different states; `None` if there is no such row. In an
/// environment up to isomorphism, isomorphic states count as equal.
pub(crate) fn first_other<E: EnumerableEnv>(env: &E, some: &E::States, others: &E::States) -> Option<usize> {
    let n = some.len();
    let mut both = some.clone();
    both.append(others.clone());
    let of = both.group().group_of;
    let differ: Vec<usize> = (0..n).filter(|&k| of[k] != of[n + k]).collect();
    // Computing keys takes more time than comparing rows. Keys are needed only if the rows of these batches
    // can't be compared, or if rows that differ can be the same state.
    if differ.is_empty() || !env.merges_isomorphic() && both.select(&[0, 0]).group().merges() {
        return differ.first().copied();
    }
    let keys = env.keys(&some.select(&differ));
    let other_keys = env.keys(&others.select(&differ));
    differ
        .into_iter()
        .zip(keys.iter().zip(&other_keys))
        .find(|(_, (key, other))| key != other)
        .map(|(k, _)| k)
}

/// Returns `true` if random walks show that clearly more than `limit` states can be reached. The function is
/// called after the first 20,000 states were listed.
///
/// A step from s to s' has the ratio (number of forward moves of s) / (number of backward moves of s'). For
/// each state of a uniform random walk, the ratios of all steps up to this state are multiplied. These
/// products are summed over the states of the walk. The mean of the sums of many walks estimates the number
/// of states. In an environment up to isomorphism, each product is multiplied by the number of automorphisms
/// of its state, and divided by that of the initial state.
pub(crate) fn has_more_states<E: EnumerableEnv>(env: &E, instance: u32, limit: usize) -> bool {
    /// The number of standard errors by which the estimate is reduced before it is compared with the limit.
    /// The reduced estimate must exceed the limit by 1 %.
    const SURE: f64 = 4.0;
    const WALKS: usize = 1024;
    const MAX_STEPS: usize = 200;
    // If the symmetry of a state is unknown, as for a large graph, there is no estimate, and the result is
    // `false`.
    let symmetry = |states: &E::States| match env.symmetry().log_symmetry(states) {
        Ok(None) if env.merges_isomorphic() => None,
        Ok(known) => Some(known.unwrap_or_else(|| vec![0.0; states.len()])),
        Err(_) => None,
    };
    let rng = &mut Rng::seeded(0);
    let mut states = env.initial(&[instance; WALKS]);
    let Some(at_first) = symmetry(&states) else { return false };
    // `products` holds, for each walk, the log of the product of the ratios of its steps so far. (A step has
    // the ratio of the forward moves before it to the backward moves after it.) `sums` holds, for each walk,
    // the log of the sum of its products so far.
    let mut products = vec![0.0; WALKS];
    let mut sums = vec![0.0; WALKS];
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
        // `sums` holds logarithms, because the sums themselves may be too large for an f64. For the same
        // reason each sum is divided by the largest sum here.
        let most = sums.iter().copied().fold(0.0, f64::max);
        let mut mean = 0.0;
        let mut square = 0.0;
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

/// Checks that a few random walks reach only listed states. Each of these states must have the same number of
/// moves as in the list, to states with the same keys.
pub(crate) fn check_listed<E: EnumerableEnv>(env: &E, graph: &StateGraph<E>, instance: u32) -> Result<()> {
    const WALKS: usize = 32;
    let rng = &mut Rng::seeded(0);
    let mut states = env.initial(&[instance; WALKS]);
    // A walk with as many steps as there are states would contain a cycle. Cycles are found when the states
    // are sorted, so walks needn't be longer.
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
                "states with the same key have the same number of moves, which lead to states with the same \
                 keys (up to isomorphism, rules must not use the labels of nodes)",
                format!(
                    "a random trajectory leads to {}, which is missing from the list of states or is listed \
                     with another number of moves",
                    describe_state(env, &states, row)
                ),
            )
        })?;
        let listed = graph.states().select(&listed);
        if let Some(row) = first_other(env, &listed, &states) {
            let one = describe_state(env, &listed, row);
            let other = describe_state(env, &states, row);
            return Err(Error::contract(
                "different states have different keys (see `EnumerableEnv::keys`)",
                format!("{one} and {other} have the same key"),
            ));
        }
    }
    Ok(())
}
