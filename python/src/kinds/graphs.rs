//! Environments of graphs, including acyclic graphs and molecules, with their rewards and policies.

use std::sync::Arc;
use std::time::Duration;

use gfn::Result;
use gfn::graph::GraphEnv;
use gfn::nn::{EdgeMlp, EdgeMlpConfig, GraphNet, GraphNetConfig};
use gfn::policy::{GraphPolicy, MlpPolicy, MlpPolicyConfig};
use gfn_dags::{
    AdjacencyFeatures, BayesianStructure, Bde, BdeConfig, Bge, BgeConfig, CachedScores, ContinuousData,
    DagReward, DiscreteData, EdgeTransformer, EdgeTransformerConfig, LinearGaussianBic, LocalScore,
    StructurePrior,
};
use gfn_gym::colored_graphs::ColoredGraphReward;
use gfn_gym::diffusion::Target;
use gfn_gym::graph_problems::{Problem, SizeReward};
use gfn_gym::ring::RingReward;
use gfn_gym::triangle::TriangleReward;
use gfn_molecules::{ExternalScorer, MoleculeScore};
use serde::Deserialize;
use serde_json::Value;

use super::{AnyReward, AnySpace, ByKind, Discrete, PyEnv, Space, reward_spec, wrong_states};
use crate::border::{Border, GraphBorder, StructureBorder};
use crate::errors::Outcome;
use crate::molecules::Reading;
use crate::policy::{BuiltPolicy, GraphView, Plan, graph_module, uniform};
use crate::ranking::molecule_score;

/// The objects that the graphs of an environment represent: plain graphs, molecules, solutions of a problem
/// on input graphs, or structures of Bayesian networks.
#[derive(Clone)]
pub(crate) enum GraphDetails {
    Plain,
    Molecules(Reading),
    Problem(Problem),
    Structures(Box<BayesianStructure>),
}

impl GraphDetails {
    /// Returns the conversion of graphs to molecules; `None` if the graphs don't represent molecules.
    pub(crate) fn reading(&self) -> Option<&Reading> {
        match self {
            Self::Molecules(reading) => Some(reading),
            _ => None,
        }
    }
}

impl Space<GraphEnv> {
    pub(crate) fn graphs(env: GraphEnv, details: GraphDetails) -> AnySpace {
        let border: Arc<dyn Border<_>> = match &details {
            GraphDetails::Structures(structures) => {
                let n_nodes = structures.n_nodes();
                Arc::new(StructureBorder { n_nodes, features: AdjacencyFeatures::new(n_nodes) })
            }
            details => {
                Arc::new(GraphBorder { reading: details.reading().cloned(), schema: env.schema().clone() })
            }
        };
        ByKind::Graphs(Self { env, border, details })
    }
}

impl PyEnv for GraphEnv {
    type Details = GraphDetails;

    fn reward(space: &Space<Self>, settings: &Value, _: Option<Arc<dyn Target>>) -> Outcome<AnyReward<Self>> {
        let states = match &space.details {
            GraphDetails::Structures(_) => "acyclic graphs",
            _ => "graphs",
        };
        match build_reward(reward_spec(settings, states)?, &space.details)? {
            Some(reward) => Ok(reward),
            None if states == "graphs" => {
                wrong_states(settings, "graphs other than molecules and graph problems")
            }
            None => wrong_states(settings, states),
        }
    }

    fn policy(space: &Space<Self>, plan: Plan<'_>) -> Outcome<BuiltPolicy<Self>> {
        let env = &space.env;
        match (plan.class.as_str(), &space.details) {
            ("GraphNet", _) => plan.build(|config: GraphNetConfig, plan| {
                Ok(GraphPolicy(GraphNet::new(env, config, plan.device, plan.kind, plan.rng)?))
            }),
            ("Uniform", _) => Ok(uniform()),
            ("Mlp", GraphDetails::Structures(structures)) => plan.build(|config: MlpPolicyConfig, plan| {
                let features = AdjacencyFeatures::new(structures.n_nodes());
                MlpPolicy::new(env, features, config, plan.device, plan.kind, plan.rng)
            }),
            ("EdgeTransformer", GraphDetails::Structures(_)) => {
                plan.build(|config: EdgeTransformerConfig, plan| {
                    Ok(GraphPolicy(EdgeTransformer::new(env, config, plan.device, plan.kind, plan.rng)?))
                })
            }
            ("DagModule", GraphDetails::Structures(structures)) => {
                graph_module::policy(plan, env, GraphView::Adjacency(structures.n_nodes() as i64))
            }
            (_, GraphDetails::Structures(_)) => {
                plan.not_for("acyclic graphs: expected Mlp, GraphNet, EdgeTransformer, DagModule or Uniform")
            }
            ("EdgeMlp", _) => plan.build(|config: EdgeMlpConfig, plan| {
                Ok(GraphPolicy(EdgeMlp::new(env, config, plan.device, plan.kind, plan.rng)?))
            }),
            ("GraphModule", _) => graph_module::policy(plan, env, GraphView::Batch),
            _ => plan.not_for("graphs: expected GraphNet, EdgeMlp, GraphModule or Uniform"),
        }
    }

    fn discrete() -> Option<Discrete<Self>> {
        Some(Discrete::new())
    }
}

/// The settings of each reward of graphs. The variants have the names of the Python classes.
#[expect(clippy::enum_variant_names, reason = "the names of the classes")]
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
enum RewardSpec {
    RingReward { ring: f64, floor: f64 },
    TriangleReward { triangle: f64, floor: f64 },
    ColoredGraphReward { kind: ColoredGraphReward },
    MoleculeReward { score: Value, beta: f64, floor: f64 },
    ExternalReward { program: Program, beta: f64, floor: f64 },
    SizeReward { beta: f64 },
    StructureReward { score: Score, names: Vec<String> },
}

/// The settings of an external program that scores molecules.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Program {
    command: Vec<String>,
    timeout: f64,
}

impl Program {
    fn build(self) -> Result<ExternalScorer> {
        let timeout = Duration::try_from_secs_f64(self.timeout)
            .map_err(|_| gfn::Error::config("timeout", self.timeout, "a number of seconds above 0"))?;
        ExternalScorer::new(self.command, timeout)
    }
}

/// A score of the structures of Bayesian networks, with its data and settings.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Score {
    Bge { values: Vec<f64>, standardise: bool, alpha_mu: f64, alpha_w: Option<f64>, nu: Option<Vec<f64>> },
    Bic { values: Vec<f64>, standardise: bool },
    Bde { labels: Vec<Vec<String>>, cells: Vec<u16> },
}

impl Score {
    fn build(self, names: Vec<String>) -> Result<Box<dyn LocalScore>> {
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

/// The largest number of variables for which the score of each variable is computed in advance for all sets
/// of parents. With more variables there are too many sets.
const MAX_PRECOMPUTED: usize = 12;

/// Builds one of the library's rewards; `None` if the reward is for other graphs than the graphs of this
/// environment.
fn build_reward(spec: RewardSpec, details: &GraphDetails) -> Result<Option<AnyReward<GraphEnv>>> {
    Ok(Some(match (spec, details) {
        (RewardSpec::StructureReward { score, names }, GraphDetails::Structures(structures)) => {
            let variables = names.len();
            if variables != structures.n_nodes() {
                let got = format!("{variables} columns for an environment of {} nodes", structures.n_nodes());
                return Err(gfn::Error::config(
                    "the data of a StructureReward",
                    got,
                    "one column for each node",
                ));
            }
            let score = score.build(names)?;
            let scores = if variables <= MAX_PRECOMPUTED {
                CachedScores::ahead(score, structures.config().max_parents)?
            } else {
                CachedScores::new(score)
            };
            let start = &structures.env().initial_graphs()[0];
            Box::new(DagReward::new(scores, StructurePrior::Uniform)?.relative_to(start)?)
        }
        (_, GraphDetails::Structures(_)) => return Ok(None),
        (RewardSpec::RingReward { ring, floor }, _) => Box::new(RingReward::new(ring, floor)?),
        (RewardSpec::TriangleReward { triangle, floor }, _) => {
            Box::new(TriangleReward::new(triangle, floor)?)
        }
        (RewardSpec::ColoredGraphReward { kind }, _) => Box::new(kind),
        (RewardSpec::MoleculeReward { score, beta, floor }, GraphDetails::Molecules(reading)) => {
            reading.reward(molecule_score(score)?.clamped(floor, f64::MAX)?.to_the(beta)?)
        }
        (RewardSpec::ExternalReward { program, beta, floor }, GraphDetails::Molecules(reading)) => {
            reading.reward(program.build()?.clamped(floor, f64::MAX)?.to_the(beta)?)
        }
        (RewardSpec::SizeReward { beta }, GraphDetails::Problem(problem)) => {
            Box::new(SizeReward::new(*problem, beta)?)
        }
        _ => return Ok(None),
    }))
}
