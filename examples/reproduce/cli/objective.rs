//! The objectives by name.

use clap::ValueEnum;
use gfn::Result;
use gfn::nn::EstimatorsConfig;
use gfn::objective::Quantity;
use gfn::objective::{
    Advantage, DetailedBalance, FlowMatching, LogPartitionVariance, MaximumEntropyBackward, ModifiedDetailedBalance,
    Objective, Origin, PolicyGradient, ProximalPolicy, StateFlow, SubTrajectoryBalance, TrajectoryBalance,
    TrajectoryLikelihood, Weighting, WithBackward,
};
use gfn::train::ReplayPath;

/// What is minimised.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ObjectiveName {
    /// Trajectory balance
    Tb,
    /// Log-partition variance
    Vargrad,
    /// Detailed balance
    Db,
    /// Detailed balance, forward-looking
    FlDb,
    /// Detailed balance without state flows, where every state can be finished
    ModifiedDb,
    /// Sub-trajectory balance, geometric weights within each trajectory, lambda 0.9
    Subtb,
    /// The same, forward-looking
    FlSubtb,
    /// Flow matching
    Fm,
    /// Policy gradient of the soft return, generalised advantages with lambda 0.7
    Pg,
    /// Proximal policy optimisation of the soft return
    Ppo,
    /// Trajectory balance, with P_B by trajectory likelihood
    TbTlm,
    /// Trajectory balance, with the P_B of most entropy
    TbMaxent,
}

impl ObjectiveName {
    pub(crate) fn build(self) -> Result<Box<dyn Objective>> {
        let geometric = SubTrajectoryBalance::new(Weighting::GeometricWithin { lambda: 0.9 })?;
        Ok(match self {
            Self::Tb => Box::new(TrajectoryBalance),
            Self::Vargrad => Box::new(LogPartitionVariance),
            Self::Db => Box::new(DetailedBalance::default()),
            Self::FlDb => Box::new(DetailedBalance { flow: StateFlow::ForwardLooking }),
            Self::ModifiedDb => Box::new(ModifiedDetailedBalance::default()),
            Self::Subtb => Box::new(geometric),
            Self::FlSubtb => Box::new(geometric.with_flow(StateFlow::ForwardLooking)),
            Self::Fm => Box::new(FlowMatching::default()),
            Self::Pg => Box::new(PolicyGradient::new(Advantage::Gae { lambda: 0.7 })?),
            Self::Ppo => Box::new(ProximalPolicy::default()),
            Self::TbTlm => Box::new(WithBackward::new(TrajectoryBalance, TrajectoryLikelihood)),
            Self::TbMaxent => Box::new(WithBackward::new(TrajectoryBalance, MaximumEntropyBackward)),
        })
    }

    /// What pictures call it.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Tb => "trajectory balance",
            Self::Vargrad => "log-partition variance",
            Self::Db => "detailed balance",
            Self::FlDb => "forward-looking detailed balance",
            Self::ModifiedDb => "modified detailed balance",
            Self::Subtb => "sub-trajectory balance",
            Self::FlSubtb => "forward-looking sub-trajectory balance",
            Self::Fm => "flow matching",
            Self::Pg => "policy gradient",
            Self::Ppo => "proximal policy optimisation",
            Self::TbTlm => "trajectory balance, P_B by trajectory likelihood",
            Self::TbMaxent => "trajectory balance, P_B of most entropy",
        }
    }

    /// What the network must estimate beside P_F and P_B.
    pub(crate) fn estimators(self) -> EstimatorsConfig {
        EstimatorsConfig::with_flow(self.build().is_ok_and(|objective| objective.needs().has(Quantity::LogFlow)))
    }

    /// Whether the network must estimate log n.
    pub(crate) fn needs_paths(self) -> bool {
        self.build().is_ok_and(|objective| objective.needs().has(Quantity::LogPaths))
    }

    /// Whether it learns from the policy's own trajectories alone.
    pub(crate) fn on_policy(self) -> bool {
        self.build().is_ok_and(|objective| objective.origin() == Origin::OnPolicy)
    }

    /// Which way leads to a replayed object: for a P_B that learns from ways, the one that was taken.
    pub(crate) fn replay_path(self) -> ReplayPath {
        match self {
            Self::TbTlm => ReplayPath::Stored,
            _ => ReplayPath::default(),
        }
    }

    /// Whether P_B must be learned.
    pub(crate) fn trains_backward(self) -> bool {
        matches!(self, Self::TbTlm | Self::TbMaxent)
    }
}
