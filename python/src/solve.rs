//! The search for the best solution of a problem on one input graph.

use gfn::{Error, Result, Rng};
use gfn_gym::graph_problems::{GraphProblem, Instances, Problem};
use gfn_solver::{Origin, Solver};
use pyo3::prelude::*;

use crate::errors::{Outcome, call_python};
use crate::inside::Inside;
use crate::session::catch_panic;
use crate::settings::Settings;
use crate::states::Graphs;
use crate::watch::Watch;

/// The result of a search. The first entry is the nodes of the best solution. The second entry lists the
/// improvements: the time in seconds, the size of the solution, and its origin (`sample` or `search`). The
/// third entry is the number of samples.
type Answer = (Vec<u32>, Vec<(f64, usize, &'static str)>, usize);

/// Searches for the best solution on a graph. Returns an error unless `graphs` has exactly one graph. The
/// function `draw` gets a number n and a seed, and returns n finished states of the problem. Local search
/// starts from these states.
#[pyfunction]
pub(crate) fn solve(
    py: Python<'_>,
    problem: Settings<Problem>,
    graphs: &Graphs,
    draw: Option<Py<PyAny>>,
    seconds: f64,
    rounds: usize,
    seed: u64,
) -> Outcome<Answer> {
    let _inside = Inside::enter(py)?;
    let watch = Watch::new();
    let instances = Instances::new(graphs.states().graphs().to_vec())?;
    let Settings(problem) = problem;
    let job = || -> Result<Answer> {
        // The environment itself isn't used, but building it checks the graph.
        GraphProblem::new(problem, &instances)?;
        let [graph] = instances.graphs() else {
            return Err(Error::config("graphs to solve", instances.graphs().len(), "one"));
        };
        let solver = Solver::search_alone(problem).seconds(seconds).rounds(rounds);
        let rng = &mut Rng::seeded(seed);
        let solved = match &draw {
            None => solver.solve(graph, rng, |_| ())?,
            Some(draw) => solver.solve_from(
                graph,
                rng,
                |n, rng| {
                    watch.look()?;
                    let seed = rng.below(1 << 53) as u64;
                    let solutions = |py: Python<'_>| -> PyResult<Vec<Vec<u32>>> {
                        let graphs = draw.call1(py, (n, seed))?;
                        let graphs = graphs.bind(py).cast::<Graphs>()?.get();
                        Ok(graphs.states().graphs().iter().map(|state| problem.solution(state)).collect())
                    };
                    call_python("the policy", solutions)
                },
                |_| (),
            )?,
        };
        let history = solved.history.iter().map(|one| {
            let origin = if one.origin == Origin::Sample { "sample" } else { "search" };
            (one.seconds, one.size, origin)
        });
        Ok((solved.nodes, history.collect(), solved.samples))
    };
    Ok(py.detach(|| catch_panic(job))??)
}
