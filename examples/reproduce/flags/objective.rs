//! The objectives that `--objective` accepts, with their names.

use gfn::objective::{
    Advantage, Critic, FDivergence, LogPartitionDeviation, MaximumEntropyBackward, ModifiedDetailedBalance,
    PolicyGradient, ProximalPolicy, StateFlow, TrajectoryLikelihood, Weighting, WithBackward, WithRegression,
};

use crate::prelude::*;

/// A function that builds an objective.
pub(crate) type Build = fn() -> Result<Box<dyn Objective>>;
/// An objective that a flag chose, with its name on the command line.
pub(crate) type ObjectiveName = Selection<Build>;

/// The objectives that every training task accepts.
pub(crate) const OBJECTIVES: &[Choice<Build>] = &[
    ("tb", || Ok(Box::new(TrajectoryBalance)), "Trajectory balance"),
    ("vargrad", || Ok(Box::new(LogPartitionVariance)), "Log-partition variance"),
    (
        "ftb-forward-kl",
        || Ok(f_balance(FDivergence::ForwardKl)),
        "f-trajectory balance, forward KL divergence",
    ),
    ("ftb-hellinger", || Ok(f_balance(FDivergence::Hellinger)), "f-trajectory balance, Hellinger distance"),
    (
        "ftb-jensen-shannon",
        || Ok(f_balance(FDivergence::JensenShannon)),
        "f-trajectory balance, Jensen-Shannon divergence",
    ),
    (
        "ftb-chi-squared",
        || Ok(f_balance(FDivergence::ChiSquared)),
        "f-trajectory balance, chi-squared divergence",
    ),
    (
        "ftb-batch",
        || Ok(Box::new(WithRegression::new(LogPartitionDeviation, FDivergence::ForwardKl))),
        "f-trajectory balance, forward KL divergence, log Z from the batch",
    ),
    ("db", || Ok(Box::new(DetailedBalance::default())), "Detailed balance"),
    (
        "fl-db",
        || Ok(Box::new(DetailedBalance { flow: StateFlow::ForwardLooking })),
        "Detailed balance, forward-looking",
    ),
    (
        "modified-db",
        || Ok(Box::new(ModifiedDetailedBalance::default())),
        "Detailed balance without state flows",
    ),
    ("subtb", || Ok(Box::new(geometric()?)), "Sub-trajectory balance, geometric weights"),
    (
        "fl-subtb",
        || Ok(Box::new(geometric()?.with_flow(StateFlow::ForwardLooking))),
        "Sub-trajectory balance, forward-looking",
    ),
    ("fm", || Ok(Box::new(FlowMatching::default())), "Flow matching"),
    (
        "pg",
        || Ok(Box::new(PolicyGradient::new(Advantage::Gae { lambda: 0.7 })?)),
        "Policy gradient of the soft return",
    ),
    (
        "pg-sub-eb",
        || {
            let critic = Critic::EvaluationBalance(Weighting::GeometricWithin { lambda: 0.9 });
            let gradient = PolicyGradient::new(Advantage::Gae { lambda: 0.7 })?;
            Ok(Box::new(PolicyGradient { critic, ..gradient }))
        },
        "Policy gradient, critic by sub-trajectory evaluation balance",
    ),
    ("ppo", || Ok(Box::new(ProximalPolicy::default())), "Proximal policy optimisation of the soft return"),
    ("ent-ppo", || Ok(Box::new(ProximalPolicy::entropic())), "Entropic proximal policy optimisation"),
    (
        "tb-tlm",
        || Ok(with_backward(TrajectoryLikelihood)),
        "Trajectory balance, P_B by trajectory likelihood",
    ),
    ("tb-maxent", || Ok(with_backward(MaximumEntropyBackward)), "Trajectory balance, P_B of most entropy"),
];

fn with_backward(backward: impl Objective + 'static) -> Box<dyn Objective> {
    Box::new(WithBackward::new(TrajectoryBalance, backward))
}

fn f_balance(divergence: FDivergence) -> Box<dyn Objective> {
    Box::new(WithRegression::new(TrajectoryBalance, divergence))
}

fn geometric() -> Result<SubTrajectoryBalance> {
    SubTrajectoryBalance::new(Weighting::GeometricWithin { lambda: 0.9 })
}

impl ObjectiveName {
    pub(crate) fn build(self) -> Result<Box<dyn Objective>> {
        (self.value)()
    }

    /// Returns `true` if the objective needs this quantity from the network.
    pub(crate) fn needs(self, quantity: Quantity) -> bool {
        self.build().is_ok_and(|objective| objective.needs().has(quantity))
    }

    /// Returns settings with the estimates, such as state flows, that the objective needs from the network.
    pub(crate) fn estimators(self) -> EstimatorsConfig {
        EstimatorsConfig::with_flow(self.needs(Quantity::LogFlow))
    }

    /// Returns the settings of a policy with this perceptron. The policy also estimates the quantities that
    /// the objective needs, such as state flows.
    pub(crate) fn perceptron(self, mlp: MlpConfig, backward: BackwardPolicy) -> MlpPolicyConfig {
        let estimators = self.estimators();
        let paths = self.needs(Quantity::LogPaths);
        MlpPolicyConfig { mlp, backward, estimators, paths, ..MlpPolicyConfig::default() }
    }

    /// Returns `true` if the objective needs on-policy trajectories.
    pub(crate) fn is_on_policy(self) -> bool {
        self.build().is_ok_and(|objective| objective.origin() == Origin::OnPolicy)
    }

    /// Returns the rule by which the path to a replayed object is chosen. `tb-tlm` uses the path by which the
    /// object was sampled, because its backward policy learns from such paths. All other objectives use the
    /// default.
    pub(crate) fn replay_path(self) -> ReplayPath {
        if self.name == "tb-tlm" { ReplayPath::Stored } else { ReplayPath::default() }
    }

    /// Returns `true` if the objective trains the backward policy. The backward policy must then have
    /// trainable parameters.
    pub(crate) fn trains_backward(self) -> bool {
        ["tb-tlm", "tb-maxent"].contains(&self.name)
    }

    /// Returns the default backward policy of a task with this objective. The policy is a separate network if
    /// the objective trains the backward policy, otherwise `default`.
    pub(crate) fn backward(self, default: BackwardPolicy) -> BackwardPolicy {
        if self.trains_backward() { BackwardPolicy::Separate } else { default }
    }
}
