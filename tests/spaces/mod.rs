//! Small environments that several tests share.

pub(crate) mod subdivisions;

use gfn::graph::{
    ActionSet, AddEdge, AddNode, GraphEnv, GraphKind, GraphRules, GraphSchema, GraphState, Semantics,
};

/// The rules of connected graphs of at most `n` nodes in two colours, grown node by node, up to isomorphism.
#[derive(Debug)]
pub(crate) struct ColouredGraphs;

impl ColouredGraphs {
    pub(crate) fn env(n: usize) -> GraphEnv {
        let mut schema = GraphSchema::plain(GraphKind::Undirected, n);
        schema.node_classes = 2;
        let actions = ActionSet::new(Semantics::UpToIsomorphism)
            .with(AddNode::first(2))
            .with(AddNode::attached(2, 1, n))
            .with(AddEdge::new(1).keeping_connected());
        GraphEnv::new(Self, actions, GraphState::new(GraphKind::Undirected))
            .and_then(|env| env.with_schema(schema))
            .unwrap()
    }
}

impl GraphRules for ColouredGraphs {}
