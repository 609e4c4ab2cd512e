//! A graph environment of your own: directed acyclic graphs, by a rule that takes away what `AddEdge` would allow.

mod cli;

use clap::Parser;
use cli::{Common, Defaults, Exact, Outcome, main_of, train};
use gfn::graph::{
    ActionSet, AddEdge, BackwardRule, GraphEnv, GraphKind, GraphRules, GraphSchema, GraphState, Move, MoveMask,
    Semantics,
};
use gfn::nn::{BackwardPolicy, ConvKind, GraphNet, GraphNetConfig};
use gfn::plot::{GraphSheet, Layout};
use gfn::policy::GraphPolicy;
use gfn::testing::check_graph_env;
use gfn::train::Trainer;
use gfn::{Result, Rng};
use gfn_gym::graph_building::PerGraph;
use serde_json::json;

/// Train on a graph environment of your own: directed acyclic graphs
#[derive(Parser, Debug)]
struct Args {
    /// Nodes of each graph; there are 25, 543, 29,281 acyclic graphs of 3, 4, 5 nodes
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(2..=5))]
    nodes: u16,
    #[command(flatten)]
    common: Common,
}

/// Acyclic directed graphs on labelled nodes, built edge by edge.
struct Acyclic;

impl Acyclic {
    fn env(nodes: usize) -> Result<GraphEnv<Self>> {
        let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
        let (schema, kind) = (GraphSchema::plain(GraphKind::Directed, nodes), GraphKind::Directed);
        let env = GraphEnv::new(Self, actions, schema, GraphState::with_nodes(kind, nodes))?;
        // Any edge of an acyclic graph can have come last: the action type's own way back is exact, and fast.
        Ok(env.with_backward(BackwardRule::ByType))
    }
}

impl GraphRules for Acyclic {
    fn restrict(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
        for b in 0..graph.n_nodes() {
            for a in reached_from(graph, b) {
                moves.forbid(Move { a: a as u32, b: b as u32, class: 0 });
            }
        }
    }
}

/// The nodes that directed paths from `start` lead to: an edge from one of them to `start` would close a cycle.
fn reached_from(graph: &GraphState, start: usize) -> Vec<usize> {
    let mut seen = vec![false; graph.n_nodes()];
    let (mut open, mut found) = (vec![start], Vec::new());
    while let Some(a) = open.pop() {
        for b in graph.adjacency().ones(a) {
            if !std::mem::replace(&mut seen[b], true) {
                open.push(b);
                found.push(b);
            }
        }
    }
    found
}

/// log R as scores of Bayesian networks have it, a sum over edges: 2 for one of the path 0 -> 1 -> 2 ..., -1 for any other.
fn log_reward(graph: &GraphState) -> f64 {
    graph.edges().map(|(a, b)| if b == a + 1 { 2.0 } else { -1.0 }).sum()
}

fn main() -> std::process::ExitCode {
    let args = cli::parse::<Args>();
    main_of(|| run(&args))
}

fn run(args: &Args) -> Result<()> {
    let common = &args.common;
    let runtime = common.runtime()?;
    common.refuse_replay()?;
    let env = Acyclic::env(usize::from(args.nodes))?;
    let mut rng = Rng::seeded(common.seed);
    // The author's part of the contract: steps, masks and the way back agree.
    check_graph_env(&env, 50, &mut rng)?;
    let exact = Exact::new(100_000, &env, &PerGraph(log_reward))?;

    let defaults = Defaults::default();
    let network = GraphNetConfig {
        conv: ConvKind::Directed,
        layers: common.layers.unwrap_or(2),
        embedding: common.embedding.unwrap_or(64),
        identity: true,
        backward: common.backward.map_or(BackwardPolicy::Uniform, Into::into),
        flow: common.objective.needs_flow(),
        ..GraphNetConfig::default()
    };
    let description = json!({ "example": "custom_graph_env", "nodes": args.nodes, "network": network });
    let net = GraphNet::new(&env, network, runtime.device(), tch::Kind::Float, &mut rng)?;
    let config = common.trainer(&defaults);
    let (steps, batch) = (common.steps(&defaults), config.batch);
    let (reward, objective) = (Box::new(PerGraph(log_reward)), common.objective.build()?);
    let mut trainer =
        Trainer::boxed(env, reward, GraphPolicy(net), objective, config, rng)?.described_by(&description)?;
    let look = |trainer: &Trainer<_, _>| Exact::look(Some(&exact), trainer);
    let trained = train(&mut trainer, common, "custom_graph_env", steps, 0, look)?;

    let (distance, probs) = exact.learned(trainer.env(), trainer.policy())?;
    let mut extra = vec![("states", json!(exact.graph.len()))];
    extra.extend(exact.modes(&probs)?);
    exact.draw(common, GraphSheet::new("most probable graphs").layout(Layout::Circle), &probs, 24)?;
    let log_z_true = Some(exact.target.log_z);
    trained.draw(common, "acyclic graphs", log_z_true, Some(exact.panel("graphs", &probs)))?;
    let (params, example) = (trainer.n_parameters(), "custom_graph_env");
    Outcome { example, common, steps, batch, params, trained: &trained, log_z_true, distance, extra }.print();
    Ok(())
}
