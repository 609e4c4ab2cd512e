//! RB graphs: the best of some samples of each held-out graph, beside what else finds independent sets; and of graphs far larger than
//! those that the policy was trained on.

use std::time::Instant;

use gfn::graph::{GraphEnv, GraphState};
use gfn::rollout::Sampler;
use gfn::{Error, Result, Rng};
use gfn_gym::graph_problems::{GraphProblem, Instances, Problem, RbModel, greedy, improved, maximum_independent_set};
use serde_json::{Value, json};

use super::{Args, HELD_OUT_SEED, ProblemTrainer};
use crate::cli::{Defaults, Distance, Report, forget_peak_memory, members, peak_memory_mib, train_with_actors};

/// The problem that RB graphs are made for.
const PROBLEM: Problem = Problem::IndependentSet;
/// Branches of the exact search of one graph.
const BRANCHES: u64 = 200_000_000;
/// Rounds of local search, from the greedy solution.
const ROUNDS: usize = 1_000;
/// Edges of the graphs that are sampled at once: messages along them take memory.
const EDGES_AT_ONCE: usize = 400_000;

/// The graphs of 800 to 1,200 nodes that Zhang et al. call large.
fn largest() -> RbModel {
    RbModel { cliques: 40..=55, clique_nodes: 20..=25, tightness: [0.3, 1.0], nodes: 800..=1_200 }
}

/// What was found of one graph.
struct Found {
    nodes: usize,
    edges: usize,
    best: f64,
    mean: f64,
    greedy: f64,
    local_search: f64,
    /// If the search was over in time.
    optimum: Option<f64>,
    sampling_s: f64,
}

/// The mean over the graphs that have a number, if any has.
fn mean(found: &[Found], of: impl Fn(&Found) -> Option<f64>) -> Option<f64> {
    let numbers: Vec<f64> = found.iter().filter_map(of).collect();
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
}

impl Found {
    fn json(&self) -> Value {
        json!({ "nodes": self.nodes, "edges": self.edges, "optimum": self.optimum, "best": self.best,
            "mean": self.mean, "greedy": self.greedy, "local_search": self.local_search, "sampling_s": self.sampling_s })
    }
}

/// How the policy is asked about graphs, and what it is compared with.
struct Search<'a> {
    trainer: &'a ProblemTrainer,
    best_of: usize,
    branches: u64,
    rng: Rng,
    search_rng: Rng,
}

impl Search<'_> {
    fn all(&mut self, graphs: &Instances) -> Result<Vec<Found>> {
        let env = GraphProblem::new(PROBLEM, graphs)?;
        (0..).zip(graphs.graphs()).map(|(instance, graph)| self.one(&env, instance, graph)).collect()
    }

    fn one(&mut self, env: &GraphEnv<GraphProblem>, instance: u32, graph: &GraphState) -> Result<Found> {
        let of = |nodes: &[u32]| PROBLEM.check(graph, nodes).map(|size| size as f64);
        let sampler = Sampler::new(env, self.trainer.policy());
        let at_once = (EDGES_AT_ONCE / graph.n_edges().max(1)).clamp(1, self.best_of);
        let (started, mut sizes) = (Instant::now(), Vec::new());
        while sizes.len() < self.best_of {
            let n = at_once.min(self.best_of - sizes.len());
            let sampled = sampler.forward_of(&vec![instance; n], &mut self.rng)?;
            for state in sampled.terminal_states().graphs() {
                sizes.push(of(&env.rules().solution(state))?);
            }
        }
        let sampling_s = started.elapsed().as_secs_f64();
        let first = greedy(PROBLEM, graph)?;
        let searched = improved(PROBLEM, graph, &first, ROUNDS, &mut self.search_rng)?;
        let optimum = maximum_independent_set(graph, self.branches).map(|nodes| of(&nodes)).transpose()?;
        Ok(Found {
            nodes: graph.n_nodes(),
            edges: graph.n_edges(),
            best: sizes.iter().copied().fold(0.0, f64::max),
            mean: sizes.iter().sum::<f64>() / sizes.len().max(1) as f64,
            greedy: of(&first)?,
            local_search: of(&searched)?,
            optimum,
            sampling_s,
        })
    }
}

pub(super) fn run(
    args: &Args,
    trainer: ProblemTrainer,
    defaults: &Defaults,
    graphs: &Instances,
    mut extra: Vec<(&'static str, Value)>,
) -> Result<()> {
    let common = &args.common;
    common.refuse_validation()?;
    if args.best_of == 0 {
        return Err(Error::config("--best-of", 0, "at least one sample of each graph"));
    }
    let Some((trainer, trained)) =
        train_with_actors(trainer, common, ("graph_problem", defaults), |_: &ProblemTrainer| Ok(None), Vec::new())?
    else {
        return Ok(());
    };
    if !members::is_first() {
        return Ok(());
    }

    let mut search = Search {
        trainer: &trainer,
        best_of: args.best_of,
        branches: BRANCHES,
        rng: trainer.evaluation_rng(),
        search_rng: Rng::seeded(common.seed).split(),
    };
    let found = search.all(graphs)?;
    let share = |of: fn(&Found) -> f64| json!(mean(&found, |found| found.optimum.map(|optimum| of(found) / optimum)));
    extra.extend([
        ("share_of_optimum", share(|found| found.best)),
        ("share_of_optimum_mean", share(|found| found.mean)),
        ("share_of_optimum_greedy", share(|found| found.greedy)),
        ("share_of_optimum_local_search", share(|found| found.local_search)),
    ]);
    // Shares are of these: where the exact search isn't over in time, there is no optimum to compare with.
    let optima = found.iter().filter(|found| found.optimum.is_some()).count();
    extra.extend([("best_of", json!(args.best_of)), ("optima_known", json!(optima))]);
    let rng = &mut Rng::seeded(HELD_OUT_SEED).split();
    let mut rows = Vec::new();
    // No exact search ends on the largest ones.
    for (name, model, branches) in
        [("200 to 300 nodes", RbModel::large(), BRANCHES), ("800 to 1,200 nodes", largest(), 0)]
    {
        if args.larger == 0 {
            break;
        }
        let graphs = Instances::new((0..args.larger).map(|_| model.draw(rng)).collect::<Result<_>>()?)?.distinct();
        search.branches = branches;
        forget_peak_memory();
        let found = search.all(&graphs)?;
        let known = |of: fn(&Found) -> f64| mean(&found, |found| Some(of(found)));
        rows.push(
            json!({ "graphs": name, "nodes": known(|found| found.nodes as f64), "best": known(|found| found.best),
            "mean": known(|found| found.mean), "greedy": known(|found| found.greedy),
            "local_search": known(|found| found.local_search), "optimum": mean(&found, |found| found.optimum),
            "optima_known": found.iter().filter(|found| found.optimum.is_some()).count(),
            "sampling_s": known(|found| found.sampling_s), "peak_memory_mib": peak_memory_mib() }),
        );
    }
    if args.larger > 0 {
        extra.push(("larger", json!(rows)));
    }
    extra.push(("held_out", found.iter().map(Found::json).collect()));
    let distance = Distance::unknown("the independent sets of such graphs are too many".into());
    let title = "independent sets of RB graphs".to_owned();
    Report { title, distance, extra, ..Report::default() }.print(common, &trained)
}
