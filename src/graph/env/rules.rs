use std::sync::Arc;

use super::{BatchRules, MoveMask};
use crate::Result;
use crate::graph::{GraphState, with_canonizer};

/// What the author of a graph environment has to say beyond its parts: every method has a default that forbids nothing.
///
/// Forward and backward must agree: a move is legal exactly where its reverse is legal in the graph that it leads to. While backward
/// moves are derived ([`BackwardRule::Derived`](super::BackwardRule::Derived)) they do by construction, given that
/// [`is_reachable`](Self::is_reachable) tells the truth; [`testing::check_graph_env`](crate::testing::check_graph_env) looks.
///
/// Up to isomorphism they must not see labels: what they say of a graph and its moves they say of it under any other labels of the nodes
/// behind those of the initial graph. Rules that look at "node 0", or at whether a label is even, make one object into several, and the
/// trained distribution wrong. A trainer compares some graphs of random walks with the same under other labels.
pub trait GraphRules: Send + Sync {
    /// Forbids forward moves of one action type that the type itself would allow; called once per type, the exit excepted.
    fn restrict(&self, _graph: &GraphState, _moves: &mut MoveMask<'_>) {}

    /// The same for backward moves, which remove, unset, or undo: for environments whose moves back are found by type, where the
    /// types know less than the environment.
    fn restrict_backward(&self, _graph: &GraphState, _moves: &mut MoveMask<'_>) {}

    /// Whether the graph may be a finished object.
    fn can_exit(&self, _graph: &GraphState) -> bool {
        true
    }

    /// False for graphs that no sequence of forward moves builds (a disconnected one, where growth is by attachment).
    fn is_reachable(&self, _graph: &GraphState) -> bool {
        true
    }

    /// Rules that forbid on top of these, asked about a batch at once; none, by default.
    fn batched(&self) -> Option<&dyn BatchRules> {
        None
    }

    /// What training corrects for, up to isomorphism: ln |Aut| of a graph, its first `n_fixed` nodes (those of the initial graph) held
    /// in place.
    ///
    /// An environment whose nodes stand for what has symmetries of its own (a fragment of a molecule) gives another number.
    /// `N_forward |Aut(child)| = N_backward |Aut(parent)|` must hold for it between any two states, as
    /// [`testing::check_env`](crate::testing::check_env) tests.
    ///
    /// # Errors
    /// Those of [`Canonizer::log_automorphisms`](crate::graph::Canonizer::log_automorphisms).
    fn log_automorphisms(&self, graph: &GraphState, n_fixed: usize) -> Result<f64> {
        with_canonizer(|canonizer| canonizer.log_automorphisms(graph, n_fixed))
    }

    /// The log of the number of states that are the same object as a graph, itself among them; 0, by default.
    ///
    /// Where it isn't, each state has that share of its object's reward ([`Env::log_multiplicity`](crate::env::Env::log_multiplicity)).
    /// Trajectories must come to all of them: an initial graph that fixes one form of a ring takes the others' share away.
    ///
    /// # Errors
    /// [`Error`](crate::Error) for a graph whose object has more of them than can be counted.
    fn log_multiplicity(&self, _graph: &GraphState) -> Result<f64> {
        Ok(0.0)
    }

    /// The states that [`log_multiplicity`](Self::log_multiplicity) counts, each once, up to isomorphism one of each class; `None`
    /// (the default) where there is no other.
    ///
    /// # Errors
    /// [`Error`](crate::Error) for a graph whose object has more of them than can be listed.
    fn forms(&self, _graph: &GraphState) -> Result<Option<Vec<GraphState>>> {
        Ok(None)
    }
}

/// Rules chosen at run time: `Arc<dyn GraphRules>` ([`GraphEnv::with_rules`](super::GraphEnv::with_rules)).
impl<R: GraphRules + ?Sized> GraphRules for Arc<R> {
    fn restrict(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
        (**self).restrict(graph, moves);
    }

    fn restrict_backward(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
        (**self).restrict_backward(graph, moves);
    }

    fn can_exit(&self, graph: &GraphState) -> bool {
        (**self).can_exit(graph)
    }

    fn is_reachable(&self, graph: &GraphState) -> bool {
        (**self).is_reachable(graph)
    }

    fn batched(&self) -> Option<&dyn BatchRules> {
        (**self).batched()
    }

    fn log_automorphisms(&self, graph: &GraphState, n_fixed: usize) -> Result<f64> {
        (**self).log_automorphisms(graph, n_fixed)
    }

    fn log_multiplicity(&self, graph: &GraphState) -> Result<f64> {
        (**self).log_multiplicity(graph)
    }

    fn forms(&self, graph: &GraphState) -> Result<Option<Vec<GraphState>>> {
        (**self).forms(graph)
    }
}

/// The rules that forbid nothing: any move that an action type allows, an exit anywhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Free;

impl GraphRules for Free {}
