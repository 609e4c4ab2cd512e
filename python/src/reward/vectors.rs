//! Rewards of vectors.

use gfn::env::{Reward, VectorStates};
use gfn_gym::bit_sequence::{HammingReward, Words};
use gfn_gym::discrete_ebm::IsingReward;
use gfn_gym::hypergrid::{ConditionalReward, HyperGrid, OriginalReward, Preset, RewardKind};
use gfn_gym::phylo_tree::{ParsimonyReward, PhyloTree};
use gfn_gym::sequence::{Alphabet, TableReward, TokenSequence};
use gfn_gym::set_addition::{SetAddition, WeightReward};
use gfn_gym::toy_dag::ToyReward;
use pyo3::prelude::*;
use serde::Deserialize;

use super::wrong_states;
use crate::env::VectorSpec;
use crate::errors::raised;

/// Their settings, by the name of the class in Python.
#[expect(clippy::enum_variant_names, reason = "the names of the classes")]
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
enum Spec {
    HyperGridReward { kind: RewardKind, preset: Option<Preset> },
    ConditionalGridReward {},
    HammingReward { modes: Vec<String>, temperature: f64 },
    IsingReward { couplings: Vec<f64>, alpha: f64 },
    WeightReward { base: f64, weights: Vec<f64> },
    ParsimonyReward { sequences: Vec<String>, offset: f64, temperature: f64 },
    TableReward { alphabet: String, path: std::path::PathBuf, floor: Option<f64>, exponent: f64 },
    ToyReward { rewards: [f64; 6] },
}

type Built = gfn::Result<Option<Box<dyn Reward<VectorStates>>>>;

/// A reward of the library's for the vectors of an environment.
pub(crate) fn vector_reward(settings: &serde_json::Value, env: &VectorSpec) -> PyResult<Box<dyn Reward<VectorStates>>> {
    let Ok(spec) = serde_json::from_value(settings.clone()) else {
        return Err(wrong_states(settings, "vectors"));
    };
    build(spec, env).map_err(raised)?.ok_or_else(|| wrong_states(settings, "the vectors of this environment"))
}

fn build(spec: Spec, env: &VectorSpec) -> Built {
    Ok(Some(match (spec, env) {
        (Spec::HyperGridReward { kind, preset }, VectorSpec::HyperGrid { ndim, height }) => {
            let env = HyperGrid::new(*ndim, *height)?;
            Box::new(preset.map_or_else(|| kind.standard(&env), |preset| kind.preset(&env, preset))?)
        }
        (Spec::ConditionalGridReward {}, VectorSpec::HyperGrid { ndim, height }) => {
            let env = HyperGrid::new(*ndim, *height)?;
            Box::new(ConditionalReward::new(OriginalReward::standard(&env)?))
        }
        (
            Spec::HammingReward { modes, temperature },
            VectorSpec::BitSequence { word_size, seq_size }
            | VectorSpec::PrependAppendBitSequence { word_size, seq_size }
            | VectorSpec::NonAutoregressiveBitSequence { word_size, seq_size },
        ) => {
            let modes = modes.iter().map(|mode| bits(mode)).collect::<gfn::Result<Vec<_>>>()?;
            Box::new(HammingReward::with_temperature(&Words::new(*word_size, *seq_size)?, &modes, temperature)?)
        }
        (Spec::IsingReward { couplings, alpha }, VectorSpec::DiscreteEbm { n }) => {
            Box::new(IsingReward::new(*n, &couplings, alpha)?)
        }
        (Spec::WeightReward { base, weights }, VectorSpec::SetAddition { n_items, max_items, fixed_length }) => {
            Box::new(WeightReward::new(&SetAddition::new(*n_items, *max_items, *fixed_length)?, base, &weights)?)
        }
        (Spec::ParsimonyReward { sequences, offset, temperature }, VectorSpec::PhyloTree { n }) => {
            Box::new(ParsimonyReward::dna(&PhyloTree::new(*n)?, &sequences, offset, temperature)?)
        }
        (
            Spec::TableReward { alphabet, path, floor, exponent },
            VectorSpec::TokenSequence { n_tokens, length, min_length },
        ) => {
            let env = match min_length {
                None => TokenSequence::fixed(*n_tokens, *length)?,
                Some(least) => TokenSequence::variable(*n_tokens, *least, *length)?,
            };
            Box::new(TableReward::read(&env, &Alphabet::new(&alphabet)?, &path, floor)?.with_exponent(exponent)?)
        }
        (Spec::ToyReward { rewards }, VectorSpec::ToyDag {}) => Box::new(ToyReward::new(rewards)?),
        _ => return Ok(None),
    }))
}

/// A sequence of bits from its digits.
fn bits(text: &str) -> gfn::Result<Vec<bool>> {
    let bit = |digit| match digit {
        '0' => Ok(false),
        '1' => Ok(true),
        _ => Err(gfn::Error::config("modes", text, "sequences of 0 and 1")),
    };
    text.chars().map(bit).collect()
}
