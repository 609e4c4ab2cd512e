//! The enumeration of the states of graph environments. States have equal keys if they are the same labelled
//! graph or, up to isomorphism, if they are isomorphic.

use crate::env::{Direction, EnumerableEnv, Slots};
use crate::graph::state::MIN_GRAPHS_PER_THREAD;
use crate::graph::{CanonicalKey, GraphEnv, GraphState, GraphStates, Semantics, labelled_key, reverse_move};
use crate::{Error, Result, parallel};

/// Computes the key of each child of one graph. Each move is applied and undone in place, which costs less
/// than a copy of the graph.
fn compute_child_keys(env: &GraphEnv, graph: &GraphState, slots: &[u32]) -> Result<Vec<CanonicalKey>> {
    let mut edited = graph.clone();
    let mut out = Vec::with_capacity(slots.len());
    for &slot in slots {
        let (_, action_type, action) = env.actions().decode(Direction::Forward, graph, slot)?;
        let undo = reverse_move(action_type, Direction::Forward, graph, action);
        action_type.apply(Direction::Forward, &mut edited, action)?;
        out.push(if env.merges_isomorphic() {
            env.try_canonical(&edited)?.key
        } else {
            labelled_key(&edited)
        });
        // The graph is copied again if it wasn't restored: undoing may relabel nodes (a removed node is added
        // again as the last one), and an action type may be faulty.
        if action_type.apply(Direction::Backward, &mut edited, undo).is_err() || edited != *graph {
            edited = graph.clone();
        }
    }
    Ok(out)
}

impl EnumerableEnv for GraphEnv {
    type Key = CanonicalKey;

    fn keys(&self, states: &GraphStates) -> Vec<CanonicalKey> {
        parallel::map(states.graphs(), MIN_GRAPHS_PER_THREAD, |graph| {
            if self.merges_isomorphic() { self.canonical(graph).key } else { labelled_key(graph) }
        })
    }

    fn child_keys(&self, states: &GraphStates, rows: &[usize], slots: &Slots) -> Result<Vec<CanonicalKey>> {
        if rows.len() != slots.0.len() {
            let n_rows = rows.len() as i64;
            let n_slots = slots.0.len() as i64;
            return Err(Error::shape("slots", [n_rows], [n_slots], "give one slot for each row"));
        }
        // Consecutive moves of the same state share one copy of the state.
        let mut runs = Vec::new();
        let mut start = 0;
        for run in rows.chunk_by(|a, b| a == b) {
            runs.push((run[0], start..start + run.len()));
            start += run.len();
        }
        let keys = parallel::try_map_range(runs.len(), MIN_GRAPHS_PER_THREAD, |k| {
            let (row, run) = &runs[k];
            compute_child_keys(self, &states.graphs()[*row], &slots.0[run.clone()])
        })?;
        Ok(keys.into_iter().flatten().collect())
    }

    fn merges_isomorphic(&self) -> bool {
        self.actions().semantics() == Semantics::UpToIsomorphism
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::{DiscreteEnv, Env, Rows};
    use crate::graph::{ActionSet, AddEdge, AddNode, Edge, Free, GraphKind, GraphSchema, Node, Reverse};

    fn env(semantics: Semantics, n_initial: usize) -> GraphEnv {
        let schema = GraphSchema { node_classes: 2, ..GraphSchema::plain(GraphKind::Undirected, 5) };
        let actions = ActionSet::new(semantics)
            .with(AddNode::free(2, 5))
            .with(AddEdge::new(1))
            .with(Reverse(AddNode::free(2, 5)));
        GraphEnv::new(Free, actions, GraphState::with_nodes(GraphKind::Undirected, n_initial))
            .and_then(|env| env.with_schema(schema))
            .unwrap()
    }

    /// Returns a path a - b - c whose nodes have the classes 0, 1, 0, and its two other labellings.
    fn paths() -> GraphStates {
        let nodes = [Node::from_class(0), Node::from_class(1), Node::from_class(0)];
        let edges = [(0, 1, Edge::default()), (1, 2, Edge::default())];
        let path = GraphState::from_parts(GraphKind::Undirected, &nodes, &edges).unwrap();
        vec![path.clone(), path.induced(&[1, 0, 2]), path.induced(&[2, 0, 1])].into()
    }

    #[test]
    fn keys_depend_on_labels_only_if_labels_have_a_meaning() {
        let labelled = env(Semantics::Labelled, 0).keys(&paths());
        assert!(labelled[0] != labelled[1] && labelled[1] != labelled[2]);
        let free = env(Semantics::UpToIsomorphism, 0);
        let keys = free.keys(&paths());
        assert!(keys[0] == keys[1] && keys[1] == keys[2]);
        // If no automorphism may move the first node, the two paths in which this node is an end have equal
        // keys, and the path in which this node is the middle has another key.
        let keys = env(Semantics::UpToIsomorphism, 1).keys(&paths());
        assert!(keys[0] == keys[2] && keys[0] != keys[1]);
        assert!(free.merges_isomorphic() && !env(Semantics::Labelled, 0).merges_isomorphic());
    }

    #[test]
    fn keys_of_children_are_those_of_stepped_states() {
        for semantics in [Semantics::Labelled, Semantics::UpToIsomorphism] {
            let env = env(semantics, 0);
            // The appended graph has isolated nodes of two classes. If such a node is removed and added
            // again, labels change, so `child_keys` has to copy the graph again.
            let mut states = paths();
            let nodes = [Node::from_class(0), Node::from_class(1), Node::from_class(0), Node::from_class(1)];
            states.append(vec![GraphState::from_parts(GraphKind::Undirected, &nodes, &[]).unwrap()].into());
            let masks = env.masks(Direction::Forward, &states);
            let mut rows = Vec::new();
            let mut slots = Vec::new();
            for row in 0..states.len() {
                let exit = masks.row(row).len() as u32 - 1;
                for slot in masks.legal_slots(row).filter(|&slot| slot != exit) {
                    rows.push(row);
                    slots.push(slot);
                }
            }
            let slots = Slots(slots);
            let mut children = states.select(&rows);
            env.step(Direction::Forward, &mut children, &slots).unwrap();
            assert!(rows.len() > 10);
            assert_eq!(env.child_keys(&states, &rows, &slots).unwrap(), env.keys(&children));
        }
    }
}
