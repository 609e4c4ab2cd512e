//! Candidates belong to an environment's initial graphs: what states of elsewhere must be given, and what is refused.

use super::{GraphEnv, GraphRules};
use crate::env::Direction;
use crate::graph::{Anchor, GraphActionType, GraphState, GraphStates, Move, Semantics};
use crate::{Error, Result};

/// Checks that candidates are there where edges are added among them, and only there: else they would mean nothing, or no edge could be added.
pub(super) fn check_candidates<R: GraphRules>(env: &GraphEnv<R>) -> Result<()> {
    let among = [Direction::Forward, Direction::Backward]
        .into_iter()
        .any(|direction| env.actions().heads(direction).any(|(_, _, head)| head.anchor == Anchor::Candidate));
    let Some(instance) = env.initial_graphs().iter().position(|graph| graph.lists_candidates() != among) else {
        return Ok(());
    };
    let (got, expected) = match among {
        true => ("none", "a list of them (`GraphState::with_candidates`), as edges are added among candidates alone"),
        false => ("some", "none, or an action type that reads them (`AddEdge::among_candidates`)"),
    };
    Err(Error::config("the candidates of an initial graph", format!("{got}, of instance {instance}"), expected))
}

/// Refuses a move that takes a node of the initial graph, where candidates name them, and up to isomorphism: nodes of the initial graph
/// come first there, and without one of them the next would be taken for it.
pub(super) fn check_removed<R: GraphRules>(
    env: &GraphEnv<R>,
    (direction, action_type): (Direction, &dyn GraphActionType),
    graph: &GraphState,
    action: Move,
) -> Result<()> {
    if env.actions().semantics() == Semantics::Labelled && !graph.lists_candidates() {
        return Ok(());
    }
    let first = env.initial_of(graph).n_nodes();
    match action_type.removed_nodes(direction, graph, action).into_iter().find(|&a| (a as usize) < first) {
        None => Ok(()),
        Some(a) => Err(Error::contract(
            if graph.lists_candidates() {
                "no move takes a node of an initial graph that lists candidates, which name its nodes"
            } else {
                "up to isomorphism no move takes a node of the initial graph (mark it as gone by an attribute, `SetNodeAttr`, or tell \
                 nodes apart by their labels, `Semantics::Labelled`)"
            },
            format!("{} takes node {a} of {graph}", action_type.name()),
        )),
    }
}

impl<R: GraphRules> GraphEnv<R> {
    /// States that come from elsewhere (a file, another environment), with the [candidates](GraphState::candidates) of their instances in
    /// this one: without these they would be other states.
    #[must_use]
    pub fn adopted(&self, states: GraphStates) -> GraphStates {
        if states.graphs().iter().all(|graph| graph.has_candidates_of(self.initial_of(graph))) {
            return states;
        }
        let graphs = states.into_graphs().into_iter();
        let adopted = graphs.map(|graph| {
            let initial = self.initial_of(&graph).clone();
            graph.with_candidates_of(&initial)
        });
        adopted.collect::<Vec<_>>().into()
    }

    /// Whether a state has the candidates of its instance: else its slots would mean something else.
    pub(crate) fn lists_as_initial(&self, graph: &GraphState) -> bool {
        graph.has_candidates_of(self.initial_of(graph))
    }

    /// Refuses states with other candidates than their instances have.
    ///
    /// # Errors
    /// [`Error::Contract`] that names the first one.
    pub(crate) fn check_listed(&self, states: &GraphStates) -> Result<()> {
        match states.graphs().iter().position(|graph| !self.lists_as_initial(graph)) {
            None => Ok(()),
            Some(row) => Err(Error::contract(
                "a state has the candidates of its instance's initial graph (`GraphEnv::adopted` gives it these)",
                format!("state {row} doesn't: {}", states.graphs()[row]),
            )),
        }
    }
}
