//! What a policy is compared with: greedy solutions, local search, and the optimum of graphs that aren't too large.

use gfn::env::Direction;
use gfn::graph::{GraphActionType, GraphState, Move};
use gfn::{Error, Result, Rng};

use super::env::solution;
use super::{Mark, MarkNode, Problem};

/// A solution made by one rule: the node that looks best comes next, the first of several that do.
///
/// | problem | the node that looks best |
/// |---|---|
/// | independent set | the one with fewest undecided neighbours |
/// | clique | the one with most undecided neighbours |
/// | dominating set | the one with fewest edges is taken out |
/// | cut | each node in turn goes to the side where more of its edges are cut |
///
/// ```
/// use gfn::graph::GraphFormat;
/// use gfn_gym::graph_problems::{Problem, greedy};
/// let star = &GraphFormat::EdgeList.read(b"graph undirected 4\nedge 0 1\nedge 0 2\nedge 0 3")?[0];
/// assert_eq!(greedy(Problem::IndependentSet, star)?, [1, 2, 3]);
/// assert_eq!(greedy(Problem::DominatingSet, star)?, [0]);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Contract`] for a graph with marks on it.
pub fn greedy(problem: Problem, graph: &GraphState) -> Result<Vec<u32>> {
    let mut state = unmarked(problem, graph)?;
    if problem == Problem::Cut {
        let mut sides = vec![false; graph.n_nodes()];
        for a in 0..sides.len() {
            let (same, other) = near(graph, &sides, a, a);
            sides[a] = same > other;
        }
        return Ok(listed(&sides));
    }
    loop {
        let open = undecided(&state);
        let near = |a: u32| open.iter().filter(|&&b| graph.has_edge(a, b)).count();
        let best = open.iter().copied().min_by_key(|&a| match problem {
            Problem::Clique => graph.n_nodes() - near(a),
            Problem::DominatingSet => graph.degree(a),
            Problem::IndependentSet | Problem::Cut => near(a),
        });
        let Some(a) = best else { return Ok(solution(problem, &state)) };
        choose(problem, &mut state, a)?;
    }
}

/// A solution that is at least as good as `start`, by local search of so many rounds.
///
/// A round takes back up to three of the choices, drawn at random, makes others at random until none is left (of a cut: up to three nodes
/// change sides, and then whatever node cuts more on the other side), and keeps what isn't worse.
///
/// ```
/// use gfn::{Rng, graph::GraphFormat};
/// use gfn_gym::graph_problems::{Problem, improved};
/// // A path of 4 nodes, whose ends are an independent set that can't grow, of 2 nodes; and one of 5 nodes, of 3.
/// let path = &GraphFormat::EdgeList.read(b"graph undirected 5\nedge 0 1\nedge 1 2\nedge 2 3\nedge 3 4")?[0];
/// let found = improved(Problem::IndependentSet, path, &[1, 3], 50, &mut Rng::seeded(0))?;
/// assert_eq!(found, [0, 2, 4]);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Contract`] for a start that is no solution, and for a graph with marks on it.
pub fn improved(problem: Problem, graph: &GraphState, start: &[u32], rounds: usize, rng: &mut Rng) -> Result<Vec<u32>> {
    let mut best_size = problem.check(graph, start)?;
    let mut best = start.to_vec();
    best.sort_unstable();
    let n = graph.n_nodes();
    for _ in 0..if n == 0 { 0 } else { rounds } {
        let found = match problem {
            Problem::Cut => other_cut(graph, &best, rng),
            _ => other_choice(problem, graph, &best, rng)?,
        };
        let size = problem.check(graph, &found)?;
        if size == best_size || (size < best_size) == problem.is_minimised() {
            (best, best_size) = (found, size);
        }
    }
    Ok(best)
}

fn other_choice(problem: Problem, graph: &GraphState, solution_before: &[u32], rng: &mut Rng) -> Result<Vec<u32>> {
    let mut chosen: Vec<u32> = match problem {
        Problem::DominatingSet => (0..graph.n_nodes() as u32).filter(|a| !solution_before.contains(a)).collect(),
        _ => solution_before.to_vec(),
    };
    for _ in 0..1 + rng.below(3) {
        if !chosen.is_empty() {
            chosen.swap_remove(rng.below(chosen.len()));
        }
    }
    let mut state = unmarked(problem, graph)?;
    for a in chosen {
        choose(problem, &mut state, a)?;
    }
    loop {
        let open = undecided(&state);
        if open.is_empty() {
            return Ok(solution(problem, &state));
        }
        choose(problem, &mut state, open[rng.below(open.len())])?;
    }
}

fn other_cut(graph: &GraphState, before: &[u32], rng: &mut Rng) -> Vec<u32> {
    let n = graph.n_nodes();
    let mut sides = vec![false; n];
    before.iter().for_each(|&a| sides[a as usize] = true);
    for _ in 0..1 + rng.below(3) {
        let a = rng.below(n);
        sides[a] = !sides[a];
    }
    while let Some(a) = (0..n).find(|&a| {
        let (same, other) = near(graph, &sides, a, n);
        same > other
    }) {
        sides[a] = !sides[a];
    }
    listed(&sides)
}

/// The numbers of the first `n` nodes that node `a` has an edge to, on its own side and on the other.
fn near(graph: &GraphState, sides: &[bool], a: usize, n: usize) -> (usize, usize) {
    let others = graph.adjacency().ones(a).filter(|&b| b < n);
    others.fold((0, 0), |(same, other), b| if sides[a] == sides[b] { (same + 1, other) } else { (same, other + 1) })
}

fn listed(sides: &[bool]) -> Vec<u32> {
    (0..).zip(sides).filter(|(_, side)| **side).map(|(a, _)| a).collect()
}

fn undecided(state: &GraphState) -> Vec<u32> {
    (0..).zip(state.nodes()).filter(|&(_, node)| Mark::of(node) == Mark::Undecided).map(|(a, _)| a).collect()
}

fn choose(problem: Problem, state: &mut GraphState, a: u32) -> Result<()> {
    MarkNode(problem).apply(Direction::Forward, state, Move { a, ..Move::default() })
}

/// The graph with the marks that nobody's choice is needed for.
fn unmarked(problem: Problem, graph: &GraphState) -> Result<GraphState> {
    if graph.nodes().any(|node| Mark::of(node) != Mark::Undecided) {
        return Err(Error::contract("a solution is looked for on a graph without marks", graph.to_string()));
    }
    let mut state = graph.clone();
    let none = MarkNode(problem).chosen(&state);
    MarkNode(problem).mark(&mut state, &none)?;
    Ok(state)
}
