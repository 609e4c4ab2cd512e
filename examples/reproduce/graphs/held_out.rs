//! Measurements of a policy on graphs that it wasn't trained on. On a small graph G, the policy's
//! distribution of solutions p(x | G) is computed exactly, and log Z(G) is the policy's log-flow of the
//! initial state. On a large graph, the best of several samples is compared with the optimum, with a greedy
//! solution and with local search.

use gfn::graph::GraphFormat;
use gfn_gym::graph_problems::{
    GraphProblem, Instances, Problem, SizeReward, maximum_clique, maximum_independent_set,
};
use gfn_solver::{greedy, improve};

use super::graph_problem::{AnyBeta, GraphProblems};
use crate::prelude::*;

type ProblemTrainer = Trainer<GraphEnv>;

/// The largest number of states that a problem may have on a graph of `--graphs small`. A state is a partial
/// or complete solution. This number suffices for all cuts of a graph of 14 nodes.
const LIMIT: usize = 1 << 14;
/// The largest number of states in measurements during training. These measurements use every fifth graph of
/// `--graphs small`, and skip the graphs on which the problem has more states than this number.
const MEASURED_STATES: usize = 1 << 12;

/// The graphs of `--graphs small` on which a policy is measured, and the settings of the measurements.
pub(super) struct Small {
    env: GraphEnv,
    reward: Box<dyn Reward<GraphStates>>,
    /// The condition under which the policy is measured; `None` for a policy without conditions.
    condition: Option<Tensor>,
    any_beta: Option<AnyBeta>,
    sizes: Vec<(usize, usize)>,
}

impl Small {
    pub(super) fn new(
        problem: Problem,
        graphs: &Instances,
        reward: SizeReward,
        any_beta: Option<AnyBeta>,
    ) -> Result<Self> {
        let (condition, reward): (_, Box<dyn Reward<GraphStates>>) = match &any_beta {
            Some(any) => (Some(any.condition(reward.beta())?), Box::new(any.reward()?)),
            None => (None, Box::new(reward)),
        };
        let sizes = graphs.graphs().iter().map(|graph| (graph.n_nodes(), graph.n_edges())).collect();
        Ok(Self {
            env: GraphProblem::for_size(problem, graphs)?.into_env(),
            reward,
            condition,
            any_beta,
            sizes,
        })
    }

    /// Returns the exact distances between the policy and the target on one graph under this condition, and
    /// the target's log Z.
    fn measure(
        &self,
        space: &StateGraph<GraphEnv>,
        trainer: &ProblemTrainer,
        condition: Option<&Tensor>,
    ) -> Result<(Distances, f64)> {
        let (distances, target) =
            compare(space, &self.env, trainer.policy(), self.reward.as_ref(), condition)?;
        Ok((distances, target.log_z))
    }

    /// Returns the policy's log-flow of the initial state of each graph; `None` if the policy doesn't
    /// estimate flows.
    fn log_z(&self, policy: &dyn Policy<GraphEnv>, is_forward_looking: bool) -> Result<Option<Vec<f64>>> {
        let start = self.env.initial(&(0..self.env.n_instances()).collect::<Vec<_>>());
        let conditions = self.condition.as_ref().map(|one| one.expand([start.len() as i64, -1], false));
        let conditions = conditions.as_ref();
        let evaluation =
            tch::no_grad(|| policy.evaluate(&self.env, &start, conditions, Quantity::LogFlow.into()))?;
        let Some(flow) = evaluation.values.get(Quantity::LogFlow) else { return Ok(None) };
        let mut flow = Vec::<f64>::try_from(flow.to_kind(Kind::Double))?;
        if is_forward_looking {
            // A forward-looking objective learns the log-flow minus the log-reward of the state, so this
            // log-reward is added.
            let own = self.reward.partial_log_reward(&start, conditions)?.unwrap_or_default();
            for (flow, own) in flow.iter_mut().zip(own) {
                *flow += own;
            }
        }
        Ok(Some(flow))
    }

    /// Trains the policy, measures it on the graphs of `self`, and reports the results. `sizes` holds further
    /// entries of the report, such as the number of training graphs.
    pub(super) fn learn(self, run: &Run<'_>, trainer: ProblemTrainer, sizes: Value) -> Result<()> {
        let mut spaces = Vec::new();
        for instance in (0..self.env.n_instances()).step_by(5) {
            match StateGraph::build_of(&self.env, instance, MEASURED_STATES) {
                Err(Error::TooManyStates { .. }) => {}
                space => spaces.push(space?),
            }
        }
        let condition = self.condition.as_ref();
        let measure = |trainer: &ProblemTrainer| {
            let measured = spaces.iter().map(|space| self.measure(space, trainer, condition));
            let measured: Vec<_> = measured.collect::<Result<_>>()?;
            Ok(jsd((!measured.is_empty()).then(|| mean_distance(&measured, |d| d.jsd))))
        };
        run.finish(trainer, measure, Vec::new(), |trainer, report| {
            let mut measured = Vec::new();
            let mut rows = Vec::new();
            let log_z = self.log_z(trainer.policy(), run.common.objective.name.starts_with("fl-"))?;
            for (instance, (nodes, edges)) in (0..).zip(&self.sizes) {
                let space = StateGraph::build_of(&self.env, instance, LIMIT)?;
                let (distances, log_z_true) = self.measure(&space, trainer, condition)?;
                rows.push(json!({ "nodes": nodes, "edges": edges, "states": space.len(), "tv": distances.tv,
                    "log_z": log_z.as_ref().map(|all| all[instance as usize]), "log_z_true": log_z_true }));
                measured.push((distances, log_z_true));
            }
            let truth: Vec<f64> = measured.iter().map(|(_, log_z)| *log_z).collect();
            let pearson = match &log_z {
                Some(log_z) if truth.len() > 1 => Correlation::between(log_z, &truth)?.pearson,
                _ => None,
            };
            let mean = |of: fn(&Distances) -> f64| mean_distance(&measured, of);
            report.extend(
                json!({ "l1": mean(|d| d.l1), "tv": mean(|d| d.tv), "jsd": mean(|d| d.jsd), "exact": true,
                "tv_largest": measured.iter().map(|(distances, _)| distances.tv).fold(0.0, f64::max),
                "log_z_pearson": pearson, "held_out": rows }),
            );
            report.panels.extend(log_z.map(|log_z| {
                Panel::scatter("log Z of held-out graphs", truth.into_iter().zip(log_z))
                    .labels("log Z of all solutions", "log of the flow of the initial state")
            }));
            if let Some(any) = &self.any_beta {
                let mut of_betas = Vec::new();
                for beta in any.measured {
                    let condition = Some(any.condition(beta)?);
                    let instances = 0..self.env.n_instances();
                    let space = |one| StateGraph::build_of(&self.env, one, LIMIT);
                    let measured =
                        instances.map(|one| self.measure(&space(one)?, trainer, condition.as_ref()));
                    let measured: Vec<_> = measured.collect::<Result<_>>()?;
                    of_betas.push(json!({ "beta": beta, "tv": mean_distance(&measured, |d| d.tv) }));
                }
                report.set("betas", of_betas);
            }
            report.extend(sizes);
            Ok(())
        })
    }
}

fn mean_distance(measured: &[(Distances, f64)], of: fn(&Distances) -> f64) -> f64 {
    measured.iter().map(|(distances, _)| of(distances)).sum::<f64>() / measured.len() as f64
}

/// The number of rounds of local search. The search starts from the greedy solution.
const ROUNDS: usize = 10_000;
/// The largest total number of edges of the graphs that are sampled in one batch. The limit keeps the memory
/// for messages along edges small.
const EDGES_AT_ONCE: usize = 400_000;

/// The names of the solution sizes whose means are reported. `best` and `mean` are taken over the policy's
/// samples on a graph, and `greedy` and `local_search` are the results of other methods.
const SIZES: [&str; 4] = ["best", "mean", "greedy", "local_search"];

/// Returns the mean of the numbers that aren't `None`; `None` if there is no number.
fn mean(numbers: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let numbers: Vec<f64> = numbers.flatten().collect();
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
}

impl GraphProblems {
    /// Trains the policy, measures it on large graphs, and reports the results. `sizes` holds further entries
    /// of the report, such as the number of training graphs.
    pub(super) fn learn_large(
        &self,
        run: &Run<'_>,
        trainer: ProblemTrainer,
        graphs: &Instances,
        sizes: Value,
    ) -> Result<()> {
        run.finish(trainer, unmeasured, Vec::new(), |trainer, report| {
            let mut rng = trainer.evaluation_rng();
            let mut search_rng = run.rng().split();
            let env = GraphProblem::for_size(self.problem.value, graphs)?.into_env();
            let sampler = Sampler::new(&env, trainer.policy()).exploration(self.exploration()?);
            let one = |(instance, graph)| self.solve(&sampler, instance, graph, [&mut rng, &mut search_rng]);
            let solved: Vec<Value> = (0..).zip(graphs.graphs()).map(one).collect::<Result<_>>()?;
            let mean_of = |name: &str| mean(solved.iter().map(|one| one[name].as_f64()));
            for name in SIZES {
                // A graph whose optimum is unknown doesn't enter the mean share of the optimum.
                let share = |one: &Value| Some(one[name].as_f64()? / one["optimum"].as_f64()?);
                let suffix = if name == "best" { String::new() } else { format!("_{name}") };
                report.set(&format!("share_of_optimum{suffix}"), mean(solved.iter().map(share)));
                report.set(name, mean_of(name));
            }
            if let Some(path) = &self.per_graph {
                let lines: String = solved.iter().map(|one| format!("{one}\n")).collect();
                replace_file(path, &lines)?;
            }
            report.set("sample_temperature", self.sample_temperature);
            report.extend(json!({ "best_of": self.best_of, "optimum": mean_of("optimum"),
                "sampling_s_each": mean_of("sampling_s"),
                "local_search_s_each": mean_of("local_search_s"),
                "optima_known": solved.iter().filter(|one| !one["optimum"].is_null()).count(),
                "why_not_exact": "the solutions of such graphs are too many" }));
            report.extend(sizes);
            Ok(())
        })
    }

    /// Solves the problem on one graph by samples of the policy, by the greedy method, by local search and by
    /// exact search. Returns the sizes of the solutions.
    fn solve(
        &self,
        sampler: &Sampler<'_, GraphEnv>,
        instance: u32,
        graph: &GraphState,
        rngs: [&mut Rng; 2],
    ) -> Result<Value> {
        let (problem, best_of, [rng, search_rng]) = (self.problem.value, self.best_of, rngs);
        let size = |nodes: &[u32]| problem.check(graph, nodes).map(|size| size as f64);
        let at_once = (EDGES_AT_ONCE / graph.n_edges().max(1)).clamp(1, best_of);
        let started = Instant::now();
        let mut sizes = Vec::new();
        while sizes.len() < best_of {
            let n = at_once.min(best_of - sizes.len());
            let sampled = sampler.forward_in(&vec![instance; n], None, rng)?;
            for state in sampled.terminal_states().graphs() {
                sizes.push(size(&problem.solution(state))?);
            }
        }
        let sampling_s = started.elapsed().as_secs_f64();
        let started = Instant::now();
        let first = greedy(problem, graph)?;
        let searched = improve(problem, graph, &first, ROUNDS, search_rng)?;
        let local_search_s = started.elapsed().as_secs_f64();
        let optimum = match problem {
            Problem::IndependentSet => maximum_independent_set(graph, self.branches),
            Problem::Clique => maximum_clique(graph, self.branches),
            Problem::DominatingSet | Problem::Cut => None,
        };
        let better = if problem.is_minimised() { f64::min } else { f64::max };
        let graph6 = GraphFormat::Graph6.write(std::slice::from_ref(graph))?;
        Ok(json!({ "graph6": graph6.trim_end(), "nodes": graph.n_nodes(), "edges": graph.n_edges(),
            "best": sizes.iter().copied().reduce(better).unwrap_or(0.0),
            "mean": sizes.iter().sum::<f64>() / sizes.len().max(1) as f64, "greedy": size(&first)?,
            "local_search": size(&searched)?, "optimum": optimum.map(|nodes| size(&nodes)).transpose()?,
            "sampling_s": sampling_s, "local_search_s": local_search_s }))
    }
}
