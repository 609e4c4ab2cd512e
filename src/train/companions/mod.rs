//! What rides along with training: the moving average, the target network, novelty, and companions of one's own.

mod averaged;
mod distillation;
mod intrinsic;
mod target_network;

pub use averaged::AverageFor;
pub(in crate::train) use averaged::Averaged;
pub use distillation::{DistillationConfig, RandomDistillation};
pub(in crate::train) use distillation::{load_network_state, network_state};
pub(in crate::train) use intrinsic::Intrinsic;
pub use intrinsic::{IntrinsicConfig, Novelty};
pub(in crate::train) use target_network::TargetNetwork;

use super::{Context, Persist};
use crate::Result;
use crate::env::Env;
use crate::nn::Restored;
use crate::optim::Average;
use crate::policy::Policy;
use crate::quantity::Values;
use crate::rollout::Trajectories;
use crate::train::TrainEnv;

/// Rides along with training: sees each batch, may supply what the objective asks for, and keeps what it needs in checkpoints. The
/// moving average, the target network and intrinsic rewards are companions; [`Trainer::with_companion`](super::Trainer::with_companion)
/// takes others.
///
/// ```
/// use gfn::{env::{Env, Rows, VectorStates}, objective::TrajectoryBalance, rollout::Trajectories, testing::word_env, Result, Rng};
/// use gfn::policy::{ByNumber, MlpPolicy, MlpPolicyConfig};
/// use gfn::train::{Companion, Context, Persist, Trainer, TrainerConfig};
/// use tch::{Device, Kind, Tensor};
///
/// /// Counts the objects that a run has seen, before and after a resume.
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
pub trait Companion<E: Env>: Persist<E> {
    /// Supplies quantities that the objective asks for and [`score`](crate::objective::score) can't know, before a batch (or a part of it)
    /// is scored.
    ///
    /// # Errors
    /// Any error that must end the step, before anything is updated.
    fn supply(&self, _batch: &Trajectories<E>, _context: &Context<E>, _supplied: &mut Values) -> Result<()> {
        Ok(())
    }

    /// Called before each update, when the parameters have their gradients; with several replicas
    /// ([`Trainer::with_group`](super::Trainer::with_group)) those of the whole batch. What is done to them must be the same on all replicas.
    ///
    /// # Errors
    /// Any error that must end the step, before anything is updated.
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

/// All companions of a trainer.
pub(in crate::train) struct Companions<E: Env> {
    pub(in crate::train) average: Option<Averaged>,
    pub(in crate::train) intrinsic: Option<Intrinsic<E::States>>,
    pub(in crate::train) others: Vec<Box<dyn Companion<E>>>,
}

impl<E: Env> Default for Companions<E> {
    fn default() -> Self {
        Self { average: None, intrinsic: None, others: Vec::new() }
    }
}

impl<E: TrainEnv> Companions<E> {
    /// The average that fresh trajectories are drawn by, if one is.
    pub(in crate::train) fn for_sampling(&self) -> Option<&Average> {
        let kept = self.average.as_ref().filter(|kept| kept.purpose == AverageFor::Sampling)?;
        Some(&kept.average)
    }

    /// Begins the average anew where log Z was given its first value.
    pub(in crate::train) fn follow(&mut self, context: &Context<E>, log_z: &Option<Restored>) -> Result<()> {
        let parts = self.average.as_mut().filter(|_| log_z.is_some()).zip(context.policy.parameters());
        parts.map_or(Ok(()), |(kept, parameters)| kept.average.restart(parameters))
    }

    pub(in crate::train) fn before_update(&mut self, context: &Context<E>) -> Result<()> {
        self.all_mut().into_iter().try_for_each(|companion| companion.before_update(context))
    }

    pub(in crate::train) fn after_step(&mut self, batch: &Trajectories<E>, context: &Context<E>) -> Result<()> {
        self.all_mut().into_iter().try_for_each(|companion| companion.after_step(batch, context))
    }

    pub(in crate::train) fn all(&self) -> Vec<&dyn Companion<E>> {
        let mut all: Vec<&dyn Companion<E>> = Vec::new();
        self.intrinsic.iter().for_each(|one| all.push(one));
        self.average.iter().for_each(|one| all.push(one));
        self.others.iter().for_each(|one| all.push(one.as_ref()));
        all
    }

    pub(in crate::train) fn all_mut(&mut self) -> Vec<&mut dyn Companion<E>> {
        let mut all: Vec<&mut dyn Companion<E>> = Vec::new();
        self.intrinsic.iter_mut().for_each(|one| all.push(one));
        self.average.iter_mut().for_each(|one| all.push(one));
        self.others.iter_mut().for_each(|one| all.push(one.as_mut()));
        all
    }
}
