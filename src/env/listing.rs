//! Checks around the listing of all states: before it, whether random walks meet more states than the limit;
//! after it, whether the list has every state that random walks reach.

use crate::env::{Direction, EnumerableEnv, Rows, StateGraph, describe_state, random_moves};
use crate::tensor::log_sum_exp;
use crate::{Error, Result, Rng};

/// Returns the first row in which two batches have different states; up to isomorphism, states of different
/// classes.
pub(crate) fn first_other<E: EnumerableEnv>(env: &E, some: &E::States, others: &E::States) -> Option<usize> {
    let n = some.len();
    let mut both = some.clone();
    both.append(others.clone());
    let of = both.group().of;
    let differ: Vec<usize> = (0..n).filter(|&k| of[k] != of[n + k]).collect();
    // Keys cost more than a comparison. They decide if batches can't compare rows, or if different rows can
    // be the same state.
    if differ.is_empty() || !env.merges_isomorphic() && both.select(&[0, 0]).group().merges() {
        return differ.first().copied();
    }
    let keys = env.keys(&some.select(&differ));
    let other_keys = env.keys(&others.select(&differ));
    differ.into_iter().zip(keys.iter().zip(&other_keys)).find(|(_, (key, other))| key != other).map(|(k, _)| k)
}

/// Returns `true` if random walks leave no doubt that more than `limit` states can be reached, before they are
/// listed.
///
/// Along a uniform random walk, the product of (forward moves / backward moves) is summed over its states. The
/// mean of this sum over walks is the number of states. Up to isomorphism each state counts |Aut| times.
pub(crate) fn has_more_states<E: EnumerableEnv>(env: &E, instance: u32, limit: usize) -> bool {
    /// Standard errors by which the mean must be a hundredth above the limit.
    const SURE: f64 = 4.0;
    const WALKS: usize = 1024;
    const MAX_STEPS: usize = 200;
    // An unknown number, such as the symmetry of a large graph, leaves doubt.
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
                "states of one key have as many moves, to states of the same keys (up to isomorphism, rules don't \
                 look at labels)",
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
