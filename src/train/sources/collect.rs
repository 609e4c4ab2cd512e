//! Collects the trajectories of a training batch: newly sampled ones, those of local search, replayed ones and given
//! data.

use super::on_policy::joined;
use crate::distribution::Exploration;
use crate::env::{Env, log_rewards};
use crate::objective::{Origin, Scores};
use crate::policy::Policy;
use crate::quantity::Quantity;
use crate::replay::{Draw, RankBy, ReplayBuffer};
use crate::rollout::{ReplayEnv, Sampler, Trajectories, Walks};
use crate::train::companions::for_sampling;
use crate::train::gradients::imbalance_of_each;
use crate::train::{ReplayPath, Trainer};
use crate::{Error, Result};

/// A training batch: new trajectories first, then replayed ones, then data.
pub(in crate::train) struct Batch<E: Env> {
    pub(in crate::train) trajectories: Trajectories<E>,
    pub(in crate::train) replayed: Replayed,
}

/// The trajectories of a batch that came from the replay buffer.
#[derive(Default)]
pub(in crate::train) struct Replayed {
    first: usize,
    serials: Vec<u64>,
}

impl Replayed {
    /// The index of the first one in the batch, which is the number of new ones.
    pub(in crate::train) fn first(&self) -> usize {
        self.first
    }
}

impl<E: ReplayEnv, P: Policy<E>> Trainer<E, P> {
    /// Collects the trajectories of one step. New ones are added to the buffer.
    pub(in crate::train) fn collect(&mut self) -> Result<Batch<E>> {
        self.check_source()?;
        self.check_draws()?;
        self.search_objects()?;
        let exploration = self.config.exploration(self.step)?;
        let ready = self.step >= self.config.replay_after && self.replay.as_ref().is_some_and(|b| !b.is_empty());
        let source = if ready { self.config.source } else { self.config.source.without_replay() };
        let counts = source.counts(self.config.batch);
        self.check_origin(exploration, counts.on_policy)?;
        let mut parts = Vec::new();
        if counts.on_policy > 0 {
            self.sample(counts.on_policy, exploration, &mut parts)?;
        }
        let mut replayed = Replayed { first: parts.iter().map(Trajectories::len).sum(), serials: Vec::new() };
        if let (Some(buffer), true) = (&self.replay, counts.replay > 0) {
            let drawn = buffer.draw_entries(counts.replay, &mut self.rng)?;
            let drawn = self.in_hindsight(drawn)?;
            replayed.serials = drawn.serials;
            parts.push(self.walk_again(&drawn.walks)?.with_log_rewards(drawn.log_rewards)?);
        }
        if counts.offline > 0 {
            let data = self.data.as_ref().ok_or(Error::Missing {
                objective: "the offline share of a batch",
                needs: "given trajectories",
                remedy: "give the trainer some (`with_data`), or an offline share of 0",
            })?;
            let drawn = data.draw_entries(counts.offline, &mut self.rng)?;
            parts.push(self.walk_again(&drawn.walks)?.with_log_rewards(drawn.log_rewards)?);
        }
        let trajectories = joined(parts)?;
        Ok(Batch { trajectories, replayed })
    }

    /// Samples new trajectories, runs local search from their objects, and adds all of them to the buffer.
    fn sample(&mut self, n: usize, exploration: Exploration, parts: &mut Vec<Trajectories<E>>) -> Result<()> {
        self.reward_calls += (n * (1 + self.config.local_search.map_or(0, |search| search.rounds))) as u64;
        let new = self.sample_new(n, exploration)?;
        let sampler = Sampler::new(&self.env, &self.policy).exploration(exploration).max_steps(self.config.max_steps);
        let rewards = log_rewards(self.reward.as_ref(), new.terminal_states(), new.conditions())?;
        if let Some(buffer) = &mut self.replay {
            buffer.add(&self.env, &new.walks(&self.env)?, &rewards)?;
        }
        let new = new.with_log_rewards(rewards)?;
        if let Some(search) = self.config.local_search {
            if new.conditions().is_some() {
                return Err(Error::Missing {
                    objective: "local search",
                    needs: "objects without conditions",
                    remedy: "train a conditional policy without local search",
                });
            }
            let known = new.recorded_log_rewards().unwrap_or_default();
            let start = (new.terminal_states(), known);
            let (found, rewards) = sampler.local_search_from(search, start, self.reward.as_ref(), &mut self.rng)?;
            let paths = sampler.backward(&found, &mut self.rng)?;
            if let Some(buffer) = &mut self.replay {
                buffer.add(&self.env, &paths.walks(&self.env)?, &rewards)?;
            }
            parts.push(paths.with_log_rewards(rewards)?);
        }
        parts.push(new);
        Ok(())
    }

    /// Stored walks as trajectories, on the path that the settings ask for.
    fn walk_again(&mut self, walks: &Walks<E>) -> Result<Trajectories<E>> {
        let at_random = self.env.uniform();
        let uniform = Sampler::new(&self.env, &at_random).max_steps(self.config.max_steps);
        let learned = Sampler::new(&self.env, &self.policy).max_steps(self.config.max_steps);
        let terminal = &walks.terminal;
        match (self.config.replay_path, walks.conditions()) {
            (ReplayPath::Stored, _) => walks.replay(&self.env),
            (ReplayPath::UniformBackward, None) => uniform.backward(terminal, &mut self.rng),
            (ReplayPath::UniformBackward, Some(conditions)) => {
                uniform.backward(terminal, &mut self.rng)?.with_conditions(conditions.shallow_clone())
            }
            (ReplayPath::PolicyBackward, None) => learned.backward(terminal, &mut self.rng),
            (ReplayPath::PolicyBackward, Some(conditions)) => {
                learned.backward_conditional(terminal, conditions, &mut self.rng)
            }
        }
    }

    /// Updates the losses in a buffer that draws by loss. The loss of a trajectory is `(log Z + sum log P_F - log R -
    /// sum log P_B)^2` with the scores' estimate of log Z, whatever the objective. Relative to a prior, `beta log R`
    /// and log prior replace the last two terms.
    pub(in crate::train) fn update_replay_losses(&mut self, replayed: &Replayed, scores: &Scores) -> Result<()> {
        let Some(buffer) = &mut self.replay else { return Ok(()) };
        if !draws_by_loss(buffer) || replayed.serials.is_empty() {
            return Ok(());
        }
        let range = replayed.first..replayed.first + replayed.serials.len();
        let imbalances = imbalance_of_each(scores, self.objective.reward_exponent());
        let losses: Vec<f64> = imbalances[range].iter().map(|residual| residual.powi(2)).collect();
        buffer.update_losses(&replayed.serials, &losses)?;
        Ok(())
    }

    /// Refuses data and searches whose share of a batch is 0, because they would have no effect.
    fn check_source(&self) -> Result<()> {
        let source = self.config.source;
        let idle = [
            (
                self.data.is_some() && source.offline() == 0.0,
                "the offline share of a batch",
                "0 with given trajectories",
            ),
            (self.search.is_some() && source.replay() == 0.0, "the replay share of a batch", "0 with a search"),
        ];
        match idle.into_iter().find(|(idle, ..)| *idle) {
            None => Ok(()),
            Some((_, setting, got)) => Err(Error::Config {
                setting,
                got: got.into(),
                expected: "a share above 0 (`TrainerConfig::source`) for what the trainer was given",
            }),
        }
    }

    /// Refuses trajectories that the objective can't learn from.
    fn check_origin(&self, exploration: Exploration, n_new: usize) -> Result<()> {
        if self.teacher.is_some() && self.objective.needs().has(Quantity::LogPrior) {
            return Err(Error::Missing {
                objective: "an adaptive teacher",
                needs: "an objective whose balance is one with P_B, not with a prior",
                remedy: "train the student without a teacher, or by an objective that isn't relative to a prior",
            });
        }
        if self.thompson.is_some() && (self.teacher.is_some() || self.replay.as_ref().is_some_and(draws_by_loss)) {
            return Err(Error::Missing {
                objective: "Thompson sampling",
                needs: "nobody who asks for the loss of the whole batch",
                remedy: "train it without an adaptive teacher and without a buffer that draws by loss",
            });
        }
        let refuse = |needs, remedy| Err(Error::Missing { objective: self.objective.name(), needs, remedy });
        match self.objective.origin() {
            Origin::OnPolicy if exploration != Exploration::none() => refuse(
                "trajectories of the policy itself",
                "train without exploration (epsilon 0, temperature 1, exit bias 0, noise 0), or by an off-policy objective",
            ),
            Origin::OnPolicy if for_sampling(self.average.as_ref()).is_some() => refuse(
                "trajectories of the policy itself",
                "keep the average for evaluation, or train by an off-policy objective",
            ),
            Origin::OnPolicy if self.teacher.is_some() || self.thompson.is_some() => refuse(
                "trajectories of the policy itself",
                "train without a teacher and without Thompson sampling, or by an off-policy objective",
            ),
            Origin::OnPolicy if self.config.local_search.is_some() => {
                refuse("trajectories of the policy itself", "train without local search, or by an off-policy objective")
            }
            // Refused from the first step on, not only when something is drawn from the buffer.
            Origin::OnPolicy if n_new < self.config.batch || self.replay.is_some() => refuse(
                "trajectories of the policy itself",
                "train without replay and without given trajectories, or by an off-policy objective",
            ),
            Origin::Given if n_new > 0 => refuse(
                "trajectories that aren't the policy's own",
                "give the trainer data (`with_data`) and an offline share of 1",
            ),
            _ => Ok(()),
        }
    }
}

/// Whether a buffer draws by loss.
pub(in crate::train) fn draws_by_loss<E: Env>(buffer: &ReplayBuffer<E>) -> bool {
    match buffer.config().draw {
        Draw::LossPrioritised { .. } | Draw::Own => true,
        Draw::RankPrioritised { by, .. } | Draw::WeightedRanks { by, .. } => by == RankBy::Loss,
        Draw::Uniform | Draw::RewardPrioritised { .. } => false,
    }
}
