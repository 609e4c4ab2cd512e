//! Rewards of graphs, among them acyclic ones.

use std::time::Duration;

use gfn::env::Reward;
use gfn::graph::GraphStates;
use gfn_dags::{
    BayesianStructure, Bde, BdeConfig, Bge, BgeConfig, CachedScores, ContinuousData, DagReward, DiscreteData,
    LinearGaussianBic, LocalScore, StructurePrior,
};
use gfn_gym::colored_graphs::ColoredGraphReward;
use gfn_gym::graph_problems::SizeReward;
use gfn_gym::ring::RingReward;
use gfn_gym::triangle::TriangleReward;
use gfn_molecules::{ExternalScorer, MoleculeScore};
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use super::wrong_states;
use crate::errors::raised;
use crate::kinds::GraphFacts;
use crate::ranking::molecule_score;

/// Their settings, by the name of the class in Python.
#[expect(clippy::enum_variant_names, reason = "the names of the classes")]
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
enum Spec {
    RingReward { ring: f64, floor: f64 },
    TriangleReward { triangle: f64, floor: f64 },
    ColoredGraphReward { kind: ColoredGraphReward },
    MoleculeReward { score: Value, beta: f64, floor: f64 },
    ExternalReward { program: Program, beta: f64, floor: f64 },
    SizeReward { beta: f64 },
    StructureReward { score: Score, names: Vec<String> },
}

/// A program that scores molecules.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Program {
    command: Vec<String>,
    timeout: f64,
}

impl Program {
    fn build(self) -> gfn::Result<ExternalScorer> {
        let timeout = Duration::try_from_secs_f64(self.timeout)
            .map_err(|_| gfn::Error::config("timeout", self.timeout, "a number of seconds above 0"))?;
        ExternalScorer::new(self.command, timeout)
    }
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

/// A reward of the library's for graphs.
pub(crate) fn graph_reward(settings: &Value, facts: &GraphFacts) -> PyResult<Box<dyn Reward<GraphStates>>> {
    let Ok(spec) = serde_json::from_value(settings.clone()) else {
        return Err(wrong_states(settings, "graphs"));
    };
    let build = || -> gfn::Result<Option<Box<dyn Reward<GraphStates>>>> {
        Ok(Some(match (spec, facts) {
            (Spec::RingReward { ring, floor }, _) => Box::new(RingReward::new(ring, floor)?),
            (Spec::TriangleReward { triangle, floor }, _) => Box::new(TriangleReward::new(triangle, floor)?),
            (Spec::ColoredGraphReward { kind }, _) => Box::new(kind),
            (Spec::MoleculeReward { score, beta, floor }, GraphFacts::Molecules(reading)) => {
                reading.reward(molecule_score(score)?.clamped(floor, f64::MAX)?.to_the(beta)?)
            }
            (Spec::ExternalReward { program, beta, floor }, GraphFacts::Molecules(reading)) => {
                reading.reward(program.build()?.clamped(floor, f64::MAX)?.to_the(beta)?)
            }
            (Spec::SizeReward { beta }, GraphFacts::Problem(problem)) => Box::new(SizeReward::new(*problem, beta)?),
            _ => return Ok(None),
        }))
    };
    let reward = build().map_err(raised)?;
    reward.ok_or_else(|| wrong_states(settings, "graphs that aren't molecules or of a problem"))
}

/// The largest number of variables whose scores are all computed in advance: there are few sets of parents.
const MAX_PRECOMPUTED: usize = 12;

/// The posterior over structures, given observations.
pub(crate) fn structure_reward(
    settings: &Value,
    structures: &BayesianStructure,
) -> PyResult<Box<dyn Reward<GraphStates>>> {
    let Ok(Spec::StructureReward { score, names }) = serde_json::from_value(settings.clone()) else {
        return Err(wrong_states(settings, "acyclic graphs"));
    };
    let build = || -> gfn::Result<Box<dyn Reward<GraphStates>>> {
        let variables = names.len();
        if variables != structures.n_nodes() {
            let got = format!("{variables} variables for an environment of {} nodes", structures.n_nodes());
            return Err(gfn::Error::config("the data of a StructureReward", got, "a column for each node"));
        }
        let score = score.build(names)?;
        let scores = if variables <= MAX_PRECOMPUTED {
            CachedScores::ahead(score, structures.config().max_parents)?
        } else {
            CachedScores::new(score)
        };
        let start = &structures.env().initial_graphs()[0];
        Ok(Box::new(DagReward::new(scores, StructurePrior::Uniform)?.relative_to(start)?))
    };
    build().map_err(raised)
}
