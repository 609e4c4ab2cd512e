//! A solver that searches for the best solution of one graph, by a policy and local search.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use gfn::graph::{GraphEnv, GraphState};
use gfn::policy::Policy;
use gfn::rollout::Sampler;
use gfn::{Error, Result, Rng};
use gfn_gym::graph_problems::{GraphProblem, Instances, Problem};
use serde::Serialize;

use crate::SolutionSearch;

/// The number of rounds of local search after which the solver checks for a better solution.
const ROUNDS_PER_CHECK: usize = 64;

/// A solver that searches for the best solution of one graph. The solver samples a policy batch by batch, and
/// improves each sample by [local search](SolutionSearch). The policy can be used on graphs of any size if
/// its network doesn't see node numbers (`identity: false`).
///
/// ```
/// use gfn::Rng;
/// use gfn::{
///     nn::{GraphNet, GraphNetConfig},
///     policy::GraphPolicy,
/// };
/// use gfn_gym::graph_problems::{GraphProblem, Instances, Problem, RbModel};
/// use gfn_solver::Solver;
/// use tch::{Device, Kind};
/// let mut rng = Rng::seeded(0);
/// let env = GraphProblem::for_size(Problem::IndependentSet, &Instances::all(4)?)?;
/// let config = GraphNetConfig { identity: false, ..GraphNetConfig::default() };
/// let policy = GraphPolicy(GraphNet::new(env.env(), config, Device::Cpu, Kind::Float, &mut rng)?);
/// let graph = RbModel::nodes_50_to_100().draw(&mut rng)?;
/// let by_both = Solver::new(&env, &policy).batches(2).solve(&graph, &mut rng, |_| ())?;
/// let by_search =
///     Solver::search_alone(Problem::IndependentSet).seconds(0.1).solve(&graph, &mut rng, |_| ())?;
/// assert_eq!(Problem::IndependentSet.check(&graph, &by_both.nodes)?, by_both.size);
/// assert!(by_search.history.last().is_some_and(|last| last.size == by_search.size));
/// # Ok::<(), gfn::Error>(())
/// ```
pub struct Solver<'a> {
    problem: Problem,
    /// The policy, and the environment on which it was trained; `None` for local search alone.
    policy: Option<(&'a GraphProblem, &'a dyn Policy<GraphEnv>)>,
    budget: Budget,
    at_once: usize,
    rounds: usize,
}

#[derive(Clone, Copy, Debug)]
enum Budget {
    Seconds(f64),
    Batches(usize),
}

/// The method that found a solution.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The solution is a sample of the policy.
    Sample,
    /// The solution was found by local search, which started from a sample or from a random solution.
    Search,
}

/// A record of a solution that is better than all solutions before it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Progress {
    /// The seconds from the start of the solver until the solution was found.
    pub seconds: f64,
    /// The size of the solution.
    pub size: usize,
    /// The method that found the solution.
    pub origin: Origin,
}

/// The best solution of a graph, and how it was found.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SolverResult {
    /// The nodes of the solution, in ascending order.
    pub nodes: Vec<u32>,
    /// The size of the solution, as defined by [`Problem::check`].
    pub size: usize,
    /// A record of each solution that was better than all solutions before it. The last record is of the
    /// returned solution.
    pub history: Vec<Progress>,
    /// The number of samples that were drawn from the policy.
    pub samples: usize,
    /// The seconds that the solver took in total.
    pub seconds: f64,
    /// The seconds that the solver spent on sampling the policy.
    pub sampling_s: f64,
}

impl Solver<'static> {
    /// Builds a solver without a policy. The solver runs local search from random solutions, one after
    /// another.
    #[must_use]
    pub fn search_alone(problem: Problem) -> Self {
        Self { problem, policy: None, budget: Budget::Seconds(1.0), at_once: 32, rounds: 10_000 }
    }
}

impl<'a> Solver<'a> {
    /// Builds a solver that samples a policy and runs local search. The default time limit is one second.
    /// `rules` is the environment on which the policy was trained.
    #[must_use]
    pub fn new(rules: &'a GraphProblem, policy: &'a dyn Policy<GraphEnv>) -> Self {
        let Solver { problem, budget, at_once, rounds, .. } = Solver::search_alone(rules.problem());
        Self { problem, policy: Some((rules, policy)), budget, at_once, rounds }
    }

    /// Sets a time limit in seconds. Up to a tenth of this time is used for local search from a random
    /// solution, so that a first solution is found early. A batch is sampled only if sampling is expected to
    /// take at most half of the remaining time, judged by earlier batches. The first sample may exceed the
    /// limit, because its time isn't known in advance. The solution depends on the machine's speed.
    #[must_use]
    pub fn seconds(mut self, seconds: f64) -> Self {
        self.budget = Budget::Seconds(seconds);
        self
    }

    /// Sets the number of batches after which the solver stops. Without a policy it is the number of random
    /// starts. The same random stream gives the same solution.
    #[must_use]
    pub fn batches(mut self, batches: usize) -> Self {
        self.budget = Budget::Batches(batches);
        self
    }

    /// Sets the number of samples per batch (default: 32). With a time limit, this is the largest number of
    /// samples per batch: the first batch has one sample, and later batches become larger while time allows.
    #[must_use]
    pub fn at_once(mut self, at_once: usize) -> Self {
        self.at_once = at_once;
        self
    }

    /// Sets the number of rounds of local search from each sample and from each random solution (default:
    /// 10,000).
    #[must_use]
    pub fn rounds(mut self, rounds: usize) -> Self {
        self.rounds = rounds;
        self
    }

    /// Searches for the best solution of a graph, on the calling thread. `progress` is called with each
    /// solution that is better than all solutions before it.
    ///
    /// # Errors
    /// [`Error::Config`] for a budget or a batch of 0; errors of [`Instances::new`] and of the policy.
    pub fn solve(
        &self,
        graph: &GraphState,
        rng: &mut Rng,
        progress: impl FnMut(&Progress),
    ) -> Result<SolverResult> {
        let started = Instant::now();
        let instances = Instances::new(vec![graph.clone()])?;
        let Some((rules, policy)) = self.policy else { return self.run(started, graph, rng, None, progress) };
        let problem = rules.on(&instances)?;
        let mut draw = |n: usize, rng: &mut Rng| {
            let walks = Sampler::new(problem.env(), policy).walks(n, rng)?;
            Ok(walks.terminal.graphs().iter().map(|state| rules.problem().solution(state)).collect())
        };
        self.run(started, graph, rng, Some(&mut draw), progress)
    }

    /// Searches as [`solve`](Self::solve) does, but with solutions from `draw` instead of samples of a
    /// policy.
    ///
    /// # Errors
    /// [`Error::Config`] for a budget or a batch of 0, and for a solver with a policy; errors of
    /// [`Instances::new`] and of `draw`, and errors of [`Problem::check`] for a solution from `draw`.
    pub fn solve_from(
        &self,
        graph: &GraphState,
        rng: &mut Rng,
        mut draw: impl FnMut(usize, &mut Rng) -> Result<Vec<Vec<u32>>>,
        progress: impl FnMut(&Progress),
    ) -> Result<SolverResult> {
        if self.policy.is_some() {
            let expected = "a solver from `Solver::search_alone`, because `draw` replaces the policy";
            return Err(Error::config("the solver of `solve_from`", "a solver with a policy", expected));
        }
        Instances::new(vec![graph.clone()])?;
        self.run(Instant::now(), graph, rng, Some(&mut draw), progress)
    }

    fn run(
        &self,
        started: Instant,
        graph: &GraphState,
        rng: &mut Rng,
        mut draw: Option<Draw<'_>>,
        progress: impl FnMut(&Progress),
    ) -> Result<SolverResult> {
        let end = match self.budget {
            Budget::Seconds(seconds) if seconds > 0.0 => Duration::try_from_secs_f64(seconds).ok(),
            Budget::Batches(1..) => Some(Duration::MAX),
            _ => None,
        };
        let (Some(limit), 1.., 1..) = (end, self.at_once, self.rounds) else {
            let got =
                format!("{:?} of {} samples, {} rounds from each", self.budget, self.at_once, self.rounds);
            return Err(Error::config(
                "the budget of a solver",
                got,
                "a time above 0 or at least one batch, and at least one sample and one round",
            ));
        };
        let mut run = Run {
            solver: self,
            graph,
            search: SolutionSearch::new(self.problem, graph, rng),
            started,
            end: started.checked_add(limit),
            best: None,
            solved: SolverResult {
                nodes: Vec::new(),
                size: 0,
                history: Vec::new(),
                samples: 0,
                seconds: 0.0,
                sampling_s: 0.0,
            },
            progress,
        };
        // The search starts at a random solution. It is recorded first, so that a solution is known early
        // even if samples take long.
        run.record_search();
        if draw.is_some() && run.end.is_some() {
            let end = std::mem::replace(&mut run.end, started.checked_add(limit / 10));
            run.search(rng);
            run.end = end;
        }
        let mut at_once = if run.end.is_some() { 1 } else { self.at_once };
        for batch in 0.. {
            if run.is_over(batch) {
                break;
            }
            match &mut draw {
                Some(draw) if run.has_time_for(1) => {
                    while at_once > 1 && !run.has_time_for(at_once) {
                        at_once /= 2;
                    }
                    run.sample(draw, at_once, rng)?;
                    at_once = (2 * at_once).min(self.at_once);
                }
                _ => {
                    if batch > 0 {
                        run.search.restart(rng);
                    }
                    run.search(rng);
                }
            }
        }
        let mut solved = run.solved;
        solved.size = self.problem.check(graph, &solved.nodes)?;
        solved.seconds = started.elapsed().as_secs_f64();
        Ok(solved)
    }
}

/// A function that draws solutions. The first argument is the number of solutions.
type Draw<'a> = &'a mut dyn FnMut(usize, &mut Rng) -> Result<Vec<Vec<u32>>>;

/// The state of a running call of [`Solver::solve`].
struct Run<'a, F> {
    solver: &'a Solver<'a>,
    graph: &'a GraphState,
    search: SolutionSearch,
    started: Instant,
    /// The time at which the search must end; `None` if there is no time limit.
    end: Option<Instant>,
    best: Option<usize>,
    solved: SolverResult,
    progress: F,
}

impl<F: FnMut(&Progress)> Run<'_, F> {
    fn is_over(&self, batch: usize) -> bool {
        match self.solver.budget {
            Budget::Seconds(_) => self.end.is_some_and(|end| Instant::now() >= end),
            Budget::Batches(most) => batch >= most,
        }
    }

    /// Returns `true` if `n` samples can be drawn in at most half of the remaining time. The other half is
    /// for local search. The time of a sample is estimated from earlier samples.
    fn has_time_for(&self, n: usize) -> bool {
        let left = self.end.map(|end| end.saturating_duration_since(Instant::now()).as_secs_f64());
        let one = self.solved.sampling_s / self.solved.samples.max(1) as f64;
        left.is_none_or(|left| 2.0 * one * n as f64 <= left)
    }

    fn sample(&mut self, draw: &mut Draw<'_>, n: usize, rng: &mut Rng) -> Result<()> {
        let began = Instant::now();
        let mut sampled = draw(n, rng)?;
        self.solved.sampling_s += began.elapsed().as_secs_f64();
        self.solved.samples += n;
        let mut seen = HashSet::new();
        sampled.retain(|nodes| seen.insert(nodes.clone()));
        for nodes in &sampled {
            self.record_solution(self.solver.problem.check(self.graph, nodes)?, nodes, Origin::Sample);
        }
        for nodes in &sampled {
            self.search.start(nodes, rng)?;
            self.search(rng);
        }
        Ok(())
    }

    /// Runs local search from the current solution, for the configured number of rounds or until the time
    /// limit.
    fn search(&mut self, rng: &mut Rng) {
        let mut left = self.solver.rounds;
        while left > 0 && self.end.is_none_or(|end| Instant::now() < end) {
            let rounds = left.min(ROUNDS_PER_CHECK);
            match self.end {
                Some(end) => self.search.run_until(end, rounds, rng),
                None => self.search.run(rounds, rng),
            }
            left -= rounds;
            self.record_search();
        }
        self.record_search();
    }

    fn record_search(&mut self) {
        let size = self.search.size();
        if self.best.is_none_or(|best| self.solver.problem.is_better(size, best)) {
            let nodes = self.search.best().to_vec();
            self.record_solution(size, &nodes, Origin::Search);
        }
    }

    fn record_solution(&mut self, size: usize, nodes: &[u32], origin: Origin) {
        if self.best.is_some_and(|best| !self.solver.problem.is_better(size, best)) {
            return;
        }
        self.best = Some(size);
        self.solved.nodes = nodes.to_vec();
        let progress = Progress { seconds: self.started.elapsed().as_secs_f64(), size, origin };
        self.solved.history.push(progress);
        (self.progress)(&progress);
    }
}
