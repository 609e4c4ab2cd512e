//! Rewards of graphs.

use std::time::Duration;

use gfn::env::Reward;
use gfn::graph::GraphStates;
use gfn_gym::colored_graphs::ColoredGraphReward;
use gfn_gym::graph_problems::{Problem, SizeReward};
use gfn_gym::ring::RingReward;
use gfn_gym::triangle::TriangleReward;
use gfn_molecules::{ExternalScorer, MoleculeScore};
use pyo3::prelude::*;
use serde::Deserialize;

use super::wrong_states;
use crate::errors::raised;
use crate::molecules::Reading;
use crate::ranking::molecule_score;

/// Their settings, by the name of the class in Python.
#[expect(clippy::enum_variant_names, reason = "the names of the classes")]
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
enum Spec {
    RingReward { ring: f64, floor: f64 },
    TriangleReward { triangle: f64, floor: f64 },
    ColoredGraphReward { kind: ColoredGraphReward },
    MoleculeReward { score: serde_json::Value, beta: f64, floor: f64 },
    ExternalReward { program: Program, beta: f64, floor: f64 },
    SizeReward { beta: f64 },
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

/// A reward of the library's for graphs; `reading` reads them as molecules, and `problem` is what they are input of.
pub(crate) fn graph_reward(
    settings: serde_json::Value,
    reading: Option<&Reading>,
    problem: Option<Problem>,
) -> PyResult<Box<dyn Reward<GraphStates>>> {
    let Ok(spec) = serde_json::from_value(settings.clone()) else {
        return Err(wrong_states(&settings, "graphs"));
    };
    let build = || -> gfn::Result<Option<Box<dyn Reward<GraphStates>>>> {
        Ok(Some(match spec {
            Spec::RingReward { ring, floor } => Box::new(RingReward::new(ring, floor)?),
            Spec::TriangleReward { triangle, floor } => Box::new(TriangleReward::new(triangle, floor)?),
            Spec::ColoredGraphReward { kind } => Box::new(kind),
            Spec::MoleculeReward { score, beta, floor } => {
                let Some(reading) = reading else { return Ok(None) };
                let score = molecule_score(score)?.clamped(floor, f64::MAX)?.to_the(beta)?;
                reading.reward(score)
            }
            Spec::SizeReward { beta } => match problem {
                Some(problem) => Box::new(SizeReward::new(problem, beta)?),
                None => return Ok(None),
            },
            Spec::ExternalReward { program, beta, floor } => {
                let Some(reading) = reading else { return Ok(None) };
                reading.reward(program.build()?.clamped(floor, f64::MAX)?.to_the(beta)?)
            }
        }))
    };
    build().map_err(raised)?.ok_or_else(|| wrong_states(&settings, "graphs that aren't molecules or of a problem"))
}
