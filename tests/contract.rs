//! What is found before the first step: masks that contradict the environment, schemas that no graph keeps to, slots that 32 bits
//! can't number.

use crate::graph_envs::Given;
use gfn::env::{Direction, Env, Slots};
use gfn::graph::{
    ActionKind, ActionSet, AddEdge, AddNode, BackwardRule, GraphBatch, GraphEnv, GraphKind, GraphSchema, GraphState,
    GraphStates, Move, Semantics,
};
use gfn::nn::{GraphNet, GraphNetConfig};
use gfn::objective::TrajectoryBalance;
use gfn::policy::UniformPolicy;
use gfn::testing::{Triangles, check_graph_env};
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use tch::{Device, Kind, Tensor};

/// Nodes and edges in any order, but nothing once there are `max_edges` edges.
fn capped(semantics: Semantics, max_edges: usize, rule: BackwardRule) -> Given {
    let actions = ActionSet::new(semantics).with(AddNode::free(1, 4)).with(AddEdge::new(1));
    let schema = GraphSchema::plain(GraphKind::Undirected, 4);
    let env = Given::new(actions, schema, GraphState::new(GraphKind::Undirected)).with_rule(rule);
    env.restricted(move |_, graph, mask| {
        if graph.n_edges() >= max_edges {
            mask.fill(false);
        }
    })
}

fn trainer<E: GraphEnv + 'static>(env: E) -> Result<Trainer<E, UniformPolicy>> {
    let reward =
        |states: &GraphStates, _: Option<&Tensor>| -> Result<Vec<f64>> { Ok(vec![0.0; states.graphs().len()]) };
    Trainer::new(env, reward, UniformPolicy, TrajectoryBalance, TrainerConfig::default(), Rng::seeded(0))
}

#[test]
fn a_trainer_compares_masks_by_type_with_derived_ones() {
    for semantics in [Semantics::Labelled, Semantics::UpToIsomorphism] {
        // Nothing follows the second edge, so an isolated node can't have come last: by type it could.
        let error = trainer(capped(semantics, 2, BackwardRule::ByType)).unwrap_err();
        assert!(matches!(error, Error::Contract { .. }), "{error}");
        let found = error.to_string();
        for words in
            ["by type", "undo add_node", "nodes, edges 0-", "is legal by type, illegal by undoing it", "Derived"]
        {
            assert!(found.contains(words), "{words}: {found}");
        }
        trainer(capped(semantics, 2, BackwardRule::Derived)).unwrap();
        trainer(capped(semantics, usize::MAX, BackwardRule::ByType)).unwrap();
    }
}

#[test]
fn looking_draws_nothing_from_the_trainers_stream() {
    let trainer = trainer(Triangles::new()).unwrap();
    assert_eq!(trainer.evaluation_rng(), Rng::seeded(0).split());
}

/// The error of everything that looks at an environment's settings.
fn settings_errors(make: impl Fn() -> Given) -> [Error; 3] {
    let net = GraphNet::new(&make(), GraphNetConfig::default(), Device::Cpu, Kind::Float, &mut Rng::seeded(0));
    [
        net.unwrap_err(),
        check_graph_env(&make(), 5, &mut Rng::seeded(0)).unwrap_err(),
        trainer(make()).map(|_| ()).unwrap_err(),
    ]
}

#[test]
fn a_schema_of_more_attributes_than_a_graph_holds_is_refused() {
    let plain = || capped(Semantics::Labelled, 9, BackwardRule::Derived);
    let with = |nodes: usize, edges: usize| {
        let mut env = plain();
        (env.schema.node_attributes, env.schema.edge_attributes) = (vec![1; nodes], vec![1; edges]);
        env
    };
    for make in [|| (8, 0), || (0, 8)] {
        for error in settings_errors(|| with(make().0, make().1)) {
            assert!(matches!(error, Error::Config { .. }), "{error}");
            assert!(error.to_string().contains("attributes in a schema is 8, expected at most 7"), "{error}");
        }
    }
    check_graph_env(&with(7, 7), 5, &mut Rng::seeded(0)).unwrap();
    // A batch encoded by hand reads what isn't there as unset.
    let states = GraphStates::from(vec![GraphState::with_nodes(GraphKind::Undirected, 2)]);
    let schema = with(8, 8).schema;
    let batch = GraphBatch::new(&schema, states.arrays(), None, Device::Cpu).unwrap();
    assert_eq!(batch.node_attributes().size(), [2, 8]);
    for error in settings_errors(|| {
        let mut env = plain();
        env.schema.edge_classes = 65_537;
        env
    }) {
        assert!(error.to_string().contains("classes in a schema is 65537"), "{error}");
    }
}

#[test]
fn slots_that_32_bits_cannot_number_are_refused() {
    let set = || ActionSet::new(Semantics::Labelled).with(AddEdge::new(50));
    let make = || {
        let schema = GraphSchema { edge_classes: 50, ..GraphSchema::plain(GraphKind::Directed, 10_000) };
        let initial = GraphState::with_nodes(GraphKind::Directed, 10_000);
        Given::new(set(), schema, initial).with_rule(BackwardRule::ByType)
    };
    let is_refusal = |error: &Error| {
        matches!(error, Error::Config { setting: "the number of slots of a state", .. })
            && error.to_string().contains("slots have 32 bits")
    };
    for error in settings_errors(make) {
        assert!(is_refusal(&error), "{error}");
    }
    // The last slot would be 4,999,949,999, or 704,982,703 if it were cut.
    let env = make();
    let kind = ActionKind(0);
    let error = set().encode(Direction::Forward, &env.initial, kind, Move { a: 9999, b: 9998, class: 49 }).unwrap_err();
    assert!(is_refusal(&error), "{error}");
    let first = Move { a: 1, b: 0, class: 49 };
    assert_eq!(set().encode(Direction::Forward, &env.initial, kind, first).unwrap(), 500_049);
    // A step back from an edge whose slot can't be numbered, and the exit, which comes behind all pairs.
    let mut states = env.initial(1);
    states.graphs_mut()[0].add_edge(9999, 9998, gfn::graph::Edge::of_class(49)).unwrap();
    let error = env.step(Direction::Backward, &mut states, &Slots(vec![0])).unwrap_err();
    assert!(is_refusal(&error), "{error}");
    let mut states = env.initial(1);
    let exits = env.exit_actions(&states).unwrap();
    assert_eq!(exits, Slots(vec![Slots::NONE]));
    let error = env.step(Direction::Forward, &mut states, &exits).unwrap_err();
    assert!(matches!(error, Error::IllegalAction { .. }), "{error}");
}
