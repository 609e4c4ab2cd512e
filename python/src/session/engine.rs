//! What can be asked of a trainer, whatever its states.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use gfn::condition::ConditionSource;
use gfn::env::{Rows, log_rewards};
use gfn::optim::Schedule;
use gfn::rollout::Sampler;
use gfn::run::{Fit, OnWarning, Record, Warnings};
use gfn::train::TrainEnv;
use gfn::train::{Checkpoint, StepStats, Trainer};
use gfn::{Error, Result, Rng};
use gfn_extras::explore::{Thompson, thompson_step};
use gfn_judge::Budget;
use pyo3::prelude::*;
use tch::Tensor;

use super::exact::Parts;
use super::judging::Figures;
use super::own_loop::ByHand;
use super::sampled::{self, Alike, in_batches};
use super::shared::{Shared, named};
use crate::conditions::Conditions;
use crate::evaluation::{Found, Sampled, Shown, Tested};
use crate::objects::Border;
use crate::states::Show;
use crate::watch::Watch;
use crate::wording::in_python;

/// Objects that are drawn at once, and uniform walks: as many as the library's `prefill` draws.
const AT_ONCE: usize = 4096;
const WALKS_AT_ONCE: usize = 8192;

/// A step that was made.
pub(super) struct Made {
    pub(super) step: usize,
    pub(super) reward_calls: u64,
    pub(super) stats: StepStats,
}

/// A trainer of some states and some policy.
pub(super) trait Engine: ByHand + Send {
    /// Steps, until `n` are made or one fails.
    fn advance(&mut self, n: usize) -> (Vec<Made>, Option<Error>);
    /// Objects, and with `rewarded` log R of each; under conditions `[n, C]`, if the trainer has them.
    fn sample(&mut self, n: usize, conditions: Option<&Tensor>, rewarded: bool) -> Result<(Shown, Option<Vec<f64>>)>;
    fn exact(&mut self, limit: usize, conditions: Option<&Tensor>) -> Result<Parts>;
    /// A certificate of the policy, as JSON.
    fn certified(&mut self, budget: Budget) -> Result<String>;
    /// A judgement of given samples, beside the target.
    fn judged(&mut self, objects: &Py<PyAny>, limit: usize) -> Result<Found<Figures>>;
    /// Estimates from so many samples, under one condition, `[1, C]`, if the trainer has them.
    fn sampled(&mut self, n: usize, condition: Option<&Tensor>) -> Result<Found<Sampled>>;
    /// The figures of the policy on given objects, from so many paths to each.
    fn tested(&mut self, objects: &Py<PyAny>, paths: usize, condition: Option<&Tensor>) -> Result<Tested>;
    /// Gives the policy the average of its parameters for good.
    fn take_average(&mut self) -> Result<()>;
    fn prefill(&mut self, n: usize) -> Result<usize>;
    /// `true` if actions are mixed with uniform ones.
    fn explores(&self) -> bool;
    fn parameters(&self) -> Vec<(String, Tensor)>;
    /// Refuses to work with parameters that were changed from outside to what the library can't know of.
    fn check_shared(&self) -> Result<()>;
    fn save(&self, path: &Path) -> Result<()>;
    fn resume(&mut self, path: &Path) -> Result<()>;
    fn restore(&mut self, path: &Path) -> Result<()>;
    /// Steps made, for whoever asks while more of them are.
    fn steps_done(&self) -> Arc<AtomicUsize>;
    fn reward_calls(&self) -> u64;
    fn n_parameters(&self) -> i64;
    fn look_at_end(&mut self) -> Result<()>;
    fn warnings(&self) -> Vec<String>;
    fn replay_len(&self) -> Option<usize>;
}

/// States of an environment, as they are read and shown.
type BorderOf<E> = Border<<E as gfn::env::Env>::States>;

/// The evaluation of a policy in all states.
type ExactOf<E> = fn(&Trainer<E>, usize, Option<&Tensor>, &Show<<E as gfn::env::Env>::States>) -> Result<Parts>;
/// A judgement of samples.
type JudgedOf<E> = fn(&Trainer<E>, &Py<PyAny>, usize, &BorderOf<E>, &mut Rng) -> Result<Found<Figures>>;

/// What can be asked where states can be listed.
pub(super) struct Listing<E: TrainEnv> {
    pub(super) exact: ExactOf<E>,
    pub(super) certified: fn(&Trainer<E>, Budget, &mut Rng) -> Result<String>,
    pub(super) judged: JudgedOf<E>,
}

/// A trainer and how its states leave it.
pub(super) struct Trained<E: TrainEnv> {
    pub(super) trainer: Trainer<E>,
    pub(super) border: Border<E::States>,
    listing: Option<Arc<Listing<E>>>,
    alike: Alike<E>,
    conditions: Option<Arc<Conditions>>,
    rng: Rng,
    shared: Shared,
    steps: Arc<AtomicUsize>,
    warnings: Warnings<E::States>,
}

impl<E> Trained<E>
where
    E: TrainEnv + 'static,
{
    pub(super) fn new(
        trainer: Trainer<E>,
        border: Border<E::States>,
        listing: Option<Listing<E>>,
        alike: Alike<E>,
        conditions: Option<Arc<Conditions>>,
        shared: Shared,
    ) -> Self {
        let rng = trainer.evaluation_rng();
        let listing = listing.map(Arc::new);
        let warnings = Warnings::new(OnWarning::Keep);
        Self { trainer, border, listing, alike, conditions, rng, shared, steps: Arc::default(), warnings }
    }

    /// Steps, made in this way, until `n` are made or one fails.
    pub(super) fn make_steps(
        &mut self,
        n: usize,
        make: &mut dyn FnMut(&mut Trainer<E>) -> Result<StepStats>,
    ) -> (Vec<Made>, Option<Error>) {
        let mut made = Vec::with_capacity(n.min(1 << 16));
        let (watch, shared) = (Watch::new(), &self.shared);
        match shared.check().and_then(|()| shared.changed_mode()) {
            Ok(false) => {}
            Ok(true) => self.trainer.policy_changed(),
            Err(error) => return (made, Some(error)),
        }
        let steps = &self.steps;
        let mut note = |_: &Trainer<E>, record: &mut Record| {
            steps.store(record.step, Relaxed);
            made.push(Made { step: record.step, reward_calls: record.reward_calls, stats: record.stats });
            watch.look()?;
            shared.check_tensors()?;
            Ok(ControlFlow::Continue(()))
        };
        let fit = Fit::new(self.trainer.steps_done().saturating_add(n)).progress(false);
        let ended = fit.warnings(&mut self.warnings).observe(&mut note).run_by(&mut self.trainer, make);
        self.steps.store(self.trainer.steps_done(), Relaxed);
        (made, ended.err())
    }

    /// Refuses conditions that the trainer's own source could not have drawn.
    pub(super) fn check(&self, conditions: Option<&Tensor>) -> Result<()> {
        match (&self.conditions, conditions) {
            (Some(source), Some(conditions)) => source.check(conditions),
            _ => Ok(()),
        }
    }

    /// The result of `look` where weights are without noise, if the policy has noisy layers.
    pub(super) fn quietly<T>(&mut self, look: impl FnOnce(&Trainer<E>, &mut Rng) -> T) -> T {
        let Self { trainer, rng, .. } = self;
        match trainer.policy().parameters() {
            Some(parameters) => parameters.without_noise(|| look(trainer, rng)),
            None => look(trainer, rng),
        }
    }

    fn listing(&self) -> Result<Arc<Listing<E>>> {
        let refused = || {
            let expected = "one whose states can be listed; of others, compare samples";
            Error::config("the environment of an exact evaluation", "continuous", expected)
        };
        self.listing.clone().ok_or_else(refused)
    }

    /// Objects, and log R of each where that is asked for.
    fn draw(&mut self, n: usize, conditions: Option<&Tensor>, rewarded: bool) -> Result<(E::States, Option<Vec<f64>>)> {
        self.quietly(|trainer, rng| {
            let watch = Watch::new();
            let policy = watch.over(trainer.policy());
            let sampler = Sampler::new(trainer.env(), &policy).max_steps(trainer.context().config.max_steps);
            let (mut states, mut values) = (trainer.env().initial(&[]), rewarded.then(Vec::new));
            in_batches(n, AT_ONCE, &watch, |range| {
                let conditions = conditions.map(|all| all.narrow(0, range.start as i64, range.len() as i64));
                let drawn = match &conditions {
                    None => sampler.walks(range.len(), rng)?.terminal,
                    Some(conditions) => sampler.forward_conditional(conditions, rng)?.terminal_states().clone(),
                };
                if let Some(values) = &mut values {
                    values.extend(log_rewards(trainer.reward(), &drawn, conditions.as_ref())?);
                }
                states.append(drawn);
                Ok(())
            })?;
            Ok((states, values))
        })
    }
}

/// States that are shown later.
pub(crate) fn later<S: Send + 'static>(show: &Show<S>, states: S) -> Shown {
    let show = show.clone();
    Box::new(move |py| show(py, &states))
}

impl<E> Engine for Trained<E>
where
    E: TrainEnv + Clone + 'static,
    E::States: 'static,
{
    fn advance(&mut self, n: usize) -> (Vec<Made>, Option<Error>) {
        match self.trainer.source::<Thompson>() {
            None => self.make_steps(n, &mut Trainer::step),
            Some(_) => self.make_steps(n, &mut thompson_step),
        }
    }

    fn sample(&mut self, n: usize, conditions: Option<&Tensor>, rewarded: bool) -> Result<(Shown, Option<Vec<f64>>)> {
        self.check(conditions)?;
        let (states, values) = self.draw(n, conditions, rewarded)?;
        Ok((later(&self.border.show, states), values))
    }

    fn exact(&mut self, limit: usize, conditions: Option<&Tensor>) -> Result<Parts> {
        self.check(conditions)?;
        let show = self.border.show.clone();
        let listing = self.listing()?;
        self.quietly(|trainer, _| (listing.exact)(trainer, limit, conditions, &show))
    }

    fn certified(&mut self, budget: Budget) -> Result<String> {
        let listing = self.listing()?;
        self.quietly(|trainer, rng| (listing.certified)(trainer, budget, rng))
    }

    fn judged(&mut self, objects: &Py<PyAny>, limit: usize) -> Result<Found<Figures>> {
        let (listing, border) = (self.listing()?, self.border.clone());
        self.quietly(|trainer, rng| (listing.judged)(trainer, objects, limit, &border, rng))
    }

    fn sampled(&mut self, n: usize, condition: Option<&Tensor>) -> Result<Found<Sampled>> {
        self.check(condition)?;
        let (border, alike) = (self.border.clone(), self.alike);
        self.quietly(|trainer, rng| sampled::sampled(trainer, n, condition, &border, alike, rng))
    }

    fn tested(&mut self, objects: &Py<PyAny>, paths: usize, condition: Option<&Tensor>) -> Result<Tested> {
        self.check(condition)?;
        let border = self.border.clone();
        self.quietly(|trainer, rng| sampled::tested(trainer, objects, paths, condition, &border, rng))
    }

    fn take_average(&mut self) -> Result<()> {
        self.trainer.take_average()
    }

    fn prefill(&mut self, n: usize) -> Result<usize> {
        let (watch, mut stayed) = (Watch::new(), self.trainer.prefill(0)?);
        // In the parts that the library makes of it, so that the same seed draws the same.
        in_batches(n, WALKS_AT_ONCE, &watch, |range| {
            stayed += self.trainer.prefill(range.len())?;
            Ok(())
        })?;
        Ok(stayed)
    }

    fn explores(&self) -> bool {
        self.trainer.context().config.epsilon != Some(Schedule::Constant(0.0))
    }

    fn parameters(&self) -> Vec<(String, Tensor)> {
        named(self.trainer.policy().parameters()).collect()
    }

    fn check_shared(&self) -> Result<()> {
        self.shared.check()
    }

    fn save(&self, path: &Path) -> Result<()> {
        self.trainer.save(path)
    }

    fn resume(&mut self, path: &Path) -> Result<()> {
        self.trainer.resume(path)?;
        // Else it would give again what it gave before the checkpoint was written.
        self.rng = self.trainer.evaluation_rng();
        self.steps.store(self.trainer.steps_done(), Relaxed);
        Ok(())
    }

    fn restore(&mut self, path: &Path) -> Result<()> {
        match self.trainer.policy().parameters() {
            Some(parameters) => Checkpoint::load(path)?.restore(parameters),
            None => Err(Error::missing("taking parameters over", "a policy with parameters", "this one has none")),
        }
    }

    fn steps_done(&self) -> Arc<AtomicUsize> {
        self.steps.clone()
    }

    fn reward_calls(&self) -> u64 {
        self.trainer.reward_calls()
    }

    fn n_parameters(&self) -> i64 {
        self.trainer.n_parameters()
    }

    fn look_at_end(&mut self) -> Result<()> {
        self.warnings.check_end(self.trainer.steps_done())
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.raised().iter().map(|warning| in_python(&warning.to_string())).collect()
    }

    fn replay_len(&self) -> Option<usize> {
        self.trainer.replay().map(gfn::replay::ReplayBuffer::len)
    }
}
