//! A task that solves a problem on one graph, which is read from a file. Solutions come from local search,
//! and from the policy in a checkpoint that `graph-problem --save` wrote.

use gfn::graph::NamedGraph;
use gfn_gym::graph_problems::{GraphProblem, Instances, Problem};
use gfn_solver::{Progress, Solver, SolverResult};

use super::graph_problem::PROBLEMS;
use crate::prelude::*;

/// Solve a problem on your own graph, by a trained policy and local search
#[derive(Args)]
pub(crate) struct Solve {
    /// File with one graph: a list of edges as networkx, SNAP and PyG write it, graph6, DIMACS, METIS, Gset,
    /// an adjacency matrix or adjacency lists. The content selects the format. Edges with weights other than
    /// 1 are an error for the problem cut
    #[arg(long)]
    graph: PathBuf,
    /// Checkpoint of the policy: a folder that `graph-problem --save` wrote. Without a checkpoint, only local
    /// search is used
    #[arg(long)]
    checkpoint: Option<PathBuf>,
    /// Problem to solve, by default independent-set. With a checkpoint it is the problem on which the policy
    /// was trained
    #[arg(long, value_parser = choice(PROBLEMS), conflicts_with = "checkpoint")]
    problem: Option<Selection<Problem>>,
    /// Number of seconds that the search may take
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    #[command(flatten)]
    machine: Machine,
}

/// The largest number of samples of the policy in one batch.
const AT_ONCE: usize = 32;
/// The number of rounds of local search from each sample.
const ROUNDS: usize = 10_000;

/// The part of a checkpoint's description that this task needs.
#[derive(Deserialize)]
struct Saved {
    problem: String,
    network: GraphNetConfig,
}

impl Solve {
    /// Solves the problem on a graph. With a checkpoint, its policy and local search solve the checkpoint's
    /// problem. Without a checkpoint, local search alone solves the problem of `--problem`.
    fn solve(&self, graph: &NamedGraph) -> Result<(Problem, SolverResult)> {
        let device = self.machine.device()?;
        let mut rng = Rng::seeded(self.machine.seed);
        let progress = |one: &Progress| {
            let origin = format!("{:?}", one.origin).to_lowercase();
            tell(format_args!("{:8.3} s: size {} by {origin}", one.seconds, one.size));
        };
        let Some(folder) = &self.checkpoint else {
            let problem = self.problem.map_or(Problem::IndependentSet, |named| named.value);
            refuse_weights(problem, &self.graph, graph)?;
            let solver = Solver::search_alone(problem).seconds(self.seconds).rounds(ROUNDS);
            return Ok((problem, solver.solve(&graph.graph, &mut rng, progress)?));
        };
        let checkpoint = Checkpoint::load(folder)?;
        let saved: Saved = checkpoint.description()?;
        let problem = Problem::ALL
            .into_iter()
            .find(|problem| problem.to_string() == saved.problem)
            .ok_or_else(|| {
                Error::file(
                    folder,
                    saved.problem,
                    "give a checkpoint that `reproduce graph-problem --save` wrote",
                )
            })?;
        refuse_weights(problem, &self.graph, graph)?;
        let env = GraphProblem::for_size(problem, &Instances::new(vec![graph.graph.clone()])?)?;
        let net = GraphNet::new(env.env(), saved.network, device, Kind::Float, &mut rng)?;
        checkpoint.restore(net.parameters())?;
        let policy = GraphPolicy(net);
        let solver = Solver::new(&env, &policy).seconds(self.seconds).at_once(AT_ONCE).rounds(ROUNDS);
        Ok((problem, solver.solve(&graph.graph, &mut rng, progress)?))
    }
}

/// Returns an error if the problem is a cut and edges of the graph have weights other than 1. The size of a
/// cut is its number of edges, so the weights would be ignored.
fn refuse_weights(problem: Problem, path: &Path, graph: &NamedGraph) -> Result<()> {
    let remedy =
        "give a graph whose weights are all 1, or leave the weights out, because a cut here counts edges";
    let is_refused = problem == Problem::Cut && graph.has_weights;
    if is_refused {
        Err(Error::file(path, "the graph has edges of weights other than 1", remedy))
    } else {
        Ok(())
    }
}

impl Task for Solve {
    fn run(&self) -> Result<()> {
        let graph = Instances::read_named(&self.graph)?;
        let (problem, solved) = self.solve(&graph)?;
        let names = graph.names_of(&solved.nodes)?;
        let nodes = graph.graph.n_nodes();
        let edges = graph.graph.n_edges();
        let SolverResult { size, samples, .. } = &solved;
        tell(format_args!(
            "{problem} of size {size} in a graph of {nodes} nodes and {edges} edges, {samples} samples"
        ));
        if !self.machine.json {
            return print(names.join("\n"));
        }
        print(json!({ "example": "solve", "seed": self.machine.seed, "problem": problem.to_string(),
                "graph_nodes": nodes,
                "graph_edges": edges, "size": size, "nodes": names, "history": solved.history,
                "samples": samples,
                "seconds": solved.seconds, "sampling_s": solved.sampling_s }))
    }
}
