//! Defines a custom action type, which builds matchings edge by edge. A matching is a set of edges without a
//! common node. Each edge doubles the reward.

use gfn::prelude::*;

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
    fn apply(&self, direction: Direction, graph: &mut GraphState, action: Move) -> gfn::Result<()> {
        graph.set_edge(action.a, action.b, Edge::from_class(u16::from(direction == Direction::Forward)))
    }
    fn reverse(&self, _: Direction, _: &GraphState, action: Move) -> Move {
        action
    }
}

fn matched_edges(graph: &GraphState) -> Vec<(u32, u32)> {
    graph.edges().filter(|&(a, b)| graph.edge(a, b).is_some_and(|edge| edge.class == 1)).collect()
}

fn main() -> gfn::Result<()> {
    let mut cycle = GraphState::undirected(8);
    (0..8).try_for_each(|a| cycle.add_edge(a, (a + 1) % 8, Edge::default()))?;
    let env = GraphEnv::free(ActionSet::new(Semantics::Labelled).with(Match), cycle)?;
    // Checks the action type in all states of the environment, and the environment on random walks.
    check_action_type(&Match, Semantics::Labelled, StateGraph::build(&env, 1_000)?.states().graphs())?;
    check_graph_env(&env, Budget::thorough(), &mut Rng::seeded(0))?;
    let reward = PerGraph(|graph: &GraphState| matched_edges(graph).len() as f64 * 2f64.ln());
    let trained = Experiment::new(env, reward).steps(600).train()?;
    let exact = trained.exact(1_000)?;
    let n = exact.space.len();
    println!("Total variation {:.4} over the {n} matchings of a cycle of 8 nodes.", exact.distances.tv);
    Ok(())
}
