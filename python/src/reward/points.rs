//! Rewards of points.

use std::sync::Arc;

use gfn::Rng;
use gfn::env::{Reals, Reward};
use gfn_gym::boxes::BoxReward;
use gfn_gym::diffusion::{
    CoxProcess, DiffusionSampling, DiffusionStates, Energy, Funnel, ManyWell, Mixture, Posterior, Target,
};
use gfn_gym::line::LineReward;
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use super::wrong_states;
use crate::errors::raised;

/// Their settings, by the name of the class in Python.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
enum Spec {
    BoxReward { r0: f64, r1: f64, r2: f64 },
    LineReward { modes: Vec<(f64, f64)> },
    GaussianTarget { mean: Vec<f64>, sd: f64 },
    MixtureTarget { name: MixtureName, seed: u64 },
    FunnelTarget { dim: usize, sd: f64 },
    ManyWellTarget { dim: usize },
    PosteriorTarget {},
    CoxTarget { side: usize, seed: u64 },
}

/// Mixtures of Gaussians in the plane.
#[expect(clippy::enum_variant_names, reason = "the names that Python has")]
#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum MixtureName {
    TwoModes,
    NineModes,
    TwentyFiveModes,
    FortyModes,
}

fn spec(settings: &Value, states: &str) -> PyResult<Spec> {
    serde_json::from_value(settings.clone()).map_err(|_| wrong_states(settings, states))
}

/// The grid's original reward, in the unit box.
pub(crate) fn box_reward(settings: &Value) -> PyResult<Box<dyn Reward<Reals>>> {
    match spec(settings, "points of the unit box")? {
        Spec::BoxReward { r0, r1, r2 } => Ok(Box::new(BoxReward::new(r0, r1, r2).map_err(raised)?)),
        _ => Err(wrong_states(settings, "points of the unit box")),
    }
}

/// A sum of Gaussians on the line.
pub(crate) fn line_reward(settings: &Value) -> PyResult<Box<dyn Reward<Reals>>> {
    match spec(settings, "points of the line")? {
        Spec::LineReward { modes } => Ok(Box::new(LineReward::new(modes).map_err(raised)?)),
        _ => Err(wrong_states(settings, "points of the line")),
    }
}

/// The density that a diffusion samples, as its reward. `target` is the density, if it was built before.
pub(crate) fn diffusion_reward(
    settings: &Value,
    target: Option<Arc<dyn Target>>,
    env: &DiffusionSampling,
) -> PyResult<Box<dyn Reward<DiffusionStates>>> {
    let target = match target {
        Some(target) => target,
        None => diffusion_target(settings)?,
    };
    Ok(Box::new(Energy::new(target).along(env.process())))
}

/// The density that a diffusion samples.
pub(crate) fn diffusion_target(settings: &Value) -> PyResult<Arc<dyn Target>> {
    let build = |spec| -> gfn::Result<Option<Arc<dyn Target>>> {
        Ok(Some(match spec {
            Spec::GaussianTarget { mean, sd } => Arc::new(Mixture::gaussian(mean, sd)?),
            Spec::MixtureTarget { name, seed } => Arc::new(match name {
                MixtureName::TwoModes => Mixture::two_modes(),
                MixtureName::NineModes => Mixture::nine_modes(),
                MixtureName::TwentyFiveModes => Mixture::twenty_five_modes(),
                MixtureName::FortyModes => Mixture::forty_modes(seed),
            }),
            Spec::FunnelTarget { dim, sd } => Arc::new(Funnel::new(dim, sd)?),
            Spec::ManyWellTarget { dim } => Arc::new(ManyWell::new(dim)?),
            Spec::PosteriorTarget {} => Arc::new(Posterior::nine_of_twenty_five()),
            Spec::CoxTarget { side, seed } => Arc::new(CoxProcess::generated(side, &mut Rng::seeded(seed))?),
            Spec::BoxReward { .. } | Spec::LineReward { .. } => return Ok(None),
        }))
    };
    let target = build(spec(settings, "points of a diffusion")?).map_err(raised)?;
    target.ok_or_else(|| wrong_states(settings, "points of a diffusion"))
}
