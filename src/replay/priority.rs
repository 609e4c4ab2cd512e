use std::sync::Arc;

use super::weights::Weights;
use super::{Draw, ReplayBuffer, ReplayConfig};
use crate::env::Env;
use crate::error::check_finite;
use crate::{Error, Result};

/// An object in a buffer, as a [`Priority`] sees it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stored {
    /// The raw log-reward that it was added with.
    pub log_reward: f64,
    /// The absolute value of the loss at its last visit ([`ReplayBuffer::update_losses`]); `None` for one that was never visited.
    pub loss: Option<f64>,
}

/// A rule of one's own by which objects are drawn from a buffer ([`ReplayBuffer::by_priority`]). A closure `Fn(Stored) -> f64` is one.
pub trait Priority: Send + Sync {
    /// The log of the weight that the object is drawn in proportion to, a finite number. It must depend on nothing but what it is
    /// given: it is asked when an object comes and when a loss is recorded.
    fn log_weight(&self, stored: Stored) -> f64;
}

impl<F: Fn(Stored) -> f64 + Send + Sync> Priority for F {
    fn log_weight(&self, stored: Stored) -> f64 {
        self(stored)
    }
}

impl<E: Env> ReplayBuffer<E> {
    /// An empty buffer that is drawn from by a rule of one's own; `config.draw` must be [`Draw::Own`]. Checkpoints don't hold the rule:
    /// a run resumes with the one that it is given.
    ///
    /// ```
    /// use gfn::{policy::UniformPolicy, rollout::Sampler, examples::Chain, Rng};
    /// use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig, Stored};
    /// let (env, mut rng) = (Chain::new(4), Rng::seeded(0));
    /// let config = ReplayConfig { capacity: 10, eviction: Eviction::Fifo, draw: Draw::Own };
    /// // What is good and badly learned comes up most.
    /// let rule = |stored: Stored| stored.log_reward + stored.loss.unwrap_or(1.0).max(1e-6).ln();
    /// let mut buffer = ReplayBuffer::by_priority(config, rule)?;
    /// buffer.add(&env, &Sampler::new(&env, &UniformPolicy).walks(4, &mut rng)?, &[0.0; 4])?;
    /// assert_eq!(buffer.draw(8, &mut rng)?.terminal.0.len(), 8);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] for another draw, and as for [`new`](Self::new).
    pub fn by_priority(config: ReplayConfig, priority: impl Priority + 'static) -> Result<Self> {
        if config.draw != Draw::Own {
            return Err(Error::config("draw", format!("{:?}", config.draw), "`Draw::Own` beside a priority"));
        }
        Self::drawn_by(config, Some(Arc::new(priority)))
    }

    /// The weights of an object.
    pub(super) fn weights_of(&self, stored: Stored) -> Weights {
        match &self.priority {
            Some(priority) => Weights::known(priority.log_weight(stored)),
            None => Weights::of(self.config.draw, stored.log_reward, stored.loss),
        }
    }

    /// Refuses objects that the priority gives no finite weight.
    pub(super) fn check_priorities(&self, objects: impl Iterator<Item = Stored>) -> Result<()> {
        let Some(priority) = &self.priority else { return Ok(()) };
        let log_weights: Vec<f64> = objects.map(|stored| priority.log_weight(stored)).collect();
        let remedy = "give finite log-weights; a very negative one for an object that is hardly to be drawn";
        check_finite("the log-weight that a priority gives an object", &log_weights, remedy)
    }
}
