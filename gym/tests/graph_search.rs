//! Tests of local search for solutions, of training on its results, and of a solver that uses search and a
//! policy on one graph.

use gfn::env::StateGraph;
use gfn::graph::{GraphEnv, GraphState};
use gfn::metrics::Distances;
use gfn::nn::{EstimatorsConfig, GraphNet, GraphNetConfig};
use gfn::objective::{Advantage, DetailedBalance, Objective, PolicyGradient, StateFlow};
use gfn::policy::{GraphPolicy, UniformPolicy};
use gfn::train::{BatchRequest, Source, Trainer, TrainerConfig};
use gfn::{Result, Rng};
use gfn_gym::graph_problems::{
    GraphProblem, Instances, Problem, RbModel, SizeReward, barabasi_albert, erdos_renyi, maximum_clique,
    maximum_independent_set,
};
use gfn_solver::{Origin, SearchSource, SolutionSearch, Solver, greedy, improve};
use tch::{Device, Kind};

/// Returns `true` if no node can be added to a solution. For a dominating set, returns `true` if no node can
/// be removed. A cut has no such condition, so the result is always `true`.
fn is_maximal_or_minimal(problem: Problem, graph: &GraphState, nodes: &[u32]) -> bool {
    let solves = |nodes: Vec<u32>| problem.check(graph, &nodes).is_ok();
    match problem {
        Problem::Cut => true,
        Problem::DominatingSet => {
            nodes.iter().all(|&a| !solves(nodes.iter().copied().filter(|&b| b != a).collect::<Vec<_>>()))
        }
        _ => (0..graph.n_nodes() as u32)
            .filter(|a| !nodes.contains(a))
            .all(|a| !solves(nodes.iter().copied().chain([a]).collect())),
    }
}

/// Builds an environment whose input graph, a single node, isn't the graph that the test solves.
fn on_another_graph(problem: Problem) -> GraphProblem {
    GraphProblem::new(problem, &Instances::all(1).unwrap()).unwrap()
}

/// Checks four properties of a search: its sizes agree with `Problem::check`, its solutions are those that
/// the environment builds, no solution is worse than the first one, and equal random numbers give equal
/// results.
#[test]
fn search_keeps_solutions_and_counts_right() {
    for problem in Problem::ALL {
        let mut rng = Rng::seeded(5);
        for (n, p) in [(0, 0.5), (1, 0.5), (2, 1.0), (7, 0.0), (9, 1.0), (25, 0.1), (40, 0.3), (70, 0.7)] {
            let graph = erdos_renyi(n, p, &mut rng).unwrap();
            let run = |mut rng: Rng| {
                let mut search = SolutionSearch::new(problem, &graph, &mut rng);
                let mut sizes = Vec::new();
                for _ in 0..60 {
                    search.run(5, &mut rng);
                    assert_eq!(problem.check(&graph, search.best()).unwrap(), search.size(), "{problem}");
                    assert!(
                        is_maximal_or_minimal(problem, &graph, search.best()),
                        "{problem} {:?} of {graph}",
                        search.best()
                    );
                    sizes.push(search.size());
                }
                let better = |pair: &[usize]| pair[0] == pair[1] || problem.is_better(pair[1], pair[0]);
                assert!(sizes.windows(2).all(better), "{sizes:?}");
                // A search that starts from a given solution must never return a worse solution.
                let first = search.best().to_vec();
                search.restart(&mut rng);
                search.start(&first, &mut rng).unwrap();
                assert!(!problem.is_better(sizes[59], search.size()));
                (first, sizes)
            };
            let stream = rng.split();
            assert_eq!(run(stream.clone()), run(stream));
        }
        let graph = erdos_renyi(6, 1.0, &mut rng).unwrap();
        let mut search = SolutionSearch::new(problem, &graph, &mut rng);
        assert!(search.start(&[6], &mut rng).is_err());
        // The set of all nodes is a dominating set, but not a minimal one.
        if problem == Problem::DominatingSet {
            let all: Vec<u32> = (0..6).collect();
            assert_eq!(improve(problem, &graph, &all, 0, &mut rng).unwrap().len(), 1);
        }
    }
}

/// Checks that local search alone finds the optimum of graphs that are small enough for branch and bound to
/// prove the optimum.
#[test]
fn search_finds_optima_of_harder_graphs() {
    let mut rng = Rng::seeded(2);
    for _ in 0..3 {
        let graph = RbModel::nodes_50_to_100().draw(&mut rng).unwrap();
        let mut search = SolutionSearch::new(Problem::IndependentSet, &graph, &mut rng);
        search.run(20_000, &mut rng);
        assert_eq!(Some(search.size()), maximum_independent_set(&graph, u64::MAX).map(|nodes| nodes.len()));
        let graph = erdos_renyi(90, 0.6, &mut rng).unwrap();
        let mut search = SolutionSearch::new(Problem::Clique, &graph, &mut rng);
        search.run(20_000, &mut rng);
        assert_eq!(Some(search.size()), maximum_clique(&graph, u64::MAX).map(|nodes| nodes.len()));
    }
    // The optima of a grid of 30 x 30 nodes are known. An independent set has half of the nodes, a cut has
    // all edges, and a dominating set has 32 * 32 / 5 - 4 nodes, rounded down (Goncalves et al. 2011).
    let side = 30u32;
    let mut grid = GraphState::undirected(900);
    for (a, b) in (0..900).flat_map(|a| [(a, a + 1), (a, a + side)]) {
        if b < 900 && (b == a + side || b % side > 0) {
            grid.add_edge(a, b, gfn::graph::Edge::default()).unwrap();
        }
    }
    for (problem, optimum, off) in [
        (Problem::IndependentSet, 450, 12),
        (Problem::Cut, grid.n_edges(), 70),
        (Problem::DominatingSet, 200, 20),
    ] {
        let mut search = SolutionSearch::new(problem, &grid, &mut rng);
        search.run(20_000, &mut rng);
        assert!(search.size().abs_diff(optimum) <= off, "{problem}: {}", search.size());
        assert!(!problem.is_better(search.size(), optimum));
    }
}

/// Checks, on graphs of the published sizes, that local search from the greedy solution returns solutions
/// that are never worse, and that are better on some graph of each problem.
#[test]
fn search_improves_greedy_solutions_of_published_graphs() {
    let rng = &mut Rng::seeded(6);
    for problem in Problem::ALL {
        let mut is_better = false;
        for _ in 0..3 {
            let graph = match problem {
                Problem::IndependentSet | Problem::Clique => RbModel::nodes_200_to_300().draw(rng),
                Problem::DominatingSet | Problem::Cut => barabasi_albert(250, 4, rng),
            };
            let graph = graph.unwrap();
            let first = greedy(problem, &graph).unwrap();
            let size = problem.check(&graph, &first).unwrap();
            let found = improve(problem, &graph, &first, 2_000, rng).unwrap();
            let improved = problem.check(&graph, &found).unwrap();
            assert!(!problem.is_better(size, improved), "{problem}: {size}, then {improved}");
            is_better |= problem.is_better(improved, size);
        }
        assert!(is_better, "{problem}");
    }
}

/// Tests the search for a planted clique in a graph whose complement is too large to be stored as lists of
/// neighbours.
#[test]
fn cliques_of_large_graphs_are_found_without_lists_of_the_complement() {
    let mut graph = GraphState::undirected(6_000);
    for (a, b) in
        (0..12).flat_map(|b| (0..b).map(move |a| (400 * a, 400 * b))).chain((0..5_999).map(|a| (a, a + 1)))
    {
        graph.add_edge(a, b, gfn::graph::Edge::default()).unwrap();
    }
    let rng = &mut Rng::seeded(1);
    let mut search = SolutionSearch::starting_at(Problem::Clique, &graph, &[400, 4_400], rng).unwrap();
    search.run(50, rng);
    assert_eq!(Problem::Clique.check(&graph, search.best()).unwrap(), search.size());
    assert!(search.size() >= 12, "{}", search.size());
}

type ProblemTrainer = Trainer<GraphEnv>;

fn trainer(problem: Problem, objective: impl Objective + 'static, rounds: usize) -> Result<ProblemTrainer> {
    let mut rng = Rng::seeded(4);
    let graphs = (0..2).map(|_| erdos_renyi(7, 0.35, &mut rng)).collect::<Result<_>>()?;
    let env = GraphProblem::new(problem, &Instances::new(graphs)?)?.into_env();
    let estimators = EstimatorsConfig::with_flow(true);
    let network = GraphNetConfig { embedding: 32, layers: 3, estimators, ..GraphNetConfig::default() };
    let policy = GraphPolicy(GraphNet::new(&env, network, Device::Cpu, Kind::Float, &mut rng)?);
    let config = TrainerConfig { batch: 32, ..TrainerConfig::default() };
    let reward = SizeReward::new(problem, 0.7)?;
    Trainer::new(env, reward, policy, objective, config, rng)?
        .with_source(0.5, SearchSource::new(problem, rounds)?)
}

/// Returns the exact total variation between the policy and the target, averaged over the two input graphs of
/// the environment.
fn distance(problem: Problem, trainer: &ProblemTrainer) -> f64 {
    let reward = SizeReward::new(problem, 0.7).unwrap();
    let of = |instance| {
        let space = StateGraph::build_of(trainer.env(), instance, 10_000).unwrap();
        let target = space.target_distribution(&reward, None).unwrap();
        let learned = space.terminating_distribution(trainer.env(), trainer.policy(), None).unwrap();
        Distances::between(&learned.probs, &target.probs).unwrap().tv
    };
    (of(0) + of(1)) / 2.0
}

/// Checks that the policy learns to sample the target, although half of each batch are trajectories to
/// improved solutions, which the policy rarely samples.
#[test]
fn objectives_that_learn_from_any_trajectory_stay_exact() {
    let objective = DetailedBalance { flow: StateFlow::ForwardLooking };
    for problem in [Problem::IndependentSet, Problem::DominatingSet] {
        let mut trainer = trainer(problem, objective, 30).unwrap();
        let before = distance(problem, &trainer);
        for step in 0..600 {
            trainer.step().unwrap();
            if step % 100 == 0 {
                let latest = trainer.latest().unwrap();
                let sizes = |range: std::ops::Range<usize>| {
                    let states = &latest.terminal_states().graphs()[range];
                    states.iter().map(|state| problem.solution(state).len()).sum::<usize>()
                };
                // The first half of a batch ends in samples of the policy, the second half in improved
                // solutions.
                let sampled = sizes(0..16);
                let improved = sizes(16..32);
                assert!(
                    improved == sampled || problem.is_better(improved, sampled),
                    "{problem}: {sampled}, {improved}"
                );
            }
        }
        let after = distance(problem, &trainer);
        assert!(after < 0.05 && after < before / 2.0, "{problem}: {before} before, {after} after");
    }
}

/// Checks that on-policy objectives refuse trajectories to improved solutions. A source with zero rounds of
/// search must be refused, too.
#[test]
fn on_policy_objectives_refuse_improved_trajectories() {
    let mut trainer =
        trainer(Problem::Clique, PolicyGradient::new(Advantage::RewardToGo).unwrap(), 5).unwrap();
    let message = trainer.step().unwrap_err().to_string();
    assert!(message.contains("trajectories of the policy itself"), "{message}");
    assert!(SearchSource::new(Problem::Cut, 0).unwrap_err().to_string().contains("rounds of local search"));
}

/// Checks that a source that searches for solutions of another problem is refused, because these solutions
/// aren't states of the environment.
#[test]
fn a_source_for_another_problem_is_refused() {
    let mut source = SearchSource::new(Problem::Cut, 5).unwrap();
    let trainer = trainer(Problem::IndependentSet, DetailedBalance::default(), 5).unwrap();
    let drawn = source.draw(BatchRequest::exactly(8), trainer.context(), &mut Rng::seeded(0));
    let message = drawn.map(|_| ()).unwrap_err().to_string();
    assert!(message.contains("the same problem as the environment"), "{message}");
}

/// Checks that every improved solution is a reachable state, to which a legal trajectory leads forwards and
/// backwards.
#[test]
fn improved_solutions_end_legal_trajectories() {
    for problem in Problem::ALL {
        let mut trainer = trainer(problem, DetailedBalance::default(), 20).unwrap();
        trainer.step().unwrap();
        let env = trainer.env();
        let latest = trainer.latest().unwrap();
        for instance in 0..2 {
            let space = StateGraph::build_of(env, instance, 10_000).unwrap();
            let graphs = latest.terminal_states().graphs();
            let of: Vec<_> = graphs.iter().filter(|state| state.instance() == instance).cloned().collect();
            assert!(!of.is_empty());
            let ends = space.indices(env, &of.into());
            assert!(ends.iter().all(|end| end.is_some_and(|end| space.can_end(end))), "{problem}");
        }
        // A replay of the actions must reach the same objects.
        let again = latest.walks(env).unwrap().replay(env).unwrap();
        assert_eq!(again.terminal_states(), latest.terminal_states());
    }
}

#[test]
fn a_solver_gives_the_best_that_was_found_and_says_how() {
    let mut rng = Rng::seeded(8);
    let graph = RbModel::nodes_50_to_100().draw(&mut rng).unwrap();
    for problem in Problem::ALL {
        let trained = on_another_graph(problem);
        let solver = Solver::new(&trained, &UniformPolicy).batches(2).at_once(3).rounds(500);
        let mut reported = Vec::new();
        let solved = solver.solve(&graph, &mut Rng::seeded(1), |progress| reported.push(*progress)).unwrap();
        assert_eq!(problem.check(&graph, &solved.nodes).unwrap(), solved.size);
        assert_eq!((&solved.history, solved.samples), (&reported, 6));
        assert!(reported.windows(2).all(|pair| problem.is_better(pair[1].size, pair[0].size)));
        assert_eq!((reported[reported.len() - 1].size, reported[0].origin), (solved.size, Origin::Search));
        let again = solver.solve(&graph, &mut Rng::seeded(1), |_| ()).unwrap();
        assert_eq!(again.nodes, solved.nodes);
        // The solver must return soon after its time limit.
        let solved =
            Solver::new(&trained, &UniformPolicy).seconds(0.2).solve(&graph, &mut rng, |_| ()).unwrap();
        assert!(solved.samples > 0 && solved.seconds < 5.0, "{}", solved.seconds);
        assert_eq!(problem.check(&graph, &solved.nodes).unwrap(), solved.size);
        let alone =
            Solver::search_alone(problem).batches(2).rounds(300).solve(&graph, &mut rng, |_| ()).unwrap();
        assert_eq!((problem.check(&graph, &alone.nodes).unwrap(), alone.samples), (alone.size, 0));
    }
    let empty =
        Solver::search_alone(Problem::Cut).batches(1).solve(&GraphState::undirected(0), &mut rng, |_| ());
    assert_eq!(empty.unwrap().size, 0);
    for solver in [
        Solver::search_alone(Problem::Cut).seconds(0.0),
        Solver::search_alone(Problem::Cut).seconds(f64::NAN),
        Solver::search_alone(Problem::Cut).batches(0),
        Solver::search_alone(Problem::Cut).rounds(0),
        Solver::search_alone(Problem::Cut).at_once(0),
    ] {
        let message = solver.solve(&graph, &mut rng, |_| ()).unwrap_err().to_string();
        assert!(message.contains("budget of a solver"), "{message}");
    }
    assert!(Solver::search_alone(Problem::Cut).solve(&GraphState::directed(3), &mut rng, |_| ()).is_err());
}

/// Checks the origin that is reported for the best solution. Here the best of many samples is better than the
/// first solution of the search, so the origin must be the samples.
#[test]
fn samples_are_noted_as_such() {
    let graph = RbModel::nodes_50_to_100().draw(&mut Rng::seeded(3)).unwrap();
    let trained = on_another_graph(Problem::Cut);
    let solver = Solver::new(&trained, &UniformPolicy).batches(1).at_once(200).rounds(1);
    let solved = solver.solve(&graph, &mut Rng::seeded(0), |_| ()).unwrap();
    assert!(solved.history.iter().any(|one| one.origin == Origin::Sample), "{:?}", solved.history);
}

#[test]
fn a_source_draws_as_many_as_are_wanted() {
    let mut trainer = trainer(Problem::Cut, DetailedBalance::default(), 3).unwrap();
    trainer.step().unwrap();
    let mut source = SearchSource::new(Problem::Cut, 2).unwrap().backward_by_policy();
    let draw = |source: &mut SearchSource, seed| {
        let drawn = source
            .draw(BatchRequest::exactly(5), trainer.context(), &mut Rng::seeded(seed))
            .unwrap()
            .unwrap();
        drawn.terminal_states().clone()
    };
    let drawn = draw(&mut source, 1);
    assert_eq!(drawn.graphs().len(), 5);
    assert_eq!(drawn, draw(&mut source, 1));
}
