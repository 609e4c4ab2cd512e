//! Tests an environment in which coloured graphs grow node by node, up to isomorphism. Its states, actions,
//! |Aut| and terminal probabilities are compared with those that exact rational arithmetic gave
//! (`golden/symmetry.json`).

use gfn::objective::Quantities;
use std::collections::BTreeSet;

use crate::spaces::ColouredGraphs;
use gfn::distribution::GraphActionCategorical;
use gfn::env::{Child, StateGraph};
use gfn::env::{Direction, DiscreteEnv, EnumerableEnv, Env, Rows, Slots};
use gfn::graph::{Edge, GraphEnv, GraphKind, GraphState, GraphStates, Node, with_canonizer};
use gfn::policy::{Evaluation, Policy};
use serde::Deserialize;
use tch::{Kind, Tensor};

#[derive(Deserialize)]
struct Golden {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    max_nodes: usize,
    action_weights: Weights,
    counts: Counts,
    states: Vec<State>,
}

#[derive(Deserialize)]
struct Weights {
    add_node: f64,
    add_edge: f64,
    stop: f64,
}

#[derive(Deserialize)]
struct Counts {
    states: usize,
    non_stop_state_actions: usize,
    distinct_transitions: usize,
    labelled_backward_actions: usize,
    distinct_parents: usize,
}

#[derive(Deserialize)]
struct State {
    colors: Vec<u16>,
    edges: Vec<(u32, u32)>,
    aut: u64,
    n_actions_incl_stop: usize,
    n_backward_labelled: usize,
    terminal_prob: (String, String),
    visit_prob_f64: f64,
    children: Vec<(usize, usize, usize)>,
}

fn golden() -> Vec<Case> {
    let text = include_str!("golden/symmetry.json");
    serde_json::from_str::<Golden>(text).unwrap().cases
}

/// A policy with a weight for each type of action. The probability of an action, before isomorphic actions
/// are merged, is proportional to the weight of its type.
struct Weighted<'a>(&'a Weights);

impl Policy<GraphEnv> for Weighted<'_> {
    fn evaluate(
        &self,
        env: &GraphEnv,
        states: &GraphStates,
        _: Option<&Tensor>,
        _: Quantities,
    ) -> gfn::Result<Evaluation<GraphActionCategorical>> {
        let masks = env.masks(Direction::Forward, states);
        let weights = [self.0.add_node, self.0.add_node, self.0.add_edge, self.0.stop];
        let blocks: Vec<Tensor> = masks
            .blocks
            .iter()
            .zip(weights)
            .map(|(block, weight)| {
                let shape = [block.rows() as i64, block.width as i64];
                Tensor::full(shape, weight.ln(), (Kind::Double, tch::Device::Cpu))
            })
            .collect();
        Ok(Evaluation { pf: Some(GraphActionCategorical::new(masks, &blocks)?), ..Evaluation::default() })
    }
}

fn graph_of(state: &State) -> GraphState {
    let nodes: Vec<Node> = state.colors.iter().map(|&colour| Node::from_class(colour)).collect();
    let edges: Vec<_> = state.edges.iter().map(|&(a, b)| (a, b, Edge::default())).collect();
    GraphState::from_parts(GraphKind::Undirected, &nodes, &edges).unwrap()
}

/// Counts four things: forward moves except exits, distinct transitions, backward moves and distinct
/// parents.
fn counts(env: &GraphEnv, graph: &StateGraph<GraphEnv>) -> [usize; 4] {
    let mut out = [0; 4];
    for state in 0..graph.len() {
        let children: Vec<Child> = graph.children(state).filter(|child| *child != Child::Exit).collect();
        out[0] += children.len();
        let distinct: BTreeSet<usize> = children
            .iter()
            .filter_map(|child| if let Child::State(index) = child { Some(*index) } else { None })
            .collect();
        out[1] += distinct.len();
        let parents = parents(env, &graph.states().select(&[state]));
        out[2] += parents.len();
        out[3] += parents.into_iter().collect::<BTreeSet<_>>().len();
    }
    out
}

/// Returns the key of the parent to which each backward move of a state leads.
fn parents(env: &GraphEnv, state: &GraphStates) -> Vec<<GraphEnv as EnumerableEnv>::Key> {
    let slots: Vec<u32> = env.masks(Direction::Backward, state).legal_slots(0).collect();
    let mut parents = state.select(&vec![0; slots.len()]);
    env.step(Direction::Backward, &mut parents, &Slots(slots)).unwrap();
    env.keys(&parents)
}

#[test]
fn terminal_probabilities_and_transitions_are_those_of_exact_arithmetic() {
    for case in golden() {
        let env = ColouredGraphs::env(case.max_nodes);
        let graph = StateGraph::build(&env, 1000).unwrap();
        assert_eq!(graph.len(), case.counts.states);
        let expected = &case.counts;
        assert_eq!(
            counts(&env, &graph),
            [
                expected.non_stop_state_actions,
                expected.distinct_transitions,
                expected.labelled_backward_actions,
                expected.distinct_parents,
            ]
        );
        let policy = Weighted(&case.action_weights);
        let found = graph.terminating_distribution(&env, &policy, None).unwrap();
        let states = GraphStates::from(case.states.iter().map(graph_of).collect::<Vec<_>>());
        let index: Vec<usize> = graph.indices(&env, &states).into_iter().map(Option::unwrap).collect();
        assert_eq!(index.iter().collect::<BTreeSet<_>>().len(), graph.len());
        let mut mean_len = 0.0;
        for (state, &mine) in case.states.iter().zip(&index) {
            let over = &state.terminal_prob.0;
            let under = &state.terminal_prob.1;
            let prob = over.parse::<f64>().unwrap() / under.parse::<f64>().unwrap();
            assert!((found.probs[mine] - prob).abs() < 1e-9, "{} {prob}", found.probs[mine]);
            assert!((found.visits[mine] - state.visit_prob_f64).abs() < 1e-9);
            mean_len += state.visit_prob_f64;
            let representative = &graph.states().graphs()[mine];
            let aut = with_canonizer(|canonizer| canonizer.canonical(representative, 0).automorphisms);
            assert_eq!(aut, Some(state.aut));
            assert_eq!(graph.children(mine).len(), state.n_actions_incl_stop);
            let backward = parents(&env, &graph.states().select(&[mine]));
            assert_eq!(backward.len(), state.n_backward_labelled);
            for &(child, n_forward, n_backward) in &state.children {
                let child = index[child];
                assert_eq!(graph.children(mine).filter(|c| *c == Child::State(child)).count(), n_forward);
                let key = &env.keys(&graph.states().select(&[mine]))[0];
                let back = parents(&env, &graph.states().select(&[child]));
                assert_eq!(back.iter().filter(|parent| *parent == key).count(), n_backward);
            }
        }
        assert!((found.mean_len - mean_len).abs() < 1e-9);
        assert!((found.probs.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }
}

#[test]
fn five_nodes_have_the_published_counts() {
    let env = ColouredGraphs::env(5);
    let graph = StateGraph::build(&env, 1000).unwrap();
    assert_eq!(graph.len(), 420);
    assert_eq!(counts(&env, &graph), [2015, 1448, 2243, 1448]);
    assert!(StateGraph::build(&env, 419).unwrap_err().to_string().contains("more than 419 states"));
}
