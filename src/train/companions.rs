//! Companions of training (the target network and custom companions), and the moving average of the
//! parameters.

use std::any::Any;

use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::{Context, Persist, TrainEnv};
use crate::Result;
use crate::env::Env;
use crate::nn::Parameters;
use crate::objective::score_target;
use crate::optim::Average;
use crate::policy::Policy;
use crate::quantity::{Quantity, Values};
use crate::rollout::Trajectories;

/// A part of the trainer that is called in each training step. A companion sees the batch, may supply
/// quantities that the objective needs, and has a state in checkpoints. The target network is a companion;
/// [`Trainer::with_companion`](super::Trainer::with_companion) adds custom companions.
///
/// ```
/// use gfn::policy::{ByNumber, MlpPolicy, MlpPolicyConfig};
/// use gfn::train::{Companion, Context, Persist, Trainer, TrainerConfig};
/// use gfn::{
///     Result, Rng,
///     env::{Env, Rows, VectorStates},
///     examples::word_env,
///     objective::TrajectoryBalance,
///     rollout::Trajectories,
/// };
/// use tch::{Device, Kind, Tensor};
///
/// /// Counts the objects of a run, before and after a resume.
/// struct Seen(i64);
/// impl<E: Env> Persist<E> for Seen {
///     fn name(&self) -> &str {
///         "seen"
///     }
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
/// let policy =
///     MlpPolicy::tabular(&env, ByNumber::new(2, 3), MlpPolicyConfig::default(), Device::Cpu, Kind::Float)?;
/// let reward = |states: &VectorStates, _: Option<&Tensor>| Ok(vec![0.0; states.len()]);
/// let mut trainer =
///     Trainer::new(env, reward, policy, TrajectoryBalance, TrainerConfig::default(), Rng::seeded(0))?
///         .with_companion(Seen(0))?;
/// assert!(trainer.step()?.loss.is_finite());
/// # Ok::<(), gfn::Error>(())
/// ```
pub trait Companion<E: Env>: Persist<E> + Any {
    /// Returns the quantities that [`supply`](Self::supply) inserts.
    fn supplies(&self) -> &'static [Quantity] {
        &[]
    }

    /// Inserts into `_supplied` the quantities that the objective needs and
    /// [`score`](crate::objective::score) can't compute. The trainer calls this method before it scores a
    /// batch.
    ///
    /// # Errors
    /// Any error that must end the step before it updates anything.
    fn supply(&self, _batch: &Trajectories<E>, _context: &Context<E>, _supplied: &mut Values) -> Result<()> {
        Ok(())
    }

    /// Reacts to the gradients, after they are computed and before each update. With several replicas
    /// ([`Trainer::with_group`](super::Trainer::with_group)) these are the gradients of the whole batch, and
    /// a companion must change them in the same way on all replicas.
    ///
    /// # Errors
    /// Any error that must end the step before it updates anything.
    fn before_update(&mut self, _context: &Context<E>) -> Result<()> {
        Ok(())
    }

    /// Reacts to the end of a step, after its updates.
    ///
    /// # Errors
    /// Any error that must end the step.
    fn after_step(&mut self, _batch: &Trajectories<E>, _context: &Context<E>) -> Result<()> {
        Ok(())
    }
}

/// The purpose of a trainer's moving average.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum AverageFor {
    /// Evaluation only ([`Trainer::averaged`](crate::train::Trainer::averaged)). Training doesn't use the
    /// average.
    Evaluation,
    /// Evaluation and sampling of fresh trajectories. These trajectories don't come from the current policy,
    /// so the objective must be off-policy.
    Sampling,
}

/// A copy of the parameters that is updated every few steps: the moving average, or a target network, which
/// is an average with decay 0.
pub(super) struct Averaged {
    /// The name of the section that holds the copied parameters in a checkpoint: `average` or
    /// `target_network`.
    pub(super) name: &'static str,
    pub(super) average: Average,
    /// The number of training steps between two updates of the copied parameters.
    pub(super) every: usize,
    pub(super) purpose: AverageFor,
}

impl Averaged {
    /// Updates the copy of the parameters after step number `step`, if an update is due.
    pub(super) fn follow(&mut self, parameters: Option<&Parameters>, step: usize) -> Result<()> {
        match parameters {
            Some(parameters) if step.is_multiple_of(self.every) => self.average.update(parameters),
            _ => Ok(()),
        }
    }
}

impl<E: Env> Persist<E> for Averaged {
    fn name(&self) -> &str {
        self.name
    }
    fn describe(&self) -> String {
        format!("a part that keeps an average of its parameters (`{}`)", self.name)
    }
    fn state(&self, _env: &E) -> Result<Vec<(String, Tensor)>> {
        Ok(self.average.state())
    }
    fn load_state(&mut self, _env: &E, state: &[(String, Tensor)]) -> Result<()> {
        self.average.load_state(state)
    }
}

/// The quantities that target networks supply.
const OF_TARGETS: [Quantity; 2] = [Quantity::TargetLogFlow, Quantity::TargetLogExit];

/// A target network is a companion: it supplies the quantities that its copy of the parameters gives.
impl<E: Env> Companion<E> for Averaged {
    fn supplies(&self) -> &'static [Quantity] {
        &OF_TARGETS
    }

    /// Evaluates the policy with the copied parameters, if the objective needs a target network.
    fn supply(&self, batch: &Trajectories<E>, context: &Context<E>, supplied: &mut Values) -> Result<()> {
        let needs = context.objective.needs();
        if let (true, Some(parameters)) = (needs.has_any(&OF_TARGETS), context.policy.parameters()) {
            let scored = || score_target(&context.env, context.policy(), batch, needs);
            for (quantity, tensor) in self.average.with(parameters, scored)?? {
                supplied.insert(quantity, tensor);
            }
        }
        Ok(())
    }

    fn after_step(&mut self, _batch: &Trajectories<E>, context: &Context<E>) -> Result<()> {
        self.follow(context.policy.parameters(), context.step + 1)
    }
}

/// Returns the quantities that companions supply for the objective. Returns an error if the objective needs a
/// target network and there is none. This function must run before the forward pass, because a target network
/// swaps parameters temporarily, which would invalidate the graph that autograd has recorded.
pub(super) fn supply<E: TrainEnv>(
    companions: &[Box<dyn Companion<E>>],
    batch: &Trajectories<E>,
    context: &Context<E>,
) -> Result<Values> {
    let mut supplied = Values::default();
    for companion in companions {
        companion.supply(batch, context, &mut supplied)?;
    }
    let objective = context.objective.as_ref();
    match OF_TARGETS.into_iter().find(|&one| objective.needs().has(one) && supplied.get(one).is_none()) {
        Some(missing) => Err(missing.missing(objective.name())),
        None => Ok(supplied),
    }
}
