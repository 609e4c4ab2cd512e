//! One batch: fresh trajectories first, then replayed ones, given ones, and those of further sources.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::own::{Own, joined};
use super::{Facts, Replay, Source, Wanted};
use crate::env::Env;
use crate::objective::{Origin, Scores};
use crate::optim::Average;
use crate::quantity::Values;
use crate::replay::SourceCounts;
use crate::rollout::{Container, Trajectories};
use crate::train::Context;
use crate::train::TrainEnv;
use crate::{Error, Result, Rng};

/// The sources of a trainer.
pub(in crate::train) struct Sources<E: Env> {
    /// Draws what is left of a batch.
    pub(in crate::train) own: Own<E>,
    /// Does so in the policy's place.
    pub(in crate::train) elsewhere: Option<Box<dyn Source<E>>>,
    pub(in crate::train) replay: Option<Replay<E>>,
    pub(in crate::train) data: Option<Replay<E>>,
    /// Further ones, each with its share of a batch.
    pub(in crate::train) others: Vec<(f64, Box<dyn Source<E>>)>,
    /// New objects that the reward was asked for.
    pub(in crate::train) reward_calls: u64,
    /// The number of the draw whose losses sources may learn from.
    pub(in crate::train) drawn: Option<u64>,
}

/// The numbers of draws, of all trainers of the process.
static DRAWS: AtomicU64 = AtomicU64::new(0);

/// A training batch ([`Trainer::draw`](crate::train::Trainer::draw)).
pub struct Batch<E: Env> {
    /// The trajectories that are learned from.
    pub trajectories: Trajectories<E>,
    /// The number of those drawn in this step, by the policy, a teacher or local search, or in the policy's place: they come first.
    pub fresh: usize,
    /// `true` if the policy as it is drew all of them.
    pub(in crate::train) on_policy: bool,
    /// The rows of each other source; none where the batch is of nobody's.
    pub(super) rows: Vec<Range<usize>>,
    /// The scores of the first of several updates on it.
    old: Option<Values>,
    /// The number of its draw; None of a batch that no trainer drew.
    draw: Option<u64>,
}

// Deriving either would ask it of the environment.
impl<E: Env> Clone for Batch<E> {
    fn clone(&self) -> Self {
        let Self { trajectories, fresh, on_policy, rows, old: _, draw } = self;
        Self {
            trajectories: trajectories.clone(),
            fresh: *fresh,
            on_policy: *on_policy,
            rows: rows.clone(),
            old: self.old_values(),
            draw: *draw,
        }
    }
}

impl<E: Env> std::fmt::Debug for Batch<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch")
            .field("trajectories", &self.trajectories)
            .field("fresh", &self.fresh)
            .finish_non_exhaustive()
    }
}

impl<E: Env> Batch<E> {
    /// What the first of several updates on it scored.
    pub(in crate::train) fn old_values(&self) -> Option<Values> {
        let share =
            |values: &Values| values.iter().map(|(quantity, tensor)| (quantity, tensor.shallow_clone())).collect();
        self.old.as_ref().map(share)
    }

    /// `true` if a trainer drew it, and it is whole.
    pub(in crate::train) fn is_drawn(&self) -> bool {
        self.draw.is_some()
    }

    /// Keeps scores for further updates, if they are the first.
    pub(in crate::train) fn keep_old(&mut self, scores: &Scores) {
        self.old.get_or_insert_with(|| scores.to_old());
    }
}

impl<E: Env> From<Trajectories<E>> for Batch<E> {
    /// A batch of trajectories that a loop of one's own has from elsewhere: none of them counts as drawn in this step.
    fn from(trajectories: Trajectories<E>) -> Self {
        Self { trajectories, fresh: 0, on_policy: false, rows: Vec::new(), old: None, draw: None }
    }
}

impl<E: Env> Default for Sources<E> {
    fn default() -> Self {
        let own = Own { teacher: None, thompson: None };
        Self { own, elsewhere: None, replay: None, data: None, others: Vec::new(), reward_calls: 0, drawn: None }
    }
}

impl<E: TrainEnv> Sources<E> {
    /// All but the policy: those with a share of their own first.
    pub(in crate::train) fn all(&self) -> Vec<&dyn Source<E>> {
        let mut all: Vec<&dyn Source<E>> = Vec::new();
        self.replay.iter().chain(&self.data).for_each(|one| all.push(one));
        let boxed = self.others.iter().map(|(_, one)| one).chain(&self.elsewhere);
        boxed.chain(self.own.teacher.iter().map(|(_, one)| one)).for_each(|one| all.push(one.as_ref()));
        all
    }

    pub(in crate::train) fn all_mut(&mut self) -> Vec<&mut dyn Source<E>> {
        let mut all: Vec<&mut dyn Source<E>> = Vec::new();
        self.replay.iter_mut().chain(&mut self.data).for_each(|one| all.push(one));
        let boxed = self.others.iter_mut().map(|(_, one)| one).chain(&mut self.elsewhere);
        boxed.chain(self.own.teacher.iter_mut().map(|(_, one)| one)).for_each(|one| all.push(one.as_mut()));
        all
    }

    /// The trajectories of one step; new ones go into the buffer. `average` draws them in the policy's place.
    pub(in crate::train) fn draw(
        &mut self,
        context: &Context<E>,
        average: Option<&Average>,
        rng: &mut Rng,
    ) -> Result<Batch<E>> {
        self.drawn = Some(DRAWS.fetch_add(1, Relaxed));
        let (mut counts, others) = self.counts(context)?;
        let on_policy = self.check(context, average, counts.on_policy)?;
        if let Some(replay) = &mut self.replay {
            self.reward_calls += replay.search(context, rng)? as u64;
        }
        let mut parts = self.fresh(&mut counts, context, average, rng)?;
        let (n_parts, fresh) = (parts.len(), parts.iter().map(Trajectories::len).sum());
        let own = [self.replay.as_ref().map(|_| counts.replay), self.data.as_ref().map(|_| counts.offline)];
        let counts: Vec<usize> = own.into_iter().flatten().chain(others).collect();
        let (mut rows, mut end) = (Vec::new(), fresh);
        for (source, n) in self.all_mut().into_iter().zip(counts) {
            rows.push(end..end + n);
            end += n;
            if n > 0 {
                let wanted = Wanted::exactly(n);
                parts.extend(wanted.check(source.draw(wanted, context, rng)?)?);
            }
        }
        for part in parts[n_parts..].iter_mut().filter(|part| part.recorded_log_rewards().is_none()) {
            *part = context.rewarded(part.clone())?;
            self.reward_calls += part.len() as u64;
            self.keep(part, context)?;
        }
        Ok(Batch { trajectories: joined(parts)?, fresh, on_policy, rows, old: None, draw: self.drawn })
    }

    /// The policy's own trajectories, or those drawn in its place; replayed ones take the place of those that aren't there.
    fn fresh(
        &mut self,
        counts: &mut SourceCounts,
        context: &Context<E>,
        average: Option<&Average>,
        rng: &mut Rng,
    ) -> Result<Vec<Trajectories<E>>> {
        let most = counts.on_policy;
        let Some(source) = &mut self.elsewhere else {
            if most == 0 {
                return Ok(Vec::new());
            }
            let rounds = context.config.local_search.map_or(0, |search| search.rounds);
            self.reward_calls += (most * (1 + rounds)) as u64;
            let mut drawn = self.own.draw(most, context, average, rng)?;
            drawn.iter().try_for_each(|new| self.keep(new, context))?;
            drawn.reverse();
            return Ok(drawn);
        };
        // Asked in every step, also for none: who draws elsewhere needs the parameters, and may speak to other replicas' sources.
        let wanted = Wanted { least: if counts.replay > 0 { 0 } else { most }, most, more: self.replay.is_some() };
        let drawn = wanted.check(source.draw(wanted, context, rng)?)?;
        let n = drawn.as_ref().map_or(0, Trajectories::len);
        counts.replay += most.saturating_sub(n);
        let Some(mut drawn) = drawn else { return Ok(Vec::new()) };
        if drawn.conditions().is_some() != context.conditions.is_some() {
            return Err(Error::missing(
                "fresh trajectories from elsewhere",
                "conditions where the trainer has some, and none where it hasn't",
                "draw them under conditions of `Context::conditions`, which `Trainer::with_conditions` sets, and give them along",
            ));
        }
        if drawn.recorded_log_rewards().is_none() {
            drawn = context.rewarded(drawn)?;
        }
        self.reward_calls += n as u64;
        self.keep(&drawn, context)?;
        Ok(if most == 0 { Vec::new() } else { vec![drawn.select(n.saturating_sub(most)..n)?] })
    }

    /// Adds new trajectories to the buffer, if there is one.
    fn keep(&mut self, new: &Trajectories<E>, context: &Context<E>) -> Result<()> {
        self.replay.as_mut().map_or(Ok(()), |replay| replay.add(&context.env, new))
    }

    /// Shows all sources what the first update on a batch made of it.
    pub(in crate::train) fn learn(&mut self, batch: &Batch<E>, scores: &Scores, context: &Context<E>) -> Result<()> {
        // The buffer knows the entries of its last draw alone, and takes their losses once.
        let is_last = batch.draw.is_some() && self.drawn == batch.draw;
        if is_last {
            self.drawn = None;
        }
        if self.own.thompson.is_some() || !is_last {
            return Ok(());
        }
        let (trajectories, fresh) = (&batch.trajectories, std::iter::repeat(0..batch.fresh));
        let rows = batch.rows.iter().cloned().chain(fresh);
        self.all_mut().into_iter().zip(rows).try_for_each(|(one, rows)| one.learn(trajectories, rows, scores, context))
    }

    /// The numbers of fresh, replayed and given trajectories, and of those of each further source, whose shares are taken first.
    fn counts(&self, context: &Context<E>) -> Result<(SourceCounts, Vec<usize>)> {
        let (config, batch) = (&context.config, context.share());
        let others: Vec<usize> = self.others.iter().map(|(share, _)| (share * batch as f64).round() as usize).collect();
        let left = batch.checked_sub(others.iter().sum());
        let (Some(left), false) = (left, others.contains(&0)) else {
            return Err(Error::config(
                "the shares of sources",
                format!("{others:?} trajectories of a batch of {batch}"),
                "at least one trajectory for each, and no more than a batch for all of them",
            ));
        };
        match (&self.data, config.source.offline() > 0.0) {
            (Some(_), false) => Err(Error::config(
                "the offline share of a batch",
                "0 with given trajectories",
                "a share above 0 (`TrainerConfig::source`) for what the trainer was given",
            )),
            (None, true) => Err(Error::missing(
                "the offline share of a batch",
                "given trajectories",
                "give the trainer some (`with_data`), or an offline share of 0",
            )),
            _ => {
                let holds = self.replay.as_ref().is_some_and(|replay| !replay.buffer.is_empty());
                let ready = context.step >= config.replay_after && holds;
                let source = if ready { config.source } else { config.source.without_replay() };
                Ok((source.counts(left), others))
            }
        }
    }

    /// Compares the facts of each source with what the objective and the others ask for, from the first step on, not only once the buffer is
    /// drawn from; `true` if all trajectories are the policy's, as it is.
    fn check(&self, context: &Context<E>, average: Option<&Average>, fresh: usize) -> Result<bool> {
        let objective = context.objective.as_ref();
        if let (Some(_), Some(part)) = (&self.elsewhere, self.own.part(context, average)) {
            let needs = "a trainer that draws its fresh trajectories itself: these come from elsewhere";
            return Err(Error::missing(part, needs, "train without it, or without the source (`Trainer::with_fresh`)"));
        }
        let own = if self.elsewhere.is_none() { Some(self.own.facts(context, average)?) } else { None };
        let facts: Vec<Facts> = own.into_iter().chain(self.all().iter().map(|one| one.facts(context))).collect();
        let on_policy = facts.iter().all(|facts| facts.on_policy);
        if self.own.thompson.is_some() && facts.iter().any(|facts| facts.sees_losses) {
            return Err(Error::missing(
                "Thompson sampling",
                "nobody who asks for the loss of the whole batch",
                "train it without an adaptive teacher and without a buffer that draws by loss",
            ));
        }
        if context.config.transitions.is_some() {
            let whole =
                "whole trajectories, and the trainer learns from single transitions (`TrainerConfig::transitions`)";
            let asks = [
                (self.own.thompson.is_some(), "Thompson sampling"),
                (context.replicas().is_some(), "training by several replicas"),
                (facts.iter().any(|facts| facts.sees_losses), "a source that is shown the losses of a batch"),
            ];
            if let Some((_, who)) = asks.into_iter().find(|(asks, _)| *asks) {
                return Err(Error::missing(who, whole, "leave one of both out"));
            }
        }
        if objective.needs_taken_paths() && facts.iter().any(|facts| !facts.has_way) {
            return Err(Error::missing(
                "an objective of P_B",
                "paths that a policy took, as uniform steps back would teach it to be uniform",
                "set `TrainerConfig::replay_path` to `ReplayPath::Stored`, or to `ReplayPath::PolicyBackward` where no paths are kept",
            ));
        }
        match objective.origin() {
            Origin::OnPolicy if !on_policy => Err(Error::missing(
                objective.name(),
                "trajectories of the policy itself",
                "train without exploration (epsilon 0, temperature 1, exit bias 0, noise 0), local search, a teacher and Thompson sampling, \
                 keep the average for evaluation, leave replay and other sources out, or train by an off-policy objective",
            )),
            Origin::Given if fresh > 0 => Err(Error::missing(
                objective.name(),
                "trajectories that aren't the policy's own",
                "give the trainer data (`with_data`) and an offline share of 1",
            )),
            _ => Ok(on_policy),
        }
    }
}
