//! Defines a custom environment of directed acyclic graphs, by a rule that forbids some actions of `AddEdge`.

use gfn::prelude::*;

/// The rules of directed acyclic graphs on labelled nodes, which are built edge by edge. The rules forbid
/// every edge that would close a cycle.
struct Acyclic;

impl GraphRules for Acyclic {
    fn restrict(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
        moves.retain(|add| !has_path(graph, add.b as usize, add.a as usize));
    }
}

/// Returns `true` if a directed path leads from node `from` to node `to`. The recursion ends because graphs
/// have no cycles.
fn has_path(graph: &GraphState, from: usize, to: usize) -> bool {
    graph.adjacency().neighbours(from).any(|next| next == to || has_path(graph, next, to))
}

fn main() -> gfn::Result<()> {
    let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
    let env = GraphEnv::new(Acyclic, actions, GraphState::directed(4))?
        // Any edge of an acyclic graph can be the edge that was added last. Therefore `ByType` can be used:
        // the backward actions of `AddEdge`, which remove any edge. They are faster than the backward actions
        // that the library derives from the rules.
        .with_backward(BackwardRule::ByType);
    // Checks that steps, masks and backward actions of the environment agree.
    check_graph_env(&env, Budget::thorough(), &mut Rng::seeded(0))?;
    // log R is 2 for each edge of the path 0 -> 1 -> 2 -> 3, and -1 for any other edge.
    let reward =
        PerGraph(|graph: &GraphState| graph.edges().map(|(a, b)| if b == a + 1 { 2.0 } else { -1.0 }).sum());
    let trained = Experiment::new(env, reward).steps(1_000).train()?;
    let exact = trained.exact(1_000)?;
    println!("Total variation {:.4} over {} acyclic graphs.", exact.distances.tv, exact.space.len());
    Ok(())
}
