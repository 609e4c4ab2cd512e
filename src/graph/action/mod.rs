//! Action types, which edit graphs, and the set of action types of an environment.
//!
//! The logits of an action type form a table, the type's block. The anchor tells which parts of a graph have
//! a row (the nodes, for example), and the width is the number of columns:
//!
//! | type | forward: anchor, width | backward, and forward of its [`Reverse`]: anchor, width |
//! |---|---|---|
//! | [`AddNode`] free or first | graph, node classes | node, 1 |
//! | [`AddNode`] attached | node, node classes x edge classes | node, 1 |
//! | [`AddEdge`] | node pair, edge classes | edge, 1 |
//! | [`SetNodeAttr`] | node, values of all attributes | node, attributes |
//! | [`SetEdgeAttr`] | edge, values of all attributes | edge, attributes |
//! | the exit, which every set has | graph, 1 | none (P_B = 1) |
//! | [`Reverse`] of any type but the exit | backward of the original | forward of the original |
//!
//! In the backward direction there are only the columns that distinguish parents. For example, removing an
//! edge has one column, because the edge's class is known. The library never matches on an action type: a
//! custom type, in any crate, is a [`GraphActionType`] like these (see `examples/custom_action_type.rs`, and
//! [`contract::check_action_type`](crate::contract::check_action_type)).

mod add_edge;
mod add_node;
mod anchor;
mod exit;
mod reverse;
mod set;
mod set_attr;
mod settings;

pub use add_edge::AddEdge;
pub use add_node::AddNode;
pub use anchor::{Anchor, Head, Move};
use exit::Exit;
pub use reverse::Reverse;
pub use set::{ActionKind, ActionSet, Semantics};
pub use set_attr::{SetAttr, SetEdgeAttr, SetNodeAttr};
pub(super) use settings::LibraryType;

use serde_json::Value;

use crate::Result;
use crate::env::Direction;
use crate::graph::{GraphSchema, GraphState, GraphView};

/// Returns the move that undoes `action`. The returned move names nodes by their labels in the graph to which
/// `action` leads.
pub(crate) fn reverse_move(
    action_type: &dyn GraphActionType,
    direction: Direction,
    before: &GraphState,
    action: Move,
) -> Move {
    let undo = action_type.reverse(direction, before, action);
    let removed = action_type.removed_nodes(direction, before, action);
    let (false, Some(head)) = (removed.is_empty(), action_type.head(direction.opposite())) else {
        return undo;
    };
    // Shifting labels keeps their order, so the smaller node of an undirected pair stays the smaller one.
    let shifted = |a: u32| a.saturating_sub(removed.iter().filter(|&&removed| removed < a).count() as u32);
    head.map_nodes(undo, shifted)
}

/// A kind of edit of a graph, together with the edit that undoes it.
///
/// # Contract
/// The implementation must satisfy these laws for every graph and every forward move that
/// [`mask`](Self::mask) allows:
///
/// * `apply` followed by `apply` of the [`reverse`](Self::reverse) in the other direction restores the graph
///   (exactly if graphs are labelled, otherwise up to relabelling),
/// * the reverse is among the backward moves of the child,
/// * the reverse of the reverse is the move itself (up to isomorphism, a move to an isomorphic child).
///
/// The function [`contract::check_action_type`](crate::contract::check_action_type) tests these laws.
pub trait GraphActionType: Send + Sync + std::fmt::Debug {
    /// The short name of the type, for messages and for names of parameters.
    fn name(&self) -> &str;

    /// Returns the shape of the block of logits in a direction; `None` if there is no action of this type in
    /// that direction.
    fn head(&self, direction: Direction) -> Option<Head>;

    /// Marks the moves that the type allows in a direction. `mask` has an entry per slot of the type's block
    /// of logits. All entries are `false` before the call.
    ///
    /// In the forward direction, these moves are the edits that may be made. In the backward direction, these
    /// moves undo the edits that this type could have made last. The environment restricts the moves further.
    /// Read edges, with their classes and attributes, from [`GraphView::weighted_edges`], because the batch
    /// lists them once for all types and for the network.
    fn mask(&self, direction: Direction, semantics: Semantics, graph: GraphView<'_>, mask: &mut [bool]);

    /// Applies the edit of a move to the graph.
    ///
    /// # Errors
    /// [`Error::Contract`](crate::Error::Contract) if the edit isn't possible in this graph.
    fn apply(&self, direction: Direction, graph: &mut GraphState, action: Move) -> Result<()>;

    /// Returns the move of the other direction that undoes `action`.
    ///
    /// The result names nodes by their labels in `before`. Nodes that the action adds have the next labels,
    /// from `before.n_nodes()`. If the action [removes nodes](Self::removed_nodes), the library shifts the
    /// labels of later nodes in the result.
    fn reverse(&self, direction: Direction, before: &GraphState, action: Move) -> Move;

    /// Returns the nodes of `before` that the move removes, in the order in which its reverse adds them. The
    /// default is none.
    ///
    /// Removing nodes shifts the labels of later nodes down, and added nodes come last. So if the move is
    /// undone, the result is `before` with these nodes moved to the end, in this order.
    fn removed_nodes(&self, _direction: Direction, _before: &GraphState, _action: Move) -> Vec<u32> {
        Vec::new()
    }

    /// Returns the same move in another labelling of the graph: node `a` of `from` is node `names[a]` of
    /// `to`.
    ///
    /// The default renames the nodes and keeps the column. A type whose columns depend on the labels of nodes
    /// in one graph must rename columns, too. For example, a node may represent a symmetric fragment, and a
    /// column one end of it; which end this is may depend on the labels of the neighbours.
    fn rename(
        &self,
        direction: Direction,
        action: Move,
        names: &[u32],
        _from: &GraphState,
        to: &GraphState,
    ) -> Move {
        self.head(direction).map_or(action, |head| head.rename(action, names, to.is_directed()))
    }

    /// Raises the limits of a schema so that it includes everything that the type adds to graphs: nodes,
    /// classes, attributes.
    ///
    /// The library passes a [plain](GraphSchema::plain) schema without nodes. The environment's schema then
    /// has the largest limits of all types. The default raises nothing. A custom type that adds nodes,
    /// classes or attributes overrides this method, or its environment sets the schema by
    /// [`GraphEnv::with_schema`](crate::graph::GraphEnv::with_schema).
    fn widen(&self, _schema: &mut GraphSchema) {}

    /// Returns the settings of the type, from which [`gfn::load`](crate::load) builds it again; null (the
    /// default) for a custom type, which can't be built from a file. A type that wraps another type must not
    /// return the settings of the wrapped type: the environment would be loaded with the wrapped type.
    fn settings(&self) -> Value {
        Value::Null
    }

    /// `true` if this type is the exit action, which ends the trajectory and doesn't change the graph. The
    /// default is `false`.
    fn is_exit(&self) -> bool {
        false
    }
}
