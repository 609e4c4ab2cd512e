//! Companions of training: the target network, gradient sums of replicas, and custom ones; and the moving average.

mod averaged;
mod gradient_sum;
mod target_network;

pub use averaged::AverageFor;
pub(in crate::train) use averaged::Averaged;
pub(in crate::train) use gradient_sum::GradientSum;
pub(in crate::train) use target_network::TargetNetwork;

use std::any::Any;

use super::{Context, Persist, TrainEnv};
use crate::Result;
use crate::env::Env;
use crate::quantity::{Quantity, Values};
use crate::rollout::Trajectories;

/// Runs beside training: it sees each batch, may supply quantities that the objective needs, and stores its state in checkpoints. The target
/// network is a companion; [`Trainer::with_companion`](super::Trainer::with_companion) adds custom ones.
///
/// ```
/// use gfn::{env::{Env, Rows, VectorStates}, objective::TrajectoryBalance, rollout::Trajectories, examples::word_env, Result, Rng};
/// use gfn::policy::{ByNumber, MlpPolicy, MlpPolicyConfig};
/// use gfn::train::{Companion, Context, Persist, Trainer, TrainerConfig};
/// use tch::{Device, Kind, Tensor};
///
/// /// Counts the objects of a run, before and after a resume.
/// struct Seen(i64);
/// impl<E: Env> Persist<E> for Seen {
///     fn name(&self) -> &str { "seen" }
///     fn state(&self, _: &E) -> Result<Vec<(String, Tensor)>> {
///         Ok(vec![("n".into(), Tensor::from_slice(&[self.0]))])
///     }
///     fn load_state(&mut self, _: &E, state: &[(String, Tensor)]) -> Result<()> {
///         self.0 = state.iter().find(|(name, _)| name == "n").map_or(0, |(_, n)| n.int64_value(&[0]));
///         Ok(())
///     }
/// }
/// impl<E: Env> Companion<E> for Seen {
///     fn after_step(&mut self, batch: &Trajectories<E>, _: &Context<E>) -> Result<()> {
///         self.0 += batch.len() as i64;
///         Ok(())
///     }
/// }
/// let env = word_env(2, 2);
/// let policy = MlpPolicy::tabular(&env, ByNumber::new(2, 3), MlpPolicyConfig::default(), Device::Cpu, Kind::Float)?;
/// let reward = |states: &VectorStates, _: Option<&Tensor>| Ok(vec![0.0; states.len()]);
/// let mut trainer = Trainer::new(env, reward, policy, TrajectoryBalance, TrainerConfig::default(), Rng::seeded(0))?
///     .with_companion(Seen(0))?;
/// assert!(trainer.step()?.loss.is_finite());
/// # Ok::<(), gfn::Error>(())
/// ```
pub trait Companion<E: Env>: Persist<E> + Any {
    /// The quantities that [`supply`](Self::supply) inserts.
    fn supplies(&self) -> &'static [Quantity] {
        &[]
    }

    /// Inserts quantities that the objective needs and [`score`](crate::objective::score) can't compute, before a batch is scored.
    ///
    /// # Errors
    /// Any error that must end the step before it updates anything.
    fn supply(&self, _batch: &Trajectories<E>, _context: &Context<E>, _supplied: &mut Values) -> Result<()> {
        Ok(())
    }

    /// Called before each update, when the parameters have their gradients. With several replicas
    /// ([`Trainer::with_group`](super::Trainer::with_group)) they are the gradients of the whole batch, and all replicas must change them in the
    /// same way.
    ///
    /// # Errors
    /// Any error that must end the step before it updates anything.
    fn before_update(&mut self, _context: &Context<E>) -> Result<()> {
        Ok(())
    }

    /// Called once at the end of each step.
    ///
    /// # Errors
    /// Any error that must end the step.
    fn after_step(&mut self, _batch: &Trajectories<E>, _context: &Context<E>) -> Result<()> {
        Ok(())
    }
}

/// The companions of a trainer, in the order in which they are called.
pub(in crate::train) struct Companions<E: Env>(pub(in crate::train) Vec<Box<dyn Companion<E>>>);

impl<E: Env> Default for Companions<E> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<E: TrainEnv> Companions<E> {
    pub(in crate::train) fn iter(&self) -> impl Iterator<Item = &dyn Companion<E>> {
        self.0.iter().map(|companion| companion.as_ref())
    }

    pub(in crate::train) fn iter_mut(&mut self) -> impl Iterator<Item = &mut (dyn Companion<E> + 'static)> {
        self.0.iter_mut().map(|companion| companion.as_mut())
    }
}
