//! Rewards of graphs.

use gfn::env::Reward;
use gfn::graph::GraphStates;
use gfn_gym::colored_graphs::ColoredGraphReward;
use gfn_gym::ring::RingReward;
use gfn_gym::triangle::TriangleReward;
use gfn_molecules::{LogWindow, Molecule, MoleculeScore, Product, RingTarget};
use pyo3::prelude::*;
use serde::Deserialize;

use super::wrong_states;
use crate::errors::raised;
use crate::molecules::Reading;

/// Their settings, by the name of the class in Python.
#[expect(clippy::enum_variant_names, reason = "the names of the classes")]
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
enum Spec {
    RingReward { ring: f64, floor: f64 },
    TriangleReward { triangle: f64, floor: f64 },
    ColoredGraphReward { kind: ColoredGraphReward },
    MoleculeReward { score: Score, beta: f64, floor: f64 },
}

/// What molecules are scored by.
#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Score {
    Constant,
    Heteroatoms,
    Rings,
    HydrogenBonds,
    DrugLike,
}

impl Score {
    fn build(self) -> gfn::Result<Box<dyn MoleculeScore>> {
        Ok(match self {
            Self::Constant => Box::new(|_: &Molecule| 1.0),
            Self::Heteroatoms => Box::new(|molecule: &Molecule| 0.1 + molecule.heteroatom_share()),
            Self::Rings => Box::new(RingTarget { most: usize::MAX }),
            Self::HydrogenBonds => {
                Box::new(|molecule: &Molecule| ((molecule.n_donors() + molecule.n_acceptors()) as f64).exp())
            }
            Self::DrugLike => Box::new(
                Product::new().times(LogWindow::new(Molecule::weight, 100.0, 300.0, 50.0)?).times(LogWindow::new(
                    Molecule::polar_surface,
                    40.0,
                    90.0,
                    20.0,
                )?),
            ),
        })
    }
}

/// A reward of the library's for graphs; `codec` reads them as molecules.
pub(crate) fn graph_reward(
    settings: serde_json::Value,
    codec: Option<&Reading>,
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
                let Some(codec) = codec else { return Ok(None) };
                let score = score.build()?.clamped(floor, f64::MAX)?.to_the(beta)?;
                codec.reward(score)
            }
        }))
    };
    build().map_err(raised)?.ok_or_else(|| wrong_states(&settings, "graphs that aren't molecules"))
}
