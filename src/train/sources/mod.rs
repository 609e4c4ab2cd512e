//! The sources of training trajectories: the policy, replay, given data, and custom sources.

mod mixture;
mod policy;
mod replay;

pub(in crate::train) use mixture::{Share, Sources};
pub use replay::Refill;
pub(in crate::train) use replay::{Relabelling, Replay};

use std::any::Any;
use std::ops::Range;

use super::{Context, Persist};
use crate::env::Env;
use crate::objective::Scores;
use crate::quantity::Values;
use crate::rollout::{Container, Trajectories};
use crate::{Error, Result, Rng};

/// A source of training trajectories. A trainer has a list of sources, each with its share of a batch: the
/// policy, a replay buffer and given data are sources. [`Trainer::with_source`](super::Trainer::with_source)
/// adds a custom source, and [`Trainer::with_fresh`](super::Trainer::with_fresh) replaces the policy, for
/// example by processes that sample with a copy of it.
///
/// ```
/// use gfn::policy::{ByNumber, MlpPolicy, MlpPolicyConfig};
/// use gfn::train::{BatchRequest, Context, Persist, Source, Trainer, TrainerConfig};
/// use gfn::{
///     Result, Rng,
///     env::{Rows, Slots, VectorEnv, VectorStates},
///     examples::word_env,
///     objective::TrajectoryBalance,
///     rollout::Trajectories,
/// };
/// use tch::{Device, Kind, Tensor};
///
/// /// Supplies the word of the first letter, again and again.
/// struct Demonstrations;
/// impl Persist<VectorEnv> for Demonstrations {
///     fn name(&self) -> &str {
///         "demonstrations"
///     }
/// }
/// impl Source<VectorEnv> for Demonstrations {
///     fn draw(
///         &mut self,
///         request: BatchRequest,
///         context: &Context<VectorEnv>,
///         _: &mut Rng,
///     ) -> Result<Option<Trajectories<VectorEnv>>> {
///         let (n, walk) = (request.max, [0, 2]); // The letter, then the exit.
///         let offsets: Vec<usize> = (0..=n).map(|i| i * walk.len()).collect();
///         Trajectories::replay(&context.env, &Slots(walk.repeat(n)), &offsets).map(Some)
///     }
/// }
/// let env = word_env(2, 2);
/// let policy =
///     MlpPolicy::tabular(&env, ByNumber::new(2, 3), MlpPolicyConfig::default(), Device::Cpu, Kind::Float)?;
/// let reward = |states: &VectorStates, _: Option<&Tensor>| Ok(vec![0.0; states.len()]);
/// let config = TrainerConfig { batch: 8, ..TrainerConfig::default() };
/// let mut trainer = Trainer::new(env, reward, policy, TrajectoryBalance, config, Rng::seeded(0))?
///     .with_source(0.25, Demonstrations)?;
/// trainer.step()?;
/// assert_eq!((trainer.n_fresh(), trainer.latest().map(Trajectories::len)), (6, Some(8)));
/// # Ok::<(), gfn::Error>(())
/// ```
pub trait Source<E: Env>: Persist<E> + Any {
    /// Returns the properties of the source that decide which objectives may learn from its trajectories.
    fn traits(&self, _context: &Context<E>) -> SourceTraits {
        SourceTraits::default()
    }

    /// Returns `false` while the source has no trajectories to supply. The policy, the replay buffer and
    /// given data then supply its share. The method isn't called for the source of fresh trajectories, which
    /// must always be ready.
    fn is_ready(&self, _context: &Context<E>) -> bool {
        true
    }

    /// Draws trajectories, at least [`BatchRequest::min`]. `None` means no trajectory.
    ///
    /// If the trajectories have log-rewards ([`Trajectories::with_log_rewards`]), the trainer uses these.
    /// Otherwise the trainer computes their log-rewards, counts the objects, and offers the trajectories to
    /// all sources ([`remember`](Self::remember)). Fresh trajectories are offered in both cases.
    ///
    /// # Errors
    /// Any error that must end the step.
    fn draw(
        &mut self,
        request: BatchRequest,
        context: &Context<E>,
        rng: &mut Rng,
    ) -> Result<Option<Trajectories<E>>>;

    /// Receives new trajectories with log-rewards, which a source may store. A replay buffer stores them, for
    /// example.
    ///
    /// # Errors
    /// Any error that must end the step.
    fn remember(&mut self, _new: &Trajectories<E>, _context: &Context<E>) -> Result<()> {
        Ok(())
    }

    /// Learns from the scores of the first update on a batch. `rows` are the indices, within the batch, of
    /// the trajectories that this source supplied. The scores are on the host and have no gradients.
    ///
    /// # Errors
    /// Any error that must end the step.
    fn learn(
        &mut self,
        _batch: &Trajectories<E>,
        _rows: Range<usize>,
        _scores: &Scores,
        _context: &Context<E>,
    ) -> Result<()> {
        Ok(())
    }

    /// Returns the number of objects whose rewards the source itself computed in the last
    /// [`draw`](Self::draw). If a source that replaces the policy returns 0 here, the trainer counts its
    /// trajectories instead.
    fn reward_calls(&self) -> u64 {
        0
    }
}

/// The properties of a [`Source`] that decide which objectives may learn from its trajectories.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SourceTraits {
    /// `true` if the current policy samples the trajectories in the current step, without exploration.
    pub on_policy: bool,
    /// `true` if a forward policy sampled the actions of the trajectories; `false` if the trajectories were
    /// reconstructed from their objects by uniform backward steps.
    pub keeps_paths: bool,
    /// `true` if the source learns from the scores of whole batches ([`Source::learn`]).
    pub needs_losses: bool,
    /// `true` if the trajectories are sampled outside of the trainer. Their log-rewards may come from another
    /// reward, so a trainer whose fresh trajectories are external doesn't check its reward.
    pub is_external: bool,
    /// `true` if a batch must be scored in parts, by a custom step. [`Trainer::step`](super::Trainer::step)
    /// refuses such a source.
    pub is_scored_in_parts: bool,
}

impl Default for SourceTraits {
    /// Returns the properties of an external source whose trajectories are sampled by another forward policy.
    /// The source doesn't learn from losses.
    fn default() -> Self {
        Self {
            on_policy: false,
            keeps_paths: true,
            needs_losses: false,
            is_external: true,
            is_scored_in_parts: false,
        }
    }
}

/// A trainer's request for trajectories from a [`Source`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BatchRequest {
    /// The smallest number of trajectories that the source must return. `min` equals `max`, with one
    /// exception: a source that is used in place of the policy may return fewer trajectories, or none (`min`
    /// is 0), if replayed trajectories can fill the batch.
    pub min: usize,
    /// The largest number of trajectories that enter the batch.
    pub max: usize,
    /// `true` if the source may return more than `max` trajectories. Only the last `max` of them enter the
    /// batch; all of them are offered to the replay buffer.
    pub allow_more: bool,
}

impl BatchRequest {
    /// Returns a request for exactly `n` trajectories.
    #[must_use]
    pub fn exactly(n: usize) -> Self {
        Self { min: n, max: n, allow_more: false }
    }

    /// Returns an error if the number of drawn trajectories is outside of the request. Returns `None` for no
    /// trajectory.
    fn check<E: Env>(self, drawn: Option<Trajectories<E>>) -> Result<Option<Trajectories<E>>> {
        let n = drawn.as_ref().map_or(0, Trajectories::len);
        if n >= self.min && (n <= self.max || self.allow_more) {
            return Ok(drawn.filter(|_| n > 0));
        }
        let remedy = "draw as many trajectories as were requested, and more only if the request allows it \
            (`BatchRequest`)";
        Err(Error::shape("the trajectories of a source", [self.max as i64], [n as i64], remedy))
    }
}

/// A batch of training trajectories, which [`Trainer::draw`](crate::train::Trainer::draw) returns.
#[non_exhaustive]
pub struct Batch<E: Env> {
    /// The trajectories that the policy learns from: first the fresh trajectories, then the trajectories of
    /// the other sources, in the order of the sources.
    pub trajectories: Trajectories<E>,
    /// The number of fresh trajectories, which were supplied in this step by the policy, by local search, or
    /// by a source that replaces the policy.
    pub fresh: usize,
    /// `true` if the current policy sampled all trajectories of the batch.
    pub on_policy: bool,
    /// The indices, within the batch, of the trajectories that the replay buffer supplied.
    pub replayed: Range<usize>,
    /// The log importance weight of each trajectory. The list is empty before the end of the step, and if the
    /// trajectories weren't scored together.
    pub log_weights: Vec<f64>,
    /// The indices, within the batch, of each source's trajectories; empty for a batch that no trainer drew.
    rows: Vec<Range<usize>>,
    /// The scores of the first update on this batch, for objectives that compare later updates with the first
    /// update; otherwise `None`.
    pub(super) old: Option<Values>,
    /// The id of the draw that returned this batch; `None` for a batch that no trainer drew.
    draw: Option<u64>,
}

// `Clone` and `Debug` are implemented by hand, because derive would require `E: Clone + Debug`.
impl<E: Env> Clone for Batch<E> {
    fn clone(&self) -> Self {
        Self {
            fresh: self.fresh,
            on_policy: self.on_policy,
            replayed: self.replayed.clone(),
            log_weights: self.log_weights.clone(),
            rows: self.rows.clone(),
            old: self.old_values(),
            draw: self.draw,
            ..Self::from(self.trajectories.clone())
        }
    }
}

impl<E: Env> std::fmt::Debug for Batch<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Batch");
        out.field("trajectories", &self.trajectories).field("fresh", &self.fresh).finish_non_exhaustive()
    }
}

impl<E: Env> Batch<E> {
    /// Returns copies of the scores of the first update on this batch; `None` if the objective doesn't need
    /// them.
    pub(super) fn old_values(&self) -> Option<Values> {
        let old = self.old.as_ref()?;
        Some(old.iter().map(|(quantity, tensor)| (quantity, tensor.shallow_clone())).collect())
    }

    /// Splits the trajectories at random into `n` minibatches of nearly equal sizes.
    pub(super) fn split(&self, n: usize, rng: &mut Rng) -> Result<Vec<Self>> {
        let len = self.trajectories.len();
        let shuffled = self.trajectories.sample(len, rng)?;
        let mut minibatches = Vec::with_capacity(n);
        for k in 0..n {
            let trajectories = shuffled.select(k * len / n..(k + 1) * len / n)?;
            minibatches.push(Self { on_policy: self.on_policy, draw: self.draw, ..Self::from(trajectories) });
        }
        Ok(minibatches)
    }

    /// Returns `true` for a batch that a trainer drew.
    pub(super) fn is_drawn(&self) -> bool {
        self.draw.is_some()
    }
}

impl<E: Env> From<Trajectories<E>> for Batch<E> {
    /// Makes a batch from trajectories of a custom loop. None of the trajectories counts as fresh.
    fn from(trajectories: Trajectories<E>) -> Self {
        Self {
            trajectories,
            fresh: 0,
            on_policy: false,
            replayed: 0..0,
            log_weights: Vec::new(),
            rows: Vec::new(),
            old: None,
            draw: None,
        }
    }
}
