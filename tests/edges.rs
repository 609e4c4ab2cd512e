//! Tests of the logits of edges. Edges with different features must get different logits, even if the nodes
//! at their ends look the same.

use crate::nets::{CONVS, KINDS, blocks, config, net};
use gfn::env::Env;
use gfn::graph::{
    ActionSet, AddEdge, AddNode, Edge, Free, GraphEnv, GraphKind, GraphSchema, GraphState, GraphStates, Node,
    Semantics, SetEdgeAttr, canonical_key,
};
use gfn::nn::{ConvKind, GraphNetConfig};
use gfn::objective::Quantities;
use gfn::policy::{GraphPolicy, Policy};
use gfn_molecules::{MoleculeConfig, MoleculeEnv};
use tch::Kind;

/// Builds an environment up to isomorphism, in which edges of two classes are added and get an attribute.
fn marking_env(kind: GraphKind) -> GraphEnv {
    let actions = ActionSet::new(Semantics::UpToIsomorphism)
        .with(AddNode::free(1, 6))
        .with(AddEdge::new(2))
        .with(SetEdgeAttr::new(&[1]).unwrap());
    let schema = GraphSchema { edge_classes: 2, edge_attributes: vec![1], ..GraphSchema::plain(kind, 6) };
    GraphEnv::new(Free, actions, GraphState::new(kind)).and_then(|env| env.with_schema(schema)).unwrap()
}

/// Builds a ring of six nodes whose edges alternate between two classes. In the undirected ring all nodes are
/// equivalent.
fn alternating_ring(kind: GraphKind) -> GraphState {
    let edges: Vec<_> = (0..6u32).map(|a| (a, (a + 1) % 6, Edge::from_class((a % 2) as u16))).collect();
    GraphState::from_parts(kind, &[Node::default(); 6], &edges).unwrap()
}

#[test]
fn edges_of_alternating_classes_have_different_logits() {
    for (kind, conv) in KINDS.iter().flat_map(|&kind| CONVS.map(|conv| (kind, conv))) {
        let env = marking_env(kind);
        let ring = alternating_ring(kind);
        let net = net(&env, config(conv), Kind::Double);
        let output = blocks(&env, &net, std::slice::from_ref(&ring), None);
        // The checked logits are those of three action types, each with a row per edge: setting the attribute
        // forwards, and removing the edge or its attribute backwards.
        for block in
            [&output.pf.unwrap()[2], &output.pb.as_ref().unwrap()[1], &output.pb.as_ref().unwrap()[2]]
        {
            let logits: Vec<(u16, f64)> = ring
                .edges()
                .enumerate()
                .map(|(row, (a, b))| (ring.edge(a, b).unwrap().class, block.double_value(&[row as i64, 0])))
                .collect();
            assert_eq!(block.size(), [6, 1]);
            let of = |class: u16| logits.iter().filter(move |edge| edge.0 == class).map(|edge| edge.1);
            let first = of(0).next().unwrap();
            let second = of(1).next().unwrap();
            // The embedding of the whole graph contributes equally to all edges in this convolution, so
            // relative differences are smaller.
            let least = if conv == ConvKind::GinVirtual { 1e-4 } else { 1e-3 };
            assert!((first - second).abs() > least, "{kind:?} {conv:?}: {logits:?}");
            assert!(of(0).all(|x| (x - first).abs() < 1e-12) && of(1).all(|x| (x - second).abs() < 1e-12));
        }
    }
}

/// Tests edges that have classes but no attributes, and graphs without edges.
#[test]
fn classes_alone_distinguish_edges_too() {
    let kind = GraphKind::Undirected;
    let schema = GraphSchema { edge_classes: 2, ..GraphSchema::plain(kind, 6) };
    let actions = ActionSet::new(Semantics::UpToIsomorphism).with(AddNode::free(1, 6)).with(AddEdge::new(2));
    let env =
        GraphEnv::new(Free, actions, GraphState::new(kind)).and_then(|env| env.with_schema(schema)).unwrap();
    let net = net(&env, GraphNetConfig { pair_walks: Some(1), ..config(ConvKind::Gine) }, Kind::Double);
    let removal = |graph: GraphState| blocks(&env, &net, &[graph], None).pb.unwrap().remove(1);
    let ring = removal(alternating_ring(kind));
    assert!((ring.double_value(&[0, 0]) - ring.double_value(&[1, 0])).abs() > 1e-3);
    assert_eq!(removal(GraphState::with_nodes(kind, 3)).size(), [0, 1]);
}

/// Tests prismane. All of its atoms are equivalent, but a bond is either in one ring of three atoms or in
/// two rings of four.
#[test]
fn pair_features_distinguish_the_bonds_of_prismane() {
    let env = MoleculeEnv::new(MoleculeConfig::new(9)).unwrap().into_env();
    let bonds = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (0, 3), (1, 4), (2, 5)];
    let bonds: Vec<_> = bonds.iter().map(|&(a, b)| (a, b, Edge::default())).collect();
    let prismane = GraphState::from_parts(GraphKind::Undirected, &[Node::default(); 6], &bonds).unwrap();
    let states = GraphStates::from(vec![prismane.clone()]);
    for conv in [ConvKind::Gine, ConvKind::Transformer { heads: 4 }] {
        let config = GraphNetConfig { layers: 4, pair_walks: Some(4), ..config(conv) };
        let policy = GraphPolicy(net(&env, config, Kind::Double));
        let pf = tch::no_grad(|| policy.evaluate(&env, &states, None, Quantities::PF)).unwrap().pf.unwrap();
        let masks = pf.masks();
        let block = masks.blocks.iter().position(|block| block.name == "set_edge_attr").unwrap();
        let first: usize = masks.blocks[..block].iter().map(|block| block.rows() * block.width).sum();
        let width = masks.blocks[block].width;
        let mut found = Vec::new();
        for row in 0..prismane.n_edges() {
            let slot = (first + row * width) as u32;
            let place = pf.legal_slots().binary_search(&slot).unwrap();
            let mut child = states.clone();
            env.step(gfn::env::Direction::Forward, &mut child, &gfn::env::Slots(vec![slot])).unwrap();
            found.push((canonical_key(&child.graphs()[0]), pf.host_log_probs().unwrap()[place]));
        }
        for (key, log_prob) in &found {
            for (other_key, other) in &found {
                let apart = (log_prob - other).abs();
                assert!(if key == other_key { apart < 1e-9 } else { apart > 1e-3 }, "{conv:?}: {apart}");
            }
        }
        assert!(found.iter().any(|(key, _)| *key != found[0].0), "two kinds of bonds");
    }
}
