//! Environments of vectors, with their rewards and policies.

use std::sync::Arc;

use gfn::Result;
use gfn::env::VectorEnv;
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig, SequenceLayout, SequencePolicy, SequencePolicyConfig};
use gfn_gym::bit_sequence::{
    BitSequence, HammingReward, NonAutoregressiveBitSequence, PrependAppendBitSequence, Words,
};
use gfn_gym::diffusion::Target;
use gfn_gym::discrete_ebm::{DiscreteEbm, IsingReward};
use gfn_gym::hypergrid::{ConditionalReward, HyperGrid, OriginalReward, Preset, RewardKind};
use gfn_gym::perfect_tree::PerfectBinaryTree;
use gfn_gym::phylo_tree::{ParsimonyReward, PhyloTree};
use gfn_gym::sequence::{Alphabet, TableReward, TokenSequence};
use gfn_gym::set_addition::{SetAddition, WeightReward};
use gfn_gym::toy_dag::{ToyDag, ToyReward};
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use super::{AnyReward, AnySpace, ByKind, Discrete, PyEnv, Space, wrong_states};
use crate::border::VectorBorder;
use crate::errors::raised;
use crate::policy::{BuiltPolicy, Plan, uniform, vector_module};

/// The properties of an environment of vectors that networks and rewards need.
#[derive(Clone)]
pub(crate) struct VectorFacts {
    /// The number of values of an entry.
    pub(crate) values: usize,
    /// The layout of states that are written from left to right.
    pub(crate) sequence: Option<SequenceLayout>,
    /// The settings of an environment of the library's.
    pub(crate) spec: Option<VectorSpec>,
}

impl Space<VectorEnv> {
    pub(crate) fn vectors(env: VectorEnv, values: usize) -> Self {
        let border = Arc::new(VectorBorder { values, features: KHot::new(env.width(), values), width: env.width() });
        Self { env, border, facts: VectorFacts { values, sequence: None, spec: None } }
    }

    /// One-hot entries.
    pub(crate) fn features(&self) -> KHot {
        KHot::new(self.env.width(), self.facts.values)
    }
}

impl PyEnv for VectorEnv {
    type Facts = VectorFacts;

    fn reward(space: &Space<Self>, settings: &Value, _: Option<Arc<dyn Target>>) -> PyResult<AnyReward<Self>> {
        let Some(env) = &space.facts.spec else {
            return wrong_states(settings, "the vectors of an environment of your own");
        };
        let Ok(spec) = serde_json::from_value(settings.clone()) else { return wrong_states(settings, "vectors") };
        match build_reward(spec, env).map_err(raised)? {
            Some(reward) => Ok(reward),
            None => wrong_states(settings, "the vectors of this environment"),
        }
    }

    fn policy(space: &Space<Self>, plan: Plan<'_>) -> PyResult<BuiltPolicy<Self>> {
        let env = &space.env;
        match (plan.class.as_str(), space.facts.sequence) {
            ("Mlp", _) => plan.build(|config: MlpPolicyConfig, plan| {
                MlpPolicy::new(env, space.features(), config, plan.device, plan.kind, plan.rng)
            }),
            ("SequenceNet", Some(layout)) => plan.build(|config: SequencePolicyConfig, plan| {
                SequencePolicy::new(env, layout, config, plan.device, plan.kind, plan.rng)
            }),
            ("VectorModule", _) | ("SequenceModule", Some(_)) => vector_module::policy(plan, space),
            ("SequenceNet" | "SequenceModule", None) => {
                let expected = "an environment whose states are written from left to right";
                Err(raised(gfn::Error::config("the policy", &plan.class, expected)))
            }
            ("Uniform", _) => Ok(uniform()),
            _ => plan.not_for("vectors (there are Mlp, VectorModule, SequenceNet, SequenceModule and Uniform)"),
        }
    }

    fn discrete() -> Option<Discrete<Self>> {
        Some(Discrete::new())
    }
}

/// The settings of environments, by the name of the class in Python.
#[derive(Clone, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) enum VectorSpec {
    HyperGrid { ndim: usize, height: usize },
    BitSequence { word_size: usize, seq_size: usize },
    PrependAppendBitSequence { word_size: usize, seq_size: usize },
    NonAutoregressiveBitSequence { word_size: usize, seq_size: usize },
    TokenSequence { n_tokens: usize, length: usize, min_length: Option<usize> },
    DiscreteEbm { n: usize },
    SetAddition { n_items: usize, max_items: usize, fixed_length: bool },
    PerfectBinaryTree { depth: usize },
    PhyloTree { n: usize },
    ToyDag {},
}

impl VectorSpec {
    pub(crate) fn build(&self) -> Result<AnySpace> {
        let (env, values, is_sequence) = match *self {
            Self::HyperGrid { ndim, height } => (HyperGrid::new(ndim, height)?.env(), height, false),
            Self::BitSequence { word_size, seq_size } => {
                let values = Words::new(word_size, seq_size)?.values();
                (BitSequence::new(word_size, seq_size)?.env(), values, true)
            }
            Self::PrependAppendBitSequence { word_size, seq_size } => {
                let values = Words::new(word_size, seq_size)?.values();
                (PrependAppendBitSequence::new(word_size, seq_size)?.env(), values, false)
            }
            Self::NonAutoregressiveBitSequence { word_size, seq_size } => {
                let values = Words::new(word_size, seq_size)?.values();
                (NonAutoregressiveBitSequence::new(word_size, seq_size)?.env(), values, false)
            }
            Self::TokenSequence { n_tokens, length, min_length } => {
                let sequence = match min_length {
                    None => TokenSequence::fixed(n_tokens, length)?,
                    Some(least) => TokenSequence::variable(n_tokens, least, length)?,
                };
                let values = sequence.values();
                (sequence.env(), values, true)
            }
            Self::DiscreteEbm { n } => (DiscreteEbm::new(n)?.env(), 3, false),
            Self::SetAddition { n_items, max_items, fixed_length } => {
                (SetAddition::new(n_items, max_items, fixed_length)?.env(), 2, false)
            }
            Self::PerfectBinaryTree { depth } => (PerfectBinaryTree::new(depth)?.env(), 3, false),
            Self::PhyloTree { n } => (PhyloTree::new(n)?.env(), n, false),
            Self::ToyDag {} => (ToyDag.env(), ToyDag::N_STATES, false),
        };
        let mut space = Space::vectors(env, values);
        if is_sequence {
            space.facts.sequence = Some(SequenceLayout { values, length: space.env.width(), unset: 0 });
        }
        space.facts.spec = Some(self.clone());
        Ok(ByKind::Vectors(space))
    }
}

/// The settings of rewards, by the name of the class in Python.
#[expect(clippy::enum_variant_names, reason = "the names of the classes")]
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
enum RewardSpec {
    HyperGridReward { kind: RewardKind, preset: Option<Preset> },
    ConditionalGridReward {},
    HammingReward { modes: Vec<String>, temperature: f64 },
    IsingReward { couplings: Vec<f64>, alpha: f64 },
    WeightReward { base: f64, weights: Vec<f64> },
    ParsimonyReward { sequences: Vec<String>, offset: f64, temperature: f64 },
    TableReward { alphabet: String, path: std::path::PathBuf, floor: Option<f64>, exponent: f64 },
    ToyReward { rewards: [f64; 6] },
}

/// A reward of the library's; None for one of another environment.
fn build_reward(spec: RewardSpec, env: &VectorSpec) -> Result<Option<AnyReward<VectorEnv>>> {
    Ok(Some(match (spec, env) {
        (RewardSpec::HyperGridReward { kind, preset }, VectorSpec::HyperGrid { ndim, height }) => {
            let env = HyperGrid::new(*ndim, *height)?;
            Box::new(preset.map_or_else(|| kind.standard(&env), |preset| kind.preset(&env, preset))?)
        }
        (RewardSpec::ConditionalGridReward {}, VectorSpec::HyperGrid { ndim, height }) => {
            let env = HyperGrid::new(*ndim, *height)?;
            Box::new(ConditionalReward::new(OriginalReward::standard(&env)?))
        }
        (
            RewardSpec::HammingReward { modes, temperature },
            VectorSpec::BitSequence { word_size, seq_size }
            | VectorSpec::PrependAppendBitSequence { word_size, seq_size }
            | VectorSpec::NonAutoregressiveBitSequence { word_size, seq_size },
        ) => {
            let modes = modes.iter().map(|mode| bits(mode)).collect::<Result<Vec<_>>>()?;
            Box::new(HammingReward::with_temperature(&Words::new(*word_size, *seq_size)?, &modes, temperature)?)
        }
        (RewardSpec::IsingReward { couplings, alpha }, VectorSpec::DiscreteEbm { n }) => {
            Box::new(IsingReward::new(*n, &couplings, alpha)?)
        }
        (RewardSpec::WeightReward { base, weights }, VectorSpec::SetAddition { n_items, max_items, fixed_length }) => {
            Box::new(WeightReward::new(&SetAddition::new(*n_items, *max_items, *fixed_length)?, base, &weights)?)
        }
        (RewardSpec::ParsimonyReward { sequences, offset, temperature }, VectorSpec::PhyloTree { n }) => {
            Box::new(ParsimonyReward::dna(&PhyloTree::new(*n)?, &sequences, offset, temperature)?)
        }
        (
            RewardSpec::TableReward { alphabet, path, floor, exponent },
            VectorSpec::TokenSequence { n_tokens, length, min_length },
        ) => {
            let env = match min_length {
                None => TokenSequence::fixed(*n_tokens, *length)?,
                Some(least) => TokenSequence::variable(*n_tokens, *least, *length)?,
            };
            Box::new(TableReward::read(&env, &Alphabet::new(&alphabet)?, &path, floor)?.with_exponent(exponent)?)
        }
        (RewardSpec::ToyReward { rewards }, VectorSpec::ToyDag {}) => Box::new(ToyReward::new(rewards)?),
        _ => return Ok(None),
    }))
}

/// A sequence of bits from its digits.
fn bits(text: &str) -> Result<Vec<bool>> {
    let bit = |digit| match digit {
        '0' => Ok(false),
        '1' => Ok(true),
        _ => Err(gfn::Error::config("modes", text, "sequences of 0 and 1")),
    };
    text.chars().map(bit).collect()
}
