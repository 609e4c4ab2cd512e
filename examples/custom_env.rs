//! An environment of your own: directed acyclic graphs, by a rule that takes away what `AddEdge` would allow.

mod cli;

use clap::Parser;
use cli::{Common, Defaults, Exact, Outcome, main_of, train};
use gfn::graph::{
    ActionKind, ActionSet, AddEdge, BackwardRule, GraphEnv, GraphKind, GraphSchema, GraphState, Semantics,
};
use gfn::nn::{BackwardPolicy, ConvKind, GraphNet, GraphNetConfig};
use gfn::plot::{GraphSheet, Layout};
use gfn::policy::GraphPolicy;
use gfn::testing::check_graph_env;
use gfn::train::Trainer;
use gfn::{Error, Result, Rng};
use gfn_gym::graph_building::PerGraph;
use serde_json::json;

/// Train on an environment of your own: directed acyclic graphs
#[derive(Parser, Debug)]
struct Args {
    /// Nodes of each graph; there are 25, 543, 29,281 acyclic graphs of 3, 4, 5 nodes
    #[arg(long, default_value_t = 4)]
    nodes: usize,
    #[command(flatten)]
    common: Common,
}

/// Acyclic directed graphs on labelled nodes, built edge by edge.
struct Acyclic {
    actions: ActionSet,
    schema: GraphSchema,
    initial: GraphState,
}

impl Acyclic {
    fn new(nodes: usize) -> Result<Self> {
        if !(2..=5).contains(&nodes) {
            let got = nodes.to_string();
            return Err(Error::Config {
                setting: "nodes",
                got,
                expected: "2 to 5 nodes, so that all graphs are listed",
            });
        }
        Ok(Self {
            actions: ActionSet::new(Semantics::Labelled).with(AddEdge::new(1)),
            schema: GraphSchema::plain(GraphKind::Directed, nodes),
            initial: GraphState::with_nodes(GraphKind::Directed, nodes),
        })
    }
}

impl GraphEnv for Acyclic {
    fn actions(&self) -> &ActionSet {
        &self.actions
    }
    fn schema(&self) -> &GraphSchema {
        &self.schema
    }
    fn initial_graph(&self) -> &GraphState {
        &self.initial
    }
    // AddEdge's block has a row per ordered pair: `a * n + b` adds the edge from a to b.
    fn restrict(&self, kind: ActionKind, graph: &GraphState, mask: &mut [bool]) {
        if kind != ActionKind(0) {
            return;
        }
        let n = graph.n_nodes();
        for b in 0..n {
            for a in reached_from(graph, b) {
                mask[a * n + b] = false;
            }
        }
    }
    // Any edge of an acyclic graph can have come last: the action type's own way back is exact, and fast.
    fn backward_rule(&self) -> BackwardRule {
        BackwardRule::ByType
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
    let env = Acyclic::new(args.nodes)?;
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
    let description = json!({ "example": "custom_env", "nodes": args.nodes, "network": network });
    let net = GraphNet::new(&env, network, runtime.device(), tch::Kind::Float, &mut rng)?;
    let config = common.trainer(&defaults);
    let (steps, batch) = (common.steps(&defaults), config.batch);
    let (reward, objective) = (Box::new(PerGraph(log_reward)), common.objective.build()?);
    let mut trainer =
        Trainer::boxed(env, reward, GraphPolicy(net), objective, config, rng)?.described_by(&description)?;
    let look = |trainer: &Trainer<_, _>| Exact::look(Some(&exact), trainer);
    let trained = train(&mut trainer, common, "custom_env", steps, 0, look)?;

    let (distance, probs) = exact.learned(trainer.env(), trainer.policy())?;
    let mut extra = vec![("states", json!(exact.graph.len()))];
    extra.extend(exact.modes(&probs)?);
    exact.draw(common, GraphSheet::new("most probable graphs").layout(Layout::Circle), &probs, 24)?;
    let log_z_true = Some(exact.target.log_z);
    trained.draw(common, "acyclic graphs", log_z_true, Some(exact.panel("graphs", &probs)))?;
    let (params, example) = (trainer.n_parameters(), "custom_env");
    Outcome { example, common, steps, batch, params, trained: &trained, log_z_true, distance, extra }.print();
    Ok(())
}
