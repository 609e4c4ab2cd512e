//! Environments of graphs, including acyclic graphs and molecules, with their rewards and policies.

use std::sync::Arc;
use std::time::Duration;

use gfn::Result;
use gfn::graph::GraphEnv;
use gfn::nn::{EdgeMlp, EdgeMlpConfig, GraphNet, GraphNetConfig};
use gfn::policy::{GraphPolicy, MlpPolicy, MlpPolicyConfig};
use gfn_dags::{AdjacencyFeatures, BayesianStructure, EdgeTransformer, EdgeTransformerConfig};
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
use crate::structures::StructureSpec;

/// The objects that the graphs of an environment represent: plain graphs, molecules, solutions of a problem
/// on input graphs, or structures of Bayesian networks.
#[derive(Clone)]
pub(crate) enum GraphDetails {
    Plain,
    Molecules(Reading),
    Problem(Problem),
    Structures(Box<NamedStructures>),
}

/// An environment of structures of Bayesian networks, and the names of its nodes if Python has named them.
#[derive(Clone)]
pub(crate) struct NamedStructures {
    pub(crate) structures: BayesianStructure,
    pub(crate) names: Option<Vec<String>>,
}

impl NamedStructures {
    /// Returns an error unless the columns of a reward's data are the nodes of the environment.
    pub(crate) fn check_columns(&self, columns: &[String]) -> Result<()> {
        const WHAT: &str = "the data of a StructureReward";
        let n = self.structures.n_nodes();
        if columns.len() != n {
            let got = format!("{} columns for an environment of {n} nodes", columns.len());
            return Err(gfn::Error::config(WHAT, got, "one column for each node"));
        }
        if let Some(names) = self.names.as_ref().filter(|names| *names != columns) {
            let got = format!("columns {columns:?} for an environment of the nodes {names:?}");
            return Err(gfn::Error::config(
                WHAT,
                got,
                "columns with the names of the nodes, in the same order",
            ));
        }
        Ok(())
    }
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
            GraphDetails::Structures(named) => {
                let n_nodes = named.structures.n_nodes();
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
            ("Mlp", GraphDetails::Structures(named)) => plan.build(|config: MlpPolicyConfig, plan| {
                let features = AdjacencyFeatures::new(named.structures.n_nodes());
                MlpPolicy::new(env, features, config, plan.device, plan.kind, plan.rng)
            }),
            ("EdgeTransformer", GraphDetails::Structures(_)) => {
                plan.build(|config: EdgeTransformerConfig, plan| {
                    Ok(GraphPolicy(EdgeTransformer::new(env, config, plan.device, plan.kind, plan.rng)?))
                })
            }
            ("DagModule", GraphDetails::Structures(named)) => {
                graph_module::policy(plan, env, GraphView::Adjacency(named.structures.n_nodes() as i64))
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
    StructureReward(StructureSpec),
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

/// Builds one of the library's rewards; `None` if the reward is for other graphs than the graphs of this
/// environment.
fn build_reward(spec: RewardSpec, details: &GraphDetails) -> Result<Option<AnyReward<GraphEnv>>> {
    Ok(Some(match (spec, details) {
        (RewardSpec::StructureReward(spec), GraphDetails::Structures(named)) => {
            named.check_columns(&spec.names)?;
            Box::new(spec.reward(named.structures.config().max_parents)?)
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
