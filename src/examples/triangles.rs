use std::sync::Arc;

use crate::graph::{ActionSet, AddEdge, GraphEnv, GraphRules, GraphState, Semantics};

/// A tiny graph environment: the 8 undirected graphs on three labelled nodes, built edge by edge.
///
/// ```
/// use gfn::env::{Direction, DiscreteEnv, Env};
/// let env = gfn::examples::Triangles::env();
/// // Three edges, and the exit.
/// assert_eq!(env.masks(Direction::Forward, &env.initial(&[0])).n_legal(0), 4);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Triangles;

impl Triangles {
    /// Returns the environment, which has no settings.
    #[must_use]
    pub fn env() -> GraphEnv {
        let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
        GraphEnv::assembled(Arc::new(Self), actions, GraphState::undirected(3))
    }
}

impl GraphRules for Triangles {}
