//! Local search for [`gfn_gym::graph_problems`]. Local search is a baseline for policies, and can improve the
//! solutions that policies find.
//!
//! | item | is |
//! |---|---|
//! | [`greedy`] | a greedy solution |
//! | [`improve`], [`SolutionSearch`] | local search, from a solution or from a random one |
//! | [`Solver`] | searches for the best solution of one graph: samples of a policy, each improved by local search |
//! | [`SearchSource`] | a source of training trajectories to the solutions that local search finds |

mod cut;
mod dominating_set;
mod greedy;
mod independent_set;
mod lists;
mod search_source;
mod solver;

use std::time::Instant;

use cut::Cut;
use dominating_set::DominatingSet;
use gfn::graph::GraphState;
use gfn::{Result, Rng};
use gfn_gym::graph_problems::Problem;
pub use greedy::greedy;
use independent_set::IndependentSet;
use lists::Lists;
pub use search_source::SearchSource;
pub use solver::{Origin, Progress, Solver, SolverResult};

/// The number of rounds per node of the graph after which a search restarts if it has found no better
/// solution.
const MAX_ROUNDS_WITHOUT_PROGRESS: usize = 200;

/// Improves a solution by a number of rounds of [`SolutionSearch`]. The returned solution is at least as good
/// as `start`.
///
/// ```
/// use gfn::{Rng, graph::GraphFormat};
/// use gfn_gym::graph_problems::Problem;
/// use gfn_solver::improve;
/// // The middle nodes are an independent set of size 2 that can't grow; the largest one has 3 nodes.
/// let path = &GraphFormat::EdgeList.read(b"graph undirected 5\nedge 0 1\nedge 1 2\nedge 2 3\nedge 3 4")?[0];
/// let found = improve(Problem::IndependentSet, path, &[1, 3], 50, &mut Rng::seeded(0))?;
/// assert_eq!(found, [0, 2, 4]);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Contract`](gfn::Error::Contract) if `start` isn't a solution.
pub fn improve(
    problem: Problem,
    graph: &GraphState,
    start: &[u32],
    rounds: usize,
    rng: &mut Rng,
) -> Result<Vec<u32>> {
    let mut search = SolutionSearch::starting_at(problem, graph, start, rng)?;
    search.run(rounds, rng);
    Ok(search.best().to_vec())
}

/// The local search for one problem. The search has a current set of nodes, and each round changes this set.
/// The set may fail to be a solution after some rounds.
trait Moves: Send {
    fn graph(&self) -> &GraphState;
    /// Replaces the current set of nodes by the solution `nodes`. May improve the solution at once, for
    /// example by removing superfluous nodes.
    fn start(&mut self, nodes: &[u32], rng: &mut Rng);
    /// Replaces the current set of nodes by a random solution.
    fn restart(&mut self, rng: &mut Rng);
    /// Makes one round of local search. Returns `true` if the current set of nodes is a solution after the
    /// round.
    fn round(&mut self, rng: &mut Rng) -> bool;
    fn size(&self) -> usize;
    fn solution(&self) -> Vec<u32>;
}

/// Local search for solutions of a problem on one graph. The search works on neighbour lists, without states
/// or an environment, and is therefore fast. Solutions are maximal or minimal sets, as
/// [`GraphProblem`](gfn_gym::graph_problems::GraphProblem) builds them.
///
/// | problem | one round |
/// |---|---|
/// | independent set | inserts a node and removes its neighbours, then swaps one node for two while possible (Andrade, Resende and Werneck 2012) |
/// | clique | makes a round for an independent set of the [complement](gfn_gym::graph_problems::Instances::complements) |
/// | dominating set | swaps a member for another node, with weights of nodes that are hard to dominate (Gao, Weise and Li 2015) |
/// | cut | moves the node with the largest gain, even if negative, and then blocks it for some rounds (Kochenberger et al. 2013) |
///
/// After 200 rounds per node without a better solution, the search restarts at a random solution, and keeps
/// the best solution so far ([`best`](Self::best)). The same random stream and number of rounds give the same
/// solution.
///
/// ```
/// use gfn::Rng;
/// use gfn_gym::graph_problems::{Problem, RbModel, maximum_independent_set};
/// use gfn_solver::SolutionSearch;
/// let mut rng = Rng::seeded(0);
/// let graph = RbModel::nodes_50_to_100().draw(&mut rng)?;
/// let mut search = SolutionSearch::new(Problem::IndependentSet, &graph, &mut rng);
/// search.run(10_000, &mut rng);
/// assert_eq!(Problem::IndependentSet.check(&graph, search.best())?, search.size());
/// assert_eq!(Some(search.size()), maximum_independent_set(&graph, 10_000_000).map(|nodes| nodes.len()));
/// # Ok::<(), gfn::Error>(())
/// ```
pub struct SolutionSearch {
    problem: Problem,
    moves: Box<dyn Moves>,
    best: Vec<u32>,
    size: usize,
    /// The number of rounds since the last start, or since the last better solution.
    rounds_without_progress: usize,
}

impl std::fmt::Debug for SolutionSearch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SolutionSearch")
            .field("problem", &self.problem)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

impl SolutionSearch {
    /// Starts a search at a random solution. If nodes of the graph are marked as in or out of a solution, as
    /// in the states of an environment, these marks are ignored.
    #[must_use]
    pub fn new(problem: Problem, graph: &GraphState, rng: &mut Rng) -> Self {
        let mut search = Self::without_start(problem, graph);
        search.restart(rng);
        search
    }

    /// Starts a search at the given solution.
    ///
    /// # Errors
    /// Errors of [`Problem::check`].
    pub fn starting_at(
        problem: Problem,
        graph: &GraphState,
        solution: &[u32],
        rng: &mut Rng,
    ) -> Result<Self> {
        let mut search = Self::without_start(problem, graph);
        search.start(solution, rng)?;
        Ok(search)
    }

    fn without_start(problem: Problem, graph: &GraphState) -> Self {
        let near = Lists::new(graph, problem == Problem::Clique);
        let moves: Box<dyn Moves> = match problem {
            Problem::IndependentSet | Problem::Clique => Box::new(IndependentSet::new(near)),
            Problem::DominatingSet => Box::new(DominatingSet::new(near)),
            Problem::Cut => Box::new(Cut::new(near)),
        };
        Self { problem, moves, best: Vec::new(), size: 0, rounds_without_progress: 0 }
    }

    /// Restarts at the given solution, and discards all solutions found before.
    ///
    /// # Errors
    /// Errors of [`Problem::check`]. The search isn't changed then.
    pub fn start(&mut self, solution: &[u32], rng: &mut Rng) -> Result<()> {
        self.problem.check(self.moves.graph(), solution)?;
        self.moves.start(solution, rng);
        self.reset_best();
        Ok(())
    }

    /// Restarts at a random solution, and discards all solutions found before.
    pub fn restart(&mut self, rng: &mut Rng) {
        self.moves.restart(rng);
        self.reset_best();
    }

    /// Runs a number of rounds of local search.
    pub fn run(&mut self, rounds: usize, rng: &mut Rng) {
        for _ in 0..rounds {
            self.round(rng);
        }
    }

    /// Runs at most `rounds` rounds of local search. No round starts after the time `end`, so the solution
    /// depends on the machine's speed.
    pub fn run_until(&mut self, end: Instant, rounds: usize, rng: &mut Rng) {
        for _ in 0..rounds {
            if Instant::now() >= end {
                break;
            }
            self.round(rng);
        }
    }

    /// Returns the nodes of the best solution since the last call of [`start`](Self::start) or
    /// [`restart`](Self::restart), in ascending order.
    #[must_use]
    pub fn best(&self) -> &[u32] {
        &self.best
    }

    /// Returns the size of the solution [`best`](Self::best), as defined by [`Problem::check`].
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    fn reset_best(&mut self) {
        self.rounds_without_progress = 0;
        self.record_best();
    }

    fn record_best(&mut self) {
        self.size = self.moves.size();
        self.best = self.moves.solution();
        self.best.sort_unstable();
    }

    fn round(&mut self, rng: &mut Rng) {
        if self.rounds_without_progress > MAX_ROUNDS_WITHOUT_PROGRESS * self.moves.graph().n_nodes() {
            self.moves.restart(rng);
            self.rounds_without_progress = 0;
        }
        self.rounds_without_progress += 1;
        if self.moves.round(rng) && self.problem.is_better(self.moves.size(), self.size) {
            self.rounds_without_progress = 0;
            self.record_best();
        }
    }
}
