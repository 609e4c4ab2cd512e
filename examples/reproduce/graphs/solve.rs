//! Solves a problem on one graph of a file, by local search and the policy of a checkpoint that `graph-problem --save` wrote.

use std::path::{Path, PathBuf};

use clap::Parser;
use gfn::graph::NamedGraph;
use gfn::nn::{GraphNet, GraphNetConfig, GraphNetwork};
use gfn::policy::GraphPolicy;
use gfn::runtime::{DeviceKind, Runtime};
use gfn::train::Checkpoint;
use gfn::{Error, Result, Rng};
use gfn_gym::graph_problems::{GraphProblem, Instances, Problem};
use gfn_solver::{Progress, Solved, Solver};
use serde::Deserialize;
use serde_json::json;

use super::graph_problem::ProblemName;
use crate::run::lines::{print, tell};

/// Solve a problem on a graph of your own, by a trained policy and local search
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// File of one graph: edges as networkx, SNAP and PyG write them, graph6, or by its content DIMACS,
    /// METIS, Gset, a matrix or lists of adjacency. Cuts of graphs with weights are refused
    #[arg(long)]
    graph: PathBuf,
    /// Folder that `--save` of `graph-problem` wrote; without one, local search is alone
    #[arg(long)]
    checkpoint: Option<PathBuf>,
    /// The problem, by default independent-set; a checkpoint's is its own
    #[arg(long, value_enum, conflicts_with = "checkpoint")]
    problem: Option<ProblemName>,
    /// Seconds that it may take
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Samples and rounds of local search after each are in batches of so many, at most
    #[arg(long, default_value_t = 32)]
    batch: usize,
    /// Rounds of local search from each sample
    #[arg(long, default_value_t = 10_000)]
    rounds: usize,
    /// Seed of the draws
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Threads of rayon and of libtorch
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Where tensors live: cpu, cuda or cuda:N
    #[arg(long, default_value = "cpu")]
    device: DeviceKind,
    /// Print one line of JSON at the end
    #[arg(long)]
    json: bool,
}

/// The part of a checkpoint's description that is needed.
#[derive(Deserialize)]
struct Saved {
    problem: String,
    network: GraphNetConfig,
    /// `true` for a policy that sees the part of a state that matters; not in checkpoints from before there was such a thing.
    #[serde(default)]
    for_size: bool,
}

/// Solves the problem of a checkpoint by its policy; without a checkpoint, the one that the flags name, by search alone.
fn solve(args: &Args, graph: &NamedGraph, runtime: &Runtime) -> Result<(Problem, Solved)> {
    let mut rng = Rng::seeded(args.seed);
    let told = |one: &Progress| {
        let origin = format!("{:?}", one.origin).to_lowercase();
        tell(format_args!("{:8.3} s: size {} by {origin}", one.seconds, one.size));
    };
    let Some(folder) = &args.checkpoint else {
        let problem = args.problem.map_or(Problem::IndependentSet, ProblemName::problem);
        refuse_weights(problem, &args.graph, graph)?;
        let solver = Solver::search_alone(problem).seconds(args.seconds).rounds(args.rounds);
        return Ok((problem, solver.solve(&graph.graph, &mut rng, told)?));
    };
    let checkpoint = Checkpoint::load(folder)?;
    let saved: Saved = checkpoint.description()?;
    let problem = Problem::ALL.into_iter().find(|problem| problem.to_string() == saved.problem).ok_or_else(|| {
        Error::file(folder, saved.problem, "give a checkpoint that `reproduce graph-problem --save` wrote")
    })?;
    refuse_weights(problem, &args.graph, graph)?;
    let make = if saved.for_size { GraphProblem::for_size } else { GraphProblem::new };
    let env = make(problem, &Instances::new(vec![graph.graph.clone()])?)?;
    let net = GraphNet::new(env.env(), saved.network, runtime.device(), tch::Kind::Float, &mut rng)?;
    checkpoint.restore(net.parameters())?;
    let policy = GraphPolicy(net);
    let solver = Solver::new(&env, &policy).seconds(args.seconds).at_once(args.batch).rounds(args.rounds);
    Ok((problem, solver.solve(&graph.graph, &mut rng, told)?))
}

/// Refuses cuts of graphs whose edges have weights, which the problem doesn't count.
pub(super) fn refuse_weights(problem: Problem, path: &Path, graph: &NamedGraph) -> Result<()> {
    let remedy = "a cut here counts edges: give a graph whose weights are all 1, or leave the weights out";
    let is_refused = problem == Problem::Cut && graph.has_weights;
    if is_refused { Err(Error::file(path, "its edges have weights other than 1", remedy)) } else { Ok(()) }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let runtime = Runtime::new(args.threads, args.device)?;
    let graph = Instances::read_named(&args.graph)?;
    let (problem, solved) = solve(args, &graph, &runtime)?;
    let names = graph.names_of(&solved.nodes)?;
    let (nodes, edges) = (graph.graph.n_nodes(), graph.graph.n_edges());
    tell(format_args!(
        "{problem} of size {} in a graph of {nodes} nodes and {edges} edges, {} samples",
        solved.size, solved.samples
    ));
    if args.json {
        let line = json!({ "example": "solve", "seed": args.seed, "problem": problem.to_string(), "graph_nodes": nodes, "graph_edges": edges,
            "size": solved.size, "nodes": names, "history": solved.history, "samples": solved.samples,
            "seconds": solved.seconds, "sampling_s": solved.sampling_s });
        print(&line)?;
    } else {
        print(format_args!("{}", names.join("\n")))?;
    }
    Ok(())
}
