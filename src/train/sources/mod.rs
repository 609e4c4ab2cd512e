//! Where training trajectories come from: the policy and a teacher, local search, replay, given data, and sources of one's own.

mod check;
mod collect;
mod fresh;
mod given;
mod local_search;
mod object_search;
mod on_policy;
mod replay;
mod teacher;
mod thompson;

pub(in crate::train) use collect::{Batch, Sources};
pub use fresh::{FreshSource, Wanted};
pub(in crate::train) use given::Given;
pub(in crate::train) use object_search::Searching;
pub use object_search::{Found, ObjectSearch};
pub(in crate::train) use replay::{REPLAY, Relabelling, Replay, draws_by_loss};
pub(in crate::train) use teacher::Adaptive;
pub use teacher::{TeacherConfig, teacher_log_rewards};
pub(in crate::train) use thompson::Thompson;

use std::ops::Range;

use super::{Context, Persist};
use crate::env::Env;
use crate::objective::Scores;
use crate::rollout::Trajectories;
use crate::{Result, Rng};

/// Where trajectories of a batch come from, beside the policy itself. The replay buffer and given data are sources;
/// [`Trainer::with_source`](super::Trainer::with_source) takes others, each with its share of the batch.
///
/// ```
/// use gfn::{env::{Rows, Slots, VectorStates}, objective::TrajectoryBalance, rollout::Trajectories, testing::Words, Result, Rng};
/// use gfn::policy::{ByKey, MlpPolicy, MlpPolicyConfig};
/// use gfn::train::{BatchSource, Context, Persist, Trainer, TrainerConfig};
/// use tch::{Device, Kind, Tensor};
///
/// /// The word of the first letter alone, again and again.
/// struct Demonstrations;
/// impl Persist<Words> for Demonstrations {
///     fn name(&self) -> &str { "demonstrations" }
/// }
/// impl<P> BatchSource<Words, P> for Demonstrations {
///     fn draw(&mut self, n: usize, context: &Context<Words, P>, _: &mut Rng) -> Result<Trajectories<Words>> {
///         let walk = [0, 2]; // The letter, then the exit.
///         let offsets: Vec<usize> = (0..=n).map(|i| i * walk.len()).collect();
///         Trajectories::replay(&context.env, &Slots(walk.repeat(n)), &offsets)
///     }
/// }
/// let env = Words::new(2, 2);
/// let policy = MlpPolicy::tabular(&env, ByKey::new(env, 9), MlpPolicyConfig::default(), Device::Cpu, Kind::Float)?;
/// let reward = |states: &VectorStates, _: Option<&Tensor>| Ok(vec![0.0; states.len()]);
/// let config = TrainerConfig { batch: 8, ..TrainerConfig::default() };
/// let mut trainer = Trainer::new(env, reward, policy, TrajectoryBalance, config, Rng::seeded(0))?
///     .with_source(0.25, Demonstrations)?;
/// trainer.step()?;
/// assert_eq!((trainer.n_fresh(), trainer.latest().map(Trajectories::len)), (6, Some(8)));
/// # Ok::<(), gfn::Error>(())
/// ```
pub trait BatchSource<E: Env, P>: Persist<E> {
    /// `n` trajectories. Where they have log-rewards ([`Trajectories::with_log_rewards`]), those are taken; else the trainer asks the
    /// reward, counts the calls, and offers the objects to the replay buffer, if there is one.
    ///
    /// # Errors
    /// Whatever must end the step.
    fn draw(&mut self, n: usize, context: &Context<E, P>, rng: &mut Rng) -> Result<Trajectories<E>>;

    /// Is shown what the first update on a batch made of it; `rows` are the trajectories that this source drew. Isn't called under
    /// Thompson sampling, where nobody scores the whole batch.
    ///
    /// # Errors
    /// Whatever must end the step.
    fn learn(&mut self, _rows: Range<usize>, _scores: &Scores, _context: &Context<E, P>) -> Result<()> {
        Ok(())
    }
}
