//! Trajectories from a replay buffer, some of them under other conditions.

use std::ops::Range;

use tch::Tensor;

use super::{BatchSource, Searching};
use crate::condition::{Conditions, Hindsight};
use crate::env::{Env, Rows, log_rewards};
use crate::objective::Scores;
use crate::policy::Policy;
use crate::replay::{Draw, Drawn, RankBy, ReplayBuffer};
use crate::rollout::{Container, ReplayEnv, Sampler, Trajectories, Walks};
use crate::tensor::index_tensor;
use crate::train::checkpoint::{Saved, apart, own};
use crate::train::{Context, Persist, ReplayPath};
use crate::{Error, Result, Rng};

/// A buffer, and what is done with what it gives.
pub(in crate::train) struct Replay<E: Env> {
    pub(in crate::train) buffer: ReplayBuffer<E>,
    pub(in crate::train) hindsight: Option<Relabelling<E::States>>,
    pub(in crate::train) search: Option<Searching<E>>,
    /// What was drawn last.
    serials: Vec<u64>,
    /// Rank and number of the replicas that a checkpoint is loaded by.
    pub(in crate::train) place: (usize, usize),
}

/// The buffer's section of checkpoints.
pub(in crate::train) const REPLAY: &str = "replay";

/// Who gives other conditions, and with which probability.
pub(in crate::train) struct Relabelling<S> {
    pub(in crate::train) hindsight: Box<dyn Hindsight<S>>,
    pub(in crate::train) share: f64,
}

impl<E: ReplayEnv> Replay<E> {
    pub(in crate::train) fn new(buffer: ReplayBuffer<E>) -> Self {
        Self { buffer, hindsight: None, search: None, serials: Vec::new(), place: (0, 1) }
    }

    /// Adds trajectories with the log-rewards that they have.
    pub(super) fn add(&mut self, env: &E, trajectories: &Trajectories<E>) -> Result<()> {
        let log_rewards = trajectories.recorded_log_rewards().unwrap_or_default();
        self.buffer.add(env, &trajectories.walks(env)?, log_rewards).map(|_| ())
    }

    /// What was drawn from the buffer, some of it relabelled.
    fn in_hindsight<P>(&self, mut drawn: Drawn<E>, context: &Context<E, P>, rng: &mut Rng) -> Result<Drawn<E>> {
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

impl<E: ReplayEnv> Persist<E> for Replay<E> {
    fn name(&self) -> &str {
        REPLAY
    }
    fn describe(&self) -> String {
        "a replay buffer".into()
    }
    fn state(&self, env: &E) -> Result<Vec<(String, Tensor)>> {
        let state = self.buffer.state(env)?;
        Ok(if self.place.1 > 1 { own(state) } else { state })
    }
    fn load_state(&mut self, env: &E, state: &[(String, Tensor)]) -> Result<()> {
        match apart(state, self.place)? {
            Saved::Own(state) => self.buffer.load_state(env, &state),
            Saved::Others(states) => self.buffer.load_share(env, &states, self.place),
        }
    }
}

impl<E: ReplayEnv, P: Policy<E>> BatchSource<E, P> for Replay<E> {
    fn draw(&mut self, n: usize, context: &Context<E, P>, rng: &mut Rng) -> Result<Trajectories<E>> {
        let drawn = self.buffer.draw_entries(n, rng)?;
        let Drawn { walks, log_rewards, serials, .. } = self.in_hindsight(drawn, context, rng)?;
        self.serials = serials;
        walk_again(&walks, context, rng)?.with_log_rewards(log_rewards)
    }

    /// Tells a buffer that draws by loss what its trajectories came to: the squared imbalance, whatever the objective.
    fn learn(&mut self, rows: Range<usize>, scores: &Scores, context: &Context<E, P>) -> Result<()> {
        if rows.is_empty() || !draws_by_loss(&self.buffer) {
            return Ok(());
        }
        let imbalances = scores.imbalances(context.objective.reward_exponent());
        let losses: Vec<f64> = imbalances[rows].iter().map(|residual| residual.powi(2)).collect();
        self.buffer.update_losses(&self.serials, &losses)?;
        Ok(())
    }
}

/// Stored walks as trajectories, by the path that the settings ask for.
pub(super) fn walk_again<E: ReplayEnv, P: Policy<E>>(
    walks: &Walks<E>,
    context: &Context<E, P>,
    rng: &mut Rng,
) -> Result<Trajectories<E>> {
    let (env, max_steps) = (&context.env, context.config.max_steps);
    let at_random = env.uniform();
    let uniform = Sampler::new(env, &at_random).max_steps(max_steps);
    let learned = Sampler::new(env, &context.policy).max_steps(max_steps);
    match (context.config.replay_path, walks.conditions()) {
        (ReplayPath::Stored, _) => walks.replay(env),
        (ReplayPath::UniformBackward, None) => uniform.backward(&walks.terminal, rng),
        (ReplayPath::UniformBackward, Some(conditions)) => {
            uniform.backward(&walks.terminal, rng)?.with_conditions(conditions.shallow_clone())
        }
        (ReplayPath::PolicyBackward, None) => learned.backward(&walks.terminal, rng),
        (ReplayPath::PolicyBackward, Some(conditions)) => {
            learned.backward_conditional(&walks.terminal, conditions, rng)
        }
    }
}

/// Whether a buffer wants to be told the losses of what it gave.
pub(in crate::train) fn draws_by_loss<E: Env>(buffer: &ReplayBuffer<E>) -> bool {
    match buffer.config().draw {
        Draw::LossPrioritised { .. } | Draw::Own => true,
        Draw::RankPrioritised { by, .. } | Draw::WeightedRanks { by, .. } => by == RankBy::Loss,
        Draw::Uniform | Draw::RewardPrioritised { .. } => false,
    }
}
