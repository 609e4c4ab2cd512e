use serde_json::Value;

use super::{MoveMask, ReducedGraph};
use crate::Result;
use crate::env::BatchRules;
use crate::graph::{ActionKind, GraphState, GraphStates, Move, with_canonizer};

/// The custom rules of a graph environment, which restrict its action types. Every method has a default. The
/// default rules forbid nothing.
///
/// Forward and backward moves must agree: a move is legal if and only if its reverse is legal in the graph to
/// which the move leads. Derived backward moves ([`BackwardRule::Derived`](super::BackwardRule::Derived))
/// agree by construction, if [`is_reachable`](Self::is_reachable) is correct.
/// [`contract::check_graph_env`](crate::contract::check_graph_env) tests the agreement.
///
/// If states are graphs up to isomorphism, rules must not depend on the labels of nodes other than those of
/// the initial graph: if the other nodes are relabelled, in a graph and in its moves, the rules must return
/// the same. Rules that depend on "node 0", or on even labels, split one object into several, and the trained
/// distribution becomes wrong. A trainer tests this condition: it compares some graphs of random trajectories
/// with relabelled copies.
pub trait GraphRules: Send + Sync {
    /// Forbids some of the forward moves that an action type allows. The method is called once for each
    /// action type except the exit. The default forbids nothing.
    fn restrict(&self, _graph: &GraphState, _moves: &mut MoveMask<'_>) {}

    /// Forbids some of the backward moves that an action type allows. The method is called only with
    /// [`BackwardRule::ByType`](super::BackwardRule::ByType). Implement the method if the masks of the action
    /// types allow backward moves that aren't legal in the environment. The default forbids nothing.
    fn restrict_backward(&self, _graph: &GraphState, _moves: &mut MoveMask<'_>) {}

    /// Returns `true` if the graph may be a finished object. The default is `true`.
    fn can_exit(&self, _graph: &GraphState) -> bool {
        true
    }

    /// Returns `false` for graphs that no sequence of forward moves builds. An example is a disconnected
    /// graph, if each new node is joined to the graph by an edge. The default is `true`.
    fn is_reachable(&self, _graph: &GraphState) -> bool {
        true
    }

    /// Returns the name of the object that a graph represents, such as a molecule's SMILES, for messages. The
    /// default is `None`, for objects that are just graphs.
    fn name(&self, _graph: &GraphState) -> Option<String> {
        None
    }

    /// Returns the part of a graph that a policy sees; `None`, the default, if the policy sees the whole
    /// graph.
    ///
    /// A reduced graph saves computation, and a network evaluates graphs with equal reduced graphs only once.
    /// All later legal moves and rewards must depend on the reduced graph alone. The reduced graph must
    /// contain every node that has a legal move in either direction. The reduced graph must also determine
    /// the number of moves so far: P_B divides the reward of an object among the orders of its moves, so the
    /// flow through a state depends on the number of moves.
    ///
    /// Action types of environments with reduced graphs must have the anchor
    /// [`Graph`](crate::graph::Anchor::Graph) or [`Node`](crate::graph::Anchor::Node). A policy whose network
    /// uses [symmetry](crate::nn::SymmetryInput) always sees whole graphs.
    fn reduced(&self, _graph: &GraphState) -> Option<ReducedGraph> {
        None
    }

    /// Returns the settings of the rules, which a checkpoint stores; null (the default) for rules without
    /// settings. [`gfn::load_with_env`](crate::load_with_env) returns an error for an environment whose rules
    /// have other settings than the checkpoint's. Rules that wrap other rules must not return the settings of
    /// the wrapped rules unchanged: the environment would be loaded with the wrapped rules alone.
    fn settings(&self) -> Value {
        Value::Null
    }

    /// Returns additional rules that are evaluated for a batch of moves at once; the default is `None`.
    fn batched(&self) -> Option<&dyn BatchRules<GraphStates, BatchMove>> {
        None
    }

    /// Returns ln |Aut| of a graph, which training uses to correct for symmetry if states are graphs up to
    /// isomorphism. Automorphisms must fix each of the first `n_fixed` nodes, which are those of the initial
    /// graph.
    ///
    /// Override this method if nodes represent parts that have symmetries themselves (such as a fragment of a
    /// molecule). The equation `N_forward |Aut(child)| = N_backward |Aut(parent)|` must hold between any two
    /// states, where `N_forward` and `N_backward` are the numbers of moves from the parent to the child and
    /// back; [`contract::check_env`](crate::contract::check_env) tests this equation.
    ///
    /// # Errors
    /// Returns the errors of [`Canonizer::log_automorphisms`](crate::graph::Canonizer::log_automorphisms).
    fn log_automorphisms(&self, graph: &GraphState, n_fixed: usize) -> Result<f64> {
        with_canonizer(|canonizer| canonizer.log_automorphisms(graph, n_fixed))
    }

    /// Returns the natural logarithm of the number of states that represent the same object as `graph`,
    /// including `graph` itself. The default is 0.
    ///
    /// The reward of an object is divided equally among its states
    /// ([`Symmetry::log_multiplicity`](crate::env::Symmetry::log_multiplicity)). Trajectories must reach all
    /// of these states. The shares of unreachable states would be lost, for example if an initial graph fixes
    /// one of several states that represent the same ring.
    ///
    /// # Errors
    /// [`Error`](crate::Error) if the object has more states than can be counted.
    fn log_multiplicity(&self, _graph: &GraphState) -> Result<f64> {
        Ok(0.0)
    }

    /// Returns all states that represent the same object as `graph`, each once (up to isomorphism: one per
    /// isomorphism class). [`log_multiplicity`](Self::log_multiplicity) returns the logarithm of their
    /// number. The default is `None`, which means that `graph` is the only such state.
    ///
    /// # Errors
    /// [`Error`](crate::Error) if the object has more states than can be listed.
    fn forms(&self, _graph: &GraphState) -> Result<Option<Vec<GraphState>>> {
        Ok(None)
    }
}

/// A forward move in one graph of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BatchMove {
    /// The index of the graph within the batch.
    pub row: usize,
    /// The index of the action type within its action set.
    pub kind: ActionKind,
    /// The move, which names the nodes and the column of the block of logits.
    pub action: Move,
}

/// The rules that forbid nothing: any move that an action type allows is legal, and the exit is legal in any
/// graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Free;

impl GraphRules for Free {
    fn settings(&self) -> Value {
        Value::from(FREE)
    }
}

/// The settings of [`Free`].
pub(super) const FREE: &str = "Free";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use crate::env::{Direction, DiscreteEnv, Env, Rows, StateGraph, random_moves};
    use crate::graph::{ActionSet, AddEdge, AddNode, GraphEnv, GraphKind, GraphSchema, Semantics};

    /// Rules for single graphs: an edge must not close a triangle, a graph of one edge can't end a
    /// trajectory, and a graph of two edges isn't reachable.
    struct Single;

    /// Rules that forbid the same as `Single`, but are evaluated for batches.
    struct Batched;

    fn closes_triangle(graph: &GraphState, action: Move) -> bool {
        let n = graph.n_nodes() as u32;
        (0..n).any(|c| graph.has_edge(action.a, c) && graph.has_edge(action.b, c))
    }

    impl GraphRules for Single {
        fn restrict(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
            if moves.type_name() == AddEdge::NAME {
                moves.retain(|action| !closes_triangle(graph, action));
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
            // The type with index 0 adds nodes, and all its moves are allowed.
            moves
                .iter()
                .map(|m| m.kind.0 == 0 || !closes_triangle(&states.graphs()[m.row], m.action))
                .collect()
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
        GraphEnv::new(rules, actions, GraphState::with_nodes(kind, 2))
            .and_then(|env| env.with_schema(schema))
            .unwrap()
    }

    #[test]
    fn masks_are_those_of_rules_of_single_graphs() {
        for semantics in [Semantics::Labelled, Semantics::UpToIsomorphism] {
            let single = env(Single, semantics);
            let batched = env(Batched, semantics);
            let mut states = single.initial(&[0; 32]);
            let mut rng = Rng::seeded(0);
            let mut forbidden = 0;
            for _ in 0..8 {
                for direction in [Direction::Forward, Direction::Backward] {
                    let expected = single.masks(direction, &states);
                    let got = batched.masks(direction, &states);
                    assert_eq!(expected.legal, got.legal);
                    let free = env(crate::graph::Free, semantics).masks(direction, &states);
                    forbidden += free.legal.iter().zip(&got.legal).filter(|(free, got)| free != got).count();
                }
                let (moving, slots) = random_moves(&single.masks(Direction::Forward, &states), &mut rng);
                states = states.select(&moving);
                single.step(Direction::Forward, &mut states, &slots).unwrap();
            }
            // Equal masks test the rules only if the rules forbade many moves in these states.
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
        // Rules that return no result for moves forbid them, so only the exit is legal.
        assert_eq!(env.masks(Direction::Forward, &env.initial(&[0])).n_legal(0), 1);
    }

    /// Checks that a backward move is illegal if its forward move is forbidden in the parent, even if the
    /// parent is reachable.
    #[test]
    fn backward_moves_undo_legal_forward_moves() {
        /// Rules that allow the edge 0-1 only as the first edge.
        struct First;
        impl GraphRules for First {
            fn restrict(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
                moves.retain(|action| is_allowed(graph, action));
            }
        }
        struct FirstOfBatch;
        impl BatchRules<GraphStates, BatchMove> for FirstOfBatch {
            fn permits(&self, states: &GraphStates, moves: &[BatchMove]) -> Vec<bool> {
                moves.iter().map(|m| is_allowed(&states.graphs()[m.row], m.action)).collect()
            }
        }
        impl GraphRules for FirstOfBatch {
            fn batched(&self) -> Option<&dyn BatchRules<GraphStates, BatchMove>> {
                Some(self)
            }
        }
        fn is_allowed(graph: &GraphState, action: Move) -> bool {
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
        // The edge 0-1 can't be removed while there is another edge, but all other edges can.
        let row = states.graphs().iter().position(|graph| graph.n_edges() == 3).unwrap();
        assert_eq!(back.n_legal(row), 2);
    }
}
