//! The part of a state of a graph problem that determines the legal actions to come and the size of the
//! solution.

use gfn::graph::{GraphState, ReducedGraph};

use super::{Mark, Problem};

/// Returns the part of a state that a policy sees under
/// [`GraphProblem::for_size`](super::GraphProblem::for_size).
///
/// Chosen nodes stay in this part, because two things depend on their number: the size of the solution, and
/// P_B, which divides the reward of a solution among the orders in which it can be built. Edges of chosen
/// nodes are dropped if neither the legal actions to come nor the size depend on them. Nodes that a
/// dominating set must contain stay, because they count for its size.
pub(super) fn reduced(problem: Problem, graph: &GraphState) -> ReducedGraph {
    let marks: Vec<Mark> = graph.nodes().map(Mark::from_node).collect();
    let is = |a: u32, mark| marks[a as usize] == mark;
    let open = |a| is(a, Mark::Undecided);
    match problem {
        Problem::IndependentSet | Problem::Clique => {
            ReducedGraph::new(graph, |a| !is(a, Mark::Out), |a, b| open(a) && open(b))
        }
        Problem::DominatingSet => {
            let beside = |a: u32, mark| graph.adjacency().neighbours(a as usize).any(|b| marks[b] == mark);
            let dominated: Vec<bool> =
                (0..marks.len() as u32).map(|a| is(a, Mark::In) || beside(a, Mark::In)).collect();
            let reads = |a: u32, b: u32| open(a) && !(is(b, Mark::Out) && dominated[b as usize]);
            ReducedGraph::new(graph, |_| true, |a, b| reads(a, b) || reads(b, a))
        }
        Problem::Cut => ReducedGraph::new(graph, |_| true, |a, b| open(a) || open(b)),
    }
}
