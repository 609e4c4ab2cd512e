//! A source that draws trajectories from a replay buffer or from given data. Some of the drawn trajectories
//! may get other conditions.

use std::ops::Range;

use tch::Tensor;

use super::{BatchRequest, Source, SourceTraits};
use crate::condition::{Conditions, Hindsight};
use crate::env::{Env, Rows, log_rewards};
use crate::objective::Scores;
use crate::policy::Policy;
use crate::replay::{Draw, RankBy, ReplayBuffer, ReplayDraw};
use crate::rollout::{Trajectories, Walks};
use crate::tensor::index_tensor;
use crate::train::{Context, Persist, ReplayPath, TrainEnv};
use crate::{Error, Result, Rng};

/// A function that adds entries to a replay buffer before the draws of each step, for example by a search
/// that starts from the buffer's objects ([`Trainer::with_refill`](crate::train::Trainer::with_refill)). The
/// function must not have a state, because a checkpoint wouldn't store it and a resumed run would differ.
pub trait Refill<E: Env>: Send {
    /// Adds entries to `buffer`. Returns the number of objects whose reward was computed.
    ///
    /// # Errors
    /// Any error that must end the step.
    fn refill(&self, buffer: &mut ReplayBuffer<E>, context: &Context<E>, rng: &mut Rng) -> Result<u64>;
}

/// The settings of hindsight, which gives replayed objects other conditions.
pub(in crate::train) struct Relabelling<S> {
    pub(in crate::train) hindsight: Box<dyn Hindsight<S>>,
    /// The probability that a replayed object gets another condition.
    pub(in crate::train) share: f64,
}

/// A replay buffer, or given data, as a source of trajectories.
pub(in crate::train) struct Replay<E: Env> {
    pub(in crate::train) buffer: ReplayBuffer<E>,
    pub(in crate::train) hindsight: Option<Relabelling<E::States>>,
    pub(in crate::train) refill: Option<Box<dyn Refill<E>>>,
    /// `true` for given data, to which training adds no trajectories. A checkpoint copies given data only if
    /// they are drawn with probabilities that depend on their losses.
    is_data: bool,
    /// The serial numbers of the entries in the buffer's last draw, in the order of the draw.
    last_entries: Vec<u64>,
}

impl<E: Env> Replay<E> {
    pub(in crate::train) fn new(buffer: ReplayBuffer<E>, is_data: bool) -> Self {
        Self { buffer, hindsight: None, refill: None, is_data, last_entries: Vec::new() }
    }

    /// Calls the refill function, if one is set, before the draws of a step. Returns the number of objects
    /// whose reward it computed.
    pub(super) fn fill(&mut self, context: &Context<E>, rng: &mut Rng) -> Result<u64> {
        match &self.refill {
            Some(refill) => refill.refill(&mut self.buffer, context, rng),
            None => Ok(0),
        }
    }

    /// Returns `true` if the buffer draws entries by their losses, which earlier steps recorded.
    pub(in crate::train) fn draws_by_loss(&self) -> bool {
        match self.buffer.config().draw {
            Draw::LossPrioritised { .. } | Draw::Custom => true,
            Draw::RankPrioritised { by, .. } | Draw::WeightedRanks { by, .. } => by == RankBy::Loss,
            Draw::Uniform | Draw::RewardPrioritised { .. } => false,
        }
    }
}

impl<E: TrainEnv> Replay<E> {
    /// Gives a random share of the drawn entries another condition, and replaces their log-rewards by the
    /// objects' log-rewards under this condition.
    fn relabel(
        &self,
        mut drawn: ReplayDraw<E>,
        context: &Context<E>,
        rng: &mut Rng,
    ) -> Result<ReplayDraw<E>> {
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
            let expected = [rows.len() as i64, conditions.size()[1]];
            let remedy = "give conditions of the same width as those under which the objects were found";
            return Err(Error::shape("conditions in hindsight", expected, others.size(), remedy));
        }
        let rewards = log_rewards(context.reward.as_ref(), &objects, Some(&others))?;
        for (&row, reward) in rows.iter().zip(rewards) {
            drawn.log_rewards[row] = reward;
        }
        let others = others.to_kind(conditions.kind()).to_device(conditions.device());
        drawn.walks.conditions = Some(Conditions(conditions.index_copy(0, &at, &others)));
        Ok(drawn)
    }
}

impl<E: TrainEnv> Persist<E> for Replay<E> {
    fn name(&self) -> &str {
        if self.is_data { "data" } else { "replay" }
    }
    fn describe(&self) -> String {
        if self.is_data { "a data set whose trajectories are drawn by loss" } else { "a replay buffer" }
            .into()
    }
    fn state(&self, env: &E) -> Result<Vec<(String, Tensor)>> {
        if self.is_data && !self.draws_by_loss() { Ok(Vec::new()) } else { self.buffer.state(env) }
    }
    fn load_state(&mut self, env: &E, state: &[(String, Tensor)]) -> Result<()> {
        self.buffer.load_state(env, state)
    }
}

impl<E: TrainEnv> Source<E> for Replay<E> {
    fn traits(&self, context: &Context<E>) -> SourceTraits {
        let keeps_paths = context.config.replay_path != ReplayPath::UniformBackward;
        SourceTraits {
            keeps_paths,
            needs_losses: self.draws_by_loss(),
            is_external: false,
            ..SourceTraits::default()
        }
    }

    fn is_ready(&self, context: &Context<E>) -> bool {
        self.is_data || (context.step >= context.config.replay_after && !self.buffer.is_empty())
    }

    fn draw(
        &mut self,
        request: BatchRequest,
        context: &Context<E>,
        rng: &mut Rng,
    ) -> Result<Option<Trajectories<E>>> {
        let drawn = self.buffer.draw_entries(request.max, rng)?;
        let ReplayDraw { walks, log_rewards, serials, .. } = self.relabel(drawn, context, rng)?;
        self.last_entries = serials;
        sample_paths(&walks, context, rng)?.with_log_rewards(log_rewards).map(Some)
    }

    fn remember(&mut self, new: &Trajectories<E>, context: &Context<E>) -> Result<()> {
        if self.is_data {
            return Ok(());
        }
        let log_rewards = new.recorded_log_rewards().unwrap_or_default();
        self.buffer.add(&context.env, &new.walks(&context.env)?, log_rewards).map(drop)
    }

    /// Sets the loss of each entry of the last draw to the squared residual of trajectory balance, whatever
    /// the objective is.
    fn learn(
        &mut self,
        _: &Trajectories<E>,
        rows: Range<usize>,
        scores: &Scores,
        context: &Context<E>,
    ) -> Result<()> {
        if rows.is_empty() || !self.draws_by_loss() {
            return Ok(());
        }
        let imbalances = scores.imbalances(context.objective.reward_exponent());
        let losses: Vec<f64> = imbalances[rows].iter().map(|residual| residual.powi(2)).collect();
        self.buffer.update_losses(&self.last_entries, &losses)?;
        Ok(())
    }
}

/// Returns one trajectory to each drawn object: stored or new trajectories, depending on the setting
/// `replay_path`.
fn sample_paths<E: TrainEnv>(
    walks: &Walks<E>,
    context: &Context<E>,
    rng: &mut Rng,
) -> Result<Trajectories<E>> {
    let uniform = context.env.uniform();
    let policy: &dyn Policy<E> = match context.config.replay_path {
        ReplayPath::Stored => return walks.replay(&context.env),
        ReplayPath::UniformBackward => &uniform,
        ReplayPath::PolicyBackward => context.policy(),
    };
    let sampler = context.sampler(&context.env, policy);
    match walks.conditions() {
        None => sampler.backward(&walks.terminal, rng),
        Some(conditions) => sampler.backward_conditional(&walks.terminal, conditions, rng),
    }
}
