//! Tests of problems on input graphs: the contract of the environment, and its solutions compared with a
//! search over all subsets of nodes.

use std::collections::BTreeSet;

use gfn::Rng;
use gfn::contract::{Budget, check_action_type, check_graph_env};
use gfn::env::{Direction, Env, Reward, StateGraph};
use gfn::graph::{GraphEnv, GraphState};
use gfn::policy::UniformPolicy;
use gfn_gym::graph_problems::{
    GraphProblem, Instances, MarkNode, Problem, SizeReward, barabasi_albert, erdos_renyi,
};
use gfn_solver::{greedy, improve};

/// Returns all graphs of up to 5 nodes, and some larger graphs.
fn graphs() -> Instances {
    let mut rng = Rng::seeded(11);
    let small = (0..=5).map(|n| Instances::all(n).unwrap()).fold(Instances::default(), Instances::and);
    let mut drawn: Vec<GraphState> = (7..=9)
        .flat_map(|n| [0.2, 0.5, 0.8].map(|p| (n, p)))
        .map(|(n, p)| erdos_renyi(n, p, &mut rng).unwrap())
        .collect();
    drawn.push(barabasi_albert(9, 2, &mut rng).unwrap());
    small.and(Instances::new(drawn).unwrap())
}

fn env(problem: Problem) -> GraphEnv {
    GraphProblem::new(problem, &graphs()).unwrap().into_env()
}

/// Lists the solutions that the environment should build, with their sizes. Each set of nodes, stored as
/// bits, is tested by the definition of the problem.
fn brute_force(problem: Problem, graph: &GraphState) -> BTreeSet<(u32, usize)> {
    let n = graph.n_nodes() as u32;
    let near: Vec<u32> =
        (0..n).map(|a| (0..n).filter(|&b| graph.has_edge(a, b)).map(|b| 1 << b).sum()).collect();
    let members = |set: u32| (0..n).filter(move |a| set >> a & 1 == 1);
    let all = (1u32 << n) - 1;
    let solves = |set: u32| match problem {
        Problem::IndependentSet => members(set).all(|a| near[a as usize] & set == 0),
        Problem::Clique => members(set).all(|a| near[a as usize] | 1 << a | !set == u32::MAX),
        Problem::DominatingSet => {
            members(set).fold(set, |covered, a| covered | near[a as usize]) & all == all
        }
        Problem::Cut => true,
    };
    let best_of_its_kind = |set: u32| match problem {
        Problem::IndependentSet | Problem::Clique => members(all & !set).all(|a| !solves(set | 1 << a)),
        Problem::DominatingSet => members(set).all(|a| !solves(set & !(1 << a))),
        Problem::Cut => true,
    };
    let size = |set: u32| match problem {
        Problem::Cut => members(set).map(|a| (near[a as usize] & !set).count_ones() as usize).sum(),
        _ => set.count_ones() as usize,
    };
    (0..=all).filter(|&set| solves(set) && best_of_its_kind(set)).map(|set| (set, size(set))).collect()
}

#[test]
fn environments_keep_their_contract() {
    for problem in Problem::ALL {
        let env = env(problem);
        check_graph_env(&env, Budget::thorough().with_walks(120), &mut Rng::seeded(1)).unwrap();
        for instance in (0..env.n_instances()).step_by(7) {
            let space = StateGraph::build_of(&env, instance, 1_000).unwrap();
            check_action_type(&MarkNode(problem), env.actions().semantics(), space.states().graphs())
                .unwrap();
        }
    }
}

#[test]
fn all_solutions_and_no_others_are_built() {
    let mut solutions = 0;
    for problem in Problem::ALL {
        let env = env(problem);
        let graphs = graphs();
        let reward = SizeReward::new(problem, 0.5).unwrap();
        let sign = if problem.is_minimised() { -0.5 } else { 0.5 };
        for (instance, graph) in (0..).zip(graphs.graphs()) {
            let space = StateGraph::build_of(&env, instance, 1_000).unwrap();
            let rewards = reward.log_reward(space.states(), None).unwrap();
            let built = space.ends().into_iter().map(|end| {
                let nodes = problem.solution(&space.states().graphs()[end]);
                let size = problem.check(graph, &nodes).unwrap();
                assert_eq!(rewards[end], sign * size as f64);
                (nodes.iter().map(|a| 1 << a).sum(), size)
            });
            let built = built.collect::<Vec<_>>();
            let expected = brute_force(problem, graph);
            assert_eq!(built.len(), expected.len(), "{problem} of {graph}");
            assert_eq!(built.into_iter().collect::<BTreeSet<_>>(), expected, "{problem} of {graph}");
            solutions += expected.len();
            // The flow through the initial state is Z only if forward and backward masks match.
            let flows = space.exact_flows(&env, &UniformPolicy, &reward, None).unwrap();
            let log_z = expected.iter().map(|&(_, size)| (sign * size as f64).exp()).sum::<f64>().ln();
            assert!((flows.log_z - log_z).abs() < 1e-9);
        }
    }
    assert!(solutions > 2_000, "{solutions}");
}

/// Checks that the states of the clique problem mark nodes (as chosen, excluded or undecided) in the same
/// ways as the states of the independent-set problem on the complement.
#[test]
fn cliques_are_independent_sets_of_the_complement() {
    let (graphs, complements) = (graphs(), graphs().complements().unwrap());
    assert_eq!(complements.complements().unwrap(), graphs);
    let [cliques, sets, others] = [
        (Problem::Clique, &graphs),
        (Problem::IndependentSet, &complements),
        (Problem::IndependentSet, &graphs),
    ]
    .map(|(problem, graphs)| GraphProblem::new(problem, graphs).unwrap().into_env());
    let mut differ = 0;
    for instance in 0..cliques.n_instances() {
        let [cliques, sets, others] = [&cliques, &sets, &others].map(|env| {
            let space = StateGraph::build_of(env, instance, 1_000).unwrap();
            let marks = space.states().graphs().iter().map(|state| state.nodes().collect::<Vec<_>>());
            marks.collect::<std::collections::HashSet<_>>()
        });
        assert_eq!(cliques, sets, "graph {instance}");
        differ += usize::from(others != cliques);
    }
    assert!(differ > 40, "{differ}");
}

/// Checks that the partial reward of an unfinished state is the reward of its solution so far. Finishing this
/// solution therefore adds nothing.
#[test]
fn partial_rewards_are_those_of_partial_solutions() {
    let graph = Instances::new(vec![erdos_renyi(8, 0.4, &mut Rng::seeded(5)).unwrap()]).unwrap();
    for problem in Problem::ALL {
        let env = GraphProblem::new(problem, &graph).unwrap().into_env();
        let reward = SizeReward::new(problem, 2.0).unwrap();
        let states = env.initial(&[0]);
        let start = reward.partial_log_reward(&states, None).unwrap().unwrap();
        assert_eq!(start, [if problem.is_minimised() { -16.0 } else { 0.0 }]);
        let space = StateGraph::build(&env, 1_000).unwrap();
        let partial = reward.partial_log_reward(space.states(), None).unwrap().unwrap();
        assert_eq!(partial, reward.log_reward(space.states(), None).unwrap());
    }
    for beta in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(SizeReward::new(Problem::Clique, beta).is_err(), "{beta}");
    }
}

/// Checks that `Problem::check` refuses exactly the sets that aren't solutions by the brute-force list, and
/// that it ignores the marks of a state's nodes.
#[test]
fn the_checker_refuses_what_is_no_solution() {
    let graphs = graphs();
    for problem in Problem::ALL {
        let mut refused = 0;
        for graph in graphs.graphs().iter().filter(|graph| graph.n_nodes() == 5) {
            let best = brute_force(problem, graph);
            for set in 0..32u32 {
                let nodes: Vec<u32> = (0..5).filter(|a| set >> a & 1 == 1).rev().collect();
                // A set is a solution if it is a subset of a maximal solution, or (for dominating sets) a
                // superset of a minimal solution.
                let is_solution = best.iter().any(|&(other, _)| match problem {
                    Problem::DominatingSet => other & set == other,
                    _ => other & set == set,
                });
                assert_eq!(
                    problem.check(graph, &nodes).is_ok(),
                    is_solution,
                    "{problem} {nodes:?} of {graph}"
                );
                refused += usize::from(!is_solution);
            }
            assert!(
                problem.check(graph, &[5]).unwrap_err().to_string().contains("node 5 is beyond the 5 nodes")
            );
            assert!(
                problem.check(graph, &[0, 1, 0]).unwrap_err().to_string().contains("node 0 is named twice")
            );
        }
        assert_eq!(refused == 0, problem == Problem::Cut);
    }
}

/// Checks that an action that isn't legal in a state is an error.
#[test]
fn edits_that_are_no_moves_are_refused() {
    use gfn::graph::{GraphActionType, Move};
    let graph = erdos_renyi(5, 1.0, &mut Rng::seeded(0)).unwrap();
    let marking = MarkNode(Problem::IndependentSet);
    let mut state = graph.clone();
    let to = |a| Move { a, ..Move::default() };
    assert!(marking.apply(Direction::Backward, &mut state, to(0)).is_err());
    assert!(marking.apply(Direction::Forward, &mut state, to(5)).is_err());
    assert_eq!(state, graph);
    marking.apply(Direction::Forward, &mut state, to(0)).unwrap();
    // Node 0 is already chosen, and node 1 is excluded by this choice. Choosing either node must be an error.
    for a in [0, 1] {
        assert!(marking.apply(Direction::Forward, &mut state, to(a)).is_err());
    }
    assert!(marking.apply(Direction::Backward, &mut state, to(1)).is_err());
}

#[test]
fn greedy_and_local_search_find_solutions_and_the_best_ones_of_small_graphs() {
    let mut rng = Rng::seeded(3);
    for problem in Problem::ALL {
        let mut greedy_is_best = 0;
        let mut graphs_seen = 0;
        for graph in graphs().graphs() {
            let sizes = brute_force(problem, graph).into_iter().map(|(_, size)| size);
            let best = if problem.is_minimised() { sizes.min() } else { sizes.max() }.unwrap();
            let first = greedy(problem, graph).unwrap();
            let size = problem.check(graph, &first).unwrap();
            let found = improve(problem, graph, &first, 200, &mut rng).unwrap();
            assert_eq!(problem.check(graph, &found).unwrap(), best, "{problem} of {graph}");
            greedy_is_best += usize::from(size == best);
            graphs_seen += 1;
        }
        assert!(greedy_is_best * 10 > graphs_seen * 7, "{problem}: {greedy_is_best} of {graphs_seen}");
    }
    let graph = erdos_renyi(5, 1.0, &mut rng).unwrap();
    assert!(improve(Problem::IndependentSet, &graph, &[0, 1], 1, &mut rng).is_err());
    let env = GraphProblem::new(Problem::DominatingSet, &Instances::all(1).unwrap()).unwrap().into_env();
    // The graph is a single node. Every dominating set contains this node, so the initial state already marks
    // it as chosen. `greedy` must refuse a graph with marked nodes.
    assert!(
        greedy(Problem::DominatingSet, &env.initial_graphs()[0])
            .unwrap_err()
            .to_string()
            .contains("nodes are all undecided")
    );
}

#[test]
fn repeated_and_missing_graphs_are_refused() {
    let one = Instances::all(1).unwrap();
    assert!(
        GraphProblem::new(Problem::Cut, &Instances::default())
            .unwrap_err()
            .to_string()
            .contains("at least one input graph")
    );
    let twice = GraphProblem::new(Problem::Cut, &one.clone().and(one)).unwrap_err().to_string();
    assert!(twice.contains("distinct"), "{twice}");
}
