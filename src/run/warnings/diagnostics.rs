//! The facts about a step that warnings are based on.

use crate::nn::Parameters;
use crate::objective::Origin;
use crate::quantity::Quantity;
use crate::train::{Batch, Context, StepStats, TrainEnv};

/// The facts about one step.
pub(super) struct StepDiagnostics<'a> {
    pub(super) stats: &'a StepStats,
    /// The number of the step, from 1.
    pub(super) step: usize,
    /// `true` if the step learned from anything but samples of the current policy.
    pub(super) explores: bool,
    /// `true` if loss and log Z are those of one target, which is R itself.
    pub(super) has_one_target: bool,
    /// `true` if log Z is learned, as a parameter or a state flow.
    pub(super) learns_log_z: bool,
    /// `true` if all learning rates were 0 and will stay 0.
    pub(super) learns_nothing: bool,
}

impl<'a> StepDiagnostics<'a> {
    /// Collects the facts about the last step of a trainer.
    pub(super) fn new<E: TrainEnv>(context: &Context<E>, batch: &Batch<E>, stats: &'a StepStats) -> Self {
        let Context { objective, config, step, .. } = context;
        let needs = objective.needs();
        let parameters = context.policy().parameters();
        let has_intrinsic_rewards = needs.has_any(&[Quantity::IntrinsicEdge, Quantity::IntrinsicTerminal]);
        let is_noisy = parameters.is_some_and(Parameters::is_noisy);
        let last = step.saturating_sub(1);
        let has_one_target = objective.origin() == Origin::Any
            && !needs.has(Quantity::LogPrior)
            && objective.reward_exponent() == 1.0
            && config.reward_exponent.at(last) == 1.0
            && !has_intrinsic_rewards
            && context.conditions.is_none()
            && context.env.n_instances() == 1;
        Self {
            stats,
            step: *step,
            explores: !batch.on_policy || is_noisy || has_intrinsic_rewards,
            has_one_target,
            learns_log_z: needs.has_any(&[Quantity::LogZ, Quantity::LogFlow]),
            learns_nothing: parameters.is_some() && config.lr_scale.stays_zero(last),
        }
    }
}
