//! Environments of points (the unit box, the line, and diffusions), with their rewards and policies.

use std::sync::Arc;

use gfn::env::Reals;
use gfn::{Error, Result, Rng};
use gfn_extras::explore::ObjectSearch;
use gfn_gym::boxes::{BoxEnv, BoxPolicy, BoxPolicyConfig, BoxReward};
use gfn_gym::diffusion::{
    CoxProcess, DiffusionPolicy, DiffusionPolicyConfig, DiffusionSampling, Energy, Funnel, Mala, MalaConfig,
    ManyWell, Mixture, Posterior, Target,
};
use gfn_gym::line::{Line, LinePolicy, LinePolicyConfig, LineReward};
use serde::Deserialize;
use serde_json::Value;

use super::{AnyReward, AnySpace, ByKind, NO_LANGEVIN, PyEnv, Space, reward_spec, wrong_states};
use crate::border::{DiffusionBorder, PointBorder};
use crate::errors::Outcome;
use crate::policy::{BuiltPolicy, Plan};

/// The settings of each reward of points. The variants have the names of the Python classes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
enum RewardSpec {
    BoxReward { r0: f64, r1: f64, r2: f64 },
    LineReward { modes: Vec<(f64, f64)> },
    GaussianTarget { mean: Vec<f64>, sd: f64 },
    MixtureTarget { name: MixtureName, seed: u64 },
    FunnelTarget { dim: usize, sd: f64 },
    ManyWellTarget { dim: usize },
    PosteriorTarget {},
    CoxTarget { side: usize, seed: u64 },
}

/// The names of the mixtures of Gaussians in the plane.
#[expect(clippy::enum_variant_names, reason = "the names that Python has")]
#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum MixtureName {
    TwoModes,
    NineModes,
    TwentyFiveModes,
    FortyModes,
}

impl<E: PyEnv<States = Reals, Details = ()>> Space<E> {
    pub(crate) fn points(env: E, width: usize) -> Self {
        Self { env, border: Arc::new(PointBorder(width)), details: () }
    }
}

impl PyEnv for BoxEnv {
    type Details = ();

    fn reward(_: &Space<Self>, settings: &Value, _: Option<Arc<dyn Target>>) -> Outcome<AnyReward<Self>> {
        let states = "points of the unit box";
        match reward_spec(settings, states)? {
            RewardSpec::BoxReward { r0, r1, r2 } => Ok(Box::new(BoxReward::new(r0, r1, r2)?)),
            _ => wrong_states(settings, states),
        }
    }

    fn policy(space: &Space<Self>, plan: Plan<'_>) -> Outcome<BuiltPolicy<Self>> {
        match plan.class.as_str() {
            "BoxNet" => plan.build(|config: BoxPolicyConfig, plan| {
                BoxPolicy::new(&space.env, config, plan.device, plan.kind, plan.rng)
            }),
            _ => plan.not_for("the unit box: expected BoxNet"),
        }
    }
}

impl PyEnv for Line {
    type Details = ();

    fn reward(_: &Space<Self>, settings: &Value, _: Option<Arc<dyn Target>>) -> Outcome<AnyReward<Self>> {
        let states = "points of the line";
        match reward_spec(settings, states)? {
            RewardSpec::LineReward { modes } => Ok(Box::new(LineReward::new(modes)?)),
            _ => wrong_states(settings, states),
        }
    }

    fn policy(space: &Space<Self>, plan: Plan<'_>) -> Outcome<BuiltPolicy<Self>> {
        match plan.class.as_str() {
            "LineNet" => plan.build(|config: LinePolicyConfig, plan| {
                LinePolicy::new(&space.env, config, plan.device, plan.kind, plan.rng)
            }),
            _ => plan.not_for("the line: expected LineNet"),
        }
    }
}

impl Space<DiffusionSampling> {
    pub(crate) fn diffusion(env: DiffusionSampling) -> AnySpace {
        ByKind::Diffusion(Self { border: Arc::new(DiffusionBorder(env.clone())), env, details: () })
    }
}

impl PyEnv for DiffusionSampling {
    type Details = ();

    fn target(reward: Option<&Value>) -> Outcome<Option<Arc<dyn Target>>> {
        reward.map(diffusion_target).transpose()
    }

    fn reward(
        space: &Space<Self>,
        settings: &Value,
        target: Option<Arc<dyn Target>>,
    ) -> Outcome<AnyReward<Self>> {
        let target = match target {
            Some(target) => target,
            None => diffusion_target(settings)?,
        };
        Ok(Box::new(Energy::new(target).along(space.env.process())))
    }

    fn policy(space: &Space<Self>, plan: Plan<'_>) -> Outcome<BuiltPolicy<Self>> {
        match plan.class.as_str() {
            "DiffusionNet" => plan.build(|config: DiffusionPolicyConfig, plan| {
                DiffusionPolicy::new(
                    &space.env,
                    config,
                    plan.target.clone(),
                    plan.device,
                    plan.kind,
                    plan.rng,
                )
            }),
            _ => plan.not_for("a diffusion: expected DiffusionNet"),
        }
    }

    fn langevin(
        env: &Self,
        target: Option<Arc<dyn Target>>,
        config: MalaConfig,
    ) -> Result<Box<dyn ObjectSearch<Self>>> {
        let target = target.ok_or_else(|| Error::config("search", "Mala", NO_LANGEVIN))?;
        Ok(Box::new(Mala::new(env, target, config)?))
    }
}

/// Builds the density that a diffusion samples, from the settings of the reward.
fn diffusion_target(settings: &Value) -> Outcome<Arc<dyn Target>> {
    let build = |spec| -> Result<Option<Arc<dyn Target>>> {
        Ok(Some(match spec {
            RewardSpec::GaussianTarget { mean, sd } => Arc::new(Mixture::gaussian(mean, sd)?),
            RewardSpec::MixtureTarget { name, seed } => Arc::new(match name {
                MixtureName::TwoModes => Mixture::two_modes(),
                MixtureName::NineModes => Mixture::nine_modes(),
                MixtureName::TwentyFiveModes => Mixture::twenty_five_modes(),
                MixtureName::FortyModes => Mixture::forty_modes(seed),
            }),
            RewardSpec::FunnelTarget { dim, sd } => Arc::new(Funnel::new(dim, sd)?),
            RewardSpec::ManyWellTarget { dim } => Arc::new(ManyWell::new(dim)?),
            RewardSpec::PosteriorTarget {} => Arc::new(Posterior::nine_of_twenty_five()),
            RewardSpec::CoxTarget { side, seed } => {
                Arc::new(CoxProcess::generated(side, &mut Rng::seeded(seed))?)
            }
            RewardSpec::BoxReward { .. } | RewardSpec::LineReward { .. } => return Ok(None),
        }))
    };
    let target = build(reward_spec(settings, "points of a diffusion")?)?;
    match target {
        Some(target) => Ok(target),
        None => wrong_states(settings, "points of a diffusion"),
    }
}
