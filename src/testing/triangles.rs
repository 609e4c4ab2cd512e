use crate::graph::{ActionSet, AddEdge, GraphEnv, GraphKind, GraphSchema, GraphState, Semantics};

/// A tiny graph environment: the 8 undirected graphs on three labelled nodes, built edge by edge.
///
/// ```
/// use gfn::{env::{Direction, DiscreteEnv, Env}, testing::Triangles};
/// let env = Triangles::new();
/// // Three edges, and the exit.
/// assert_eq!(env.masks(Direction::Forward, &env.initial(1)).n_legal(0), 4);
/// ```
#[derive(Debug)]
pub struct Triangles {
    actions: ActionSet,
    schema: GraphSchema,
    initial: GraphState,
}

impl Triangles {
    /// The environment; it has nothing to set.
    #[must_use]
    pub fn new() -> Self {
        Self {
            actions: ActionSet::new(Semantics::Labelled).with(AddEdge::new(1)),
            schema: GraphSchema::plain(GraphKind::Undirected, 3),
            initial: GraphState::with_nodes(GraphKind::Undirected, 3),
        }
    }
}

impl Default for Triangles {
    fn default() -> Self {
        Self::new()
    }
}

impl GraphEnv for Triangles {
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
