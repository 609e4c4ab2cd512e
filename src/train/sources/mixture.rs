//! A trainer's list of sources with their shares of a batch. The list draws batches.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::policy::{POLICY, PolicySource};
use super::{Batch, BatchRequest, Replay, Source, SourceTraits};
use crate::env::Env;
use crate::objective::{Origin, Scores};
use crate::replay::SourceCounts;
use crate::rollout::{Container, Trajectories};
use crate::train::{Context, TrainEnv};
use crate::{Error, Result, Rng};

/// The share of a batch that a source supplies.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::train) enum Share {
    /// The part of a batch that no other source supplies. The first source has this share: the policy, or a
    /// source that replaces the policy.
    Rest,
    /// The share for replay in [`TrainerConfig::source`](crate::train::TrainerConfig::source).
    Replay,
    /// The share for offline data in [`TrainerConfig::source`](crate::train::TrainerConfig::source).
    Data,
    /// A fixed share of the whole batch.
    Fixed(f64),
}

/// The sources of a trainer, in the order of their trajectories in a batch.
pub(in crate::train) struct Sources<E: Env> {
    /// Each source with its share. The shares `Rest`, `Replay` and `Data` occur at most once each.
    list: Vec<(Share, Box<dyn Source<E>>)>,
    /// The number of new objects whose reward was computed so far.
    pub(in crate::train) reward_calls: u64,
    /// The id of the last drawn batch; `None` after sources have learned from that batch. Sources learn only
    /// from the batch with this id.
    pub(in crate::train) last_draw: Option<u64>,
}

/// The id of the next drawn batch. Ids are unique among all trainers of the process.
static DRAWS: AtomicU64 = AtomicU64::new(0);

impl<E: TrainEnv> Default for Sources<E> {
    fn default() -> Self {
        let list: Vec<(Share, Box<dyn Source<E>>)> = vec![(Share::Rest, Box::new(PolicySource::default()))];
        Self { list, reward_calls: 0, last_draw: None }
    }
}

impl<E: TrainEnv> Sources<E> {
    /// Adds a source. The new source replaces an existing source with the same share, except that sources
    /// with fixed shares are never replaced.
    pub(in crate::train) fn insert(&mut self, share: Share, source: Box<dyn Source<E>>) {
        let rank = |share: &Share| match share {
            Share::Rest => 0,
            Share::Replay => 1,
            Share::Data => 2,
            Share::Fixed(_) => 3,
        };
        self.list.retain(|(other, _)| rank(other) != rank(&share) || rank(&share) == 3);
        let at = self.list.iter().filter(|(other, _)| rank(other) <= rank(&share)).count();
        self.list.insert(at, (share, source));
    }

    /// Returns the index of the source with this share in the list of sources; `None` if no source has it.
    fn place(&self, share: Share) -> Option<usize> {
        self.list.iter().position(|(other, _)| *other == share)
    }

    /// Returns the source that draws from the replay buffer; `None` if the trainer has no replay buffer.
    pub(in crate::train) fn replay(&self) -> Option<&Replay<E>> {
        let source: &dyn Any = self.list[self.place(Share::Replay)?].1.as_ref();
        source.downcast_ref()
    }

    /// Returns the source that draws from the replay buffer; `None` if the trainer has no replay buffer.
    pub(in crate::train) fn replay_mut(&mut self) -> Option<&mut Replay<E>> {
        let place = self.place(Share::Replay)?;
        let source: &mut dyn Any = self.list[place].1.as_mut();
        source.downcast_mut()
    }

    /// Returns the source that draws from the replay buffer. Without a replay buffer returns an error that
    /// names `needed_by`, the part that needs the buffer.
    pub(in crate::train) fn replay_for(&mut self, needed_by: &'static str) -> Result<&mut Replay<E>> {
        let none = || Error::missing(needed_by, "a replay buffer", "give the trainer one (`with_replay`)");
        self.replay_mut().ok_or_else(none)
    }

    /// Returns `true` if a source replaces the policy as the source of fresh trajectories.
    pub(in crate::train) fn has_replacement(&self) -> bool {
        self.list[0].1.name() != POLICY
    }

    /// Returns the properties of the source of fresh trajectories.
    pub(in crate::train) fn fresh_traits(&self, context: &Context<E>) -> SourceTraits {
        self.list[0].1.traits(context)
    }

    pub(in crate::train) fn iter(&self) -> impl DoubleEndedIterator<Item = &dyn Source<E>> {
        self.list.iter().map(|(_, source)| source.as_ref())
    }

    pub(in crate::train) fn iter_mut(
        &mut self,
    ) -> impl DoubleEndedIterator<Item = &mut (dyn Source<E> + 'static)> {
        self.list.iter_mut().map(|(_, source)| source.as_mut())
    }

    /// Returns `true` if any source learns from the scores of whole batches.
    pub(in crate::train) fn need_losses(&self, context: &Context<E>) -> bool {
        self.iter().any(|source| source.traits(context).needs_losses)
    }

    /// Draws the batch of one step. Every source is offered the new trajectories (`Source::remember`).
    pub(in crate::train) fn draw(&mut self, context: &Context<E>, rng: &mut Rng) -> Result<Batch<E>> {
        self.last_draw = Some(DRAWS.fetch_add(1, Relaxed));
        let mut counts = self.counts(context)?;
        let on_policy = self.check(context, counts[0])?;
        if let Some(replay) = self.replay_mut() {
            let calls = replay.fill(context, rng)?;
            self.reward_calls += calls;
        }
        let mut parts = Vec::new();
        let mut rows = Vec::new();
        let mut end = 0;
        for k in 0..self.list.len() {
            let part = self.draw_part(k, &mut counts, context, rng)?;
            let start = end;
            end += part.as_ref().map_or(0, Trajectories::len);
            rows.push(start..end);
            parts.extend(part);
        }
        let mut parts = parts.into_iter();
        let none = || Error::config("batch", "no trajectory", "at least one trajectory");
        let mut trajectories = parts.next().ok_or_else(none)?;
        trajectories.extend(parts)?;
        let fresh = rows[0].len();
        let replayed = self.place(Share::Replay).map_or(0..0, |replay| rows[replay].clone());
        Ok(Batch { fresh, on_policy, replayed, rows, draw: self.last_draw, ..Batch::from(trajectories) })
    }

    /// Draws the trajectories of source `k` of the list, with their log-rewards. `counts` holds the number of
    /// trajectories that each source is to supply.
    fn draw_part(
        &mut self,
        k: usize,
        counts: &mut [usize],
        context: &Context<E>,
        rng: &mut Rng,
    ) -> Result<Option<Trajectories<E>>> {
        let replaces_policy = k == 0 && self.has_replacement();
        let max = counts[k];
        // A source that replaces the policy is called even for 0 trajectories: it may have to send parameters
        // to its samplers, or to exchange tensors with the sources of other replicas.
        if max == 0 && !replaces_policy {
            return Ok(None);
        }
        let mut request = BatchRequest::exactly(max);
        // With a replay buffer a source that replaces the policy may supply more trajectories than requested,
        // because the buffer stores them. The source may also supply fewer trajectories if this batch has a
        // replayed share, because replayed trajectories then fill the batch.
        let replay = self.place(Share::Replay).filter(|_| replaces_policy);
        if let Some(replay) = replay {
            request.allow_more = true;
            request.min = if counts[replay] > 0 { 0 } else { max };
        }
        let source = &mut self.list[k].1;
        let drawn = source.draw(request, context, rng)?;
        // The number of trajectories from the policy isn't checked, because with local search the policy
        // returns trajectories to the objects found in addition to the requested number.
        let drawn = if k == 0 && !replaces_policy { drawn } else { request.check(drawn)? };
        let own_calls = source.reward_calls();
        let n = drawn.as_ref().map_or(0, Trajectories::len);
        if let Some(replay) = replay {
            counts[replay] += max.saturating_sub(n);
        }
        let Some(mut drawn) = drawn else {
            self.reward_calls += own_calls;
            return Ok(None);
        };
        if replaces_policy {
            context.check_conditions(&drawn)?;
        }
        let is_new = drawn.recorded_log_rewards().is_none();
        if is_new {
            drawn = context.rewarded(drawn)?;
        }
        self.reward_calls += own_calls;
        if is_new || (replaces_policy && own_calls == 0) {
            self.reward_calls += n as u64;
        }
        if is_new || k == 0 {
            for source in self.iter_mut() {
                source.remember(&drawn, context)?;
            }
        }
        if replaces_policy && n > max {
            return if max == 0 { Ok(None) } else { Ok(Some(drawn.select(n - max..n)?)) };
        }
        Ok(Some(drawn))
    }

    /// Passes the scores of the first update on a batch to all sources, which may learn from these scores.
    pub(in crate::train) fn learn(
        &mut self,
        batch: &Batch<E>,
        scores: &Scores,
        context: &Context<E>,
    ) -> Result<()> {
        // A replay buffer knows only the entries of its last draw, so sources learn only from the last drawn
        // batch. They learn from it only once.
        if batch.draw.is_none() || self.last_draw != batch.draw {
            return Ok(());
        }
        self.last_draw = None;
        for ((_, source), rows) in self.list.iter_mut().zip(&batch.rows) {
            source.learn(&batch.trajectories, rows.clone(), scores, context)?;
        }
        Ok(())
    }

    /// Returns the number of trajectories that each source supplies. Fixed shares are subtracted from the
    /// batch first. The setting `source` divides the rest into fresh, replayed and given trajectories.
    fn counts(&self, context: &Context<E>) -> Result<Vec<usize>> {
        let source = context.config.source;
        let batch = context.share();
        let mut counts = vec![0; self.list.len()];
        let mut is_unfit = false;
        for (count, (share, source)) in counts.iter_mut().zip(&self.list) {
            let Share::Fixed(share) = share else { continue };
            let n = (share * batch as f64).round() as usize;
            is_unfit |= n == 0;
            if source.is_ready(context) {
                *count = n;
            }
        }
        let sum: usize = counts.iter().sum();
        if is_unfit || sum > batch {
            let got = format!("{sum} trajectories of a batch of {batch}");
            let expected = "at least one trajectory for each source, and at most a whole batch for all \
                sources together";
            return Err(Error::config("the shares of sources", got, expected));
        }
        match (self.place(Share::Data), source.offline() > 0.0) {
            (Some(_), false) => {
                let expected =
                    "a share above 0 (`TrainerConfig::source`), because the trainer has a data set";
                return Err(Error::config("the offline share of a batch", "0 with a data set", expected));
            }
            (None, true) => {
                let remedy = "give the trainer a data set (`with_data`), or set an offline share of 0";
                return Err(Error::missing("the offline share of a batch", "a data set", remedy));
            }
            _ => {}
        }
        let has_replay = self.replay().is_some_and(|replay| replay.is_ready(context));
        let divided = if has_replay { source } else { source.without_replay() };
        let SourceCounts { on_policy, replay, offline } = divided.counts(batch - sum);
        for (share, n) in [(Share::Rest, on_policy), (Share::Replay, replay), (Share::Data, offline)] {
            if let Some(place) = self.place(share) {
                counts[place] = n;
            }
        }
        Ok(counts)
    }

    /// Returns an error if the objective can't learn from one of the sources, even if that source supplies no
    /// trajectory in this step. Otherwise returns `true` if the current policy samples all trajectories.
    fn check(&self, context: &Context<E>, fresh: usize) -> Result<bool> {
        let samples_average = context.sampling_average().is_some();
        if self.has_replacement() && (samples_average || context.config.local_search.is_some()) {
            let setting = if samples_average { "sampling by the average" } else { "local search" };
            let missing = "a trainer that samples from its policy, but a source replaces the policy";
            let remedy = "train without this setting, or without the source (`Trainer::with_fresh`; Thompson \
                sampling is such a source)";
            return Err(Error::missing(setting, missing, remedy));
        }
        let traits: Vec<SourceTraits> = self.iter().map(|source| source.traits(context)).collect();
        let on_policy = traits.iter().all(|one| one.on_policy);
        let needs_losses = traits.iter().any(|one| one.needs_losses);
        if context.config.transitions.is_some() && (needs_losses || context.replicas().is_some()) {
            let setting = if needs_losses {
                "a source that learns from the losses of a batch"
            } else {
                "a run with several replicas"
            };
            let missing = "whole trajectories, but the trainer learns from single transitions \
                (`TrainerConfig::transitions`)";
            return Err(Error::missing(setting, missing, "remove one of the two settings"));
        }
        let objective = context.objective.as_ref();
        if objective.needs_taken_paths() && traits.iter().any(|one| !one.keeps_paths) {
            let missing = "paths that a policy sampled, because uniform backward steps would teach P_B to be \
                uniform";
            let remedy = "set `TrainerConfig::replay_path` to `ReplayPath::Stored`, or to \
                `ReplayPath::PolicyBackward` if no paths are stored";
            return Err(Error::missing("an objective of P_B", missing, remedy));
        }
        match objective.origin() {
            Origin::OnPolicy if !on_policy => Err(Error::missing(
                objective.name(),
                "trajectories of the policy itself",
                "train without exploration (epsilon 0, temperature 1, exit bias 0, noise 0) and local \
                 search, use the average only for evaluation, leave replay and other sources out, or choose \
                 an off-policy objective",
            )),
            Origin::Given if fresh > 0 => Err(Error::missing(
                objective.name(),
                "trajectories that the policy did not sample",
                "give the trainer data (`with_data`) and an offline share of 1",
            )),
            _ => Ok(on_policy),
        }
    }
}
