//! The data about a step that warnings are based on.

use crate::env::{Env, Grouping, Rows};
use crate::nn::Parameters;
use crate::objective::Origin;
use crate::quantity::Quantity;
use crate::train::{Batch, Context, StepStats, TrainEnv};

/// The data about one step that warnings are based on.
pub(super) struct StepDiagnostics<'a, E: Env> {
    pub(super) env: &'a E,
    /// The terminal states of the batch. Fresh trajectories, which are neither replayed nor taken from data,
    /// come first.
    pub(super) objects: &'a E::States,
    /// The log-rewards of the fresh trajectories' objects; empty if the batch doesn't hold log-rewards. Fresh
    /// trajectories are neither replayed nor taken from data.
    pub(super) log_rewards: &'a [f64],
    /// `true` if the trajectories have conditions.
    pub(super) is_conditional: bool,
    pub(super) stats: &'a StepStats,
    /// The number of the step, counted from 1.
    pub(super) step: usize,
    /// `true` if the step learned from trajectories other than samples of the current policy, or used noisy
    /// layers or intrinsic rewards.
    pub(super) explores: bool,
    /// `true` if loss and log Z refer to a single target distribution, proportional to R: the objective
    /// learns from any trajectories, there are no conditions, instances, prior or intrinsic rewards, and the
    /// exponent of R is 1.
    pub(super) has_one_target: bool,
    /// `true` if log Z is learned, as a parameter or as the flow of the initial state.
    pub(super) learns_log_z: bool,
    /// `true` if all learning rates were 0 at this step and stay 0 at all later steps.
    pub(super) learns_nothing: bool,
}

impl<'a, E: TrainEnv> StepDiagnostics<'a, E> {
    /// Collects the data about the last step of a trainer.
    pub(super) fn new(context: &'a Context<E>, batch: &'a Batch<E>, stats: &'a StepStats) -> Self {
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
        let trajectories = &batch.trajectories;
        Self {
            env: &context.env,
            objects: trajectories.terminal_states(),
            log_rewards: trajectories.recorded_log_rewards().map_or(&[], |known| &known[..batch.fresh]),
            is_conditional: trajectories.conditions().is_some(),
            stats,
            step: *step,
            explores: !batch.on_policy || is_noisy || has_intrinsic_rewards,
            has_one_target,
            learns_log_z: needs.has_any(&[Quantity::LogZ, Quantity::LogFlow]),
            learns_nothing: parameters.is_some() && config.lr_scale.stays_zero(last),
        }
    }
}

impl<E: Env> StepDiagnostics<'_, E> {
    /// Returns the indices of the fresh trajectories (neither replayed nor taken from data) whose object has
    /// this log-reward.
    pub(super) fn rows_with(&self, log_reward: f64) -> Vec<usize> {
        (0..self.log_rewards.len()).filter(|&row| self.log_rewards[row] == log_reward).collect()
    }

    /// Returns `true` if Z is at least as large as each single reward. The result is `false` if no object
    /// occurs twice in the batch, because R may then be a density, which can exceed Z. The result is also
    /// `false` if the environment doesn't correct for symmetry, because Z is then the sum of R / |Aut|, which
    /// may be less than a single R.
    pub(super) fn bounds_log_z(&self) -> bool {
        let symmetry = self.env.symmetry();
        self.objects.group().merges()
            && (symmetry.classes(self.objects).is_none()
                || !matches!(symmetry.log_symmetry(self.objects), Ok(None)))
    }

    /// Groups equal objects in a list. The first object of the list is `best`. The others are the terminal
    /// states of the trajectories with the indices `rows`. Returns `None` if equal objects may have different
    /// labels and the environment can't compare objects up to isomorphism.
    pub(super) fn with_best(&self, best: &E::States, rows: &[usize]) -> Option<Grouping> {
        let symmetry = self.env.symmetry();
        let mut all = best.clone();
        all.append(self.objects.select(rows));
        match symmetry.classes(&all) {
            Some(classes) => Some(classes.grouping),
            None if !matches!(symmetry.log_symmetry(best), Ok(None)) => None,
            None => Some(all.group()),
        }
    }
}
