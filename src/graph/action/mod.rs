//! Action types: the ways in which a graph can be edited, and the set of them that an environment offers.
//!
//! | type | forward: anchor, width | backward, and forward of its [`Reversed`]: anchor, width |
//! |---|---|---|
//! | [`AddNode`] free or first | graph, node classes | node, 1 |
//! | [`AddNode`] attached | node, node classes x edge classes | node, 1 |
//! | [`AddEdge`] | node pair, edge classes | edge, 1 |
//! | [`SetNodeAttr`] | node, sum of values | node, attributes |
//! | [`SetEdgeAttr`] | edge, sum of values | edge, attributes |
//! | the exit, which every set has | graph, 1 | none (P_B = 1) |
//! | [`Reversed`] of any but the exit | the twin's | the original's |
//!
//! A backward action carries only what identifies the parent: removing an edge doesn't name its class. The library never
//! matches on a kind: a type of your own, in any crate, is a [`GraphActionType`] like these (see
//! `examples/custom_action_type.rs`, and [`contract::check_action_type`](crate::contract::check_action_type)).

mod add_edge;
mod add_node;
mod anchor;
mod exit;
mod reversed;
mod set;
mod set_attr;

pub use add_edge::AddEdge;
pub use add_node::AddNode;
pub use anchor::{Anchor, Head, Move};
use exit::Exit;
pub use reversed::Reversed;
pub use set::{ActionKind, ActionSet, Semantics};
pub use set_attr::{SetAttr, SetEdgeAttr, SetNodeAttr};

use crate::Result;
use crate::env::Direction;
use crate::graph::{GraphSchema, GraphState, GraphView};

/// The move that undoes `action`, named in the graph that `action` leads to.
pub(crate) fn reverse_move(
    action_type: &dyn GraphActionType,
    direction: Direction,
    before: &GraphState,
    action: Move,
) -> Move {
    let undo = action_type.reverse(direction, before, action);
    let removed = action_type.removed_nodes(direction, before, action);
    let (false, Some(head)) = (removed.is_empty(), action_type.head(direction.opposite())) else { return undo };
    // Labels keep their order, so the ends of an undirected pair do, too.
    let shifted = |a: u32| a.saturating_sub(removed.iter().filter(|&&gone| gone < a).count() as u32);
    match head.anchor {
        Anchor::Graph => undo,
        Anchor::Node => Move { a: shifted(undo.a), ..undo },
        Anchor::Edge | Anchor::NodePair => Move { a: shifted(undo.a), b: shifted(undo.b), ..undo },
    }
}

/// One way to edit a graph, and the way back.
///
/// # Contract
/// For every graph and every forward move that [`mask`](Self::mask) allows, `apply` and then `apply` of the
/// [`reverse`](Self::reverse) in the other direction restores the graph (labelled: exactly; up to isomorphism: up to
/// relabelling), the reverse is among the backward moves of the child, and the reverse of the reverse is the move itself (up
/// to isomorphism: a move to an isomorphic child). [`contract::check_action_type`](crate::contract::check_action_type) tests it.
pub trait GraphActionType: Send + Sync + std::fmt::Debug {
    /// A short name, for messages and for parameter names.
    fn name(&self) -> &str;

    /// The block of logits in a direction; `None` if there is no action of this type in that direction.
    fn head(&self, direction: Direction) -> Option<Head>;

    /// Marks what the type allows in a direction; `mask` comes in all false, one entry per slot of the block.
    ///
    /// Forward is what may be done, backward what this type could have done last. The environment restricts further. Edges with what they
    /// carry are read from [`GraphView::weighted_edges`]: the batch lists them once for all types and for the network.
    fn mask(&self, direction: Direction, semantics: Semantics, graph: GraphView<'_>, mask: &mut [bool]);

    /// Makes the edit.
    ///
    /// # Errors
    /// [`Error::Contract`](crate::Error::Contract) if the graph doesn't permit it.
    fn apply(&self, direction: Direction, graph: &mut GraphState, action: Move) -> Result<()>;

    /// The move of the other direction that undoes `action`. Nodes have their labels in `before`, and those that the
    /// action adds the next ones, from `before.n_nodes()` on. Where nodes are [removed](Self::removed_nodes), the
    /// library shifts the labels behind them.
    fn reverse(&self, direction: Direction, before: &GraphState, action: Move) -> Move;

    /// The nodes of `before` that the move removes, in the order in which its reverse adds them; none by default.
    ///
    /// Later nodes shift down, and a move that adds nodes puts them last. So what undoing the move gives is `before` with these nodes
    /// put last, in this order.
    fn removed_nodes(&self, _direction: Direction, _before: &GraphState, _action: Move) -> Vec<u32> {
        Vec::new()
    }

    /// The same move in another labelling of the graph: node `a` of `from` is node `names[a]` of `to`.
    ///
    /// By default nodes are renamed and the column stays. A type whose columns mean something only within one graph (an end
    /// of a part that can be turned) renames them, too.
    fn rename(&self, direction: Direction, action: Move, names: &[u32], _from: &GraphState, to: &GraphState) -> Move {
        self.head(direction).map_or(action, |head| head.rename(action, names, to.is_directed()))
    }

    /// Makes room in a [plain](GraphSchema::plain) schema for what the type adds to graphs: nodes, classes, attributes; the environment's
    /// has room for what all types add. By default that is nothing; a type of your own that adds some says so here, or its environment is
    /// told by [`GraphEnv::with_schema`](crate::graph::GraphEnv::with_schema).
    fn widen(&self, _schema: &mut GraphSchema) {}

    /// `true` if this type is the exit action, which leaves the graph as it is and ends the trajectory.
    fn is_exit(&self) -> bool {
        false
    }
}
