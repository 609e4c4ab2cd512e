use super::backward::TypeHead;
use crate::graph::{ActionKind, Anchor, GraphActionType, GraphView, Head, Move};

/// The legal moves of one action type in one graph. The rules of an environment,
/// [`GraphRules`](super::GraphRules), forbid some of these moves.
///
/// A [`Move`] holds the labels of its nodes and its column. The nodes of an undirected pair or edge may be
/// given in either order. Iterators return moves in the order of their slots.
#[derive(Debug)]
pub struct MoveMask<'a> {
    graph: GraphView<'a>,
    kind: ActionKind,
    action_type: &'a dyn GraphActionType,
    head: Head,
    legal: &'a mut [bool],
}

impl<'a> MoveMask<'a> {
    pub(super) fn new(graph: GraphView<'a>, type_head: TypeHead<'a>, legal: &'a mut [bool]) -> Self {
        let (kind, action_type, head) = type_head;
        Self { graph, kind, action_type, head, legal }
    }

    /// The index of the action type within its action set.
    #[must_use]
    pub fn kind(&self) -> ActionKind {
        self.kind
    }

    /// The name of the action type: [`AddEdge::NAME`](crate::graph::AddEdge::NAME),
    /// [`AddNode::FREE`](crate::graph::AddNode::FREE), `AddNode::FIRST`, `AddNode::ATTACHED`,
    /// `SetNodeAttr::NAME`, `SetEdgeAttr::NAME`, `"remove_node"`, `"remove_first_node"`,
    /// `"remove_attached_node"`, `"remove_edge"`, `"remove_node_attr"`, `"remove_edge_attr"`, or the name of
    /// a custom type. Rules for one of several action types compare this name.
    #[must_use]
    pub fn type_name(&self) -> &str {
        self.action_type.name()
    }

    /// Returns the slot of a move; `None` if the block of logits has no slot for the move in this graph.
    fn slot(&self, action: Move) -> Option<usize> {
        let n = self.graph.n_nodes() as u32;
        let action = self.head.order_nodes(action, self.graph.is_directed());
        let is_there = match self.head.anchor {
            Anchor::Graph => true,
            Anchor::Node => action.a < n,
            Anchor::Edge => self.graph.has_edge(action.a, action.b),
            Anchor::NodePair => action.a.max(action.b) < n,
        };
        (is_there && (action.class as usize) < self.head.width).then(|| self.head.encode(&self.graph, action))
    }

    /// Forbids a move. A move that the graph doesn't have, or that is forbidden already, changes nothing.
    pub fn forbid(&mut self, action: Move) {
        if let Some(legal) = self.slot(action).and_then(|slot| self.legal.get_mut(slot)) {
            *legal = false;
        }
    }

    /// Forbids all moves of this type.
    pub fn forbid_all(&mut self) {
        self.legal.fill(false);
    }

    /// Returns `true` if a move is still allowed.
    #[must_use]
    pub fn allows(&self, action: Move) -> bool {
        self.slot(action).is_some_and(|slot| self.legal[slot])
    }

    /// Returns `true` if at least one move is still allowed.
    #[must_use]
    pub fn any(&self) -> bool {
        self.legal.contains(&true)
    }

    /// Returns the moves that are still allowed.
    pub fn allowed(&self) -> impl Iterator<Item = Move> + '_ {
        let legal = self.legal.iter().enumerate().filter(|(_, legal)| **legal);
        legal.map(|(slot, _)| self.head.decode(&self.graph, slot))
    }

    /// Forbids the allowed moves for which `keep` returns `false`.
    pub fn retain(&mut self, mut keep: impl FnMut(Move) -> bool) {
        let width = self.head.width.max(1);
        let n = self.graph.n_nodes().max(1);
        let mut retain_row = |row: &mut [bool], a: u32, b: u32| {
            for (class, legal) in (0..).zip(row).filter(|(_, legal)| **legal) {
                *legal = keep(Move { a, b, class });
            }
        };
        match self.head.anchor {
            Anchor::Graph => retain_row(self.legal, 0, 0),
            Anchor::Node => {
                for (a, row) in (0..).zip(self.legal.chunks_mut(width)) {
                    retain_row(row, a, 0);
                }
            }
            Anchor::Edge => {
                let rows = self.graph.weighted_edges().zip(self.legal.chunks_mut(width));
                for ((a, b, _), row) in rows {
                    retain_row(row, a, b);
                }
            }
            Anchor::NodePair => {
                for (a, rows) in (0..).zip(self.legal.chunks_mut(n * width)) {
                    for (b, row) in (0..).zip(rows.chunks_mut(width)) {
                        retain_row(row, a, b);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Direction;
    use crate::graph::{AddEdge, AddNode, Edge, GraphKind, GraphState, Semantics, SetEdgeAttr};

    /// Returns a triangle with a tail: the edges are 0 - 1 - 2 - 0 and 2 - 3.
    fn tailed(kind: GraphKind) -> GraphState {
        let mut graph = GraphState::with_nodes(kind, 4);
        for (a, b) in [(0, 1), (1, 2), (0, 2), (2, 3)] {
            graph.add_edge(a, b, Edge::default()).unwrap();
        }
        graph
    }

    /// Checks that, for each anchor, `allowed`, `forbid` and `retain` agree with the slots of the block of
    /// logits.
    #[test]
    fn moves_agree_with_their_slots() {
        let set = SetEdgeAttr::new(&[2, 1]).unwrap();
        let types: [&dyn GraphActionType; 4] =
            [&AddNode::free(3, 9), &AddNode::attached(2, 2, 9), &AddEdge::new(2), &set];
        for kind in [GraphKind::Directed, GraphKind::Undirected] {
            let graph = tailed(kind);
            for action_type in types {
                let head = action_type.head(Direction::Forward).unwrap();
                let mut all = vec![false; head.anchor.rows(&graph) * head.width];
                action_type.mask(Direction::Forward, Semantics::Labelled, (&graph).into(), &mut all);
                let legal: Vec<usize> = (0..all.len()).filter(|&slot| all[slot]).collect();

                let moves: Vec<Move> =
                    MoveMask::new((&graph).into(), (ActionKind(0), action_type, head), &mut all.clone())
                        .allowed()
                        .collect();
                assert_eq!(moves, legal.iter().map(|&slot| head.decode(&graph, slot)).collect::<Vec<_>>());
                assert!(legal.len() > 2);
                for (&slot, &removed) in legal.iter().zip(&moves) {
                    let mut expected = all.clone();
                    expected[slot] = false;
                    let mut forbidden = all.clone();
                    let mut retained = all.clone();
                    let mut mask =
                        MoveMask::new((&graph).into(), (ActionKind(0), action_type, head), &mut forbidden);
                    assert!(mask.allows(removed));
                    mask.forbid(removed);
                    assert!(!mask.allows(removed));
                    MoveMask::new((&graph).into(), (ActionKind(0), action_type, head), &mut retained)
                        .retain(|action| action != removed);
                    assert_eq!((&forbidden, &retained), (&expected, &expected));
                }
            }
        }
    }

    #[test]
    fn a_move_that_does_not_exist_forbids_nothing() {
        let graph = tailed(GraphKind::Undirected);
        let edge = AddEdge::new(2);
        let head = edge.head(Direction::Forward).unwrap();
        let mut legal = vec![false; 32];
        edge.mask(Direction::Forward, Semantics::Labelled, (&graph).into(), &mut legal);
        let all = legal.clone();
        let mut mask = MoveMask::new((&graph).into(), (ActionKind(0), &edge, head), &mut legal);
        for missing in [(0, 4, 0), (4, 0, 0), (0, 3, 2), (0, 1, 0)] {
            mask.forbid(Move { a: missing.0, b: missing.1, class: missing.2 });
        }
        assert!(mask.any() && mask.allowed().count() == all.iter().filter(|legal| **legal).count());
        // The pairs (3, 0) and (0, 3) of an undirected graph are the same, so both are forbidden.
        mask.forbid(Move { a: 3, b: 0, class: 1 });
        assert!(!mask.allows(Move { a: 0, b: 3, class: 1 }));
        mask.forbid_all();
        assert!(!mask.any());
        // An edge that doesn't exist has no slots, so forbidding a move of this edge must not forbid the move
        // of another edge.
        let set = SetEdgeAttr::new(&[1]).unwrap();
        let head = set.head(Direction::Forward).unwrap();
        let mut legal = vec![true; 4];
        MoveMask::new((&graph).into(), (ActionKind(0), &set, head), &mut legal).forbid(Move {
            a: 0,
            b: 3,
            class: 0,
        });
        assert_eq!(legal, [true; 4]);
    }
}
