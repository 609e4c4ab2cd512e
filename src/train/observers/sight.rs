//! What a step shows of whether training goes well.

use crate::Result;
use crate::nn::Parameters;
use crate::objective::Origin;
use crate::policy::Policy;
use crate::quantity::Quantity;
use crate::train::TrainEnv;
use crate::train::sources::Batch;
use crate::train::{Context, StepStats};

/// What one step shows.
pub(in crate::train) struct Sight<'a> {
    pub(super) stats: &'a StepStats,
    pub(super) step: usize,
    /// Whether this step learned from anything but the policy as it is.
    pub(super) explores: bool,
    /// Whether loss and log Z are those of one target that is R itself.
    pub(super) one_target: bool,
    /// Whether log Z is learned, as a parameter or a state flow.
    pub(super) learned_log_z: bool,
    /// Whether all learning rates were 0 and will be from now on.
    pub(super) learns_nothing: bool,
}

impl<'a> Sight<'a> {
    /// That of the step just made.
    pub(in crate::train) fn of<E: TrainEnv>(
        context: &Context<E>,
        batch: &Batch<E>,
        stats: &'a StepStats,
    ) -> Result<Self> {
        let Context { policy, objective, config, step, .. } = context;
        let needs = objective.needs();
        let intrinsic = needs.has_any(&[Quantity::IntrinsicEdge, Quantity::IntrinsicTerminal]);
        let noisy = policy.parameters().is_some_and(Parameters::is_noisy);
        let explores = !batch.on_policy || noisy || intrinsic;
        let one_target = objective.origin() == Origin::Any
            && !needs.has(Quantity::LogPrior)
            && objective.reward_exponent() == 1.0
            && config.reward_exponent.at(step.saturating_sub(1)) == 1.0
            && !intrinsic
            && context.conditions.is_none()
            && context.env.n_instances() == 1;
        let learned_log_z = needs.has_any(&[Quantity::LogZ, Quantity::LogFlow]);
        let learns_nothing = policy.parameters().is_some() && config.lr_scale.stays_zero(step.saturating_sub(1));
        Ok(Self { stats, step: *step, explores, one_target, learned_log_z, learns_nothing })
    }
}
