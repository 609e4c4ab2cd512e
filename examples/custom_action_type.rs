//! An action type of your own: putting a node in the middle of an edge, checked by the public checkers and trained.

mod cli;

use clap::Parser;
use cli::{Common, Defaults, Exact, Outcome, main_of, train};
use gfn::env::Direction;
use gfn::graph::{
    ActionSet, AddEdge, AddNode, Anchor, Edge, GraphActionType, GraphEnv, GraphKind, GraphRules, GraphSchema,
    GraphState, Head, Move, Node, Semantics,
};
use gfn::nn::{BackwardPolicy, GraphNet, GraphNetConfig};
use gfn::plot::{GraphSheet, NodeLabels};
use gfn::policy::GraphPolicy;
use gfn::testing::{check_action_type, check_graph_env};
use gfn::train::Trainer;
use gfn::{Error, Result, Rng};
use gfn_gym::graph_building::PerGraph;
use serde_json::json;

/// Train with an action type of your own: subdividing an edge
#[derive(Parser, Debug)]
struct Args {
    /// Most nodes of a graph; all graphs are listed, of 8 nodes there are 12,114
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=8))]
    max_nodes: u16,
    #[command(flatten)]
    common: Common,
}

/// Replaces an edge `a - b` by `a - c - b` with a new node `c`; the way back contracts a node whose two neighbours aren't joined.
#[derive(Clone, Copy, Debug)]
struct Subdivide {
    max_nodes: usize,
}

/// The two neighbours of a node that could have come from subdividing an edge.
fn ends(graph: &GraphState, c: u32) -> Option<(u32, u32)> {
    let mut near = graph.adjacency().ones(c as usize).map(|a| a as u32);
    match (near.next(), near.next(), near.next()) {
        (Some(a), Some(b), None) if !graph.has_edge(a, b) => Some((a, b)),
        _ => None,
    }
}

impl GraphActionType for Subdivide {
    fn name(&self) -> &str {
        "subdivide"
    }

    fn head(&self, direction: Direction) -> Option<Head> {
        let anchor = if direction == Direction::Forward { Anchor::Edge } else { Anchor::Node };
        Some(Head { anchor, width: 1 })
    }

    fn mask(&self, direction: Direction, _: Semantics, graph: &GraphState, mask: &mut [bool]) {
        match direction {
            Direction::Forward => mask.fill(graph.n_nodes() < self.max_nodes),
            Direction::Backward => {
                for (c, legal) in mask.iter_mut().enumerate() {
                    *legal = ends(graph, c as u32).is_some();
                }
            }
        }
    }

    fn apply(&self, direction: Direction, graph: &mut GraphState, action: Move) -> Result<()> {
        match direction {
            Direction::Forward => {
                let edge = graph.remove_edge(action.a, action.b)?;
                let new = graph.add_node(Node::default());
                graph.add_edge(action.a, new, edge)?;
                graph.add_edge(action.b, new, edge)
            }
            Direction::Backward => {
                let (a, b) = ends(graph, action.a).ok_or_else(|| Error::Contract {
                    check: "only a node between two that aren't joined can be contracted",
                    detail: format!("node {} of {graph:?}", action.a),
                })?;
                graph.add_edge(a, b, Edge::default())?;
                graph.remove_node(action.a).map(|_| ())
            }
        }
    }

    fn reverse(&self, direction: Direction, before: &GraphState, action: Move) -> Move {
        match direction {
            Direction::Forward => Move { a: before.n_nodes() as u32, ..Move::default() },
            Direction::Backward => {
                let (a, b) = ends(before, action.a).unwrap_or_default();
                // Labels above that of the removed node shift down by one.
                let after = |node: u32| node - u32::from(node > action.a);
                Move { a: after(a), b: after(b), class: 0 }
            }
        }
    }

    fn removed_nodes(&self, direction: Direction, _: &GraphState, action: Move) -> Vec<u32> {
        if direction == Direction::Backward { vec![action.a] } else { Vec::new() }
    }
}

/// Connected graphs, grown by leaves, edges and subdivision.
pub(crate) struct Subdivisions;

impl Subdivisions {
    pub(crate) fn env(max_nodes: usize) -> Result<GraphEnv<Self>> {
        let actions = ActionSet::new(Semantics::UpToIsomorphism)
            .with(AddNode::first(1))
            .with(AddNode::attached(1, 1, max_nodes))
            .with(AddEdge::new(1))
            .with(Subdivide { max_nodes });
        let schema = GraphSchema::plain(GraphKind::Undirected, max_nodes);
        GraphEnv::new(Self, actions, schema, GraphState::new(GraphKind::Undirected))
    }
}

impl GraphRules for Subdivisions {
    fn can_exit(&self, graph: &GraphState) -> bool {
        graph.n_nodes() > 0
    }
    // What can be undone is derived from this: an edge whose removal tears the graph apart wasn't added last.
    fn is_reachable(&self, graph: &GraphState) -> bool {
        graph.as_undirected().is_some_and(|g| petgraph::algo::connected_components(g) <= 1)
    }
}

/// log R is the number of nodes with two neighbours: cycles are best.
pub(crate) fn log_reward(graph: &GraphState) -> f64 {
    (0..graph.n_nodes() as u32).filter(|&a| graph.degree(a) == 2).count() as f64
}

fn main() -> std::process::ExitCode {
    let args = cli::parse::<Args>();
    main_of(|| run(&args))
}

fn run(args: &Args) -> Result<()> {
    let common = &args.common;
    let runtime = common.runtime()?;
    common.refuse_replay()?;
    let max_nodes = usize::from(args.max_nodes);
    let env = Subdivisions::env(max_nodes)?;
    let exact = Exact::new(100_000, &env, &PerGraph(log_reward))?;
    let mut rng = Rng::seeded(common.seed);
    // The author's part of the contract: on every graph, and along random walks.
    let graphs = exact.graph.states().graphs();
    check_action_type(&Subdivide { max_nodes }, Semantics::UpToIsomorphism, graphs)?;
    check_graph_env(&env, 50, &mut rng)?;

    let defaults = Defaults::default();
    let network = GraphNetConfig {
        layers: common.layers.unwrap_or(3),
        embedding: common.embedding.unwrap_or(64),
        pair_walks: Some(3),
        backward: common.backward.map_or(BackwardPolicy::SharedTorso, Into::into),
        flow: common.objective.needs_flow(),
        ..GraphNetConfig::default()
    };
    let description = json!({ "example": "custom_action_type", "max_nodes": max_nodes, "network": network });
    let net = GraphNet::new(&env, network, runtime.device(), tch::Kind::Float, &mut rng)?;
    let config = common.trainer(&defaults);
    let (steps, batch) = (common.steps(&defaults), config.batch);
    let (reward, objective) = (Box::new(PerGraph(log_reward)), common.objective.build()?);
    let mut trainer =
        Trainer::boxed(env, reward, GraphPolicy(net), objective, config, rng)?.described_by(&description)?;
    let look = |trainer: &Trainer<_, _>| Exact::look(Some(&exact), trainer);
    let trained = train(&mut trainer, common, "custom_action_type", steps, 0, look)?;

    let (distance, probs) = exact.learned(trainer.env(), trainer.policy())?;
    let mut extra = vec![("classes", json!(exact.graph.len()))];
    extra.extend(exact.modes(&probs)?);
    exact.draw(common, GraphSheet::new("most probable graphs").labels(NodeLabels::None), &probs, 24)?;
    let log_z_true = Some(exact.target.log_z);
    trained.draw(common, "growth by subdivision", log_z_true, Some(exact.panel("graphs", &probs)))?;
    let (params, example) = (trainer.n_parameters(), "custom_action_type");
    Outcome { example, common, steps, batch, params, trained: &trained, log_z_true, distance, extra }.print();
    Ok(())
}
