use serde::{Deserialize, Serialize};

use super::Sampler;
use crate::distribution::{Distribution, Exploration};
use crate::env::{Direction, Env, Reward, Rows, check_log_rewards, log_rewards, training_log_rewards};
use crate::tensor::to_host;
use crate::{Error, Result, Rng};

/// The rule by which a local search accepts proposals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Acceptance {
    /// Accepts a proposal if its reward is larger: hill climbing.
    Greedy,
    /// Accepts by the Metropolis-Hastings rule. If objects are distributed in proportion to the reward before
    /// the search, they have the same distribution after it.
    MetropolisHastings,
}

/// Local search (Kim et al., *Local Search GFlowNets*, 2024). A proposal is made from an object by some
/// backward steps sampled from P_B, followed by forward steps sampled from P_F that lead to a finished
/// object, the proposal.
///
/// The number of backward steps is drawn uniformly from `1..=max_back`; backward steps also stop at the
/// initial state. Let x be the object and s the turning state, at which the backward steps stop. By
/// Metropolis-Hastings a proposal x' is accepted with probability `min(1, R(x') P_B(x' -> s) P_F(s -> x)
/// q(k') / (R(x) P_B(x -> s) P_F(s -> x') q(k)))`. P_B and P_F are the probabilities of the sampled paths. k
/// is the number of backward steps from x to s, and k' the number from x' to s. q(k) is the probability that
/// the backward steps stop at s after k steps. Other implementations leave q out, or use a fixed number of
/// backward steps. If trajectories differ in length, neither is a correct Metropolis-Hastings rule: the
/// numbers of steps from x and from x' back to s may differ.
///
/// Local search changes which objects are sampled, but not the training target. Objectives that accept any
/// trajectories can learn from the objects that it finds, along paths that are sampled backwards from these
/// objects.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct LocalSearch {
    /// The number of successive proposals per object, at least 1.
    pub rounds: usize,
    /// The maximum number of backward steps, at least 1.
    pub max_back: usize,
    /// The rule by which proposals are accepted.
    pub acceptance: Acceptance,
}

impl LocalSearch {
    /// Checks that `rounds` and `max_back` are positive.
    ///
    /// # Errors
    /// [`Error::Config`] for a search without backward steps or without proposals.
    pub fn check(self) -> Result<()> {
        check_max_back(self.max_back)?;
        if self.rounds == 0 {
            return Err(Error::config("rounds", "0", "at least one proposal per object"));
        }
        Ok(())
    }
}

/// Checks the largest number of backward steps of a proposal.
///
/// # Errors
/// [`Error::Config`] for 0.
pub fn check_max_back(max_back: usize) -> Result<()> {
    if max_back == 0 {
        return Err(Error::config("max_back", "0", "at least one step back"));
    }
    Ok(())
}

/// Returns the log of the probability that the backward steps of a proposal stop after `steps` steps. The
/// steps stop after the drawn number of steps, which is uniform in `1..=max_back`, or earlier if they reach
/// the initial state. `is_initial` is `true` if the state after `steps` steps is the initial state.
fn log_turn(max_back: usize, steps: usize, is_initial: bool) -> f64 {
    // `n_draws` is how many values of the drawn number make the backward steps stop after exactly `steps`
    // steps.
    let n_draws = match steps {
        // Only a search that starts in the initial state takes no step, because this state has no parent.
        0 => return if is_initial { 0.0 } else { f64::NEG_INFINITY },
        k if k > max_back => 0,
        k if is_initial => max_back - k + 1,
        _ => 1,
    };
    (n_draws as f64 / max_back as f64).ln()
}

/// The number of steps of a path, and the log-probabilities of the path. The path connects an object and the
/// state at which the backward steps from it stop.
#[derive(Clone, Copy, Default)]
struct PathLogs {
    steps: usize,
    /// The log-probability of the path in the direction in which the path was sampled.
    log_prob: f64,
    /// The log-probability of the same path in the opposite direction.
    reverse_log_prob: f64,
}

impl<E: Env> Sampler<'_, E> {
    /// Runs a local search from each of these objects, and returns the resulting objects and their
    /// log-rewards.
    ///
    /// The acceptance rule uses log R with the same corrections as training, for symmetry
    /// ([`Symmetry::log_symmetry`](crate::env::Symmetry::log_symmetry)) and for objects of several states
    /// ([`Symmetry::log_multiplicity`](crate::env::Symmetry::log_multiplicity)).
    ///
    /// ```
    /// use gfn::{
    ///     Rng,
    ///     examples::{Chain, Positions},
    ///     policy::UniformPolicy,
    ///     rollout::{Acceptance, LocalSearch, Sampler},
    /// };
    /// let env = Chain::new(5);
    /// let reward = |s: &Positions, _: Option<&tch::Tensor>| -> gfn::Result<Vec<f64>> {
    ///     Ok(s.0.iter().map(|&x| f64::from(x)).collect())
    /// };
    /// let search = LocalSearch { rounds: 20, max_back: 2, acceptance: Acceptance::Greedy };
    /// let sampler = Sampler::new(&env, &UniformPolicy);
    /// let start = sampler.forward(4, &mut Rng::seeded(0))?;
    /// let (found, log_rewards) =
    ///     sampler.local_search(search, start.terminal_states(), &reward, &mut Rng::seeded(1))?;
    /// assert_eq!(found.0.len(), log_rewards.len());
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] for a search without backward steps or without proposals; the errors of policy,
    /// reward and environment.
    pub fn local_search(
        &self,
        search: LocalSearch,
        objects: &E::States,
        reward: &dyn Reward<E::States>,
        rng: &mut Rng,
    ) -> Result<(E::States, Vec<f64>)> {
        search.check()?;
        let log_reward = log_rewards(reward, objects, None)?;
        self.local_search_from(search, objects, &log_reward, reward, rng)
    }

    /// Runs a local search like [`local_search`](Self::local_search), from objects with the given log-rewards
    /// `known`. The reward is evaluated only for proposals, `rounds` times per object.
    ///
    /// # Errors
    /// The errors of [`local_search`](Self::local_search); [`Error::Shape`] unless there is one log-reward
    /// per object.
    pub fn local_search_from(
        &self,
        search: LocalSearch,
        objects: &E::States,
        known: &[f64],
        reward: &dyn Reward<E::States>,
        rng: &mut Rng,
    ) -> Result<(E::States, Vec<f64>)> {
        search.check()?;
        check_log_rewards(known, objects)?;
        let corrected =
            |objects: &E::States, raw: &[f64]| training_log_rewards(self.env, objects, raw.to_vec());
        let mut current = objects.clone();
        let mut log_reward = known.to_vec();
        for _ in 0..search.rounds {
            let (proposed, log_ratio) = self.propose_by_local_search(search.max_back, &current, rng)?;
            let new_log_reward = log_rewards(reward, &proposed, None)?;
            let gain: Vec<f64> = corrected(&proposed, &new_log_reward)?
                .iter()
                .zip(corrected(&current, &log_reward)?)
                .map(|(new, old)| new - old)
                .collect();
            let n = current.len();
            let is_accepted: Vec<bool> = (0..n)
                .map(|i| match search.acceptance {
                    Acceptance::Greedy => gain[i] > 0.0,
                    Acceptance::MetropolisHastings => rng.uniform().ln() < gain[i] + log_ratio[i],
                })
                .collect();
            current.append(proposed);
            let rows: Vec<usize> = (0..n).map(|i| if is_accepted[i] { n + i } else { i }).collect();
            current = current.select(&rows);
            log_reward =
                (0..n).map(|i| if is_accepted[i] { new_log_reward[i] } else { log_reward[i] }).collect();
        }
        Ok((current, log_reward))
    }

    /// Returns, for each finished object, a proposal of a local search ([`LocalSearch`]) and a number: the
    /// log-probability of proposing the object from the proposal along the same path, minus the
    /// log-probability of proposing the proposal from the object. The number of backward steps is drawn
    /// uniformly from `1..=max_back`. No reward is computed. Use this method for a custom Metropolis-Hastings
    /// rule; a policy without a network ([`UniformPolicy`](crate::policy::UniformPolicy)) gives uniform
    /// steps.
    ///
    /// # Errors
    /// [`Error::Config`] if `max_back` is 0; the errors of policy and environment.
    pub fn propose_by_local_search(
        &self,
        max_back: usize,
        objects: &E::States,
        rng: &mut Rng,
    ) -> Result<(E::States, Vec<f64>)> {
        check_max_back(max_back)?;
        tch::no_grad(|| self.propose_paths(max_back, objects, rng))
    }

    /// Implements [`propose_by_local_search`](Self::propose_by_local_search), without disabling gradients.
    fn propose_paths(
        &self,
        max_back: usize,
        objects: &E::States,
        rng: &mut Rng,
    ) -> Result<(E::States, Vec<f64>)> {
        let n = objects.len();
        let back: Vec<usize> = (0..n).map(|_| 1 + rng.below(max_back)).collect();
        let mut states = objects.clone();
        let mut down = self.take_steps(Direction::Backward, &mut states, &back, rng)?;
        if let Some(exits) = self.env.exit_actions(objects) {
            let log_pf = self.log_probs(Direction::Forward, objects, &exits)?;
            for (path, log_prob) in down.iter_mut().zip(log_pf) {
                path.reverse_log_prob += log_prob;
            }
        }
        let is_initial = self.env.is_initial(&states);
        let up = self.take_steps(Direction::Forward, &mut states, &vec![self.max_steps; n], rng)?;
        let log_ratio = (0..n).map(|i| {
            let turn = |path: &PathLogs| log_turn(max_back, path.steps, is_initial[i]);
            let log_forth = down[i].log_prob + up[i].log_prob + turn(&down[i]);
            let log_back = up[i].reverse_log_prob + down[i].reverse_log_prob + turn(&up[i]);
            log_back - log_forth
        });
        Ok((states, log_ratio.collect()))
    }

    /// Samples steps from each state, at most `limits[i]` steps from state `i`, and replaces each state by
    /// the last state of its path. Backward steps stop at the initial state. Forward steps must reach a
    /// finished object within the limit; otherwise the function returns an error. An exit doesn't count as a
    /// step.
    fn take_steps(
        &self,
        direction: Direction,
        states: &mut E::States,
        limits: &[usize],
        rng: &mut Rng,
    ) -> Result<Vec<PathLogs>> {
        let n = states.len();
        let is_forward = direction == Direction::Forward;
        let mut paths = vec![PathLogs::default(); n];
        let mut done = if is_forward { vec![false; n] } else { self.env.is_initial(states) };
        for step in 0.. {
            let live: Vec<usize> = (0..n).filter(|&i| !done[i] && step < limits[i]).collect();
            if live.is_empty() {
                break;
            }
            let mut moved = states.select(&live);
            let rows: Vec<usize> = (0..live.len()).collect();
            let dist = self.evaluate(direction, &moved, &live, None)?;
            let actions = dist.sample(&rows, &Exploration::on_policy(), rng)?;
            let log_probs = to_host(&dist.log_prob(&rows, &actions)?);
            let taken = self.env.step(direction, &mut moved, &actions)?;
            for (k, &i) in live.iter().enumerate() {
                paths[i].log_prob += log_probs[k];
                done[i] = taken.done[k];
            }
            let inner: Vec<usize> = rows.into_iter().filter(|&k| !taken.exit[k]).collect();
            if !inner.is_empty() {
                let after = moved.select(&inner);
                let undo = taken.reverse.select(&inner);
                for (&k, log_prob) in inner.iter().zip(self.log_probs(direction.opposite(), &after, &undo)?) {
                    paths[live[k]].steps += 1;
                    paths[live[k]].reverse_log_prob += log_prob;
                }
            }
            replace_rows(states, &live, moved);
        }
        let live = done.iter().filter(|done| !**done).count();
        if is_forward && live > 0 {
            return Err(Error::StepLimit { direction, limit: self.max_steps, live, n });
        }
        Ok(paths)
    }

    /// Returns the log-probability of one action in each state.
    fn log_probs(&self, direction: Direction, states: &E::States, actions: &E::Actions) -> Result<Vec<f64>> {
        let rows: Vec<usize> = (0..states.len()).collect();
        Ok(to_host(&self.evaluate(direction, states, &[], None)?.log_prob(&rows, actions)?))
    }
}

/// Replaces the rows at the indices `rows` by the rows of `new`.
fn replace_rows<S: Rows>(states: &mut S, rows: &[usize], new: S) {
    let n = states.len();
    let mut order: Vec<usize> = (0..n).collect();
    for (k, &row) in rows.iter().enumerate() {
        order[row] = n + k;
    }
    states.append(new);
    *states = states.select(&order);
}
