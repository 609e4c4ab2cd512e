//! A search for objects with high rewards, whose results are added to the replay buffer.

use gfn::env::{Env, Reward, Rows};
use gfn::replay::ReplayBuffer;
use gfn::rollout::Walks;
use gfn::train::{Context, Refill, TrainEnv};
use gfn::{Error, Result, Rng};

/// The objects that a search has found.
#[derive(Clone, Debug)]
pub struct SearchResults<S> {
    /// The finished objects that were found. Their number may differ from the number of objects that the
    /// search started from.
    pub objects: S,
    /// The log-reward of each of these objects.
    pub log_rewards: Vec<f64>,
    /// The number of objects for which the search evaluated the reward.
    pub reward_calls: usize,
}

/// A search that starts from terminal states. A search may use more information than reward values, for
/// example gradients for Langevin steps, or a chemist's moves. A search has no state, so a resumed run
/// continues with the same search.
///
/// [`LocalSearch`](gfn::rollout::LocalSearch) searches on trajectories instead of objects.
pub trait ObjectSearch<E: Env>: Send {
    /// Searches from the given objects.
    ///
    /// # Errors
    /// Any error. The training step then fails with this error.
    fn search(
        &self,
        env: &E,
        objects: &E::States,
        reward: &dyn Reward<E::States>,
        rng: &mut Rng,
    ) -> Result<SearchResults<E::States>>;
}

impl<E: Env> ObjectSearch<E> for Box<dyn ObjectSearch<E>> {
    fn search(
        &self,
        env: &E,
        objects: &E::States,
        reward: &dyn Reward<E::States>,
        rng: &mut Rng,
    ) -> Result<SearchResults<E::States>> {
        self.as_ref().search(env, objects, reward, rng)
    }
}

/// A refill that searches every few training steps and adds the found objects to the replay buffer. The
/// search starts from objects that are drawn from the buffer (Sendera et al., *Improved Off-Policy Training
/// of Diffusion Samplers*, 2024). Pass the refill to a trainer with
/// [`Trainer::with_refill`](gfn::train::Trainer::with_refill).
///
/// The search runs before the trajectories of the step are drawn. If the buffer stores objects together with
/// trajectories, a trajectory to each found object is drawn from the environment's uniform backward policy.
/// The time of the search counts as sampling time of the step.
#[derive(Debug)]
pub struct Search<S> {
    search: S,
    every: usize,
    objects: usize,
}

impl<S> Search<S> {
    /// Creates a refill that searches once every `every` training steps, each time from `objects` objects
    /// that are drawn from the buffer.
    ///
    /// # Errors
    /// [`Error::Config`] if `every` or `objects` is 0.
    pub fn new(search: S, every: usize, objects: usize) -> Result<Self> {
        for (setting, value) in
            [("the steps between searches", every), ("the number of objects to search from", objects)]
        {
            if value == 0 {
                return Err(Error::config(setting, "0", "at least 1"));
            }
        }
        Ok(Self { search, every, objects })
    }
}

impl<E: TrainEnv, S: ObjectSearch<E>> Refill<E> for Search<S> {
    fn refill(&self, buffer: &mut ReplayBuffer<E>, context: &Context<E>, rng: &mut Rng) -> Result<u64> {
        if context.step == 0 || !context.step.is_multiple_of(self.every) || buffer.is_empty() {
            return Ok(0);
        }
        let env = &context.env;
        let start = buffer.draw(self.objects, rng)?.terminal;
        let found = self.search.search(env, &start, context.reward.as_ref(), rng)?;
        if found.objects.is_empty() {
            return Ok(found.reward_calls as u64);
        }
        let walks = if buffer.keeps_paths() {
            let uniform = env.uniform();
            let sampler = context.sampler(env, &uniform);
            sampler.backward(&found.objects, rng)?.walks(env)?
        } else {
            let offsets = vec![0; found.objects.len() + 1];
            Walks { actions: env.no_actions(), offsets, terminal: found.objects, conditions: None }
        };
        buffer.add(env, &walks, &found.log_rewards)?;
        Ok(found.reward_calls as u64)
    }
}
