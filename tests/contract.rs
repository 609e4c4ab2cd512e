//! Tests of errors that are found before the first training step: masks that contradict the environment,
//! graphs that violate the schema, and too many slots for 32 bits.

use gfn::contract::{Budget, check_graph_env};
use gfn::distribution::GraphActionCategorical;
use gfn::env::{
    Direction, DiscreteEnv, EnumerableEnv, Env, Masks, Rows, Slots, StateGraph, Step, VectorEnv, VectorRules,
    VectorStates,
};
use gfn::examples::Triangles;
use gfn::graph::{
    ActionKind, ActionSet, AddEdge, AddNode, BackwardRule, Free, GraphActionType, GraphBatch, GraphEnv,
    GraphKind, GraphRules, GraphSchema, GraphState, GraphStates, GraphView, Head, Move, MoveMask, PerGraph,
    Semantics,
};
use gfn::objective::LogPartitionVariance;
use gfn::policy::UniformPolicy;
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use tch::{Device, Tensor};

/// Rules that allow nodes and edges in any order. Once a graph has `max_edges` edges, no action but the
/// exit is allowed.
#[derive(Debug)]
struct MaxEdges {
    max_edges: usize,
}

impl MaxEdges {
    fn env(semantics: Semantics, max_edges: usize, rule: BackwardRule) -> GraphEnv {
        let actions = ActionSet::new(semantics).with(AddNode::free(1, 4)).with(AddEdge::new(1));
        let kind = GraphKind::Undirected;
        let env = GraphEnv::new(Self { max_edges }, actions, GraphState::new(kind));
        env.unwrap().with_backward(rule)
    }
}

impl GraphRules for MaxEdges {
    fn restrict(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
        if graph.n_edges() >= self.max_edges {
            moves.forbid_all();
        }
    }
}

fn trainer(env: GraphEnv) -> Result<Trainer<GraphEnv>> {
    let reward = |states: &GraphStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
        Ok(vec![0.0; states.graphs().len()])
    };
    Trainer::new(env, reward, UniformPolicy, LogPartitionVariance, TrainerConfig::default(), Rng::seeded(0))
}

#[test]
fn a_trainer_compares_masks_by_type_with_derived_ones() {
    for semantics in [Semantics::Labelled, Semantics::UpToIsomorphism] {
        // No action is legal after the second edge, so an isolated node can't have been the last addition.
        // The backward masks of `BackwardRule::ByType` don't take that into account, so the check must fail.
        let error = trainer(MaxEdges::env(semantics, 2, BackwardRule::ByType)).unwrap_err();
        assert!(matches!(error, Error::Contract { .. }), "{error}");
        let found = error.to_string();
        for words in [
            "the backward mask of an action type",
            "undo add_node",
            "nodes, edges 0-",
            "is legal by the mask of the type, but illegal by undoing the move",
            "Derived",
        ] {
            assert!(found.contains(words), "{words}: {found}");
        }
        trainer(MaxEdges::env(semantics, 2, BackwardRule::Derived)).unwrap();
        trainer(MaxEdges::env(semantics, usize::MAX, BackwardRule::ByType)).unwrap();
    }
}

#[test]
fn checks_use_no_number_of_the_trainers_stream() {
    let trainer = trainer(Triangles::env()).unwrap();
    assert_eq!(trainer.evaluation_rng(), Rng::seeded(0).split());
}

/// Builds an environment with this schema. The initial graph has `n` nodes and no edges, and actions add
/// edges.
fn env_with_schema(schema: GraphSchema, n: usize, edge_classes: u16) -> Result<GraphEnv> {
    let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(edge_classes));
    let initial = GraphState::with_nodes(schema.kind, n);
    Ok(GraphEnv::new(Free, actions, initial)
        .and_then(|env| env.with_schema(schema))?
        .with_backward(BackwardRule::ByType))
}

#[test]
fn a_schema_of_more_attributes_than_a_graph_holds_is_refused() {
    let plain = || GraphSchema::plain(GraphKind::Undirected, 4);
    let with = |nodes, edges| GraphSchema {
        node_attributes: vec![1; nodes],
        edge_attributes: vec![1; edges],
        ..plain()
    };
    for (nodes, edges) in [(8, 0), (0, 8)] {
        let error = env_with_schema(with(nodes, edges), 0, 1).unwrap_err();
        assert!(matches!(error, Error::Config { .. }), "{error}");
        assert!(error.to_string().contains("attributes in a schema is 8, expected at most 7"), "{error}");
    }
    check_graph_env(
        &env_with_schema(with(7, 7), 3, 1).unwrap(),
        Budget::thorough().with_walks(5),
        &mut Rng::seeded(0),
    )
    .unwrap();
    // A node or an edge holds at most 7 attributes. If a batch is encoded for a schema with 8, without an
    // environment, the eighth attribute counts as unset.
    let states = GraphStates::from(vec![GraphState::with_nodes(GraphKind::Undirected, 2)]);
    let wide = with(8, 8);
    let batch = GraphBatch::new(&wide, states.arrays(), None, Device::Cpu).unwrap();
    assert_eq!(batch.node_attributes().size(), [2, 8]);
    let error = env_with_schema(GraphSchema { edge_classes: 65_537, ..plain() }, 0, 1).unwrap_err();
    assert!(error.to_string().contains("classes in a schema is 65537"), "{error}");
}

#[test]
fn slots_that_32_bits_cannot_number_are_refused() {
    let schema = |n| GraphSchema { edge_classes: 50, ..GraphSchema::plain(GraphKind::Directed, n) };
    let is_refusal = |error: &Error| {
        matches!(error, Error::Config { setting: "the number of slots of a state", .. })
            && error.to_string().contains("a slot has 32 bits")
    };
    let error = env_with_schema(schema(10_000), 10_000, 50).unwrap_err();
    assert!(is_refusal(&error), "{error}");
    // The graph `large` has far more nodes than the 10 that the environment's schema allows.
    let env = env_with_schema(schema(10), 10, 50).unwrap();
    let large = GraphState::with_nodes(GraphKind::Directed, 10_000);
    // The last slot would have the number 4,999,949,999, or 704,982,703 after an overflow of 32 bits.
    let kind = ActionKind(0);
    let set = env.actions();
    let error =
        set.encode(Direction::Forward, &large, kind, Move { a: 9999, b: 9998, class: 49 }).unwrap_err();
    assert!(is_refusal(&error), "{error}");
    let first = Move { a: 1, b: 0, class: 49 };
    assert_eq!(set.encode(Direction::Forward, &large, kind, first).unwrap(), 500_049);
    // Two slots have numbers that are too large for 32 bits: the slot of the edge that the backward step
    // removes, and the slot of the exit, which comes after the slots of all pairs of nodes.
    let mut states = GraphStates::from(vec![large.clone()]);
    states.graphs_mut()[0].add_edge(9999, 9998, gfn::graph::Edge::from_class(49)).unwrap();
    let error = env.step(Direction::Backward, &mut states, &Slots(vec![0])).unwrap_err();
    assert!(is_refusal(&error), "{error}");
    let mut states = GraphStates::from(vec![large]);
    let exits = env.exit_actions(&states).unwrap();
    assert_eq!(exits, Slots(vec![Slots::NONE]));
    let error = env.step(Direction::Forward, &mut states, &exits).unwrap_err();
    assert!(matches!(error, Error::IllegalAction { .. }), "{error}");
}

/// Rules that allow an edge only if it has a node in common with another edge. Graphs with two separate
/// edges can therefore not be built.
struct Connected {
    says_so: bool,
}

impl GraphRules for Connected {
    fn restrict(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
        if graph.n_edges() > 0 {
            moves.retain(|edge| graph.degree(edge.a) > 0 || graph.degree(edge.b) > 0);
        }
    }
    fn is_reachable(&self, graph: &GraphState) -> bool {
        !self.says_so || graph.n_edges() != 2 || (0..4).any(|a| graph.degree(a) > 1)
    }
}

/// Builds an environment that adds edges to graphs with `n` nodes.
fn env_on_nodes(n: usize, rules: impl GraphRules + 'static) -> GraphEnv {
    let kind = GraphKind::Undirected;
    let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
    GraphEnv::new(rules, actions, GraphState::with_nodes(kind, n)).unwrap()
}

fn check_refused<T: std::fmt::Debug>(result: Result<T>, words: &[&str]) {
    let error = result.unwrap_err();
    for word in words {
        assert!(error.to_string().contains(word), "{word}: {error}");
    }
}

#[test]
fn ways_back_to_graphs_that_are_never_built_are_found_by_trainer_and_exact_evaluation() {
    trainer(env_on_nodes(4, Connected { says_so: true })).unwrap();
    check_refused(
        trainer(env_on_nodes(4, Connected { says_so: false })),
        &["has no legal backward move", "is_reachable"],
    );
    let listed = |says_so| StateGraph::build(&env_on_nodes(4, Connected { says_so }), 100).unwrap();
    listed(true).check_ways_back(&env_on_nodes(4, Connected { says_so: true })).unwrap();
    let leaks = listed(false).check_ways_back(&env_on_nodes(4, Connected { says_so: false }));
    check_refused(leaks, &["P_B loses no probability", "which no forward move reaches"]);
}

/// An action type that adds an edge of one of two classes. Its mistake is that the reverse of a backward
/// move always names the first class.
#[derive(Debug)]
struct WrongReverseClass;

impl GraphActionType for WrongReverseClass {
    fn name(&self) -> &str {
        "forgetful"
    }
    fn head(&self, direction: Direction) -> Option<Head> {
        AddEdge::new(2).head(direction)
    }
    fn mask(&self, direction: Direction, semantics: Semantics, graph: GraphView<'_>, mask: &mut [bool]) {
        AddEdge::new(2).mask(direction, semantics, graph, mask);
    }
    fn apply(&self, direction: Direction, graph: &mut GraphState, action: Move) -> Result<()> {
        AddEdge::new(2).apply(direction, graph, action)
    }
    fn reverse(&self, _: Direction, _: &GraphState, action: Move) -> Move {
        Move { class: 0, ..action }
    }
}

#[test]
fn a_reverse_that_names_another_move_is_found_before_the_first_step() {
    let kind = GraphKind::Undirected;
    let schema = || GraphSchema { edge_classes: 2, ..GraphSchema::plain(kind, 3) };
    for semantics in [Semantics::Labelled, Semantics::UpToIsomorphism] {
        let of = |actions| {
            trainer(
                GraphEnv::new(Free, actions, GraphState::with_nodes(kind, 3))
                    .and_then(|env| env.with_schema(schema()))
                    .unwrap(),
            )
        };
        of(ActionSet::new(semantics).with(AddEdge::new(2))).unwrap();
        let words = if semantics == Semantics::Labelled { "is the move" } else { "leads to the same state" };
        check_refused(
            of(ActionSet::new(semantics).with(WrongReverseClass)),
            &[words, "forgetful", "check_env"],
        );
    }
}

#[test]
fn an_environment_of_one_graph_is_refused() {
    let kind = GraphKind::Undirected;
    let none = ActionSet::new(Semantics::Labelled);
    check_refused(GraphEnv::new(Free, none, GraphState::new(kind)), &["action type", "AddEdge"]);
}

#[test]
fn states_of_another_environment_are_refused() {
    let small = StateGraph::build(&env_on_nodes(3, Free), 100).unwrap();
    let env = env_on_nodes(4, Free);
    let reward = PerGraph(|_: &GraphState| 0.0);
    small.terminating_distribution(&env_on_nodes(3, Free), &UniformPolicy, None).unwrap();
    check_refused(small.terminating_distribution(&env, &UniformPolicy, None), &["whose states were listed"]);
    check_refused(small.exact_flows(&env, &UniformPolicy, &reward, None), &["whose states were listed"]);
}

/// Rules for vectors with three entries, which are set one at a time. The variants contain different
/// mistakes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bits {
    /// The rules are correct.
    Right,
    /// The reverse of a move names a wrong slot.
    WrongReverse,
    /// Setting an entry that is already set clears it, so that trajectories may never end.
    Endless,
}

impl VectorRules for Bits {
    fn width(&self) -> usize {
        3
    }
    fn n_values(&self) -> usize {
        2
    }
    fn n_moves(&self, _: Direction) -> usize {
        3
    }
    fn has_exit(&self) -> bool {
        *self != Self::Endless
    }
    fn can_end(&self, _: &[u16]) -> bool {
        *self != Self::Endless
    }
    fn apply(&self, direction: Direction, row: &mut [u16], slot: usize) -> Option<usize> {
        let before = if direction == Direction::Forward { 0 } else { 1 };
        let entry = row.get_mut(slot).filter(|entry| **entry == before || *self == Self::Endless)?;
        *entry = 1 - *entry;
        Some(if *self == Self::WrongReverse { (slot + 1) % 3 } else { slot })
    }
}

#[test]
fn broken_vector_rules_are_found_before_the_first_step_and_shared_keys_when_states_are_listed() {
    let trainer = |rules| {
        let reward = |states: &VectorStates, _: Option<&Tensor>| Ok(vec![0.0; states.len()]);
        let config = TrainerConfig::default();
        Trainer::new(
            VectorEnv::new(rules),
            reward,
            UniformPolicy,
            LogPartitionVariance,
            config,
            Rng::seeded(0),
        )
    };
    trainer(Bits::Right).unwrap();
    check_refused(
        trainer(Bits::WrongReverse),
        &["is a legal backward move of the child", "forward move", "check_env"],
    );
    check_refused(trainer(Bits::Endless), &["no sequence of forward moves leads back"]);
    assert_eq!(StateGraph::build(&VectorEnv::new(Bits::Right), 100).unwrap().len(), 8);
    check_refused(
        StateGraph::build(&SharedKeys(VectorEnv::new(Bits::Right)), 100),
        &["have the same key", "EnumerableEnv::keys"],
    );
}

/// An environment whose mistake is that states with the same number of set entries share a key.
struct SharedKeys(VectorEnv);

impl Env for SharedKeys {
    type States = VectorStates;
    type Actions = Slots;
    type Dist = GraphActionCategorical;
    fn initial(&self, instances: &[u32]) -> VectorStates {
        self.0.initial(instances)
    }
    fn step(&self, direction: Direction, states: &mut VectorStates, actions: &Slots) -> Result<Step<Slots>> {
        self.0.step(direction, states, actions)
    }
    fn is_initial(&self, states: &VectorStates) -> Vec<bool> {
        self.0.is_initial(states)
    }
    fn exit_actions(&self, states: &VectorStates) -> Option<Slots> {
        self.0.exit_actions(states)
    }
}

impl DiscreteEnv for SharedKeys {
    fn masks(&self, direction: Direction, states: &VectorStates) -> Masks {
        self.0.masks(direction, states)
    }
    fn describe(&self, direction: Direction, states: &VectorStates, row: usize, slot: u32) -> String {
        self.0.describe(direction, states, row, slot)
    }
}

impl EnumerableEnv for SharedKeys {
    type Key = u16;
    fn keys(&self, states: &VectorStates) -> Vec<u16> {
        states.rows().map(|row| row.iter().sum()).collect()
    }
}

/// Rules that allow the exit only if node 0 has an edge. The rules are wrong up to isomorphism, because
/// they depend on labels.
struct ExitByFirstNode;

impl GraphRules for ExitByFirstNode {
    fn can_exit(&self, graph: &GraphState) -> bool {
        graph.n_nodes() > 0 && graph.degree(0) > 0
    }
}

#[test]
fn rules_that_look_at_labels_are_found_when_classes_are_listed() {
    let actions =
        || ActionSet::new(Semantics::UpToIsomorphism).with(AddNode::free(1, 4)).with(AddEdge::new(1));
    let of = |env| StateGraph::build(&env, 100).map(|space| space.len());
    let free = GraphEnv::new(Free, actions(), GraphState::undirected(0)).unwrap();
    assert_eq!(of(free).unwrap(), 1 + 1 + 2 + 4 + 11);
    let env = GraphEnv::new(ExitByFirstNode, actions(), GraphState::undirected(0)).unwrap();
    check_refused(StateGraph::build(&env, 100), &["must not use the labels"]);
}
