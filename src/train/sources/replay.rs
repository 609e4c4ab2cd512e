//! Trajectories from a replay buffer, or from given ones: some of them under other conditions, some found by a search.

use std::ops::Range;

use tch::Tensor;

use super::{Facts, ObjectSearch, Source, Wanted};
use crate::condition::{Conditions, Hindsight};
use crate::env::{Env, Rows, log_rewards};
use crate::objective::Scores;
use crate::replay::{Draw, Drawn, RankBy, ReplayBuffer};
use crate::rollout::{Container, Sampler, Trajectories, Walks};
use crate::tensor::index_tensor;
use crate::train::TrainEnv;
use crate::train::{Context, Persist, ReplayPath};
use crate::{Error, Result, Rng};

/// A replay buffer, or given trajectories, and what is done with them.
pub(in crate::train) struct Replay<E: Env> {
    pub(in crate::train) buffer: ReplayBuffer<E>,
    pub(in crate::train) hindsight: Option<Relabelling<E::States>>,
    pub(in crate::train) searching: Option<Searching<E>>,
    /// `true` for given trajectories: nothing is added to them, so that a checkpoint needn't have them.
    given: bool,
    /// The entries that were drawn last.
    serials: Vec<u64>,
}

/// Other conditions, and the probability with which they are given.
pub(in crate::train) struct Relabelling<S> {
    pub(in crate::train) hindsight: Box<dyn Hindsight<S>>,
    pub(in crate::train) share: f64,
}

/// A search, the number of steps between two, and of the objects that each starts from.
pub(in crate::train) struct Searching<E: Env> {
    pub(in crate::train) search: Box<dyn ObjectSearch<E>>,
    pub(in crate::train) every: usize,
    pub(in crate::train) objects: usize,
}

impl<E: Env> Replay<E> {
    pub(in crate::train) fn new(buffer: ReplayBuffer<E>, given: bool) -> Self {
        Self { buffer, hindsight: None, searching: None, given, serials: Vec::new() }
    }

    /// `true` if it is to be told the losses of what it gave.
    pub(in crate::train) fn draws_by_loss(&self) -> bool {
        match self.buffer.config().draw {
            Draw::LossPrioritised { .. } | Draw::Own => true,
            Draw::RankPrioritised { by, .. } | Draw::WeightedRanks { by, .. } => by == RankBy::Loss,
            Draw::Uniform | Draw::RewardPrioritised { .. } => false,
        }
    }
}

impl<E: TrainEnv> Replay<E> {
    /// Adds trajectories with the log-rewards that they have.
    pub(super) fn add(&mut self, env: &E, trajectories: &Trajectories<E>) -> Result<()> {
        let log_rewards = trajectories.recorded_log_rewards().unwrap_or_default();
        self.buffer.add(env, &trajectories.walks(env)?, log_rewards).map(|_| ())
    }

    /// Searches if the time for it has come; gives the number of objects that the reward was asked for.
    pub(super) fn search(&mut self, context: &Context<E>, rng: &mut Rng) -> Result<usize> {
        let (env, buffer) = (&context.env, &mut self.buffer);
        let due = |one: &&Searching<E>| context.step > 0 && context.step.is_multiple_of(one.every);
        let Some(searching) = self.searching.as_ref().filter(due).filter(|_| !buffer.is_empty()) else { return Ok(0) };
        let start = buffer.draw(searching.objects, rng)?.terminal;
        let found = searching.search.search(env, &start, context.reward.as_ref(), rng)?;
        if found.objects.is_empty() {
            return Ok(found.reward_calls);
        }
        let walks = if buffer.keeps_paths() {
            let uniform = env.uniform();
            let sampler = Sampler::new(env, &uniform).max_steps(context.config.max_steps);
            sampler.backward(&found.objects, rng)?.walks(env)?
        } else {
            let offsets = vec![0; found.objects.len() + 1];
            Walks { actions: env.no_actions(), offsets, terminal: found.objects, conditions: None }
        };
        buffer.add(env, &walks, &found.log_rewards)?;
        Ok(found.reward_calls)
    }

    /// Entries of the buffer, some of them relabelled.
    fn in_hindsight(&self, mut drawn: Drawn<E>, context: &Context<E>, rng: &mut Rng) -> Result<Drawn<E>> {
        let (Some(relabelling), Some(conditions)) = (&self.hindsight, drawn.walks.conditions()) else {
            return Ok(drawn);
        };
        let rows: Vec<usize> = (0..drawn.walks.len()).filter(|_| rng.uniform() < relabelling.share).collect();
        if rows.is_empty() {
            return Ok(drawn);
        }
        let at = index_tensor(&rows, conditions.device());
        let objects = drawn.walks.terminal.select(&rows);
        let others = relabelling.hindsight.relabel(&objects, &conditions.index_select(0, &at), rng)?;
        let Conditions(others) = Conditions::checked(others, rows.len())?;
        if others.size()[1] != conditions.size()[1] {
            return Err(Error::shape(
                "conditions in hindsight",
                [rows.len() as i64, conditions.size()[1]],
                others.size(),
                "give conditions of the width of those that the objects were found under",
            ));
        }
        let rewards = log_rewards(context.reward.as_ref(), &objects, Some(&others))?;
        rows.iter().zip(rewards).for_each(|(&row, reward)| drawn.log_rewards[row] = reward);
        let others: Tensor = others.to_kind(conditions.kind()).to_device(conditions.device());
        drawn.walks.conditions = Some(Conditions(conditions.index_copy(0, &at, &others)));
        Ok(drawn)
    }
}

impl<E: TrainEnv> Persist<E> for Replay<E> {
    fn name(&self) -> &str {
        if self.given { "data" } else { "replay" }
    }
    fn describe(&self) -> String {
        if self.given { "given trajectories drawn by loss" } else { "a replay buffer" }.into()
    }
    fn state(&self, env: &E) -> Result<Vec<(String, Tensor)>> {
        if self.given && !self.draws_by_loss() { Ok(Vec::new()) } else { self.buffer.state(env) }
    }
    fn load_state(&mut self, env: &E, state: &[(String, Tensor)]) -> Result<()> {
        self.buffer.load_state(env, state)
    }
}

impl<E: TrainEnv> Source<E> for Replay<E> {
    fn facts(&self, context: &Context<E>) -> Facts {
        let has_way = context.config.replay_path != ReplayPath::UniformBackward;
        Facts { on_policy: false, has_way, sees_losses: self.draws_by_loss() }
    }

    fn draw(&mut self, wanted: Wanted, context: &Context<E>, rng: &mut Rng) -> Result<Option<Trajectories<E>>> {
        let drawn = self.buffer.draw_entries(wanted.most, rng)?;
        let Drawn { walks, log_rewards, serials, .. } = self.in_hindsight(drawn, context, rng)?;
        self.serials = serials;
        walk_again(&walks, context, rng)?.with_log_rewards(log_rewards).map(Some)
    }

    /// Tells a buffer that draws by loss what its trajectories came to: the squared imbalance, whatever the objective.
    fn learn(&mut self, _: &Trajectories<E>, rows: Range<usize>, scores: &Scores, context: &Context<E>) -> Result<()> {
        if rows.is_empty() || !self.draws_by_loss() {
            return Ok(());
        }
        let imbalances = scores.imbalances(context.objective.reward_exponent());
        let losses: Vec<f64> = imbalances[rows].iter().map(|residual| residual.powi(2)).collect();
        self.buffer.update_losses(&self.serials, &losses)?;
        Ok(())
    }
}

/// Stored walks as trajectories, by the path that the settings ask for.
fn walk_again<E: TrainEnv>(walks: &Walks<E>, context: &Context<E>, rng: &mut Rng) -> Result<Trajectories<E>> {
    let (env, max_steps) = (&context.env, context.config.max_steps);
    let (at_random, conditions) = (env.uniform(), walks.conditions());
    match context.config.replay_path {
        ReplayPath::Stored => walks.replay(env),
        ReplayPath::UniformBackward => {
            let back = Sampler::new(env, &at_random).max_steps(max_steps).backward(&walks.terminal, rng)?;
            match conditions {
                None => Ok(back),
                Some(conditions) => back.with_conditions(conditions.shallow_clone()),
            }
        }
        ReplayPath::PolicyBackward => {
            let sampler = Sampler::new(env, context.policy()).max_steps(max_steps);
            match conditions {
                None => sampler.backward(&walks.terminal, rng),
                Some(conditions) => sampler.backward_conditional(&walks.terminal, conditions, rng),
            }
        }
    }
}
