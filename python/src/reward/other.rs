//! Rewards of acyclic graphs and of points.

use std::sync::Arc;

use gfn::Rng;
use gfn::env::{Reals, Reward};
use gfn::graph::GraphStates;
use gfn_dags::{
    BayesianStructure, Bde, BdeConfig, Bge, BgeConfig, CachedScores, ContinuousData, DagReward, DiscreteData,
    LinearGaussianBic, LocalScore, StructurePrior,
};
use gfn_gym::boxes::BoxReward;
use gfn_gym::diffusion::{CoxProcess, Funnel, ManyWell, Mixture, Posterior, Target};
use gfn_gym::line::LineReward;
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use super::wrong_states;
use crate::errors::raised;

/// Variables up to which all scores are computed ahead, as there are few enough sets of parents.
const AHEAD: usize = 12;

/// Their settings, by the name of the class in Python.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
enum Spec {
    StructureReward { score: Score, names: Vec<String> },
    BoxReward { r0: f64, r1: f64, r2: f64 },
    LineReward { modes: Vec<(f64, f64)> },
    GaussianTarget { mean: Vec<f64>, sd: f64 },
    MixtureTarget { name: MixtureName, seed: u64 },
    FunnelTarget { dim: usize, sd: f64 },
    ManyWellTarget { dim: usize },
    PosteriorTarget {},
    CoxTarget { side: usize, seed: u64 },
}

/// The score of structures: its observations and its settings.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Score {
    Bge { values: Vec<f64>, standardise: bool, alpha_mu: f64, alpha_w: Option<f64>, nu: Option<Vec<f64>> },
    Bic { values: Vec<f64>, standardise: bool },
    Bde { labels: Vec<Vec<String>>, cells: Vec<u16> },
}

impl Score {
    fn build(self, names: Vec<String>) -> gfn::Result<Box<dyn LocalScore>> {
        let prepared = |names, values, standardise| {
            let data = ContinuousData::new(names, values)?;
            if standardise { data.standardised() } else { Ok(data) }
        };
        Ok(match self {
            Self::Bge { values, standardise, alpha_mu, alpha_w, nu } => {
                let config = BgeConfig { alpha_mu, alpha_w, nu, ..BgeConfig::default() };
                Box::new(Bge::new(&prepared(names, values, standardise)?, config)?)
            }
            Self::Bic { values, standardise } => {
                Box::new(LinearGaussianBic::new(&prepared(names, values, standardise)?)?)
            }
            Self::Bde { labels, cells } => {
                Box::new(Bde::new(DiscreteData::labelled(names, labels, cells)?, BdeConfig::default())?)
            }
        })
    }
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

fn spec(settings: &Value, states: &'static str) -> PyResult<Spec> {
    serde_json::from_value(settings.clone()).map_err(|_| wrong_states(settings, states))
}

/// The posterior over structures, given observations.
pub(crate) fn structure_reward(
    settings: Value,
    structures: &BayesianStructure,
) -> PyResult<Box<dyn Reward<GraphStates>>> {
    let Spec::StructureReward { score, names } = spec(&settings, "acyclic graphs")? else {
        return Err(wrong_states(&settings, "acyclic graphs"));
    };
    let build = || -> gfn::Result<Box<dyn Reward<GraphStates>>> {
        let variables = names.len();
        if variables != structures.n_nodes() {
            let got = format!("{variables} variables for an environment of {} nodes", structures.n_nodes());
            return Err(gfn::Error::config("the data of a StructureReward", got, "a column for each node"));
        }
        let score = score.build(names)?;
        let scores = if variables <= AHEAD {
            CachedScores::ahead(score, structures.config().max_parents)?
        } else {
            CachedScores::new(score)
        };
        Ok(Box::new(
            DagReward::new(scores, StructurePrior::Uniform)?.relative_to(&structures.env().initial_graphs()[0])?,
        ))
    };
    build().map_err(raised)
}

/// The grid's original reward, in the unit box.
pub(crate) fn box_reward(settings: Value) -> PyResult<Box<dyn Reward<Reals>>> {
    match spec(&settings, "points of the unit box")? {
        Spec::BoxReward { r0, r1, r2 } => Ok(Box::new(BoxReward::new(r0, r1, r2).map_err(raised)?)),
        _ => Err(wrong_states(&settings, "points of the unit box")),
    }
}

/// A sum of Gaussians on the line.
pub(crate) fn line_reward(settings: Value) -> PyResult<Box<dyn Reward<Reals>>> {
    match spec(&settings, "points of the line")? {
        Spec::LineReward { modes } => Ok(Box::new(LineReward::new(modes).map_err(raised)?)),
        _ => Err(wrong_states(&settings, "points of the line")),
    }
}

/// The density that a diffusion is to sample.
pub(crate) fn diffusion_target(settings: &Value) -> PyResult<Arc<dyn Target>> {
    let target = |spec| -> gfn::Result<Option<Arc<dyn Target>>> {
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
            _ => return Ok(None),
        }))
    };
    let built = target(spec(settings, "points of a diffusion")?).map_err(raised)?;
    built.ok_or_else(|| wrong_states(settings, "points of a diffusion"))
}
