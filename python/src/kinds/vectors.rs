//! Environments of vectors, with their rewards and policies.

use std::sync::Arc;

use gfn::Result;
use gfn::env::VectorEnv;
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig, SequenceLayout, SequencePolicy, SequencePolicyConfig};
use gfn_gym::bit_sequence::{HammingReward, Words};
use gfn_gym::diffusion::Target;
use gfn_gym::discrete_ebm::IsingReward;
use gfn_gym::hypergrid::{ConditionalReward, HyperGrid, OriginalReward, Preset, RewardKind};
use gfn_gym::phylo_tree::{ParsimonyReward, PhyloTree};
use gfn_gym::sequence::{Alphabet, TableReward};
use gfn_gym::set_addition::{SetAddition, WeightReward};
use gfn_gym::toy_dag::ToyReward;
use serde::Deserialize;
use serde_json::Value;

use super::{AnyReward, Discrete, PyEnv, Space, reward_spec, wrong_states};
use crate::border::VectorBorder;
use crate::env::{EnvSpec, token_sequence};
use crate::errors::Outcome;
use crate::policy::{BuiltPolicy, Plan, uniform, vector_module};

/// The details of an environment of vectors that policies and rewards need.
#[derive(Clone)]
pub(crate) struct VectorDetails {
    /// The number of values that an entry of a vector can have.
    pub(crate) values: usize,
    /// `true` if the environment sets the entries of a vector from left to right.
    pub(crate) is_sequence: bool,
    /// The environment's settings; `None` for an environment that is declared in Python.
    pub(crate) spec: Option<EnvSpec>,
}

impl Space<VectorEnv> {
    pub(crate) fn vectors(env: VectorEnv) -> Self {
        let values = env.n_values();
        let border =
            Arc::new(VectorBorder { values, features: KHot::new(env.width(), values), width: env.width() });
        Self { env, border, details: VectorDetails { values, is_sequence: false, spec: None } }
    }

    /// Returns the one-hot encoding of the entries of this environment's vectors.
    pub(crate) fn features(&self) -> KHot {
        KHot::new(self.env.width(), self.details.values)
    }
}

impl PyEnv for VectorEnv {
    type Details = VectorDetails;

    fn reward(space: &Space<Self>, settings: &Value, _: Option<Arc<dyn Target>>) -> Outcome<AnyReward<Self>> {
        let Some(env) = &space.details.spec else {
            return wrong_states(settings, "the vectors of a custom environment");
        };
        match build_reward(reward_spec(settings, "vectors")?, env)? {
            Some(reward) => Ok(reward),
            None => wrong_states(settings, "the vectors of this environment"),
        }
    }

    fn policy(space: &Space<Self>, plan: Plan<'_>) -> Outcome<BuiltPolicy<Self>> {
        let env = &space.env;
        let VectorDetails { values, is_sequence, .. } = space.details;
        match (plan.class.as_str(), is_sequence) {
            ("Mlp", _) => plan.build(|config: MlpPolicyConfig, plan| {
                MlpPolicy::new(env, space.features(), config, plan.device, plan.kind, plan.rng)
            }),
            ("SequenceNet", true) => plan.build(|config: SequencePolicyConfig, plan| {
                let layout = SequenceLayout { values, length: env.width(), unset: 0 };
                SequencePolicy::new(env, layout, config, plan.device, plan.kind, plan.rng)
            }),
            ("VectorModule", _) | ("SequenceModule", true) => vector_module::policy(plan, space),
            ("SequenceNet" | "SequenceModule", false) => {
                let expected = "Mlp, VectorModule or Uniform, because the states of this environment aren't \
                    sequences that are built from left to right";
                Err(gfn::Error::config("the policy", &plan.class, expected).into())
            }
            ("Uniform", _) => Ok(uniform()),
            _ => plan.not_for("vectors: expected Mlp, VectorModule, SequenceNet, SequenceModule or Uniform"),
        }
    }

    fn discrete() -> Option<Discrete<Self>> {
        Some(Discrete::new())
    }
}

/// The settings of each reward of vectors. The variants have the names of the Python classes.
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

/// Builds one of the library's rewards; `None` if the reward is for another environment.
fn build_reward(spec: RewardSpec, env: &EnvSpec) -> Result<Option<AnyReward<VectorEnv>>> {
    Ok(Some(match (spec, env) {
        (RewardSpec::HyperGridReward { kind, preset }, EnvSpec::HyperGrid { ndim, height }) => {
            let env = HyperGrid::new(*ndim, *height)?;
            Box::new(preset.map_or_else(|| kind.standard(&env), |preset| kind.preset(&env, preset))?)
        }
        (RewardSpec::ConditionalGridReward {}, EnvSpec::HyperGrid { ndim, height }) => {
            let env = HyperGrid::new(*ndim, *height)?;
            Box::new(ConditionalReward::new(OriginalReward::standard(&env)?))
        }
        (
            RewardSpec::HammingReward { modes, temperature },
            EnvSpec::BitSequence { word_size, seq_size }
            | EnvSpec::PrependAppendBitSequence { word_size, seq_size }
            | EnvSpec::NonAutoregressiveBitSequence { word_size, seq_size },
        ) => {
            let modes = modes.iter().map(|mode| bits(mode)).collect::<Result<Vec<_>>>()?;
            Box::new(HammingReward::with_temperature(
                &Words::new(*word_size, *seq_size)?,
                &modes,
                temperature,
            )?)
        }
        (RewardSpec::IsingReward { couplings, alpha }, EnvSpec::DiscreteEbm { n }) => {
            Box::new(IsingReward::new(*n, &couplings, alpha)?)
        }
        (
            RewardSpec::WeightReward { base, weights },
            EnvSpec::SetAddition { n_items, max_items, fixed_length },
        ) => Box::new(WeightReward::new(
            &SetAddition::new(*n_items, *max_items, *fixed_length)?,
            base,
            &weights,
        )?),
        (RewardSpec::ParsimonyReward { sequences, offset, temperature }, EnvSpec::PhyloTree { n }) => {
            Box::new(ParsimonyReward::dna(&PhyloTree::new(*n)?, &sequences, offset, temperature)?)
        }
        (
            RewardSpec::TableReward { alphabet, path, floor, exponent },
            EnvSpec::TokenSequence { n_tokens, length, min_length },
        ) => {
            let env = token_sequence(*n_tokens, *length, *min_length)?;
            Box::new(
                TableReward::read(&env, &Alphabet::new(&alphabet)?, &path, floor)?.with_exponent(exponent)?,
            )
        }
        (RewardSpec::ToyReward { rewards }, EnvSpec::ToyDag {}) => Box::new(ToyReward::new(rewards)?),
        _ => return Ok(None),
    }))
}

/// Parses a sequence of bits from a text of the digits 0 and 1.
fn bits(text: &str) -> Result<Vec<bool>> {
    let bit = |digit| match digit {
        '0' => Ok(false),
        '1' => Ok(true),
        _ => Err(gfn::Error::config("modes", text, "texts of the digits 0 and 1")),
    };
    text.chars().map(bit).collect()
}
