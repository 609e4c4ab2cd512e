//! Local search for the problems on graphs of [`gfn_gym::graph_problems`]: what a policy is compared with, and what makes its solutions better.
//!
//! | item | is |
//! |---|---|
//! | [`greedy`] | a solution by one rule |
//! | [`improved`], [`SolutionSearch`] | local search, from a solution or from a random one |
//! | [`Solver`] | the best solution of one graph: a policy's samples, each improved by local search |
//! | [`Improving`] | a source of training trajectories to what local search finds |

mod cut;
mod dominating_set;
mod greedy;
mod improving;
mod independent_set;
mod lists;
mod solver;

use std::time::Instant;

use cut::Cut;
use dominating_set::DominatingSet;
use gfn::graph::GraphState;
use gfn::{Result, Rng};
use gfn_gym::graph_problems::Problem;
pub use greedy::greedy;
pub use improving::Improving;
use independent_set::IndependentSet;
use lists::Lists;
pub use solver::{Origin, Progress, Solved, Solver};

/// Rounds for each node without a better solution, after which a search begins anew.
const PATIENCE: usize = 200;

/// A solution that is at least as good as `start`, by local search of so many rounds: what [`SolutionSearch`] finds from there.
///
/// ```
/// use gfn::{Rng, graph::GraphFormat};
/// use gfn_gym::graph_problems::Problem;
/// use gfn_solver::improved;
/// // A path of 4 nodes, whose ends are an independent set that can't grow, of 2 nodes; and one of 5 nodes, of 3.
/// let path = &GraphFormat::EdgeList.read(b"graph undirected 5\nedge 0 1\nedge 1 2\nedge 2 3\nedge 3 4")?[0];
/// let found = improved(Problem::IndependentSet, path, &[1, 3], 50, &mut Rng::seeded(0))?;
/// assert_eq!(found, [0, 2, 4]);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Contract`](gfn::Error::Contract) for a start that is no solution.
pub fn improved(problem: Problem, graph: &GraphState, start: &[u32], rounds: usize, rng: &mut Rng) -> Result<Vec<u32>> {
    let mut search = SolutionSearch::starting_at(problem, graph, start, rng)?;
    search.run(rounds, rng);
    Ok(search.best().to_vec())
}

/// Moves from one solution of a problem to others.
trait Moves: Send {
    fn graph(&self) -> &GraphState;
    /// Begins at a solution; what can be had of it at no cost is taken.
    fn start(&mut self, nodes: &[u32], rng: &mut Rng);
    /// Begins at a random solution.
    fn restart(&mut self, rng: &mut Rng);
    /// One round; `true` if it ends at a solution.
    fn round(&mut self, rng: &mut Rng) -> bool;
    fn size(&self) -> usize;
    fn solution(&self) -> Vec<u32>;
}

/// Local search for solutions of a problem on one graph, by lists of neighbours and counts that each move keeps: it knows no states,
/// marks or environment. Its solutions are such as [`GraphProblem`](gfn_gym::graph_problems::GraphProblem) builds: sets that can't grow, or shrink.
///
/// | problem | a round |
/// |---|---|
/// | independent set | a node comes in and its neighbours go, then two nodes come for one as long as some can (Andrade, Resende and Werneck 2012) |
/// | clique | the same in the [complement](gfn_gym::graph_problems::Instances::complements) |
/// | dominating set | a node goes and one comes, under weights of the nodes that are hard to dominate (Gao, Weise and Li 2015) |
/// | cut | the node that gains most changes sides, whatever it costs, and stays there for some rounds (Kochenberger et al. 2013) |
///
/// After 200 rounds a node without a better solution it goes on from a random one; [`best`](Self::best) stays. The same
/// stream gives the same solutions after the same number of rounds.
///
/// ```
/// use gfn::Rng;
/// use gfn_gym::graph_problems::{Problem, RbModel, maximum_independent_set};
/// use gfn_solver::SolutionSearch;
/// let mut rng = Rng::seeded(0);
/// let graph = RbModel::medium().draw(&mut rng)?;
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
    /// Rounds since the search began at a solution or found a better one than all before.
    stale: usize,
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
    /// A search that begins at a random solution. Marks of nodes aren't read.
    #[must_use]
    pub fn new(problem: Problem, graph: &GraphState, rng: &mut Rng) -> Self {
        let mut search = Self::nowhere(problem, graph);
        search.restart(rng);
        search
    }

    /// A search that begins at this solution.
    ///
    /// # Errors
    /// Those of [`Problem::check`].
    pub fn starting_at(problem: Problem, graph: &GraphState, solution: &[u32], rng: &mut Rng) -> Result<Self> {
        let mut search = Self::nowhere(problem, graph);
        search.start(solution, rng)?;
        Ok(search)
    }

    fn nowhere(problem: Problem, graph: &GraphState) -> Self {
        let near = Lists::new(graph, problem == Problem::Clique);
        let moves: Box<dyn Moves> = match problem {
            Problem::IndependentSet | Problem::Clique => Box::new(IndependentSet::new(near)),
            Problem::DominatingSet => Box::new(DominatingSet::new(near)),
            Problem::Cut => Box::new(Cut::new(near)),
        };
        Self { problem, moves, best: Vec::new(), size: 0, stale: 0 }
    }

    /// Begins at this solution, and forgets all others.
    ///
    /// # Errors
    /// Those of [`Problem::check`], and nothing is changed then.
    pub fn start(&mut self, solution: &[u32], rng: &mut Rng) -> Result<()> {
        self.problem.check(self.moves.graph(), solution)?;
        self.moves.start(solution, rng);
        self.begin();
        Ok(())
    }

    /// Begins at a random solution, and forgets all others.
    pub fn restart(&mut self, rng: &mut Rng) {
        self.moves.restart(rng);
        self.begin();
    }

    /// So many rounds.
    pub fn run(&mut self, rounds: usize, rng: &mut Rng) {
        (0..rounds).for_each(|_| self.round(rng));
    }

    /// So many rounds, but none that would begin after `end`; at which time it is over depends on the machine, and the solution with it.
    pub fn run_until(&mut self, end: Instant, rounds: usize, rng: &mut Rng) {
        for _ in 0..rounds {
            if Instant::now() >= end {
                break;
            }
            self.round(rng);
        }
    }

    /// The nodes of the best solution since the search began, ascending.
    #[must_use]
    pub fn best(&self) -> &[u32] {
        &self.best
    }

    /// The size of [`best`](Self::best), as [`Problem::check`] gives it.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    fn begin(&mut self) {
        self.stale = 0;
        self.keep();
    }

    fn keep(&mut self) {
        self.size = self.moves.size();
        self.best = self.moves.solution();
        self.best.sort_unstable();
    }

    fn round(&mut self, rng: &mut Rng) {
        if self.stale > PATIENCE * self.moves.graph().n_nodes() {
            self.moves.restart(rng);
            self.stale = 0;
        }
        self.stale += 1;
        if self.moves.round(rng) && self.problem.is_better(self.moves.size(), self.size) {
            self.stale = 0;
            self.keep();
        }
    }
}
