//! The distribution of a policy over a state space that is too large to list. Improbable states are dropped,
//! and the sum of their probabilities is reported.

use std::collections::HashMap;
use std::f64::consts::LN_2;

use super::evaluate::forward_policy;
use crate::env::{CHUNK, Direction, EnumerableEnv, Moves, Rows, Slots, check_one_instance, dead_end};
use crate::error::check_len;
use crate::metrics::distances::jsd_term;
use crate::policy::Policy;
use crate::{Error, Result};

/// The distribution of a policy over finished objects, except for the probability of dropped states.
#[derive(Clone, Debug)]
pub struct PrunedDistribution<E: EnumerableEnv> {
    /// The finished objects that were found, that is, the objects that the policy reaches without passing
    /// through dropped states.
    pub states: E::States,
    /// A lower bound on the policy's probability of each object, in the order of `states`.
    pub probs: Vec<f64>,
    /// The total probability of all dropped states. This probability equals 1 minus the sum of `probs`.
    pub dropped: f64,
    /// The number of states in which the policy was evaluated and whose moves were followed.
    pub n_expanded: usize,
}

impl<E: EnumerableEnv> PrunedDistribution<E> {
    /// Returns an upper bound on the Jensen-Shannon divergence between the policy's distribution and a target
    /// distribution. `target` has the target's probability of each object in `states`.
    ///
    /// The bound assumes the worst case: the dropped probability belongs to objects of target probability 0,
    /// and the policy never samples the objects that weren't found. The dropped probability, and the target's
    /// probability of the objects that weren't found, are each multiplied by ln 2 / 2 and added.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is one probability for each object in `states`.
    pub fn jsd_bound(&self, target: &[f64]) -> Result<f64> {
        let remedy = "give R(x) / Z for each of the found `states`";
        check_len("the target's probabilities", self.probs.len(), target.len(), remedy)?;
        let found: f64 = self.probs.iter().zip(target).map(|(&p, &t)| jsd_term(p, t)).sum();
        let elsewhere = (1.0 - target.iter().sum::<f64>()).max(0.0);
        Ok(found + 0.5 * LN_2 * (elsewhere + self.dropped))
    }
}

/// The finished objects in the order in which they were found, with the probability of each object so far.
struct EndedObjects<E: EnumerableEnv> {
    places: HashMap<E::Key, usize>,
    states: E::States,
    probs: Vec<f64>,
}

impl<E: EnumerableEnv> EndedObjects<E> {
    fn add(&mut self, states: &E::States, keys: &[E::Key], ended: &[(usize, f64)]) {
        let mut new = Vec::new();
        for &(row, mass) in ended {
            let next = self.probs.len();
            let place = *self.places.entry(keys[row].clone()).or_insert(next);
            if place == next {
                self.probs.push(0.0);
                new.push(row);
            }
            self.probs[place] += mass;
        }
        self.states.append(states.select(&new));
    }
}

/// Follows a policy's probability step by step through the states that have a probability of at least `tau`
/// at that step.
///
/// The cost is small for a policy whose probability is concentrated on few states, however large the state
/// space is. For other policies `dropped` is large, and the result has little meaning. Up to isomorphism the
/// result is correct for equivariant policies only (test the policy on a smaller problem with
/// [`StateGraph::check_equivariance`](crate::env::StateGraph::check_equivariance)).
///
/// ```
/// use gfn::{metrics::pruned_distribution, policy::UniformPolicy, examples::Chain};
/// let sampled = pruned_distribution(&Chain::new(20), &UniformPolicy, 1e-4, 1000)?;
/// assert!((sampled.probs.iter().sum::<f64>() + sampled.dropped - 1.0).abs() < 1e-12);
/// assert!(sampled.dropped < 0.01);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Config`] for an environment of several instances; [`Error::Contract`] for a state without any
/// legal move or exit; [`Error::TooManyStates`] if more than `max_states` states would be expanded (raise
/// `tau`); the errors of the policy.
pub fn pruned_distribution<E: EnumerableEnv>(
    env: &E,
    policy: &dyn Policy<E>,
    tau: f64,
    max_states: usize,
) -> Result<PrunedDistribution<E>> {
    check_one_instance(env, "one instance, because each instance has another distribution")?;
    let mut states = env.initial(&[0]);
    let mut mass = vec![1.0];
    let mut ended: EndedObjects<E> =
        EndedObjects { places: HashMap::new(), states: states.select(&[]), probs: Vec::new() };
    let mut dropped = 0.0;
    let mut n_expanded = 0;
    // `finished` has an entry for each state of the current step. The entry is `true` if the state may lack
    // legal moves, because trajectories end in it without an exit.
    let mut finished = vec![true];
    while !mass.is_empty() {
        n_expanded += mass.len();
        if n_expanded > max_states {
            return Err(Error::TooManyStates { limit: max_states });
        }
        // `children` holds the probability of each child, and the first move found that leads to it, as the
        // index of the parent and the slot. `next` finds a child's index by its key.
        let mut next: HashMap<E::Key, usize> = HashMap::new();
        let mut children: Vec<(f64, usize, u32)> = Vec::new();
        for start in (0..mass.len()).step_by(CHUNK) {
            let chunk = states.select(&(start..mass.len().min(start + CHUNK)).collect::<Vec<_>>());
            let pf = forward_policy(env, policy, &chunk, None)?;
            let moves = Moves::new(pf.masks());
            let log_probs = pf.host_log_probs()?;
            let share = |k: usize| mass[start + moves.rows[k]] * log_probs[k].exp();
            let mut n_actions = vec![0; chunk.len()];
            for &row in &moves.rows {
                n_actions[row] += 1;
            }
            let stuck: Vec<usize> = (0..chunk.len()).filter(|&row| n_actions[row] == 0).collect();
            if let Some(&row) = stuck.iter().find(|&&row| !finished[start + row]) {
                return Err(dead_end(env, &chunk, row));
            }
            let mut ends: Vec<(usize, f64)> = stuck.into_iter().map(|row| (row, mass[start + row])).collect();
            ends.extend((0..moves.rows.len()).filter(|&k| moves.exit[k]).map(|k| (moves.rows[k], share(k))));
            ended.add(&chunk, &env.keys(&chunk), &ends);
            let inner = moves.inner();
            for (&k, key) in inner.places.iter().zip(env.child_keys(&chunk, &inner.rows, &inner.slots)?) {
                let place = *next.entry(key).or_insert(children.len());
                if place == children.len() {
                    children.push((0.0, start + moves.rows[k], moves.slots[k]));
                }
                children[place].0 += share(k);
            }
        }
        let (kept, small): (Vec<_>, Vec<_>) = children.into_iter().partition(|child| child.0 >= tau);
        dropped += small.iter().map(|child| child.0).sum::<f64>();
        states = states.select(&kept.iter().map(|child| child.1).collect::<Vec<_>>());
        let slots = Slots(kept.iter().map(|child| child.2).collect());
        finished = env.step(Direction::Forward, &mut states, &slots)?.done;
        mass = kept.iter().map(|child| child.0).collect();
    }
    Ok(PrunedDistribution { states: ended.states, probs: ended.probs, dropped, n_expanded })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Env;
    use crate::examples::Chain;

    /// Checks that dropped probability, and the target's probability of objects that weren't found, each add
    /// ln 2 / 2 per unit to the bound on the Jensen-Shannon divergence.
    #[test]
    fn what_was_dropped_and_what_was_not_found_count_in_full() {
        let states = Chain::new(2).initial(&[0, 0]);
        let probs = vec![0.5, 0.25];
        let target = [0.5, 0.3];
        let pruned = PrunedDistribution::<Chain> { states, probs, dropped: 0.25, n_expanded: 3 };
        let expected = jsd_term(0.5, 0.5) + jsd_term(0.25, 0.3) + 0.5 * LN_2 * (0.2 + 0.25);
        assert!((pruned.jsd_bound(&target).unwrap() - expected).abs() < 1e-12);
    }
}
