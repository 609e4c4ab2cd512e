//! Objectives by their settings, and functions of Python.

mod python;

use gfn::objective::{
    Advantage, AugmentedDetailedBalance, AugmentedTrajectoryBalance, DetailedBalance, FlowMatching,
    LogPartitionVariance, MaximumEntropyBackward, MaximumLikelihood, ModifiedDetailedBalance, NextExit, Objective,
    PolicyGradient, ProximalPolicy, RelativeLogPartitionVariance, RelativeTrajectoryBalance, StateFlow,
    SubTrajectoryBalance, TrajectoryBalance, TrajectoryLikelihood, TrustPcl, Weighting, WithBackward,
};
use pyo3::prelude::*;
use serde::Deserialize;

use python::PyObjective;
pub(crate) use python::Scores;

use crate::errors::raised;
use crate::references::{Object, References};
use crate::settings::read;

/// Their settings, by the name of the class in Python.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
enum Spec {
    OwnObjective { name: String, log_z: bool, flow: bool },
    TrajectoryBalance { backward: Option<Backward> },
    LogPartitionVariance { backward: Option<Backward> },
    RelativeTrajectoryBalance { beta: f64 },
    RelativeLogPartitionVariance { beta: f64 },
    TrustPcl { alpha: f64 },
    DetailedBalance { forward_looking: bool, backward: Option<Backward> },
    ModifiedDetailedBalance { target_network: Option<usize> },
    SubTrajectoryBalance { weighting: Weighting, forward_looking: bool, backward: Option<Backward> },
    AugmentedTrajectoryBalance {},
    AugmentedDetailedBalance {},
    FlowMatching {},
    PolicyGradient { advantage: Advantage },
    ProximalPolicy { advantage: Advantage, clip: f64, kl: f64, value_weight: f64, epochs: usize },
    MaximumLikelihood {},
}

/// The objective of P_B.
#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(rename_all = "snake_case")]
enum Backward {
    TrajectoryLikelihood,
    MaximumEntropy,
}

fn flow(forward_looking: bool) -> StateFlow {
    if forward_looking { StateFlow::ForwardLooking } else { StateFlow::Whole }
}

/// An objective of P_F, with one of P_B beside it if it has one of its own.
fn with_backward(objective: impl Objective + 'static, backward: Option<Backward>) -> Box<dyn Objective> {
    match backward {
        None => Box::new(objective),
        Some(Backward::TrajectoryLikelihood) => Box::new(WithBackward::new(objective, TrajectoryLikelihood)),
        Some(Backward::MaximumEntropy) => Box::new(WithBackward::new(objective, MaximumEntropyBackward)),
    }
}

/// An objective as Python gives it: `{class: settings}`, and its function, if it is one.
#[derive(FromPyObject)]
pub(crate) struct ObjectiveArgument<'py>(Bound<'py, PyAny>, Option<Py<PyAny>>);

impl ObjectiveArgument<'_> {
    pub(crate) fn build(self, references: &References) -> PyResult<Box<dyn Objective>> {
        let function = self.1.map(|function| references.add(function));
        build(read("an objective", &self.0)?, function).map_err(raised)
    }
}

fn build(spec: Spec, function: Option<Object>) -> gfn::Result<Box<dyn Objective>> {
    Ok(match spec {
        Spec::OwnObjective { name, log_z, flow } => {
            let none =
                || gfn::Error::missing("an objective of your own", "a function", "give one: `OwnObjective(function)`");
            Box::new(PyObjective { function: function.ok_or_else(none)?, name, log_z, flow })
        }
        Spec::TrajectoryBalance { backward } => with_backward(TrajectoryBalance, backward),
        Spec::LogPartitionVariance { backward } => with_backward(LogPartitionVariance, backward),
        Spec::RelativeTrajectoryBalance { beta } => Box::new(RelativeTrajectoryBalance::new(beta)?),
        Spec::RelativeLogPartitionVariance { beta } => Box::new(RelativeLogPartitionVariance::new(beta)?),
        Spec::TrustPcl { alpha } => Box::new(TrustPcl::new(alpha)?),
        Spec::DetailedBalance { forward_looking, backward } => {
            with_backward(DetailedBalance { flow: flow(forward_looking) }, backward)
        }
        Spec::ModifiedDetailedBalance { target_network } => {
            let next_exit = target_network.map_or(NextExit::TrainedPolicy, |_| NextExit::TargetNetwork);
            Box::new(ModifiedDetailedBalance { next_exit })
        }
        Spec::SubTrajectoryBalance { weighting, forward_looking, backward } => {
            with_backward(SubTrajectoryBalance::new(weighting)?.with_flow(flow(forward_looking)), backward)
        }
        Spec::AugmentedTrajectoryBalance {} => Box::new(AugmentedTrajectoryBalance),
        Spec::AugmentedDetailedBalance {} => Box::new(AugmentedDetailedBalance),
        Spec::FlowMatching {} => Box::new(FlowMatching::default()),
        Spec::PolicyGradient { advantage } => Box::new(PolicyGradient::new(advantage)?),
        Spec::ProximalPolicy { advantage, clip, kl, value_weight, epochs } => {
            Box::new(ProximalPolicy { advantage, clip, kl, value_weight, epochs })
        }
        Spec::MaximumLikelihood {} => Box::new(MaximumLikelihood),
    })
}
