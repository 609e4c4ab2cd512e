//! Small environments that more than one test needs.

pub(crate) mod subdivisions;

use gfn::graph::{ActionSet, AddEdge, AddNode, GraphEnv, GraphKind, GraphSchema, GraphState, Semantics};

/// Connected graphs of at most `n` nodes in two colours, grown node by node, up to isomorphism.
#[derive(Debug)]
pub(crate) struct ColouredGraphs {
    actions: ActionSet,
    schema: GraphSchema,
    initial: GraphState,
}

impl ColouredGraphs {
    pub(crate) fn new(n: usize) -> Self {
        let mut schema = GraphSchema::plain(GraphKind::Undirected, n);
        schema.node_classes = 2;
        Self {
            actions: ActionSet::new(Semantics::UpToIsomorphism)
                .with(AddNode::first(2))
                .with(AddNode::attached(2, 1, n))
                .with(AddEdge::new(1).keeping_connected()),
            schema,
            initial: GraphState::new(GraphKind::Undirected),
        }
    }
}

impl GraphEnv for ColouredGraphs {
    fn actions(&self) -> &ActionSet {
        &self.actions
    }
    fn schema(&self) -> &GraphSchema {
        &self.schema
    }
    fn initial_graph(&self) -> &GraphState {
        &self.initial
    }
}
