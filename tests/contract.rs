//! What is found before the first step: masks that contradict the environment, schemas that no graph keeps to, slots that 32 bits
//! can't number.

use gfn::env::{Direction, Env, Slots};
use gfn::graph::{
    ActionKind, ActionSet, AddEdge, AddNode, BackwardRule, Free, GraphBatch, GraphEnv, GraphKind, GraphRules,
    GraphSchema, GraphState, GraphStates, Move, MoveMask, Semantics,
};
use gfn::objective::TrajectoryBalance;
use gfn::policy::UniformPolicy;
use gfn::testing::{Triangles, check_graph_env};
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use tch::{Device, Tensor};

/// Nodes and edges in any order, but nothing once there are `max_edges` edges.
#[derive(Debug)]
struct Capped {
    max_edges: usize,
}

impl Capped {
    fn of(semantics: Semantics, max_edges: usize, rule: BackwardRule) -> GraphEnv<Self> {
        let actions = ActionSet::new(semantics).with(AddNode::free(1, 4)).with(AddEdge::new(1));
        let kind = GraphKind::Undirected;
        let env = GraphEnv::new(Self { max_edges }, actions, GraphSchema::plain(kind, 4), GraphState::new(kind));
        env.unwrap().with_backward(rule)
    }
}

impl GraphRules for Capped {
    fn restrict(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
        if graph.n_edges() >= self.max_edges {
            moves.forbid_all();
        }
    }
}

fn trainer<R: GraphRules + 'static>(env: GraphEnv<R>) -> Result<Trainer<GraphEnv<R>, UniformPolicy>> {
    let reward =
        |states: &GraphStates, _: Option<&Tensor>| -> Result<Vec<f64>> { Ok(vec![0.0; states.graphs().len()]) };
    Trainer::new(env, reward, UniformPolicy, TrajectoryBalance, TrainerConfig::default(), Rng::seeded(0))
}

#[test]
fn a_trainer_compares_masks_by_type_with_derived_ones() {
    for semantics in [Semantics::Labelled, Semantics::UpToIsomorphism] {
        // Nothing follows the second edge, so an isolated node can't have come last: by type it could.
        let error = trainer(Capped::of(semantics, 2, BackwardRule::ByType)).unwrap_err();
        assert!(matches!(error, Error::Contract { .. }), "{error}");
        let found = error.to_string();
        for words in
            ["by type", "undo add_node", "nodes, edges 0-", "is legal by type, illegal by undoing it", "Derived"]
        {
            assert!(found.contains(words), "{words}: {found}");
        }
        trainer(Capped::of(semantics, 2, BackwardRule::Derived)).unwrap();
        trainer(Capped::of(semantics, usize::MAX, BackwardRule::ByType)).unwrap();
    }
}

#[test]
fn looking_draws_nothing_from_the_trainers_stream() {
    let trainer = trainer(Triangles::new()).unwrap();
    assert_eq!(trainer.evaluation_rng(), Rng::seeded(0).split());
}

/// An environment of this schema, on nodes without edges.
fn of_schema(schema: GraphSchema, n: usize, edge_classes: u16) -> Result<GraphEnv<Free>> {
    let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(edge_classes));
    let initial = GraphState::with_nodes(schema.kind, n);
    Ok(GraphEnv::new(Free, actions, schema, initial)?.with_backward(BackwardRule::ByType))
}

#[test]
fn a_schema_of_more_attributes_than_a_graph_holds_is_refused() {
    let plain = || GraphSchema::plain(GraphKind::Undirected, 4);
    let with =
        |nodes, edges| GraphSchema { node_attributes: vec![1; nodes], edge_attributes: vec![1; edges], ..plain() };
    for (nodes, edges) in [(8, 0), (0, 8)] {
        let error = of_schema(with(nodes, edges), 0, 1).unwrap_err();
        assert!(matches!(error, Error::Config { .. }), "{error}");
        assert!(error.to_string().contains("attributes in a schema is 8, expected at most 7"), "{error}");
    }
    check_graph_env(&of_schema(with(7, 7), 3, 1).unwrap(), 5, &mut Rng::seeded(0)).unwrap();
    // A batch encoded by hand reads what isn't there as unset.
    let states = GraphStates::from(vec![GraphState::with_nodes(GraphKind::Undirected, 2)]);
    let wide = with(8, 8);
    let batch = GraphBatch::new(&wide, states.arrays(), None, Device::Cpu).unwrap();
    assert_eq!(batch.node_attributes().size(), [2, 8]);
    let error = of_schema(GraphSchema { edge_classes: 65_537, ..plain() }, 0, 1).unwrap_err();
    assert!(error.to_string().contains("classes in a schema is 65537"), "{error}");
}

#[test]
fn slots_that_32_bits_cannot_number_are_refused() {
    let schema = |n| GraphSchema { edge_classes: 50, ..GraphSchema::plain(GraphKind::Directed, n) };
    let is_refusal = |error: &Error| {
        matches!(error, Error::Config { setting: "the number of slots of a state", .. })
            && error.to_string().contains("slots have 32 bits")
    };
    let error = of_schema(schema(10_000), 10_000, 50).unwrap_err();
    assert!(is_refusal(&error), "{error}");
    // An environment of small graphs that is given a large one.
    let env = of_schema(schema(10), 10, 50).unwrap();
    let large = GraphState::with_nodes(GraphKind::Directed, 10_000);
    // The last slot would be 4,999,949,999, or 704,982,703 if it were cut.
    let (kind, set) = (ActionKind(0), env.actions());
    let error = set.encode(Direction::Forward, &large, kind, Move { a: 9999, b: 9998, class: 49 }).unwrap_err();
    assert!(is_refusal(&error), "{error}");
    let first = Move { a: 1, b: 0, class: 49 };
    assert_eq!(set.encode(Direction::Forward, &large, kind, first).unwrap(), 500_049);
    // A step back from an edge whose slot can't be numbered, and the exit, which comes behind all pairs.
    let mut states = GraphStates::from(vec![large.clone()]);
    states.graphs_mut()[0].add_edge(9999, 9998, gfn::graph::Edge::of_class(49)).unwrap();
    let error = env.step(Direction::Backward, &mut states, &Slots(vec![0])).unwrap_err();
    assert!(is_refusal(&error), "{error}");
    let mut states = GraphStates::from(vec![large]);
    let exits = env.exit_actions(&states).unwrap();
    assert_eq!(exits, Slots(vec![Slots::NONE]));
    let error = env.step(Direction::Forward, &mut states, &exits).unwrap_err();
    assert!(matches!(error, Error::IllegalAction { .. }), "{error}");
}
