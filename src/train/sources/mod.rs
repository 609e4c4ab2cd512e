//! The origins of training trajectories: the policy and a teacher, replay, given data, and sources of one's own.

mod object_search;
mod own;
mod prefill;
mod replay;
mod shares;
mod stored_rewards;
mod teacher;
mod thompson;

pub use object_search::{Found, ObjectSearch};
pub(in crate::train) use replay::{Relabelling, Replay, Searching};
pub use shares::Batch;
pub(in crate::train) use shares::Sources;
pub(in crate::train) use stored_rewards::find_changed;
pub(in crate::train) use teacher::Teacher;
pub use teacher::{TeacherConfig, teacher_log_rewards};
pub(in crate::train) use thompson::Thompson;

use std::any::Any;
use std::ops::Range;

use super::{Context, Persist};
use crate::env::Env;
use crate::objective::Scores;
use crate::rollout::Trajectories;
use crate::{Error, Result, Rng};

/// A source of trajectories beside the policy itself. Replay buffer, given data and teacher are sources;
/// [`Trainer::with_source`](super::Trainer::with_source) takes others, each with its share of the batch, and
/// [`Trainer::with_fresh`](super::Trainer::with_fresh) one that draws in the policy's place: processes that sample with a copy of it, say.
///
/// ```
/// use gfn::{env::{Rows, Slots, VectorEnv, VectorStates}, objective::TrajectoryBalance, rollout::Trajectories, testing::word_env, Result, Rng};
/// use gfn::policy::{ByNumber, MlpPolicy, MlpPolicyConfig};
/// use gfn::train::{Context, Persist, Source, Trainer, TrainerConfig, Wanted};
/// use tch::{Device, Kind, Tensor};
///
/// /// The word of the first letter alone, again and again.
/// struct Demonstrations;
/// impl Persist<VectorEnv> for Demonstrations {
///     fn name(&self) -> &str { "demonstrations" }
/// }
/// impl Source<VectorEnv> for Demonstrations {
///     fn draw(&mut self, wanted: Wanted, context: &Context<VectorEnv>, _: &mut Rng) -> Result<Option<Trajectories<VectorEnv>>> {
///         let (n, walk) = (wanted.most, [0, 2]); // The letter, then the exit.
///         let offsets: Vec<usize> = (0..=n).map(|i| i * walk.len()).collect();
///         Trajectories::replay(&context.env, &Slots(walk.repeat(n)), &offsets).map(Some)
///     }
/// }
/// let env = word_env(2, 2);
/// let policy = MlpPolicy::tabular(&env, ByNumber::new(2, 3), MlpPolicyConfig::default(), Device::Cpu, Kind::Float)?;
/// let reward = |states: &VectorStates, _: Option<&Tensor>| Ok(vec![0.0; states.len()]);
/// let config = TrainerConfig { batch: 8, ..TrainerConfig::default() };
/// let mut trainer = Trainer::new(env, reward, policy, TrajectoryBalance, config, Rng::seeded(0))?
///     .with_source(0.25, Demonstrations)?;
/// trainer.step()?;
/// assert_eq!((trainer.n_fresh(), trainer.latest().map(Trajectories::len)), (6, Some(8)));
/// # Ok::<(), gfn::Error>(())
/// ```
pub trait Source<E: Env>: Persist<E> {
    /// The facts that decide whether an objective may learn from its trajectories.
    fn facts(&self, _context: &Context<E>) -> Facts {
        Facts::default()
    }

    /// As many trajectories as are wanted, `None` for none. Where they have log-rewards ([`Trajectories::with_log_rewards`]), those are taken; else the
    /// trainer asks the reward, counts the calls, and offers the objects to the replay buffer, if there is one. It does so with all that is
    /// drawn in the policy's place.
    ///
    /// # Errors
    /// Any error that must end the step.
    fn draw(&mut self, wanted: Wanted, context: &Context<E>, rng: &mut Rng) -> Result<Option<Trajectories<E>>>;

    /// Is shown the scores of a batch, as of its first update; `rows` are the trajectories that this source drew. Isn't called under Thompson
    /// sampling, where nobody scores the whole batch.
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

    /// The policy that it draws by, if it has one of its own ([`Trainer::teacher`](super::Trainer::teacher)).
    fn policy(&self) -> Option<&dyn Any> {
        None
    }
}

/// Facts of a [`Source`] that objectives ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// `true` if the policy as it is draws them in this step, without exploration.
    pub on_policy: bool,
    /// `true` if each came on a way that a policy took, not one of uniform steps back.
    pub has_way: bool,
    /// `true` if it must be shown the scores of whole batches ([`Source::learn`]).
    pub sees_losses: bool,
}

impl Default for Facts {
    /// Trajectories of another policy, on ways that it took.
    fn default() -> Self {
        Self { on_policy: false, has_way: true, sees_losses: false }
    }
}

/// The number of trajectories that a trainer wants of a [`Source`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Wanted {
    /// The trainer can't do with fewer: as many as `most`, but for a source in the policy's place once the replay buffer can fill the batch
    /// in place of what isn't there yet. Replayed trajectories are a greater part of it then than
    /// [`TrainerConfig::source`](crate::train::TrainerConfig::source) says.
    pub least: usize,
    /// So many go into the batch.
    pub most: usize,
    /// `true` if there may be more: those in front go into the replay buffer alone.
    pub more: bool,
}

impl Wanted {
    /// So many, and no others.
    #[must_use]
    pub fn exactly(n: usize) -> Self {
        Self { least: n, most: n, more: false }
    }

    /// Refuses another number of trajectories than is wanted; gives those that there are.
    fn check<E: Env>(self, drawn: Option<Trajectories<E>>) -> Result<Option<Trajectories<E>>> {
        let n = drawn.as_ref().map_or(0, Trajectories::len);
        if n >= self.least && (n <= self.most || self.more) {
            return Ok(drawn.filter(|_| n > 0));
        }
        let remedy = "draw no fewer than the least, and more than the most only where there may be more (`Wanted`)";
        Err(Error::shape("the trajectories of a source", [self.most as i64], [n as i64], remedy))
    }
}
