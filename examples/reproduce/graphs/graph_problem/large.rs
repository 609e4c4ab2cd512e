//! RB graphs: the best of some samples of each held-out graph, beside what else finds independent sets.

use gfn::graph::GraphState;
use gfn::rollout::Sampler;
use gfn::{Error, Result, Rng};
use gfn_gym::graph_problems::{GraphProblem, Instances, Problem, greedy, improved, maximum_independent_set};
use serde_json::{Value, json};

use super::{Args, ProblemTrainer};
use crate::cli::{Defaults, Distance, Report, members, train_with_actors};

/// The problem that RB graphs are made for.
const PROBLEM: Problem = Problem::IndependentSet;
/// Branches of the exact search of one graph.
const BRANCHES: u64 = 200_000_000;
/// Rounds of local search, from the greedy solution.
const ROUNDS: usize = 1_000;

pub(super) fn run(
    args: &Args,
    trainer: ProblemTrainer,
    defaults: &Defaults,
    graphs: &Instances,
    mut extra: Vec<(&'static str, Value)>,
) -> Result<()> {
    let common = &args.common;
    common.refuse_validation()?;
    let Some((trainer, trained)) =
        train_with_actors(trainer, common, ("graph_problem", defaults), |_: &ProblemTrainer| Ok(None), Vec::new())?
    else {
        return Ok(());
    };
    if !members::is_first() {
        return Ok(());
    }

    let env = GraphProblem::new(PROBLEM, graphs)?;
    let sampler = Sampler::new(&env, trainer.policy());
    let (rng, search_rng) = (&mut trainer.evaluation_rng(), &mut Rng::seeded(common.seed).split());
    // Shares of the optimum: the policy's best and mean, greedy, local search.
    let (mut shares, mut rows) = ([0.0; 4], Vec::new());
    for (instance, graph) in (0..).zip(graphs.graphs()) {
        let sampled = sampler.forward_of(&vec![instance; args.best_of], rng)?;
        let size = |state: &GraphState| PROBLEM.check(graph, &env.solution(state)).map(|size| size as f64);
        let sizes = sampled.terminal_states().graphs().iter().map(size).collect::<Result<Vec<_>>>()?;
        let best = sizes.iter().copied().fold(0.0, f64::max);
        let mean = sizes.iter().sum::<f64>() / sizes.len().max(1) as f64;
        let first = greedy(PROBLEM, graph)?;
        let searched = improved(PROBLEM, graph, &first, ROUNDS, search_rng)?;
        let optimum =
            maximum_independent_set(graph, BRANCHES).ok_or(Error::TooManyStates { limit: BRANCHES as usize })?;
        let of = |nodes: &[u32]| PROBLEM.check(graph, nodes).map(|size| size as f64);
        let (greedy_size, searched, optimum) = (of(&first)?, of(&searched)?, of(&optimum)?);
        let found = [best, mean, greedy_size, searched];
        shares.iter_mut().zip(found).for_each(|(sum, size)| *sum += size / optimum / graphs.graphs().len() as f64);
        rows.push(json!({ "nodes": graph.n_nodes(), "edges": graph.n_edges(), "optimum": optimum, "best": best,
            "mean": mean, "greedy": greedy_size, "local_search": searched }));
    }
    let names =
        ["share_of_optimum", "share_of_optimum_mean", "share_of_optimum_greedy", "share_of_optimum_local_search"];
    extra.push(("best_of", json!(args.best_of)));
    extra.extend(names.into_iter().zip(shares.map(|share| json!(share))));
    extra.push(("held_out", json!(rows)));
    let distance = Distance::unknown("the independent sets of such graphs are too many".into());
    let title = "independent sets of RB graphs".to_owned();
    Report { title, distance, extra, ..Report::default() }.print(common, &trained)
}
