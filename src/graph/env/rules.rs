use std::sync::Arc;

use super::{MoveMask, ReducedGraph};
use crate::Result;
use crate::env::BatchRules;
use crate::graph::{ActionKind, GraphState, GraphStates, Move, with_canonizer};

/// The word of a graph environment's author beyond its parts: every method has a default that forbids nothing.
///
/// Forward and backward must agree: a move is legal exactly where its reverse is legal in the graph that it leads to. While backward
/// moves are derived ([`BackwardRule::Derived`](super::BackwardRule::Derived)) they do by construction, given that
/// [`is_reachable`](Self::is_reachable) tells the truth; [`contract::check_graph_env`](crate::contract::check_graph_env) looks.
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

    /// `true` if the graph may be a finished object.
    fn can_exit(&self, _graph: &GraphState) -> bool {
        true
    }

    /// False for graphs that no sequence of forward moves builds (a disconnected one, where growth is by attachment).
    fn is_reachable(&self, _graph: &GraphState) -> bool {
        true
    }

    /// The part of a graph that a policy sees of it: what is legal from here on, and what it is worth, must depend on that part alone. It keeps
    /// whatever node a move of either direction is at. `None` (the default) where policies see all of it. Moves
    /// are of nodes or of the graph where graphs are reduced, and a policy that is told of
    /// [symmetry](crate::nn::Symmetry) sees whole graphs in any case.
    ///
    /// A network has less to compute then, and graphs that are equal in what matters are one to it. The number of moves made belongs to what
    /// matters: P_B divides what an object is worth among the orders in which it is built.
    fn reduced(&self, _graph: &GraphState) -> Option<ReducedGraph> {
        None
    }

    /// Rules that forbid on top of these, asked about a batch at once; none, by default.
    fn batched(&self) -> Option<&dyn BatchRules<GraphStates, BatchMove>> {
        None
    }

    /// The correction of training, up to isomorphism: ln |Aut| of a graph, its first `n_fixed` nodes (those of the initial graph) held
    /// in place.
    ///
    /// An environment whose nodes stand for what has symmetries of its own (a fragment of a molecule) gives another number.
    /// `N_forward |Aut(child)| = N_backward |Aut(parent)|` must hold for it between any two states, as
    /// [`contract::check_env`](crate::contract::check_env) tests.
    ///
    /// # Errors
    /// Those of [`Canonizer::log_automorphisms`](crate::graph::Canonizer::log_automorphisms).
    fn log_automorphisms(&self, graph: &GraphState, n_fixed: usize) -> Result<f64> {
        with_canonizer(|canonizer| canonizer.log_automorphisms(graph, n_fixed))
    }

    /// The log of the number of states that are the same object as a graph, itself among them; 0, by default.
    ///
    /// Where it isn't, each state has that share of its object's reward ([`Symmetry::log_multiplicity`](crate::env::Symmetry::log_multiplicity)).
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

/// A forward move of one graph of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BatchMove {
    /// The graph's place in the batch.
    pub row: usize,
    /// The action type's place in its set.
    pub kind: ActionKind,
    /// The move.
    pub action: Move,
}

/// Shared rules, as [`GraphEnv::with_rules`](super::GraphEnv::with_rules) gives them.
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

    fn reduced(&self, graph: &GraphState) -> Option<ReducedGraph> {
        (**self).reduced(graph)
    }

    fn batched(&self) -> Option<&dyn BatchRules<GraphStates, BatchMove>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use crate::env::{Direction, DiscreteEnv, Env, Rows, StateGraph, random_moves};
    use crate::graph::{ActionSet, AddEdge, AddNode, GraphEnv, GraphKind, GraphSchema, Semantics};

    /// Triangles are forbidden, a graph of one edge can't be the end, and no node is left alone: graph by graph.
    struct Single;

    /// The same, of batches.
    struct Batched;

    fn closes(graph: &GraphState, action: Move) -> bool {
        let n = graph.n_nodes() as u32;
        (0..n).any(|c| graph.has_edge(action.a, c) && graph.has_edge(action.b, c))
    }

    impl GraphRules for Single {
        fn restrict(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
            if moves.type_name() == "add_edge" {
                moves.retain(|action| !closes(graph, action));
            }
        }
        fn can_exit(&self, graph: &GraphState) -> bool {
            graph.n_edges() != 1
        }
        fn is_reachable(&self, graph: &GraphState) -> bool {
            graph.n_edges() != 2
        }
    }

    impl BatchRules<GraphStates, BatchMove> for Batched {
        fn permits(&self, states: &GraphStates, moves: &[BatchMove]) -> Vec<bool> {
            // The first type adds nodes.
            moves.iter().map(|m| m.kind.0 == 0 || !closes(&states.graphs()[m.row], m.action)).collect()
        }
        fn can_end(&self, states: &GraphStates) -> Vec<bool> {
            states.graphs().iter().map(|graph| graph.n_edges() != 1).collect()
        }
        fn is_reachable(&self, states: &GraphStates) -> Vec<bool> {
            states.graphs().iter().map(|graph| graph.n_edges() != 2).collect()
        }
    }

    impl GraphRules for Batched {
        fn batched(&self) -> Option<&dyn BatchRules<GraphStates, BatchMove>> {
            Some(self)
        }
    }

    fn env(rules: impl GraphRules + 'static, semantics: Semantics) -> GraphEnv {
        let kind = GraphKind::Undirected;
        let actions = ActionSet::new(semantics).with(AddNode::free(2, 5)).with(AddEdge::new(1));
        let schema = GraphSchema { node_classes: 2, ..GraphSchema::plain(kind, 5) };
        GraphEnv::new(rules, actions, GraphState::with_nodes(kind, 2)).and_then(|env| env.with_schema(schema)).unwrap()
    }

    #[test]
    fn masks_are_those_of_rules_of_single_graphs() {
        for semantics in [Semantics::Labelled, Semantics::UpToIsomorphism] {
            let (single, batched) = (env(Single, semantics), env(Batched, semantics));
            let mut states = single.initial(&[0; 32]);
            let mut rng = Rng::seeded(0);
            let mut forbidden = 0;
            for _ in 0..8 {
                for direction in [Direction::Forward, Direction::Backward] {
                    let (expected, got) = (single.masks(direction, &states), batched.masks(direction, &states));
                    assert_eq!(expected.legal, got.legal);
                    let free = env(crate::graph::Free, semantics).masks(direction, &states);
                    forbidden += free.legal.iter().zip(&got.legal).filter(|(free, got)| free != got).count();
                }
                let (going, slots) = random_moves(&single.masks(Direction::Forward, &states), &mut rng);
                states = states.select(&going);
                single.step(Direction::Forward, &mut states, &slots).unwrap();
            }
            // Else nothing was compared.
            assert!(forbidden > 100, "{forbidden}");
        }
    }

    #[test]
    fn the_states_are_those_of_rules_of_single_graphs() {
        let count = |n: usize| {
            assert_eq!(n, StateGraph::build(&env(Batched, Semantics::UpToIsomorphism), 10_000).unwrap().len())
        };
        count(StateGraph::build(&env(Single, Semantics::UpToIsomorphism), 10_000).unwrap().len());
    }

    #[test]
    fn short_answers_forbid() {
        struct Silent;
        impl BatchRules<GraphStates, BatchMove> for Silent {
            fn permits(&self, _: &GraphStates, _: &[BatchMove]) -> Vec<bool> {
                Vec::new()
            }
        }
        impl GraphRules for Silent {
            fn batched(&self) -> Option<&dyn BatchRules<GraphStates, BatchMove>> {
                Some(self)
            }
        }
        let env = env(Silent, Semantics::Labelled);
        // Nothing but the exit.
        assert_eq!(env.masks(Direction::Forward, &env.initial(&[0])).n_legal(0), 1);
    }

    /// A parent that can be reached, but from which the move that led here is forbidden, isn't gone back to.
    #[test]
    fn moves_back_undo_moves_that_are_allowed() {
        /// The first two nodes are joined first or never.
        struct First;
        impl GraphRules for First {
            fn restrict(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
                moves.retain(|action| allowed(graph, action));
            }
        }
        struct FirstOfBatch;
        impl BatchRules<GraphStates, BatchMove> for FirstOfBatch {
            fn permits(&self, states: &GraphStates, moves: &[BatchMove]) -> Vec<bool> {
                moves.iter().map(|m| allowed(&states.graphs()[m.row], m.action)).collect()
            }
        }
        impl GraphRules for FirstOfBatch {
            fn batched(&self) -> Option<&dyn BatchRules<GraphStates, BatchMove>> {
                Some(self)
            }
        }
        fn allowed(graph: &GraphState, action: Move) -> bool {
            graph.n_edges() == 0 || (action.a.min(action.b), action.a.max(action.b)) != (0, 1)
        }
        fn edges(rules: impl GraphRules + 'static) -> GraphEnv {
            let kind = GraphKind::Undirected;
            let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
            GraphEnv::new(rules, actions, GraphState::with_nodes(kind, 3)).unwrap()
        }
        let states = StateGraph::build(&edges(First), 100).unwrap().states().clone();
        let back = edges(FirstOfBatch).masks(Direction::Backward, &states);
        assert_eq!(back.legal, edges(First).masks(Direction::Backward, &states).legal);
        // 01 must stay while there is another edge; all other edges may go.
        let row = states.graphs().iter().position(|graph| graph.n_edges() == 3).unwrap();
        assert_eq!(back.n_legal(row), 2);
    }
}
