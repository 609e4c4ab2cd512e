//! Greedy solutions of the graph problems.

use gfn::env::Direction;
use gfn::graph::{GraphActionType, GraphState, Move};
use gfn::{Error, Result};
use gfn_gym::graph_problems::{Mark, MarkNode, Problem};

/// Builds a solution greedily. In each step a simple rule selects an undecided node. If several nodes are
/// equally good, the first one is selected.
///
/// | problem | step |
/// |---|---|
/// | independent set | adds the node with the fewest undecided neighbours |
/// | clique | adds the node with the most undecided neighbours |
/// | dominating set | leaves out the node with the fewest edges |
/// | cut | adds the next node to the side on which more of its edges to earlier nodes are cut |
///
/// ```
/// use gfn::graph::GraphFormat;
/// use gfn_gym::graph_problems::Problem;
/// use gfn_solver::greedy;
/// let star = &GraphFormat::EdgeList.read(b"graph undirected 4\nedge 0 1\nedge 0 2\nedge 0 3")?[0];
/// assert_eq!(greedy(Problem::IndependentSet, star)?, [1, 2, 3]);
/// assert_eq!(greedy(Problem::DominatingSet, star)?, [0]);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Contract`] for a graph in which some nodes are already marked as in or out of the solution.
pub fn greedy(problem: Problem, graph: &GraphState) -> Result<Vec<u32>> {
    let mut state = initial_state(problem, graph)?;
    if problem == Problem::Cut {
        let mut sides = vec![false; graph.n_nodes()];
        for a in 0..sides.len() {
            let (same, other) = count_neighbours(graph, &sides, a, a);
            sides[a] = same > other;
        }
        return Ok(true_indices(&sides));
    }
    loop {
        let open = undecided(&state);
        let count_neighbours = |a: u32| open.iter().filter(|&&b| graph.has_edge(a, b)).count();
        let best = open.iter().copied().min_by_key(|&a| match problem {
            Problem::Clique => graph.n_nodes() - count_neighbours(a),
            Problem::DominatingSet => graph.degree(a),
            Problem::IndependentSet | Problem::Cut => count_neighbours(a),
        });
        let Some(a) = best else { return Ok(problem.solution(&state)) };
        choose(problem, &mut state, a)?;
    }
}

/// Counts the neighbours of node `a` among the first `n` nodes. Returns how many of them are on the side of
/// `a`, and how many on the other side.
fn count_neighbours(graph: &GraphState, sides: &[bool], a: usize, n: usize) -> (usize, usize) {
    let others = graph.adjacency().neighbours(a).filter(|&b| b < n);
    others.fold(
        (0, 0),
        |(same, other), b| if sides[a] == sides[b] { (same + 1, other) } else { (same, other + 1) },
    )
}

fn true_indices(sides: &[bool]) -> Vec<u32> {
    (0..).zip(sides).filter(|(_, side)| **side).map(|(a, _)| a).collect()
}

fn undecided(state: &GraphState) -> Vec<u32> {
    (0..)
        .zip(state.nodes())
        .filter(|&(_, node)| Mark::from_node(node) == Mark::Undecided)
        .map(|(a, _)| a)
        .collect()
}

fn choose(problem: Problem, state: &mut GraphState, a: u32) -> Result<()> {
    MarkNode(problem).apply(Direction::Forward, state, Move { a, ..Move::default() })
}

/// Returns the initial state of the problem on a graph, in which no node is decided.
fn initial_state(problem: Problem, graph: &GraphState) -> Result<GraphState> {
    if graph.nodes().any(|node| Mark::from_node(node) != Mark::Undecided) {
        return Err(Error::contract(
            "a greedy solution needs a graph whose nodes are all undecided",
            graph.to_string(),
        ));
    }
    let n = graph.n_nodes() as u32;
    let nodes: Vec<u32> = if problem == Problem::DominatingSet { (0..n).collect() } else { Vec::new() };
    problem.state(graph, &nodes)
}
