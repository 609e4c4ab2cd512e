//! Rules that are asked about whole batches: for authors to whom a call costs more than a graph.

use super::{GraphEnv, GraphRules};
use crate::env::{Direction, Masks, Rows};
use crate::graph::{ActionKind, GraphState, GraphStates, Move, reverse_move};

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

/// What [`GraphRules`] say graph by graph, said of a batch at once: rules in another language, where each call has a price.
///
/// They forbid on top of the rules whose [`batched`](GraphRules::batched) gives them. Backward moves are derived from the forward
/// ones: the graphs that they lead to are asked about in one batch, too. An answer that is too short forbids what it leaves out.
///
/// ```
/// use gfn::graph::*;
///
/// /// At most three edges at a node.
/// struct Thin;
///
/// impl BatchRules for Thin {
///     fn permits(&self, states: &GraphStates, moves: &[BatchMove]) -> Vec<bool> {
///         let degree = |m: &BatchMove, a| states.graphs()[m.row].degree(a);
///         moves.iter().map(|m| degree(m, m.action.a).max(degree(m, m.action.b)) < 3).collect()
///     }
/// }
///
/// impl GraphRules for Thin {
///     fn batched(&self) -> Option<&dyn BatchRules> {
///         Some(self)
///     }
/// }
///
/// let kind = GraphKind::Undirected;
/// let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
/// let env = GraphEnv::new(Thin, actions, GraphSchema::plain(kind, 5), GraphState::with_nodes(kind, 5))?;
/// // Of 1,024 labelled graphs of five nodes.
/// assert_eq!(gfn::env::StateGraph::build(&env, 2_000)?.len(), 768);
/// # Ok::<(), gfn::Error>(())
/// ```
pub trait BatchRules: Send + Sync {
    /// Which of these forward moves are allowed, of those that action types and rules of single graphs allow.
    fn permits(&self, states: &GraphStates, moves: &[BatchMove]) -> Vec<bool>;

    /// Which of these graphs may be finished objects; all, by default.
    fn can_exit(&self, states: &GraphStates) -> Vec<bool> {
        vec![true; states.len()]
    }

    /// False for graphs that no sequence of forward moves builds; none, by default.
    fn is_reachable(&self, states: &GraphStates) -> Vec<bool> {
        vec![true; states.len()]
    }
}

/// Forbids in the masks of a batch what the rules of batches forbid.
pub(super) fn restrict<R: GraphRules>(
    env: &GraphEnv<R>,
    rules: &dyn BatchRules,
    states: &GraphStates,
    masks: &mut Masks,
) {
    match masks.direction {
        Direction::Forward => forward(env, rules, states, masks),
        Direction::Backward => backward(env, rules, states, masks),
    }
}

fn forward<R: GraphRules>(env: &GraphEnv<R>, rules: &dyn BatchRules, states: &GraphStates, masks: &mut Masks) {
    let heads: Vec<_> = env.actions().heads(Direction::Forward).collect();
    let (mut moves, mut places, mut exits) = (Vec::new(), Vec::new(), Vec::new());
    let mut place = 0;
    for (row, graph) in states.graphs().iter().enumerate() {
        for &(kind, action_type, head) in &heads {
            let slots = head.anchor.rows(graph) * head.width;
            if action_type.is_exit() {
                exits.push(place);
            } else {
                let legal = (0..slots).filter(|slot| masks.legal[place + slot]);
                for slot in legal {
                    moves.push(BatchMove { row, kind, action: head.decode(graph, slot) });
                    places.push(place + slot);
                }
            }
            place += slots;
        }
    }
    if !moves.is_empty() {
        forbid(masks, &places, &rules.permits(states, &moves));
    }
    if !exits.is_empty() {
        forbid(masks, &exits, &rules.can_exit(states));
    }
}

/// Keeps the moves back to graphs that can be reached, and from which the move here is allowed.
fn backward<R: GraphRules>(env: &GraphEnv<R>, rules: &dyn BatchRules, states: &GraphStates, masks: &mut Masks) {
    let (mut parents, mut moves, mut places): (Vec<GraphState>, _, _) = (Vec::new(), Vec::new(), Vec::new());
    for (row, graph) in states.graphs().iter().enumerate() {
        let first = masks.slot_ptr[row];
        for slot in masks.legal_slots(row).collect::<Vec<_>>() {
            let place = first + slot as usize;
            let Ok((kind, action_type, undo)) = env.actions().decode(Direction::Backward, graph, slot) else {
                masks.legal[place] = false;
                continue;
            };
            let action = reverse_move(action_type, Direction::Backward, graph, undo);
            let mut parent = graph.clone();
            if action_type.apply(Direction::Backward, &mut parent, undo).is_err() {
                masks.legal[place] = false;
                continue;
            }
            moves.push(BatchMove { row: parents.len(), kind, action });
            parents.push(parent);
            places.push(place);
        }
    }
    if moves.is_empty() {
        return;
    }
    let parents = GraphStates::from(parents);
    forbid(masks, &places, &rules.is_reachable(&parents));
    forbid(masks, &places, &rules.permits(&parents, &moves));
}

fn forbid(masks: &mut Masks, places: &[usize], permitted: &[bool]) {
    for (k, &place) in places.iter().enumerate() {
        if permitted.get(k) != Some(&true) {
            masks.legal[place] = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use crate::env::{DiscreteEnv, Env, StateGraph, random_moves};
    use crate::graph::{ActionSet, AddEdge, AddNode, GraphKind, GraphSchema, MoveMask, Semantics};

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

    impl BatchRules for Batched {
        fn permits(&self, states: &GraphStates, moves: &[BatchMove]) -> Vec<bool> {
            // The first type adds nodes.
            moves.iter().map(|m| m.kind.0 == 0 || !closes(&states.graphs()[m.row], m.action)).collect()
        }
        fn can_exit(&self, states: &GraphStates) -> Vec<bool> {
            states.graphs().iter().map(|graph| graph.n_edges() != 1).collect()
        }
        fn is_reachable(&self, states: &GraphStates) -> Vec<bool> {
            states.graphs().iter().map(|graph| graph.n_edges() != 2).collect()
        }
    }

    impl GraphRules for Batched {
        fn batched(&self) -> Option<&dyn BatchRules> {
            Some(self)
        }
    }

    fn env<R: GraphRules>(rules: R, semantics: Semantics) -> GraphEnv<R> {
        let kind = GraphKind::Undirected;
        let actions = ActionSet::new(semantics).with(AddNode::free(2, 5)).with(AddEdge::new(1));
        let schema = GraphSchema { node_classes: 2, ..GraphSchema::plain(kind, 5) };
        GraphEnv::new(rules, actions, schema, GraphState::with_nodes(kind, 2)).unwrap()
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
        impl BatchRules for Silent {
            fn permits(&self, _: &GraphStates, _: &[BatchMove]) -> Vec<bool> {
                Vec::new()
            }
        }
        impl GraphRules for Silent {
            fn batched(&self) -> Option<&dyn BatchRules> {
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
        impl BatchRules for FirstOfBatch {
            fn permits(&self, states: &GraphStates, moves: &[BatchMove]) -> Vec<bool> {
                moves.iter().map(|m| allowed(&states.graphs()[m.row], m.action)).collect()
            }
        }
        impl GraphRules for FirstOfBatch {
            fn batched(&self) -> Option<&dyn BatchRules> {
                Some(self)
            }
        }
        fn allowed(graph: &GraphState, action: Move) -> bool {
            graph.n_edges() == 0 || (action.a.min(action.b), action.a.max(action.b)) != (0, 1)
        }
        fn edges<R: GraphRules>(rules: R) -> GraphEnv<R> {
            let kind = GraphKind::Undirected;
            let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
            GraphEnv::new(rules, actions, GraphSchema::plain(kind, 3), GraphState::with_nodes(kind, 3)).unwrap()
        }
        let states = StateGraph::build(&edges(First), 100).unwrap().states().clone();
        let back = edges(FirstOfBatch).masks(Direction::Backward, &states);
        assert_eq!(back.legal, edges(First).masks(Direction::Backward, &states).legal);
        // 01 must stay while there is another edge; all other edges may go.
        let row = states.graphs().iter().position(|graph| graph.n_edges() == 3).unwrap();
        assert_eq!(back.n_legal(row), 2);
    }
}
