//! Defines a custom action type, which builds matchings edge by edge. A matching is a set of edges without a
//! common node. Each edge doubles the reward.

use gfn::contract::check_action_type;
use gfn::env::{Direction, StateGraph};
use gfn::graph::PerGraph;
use gfn::graph::{
    ActionSet, Anchor, Edge, Free, GraphActionType, GraphEnv, GraphKind, GraphSchema, GraphState, GraphView,
    Head, Move, Semantics,
};
use gfn::metrics::Distances;
use gfn::nn::{ConvKind, GraphNet, GraphNetConfig};
use gfn::objective::TrajectoryBalance;
use gfn::policy::GraphPolicy;
use gfn::run::Fit;
use gfn::runtime::{DeviceKind, Runtime};
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Result, Rng, tch};

/// An action that selects an edge for the matching, by setting the edge's class to 1. The action is legal if
/// no edge at the two nodes of this edge is selected. The backward action sets the class to 0 again.
#[derive(Clone, Copy, Debug)]
struct Match;

impl GraphActionType for Match {
    fn name(&self) -> &str {
        "match"
    }
    fn head(&self, _: Direction) -> Option<Head> {
        Some(Head { anchor: Anchor::Edge, width: 1 })
    }
    fn widen(&self, schema: &mut GraphSchema) {
        schema.edge_classes = 2;
    }
    fn mask(&self, direction: Direction, _: Semantics, graph: GraphView<'_>, mask: &mut [bool]) {
        let matched = matched_edges(&graph);
        for (legal, (a, b, _)) in mask.iter_mut().zip(graph.weighted_edges()) {
            let free = matched.iter().all(|&(c, d)| a != c && a != d && b != c && b != d);
            *legal = if direction == Direction::Forward { free } else { matched.contains(&(a, b)) };
        }
    }
    fn apply(&self, direction: Direction, graph: &mut GraphState, action: Move) -> Result<()> {
        graph.set_edge(action.a, action.b, Edge::from_class(u16::from(direction == Direction::Forward)))
    }
    fn reverse(&self, _: Direction, _: &GraphState, action: Move) -> Move {
        action
    }
}

fn matched_edges(graph: &GraphState) -> Vec<(u32, u32)> {
    graph.edges().filter(|&(a, b)| graph.edge(a, b).is_some_and(|edge| edge.class == 1)).collect()
}

fn main() -> Result<()> {
    let runtime = Runtime::new(1, DeviceKind::Cpu)?;
    let mut rng = Rng::seeded(0);
    let mut cycle = GraphState::with_nodes(GraphKind::Undirected, 8);
    (0..8).try_for_each(|a| cycle.add_edge(a, (a + 1) % 8, Edge::default()))?;
    let env = GraphEnv::new(Free, ActionSet::new(Semantics::Labelled).with(Match), cycle)?;
    let space = StateGraph::build(&env, 1_000)?;
    check_action_type(&Match, Semantics::Labelled, space.states().graphs())?;
    let reward = PerGraph(|graph: &GraphState| matched_edges(graph).len() as f64 * 2f64.ln());
    let target = space.target_distribution(&reward, None)?;
    let network =
        GraphNetConfig { conv: ConvKind::Gine, identity: true, embedding: 64, ..GraphNetConfig::default() };
    let net = GraphNet::new(&env, network, runtime.device(), tch::Kind::Float, &mut rng)?;
    let mut trainer =
        Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, TrainerConfig::default(), rng)?;
    Fit::new(600).run(&mut trainer)?;
    let learned = space.terminating_distribution(trainer.env(), trainer.policy(), None)?;
    let distance = Distances::between(&learned.probs, &target.probs)?;
    println!("Total variation {:.4} over the {} matchings of a cycle of 8 nodes.", distance.tv, space.len());
    Ok(())
}
