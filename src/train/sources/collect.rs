//! One batch: fresh trajectories first, then replayed ones, given ones, and those of further sources.

use std::ops::Range;

use super::on_policy::{OnPolicy, joined};
use super::{BatchSource, FreshSource, Given, Replay, Wanted, local_search};
use crate::distribution::Exploration;
use crate::env::Env;
use crate::objective::Scores;
use crate::optim::Average;
use crate::policy::Policy;
use crate::replay::SourceCounts;
use crate::rollout::{Container, ReplayEnv, Trajectories};
use crate::train::Context;
use crate::{Error, Result, Rng};

/// Where a trainer's trajectories come from.
pub(in crate::train) struct Sources<E: Env, P> {
    pub(in crate::train) on_policy: OnPolicy<E, P>,
    /// Who draws fresh trajectories in the policy's place.
    pub(in crate::train) elsewhere: Option<Box<dyn FreshSource<E, P>>>,
    pub(in crate::train) replay: Option<Replay<E>>,
    pub(in crate::train) data: Option<Given<E>>,
    /// Further ones, each with its share of a batch.
    pub(in crate::train) others: Vec<(f64, Box<dyn BatchSource<E, P>>)>,
    /// New objects that the reward was asked for.
    pub(in crate::train) reward_calls: u64,
}

/// What draws fresh ones, here and elsewhere, and all other sources.
type AllMut<'a, E, P> =
    (&'a mut OnPolicy<E, P>, Option<&'a mut dyn FreshSource<E, P>>, Vec<&'a mut dyn BatchSource<E, P>>);

/// A training batch.
pub(in crate::train) struct Batch<E: Env> {
    pub(in crate::train) trajectories: Trajectories<E>,
    /// How many were drawn in this step, by the policy, a teacher or local search: they come first.
    pub(in crate::train) fresh: usize,
    /// What each other source drew.
    rows: Vec<Range<usize>>,
}

impl<E: Env, P> Default for Sources<E, P> {
    fn default() -> Self {
        let on_policy = OnPolicy::default();
        Self { on_policy, elsewhere: None, replay: None, data: None, others: Vec::new(), reward_calls: 0 }
    }
}

impl<E: ReplayEnv, P: Policy<E>> Sources<E, P> {
    /// All that isn't fresh.
    pub(in crate::train) fn all(&self) -> Vec<&dyn BatchSource<E, P>> {
        let mut all: Vec<&dyn BatchSource<E, P>> = Vec::new();
        self.replay.iter().for_each(|one| all.push(one));
        self.data.iter().for_each(|one| all.push(one));
        self.others.iter().for_each(|(_, one)| all.push(one.as_ref()));
        all
    }

    /// The same, and what fresh ones are drawn by.
    pub(in crate::train) fn all_mut(&mut self) -> AllMut<'_, E, P> {
        let mut all: Vec<&mut dyn BatchSource<E, P>> = Vec::new();
        self.replay.iter_mut().for_each(|one| all.push(one));
        self.data.iter_mut().for_each(|one| all.push(one));
        self.others.iter_mut().for_each(|(_, one)| all.push(one.as_mut()));
        (&mut self.on_policy, self.elsewhere.as_mut().map(|source| source.as_mut() as _), all)
    }

    /// The trajectories of one step; new ones go into the buffer. `average` draws them in the policy's place.
    pub(in crate::train) fn collect(
        &mut self,
        context: &Context<E, P>,
        average: Option<&Average>,
        rng: &mut Rng,
    ) -> Result<Batch<E>> {
        self.check_shares(context)?;
        if let Some(Replay { buffer, search: Some(search), .. }) = &mut self.replay {
            self.reward_calls += search.fill(buffer, context, rng)? as u64;
        }
        let exploration = context.exploration()?;
        let (mut counts, others) = self.counts(context)?;
        self.check_origin(context, exploration, average.is_some(), counts.on_policy)?;
        let mut parts = match counts.on_policy {
            // Asked in every step, also for none: who draws elsewhere needs the parameters, and may speak to other replicas' sources.
            _ if self.elsewhere.is_some() => self.receive(&mut counts, context)?,
            0 => Vec::new(),
            n => self.sample(n, exploration, (context, average), rng)?,
        };
        let (fresh, n_fresh) = (parts.len(), parts.iter().map(Trajectories::len).sum());
        let own = [self.replay.as_ref().map(|_| counts.replay), self.data.as_ref().map(|_| counts.offline)];
        let counts: Vec<usize> = own.into_iter().flatten().chain(others).collect();
        let (mut rows, mut end) = (Vec::new(), n_fresh);
        for (source, n) in self.all_mut().2.into_iter().zip(counts) {
            rows.push(end..end + n);
            end += n;
            if n > 0 {
                parts.push(checked(n, source.draw(n, context, rng)?)?);
            }
        }
        for part in parts[fresh..].iter_mut().filter(|part| part.recorded_log_rewards().is_none()) {
            *part = context.rewarded(part.clone())?;
            self.reward_calls += part.len() as u64;
            self.replay.as_mut().map_or(Ok(()), |replay| replay.add(&context.env, part))?;
        }
        Ok(Batch { trajectories: joined(parts)?, fresh: n_fresh, rows })
    }

    /// How many trajectories are fresh, replayed and given, and how many come from each further source, whose shares are taken first.
    fn counts(&self, context: &Context<E, P>) -> Result<(SourceCounts, Vec<usize>)> {
        let (config, batch) = (&context.config, context.share());
        let others = self.others.iter().map(|(share, _)| (share * batch as f64).round() as usize);
        let others: Vec<usize> = others.collect();
        let left = batch.checked_sub(others.iter().sum());
        let (Some(left), false) = (left, others.contains(&0)) else {
            return Err(Error::config(
                "the shares of sources",
                format!("{others:?} trajectories of a batch of {batch}"),
                "at least one trajectory for each, and no more than a batch for all of them",
            ));
        };
        let holds = self.replay.as_ref().is_some_and(|replay| !replay.buffer.is_empty());
        let ready = context.step >= config.replay_after && holds;
        let source = if ready { config.source } else { config.source.without_replay() };
        Ok((source.counts(left), others))
    }

    /// Fresh trajectories from elsewhere; replayed ones take the place of those that aren't there.
    fn receive(&mut self, counts: &mut SourceCounts, context: &Context<E, P>) -> Result<Vec<Trajectories<E>>> {
        let Some(source) = &mut self.elsewhere else { return Ok(Vec::new()) };
        let (most, more) = (counts.on_policy, self.replay.is_some());
        let least = if counts.replay > 0 { 0 } else { most };
        let drawn = source.draw(Wanted { least, most, more }, context)?;
        let n = drawn.as_ref().map_or(0, Trajectories::len);
        if n < least || (n > most && !more) {
            let remedy = "draw no fewer than the least, and more than the most only where there may be more (`Wanted`)";
            return Err(Error::shape("the trajectories of a fresh source", [most as i64], [n as i64], remedy));
        }
        counts.replay += most.saturating_sub(n);
        let Some(drawn) = drawn.filter(|drawn| !drawn.is_empty()) else { return Ok(Vec::new()) };
        check_conditions(&drawn, context)?;
        let drawn = if drawn.recorded_log_rewards().is_some() { drawn } else { context.rewarded(drawn)? };
        self.reward_calls += n as u64;
        self.replay.as_mut().map_or(Ok(()), |replay| replay.add(&context.env, &drawn))?;
        Ok(match most {
            0 => Vec::new(),
            _ if n > most => vec![drawn.select(n - most..n)?],
            _ => vec![drawn],
        })
    }

    /// Samples afresh, searches around what was found, and fills the buffer.
    fn sample(
        &mut self,
        n: usize,
        exploration: Exploration,
        (context, average): (&Context<E, P>, Option<&Average>),
        rng: &mut Rng,
    ) -> Result<Vec<Trajectories<E>>> {
        let search = context.config.local_search;
        self.reward_calls += (n * (1 + search.map_or(0, |search| search.rounds))) as u64;
        let fresh = context.rewarded(self.on_policy.draw(n, exploration, (context, average), rng)?)?;
        let mut keep = |new: &_| self.replay.as_mut().map_or(Ok(()), |replay| replay.add(&context.env, new));
        keep(&fresh)?;
        let Some(search) = search else { return Ok(vec![fresh]) };
        let found = local_search::around(&fresh, search, exploration, context, rng)?;
        keep(&found)?;
        Ok(vec![found, fresh])
    }

    /// Shows all what the first update on a batch made of it.
    pub(in crate::train) fn learn(&mut self, batch: &Batch<E>, scores: &Scores, context: &Context<E, P>) -> Result<()> {
        let (on_policy, _, others) = self.all_mut();
        if on_policy.thompson.is_some() {
            return Ok(());
        }
        others
            .into_iter()
            .zip(&batch.rows)
            .try_for_each(|(source, rows)| source.learn(rows.clone(), scores, context))?;
        let Some(teacher) = &mut on_policy.teacher else { return Ok(()) };
        teacher.learn(&context.env, context.reward.as_ref(), &batch.trajectories, scores, context.config.chunk)
    }
}

/// Trajectories from elsewhere have conditions where the trainer has, and nowhere else.
fn check_conditions<E: Env, P>(drawn: &Trajectories<E>, context: &Context<E, P>) -> Result<()> {
    match (drawn.conditions().is_some(), context.conditions.is_some()) {
        (false, true) => Err(Error::missing(
            "a trainer with conditions",
            "the conditions under which fresh trajectories were drawn",
            "draw them under conditions of `Context::conditions`, and give them along",
        )),
        (true, false) => Err(Error::missing(
            "a fresh source that draws under conditions",
            "a trainer that knows of them",
            "give the trainer the source of the conditions (`Trainer::with_conditions`)",
        )),
        _ => Ok(()),
    }
}

/// What a source drew, once it is known to be what it was asked for.
fn checked<E: Env>(n: usize, drawn: Trajectories<E>) -> Result<Trajectories<E>> {
    match drawn.len() == n {
        true => Ok(drawn),
        false => Err(Error::shape(
            "the trajectories of a source",
            [n as i64],
            [drawn.len() as i64],
            "draw as many as are asked for (`BatchSource::draw`)",
        )),
    }
}
