use std::sync::Arc;

use super::weights::Weights;
use super::{Draw, ReplayBuffer, ReplayConfig};
use crate::env::Env;
use crate::error::check_finite;
use crate::{Error, Result};

/// The properties of an object in a buffer that a [`Priority`] may depend on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StoredObject {
    /// The log-reward stored with the object.
    pub log_reward: f64,
    /// The absolute value of the most recently recorded loss ([`ReplayBuffer::update_losses`]); `None` if no
    /// loss was recorded.
    pub loss: Option<f64>,
}

/// A custom rule by which objects are drawn from a buffer ([`ReplayBuffer::by_priority`]). Closures
/// `Fn(StoredObject) -> f64` implement this trait.
pub trait Priority: Send + Sync {
    /// Returns the log of the weight of an object, a finite number. Objects are drawn in proportion to their
    /// weights. The result must depend only on `stored`. The buffer calls this method when an object is added
    /// and when a loss is recorded.
    fn log_weight(&self, stored: StoredObject) -> f64;
}

impl<F: Fn(StoredObject) -> f64 + Send + Sync> Priority for F {
    fn log_weight(&self, stored: StoredObject) -> f64 {
        self(stored)
    }
}

impl<E: Env> ReplayBuffer<E> {
    /// Creates an empty buffer that draws by a custom rule. `config.draw` must be [`Draw::Custom`]. A
    /// checkpoint doesn't store the rule: to resume a run, build the buffer with the same rule.
    ///
    /// ```
    /// use gfn::{policy::UniformPolicy, rollout::Sampler, examples::Chain, Rng};
    /// use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig, StoredObject};
    /// let (env, mut rng) = (Chain::new(4), Rng::seeded(0));
    /// let config = ReplayConfig { capacity: 10, eviction: Eviction::Fifo, draw: Draw::Custom };
    /// // Objects with a large reward and a large loss are drawn most often.
    /// let rule = |stored: StoredObject| stored.log_reward + stored.loss.unwrap_or(1.0).max(1e-6).ln();
    /// let mut buffer = ReplayBuffer::by_priority(config, rule)?;
    /// buffer.add(&env, &Sampler::new(&env, &UniformPolicy).walks(4, &mut rng)?, &[0.0; 4])?;
    /// assert_eq!(buffer.draw(8, &mut rng)?.terminal.0.len(), 8);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] if `config.draw` isn't [`Draw::Custom`]; the errors of [`new`](Self::new).
    pub fn by_priority(config: ReplayConfig, priority: impl Priority + 'static) -> Result<Self> {
        if config.draw != Draw::Custom {
            return Err(Error::config(
                "draw",
                format!("{:?}", config.draw),
                "`Draw::Custom`, because a priority is given",
            ));
        }
        Self::with_rule(config, Some(Arc::new(priority)))
    }

    /// Returns the weight by which an object is drawn.
    pub(super) fn weights_of(&self, stored: StoredObject) -> Weights {
        match &self.priority {
            Some(priority) => Weights::from_log_weight(priority.log_weight(stored)),
            None => Weights::new(self.config.draw, stored.log_reward, stored.loss),
        }
    }

    /// Checks that the custom rule gives these objects finite log-weights. Does nothing without a custom
    /// rule.
    pub(super) fn check_priorities(&self, objects: impl Iterator<Item = StoredObject>) -> Result<()> {
        let Some(priority) = &self.priority else { return Ok(()) };
        let log_weights: Vec<f64> = objects.map(|stored| priority.log_weight(stored)).collect();
        let remedy = "give finite log-weights, and a very negative log-weight to an object that should \
            hardly ever be drawn";
        check_finite("the log-weight that a priority returns for an object", &log_weights, remedy)
    }
}
