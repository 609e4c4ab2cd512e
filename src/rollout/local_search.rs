use serde::{Deserialize, Serialize};

use super::Sampler;
use crate::distribution::{Distribution, Exploration};
use crate::env::{Direction, Env, Reward, Rows, check_log_rewards, log_rewards, training_log_rewards};
use crate::tensor::to_host;
use crate::{Error, Result, Rng};

/// The rule by which a local search accepts proposals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Acceptance {
    /// Accepts a proposal with a larger reward: hill climbing.
    Greedy,
    /// The Metropolis-Hastings rule, which keeps objects distributed in proportion to the reward if they already are.
    MetropolisHastings,
}

/// Local search (Kim et al., *Local Search GFlowNets*, 2024): goes some steps back from an object by P_B, and forwards
/// again by P_F to another object.
///
/// The number of backward steps is drawn from `1..=max_back`; the walk also turns round at the initial state. Let x be
/// the object, s the state at which the walk turns round, and the paths those taken between s and both objects. A
/// proposal x' is accepted with probability
/// `min(1, R(x') P_B(x' -> s) P_F(s -> x) q(k') / (R(x) P_B(x -> s) P_F(s -> x') q(k)))`, where k and k' count the
/// steps between s and each object and q is the probability of turning round there. Peers leave q out, or fix the
/// number of steps. That is wrong if trajectories differ in length, because x might not be reachable from x' in the
/// same number of steps.
///
/// Local search changes which objects are seen, but not the training target: objectives that take any trajectories can
/// learn from its objects, on paths drawn backwards.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct LocalSearch {
    /// Number of proposals per object, one after another.
    pub rounds: usize,
    /// Largest number of backward steps.
    pub max_back: usize,
    /// The rule by which proposals are accepted.
    pub acceptance: Acceptance,
}

impl LocalSearch {
    /// Checks the settings.
    ///
    /// # Errors
    /// [`Error::Config`] for a search without backward steps or without proposals.
    pub fn check(self) -> Result<()> {
        let refuse = |setting, expected| Err(Error::config(setting, "0", expected));
        match self {
            Self { max_back: 0, .. } => refuse("max_back", "at least one step back"),
            Self { rounds: 0, .. } => refuse("rounds", "at least one proposal per object"),
            _ => Ok(()),
        }
    }

    /// The log of the probability that a walk turns round after `steps` steps. At the initial state it turns round for
    /// certain, elsewhere only after the number of steps that was drawn.
    fn log_turn(self, steps: usize, initial: bool) -> f64 {
        let max = self.max_back;
        let ways = match steps {
            // The initial state has no parent, so a walk from there has no steps for certain.
            0 => return if initial { 0.0 } else { f64::NEG_INFINITY },
            k if k > max => 0,
            k if initial => max - k + 1,
            _ => 1,
        };
        (ways as f64 / max as f64).ln()
    }
}

/// The steps of one walk between an object and the turning state, and the log-probabilities of its path.
#[derive(Clone, Copy, Default)]
struct WalkLogs {
    steps: usize,
    /// In the direction in which it was walked.
    along: f64,
    /// In the other direction.
    against: f64,
}

impl<E: Env> Sampler<'_, E> {
    /// Runs a local search from each of these objects; returns the resulting objects and their log-rewards.
    ///
    /// Acceptance uses rewards by the environment's measure over states, as in training ([`Symmetry::log_symmetry`](crate::env::Symmetry::log_symmetry),
    /// [`Symmetry::log_multiplicity`](crate::env::Symmetry::log_multiplicity)).
    ///
    /// ```
    /// use gfn::{policy::UniformPolicy, rollout::{Acceptance, LocalSearch, Sampler}, examples::{Chain, Positions}, Rng};
    /// let env = Chain::new(5);
    /// let reward = |s: &Positions, _: Option<&tch::Tensor>| -> gfn::Result<Vec<f64>> {
    ///     Ok(s.0.iter().map(|&x| f64::from(x)).collect())
    /// };
    /// let search = LocalSearch { rounds: 20, max_back: 2, acceptance: Acceptance::Greedy };
    /// let sampler = Sampler::new(&env, &UniformPolicy);
    /// let start = sampler.forward(4, &mut Rng::seeded(0))?;
    /// let (found, log_rewards) = sampler.local_search(search, start.terminal_states(), &reward, &mut Rng::seeded(1))?;
    /// assert_eq!(found.0.len(), log_rewards.len());
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] for a search without backward steps; those of policy, reward and environment.
    pub fn local_search(
        &self,
        search: LocalSearch,
        objects: &E::States,
        reward: &dyn Reward<E::States>,
        rng: &mut Rng,
    ) -> Result<(E::States, Vec<f64>)> {
        search.check()?;
        let known = log_rewards(reward, objects, None)?;
        self.local_search_from(search, objects, &known, reward, rng)
    }

    /// Same as [`local_search`](Self::local_search), for objects whose log-rewards are known: the reward is evaluated
    /// only for proposals, `rounds` for each object.
    ///
    /// # Errors
    /// As for [`local_search`](Self::local_search), and [`Error::Shape`] unless there is one log-reward per object.
    pub fn local_search_from(
        &self,
        search: LocalSearch,
        objects: &E::States,
        known: &[f64],
        reward: &dyn Reward<E::States>,
        rng: &mut Rng,
    ) -> Result<(E::States, Vec<f64>)> {
        search.check()?;
        check_log_rewards(known, objects.len())?;
        let raw = |objects: &E::States| log_rewards(reward, objects, None);
        let corrected = |objects: &E::States, raw: &[f64]| training_log_rewards(self.env, objects, raw.to_vec());
        let mut held = objects.clone();
        let mut log_reward = known.to_vec();
        for _ in 0..search.rounds {
            let (proposed, log_ratio) = tch::no_grad(|| self.propose(search, &held, rng))?;
            let new_log_reward = raw(&proposed)?;
            let gain: Vec<f64> = corrected(&proposed, &new_log_reward)?
                .iter()
                .zip(corrected(&held, &log_reward)?)
                .map(|(new, old)| new - old)
                .collect();
            let n = held.len();
            let keep: Vec<bool> = (0..n)
                .map(|i| match search.acceptance {
                    Acceptance::Greedy => gain[i] > 0.0,
                    Acceptance::MetropolisHastings => rng.uniform().ln() < gain[i] + log_ratio[i],
                })
                .collect();
            held.append(proposed);
            let rows: Vec<usize> = (0..n).map(|i| if keep[i] { n + i } else { i }).collect();
            held = held.select(&rows);
            log_reward = (0..n).map(|i| if keep[i] { new_log_reward[i] } else { log_reward[i] }).collect();
        }
        Ok((held, log_reward))
    }

    /// A proposal for each object, and the log of the probability of the reverse proposal minus that of the proposal.
    fn propose(&self, search: LocalSearch, objects: &E::States, rng: &mut Rng) -> Result<(E::States, Vec<f64>)> {
        let n = objects.len();
        let back: Vec<usize> = (0..n).map(|_| 1 + rng.below(search.max_back)).collect();
        let mut states = objects.clone();
        let mut down = self.walk(Direction::Backward, &mut states, &back, rng)?;
        if let Some(exits) = self.env.exit_actions(objects) {
            let log_pf = self.log_probs(Direction::Forward, objects, &exits)?;
            down.iter_mut().zip(log_pf).for_each(|(walk, p)| walk.against += p);
        }
        let turned_at_start = self.env.is_initial(&states);
        let up = self.walk(Direction::Forward, &mut states, &vec![self.max_steps; n], rng)?;
        let log_ratio = (0..n).map(|i| {
            let turn = |walk: &WalkLogs| search.log_turn(walk.steps, turned_at_start[i]);
            let there = down[i].along + up[i].along + turn(&down[i]);
            up[i].against + down[i].against + turn(&up[i]) - there
        });
        Ok((states, log_ratio.collect()))
    }

    /// Walks from each state by at most so many steps: backwards no further than the initial state, forwards to a finished object, which
    /// must be reached. The exit isn't counted as a step.
    fn walk(
        &self,
        direction: Direction,
        states: &mut E::States,
        limits: &[usize],
        rng: &mut Rng,
    ) -> Result<Vec<WalkLogs>> {
        let (n, forward) = (states.len(), direction == Direction::Forward);
        let mut walks = vec![WalkLogs::default(); n];
        let mut done = if forward { vec![false; n] } else { self.env.is_initial(states) };
        for step in 0.. {
            let live: Vec<usize> = (0..n).filter(|&i| !done[i] && step < limits[i]).collect();
            if live.is_empty() {
                break;
            }
            let mut moved = states.select(&live);
            let rows: Vec<usize> = (0..live.len()).collect();
            let dist = self.evaluate(direction, &moved, &live, None)?;
            let actions = dist.sample(&rows, &Exploration::none(), rng)?;
            let along = to_host(&dist.log_prob(&rows, &actions)?);
            let taken = self.env.step(direction, &mut moved, &actions)?;
            for (k, &i) in live.iter().enumerate() {
                walks[i].along += along[k];
                done[i] = taken.done[k];
            }
            let inner: Vec<usize> = rows.into_iter().filter(|&k| !taken.exit[k]).collect();
            if !inner.is_empty() {
                let (after, undo) = (moved.select(&inner), taken.reverse.select(&inner));
                for (&k, p) in inner.iter().zip(self.log_probs(direction.opposite(), &after, &undo)?) {
                    walks[live[k]].steps += 1;
                    walks[live[k]].against += p;
                }
            }
            put(states, &live, moved);
        }
        let live = done.iter().filter(|done| !**done).count();
        if forward && live > 0 {
            return Err(Error::StepLimit { direction, limit: self.max_steps, live, n });
        }
        Ok(walks)
    }

    /// The log-probability of an action of each state.
    fn log_probs(&self, direction: Direction, states: &E::States, actions: &E::Actions) -> Result<Vec<f64>> {
        let rows: Vec<usize> = (0..states.len()).collect();
        Ok(to_host(&self.evaluate(direction, states, &[], None)?.log_prob(&rows, actions)?))
    }
}

/// Replaces the rows at these indices by new ones.
fn put<S: Rows>(states: &mut S, rows: &[usize], new: S) {
    let n = states.len();
    let mut order: Vec<usize> = (0..n).collect();
    rows.iter().enumerate().for_each(|(k, &row)| order[row] = n + k);
    states.append(new);
    *states = states.select(&order);
}
