//! Searches for objects without the policy; their results go into the replay buffer.

use crate::env::{Env, Reward, Rows};
use crate::policy::Policy;
use crate::rollout::{ReplayEnv, Sampler, Walks};
use crate::train::Trainer;
use crate::{Error, Result, Rng};

/// The result of a search.
#[derive(Clone, Debug)]
pub struct Found<S> {
    /// Finished objects, any number of them.
    pub objects: S,
    /// Their log-rewards.
    pub log_rewards: Vec<f64>,
    /// Number of objects whose reward it evaluated.
    pub reward_calls: usize,
}

/// A search that starts from finished objects and uses more than values of the reward: Langevin steps along its
/// gradient, or a chemist's moves. It has no changing state, so a resumed run continues with the same search.
///
/// For a search along trajectories see [`LocalSearch`](crate::rollout::LocalSearch).
pub trait ObjectSearch<E: Env>: Send {
    /// Objects found by a search from these.
    ///
    /// # Errors
    /// Any error of the implementation.
    fn search(
        &self,
        env: &E,
        objects: &E::States,
        reward: &dyn Reward<E::States>,
        rng: &mut Rng,
    ) -> Result<Found<E::States>>;
}

/// A search and its schedule.
pub(in crate::train) struct Searching<E: Env> {
    search: Box<dyn ObjectSearch<E>>,
    every: usize,
    objects: usize,
}

impl<E: ReplayEnv, P: Policy<E>> Trainer<E, P> {
    /// After every `every` steps, searches from `objects` objects drawn from the replay buffer, by the buffer's own
    /// draw, and adds the results to the buffer (Sendera et al., *Improved Off-Policy Training of Diffusion Samplers*,
    /// 2024). A buffer that stores paths gets them from the environment's uniform backward policy.
    ///
    /// The time of a search counts as the step's.
    ///
    /// # Errors
    /// [`Error::Config`] for an interval or a number of objects of 0 (and, by the first step, for a replay share of 0);
    /// [`Error::Missing`] without a replay buffer.
    pub fn with_search(mut self, search: impl ObjectSearch<E> + 'static, every: usize, objects: usize) -> Result<Self> {
        for (setting, value) in [("the steps between searches", every), ("objects to search from", objects)] {
            if value == 0 {
                return Err(Error::Config { setting, got: "0".into(), expected: "at least 1" });
            }
        }
        if self.replay.is_none() {
            return Err(Error::Missing {
                objective: "a search among objects",
                needs: "a replay buffer",
                remedy: "give the trainer one before (`with_replay`)",
            });
        }
        self.search = Some(Searching { search: Box::new(search), every, objects });
        Ok(self)
    }

    /// Runs the search if its interval is over.
    pub(in crate::train) fn search_objects(&mut self) -> Result<()> {
        let (Some(searching), Some(buffer)) = (&self.search, &mut self.replay) else { return Ok(()) };
        if self.step == 0 || !self.step.is_multiple_of(searching.every) || buffer.is_empty() {
            return Ok(());
        }
        let start = buffer.draw(searching.objects, &mut self.rng)?.terminal;
        let Found { objects, log_rewards, reward_calls } =
            searching.search.search(&self.env, &start, self.reward.as_ref(), &mut self.rng)?;
        self.reward_calls += reward_calls as u64;
        if objects.is_empty() {
            return Ok(());
        }
        let walks = if buffer.keeps_paths() {
            let uniform = self.env.uniform();
            let sampler = Sampler::new(&self.env, &uniform).max_steps(self.config.max_steps);
            sampler.backward(&objects, &mut self.rng)?.walks(&self.env)?
        } else {
            let offsets = vec![0; objects.len() + 1];
            Walks { actions: self.env.no_actions(), offsets, terminal: objects, conditions: None }
        };
        buffer.add(&self.env, &walks, &log_rewards)?;
        Ok(())
    }
}
