//! The objectives by name.

use gfn::objective::{
    Advantage, MaximumEntropyBackward, ModifiedDetailedBalance, PolicyGradient, ProximalPolicy, StateFlow,
    TrajectoryLikelihood, Weighting, WithBackward,
};

use crate::prelude::*;

/// Builds an objective.
pub(crate) type Build = fn() -> Result<Box<dyn Objective>>;
/// An objective that a flag names.
pub(crate) type ObjectiveName = Selection<Build>;

/// The objectives of all tasks.
pub(crate) const OBJECTIVES: &[Choice<Build>] = &[
    ("tb", || Ok(Box::new(TrajectoryBalance)), "Trajectory balance"),
    ("vargrad", || Ok(Box::new(LogPartitionVariance)), "Log-partition variance"),
    ("db", || Ok(Box::new(DetailedBalance::default())), "Detailed balance"),
    (
        "fl-db",
        || Ok(Box::new(DetailedBalance { flow: StateFlow::ForwardLooking })),
        "Detailed balance, forward-looking",
    ),
    ("modified-db", || Ok(Box::new(ModifiedDetailedBalance::default())), "Detailed balance without state flows"),
    ("subtb", || Ok(Box::new(geometric()?)), "Sub-trajectory balance, geometric weights"),
    (
        "fl-subtb",
        || Ok(Box::new(geometric()?.with_flow(StateFlow::ForwardLooking))),
        "Sub-trajectory balance, forward-looking",
    ),
    ("fm", || Ok(Box::new(FlowMatching::default())), "Flow matching"),
    ("pg", || Ok(Box::new(PolicyGradient::new(Advantage::Gae { lambda: 0.7 })?)), "Policy gradient of the soft return"),
    ("ppo", || Ok(Box::new(ProximalPolicy::default())), "Proximal policy optimisation of the soft return"),
    ("tb-tlm", || Ok(with_backward(TrajectoryLikelihood)), "Trajectory balance, P_B by trajectory likelihood"),
    ("tb-maxent", || Ok(with_backward(MaximumEntropyBackward)), "Trajectory balance, P_B of most entropy"),
];

fn with_backward(backward: impl Objective + 'static) -> Box<dyn Objective> {
    Box::new(WithBackward::new(TrajectoryBalance, backward))
}

fn geometric() -> Result<SubTrajectoryBalance> {
    SubTrajectoryBalance::new(Weighting::GeometricWithin { lambda: 0.9 })
}

impl ObjectiveName {
    pub(crate) fn build(self) -> Result<Box<dyn Objective>> {
        (self.value)()
    }

    /// Returns `true` if the objective reads this estimate of the network.
    pub(crate) fn needs(self, quantity: Quantity) -> bool {
        self.build().is_ok_and(|objective| objective.needs().has(quantity))
    }

    /// Returns the estimates that the network gives in addition to the policies.
    pub(crate) fn estimators(self) -> EstimatorsConfig {
        EstimatorsConfig::with_flow(self.needs(Quantity::LogFlow))
    }

    /// Returns the settings of a policy with this perceptron, with the estimates that the objective needs.
    pub(crate) fn perceptron(self, mlp: MlpConfig, backward: BackwardPolicy) -> MlpPolicyConfig {
        let (estimators, paths) = (self.estimators(), self.needs(Quantity::LogPaths));
        MlpPolicyConfig { mlp, backward, estimators, paths, ..MlpPolicyConfig::default() }
    }

    /// Returns `true` if the objective learns from on-policy trajectories only.
    pub(crate) fn is_on_policy(self) -> bool {
        self.build().is_ok_and(|objective| objective.origin() == Origin::OnPolicy)
    }

    /// Returns the path to a replayed object: the sampled one, if the backward policy learns from paths.
    pub(crate) fn replay_path(self) -> ReplayPath {
        if self.name == "tb-tlm" { ReplayPath::Stored } else { ReplayPath::default() }
    }

    /// Returns `true` if the backward policy must be learned.
    pub(crate) fn trains_backward(self) -> bool {
        ["tb-tlm", "tb-maxent"].contains(&self.name)
    }

    /// Returns the default backward policy: a separate network if it must be learned, or the task's default.
    pub(crate) fn backward(self, default: BackwardPolicy) -> BackwardPolicy {
        if self.trains_backward() { BackwardPolicy::Separate } else { default }
    }
}
