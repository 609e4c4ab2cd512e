//! Objectives by their settings, and functions of Python.

mod called;
mod guarded;

use gfn::objective::{
    Advantage, DetailedBalance, FlowMatching, LogPartitionVariance, MaximumEntropyBackward, ModifiedDetailedBalance,
    Objective, PolicyGradient, ProximalPolicy, StateFlow, SubTrajectoryBalance, TrajectoryBalance,
    TrajectoryLikelihood, Weighting, WithBackward,
};
use pyo3::prelude::*;
use serde::Deserialize;

use called::Called;
pub(crate) use called::Scores;
pub(crate) use guarded::guarded;

use crate::errors::raised;
use crate::kept::Object;
use crate::settings::read;

/// Their settings, by the name of the class in Python.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
enum Spec {
    OwnObjective { name: String, log_z: bool, flow: bool },
    TrajectoryBalance { backward: Option<Backward> },
    LogPartitionVariance {},
    DetailedBalance { forward_looking: bool },
    ModifiedDetailedBalance {},
    SubTrajectoryBalance { weighting: Weighting, forward_looking: bool },
    FlowMatching {},
    PolicyGradient { advantage: Advantage },
    ProximalPolicy { advantage: Advantage, clip: f64, kl: f64, value_weight: f64, epochs: usize },
}

/// What P_B is trained by.
#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(rename_all = "snake_case")]
enum Backward {
    TrajectoryLikelihood,
    MaximumEntropy,
}

fn flow(forward_looking: bool) -> StateFlow {
    if forward_looking { StateFlow::ForwardLooking } else { StateFlow::Whole }
}

/// The objective of these settings, with the function that it is where Python has one.
pub(crate) fn objective(text: &str, function: Option<Object>) -> PyResult<Box<dyn Objective>> {
    build(read("an objective", text)?, function).map_err(raised)
}

fn build(spec: Spec, function: Option<Object>) -> gfn::Result<Box<dyn Objective>> {
    Ok(match spec {
        Spec::OwnObjective { name, log_z, flow } => {
            let none =
                || gfn::Error::missing("an objective of your own", "a function", "give one: `OwnObjective(function)`");
            Box::new(Called { function: function.ok_or_else(none)?, name, log_z, flow })
        }
        Spec::TrajectoryBalance { backward: None } => Box::new(TrajectoryBalance),
        Spec::TrajectoryBalance { backward: Some(Backward::TrajectoryLikelihood) } => {
            Box::new(WithBackward::new(TrajectoryBalance, TrajectoryLikelihood))
        }
        Spec::TrajectoryBalance { backward: Some(Backward::MaximumEntropy) } => {
            Box::new(WithBackward::new(TrajectoryBalance, MaximumEntropyBackward))
        }
        Spec::LogPartitionVariance {} => Box::new(LogPartitionVariance),
        Spec::DetailedBalance { forward_looking } => Box::new(DetailedBalance { flow: flow(forward_looking) }),
        Spec::ModifiedDetailedBalance {} => Box::new(ModifiedDetailedBalance::default()),
        Spec::SubTrajectoryBalance { weighting, forward_looking } => {
            Box::new(SubTrajectoryBalance::new(weighting)?.with_flow(flow(forward_looking)))
        }
        Spec::FlowMatching {} => Box::new(FlowMatching::default()),
        Spec::PolicyGradient { advantage } => Box::new(PolicyGradient::new(advantage)?),
        Spec::ProximalPolicy { advantage, clip, kl, value_weight, epochs } => {
            Box::new(ProximalPolicy { advantage, clip, kl, value_weight, epochs })
        }
    })
}
