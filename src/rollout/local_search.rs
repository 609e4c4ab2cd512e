use serde::{Deserialize, Serialize};

use super::Sampler;
use crate::distribution::{Distribution, Exploration};
use crate::env::{Direction, Env, Reward, Rows, check_log_rewards, log_rewards, training_log_rewards};
use crate::policy::Policy;
use crate::quantity::{Quantities, Quantity};
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

/// One walk of a batch: its number of steps, and the log-probabilities of its path between the object and the turning
/// state in both directions.
#[derive(Clone, Copy, Default)]
struct Walk {
    steps: usize,
    log_pf: f64,
    log_pb: f64,
}

impl<E: Env, P: Policy<E>> Sampler<'_, E, P> {
    /// Runs a local search from each of these objects; returns the resulting objects and their log-rewards.
    ///
    /// Acceptance uses rewards by the environment's measure over states, as in training ([`Env::log_symmetry`],
    /// [`Env::log_multiplicity`]).
    ///
    /// ```
    /// use gfn::{policy::UniformPolicy, rollout::{Acceptance, LocalSearch, Sampler}, testing::{Chain, Positions}, Rng};
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
    pub fn local_search<R: Reward<E::States> + ?Sized>(
        &self,
        search: LocalSearch,
        objects: &E::States,
        reward: &R,
        rng: &mut Rng,
    ) -> Result<(E::States, Vec<f64>)> {
        search.check()?;
        let known = log_rewards(reward, objects, None)?;
        self.local_search_from(search, (objects, &known), reward, rng)
    }

    /// Same as [`local_search`](Self::local_search), for objects whose log-rewards are known: the reward is evaluated
    /// only for proposals, `rounds` for each object.
    ///
    /// # Errors
    /// As for [`local_search`](Self::local_search), and [`Error::Shape`] unless there is one log-reward per object.
    pub fn local_search_from<R: Reward<E::States> + ?Sized>(
        &self,
        search: LocalSearch,
        (objects, known): (&E::States, &[f64]),
        reward: &R,
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
        let mut down = vec![Walk::default(); n];
        let mut states = objects.clone();
        if let Some(exits) = self.env.exit_actions(&states) {
            let pf = self.policies(&states)?.0;
            let rows: Vec<usize> = (0..n).collect();
            let log_pf = to_host(&pf.log_prob(&rows, &exits)?);
            down.iter_mut().zip(log_pf).for_each(|(walk, p)| walk.log_pf = p);
        }
        loop {
            let initial = self.env.is_initial(&states);
            let live: Vec<usize> = (0..n).filter(|&i| !initial[i] && down[i].steps < back[i]).collect();
            if live.is_empty() {
                break;
            }
            let mut moved = states.select(&live);
            let rows: Vec<usize> = (0..live.len()).collect();
            let pb = self.policies(&moved)?.1;
            let actions = pb.sample(&rows, &Exploration::none(), rng)?;
            let log_pb = to_host(&pb.log_prob(&rows, &actions)?);
            let forward = self.env.step(Direction::Backward, &mut moved, &actions)?.reverse;
            let log_pf = to_host(&self.policies(&moved)?.0.log_prob(&rows, &forward)?);
            for (k, &i) in live.iter().enumerate() {
                down[i].steps += 1;
                down[i].log_pb += log_pb[k];
                down[i].log_pf += log_pf[k];
            }
            put(&mut states, &live, moved);
        }
        let turned_at_start = self.env.is_initial(&states);
        let (up, proposed) = self.climb(states, rng)?;
        let log_ratio = (0..n).map(|i| {
            let turn = |walk: &Walk| search.log_turn(walk.steps, turned_at_start[i]);
            let there = down[i].log_pb + up[i].log_pf + turn(&down[i]);
            up[i].log_pb + down[i].log_pf + turn(&up[i]) - there
        });
        let log_ratio = log_ratio.collect();
        Ok((proposed, log_ratio))
    }

    /// Samples forwards from each state to a finished object.
    fn climb(&self, mut states: E::States, rng: &mut Rng) -> Result<(Vec<Walk>, E::States)> {
        let n = states.len();
        let mut up = vec![Walk::default(); n];
        let mut live: Vec<usize> = (0..n).collect();
        for step in 0.. {
            if live.is_empty() {
                break;
            }
            if step == self.max_steps {
                let (direction, limit) = (Direction::Forward, self.max_steps);
                return Err(Error::StepLimit { direction, limit, live: live.len(), n });
            }
            let mut moved = states.select(&live);
            let rows: Vec<usize> = (0..live.len()).collect();
            let pf = self.policies(&moved)?.0;
            let actions = pf.sample(&rows, &Exploration::none(), rng)?;
            let log_pf = to_host(&pf.log_prob(&rows, &actions)?);
            let step = self.env.step(Direction::Forward, &mut moved, &actions)?;
            let inner: Vec<usize> = (0..live.len()).filter(|&k| !step.exit[k]).collect();
            if !inner.is_empty() {
                let pb = self.policies(&moved.select(&inner))?.1;
                let rows: Vec<usize> = (0..inner.len()).collect();
                let log_pb = to_host(&pb.log_prob(&rows, &step.reverse.select(&inner))?);
                for (&k, p) in inner.iter().zip(log_pb) {
                    up[live[k]].steps += 1;
                    up[live[k]].log_pb += p;
                }
            }
            live.iter().zip(&log_pf).for_each(|(&i, p)| up[i].log_pf += p);
            put(&mut states, &live, moved);
            live = live.iter().zip(&step.done).filter(|(_, done)| !**done).map(|(&i, _)| i).collect();
        }
        Ok((up, states))
    }

    /// P_F and P_B of each state.
    fn policies(&self, states: &E::States) -> Result<(P::Dist, P::Dist)> {
        let evaluation = self.policy.evaluate(self.env, states, None, Quantities::PF | Quantity::LogPb)?;
        evaluation.pf.zip(evaluation.pb).ok_or(Error::missing(
            "local search",
            "a forward and a backward policy",
            "use a policy that has both, such as UniformPolicy",
        ))
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
