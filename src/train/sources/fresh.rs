//! Fresh trajectories that others draw.

use crate::Result;
use crate::env::Env;
use crate::rollout::Trajectories;
use crate::train::{Context, Persist};

/// Who draws a trainer's fresh trajectories in place of its policy: processes that sample with a copy of it, say.
/// [`Trainer::with_fresh`](crate::train::Trainer::with_fresh) takes one.
///
/// A trainer counts what it is given as new objects, and adds it to its replay buffer, if it has one. What is to go on from a checkpoint the
/// source keeps there ([`Persist`]).
///
/// ```
/// use gfn::{env::VectorStates, objective::TrajectoryBalance, rollout::{Sampler, Trajectories}, testing::Words, Result, Rng};
/// use gfn::policy::{ByKey, MlpPolicy, MlpPolicyConfig, UniformPolicy};
/// use gfn::train::{Context, FreshSource, Persist, Trainer, TrainerConfig, Wanted};
/// use tch::{Device, Kind, Tensor};
///
/// /// Whatever the policy is, its trajectories are those of a uniform one.
/// struct AtRandom(Rng);
/// impl Persist<Words> for AtRandom {
///     fn name(&self) -> &str { "at_random" }
/// }
/// impl<P> FreshSource<Words, P> for AtRandom {
///     fn draw(&mut self, wanted: Wanted, context: &Context<Words, P>) -> Result<Option<Trajectories<Words>>> {
///         let drawn = Sampler::new(&context.env, &UniformPolicy).forward(wanted.most, &mut self.0)?;
///         let rewards = drawn.log_rewards(context.reward.as_ref())?;
///         drawn.with_log_rewards(rewards).map(Some)
///     }
/// }
/// let env = Words::new(2, 2);
/// let policy = MlpPolicy::tabular(&env, ByKey::new(env, 9), MlpPolicyConfig::default(), Device::Cpu, Kind::Float)?;
/// let reward = |states: &VectorStates, _: Option<&Tensor>| Ok(vec![0.0; gfn::env::Rows::len(states)]);
/// let config = TrainerConfig { batch: 8, ..TrainerConfig::default() };
/// let mut trainer = Trainer::new(env, reward, policy, TrajectoryBalance, config, Rng::seeded(0))?
///     .with_fresh(AtRandom(Rng::seeded(1)))?;
/// trainer.step()?;
/// assert_eq!((trainer.n_fresh(), trainer.reward_calls()), (8, 8));
/// # Ok::<(), gfn::Error>(())
/// ```
pub trait FreshSource<E: Env, P>: Persist<E> {
    /// As many trajectories as are wanted, with log-rewards ([`Trajectories::with_log_rewards`]; the trainer asks its reward where they
    /// have none). `None` for none.
    ///
    /// # Errors
    /// Whatever must end the step.
    fn draw(&mut self, wanted: Wanted, context: &Context<E, P>) -> Result<Option<Trajectories<E>>>;
}

/// How many trajectories a trainer wants of a [`FreshSource`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Wanted {
    /// It can't do with fewer. 0 once the replay buffer can fill the batch in place of what isn't there yet: replayed trajectories are a
    /// greater part of it then than [`TrainerConfig::source`](crate::train::TrainerConfig::source) says.
    pub least: usize,
    /// So many go into the batch.
    pub most: usize,
    /// Whether there may be more: those in front go into the replay buffer alone.
    pub more: bool,
}
